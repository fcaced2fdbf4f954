"""Drawn tracts of land, old and young stands and open ground, with models of how tall all that grows is."""

from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.scenes.marks import STROKE_COLOURS, Box, marked
from agrotools.build.scenes.scene import Difficulty, save_heights, save_picture
from agrotools.build.scenes.stands import make_tract
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.field.canopy import height_truth
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import Arguments, SampleFile
from agrotools.tools.result import round_significant

NAME = "tracts"
STANDS_FOR = "open_canopy"
TEMPLATES = ("tracts",)

_TRACTS = {"whole": 4, "marked": 2}
_BREAK_M = 2.0


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """Tracts, whole or with a mark. ``record["tracts"]``: files, mark, and what a perfect tool says of each."""
    rng = np.random.default_rng([seed, difficulty, 72])
    # Neighbouring seeds take turns, and so do seeds of one difficulty.
    mode = ("whole", "marked", "whole", "whole", "marked")[(seed + seed // 4) % 5]
    tracts: list[JsonValue] = []
    for number in range(_TRACTS[mode]):
        scene = make_tract(16 * seed + number, difficulty)
        picture, mark, region = scene.images["rgb"], None, None
        known, gsd_m = scene.masks["heights"], float(scene.sidecar["gsd_m"])
        if mode == "marked":
            colour = STROKE_COLOURS[int(rng.integers(len(STROKE_COLOURS)))]
            picture, mark = marked(rng, picture, _part_of(rng, known), "box", colour)
            region = cast(Box, tuple(mark["regions"][0]["inner_box"]))
        save_picture(folder / f"picture_{number}.jpg", picture, int(rng.integers(86, 94)))
        save_heights(folder / f"heights_{number}.tif", scene.images["chm"], gsd_m)
        truth = height_truth(known, region, gsd_m)
        x0, y0, x1, y1 = region or (0, 0, known.shape[1], known.shape[0])
        part = known[y0:y1, x0:x1].astype(np.float64)
        truth["mean_canopy_m"] = round_significant(float(part[part >= _BREAK_M].mean()), 6)
        tracts.append(
            {
                "picture": f"picture_{number}.jpg",
                "heights": f"heights_{number}.tif",
                "gsd_m": gsd_m,
                "size": [known.shape[1], known.shape[0]],
                "mark": mark,
                "truth": truth,
            }
        )
    return {"mode": mode, "tracts": tracts}


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """``tract``: what grows on all of it; ``tract_marked``: what grows inside the mark on its picture."""
    tracts = cast("list[dict[str, Any]]", drawn.record["tracts"])
    pictures = [
        originals.file(drawn.folder / one["picture"], gsd_m=one["gsd_m"], note="The land from straight above.")
        for one in tracts
    ]
    note = "Heights above ground of the same land, pixel by pixel, one band, metres."
    models = [originals.heights(drawn.folder / one["heights"], one["size"], one["gsd_m"], note) for one in tracts]

    def files(index: int, number: int) -> tuple[SampleFile, SampleFile]:
        return named(pictures[index], "image", number), named(models[index], "heights", number)

    def tract(index: int, number: int) -> Thing:
        # The heights alone: what is asked of them cannot be seen in a picture.
        model = files(index, number)[1]
        thought = f"I need the heights in {model.name}."
        truth = tracts[index]["truth"]
        return Thing((model,), "estimate_canopy_height", {"chm": model.name}, truth, model.name, thought)

    def tract_marked(index: int, number: int) -> Thing:
        (picture, model), facts = files(index, number), tracts[index]
        look = PlannedCall(
            "extract_marked_region",
            {"image": picture.name},
            facts["mark"],
            thought=f"I need to know where the mark in {picture.name} lies.",
        )
        arguments: Arguments = {"chm": model.name, "region": ref(0, "regions[0].inner_box")}
        thought = f"Now the heights of that part in {model.name}."
        words = {"colour": facts["mark"]["regions"][0]["color"], "model": model.name}
        return Thing(
            (picture, model), "estimate_canopy_height", arguments, facts["truth"], picture.name, thought, words,
            before=(look,),
        )  # fmt: skip

    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty}
    of, thing = ("tract", tract) if drawn.record["mode"] == "whole" else ("tract_marked", tract_marked)
    return [Subject(f"{drawn.name}-{drawn.seed}-{of}", len(tracts), thing, metadata, of=of)]


def _part_of(rng: np.random.Generator, heights: Any) -> Box:
    """A rectangle of a third to a half of each side in which something grows."""
    rows, columns = heights.shape
    best: Box = (0, 0, 0, 0)
    for _ in range(20):
        width, height = (round(side * rng.uniform(0.33, 0.5)) for side in (columns, rows))
        x0, y0 = int(rng.integers(8, columns - width - 8)), int(rng.integers(8, rows - height - 8))
        best = (x0, y0, x0 + width, y0 + height)
        if (heights[y0 : y0 + height, x0 : x0 + width] >= _BREAK_M).mean() > 0.08:
            break
    return best
