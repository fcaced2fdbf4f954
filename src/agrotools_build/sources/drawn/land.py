"""Drawn land from above: trees to count, tracts whose heights are measured, and land on two dates.

Pairs of dates show lost cropland, its new use and place, or farm ponds, their events and their water.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.calling.result import round_significant
from agrotools.core import Arguments, SampleFile
from agrotools.vision.reading import bounds
from agrotools_build.area_truth import Region, cut_out
from agrotools_build.scenes.farmland import BECOMES, Becomes, Look, make_farmland_pair
from agrotools_build.scenes.marks import (
    Box,
    MarkShape,
    StrokeColour,
    draw_colour,
    grown,
    marked,
    random_box,
)
from agrotools_build.scenes.ponds import EVENTS, PondEvent, make_pond_pair
from agrotools_build.scenes.scene import Difficulty, Scene, save_picture
from agrotools_build.scenes.stands import BlockKind, make_block, make_tract
from agrotools_build.sources.drawn import (
    SHARES_WITH_MARK,
    DrawnScene,
    Only,
    SceneKind,
    measured_in_mark,
    save_heights,
    turn_of,
)
from agrotools_build.sources.land import (
    BREAK_M,
    LEAST_SITE_PX,
    change_truth,
    height_truth,
    heights_thing,
    look_closer,
    site_truth,
)
from agrotools_build.sources.part import TABLES, Originals, named
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject

MODES_OF_BLOCKS, _BLOCKS, _WITH_BOX = ("pictures", "heights", "heights"), 4, 0.5
"""Blocks of a subject: pictures only, or with height models, some of which have a box in the picture."""
ORCHARD_PESTS = [
    (crop, pest, entry)
    for crop, pests in TABLES["orchard_pests"].items()
    for pest, entry in pests.items()
]
"""Crops and pests that a question about an orchard names, with the entry of the pest in the knowledge base: to read all
entries takes longer than to draw a scene."""
_DIGITS = 6
_BLOCK_NOTE = (
    "Trees from straight above. "
    "A tree counts if its centre is in the picture and, where a box is drawn, in the box."
)
_PLOT_RULE = "Where a plot is outlined in the picture, only that plot is meant."
_PLOT_SHARES, _PLOT_TRIES, _TELLING_PCT = (0.3, 0.6), 200, 4.0
"""Sides of an outlined plot as shares of the picture's, boxes tried, and least difference of its cover, points."""


def _draw_blocks(
    seed: int, difficulty: Difficulty, folder: Path, only: Only
) -> dict[str, JsonValue]:
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
        block: dict[str, Any] = {
            "picture": f"picture_{number}.jpg",
            "trees": scene.truth["trees"],
            "mark": mark,
        }
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
    crop, pest, entry = "", "", ""
    if kind == "orchard":
        crop, pest, entry = ORCHARD_PESTS[drawn.seed % len(ORCHARD_PESTS)]
    words = {"kind": kind, "crop": crop, "pest": pest, "entry": entry}
    files: list[dict[str, SampleFile]] = []
    for one in blocks:
        files.append(
            {
                "image": originals.file(
                    drawn.folder / one["picture"], gsd_m=one["gsd_m"], note=_BLOCK_NOTE
                )
            }
        )
        if "heights" in one:
            path = drawn.folder / one["heights"]
            files[-1]["heights"] = originals.heights(path, one["chm_size"], one["chm_gsd_m"], note)

    def block(index: int, number: int) -> Thing:
        image, *models = shown = tuple(
            named(file, stem, number) for stem, file in files[index].items()
        )
        arguments: dict[str, Any] = {"image": image.name, "target": "tree"}
        if models:
            arguments["chm"] = models[0].name
        thought, mark = (
            f"I need to know how many trees there are in {image.name}.",
            blocks[index]["mark"],
        )
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
    tall = (
        round_significant(float(np.median(heights)), _DIGITS)
        if heights and "heights" in facts
        else None
    )
    return {
        "count": len(heights),
        "density_per_ha": round_significant(len(heights) / area_ha, _DIGITS),
        "median_height_m": tall,
        "gsd_m": facts["gsd_m"],
    }


