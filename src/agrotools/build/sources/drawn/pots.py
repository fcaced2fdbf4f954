"""Potted weeds from the side, week by week, next to a disc of known size: height and growth in centimetres."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.scenes.pot_plants import FORMS, draw_growth, make_pot
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import INSIDE, DrawnScene, Only, SceneKind, find_outline, save_jpeg
from agrotools.build.sources.part import Originals, named, photo_thing
from agrotools.build.templates.thing import Subject, Thing
from agrotools.core import SampleFile
from agrotools.knowledge.kb_names import shipped_names

_WEEKS = 4
_WITH_OTHER = 0.5
"""Share of the pictures with another plant beside the one that is asked about."""
_LEAST_CM = 2.5
"""Minimum height; smaller plants are a few pixels high and cannot be measured to a tenth."""
_QUALITY = (95, 92, 85, 75)
_NOTE = (
    "Drawn. Potted weeds from the side: where there are two, the one outlined in red is meant. A dark disc, where "
    "there is one,"
)
_MEASURED = ("height_cm", "width_cm", "area_cm2", "convex_hull_cm2", "solidity")


def _draw(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw one plant in four weeks, and five plants in one week, about half of them outlined beside another plant.

    The fifth plant is as tall as one of the two tallest, within less than can be measured. Each picture is also drawn
    without disc and ruler, as ``bare``.
    """
    rng = np.random.default_rng([seed, difficulty])
    species = list(FORMS)[int(rng.integers(len(FORMS)))]
    grown = draw_growth(rng)
    low = next(week for week in range(1, 9) if grown.height_cm(week) >= _LEAST_CM)
    weeks = sorted(int(week) for week in rng.choice(np.arange(low, 12), _WEEKS, replace=False))
    week = int(rng.integers(5, 9))
    others = [max(_LEAST_CM, draw_growth(rng).height_cm(week)) for _ in range(_WEEKS)]
    close = sorted(others)[-int(rng.integers(1, 3))] * float(rng.uniform(0.99, 1.01))

    def pot(number: int, height: float) -> dict[str, JsonValue]:
        names = {kind: f"{kind}_{number}.jpg" for kind in ("pot", "bare")}
        rng = np.random.default_rng([seed, difficulty, number])
        other = max(_LEAST_CM, float(rng.uniform(0.55, 1.3)) * height) if rng.uniform() < _WITH_OTHER else None
        truth: dict[str, Any] = {}
        for kind, name in names.items():
            if only(name):
                scene = make_pot(16 * seed + number, difficulty, species, height, other, scaled=kind == "pot")
                truth |= scene.truth
                save_jpeg(folder / name, scene.images["rgb"], _QUALITY[difficulty], full_colour=True)
        return {"file": names["pot"], "instead": {"bare": names["bare"]}, **truth}

    return {
        "species": species,
        "week": week,
        "growth": [{**pot(k, grown.height_cm(week)), "week": week} for k, week in enumerate(weeks)],
        "pots": [pot(_WEEKS + k, height) for k, height in enumerate([*others, close])],
    }


def _subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return ``pot_growth`` (one plant in four weeks), ``pot_row`` (four plants in one), ``pot_five`` (one more)."""
    record = cast("dict[str, Any]", drawn.record)
    species = str(record["species"])
    entry = next(iter(shipped_names().all_of_name(species)))

    def subject(items: list[dict[str, Any]], suffix: str, of: str) -> Subject:
        def file_of(item: dict[str, Any], name: str) -> SampleFile:
            # Also said of the picture without the disc, so that only looking at it shows that the scale is unknown.
            return originals.file(drawn.folder / name, note=f"{_NOTE} is {item['disc_cm']:g} cm across.")

        files = [file_of(item, item["file"]) for item in items]
        bare = {file.path: file_of(item, item["instead"]["bare"]) for file, item in zip(files, items, strict=True)}

        def shown(index: int, place: int) -> Thing:
            file, item = named(files[index], "image", place), items[index]
            arguments: dict[str, Any] = {"scale_marker": {"type": "circle", "size_cm": item["disc_cm"]}}
            truth = {"plants": [{name: item[name] for name in _MEASURED}]}
            week = str(item.get("week", record["week"]))
            words = {"species": species, "week": week, "entry": entry.id}
            thought = f"I need the size of the plant in {file.name}; the disc tells the scale."
            if "box" in item:
                arguments |= {"region": INSIDE, "before": (find_outline(file.name, item["box"]),)}
            return photo_thing(file, "measure_weed_phenotype", truth, thought, words, **arguments)

        return replace(drawn.subject(suffix, len(items), shown, of), instead={"bare": bare})

    return [
        subject(record["growth"], "growth", "pot_growth"),
        subject(record["pots"][:_WEEKS], "row", "pot_row"),
        subject(record["pots"], "five", "pot_five"),
    ]


POTS = SceneKind(10, ("drawn_pot",), _draw, _subjects)
