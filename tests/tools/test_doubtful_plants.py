"""Photographs whose plants cannot be told from the ground: every tool that rests on the plant mask says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools_tools import (
    count_objects,
    describe_region,
    detect_change,
    measure_crop_weed_area,
    measure_weed_phenotype,
)
from support.picture_files import noisy, write_raster

SHADE, CAST = (24, 20, 14), (150, 100, 140)
SHAPE = (300, 400)
Picture = NDArray[np.uint8]

TOOLS: dict[str, Callable[[Picture], Any]] = {
    "count": lambda picture: count_objects(picture, "plant"),
    "cover": measure_crop_weed_area,
    "form": measure_weed_phenotype,
    "change": lambda picture: detect_change(picture, picture, "vegetation"),
}


@pytest.mark.parametrize("ground", [SHADE, CAST], ids=["shade", "colour cast"])
@pytest.mark.parametrize("tool", TOOLS)
def test_no_tool_finds_that_there_are_no_plants(tool: str, ground: tuple[int, int, int]) -> None:
    with pytest.raises(ToolError) as caught:
        TOOLS[tool](noisy(ground, SHAPE))
    assert caught.value.kind == "low_confidence"


def lit_soil(colour: tuple[int, int, int]) -> Picture:
    """Soil with clods, in light and shade."""
    height, width = SHAPE
    clods = np.random.default_rng(0).normal(-0.7, 0.6, (height // 4, width // 4, 1))
    light = np.exp(clods).clip(0, 1.1).repeat(4, axis=0).repeat(4, axis=1)
    return np.asarray(noisy(colour, SHAPE) * light)


@pytest.mark.parametrize("strength", [1.15, 1.2, 1.3])
@pytest.mark.parametrize("tool", ["count", "cover", "form"])
def test_soil_under_a_green_cast_is_not_taken_for_plants(tool: str, strength: float) -> None:
    cast = np.array([2 - strength, strength, 2 - strength])
    picture = (lit_soil((170, 145, 110)) * cast).clip(0, 255).astype(np.uint8)
    with pytest.raises(ToolError) as caught:
        TOOLS[tool](picture)
    assert caught.value.kind == "low_confidence"


@pytest.mark.parametrize("tool", ["count", "cover", "form"])
def test_green_plants_before_a_bluish_wall_are_measured(tool: str) -> None:
    picture = noisy((150, 155, 170), SHAPE)
    picture[100:200, 150:165] = (50, 130, 40)
    assert TOOLS[tool](picture)


def test_a_region_in_false_colours_says_so(tmp_path: Path) -> None:
    picture = noisy((90, 60, 90), SHAPE)
    picture[..., 2] = picture[..., 0]
    picture[100:200, 150:250] = (60, 140, 60)
    assert "false_colour_suspected" in describe_region(picture).flags
    assert "false_colour_suspected" in measure_crop_weed_area(picture).flags


@pytest.mark.parametrize("ground", [SHADE, CAST], ids=["shade", "colour cast"])
def test_a_region_is_described_without_its_plant_cover(ground: tuple[int, int, int]) -> None:
    region = describe_region(noisy(ground, SHAPE))
    assert region.vegetation_pct is None
    assert "vegetation_uncertain" in region.flags


def test_a_large_raster_is_refused_as_a_small_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bands = np.moveaxis(noisy(CAST, SHAPE), 2, 0)
    raster = write_raster(tmp_path / "field.tif", bands, names=("red", "green", "blue"))
    monkeypatch.setattr("agrotools_tools.crop_weed.large_rasters.WHOLE_PX", 10_000)
    with pytest.raises(ToolError, match="plants cannot be told from the ground") as caught:
        measure_crop_weed_area(raster)
    assert caught.value.kind == "low_confidence"
