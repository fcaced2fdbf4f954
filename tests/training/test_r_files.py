"""Files of R: their values are read, and a raster in one becomes the same picture as its numbers say."""

import bz2
import gzip
import lzma
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from agrotools.vision.rasters import open_raster
from agrotools_benchmarks.field.pack import Numbers, PackedFile, bands_as_tiff, sha256_of

sys.path.append(str(Path(__file__).resolve().parents[2] / "training"))

from field_sources.outlines import windows_in
from field_sources.r_files import read_r

pytestmark = pytest.mark.unit

_PAIR, _SYMBOL, _CHARACTERS, _REAL, _INTEGER, _STRINGS = 2, 1, 9, 14, 13, 16
_TAGGED, _WITH_ATTRIBUTES = 0x400, 0x200
_END = struct.pack(">i", 254)


def _text(text: str) -> bytes:
    return struct.pack(">ii", _CHARACTERS, len(text)) + text.encode()


def _named(name: str, value: bytes, then: bytes = _END) -> bytes:
    """Return a pair of a list: a name, a value, and what follows."""
    return struct.pack(">ii", _PAIR | _TAGGED, _SYMBOL) + _text(name) + value + then


def _reals(*values: float, attributes: bytes = b"") -> bytes:
    kind = _REAL | (_WITH_ATTRIBUTES if attributes else 0)
    return struct.pack(f">ii{len(values)}d", kind, len(values), *values) + attributes


def _file(value: bytes) -> bytes:
    """Return a file of R that holds one object named ``heights``."""
    return b"RDX2\nX\n" + struct.pack(">iii", 2, 0x40000, 0x20300) + _named("heights", value)


HEIGHTS = (1.5, 2.5, float("nan"), 4.5, 5.5, 6.5)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_values_attributes_and_the_place_of_a_raster_are_read(pack):
    size = _named("dim", struct.pack(">4i", _INTEGER, 2, 2, 3))
    packed = pack(_file(_reals(*HEIGHTS, attributes=size)))
    found = read_r(packed)["heights"]
    assert np.array_equal(found.values, HEIGHTS, equal_nan=True)
    assert found.attributes["dim"].values == (2, 3)
    numbers = Numbers(offset=found.offset, form="f8", rows=2, columns=3)
    file = _converted(numbers, _tiff(HEIGHTS))
    assert file.item.convert is not None
    assert file.item.convert(packed) == _tiff(HEIGHTS)


def _tiff(values: tuple[float, ...]) -> bytes:
    return bands_as_tiff(np.array(values, np.float32).reshape(1, 2, 3))


def _converted(numbers: Numbers, content: bytes) -> PackedFile:
    return PackedFile(
        path="files/heights.tif",
        sha256=sha256_of(content),
        repo="some/package",
        commit="0" * 40,
        source="data/heights.rda",
        local="heights/images/heights.rda",
        convert="tiff",
        numbers=numbers,
    )


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:2] + b"\0" * 40])
def test_a_damaged_file_gives_no_raster(damage):
    packed = gzip.compress(_file(_reals(*HEIGHTS)))
    offset = read_r(packed)["heights"].offset
    file = _converted(Numbers(offset=offset, form="f8", rows=2, columns=3), _tiff(HEIGHTS))
    assert file.item.convert is not None
    assert file.item.convert(damage(packed)) is None


@pytest.mark.parametrize(("bands", "kind"), [(1, np.float32), (4, np.float32), (6, np.uint8)])
def test_a_raster_of_any_number_of_bands_is_read_back(bands, kind, tmp_path):
    values = np.arange(bands * 35).reshape(bands, 5, 7).astype(kind)
    path = tmp_path / "scene.tif"
    path.write_bytes(bands_as_tiff(values))
    with open_raster(path) as raster:
        assert np.array_equal(raster.read([*range(1, bands + 1)]), values)


def test_a_window_lies_inside_its_outline_or_is_left_out():
    wide = [10.0, 20.0, 20.0, 10.0, 40.0, 40.0, 30.0, 30.0]
    narrow = [10.0, 11.0, 11.0, 10.0, 40.0, 40.0, 30.0, 30.0]
    edges = (0.0, 50.0, 50.0, 0.0)
    (found,) = windows_in([wide, narrow], ["forest", "water"], edges, (50, 50))
    x0, y0, x1, y1 = found["window"]
    assert found["label"] == "forest"
    assert 10 <= x0 < x1 <= 20
    assert 10 <= y0 < y1 <= 20
