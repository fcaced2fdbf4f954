"""Scores of prediction files from other programs, both as published and corrected.

A figure is a value with its denominator; the contributions of the samples are stored with it. If a published scorer
fails with an exception, its port raises :class:`PublishedScorerStops`.
"""

import csv
import io
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
from agrotools.core.errors import NoFileError
from agrotools.core.files import unexpected_content, without_collecting
from agrotools.core.installed import WithPlugins
from agrotools.scoring.error_classes import Errors
from agrotools.scoring.prediction_format import PredictionFormat, PredictionInput
from agrotools.scoring.statistics import Estimate, estimate_mean

Similarity = Callable[[str, str], float]
"""Cosine of the embeddings of two texts, 0 to 1; negative cosines count as 0, as in the published scorers."""


class Figure(NamedTuple):
    """Value of a metric in percent, None if nothing is counted, and its denominator ``n``."""

    value: float | None
    n: int


class ScoreSum(NamedTuple):
    """Contribution of one sample to a metric: the sum of scores in [0, 1] and their number."""

    total: float
    n: int


@dataclass(frozen=True, slots=True)
class SampleParts:
    """Contributions of a sample to the metrics that it counts for."""

    key: str
    parts: Mapping[str, ScoreSum]


@dataclass(frozen=True)
class PredictionScores:
    """Metrics of a prediction file.

    ``metrics`` maps ids to figures (percent), ``counts`` holds further counts, and ``left_out`` maps ids of metrics
    that could not be computed to reasons. ``samples`` holds the contributions of each sample (corrected metrics only).
    ``embedder`` is the name of the model whose cosines are used, None without one.
    """

    mode: str
    metrics: Mapping[str, Figure]
    counts: Mapping[str, int]
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    samples: tuple[SampleParts, ...] = ()
    embedder: str | None = None

    @property
    def shares(self) -> dict[str, float | None]:
        """Metrics as shares, 0 to 1; None if nothing is counted."""
        values = {metric: figure.value for metric, figure in self.metrics.items()}
        return {
            name: None if value is None or math.isnan(value) else value / 100
            for name, value in values.items()
        }

    def estimate(self, metric: str) -> Estimate | None:
        """Return the metric as a share, 0 to 1, with its 95 % interval over samples; None if it is not in ``metrics``.

        Each score of a sample is taken to be the sample's mean, unless their sum is a whole number: then they are 0 or
        1.
        """
        if metric not in self.metrics:
            return None
        values: list[float] = []
        keys: list[int] = []
        for index, sample in enumerate(self.samples):
            if part := sample.parts.get(metric):
                hits = round(part.total)
                if math.isclose(part.total, hits, abs_tol=1e-9):
                    values += [1.0] * hits + [0.0] * (part.n - hits)
                else:
                    values += [part.total / part.n] * part.n
                keys += [index] * part.n
        return estimate_mean(values, keys) if values else None


def summed(
    samples: Sequence[SampleParts],
    metrics: Iterable[str],
    left_out: Mapping[str, str] | None = None,
) -> dict[str, Figure]:
    """Return each metric in percent: the sum of the scores of all samples divided by their number."""
    sums: dict[str, Figure] = {}
    for metric in metrics:
        if left_out and metric in left_out:
            continue
        parts = [sample.parts[metric] for sample in samples if metric in sample.parts]
        n = sum(part.n for part in parts)
        total = math.fsum(part.total for part in parts)
        sums[metric] = Figure(min(100.0, 100.0 * total / n) if n else None, n)
    return sums


_FAILURES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    re.error,
)


class PublishedScorerStops(BenchmarkError):
    """Failure of a published scorer with ``exception`` (name of a Python class) at ``where``; it has no figures."""

    def __init__(self, exception: str, where: str, reason: str) -> None:
        super().__init__(
            f"the published scorer stops with {exception} at {where}: {reason}",
            hint="the corrected figures do not depend on it",
        )
        self.exception = exception
        self.where = where


@contextmanager
def published(where: str) -> Generator[None]:
    """Convert exceptions of code that follows a published scorer so closely that it fails in the same cases.

    Raises:
        PublishedScorerStops: instead of the exception of the original.
    """
    try:
        yield
    except _FAILURES as error:
        raise PublishedScorerStops(
            type(error).__name__, where, str(error)[:200] or "no reason given"
        ) from error


if TYPE_CHECKING:
    from agrotools.scoring.embedders import Embedder

FORMATS: WithPlugins[str] = WithPlugins(
    "prediction format", {}, lambda plugin: plugin.targets.predictions
)
"""Import targets of the prediction formats of benchmark plug-ins, by name."""


@dataclass(frozen=True)
class ScoredFile:
    """Scores of a prediction file, as published and corrected.

    ``published`` is None if the published scorer fails or counts nothing; ``stop`` is the reason. ``extra`` holds
    counts of one benchmark, by topic; ``count_stops`` lists counts that the published code does not reach, with
    reasons. ``malformed`` lists malformed parts of the files by place; they count as wrong in the corrected figures.
    """

    format: str
    mode: str
    samples: int
    published: PredictionScores | None
    corrected: PredictionScores
    errors: Errors | None
    """Errors by class; None for examination questions, which call no tools."""
    stop: str | None = None
    extra: Mapping[str, Mapping[str, int | None]] | None = None
    count_stops: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()


def prediction_format(name: str) -> PredictionFormat:
    """Return the prediction format with this name.

    Raises:
        UsageError: there is no such format.
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
) -> ScoredFile:
    """Score a prediction file as published and corrected. Without an ``embedder`` metrics that need one are left out.

    Raises:
        UsageError: there is no such format.
        BenchmarkError: a file cannot be read, or the files do not belong together.
    """
    with without_collecting():
        return prediction_format(format_).compare(PredictionInput(path, data, judgements, embedder))


def finite(value: float | None) -> float | None:
    """Return None for NaN and infinite values, else the value."""
    return value if value is not None and math.isfinite(value) else None


def read_json(path: Path) -> Any:
    """Read the JSON value of a file. NaN and infinities are accepted, as in Python.

    Raises:
        BenchmarkError: the file does not exist or is cut off, or is not JSON.
    """
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or "Unterminated" in error.msg
        problem = "is cut off" if cut else "is not valid JSON"
        raise BenchmarkError(
            f"{path} {problem}: {error.msg} at line {error.lineno}, column {error.colno}",
            hint="write or download the whole file again" if cut else None,
        ) from error
    except RecursionError as error:
        raise BenchmarkError(f"{path} is nested too deeply to be read") from error
    except ValueError as error:
        raise BenchmarkError(f"{path} contains a number that cannot be read: {error}") from error


def read_text(path: Path) -> str:
    """Read the text of a file (UTF-8, with or without a byte order mark).

    Raises:
        BenchmarkError: the file does not exist or is not UTF-8.
    """
    if not path.is_file():
        raise NoFileError(f"{path}: no such file", hint="give the path of a file")
    try:
        content = path.read_bytes()
        if unexpected := unexpected_content(content[:200]):
            raise BenchmarkError(f"{path} is {unexpected[0]}", hint=unexpected[1])
        return content.decode("utf-8-sig")
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        what = (
            "is cut off within a character"
            if error.reason == "unexpected end of data"
            else "is not UTF-8"
        )
        raise BenchmarkError(
            f"{path} {what}: {error.reason} at byte {error.start}",
            hint="save it as UTF-8, or download it again",
        ) from error


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a CSV table by the names in its first row; BenchmarkError if it is none."""
    try:
        return list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    except csv.Error as error:
        raise BenchmarkError(f"{path} is not a CSV table: {error}") from error
