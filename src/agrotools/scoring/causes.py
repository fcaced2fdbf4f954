"""Causes of lost points: for each record with a score below 1, the first part of the solution that went wrong.

The parts are checked in the order in which a solution is made (call, arguments, result, answer), from the record alone.
``agrotools attribute`` splits the loss exactly, by running the tools again with each part replaced.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from agrotools.core import Mode, Record, Score
from agrotools.core.record import Results
from agrotools.scoring.attribution import Attribution, part_meaning
from agrotools.scoring.matching import missing_calls, own_calls
from agrotools.scoring.metrics import FAS
from agrotools.scoring.steps import implied_slot

CAUSES: Mapping[str, str] = {
    "no answer": "it ended without an answer",
    "refusal": "an answerable question was refused, or an unanswerable one answered",
    "planning": "a tool of the reference was not called",
    "arguments": "the tools were called, with other arguments than in the reference",
    "tools": "the calls are right, and their results imply a wrong answer",
    "reading": "the results imply the right answer, and another one was given",
    "form": "no value could be read from the answer",
    "answer": "a wrong answer without tools",
    "ceiling": "points that the reference calls lose, too",
}
"""Causes and their meanings, in the order of their tables."""
CEILING = "ceiling"


def cause_of(record: Record, rows: Sequence[Score]) -> str:
    """Return the cause of the points that a valid no-tool or end-to-end record lost; ``rows``: its scores."""
    sample, trajectory = record.sample, record.trajectory
    if trajectory is None or trajectory.answer is None:
        return "no answer"
    if not sample.answerable or any(row.metric == "agrotools.false_refusal" and row.value for row in rows):
        return "refusal"
    wrong = {row.slot: row for row in rows if row.slot is not None and row.value < 1}
    slots = [slot for slot in sample.answer if slot.name in wrong]
    if record.mode == "no-tool" or sample.reference is None or not sample.reference.steps:
        return "form" if _unread(wrong) else "answer"
    results, fault = _results(record)
    if fault:
        return fault
    implied = [implied_slot(slot, results) for slot in slots if not slot.made_by_tools]
    if any(each.differs for each in implied) or any(slot.made_by_tools for slot in slots):
        return "tools"
    return "form" if _unread(wrong) else "reading"


def _unread(wrong: Mapping[str, Score]) -> bool:
    """Return True if no value was read for any of the slots that lost points."""
    read = (row.reading.get(name) not in (None, [], {}) for row in wrong.values() for name in ("value", "facts"))
    return bool(wrong) and not any(read) and not any("off_by" in row.reading for row in wrong.values())


def _results(record: Record) -> tuple[Results, str]:
    """Return the result of each reference step in the record, or the cause if a call is missing or differs."""
    assert record.sample.reference is not None
    steps, own = record.sample.reference.steps, own_calls(record)
    missing = missing_calls(steps, own)
    for at, each in enumerate(own):
        if each is None or each.wrong:
            return [], "arguments" if each else "planning" if at in missing else "tools"
    return [each.values if each else None for each in own], ""


class CauseTally:
    """Points lost by cause, for each sample of a run."""

    def __init__(self) -> None:
        self._losses: dict[tuple[Mode, str], dict[str, float]] = {}
        self._splits: dict[str, dict[str, float]] = {}

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a valid record with its score rows."""
        value = next((row.value for row in rows if row.metric == FAS and row.slot is None), 1.0)
        if value < 1:
            losses = self._losses.setdefault((record.mode, record.sample.id), {})
            cause = cause_of(record, rows)
            losses[cause] = losses.get(cause, 0.0) + 1 - value

    def attribute(self, attribution: Attribution) -> None:
        """Use the split of end-to-end samples by ``agrotools attribute`` instead of their first cause."""
        self._splits = split_by_sample(attribution)

    def losses(self, mode: Mode, sample_id: str, score: float) -> dict[str, float]:
        """Return the points (as fractions) that a sample lost by each cause; their sum is ``1 - score``.

        A refusal that does not count because the answerable twin was refused too has the cause ``refusal``."""
        if mode == "end-to-end" and sample_id in self._splits:
            parts = self._splits[sample_id]
            return {**parts, CEILING: 1 - score - sum(parts.values())}
        losses = self._losses.get((mode, sample_id), {"refusal": 1.0})
        return {cause: (1 - score) * loss / sum(losses.values()) for cause, loss in losses.items()}


def split_by_sample(attribution: Attribution) -> dict[str, dict[str, float]]:
    """Return the points (as fractions) of each part for every sample, as means over its epochs."""
    epochs = Counter(each.id for each in attribution.samples)
    splits: dict[str, dict[str, float]] = {}
    for each in attribution.samples:
        parts = splits.setdefault(each.id, {})
        for part, points in each.parts.items():
            parts[part] = parts.get(part, 0.0) + points / 100 / epochs[each.id]
    return splits


def cause_meaning(cause: str) -> str:
    """Return the meaning of a cause, or of a part of ``agrotools attribute``."""
    return CAUSES[cause] if cause in CAUSES else part_meaning(cause)
