"""Figures of published scorers, as values with what they are a mean of; and the error where such a scorer stops."""

import math
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from agrotools.core import BenchmarkError
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
    found: dict[str, Figure] = {}
    for metric in metrics:
        if left_out and metric in left_out:
            continue
        parts = [sample.parts[metric] for sample in samples if metric in sample.parts]
        n = sum(part.n for part in parts)
        total = math.fsum(part.total for part in parts)
        found[metric] = Figure(min(100.0, 100.0 * total / n) if n else None, n)
    return found


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
