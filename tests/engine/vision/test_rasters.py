import math
from pathlib import Path

import numpy as np
import pytest
from rasterio.transform import from_origin

from agrotools.core import ToolError
from agrotools.vision.rasters import (
    chosen_roles,
    open_raster,
    role_of,
    roles_by_name,
    roles_by_wavelength,
)
from agrotools.vision.reading import picture_of, stretched_picture
from support.picture_files import write_raster
from support.tool_errors import tool_error

VALUES = np.arange(3 * 6 * 8, dtype=np.float32).reshape(3, 6, 8)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("red", "R"), ("R", "R"), ("Red Edge", "RE"), ("red_edge_717", "RE"), ("RedEdge", "RE"), ("RE", "RE"),
        ("NIR", "NIR"), ("nir", "NIR"), ("Near Infrared", "NIR"), ("B08 nir", "NIR"), ("B02 blue", "B"), ("b", "B"),
        ("Green", "G"), ("B4", None), ("B", "B"), ("SR_B4", None), ("B_04", None), ("B8A", None),
        ("R-650", "R"), ("Infrared", "NIR"), ("thermal infrared", None), ("Shortwave Infrared 1", None),
        ("band 1", None), ("depth", None), ("", None),
    ],
)  # fmt: skip
def test_roles_by_name(name: str, role: str | None) -> None:
    assert role_of(name) == role


def test_a_name_that_says_the_colour_alone_goes_before_others() -> None:
    assert roles_by_name(["Red-650", "Red", "NIR2", "nir"]).known == {"R": 2, "NIR": 4}
    several = roles_by_name(["Red-650", "Red-668", "green", "Green"])
    assert (several.known, several.unsure) == ({}, {"R": (1, 2), "G": (3, 4)})


def test_roles_by_wavelength() -> None:
    assert roles_by_wavelength([450.0, 550.0, 665.0, 717.0, 842.0]) == {
        "B": 1,
        "G": 2,
        "R": 3,
        "RE": 4,
        "NIR": 5,
    }
    assert roles_by_wavelength([None, 1600.0]) == {}


def test_a_band_dictionary_takes_numbers_and_names() -> None:
    names = ("B02 blue", None, "B04 red", "B08 nir")
    assert chosen_roles({"R": "B04 red", "nir": 4, "green": "2"}, names, file="a.tif") == {
        "R": 3,
        "NIR": 4,
        "G": 2,
    }


@pytest.mark.parametrize("wanted", [0, 5, -1, "swir", "9"])
def test_a_band_that_is_not_there(wanted: int | str) -> None:
    error = tool_error(chosen_roles, {"NIR": wanted}, ("red", "nir", None, None), file="a.tif")
    assert error.kind == "band_not_found"
    assert "1 red, 2 nir, 3 (no name)" in error.message
    assert (
        tool_error(chosen_roles, {"R": 1, "red": 2}, ("a", "b"), file="a.tif").kind
        == "invalid_argument"
    )


def test_two_roles_are_never_one_band() -> None:
    error = tool_error(chosen_roles, {"R": 1, "NIR": "1"}, (None, None), file="a.tif")
    assert error.kind == "invalid_argument"
    assert "same band 1" in error.message


def test_bands_come_in_the_order_asked_for_and_in_part(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", VALUES, ("red", "green", "nir"))
    with open_raster(path) as source:
        assert source.roles.known == {"R": 1, "G": 2, "NIR": 3}
        assert np.array_equal(source.read([3, 1]), VALUES[[2, 0]])
        assert np.array_equal(source.read([2], (1, 2, 4, 6)), VALUES[1:2, 2:6, 1:4])
        with pytest.raises(ToolError) as caught:
            source.read([1], (0, 0, 9, 6))
    assert caught.value.kind == "region_empty"


def test_scale_offset_and_every_kind_of_no_data(tmp_path: Path) -> None:
    import rasterio

    stored = np.array([[[100, 200], [0, 300]]], np.uint16)
    path = write_raster(tmp_path / "scaled.tif", stored, nodata=0)
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning), rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (0.01,), (1.0,)
    with open_raster(path) as source:
        assert np.allclose(source.read([1])[0], [[2.0, 3.0], [np.nan, 4.0]], equal_nan=True)
    odd = np.array([[[1, np.inf], [-9999, np.nan], [-1.7e38, 2]]], np.float32)
    with open_raster(write_raster(tmp_path / "odd.tif", odd)) as source:
        assert np.isfinite(source.read([1])[0]).tolist() == [
            [True, False],
            [False, False],
            [False, True],
        ]


