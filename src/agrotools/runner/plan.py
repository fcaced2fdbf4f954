"""Plan of a run: pure set difference between the records that it should hold and those that it holds.

A plan holds positions of samples, never samples: each is asked for when its turn comes.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, overload

from agrotools.core import MODES, Mode, Sample
from agrotools.formats.benchmark import Facts, facts_of

Key = tuple[str, str, int]
"""Mode, sample id, epoch: what identifies a record in its run."""


class WorkItem(NamedTuple):
    """One sample to run in one mode and epoch."""

    sample: Sample
    mode: Mode
    epoch: int

    @property
    def key(self) -> Key:
        return (self.mode, self.sample.id, self.epoch)


_READ_AHEAD = 32


class Part(NamedTuple):
    """The samples, by position, to run in one mode and epoch."""

    mode: Mode
    epoch: int
    positions: "array[int]"


class Plan(Sequence[WorkItem]):
    """Items in the order in which they run, created on demand; length and keys need no sample."""

    def __init__(self, samples: Sequence[Sample], parts: Iterable[Part]) -> None:
        self.samples = samples
        self.ids = facts_of(samples).ids
        self.parts = tuple(part for part in parts if part.positions)

    def __len__(self) -> int:
        return sum(len(part.positions) for part in self.parts)

    def __iter__(self) -> Iterator[WorkItem]:
        for part in self.parts:
            for start in range(0, len(part.positions), _READ_AHEAD):
                # Reading some in a row takes half the time of reading each between two requests.
                samples = [self.samples[position] for position in part.positions[start : start + _READ_AHEAD]]
                for sample in samples:
                    yield WorkItem(sample, part.mode, part.epoch)

    @overload
    def __getitem__(self, index: int) -> WorkItem: ...
    @overload
    def __getitem__(self, index: slice) -> "list[WorkItem]": ...
    def __getitem__(self, index: int | slice) -> "WorkItem | list[WorkItem]":
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        at = range(len(self))[index]
        for part in self.parts:
            if at < len(part.positions):
                return WorkItem(self.samples[part.positions[at]], part.mode, part.epoch)
            at -= len(part.positions)
        raise IndexError(index)

    def sizes(self) -> dict[Mode, int]:
        """Number of items of each mode."""
        sizes: dict[Mode, int] = {}
        for part in self.parts:
            sizes[part.mode] = sizes.get(part.mode, 0) + len(part.positions)
        return sizes

    def keys(self) -> Iterator[Key]:
        """The key of every item, in order; no sample is parsed."""
        for part in self.parts:
            for position in part.positions:
                yield (part.mode, self.ids[position], part.epoch)


def work_items(samples: Sequence[Sample], modes: Iterable[Mode], epochs: int, *, single_shot: bool = False) -> Plan:
    """All items of a run, epoch by epoch, so that a run stopped early is complete in its first epochs.

    Step-by-step comes last: it shows reference calls and their observations, and an endpoint that remembers them must
    have answered the same questions in the other modes before.

    In no-tool, samples that need raster processing or a figure are excluded, unless the policy makes everything up in
    a ``single_shot``; in step-by-step, those without a reference trajectory.
    """
    requested = set(modes)
    facts = facts_of(samples)
    selected_modes: list[Mode] = [mode for mode in MODES if mode in requested]
    parts = [Part(mode, 0, array("I", _running_in(facts, mode, single_shot))) for mode in selected_modes]
    before = [part for part in parts if part.mode != "step-by-step"]
    after = [part for part in parts if part.mode == "step-by-step"]
    return Plan(samples, [part._replace(epoch=k) for some in (before, after) for k in range(epochs) for part in some])


def _running_in(facts: Facts, mode: Mode, single_shot: bool) -> Iterable[int]:
    """Positions of the samples that ``mode`` runs."""
    if mode == "end-to-end" or single_shot:
        return range(len(facts.ids))
    able = facts.no_tool if mode == "no-tool" else facts.reference
    return (position for position, can in enumerate(able) if can)


def remaining(plan: Plan, finished: AbstractSet[Key], failed: AbstractSet[Key] = frozenset()) -> Plan:
    """The items that have no finished record yet; those that ``failed`` before come last.

    What got no reply twice says little about the endpoint; what was never tried says more.
    """
    if not finished and not failed:
        return plan
    fresh = [_without(part, plan.ids, finished | failed) for part in plan.parts]
    again = [_without(part, plan.ids, finished, among=failed) for part in plan.parts]
    return Plan(plan.samples, [*fresh, *again])


def _without(part: Part, ids: Sequence[str], keys: AbstractSet[Key], *, among: AbstractSet[Key] | None = None) -> Part:
    """The items of ``part`` that are not in ``keys`` (and are in ``among``)."""
    positions_left = (
        at
        for at in part.positions
        if (key := (part.mode, ids[at], part.epoch)) not in keys and (among is None or key in among)
    )
    return part._replace(positions=array("I", positions_left))
