"""The chance level of the Open-Text Score: the same answers scored against the facts of other samples."""

import hashlib
from collections import Counter
from collections.abc import Sequence

from agrotools.core import OpenTextSlot, Record, Sample
from agrotools.scoring.slots import score_slot
from agrotools.scoring.statistics import Estimate, estimate_mean

MAX_OTHERS = 20
"""Each answer is scored against the facts of at most this many other samples."""


def open_text_chance(records: Sequence[Record]) -> Estimate | None:
    """Mean open-text score of each record's answer against open-text slots of samples of other clusters.

    ``records`` are valid ones of one mode with trajectories. No answer scores 0, as in the score itself. None where
    fewer than two clusters have open-text slots.
    """
    samples = {record.sample.id: record.sample for record in records if _open_slots(record.sample)}
    if len({_cluster(sample) for sample in samples.values()}) < 2:
        return None
    others = _drawn(list(samples.values()))
    by_sample: dict[str, list[float]] = {}
    for record in records:
        if record.sample.id in samples:
            foreign = [sample for sample in others if _cluster(sample) != _cluster(record.sample)]
            by_sample.setdefault(record.sample.id, []).append(_against(record, foreign))
    means = [sum(values) / len(values) for values in by_sample.values()]
    return estimate_mean(means, [_cluster(samples[id_]) for id_ in by_sample])


def _against(record: Record, others: Sequence[Sample]) -> float:
    answer = record.trajectory.answer if record.trajectory else None
    if answer is None:
        return 0.0
    values = [[score_slot(slot, (slot,), answer).value for slot in _open_slots(other)] for other in others]
    return sum(sum(own) / len(own) for own in values) / len(values)


def _drawn(samples: Sequence[Sample]) -> list[Sample]:
    """At most ``MAX_OTHERS`` samples: one of each cluster, then a second one of each... in an order fixed by hash."""
    ordered = sorted(samples, key=lambda sample: hashlib.sha256(sample.id.encode()).hexdigest())
    taken = Counter[str]()
    ranked: list[tuple[int, Sample]] = []
    for sample in ordered:
        ranked.append((taken[_cluster(sample)], sample))
        taken[_cluster(sample)] += 1
    return [sample for _, sample in sorted(ranked, key=lambda pair: pair[0])[:MAX_OTHERS]]


def _open_slots(sample: Sample) -> list[OpenTextSlot]:
    return [slot for slot in sample.answer if isinstance(slot, OpenTextSlot)]


def _cluster(sample: Sample) -> str:
    return sample.cluster or sample.id
