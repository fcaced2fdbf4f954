"""Costs of requests: ledger of a run (its paid replies, a line each), budget that no request exceeds, response cache.

Before a request is sent, its maximum cost is reserved; the actual cost replaces it when the reply arrives. A request
is sent only if the total of spent and reserved amounts stays within the budget.

The response cache has the replies of models to requests, shared by name between runs and processes. It is opt-in,
because a cached reply shows what an endpoint once served, not what it serves now. Each name is one SQLite file. A fault
of the file or the disk never ends a run: ``fault`` reports it once, and the run continues without the cache.
"""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, reduce
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple

import orjson
from pydantic import Field, ValidationError

from agrotools.core import BudgetReached, FrozenModel, ToolSpec, Usage, UsageError
from agrotools.core.files import LineFile, cache_dir, read_lines
from agrotools.models.base import (
    Completion,
    Message,
    Model,
    ModelSettings,
    ModelWrapper,
    WireStats,
    prompt_length,
    request_text,
)
from agrotools.models.prices import Price

SPEND_FILE = "spend.jsonl"
_LEDGER_HINT = "remove that line to continue without counting it"


class PaidReply(FrozenModel):
    """Ledger entry of one paid reply."""

    input_tokens: Annotated[int, Field(ge=0, strict=True)]
    output_tokens: Annotated[int, Field(ge=0, strict=True)]
    usd: Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]


class Spend(NamedTuple):
    """Totals of a ledger."""

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0

    def plus(self, reply: PaidReply) -> "Spend":
        """Return the totals with one more reply."""
        replies, input_tokens, output_tokens, usd = self
        return Spend(
            replies + 1,
            input_tokens + reply.input_tokens,
            output_tokens + reply.output_tokens,
            usd + reply.usd,
        )


class SpendLedger(AbstractContextManager["SpendLedger"]):
    """Journal of paid replies: a line is passed to the operating system before :meth:`add` returns.

    Raises:
        RunStoreError: the file cannot be read, or a line in it is not a paid reply.
    """

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, PaidReply, _LEDGER_HINT)
        self.spend = reduce(Spend.plus, self._file.records, Spend())
        self.largest_usd = max((reply.usd for reply in self._file.records), default=0.0)

    @property
    def total_usd(self) -> float:
        """US dollars spent on this run so far, including earlier processes."""
        return self.spend.usd

    def add(self, input_tokens: int, output_tokens: int, usd: float) -> None:
        """Write one paid reply; RunStoreError if it cannot be written, without a partial line in the file."""
        reply = PaidReply(input_tokens=input_tokens, output_tokens=output_tokens, usd=usd)
        self.spend = self.spend.plus(reply)  # counted even if it cannot be written
        self.largest_usd = max(self.largest_usd, usd)
        self._file.add(reply)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_spend(path: Path) -> Spend:
    """Return the totals of a ledger; zeros if there is none; RunStoreError if it cannot be read."""
    return reduce(Spend.plus, read_lines(path, PaidReply, _LEDGER_HINT), Spend())


DEFAULT_OUTPUT_TOKENS = 32_768
"""Maximum tokens of a reply that the bound assumes if the request sets no limit."""

_TEMPLATE_TOKENS = 64
_TOOL_TEMPLATE_TOKENS = 1024


_BUDGET_HINT = "finished {} are kept; run the same command with a larger --budget to resume"
BUDGET_HINT = _BUDGET_HINT.format("samples")


