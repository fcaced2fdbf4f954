"""Files of weights: what is read is what was described, or an error that says what to do."""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest

from agrotools.core import ToolError
from agrotools.vision import nets
from agrotools.vision.nets import checked_arrays, checked_bytes, pack_arrays


def fault(path: Path, sha256: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        checked_arrays(path, sha256, what="the weights of mine", hint="train again")
    assert caught.value.kind == "backend_unavailable"
    assert caught.value.message.startswith("the weights of mine")
    assert caught.value.hint == "train again"
    return caught.value


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array([1, 2], np.uint8)}
    content, sha256 = pack_arrays(arrays)
    (tmp_path / "w.npz").write_bytes(content)
    found = checked_arrays(tmp_path / "w.npz", sha256, what="x", hint="y")
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], arrays[name]) and found[name].dtype == arrays[name].dtype for name in arrays)
    assert checked_bytes(tmp_path / "w.npz", sha256, what="x", hint="y") == content


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.npz"
    assert "cannot be read" in fault(path, "0" * 64).message
    content, sha256 = pack_arrays({"a": np.ones(3, np.float32)})
    path.write_bytes(content + b" ")
    assert "not those that its description names" in fault(path, sha256).message
    junk = b"PK\x03\x04 no zip"
    path.write_bytes(junk)
    assert "damaged" in fault(path, hashlib.sha256(junk).hexdigest()).message
    content, sha256 = pack_arrays({"a": np.array([1.0, np.nan])})
    path.write_bytes(content)
    assert "not all are numbers" in fault(path, sha256).message
    monkeypatch.setattr(nets, "LARGEST_WEIGHTS", 10)
    assert "more than" in fault(path, sha256).message


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.savez(path, a=np.array([object()]))
    assert "damaged" in fault(path, hashlib.sha256(path.read_bytes()).hexdigest()).message
    path.write_bytes(pickle.dumps({"a": 1}))
    assert "damaged" in fault(path, hashlib.sha256(path.read_bytes()).hexdigest()).message
