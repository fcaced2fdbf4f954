"""Models that judge or read answers: cached and paid replies, concurrent requests, and a stop on lasting failure."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agrotools.core import AgrotoolsError, InfrastructureError, RunStoreError
from agrotools.core.base import words_of
from agrotools.models import Model
from agrotools.models.endpoint import PricedModel
from agrotools.models.metered import Budget, MeteredModel, SpendLedger
from agrotools.models.response_cache import CachedModel, ResponseCache, response_cache_path

T = TypeVar("T")

_AT_ONCE = 32
_SILENT_BEFORE_GIVING_UP = 3


@contextmanager
def open_models(helper: PricedModel, ledger: Path, cache: str) -> Generator[Callable[[int], Model]]:
    """Yield a function from repeat number to the model of ``helper``, paid from its budget; spending is written to
    ``ledger``, and replies are cached per repeat, so that an interrupted command never pays twice."""
    with ExitStack() as stack:
        model = helper.model
        if helper.price is not None and not helper.price.is_free:
            budget = Budget(helper.budget_usd, stack.enter_context(SpendLedger(ledger)))
            model = MeteredModel(model, helper.price, budget)
        # A script costs nothing, and its content may change under the same name, so it is not cached.
        if helper.base_url:
            replies = stack.enter_context(ResponseCache(response_cache_path(cache)))
            yield lambda repeat: CachedModel(model, replies, repeat)
        else:
            yield lambda _repeat: model


async def ask_each(
    items: Iterable[T],
    ask: Callable[[T], Awaitable[object]],
    model: Model,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> "AskState":
    """Await ``ask`` for each item, many concurrently; items without a reply are skipped.

    No further item starts if the model is unreachable (several items in a row without a reply, and no other replies
    meanwhile), the budget is spent, the model is configured wrongly, or ``stopped`` returns True.
    """
    queue, state = iter(items), AskState()

    async def work(queue: Iterator[T]) -> None:
        while not state.gone and not stopped() and (item := next(queue, None)) is not None:
            replies = model.stats.replies + model.stats.cached
            try:
                await ask(item)
                state.silent = 0
            except InfrastructureError as error:
                state.error = error
                answered = model.stats.replies + model.stats.cached > replies
                state.silent = 0 if answered else state.silent + 1
                state.gone = state.gone or state.silent >= _SILENT_BEFORE_GIVING_UP
            except RunStoreError:
                raise  # A full disk is not the model's fault.
            except AgrotoolsError as error:
                state.error = error if not state.gone else state.error
                state.gone = True
            except Exception as error:
                # An internal error on one item must not cost the others.
                at = traceback.extract_tb(error.__traceback__)[-1]
                reason = f"internal error, {type(error).__name__}: {words_of(error)} ({at.name}, line {at.lineno})"
                state.error = state.error or InfrastructureError(reason, hint="please report it")

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(work(queue))
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return state


@dataclass
class AskState:
    """State of a series of requests. ``error``: why items were skipped; ``gone``: the model stopped replying."""

    error: AgrotoolsError | None = None
    gone: bool = False
    silent: int = 0
    """Consecutive items without a reply."""
