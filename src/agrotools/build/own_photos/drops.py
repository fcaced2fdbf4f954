"""What of a table was not used: how often, in which rows, why, and what to do."""

from collections import defaultdict
from dataclasses import dataclass, field

from pydantic import JsonValue

_ROWS_NAMED = 5


@dataclass
class _Kind:
    count: int = 0
    rows: list[int] = field(default_factory=list)
    example: str = ""


class Drops:
    """Dropped rows, cells and pictures by what they concern, the reason, and what to do about it."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], _Kind] = defaultdict(_Kind)

    def add(self, what: str, reason: str, hint: str, row: int | None = None, example: str = "") -> None:
        """Count one. ``what``: a column or "picture"; ``reason`` goes on from it; ``row``: as spreadsheets show it."""
        kind = self._kinds[what, reason, hint]
        kind.count += 1
        kind.example = kind.example or example
        if row is not None and len(kind.rows) < _ROWS_NAMED:
            kind.rows.append(row)

    @property
    def total(self) -> int:
        """How many were dropped."""
        return sum(kind.count for kind in self._kinds.values())

    def lines(self) -> list[str]:
        """One line for each reason, the most frequent first."""
        ordered = sorted(self._kinds.items(), key=lambda item: (-item[1].count, item[0]))
        return [f"{what}: {_said(kind)} {reason}: {hint}" for (what, reason, hint), kind in ordered]

    def as_metadata(self) -> list[JsonValue]:
        """The same for a benchmark's metadata."""
        return [*self.lines()]


def _said(kind: _Kind) -> str:
    more = ", ..." if kind.count > len(kind.rows) else ""
    rows = f" (row {', '.join(map(str, kind.rows))}{more})" if kind.rows else ""
    return f"{kind.count} x {kind.example!r}{rows}" if kind.example else f"{kind.count}{rows}"
