"""Benchmarks of drawn scenes: a module per kind of scene.

A module has ``NAME``; ``STANDS_FOR``, the public data set whose share of the questions its scenes fill; ``TEMPLATES``,
the files of templates that are asked; and two functions. ``draw(seed, difficulty, folder)`` draws one subject (a pair
of dates, four plots...), writes its files into the empty ``folder`` and returns a record, plain JSON, with all truth
that is needed later; it depends on nothing but its arguments and may run in another process. ``subjects(drawn,
originals)`` turns the record into subjects that questions can be asked of.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from agrotools.build.scenes.scene import Difficulty


@dataclass(frozen=True)
class DrawnScene:
    """A drawn subject: ``folder`` holds its files, ``record`` its truth as ``draw`` returned it."""

    name: str
    seed: int
    difficulty: Difficulty
    folder: Path
    record: Mapping[str, JsonValue]
