"""Plan of a run: the samples, modes and epochs that it runs, what is left of them, and the tools that they offer.

``--tools`` measures what long lists of tools cost. ``needed`` offers the tools of the reference calls, which is
*privileged* information: the list hints at the solution. ``+N`` adds N of the sample's other tools. They depend only on
the sample's id, so that every model is offered the same ones, and those of ``+2`` are among those of ``+4``.
"""

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import compress
from typing import NamedTuple

from agrotools.agents.llm import PROTOCOLS
from agrotools.calling import get_tool
from agrotools.core import (
    MODES,
    DeclaredTool,
    ErrorInfo,
    Mode,
    Observation,
    Protocol,
    ReferenceStep,
    Sample,
    ToolCall,
    ToolOutcome,
    UsageError,
)
from agrotools.core.files import sha256_of_file
from agrotools.core.record import literal_value
from agrotools.core.texts import suggestion
from agrotools.formats.benchmark import LazySamples, SampleFacts, facts_of
from agrotools.loading import Benchmark
from agrotools.runner.records import Key, RecordIndex


class WorkItem(NamedTuple):
    """One sample to run in one mode and epoch."""

    sample: Sample
    mode: Mode
    epoch: int

    @property
    def key(self) -> Key:
        return (self.mode, self.sample.id, self.epoch)


class PlanPart(NamedTuple):
    """The samples, by position, to run in one mode and epoch."""

    mode: Mode
    epoch: int
    positions: Sequence[int]


class WorkItems:
    """Items in execution order, created on demand; length and keys do not load samples."""

    def __init__(self, samples: Sequence[Sample], parts: Iterable[PlanPart]) -> None:
        self.samples = samples
        self.ids = facts_of(samples).ids
        self.parts = tuple(part for part in parts if part.positions)

    def __len__(self) -> int:
        return sum(len(part.positions) for part in self.parts)

    def __iter__(self) -> Iterator[WorkItem]:
        for part in self.parts:
            for position in part.positions:
                yield WorkItem(self.samples[position], part.mode, part.epoch)

    def among(self, ids: Collection[str], mode: Mode | None = None) -> "WorkItems":
        """Return the items of the samples ``ids``, only those of ``mode`` if it is given."""
        parts = (part for part in self.parts if mode in (None, part.mode))
        return WorkItems(
            self.samples,
            [
                part._replace(positions=[at for at in part.positions if self.ids[at] in ids])
                for part in parts
            ],
        )

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
) -> WorkItems:
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
        PlanPart(
            mode, 0, _limited(facts, _running_in(facts, mode, single_shot, frozenset(only)), limit)
        )
        for mode in selected_modes
    ]
    before = [part for part in parts if part.mode != "step-by-step"]
    after = [part for part in parts if part.mode == "step-by-step"]
    return WorkItems(
        samples,
        [
            part._replace(epoch=k)
            for some in (before, after)
            for k in range(epochs)
            for part in some
        ],
    )


def _running_in(
    facts: SampleFacts, mode: Mode, single_shot: bool, only: AbstractSet[str]
) -> Sequence[int]:
    every = range(len(facts.ids))
    able = facts.no_tool if mode == "no-tool" else facts.reference
    positions = every if mode == "end-to-end" or single_shot else compress(every, able)
    return array("I", (at for at in positions if facts.ids[at] in only) if only else positions)


def _limited(facts: SampleFacts, positions: Sequence[int], limit: int | None) -> Sequence[int]:
    """Return ``limit`` of the positions in ascending order, chosen by the hashes of the ids; all if it is None.

    Of two twins both are chosen or neither, so that there may be one position less.
    """
    if limit is None:
        return positions

    def of_pair(at: int) -> str:
        name = facts.ids[at]
        return sha256(min(name, facts.twins.get(name, name)).encode()).hexdigest()

    ordered = sorted(positions, key=of_pair)
    if 0 < limit < len(ordered) and of_pair(ordered[limit - 1]) == of_pair(ordered[limit]):
        limit = max(1, limit - 1)
    return sorted(ordered[:limit])


