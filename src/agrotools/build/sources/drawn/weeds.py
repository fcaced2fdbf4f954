"""Schematic weeds from above, one to a picture, and pictures of several with one plant outlined.

Drawings: what a tool names right here says nothing of photographs of weeds.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.asking import Subject
from agrotools.build.scenes.grounds import NUISANCES
from agrotools.build.scenes.scene import Difficulty, Scene
from agrotools.build.scenes.weed_plates import make_marked_weeds, make_weed_plate
from agrotools.build.scenes.weed_shapes import WEED_SHAPES
from agrotools.build.sources.drawn import Drawn
from agrotools.build.sources.drawn.marking import INSIDE, outline_call
from agrotools.build.sources.drawn.naming import candidate_of_truth, entry_of, words_of_entry
from agrotools.build.sources.drawn.pictures import save_photo
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates import Thing
from agrotools.core import SampleFile

NAME = "weeds"
STANDS_FOR = "deepweeds"
TEMPLATES = ("drawn_weed",)
BACKENDS = {"identify_weed": "schematic"}
"""The net that knows photographs names no drawings."""

POISONOUS = ("lantana", "rubber_vine", "redroot_pigweed")
HARMLESS = ("chinee_apple", "prickly_acacia", "parkinsonia", "snake_weed", "barnyardgrass")
"""Species whose entry says that they poison cattle, and species of whose entry nobody would take it."""
_PLATES, _MARKED = 4, 2


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """Four pictures of four species, among them one that poisons cattle and one that does not, and two of several."""
    rng = np.random.default_rng([seed, difficulty])
    slugs = [list(WEED_SHAPES)[int(k)] for k in rng.permutation(len(WEED_SHAPES))]
    first = [str(rng.choice(POISONOUS)), str(rng.choice(HARMLESS))]
    plates = [*first, *(slug for slug in slugs if slug not in first)][:_PLATES]
    plates = [plates[int(k)] for k in rng.permutation(_PLATES)]
    marked = [str(rng.choice(POISONOUS)), str(rng.choice(HARMLESS))]
    marked = [marked[int(k)] for k in rng.permutation(_MARKED)]
    return {
        "plates": [
            _stored(folder, f"plate_{k}", make_weed_plate(10 * seed + k, difficulty, slug), difficulty)
            for k, slug in enumerate(plates)
        ],
        "marked": [
            _stored(folder, f"marked_{k}", make_marked_weeds(10 * seed + k, difficulty, slug), difficulty)
            for k, slug in enumerate(marked)
        ],
    }


def subjects(drawn: Drawn, originals: Originals) -> list[Subject]:
    """``drawn_weed``: one species each; ``drawn_weed_marked``: the outlined plant among several."""
    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty, "schematic": True}
    record = cast("dict[str, list[dict[str, Any]]]", drawn.record)

    def files(kind: str, note: str) -> list[tuple[SampleFile, dict[str, Any]]]:
        return [(originals.file(drawn.folder / item["file"], note=note), item) for item in record[kind]]

    plates = files("plates", "Schematic drawing. A plant from above.")
    marked = files("marked", "Schematic drawing. Plants from above; one has a red outline.")

    def plate(index: int, place: int) -> Thing:
        original, item = plates[index]
        file = named(original, "image", place)
        thought = f"I need to know which plant {file.name} shows."
        return Thing((file,), "identify_weed", {"image": file.name}, _truth(item), file.name, thought, _words(item))

    def outlined(index: int, place: int) -> Thing:
        original, item = marked[index]
        file = named(original, "image", place)
        arguments: dict[str, Any] = {"image": file.name, "region": INSIDE}
        thought = f"Now I need to know which plant is inside the outline in {file.name}."
        return Thing(
            (file,), "identify_weed", arguments, _truth(item), file.name, thought, _words(item),
            before=(outline_call(file, item),),
        )  # fmt: skip

    return [
        Subject(f"{drawn.name}-{drawn.seed}-plates", _PLATES, plate, metadata, of="drawn_weed"),
        Subject(f"{drawn.name}-{drawn.seed}-marked", _MARKED, outlined, metadata, of="drawn_weed_marked"),
    ]


def _stored(folder: Path, stem: str, scene: Scene, difficulty: Difficulty) -> dict[str, JsonValue]:
    save_photo(folder / f"{stem}.jpg", scene.images["rgb"], NUISANCES[difficulty].jpeg)
    return {"file": f"{stem}.jpg", **cast("dict[str, JsonValue]", dict(scene.truth))}


def _truth(item: Mapping[str, Any]) -> dict[str, JsonValue]:
    candidate = candidate_of_truth(item["species"], "weed")
    return {
        "candidates": [candidate],
        "best": candidate["kb_id"],
        "kb_id": candidate["kb_id"],
        "species": candidate["scientific_name"],
        "common_name": candidate["common_name"],
        "growth_form": entry_of(item["species"], "weed").taxonomy.growth_form or "unknown",
        "is_weed": True,
        "abstained": False,
    }


def _words(item: Mapping[str, Any]) -> dict[str, str]:
    slug = item["species"]
    toxic = "yes" if slug in POISONOUS else ("no" if slug in HARMLESS else "")
    return {**words_of_entry(slug, "weed"), "toxic": toxic}
