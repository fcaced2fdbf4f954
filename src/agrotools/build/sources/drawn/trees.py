"""Drawn trees: blocks of forest or orchard whose trees are counted, and tracts of land whose heights are measured."""

from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.area_truth import Region
from agrotools.build.scenes.marks import draw_colour, marked, random_box
from agrotools.build.scenes.scene import Difficulty, save_picture
from agrotools.build.scenes.stands import BlockKind, make_block, make_tract
from agrotools.build.sources.drawn import DrawnScene, Only, SceneKind, measured_in_mark, save_heights, turn_of
from agrotools.build.sources.land import BREAK_M, height_truth, heights_thing
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