def remaining(
    items: WorkItems,
    recorded: AbstractSet[Key] | RecordIndex,
    failed: AbstractSet[Key] = frozenset(),
) -> WorkItems:
    """Return the items that are not ``recorded``, and then those in ``failed``.

    A sample that has failed before says little about the endpoint; an untried one says more.
    """
    if not recorded and not failed:
        return items

    def where(part: PlanPart, keep: Callable[[Key], bool]) -> PlanPart:
        positions = (at for at in part.positions if keep((part.mode, items.ids[at], part.epoch)))
        return part._replace(positions=array("I", positions))

    fresh = [
        where(part, lambda key: key not in recorded and key not in failed) for part in items.parts
    ]
    again = [where(part, failed.__contains__) for part in items.parts] if failed else []
    return WorkItems(items.samples, [*fresh, *again])


RECORDED = "recorded"
"""Back-end of a tool that is not executed: its calls return the recorded observations of the reference."""
EVERY_TOOL = "*"
"""Name that stands for all tools of a benchmark in a table of back-ends."""
ALL_TOOLS, NEEDED_TOOLS = "all", "needed"
_SELECTION = re.compile(rf"{ALL_TOOLS}|{NEEDED_TOOLS}|\+(?:0|[1-9]\d{{0,3}})")


def checked_selection(selection: str) -> str:
    """Return ``selection`` if it is ``all``, ``needed`` or ``+N``; ValueError if it is something else."""
    if not _SELECTION.fullmatch(selection):
        raise ValueError(f"should be {ALL_TOOLS}, {NEEDED_TOOLS} or +N, e.g. +4")
    return NEEDED_TOOLS if selection == "+0" else selection


def offered_tools(sample: Sample, selection: str) -> tuple[str, ...]:
    """Return the tools of ``sample`` that a run with this selection offers, in the order of its toolset."""
    if selection == ALL_TOOLS or sample.reference is None:
        return sample.toolset
    needed = set(sample.reference.tools)
    others = [tool for tool in sample.toolset if tool not in needed]
    name = min(
        sample.id, sample.twin or sample.id
    )  # the same for twins, so that the list does not tell them apart
    others.sort(key=lambda tool: sha256(f"{name}/{tool}".encode()).digest())
    n_others = 0 if selection == NEEDED_TOOLS else int(selection)
    offered = needed.union(others[:n_others])
    return tuple(tool for tool in sample.toolset if tool in offered)


def with_offered_tools(benchmark: Benchmark, selection: str, protocol: Protocol) -> Benchmark:
    """Return ``benchmark`` with the selected tools in each of its samples.

    Raises:
        UsageError: not all samples have reference calls, or the protocol is a published one.
    """
    if selection == ALL_TOOLS:
        return benchmark
    if protocol not in PROTOCOLS:
        raise UsageError(
            f"--tools {selection} would change the published protocol {protocol}",
            hint=f"add --protocol {next(iter(PROTOCOLS))}, whose scores are not compared with published ones",
        )
    samples: Sequence[Sample] = benchmark.samples
    facts = facts_of(samples)
    without = next(
        (name for name, has in zip(facts.ids, facts.reference, strict=True) if not has), None
    )
    if without:
        raise UsageError(
            f"--tools {selection} needs reference calls, and not all samples of {benchmark.name} have any, "
            f"e.g. {without}",
            hint="run it without --tools, or choose another benchmark",
        )

    def offered(at: int) -> Sample:
        sample = samples[at]
        return sample.model_copy(update={"toolset": offered_tools(sample, selection)})

    return replace(benchmark, samples=LazySamples(facts, offered))


