"""Prediction files of other programs, scored twice: as published, and corrected; figures, and the error of a scorer.

A figure is a value with what it is a mean of; behind it stands what each sample adds. Where a published scorer ends
with an exception, its port raises one typed error that says so.
"""

import gc
import json
import math
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agrotools.core import BenchmarkError, UsageError
from agrotools.core import imported as imported_target
from agrotools.core.base import NoFileError
from agrotools.plugin import PredictionFormat, PredictionInput, WithPlugins
from agrotools.scoring.error_classes import Errors
from agrotools.scoring.statistics import Estimate, estimate_mean

Similarity = Callable[[str, str], float]
"""Cosine of the embeddings of two texts, 0 to 1: a negative one counts as 0, here as in the published scorers."""


class Figure(NamedTuple):
    """A metric. ``value``: None where nothing is counted; ``n``: the denominator."""

    value: float | None
    n: int


class Part(NamedTuple):
    """Contribution of one sample to a metric: a sum of scores in [0, 1], and of how many."""

    total: float
    n: int


@dataclass(frozen=True, slots=True)
class SampleParts:
    """Contributions of a sample to each metric that it counts for."""

    key: str
    parts: Mapping[str, Part]


@dataclass(frozen=True)
class Scores:
    """Metrics of a prediction file.

    ``metrics``: id to figure (percent); ``counts``: what was counted beside them; ``left_out``: id of a metric that
    could not be computed, and why; ``samples``: what each sample adds (corrected metrics only); ``embedder``: the name
    of the model whose cosines are in it, None without one.
    """

    mode: str
    metrics: Mapping[str, Figure]
    counts: Mapping[str, int]
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    samples: tuple[SampleParts, ...] = ()
    embedder: str | None = None

    @property
    def shares(self) -> dict[str, float | None]:
        """Each metric as a share, 0 to 1; None where nothing is counted."""
        values = {metric: figure.value for metric, figure in self.metrics.items()}
        return {name: None if value is None or math.isnan(value) else value / 100 for name, value in values.items()}

    def estimate(self, metric: str) -> Estimate | None:
        """The metric as a share, 0 to 1, with its 95 % interval over samples; None where it is not in ``metrics``.

        A sample's scores are taken to be equal to their mean, except where they are all 0 or 1.
        """
        if metric not in self.metrics:
            return None
        values: list[float] = []
        keys: list[int] = []
        for index, sample in enumerate(self.samples):
            if part := sample.parts.get(metric):
                values += _spread(part)
                keys += [index] * part.n
        return estimate_mean(values, keys) if values else None


def _spread(part: Part) -> list[float]:
    hits = round(part.total)
    if math.isclose(part.total, hits, abs_tol=1e-9):
        return [1.0] * hits + [0.0] * (part.n - hits)
    return [part.total / part.n] * part.n


def summed(
    samples: Sequence[SampleParts], metrics: Iterable[str], left_out: Mapping[str, str] | None = None
) -> dict[str, Figure]:
    """Each metric in percent: the sum of all samples' scores over how many there are."""
    sums: dict[str, Figure] = {}
    for metric in metrics:
        if left_out and metric in left_out:
            continue
        parts = [sample.parts[metric] for sample in samples if metric in sample.parts]
        n = sum(part.n for part in parts)
        total = math.fsum(part.total for part in parts)
        sums[metric] = Figure(min(100.0, 100.0 * total / n) if n else None, n)
    return sums


_ENDS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    re.error,
)


class PublishedScorerStops(BenchmarkError):
    """The published scorer ends with ``exception`` (the name of a Python class) at ``where``: it has no figures."""

    def __init__(self, exception: str, where: str, reason: str) -> None:
        super().__init__(
            f"the published scorer stops with {exception} at {where}: {reason}",
            hint="the corrected figures do not depend on it",
        )
        self.exception = exception
        self.where = where


@contextmanager
def published(where: str) -> Generator[None]:
    """Lines that follow a published scorer so closely that they fail where it fails.

    Raises:
        PublishedScorerStops: instead of the exception of the original.
    """
    try:
        yield
    except _ENDS as error:
        raise PublishedScorerStops(type(error).__name__, where, str(error)[:200] or "no reason given") from error


if TYPE_CHECKING:
    from agrotools.scoring.embedders import Embedder

_LARGEST = 2 * 2**30
FORMATS: WithPlugins[str] = WithPlugins("prediction format", {}, lambda plugin: plugin.predictions)
"""Targets of the formats that benchmark plug-ins read, by name."""


@dataclass(frozen=True)
class Compared:
    """Published score. ``published``: None if the published scorer stops or counts nothing; ``stop`` is the reason.

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
        UsageError: no such format.
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
    embedder: "Embedder | None" = None,
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
