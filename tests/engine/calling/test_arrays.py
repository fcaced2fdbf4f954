"""Tools called with pictures and arrays in memory give the results of the same files."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agrotools.calling.result import encode_result
from agrotools.calling.workspace import artifacts_in
from agrotools_tools import calculate, estimate_canopy_height, measure_crop_weed_area, plot
from support.picture_files import row_field, write_raster
from support.tool_errors import tool_error


@pytest.fixture(autouse=True)
def current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "current"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def without_names(result) -> dict:
    """Return a result without texts, which name the file."""
    return {name: value for name, value in encode_result(result)[0].items() if name != "notes"}


def test_arrays_and_pictures_equal_the_file(tmp_path: Path, current_folder: Path):
    Image.fromarray(row_field()).save(tmp_path / "image.png")
    of_file = measure_crop_weed_area(tmp_path / "image.png", gsd_m=0.01)
    assert of_file.veg_pct == pytest.approx(30, abs=1)
    for image in (row_field(), Image.fromarray(row_field()), Image.open(tmp_path / "image.png")):
        assert encode_result(measure_crop_weed_area(image, gsd_m=0.01)) == encode_result(of_file)
    assert not list(current_folder.iterdir())
    assert of_file.paths == {}


def test_a_picture_is_turned_as_its_file_is(tmp_path: Path):
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(row_field()).save(tmp_path / "turned.jpg", exif=turned, quality=95)
    region = (0, 0, 120, 100)  # outside the picture as it is stored
    of_file = measure_crop_weed_area(tmp_path / "turned.jpg", region=region)
    with Image.open(tmp_path / "turned.jpg") as image:
        assert without_names(measure_crop_weed_area(image, region=region)) == without_names(of_file)


def test_bands_of_floats_equal_the_raster(tmp_path: Path):
    visible = row_field().astype(np.float32) / 255
    infrared = np.where(visible[..., 1] > 0.45, 0.6, 0.2).astype(np.float32)
    stack = np.dstack([visible, infrared])
    stack[:10] = np.nan
    raster = write_raster(tmp_path / "image.tif", np.moveaxis(stack, -1, 0))
    call = {"bands": {"R": 1, "G": 2, "B": 3, "NIR": 4}, "gsd_m": 0.02}
    of_array, of_file = (measure_crop_weed_area(each, **call) for each in (stack, raster))
    assert encode_result(of_array) == encode_result(of_file)
    assert (of_array.index, of_array.total_px) == ("ndvi", 110 * 160)
    whole = (stack[10:] * 255).astype(np.uint8)
    assert measure_crop_weed_area(whole, **call).veg_px == of_array.veg_px


@pytest.mark.parametrize("dtype", [bool, np.float16, np.int8, np.int64, np.uint64, np.float64])
def test_numbers_of_any_type_are_heights(dtype):
    heights = np.zeros((40, 50))
    heights[:10] = 6
    canopy = estimate_canopy_height(chm=heights.astype(dtype), gsd_m=2, veg_min_height_m=1)
    assert (canopy.cover_pct, canopy.canopy_area_m2) == (25, 2000)


def test_a_result_has_a_picture_and_a_notebook_shows_it(tmp_path: Path):
    result = measure_crop_weed_area(row_field())
    assert result.picture.width >= 160
    shown = result._repr_html_()
    assert "data:image/png;base64," in shown
    assert "veg_pct" in shown
    assert Image.open(io.BytesIO(result.content(result.mask))).size == (160, 120)
    assert result.paths == {}
    with pytest.raises(AttributeError):
        _ = result.model_copy().no_such_attribute
    number = calculate(expression="1 + 1")
    assert number.picture is None
    assert "<img" not in number._repr_html_()
    figure = plot(kind="line", series=[{"name": "yield", "x": [1, 2], "y": [3, 4]}])
    assert figure.picture.size[0] > 100


def test_files_are_written_where_asked(tmp_path: Path, current_folder: Path):
    result = measure_crop_weed_area(row_field(), out=tmp_path / "made")
    assert {path.name for path in (tmp_path / "made").iterdir()} == result.paths.keys()
    assert result.overlay.name in result.paths
    with Image.open(result.paths[result.overlay.name]) as written:
        assert written.size == result.picture.size
    with artifacts_in(tmp_path / "others"):
        other = measure_crop_weed_area(row_field())
    assert other.paths[other.mask.name] == tmp_path / "others" / other.mask.name
    assert other.paths[other.mask.name].is_file()
    assert not list(current_folder.iterdir())


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((3, 100, 120), np.float32),
        np.zeros((2, 3, 4, 5)),
        np.zeros((0, 10)),
        np.array([["a"]]),
        np.float64(3),
    ],
)
def test_other_arrays_are_refused(image):
    error = tool_error(measure_crop_weed_area, image)
    assert (error.kind, error.argument) == ("invalid_argument", "image")
    assert ("numpy.moveaxis" in (error.hint or "")) == (image.shape == (3, 100, 120))
