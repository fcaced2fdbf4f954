import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agrotools.core import ToolError
from agrotools.vision.formats import _lacking_decoder, clipped_region, file_format
from agrotools.vision.reading import read_image, read_labels
from support.picture_files import discs, field, vrt_as_tif, write_raster

COLOURS = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)


def fault(path: Path, read=read_image) -> ToolError:
    with pytest.raises(ToolError) as caught:
        read(path)
    assert str(path.parent) not in str(caught.value), "no path of this machine in a message"
    return caught.value


@pytest.mark.parametrize("suffix", ["png", "webp", "tiff"])
def test_lossless_pictures_come_back_as_they_were(tmp_path: Path, suffix: str) -> None:
    """The content decides on the format, not the name."""
    path = tmp_path / "a.jpg"
    Image.fromarray(COLOURS).save(path, suffix, lossless=True)
    assert file_format(path) == suffix
    image = read_image(path)
    assert np.array_equal(image.pixels, COLOURS)
    assert image.pixels.dtype == np.uint8
    assert image.valid is None
    assert (image.width, image.height) == (60, 40)


def test_a_large_photograph_is_decoded_no_larger_than_asked_and_its_size_in_the_file_is_told(
    tmp_path: Path,
) -> None:
    """A quarter turn by EXIF swaps width and height; a small photograph and a PNG stay as they are."""
    columns = np.linspace(0, 255, 403, dtype=np.uint8)
    picture = Image.fromarray(np.repeat(np.repeat(columns[None, :, None], 301, 0), 3, 2))
    turned = Image.Exif()
    turned[0x0112] = 6
    picture.save(tmp_path / "plain.jpg")
    picture.save(tmp_path / "turned.jpg", exif=turned)
    picture.save(tmp_path / "a.png")
    plain = read_image(tmp_path / "plain.jpg", least_px=70)
    assert (plain.pixels.shape, plain.full_size) == ((76, 101, 3), (403, 301))
    assert np.abs(plain.pixels[:, :, 0].astype(int) - columns[2::4]).max() <= 4
    quarter = read_image(tmp_path / "turned.jpg", least_px=70)
    assert (quarter.pixels.shape, quarter.full_size) == ((101, 76, 3), (301, 403))
    for name, least_px in (("plain.jpg", 200), ("plain.jpg", None), ("a.png", 70)):
        whole = read_image(tmp_path / name, least_px=least_px)
        assert (whole.pixels.shape, whole.full_size) == ((301, 403, 3), None)


