"""Costs of a run: the ledger of paid replies, the budget, and models behind the response cache and the ledger."""

import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from agrotools.core import RunStoreError, UsageError
from agrotools.core.files import Journal
from agrotools.models import Model
from agrotools.models.endpoint import PricedModel
from agrotools.models.prices import Price, price_of, priced_for_budget
from agrotools.runner.policies import Agents, PolicySource

if TYPE_CHECKING:
    from agrotools.models.first_contact import FirstContact
    from agrotools.models.metered import Budget
    from agrotools.models.response_cache import ResponseCache

SPEND_FILE = "spend.jsonl"
_LONGEST_LINE = 4096


class Spend(NamedTuple):
    """Sums over a ledger."""

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


class SpendLedger:
    """Journal of paid replies: a line is handed to the operating system before :meth:`add` returns.

    The file is created with the first reply. A torn last line (the machine went down while it was written) is cut off.

    Raises:
        RunStoreError: the file cannot be read, or a line in it is no paid reply.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal: Journal | None = None
        self.spend, whole = _read(path)
        if path.exists() and path.stat().st_size > whole:
            try:
                os.truncate(path, whole)
            except OSError as error:
                raise self._unwritable(error) from error

    @property
    def total_usd(self) -> float:
        """US dollars spent on this run so far, earlier processes included."""
        return self.spend.usd

    def add(self, input_tokens: int, output_tokens: int, usd: float) -> None:
        """Write one paid reply.

        Raises:
            RunStoreError: it cannot be written; nothing of it is left in the file.
        """
        entry = {"input_tokens": input_tokens, "output_tokens": output_tokens, "usd": usd}
        # Counted even where it cannot be written.
        self.spend = _plus(self.spend, entry)
        try:
            if self._journal is None:
                self._journal = Journal(self.path)
            self._journal.append(orjson.dumps(entry) + b"\n")
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Close the file.

        Raises:
            RunStoreError: the disk refused what was written last.
        """
        journal, self._journal = self._journal, None
        if journal is not None:
            try:
                journal.close()
            except OSError as error:
                raise self._unwritable(error) from error

    def __enter__(self) -> "SpendLedger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _unwritable(self, error: OSError) -> RunStoreError:
        return RunStoreError(
            f"cannot write spending to {self.path}: {error.strerror or error}",
            hint="free some space and run the same command again to resume",
        )


def read_spend(path: Path) -> Spend:
    """Sums of a ledger; zeros if there is no ledger.

    Raises:
        RunStoreError: it cannot be read.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[Spend, int]:
    """Sums, and the offset at which the last complete line ends."""
    spend, whole = Spend(), 0
    if path.exists() and not path.is_file():
        raise RunStoreError(f"{path} is not a file", hint="remove it: the spending of a run is recorded there")
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                if not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
                    break
                spend = _plus(spend, _entry(line, path, number))
                whole += len(line)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RunStoreError(f"{path} cannot be read: {error.strerror}", hint="make it a file you may read") from error
    return spend, whole


def _plus(spend: Spend, entry: dict[str, Any]) -> Spend:
    return Spend(
        spend.replies + 1,
        spend.input_tokens + entry["input_tokens"],
        spend.output_tokens + entry["output_tokens"],
        spend.usd + entry["usd"],
    )


def _entry(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        entry = orjson.loads(line)
        if all(isinstance(entry[key], int | float) and entry[key] >= 0 for key in Spend._fields[1:]):
            return entry
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise RunStoreError(
        f"{path}, line {number} is not a paid reply", hint="remove that line to continue without counting it"
    )


def price_for(
    source: PolicySource, *, price: str | None, budget_usd: float | None, tools_pay: bool = False
) -> Price | None:
    """Price of the tokens of a source's model; None where it is unknown, or where there is nothing to pay.

    ``tools_pay``: whether tools ask a model, so that a budget has something to be spent on in any case.

    Raises:
        UsageError: a price that is none; a budget where no price is known, or nothing to spend it on.
    """
    if not source.base_url:
        if (budget_usd is not None and not tools_pay) or price is not None:
            raise UsageError(
                f"{source.name} costs nothing: there is no endpoint to pay", hint="omit --budget and --price"
            )
        return None
    source_price = price_of(source.base_url, source.name, price)
    return source_price if budget_usd is None else priced_for_budget(source_price, source.name)


class Accounted(NamedTuple):
    """Models behind the cache and the ledger, and the cache itself."""

    source: PolicySource
    replies: "ResponseCache | None"
    vision: Model | None
    """The model that tools ask. Its replies are never shared between runs."""
    contact: "FirstContact | None"
    """First contact with the endpoint of ``source``; None where there is none."""


@contextmanager
def accounted(
    source: PolicySource,
    run: Path,
    *,
    cache: str | None,
    price: Price | None,
    budget_usd: float | None,
    tools: PricedModel | None = None,
) -> Generator[Accounted]:
    """``source`` and the model that tools ask, each paid out of one budget where it costs something.

    Raises:
        UsageError: a cache name that is none.
        RunStoreError: the ledger cannot be read.
    """
    agents, model, vision = source.make, source.model, tools.model if tools else None
    if not (source.base_url or tools or cache):  # a script or a baseline: nothing to pay, to meet or to cache
        yield Accounted(source, None, None, None)
        return
    from agrotools.models.first_contact import FirstContact
    from agrotools.models.metered import Budget, MeteredModel
    from agrotools.models.response_cache import CachedModel, ResponseCache, response_cache_path

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
        front = contact or model

        def model_of(epoch: int) -> Model:
            return CachedModel(front, replies, epoch) if replies else front

        yield Accounted(replace(source, make=agents.through(model_of)), replies, vision, contact)


def _metered(probe: Callable[[], Model], price: Price, budget: "Budget") -> Model:
    from agrotools.models.metered import MeteredModel

    return MeteredModel(probe(), price, budget)