def _draw_tracts(
    seed: int, difficulty: Difficulty, folder: Path, only: Only
) -> dict[str, JsonValue]:
    """Draw pictures and heights of tracts. ``record["tracts"]``: files, mark, and perfect result of each."""
    rng = np.random.default_rng([seed, difficulty, 72])
    outlined = float(rng.choice(SHARES_WITH_MARK))
    tracts: list[JsonValue] = []
    for number in range(4):
        name, picture_name = f"heights_{number}.tif", f"picture_{number}.jpg"
        if not (only(name) or only(picture_name)):
            continue
        rng = np.random.default_rng([seed, difficulty, 72, 1 + number])
        scene = make_tract(16 * seed + number, difficulty)
        known, gsd_m = scene.masks["heights"], float(scene.sidecar["gsd_m"])
        save_heights(folder / name, scene.images["chm"], gsd_m)
        picture = scene.images["rgb"]
        mark: dict[str, Any] | None = None
        if rng.uniform() < outlined and (plot := _telling_plot(rng, known, gsd_m)):
            picture, mark = marked(rng, picture, plot, "box", draw_colour(rng))
        save_picture(folder / picture_name, picture, int(rng.integers(90, 96)))
        region = mark["regions"][0]["inner_box"] if mark else None
        tracts.append(
            {
                "heights": name,
                "picture": picture_name,
                "mark": mark,
                "gsd_m": gsd_m,
                "size": [known.shape[1], known.shape[0]],
                "truth": _tract_truth(known, region, gsd_m),
            }
        )
    return {"tracts": tracts}


def _tract_truth(known: NDArray[np.float32], region: Region | None, gsd_m: float) -> dict[str, Any]:
    truth = height_truth(known, region, gsd_m)
    inside = cut_out(known, region)
    canopy = inside[inside >= BREAK_M].astype(np.float64)
    truth["mean_canopy_m"] = round_significant(float(canopy.mean()), _DIGITS)
    return truth


def _telling_plot(rng: np.random.Generator, known: NDArray[np.float32], gsd_m: float) -> Box | None:
    """Return a box whose canopy height and cover clearly differ from those of the tract; None if there is none."""
    whole = _tract_truth(known, None, gsd_m)

    def suits(box: Box) -> bool:
        inside = cut_out(known, box)
        if not 0.05 < float((inside >= BREAK_M).mean()) < 1:
            return False
        truth = _tract_truth(known, box, gsd_m)
        higher_m = abs(truth["mean_canopy_m"] - whole["mean_canopy_m"])
        denser_pct = abs(truth["cover_pct"] - whole["cover_pct"])
        return higher_m >= max(0.7, 0.14 * truth["mean_canopy_m"]) and denser_pct >= _TELLING_PCT

    box = random_box(rng, known.shape, _PLOT_SHARES, suits, tries=_PLOT_TRIES)
    return box if suits(box) else None


