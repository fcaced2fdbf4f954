"""Plan of a run: the samples, modes and epochs that it runs, and what is left of them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from agrotools.core import MODES, Mode, Sample
from agrotools.formats.benchmark import Facts, facts_of
from agrotools.runner.records import Key


class WorkItem(NamedTuple):
    """One sample to run in one mode and epoch."""

    sample: Sample
    mode: Mode
    epoch: int

    @property
    def key(self) -> Key:
        return (self.mode, self.sample.id, self.epoch)


class Part(NamedTuple):
    """The samples, by position, to run in one mode and epoch."""

    mode: Mode
    epoch: int
    positions: Sequence[int]


class Plan:
    """Items in execution order, created on demand; length and keys do not load samples."""

    def __init__(self, samples: Sequence[Sample], parts: Iterable[Part]) -> None:
        self.samples = samples
        self.ids = facts_of(samples).ids
        self.parts = tuple(part for part in parts if part.positions)

    def __len__(self) -> int:
        return sum(len(part.positions) for part in self.parts)

    def __iter__(self) -> Iterator[WorkItem]:
        for part in self.parts:
            for position in part.positions:
                yield WorkItem(self.samples[position], part.mode, part.epoch)

    def sizes(self) -> dict[Mode, int]:
        """Return the number of items by mode."""
        sizes: dict[Mode, int] = {}
        for part in self.parts:
            sizes[part.mode] = sizes.get(part.mode, 0) + len(part.positions)
        return sizes

    def sample_ids(self) -> list[str]:
        """Return the ids of the samples that at least one item runs, in the order of the benchmark."""
        return [self.ids[at] for at in sorted({at for part in self.parts for at in part.positions})]

    def keys(self) -> Iterator[Key]:
        """Yield the key of every item, in order, without loading samples."""
        for part in self.parts:
            for position in part.positions:
                yield (part.mode, self.ids[position], part.epoch)


def work_items(
    samples: Sequence[Sample],
    modes: Iterable[Mode],
    epochs: int,
    *,
    single_shot: bool = False,
    limit: int | None = None,
    only: Sequence[str] = (),
) -> Plan:
    """Return all items of a run, epoch by epoch, so that a run stopped early is complete in its first epochs.

    Step-by-step comes last: it shows reference calls and their observations, so an endpoint that caches prompts must
    answer the same questions in the other modes first.

    No-tool excludes samples that need raster processing or a figure, unless the policy is ``single_shot`` (writes the
    whole solution at once); step-by-step excludes samples without a reference trajectory. With a ``limit``, each mode
    runs that many of its samples: those whose ids have the lowest hashes, so that a larger limit adds samples.
    ``only``: ids of the samples that may run; all if empty.
    """
    requested = set(modes)
    facts = facts_of(samples)
    allowed = set(only or facts.ids)
    selected_modes: list[Mode] = [mode for mode in MODES if mode in requested]
    parts = [
        Part(mode, 0, _limited(facts.ids, positions, limit))
        for mode in selected_modes
        for positions in [[at for at in _running_in(facts, mode, single_shot) if facts.ids[at] in allowed]]
    ]
    before = [part for part in parts if part.mode != "step-by-step"]
    after = [part for part in parts if part.mode == "step-by-step"]
    return Plan(samples, [part._replace(epoch=k) for some in (before, after) for k in range(epochs) for part in some])


def _running_in(facts: Facts, mode: Mode, single_shot: bool) -> Iterable[int]:
    """Return the positions of the samples that run in ``mode``."""
    if mode == "end-to-end" or single_shot:
        return range(len(facts.ids))
    able = facts.no_tool if mode == "no-tool" else facts.reference
    return (position for position, can in enumerate(able) if can)


def _limited(ids: Sequence[str], positions: Sequence[int], limit: int | None) -> Sequence[int]:
    """Return ``limit`` of the positions in ascending order, chosen by the hashes of the ids; all if it is None."""
    if limit is None:
        return positions
    return sorted(sorted(positions, key=lambda at: hashlib.sha256(ids[at].encode()).hexdigest())[:limit])


def remaining(plan: Plan, finished: AbstractSet[Key], failed: AbstractSet[Key] = frozenset()) -> Plan:
    """Return the items without a finished record; items in ``failed`` come last.

    A sample that has failed before says little about the endpoint; an untried one says more.
    """
    if not finished and not failed:
        return plan
    fresh = [_without(part, plan.ids, finished | failed) for part in plan.parts]
    again = [_without(part, plan.ids, finished, among=failed) for part in plan.parts]
    return Plan(plan.samples, [*fresh, *again])


def _without(part: Part, ids: Sequence[str], keys: AbstractSet[Key], *, among: AbstractSet[Key] | None = None) -> Part:
    """Return the items of ``part`` that are not in ``keys`` (and, if given, in ``among``)."""
    positions_left = [
        at
        for at in part.positions
        if (key := (part.mode, ids[at], part.epoch)) not in keys and (among is None or key in among)
    ]
    return part._replace(positions=positions_left)
