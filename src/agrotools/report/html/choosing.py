"""Which samples a page shows in detail: what went wrong first, spread over modes and task types."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from agrotools.core import Mode, Record, Score
from agrotools.report.trace import why_wrong
from agrotools.scoring.units import is_invalid

Pair = tuple[Mode, str]
"""A mode and the id of a sample: shown of all runs together, or of none."""


@dataclass
class Candidate:
    """A sample in a mode: its task type, and the scores it got in each run."""

    task_type: str
    values: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    epochs: int = 0

    @property
    def worst(self) -> float:
        """The lowest mean over epochs of any run; 1 where no run has a valid record."""
        return min((sum(own) / len(own) for own in self.values.values()), default=1.0)


def value_of(record: Record, scores: list[Score]) -> float | None:
    """How right a record is, for sorting and colouring: its Final Answer Score; in step-by-step the share of steps
    that are right. None where it is invalid."""
    if is_invalid(record):
        return None
    if record.actions is None:
        return next((row.value for row in scores if row.metric == "agrotools.fas"), 0.0)
    return sum(step_is_right(record, index, scores) for index in range(len(record.actions))) / len(record.actions)


def step_is_right(record: Record, index: int, scores: list[Score]) -> bool:
    """Whether the action predicted for a step is the one that was due, with its arguments or slots right."""
    assert record.actions is not None
    steps = record.sample.reference.steps if record.sample.reference else ()
    rows = {row.metric: row for row in scores if row.step == index}
    return not why_wrong(record.actions[index], steps[index] if index < len(steps) else None, rows)


def chosen_pairs(candidates: Mapping[Pair, Candidate], n: int, *, privileged: frozenset[int]) -> set[Pair]:
    """At most ``n`` records a run: in each mode and task type in turn the one that did worst, ties by hash of the id.

    What a privileged run (an index of ``privileged``) got counts only where no other run has a score.
    """
    groups: dict[tuple[Mode, str], list[tuple[float, str, Pair]]] = defaultdict(list)
    for pair, candidate in candidates.items():
        own = {run: values for run, values in candidate.values.items() if run not in privileged} or candidate.values
        worst = Candidate(candidate.task_type, dict(own)).worst
        order = hashlib.sha256(pair[1].encode()).hexdigest()
        groups[(pair[0], candidate.task_type)].append((worst, order, pair))
    ranked = [[pair for *_, pair in sorted(groups[name])] for name in sorted(groups)]
    chosen: set[Pair] = set()
    room = n
    for pair in chain.from_iterable(zip_longest(*ranked)):
        if pair is None:
            continue
        room -= max(candidates[pair].epochs, 1)
        if room < 0 and (chosen or not n):
            break
        chosen.add(pair)
    return chosen
