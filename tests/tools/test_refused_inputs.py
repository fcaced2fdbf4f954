"""What every tool that measures in pictures refuses: blank pictures, other files, arguments out of bounds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.calling import get_tool
from agrotools.core import ToolError
from agrotools.vision.reading import read_image, refuse_blank
from agrotools_build.sources.drawn import save_blank, save_heights, save_jpeg, save_png
from agrotools_tools import AGROTOOLS
from support.picture_files import png_header_only
from support.tool_errors import tool_error

ROWS, COLUMNS = 240, 320
FILES = {"image": "photo.jpg", "raster": "heights.tif", "depth": "depth.png"}
"""A good file of each kind."""
OPENING_FILES = tuple(
    name for name in AGROTOOLS if any(kind in get_tool(name).example.values() for kind in FILES)
)
"""The tools whose example of a call names a file."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blank")
    rng = np.random.default_rng(1)
    save_jpeg(folder / "photo.jpg", rng.integers(0, 255, (ROWS, COLUMNS, 3), np.uint8))
    save_png(folder / "depth.png", np.full((ROWS, COLUMNS), 900, np.uint16))
    save_heights(folder / "heights.tif", rng.uniform(0, 9, (ROWS, COLUMNS)).astype(np.float32), 0.5)
    for seed in range(8):
        save_blank(folder / f"blank_{seed}.jpg", folder / "photo.jpg", seed)
    save_blank(folder / "no_depth.png", folder / "depth.png", 1)
    save_blank(folder / "no_heights.tif", folder / "heights.tif", 1)
    return folder


BAD_ARGUMENTS: Mapping[str, list[Mapping[str, JsonValue]]] = {
    "measure_crop_weed_area": [
        {"gsd_m": 0}, {"gsd_m": -1}, {"index": "evi"}, {"separation": "magic"}, {"region": [5, 5, 5, 9]}, {"rows": 3},
    ],
    "estimate_canopy_height": [
        {"height_scale": -1.0}, {"height_scale": 0.0}, {"gsd_m": -0.5}, {"veg_min_height_m": -2.0},
        {"height_bins_m": [5, 2]}, {"height_bins_m": [2, 2]}, {"height_bins_m": [-1, 2]},
        {"height_bins_m": [float("nan")]}, {"gsd_m": float("inf")},
    ],
    "count_objects": [
        {"gsd_m": -1.0}, {"expected_size_px": 0.0}, {"score_min": 2.0}, {"target": ""}, {"min_height_m": -3.0},
        {"mode": "magic"}, {"window_a_m": 0.0}, {"region": [5, 5, 5, 9]},
    ],
    "measure_weed_phenotype": [
        {"scale_cm_px": -0.1}, {"scale_cm_px": 0}, {"scale_cm_px": float("nan")}, {"scale_marker": {"type": "coin"}},
        {"scale_marker": {"type": "circle", "size_cm": -1}}, {"scale_marker": "circle"}, {"view": "below"},
        {"ground_y_px": -1}, {"ground_y_px": 10_000}, {"ground_y_px": 50, "view": "top"}, {"sort": 1},
    ],
    "measure_fruit_size": [{"fx_px": -500}, {"depth_unit_mm": -1}, {"distance_mm": 0}],
    "analyze_lesions": [{"scale_mm_px": -1.0}, {"sensitivity": 2.0}, {"min_lesion_px": 0}, {"healthy_reference": [1]}],
    "detect_change": [{"gsd_m": -1}, {"threshold": -1}, {"unknown": 1}],
    "lookup_agronomy": [
        {"query": "x"}, {"query": "x" * 301}, {"query": "!!! ???"}, {"topic": "colour"}, {"kind": "animal"},
        {"top_k": 0}, {"top_k": 6}, {"colour": "red"}, {"query": 3},
    ],
}  # fmt: skip


def refused(tool: str, **arguments: JsonValue | Path) -> ToolError:
    return tool_error(get_tool(tool), **arguments)


