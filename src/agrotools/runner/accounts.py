"""What stands between a run's agents and the wire: the response cache, and the ledger that keeps to a budget."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from agrotools.core import UsageError
from agrotools.models import Model
from agrotools.models.metered import MeteredModel
from agrotools.models.prices import Price, price_of, priced_for_budget
from agrotools.models.response_cache import CachedModel, ResponseCache, response_cache_path
from agrotools.runner.policies import Agents, PolicySource
from agrotools.runner.spend import SpendLedger

SPEND_FILE = "spend.jsonl"


def price_for(source: PolicySource, *, price: str | None, budget_usd: float | None) -> Price | None:
    """What the tokens of a source's model cost; None where nobody knows, or where there is nothing to pay.

    Raises:
        UsageError: a price that is none; a budget where no price is known, or nothing to spend it on.
    """
    if source.base_url is None:
        if budget_usd is not None or price is not None:
            raise UsageError(
                f"{source.name} costs nothing: there is no endpoint to pay", hint="leave --budget and --price away"
            )
        return None
    found = price_of(source.base_url, source.name, price)
    return found if budget_usd is None else priced_for_budget(found, source.name)


@contextmanager
def accounted(
    source: PolicySource, run: Path, *, cache: str | None, price: Price | None, budget_usd: float | None
) -> Generator[tuple[PolicySource, ResponseCache | None]]:
    """``source`` with its model behind the cache and the ledger that are asked for, and the cache beside it.

    Raises:
        UsageError: a cache name that is none.
        RunStoreError: the ledger cannot be read.
    """
    agents, model = source.make, source.model
    if model is None or not isinstance(agents, Agents):
        yield source, None
        return
    with ExitStack() as stack:
        if price is not None and not price.is_free:
            ledger = stack.enter_context(SpendLedger(run / SPEND_FILE))
            model = MeteredModel(model, price, budget_usd, ledger)
        replies = stack.enter_context(ResponseCache(response_cache_path(cache))) if cache else None
        yield replace(source, make=agents.through(_behind(model, replies))), replies


def _behind(model: Model, replies: ResponseCache | None) -> Callable[[int], Model]:
    def model_of(epoch: int) -> Model:
        return CachedModel(model, replies, epoch) if replies else model

    return model_of
