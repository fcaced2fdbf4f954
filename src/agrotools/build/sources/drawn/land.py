"""Drawn land from above: trees to count, tracts whose heights are measured, and land on two dates.

Pairs of dates show lost cropland, its new use and place, or farm ponds, their events and their water.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.area_truth import Region, cut_out
from agrotools.build.scenes.farmland import BECOMES, Becomes, Look, make_farmland_pair
from agrotools.build.scenes.marks import Box, MarkShape, draw_colour, marked, random_box
from agrotools.build.scenes.ponds import make_pond_pair
from agrotools.build.scenes.scene import Difficulty, Scene, bounds, save_picture
from agrotools.build.scenes.stands import BlockKind, make_block, make_tract
from agrotools.build.sources.drawn import DrawnScene, Only, SceneKind, measured_in_mark, save_heights, turn_of
from agrotools.build.sources.land import (
    BREAK_M,
    LEAST_SITE_PX,
    change_truth,
    height_truth,
    heights_thing,
    look_closer,
    site_truth,
)
from agrotools.build.sources.part import TABLES, Originals, named
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import SampleFile
from agrotools.knowledge.kb_names import shipped_names
from agrotools.tools.result import round_significant

MODES_OF_BLOCKS, _BLOCKS, _WITH_BOX = ("pictures", "heights", "heights"), 4, 0.5
"""Blocks of a subject: pictures only, or with height models, some of which have a box in the picture."""
ORCHARD_PESTS = [(crop, pest) for crop, pests in TABLES["orchard_pests"].items() for pest in pests]
"""Crops and pests that a question about an orchard names."""
_DIGITS = 6
_BLOCK_NOTE = (
    "Trees from straight above. A tree counts if its centre is in the picture and, where a box is drawn, in the box."
)


def _draw_blocks(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw blocks of one kind. ``record["blocks"]``: files, trees (as in a scene's truth) and mark of each."""
    rng = np.random.default_rng([seed, difficulty, 71])
    mode = turn_of(seed, MODES_OF_BLOCKS)
    kind: BlockKind = "orchard" if rng.uniform() < 0.5 else "forest"
    blocks: list[JsonValue] = []
    for number in range(_BLOCKS):
        if not (only(f"picture_{number}.jpg") or only(f"heights_{number}.tif")):
            continue
        rng = np.random.default_rng([seed, difficulty, 71, 1 + number])
        scene = make_block(16 * seed + number, difficulty, kind)
        picture, mark = scene.images["rgb"], None
        rows, columns = picture.shape[:2]
        if mode == "heights" and rng.uniform() < _WITH_BOX:
            plot = random_box(rng, (rows, columns), (0.28, 0.5))
            picture, mark = marked(rng, picture, plot, "box", draw_colour(rng))
        save_picture(folder / f"picture_{number}.jpg", picture, int(rng.integers(86, 94)))
        block: dict[str, Any] = {"picture": f"picture_{number}.jpg", "trees": scene.truth["trees"], "mark": mark}
        if mode != "pictures":
            gsd_m, known = scene.sidecar["chm_gsd_m"], scene.masks["heights"]
            save_heights(folder / f"heights_{number}.tif", scene.images["chm"], gsd_m)
            block |= {"heights": f"heights_{number}.tif", "chm_gsd_m": gsd_m}
            block["chm_size"] = [known.shape[1], known.shape[0]]
        blocks.append({**block, "size": [columns, rows], "gsd_m": scene.sidecar["gsd_m"]})
    return {"mode": mode, "kind": kind, "blocks": blocks}


