"""Drawn blocks of trees, forest or orchard: how many stand there, in pictures with and without a height model."""

from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.scenes.marks import STROKE_COLOURS, Box, marked
from agrotools.build.scenes.scene import Difficulty, Scene, save_heights, save_picture
from agrotools.build.scenes.stands import BlockKind, make_block
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile
from agrotools.tools.result import round_significant

NAME = "blocks"
STANDS_FOR = "agromind"
TEMPLATES = ("blocks",)

_BLOCKS = {"pictures": 4, "heights": 4, "marked": 2}
"""Number of blocks of a subject: pictures alone, with height models, or with height models and a mark drawn on."""
_DIGITS = 6


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """Blocks of one kind. ``record["blocks"]``: files, trees (as in a scene's truth) and mark of each."""
    rng = np.random.default_rng([seed, difficulty, 71])
    # Neighbouring seeds take turns, and so do seeds of one difficulty.
    mode = list(_BLOCKS)[(seed + seed // 4) % len(_BLOCKS)]
    kind: BlockKind = "orchard" if rng.uniform() < 0.5 else "forest"
    blocks: list[JsonValue] = []
    for number in range(_BLOCKS[mode]):
        scene = make_block(16 * seed + number, difficulty, kind)
        picture, mark = scene.images["rgb"], None
        if mode == "marked":
            picture, mark = marked(rng, picture, _plot_in(rng, scene), "box", _colour(rng))
        save_picture(folder / f"picture_{number}.jpg", picture, int(rng.integers(86, 94)))
        block: dict[str, Any] = {"picture": f"picture_{number}.jpg", "trees": scene.truth["trees"], "mark": mark}
        if mode != "pictures":
            save_heights(folder / f"heights_{number}.tif", scene.images["chm"], scene.sidecar["chm_gsd_m"])
            known = scene.masks["heights"]
            canopy = known[known >= 2.0].astype(np.float64)
            mean = float(canopy.mean()) if canopy.size else None
            block |= {"heights": f"heights_{number}.tif", "chm_gsd_m": scene.sidecar["chm_gsd_m"]}
            block |= {"mean_canopy_m": mean, "chm_size": [known.shape[1], known.shape[0]]}
        size = [picture.shape[1], picture.shape[0]]
        blocks.append({**block, "size": size, "gsd_m": scene.sidecar["gsd_m"]})
    return {"mode": mode, "kind": kind, "blocks": blocks}


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """``block``: its trees; ``block_top``: those above the mean of the canopy; ``block_marked``: those in the mark."""
    blocks = cast("list[dict[str, Any]]", drawn.record["blocks"])
    pictures = [
        originals.file(drawn.folder / one["picture"], gsd_m=one["gsd_m"], note="Trees from straight above.")
        for one in blocks
    ]
    note = "Heights above ground of the same place, one band, metres."
    models = [
        originals.heights(drawn.folder / one["heights"], one["chm_size"], one["chm_gsd_m"], note)
        if "heights" in one
        else None
        for one in blocks
    ]
    mode, kind = cast(str, drawn.record["mode"]), cast(str, drawn.record["kind"])

    def files(index: int, number: int) -> tuple[SampleFile, ...]:
        model = models[index]
        picture = named(pictures[index], "image", number)
        return (picture,) if model is None else (picture, named(model, "heights", number))

    def block(index: int, number: int) -> Thing:
        thing = files(index, number)
        thought = f"I need to know how many trees there are in {thing[0].name}."
        truth = _counted(blocks[index], None)
        return Thing(thing, "count_objects", _asked_of(thing), truth, thing[0].name, thought, {"kind": kind})

    def block_top(index: int, number: int) -> Thing:
        thing, facts = files(index, number), blocks[index]
        mean = cast(float, round_significant(facts["mean_canopy_m"], _DIGITS))
        look = PlannedCall(
            "estimate_canopy_height",
            {"chm": thing[1].name},
            {"mean_canopy_m": mean},
            thought=f"First the mean height of the canopy in {thing[1].name}.",
        )
        arguments: Arguments = {**_asked_of(thing), "min_height_m": ref(0, "mean_canopy_m")}
        thought = f"Now the trees of {thing[0].name} that are taller than that."
        truth = _counted(facts, None, taller_than_m=mean)
        words = {"least": "2", "kind": kind}
        return Thing(thing, "count_objects", arguments, truth, thing[0].name, thought, words, before=(look,))

    def block_marked(index: int, number: int) -> Thing:
        thing, facts = files(index, number), blocks[index]
        mark = facts["mark"]
        look = PlannedCall(
            "extract_marked_region",
            {"image": thing[0].name},
            mark,
            thought=f"I need to know where the mark in {thing[0].name} lies.",
        )
        arguments: Arguments = {**_asked_of(thing), "region": ref(0, "regions[0].inner_box")}
        truth = _counted(facts, cast(Box, tuple(mark["regions"][0]["inner_box"])))
        thought = "Now the trees inside the mark."
        words = {"colour": mark["regions"][0]["color"]}
        return Thing(thing, "count_objects", arguments, truth, thing[0].name, thought, words, before=(look,))

    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty, "kind": drawn.record["kind"]}
    shows = {"pictures": [("block", block)], "marked": [("block_marked", block_marked)]}
    shows["heights"] = [("block", block), ("block_top", block_top)]
    return [
        Subject(f"{drawn.name}-{drawn.seed}-{of}", len(blocks), thing, metadata, of=of) for of, thing in shows[mode]
    ]


def _asked_of(shown: tuple[SampleFile, ...]) -> Arguments:
    arguments: Arguments = {"image": shown[0].name, "target": "tree"}
    return arguments if len(shown) == 1 else {**arguments, "chm": shown[1].name}


def _counted(facts: dict[str, Any], region: Box | None, taller_than_m: float = 0.0) -> dict[str, Any]:
    """Result of a perfect ``count_objects``: trees whose stem stands in the region."""
    x0, y0, x1, y1 = region or (0, 0, *facts["size"])
    heights = [
        height for x, y, height, _ in facts["trees"] if x0 <= x < x1 and y0 <= y < y1 and height >= taller_than_m
    ]
    area_ha = (x1 - x0) * (y1 - y0) * facts["gsd_m"] ** 2 / 10_000
    tall = round_significant(float(np.median(heights)), _DIGITS) if heights and "heights" in facts else None
    return {
        "count": len(heights),
        "density_per_ha": round_significant(len(heights) / area_ha, _DIGITS),
        "median_height_m": tall,
        "gsd_m": facts["gsd_m"],
    }


def _plot_in(rng: np.random.Generator, scene: Scene) -> Box:
    """A rectangle of a quarter to a half of each side."""
    rows, columns = scene.images["rgb"].shape[:2]
    width, height = (round(side * rng.uniform(0.28, 0.5)) for side in (columns, rows))
    x0, y0 = int(rng.integers(8, columns - width - 8)), int(rng.integers(8, rows - height - 8))
    return x0, y0, x0 + width, y0 + height


def _colour(rng: np.random.Generator) -> Any:
    return STROKE_COLOURS[int(rng.integers(len(STROKE_COLOURS)))]