def _tract_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return the subject of a scene. The answers cannot be seen in the picture, which may outline a plot."""
    tracts = cast("list[dict[str, Any]]", drawn.record["tracts"])
    note = (
        f"Heights above ground, one band, metres, of the picture of the same number. {_PLOT_RULE}"
    )
    models = [
        originals.heights(drawn.folder / one["heights"], one["size"], one["gsd_m"], note)
        for one in tracts
    ]
    pictures = [
        originals.file(
            drawn.folder / one["picture"],
            gsd_m=one["gsd_m"],
            note=f"Woodland from straight above. {_PLOT_RULE}",
        )
        for one in tracts
    ]

    def tract(index: int, number: int) -> Thing:
        heights, picture = (
            named(models[index], "heights", number),
            named(pictures[index], "image", number),
        )
        thing = replace(heights_thing(heights, tracts[index]["truth"]), files=(picture, heights))
        if (mark := tracts[index]["mark"]) is None:
            return thing
        question = f"where the outlined plot in {picture.name} lies"
        thought = f"Now the heights of that plot in {heights.name}."
        return measured_in_mark(thing, picture.name, mark, question, thought)

    return [drawn.subject("tract", len(tracts), tract, "tract")]


_PAIRS = {"one": 1, "places": 4, "marked": 2}
"""Number of pairs of a subject, by mode."""
_FARMLAND_MODES = ("one", "marked", "one", "places", "marked")
_POND_MODES = ("one", "marked", "places", "one")
_POND_RULE = (
    "Where a place is outlined in the picture of the first date, only a pond there is meant."
)
_PONDS_TRIED = 8
"""Scenes drawn at most until the outline in one decides the answer."""
_WATER_BESIDE, _WATER_BESIDE_PX = 0.35, 300
"""Least later water of other ponds: as a share of that of an outlined one, which is right within 0.15; in pixels."""
_OUTLINE_FREE_PX = 18, 30
"""Distance of an outline from its pond: a bank is about 10 px wide, and it must be seen whether there is one."""
_OUTLINED_NONE = {"one": 0.3, "places": 0.65}
"""Shares of outlined ponds to which nothing happens, by mode: water can be compared if it is there on both dates."""
_RATIOS_APART = 0.2
"""Least difference of the shares of water that remain in an outlined pond and in all; they are right within 0.15."""
_STRANGE = 8
"""First of the seeds of a scene for places that take the place of another; there are fewer pairs than that."""
_DIGITS = 6
_ALONE: tuple[Becomes | Literal["none"], ...] = (
    "building", "building", "building", "bare", "water", "forest", "road", "none", "none",
)  # fmt: skip
"""Frequencies of events in subjects of a single pair."""
_EVENTS = {
    (False, False): "none",
    (True, True): "none",
    (True, False): "dried",
    (False, True): "wetted",
}

Mask = NDArray[np.bool_]


def _draw_pairs(
    modes: Sequence[str], key: int, make: Callable[[np.random.Generator, int, Difficulty, str], Scene],
    place: Callable[[np.random.Generator, Scene], tuple[StrokeColour, MarkShape, Box]],
    truth: Callable[[Scene, Region | None, float], dict[str, Any]],
    seed: int, difficulty: Difficulty, folder: Path, only: Only,
) -> dict[str, JsonValue]:  # fmt: skip
    """Draw pairs of pictures. ``record["pairs"]``: files, mark (at a ``place``) and perfect result of each."""
    mode = turn_of(seed, modes)
    pairs: list[JsonValue] = []
    for number in range(_PAIRS[mode]):
        names = {date: f"{date}_{number}.jpg" for date in ("before", "after")}
        elsewhere = f"elsewhere_{number}.jpg"
        if not any(map(only, (*names.values(), elsewhere))):
            continue
        rng = np.random.default_rng([seed, difficulty, key, 1 + number])
        scene = make(rng, 16 * seed + number, difficulty, mode)
        pictures, mark, region = {date: scene.images[date] for date in names}, None, None
        if mode == "marked":
            colour, shape, inside = place(rng, scene)
            pictures["before"], mark = marked(rng, pictures["before"], inside, shape, colour)
            region = mark["regions"][0]["inner_box"]
        quality = int(rng.integers(88, 95))
        for date, name in names.items():
            save_picture(folder / name, pictures[date], quality)
        if only(elsewhere):
            # The second date of a place that is in no question, so that only what is shown tells that it is another.
            strange_seed = 16 * seed + _STRANGE + number
            strange = make(
                np.random.default_rng([strange_seed, key]), strange_seed, difficulty, mode
            )
            save_picture(folder / elsewhere, strange.images["after"], quality)
        gsd_m = float(scene.sidecar["gsd_m"])
        pairs.append({**names, "gsd_m": gsd_m, "mark": mark, **truth(scene, region, gsd_m)})
    return {"mode": mode, "pairs": pairs}


class _Compared:
    """Pairs of pictures of a scene, measured by ``detect_change``."""

    def __init__(
        self,
        drawn: DrawnScene,
        originals: Originals,
        pairs: list[dict[str, Any]],
        note: str,
        target: str,
        question: str,
        rule: str = "",
    ) -> None:
        self.pairs = pairs
        self._target, self._question = target, question
        self._folder, self._originals = drawn.folder, originals
        self._files = [
            {
                date: originals.file(
                    drawn.folder / one[date],
                    gsd_m=one["gsd_m"],
                    note=f"{note}, {order} date. {rule}".rstrip(),
                )
                for date, order in (("before", "first"), ("after", "second"))
            }
            for one in self.pairs
        ]

    def thing(self, index: int, number: int) -> Thing:
        pair, gsd_m = self.pairs[index], self.pairs[index]["gsd_m"]
        files = tuple(named(file, date, number) for date, file in self._files[index].items())
        before, after = (file.name for file in files)
        arguments: Arguments = {"before": before, "after": after, "target": self._target}
        words = {
            "before": before,
            "after": after,
            "gsd_m": f"{round_significant(gsd_m, 4):g}",
            "metres": f"{gsd_m:g}",
        }
        words["least"] = str(LEAST_SITE_PX)
        thought = f"I need to know {self._question} between {before} and {after}."
        return Thing(
            files, "detect_change", arguments, pair["change"], f"site {number}", thought, words
        )

    def another_place(self) -> dict[str, dict[str, SampleFile]]:
        """Return the second date of another place for each pair, as ``instead`` of a subject."""
        strange: dict[str, SampleFile] = {}
        for number, files in enumerate(self._files):
            own = files["after"]
            drawn = self._originals.file(self._folder / f"elsewhere_{number}.jpg")
            seen = {"path": drawn.path, "sha256": drawn.sha256}
            strange[own.path] = own.model_copy(update=seen)
        return {"another_place": strange}

    def in_mark(self, thought: str, index: int, number: int) -> Thing:
        """Return the part of a pair inside the mark on its first picture."""
        thing = self.thing(index, number)
        before = thing.files[0].name
        return measured_in_mark(
            thing, before, self.pairs[index]["mark"], f"what is marked in {before}", thought
        )


def _farmland_pair(
    look: Look, rng: np.random.Generator, seed: int, difficulty: Difficulty, mode: str
) -> Scene:
    becomes = _ALONE[int(rng.integers(len(_ALONE)))] if mode == "one" else None
    return make_farmland_pair(seed, difficulty, look, becomes)


def _farmland_truth(scene: Scene, region: Region | None, gsd_m: float) -> dict[str, Any]:
    lost = scene.masks["lost"]
    inside = cut_out(lost, region)
    kinds = [BECOMES[int(value) - 1] for value in np.unique(inside) if value]
    px = int(np.count_nonzero(inside))
    loss = {"loss_px": px, "loss_area_m2": round_significant(px * gsd_m**2, _DIGITS)}
    transition = f"cropland->{kinds[0]}" if kinds else None
    return {
        "becomes": scene.truth["becomes"],
        "change": change_truth(inside > 0, gsd_m, **loss, dominant_transition=transition),
        "sites": site_truth(lost > 0, LEAST_SITE_PX, gsd_m),
    }


def _farmland_subjects(note: str, drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return ``field_pair`` (a whole pair), ``field_sites``, ``field_kind`` (a closer look), or ``field_marked``."""
    pairs = cast("list[dict[str, Any]]", drawn.record["pairs"])
    compared = _Compared(drawn, originals, pairs, note, "farmland", "what cropland was lost")

    def field_sites(index: int, number: int) -> Thing:
        thing = compared.thing(index, number)
        thought = "Each piece of the map of change is a site; now their number and sizes."
        look = look_closer(thing.files[1].name, "shape", pairs[index]["sites"], thought)
        return replace(
            thing, arguments={**thing.arguments, "min_area_px": LEAST_SITE_PX}, closer=(look,)
        )

    def field_kind(index: int, number: int) -> Thing:
        thing, becomes = compared.thing(index, number), pairs[index]["becomes"]
        truth: dict[str, JsonValue] = {
            "class_pcts": {kind: 100.0 if kind == becomes else 0.0 for kind in BECOMES}
        }
        thought = "Now what lies there on the second date."
        return replace(
            thing, closer=(look_closer(thing.files[1].name, "landcover", truth, thought),)
        )

    mode = str(drawn.record["mode"])
    kinds: dict[str, Callable[[int, int], Thing]] = {"field_pair": compared.thing}
    if mode == "marked":
        kinds = {"field_marked": partial(compared.in_mark, "Now what was lost inside the mark.")}
    elif mode == "one" and pairs[0]["becomes"] != "none":
        kinds["field_kind"] = field_kind
        if pairs[0]["becomes"] != "road":
            kinds["field_sites"] = field_sites
    variant = str(pairs[0]["becomes"]) if mode == "one" else "mixed"
    instead = compared.another_place()
    return [
        replace(drawn.subject(of, len(pairs), thing, of, variant=variant), instead=instead)
        for of, thing in kinds.items()
    ]


