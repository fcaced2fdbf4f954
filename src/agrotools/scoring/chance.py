"""The chance level of the Open-Text Score: the same answers scored against the facts of other samples.

Which other samples is known only when all records were seen, so each answer is looked at a second time.
"""

import hashlib
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agrotools.core import OpenTextSlot, Record, Sample
from agrotools.scoring.sample_units import Kind, SampleTable, any_kind, clusters_of, of_kind, summed
from agrotools.scoring.slots import score_slot
from agrotools.scoring.statistics import Estimate, estimate_mean

MAX_OTHERS = 20
"""Each answer is scored against the facts of at most this many other samples."""


class _Other(NamedTuple):
    """A sample whose facts others' answers are scored against. ``hash`` is that of its id."""

    hash: str
    cluster: int
    slots: list[OpenTextSlot]


class OpenTextChance:
    """Mean open-text score of each record's answer against open-text slots of samples of other clusters.

    First every valid record of one mode is added, then, if :attr:`wants_answers`, every one again as an answer.
    """

    def __init__(self, table: SampleTable) -> None:
        self._table = table
        self._seen = bytearray()  # by number of the sample
        self._clusters: set[int] = set()  # two are enough to know
        self._others: list[_Other] = []
        self._samples = array("l")
        self._values = array("d")

    def add(self, record: Record) -> None:
        """A record with a trajectory, as one whose facts others' answers may be scored against."""
        slots = _open_slots(record.sample)
        if not slots:
            return
        number = self._table.number(record.sample)
        self._seen.extend(bytes(max(0, number + 1 - len(self._seen))))
        if self._seen[number]:
            return
        self._seen[number] = True
        cluster = self._table.clusters[number]
        if len(self._clusters) < 2:
            self._clusters.add(cluster)
        digest = hashlib.sha256(record.sample.id.encode()).hexdigest()
        self._others = _drawn([*self._others, _Other(digest, cluster, slots)])

    @property
    def wants_answers(self) -> bool:
        """True if at least two clusters have open-text slots."""
        return len(self._clusters) > 1

    def add_answer(self, record: Record) -> None:
        """A record with a trajectory, as an answer. No answer scores 0, as in the score itself."""
        if not _open_slots(record.sample):
            return
        number = self._table.number(record.sample)
        foreign = [other for other in self._others if other.cluster != self._table.clusters[number]]
        self._samples.append(number)
        self._values.append(_against(record, foreign))

    def estimate(self, wanted: Callable[[Kind], bool] = any_kind) -> Estimate | None:
        """The chance level over the samples of a wanted kind; None where there are none, or where fewer than two
        clusters have open-text slots."""
        import numpy as np

        samples = np.asarray(self._samples, dtype=np.int64)
        chosen = of_kind(samples, self._table, wanted)
        if not chosen.any():
            return None
        numbers, first, totals, counts = summed(samples[chosen], np.asarray(self._values)[chosen])
        in_order = np.argsort(first)
        clusters = clusters_of(numbers, self._table)
        return estimate_mean((totals / counts)[in_order], clusters[in_order])


def _against(record: Record, others: Sequence[_Other]) -> float:
    answer = record.trajectory.answer if record.trajectory else None
    if answer is None:
        return 0.0
    values = [[score_slot(slot, (slot,), answer).value for slot in other.slots] for other in others]
    return sum(sum(own) / len(own) for own in values) / len(values)


def _drawn(candidates: Sequence[_Other]) -> list[_Other]:
    """At most ``MAX_OTHERS`` samples: one of each cluster, then a second one of each... in an order fixed by hash.

    A sample that is not among them once never will be when more come: whatever comes takes no place away from those
    before it. So it is enough to draw from the last draw and the new one.
    """
    taken: dict[int, int] = {}
    ranked: list[tuple[int, _Other]] = []
    for other in sorted(candidates, key=lambda other: other.hash):
        rank = taken.get(other.cluster, 0)
        ranked.append((rank, other))
        taken[other.cluster] = rank + 1
    return [other for _, other in sorted(ranked, key=lambda pair: pair[0])[:MAX_OTHERS]]


def _open_slots(sample: Sample) -> list[OpenTextSlot]:
    return [slot for slot in sample.answer if isinstance(slot, OpenTextSlot) and slot.headline]
