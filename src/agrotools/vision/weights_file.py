"""Files of trained weights: read whole, checked against the hash that their description names, never unpickled."""

import hashlib
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError

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
            raise unusable(what, f"cannot be read: more than {LARGEST_WEIGHTS >> 20} MiB", hint)
        content = path.read_bytes()
    except OSError as error:
        raise unusable(what, f"cannot be read: {error.strerror or error}", hint) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise unusable(what, "are not those that its description names", hint)
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
        raise unusable(what, "are damaged", hint) from error
    if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f"):
        raise unusable(what, "are damaged: not all are numbers", hint)
    return arrays


def unusable(what: str, why: str, hint: str) -> ToolError:
    """The error for weights that cannot be used."""
    return ToolError("backend_unavailable", f"{what} {why}", hint=hint)


def packed_arrays(arrays: dict[str, NDArray[np.generic]]) -> tuple[bytes, str]:
    """The content of an ``.npz``, and its hash."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    content = buffer.getvalue()
    return content, hashlib.sha256(content).hexdigest()
