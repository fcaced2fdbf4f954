"""Networks and weights of the package: files checked against their hash, descriptions, graphs that OpenCV runs."""

import hashlib
import io
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from agrotools.core import ToolError
from agrotools_tools.shipped import shipped_file

LARGEST_WEIGHTS = 64 * 2**20
Arrays = dict[str, NDArray[np.generic]]


def checked_bytes(path: Path, sha256: str, *, what: str, hint: str) -> bytes:
    """Return the content of a weights file with this hash; ToolError ``backend_unavailable`` with the ``hint`` if it
    is missing, larger than 64 MiB, or another. ``what``: owner of the weights, as the beginning of a message."""
    try:
        if path.stat().st_size > LARGEST_WEIGHTS:
            raise unusable_weights(
                what, f"cannot be read: more than {LARGEST_WEIGHTS >> 20} MiB", hint
            )
        content = path.read_bytes()
    except OSError as error:
        raise unusable_weights(what, f"cannot be read: {error.strerror or error}", hint) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise unusable_weights(what, "are not those that its description names", hint)
    return content


def checked_arrays(path: Path, sha256: str, *, what: str, hint: str) -> Arrays:
    """Return all arrays of an ``.npz`` file of weights, which must be plain and finite; see :func:`checked_bytes`."""
    content = checked_bytes(path, sha256, what=what, hint=hint)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays: Arrays = {name: file[name] for name in file.files}
    except Exception as error:  # a damaged zip may raise any exception
        raise unusable_weights(what, "are damaged", hint) from error
    if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f"):
        raise unusable_weights(what, "are damaged: not all are numbers", hint)
    return arrays


def unusable_weights(what: str, why: str, setup: str) -> ToolError:
    """Return the error for weights that cannot be used; ``setup``: what to do about it."""
    return ToolError("backend_unavailable", f"{what} {why}", setup=setup)


def pack_arrays(arrays: dict[str, NDArray[np.generic]]) -> tuple[bytes, str]:
    """Return the content of an ``.npz`` file with these arrays, and its hash."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    content = buffer.getvalue()
    return content, hashlib.sha256(content).hexdigest()


class Graph:
    """Graph of an ONNX file, run by OpenCV on the CPU. Its input is ``image``.

    Outputs do not depend on the number of threads. Calls of several threads wait for each other, because a net of
    OpenCV keeps its input between two functions.

    Args:
        content: the bytes of the file.
        what: owner of the graph, as the beginning of a message.
        hint: what to do if it cannot be used.

    Raises:
        ToolError: ``backend_unavailable``, the graph cannot be run.
    """

    def __init__(self, content: bytes, *, what: str, hint: str) -> None:
        import cv2

        self._what, self._hint = what, hint
        self._one_at_a_time = threading.Lock()
        # The classic engine is not tried after the new one, because its outputs would differ.
        engine = cv2.dnn.ENGINE_NEW
        try:
            self._net: Any = cv2.dnn.readNetFromONNX(np.frombuffer(content, np.uint8), engine)
        except cv2.error as error:
            raise unusable_weights(what, "are no graph that can be run", hint) from error

    def run(self, outputs: Sequence[str], image: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Return the named outputs for an image (n, 3, rows, columns); ToolError ``backend_unavailable`` if the graph
        does not have them, or does not take the image."""
        import cv2

        with self._one_at_a_time:
            try:
                self._net.setInput(image, "image")
                # One output at a time would run the graph anew for each.
                return [np.array(each, np.float32) for each in self._net.forward(outputs)]
            except cv2.error as error:
                raise unusable_weights(self._what, "cannot be run", self._hint) from error


_LARGEST_DESCRIPTION = 4 * 2**20


class DescriptionPart(BaseModel):
    """Part of a description; fields that the reader does not need are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DescribedNet(DescriptionPart):
    """Fields of every network's description: its name, and its weights by file and hash."""

    name: str
    weights: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+\.onnx$")]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


Description = TypeVar("Description", bound=BaseModel)
Described = TypeVar("Described", bound=DescribedNet)


def nets_folder() -> Path:
    """Return the folder of the networks of the package."""
    return shipped_file("nets")


def read_description(path: Path, kind: type[Description], *, what: str, hint: str) -> Description:
    """Read a description; ToolError ``backend_unavailable`` if the file is missing, over 4 MiB, or not of this kind."""
    try:
        if path.stat().st_size > _LARGEST_DESCRIPTION:
            raise unusable_weights(what, "has a description that is none: it is too large", hint)
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise unusable_weights(what, f"cannot be read: {error.strerror or error}", hint) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise unusable_weights(
            what, f"has a faulty description: {where or 'it'}: {first['msg']}", hint
        ) from error


def read_whole_net(
    path: Path, kind: type[Described], *, what: str, hint: str
) -> tuple[Described, Graph]:
    """Return a description and the graph of its weights; see :func:`checked_bytes`."""
    info = read_description(path, kind, what=what, hint=hint)
    weights = f"the weights of {what}"
    content = checked_bytes(path.parent / info.weights, info.sha256, what=weights, hint=hint)
    return info, Graph(content, what=weights, hint=hint)
