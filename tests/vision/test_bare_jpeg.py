"""A JPEG without anything but its picture: the same pixels, and nothing that the file says beside them."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agrotools.vision.formats import bare_jpeg


def jpeg(folder: Path, *, size: tuple[int, int] = (60, 40), mode: str = "RGB", **options: object) -> Path:
    values = np.random.default_rng(7).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(values).convert(mode).save(folder / "a.jpg", "JPEG", **options)
    return folder / "a.jpg"


@pytest.mark.parametrize(
    "options",
    [{}, {"progressive": True}, {"subsampling": 0, "quality": 95}, {"mode": "L"}, {"restart_marker_blocks": 2}],
    ids=str,
)
def test_the_pixels_stay_the_same(tmp_path: Path, options: dict[str, object]) -> None:
    path = jpeg(tmp_path, **options)
    bare = bare_jpeg(path, 100)
    assert bare is not None
    assert (bare.width_px, bare.height_px) == (60, 40)
    with Image.open(io.BytesIO(bare.content)) as shown, Image.open(path) as stored:
        assert np.array_equal(np.asarray(shown), np.asarray(stored))


def test_nothing_else_of_the_file_is_left(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010E] = "SECRET description"
    thumbnail = b"JFXX\0\x10SECRET thumbnail"
    path = jpeg(tmp_path, exif=exif, comment=b"SECRET comment", icc_profile=b"SECRET profile", xmp=b"SECRET xmp")
    data = path.read_bytes()
    data = data[:2] + b"\xff\xe0" + (len(thumbnail) + 2).to_bytes(2) + thumbnail + data[2:] + b"SECRET trailer"
    path.write_bytes(data)
    bare = bare_jpeg(path, 100)
    assert bare is not None
    assert data.count(b"SECRET") >= 5
    assert b"SECRET" not in bare.content


def test_what_a_person_would_see_otherwise_is_left_to_the_reader(tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    assert bare_jpeg(jpeg(tmp_path, exif=turned), 100) is None
    assert bare_jpeg(jpeg(tmp_path, mode="CMYK"), 100) is None
    first, second = Image.new("RGB", (8, 8)), Image.new("RGB", (8, 8), "red")
    first.save(tmp_path / "two.jpg", "MPO", save_all=True, append_images=[second])
    assert bare_jpeg(tmp_path / "two.jpg", 100) is None
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    assert bare_jpeg(tmp_path / "a.png", 100) is None
    assert bare_jpeg(tmp_path / "missing.jpg", 100) is None


def test_large_pictures_and_files_are_left_to_the_reader(tmp_path: Path) -> None:
    path = jpeg(tmp_path)
    assert bare_jpeg(path, 59) is None
    path.write_bytes(path.read_bytes() + bytes(8 * 2**20))
    assert bare_jpeg(path, 100) is None


def test_a_file_that_is_cut_short_anywhere_is_left_to_the_reader(tmp_path: Path) -> None:
    data = jpeg(tmp_path).read_bytes()
    for length in range(0, len(data) - 2, 17):
        (tmp_path / "cut.jpg").write_bytes(data[:length])
        assert bare_jpeg(tmp_path / "cut.jpg", 100) is None


@given(noise=st.binary(max_size=40), at=st.integers(0, 3000))
def test_no_bytes_make_it_fail(tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    folder = tmp_path_factory.mktemp("noise")
    data = jpeg(folder).read_bytes()
    (folder / "noisy.jpg").write_bytes(data[:at] + noise + data[at + len(noise) :])
    bare = bare_jpeg(folder / "noisy.jpg", 100)
    assert bare is None or bare.content.startswith(b"\xff\xd8")