def with_served_tools(benchmark: Benchmark, tools: Sequence[DeclaredTool]) -> Benchmark:
    """Return ``benchmark`` with the tools of servers in each of its samples, beside those that it offers."""
    if not tools:
        return benchmark
    header = benchmark.header
    samples: Sequence[Sample] = benchmark.samples

    def offered(at: int) -> Sample:
        return sample_with_tools(samples[at], tools)

    extended = header.model_copy(
        update={
            "toolset": (*header.toolset, *(tool.name for tool in tools)),
            "declared": (*header.declared, *tools),
        }
    )
    return replace(benchmark, header=extended, samples=LazySamples(facts_of(samples), offered))


def sample_with_tools(sample: Sample, tools: Sequence[DeclaredTool]) -> Sample:
    """Return ``sample`` with the tools of servers beside those that it offers."""
    toolset = (*sample.toolset, *(tool.name for tool in tools))
    declared = (*sample.declared, *tools)
    return sample.model_copy(update={"toolset": toolset, "declared": declared})


def backend_by_tool(backends: Mapping[str, str], toolset: Sequence[str]) -> dict[str, str]:
    """Return ``backends`` with the entry for all tools expanded to each tool of ``toolset`` without an entry.

    Raises:
        UsageError: a tool outside ``toolset`` has the back-end ``recorded``.
    """
    by_tool = {tool: backend for tool, backend in backends.items() if tool != EVERY_TOOL}
    for tool, backend in by_tool.items():
        if backend == RECORDED and tool not in toolset:
            fault = f"the benchmark has no tool {tool!r} whose calls could be recorded"
            raise UsageError(fault, hint=suggestion(tool, toolset))
    if EVERY_TOOL in backends:
        return {**dict.fromkeys(toolset, backends[EVERY_TOOL]), **by_tool}
    return by_tool


def tool_data(tools: Sequence[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of the data files on this machine for each tool that is executed; empty if it has none."""
    hashes: dict[str, str] = {}
    hash_once = cache(
        sha256_of_file
    )  # several tools read the same files, e.g. those of the knowledge base
    for name in tools:
        if (backend := backends.get(name)) != RECORDED:
            files = sorted(path for path in get_tool(name).files_for(backend) if path.is_file())
            content = b"".join(
                path.name.encode() + b"\0" + hash_once(path).encode() for path in files
            )
            hashes[name] = sha256(content).hexdigest() if files else ""
    return hashes


class RecordedTools:
    """Tool that answers the calls of one sample with the recorded observations of matching reference calls.

    It lets a benchmark run end to end if its tools cannot, e.g. without weights, keys or a network. A call without a
    match gets an error, and no tool is executed. If the reference repeats a call, its observations are returned in
    order.
    """

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._returned: set[int] = set()

    def run(self, call: ToolCall) -> ToolOutcome:
        """Return the observation of the reference call that ``call`` agrees with, or an error if there is none."""
        steps = self._sample.reference.steps if self._sample.reference else ()
        left = [place for place in range(len(steps)) if place not in self._returned]
        places = (*left, *sorted(self._returned, reverse=True))
        place = next((place for place in places if self._matches(call, steps[place])), None)
        if place is None:
            return _failed(
                f"no call of the reference is {call.tool} with these arguments, and nothing else was recorded",
                f"the tool is not run here; for results of its own: --backend {call.tool}=offline",
            )
        self._returned.add(place)
        observation = steps[place].observation
        if observation is None or observation.empty:
            return _failed(
                "nothing was recorded of this call", "run the tool itself: choose another --backend"
            )
        # Artifacts of a recorded observation are in no workspace: a later call can name them, but not open them.
        return ToolOutcome(observation.model_copy(update={"artifacts": ()}), source="recording")

    def _matches(self, call: ToolCall, step: ReferenceStep) -> bool:
        if call.tool != step.tool:
            return False
        if repr(call.arguments) == repr(
            {name: literal_value(value) for name, value in step.arguments.items()}
        ):
            return True  # the usual case, without loading the comparison of arguments
        from agrotools.scoring.steps import agrees

        return agrees(self._sample, call, step)


def _failed(message: str, hint: str) -> ToolOutcome:
    return ToolOutcome(
        Observation(error=ErrorInfo(kind="backend_unavailable", message=message, hint=hint)), 0.0
    )