def test_a_photo_of_a_phone_without_its_decoder_names_the_extra(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.setattr("PIL.features.check", lambda _: False)
    for brands, hint in (
        (b"heic\0\0\0\0mif1heic", "[heic]"),
        (b"mif1\0\0\0\0mif1avif", "pillow>=11.3"),
    ):
        _lacking_decoder.cache_clear()
        (tmp_path / "IMG_1.jpg").write_bytes(b"\0\0\0\x18ftyp" + brands + b"\0" * 100)
        error = fault(tmp_path / "IMG_1.jpg")
        assert error.hint is not None
        assert hint in error.hint
    (tmp_path / "IMG_1.jpg").write_bytes(b"\xff\xff\xff\xffftypisom" + b"\0" * 100)
    assert "no known image format" in fault(tmp_path / "IMG_1.jpg").message
    _lacking_decoder.cache_clear()


def test_missing_empty_text_and_folder(tmp_path: Path) -> None:
    assert fault(tmp_path / "none.jpg").kind == "file_not_found"
    (tmp_path / "empty.jpg").touch()
    assert "empty" in fault(tmp_path / "empty.jpg").message
    (tmp_path / "text.jpg").write_text("Dear editor,\nplease find attached")
    assert "text file" in fault(tmp_path / "text.jpg").message
    (tmp_path / "noise.png").write_bytes(bytes(range(128, 256)) * 4)
    assert fault(tmp_path / "noise.png").kind == "unreadable_file"
    assert fault(tmp_path / "text.jpg").hint
    with pytest.raises(ToolError) as caught:
        read_image(tmp_path)
    assert caught.value.kind == "unreadable_file"


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tif"])
@pytest.mark.parametrize("kept", [0.03, 0.5, 0.9])
def test_truncated_pictures_are_refused(tmp_path: Path, suffix: str, kept: float) -> None:
    path = tmp_path / f"cut.{suffix}"
    Image.fromarray(COLOURS).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    error = fault(path)
    assert error.kind == "unreadable_file"
    assert error.argument == "image"


def test_a_virtual_raster_called_tif_is_never_opened(tmp_path: Path) -> None:
    secret = write_raster(tmp_path / "secret.tif", np.full((1, 40, 60), 7, np.uint8))
    inside = tmp_path / "workspace"
    inside.mkdir()
    for read in (read_image, read_labels):
        error = fault(vrt_as_tif(inside / "field.tif", secret), read)
        assert error.kind == "unreadable_file"
        assert "virtual raster" in error.message


@pytest.mark.parametrize(
    "path", ["/vsicurl/http://127.0.0.1:9/a.tif", "/vsizip/a.zip/a.tif", "/vsistdin/"]
)
def test_names_that_gdal_would_take_for_places_are_missing_files(path: str) -> None:
    with pytest.raises(ToolError) as caught:
        read_image(Path(path))
    assert caught.value.kind == "file_not_found"


def test_exif_orientation_is_applied_and_cmyk_keeps_its_colours(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(COLOURS).save(tmp_path / "turned.png", exif=exif)
    image = read_image(tmp_path / "turned.png")
    assert np.array_equal(image.pixels, np.rot90(COLOURS, -1))
    assert any("upright" in note for note in image.notes)
    picture = field(discs((80, 100), [(50, 40)], 20))
    Image.fromarray(picture).convert("CMYK").save(tmp_path / "cmyk.jpg", quality=95)
    image = read_image(tmp_path / "cmyk.jpg")
    assert np.abs(image.pixels.astype(int) - picture).mean() < 8
    assert image.flags == ("colour_converted",)


def test_sixteen_bit_pictures_are_scaled_by_one_factor(tmp_path: Path) -> None:
    values = (
        COLOURS.astype(np.uint16) * 16
    )  # twelve bits in sixteen: the high bytes alone would be nearly black
    write_raster(tmp_path / "deep.png", values.transpose(2, 0, 1), driver="PNG")
    image = read_image(tmp_path / "deep.png")
    assert image.pixels.dtype == np.uint8
    assert np.abs(image.pixels.astype(int) - COLOURS).max() <= 2
    assert any("uint16" in note for note in image.notes)


def test_transparency_is_laid_on_white_and_known_as_no_data(tmp_path: Path) -> None:
    alpha = np.zeros((40, 60), np.uint8)
    alpha[:, 20:40], alpha[:, 40:] = 128, 255
    Image.fromarray(np.dstack([np.zeros_like(COLOURS), alpha])).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")
    assert image.pixels[0, 0].tolist() == [255, 255, 255]
    assert image.pixels[0, 30].tolist() == [127, 127, 127]
    assert image.pixels[0, 50].tolist() == [0, 0, 0]
    assert image.valid is not None
    assert image.valid[:, 20:].all()
    assert not image.valid[:, :20].any()


def test_a_palette_is_colour_in_an_image_and_index_in_a_mask(tmp_path: Path) -> None:
    classes = (COLOURS[..., 0] % 3).astype(np.uint8)
    mask = Image.fromarray(classes).convert("P")
    mask.putpalette([10, 20, 30, 200, 0, 0, 0, 200, 0] + [0] * 759)
    mask.save(tmp_path / "mask.png")
    assert np.array_equal(read_labels(tmp_path / "mask.png").classes, classes)
    assert read_image(tmp_path / "mask.png").pixels[classes == 1][0].tolist() == [200, 0, 0]


def test_masks_of_every_form_give_the_same_classes(tmp_path: Path) -> None:
    classes = np.arange(600, dtype=np.uint16).reshape(20, 30) % 300
    Image.fromarray(classes).save(tmp_path / "deep.png")
    write_raster(tmp_path / "deep.tif", classes[None])
    assert np.array_equal(read_labels(tmp_path / "deep.png").classes, classes)
    assert np.array_equal(read_labels(tmp_path / "deep.tif").classes, classes)
    grey = (classes % 3).astype(np.uint8)
    Image.fromarray(np.dstack([grey] * 3)).save(tmp_path / "rgb.png")
    assert np.array_equal(read_labels(tmp_path / "rgb.png").classes, grey)


def test_masks_that_hold_no_class_numbers_are_refused(tmp_path: Path) -> None:
    Image.fromarray(COLOURS).save(tmp_path / "colours.png")
    assert "colours" in fault(tmp_path / "colours.png", read_labels).message
    Image.fromarray(COLOURS[..., 0]).save(tmp_path / "lossy.jpg")
    assert "JPEG" in fault(tmp_path / "lossy.jpg", read_labels).message
    write_raster(tmp_path / "fractions.tif", np.full((1, 5, 5), 0.5, np.float32))
    assert "fractional" in fault(tmp_path / "fractions.tif", read_labels).message
    write_raster(tmp_path / "many.tif", np.zeros((3, 5, 5), np.uint8))
    assert "3 bands" in fault(tmp_path / "many.tif", read_labels).message
    write_raster(tmp_path / "none.tif", np.full((1, 5, 5), 255, np.uint8), nodata=255)
    assert fault(tmp_path / "none.tif", read_labels).kind == "nothing_found"


def test_no_data_in_a_mask_is_not_a_class(tmp_path: Path) -> None:
    classes = np.array([[1, 2], [255, 0]], np.uint8)
    labels = read_labels(write_raster(tmp_path / "a.tif", classes[None], nodata=255))
    assert labels.valid is not None
    assert labels.valid.tolist() == [[True, True], [False, True]]


def test_regions_are_clipped_or_refused() -> None:
    assert clipped_region(None, 60, 40, "a") == ((0, 0, 60, 40), ())
    assert clipped_region((10, 10, 20, 20), 60, 40, "a") == ((10, 10, 20, 20), ())
    assert clipped_region((-5, 10, 100, 20), 60, 40, "a") == ((0, 10, 60, 20), ("region_clipped",))
    with pytest.raises(ToolError) as caught:
        clipped_region((60, 0, 80, 40), 60, 40, "a")
    assert caught.value.kind == "region_empty"
