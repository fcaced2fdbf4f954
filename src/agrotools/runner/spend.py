"""What a run has paid: one line for each reply, so that a run that goes on keeps to the same budget."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agrotools.core import RunStoreError
from agrotools.core.files import Journal

_LONGEST_LINE = 4096


class Spend(NamedTuple):
    """Sums over a ledger."""

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


class SpendLedger:
    """A journal of paid replies: a line is handed to the operating system before :meth:`add` returns.

    The file is made with the first reply. A torn last line (the machine went down while it was written) is cut off.

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
        """All that was ever spent on this run."""
        return self.spend.usd

    def add(self, input_tokens: int, output_tokens: int, usd: float) -> None:
        """Write one paid reply down.

        Raises:
            RunStoreError: it cannot be written; nothing of it is left in the file.
        """
        entry = {"input_tokens": input_tokens, "output_tokens": output_tokens, "usd": usd}
        # Paid is paid, whether or not it can be written down.
        self.spend = _plus(self.spend, entry)
        try:
            if self._journal is None:
                self._journal = Journal(self.path)
            self._journal.append(orjson.dumps(entry) + b"\n")
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Let go of the file.

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
            f"cannot write down what was spent in {self.path}: {error.strerror or error}",
            hint="free some space and give the same command again: what has finished is kept",
        )


def read_spend(path: Path) -> Spend:
    """The sums of a ledger; zeros where there is none.

    Raises:
        RunStoreError: it cannot be read.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[Spend, int]:
    """The sums and where the last whole line ends."""
    spend, whole = Spend(), 0
    if path.exists() and not path.is_file():
        raise RunStoreError(f"{path} is not a file", hint="remove it; what a run has spent is written there")
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
        f"{path}, line {number} is not a paid reply", hint="remove that line to go on without counting it"
    )
