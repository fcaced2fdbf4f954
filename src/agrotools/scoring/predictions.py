"""Prediction files of other programs, scored twice: as published, and corrected."""

import gc
import json
import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError, UsageError
from agrotools.core.errors import NoFileError
from agrotools.plugin import PredictionFormat, PredictionInput, WithPlugins
from agrotools.plugin import imported as imported_target
from agrotools.scoring.embedders import Embedder
from agrotools.scoring.error_classes import Errors
from agrotools.scoring.figures import Scores

_LARGEST = 2 * 2**30
FORMATS: WithPlugins[str] = WithPlugins({}, lambda plugin: plugin.predictions)
"""Targets of the formats that benchmark plug-ins read, by name."""


@dataclass(frozen=True)
class Compared:
    """``published``: None where the published scorer stops or has nothing to count; ``stop`` says why.

    ``extra``: counts that only one benchmark has, by what they are; ``count_stops``: which of them the published code
    does not come to, and why. ``malformed``: what in the files is not what it should be, by its place; it is wrong in
    the corrected figures.
    """

    format: str
    mode: str
    samples: int
    published: Scores | None
    corrected: Scores
    errors: Errors | None
    """None of examination questions, which call no tools."""
    stop: str | None = None
    extra: Mapping[str, Mapping[str, int | None]] | None = None
    count_stops: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()


def prediction_format(name: str) -> PredictionFormat:
    """The format of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in FORMATS:
        raise UsageError(f"--format {name}: no such format", hint=f"known: {', '.join(FORMATS)}")
    return imported_target(FORMATS[name])


def compare_file(
    format_: str,
    path: Path,
    *,
    data: Path | None = None,
    judgements: Path | None = None,
    embedder: Embedder | None = None,
) -> Compared:
    """Scores a prediction file both ways. Without an ``embedder`` metrics that need one are left out.

    Raises:
        UsageError: no such format.
        BenchmarkError: a file cannot be read, or files do not belong together.
    """
    with without_collecting():
        return prediction_format(format_).compare(PredictionInput(path, data, judgements, embedder))


def finite(value: float | None) -> float | None:
    """None for a figure that is no number."""
    return value if value is not None and math.isfinite(value) else None


@contextmanager
def without_collecting() -> Generator[None]:
    """A large file is millions of objects that stay: looking through them for garbage takes longer than scoring it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def read_json(path: Path) -> Any:
    """The value in a file. NaN and infinities are taken as Python does.

    Raises:
        BenchmarkError: it is not there, too large, cut off, or no JSON.
    """
    return read_named_json(path, read_text(path))


def read_text(path: Path) -> str:
    """The text of a file (UTF-8, with or without a mark at its beginning).

    Raises:
        BenchmarkError: it is not there, too large, or no UTF-8.
    """
    if not path.is_file():
        raise NoFileError(f"{path}: no such file", hint="give the path of a prediction file")
    if path.stat().st_size > _LARGEST:
        raise BenchmarkError(f"{path} is larger than 2 GB", hint="score a part of it")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{path} is no UTF-8 text: {error.reason} at byte {error.start}") from error


def read_named_json(name: object, text: str) -> Any:
    """The value in ``text``, which came from ``name``.

    Raises:
        BenchmarkError: it is cut off, or no JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or "Unterminated" in error.msg
        raise BenchmarkError(
            f"{name} {'is cut off' if cut else 'is no JSON'}: {error.msg} at line {error.lineno}, column {error.colno}",
            hint="the evaluation was stopped while it wrote; run it again" if cut else None,
        ) from error
    except RecursionError as error:
        raise BenchmarkError(f"{name} is nested too deeply to be read") from error
    except ValueError as error:
        raise BenchmarkError(f"{name} holds a number that cannot be read: {error}") from error
