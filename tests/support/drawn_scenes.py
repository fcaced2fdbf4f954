"""Scenes that several tests look at, each drawn once in a run, by whichever process asks first."""

import os
from functools import cache
from pathlib import Path

import orjson
from filelock import FileLock

from agrotools_build.choosing import Chosen, ask_subject
from agrotools_build.sources.drawn import DrawnScene, every_file
from agrotools_build.sources.drawn.drawing import SCENE_KINDS
from agrotools_build.sources.part import Originals
from agrotools_build.templates import load_templates
from agrotools_build.templates.template import Template
from agrotools_build.templates.thing import Subject


def drawn_scene(name: str, seed: int) -> DrawnScene:
    """Scene ``seed`` of a kind, its difficulty the remainder of the seed by four."""
    place = Path(os.environ["AGROTOOLS_CACHE"]) / "scenes-of-tests" / f"{name}-{seed}"
    place.mkdir(parents=True, exist_ok=True)
    record = place.with_suffix(".json")
    with FileLock(place.with_suffix(".lock")):
        if not record.is_file():
            record.write_bytes(
                orjson.dumps(SCENE_KINDS[name].draw(seed, seed % 4, place, every_file))
            )
    return DrawnScene(name, seed, seed % 4, place, orjson.loads(record.read_bytes()))


SEEDS = {
    "blocks": (2, 1, 8), "tracts": (5, 0, 7, 4), "farmland_aerial": (0, 1, 3, 8), "farmland_satellite": (0, 1, 15),
    "pond_pairs": (0, 1, 2, 6, 7, 18, 32), "apples": (0,), "fruit_counts": (1, 6), "leaf_lesions": (0, 2, 3),
    "pots": (2, 1, 6, 3), "rows": (1, 3, 5, 7, 8),
}  # fmt: skip
"""Seeds of each kind of scene of which together every question can be asked, one that is quickly drawn first."""


@cache
def drawn_subjects(name: str) -> tuple[list[Subject], Originals]:
    """The subjects of the scenes of a kind, and the files that they show."""
    originals = Originals(Path(os.environ["AGROTOOLS_CACHE"]) / "scenes-of-tests")
    scenes = [drawn_scene(name, seed) for seed in SEEDS[name]]
    return [
        subject for scene in scenes for subject in SCENE_KINDS[name].subjects(scene, originals)
    ], originals


def questions_of(name: str, language: str) -> list[Template]:
    """All kinds of questions that are asked of a kind of scene."""
    return [
        template
        for file in SCENE_KINDS[name].templates
        for template in load_templates(file, language)
    ]


@cache
def asked_of_drawings(name: str, language: str = "en") -> list[Chosen]:
    """Every kind of question asked of every subject of a kind of scene of which it can be asked."""
    subjects, _ = drawn_subjects(name)
    return [
        item
        for question in questions_of(name, language)
        for subject in subjects
        if (item := ask_subject(subject, question, 1)) is not None
    ]
