"""GeoTIFF and GeoJSON of tools on georeferenced rasters are read back: classes, coordinates, areas."""

import json
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.transform import Affine
from rasterio.warp import transform
from typer.testing import CliRunner

from agrotools_tools import (
    analyze_lesions,
    count_objects,
    estimate_canopy_height,
    measure_crop_weed_area,
    measure_weed_phenotype,
)
from agrotools_tools.cli.tools import app
from support.picture_files import row_field, write_raster

CRS = "EPSG:32632"
PLACE = Affine(0.5, 0, 500_000, 0, -0.5, 5_300_000)
"""UTM zone 32 N, pixels of 0.5 m."""


def raster(
    path: Path, bands: np.ndarray, place: Affine | None = PLACE, crs: str | None = CRS
) -> Path:
    return write_raster(path, bands, crs=crs, transform=place)


@pytest.fixture
def field(tmp_path: Path) -> Path:
    return raster(tmp_path / "field.tif", np.moveaxis(row_field(), -1, 0))


def features(path: Path) -> list[dict]:
    collection = json.loads(path.read_text())
    assert collection.keys() == {"type", "features"}  # RFC 7946 knows no crs
    assert collection["type"] == "FeatureCollection"
    return collection["features"]


def pixels(coordinates: list, place: Affine = PLACE, crs: str = CRS) -> np.ndarray:
    """Return longitudes and latitudes as pixels (n, 2) of the raster."""
    longitudes, latitudes = np.array(coordinates).T
    moved = transform("OGC:CRS84", crs, longitudes, latitudes)
    return np.array([~place * (x, y) for x, y in zip(moved[0], moved[1], strict=True)])


def test_classes_of_a_field(field: Path, tmp_path: Path):
    result = measure_crop_weed_area(field, out=tmp_path / "out")
    assert {
        "crop_weed_mask.png",
        "crop_weed_overlay.png",
        "crop_weed_mask.tif",
        "crop_weed_mask.geojson",
    } == {*result.paths}
    assert result.model_dump() == measure_crop_weed_area(field).model_dump(), "a model sees no maps"
    assert measure_crop_weed_area(field, out=tmp_path / "out").paths == result.paths
    with rasterio.open(result.paths["crop_weed_mask.tif"]) as mask:
        assert (mask.crs.to_string(), mask.transform, mask.nodata) == (CRS, PLACE, 255)
        assert "1 crop, 2 weeds" in mask.tags()["TIFFTAG_IMAGEDESCRIPTION"]
        classes = mask.read(1)
    assert np.count_nonzero(classes) == result.veg_px
    areas = features(result.paths["crop_weed_mask.geojson"])
    assert sum(each["properties"]["area_px"] for each in areas) == result.veg_px
    first = min(areas, key=lambda each: pixels(each["geometry"]["coordinates"][0])[:, 0].min())
    outline = pixels(first["geometry"]["coordinates"][0])
    assert outline.min(axis=0) == pytest.approx([10, 0], abs=1)
    assert outline.max(axis=0) == pytest.approx([22, 120], abs=1)
    longitude, latitude = np.array(first["geometry"]["coordinates"][0]).T
    x, y = longitude - longitude[0], latitude - latitude[0]
    assert np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) > 0  # outer rings go counter-clockwise


def test_canopies_of_a_region_in_degrees(tmp_path: Path):
    heights = np.zeros((1, 60, 80), np.float32)
    heights[0, 20:30, 40:60] = 9
    heights[0, 0, 0] = np.nan
    place = Affine(1e-5, 0, 10.5, 0, -1e-5, 47.5)
    chm = raster(tmp_path / "canopy_height.tif", heights, place, "EPSG:4326")
    given = chm.read_bytes()
    result = estimate_canopy_height(chm=chm, region=(30, 10, 70, 50), out=tmp_path)
    assert chm.read_bytes() == given
    with rasterio.open(result.paths["canopy_height_2.tif"]) as written:
        assert written.shape == (40, 40)
        assert written.transform * (0, 0) == pytest.approx(place * (30, 10))
        assert np.count_nonzero(written.read(1) == 9) == 200
    (canopy,) = features(result.paths["canopy_height.geojson"])
    assert canopy["properties"] == {"value": 1, "class": "canopy", "area_px": 200}
    outline = pixels(canopy["geometry"]["coordinates"][0], place, "EPSG:4326")
    assert outline.min(axis=0) == pytest.approx([40, 20], abs=0.01)
    assert outline.max(axis=0) == pytest.approx([60, 30], abs=0.01)


