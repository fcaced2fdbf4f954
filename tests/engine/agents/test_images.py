"""What a model sees of files of every kind."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agrotools.agents.images import LONGEST_SIDE_PX, file_parts
from agrotools.core import Intrinsics, SampleFile
from agrotools.models import ContentPart, TextPart
from support.picture_files import write_raster

GREEN = (30, 160, 40)


def file_of(path: Path, kind: str = "image", **facts: object) -> SampleFile:
    return SampleFile.model_validate({"name": path.name, "path": str(path), "kind": kind, **facts})


def seen(parts: tuple[ContentPart, ...]) -> tuple[str, Image.Image]:
    text, image = parts
    assert isinstance(text, TextPart)
    head, data = image.url.split(",", 1)
    picture = Image.open(io.BytesIO(base64.b64decode(data)))
    assert head == f"data:image/{str(picture.format).lower()};base64"
    return text.text, picture


def test_a_photo_is_shown_smaller_with_its_original_size(tmp_path: Path) -> None:
    Image.new("RGB", (4000, 3000), GREEN).save(tmp_path / "a.jpg")
    text, picture = seen(file_parts([file_of(tmp_path / "a.jpg", gsd_m=0.0085)]))
    assert text == "- a.jpg: image; 4000 x 3000 px; 0.0085 m per pixel; shown at 1568 x 1176 px"
    assert picture.size == (LONGEST_SIDE_PX, 1176)
    assert np.allclose(np.asarray(picture).mean(axis=(0, 1)), GREEN, atol=3)


def test_a_small_image_keeps_its_size_and_every_fact_stands_in_its_line(tmp_path: Path) -> None:
    Image.new("RGB", (50, 40), GREEN).save(tmp_path / "a.png")
    facts = {
        "crs": "EPSG:32632",
        "intrinsics": Intrinsics(fx_px=600, fy_px=601.5, cx_px=25, cy_px=20),
        "note": "near infrared shown as red",
    }
    text, picture = seen(file_parts([file_of(tmp_path / "a.png", **facts)]))
    assert picture.size == (50, 40)
    assert text == (
        "- a.png: image; 50 x 40 px; coordinate system EPSG:32632; focal length 600 x 601.5 px; "
        "principal point at 25, 20 px; note: near infrared shown as red"
    )


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"mode": "L"}, {"restart_marker_blocks": 2}], ids=str
)
def test_a_small_jpeg_is_shown_as_it_is_without_what_the_file_says_beside_it(
    tmp_path: Path, options
) -> None:
    exif = Image.Exif()
    exif[0x010E] = "SECRET description"
    noise = np.random.default_rng(7).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    more = {
        "exif": exif,
        "comment": b"SECRET comment",
        "icc_profile": b"SECRET profile",
        "xmp": b"SECRET xmp",
    }
    path = tmp_path / "a.jpg"
    Image.fromarray(noise).convert(options.pop("mode", "RGB")).save(
        path, "JPEG", quality=95, **options, **more
    )
    thumbnail = b"JFXX\0\x10SECRET thumbnail"
    whole = path.read_bytes()
    whole = whole[:2] + b"\xff\xe0" + (len(thumbnail) + 2).to_bytes(2) + thumbnail + whole[2:]
    for data in (whole, whole + b"SECRET trailer"):
        path.write_bytes(data)
        _, part = file_parts([file_of(path)])
        content = base64.b64decode(part.url.partition(",")[2])
        assert data.count(b"SECRET") >= 5
        assert b"SECRET" not in content
        with Image.open(io.BytesIO(content)) as shown, Image.open(path) as stored:
            assert np.array_equal(np.asarray(shown), np.asarray(stored)) is (data == whole)
    path.write_bytes(whole[: len(whole) // 2])
    assert len(file_parts([file_of(path)])) == 1


def test_transparent_grey_and_palette_images_are_shown_as_they_look(tmp_path: Path) -> None:
    clear = Image.new("RGBA", (16, 8), (255, 0, 0, 0))
    clear.paste((0, 0, 0, 255), (8, 0, 16, 8))
    clear.save(tmp_path / "clear.png")
    Image.new("L", (8, 8), 77).save(tmp_path / "grey.png")
    Image.new("RGB", (8, 8), GREEN).convert("P", palette=Image.Palette.ADAPTIVE).save(
        tmp_path / "palette.png"
    )
    Image.new("CMYK", (8, 8), (255, 0, 0, 0)).save(tmp_path / "print.jpg")
    for name, colour in (
        ("clear.png", (255, 255, 255)),
        ("grey.png", (77, 77, 77)),
        ("palette.png", GREEN),
    ):
        _, picture = seen(file_parts([file_of(tmp_path / name)]))
        assert np.allclose(np.asarray(picture.convert("RGB"))[3, 3], colour, atol=6)
    assert seen(file_parts([file_of(tmp_path / "print.jpg")]))[1].size == (8, 8)


def test_a_float_raster_is_stretched_and_its_bands_are_named(tmp_path: Path) -> None:
    ramp = np.tile(np.linspace(0, 0.5, 200, dtype=np.float32), (100, 1))
    bands = np.stack([np.full_like(ramp, 0.1), ramp, ramp[:, ::-1], ramp * 0, ramp])
    path = write_raster(tmp_path / "bands_1.tif", bands)
    names = ("B", "G", "R", "RE", "NIR")
    text, picture = seen(file_parts([file_of(path, "raster", bands=names, gsd_m=0.05)]))
    assert text == (
        "- bands_1.tif: raster; 200 x 100 px; bands B, G, R, RE, NIR; 0.05 m per pixel; "
        "shown as R, G, B, each band stretched from dark to bright"
    )
    pixels = np.asarray(picture).astype(int)
    assert pixels[50, 2, 0] > 240 > 15 > pixels[50, -3, 0]
    assert pixels[50, 2, 1] < 15 < 240 < pixels[50, -3, 1]


def test_unnamed_bands_missing_values_and_16_bits_are_shown(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(6, 40, 40)).astype(np.float32)
    values[:, :20] = np.nan
    text, picture = seen(file_parts([file_of(write_raster(tmp_path / "a.tif", values), "raster")]))
    assert "6 bands; shown as band 1, band 2, band 3, each band stretched" in text
    pixels = np.asarray(picture).astype(int)
    assert pixels[5, 20].min() > 235
    assert pixels[25:, :].std() > 30
    only_missing = np.full((1, 10, 10), np.nan, dtype=np.float32)
    assert seen(file_parts([file_of(write_raster(tmp_path / "b.tif", only_missing), "raster")]))[
        1
    ].size == (10, 10)
    depth = np.tile(np.linspace(800, 1600, 100).astype(np.uint16), (50, 1))
    Image.fromarray(depth).save(tmp_path / "depth_1.png")
    text, picture = seen(file_parts([file_of(tmp_path / "depth_1.png", "depth", depth_unit_mm=1)]))
    assert "100 x 50 px; one unit of depth is 1 mm; shown stretched" in text
    assert np.ptp(np.asarray(picture).astype(int)) > 240


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_classes_of_a_mask_are_told_apart_by_colour(tmp_path: Path, suffix: str) -> None:
    mask = np.zeros((3000, 60), dtype=np.uint8)
    mask[1000:2000], mask[2000:] = 1, 2
    path = tmp_path / f"labels_1.{suffix}"
    if suffix == "png":
        Image.fromarray(mask).save(path)
    else:
        write_raster(path, mask[None])
    text, picture = seen(
        file_parts([file_of(path, "mask", classes={"0": "soil", "1": "crop", "2": "weed"})])
    )
    assert "60 x 3000 px; classes: 0 = soil (black), 1 = crop (green), 2 = weed (red)" in text
    pixels = np.asarray(picture.convert("RGB"))
    assert [tuple(pixels[row, 10]) for row in (10, 800, 1500)] == [
        (0, 0, 0),
        (0, 170, 0),
        (220, 30, 30),
    ]
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) == 3
    assert "values: 0 (black), 1 (green), 2 (red)" in seen(file_parts([file_of(path, "mask")]))[0]


def test_files_without_a_picture_are_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    (tmp_path / "v.mp4").write_bytes(b"....ftyp")
    for name, kind in (("t.csv", "table"), ("v.mp4", "video")):
        (part,) = file_parts([file_of(tmp_path / name, kind)])
        assert part.text == f"- {name}: {kind}"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jpg", b""),
        ("a.png", b"\x89PNG\r\n\x1a\n cut"),
        ("a.tif", b"<VRTDataset><SourceFilename>/etc/hostname</SourceFilename></VRTDataset>"),
        ("a.npy", b"\x93NUMPY"),
    ],
)
def test_an_unreadable_file_is_a_line_that_says_so(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    (part,) = file_parts([file_of(tmp_path / name, "raster" if name.endswith("tif") else "image")])
    assert f"cannot be shown: {name} is " in part.text
    assert str(tmp_path) not in part.text


def test_a_turned_photo_is_shown_upright_with_the_size_that_coordinates_refer_to(
    tmp_path: Path,
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (60, 40), GREEN).save(tmp_path / "a.jpg", exif=exif)
    text, picture = seen(file_parts([file_of(tmp_path / "a.jpg", width_px=60, height_px=40)]))
    assert picture.size == (40, 60)
    assert "40 x 60 px" in text
    assert "upright picture" in text


def test_a_raster_too_large_to_read_whole_is_shown_reduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agrotools.vision import rasters

    monkeypatch.setattr(rasters, "MAX_PIXELS", 1000)
    path = write_raster(
        tmp_path / "a.tif", np.random.default_rng(0).random((5, 300, 2000)).astype(np.float32)
    )
    assert seen(file_parts([file_of(path, "raster")]))[1].size == (1568, 235)


def test_heights_with_the_largest_negative_number_for_no_data_are_shown_without_a_warning(
    tmp_path: Path,
) -> None:
    heights = np.linspace(0, 20, 1200).reshape(1, 30, 40)
    heights[0, :5] = -1.7e308
    path = write_raster(tmp_path / "heights.tif", heights, nodata=-1.7e308)
    assert seen(file_parts([file_of(path, "raster")]))[1].size == (40, 30)
