"""Subjects with the results of perfect tools: changes between two dates, canopy heights, diseases, weeds and fruit."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.calling.result import round_significant
from agrotools.core import Arguments, BenchmarkError, Sample, SampleFile
from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.knowledge.kb_names import kb_names
from agrotools_build.area_truth import Region, cut_out, halves, quarters
from agrotools_build.references import PlannedCall, ref
from agrotools_build.sources.part import (
    DataSet,
    Photo,
    named,
    photo_pairs,
    photo_subject,
    photo_thing,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.field import MEASURE
from agrotools_build.templates.thing import Subject
from agrotools_tools.crop_weed.heads import list_heads

_DIGITS = 6
LEAST_SITE_PX = 200
"""Minimum size of a patch in counts of sites; at half a metre per pixel, seven metres square."""


def change_subjects(
    name: str,
    files: tuple[SampleFile, ...],
    mask: NDArray[np.bool_],
    changed: str,
    gsd_m: float | None,
) -> list[Subject]:
    """Return the subjects of a pair of pictures (``files``: before, after), as a whole and by its halves.

    ``mask``: True for changed pixels; ``changed``: the kind of change, as a participle that follows "was".
    """
    across, down = halves(mask.shape[1], mask.shape[0])

    def shown(parts: list[tuple[str, Region | None]]) -> Callable[[int, int], Thing]:
        def thing(index: int, _: int) -> Thing:
            called, region = parts[index]
            arguments: Arguments = {
                "before": files[0].name,
                "after": files[1].name,
                "target": "farmland",
            }
            if region is not None:
                arguments["region"] = [*region]
            where = "" if region is None else f" in the {called} half"
            thought = f"I need to know how much of the ground{where} was {changed}."
            words = {"changed": changed, "before": files[0].name, "after": files[1].name}
            return Thing(
                files,
                "detect_change",
                arguments,
                change_truth(cut_out(mask, region), gsd_m),
                called,
                thought,
                words,
            )

        return thing

    sites = site_truth(mask, LEAST_SITE_PX, gsd_m)

    def with_sites(index: int, number: int) -> Thing:
        thing = shown([("the scene", None)])(index, number)
        thought = "Each piece of the map of change is a patch; now their number and size."
        look = look_closer(files[1].name, "shape", sites, thought)
        arguments: Arguments = {**thing.arguments, "min_area_px": LEAST_SITE_PX}
        words = {**thing.words, "least": str(LEAST_SITE_PX)}
        return replace(thing, arguments=arguments, words=words, closer=(look,))

    return [
        Subject(name, 1, shown([("the scene", None)]), {"pair": name}, of="change"),
        Subject(f"{name}-sites", 1, with_sites, {"pair": name}, of="change_sites"),
        Subject(f"{name}-across", 2, shown([*across]), {"pair": name}, of="change_half"),
        Subject(f"{name}-down", 2, shown([*down]), {"pair": name}, of="change_half"),
    ]


def change_truth(change: NDArray[np.bool_], gsd_m: float | None, **more: Any) -> dict[str, Any]:
    """Return the result of a perfect ``detect_change`` that marks these pixels, with further fields in ``more``."""
    changed_px = int(np.count_nonzero(change))
    area_m2 = None if gsd_m is None else round_significant(changed_px * gsd_m**2, _DIGITS)
    return {
        "changed": changed_px > 0,
        "change_px": changed_px,
        "change_pct": round_significant(100 * changed_px / change.size, _DIGITS),
        "change_area_m2": area_m2,
        "change_area_ha": None if area_m2 is None else round_significant(area_m2 / 10_000, _DIGITS),
        "total_px": change.size,
        **more,
        "gsd_m": gsd_m,
    }


def site_truth(change: NDArray[np.bool_], least_px: int, gsd_m: float | None) -> dict[str, Any]:
    """Return the result of a perfect ``describe_region`` of a mask of change: its pieces of at least ``least_px``."""
    import cv2

    count, _, stats, _ = cv2.connectedComponentsWithStats(change.astype(np.uint8), connectivity=8)
    sizes = [int(size) for size in stats[1:count, cv2.CC_STAT_AREA] if size >= least_px]
    area = {} if gsd_m is None else {"area_m2": round_significant(sum(sizes) * gsd_m**2, _DIGITS)}
    return {
        "area_px": sum(sizes),
        "image_pct": round_significant(100 * sum(sizes) / change.size, _DIGITS),
        **area,
        "shape": {"pieces": len(sizes), "largest_px": max(sizes, default=0)},
    }


def look_closer(after: str, attribute: str, truth: dict[str, Any], thought: str) -> PlannedCall:
    """Return the call that describes the change found by the first call on the picture ``after``."""
    arguments: dict[str, Any] = {"image": after, "mask": ref(0, "mask"), "attributes": [attribute]}
    return PlannedCall("describe_region", arguments, truth, thought=thought)


_CANOPY_FILE = "canopy_heights.tif"
BREAK_M = 2.0
_BINS_M = (2.0, 5.0, 10.0, 15.0, 20.0)


def canopy_subjects(
    name: str, file: SampleFile, heights: NDArray[np.float32], rng: np.random.Generator
) -> list[Subject]:
    """Return subjects of the raster ``file``: the whole, its halves, its quarters, and three boxes drawn by ``rng``.

    ``heights``: metres (rows, columns), NaN without data (less than a tenth of the raster).
    """
    file = file.model_copy(update={"name": _CANOPY_FILE})
    rows, columns = heights.shape
    across, down = halves(columns, rows)
    boxes = _boxes(rng, rows, columns)
    windows = [(f"window {number}", box) for number, box in enumerate(boxes, start=1)]

    def subject(of: str, parts: Sequence[tuple[str, Region | None]]) -> Subject:
        @cache  # a part is used in many questions, and its percentiles are slow to compute
        def shown(index: int, _: int) -> Thing:
            called, region = parts[index]
            return heights_thing(file, height_truth(heights, region, file.gsd_m), called, region)

        return Subject(f"{name}-{of}-{parts[0][0]}", len(parts), shown, {"raster": name}, of=of)

    return [
        subject("canopy", [("the area", None)]),
        subject("canopy_half", across),
        subject("canopy_half", down),
        subject("canopy_quarter", quarters(columns, rows)),
        subject("canopy_box", windows),
    ]


def tract_subject(name: str, windows: Sequence[tuple[SampleFile, NDArray[np.float32]]]) -> Subject:
    """Return the subject of several rasters of heights that are compared as a whole."""

    @cache
    def truth(number: int) -> dict[str, Any]:
        return height_truth(windows[number][1], None, windows[number][0].gsd_m)

    def thing(file: SampleFile, number: int, _: int) -> Thing:
        return heights_thing(file, truth(number))

    files = [(file, number) for number, (file, _) in enumerate(windows)]
    return photo_subject(name, files, thing, {"rasters": name}, "tract", stem="heights")


def heights_thing(
    file: SampleFile, truth: dict[str, Any], called: str = "", region: Region | None = None
) -> Thing:
    """Return a raster of heights, or its ``region`` called ``called``, with the result of a perfect tool."""
    arguments: Arguments = (
        {"chm": file.name} if region is None else {"chm": file.name, "region": [*region]}
    )
    part = (
        ""
        if region is None
        else f" ({called})"
        if not called.startswith("window")
        else " in the window asked for"
    )
    words: dict[str, str] = dict(
        zip(("x0", "y0", "x1", "y1"), map(str, region or ()), strict=False)
    )
    thought = f"I need the heights in {file.name}{part}."
    return Thing(
        (file,), "estimate_canopy_height", arguments, truth, called or file.name, thought, words
    )


def height_truth(
    heights: NDArray[np.float32], region: Region | None, gsd_m: float | None
) -> dict[str, Any]:
    """Return a perfect ``estimate_canopy_height`` result for heights in metres (rows, columns), NaN without data."""
    values = cut_out(heights, region).astype(np.float64)
    values = values[np.isfinite(values)]
    canopy = values[values >= BREAK_M]
    edges = (-math.inf, *_BINS_M, math.inf)
    counted = [int(np.sum((values >= lo) & (values < hi))) for lo, hi in pairwise(edges)]
    figures = {
        "mean_m": values.mean(),
        "median_m": np.median(values),
        "p95_m": np.percentile(values, 95),
        "max_m": values.max(),
        "cover_pct": 100 * canopy.size / values.size,
    }
    if canopy.size:
        figures["mean_canopy_m"] = canopy.mean()
    if gsd_m is not None:
        figures |= {"area_m2": values.size * gsd_m**2, "canopy_area_m2": canopy.size * gsd_m**2}
    return {
        **{name: round_significant(float(value), _DIGITS) for name, value in figures.items()},
        "bins": [
            {"pct": round_significant(100 * count / values.size, _DIGITS)} for count in counted
        ],
        "measured_px": values.size,
    }


def _boxes(rng: np.random.Generator, rows: int, columns: int) -> list[Region]:
    """Return three windows of a third to a half of each side."""
    regions: list[Region] = []
    for _ in range(3):
        width, height = (round(side * rng.uniform(0.33, 0.5)) for side in (columns, rows))
        x0, y0 = int(rng.integers(0, columns - width + 1)), int(rng.integers(0, rows - height + 1))
        regions.append((x0, y0, x0 + width, y0 + height))
    return regions


NO_WEED = "negative"
"""Label of pictures without a weed."""


def diagnosis_of(label: str, entry: KnowledgeEntry) -> dict[str, Any]:
    """Return the result of a perfect ``diagnose_pest_disease`` for a picture with the label ``label``."""
    names = {"common_name": entry.names.en, "scientific_name": entry.names.sci}
    candidate = {"label": label, **names, "kind": entry.kind, "kb_id": entry.id}
    return {"best": entry.id, "abstained": False, "candidates": [candidate]}


def named_weeds(pictures: Iterable[tuple[Path, str]], data: DataSet) -> list[Photo[str]]:
    """Return pictures of rangeland with their labels: one of the eight weeds of DeepWeeds, or ``negative``."""
    note = "Rangeland in northern Australia, seen from above."
    return [(data.originals.file(path, note=note), label) for path, label in pictures]


def weed_subjects(name: str, photos: Iterable[Photo[str]]) -> list[Subject]:
    """Return subjects of pairs of :func:`named_weeds`; BenchmarkError if the knowledge base has no plant of a label."""

    def thing(file: SampleFile, label: str, _: int) -> Thing:
        return weed_thing(file, label, f"I need to know which weed {file.name} shows, if any.")

    return photo_pairs(name, photos, thing, {}, "weed_photo")


def weed_thing(file: SampleFile, label: str, thought: str) -> Thing:
    """Return a picture to be identified, with the label of DeepWeeds."""
    truth = _weed_truth(label)
    words = {
        "shows": truth["common_name"] or "another plant",
        "id": truth["best"],
        "entry": truth["kb_id"] or "",
    }
    return photo_thing(file, "identify_weed", truth, thought, words)


def _weed_truth(label: str) -> dict[str, Any]:
    if label.lower() == NO_WEED:
        return {
            "common_name": None,
            "species": None,
            "best": NO_WEED,
            "kb_id": None,
            "is_weed": False,
        }
    entry = kb_names().of_shipped(label.lower().replace(" ", "_"))
    if entry is None:
        raise BenchmarkError(
            f"the knowledge base has no weed {label!r}", hint="agrotools tools kb search NAME"
        )
    names = {"common_name": entry.names.en, "species": entry.names.sci}
    return {**names, "best": entry.id, "kb_id": entry.id, "is_weed": True}


FRUIT_QUESTIONS = ("fruit_photo", "drawn_count")
"""Templates about the things of :func:`fruit_subjects`."""
TOGETHER = 3
"""Maximum number of fruits in a question, and number of fruits of one subject."""


def apple_subject(
    name: str, files: tuple[SampleFile, SampleFile], fruits: Sequence[tuple[tuple[int, ...], float]]
) -> Subject:
    """Return a subject of fruits in a picture and its depth, each with a box and a diameter in millimetres."""
    image, depth = named(files[0], "image", 1), named(files[1], "depth", 1)

    def shown(index: int, place: int) -> Thing:
        box, diameter_mm = fruits[index]
        arguments: dict[str, Any] = {"image": image.name, "depth": depth.name, "boxes": [[*box]]}
        truth: dict[str, Any] = {"fruits": [{"id": 1, "diameter_mm": diameter_mm}], "n": 1}
        point = ((box[0] + box[2]) // 2, (box[1] + box[3]) // 2)
        words = {"box": f"({', '.join(map(str, box))})", "point": f"({point[0]}, {point[1]})"}
        thought = (
            f"I need the diameter of the fruit at {words['point']}, which fills {words['box']}."
        )
        return Thing(
            (image, depth), "measure_fruit_size", arguments, truth, f"apple {place}", thought, words
        )

    return Subject(name, len(fruits), shown, {"subject": name}, of="apple")


def fruit_subjects(
    name: str, fruit: str, plural: str, counted: Iterable[tuple[SampleFile, int]], *, of: str
) -> list[Subject]:
    """Return subjects of two and of four pictures with their numbers of fruits; ``fruit``: the counting tool's target.

    ``of``: kind of the things of two pictures; those of four are a ``fruit_picture``.
    """
    counted = list(counted)

    def thing(file: SampleFile, count: int, _: int) -> Thing:
        thought = f"I need to know how many {plural} there are in {file.name}."
        words = {"fruit": fruit, "fruits": plural}
        return photo_thing(file, "count_objects", {"count": count}, thought, words, target=fruit)

    pairs = photo_pairs(name, counted, thing, {"fruit": fruit}, of)
    return [
        *pairs,
        *photo_pairs(f"{name}-four", counted, thing, {"fruit": fruit}, "fruit_picture", 4),
    ]


def describe_separation(samples: Sequence[Sample]) -> dict[str, JsonValue]:
    """Return the methods that told crop from weeds in recorded observations, and the heads that were used."""
    observations = [
        step.observation.result
        for sample in samples
        for step in (sample.reference.steps if sample.reference else ())
        if step.tool == MEASURE and step.observation and step.observation.result
    ]
    methods = Counter(str(result.get("method")) for result in observations)
    notes = " ".join(str(result.get("notes")) for result in observations)
    used = set(re.findall(r"by head ([\w.-]+)", notes))
    heads: dict[str, JsonValue] = {
        head.name: head.weights_sha256 for head in list_heads()[0] if head.name in used
    }
    how: dict[str, JsonValue] = {"separation": dict(methods), "heads": heads}
    if methods["none"]:
        how["note"] = (
            f"In {methods['none']} of {methods.total()} recorded measurements crop and weeds were not told apart. Train"
            " heads (agrotools tools packs train crop-weed) and build again for heads that never saw the pair."
        )
    return how
