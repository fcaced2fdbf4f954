"""Drawn farmland on two dates as seen from the air, at half a metre a pixel."""

from pathlib import Path

from pydantic import JsonValue

from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.field_pairs import draw_pairs, pair_subjects
from agrotools.build.sources.part import Originals
from agrotools.build.templates.thing import Subject

NAME = "farmland_aerial"
STANDS_FOR = "clcd"
TEMPLATES = ("farmland",)


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """As :func:`agrotools.build.sources.drawn.field_pairs.draw_pairs`."""
    return draw_pairs(seed, difficulty, folder, "aerial")


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """As :func:`agrotools.build.sources.drawn.field_pairs.pair_subjects`."""
    return pair_subjects(drawn, originals, "Picture from the air")
