"""Drawn farm ponds on two dates: what became of them, and how much water they hold."""

from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.scenes.marks import STROKE_COLOURS, Box, marked
from agrotools.build.scenes.ponds import PondScene, make_pond_pair
from agrotools.build.scenes.scene import Difficulty, save_picture
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile
from agrotools.tools.result import round_significant

NAME = "pond_pairs"
STANDS_FOR = "fpcd"
TEMPLATES = ("pond", "pond_water")

_DIGITS = 6
_PAIRS = {"one": 1, "places": 4, "marked": 2}
_EVENTS = {(False, False): "none", (True, True): "none", (True, False): "dried", (False, True): "wetted"}

Mask = NDArray[np.bool_]


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """Pairs of pictures. ``record["pairs"]``: files, mark, and what a perfect tool says of each."""
    rng = np.random.default_rng([seed, difficulty, 74])
    # Neighbouring seeds take turns, and so do seeds of one difficulty.
    mode = ("one", "marked", "places", "one")[(seed + seed // 4) % 4]
    pairs: list[JsonValue] = []
    for number in range(_PAIRS[mode]):
        scene = make_pond_pair(16 * seed + number, difficulty)
        gsd_m = float(cast(float, scene.sidecar["gsd_m"]))
        before, mark, region = cast("NDArray[np.uint8]", scene.images["before"]), None, None
        if mode == "marked":
            shape, inside = _around_a_pond(rng, scene)
            colour = STROKE_COLOURS[int(rng.integers(len(STROKE_COLOURS)))]
            before, mark = marked(rng, before, inside, shape, colour)
            region = cast(Box, tuple(mark["regions"][0]["inner_box"]))
        quality = int(rng.integers(88, 95))
        save_picture(folder / f"before_{number}.jpg", before, quality)
        save_picture(folder / f"after_{number}.jpg", cast("NDArray[np.uint8]", scene.images["after"]), quality)
        change = _change(scene, region, gsd_m)
        pair = {"before": f"before_{number}.jpg", "after": f"after_{number}.jpg", "gsd_m": gsd_m, "mark": mark}
        pairs.append(cast(JsonValue, {**pair, "change": change}))
    return {"mode": mode, "pairs": pairs}


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """``pond``: what happened in one pair; ``pond_water``: the water of each; ``pond_marked``: inside a mark on the
    first picture."""
    pairs = cast("list[dict[str, Any]]", drawn.record["pairs"])
    pictures = [
        [
            originals.file(drawn.folder / one[date], gsd_m=one["gsd_m"], note=f"Seen from above, {order} date.")
            for date, order in (("before", "first"), ("after", "second"))
        ]
        for one in pairs
    ]

    def files(index: int, number: int) -> tuple[SampleFile, SampleFile]:
        return named(pictures[index][0], "before", number), named(pictures[index][1], "after", number)

    def water(index: int, number: int) -> Thing:
        pictures = files(index, number)
        before, after = (file.name for file in pictures)
        arguments: Arguments = {"before": before, "after": after, "target": "pond"}
        thought = f"I need to know what became of the ponds between {before} and {after}."
        gsd_m = pairs[index]["gsd_m"]
        words = {"before": before, "after": after, "gsd_m": f"{round_significant(gsd_m, 4):g}"}
        return Thing(pictures, "detect_change", arguments, pairs[index]["change"], f"site {number}", thought, words)

    def inside_mark(index: int, number: int) -> Thing:
        thing, mark = water(index, number), pairs[index]["mark"]
        before = thing.words["before"]
        look = PlannedCall(
            "extract_marked_region", {"image": before}, mark, thought=f"I need to know what is marked in {before}."
        )
        arguments: Arguments = {**thing.arguments, "region": ref(0, "regions[0].inner_box")}
        words = {**thing.words, "colour": mark["regions"][0]["color"]}
        thought = "Now what became of the pond inside the mark."
        return Thing(thing.files, thing.tool, arguments, thing.truth, thing.called, thought, words, before=(look,))

    kinds = {"one": [("pond", water), ("pond_water", water)], "places": [("pond_water", water)]}
    kinds["marked"] = [("pond_marked", inside_mark)]
    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty}
    shows = kinds[cast(str, drawn.record["mode"])]
    return [Subject(f"{drawn.name}-{drawn.seed}-{of}", len(pairs), shown, metadata, of=of) for of, shown in shows]


def _change(scene: PondScene, region: Box | None, gsd_m: float) -> dict[str, Any]:
    """Result of a perfect ``detect_change`` of the ponds in the region: those that came, went, dried or filled are
    the change; water is counted on both dates, also where it merely rose or fell."""
    x0, y0, x1, y1 = region or (0, 0, scene.masks["water_before"].shape[1], scene.masks["water_before"].shape[0])
    inside = (slice(y0, y1), slice(x0, x1))
    was, now = (int(np.count_nonzero(scene.masks[f"water_{name}"][inside])) for name in ("before", "after"))
    changed = np.zeros(scene.masks["water_before"].shape, np.bool_)
    events: list[str] = []
    for pond in _ponds(scene):
        if pond[inside].any():
            event, part = _event(scene, pond)
            events.append(event)
            changed |= part
    observed = next((event for event in events if event != "none"), "none")
    px, total = int(np.count_nonzero(changed[inside])), (x1 - x0) * (y1 - y0)
    return {
        "changed": observed != "none",
        "change_px": px,
        "change_pct": round_significant(100 * px / total, _DIGITS),
        "change_area_m2": round_significant(px * gsd_m**2, _DIGITS),
        "change_area_ha": round_significant(px * gsd_m**2 / 1e4, _DIGITS),
        "total_px": total,
        "pond": {
            "event": observed,
            "area_before_px": was,
            "area_after_px": now,
            "delta_pct": round_significant(100 * (now - was) / was, _DIGITS) if was else None,
        },
        "gsd_m": gsd_m,
    }


def _ponds(scene: PondScene) -> list[Mask]:
    """Mask of each pond, on either date."""
    import cv2

    either = scene.masks["basins_before"] | scene.masks["basins_after"]
    count, labels = cv2.connectedComponents(either.astype(np.uint8), connectivity=8)
    return [np.asarray(labels == number) for number in range(1, count)]


def _event(scene: PondScene, pond: Mask) -> tuple[str, Mask]:
    """Event of a pond, and the water that it is about."""
    wet = [(scene.masks[f"water_{name}"] > 0) & pond for name in ("before", "after")]
    event = _EVENTS[bool(wet[0].any()), bool(wet[1].any())]
    dug = [bool((scene.masks[f"basins_{name}"] > 0)[pond].any()) for name in ("before", "after")]
    if dug == [False, True]:
        event = "constructed"
    elif dug == [True, False]:
        event = "demolished"
    return event, wet[0] | wet[1] if event != "none" else np.zeros_like(pond)


def _around_a_pond(rng: np.random.Generator, scene: PondScene) -> tuple[Any, Box]:
    """A mark around one pond and no other, mostly that to which something happened; anywhere where there is none."""
    rows, columns = scene.masks["water_before"].shape
    ponds = _ponds(scene)
    order = sorted(ponds, key=lambda pond: (_event(scene, pond)[0] == "none") == (rng.uniform() < 0.8))
    for pond in order:
        ys, xs = np.flatnonzero(pond.any(axis=1)), np.flatnonzero(pond.any(axis=0))
        for shape in ("ellipse", "box") if rng.uniform() < 0.6 else ("box",):
            free = int(rng.integers(10, 22))
            box = (int(xs[0]) - free, int(ys[0]) - free, int(xs[-1]) + 1 + free, int(ys[-1]) + 1 + free)
            # An ellipse through the corners of a box reaches a fifth of its sides further.
            more = 0.21 if shape == "ellipse" else 0.0
            dx, dy = more * (box[2] - box[0]) + 6, more * (box[3] - box[1]) + 6
            if box[0] - dx < 0 or box[1] - dy < 0 or box[2] + dx >= columns or box[3] + dy >= rows:
                continue
            reach = (slice(int(box[1] - dy), int(box[3] + dy)), slice(int(box[0] - dx), int(box[2] + dx)))
            if not any(other[reach].any() for other in ponds if other is not pond):
                return shape, box
    box = (0, 0, 0, 0)
    for _ in range(50):
        width, height = int(rng.integers(70, 130)), int(rng.integers(70, 130))
        x0, y0 = int(rng.integers(8, columns - width - 8)), int(rng.integers(8, rows - height - 8))
        box = (x0, y0, x0 + width, y0 + height)
        part = (slice(y0 - 8, y0 + height + 8), slice(x0 - 8, x0 + width + 8))
        if not any(pond[part].any() for pond in ponds):
            break
    return "box", box