class Budget:
    """Budget in USD (None for no limit), spent by one or several models; earlier spending in the ledger counts.

    ``kept``: what is kept once it is spent.
    """

    def __init__(self, usd: float | None, ledger: SpendLedger, *, kept: str = "samples") -> None:
        self.usd = usd
        self.ledger = ledger
        self._hint = _BUDGET_HINT.format(kept)
        self._reserved_usd = 0.0
        self._in_flight = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._stats: list[WireStats] = []

    def show_in(self, stats: WireStats) -> None:
        """Keep ``stats.spent_usd`` up to date."""
        self._stats.append(stats)
        stats.spent_usd = self.ledger.total_usd

    async def reserve(self, most_usd: Callable[[], float], stats: WireStats) -> float:
        """Reserve the maximum cost of a request, and wait until the budget has enough for it.

        Raises:
            BudgetReached: it might cost more than is left, even if nothing else is in flight.
        """
        if self.usd is None:
            return 0.0
        while True:
            usd = most_usd()
            spent_usd = self.ledger.total_usd
            if spent_usd + usd > self.usd:
                raise BudgetReached(
                    f"{spent_usd:.4f} of {self.usd:g} USD are spent, and the next request might cost {usd:.4f} USD",
                    hint=self._hint,
                )
            if spent_usd + self._reserved_usd + usd <= self.usd:
                self._reserved_usd += usd
                self._in_flight += 1
                return usd
            settled = (
                asyncio.get_running_loop().create_future()
            )  # when a request in flight has succeeded or failed
            self._waiting.append(settled)
            stats.waiting += 1
            try:
                await settled
            finally:
                stats.waiting -= 1

    def release(self, usd: float) -> None:
        """Release a reserved amount."""
        if self.usd is None:
            return
        self._in_flight -= 1
        # Sums of fractions drift, so the total is reset when nothing is in flight.
        self._reserved_usd = self._reserved_usd - usd if self._in_flight else 0.0
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def pay(self, input_tokens: int, output_tokens: int, usd: float) -> None:
        """Record a paid reply."""
        self.ledger.add(input_tokens, output_tokens, usd)
        for stats in self._stats:
            stats.spent_usd = self.ledger.total_usd


class MeteredModel(ModelWrapper):
    """A model whose replies are paid from a budget.

    ``reserves_seen``: once a request was paid, the most that one has cost is reserved for the next, not the most that
    it may cost: for requests that are alike. The budget may be exceeded by what requests differ.
    """

    def __init__(
        self, model: Model, price: Price, budget: Budget, *, reserves_seen: bool = False
    ) -> None:
        super().__init__(model)
        self._reserves_seen = reserves_seen
        self.price = price
        self.budget = budget
        self._excess = 1.0
        budget.show_in(self.stats)

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Return a reply and record its cost.

        A request that ends without a reply (refused, cancelled) costs nothing here; the endpoint's charge for an
        interrupted reply is unknown.

        Raises:
            BudgetReached: it might cost more than is left, even if nothing else is in flight.
        """
        bound = bound_of(self.name, messages, tools, settings, self.price)
        reserved_usd = await self.budget.reserve(lambda: self._reserved(bound), self.stats)
        try:
            completion = await self.model.generate(messages, tools, settings)
            self._pay(completion, bound)
            return completion
        finally:
            self.budget.release(reserved_usd)

    def _reserved(self, bound: Usage) -> float:
        """Return what is reserved for a request, in US dollars."""
        most = self.price.usd(round(bound.input_tokens * self._excess), bound.output_tokens)
        seen = self.budget.ledger.largest_usd if self._reserves_seen else 0.0
        return min(most, seen) if seen else most

    def _pay(self, completion: Completion, bound: Usage) -> None:
        paid = charged(completion, bound)
        if not (paid.input_tokens or paid.output_tokens):
            return
        # An endpoint that counts more tokens than the bound will do so again.
        self._excess = max(self._excess, paid.input_tokens / bound.input_tokens)
        usd = self.price.usd(paid.input_tokens, paid.output_tokens)
        self.budget.pay(paid.input_tokens, paid.output_tokens, usd)


def bound_of(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    price: Price,
) -> Usage:
    """Return the maximum tokens that a request can use.

    Input: one token per byte of the request's JSON without images (no tokenizer in use produces more; numbers reach
    0.8 per byte, rare characters 0.99, our prompts 0.25 to 0.29), plus the overhead of templates and the maximum for
    each image. Output: the limit that the request sets.
    """
    text = request_text(model, messages, tools, settings)
    pictures = prompt_length(messages)[1] * price.image_tokens[1]
    input_tokens = len(text) + pictures + _TEMPLATE_TOKENS + (_TOOL_TEMPLATE_TOKENS if tools else 0)
    return Usage(input_tokens=input_tokens, output_tokens=most_output_tokens(settings))


def most_output_tokens(settings: ModelSettings) -> int:
    """Return the maximum tokens of the reply to one request."""
    return (
        DEFAULT_OUTPUT_TOKENS if settings.max_output_tokens is None else settings.max_output_tokens
    )


def charged(completion: Completion, bound: Usage) -> Usage:
    """Return the tokens charged for a reply: the endpoint's count, or the bound if it reports none."""
    used = completion.usage
    if completion.cached:
        return Usage()
    if completion.finish_reason == "context" and used == Usage():
        return used  # Refused before any processing.
    came = bool(completion.text or completion.tool_calls or completion.thought)
    nothing_to_count = not came and (
        used.input_tokens > 0 or completion.finish_reason == "filtered"
    )
    return Usage(
        input_tokens=used.input_tokens or bound.input_tokens,
        output_tokens=used.output_tokens or (0 if nothing_to_count else bound.output_tokens),
        cached_input_tokens=used.cached_input_tokens,
    )


