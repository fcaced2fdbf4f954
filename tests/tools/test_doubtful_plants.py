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