def test_files_beside_a_raster_are_not_read_but_said(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", np.full((1, 4, 4), 5, np.uint8))
    aux = tmp_path / "a.tif.aux.xml"
    aux.write_text(
        '<PAMDataset><PAMRasterBand band="1"><Description>planted</Description></PAMRasterBand></PAMDataset>'
    )
    with open_raster(path) as source:
        assert source.sampling.flags == ()
    aux.write_text(
        '<PAMDataset><PAMRasterBand band="1"><NoDataValue>5</NoDataValue></PAMRasterBand></PAMDataset>'
    )
    (tmp_path / "a.tfw").write_text("0.05\n0\n0\n-0.05\n500000\n5000000\n")
    with open_raster(path) as source:
        assert source.band_names == (None,)
        assert (source.read([1]) == 5).all()
        assert source.sampling.gsd_m is None
        assert source.sampling.flags == ("sidecar_not_read",)
        assert [note.split()[0] for note in source.sampling.notes] == ["a.tfw", "a.tif.aux.xml"]


HOLE = np.add.outer(np.arange(90), np.arange(120)) < 70


def field_bands(count: int, dtype: str, under: float) -> np.ndarray:
    """Bands of a field whose corner is without data."""
    values = np.random.default_rng(3).integers(1, 200, (count, *HOLE.shape))
    return np.where(HOLE, under, values).astype(dtype)


@pytest.mark.parametrize("declared", [6, None, 4])
@pytest.mark.parametrize(
    ("dtype", "full", "under"), [("uint16", 65_535, 0), ("uint8", 255, 255), ("float32", 1.0, 0)]
)
def test_transparency_in_the_last_of_six_bands_hides(
    tmp_path: Path, dtype: str, full: float, under: float, declared: int | None
) -> None:
    import rasterio

    alpha = np.where(HOLE, 0, full).astype(dtype)[None]
    path = write_raster(tmp_path / "a.tif", np.concatenate([field_bands(5, dtype, under), alpha]))
    kinds = [rasterio.enums.ColorInterp.alpha if number == declared else rasterio.enums.ColorInterp.undefined
             for number in range(1, 7)]  # fmt: skip
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning), rasterio.open(path, "r+") as file:
        file.colorinterp = kinds
    with open_raster(path) as source:
        assert (source.alpha_band, source.border, source.data_bands) == (6, None, [1, 2, 3, 4, 5])
        assert source.names(["B", "G", "R", "RE", "NIR"]) == ("B", "G", "R", "RE", "NIR", "alpha")
        for bands in ([1], [5, 4]):
            assert (np.isnan(source.read(bands)) == HOLE).all()
        assert np.isnan(source.read([2], (30, 30, 50, 50))[0]).sum() == HOLE[30:50, 30:50].sum()


def test_infrared_that_is_declared_transparency_hides_nothing(tmp_path: Path) -> None:
    bands = np.random.default_rng(3).integers(0, 200, (4, 90, 120)).astype(np.uint8)
    with open_raster(write_raster(tmp_path / "rgbn.tif", bands)) as source:
        assert source.dataset.colorinterp[3].name == "alpha"
        assert (source.alpha_band, source.band_names) == (None, ("red", "green", "blue", None))
        assert np.array_equal(source.read([1, 4]), bands[[0, 3]])


@pytest.mark.parametrize(
    ("dtype", "under"), [("uint8", 0), ("uint8", 255), ("uint16", 65_535), ("float32", 0)]
)
def test_a_border_without_a_mark_is_no_data_and_flagged(
    tmp_path: Path, dtype: str, under: float
) -> None:
    bands = field_bands(3, dtype, under)
    placed = {"transform": from_origin(500_000, 5_000_000, 0.1, 0.1), "crs": "EPSG:32632"}
    with open_raster(write_raster(tmp_path / "a.tif", bands, **placed)) as source:
        assert source.sampling.flags == ("border_without_mark",)
        assert (np.isnan(source.read([3, 1])) == HOLE).all()
        assert np.isfinite(
            source.read([1])
        ).all()  # one band may be classes or heights, in which 0 is a value
        assert (picture_of(source).valid == ~HOLE).all()
    with open_raster(write_raster(tmp_path / "marked.tif", bands, nodata=under)) as source:
        assert source.sampling.flags == ()
    inside = np.roll(bands, (30, 40), (1, 2))[:, 10:, 10:]
    with open_raster(write_raster(tmp_path / "inside.tif", inside)) as source:
        assert source.border is None


def test_complex_numbers_are_no_measurements(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", np.zeros((1, 4, 4), np.complex64))
    with pytest.raises(ToolError) as caught, open_raster(path):
        pass
    assert caught.value.kind == "unreadable_file"


def test_envi_with_its_header(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "cube.img", VALUES, driver="ENVI")
    with open_raster(path) as source:
        assert np.array_equal(source.read([1, 2, 3]), VALUES)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ToolError) as caught, open_raster(path):
        pass
    assert caught.value.kind == "unreadable_file"
    (tmp_path / "cube.hdr").unlink()
    with pytest.raises(ToolError) as caught, open_raster(path):
        pass
    assert caught.value.kind == "unreadable_file"