def _parcel(rng: np.random.Generator, scene: Scene) -> tuple[StrokeColour, MarkShape, Box]:
    """Return a mark around a rectangle; in most pairs it contains lost cropland, in others none."""
    colour, with_loss, lost = draw_colour(rng), rng.uniform() < 0.65, scene.masks["lost"]

    def suits(box: Box) -> bool:
        share = float((cut_out(lost, box) > 0).mean())
        return share > 0.12 if with_loss else share == 0

    return colour, "box", random_box(rng, lost.shape, (0.25, 0.45), suits, tries=60)


def _pond_pair(_: np.random.Generator, seed: int, difficulty: Difficulty, __: str) -> Scene:
    return make_pond_pair(seed, difficulty)


def _draw_ponds(
    seed: int, difficulty: Difficulty, folder: Path, only: Only
) -> dict[str, JsonValue]:
    """Draw pairs of ponds. ``record["outlined"]``: for each pair, one to show in its place, or None.

    There, one of several ponds with events of their own is outlined; the others would give another answer.
    """
    record = _draw_pairs(
        _POND_MODES, 74, _pond_pair, _mark_on_pond, _pond_truth, seed, difficulty, folder, only
    )
    mode = str(record["mode"])
    share = float(np.random.default_rng([seed, difficulty, 75]).choice(SHARES_WITH_MARK))
    numbers = range(_PAIRS[mode] if mode != "marked" else 0)
    outlined: list[JsonValue] = [
        _draw_outlined(
            np.random.default_rng([seed, difficulty, 75, 1 + number]),
            share,
            _OUTLINED_NONE[mode],
            number,
            difficulty,
            folder,
            only,
        )
        for number in numbers
    ]
    return {**record, "outlined": outlined}