KEPT = frozenset({"stop", "tool_calls", "length", "filtered"})
"""Finish reasons of replies that are stored. ``context`` depends on how a server was started, not on the request, and
such a refusal is quick and free to repeat."""

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, entry BLOB NOT NULL)"
_WAIT_S = 1.0
"""Time for another process to finish its write, which takes less than a millisecond."""


def response_cache_path(name: str) -> Path:
    """Return the path of a cache; UsageError if its name contains characters that are not allowed."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise UsageError(
            f"{name!r} cannot name a response cache",
            hint="use letters, digits, '.', '_' and '-', e.g. --cache pilot",
        )
    return cache_dir("responses") / f"{name}.sqlite"


class ResponseCache(AbstractContextManager["ResponseCache"]):
    """Replies by key, in one file. All methods can be called in any state of the file and never raise.

    ``fault`` is None, or a sentence that describes the problem, to be shown once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault: str | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _opened(path)
        except (OSError, sqlite3.Error) as error:
            self._failed(error)

    def get(self, key: str) -> Completion | None:
        """Return the reply under ``key``, marked as cached; None if there is none or it is damaged."""
        if self._connection is None:
            return None
        try:
            row = self._connection.execute(
                "SELECT entry FROM replies WHERE key = ?", (key,)
            ).fetchone()
            completion = Completion.model_validate_json(row[0]) if row else None
        except sqlite3.Error as error:
            self._failed(error)
            return None
        except ValidationError:
            return None
        return completion and completion.model_copy(
            update={"cached": True, "seconds": 0.0, "attempts": 0}
        )

    def put(self, key: str, completion: Completion) -> None:
        """Store a reply."""
        if self._connection is None:
            return
        try:
            entry = orjson.dumps(completion.model_dump(mode="json", exclude_defaults=True))
            self._connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, entry))
        except orjson.JSONEncodeError:
            return  # Invalid Unicode.
        except sqlite3.Error as error:
            self._failed(error)

    def close(self) -> None:
        """Close the file."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            connection.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failed(self, error: Exception) -> None:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        self.fault = (
            self.fault
            or f"the response cache {self.path} fails: {reason}; the run goes on without it"
        )
        self.close()


class CachedModel(ModelWrapper):
    """A model behind a response cache. ``epoch``: part of the key, so that repeats of a sample get new replies."""

    def __init__(self, model: Model, cache: ResponseCache, epoch: int = 0) -> None:
        super().__init__(model)
        self.cache = cache
        self.epoch = epoch

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Return the cached reply to the same request, or a new one."""
        key = request_key(self.base_url, self.name, messages, tools, settings, self.epoch)
        cached = self.cache.get(key)
        if cached is not None:
            self.stats.cached += 1
            # A fully cached run must still leave time for progress lines and interrupts.
            await asyncio.sleep(0)
            return cached
        completion = await self.model.generate(messages, tools, settings)
        # A reply that was cut short by the endpoint's own limit also depends on how the server was started.
        cut_short = completion.finish_reason == "length" and completion.detail
        if completion.finish_reason in KEPT and not cut_short:
            self.cache.put(key, completion)
        return completion


def request_key(
    base_url: str,
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    epoch: int,
) -> str:
    """Return the SHA-256 of the endpoint, the request body (with a hash in place of each image) and the epoch."""
    text = request_text(model, messages, tools, settings, _image_digest)
    return sha256(orjson.dumps([base_url, epoch]) + b"\n" + text).hexdigest()


@lru_cache(maxsize=128)
def _image_digest(url: str) -> str:
    # The same image recurs at every step and in every mode.
    return sha256(url.encode(errors="surrogatepass")).hexdigest()


def _opened(path: Path) -> sqlite3.Connection:
    if path.exists() and not path.is_file():
        raise OSError("it is not a file")
    connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(
            "PRAGMA synchronous = OFF"
        )  # a killed process leaves a whole file; only a power cut may not
        connection.execute(_TABLE)
    except BaseException:
        connection.close()
        raise
    return connection
