"""Depth files: every form that holds depth, and none that only looks like it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from agrotools.core import ToolError
from agrotools.tools.fruit.camera import read_depth
from support.picture_files import png_header_only, write_raster

MM = np.array([[0, 500, 1200], [1500, 65535, 2000]], np.uint16)


def fault(path: Path, unit_mm: float | None = None) -> ToolError:
    with pytest.raises(ToolError) as caught:
        read_depth(path, unit_mm)
    assert str(path.parent) not in str(caught.value), "no path of this machine in a message"
    return caught.value


def saved(folder: Path, values: np.ndarray, name: str = "depth_1.npy") -> Path:
    np.save(folder / name, values)
    return folder / name


def test_png_and_tiff_of_16_bits(tmp_path: Path) -> None:
    Image.fromarray(MM).save(tmp_path / "a.png")
    write_raster(tmp_path / "a.tif", MM[None])
    for name in ("a.png", "a.tif"):
        depth = read_depth(tmp_path / name)
        assert depth.mm.shape == (2, 3)
        assert np.isnan(depth.mm[0, 0]), "0 is no depth"
        assert np.isnan(depth.mm[1, 1]), "nor is the largest value there is"
        assert depth.mm[1, 2] == 2000
        assert np.isfinite(depth.mm).mean() == pytest.approx(4 / 6)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2", "<u2", ">u2", "<i4", "<i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_numbers(tmp_path: Path, dtype: str, order: str) -> None:
    values = np.asarray([[800, 900, 1000], [1100, 0, 1300]]).astype(dtype, order=order)
    depth = read_depth(saved(tmp_path, values))
    assert depth.mm.dtype == np.float32
    assert depth.mm[0].tolist() == [800, 900, 1000]
    assert np.isnan(depth.mm[1, 1])
    assert np.array_equal(read_depth(saved(tmp_path, values[..., None])).mm, depth.mm, equal_nan=True)
    assert np.array_equal(read_depth(saved(tmp_path, values[None])).mm, depth.mm, equal_nan=True)


def test_units_are_given_or_refused_and_gaps_are_nan(tmp_path: Path) -> None:
    values = np.array([[np.nan, np.inf, -np.inf, -5.0, 0.0, 900.0, 901.0]])
    assert np.isfinite(read_depth(saved(tmp_path, values)).mm).tolist() == [[False] * 5 + [True] * 2]
    metres = saved(tmp_path, np.array([[1.2, 1.3], [0.0, 1.4]], np.float32))
    assert fault(metres).kind == "missing_metadata"
    assert read_depth(metres, 1000).mm[0, 0] == pytest.approx(1200)
    assert fault(metres, 1).kind == "invalid_argument"
    tenths = saved(tmp_path, np.array([[12000, 13000]], np.uint16))
    assert read_depth(tenths, 0.1).mm[0].tolist() == pytest.approx([1200, 1300])


def test_nothing_but_depth(tmp_path: Path) -> None:
    assert fault(tmp_path / "none.npy").kind == "file_not_found"
    (tmp_path / "empty.npy").touch()
    assert fault(tmp_path / "empty.npy").kind == "unreadable_file"
    (tmp_path / "text.npy").write_text("depth")
    assert fault(tmp_path / "text.npy").kind == "unreadable_file"
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "grey.png")
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "colour.png")
    assert fault(tmp_path / "colour.png").kind == "unreadable_file"
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "photo.jpg")
    assert fault(tmp_path / "photo.jpg").kind == "unreadable_file"
    assert fault(saved(tmp_path, np.zeros((4, 4)))).kind == "nothing_found"
    for values in (
        np.array([[1.0 + 1j]]),
        np.array([["900"]]),
        np.zeros((3, 4, 5)),
        np.zeros(7),
        np.float64(3),
        np.zeros((0, 4)),
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4), bool),
        np.zeros((2, 2), [("z", "<f4")]),
    ):
        assert fault(saved(tmp_path, values)).kind == "unreadable_file"


def test_objects_are_never_loaded_and_nothing_before_its_size_is_known(tmp_path: Path) -> None:
    bomb = np.array([[{"a": 1}]], dtype=object)
    np.save(tmp_path / "objects.npy", bomb, allow_pickle=True)
    assert fault(tmp_path / "objects.npy").kind == "unreadable_file"
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (20000, 20000), }".ljust(117) + "\n"
    with (tmp_path / "huge.npy").open("wb") as file:
        file.write(b"\x93NUMPY\x01\x00\x76\x00" + header.encode())
        file.truncate(128 + 4 * 20_000**2)  # a sparse file
    assert fault(tmp_path / "huge.npy").kind == "limit"
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (400, 400), }".ljust(117) + "\n"
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + b"\0" * 64)
    assert fault(tmp_path / "short.npy").kind == "unreadable_file"
    assert fault(png_header_only(tmp_path / "bomb.png", 30_000, 30_000)).kind in ("limit", "unreadable_file")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tail=st.binary(max_size=300))
def test_any_header_gives_a_typed_error_or_depth(tmp_path: Path, tail: bytes) -> None:
    (tmp_path / "odd.npy").write_bytes(b"\x93NUMPY" + tail)
    with pytest.raises(ToolError):
        read_depth(tmp_path / "odd.npy")
