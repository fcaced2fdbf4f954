"""Contracts of scoring: what a metric is, and what a benchmark gives to score its records.

A plug-in names its :class:`Scoring` as a target, so that it is imported when a record is scored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agrotools.core import FrozenModel, Mode, Record, Sample, Score, Slot, Trajectory, imported

if TYPE_CHECKING:
    from agrotools.formats.manifest import Manifest
    from agrotools.scoring.embedders import Embedder
    from agrotools.scoring.error_classes import Errors
    from agrotools.scoring.judging.judgements import JudgedRows
    from agrotools.scoring.slots import SlotScore
    from agrotools.scoring.summary import PublishedFigures


@dataclass(frozen=True)
class MetricInfo:
    """Description of a metric id (of a plug-in: with a point, ``gta.ans_acc``) and the slots that it averages over."""

    label: str
    meaning: str
    lower_is_better: bool = False
    out_of: int = 100
    """Scale on which values are shown: 100 for percent, 10 for points out of 10, 1 for unscaled values."""
    slots: Callable[[Slot], bool] | None = None
    """Predicate for the slots that count; a sample without such a slot has no row. None if it is not a mean
    over slots."""
    scores_sample: bool = False
    """True if the metric scores the sample as a whole; a report calls a sample with the value 1 "right"."""
    compared_in: tuple[Mode, ...] = ()
    """Modes in which runs are compared pair by pair by this metric."""
    on_request: bool = False
    """True if tables have a column for the metric only if a run has values of it."""
    by_judge: bool = False
    """True if a judge gives the metric, so that a record has no row of it until a judge was asked."""


class TextComparisons(NamedTuple):
    """Text comparisons that a user requests with ``--embedder``, for metrics that need them."""

    embedder: "Embedder | None" = None


NO_COMPARISONS = TextComparisons()


class ModeTally(Protocol):
    """Counter over the valid records of one mode, for the scores of a run."""

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a valid record and its score rows."""
        ...

    def results(self) -> Mapping[str, FrozenModel]:
        """Return entries for the mode's section of ``scores.json``, by unique key; empty if no record counted."""
        ...


class PublishedRun(NamedTuple):
    """Records of one mode of a run on the benchmark, for scoring as in its paper."""

    manifest: "Manifest"
    mode: Mode
    records: Sequence[Record]
    judges: "JudgedRows"
    embedder: "Embedder | None"


@dataclass(frozen=True)
class Scoring:
    """Scorers of a benchmark. All must be deterministic and must not use the network."""

    slot_scorers: Mapping[str, "Callable[[Slot, Sequence[Slot], str], SlotScore]"] = field(
        default_factory=dict[str, Any]
    )
    """By slot type: function that returns the score of a slot, 0 to 1, from the slot, all slots of the sample and the
    answer text. The engine computes the weighted means that :class:`MetricInfo` defines. A sample without an answer
    scores 0."""
    call_scorers: "Mapping[str, Callable[[Slot, Sample, Trajectory], SlotScore]]" = field(
        default_factory=dict[str, Any]
    )
    """By slot type: function that scores a slot that tool calls answer, from the slot, the sample and the
    trajectory."""
    score_record: "Callable[[Record, Trajectory, TextComparisons], list[Score]] | None" = None
    """Function that returns all rows of a record with a slot type of the plug-in, replacing the engine's."""
    check_comparisons: Callable[[TextComparisons], object] | None = None
    """Function that raises :class:`~agrotools.core.UsageError` if a requested comparison is unknown."""
    tally: Callable[[], ModeTally] | None = None
    published: "Callable[[PublishedRun], PublishedFigures | None] | None" = None
    """Function that returns the paper's metrics for a run on the benchmark, or None if the mode has none."""


@dataclass(frozen=True)
class RecordErrors:
    """Error counter for records of one protocol and mode, which replaces the engine's. Their replies hold no calls."""

    add: "Callable[[Record, Errors], None]"
    undetectable: Mapping[str, str] = field(default_factory=dict[str, str])
    """Error classes that cannot be detected in such records, each with the reason."""


class ErrorSource(NamedTuple):
    """Place in a paper that defines classes of errors. ``name`` is a short name of the paper."""

    name: str
    arxiv: str
    place: str
    words: Mapping[str, str]
    """The paper's term for each class (:data:`agrotools.scoring.error_classes.CLASSES`)."""

    def __str__(self) -> str:
        return f"{self.name} (arXiv {self.arxiv}), {self.place}"


NO_SCORING = Scoring()
"""Of a benchmark that scores nothing itself."""


def scoring_of(target: str) -> Scoring:
    """Return the scorers that a plug-in names by ``targets.scoring``."""
    return imported(target) if target else NO_SCORING
