"""Drawn farmland on two dates as a satellite sees it, at 0.8 m a pixel."""

from pathlib import Path

from pydantic import JsonValue

from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.field_pairs import draw_pairs, pair_subjects
from agrotools.build.sources.part import Originals
from agrotools.build.templates.thing import Subject

NAME = "farmland_satellite"
STANDS_FOR = "hi_cna"
TEMPLATES = ("farmland",)


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """As :func:`agrotools.build.sources.drawn.field_pairs.draw_pairs`."""
    return draw_pairs(seed, difficulty, folder, "satellite")


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """As :func:`agrotools.build.sources.drawn.field_pairs.pair_subjects`."""
    return pair_subjects(drawn, originals, "Satellite picture")