def _block_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return the subject of a scene, ``block``: the trees of each block, or those inside its box."""
    blocks, kind = cast("list[dict[str, Any]]", drawn.record["blocks"]), str(drawn.record["kind"])
    note = "Heights above ground of the place in the picture of the same number, one band, metres."
    crop, pest = ORCHARD_PESTS[drawn.seed % len(ORCHARD_PESTS)] if kind == "orchard" else ("", "")
    entry = next((entry.id for entry in shipped_names().all_of_name(pest)), "") if pest else ""
    words = {"kind": kind, "crop": crop, "pest": pest, "entry": entry}
    files: list[dict[str, SampleFile]] = []
    for one in blocks:
        files.append({"image": originals.file(drawn.folder / one["picture"], gsd_m=one["gsd_m"], note=_BLOCK_NOTE)})
        if "heights" in one:
            path = drawn.folder / one["heights"]
            files[-1]["heights"] = originals.heights(path, one["chm_size"], one["chm_gsd_m"], note)

    def block(index: int, number: int) -> Thing:
        image, *models = shown = tuple(named(file, stem, number) for stem, file in files[index].items())
        arguments: dict[str, Any] = {"image": image.name, "target": "tree"}
        if models:
            arguments["chm"] = models[0].name
        thought, mark = f"I need to know how many trees there are in {image.name}.", blocks[index]["mark"]
        truth = _counted(blocks[index], mark and mark["regions"][0]["inner_box"])
        thing = Thing(shown, "count_objects", arguments, truth, image.name, thought, words)
        if mark is None:
            return thing
        question, thought = f"where the box in {image.name} lies", "Now the trees inside the box."
        return measured_in_mark(thing, image.name, mark, question, thought)

    variant = f"{kind} {drawn.record['mode']}"
    return [drawn.subject("block", len(blocks), block, "block", variant=variant)]


def _counted(facts: dict[str, Any], region: Region | None) -> dict[str, Any]:
    x0, y0, x1, y1 = region or (0, 0, *facts["size"])
    heights = [height for x, y, height, _ in facts["trees"] if x0 <= x < x1 and y0 <= y < y1]
    area_ha = (x1 - x0) * (y1 - y0) * facts["gsd_m"] ** 2 / 10_000
    tall = round_significant(float(np.median(heights)), _DIGITS) if heights and "heights" in facts else None
    return {
        "count": len(heights),
        "density_per_ha": round_significant(len(heights) / area_ha, _DIGITS),
        "median_height_m": tall,
        "gsd_m": facts["gsd_m"],
    }


def _draw_tracts(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw the heights of tracts. ``record["tracts"]``: file and perfect result of each."""
    tracts: list[JsonValue] = []
    for number in range(4):
        name = f"heights_{number}.tif"
        if not only(name):
            continue
        scene = make_tract(16 * seed + number, difficulty)
        known, gsd_m = scene.masks["heights"], float(scene.sidecar["gsd_m"])
        save_heights(folder / name, scene.images["chm"], gsd_m)
        canopy = known[known >= BREAK_M].astype(np.float64)
        truth = height_truth(known, None, gsd_m)
        truth["mean_canopy_m"] = round_significant(float(canopy.mean()), _DIGITS)
        tracts.append({"heights": name, "gsd_m": gsd_m, "size": [known.shape[1], known.shape[0]], "truth": truth})
    return {"tracts": tracts}


