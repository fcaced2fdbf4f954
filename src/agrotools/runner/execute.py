"""Execution of the samples of a run: a single sample from its view to its record, and all samples at the run's pace.

A run ends when its items are done, it is interrupted, the budget is spent, or the endpoint is unreachable.
"""

import asyncio
import itertools
import os
import shutil
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agrotools.agents.images import UNSHOWN, reason_unreadable
from agrotools.agents.modes import (
    UNPARSEABLE_LIMIT,
    Policy,
    is_external,
    run_end_to_end,
    run_no_tool,
    run_single_shot,
    run_step_by_step,
    with_shown_observations,
    with_truth_observations,
)
from agrotools.calling.execution import ToolExecutor, ToolOutcome
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    Action,
    AgrotoolsError,
    BudgetReached,
    InfrastructureError,
    Observation,
    Record,
    Sample,
    SampleView,
    ToolCall,
    ToolError,
    Trajectory,
)
from agrotools.core.errors import words_of
from agrotools.core.files import was_changed
from agrotools.core.processes import on_stop_signal
from agrotools.formats.benchmark import MOST_MAKERS
from agrotools.loading import Benchmark
from agrotools.models import WireStats
from agrotools.models.base import Slots
from agrotools.runner.plan import RecordedTools, WorkItem
from agrotools.runner.policies import PolicySource
from agrotools.runner.prompts import add_requests, collect_requests
from agrotools.runner.store import RunStore

if TYPE_CHECKING:
    from agrotools.runner.faults import FaultPlan, FaultyTools

HANDFUL = 8
"""Samples between two attempts that do not count against the limit, even if the limit is lower."""


class Pace(Slots):
    """Limit on samples in flight, each with a slot: as many as requests, and those that wait for a tool and send none.

    Samples between two attempts do not count either, so that a few unanswered ones do not block all others at a low
    limit. At most the larger of :data:`HANDFUL` and the limit are exempted, because the endpoint may be unreachable.
    The limit on requests is that of ``stats``, which adapts to the endpoint; ``most`` applies in any case.
    """

    def __init__(self, most: int, stats: WireStats | None = None) -> None:
        super().__init__()
        self.most = most
        self._stats = stats
        self._in_tools = 0

    @property
    def allowed(self) -> int:
        limit = self._stats.limit if self._stats else 0
        if not self._stats or not limit:
            return self.most
        waiting = min(self._stats.retry_waits, max(HANDFUL, limit))
        return min(self.most, limit + self._in_tools + waiting)

    async def pass_on(self) -> None:
        """End one sample and begin the next; it takes the same place unless the limit has fallen."""
        if self.in_use > self.allowed:
            self.release()
            await self.acquire()
        else:
            self.admit()

    def tool_begins(self) -> None:
        self._in_tools += 1
        self.admit()

    def tool_ends(self) -> None:
        self._in_tools -= 1

    def open(self) -> None:
        """Admit all waiting samples, even above the limit, because the run is about to end."""
        self.most = max(self.most, self.in_use + len(self._queue))
        self._stats = None
        self.admit()


@contextmanager
def interrupts(on_first: Callable[[], None]) -> Generator[None]:
    """Call ``on_first`` at the first signal to stop within the block, and raise KeyboardInterrupt at the next one."""
    task = asyncio.current_task()
    assert task is not None
    seen = 0

    def received() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            on_first()
        else:
            task.cancel()

    with on_stop_signal(received):
        try:
            yield
        except asyncio.CancelledError:
            if seen > 1:
                raise KeyboardInterrupt from None
            raise


_NUMBERS = itertools.count()


@dataclass(frozen=True)
class RunContext:
    """Policy, tools, store and limits shared by the samples of a run."""

    source: PolicySource
    benchmark: Benchmark
    store: RunStore
    executor: ToolExecutor
    pace: Pace
    max_steps: int
    recorded: frozenset[str] = frozenset()
    """Tools that are not executed; see :class:`RecordedTools`."""
    unparseable_limit: int | None = UNPARSEABLE_LIMIT
    """Consecutive unparseable replies that end a sample; None for no limit."""
    faults: "FaultPlan | None" = None
    """Faults that are put into tool calls; None for none."""
    preparing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_MAKERS))
    """Limit on samples whose files are being made."""


