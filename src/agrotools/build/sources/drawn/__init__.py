"""Benchmarks of drawn scenes: each :class:`SceneKind` draws subjects and turns them into things for questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.part import Originals
from agrotools.build.templates.thing import Subject, Thing

T = TypeVar("T")
Only = Callable[[str], bool]
"""Choice of the files of a scene that are needed, by name; pictures without such a file need not be drawn."""


def every_file(_: str) -> bool:
    """Return True: all files of the scene are needed."""
    return True


@dataclass(frozen=True)
class DrawnScene:
    """A drawn subject. ``folder`` holds its files; ``record`` is its truth as :attr:`SceneKind.draw` returned it."""

    name: str
    seed: int
    difficulty: Difficulty
    folder: Path
    record: Mapping[str, JsonValue]

    def subject(self, suffix: str, things: int, shown: Callable[[int, int], Thing], of: str, **more: str) -> Subject:
        """Return a subject of this scene whose metadata hold its difficulty and ``more``."""
        metadata: dict[str, JsonValue] = {"difficulty": self.difficulty, **more}
        return Subject(f"{self.name}-{self.seed}-{suffix}", things, shown, metadata, of=of)


@dataclass(frozen=True)
class SceneKind:
    """A kind of scene: its drawing and its questions.

    Attributes:
        number: offset that separates its seeds from those of other kinds.
        templates: files of its templates.
        draw: ``draw(seed, difficulty, folder, only)`` draws one subject (a pair of dates, four plots...), writes its
            files into the empty ``folder`` and returns all truth that is needed later as plain JSON, unless some files
            are left out. A file is the same whatever else is drawn: every picture has a generator of its own. It
            depends on its arguments only and may run in another process.
        subjects: turns a drawn scene into subjects of questions.
        backends: back-ends of its reference calls, if not the default.
    """

    number: int
    templates: tuple[str, ...]
    draw: Callable[[int, Difficulty, Path, Only], dict[str, JsonValue]]
    subjects: Callable[[DrawnScene, Originals], list[Subject]]
    backends: Mapping[str, str] = field(default_factory=dict)


def turn_of(seed: int, modes: Sequence[T]) -> T:
    """Return the mode of a seed; consecutive seeds take turns, and so do seeds of one difficulty."""
    return modes[(seed + seed // 4) % len(modes)]
