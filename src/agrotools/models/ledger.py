"""Ledger of a run: the paid replies of its models and agents, a line each."""

from functools import reduce
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from agrotools.core import FrozenModel
from agrotools.core.files import LineFile, read_lines

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
            replies + 1, input_tokens + reply.input_tokens, output_tokens + reply.output_tokens, usd + reply.usd
        )


class SpendLedger:
    """Journal of paid replies: a line is passed to the operating system before :meth:`add` returns.

    Raises:
        RunStoreError: the file cannot be read, or a line in it is not a paid reply.
    """

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, PaidReply, _LEDGER_HINT)
        self.spend = reduce(Spend.plus, self._file.records, Spend())

    @property
    def total_usd(self) -> float:
        """US dollars spent on this run so far, including earlier processes."""
        return self.spend.usd

    def add(self, input_tokens: int, output_tokens: int, usd: float) -> None:
        """Write one paid reply; RunStoreError if it cannot be written, without a partial line in the file."""
        reply = PaidReply(input_tokens=input_tokens, output_tokens=output_tokens, usd=usd)
        self.spend = self.spend.plus(reply)  # counted even if it cannot be written
        self._file.add(reply)

    def __enter__(self) -> "SpendLedger":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_spend(path: Path) -> Spend:
    """Return the totals of a ledger; zeros if there is none; RunStoreError if it cannot be read."""
    return reduce(Spend.plus, read_lines(path, PaidReply, _LEDGER_HINT), Spend())