def _tract_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return the subject of a scene. Only heights are shown, because the answers cannot be seen in a picture."""
    tracts = cast("list[dict[str, Any]]", drawn.record["tracts"])
    note = "Heights above ground, one band, metres."
    models = [originals.heights(drawn.folder / one["heights"], one["size"], one["gsd_m"], note) for one in tracts]

    def tract(index: int, number: int) -> Thing:
        return heights_thing(named(models[index], "heights", number), tracts[index]["truth"])

    return [drawn.subject("tract", len(tracts), tract, "tract")]


BLOCKS = SceneKind(0, ("blocks",), _draw_blocks, _block_subjects)
TRACTS = SceneKind(1, ("tracts",), _draw_tracts, _tract_subjects)


_PAIRS = {"one": 1, "places": 4, "marked": 2}
"""Number of pairs of a subject, by mode."""
_FARMLAND_MODES = ("one", "marked", "one", "places", "marked")
_POND_MODES = ("one", "marked", "places", "one")
_DIGITS = 6
_ALONE: tuple[Becomes | Literal["none"], ...] = (
    "building", "building", "building", "bare", "water", "forest", "road", "none", "none",
)  # fmt: skip
"""Frequencies of events in subjects of a single pair."""
_EVENTS = {(False, False): "none", (True, True): "none", (True, False): "dried", (False, True): "wetted"}

Mask = NDArray[np.bool_]


def _save_pair(
    rng: np.random.Generator, folder: Path, number: int, before: NDArray[np.uint8], after: NDArray[np.uint8]
) -> dict[str, str]:
    quality = int(rng.integers(88, 95))
    for date, pixels in (("before", before), ("after", after)):
        save_picture(folder / f"{date}_{number}.jpg", pixels, quality)
    return {date: f"{date}_{number}.jpg" for date in ("before", "after")}


class _Compared:
    """Pairs of pictures of a scene, measured by ``detect_change``; ``words`` gives words for a pixel size."""

    def __init__(
        self,
        drawn: DrawnScene,
        originals: Originals,
        note: str,
        target: str,
        question: str,
        words: Callable[[float], dict[str, str]],
    ) -> None:
        self.pairs = cast("list[dict[str, Any]]", drawn.record["pairs"])
        self._target, self._question, self._words = target, question, words
        self._files = [
            {
                date: originals.file(drawn.folder / one[date], gsd_m=one["gsd_m"], note=f"{note}, {order} date.")
                for date, order in (("before", "first"), ("after", "second"))
            }
            for one in self.pairs
        ]

    def thing(self, index: int, number: int) -> Thing:
        pair = self.pairs[index]
        files: tuple[SampleFile, ...] = tuple(named(file, date, number) for date, file in self._files[index].items())
        before, after = (file.name for file in files)
        return Thing(
            files,
            "detect_change",
            {"before": before, "after": after, "target": self._target},
            pair["change"],
            f"site {number}",
            f"I need to know {self._question} between {before} and {after}.",
            {"before": before, "after": after, **self._words(pair["gsd_m"])},
        )

    def in_mark(self, thought: str, index: int, number: int) -> Thing:
        """Return the part of a pair inside the mark on its first picture."""
        thing = self.thing(index, number)
        before = thing.files[0].name
        return measured_in_mark(thing, before, self.pairs[index]["mark"], f"what is marked in {before}", thought)


def _draw_farmland(look: Look, seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw pairs of pictures. ``record["pairs"]``: files, mark and perfect result of each."""
    mode = turn_of(seed, _FARMLAND_MODES)
    pairs: list[JsonValue] = []
    for number in range(_PAIRS[mode]):
        if not (only(f"before_{number}.jpg") or only(f"after_{number}.jpg")):
            continue
        rng = np.random.default_rng([seed, difficulty, 73, 1 + number])
        becomes = _ALONE[int(rng.integers(len(_ALONE)))] if mode == "one" else None
        scene = make_farmland_pair(16 * seed + number, difficulty, look, becomes)
        lost, gsd_m = scene.masks["lost"], float(scene.sidecar["gsd_m"])
        before, mark, region = scene.images["before"], None, None
        if mode == "marked":
            colour = draw_colour(rng)
            before, mark = marked(rng, before, _parcel(rng, lost), "box", colour)
            region = mark["regions"][0]["inner_box"]
        pairs.append(
            {
                **_save_pair(rng, folder, number, before, scene.images["after"]),
                "gsd_m": gsd_m,
                "mark": mark,
                "becomes": scene.truth["becomes"],
                "change": _lost_cropland(cut_out(lost, region), gsd_m),
                "sites": site_truth(lost > 0, LEAST_SITE_PX, gsd_m),
            }
        )
    return {"mode": mode, "pairs": pairs}


