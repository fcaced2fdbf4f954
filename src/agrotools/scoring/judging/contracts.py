"""Contracts of judging: the questions of a benchmark to judges, and the metrics that come from their grades."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from agrotools.core import Record, Slot, imported

if TYPE_CHECKING:
    from agrotools.scoring.judging.questions import JudgeQuestion, Rubrics


class JudgedMetric(NamedTuple):
    """Metric that a judge gives: the slots it applies to, and how the grades of a sample (each in [0, 1]) are
    combined."""

    applies_to: Callable[[Slot], bool]
    combine: Callable[[Sequence[float]], float] = fmean
    replies_of: str | None = None
    """Metric whose judge replies this one shares and interprets differently; None if it has its own questions."""


@dataclass(frozen=True)
class Judging:
    """Questions to judges about the answers of a run, and the metrics computed from their grades."""

    metrics: Mapping[str, JudgedMetric]
    questions: "Callable[[Record, Rubrics | None], list[JudgeQuestion]]"
    """Function that returns the questions about a record; empty if the record is from another benchmark or has no
    answer."""
    read_rubrics: "Callable[[Path, str], Rubrics] | None" = None
    """Function that reads rubrics from a user's file, with a name; None if answers are not graded by rubrics."""
    calibrated: str = ""
    """Metric whose judges can be tested on answers with known grades and a reference text; empty if there is none."""


def judging_of(target: str) -> Judging | None:
    """Return the questions to judges that a plug-in names by ``targets.judging``; None if it names none."""
    return imported(target) if target else None
