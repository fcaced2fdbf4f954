"""Potted weeds from the side, week by week, with a disc of known size beside them: height and growth in centimetres."""

from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.scenes.pot_plants import FORMS, draw_growth, make_pot
from agrotools.build.scenes.scene import Difficulty, Scene
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.saving import INSIDE, outline_call, save_photo
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import SampleFile

NAME = "pots"
STANDS_FOR = "weedsense"
TEMPLATES = ("drawn_pot",)

_WEEKS = 4
_LEAST_CM = 2.5
"""Lower plants are a few pixels high: no ruler measures them to a tenth."""
_QUALITY = (95, 92, 85, 75)
_MEASURED = ("height_cm", "width_cm", "area_cm2", "convex_hull_cm2", "solidity")


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """One plant in four weeks, four plants in one week, and two pictures of a pair of which one is outlined."""
    rng = np.random.default_rng([seed, difficulty])
    species = list(FORMS)[int(rng.integers(len(FORMS)))]
    grown = draw_growth(rng)
    low = next(week for week in range(1, 9) if grown.height_cm(week) >= _LEAST_CM)
    weeks = sorted(int(week) for week in rng.choice(np.arange(low, 12), _WEEKS, replace=False))
    heights = [grown.height_cm(week) for week in weeks]
    week = int(rng.integers(5, 9))
    others = [max(_LEAST_CM, draw_growth(rng).height_cm(week)) for _ in range(_WEEKS)]

    def pot(number: int, height: float, beside: float | None = None) -> dict[str, JsonValue]:
        scene = make_pot(16 * seed + number, difficulty, species, height, beside)
        return _stored(folder, f"pot_{number}", scene, difficulty)

    weeks_shown = weeks[1], weeks[3]
    return {
        "species": species,
        "week": week,
        "growth": [{**pot(k, height), "week": weeks[k]} for k, height in enumerate(heights)],
        "pots": [pot(4 + k, height) for k, height in enumerate(others)],
        "marked": [
            {**pot(8 + k, grown.height_cm(each), max(_LEAST_CM, float(rng.uniform(0.55, 1.3)) * grown.height_cm(each))),
             "week": each}
            for k, each in enumerate(weeks_shown)
        ],
    }  # fmt: skip


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """``pot_growth``: one plant in four weeks; ``pot_row``: four plants in one week; ``pot_marked``: the outlined one
    of two, in two weeks."""
    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty}
    record = cast("dict[str, Any]", drawn.record)

    def files(kind: str) -> list[tuple[SampleFile, dict[str, Any]]]:
        return [
            (originals.file(drawn.folder / item["file"], note=_note(item["disc_cm"])), item)
            for item in cast("list[dict[str, Any]]", record[kind])
        ]

    kinds = {kind: files(kind) for kind in ("growth", "pots", "marked")}

    def thing(kind: str, index: int, place: int) -> Thing:
        original, item = kinds[kind][index]
        file = named(original, "image", place)
        week = str(item.get("week", record["week"]))
        arguments: dict[str, Any] = {
            "image": file.name,
            "scale_marker": {"type": "circle", "size_cm": item["disc_cm"]},
        }
        truth: dict[str, Any] = {"plants": [{name: item[name] for name in _MEASURED}]}
        words = {"species": str(record["species"]), "week": week, "disc": f"{item['disc_cm']:g}"}
        thought = f"I need the size of the plant in {file.name}; the disc tells the scale."
        before = ()
        if kind == "marked":
            arguments["region"] = INSIDE
            before = (outline_call(file, item),)
        return Thing(
            (file,), "measure_weed_phenotype", arguments, truth, file.name, thought, words, before=before
        )  # fmt: skip

    stem = f"{drawn.name}-{drawn.seed}"
    return [
        Subject(f"{stem}-growth", _WEEKS, lambda k, n: thing("growth", k, n), metadata, of="pot_growth"),
        Subject(f"{stem}-row", _WEEKS, lambda k, n: thing("pots", k, n), metadata, of="pot_row"),
        Subject(f"{stem}-marked", 2, lambda k, n: thing("marked", k, n), metadata, of="pot_marked"),
    ]


def _note(disc_cm: float) -> str:
    return f"Drawn. A potted weed from the side; the dark disc beside it is {disc_cm:g} cm across."


def _stored(folder: Path, stem: str, scene: Scene, difficulty: Difficulty) -> dict[str, JsonValue]:
    save_photo(folder / f"{stem}.jpg", scene.images["rgb"], _QUALITY[difficulty])
    return {"file": f"{stem}.jpg", **cast("dict[str, JsonValue]", dict(scene.truth))}