INTERNAL_ERROR = "internal error"
"""Prefix of the reason of a record that was made invalid by an exception in our code."""
POLICY_ERROR = "error of the policy"
"""Prefix of the reason of a record that was made invalid by an exception in a policy of another package."""


async def run_item(item: WorkItem, context: RunContext) -> Record:
    """Run one sample. A fault on our side, or the endpoint's, makes the record invalid.

    Raises:
        AgrotoolsError: a fault that concerns all samples: a refused key, a full disk, a spent budget.
    """
    started = time.monotonic()
    sample = with_history(item, context.source)
    view = context.benchmark.view(sample, "end-to-end" if context.source.single_shot else item.mode)
    trajectory: Trajectory | None = None
    actions: tuple[Action, ...] | None = None
    invalid: str | None = None
    policy: Policy | None = None
    faulty: FaultyTools | None = None
    UNSHOWN.set(unshown := set[str]())
    try:
        policy = context.source.make(sample, item.mode, item.epoch)
        if context.source.single_shot:
            trajectory = await run_single_shot(policy, view)
        elif item.mode == "no-tool":
            trajectory = await run_no_tool(policy, view)
        elif item.mode == "step-by-step":
            assert sample.reference is not None
            actions = await run_step_by_step(policy, view, sample.reference)
        else:
            with ExitStack() as stack:
                workspace = Workspace(view.files, context.store.scratch / f"{next(_NUMBERS)}")
                if is_external(policy):
                    policy.artifacts = workspace.artifacts
                call_tool = _tool_caller(sample, workspace, context, stack)
                if context.faults is not None:
                    call_tool = faulty = context.faults.tools(sample, item.epoch, call_tool)
                limits = context.max_steps, context.unparseable_limit
                trajectory = await run_end_to_end(policy, view, call_tool, *limits)
    except InfrastructureError as error:
        invalid = str(error)
    except AgrotoolsError:
        raise
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # the run is ending; without a request to cancel, the policy leaked a cancellation of its own
        # An internal error on one sample must not cost the others: it counts as invalid and appears in the report.
        at = traceback.extract_tb(error.__traceback__)[-1]
        origin = (
            INTERNAL_ERROR if policy is None or not _is_raised_by(policy, error) else POLICY_ERROR
        )
        invalid = (
            f"{origin}, {type(error).__name__}: {words_of(error)} ({at.name}, line {at.lineno})"
        )
    finally:
        if policy is not None and is_external(policy):
            await policy.end_sample()
    usage = policy.usage if policy is not None and is_external(policy) else None
    if usage is not None:
        add_requests(usage.requests)
    if view.files and (
        fault := _fault_of_files(sample, view, context.benchmark, trajectory, unshown)
    ):
        trajectory, actions, invalid = None, None, fault
    return Record(
        sample=sample,
        mode=item.mode,
        epoch=item.epoch,
        trajectory=trajectory,
        actions=actions,
        invalid=invalid,
        seconds=round(time.monotonic() - started, 3),
        faults=tuple(faulty.faults) if faulty and trajectory else (),
        agent_replies=usage.replies if usage is not None else None,
    )


