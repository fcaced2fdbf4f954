"""Reader of the weights in a ``.pth`` file that PyTorch wrote before version 1.6, without PyTorch.

Such a file holds pickles one after the other (a magic number, the version, facts on the machine, the tensors without
their numbers, the keys of the storages) and then the numbers of each storage.
"""

import io
import pickle
import struct
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_MAGIC = 0x1950A86A20F9469CFC6C
_TYPES = {"FloatStorage": "<f4", "LongStorage": "<i8"}


class _Storage(NamedTuple):
    key: str
    type: str
    count: int


class _Tensor(NamedTuple):
    """Where the numbers of a tensor are; ``strides`` are counted in numbers, and may be those of a transposed one."""

    storage: _Storage
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _tensor(
    storage: _Storage, start: int, shape: Sequence[int], strides: Sequence[int], *_: object
) -> _Tensor:
    """Stand for ``torch._utils._rebuild_tensor_v2``."""
    return _Tensor(storage, start, tuple(shape), tuple(strides))


class _Reader(pickle.Unpickler):
    """Unpickler that knows tensors, their storages and ordered dictionaries, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in _TYPES:
            return name
        raise pickle.UnpicklingError(f"the file holds more than tensors: {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        _, kind, key, _, count, _ = pid
        return _Storage(key, kind, count)


def read_legacy_pth(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a file of weights by name; ValueError if it is of another form."""
    stream = io.BytesIO(content)
    if pickle.Unpickler(stream).load() != _MAGIC:
        raise ValueError("not a .pth file of PyTorch before 1.6")
    _Reader(stream).load()
    _Reader(stream).load()
    tensors: dict[str, _Tensor] = _Reader(stream).load()
    keys: list[str] = _Reader(stream).load()
    type_of = {one.storage.key: _TYPES[one.storage.type] for one in tensors.values()}
    numbers: dict[str, np.ndarray] = {}
    for key in keys:
        (count,) = struct.unpack("<q", stream.read(8))
        dtype = np.dtype(type_of[key])
        numbers[key] = np.frombuffer(stream.read(count * dtype.itemsize), dtype)
    arrays: dict[str, np.ndarray] = {}
    for name, one in tensors.items():
        own = numbers[one.storage.key][one.start :]
        steps = [step * own.itemsize for step in one.strides]
        view = np.lib.stride_tricks.as_strided(own, one.shape, steps, writeable=False)
        arrays[name] = np.ascontiguousarray(view).reshape(one.shape)
    return arrays
