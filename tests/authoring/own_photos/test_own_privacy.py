"""Copies of photographs hold nothing that tells where, when and by whom they were taken."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin, features

from agrotools.vision.reading import read_image
from agrotools_build.own_photos.building import without_identity

PIXELS = np.random.default_rng(3).integers(0, 255, (40, 60, 3)).astype(np.uint8)
SECRET = b"SECRET"


def photo(**options) -> bytes:
    exif = Image.Exif()
    exif.update(
        {270: "SECRET farm", 271: "Maker", 274: 6, 315: "SECRET artist", 306: "2026:05:01 10:00:00"}
    )
    exif.get_ifd(0x8769).update({37386: 35.0, 41989: 50, 37510: b"ASCII\0\0\0SECRET comment"})
    exif.get_ifd(0x8825).update({1: "N", 2: (47.0, 11.0, 8.0)})
    buffer = io.BytesIO()
    xmp = b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>SECRET</x:xmpmeta>"
    Image.fromarray(PIXELS).save(buffer, "JPEG", exif=exif, comment=b"SECRET", xmp=xmp, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 95, "subsampling": 0}])
def test_a_photograph_keeps_its_pixels_and_its_camera(tmp_path: Path, options: dict):
    path = tmp_path / "a.JPG"
    path.write_bytes(
        photo(**options) + photo()
    )  # a second picture behind the first, as phones write it
    cleaned = without_identity(path)
    assert SECRET not in cleaned
    first, second = Image.open(path), Image.open(io.BytesIO(cleaned))
    assert np.array_equal(np.asarray(first), np.asarray(second))
    exif = second.getexif()
    assert ({**exif.get_ifd(0x8825)}, exif[271], exif[274]) == ({}, "Maker", 6)
    assert {**exif.get_ifd(0x8769)} == {37386: 35.0, 41989: 50}
    (tmp_path / "b.jpg").write_bytes(cleaned)
    assert without_identity(tmp_path / "b.jpg") is None


def test_texts_of_a_png_go(tmp_path: Path):
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Author", "SECRET")
    texts.add_itxt("XML:com.adobe.xmp", "SECRET", zip=True)
    Image.fromarray(PIXELS).save(tmp_path / "a.png", pnginfo=texts)
    cleaned = without_identity(tmp_path / "a.png")
    assert cleaned is not None
    assert Image.open(io.BytesIO(cleaned)).info == {}
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(cleaned))), PIXELS)


@pytest.mark.parametrize("suffix", ["avif", "heic"])
def test_photos_of_phones_become_jpegs_that_are_upright_and_keep_the_camera(
    tmp_path: Path, suffix: str
):
    if suffix == "heic":
        pytest.importorskip("pillow_heif", reason="needs the extra heic").register_heif_opener()
    elif not features.check("avif"):
        pytest.skip("this Pillow reads no AVIF")
    path = tmp_path / f"IMG_1.{suffix}"
    with Image.open(io.BytesIO(photo(quality=95))) as shot:
        shot.resize((120, 80)).save(path, quality=95, exif=shot.info["exif"])
    assert SECRET in path.read_bytes()
    cleaned = without_identity(path)
    assert cleaned is not None
    assert SECRET not in cleaned
    copy = Image.open(io.BytesIO(cleaned))
    exif = copy.getexif()
    assert (copy.format, copy.size, exif.get(274, 1)) == ("JPEG", (80, 120), 1)
    assert (exif[271], {**exif.get_ifd(0x8825)}, exif.get_ifd(0x8769)[41989]) == ("Maker", {}, 50)
    seen = read_image(path).pixels.astype(int)
    assert np.abs(np.asarray(copy, int) - seen).mean() < 3


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xd8",
        b"\xff\xd8\xff\xe1\x00",
        b"GIF89a",
        b"\x89PNG\r\n\x1a\n\0\0\0\xff",
        photo()[:300],
    ],
)
def test_damaged_files_and_other_types_are_left_as_they_are(tmp_path: Path, content: bytes):
    (tmp_path / "a").write_bytes(content)
    assert without_identity(tmp_path / "a") is None
