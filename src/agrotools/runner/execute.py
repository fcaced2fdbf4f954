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
from collections.abc import Callable, Generator, Iterable, Iterator, Set
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agrotools.agents.images import RESULT_FILES, UNSHOWN, reason_unreadable
from agrotools.agents.modes import (
    UNPARSEABLE_LIMIT,
    CallTool,
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
from agrotools.packages import is_ours
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


class _ToolFailure(Exception):
    """Exception that a tool call raised, in place of an observation. It is never the fault of the policy."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class _Outcome:
    """What a policy did with a sample: a trajectory, or in step-by-step one action for each step."""

    trajectory: Trajectory | None = None
    actions: tuple[Action, ...] | None = None
    faulty: "FaultyTools | None" = None
    """Tools of the trajectory, if faults are put into its calls."""


async def run_item(item: WorkItem, context: RunContext) -> Record:
    """Run one sample. A fault on our side, or the endpoint's, makes the record invalid.

    Raises:
        AgrotoolsError: a fault that concerns all samples: a refused key, a full disk, a spent budget.
    """
    started = time.monotonic()
    sample = with_history(item, context.source)
    view = context.benchmark.view(sample, "end-to-end" if context.source.single_shot else item.mode)
    outcome = _Outcome()
    invalid: str | None = None
    policy: Policy | None = None
    unshown = set[str]()
    UNSHOWN.set(unshown)
    try:
        policy = context.source.make(sample, item.mode, item.epoch)
        outcome = await _run_sample_in_mode(policy, item, sample, view, context)
    except InfrastructureError as error:
        invalid = str(error)
    except AgrotoolsError:
        raise
    except _ToolFailure as failure:
        invalid = _reason_of_exception(failure.error, INTERNAL_ERROR)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if _ends_run(error):
            raise
        # An internal error on one sample must not cost the others: it counts as invalid and appears in the report.
        is_of_policy = policy is not None and not is_ours(_top_package(policy))
        invalid = _reason_of_exception(error, POLICY_ERROR if is_of_policy else INTERNAL_ERROR)
    finally:
        if policy is not None and is_external(policy):
            await policy.end_sample()
            if policy.printed:
                context.store.add_printed((item.mode, sample.id, item.epoch), policy.printed)
    usage = policy.usage if policy is not None and is_external(policy) else None
    if usage is not None:
        add_requests(usage.requests)
    if view.files:
        fault = _fault_of_files(sample, view, context.benchmark, outcome.trajectory, unshown)
        if fault:
            outcome = _Outcome()
            invalid = fault
    return Record(
        sample=sample,
        mode=item.mode,
        epoch=item.epoch,
        trajectory=outcome.trajectory,
        actions=outcome.actions,
        invalid=invalid,
        seconds=round(time.monotonic() - started, 3),
        faults=tuple(outcome.faulty.faults) if outcome.faulty else (),
        agent_replies=usage.replies if usage is not None else None,
    )


async def _run_sample_in_mode(
    policy: Policy, item: WorkItem, sample: Sample, view: SampleView, context: RunContext
) -> _Outcome:
    """Run a policy on a sample in the mode of the item. A single-shot policy invents the results of its calls."""
    if context.source.single_shot:
        return _Outcome(await run_single_shot(policy, view))
    if item.mode == "no-tool":
        return _Outcome(await run_no_tool(policy, view))
    if item.mode == "step-by-step":
        assert sample.reference is not None
        return _Outcome(actions=await run_step_by_step(policy, view, sample.reference))
    return await _run_sample_end_to_end(policy, item, sample, view, context)


async def _run_sample_end_to_end(
    policy: Policy, item: WorkItem, sample: Sample, view: SampleView, context: RunContext
) -> _Outcome:
    """Run a policy end to end in a workspace of its own, which ends with it."""
    async with AsyncExitStack() as stack:
        workspace = Workspace(view.files, context.store.scratch / f"{next(_NUMBERS)}")
        if is_external(policy):
            policy.artifacts = workspace.artifacts
        RESULT_FILES.set(workspace.artifacts)
        stack.push_async_callback(context.executor.end_sample, workspace)
        call_tool = _tool_caller(sample, workspace, context, stack)
        faulty: FaultyTools | None = None
        if context.faults is not None:
            faulty = context.faults.tools(sample, item.epoch, call_tool)
        trajectory = await run_end_to_end(
            policy,
            view,
            _marking_failures(call_tool if faulty is None else faulty),
            context.max_steps,
            context.unparseable_limit,
        )
        return _Outcome(trajectory, faulty=faulty)


def _marking_failures(call_tool: CallTool) -> CallTool:
    """Return ``call_tool`` so that its failures are told from those of the policy that asked for the call."""

    async def call_and_mark(call: ToolCall) -> ToolOutcome:
        try:
            return await call_tool(call)
        except AgrotoolsError:
            raise
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if _ends_run(error):
                raise
            raise _ToolFailure(error) from error

    return call_and_mark


def _ends_run(error: BaseException) -> bool:
    """True for a cancellation that was requested because the run is ending.

    Without such a request, the policy leaked a cancellation of its own.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _top_package(policy: Policy) -> str:
    """Return the name of the package that declares the class of a policy."""
    return type(policy).__module__.partition(".")[0]


def _reason_of_exception(error: BaseException, origin: str) -> str:
    """Return why a record is invalid: whose exception ended the sample (``origin``), and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    words = words_of(error)
    return f"{origin}, {type(error).__name__}: {words} ({place.name}, line {place.lineno})"


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
    calls = _calls_with_errors(trajectory)
    was_refused = any(kind == "unreadable_file" for _, kind in calls)
    is_doubted = sample.answerable and (bool(unshown) or was_refused)
    for file, shown in zip(sample.files, view.files, strict=True):
        if not os.access(shown.path, os.R_OK):
            return f"the benchmark's file {shown.path} can no longer be read"
        is_original = shown.path.endswith(file.path)
        path = shown.path if is_original else str(Benchmark.file_path(benchmark, file))
        if file.sha256 and was_changed(path, file.sha256):
            return f"the benchmark's file {path} was changed during the run"
        if not is_doubted:
            continue
        kinds = {kind for call, kind in calls if file.name in str([*call.arguments.values()])}
        is_unread = file.name in unshown or "unreadable_file" in kinds
        was_read_by_a_tool = "" in kinds
        if is_unread and not was_read_by_a_tool and (reason := reason_unreadable(shown)):
            return f"the benchmark's file {shown.path} cannot be read: {reason}"
    return ""


def _calls_with_errors(trajectory: Trajectory | None) -> list[tuple[ToolCall, str]]:
    """Return the calls that were answered, each with the kind of its error; empty for a call without one."""
    calls: list[tuple[ToolCall, str]] = []
    for step in trajectory.calls if trajectory else ():
        if step.call and step.observation:
            error = step.observation.error
            calls.append((step.call, error.kind if error else ""))
    return calls


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
    sample: Sample, workspace: Workspace, context: RunContext, stack: AsyncExitStack
) -> CallTool:
    """Return what answers the calls of a sample: the truth, its recorded results, or tools that are run."""
    if context.source.truth_tools:
        return _truth_caller(sample)
    replay = RecordedTools(sample) if context.recorded else None
    has_artifacts = False

    async def call_tool(call: ToolCall) -> ToolOutcome:
        nonlocal has_artifacts
        if replay is not None and call.tool in context.recorded and call.tool in sample.toolset:
            return replay.run(call)
        try:
            call, toolset = _executed_call(sample, call)
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


def _truth_caller(sample: Sample) -> CallTool:
    """Return what answers the calls of a sample with the truth, in the order of the reference calls."""
    from agrotools.formats.reference_results import true_observations

    truths = iter(true_observations(sample))

    async def answer_with_truth(_call: ToolCall) -> ToolOutcome:
        return ToolOutcome(next(truths))

    return answer_with_truth


def _executed_call(sample: Sample, call: ToolCall) -> tuple[ToolCall, tuple[str, ...]]:
    """Return the call that is executed, with its toolset: that of the installed tool if the benchmark declares its own.

    Raises:
        ToolError: the schema of the declared tool refuses the call.
    """
    declared = next((tool for tool in sample.declared if tool.name == call.tool), None)
    if declared is None or declared.server:
        return call, sample.toolset
    from agrotools.calling.declared import installed_call

    return installed_call(declared, call), (declared.runs,)


_TICK_S = 0.5
"""Seconds between two updates of the progress and of the samples in flight."""
_FEWEST_BEFORE_GIVING_UP = 10
"""Fewest samples in a row without a reply that end a run."""


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
        self.requested = True
        self.error = self.error or error

    @property
    def replies(self) -> int:
        """Number of replies to all samples so far."""
        stats = self.context.source.stats
        return stats.replies if stats else 0

    def record_outcome(self, record: Record, replies_at_start: int) -> None:
        """Stop at an unreachable endpoint, so that a run does not fail sample by sample for hours."""
        # Replies to other samples show that the endpoint is reachable. When its capacity drops, the samples in flight
        # are the ones that fail, many in a row, which says nothing about the rest.
        has_endpoint = self.context.source.stats is not None
        if not has_endpoint or record.invalid is None or self.replies > replies_at_start:
            self.silent = 0
            return
        if record.key in self.context.store.failed:
            return  # the sample itself may be the cause
        self.silent += 1
        if self.silent < max(_FEWEST_BEFORE_GIVING_UP, 2 * self.context.pace.allowed):
            return
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
        in_flight = context.pace.in_use
        ending.requested = True
        context.pace.open()
        if context.source.stats is not None:
            context.source.stats.stopping = True
        on_interrupt(in_flight)

    with interrupts(interrupted):
        ticking = asyncio.create_task(_tick_until_cancelled(context, on_tick, stop, interrupted))
        try:
            async with asyncio.TaskGroup() as group:
                queue = iter(items)
                for _ in range(workers):
                    group.create_task(_run_worker(queue, context, ending, on_finished))
        except BaseExceptionGroup as failures:
            # A fault in one sample that concerns all of them ends the run and is raised unwrapped.
            raise failures.exceptions[0] from None
        finally:
            ticking.cancel()
    if ending.error:
        raise ending.error
    if ending.requested:
        raise KeyboardInterrupt


async def _run_worker(
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
                and (item := await _make_files(item, context, ending)) is None
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


async def _make_files(item: WorkItem, context: RunContext, ending: Ending) -> WorkItem | None:
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


async def _tick_until_cancelled(
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