def _fault_of_files(
    sample: Sample,
    view: SampleView,
    benchmark: Benchmark,
    trajectory: Trajectory | None,
    unshown: Set[str],
) -> str:
    """Return what is wrong with the files of a sample, which is no error of the model; usually empty.

    A file that neither the model (``unshown``) nor a tool could read is broken for everyone. Where the right answer is
    that the files allow none, it may be so on purpose.
    """
    calls = [(step.call, step.observation) for step in (trajectory.calls if trajectory else ())]
    kinds = [(seen.error.kind if seen.error else "", call) for call, seen in calls if call and seen]
    doubted = sample.answerable and (unshown or any(kind == "unreadable_file" for kind, _ in kinds))
    for file, shown in zip(sample.files, view.files, strict=True):
        if not os.access(shown.path, os.R_OK):
            return f"the benchmark's file {shown.path} can no longer be read"
        is_original = shown.path.endswith(file.path)
        path = shown.path if is_original else str(Benchmark.file_path(benchmark, file))
        if file.sha256 and was_changed(path, file.sha256):
            return f"the benchmark's file {path} was changed during the run"
        of_file = {
            kind for kind, call in kinds if doubted and file.name in str([*call.arguments.values()])
        }
        asked = file.name in unshown or "unreadable_file" in of_file
        if doubted and asked and "" not in of_file and (reason := reason_unreadable(shown)):
            return f"the benchmark's file {shown.path} cannot be read: {reason}"
    return ""


def _is_raised_by(policy: Policy, error: BaseException) -> bool:
    """True if the policy is not part of this package, and the error does not come from a tool call."""
    if type(policy).__module__.partition(".")[0] == "agrotools":
        return False
    return all(frame.name != "call_tool" for frame in traceback.extract_tb(error.__traceback__))


def with_history(item: WorkItem, source: PolicySource) -> Sample:
    """Return the sample with the observations that this run shows as history (used only in step-by-step)."""
    if item.mode != "step-by-step":
        return item.sample
    return (
        with_truth_observations(item.sample)
        if source.truth_tools
        else with_shown_observations(item.sample)
    )


def _tool_caller(
    sample: Sample, workspace: Workspace, context: RunContext, stack: ExitStack
) -> Callable[[ToolCall], Awaitable[ToolOutcome]]:
    if context.source.truth_tools:
        from agrotools.formats.reference_results import true_observations

        truths = iter(true_observations(sample))

        async def answer_with_truth(_call: ToolCall) -> ToolOutcome:
            return ToolOutcome(next(truths))

        return answer_with_truth

    replay = RecordedTools(sample) if context.recorded else None
    has_artifacts = False

    async def call_tool(call: ToolCall) -> ToolOutcome:
        nonlocal has_artifacts
        if replay is not None and call.tool in context.recorded and call.tool in sample.toolset:
            return replay.run(call)
        toolset = sample.toolset
        if tool := next((each for each in sample.declared if each.name == call.tool), None):
            from agrotools.calling.declared import installed_call

            try:
                call, toolset = installed_call(tool, call), (tool.runs,)
            except ToolError as error:
                return ToolOutcome(Observation(error=error.info))
        context.pace.tool_begins()
        try:
            outcome = await context.executor.run(call, workspace, toolset)
        finally:
            context.pace.tool_ends()
        if outcome.observation.artifacts:
            if not has_artifacts:
                # Files that a cancelled call still writes there are removed with the scratch folder.
                stack.callback(shutil.rmtree, workspace.artifacts, ignore_errors=True)
                has_artifacts = True
            await context.store.keep_artifacts(outcome.observation, workspace.artifacts)
        return outcome

    return call_tool


_TICK_S = 0.5
_FEWEST_BEFORE_GIVING_UP = 10


@dataclass
class Ending:
    """Early end of a run: no further sample starts, and those in flight are finished."""

    context: RunContext
    requested: bool = False
    error: AgrotoolsError | None = None
    """Error that stopped the run."""
    silent: int = 0
    """Consecutive samples without a reply."""

    def stop(self, error: AgrotoolsError) -> None:
        """Request the end because of an error, of which the first is that of the run."""
        self.requested, self.error = True, self.error or error

    @property
    def replies(self) -> int:
        """Number of replies to all samples so far."""
        stats = self.context.source.stats
        return stats.replies if stats else 0

    def record_outcome(self, record: Record, replies_at_start: int) -> None:
        """Stop at an unreachable endpoint, so that a run does not fail sample by sample for hours."""
        # Replies to other samples show that the endpoint is reachable. When its capacity drops, the samples in flight
        # are the ones that fail, many in a row, which says nothing about the rest.
        if (
            self.context.source.stats is None
            or record.invalid is None
            or self.replies > replies_at_start
        ):
            self.silent = 0
        elif (
            record.key not in self.context.store.failed
        ):  # otherwise the sample itself may be the cause
            self.silent += 1
            if self.silent >= max(_FEWEST_BEFORE_GIVING_UP, 2 * self.context.pace.allowed):
                self.stop(
                    InfrastructureError(
                        f"stopped: {self.silent} samples in a row got no reply; the last: {record.invalid}",
                        hint="finished samples are kept; run the same command again when the endpoint is back",
                    )
                )


