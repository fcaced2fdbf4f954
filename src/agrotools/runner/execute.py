"""Runs work items until they are done, somebody asks to stop, the money is spent, or the endpoint is gone."""

import asyncio
import gc
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agrotools.core import AgrotoolsError, BudgetReached, InfrastructureError, Record
from agrotools.runner.pace import interrupts
from agrotools.runner.plan import WorkItem
from agrotools.runner.prompts import collect_requests
from agrotools.runner.run_item import RunContext, run_item

OnFinished = Callable[[Record], None]
_TICK_S = 0.5
_FEWEST_BEFORE_GIVING_UP = 10


@dataclass
class Ending:
    """End of a run before it is done: no further sample is begun, those in flight are finished."""

    requested: bool = False
    error: AgrotoolsError | None = None
    """What made the run stop by itself."""


@dataclass
class _Endpoint:
    """Notices an endpoint that is gone, so that a night is not spent on finding that out sample by sample."""

    context: RunContext
    silent: int = 0
    """Samples in a row without a reply."""

    @property
    def replies(self) -> int:
        """Replies that anybody has got so far."""
        stats = self.context.source.stats
        return stats.replies if stats else 0

    def saw(self, record: Record, replies_at_start: int) -> InfrastructureError | None:
        # Replies to others while the sample ran show that the endpoint is there. When it bears less than before, the
        # samples that are left in flight are those that fail: many in a row, and they say nothing about the rest.
        if self.context.source.stats is None or record.invalid is None or self.replies > replies_at_start:
            self.silent = 0
            return None
        if record.key in self.context.store.failed:
            return None  # what failed in an earlier run, too, may be its own fault
        self.silent += 1
        if self.silent < max(_FEWEST_BEFORE_GIVING_UP, 2 * self.context.pace.allowed):
            return None
        return InfrastructureError(
            f"stopped: {self.silent} samples in a row got no reply; the last: {record.invalid}",
            hint="finished samples are kept; run the same command again when the endpoint is back",
        )


async def execute(
    items: Iterable[WorkItem],
    context: RunContext,
    *,
    workers: int,
    on_finished: OnFinished,
    on_tick: Callable[[], None] = lambda: None,
    on_interrupt: Callable[[int], None] = lambda _in_flight: None,
    stop: threading.Event | None = None,
) -> None:
    """Run all items, at most ``workers`` at once and as many as ``context.pace`` allows; each is recorded as it ends.

    A sample for which no reply can be had is recorded as invalid and does not stop the others. The first Ctrl-C lets
    those in flight finish, the second drops them; so does cancelling. What has finished stays in any case.

    Raises:
        KeyboardInterrupt: somebody asked to stop.
        BudgetReached: the next request might cost more than is left.
        InfrastructureError: the endpoint answers nobody any more.
        AgrotoolsError: what concerns all samples: a refused key, a full disk.
    """
    ending = Ending()

    def interrupted() -> None:
        ending.requested = True
        context.pace.open()
        if context.source.stats is not None:
            context.source.stats.stopping = True
        on_interrupt(context.pace.in_flight)

    with _rare_collections(), interrupts(interrupted):
        ticking = asyncio.create_task(_tick(context, on_tick, stop, interrupted))
        try:
            async with asyncio.TaskGroup() as group:
                queue, endpoint = iter(items), _Endpoint(context)
                for _ in range(workers):
                    group.create_task(_work(queue, context, ending, endpoint, on_finished))
        except BaseExceptionGroup as failures:
            # What one sample shows to be wrong for all ends the run, as itself.
            raise failures.exceptions[0] from None
        finally:
            ticking.cancel()
    if ending.error:
        raise ending.error
    if ending.requested:
        raise KeyboardInterrupt


@contextmanager
def _rare_collections() -> Generator[None]:
    """Look for cycles less often: what a run makes are trees, and looking takes a tenth of its time."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def _work(
    queue: Iterator[WorkItem], context: RunContext, ending: Ending, endpoint: _Endpoint, on_finished: OnFinished
) -> None:
    while True:
        await context.pace.enter()
        try:
            if ending.requested or (item := next(queue, None)) is None:
                return
            replies_at_start = endpoint.replies
            try:
                requests = collect_requests()
                record = await run_item(item, context)
            except BudgetReached as error:
                # Others may still settle for less than was set aside for them: they go on until they hit it, too.
                ending.requested, ending.error = True, ending.error or error
                return
            context.store.append(record, requests)
            on_finished(record)
            if error := endpoint.saw(record, replies_at_start):
                ending.requested, ending.error = True, ending.error or error
            if context.source.base_url is None:
                # Who waits for nobody must leave room for records, progress and interrupts.
                await asyncio.sleep(0)
        finally:
            context.pace.leave()
            if ending.requested:
                context.pace.open()


async def _tick(
    context: RunContext, on_tick: Callable[[], None], stop: threading.Event | None, interrupted: Callable[[], None]
) -> None:
    seen = False
    while True:
        await asyncio.sleep(_TICK_S)
        context.pace.look_again()
        on_tick()
        if stop is not None and stop.is_set() and not seen:
            seen = True
            interrupted()
