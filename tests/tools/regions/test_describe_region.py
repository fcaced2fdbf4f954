"""Numbers of regions on pictures of known content, label rasters, rasters with bands, and on bad input."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rasterio.transform import from_origin

from agrotools.calling import get_tool
from agrotools.calling.workspace import CallContext, artifacts_in, call_context, write_artifact
from agrotools.core import SampleFile
from agrotools_tools.regions.result import RegionDescription
from support.picture_files import CROP, SOIL, discs, field, noisy, write_raster
from support.tool_errors import tool_error

SHAPE = (200, 300)
PLANTS = discs(SHAPE, [(60, 60), (200, 100), (120, 150)], 24)


def described(image: Path, **arguments: Any) -> RegionDescription:
    with artifacts_in(image.parent / "made"):
        return get_tool("describe_region")(image, **arguments)


fault = partial(tool_error, described)


def saved(
    folder: Path, pixels: np.ndarray, name: str = "photo.png", mode: str | None = None
) -> Path:
    picture = Image.fromarray(pixels)
    if mode == "P":
        picture.putpalette([channel for value in range(256) for channel in (value, 255 - value, 0)])
    picture.save(folder / name)
    return folder / name


def test_a_photograph_in_numbers(tmp_path: Path) -> None:
    image = saved(tmp_path, field(PLANTS))
    result = described(image, gsd_m=0.01)
    share = 100 * PLANTS.mean()
    assert (result.area_px, result.image_pct) == (SHAPE[0] * SHAPE[1], 100)
    assert (result.area_m2, result.vegetation_pct) == (
        pytest.approx(6.0),
        pytest.approx(share, rel=0.02),
    )
    assert result.mean_rgb == pytest.approx(field(PLANTS).reshape(-1, 3).mean(axis=0), abs=1e-6)
    expected = [(100 - share) * s / 100 + share * c / 100 for s, c in zip(SOIL, CROP, strict=True)]
    assert result.mean_rgb == pytest.approx(expected, abs=0.8)
    assert sum(colour.pct for colour in result.dominant_colours) == pytest.approx(100)
    assert sum(c.pct for c in result.dominant_colours if "green" in c.name) == pytest.approx(
        share, abs=1.5
    )
    assert result.health.green_pct == pytest.approx(share, abs=0.5)
    assert (result.ndvi, result.shape, result.class_pcts, result.bands) == (None, None, None, None)
    shares = np.array(CROP) / sum(CROP)
    crop = described(saved(tmp_path, noisy(CROP, (90, 90)), "crop.png"))
    assert crop.exg == pytest.approx(2 * shares[1] - shares[0] - shares[2], abs=0.01)
    assert "60000 pixels" in result.summary
    assert f"{result.vegetation_pct:.3g} %" in result.summary
    assert result.summary == described(image, gsd_m=0.01).summary


def test_a_region_and_a_mask_count_what_lies_in_them(tmp_path: Path) -> None:
    image = saved(tmp_path, field(PLANTS))
    result = described(image, region=[36, 36, 84, 84])
    assert (result.area_px, result.image_pct) == (
        48 * 48,
        pytest.approx(100 * 48 * 48 / PLANTS.size),
    )
    assert result.vegetation_pct == pytest.approx(100 * PLANTS[36:84, 36:84].mean(), rel=0.02)
    assert result.shape is None
    mask = saved(tmp_path, PLANTS.astype(np.uint8) * 7, "mask.png")
    masked = described(image, mask=mask)
    assert masked.area_px == PLANTS.sum()
    assert (masked.vegetation_pct, masked.mean_rgb) == (
        pytest.approx(100, abs=1),
        pytest.approx(CROP, abs=0.8),
    )
    assert (masked.shape.pieces, masked.shape.equivalent_diameter_px) == (
        3,
        pytest.approx(48, rel=0.03),
    )
    assert masked.shape.solidity > 0.95
    assert masked.shape.circularity > 0.95
    assert masked.shape.eccentricity < 0.1
    both = described(image, mask=mask, region=[0, 0, 100, 100])
    assert both.area_px == PLANTS[:100, :100].sum()
    assert both.shape.pieces == 1
    assert "region_clipped" in described(image, region=[250, 150, 400, 400]).flags


def test_bad_regions_and_masks(tmp_path: Path) -> None:
    image = saved(tmp_path, field(PLANTS))
    assert fault(image, region=[300, 0, 400, 100]).kind == "region_empty"
    empty = saved(tmp_path, np.zeros(SHAPE, np.uint8), "empty.png")
    assert fault(image, mask=empty).kind == "region_empty"
    other = saved(tmp_path, np.ones((100, 300), np.uint8), "other.png")
    error = fault(image, mask=other)
    assert (error.kind, error.argument) == ("shape_mismatch", "mask")
    assert (
        fault(
            image, mask=saved(tmp_path, PLANTS.astype(np.uint8), "m.png"), region=[0, 0, 5, 5]
        ).kind
        == "region_empty"
    )
    jpeg = tmp_path / "mask.jpg"
    Image.fromarray(np.ones(SHAPE, np.uint8)).save(jpeg)
    assert fault(image, mask=jpeg).kind == "unreadable_file"
    clear = np.dstack([field(PLANTS), np.zeros(SHAPE, np.uint8)])
    assert fault(saved(tmp_path, clear, "clear.png")).kind == "nothing_found"
    half = np.dstack([field(PLANTS), np.full(SHAPE, 255, np.uint8)])
    half[:, :100, 3] = 0
    assert described(saved(tmp_path, half, "half.png")).area_px == 200 * 200
    assert fault(saved(tmp_path, half, "half.png"), region=[0, 0, 50, 50]).kind == "region_empty"


@pytest.mark.parametrize("value", [0, 100, 255])
@pytest.mark.parametrize("size", [(1, 1), (1, 30), (15, 40)])
def test_constant_and_tiny_pictures(tmp_path: Path, value: int, size: tuple[int, int]) -> None:
    result = described(saved(tmp_path, np.full((*size, 3), value, np.uint8)))
    assert (result.mean_rgb, result.vegetation_pct) == ((value, value, value), None)
    assert "no_colour" in result.flags
    assert (result.dominant_colours, result.health) == (None, None)
    assert [(band.name, band.mean) for band in result.bands] == [("grey", value)]
    assert f"Grey has a mean of {value}" in result.summary
    assert result.texture is None or result.texture.entropy == pytest.approx(0, abs=1e-9)
    green = described(saved(tmp_path, np.full((*size, 3), (40, 160, 40), np.uint8)))
    assert green.vegetation_pct == 100
    assert "no_soil_visible" in green.flags


def test_a_label_raster_is_counted_exactly(tmp_path: Path) -> None:
    classes = np.random.default_rng(0).integers(0, 4, (70, 90)).astype(np.uint8)
    image = saved(tmp_path, classes, "labels.png", mode="P")
    truth = {number: 100 * float((classes == number).mean()) for number in range(4)}
    guessed = described(image)
    assert guessed.class_pcts == pytest.approx(
        {f"class {number}": pct for number, pct in truth.items()}, rel=1e-12
    )
    assert {"taken_as_labels", "unnamed_classes"} <= set(guessed.flags)
    assert guessed.mean_rgb is None
    named = described(image, label_map={"crop": [1, 2], "soil": [0]})
    assert named.class_pcts == pytest.approx(
        {"crop": truth[1] + truth[2], "soil": truth[0], "class 3": truth[3]}
    )
    assert "unnamed_classes" in named.flags
    assert "crop" in named.summary
    info = SampleFile(
        name="labels.png", path="x", kind="mask", classes={str(n): f"kind {n}" for n in range(4)}
    )
    made = tmp_path / "made"
    with call_context(
        CallContext(keep=lambda a, c: write_artifact(made, a, c), infos={image: info})
    ):
        known = get_tool("describe_region")(image, region=[10, 10, 60, 50])
    part = classes[10:50, 10:60]
    assert known.class_px == {
        f"kind {n}": int((part == n).sum())
        for n in sorted(range(4), key=lambda n: -(part == n).sum())
    }
    assert "unnamed_classes" not in known.flags
    assert fault(image, label_map={"crop": [1], "weed": [1]}).kind == "invalid_argument"


def test_a_picture_of_many_colours_in_a_palette_is_a_photograph(tmp_path: Path) -> None:
    Image.fromarray(field(PLANTS)).quantize(200).save(tmp_path / "few.png")
    assert described(tmp_path / "few.png").class_pcts is None


def test_questions_are_not_answered_and_only_what_was_asked_for_is_told(tmp_path: Path) -> None:
    image = saved(tmp_path, field(PLANTS))
    asked = described(image, question="Which disease is it?")
    assert "question_not_answered" in asked.flags
    assert asked.summary == described(image).summary
    assert "question_not_answered" not in described(image).flags
    result = described(saved(tmp_path, field(PLANTS)), attributes=["texture"])
    assert result.texture is not None
    assert (result.mean_rgb, result.vegetation_pct, result.health) == (None, None, None)


def test_bands_of_a_raster(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    levels = {"G": (900, 1100), "R": (500, 1400), "NIR": (4500, 2000)}
    values = [np.where(PLANTS, p, s) + draw.normal(0, 40, SHAPE) for p, s in levels.values()]
    bands = np.stack(values).astype(np.uint16)
    place = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5)}
    image = write_raster(tmp_path / "bands.tif", bands, tuple(levels), **place)
    result = described(image)
    ndvi = (bands[2].astype(float) - bands[1]) / (bands[2].astype(float) + bands[1])
    assert result.ndvi == pytest.approx(ndvi.mean(), abs=1e-4)
    assert result.vegetation_pct == pytest.approx(100 * PLANTS.mean(), rel=0.03)
    assert result.mean_rgb is None
    assert "no_natural_colours" in result.flags
    assert result.area_m2 == pytest.approx(SHAPE[0] * SHAPE[1] * 0.25)
    assert [band.name for band in result.bands] == list(levels)
    assert result.bands[2].mean == pytest.approx(bands[2].mean(), rel=1e-5)
    unnamed = write_raster(tmp_path / "unnamed.tif", bands)
    assert described(unnamed).ndvi is None
    assert "bands_unknown" in described(unnamed).flags
    assert described(unnamed, bands={"R": 2, "NIR": 3}).ndvi == pytest.approx(result.ndvi)
    assert fault(unnamed, bands={"R": 9, "NIR": 3}).kind == "band_not_found"


def test_a_raster_without_data(tmp_path: Path) -> None:
    nothing = np.full((1, 40, 50), np.nan, np.float32)
    assert fault(write_raster(tmp_path / "nan.tif", nothing)).kind == "nothing_found"
    half = nothing.copy()
    half[:, :20] = 3.5
    image = write_raster(tmp_path / "half.tif", half)
    result = described(image)
    assert result.area_px == 20 * 50
    assert (result.bands[0].mean, result.bands[0].sd) == (3.5, 0)
    assert fault(image, region=[0, 25, 50, 40]).kind == "region_empty"


def test_cover_that_cannot_be_told_is_null(tmp_path: Path) -> None:
    result = described(saved(tmp_path, noisy((24, 20, 14), (90, 120))))
    assert result.vegetation_pct is None
    assert "vegetation_uncertain" in result.flags
    assert "no_vegetation" not in result.flags


def test_a_mask_at_another_place_is_refused(tmp_path: Path) -> None:
    pixels = np.moveaxis(noisy(CROP, (40, 60)), 2, 0)
    marked = np.ones((1, 40, 60), np.uint8)
    here, there = (from_origin(x, 5_000_000, 0.1, 0.1) for x in (500_000, 500_003))
    image = write_raster(tmp_path / "a.tif", pixels, transform=here, crs="EPSG:32632")
    own = write_raster(tmp_path / "own.tif", marked, transform=here, crs="EPSG:32632")
    other = write_raster(tmp_path / "other.tif", marked, transform=there, crs="EPSG:32632")
    zone = write_raster(tmp_path / "zone.tif", marked, transform=here, crs="EPSG:32633")
    assert described(image, mask=own).area_px == 40 * 60
    assert fault(image, mask=other).kind == "shape_mismatch"
    assert fault(image, mask=zone).kind == "crs_mismatch"
