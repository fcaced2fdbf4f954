"""Drawn trees: blocks of forest or orchard whose trees are counted, and tracts of land whose heights are measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.area_truth import Region, cut_out
from agrotools.build.references import PlannedCall, ref
from agrotools.build.scenes.marks import Box, draw_colour, marked, random_box
from agrotools.build.scenes.scene import Difficulty, save_picture
from agrotools.build.scenes.stands import BlockKind, make_block, make_tract
from agrotools.build.sources.drawn import DrawnScene, Only, SceneKind, turn_of
from agrotools.build.sources.drawn.saving import measured_in_mark, save_heights
from agrotools.build.sources.land import BREAK_M, height_truth
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import SampleFile
from agrotools.tools.result import round_significant

_MODES_OF_BLOCKS = {"pictures": 4, "heights": 4, "marked": 2}
"""Number of blocks of a subject: pictures only, with height models, or with height models and a mark."""
_MODES_OF_TRACTS = ("whole", "marked", "whole", "whole", "marked")
_DIGITS = 6


def _draw_blocks(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw blocks of one kind. ``record["blocks"]``: files, trees (as in a scene's truth) and mark of each."""
    rng = np.random.default_rng([seed, difficulty, 71])
    mode = turn_of(seed, list(_MODES_OF_BLOCKS))
    kind: BlockKind = "orchard" if rng.uniform() < 0.5 else "forest"
    blocks: list[JsonValue] = []
    for number in range(_MODES_OF_BLOCKS[mode]):
        if not (only(f"picture_{number}.jpg") or only(f"heights_{number}.tif")):
            continue
        rng = np.random.default_rng([seed, difficulty, 71, 1 + number])
        scene = make_block(16 * seed + number, difficulty, kind)
        picture, mark = scene.images["rgb"], None
        rows, columns = picture.shape[:2]
        if mode == "marked":
            plot = random_box(rng, (rows, columns), (0.28, 0.5))
            picture, mark = marked(rng, picture, plot, "box", draw_colour(rng))
        save_picture(folder / f"picture_{number}.jpg", picture, int(rng.integers(86, 94)))
        block: dict[str, Any] = {"picture": f"picture_{number}.jpg", "trees": scene.truth["trees"], "mark": mark}
        if mode != "pictures":
            gsd_m, known = scene.sidecar["chm_gsd_m"], scene.masks["heights"]
            save_heights(folder / f"heights_{number}.tif", scene.images["chm"], gsd_m)
            canopy = known[known >= BREAK_M].astype(np.float64)
            block |= {"heights": f"heights_{number}.tif", "chm_gsd_m": gsd_m}
            block["mean_canopy_m"] = float(canopy.mean()) if canopy.size else None
            block["chm_size"] = [known.shape[1], known.shape[0]]
        blocks.append({**block, "size": [columns, rows], "gsd_m": scene.sidecar["gsd_m"]})
    return {"mode": mode, "kind": kind, "blocks": blocks}


