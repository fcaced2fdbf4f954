"""Plan of a run: the samples, modes and epochs that it runs, and what is left of them."""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import NamedTuple

from agrotools.core import MODES, Mode, Sample
from agrotools.formats.benchmark import Facts, facts_of
from agrotools.runner.records import Key, RecordIndex


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

    def sample_ids(self) -> tuple[str, ...]:
        """Return the ids of the samples that at least one item runs, in the order of the benchmark."""
        runs = bytearray(len(self.ids))
        for part in self.parts:
            for at in part.positions:
                runs[at] = 1
        return tuple(compress(self.ids, runs))

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
    runs that many of its samples: those whose ids have the lowest hashes, so that a larger limit adds samples. Twins
    stay together, because a refusal counts only beside the answer to the twin.
    ``only``: ids of the samples that may run; all if empty.
    """
    requested = set(modes)
    facts = facts_of(samples)
    selected_modes: list[Mode] = [mode for mode in MODES if mode in requested]
    parts = [
        Part(mode, 0, _limited(facts, _running_in(facts, mode, single_shot, frozenset(only)), limit))
        for mode in selected_modes
    ]
    before = [part for part in parts if part.mode != "step-by-step"]
    after = [part for part in parts if part.mode == "step-by-step"]
    return Plan(samples, [part._replace(epoch=k) for some in (before, after) for k in range(epochs) for part in some])


def _running_in(facts: Facts, mode: Mode, single_shot: bool, only: AbstractSet[str]) -> Sequence[int]:
    """Return the positions of the samples that run in ``mode``, those of ``only`` if it is not empty."""
    every = range(len(facts.ids))
    able = facts.no_tool if mode == "no-tool" else facts.reference
    positions = every if mode == "end-to-end" or single_shot else compress(every, able)
    return array("I", (at for at in positions if facts.ids[at] in only) if only else positions)


def _limited(facts: Facts, positions: Sequence[int], limit: int | None) -> Sequence[int]:
    """Return ``limit`` of the positions in ascending order, chosen by the hashes of the ids; all if it is None.

    Of two twins both are chosen or neither, so that there may be one position less.
    """
    if limit is None:
        return positions

    def of_pair(at: int) -> str:
        name = facts.ids[at]
        return hashlib.sha256(min(name, facts.twins.get(name, name)).encode()).hexdigest()

    ordered = sorted(positions, key=of_pair)
    if 0 < limit < len(ordered) and of_pair(ordered[limit - 1]) == of_pair(ordered[limit]):
        limit = max(1, limit - 1)
    return sorted(ordered[:limit])


def remaining(plan: Plan, recorded: AbstractSet[Key] | RecordIndex, failed: AbstractSet[Key] = frozenset()) -> Plan:
    """Return the items that are not ``recorded``, and then those in ``failed``.

    A sample that has failed before says little about the endpoint; an untried one says more.
    """
    if not recorded and not failed:
        return plan

    def where(part: Part, keep: Callable[[Key], bool]) -> Part:
        kept = (at for at in part.positions if keep((part.mode, plan.ids[at], part.epoch)))
        return part._replace(positions=array("I", kept))

    fresh = [where(part, lambda key: key not in recorded and key not in failed) for part in plan.parts]
    again = [where(part, failed.__contains__) for part in plan.parts] if failed else []
    return Plan(plan.samples, [*fresh, *again])
