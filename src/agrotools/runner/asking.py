"""Requests about many items to a model that helps: each reply is paid from a budget, and none is asked for twice."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from agrotools.core import AgrotoolsError, InfrastructureError, RunStoreError
from agrotools.core.errors import words_of
from agrotools.models import Model, PricedModel
from agrotools.models.metered import (
    Budget,
    CachedModel,
    MeteredModel,
    ResponseCache,
    SpendLedger,
    response_cache_path,
)

Item = TypeVar("Item")

AT_ONCE = 32
_SILENT_BEFORE_GIVING_UP = 3


@contextmanager
def open_models(
    helper: PricedModel,
    ledger: Path,
    cache: str,
    *,
    reserves_seen: bool = False,
    kept: str = "samples",
) -> Generator[Callable[[int], Model]]:
    """Yield a function from a number, as of a vote, to the model of ``helper``, paid from its budget.

    Spending is written to ``ledger``, and replies are cached by number under the name ``cache``, so that an interrupted
    command never pays twice. ``reserves_seen``: as in :class:`MeteredModel`. ``kept``: what a spent budget leaves.
    """
    with ExitStack() as stack:
        model = helper.model
        if helper.price is not None and not helper.price.is_free:
            spend = stack.enter_context(SpendLedger(ledger))
            budget = Budget(helper.budget_usd, spend, kept=kept)
            model = MeteredModel(model, helper.price, budget, reserves_seen=reserves_seen)
        # A script costs nothing, and its content may change under the same name, so it is not cached.
        if helper.base_url:
            replies = stack.enter_context(ResponseCache(response_cache_path(cache)))
            yield lambda number: CachedModel(model, replies, number)
        else:
            yield lambda _number: model


async def ask_each(
    pending: Sequence[Item],
    ask: Callable[[Item], Awaitable[object]],
    model: Model,
    stopped: Callable[[], bool],
    at_once: int = AT_ONCE,
) -> AgrotoolsError | None:
    """Await ``ask`` for each item, ``at_once`` concurrently; return why some have no reply, or None.

    No further item is asked about if the model is unreachable (several in a row without a reply, and no other replies
    meanwhile), the budget is spent, the model is configured wrongly, or ``stopped`` returns True.
    """
    queue = iter(pending)
    silent = 0
    gone = False
    reason: AgrotoolsError | None = None

    async def work() -> None:
        nonlocal silent, gone, reason
        while not gone and not stopped() and (item := next(queue, None)) is not None:
            replies = model.stats.replies + model.stats.cached
            try:
                await ask(item)
                silent = 0
            except InfrastructureError as error:
                reason = error
                silent = 0 if model.stats.replies + model.stats.cached > replies else silent + 1
                gone = gone or silent >= _SILENT_BEFORE_GIVING_UP
            except RunStoreError:
                raise  # A full disk is not the model's fault.
            except AgrotoolsError as error:
                reason, gone = reason if gone else error, True
            except Exception as error:
                # An internal error on one item must not cost the others.
                at = traceback.extract_tb(error.__traceback__)[-1]
                fault = f"internal error, {type(error).__name__}: {words_of(error)} ({at.name}, line {at.lineno})"
                hint = "the same command asks again for what is missing"
                reason = reason or InfrastructureError(fault, hint=hint)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return reason
