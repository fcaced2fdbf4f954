"""Recovery from faults in tool calls: which faults landed, were noticed, and cost the answer.

A fault is *noticed* if the policy makes the same call again or answers that the files do not allow an answer;
otherwise it is *swallowed*. A sample is
*recovered* if it was hit and is solved, like the same sample of the same model without faults; samples that the model
does not solve without faults have nothing to recover. Unanswerable samples do not count: refusing them is right,
whatever the tools return.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import get_args

from agrotools.core import FrozenModel, Record
from agrotools.core.form_item import asked_items
from agrotools.core.record import Fault, FaultKind
from agrotools.scoring.slots import refused
from agrotools.scoring.statistics import Estimate, estimate_mean

SOLVED = 1 - 1e-9


class Recovery(FrozenModel):
    """Recovery from faults of one kind (empty: of all kinds). Numbers are of epochs and samples taken together.

    ``planned``: faults that hit a call; ``landed``: those that changed what the policy saw; ``noticed``: of the landed
    ones. ``solved``: records that were hit, of samples that the model solves without faults, and ``recovered`` the
    share of them that it still solves, by cluster; ``extra_calls``: their calls more than without faults, mean.
    """

    kind: FaultKind | None
    planned: int
    landed: int
    noticed: int
    solved: int = 0
    recovered: Estimate | None = None
    extra_calls: float | None = None


def is_noticed(record: Record, fault: Fault) -> bool:
    """Return True if the policy noticed a fault that landed; see the module docstring."""
    trajectory = record.trajectory
    if trajectory is None:
        return False
    calls = [step.call for step in trajectory.calls]
    hit, later = calls[fault.call], calls[fault.call + 1 :]
    if hit is None:
        return False
    again = any(call and call.repeats(hit) for call in later)
    # A chart that is not drawn is no sign: the call that draws it may be the one that was hit.
    return again or (bool(asked_items(record.sample.answer)) and refused(record))


def recoveries(
    faulty: Iterable[tuple[Record, float]], clean: Mapping[str, tuple[float, float]] | None
) -> tuple[Recovery, ...]:
    """Return the recovery from all faults, and from those of each kind.

    Args:
        faulty: records of a run with faults, and their scores.
        clean: mean score and mean number of calls of each sample in a run of the same model without faults.
    """
    hit = [
        (record, score) for record, score in faulty if record.sample.answerable and record.faults
    ]
    found: list[Recovery] = []
    for kind in (None, *get_args(FaultKind)):
        hits = [
            (*each, [fault for fault in each[0].faults if kind in (None, fault.kind)])
            for each in hit
        ]
        if hits := [each for each in hits if each[2]]:
            found.append(_recovery(kind, hits, clean))
    return tuple(found)


def _recovery(
    kind: FaultKind | None,
    hits: list[tuple[Record, float, list[Fault]]],
    clean: Mapping[str, tuple[float, float]] | None,
) -> Recovery:
    faults = [(record, fault) for record, _, faults in hits for fault in faults]
    landed = [(record, fault) for record, fault in faults if fault.landed]
    solved: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    clusters: dict[str, str] = {}
    for record, score, of_record in hits:
        sample = record.sample
        before = clean.get(sample.id) if clean else None
        if before is None or before[0] < SOLVED or not any(fault.landed for fault in of_record):
            continue
        n_calls = len(record.trajectory.calls) if record.trajectory else 0
        solved[sample.id].append((score >= SOLVED, n_calls - before[1]))
        clusters[sample.id] = sample.cluster or sample.id
    outcomes = [each for of_sample in solved.values() for each in of_sample]
    shares = [
        sum(right for right, _ in of_sample) / len(of_sample) for of_sample in solved.values()
    ]
    return Recovery(
        kind=kind,
        planned=len(faults),
        landed=len(landed),
        noticed=sum(is_noticed(record, fault) for record, fault in landed),
        solved=len(outcomes),
        recovered=estimate_mean(shares, [*clusters.values()]) if shares else None,
        extra_calls=sum(extra for _, extra in outcomes) / len(outcomes) if outcomes else None,
    )
