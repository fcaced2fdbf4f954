"""Calls with which a tool does the same agree, and no others: each tool is run on pictures made in code."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rasterio.transform import from_origin

from agrotools.calling import get_tool
from agrotools.calling.result import encode_result
from agrotools.calling.workspace import CallContext, call_context
from agrotools.core import (
    BooleanSlot,
    Intrinsics,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    SampleFile,
    ToolCall,
    ToolError,
)
from agrotools.scoring.steps import compare_calls
from support.orchard_scenes import orchard
from support.picture_files import discs, field, noisy, planted_rows, write_raster
from support.plain_sample import plain_sample

UTM = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5)}
PRESENTED = frozenset(
    {"notes", "flags", "boxes", "centres", "scores", "overlay", "mask", "map", "table", "crop"}
)
SHAPE = (120, 160)
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Place:
    folder: Path
    files: tuple[SampleFile, ...]

    def run(self, tool: str, arguments: Arguments) -> dict[str, Any]:
        """What the tool gives, without what is only shown; artifacts are named."""
        infos = {self.folder / file.name: file for file in self.files}
        declared = get_tool(tool)
        prepared = declared.prepare_arguments(arguments, lambda name: self.folder / name)
        with call_context(CallContext(keep=lambda artifact, content: artifact, infos=infos)):
            return encode_result(declared.function(**prepared))[0]

    def agrees(
        self, tool: str, predicted: Arguments, reference: Arguments, result: dict[str, Any] | None
    ) -> bool:
        step = ReferenceStep(
            tool=tool,
            arguments=reference,
            observation=Observation(result=result) if result is not None else None,
        )
        sample = plain_sample(
            "s",
            files=self.files,
            toolset=(tool,),
            reference=ReferenceTrajectory(steps=(step,)),
            answer=(BooleanSlot(name="own", label="own", value=True),),
        )
        get_tool(tool).validate(predicted)
        rows = compare_calls(sample, get_tool(tool), ToolCall(tool=tool, arguments=predicted), step)
        return all(row.agrees for row in rows)


def numbers(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in PRESENTED}


def photo(folder: Path, name: str, pixels: np.ndarray, **known: Any) -> SampleFile:
    Image.fromarray(pixels).save(folder / name)
    return SampleFile(
        **{
            "name": name,
            "path": name,
            "kind": "image",
            "width_px": pixels.shape[1],
            "height_px": pixels.shape[0],
        }
        | known
    )


def raster(
    folder: Path, name: str, values: np.ndarray, names: Sequence[str] = (), **known: Any
) -> SampleFile:
    write_raster(folder / name, values, names, **UTM)
    size = {"width_px": values.shape[2], "height_px": values.shape[1]}
    return SampleFile(**{"name": name, "path": name, "kind": "raster", **size} | known)


def trees(folder: Path) -> list[SampleFile]:
    y, x = np.mgrid[0 : SHAPE[0], 0 : SHAPE[1]]
    heights = np.zeros(SHAPE, np.float32)
    for number, (at_x, at_y) in enumerate(
        (a, b) for a in range(10, 160, 20) for b in range(10, 120, 20)
    ):
        heights = np.maximum(heights, 4 + number % 9 - np.hypot(x - at_x, y - at_y) * 1.2)
    chm = raster(folder, "chm_1.tif", np.maximum(heights, 0)[None])
    same, small = (photo(folder, f"{name}.png", noisy((60, 150, 50), shape)) for name, shape in
                   (("same", SHAPE), ("small", (60, 80))))  # fmt: skip
    return [chm, same, small]


def plants(folder: Path) -> list[SampleFile]:
    mask = discs(SHAPE, [(30, 30), (100, 60), (130, 100), (60, 90)], 12)
    return [photo(folder, "image_1.png", field(mask), gsd_m=0.002)]


def rows_of_crop(folder: Path) -> list[SampleFile]:
    crop, weeds = planted_rows()
    classes = np.where(crop, 1, np.where(weeds, 2, 0)).astype(np.uint8)
    image = photo(folder, "image_1.png", field(crop | weeds), gsd_m=0.01)
    known = {"kind": "mask", "classes": {"0": "soil", "1": "crop", "2": "weed"}}
    unnamed = photo(folder, "labels.png", classes, kind="mask")
    return [image, photo(folder, "mask_1.png", classes, **known), unnamed]


def five_bands(folder: Path) -> list[SampleFile]:
    mask = discs(SHAPE, [(30, 30), (100, 60), (130, 100)], 14)
    draw = np.random.default_rng(0)
    levels = ((400, 800), (900, 1100), (500, 1400), (2200, 1700), (4500, 2000))
    bands = np.stack([np.where(mask, *pair) + draw.normal(0, 60, SHAPE) for pair in levels]).astype(
        np.uint16
    )
    names = ("B", "G", "R", "RE", "NIR")
    return [raster(folder, "bands.tif", bands, names, bands=names)]


def marks(folder: Path) -> list[SampleFile]:
    pixels = field(discs((240, 320), [(60, 60), (200, 100), (120, 190), (280, 200)], 24))
    both = pixels.copy()
    first, second, red, blue = (70, 50, 150, 120), (180, 100, 260, 200), (255, 0, 0), (0, 0, 255)
    cases = ((pixels, first, red), (pixels, second, red), (both, first, red), (both, second, blue))
    for picture, (x0, y0, x1, y1), colour in cases:
        inside = picture[y0 + 3 : y1 - 3, x0 + 3 : x1 - 3].copy()
        picture[y0:y1, x0:x1] = colour
        picture[y0 + 3 : y1 - 3, x0 + 3 : x1 - 3] = inside
    return [photo(folder, "red.png", pixels), photo(folder, "both.png", both)]


def fruits(folder: Path) -> list[SampleFile]:
    scene = orchard(1, fruits=4, size=(320, 240), focal_px=300)
    depth = np.rint(scene.depth_mm).astype(np.uint16)
    inner = Intrinsics(fx_px=scene.focal_px, fy_px=scene.focal_px, cx_px=160, cy_px=120)
    return [
        photo(folder, "image_1.png", scene.pixels, intrinsics=inner),
        photo(folder, "bare.png", scene.pixels),
        photo(folder, "depth_1.png", depth, kind="depth", depth_unit_mm=1),
    ]


def leaves(folder: Path) -> list[SampleFile]:
    y, x = np.mgrid[0:200, 0:300]
    leaf = ((x - 150) / 110) ** 2 + ((y - 100) / 60) ** 2 <= 1
    lesion = discs((200, 300), [(110, 100), (170, 80), (190, 120)], 9)
    picture = np.where(
        leaf[..., None],
        noisy((70, 140, 60), (200, 300), 1),
        noisy((225, 225, 222), (200, 300), 2, 2.0),
    )
    picture = np.where(lesion[..., None], noisy((125, 85, 45), (200, 300), 3), picture).astype(
        np.uint8
    )
    return [
        photo(folder, "leaf.png", picture, gsd_m=0.0002),
        photo(folder, "mask_1.png", leaf.astype(np.uint8), kind="mask"),
    ]


def nothing(_folder: Path) -> list[SampleFile]:
    return []


def dates(folder: Path) -> list[SampleFile]:
    before, after = np.ones((2, *SHAPE), np.uint8)
    after[20:60, 30:90] = 2
    after[80:83, 100:104] = 2
    ground = np.random.default_rng(0).integers(100, 150, (*SHAPE, 3)).astype(np.uint8)
    built = ground.copy()
    built[20:60, 30:90] = (200, 200, 210)
    classes = {"kind": "mask", "classes": {"1": "cropland", "2": "building"}, "gsd_m": 0.5}
    return [
        photo(folder, "mask_1.png", before, **classes),
        photo(folder, "mask_2.png", after, **classes),
        photo(folder, "image_1.png", ground, gsd_m=0.5),
        photo(folder, "image_2.png", built, gsd_m=0.5),
    ]


AS_SAID = {"index": "index", "method": "separation"}
FILES = {
    make.__name__: make
    for make in (trees, plants, marks, fruits, leaves, five_bands, rows_of_crop, dates, nothing)
}
CASES = json.loads(Path(__file__).with_name("equal_calls.json").read_text("utf-8"))
"""Calls, what may stand in them otherwise (a text: what auto came to, as the result says), and what may not."""


@pytest.mark.tools
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['tool']}-{case['files']}")
def test_calls_agree_where_the_tool_does_the_same(tmp_path: Path, case: dict[str, Any]) -> None:
    tool, reference = case["tool"], case["call"]
    place = Place(tmp_path, tuple(FILES[case["files"]](tmp_path)))
    result = place.run(tool, reference)
    same = [
        {AS_SAID[call]: result[call]} if isinstance(call, str) else call for call in case["same"]
    ]
    equal, other = ([{**reference, **call} for call in calls] for calls in (same, case["other"]))
    for call in equal:
        assert place.agrees(tool, call, reference, result), call
    for call in other:
        assert not place.agrees(tool, call, reference, result), call
    calls = [reference, *equal, *other]
    results = [result_or_fault(place, tool, call) for call in calls]
    for expected, of in zip(results, calls, strict=True):
        for actual, call in zip(results, calls, strict=True):
            if {*get_tool(tool).spec.expert} & (of.keys() - call.keys()):
                continue  # a model is not shown these settings, so the reference's do not count
            if place.agrees(tool, call, of, expected if "fault" not in expected else None):
                assert alike(numbers(actual), numbers(expected)), (call, of)


def result_or_fault(place: Place, tool: str, call: Arguments) -> dict[str, Any]:
    try:
        return place.run(tool, call)
    except ToolError as error:
        return {"fault": error.kind}


def alike(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            alike(found[key], wanted[key]) for key in wanted
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(alike, found, wanted))
    return found == (pytest.approx(wanted, rel=1e-5) if isinstance(wanted, float) else wanted)


IMAGE = {"image": "image_1.png"}
NET = {"notes": ["named by the net leaves, which knows 23 classes"], "flags": []}
WITHOUT_RUNNING: list[tuple[str, Arguments, Arguments, dict[str, Any] | None, bool]] = [
    (
        "identify_weed",
        {"candidates": ["lantana", "siam_weed"]},
        {"candidates": ["Siam weed", "Lantana"]},
        None,
        True,
    ),
    (
        "identify_weed",
        {"candidates": ["lantana"]},
        {"candidates": ["lantana", "siam weed"]},
        None,
        False,
    ),
    ("identify_weed", {"candidates": ["lantana"]}, {}, None, False),
    ("identify_weed", {"top_k": 1}, {}, None, True),
    ("diagnose_pest_disease", {"crop": "beans"}, {"crop": "Phaseolus vulgaris"}, None, True),
    ("diagnose_pest_disease", {"crop": "maize"}, {"crop": "Zea mays"}, None, True),
    ("diagnose_pest_disease", {"crop": "bean"}, {"crop": "coffee"}, None, False),
    ("diagnose_pest_disease", {"crop": "bean"}, {}, None, False),
    ("diagnose_pest_disease", {"kind": "disease"}, {"kind": "auto"}, NET, True),
    ("diagnose_pest_disease", {"kind": "auto"}, {"kind": "disease"}, NET, True),
    (
        "diagnose_pest_disease",
        {"kind": "disease"},
        {"kind": "auto"},
        {"flags": ["out_of_distribution"]},
        False,
    ),
    ("diagnose_pest_disease", {"kind": "pest"}, {"kind": "auto"}, NET, False),
    ("locate_objects", {"text": "dog", "score_min": 0.7}, {"text": "dog"}, None, True),
    (
        "locate_objects",
        {"text": "dog", "score_min": 0.7, "top1": False},
        {"text": "dog", "top1": False},
        None,
        False,
    ),
    ("describe_image", {"question": "  "}, {}, None, True),
    (
        "add_text",
        {"text": "a", "position": "10,20"},
        {"text": "a", "position": "(10, 20)"},
        None,
        True,
    ),
    (
        "add_text",
        {"text": "a", "position": "(20, 10)"},
        {"text": "a", "position": "(10, 20)"},
        None,
        False,
    ),
    ("add_text", {"text": "a", "position": "tl"}, {"text": "a", "position": "LT"}, None, True),
]


@pytest.mark.parametrize(("tool", "predicted", "reference", "result", "expected"), WITHOUT_RUNNING)
def test_calls_of_tools_that_need_a_model(tmp_path, tool, predicted, reference, result, expected):
    assert (
        Place(tmp_path, ()).agrees(tool, IMAGE | predicted, IMAGE | reference, result) is expected
    )


def test_equations_agree_in_any_order_and_not_with_other_ones(tmp_path: Path) -> None:
    place, gold = Place(tmp_path, ()), {"equations": ["2*x + y = 7", "x - y = -1"]}
    assert place.agrees("solve_equations", {"equations": ["x-y=-1", "2 * x + y = 7"]}, gold, None)
    assert not place.agrees(
        "solve_equations", {"equations": ["x + 2*y = 7", "x - y = -1"]}, gold, None
    )
    assert not place.agrees(
        "solve_equations", {"equations": ["x y = 7"]}, {"equations": ["xy = 7"]}, None
    )


def test_the_scale_that_the_file_alone_tells_is_in_the_result(tmp_path: Path) -> None:
    place, result = Place(tmp_path, ()), {"gsd_m": 0.2, "mode": "crown_chm"}
    gold = {"image": "chm_1.tif", "target": "tree", "mode": "crown_chm"}
    assert place.agrees("count_objects", {**gold, "gsd_m": 0.2}, gold, result)
    assert not place.agrees("count_objects", {**gold, "gsd_m": 0.4}, gold, result)
    assert not place.agrees("count_objects", {**gold, "gsd_m": 0.2}, gold, None)