def call_of(tool: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return a call after the example of a tool on good files, and the last argument that holds a picture or raster."""
    call: dict[str, Any] = {}
    last = ""
    for name, value in get_tool(tool).example.items():
        is_file = isinstance(value, str) and value in FILES
        call[name] = folder / FILES[value] if is_file else value
        if value in ("image", "raster"):
            last = name
    return last, call


def test_tools_that_open_files_are_found_by_their_examples() -> None:
    assert {"measure_crop_weed_area", "estimate_canopy_height"} <= {*OPENING_FILES}
    assert "calculate" not in OPENING_FILES


@pytest.mark.parametrize("tool", OPENING_FILES)
def test_every_tool_refuses_a_file_that_holds_nothing(tool: str, folder: Path) -> None:
    argument, call = call_of(tool, folder)
    is_raster = call[argument].suffix == ".tif"
    names = ["no_heights.tif"] if is_raster else [f"blank_{seed}.jpg" for seed in range(8)]
    for name in names:
        error = refused(tool, **{**call, argument: folder / name})
        assert error.kind == "nothing_found"
        assert name in error.message
        assert error.hint


@pytest.mark.parametrize("tool", OPENING_FILES)
def test_files_that_are_no_pictures_are_refused(tool: str, folder: Path, tmp_path: Path) -> None:
    argument, call = call_of(tool, folder)
    is_raster = call[argument].suffix == ".tif"
    suffix = ".tif" if is_raster else ".png"
    absent = tmp_path / f"absent{suffix}"
    assert refused(tool, **{**call, argument: absent}).kind == "file_not_found"
    whole = (folder / ("heights.tif" if is_raster else "depth.png")).read_bytes()
    broken = [] if is_raster else [(folder / "photo.jpg").read_bytes()[:5000]]
    other = tmp_path / f"other{suffix}"
    for content in (b"", b"no picture", whole[: len(whole) // 2], *broken):
        other.write_bytes(content)
        assert refused(tool, **{**call, argument: other}).kind == "unreadable_file"
    if not is_raster:
        large = png_header_only(tmp_path / "large.png", 60_000, 60_000)
        assert refused(tool, **{**call, argument: large}).kind == "limit"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [(tool, arguments) for tool, bad in BAD_ARGUMENTS.items() for arguments in bad],
)
def test_arguments_out_of_bounds_are_refused(
    tool: str, arguments: Mapping[str, JsonValue], folder: Path
) -> None:
    _, call = call_of(tool, folder)
    assert refused(tool, **{**call, **arguments}).kind == "invalid_argument"


def test_an_earlier_date_an_empty_depth_map_and_empty_heights_are_refused(folder: Path) -> None:
    for target in ("farmland", "pond", "vegetation", "any"):
        error = refused(
            "detect_change",
            before=folder / "blank_1.jpg",
            after=folder / "photo.jpg",
            target=target,
        )
        assert (error.kind, error.argument) == ("nothing_found", "before")
    sized = {"image": folder / "photo.jpg", "depth": folder / "no_depth.png", "fx_px": 400.0}
    error = refused("measure_fruit_size", **sized)
    assert (error.kind, error.argument) == ("nothing_found", "depth")
    counted = {"image": folder / "photo.jpg", "chm": folder / "no_heights.tif", "target": "tree"}
    assert refused("count_objects", **counted).kind == "nothing_found"


def test_faint_pictures_are_read_and_the_level_of_a_blank_one_named(
    tmp_path: Path, folder: Path
) -> None:
    faint: NDArray[np.uint8] = np.full((ROWS, COLUMNS, 3), 20, np.uint8)
    faint[100:120, 100:120] = 50
    lake = np.full((ROWS, COLUMNS, 3), (40, 70, 90), np.uint8)
    for name, pixels in (("faint.jpg", faint), ("lake.jpg", lake)):
        save_jpeg(tmp_path / name, pixels)
        assert read_image(tmp_path / name).pixels.shape == pixels.shape
    assert read_image(folder / "blank_1.jpg", may_be_blank=True).width == COLUMNS
    photo = {"image": folder / "photo.jpg", "region": [0, 0, 40, 40]}
    assert get_tool("describe_region")(**photo).area_px == 1600
    for level, name in ((3, "black"), (252, "white"), (180, "the same colour")):
        with pytest.raises(ToolError, match=name):
            refuse_blank(np.full((20, 20, 3), level, np.uint8), "x.jpg")


def test_blank_files_are_listed_like_others_and_differ_between_scenes(folder: Path) -> None:
    from PIL import Image

    for blank, shown in (("blank_1.jpg", "photo.jpg"), ("no_depth.png", "depth.png")):
        with Image.open(folder / blank) as one, Image.open(folder / shown) as other:
            assert (one.size, one.mode, one.format) == (other.size, other.mode, other.format)
    assert len({(folder / f"blank_{seed}.jpg").read_bytes() for seed in range(8)}) == 8