def test_a_large_raster_gives_a_reduced_map(tmp_path: Path):
    heights = np.zeros((1, 1500, 2100), np.float32)
    heights[0, 600:900, 1200:1500] = 9
    result = estimate_canopy_height(chm=raster(tmp_path / "chm.tif", heights), out=tmp_path / "out")
    with rasterio.open(result.paths["canopy_height.tif"]) as written:
        assert (written.shape, written.res) == ((500, 700), (1.5, 1.5))
    (canopy,) = features(result.paths["canopy_height.geojson"])
    outline = pixels(canopy["geometry"]["coordinates"][0])
    assert outline.min(axis=0) == pytest.approx([1200, 600], abs=0.1)


def test_trees_are_points(tmp_path: Path):
    heights = np.zeros((80, 100), np.float32)
    y, x = np.mgrid[:80, :100]
    tops = [(20, 25), (70, 30), (45, 60)]
    for left, top in tops:
        heights = np.maximum(heights, 10 - 0.4 * np.hypot(x - left, y - top)).astype(np.float32)
    heights += (
        np.random.default_rng(0).normal(0, 0.05, heights.shape).astype(np.float32)
    )  # no canopy is a smooth cone
    chm = raster(tmp_path / "chm.tif", heights[None])
    result = count_objects(
        image=chm, target="trees", chm=chm, region=(10, 10, 90, 75), out=tmp_path / "out"
    )
    trees = features(result.paths["objects.geojson"])
    assert len(trees) == result.count == 3
    places = pixels([each["geometry"]["coordinates"] for each in trees])
    for top in tops:
        assert np.abs(places - top).max(axis=1).min() <= 1
    assert trees[0]["properties"]["height_m"] == pytest.approx(10, abs=0.1)
    assert result.centres is not None
    picture = np.kron(np.moveaxis(row_field(), -1, 0), np.ones((1, 3, 3), np.uint8))
    unplaced = raster(tmp_path / "picture.tif", picture, None, None)
    elsewhere = count_objects(image=unplaced, target="trees", chm=chm, out=tmp_path / "other")
    assert (
        "objects.geojson" not in elsewhere.paths
    )  # its pixels are those of the picture, which is at no place


@pytest.mark.parametrize("crs", [CRS, "EPSG:32733"])
def test_plants_and_lesions_lie_where_the_raster_lies(tmp_path: Path, crs: str):
    pixels_of = np.full((300, 300, 3), 250, np.uint8)
    pixels_of[50:250, 50:250] = (60, 140, 50)
    pixels_of[100:130, 100:140] = (110, 70, 30)
    image = raster(tmp_path / "image.tif", np.moveaxis(pixels_of, -1, 0), crs=crs)
    for tool, stem, found, corners in (
        (measure_weed_phenotype, "plants_mask", None, (50, 50, 250, 250)),
        (analyze_lesions, "lesion_mask", "lesion", (100, 100, 140, 130)),
    ):
        paths = tool(image, out=tmp_path / stem).paths
        with rasterio.open(paths[f"{stem}.tif"]) as mask:
            assert (mask.crs.to_string(), mask.transform) == (crs, PLACE)
        areas = [
            each
            for each in features(paths[f"{stem}.geojson"])
            if found in (None, each["properties"]["class"])
        ]
        places = np.concatenate(
            [pixels(each["geometry"]["coordinates"][0], crs=crs) for each in areas]
        )
        assert [*places.min(axis=0), *places.max(axis=0)] == pytest.approx(corners, abs=4)


def test_without_a_place_there_are_pictures_alone(tmp_path: Path):
    path = raster(tmp_path / "field.tif", np.moveaxis(row_field(), -1, 0), None, None)
    result = measure_crop_weed_area(path, out=tmp_path / "out")
    assert {each.suffix for each in result.paths.values()} == {".png"}


def test_the_command_writes_and_names_them(field: Path, tmp_path: Path):
    call = ["run", "measure_crop_weed_area", "--image", str(field), "--out", str(tmp_path / "out")]
    ended = CliRunner().invoke(app, call)
    assert ended.exit_code == 0, ended.output
    assert f"wrote {tmp_path}/out/crop_weed_mask.geojson" in ended.output
    maps = json.loads(CliRunner().invoke(app, [*call, "--json"]).stdout)["maps"]
    assert {Path(each).suffix for each in maps} == {".tif", ".geojson"}