@pytest.mark.parametrize(
    ("crs", "step", "origin", "gsd_m", "flag"),
    [
        ("EPSG:32633", 0.5, (500_000, 5_000_000), 0.5, None),
        ("EPSG:2263", 1.0, (980_000, 200_000), 1200 / 3937, None),
        ("EPSG:4326", 1e-5, (15.0, 60.0), None, "gsd_from_degrees"),
        ("EPSG:3857", 1.0, (0.0, 8_399_737.9), 0.5, "gsd_from_web_mercator"),
    ],
)
def test_ground_sampling_distance(
    tmp_path: Path,
    crs: str,
    step: float,
    origin: tuple[float, float],
    gsd_m: float | None,
    flag: str | None,
) -> None:
    path = write_raster(
        tmp_path / "a.tif", VALUES, crs=crs, transform=from_origin(*origin, step, step)
    )
    with open_raster(path) as source:
        sampling = source.sampling
    if gsd_m is None:
        gsd_m = math.sqrt(
            1e-5 * 55_800 * 1e-5 * 111_412
        )  # a degree at 60 degrees north, from tables
    assert sampling.gsd_m == pytest.approx(gsd_m, rel=1e-3)
    assert sampling.flags == ((flag,) if flag else ())


def test_pictures_of_rasters(tmp_path: Path) -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (3, 6, 8), np.uint8)
    with open_raster(write_raster(tmp_path / "rgb.tif", rgb)) as source:
        assert np.array_equal(picture_of(source).pixels, rgb.transpose(1, 2, 0))
    with open_raster(write_raster(tmp_path / "bgr.tif", rgb, ("blue", "green", "red"))) as source:
        assert np.array_equal(picture_of(source).pixels, rgb[::-1].transpose(1, 2, 0))
    empty = write_raster(tmp_path / "none.tif", VALUES * 0 - 1, nodata=-1)
    with open_raster(empty) as source, pytest.raises(ToolError) as caught:
        picture_of(source)
    assert caught.value.kind == "nothing_found"
    shown = stretched_picture({"NIR": VALUES[0], "R": VALUES[1], "G": VALUES[2]})
    assert shown.shape == (6, 8, 3)
    assert shown.min() == 0
    assert shown.max() == 255


def test_white_around_a_photo_as_tiff_counts_as_picture(tmp_path: Path) -> None:
    pixels = np.full((3, 40, 60), 255, np.uint8)
    pixels[:, 10:30, 20:40] = 90
    photo = write_raster(tmp_path / "photo.tif", pixels)
    with open_raster(photo) as raster:
        assert np.isfinite(raster.read([1])).all()
        assert raster.sampling.flags == ("border_without_mark",)
        assert "counts as picture" in raster.sampling.notes[-1]


def test_white_around_a_map_is_absence_of_data(tmp_path: Path) -> None:
    pixels = np.full((3, 40, 60), 255, np.uint8)
    pixels[:, 10:30, 20:40] = 90
    placed = {"transform": from_origin(500_000, 5_000_000, 0.1, 0.1), "crs": "EPSG:32632"}
    with open_raster(write_raster(tmp_path / "map.tif", pixels, **placed)) as raster:
        assert np.isnan(raster.read([1, 2])[0]).sum() == 40 * 60 - 20 * 20


def test_complex_integers_are_no_measurements(tmp_path: Path) -> None:
    values = np.ones((1, 8, 8), np.complex64)
    path = write_raster(tmp_path / "radar.tif", values, dtype="complex_int16")
    with pytest.raises(ToolError, match="complex numbers"), open_raster(path):
        pass


@pytest.mark.parametrize("layout", [{"tiled": True, "blockxsize": 16, "blockysize": 16}, {}])
def test_a_picture_of_reduced_size_has_the_pixels_that_gdal_takes(
    tmp_path: Path, layout: dict[str, object]
) -> None:
    values = np.random.default_rng(0).integers(1, 200, (3, 70, 90)).astype(np.uint8)
    values[:, 20:30, 40:60] = 0
    path = write_raster(tmp_path / "a.tif", values, nodata=0, **layout)
    box, shape = (5, 3, 88, 69), (22, 31)
    with open_raster(path) as source:
        reduced = source.read_resized([3, 1], box, shape)
        window = ((box[1], box[3]), (box[0], box[2]))
        by_gdal = source.dataset.read([3, 1], window=window, out_shape=(2, *shape))
    assert np.isnan(reduced).any()
    assert np.array_equal(np.nan_to_num(reduced), by_gdal)
