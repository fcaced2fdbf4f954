"""What stands between a run's agents and the wire: the response cache, first contact, and the ledger of a budget."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from agrotools.core import UsageError
from agrotools.models import Model
from agrotools.models.first_contact import FirstContact
from agrotools.models.metered import Budget, MeteredModel
from agrotools.models.prices import Price, price_of, priced_for_budget
from agrotools.models.response_cache import CachedModel, ResponseCache, response_cache_path
from agrotools.runner.policies import Agents, PolicySource
from agrotools.runner.spend import SpendLedger
from agrotools.runner.tool_model import ToolModel

SPEND_FILE = "spend.jsonl"


def price_for(
    source: PolicySource, *, price: str | None, budget_usd: float | None, tools_pay: bool = False
) -> Price | None:
    """What the tokens of a source's model cost; None where nobody knows, or where there is nothing to pay.

    ``tools_pay``: whether tools ask a model, so that a budget has something to be spent on in any case.

    Raises:
        UsageError: a price that is none; a budget where no price is known, or nothing to spend it on.
    """
    if source.base_url is None:
        if (budget_usd is not None and not tools_pay) or price is not None:
            raise UsageError(
                f"{source.name} costs nothing: there is no endpoint to pay", hint="leave --budget and --price away"
            )
        return None
    found = price_of(source.base_url, source.name, price)
    return found if budget_usd is None else priced_for_budget(found, source.name)


class Accounted(NamedTuple):
    """Models behind the cache and the ledger that are asked for, and that cache."""

    source: PolicySource
    replies: ResponseCache | None
    vision: Model | None
    """What tools ask. Its replies are never shared between runs."""
    contact: FirstContact | None
    """What meets the endpoint of ``source`` first; None where there is none."""


@contextmanager
def accounted(
    source: PolicySource,
    run: Path,
    *,
    cache: str | None,
    price: Price | None,
    budget_usd: float | None,
    tools: ToolModel | None = None,
) -> Generator[Accounted]:
    """``source`` and the model that tools ask, each paid out of one budget where it costs something.

    Raises:
        UsageError: a cache name that is none.
        RunStoreError: the ledger cannot be read.
    """
    agents, model, vision = source.make, source.model, tools.model if tools else None
    probe = source.probe
    with ExitStack() as stack:
        paid = [each for each in (price if model else None, tools.price if tools else None) if each]
        if not all(each.is_free for each in paid):
            budget = Budget(budget_usd, stack.enter_context(SpendLedger(run / SPEND_FILE)))
            if model and price and not price.is_free:
                model = MeteredModel(model, price, budget)
                probe = partial(_metered, source.probe, price, budget) if source.probe else None
            if tools and tools.price and not tools.price.is_free:
                vision = MeteredModel(tools.model, tools.price, budget)
        if vision is not None:
            vision = FirstContact(vision)
        if model is None or not isinstance(agents, Agents):
            yield Accounted(source, None, vision, None)
            return
        contact = FirstContact(model, probe) if probe else None
        replies = stack.enter_context(ResponseCache(response_cache_path(cache))) if cache else None
        behind = _behind(contact or model, replies)
        yield Accounted(replace(source, make=agents.through(behind)), replies, vision, contact)


def _metered(probe: Callable[[], Model], price: Price, budget: Budget) -> Model:
    return MeteredModel(probe(), price, budget)


def _behind(model: Model, replies: ResponseCache | None) -> Callable[[int], Model]:
    def model_of(epoch: int) -> Model:
        return CachedModel(model, replies, epoch) if replies else model

    return model_of