def _farmland_subjects(note: str, drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return ``field_pair`` (a whole pair), ``field_sites``, ``field_kind`` (a closer look), or ``field_marked``."""

    def words(gsd_m: float) -> dict[str, str]:
        return {"least": str(LEAST_SITE_PX), "metres": f"{gsd_m:g}"}

    compared = _Compared(drawn, originals, note, "farmland", "what cropland was lost", words)
    pairs = compared.pairs

    def field_sites(index: int, number: int) -> Thing:
        thing = compared.thing(index, number)
        thought = "Each piece of the map of change is a site; now their number and sizes."
        look = look_closer(thing.files[1].name, "shape", pairs[index]["sites"], thought)
        return replace(thing, arguments={**thing.arguments, "min_area_px": LEAST_SITE_PX}, closer=(look,))

    def field_kind(index: int, number: int) -> Thing:
        thing, becomes = compared.thing(index, number), pairs[index]["becomes"]
        truth: dict[str, JsonValue] = {"class_pcts": {kind: 100.0 if kind == becomes else 0.0 for kind in BECOMES}}
        thought = "Now what lies there on the second date."
        return replace(thing, closer=(look_closer(thing.files[1].name, "landcover", truth, thought),))

    mode = str(drawn.record["mode"])
    kinds: dict[str, Callable[[int, int], Thing]] = {"field_pair": compared.thing}
    if mode == "marked":
        kinds = {"field_marked": partial(compared.in_mark, "Now what was lost inside the mark.")}
    elif mode == "one" and pairs[0]["becomes"] != "none":
        kinds["field_kind"] = field_kind
        if pairs[0]["becomes"] != "road":
            kinds["field_sites"] = field_sites
    variant = str(pairs[0]["becomes"]) if mode == "one" else "mixed"
    return [drawn.subject(of, len(pairs), thing, of, variant=variant) for of, thing in kinds.items()]


def _lost_cropland(lost: NDArray[np.uint8], gsd_m: float) -> dict[str, Any]:
    kinds = [BECOMES[int(value) - 1] for value in np.unique(lost) if value]
    transition = f"cropland->{kinds[0]}" if kinds else None
    px = int(np.count_nonzero(lost))
    area_m2 = round_significant(px * gsd_m**2, _DIGITS)
    return change_truth(lost > 0, gsd_m, loss_px=px, loss_area_m2=area_m2, dominant_transition=transition)


def _parcel(rng: np.random.Generator, lost: NDArray[np.uint8]) -> Box:
    """Return a rectangle; in most pairs it contains lost cropland, in others none."""
    with_loss = rng.uniform() < 0.65

    def suits(box: Box) -> bool:
        share = float((cut_out(lost, box) > 0).mean())
        return share > 0.12 if with_loss else share == 0

    return random_box(rng, lost.shape, (0.25, 0.45), suits, tries=60)


def _draw_ponds(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw pairs of pictures. ``record["pairs"]``: files, mark and perfect result of each."""
    mode = turn_of(seed, _POND_MODES)
    pairs: list[JsonValue] = []
    for number in range(_PAIRS[mode]):
        if not (only(f"before_{number}.jpg") or only(f"after_{number}.jpg")):
            continue
        rng = np.random.default_rng([seed, difficulty, 74, 1 + number])
        scene = make_pond_pair(16 * seed + number, difficulty)
        gsd_m = float(scene.sidecar["gsd_m"])
        before, mark, region = scene.images["before"], None, None
        if mode == "marked":
            shape, inside = _around_a_pond(rng, scene)
            before, mark = marked(rng, before, inside, shape, draw_colour(rng))
            region = mark["regions"][0]["inner_box"]
        names = _save_pair(rng, folder, number, before, scene.images["after"])
        pairs.append({**names, "gsd_m": gsd_m, "mark": mark, "change": _pond_change(scene, region, gsd_m)})
    return {"mode": mode, "pairs": pairs}


def _pond_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return ``pond`` (the event in a pair), ``pond_water`` (the water of each), or ``pond_marked`` (inside a mark)."""

    def words(gsd_m: float) -> dict[str, str]:
        return {"gsd_m": f"{round_significant(gsd_m, 4):g}"}

    compared = _Compared(drawn, originals, "Seen from above", "pond", "what became of the ponds", words)
    marked_pond = partial(compared.in_mark, "Now what became of the pond inside the mark.")
    kinds: Mapping[str, Callable[[int, int], Thing]] = {
        "one": {"pond": compared.thing, "pond_water": compared.thing},
        "places": {"pond_water": compared.thing},
        "marked": {"pond_marked": marked_pond},
    }[str(drawn.record["mode"])]
    return [drawn.subject(of, len(compared.pairs), thing, of) for of, thing in kinds.items()]


def _pond_change(scene: Scene, region: Region | None, gsd_m: float) -> dict[str, Any]:
    """Return a perfect ``detect_change`` in the region: ponds with an event changed; water counts on both dates."""
    was, now = (int(np.count_nonzero(cut_out(scene.masks[f"water_{name}"], region))) for name in ("before", "after"))
    changed = np.zeros(scene.masks["water_before"].shape, np.bool_)
    events: list[str] = []
    for pond in _ponds(scene):
        if cut_out(pond, region).any():
            event, part = _event(scene, pond)
            events.append(event)
            changed |= part
    event = next((event for event in events if event != "none"), "none")
    delta_pct = round_significant(100 * (now - was) / was, _DIGITS) if was else None
    water = {"event": event, "area_before_px": was, "area_after_px": now, "delta_pct": delta_pct}
    return {**change_truth(cut_out(changed, region), gsd_m, pond=water), "changed": event != "none"}


def _ponds(scene: Scene) -> list[Mask]:
    import cv2

    either = scene.masks["basins_before"] | scene.masks["basins_after"]
    count, labels = cv2.connectedComponents(either.astype(np.uint8), connectivity=8)
    return [np.asarray(labels == number) for number in range(1, count)]


def _event(scene: Scene, pond: Mask) -> tuple[str, Mask]:
    wet = [(scene.masks[f"water_{name}"] > 0) & pond for name in ("before", "after")]
    event = _EVENTS[bool(wet[0].any()), bool(wet[1].any())]
    dug = [bool((scene.masks[f"basins_{name}"] > 0)[pond].any()) for name in ("before", "after")]
    if dug == [False, True]:
        event = "constructed"
    elif dug == [True, False]:
        event = "demolished"
    return event, wet[0] | wet[1] if event != "none" else np.zeros_like(pond)


def _around_a_pond(rng: np.random.Generator, scene: Scene) -> tuple[MarkShape, Box]:
    """Return a mark around a single pond, preferably one with an event; anywhere if no pond can be marked."""
    rows, columns = scene.masks["water_before"].shape
    ponds = _ponds(scene)
    order = sorted(ponds, key=lambda pond: (_event(scene, pond)[0] == "none") == (rng.uniform() < 0.8))
    shapes: tuple[MarkShape, ...]
    for pond in order:
        left, top, right, bottom = bounds(pond)
        shapes = ("ellipse", "box") if rng.uniform() < 0.6 else ("box",)
        for shape in shapes:
            free = int(rng.integers(10, 22))
            x0, y0, x1, y1 = box = (left - free, top - free, right + free, bottom + free)
            # An ellipse through the corners of a box extends a fifth of its sides further.
            more = 0.21 if shape == "ellipse" else 0.0
            dx, dy = more * (x1 - x0) + 6, more * (y1 - y0) + 6
            if x0 - dx < 0 or y0 - dy < 0 or x1 + dx >= columns or y1 + dy >= rows:
                continue
            reach = (slice(int(y0 - dy), int(y1 + dy)), slice(int(x0 - dx), int(x1 + dx)))
            if not any(other[reach].any() for other in ponds if other is not pond):
                return shape, box
    x0 = y0 = width = height = 0
    for _ in range(50):
        width, height = int(rng.integers(70, 130)), int(rng.integers(70, 130))
        x0, y0 = int(rng.integers(8, columns - width - 8)), int(rng.integers(8, rows - height - 8))
        if not any(cut_out(pond, (x0 - 8, y0 - 8, x0 + width + 8, y0 + height + 8)).any() for pond in ponds):
            break
    return "box", (x0, y0, x0 + width, y0 + height)


def _farmland(number: int, look: Look, note: str) -> SceneKind:
    return SceneKind(number, ("farmland",), partial(_draw_farmland, look), partial(_farmland_subjects, note))


FARMLAND_AERIAL = _farmland(2, "aerial", "Picture from the air")
FARMLAND_SATELLITE = _farmland(3, "satellite", "Satellite picture")
PONDS = SceneKind(4, ("pond", "pond_water"), _draw_ponds, _pond_subjects)
