"""Money: what requests cost, and a budget that no request can exceed.

Before a request is sent, the most that it can cost is set aside; when its reply is there, what it did cost takes that
place. A request goes out only if all that is spent and set aside stays within the budget with it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agrotools.core import BudgetReached, ToolSpec, Usage
from agrotools.models.base import Completion, Message, Model, ModelAround, ModelSettings
from agrotools.models.prices import Price
from agrotools.models.request_text import image_urls, request_text

DEFAULT_OUTPUT_TOKENS = 32_768
"""What a reply may have at most, for the bound, where the request sets no limit."""

_TEMPLATE_TOKENS = 64
_TOOL_TEMPLATE_TOKENS = 1024
_OUTPUT_LIMIT_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class Ledger(Protocol):
    """Where paid replies are written down (``agrotools.runner.spend.SpendLedger`` is one)."""

    @property
    def total_usd(self) -> float:
        """All that was ever spent, this run and the ones it goes on from."""
        ...

    def add(self, input_tokens: int, output_tokens: int, usd: float) -> None:
        """Write one paid reply down."""
        ...


@dataclass(frozen=True)
class Bound:
    """The most tokens that a request can take."""

    input_tokens: int
    output_tokens: int


class MeteredModel(ModelAround):
    """A model whose replies are paid for.

    Args:
        model: replies.
        price: its rates.
        budget_usd: all that the ledger may ever hold; None counts without limit.
        ledger: what was spent before counts against the same budget.
    """

    def __init__(self, model: Model, price: Price, budget_usd: float | None, ledger: Ledger) -> None:
        super().__init__(model)
        self.price = price
        self.budget_usd = budget_usd
        self.ledger = ledger
        self._reserved_usd = 0.0
        self._in_flight = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._excess = 1.0
        self.stats.spent_usd = ledger.total_usd

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """A reply, paid for.

        A request that ends without a reply (refused, cancelled) costs nothing here; whatever an endpoint may ask for
        one that it had begun to answer is not known.

        Raises:
            BudgetReached: it might cost more than is left, even when nothing else is in flight.
        """
        bound = bound_of(self.name, messages, tools, settings, self.price)
        reserved_usd = await self._reserve(bound)
        try:
            completion = await self.model.generate(messages, tools, settings)
            self._pay(completion, bound)
            return completion
        finally:
            self._release(reserved_usd)

    async def _reserve(self, bound: Bound) -> float:
        if self.budget_usd is None:
            return 0.0
        while True:
            usd = self._most_usd(bound)
            spent_usd = self.ledger.total_usd
            if spent_usd + usd > self.budget_usd:
                raise _budget_reached(spent_usd, self.budget_usd, usd)
            if spent_usd + self._reserved_usd + usd <= self.budget_usd:
                self._reserved_usd += usd
                self._in_flight += 1
                return usd
            await self._settled()

    def _most_usd(self, bound: Bound) -> float:
        return self.price.usd(round(bound.input_tokens * self._excess), bound.output_tokens)

    async def _settled(self) -> None:
        """Wait until a request in flight has its reply, or has failed."""
        settled = asyncio.get_running_loop().create_future()
        self._waiting.append(settled)
        self.stats.waiting += 1
        try:
            await settled
        finally:
            self.stats.waiting -= 1

    def _release(self, usd: float) -> None:
        if self.budget_usd is None:
            return
        self._in_flight -= 1
        # Sums of fractions drift; with nothing in flight, nothing is set aside.
        self._reserved_usd = self._reserved_usd - usd if self._in_flight else 0.0
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def _pay(self, completion: Completion, bound: Bound) -> None:
        paid = charged(completion, bound)
        if not (paid.input_tokens or paid.output_tokens):
            return
        # An endpoint that counts more than the bound foresaw will do so again.
        self._excess = max(self._excess, paid.input_tokens / bound.input_tokens)
        usd = self.price.usd(paid.input_tokens, paid.output_tokens)
        self.ledger.add(paid.input_tokens, paid.output_tokens, usd)
        self.stats.spent_usd = self.ledger.total_usd


def bound_of(
    model: str, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings, price: Price
) -> Bound:
    """The most tokens that a request can take.

    Input: one for each byte of the request's JSON without pictures (no tokenizer in use makes more than one of a
    byte; numbers come to 0.8 of it, rare characters to 0.99, our prompts to 0.25 to 0.29), what templates add, and the
    most for each picture. Output: the limit that the request sets, for each of the replies it asks for.
    """
    text = request_text(model, messages, tools, settings)
    pictures = len(image_urls(messages)) * price.image_tokens[1]
    input_tokens = len(text) + pictures + _TEMPLATE_TOKENS + (_TOOL_TEMPLATE_TOKENS if tools else 0)
    return Bound(input_tokens, most_output_tokens(settings))


def most_output_tokens(settings: ModelSettings) -> int:
    """The most tokens that the replies to one request can have together."""
    limits = [settings.max_output_tokens, *(settings.extra.get(key) for key in _OUTPUT_LIMIT_KEYS)]
    known = [limit for limit in limits if isinstance(limit, int)]
    replies = settings.extra.get("n")
    return max(known, default=DEFAULT_OUTPUT_TOKENS) * (replies if isinstance(replies, int) and replies > 1 else 1)


def charged(completion: Completion, bound: Bound) -> Usage:
    """The tokens that a reply is charged for: the endpoint's count, or the bound where it gives none."""
    used = completion.usage
    if completion.cached:
        return Usage()
    if completion.finish_reason == "context" and used == Usage():
        return used  # Refused before any work.
    came = bool(completion.text or completion.tool_calls or completion.thought)
    nothing_to_count = not came and (used.input_tokens > 0 or completion.finish_reason == "filtered")
    return Usage(
        input_tokens=used.input_tokens or bound.input_tokens,
        output_tokens=used.output_tokens or (0 if nothing_to_count else bound.output_tokens),
    )


def _budget_reached(spent_usd: float, budget_usd: float, next_usd: float) -> BudgetReached:
    return BudgetReached(
        f"{spent_usd:.4f} of {budget_usd:g} USD are spent, and the next request might cost {next_usd:.4f} USD",
        hint="what has finished is kept; give the same command with a larger --budget to go on",
    )
