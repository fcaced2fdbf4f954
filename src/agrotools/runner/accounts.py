"""Cost of a run: its models behind one budget, the ledger of their paid replies, and the response cache.

A model that is not free is accessed through a budget, whose paid replies are logged in a ledger in the run folder.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agrotools.models import Model
from agrotools.models.endpoint import PricedModel
from agrotools.models.metered import (
    SPEND_FILE,
    Budget,
    CachedModel,
    MeteredModel,
    ResponseCache,
    SpendLedger,
    response_cache_path,
)
from agrotools.models.prices import Price
from agrotools.runner.policies import Agents, PolicySource

if TYPE_CHECKING:
    from agrotools.models.probe import FirstContact


class Accounted(NamedTuple):
    """Models behind the response cache and the ledger, and the cache itself."""

    source: PolicySource
    replies: ResponseCache | None = None
    vision: Model | None = None
    """Vision model of tools. Its replies are never shared between runs."""
    contact: "FirstContact | None" = None
    """First contact with the endpoint of ``source``; None if it has no endpoint to probe."""


@contextmanager
def accounted(
    source: PolicySource, run: Path, *, cache: str | None, tools: PricedModel | None = None
) -> Generator[Accounted]:
    """Yield ``source`` and the tools' vision model; models that are not free are paid from one common budget.

    Raises:
        UsageError: invalid name of a cache.
        RunStoreError: the ledger cannot be read.
    """
    if not (source.base_url or source.meter or tools or cache):
        yield Accounted(source)  # a script or a baseline: nothing to pay or to cache
        return
    from agrotools.models.probe import FirstContact

    model = source.model
    probe = source.probe
    price = _charged(source.price)
    vision = tools.model if tools else None
    vision_price = _charged(tools.price) if tools else None
    with ExitStack() as stack:
        if price or vision_price or source.meter:
            ledger = stack.enter_context(SpendLedger(run / SPEND_FILE))
            budget = Budget(source.budget_usd, ledger)
            if source.meter:
                source.meter.charge_to(budget)
            if model and price:
                model = MeteredModel(model, price, budget)
                probe = _metered_probe(source.probe, price, budget)
            if vision and vision_price:
                vision = MeteredModel(vision, vision_price, budget)
        if vision is not None:
            vision = FirstContact(vision)
        agents = source.make
        if model is None or not isinstance(agents, Agents):
            yield Accounted(source, vision=vision)
            return
        contact = FirstContact(model, probe) if probe else None
        replies = stack.enter_context(ResponseCache(response_cache_path(cache))) if cache else None
        asked = contact or model

        def model_of(epoch: int) -> Model:
            return CachedModel(asked, replies, epoch) if replies else asked

        with_accounts = replace(source, make=agents.with_models(model_of))
        yield Accounted(with_accounts, replies, vision, contact)


def _charged(price: Price | None) -> Price | None:
    """Return a price that is to be paid; None for a price of nothing."""
    return None if price is None or price.is_free else price


def _metered_probe(
    probe: Callable[[], Model] | None, price: Price, budget: Budget
) -> Callable[[], Model] | None:
    """Return what creates the model of a probe, whose request is paid from the budget."""
    if probe is None:
        return None
    return lambda: MeteredModel(probe(), price, budget)