def _block_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return the subjects of a scene.

    ``block``: all trees of a block; ``block_top``: trees above the mean height of the canopy; ``block_marked``: trees
    inside the mark.
    """
    blocks, kind = cast("list[dict[str, Any]]", drawn.record["blocks"]), str(drawn.record["kind"])
    note = "Heights above ground of the same place, one band, metres."
    files: list[dict[str, SampleFile]] = []
    for one in blocks:
        picture = originals.file(drawn.folder / one["picture"], gsd_m=one["gsd_m"], note="Trees from straight above.")
        files.append({"image": picture})
        if "heights" in one:
            path = drawn.folder / one["heights"]
            files[-1]["heights"] = originals.heights(path, one["chm_size"], one["chm_gsd_m"], note)

    def block(index: int, number: int) -> Thing:
        image, *models = shown = tuple(named(file, stem, number) for stem, file in files[index].items())
        arguments: dict[str, Any] = {"image": image.name, "target": "tree"}
        if models:
            arguments["chm"] = models[0].name
        thought = f"I need to know how many trees there are in {image.name}."
        truth = _counted(blocks[index], None)
        return Thing(shown, "count_objects", arguments, truth, image.name, thought, {"kind": kind})

    def block_top(index: int, number: int) -> Thing:
        thing, facts = block(index, number), blocks[index]
        model, mean = thing.files[1].name, cast(float, round_significant(facts["mean_canopy_m"], _DIGITS))
        thought = f"First the mean height of the canopy in {model}."
        look = PlannedCall("estimate_canopy_height", {"chm": model}, {"mean_canopy_m": mean}, thought=thought)
        return replace(
            thing,
            arguments={**thing.arguments, "min_height_m": ref(0, "mean_canopy_m")},
            truth=_counted(facts, None, taller_than_m=mean),
            thought=f"Now the trees of {thing.called} that are taller than that.",
            words={"least": "2", "kind": kind},
            before=(look,),
        )

    def block_marked(index: int, number: int) -> Thing:
        thing, facts = block(index, number), blocks[index]
        truth = _counted(facts, facts["mark"]["regions"][0]["inner_box"])
        question, thought = f"where the mark in {thing.called} lies", "Now the trees inside the mark."
        return measured_in_mark(thing, thing.called, facts["mark"], question, thought, truth=truth)

    kinds = {
        "pictures": {"block": block},
        "heights": {"block": block, "block_top": block_top},
        "marked": {"block_marked": block_marked},
    }[str(drawn.record["mode"])]
    variant = f"{kind} {'pictures' if drawn.record['mode'] == 'pictures' else 'heights'}"
    return [drawn.subject(of, len(blocks), thing, of, variant=variant) for of, thing in kinds.items()]


def _counted(facts: dict[str, Any], region: Region | None, taller_than_m: float = 0.0) -> dict[str, Any]:
    """Return the result of a perfect ``count_objects``: trees whose stem is in the region."""
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


def _draw_tracts(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw tracts, whole or with a mark. ``record["tracts"]``: files, mark and perfect result of each."""
    mode = turn_of(seed, _MODES_OF_TRACTS)
    tracts: list[JsonValue] = []
    for number in range(2 if mode == "marked" else 4):
        if not (only(f"picture_{number}.jpg") or only(f"heights_{number}.tif")):
            continue
        rng = np.random.default_rng([seed, difficulty, 72, 1 + number])
        scene = make_tract(16 * seed + number, difficulty)
        picture, mark, region = scene.images["rgb"], None, None
        known, gsd_m = scene.masks["heights"], float(scene.sidecar["gsd_m"])
        rows, columns = known.shape
        if mode == "marked":
            colour = draw_colour(rng)

            def is_grown(box: Box, heights: Any = known) -> bool:
                return bool((cut_out(heights, box) >= BREAK_M).mean() > 0.08)

            part = random_box(rng, (rows, columns), (0.33, 0.5), is_grown, tries=20)
            picture, mark = marked(rng, picture, part, "box", colour)
            region = mark["regions"][0]["inner_box"]
        save_picture(folder / f"picture_{number}.jpg", picture, int(rng.integers(86, 94)))
        save_heights(folder / f"heights_{number}.tif", scene.images["chm"], gsd_m)
        heights = cut_out(known, region).astype(np.float64)
        truth = height_truth(known, region, gsd_m)
        truth["mean_canopy_m"] = round_significant(float(heights[heights >= BREAK_M].mean()), _DIGITS)
        files = {"picture": f"picture_{number}.jpg", "heights": f"heights_{number}.tif"}
        tracts.append({**files, "gsd_m": gsd_m, "size": [columns, rows], "mark": mark, "truth": truth})
    return {"mode": mode, "tracts": tracts}


def _tract_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return the subject of a scene: ``tract`` (all of it) or ``tract_marked`` (inside the mark on its picture)."""
    tracts = cast("list[dict[str, Any]]", drawn.record["tracts"])
    note = "Heights above ground of the same land, pixel by pixel, one band, metres."
    pictures = [
        originals.file(drawn.folder / one["picture"], gsd_m=one["gsd_m"], note="The land from straight above.")
        for one in tracts
    ]
    models = [originals.heights(drawn.folder / one["heights"], one["size"], one["gsd_m"], note) for one in tracts]

    def tract(index: int, number: int) -> Thing:
        # Only the heights are shown, because the answers cannot be seen in a picture.
        model = named(models[index], "heights", number)
        thought = f"I need the heights in {model.name}."
        truth = tracts[index]["truth"]
        return Thing((model,), "estimate_canopy_height", {"chm": model.name}, truth, model.name, thought)

    def tract_marked(index: int, number: int) -> Thing:
        thing, picture = tract(index, number), named(pictures[index], "image", number)
        model = thing.called
        thing = replace(thing, files=(picture, *thing.files), called=picture.name, words={"model": model})
        question, thought = f"where the mark in {picture.name} lies", f"Now the heights of that part in {model}."
        return measured_in_mark(thing, picture.name, tracts[index]["mark"], question, thought)

    of, thing = ("tract", tract) if drawn.record["mode"] == "whole" else ("tract_marked", tract_marked)
    return [drawn.subject(of, len(tracts), thing, of)]


BLOCKS = SceneKind(0, "agromind", ("blocks",), _draw_blocks, _block_subjects)
TRACTS = SceneKind(1, "open_canopy", ("tracts",), _draw_tracts, _tract_subjects)