def _draw_outlined(
    rng: np.random.Generator,
    share: float,
    unchanged: float,
    number: int,
    difficulty: Difficulty,
    folder: Path,
    only: Only,
) -> dict[str, JsonValue] | None:
    """Draw, with probability ``share``, a pair in which a pond is outlined; None if there is none that decides.

    ``unchanged``: probability that nothing happens to that pond.
    """
    names = {date: f"outlined_{date}_{number}.jpg" for date in ("before", "after")}
    if rng.uniform() >= share or not any(map(only, names.values())):
        return None
    changes: list[PondEvent] = [event for event in EVENTS if event != "none"]
    change = changes[int(rng.integers(len(changes)))]
    wanted: PondEvent = "none" if rng.uniform() < unchanged else change
    for _ in range(_PONDS_TRIED):
        scene = make_pond_pair(int(rng.integers(2**31)), difficulty, wanted, others_change=True)
        gsd_m = float(scene.sidecar["gsd_m"])
        if (found := _deciding_mark(rng, scene, wanted, gsd_m)) is None:
            continue
        shape, box = found
        colour, quality = draw_colour(rng), int(rng.integers(88, 95))
        picture, mark = marked(rng, scene.images["before"], box, shape, colour)
        save_picture(folder / names["before"], picture, quality)
        save_picture(folder / names["after"], scene.images["after"], quality)
        truth = _pond_truth(scene, mark["regions"][0]["inner_box"], gsd_m)
        return {**names, "gsd_m": gsd_m, "mark": mark, **truth}
    return None


def _deciding_mark(
    rng: np.random.Generator, scene: Scene, event: PondEvent, gsd_m: float
) -> tuple[MarkShape, Box] | None:
    """Return a mark around a pond with this event; None unless other ponds have another one, and other water."""
    ponds = _ponds(scene)
    for place in rng.permutation(len(ponds)).tolist():
        found = _mark_around(rng, ponds[place], ponds, _OUTLINE_FREE_PX)
        if found is None or _event(scene, ponds[place])[0] != event:
            continue
        others = {_event(scene, pond)[0] for pond in ponds if pond is not ponds[place]}
        inside = _pond_truth(scene, found[1], gsd_m)["change"]["pond"]
        if others - {event} and _water_differs(
            inside, _pond_truth(scene, None, gsd_m)["change"]["pond"]
        ):
            return found
    return None


def _water_differs(inside: Mapping[str, Any], everywhere: Mapping[str, Any]) -> bool:
    """Return True if the later water of an outlined pond, and its change, differ from those of all ponds."""
    beside_px = everywhere["area_after_px"] - inside["area_after_px"]
    if beside_px < max(_WATER_BESIDE_PX, _WATER_BESIDE * inside["area_after_px"]):
        return False
    if not inside["area_before_px"]:
        return True
    remain = [one["area_after_px"] / one["area_before_px"] for one in (inside, everywhere)]
    return abs(remain[0] - remain[1]) >= _RATIOS_APART * max(remain)


