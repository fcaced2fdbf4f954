"""Schematic insects on leaves and cards, mixed catches with one animal outlined, and sticky cards to be counted.

Drawings: what a tool names right here says nothing of photographs of pests.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.asking import Subject
from agrotools.build.scenes.grounds import NUISANCES
from agrotools.build.scenes.insects import SPECIES
from agrotools.build.scenes.pest_plates import COUNTED, make_marked_plate, make_pest_plate, make_trap
from agrotools.build.scenes.scene import Difficulty, Scene
from agrotools.build.sources.drawn import Drawn
from agrotools.build.sources.drawn.marking import INSIDE, outline_call
from agrotools.build.sources.drawn.naming import candidate_of_truth, words_of_entry
from agrotools.build.sources.drawn.pictures import save_photo
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates import Thing
from agrotools.core import SampleFile

NAME = "pests"
STANDS_FOR = "ip102"
TEMPLATES = ("drawn_pest", "drawn_pest_marked", "drawn_trap")
BACKENDS = {"diagnose_pest_disease": "schematic"}
"""No net that knows photographs names drawings."""

BORERS = ("corn_borer", "striped_rice_borer", "yellow_rice_borer")
"""Species whose larvae the knowledge base has in stems of the crop."""
THRESHOLDS: Mapping[str, tuple[str, str, int]] = {
    "flea_beetle": ("tomato plants under six inches tall", "高不足六英寸的番茄苗", 0),
    "english_grain_aphid": ("wheat heads", "麦穗", 0),
    "brown_planthopper": ("rice tillers", "水稻分蘖", 0),
    "tarnished_plant_bug": ("strawberry fruit clusters", "草莓果穗", 1),
}
"""Species with a level for action as animals on each of something: what that is, and how many more than the level there
must be in all (1 where treatment is advised above it, 0 where it is advised from it on)."""
_PLATES, _MARKED, _TRAPS = 4, 2, 4
_SCHEMATIC = "Schematic drawing."


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """Four plates of four species, two mixed catches, four cards with one species, two cards with a part outlined."""
    rng = np.random.default_rng([seed, difficulty])
    slugs = [SPECIES[int(k)].slug for k in rng.permutation(len(SPECIES))]
    first = [str(rng.choice(BORERS)), str(rng.choice(list(THRESHOLDS)))]
    plates = [*first, *(slug for slug in slugs if slug not in (*first, *BORERS))][:_PLATES]
    plates = [plates[int(k)] for k in rng.permutation(_PLATES)]
    other = str(rng.choice(BORERS)) if rng.uniform() < 0.7 else next(slug for slug in slugs if slug not in THRESHOLDS)
    marked = [str(rng.choice(list(THRESHOLDS))), other]
    marked = [marked[int(k)] for k in rng.permutation(_MARKED)]
    caught = str(rng.choice(COUNTED))
    days = int(rng.integers(3, 11))
    counts = [int(k) for k in rng.permutation(np.arange(5, 46))[:_TRAPS]]
    record: dict[str, JsonValue] = {"days": days, "caught": caught}
    record["plates"] = [
        _stored(folder, f"plate_{k}", make_pest_plate(10 * seed + k, difficulty, slug), difficulty)
        for k, slug in enumerate(plates)
    ]
    record["marked"] = [
        _stored(folder, f"marked_{k}", make_marked_plate(10 * seed + k, difficulty, slug), difficulty)
        for k, slug in enumerate(marked)
    ]
    record["traps"] = [
        _stored(folder, f"trap_{k}", make_trap(10 * seed + k, difficulty, caught, count), difficulty)
        for k, count in enumerate(counts)
    ]
    record["boxed"] = [
        _stored(
            folder,
            f"boxed_{k}",
            make_trap(10 * seed + k + 5, difficulty, caught, int(rng.integers(10, 45)), marked=True),
            difficulty,
        )
        for k in range(_MARKED)
    ]
    return record


def subjects(drawn: Drawn, originals: Originals) -> list[Subject]:
    """``pest_plate``: one species each; ``pest_marked``: the outlined animal of a mixed catch; ``trap``: cards to be
    counted; ``trap_marked``: the outlined part of a card."""
    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty, "schematic": True}
    record = cast("dict[str, Any]", drawn.record)

    def files(kind: str, note: Any) -> list[tuple[SampleFile, dict[str, Any]]]:
        return [
            (originals.file(drawn.folder / item["file"], note=note(item)), item)
            for item in cast("list[dict[str, Any]]", record[kind])
        ]

    plates = files("plates", lambda item: f"{_SCHEMATIC} {_GROUND_NOTES[item['ground']]}")
    marked = files("marked", lambda _: f"{_SCHEMATIC} A mixed catch; one animal has a red outline.")
    traps = files("traps", _trap_note)
    boxed = files("boxed", lambda item: f"{_trap_note(item)} A part of it has a red outline.")
    days = str(record["days"])

    def plate(index: int, place: int) -> Thing:
        original, item = plates[index]
        file = named(original, "image", place)
        thought = f"I need to know which pest {file.name} shows."
        arguments: dict[str, Any] = {"image": file.name, "kind": "pest"}
        return Thing((file,), "diagnose_pest_disease", arguments, _named(item), file.name, thought, _words(item))

    def outlined(index: int, place: int) -> Thing:
        original, item = marked[index]
        file = named(original, "image", place)
        arguments: dict[str, Any] = {"image": file.name, "kind": "pest", "region": INSIDE}
        thought = f"Now I need to know which pest is inside the outline in {file.name}."
        return Thing(
            (file,), "diagnose_pest_disease", arguments, _named(item), file.name, thought, _words(item),
            before=(outline_call(file, item),),
        )  # fmt: skip

    def trap(index: int, place: int) -> Thing:
        original, item = traps[index]
        file = named(original, "image", place)
        thought = f"I need the number of animals on the card in {file.name}."
        words = {"days": days}
        return Thing(
            (file,), "count_objects", _counting(file, item), {"count": item["count"]}, file.name, thought, words
        )

    def trap_part(index: int, place: int) -> Thing:
        original, item = boxed[index]
        file = named(original, "image", place)
        arguments = {**_counting(file, item), "region": INSIDE}
        thought = f"Now I need the number of animals inside the outline in {file.name}."
        truth = {"count": item["count_in_box"]}
        return Thing(
            (file,), "count_objects", arguments, truth, file.name, thought, {"days": days},
            before=(outline_call(file, item),),
        )  # fmt: skip

    return [
        Subject(f"{drawn.name}-{drawn.seed}-plates", _PLATES, plate, metadata, of="pest_plate"),
        Subject(f"{drawn.name}-{drawn.seed}-marked", _MARKED, outlined, metadata, of="pest_marked"),
        Subject(f"{drawn.name}-{drawn.seed}-traps", _TRAPS, trap, metadata, of="trap"),
        Subject(f"{drawn.name}-{drawn.seed}-boxed", _MARKED, trap_part, metadata, of="trap_marked"),
    ]


_GROUND_NOTES = {
    "leaf": "An animal on a leaf.",
    "card": "An animal on a sticky card.",
    "cloth": "An animal on a beating cloth.",
    "soil": "An animal on the ground.",
}


def _trap_note(item: Mapping[str, Any]) -> str:
    return f"{_SCHEMATIC} A sticky card from above; an animal on it is about {item['length_px']:.1f} px long."


def _stored(folder: Path, stem: str, scene: Scene, difficulty: Difficulty) -> dict[str, JsonValue]:
    save_photo(folder / f"{stem}.jpg", scene.images["rgb"], NUISANCES[difficulty].jpeg)
    return {"file": f"{stem}.jpg", **cast("dict[str, JsonValue]", dict(scene.truth))}


def _named(item: Mapping[str, Any]) -> dict[str, JsonValue]:
    candidate = candidate_of_truth(item["species"], "pest")
    return {"candidates": [candidate], "best": candidate["kb_id"], "abstained": False}


def _words(item: Mapping[str, Any]) -> dict[str, str]:
    slug = item["species"]
    of, of_zh, beyond = THRESHOLDS.get(slug, ("", "", 0))
    bores = "yes" if slug in BORERS else "no"
    return {
        **words_of_entry(slug, "pest"),
        "bores": bores,
        "counted_on": of,
        "counted_on_zh": of_zh,
        "beyond": str(beyond),
    }


def _counting(file: SampleFile, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"image": file.name, "target": "insect", "mode": "blob", "expected_size_px": round(item["length_px"], 1)}