async def execute(
    items: Iterable[WorkItem],
    context: RunContext,
    *,
    workers: int,
    on_finished: Callable[[Record], None],
    on_tick: Callable[[], None] = lambda: None,
    on_interrupt: Callable[[int], None] = lambda _in_flight: None,
    stop: threading.Event | None = None,
) -> None:
    """Run all items, at most ``workers`` concurrently and within ``context.pace``; each is recorded when it ends.

    A sample without a reply is recorded as invalid and does not stop the others. The first Ctrl-C lets the samples in
    flight finish; a second one, or cancelling the task, drops them. Finished samples are kept in any case.

    Raises:
        KeyboardInterrupt: the run was interrupted.
        BudgetReached: the next request might cost more than is left.
        InfrastructureError: the endpoint no longer answers any request.
        AgrotoolsError: a fault that concerns all samples: a refused key, a full disk.
    """
    ending = Ending(context)

    def interrupted() -> None:
        in_flight, ending.requested = context.pace.in_use, True
        context.pace.open()
        if context.source.stats is not None:
            context.source.stats.stopping = True
        on_interrupt(in_flight)

    with interrupts(interrupted):
        ticking = asyncio.create_task(_tick(context, on_tick, stop, interrupted))
        try:
            async with asyncio.TaskGroup() as group:
                queue = iter(items)
                for _ in range(workers):
                    group.create_task(_work(queue, context, ending, on_finished))
        except BaseExceptionGroup as failures:
            # A fault in one sample that concerns all of them ends the run and is raised unwrapped.
            raise failures.exceptions[0] from None
        finally:
            ticking.cancel()
    if ending.error:
        raise ending.error
    if ending.requested:
        raise KeyboardInterrupt


async def _work(
    queue: Iterator[WorkItem],
    context: RunContext,
    ending: Ending,
    on_finished: Callable[[Record], None],
) -> None:
    await context.pace.acquire()
    try:
        while not ending.requested and (item := next(queue, None)) is not None:
            if (
                context.benchmark.make_files
                and (item := await _with_files(item, context, ending)) is None
            ):
                return
            replies_at_start = ending.replies
            try:
                requests = collect_requests()
                record = await run_item(item, context)
            except BudgetReached as error:
                # Other samples may cost less than was reserved for them, so they continue until they reach it, too.
                ending.stop(error)
                return
            context.store.append(record, requests)
            on_finished(record)
            ending.record_outcome(record, replies_at_start)
            if context.source.base_url is None:
                # Without network waits, control must be yielded for records, progress and interrupts.
                await asyncio.sleep(0)
            if ending.requested:
                context.pace.open()
            await context.pace.pass_on()
    finally:
        context.pace.release()
        if ending.requested:
            context.pace.open()


async def _with_files(item: WorkItem, context: RunContext, ending: Ending) -> WorkItem | None:
    """Return an item when the files of its sample are there; None if the run is about to end."""
    async with context.preparing:
        if ending.requested:
            return None
        try:
            sample = await asyncio.to_thread(context.benchmark.prepare, item.sample)
        except AgrotoolsError as error:
            ending.stop(error)
            return None
    return None if ending.requested else item._replace(sample=sample)


async def _tick(
    context: RunContext,
    on_tick: Callable[[], None],
    stop: threading.Event | None,
    interrupted: Callable[[], None],
) -> None:
    seen = False
    while True:
        await asyncio.sleep(_TICK_S)
        context.pace.admit()
        on_tick()
        if stop is not None and stop.is_set() and not seen:
            seen = True
            interrupted()