def _pond_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return ``pond`` (the event in a pair), ``pond_water`` (the water of each), or ``pond_marked`` (inside a mark).

    Of the first two, only the outlined pond is meant where there is one.
    """
    pairs = cast("list[dict[str, Any]]", drawn.record["pairs"])
    instead_of = cast("list[dict[str, Any] | None]", drawn.record["outlined"])
    marked_mode = drawn.record["mode"] == "marked"
    if not marked_mode:
        pairs = [other or pair for pair, other in zip(pairs, instead_of, strict=True)]
    compared = _Compared(
        drawn, originals, pairs, "Seen from above", "pond", "what became of the ponds",
        rule="" if marked_mode else _POND_RULE,
    )  # fmt: skip
    in_mark = partial(compared.in_mark, "Now what became of the pond inside the mark.")

    def pond(index: int, number: int) -> Thing:
        return (compared.thing if pairs[index]["mark"] is None else in_mark)(index, number)

    kinds: Mapping[str, Callable[[int, int], Thing]] = {
        "one": {"pond": pond, "pond_water": pond},
        "places": {"pond_water": pond},
        "marked": {"pond_marked": in_mark},
    }[str(drawn.record["mode"])]
    instead = compared.another_place()
    return [
        replace(drawn.subject(of, len(compared.pairs), thing, of), instead=instead)
        for of, thing in kinds.items()
    ]


def _pond_truth(scene: Scene, region: Region | None, gsd_m: float) -> dict[str, Any]:
    """Return a perfect ``detect_change`` in the region: ponds with an event changed; water counts on both dates."""
    was, now = (
        int(np.count_nonzero(cut_out(scene.masks[f"water_{name}"], region)))
        for name in ("before", "after")
    )
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
    return {
        "change": {
            **change_truth(cut_out(changed, region), gsd_m, pond=water),
            "changed": event != "none",
        }
    }


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


def _mark_on_pond(rng: np.random.Generator, scene: Scene) -> tuple[StrokeColour, MarkShape, Box]:
    """Return a mark around a single pond, preferably one with an event; anywhere if no pond can be marked."""
    shape, box = _around_a_pond(rng, scene)
    return draw_colour(rng), shape, box


def _around_a_pond(rng: np.random.Generator, scene: Scene) -> tuple[MarkShape, Box]:
    rows, columns = scene.masks["water_before"].shape
    ponds = _ponds(scene)
    order = sorted(
        ponds, key=lambda pond: (_event(scene, pond)[0] == "none") == (rng.uniform() < 0.8)
    )
    for pond in order:
        if (found := _mark_around(rng, pond, ponds)) is not None:
            return found
    box = (0, 0, 0, 0)
    for _ in range(50):
        width, height = int(rng.integers(70, 130)), int(rng.integers(70, 130))
        x0, y0 = int(rng.integers(8, columns - width - 8)), int(rng.integers(8, rows - height - 8))
        box = (x0, y0, x0 + width, y0 + height)
        if not any(cut_out(pond, grown(box, 8)).any() for pond in ponds):
            break
    return "box", box


def _mark_around(
    rng: np.random.Generator, pond: Mask, ponds: Sequence[Mask], free_px: tuple[int, int] = (10, 22)
) -> tuple[MarkShape, Box] | None:
    """Return a mark around one of the ponds; None if it would leave the picture or meet another pond.

    ``free_px``: range of the distance between pond and mark.
    """
    rows, columns = pond.shape
    left, top, right, bottom = bounds(pond)
    shapes: tuple[MarkShape, ...] = ("ellipse", "box") if rng.uniform() < 0.6 else ("box",)
    for shape in shapes:
        free = int(rng.integers(*free_px))
        x0, y0, x1, y1 = box = (left - free, top - free, right + free, bottom + free)
        # An ellipse through the corners of a box extends a fifth of its sides further.
        more = 0.21 if shape == "ellipse" else 0.0
        dx, dy = more * (x1 - x0) + 6, more * (y1 - y0) + 6
        if x0 - dx < 0 or y0 - dy < 0 or x1 + dx >= columns or y1 + dy >= rows:
            continue
        reach = (slice(int(y0 - dy), int(y1 + dy)), slice(int(x0 - dx), int(x1 + dx)))
        if not any(other[reach].any() for other in ponds if other is not pond):
            return shape, box
    return None


def _farmland(number: int, look: Look, note: str) -> SceneKind:
    draw = partial(
        _draw_pairs, _FARMLAND_MODES, 73, partial(_farmland_pair, look), _parcel, _farmland_truth
    )
    return SceneKind(number, ("farmland",), draw, partial(_farmland_subjects, note))


BLOCKS = SceneKind(0, ("blocks",), _draw_blocks, _block_subjects)
TRACTS = SceneKind(1, ("tracts",), _draw_tracts, _tract_subjects)
FARMLAND_AERIAL = _farmland(2, "aerial", "Picture from the air")
FARMLAND_SATELLITE = _farmland(3, "satellite", "Satellite picture")
PONDS = SceneKind(4, ("pond", "pond_water"), _draw_ponds, _pond_subjects)
