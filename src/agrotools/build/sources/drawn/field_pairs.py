"""Drawn farmland on two dates: how much cropland was lost, to what, and where. What the modules share that differ in
how the pictures are taken."""

from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.scenes.farmland import BECOMES, Becomes, Look, make_farmland_pair
from agrotools.build.scenes.marks import STROKE_COLOURS, Box, marked
from agrotools.build.scenes.scene import Difficulty, save_picture
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile
from agrotools.tools.result import round_significant

LEAST_PX = 200
"""Smaller patches do not count where sites are counted: at half a metre a pixel, seven metres square."""
_DIGITS = 6
_ALONE: tuple[Becomes | Literal["none"], ...] = ("building", "bare", "water", "forest", "road", "none", "none", "none")
"""Events of pairs that are asked about alone."""
_PAIRS = {"one": 1, "places": 4, "marked": 2}


def draw_pairs(seed: int, difficulty: Difficulty, folder: Path, look: Look) -> dict[str, JsonValue]:
    """Pairs of pictures. ``record["pairs"]``: files, mark, and what a perfect tool says of each."""
    rng = np.random.default_rng([seed, difficulty, 73])
    # Neighbouring seeds take turns, and so do seeds of one difficulty.
    mode = ("one", "marked", "one", "places", "marked")[(seed + seed // 4) % 5]
    pairs: list[JsonValue] = []
    for number in range(_PAIRS[mode]):
        becomes = _ALONE[int(rng.integers(len(_ALONE)))] if mode == "one" else None
        scene = make_farmland_pair(16 * seed + number, difficulty, look, becomes)
        lost_mask, gsd_m = scene.masks["lost"], float(scene.sidecar["gsd_m"])
        before, mark, region = scene.images["before"], None, None
        if mode == "marked":
            colour = STROKE_COLOURS[int(rng.integers(len(STROKE_COLOURS)))]
            before, mark = marked(rng, before, _parcel(rng, lost_mask), "box", colour)
            region = cast(Box, tuple(mark["regions"][0]["inner_box"]))
        quality = int(rng.integers(88, 95))
        save_picture(folder / f"before_{number}.jpg", before, quality)
        save_picture(folder / f"after_{number}.jpg", scene.images["after"], quality)
        pairs.append(
            {
                "before": f"before_{number}.jpg",
                "after": f"after_{number}.jpg",
                "gsd_m": gsd_m,
                "mark": mark,
                "becomes": scene.truth["becomes"],
                "change": _change(lost_mask, region, gsd_m),
                "sites": _sites(lost_mask, gsd_m),
            }
        )
    return {"mode": mode, "pairs": pairs}


def pair_subjects(drawn: DrawnScene, originals: Originals, note: str) -> list[Subject]:
    """``field_pair``: all of a pair; ``field_sites`` and ``field_kind``: its sites and what they became, looked at
    closer; ``field_marked``: what lies inside the mark on the first picture."""
    pairs = cast("list[dict[str, Any]]", drawn.record["pairs"])
    pictures = [
        [
            originals.file(drawn.folder / one[date], gsd_m=one["gsd_m"], note=f"{note}, {order} date.")
            for date, order in (("before", "first"), ("after", "second"))
        ]
        for one in pairs
    ]

    def files(index: int, number: int) -> tuple[SampleFile, SampleFile]:
        return named(pictures[index][0], "before", number), named(pictures[index][1], "after", number)

    def compared(index: int, number: int, **more: Any) -> dict[str, Any]:
        thing = files(index, number)
        before, after = (file.name for file in thing)
        arguments: Arguments = {"before": before, "after": after, "target": "farmland"}
        metres = f"{pairs[index]['gsd_m']:g}"
        words = {"before": before, "after": after, "least": str(LEAST_PX), "metres": metres}
        return {
            "files": thing,
            "tool": "detect_change",
            "arguments": {**arguments, **more},
            "truth": pairs[index]["change"],
            "called": f"site {number}",
            "thought": f"I need to know what cropland was lost between {before} and {after}.",
            "words": words,
        }

    def field_pair(index: int, number: int) -> Thing:
        return Thing(**compared(index, number))

    def field_sites(index: int, number: int) -> Thing:
        fields = compared(index, number, min_area_px=LEAST_PX)
        thought = "Each piece of the map of change is a site; now their number and sizes."
        look = _look(fields["files"][1].name, "shape", pairs[index]["sites"], thought)
        return Thing(**{**fields, "closer": (look,)})

    def field_kind(index: int, number: int) -> Thing:
        fields, becomes = compared(index, number), pairs[index]["becomes"]
        truth: dict[str, JsonValue] = {"class_pcts": {kind: 100.0 if kind == becomes else 0.0 for kind in BECOMES}}
        look = _look(fields["files"][1].name, "landcover", truth, "Now what lies there on the second date.")
        return Thing(**{**fields, "closer": (look,)})

    def field_marked(index: int, number: int) -> Thing:
        fields, mark = compared(index, number, region=ref(0, "regions[0].inner_box")), pairs[index]["mark"]
        before = fields["files"][0].name
        look = PlannedCall(
            "extract_marked_region", {"image": before}, mark, thought=f"I need to know what is marked in {before}."
        )
        words = {**fields["words"], "colour": mark["regions"][0]["color"]}
        return Thing(**{**fields, "before": (look,), "words": words, "thought": "Now what was lost inside the mark."})

    kinds = {"one": [("field_pair", field_pair)], "places": [("field_pair", field_pair)]}
    kinds["marked"] = [("field_marked", field_marked)]
    if drawn.record["mode"] == "one" and pairs[0]["becomes"] != "none":
        kinds["one"].append(("field_kind", field_kind))
        if pairs[0]["becomes"] != "road":
            kinds["one"].append(("field_sites", field_sites))
    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty}
    shows = kinds[cast(str, drawn.record["mode"])]
    return [Subject(f"{drawn.name}-{drawn.seed}-{of}", len(pairs), thing, metadata, of=of) for of, thing in shows]


def _look(image: str, attribute: str, truth: dict[str, JsonValue], thought: str) -> PlannedCall:
    arguments: Arguments = {"image": image, "mask": ref(0, "mask"), "attributes": [attribute]}
    return PlannedCall("describe_region", arguments, truth, thought=thought)


def _change(lost: NDArray[np.uint8], region: Box | None, gsd_m: float) -> dict[str, Any]:
    """Result of a perfect ``detect_change``."""
    x0, y0, x1, y1 = region or (0, 0, lost.shape[1], lost.shape[0])
    inside = lost[y0:y1, x0:x1]
    px = int(np.count_nonzero(inside))
    percent, area_m2 = round_significant(100 * px / inside.size, _DIGITS), round_significant(px * gsd_m**2, _DIGITS)
    kinds = [BECOMES[int(value) - 1] for value in np.unique(inside) if value]
    return {
        "changed": px > 0,
        "change_px": px,
        "change_pct": percent,
        "change_area_m2": area_m2,
        "change_area_ha": round_significant(px * gsd_m**2 / 1e4, _DIGITS),
        "total_px": int(inside.size),
        "loss_px": px,
        "loss_area_m2": area_m2,
        "dominant_transition": f"cropland->{kinds[0]}" if kinds else None,
        "gsd_m": gsd_m,
    }


def _sites(lost: NDArray[np.uint8], gsd_m: float) -> dict[str, Any]:
    """Result of a perfect ``describe_region`` of the map of change: pieces of at least :data:`LEAST_PX`."""
    import cv2

    count, _, stats, _ = cv2.connectedComponentsWithStats((lost > 0).astype(np.uint8), connectivity=8)
    sizes = [int(size) for size in stats[1:count, cv2.CC_STAT_AREA] if size >= LEAST_PX]
    return {
        "area_px": sum(sizes),
        "image_pct": round_significant(100 * sum(sizes) / lost.size, _DIGITS),
        "area_m2": round_significant(sum(sizes) * gsd_m**2, _DIGITS),
        "shape": {"pieces": len(sizes), "largest_px": max(sizes, default=0)},
    }


def _parcel(rng: np.random.Generator, lost: NDArray[np.uint8]) -> Box:
    """A rectangle, in most pairs with some of what was lost in it, in others without any."""
    rows, columns = lost.shape
    with_loss = rng.uniform() < 0.65
    best: Box | None = None
    for _ in range(60):
        width, height = (round(side * rng.uniform(0.25, 0.45)) for side in (columns, rows))
        x0, y0 = int(rng.integers(8, columns - width - 8)), int(rng.integers(8, rows - height - 8))
        best = (x0, y0, x0 + width, y0 + height)
        share = float((lost[y0 : y0 + height, x0 : x0 + width] > 0).mean())
        if share > 0.12 if with_loss else share == 0:
            break
    assert best is not None
    return best
