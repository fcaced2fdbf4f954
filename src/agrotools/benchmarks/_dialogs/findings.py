"""Unusable content of a published file: faults by entry, and notes on entries that were read with a change."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import JsonValue, ValidationError

from agrotools.benchmarks.checking import EntryFault, shortened
from agrotools.core import BenchmarkError, FrozenModel

TOO_DEEP = "it is nested too deep"
FaultRule = Literal["stop", "leave-out"]
_SHOWN = 40
"""Faults that an error lists; ``agrotools benchmarks check`` lists all."""
_NAMED = 12
_DEEPEST = 100
"""Levels of lists and objects in an entry; the published ones have about ten, and no more than 250 can be written."""


class PublishedSettings(FrozenModel):
    """The options that all of these benchmarks have (``--option NAME=VALUE``)."""

    faults: FaultRule = "stop"
    """Entries that cannot be used: say so and stop, or go on without them (the header counts them)."""


class Findings:
    """Collects faults and notes while a file is read. ``part``: told before an entry's key, where files are several."""

    def __init__(self) -> None:
        self.part = ""
        self.faults: list[EntryFault] = []
        self._remarks: list[str] = []
        self._notes: dict[str, dict[str, None]] = defaultdict(dict)

    def fault(self, entry: str, message: str) -> None:
        """The entry cannot be used."""
        self.faults.append(EntryFault(self.part + entry, message))

    def note(self, entry: str, message: str) -> None:
        """The entry is used, and something about it was not as published files have it."""
        self._notes[message][self.part + entry] = None

    def remark(self, message: str) -> None:
        """Something about all entries."""
        self._remarks.append(message)

    @property
    def broken(self) -> list[str]:
        """Keys of the entries that cannot be used, each once."""
        return list(dict.fromkeys(fault.entry for fault in self.faults))

    def notes(self) -> list[str]:
        """Remarks on all entries, then each kind of note once, with the entries it is about."""
        return [*self._remarks, *(f"{message}: {entry_list([*entries])}" for message, entries in self._notes.items())]


@dataclass
class EntryFindings:
    """Findings in the entry ``key`` while it is read: every fault is noted, so that all are reported at once."""

    key: str
    findings: Findings
    broken: bool = False

    def fault(self, message: str) -> None:
        """The entry cannot be used."""
        self.broken = True
        self.findings.fault(self.key, message)

    def note(self, message: str) -> None:
        """It is used, and something about it was not as published files have it."""
        self.findings.note(self.key, message)


def entry_list(entries: Sequence[str]) -> str:
    """``entry 3``, ``entries 3, 4, 5``, ``entries 3, 4, ... (120 in all)``."""
    quoted_entries = ", ".join(shortened(entry, 40) for entry in entries[:_NAMED])
    more = f", ... ({len(entries)} in all)" if len(entries) > _NAMED else ""
    return f"{'entry' if len(entries) == 1 else 'entries'} {quoted_entries}{more}"


def quoted(value: JsonValue) -> str:
    """A value of a file as a message quotes it."""
    return shortened(repr(value), 60)


def error_text(error: BenchmarkError) -> str:
    """An error as a fault tells it, with what to do about it."""
    return f"{error.message} ({error.hint})" if error.hint else error.message


def is_too_deep(entry: object) -> bool:
    """True if an entry has more levels than can be read and written again."""
    level: list[object] = [entry]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner += cast("dict[str, Any]", value).values()
            elif isinstance(value, list):
                inner += cast("list[Any]", value)
        if not inner:
            return False
        level = inner
    return True


def stop_at_faults(name: str, faults: Sequence[EntryFault], entries: int, folder: object) -> None:
    """Refuse a file with faults, all of them in one message.

    Raises:
        BenchmarkError: there is one.
    """
    if not faults:
        return
    lines = [f"  {fault}" for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        lines.append(f"  ... and {len(faults) - _SHOWN} more: agrotools benchmarks check {name} {folder}")
    broken = len({fault.entry for fault in faults})
    raise BenchmarkError(
        "\n".join([f"{name}: {broken} of {entries} entries cannot be used", *lines]),
        hint="correct them, or skip them: --option faults=leave-out",
    )


def first_reason(error: ValidationError | RecursionError) -> str:
    """First error that pydantic found, in words."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"
