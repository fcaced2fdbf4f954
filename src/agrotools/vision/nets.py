"""Nets and weights of the package: files checked against their hash, descriptions, ONNX sessions."""

import hashlib
import io
import os
from collections.abc import Collection
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from agrotools.core import ToolError
from agrotools.vision import THREADS

LARGEST_WEIGHTS = 64 * 2**20
Arrays = dict[str, NDArray[np.generic]]


def checked_bytes(path: Path, sha256: str, *, what: str, hint: str) -> bytes:
    """The content of a file of weights.

    Args:
        sha256: hexadecimal hash that the content must have.
        what: whose weights these are, as a message begins ("the weights of head carrots").
        hint: what to do where they cannot be used.

    Raises:
        ToolError: ``backend_unavailable``: missing, larger than 64 MiB, or not the content that was described.
    """
    try:
        if path.stat().st_size > LARGEST_WEIGHTS:
            raise unusable_weights(what, f"cannot be read: more than {LARGEST_WEIGHTS >> 20} MiB", hint)
        content = path.read_bytes()
    except OSError as error:
        raise unusable_weights(what, f"cannot be read: {error.strerror or error}", hint) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise unusable_weights(what, "are not those that its description names", hint)
    return content


def checked_arrays(path: Path, sha256: str, *, what: str, hint: str) -> Arrays:
    """The arrays of an ``.npz`` of weights, all of them read.

    Raises:
        ToolError: as :func:`checked_bytes`; ``backend_unavailable`` too for what is no file of plain, finite arrays.
    """
    content = checked_bytes(path, sha256, what=what, hint=hint)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays: Arrays = {name: file[name] for name in file.files}
    except Exception as error:  # a damaged zip raises whatever its decoder runs into
        raise unusable_weights(what, "are damaged", hint) from error
    if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f"):
        raise unusable_weights(what, "are damaged: not all are numbers", hint)
    return arrays


def unusable_weights(what: str, why: str, hint: str) -> ToolError:
    """The error for weights that cannot be used."""
    return ToolError("backend_unavailable", f"{what} {why}", hint=hint)


def pack_arrays(arrays: dict[str, NDArray[np.generic]]) -> tuple[bytes, str]:
    """The content of an ``.npz``, and its hash."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    content = buffer.getvalue()
    return content, hashlib.sha256(content).hexdigest()


def open_session(content: bytes, *, takes: str, gives: Collection[str], what: str, hint: str) -> Any:
    """An ``onnxruntime.InferenceSession``.

    Args:
        takes: name of the one input, float32.
        gives: names of outputs that must be there.
        what: whose graph it is, as a message begins.
        hint: what to do where it cannot be used.

    Raises:
        ToolError: ``backend_unavailable``: no ONNX Runtime, no graph that runs, other inputs or outputs.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise ToolError("backend_unavailable", "nets need onnxruntime", hint="pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get(THREADS, "1"))
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        inputs = {one.name: one.type for one in session.get_inputs()}
        outputs = {one.name for one in session.get_outputs()}
    except Exception as error:  # ONNX Runtime's own kinds of error, whatever the graph leads it to
        raise unusable_weights(what, "are no graph that can be run", hint) from error
    if inputs != {takes: "tensor(float)"} or not set(gives) <= outputs:
        raise unusable_weights(what, "take or give something else than the description says", hint)
    return session


_LARGEST_DESCRIPTION = 2**20


class DescriptionPart(BaseModel):
    """A part of a description, which holds more than its reader needs."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DescribedNet(DescriptionPart):
    """Fields of every net's description: its name, and its weights by file and hash."""

    name: str
    weights: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+\.onnx$")]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


Description = TypeVar("Description", bound=DescribedNet)


def nets_folder() -> Path:
    """Folder of the nets of the package."""
    return Path(str(files("agrotools"))) / "data" / "nets"


def read_description(path: Path, kind: type[Description], *, what: str, hint: str) -> Description:
    """A description as it stands.

    Args:
        what: whose it is, as a message begins ("the fruit net").
        hint: what to do where it cannot be used.

    Raises:
        ToolError: ``backend_unavailable``: missing, over 1 MiB, or no description of that kind.
    """
    try:
        if path.stat().st_size > _LARGEST_DESCRIPTION:
            raise unusable_weights(what, "has a description that is none: it is too large", hint)
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise unusable_weights(what, f"cannot be read: {error.strerror or error}", hint) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise unusable_weights(what, f"has a faulty description: {where or 'it'}: {first['msg']}", hint) from error


def read_whole_net(
    path: Path, kind: type[Description], *, gives: Collection[str], what: str, hint: str
) -> tuple[Description, Any]:
    """A description and the session of its weights, which take ``image``.

    Args:
        gives: names of outputs that must be there; ``what`` and ``hint`` as for :func:`read_description`.

    Raises:
        ToolError: ``backend_unavailable``: a file is missing, no description, other weights, no graph that fits.
    """
    info = read_description(path, kind, what=what, hint=hint)
    weights = f"the weights of {what}"
    content = checked_bytes(path.parent / info.weights, info.sha256, what=weights, hint=hint)
    return info, open_session(content, takes="image", gives=gives, what=weights, hint=hint)
