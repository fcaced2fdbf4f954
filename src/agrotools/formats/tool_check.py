"""How often a tool agrees with the table of own photos: found by the build of a benchmark, shown by its runs."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from agrotools.core import FrozenModel
from agrotools.core.texts import counted_names, difference_text, within_text
from agrotools.formats.stored import read_stored

METADATA_KEY = "tool_check"
"""Key of the checks in the metadata of a benchmark's header."""
_PHOTOS_NAMED = 12
"""Photos that a sentence names: about as many as fit on two lines."""


class LabelCount(FrozenModel):
    """What the tool called the photos of one label of the table."""

    label: str
    right: int
    otherwise: int
    not_named: int


class PhotoCheck(FrozenModel):
    """One photo: what the table says of it, and what the tool returned.

    ``difference``: tool minus table, for numbers. ``reason``: why the tool returned nothing.
    """

    photo: str
    table: str | float
    tool: str | float | None = None
    agrees: bool
    difference: float | None = None
    reason: str | None = None

    @property
    def agreement(self) -> str:
        """``agrees``, ``differs`` or ``no answer``."""
        if self.tool is None:
            return "no answer"
        return "agrees" if self.agrees else "differs"

    def verdict(self, unit: str | None) -> str:
        """Return the agreement, with the reason or the difference; ``unit``: that of the numbers."""
        if self.tool is None and self.reason:
            return f"{self.agreement}: {self.reason}"
        if self.agreement == "differs" and self.difference is not None:
            return f"off by {difference_text(f'{self.difference:+.3g}', unit)}"
        return self.agreement

    def cells(self, unit: str | None) -> list[str]:
        """Return the photo, the values of the table and of the tool, and the verdict, as cells of a table."""
        values = [_value_text(value, unit) for value in (self.table, self.tool)]
        return [self.photo, *values, self.verdict(unit)]


def unsure_text(nearest: str) -> str:
    """Return the reason of a recogniser that was not sure of a name."""
    return f"not sure; nearest is {nearest}"


def _value_text(value: str | float | None, unit: str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.4g} {unit}" if unit else f"{value:.4g}"


class ToolCheck(FrozenModel):
    """Comparison of a column with what its tool returned.

    ``agreed`` of ``n`` photos have the value of the table (numbers: within the tolerance); ``lower`` and ``upper``:
    95 % interval of that share, from 0 to 1. ``silent``: photos without a result. ``otherwise``: photos with another
    name.
    ``labels``: counts by label, for names. ``mean_difference``: mean absolute difference in ``unit``, for numbers.
    """

    column: str
    tool: str
    backend: str | None = None
    """Back-end of the tool, if the build was told one."""
    kind: str
    n: int
    agreed: int
    lower: float
    upper: float
    silent: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()
    labels: tuple[LabelCount, ...] = ()
    mean_difference: float | None = None
    unit: str | None = None
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    photos: Annotated[tuple[PhotoCheck, ...], Field(exclude_if=operator.not_)] = ()
    """Each photo of the column, in the order of the table; empty in benchmarks of earlier builds."""

    def sentence(self) -> str:
        """Return the comparison in one sentence."""
        tool = f"{self.tool} ({self.backend})" if self.backend else self.tool
        share = f"{self.agreed} of {self.n} photos"
        interval = f"({100 * self.lower:.0f} to {100 * self.upper:.0f} %)"
        if self.kind == "number":
            within = within_text(self.abs_tol, self.rel_tol, self.unit, of="the value")
            text = f"{self.column}: {tool} agrees with you on {share} {interval}, {within}"
            if self.mean_difference is not None:
                differs = difference_text(f"{self.mean_difference:.3g}", self.unit)
                text += f"; it differs by {differs} on average"
            return text + _named("no value", self.silent)
        text = f"{self.column}: {tool} names {share} as you do {interval}"
        text += _named("another name", self.otherwise)
        return text + _named("no name", self.silent)

    def table(self) -> list[str]:
        """Return the counts by label as lines of a table; empty for numbers and where there is one label."""
        if len(self.labels) < 2:
            return []
        width = max(len("label"), *(len(each.label) for each in self.labels))
        lines = [f"{'label':{width}}  named right  named otherwise  not named"]
        lines += [
            f"{each.label:{width}}  {each.right:11}  {each.otherwise:15}  {each.not_named:9}"
            for each in self.labels
        ]
        return lines

    def photo_rows(self) -> list[list[str]]:
        """Return a row for each photo, as cells of text: first those on which the tool and the table differ."""
        differing = [each.cells(self.unit) for each in self.photos if not each.agrees]
        agreeing = [each.cells(self.unit) for each in self.photos if each.agrees]
        return differing + agreeing


PHOTO_COLUMNS = ("photo", "your table", "tool", "agreement")
"""Names of the cells in :meth:`ToolCheck.photo_rows`."""


def photos_csv(checks: Sequence[ToolCheck]) -> Iterator[Sequence[str | float | None]]:
    """Yield the rows of a CSV file with one row for each column and photo, in the order of the table."""
    yield ("column", "photo", "table", "tool", "unit", "agreement", "difference", "reason")
    for check in checks:
        for each in check.photos:
            values = (each.photo, each.table, each.tool, check.unit)
            yield (check.column, *values, each.agreement, each.difference, each.reason)


def _named(what: str, photos: Sequence[str]) -> str:
    if not photos:
        return ""
    return f"; {what}: {counted_names(photos, _PHOTOS_NAMED)}"


def stored_checks(metadata: Mapping[str, object]) -> list[ToolCheck]:
    """Return the checks in the metadata of a benchmark's header; empty if it has none.

    Raises:
        BenchmarkError: the metadata were changed, and are no checks.
    """
    listed = metadata.get(METADATA_KEY)
    if not isinstance(listed, list):
        return []
    return [read_stored(ToolCheck, each, METADATA_KEY) for each in listed]
