"""Figures that papers print, as data, and the tables of papers filled with runs.

The plug-in of a benchmark names a folder (:class:`agrotools.plugin.PublishedFiles`) with the figures (``rows.csv``),
the data set in figures (``set.csv``) and the sources of both (``paper.toml``).

A figure is never a run of ours: items, prompts and the reading of answers may differ, so whoever shows a row shows its
number of items, its notes and its doubts too. Headers of some tables are contradicted by their own figures: compare by
:attr:`PublishedRow.group_checked`, not by :attr:`PublishedRow.group`.
"""

import csv
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from agrotools.core import UsageError
from agrotools.models.endpoint import split_provider
from agrotools.plugin import PublishedFiles, plugins

Unit = Literal["%", "0-1", "% of errors", "points", "count", "s/query"]
"""``points``: a difference in percentage points; ``s/query``: seconds."""
Access = Literal["", "open", "api", "people"]
IN_TEXT = "text"
"""The "table" of figures that stand in running text alone."""
_HUNDREDTHS = ("%", "% of errors", "points")


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One printed figure."""

    benchmark: str
    table: str
    """Number of the table in the paper (``7``, ``A1``), or :data:`IN_TEXT`."""
    setting: str
    """Mode or way of prompting; empty where the paper does not say."""
    variant: str
    """Further conditions of the figure: ``SAR``, ``judged by GPT-4o``..."""
    model: str
    """Name as printed; spelling differs between tables."""
    access: Access
    """Open, or behind an API, as the paper counts the model; empty where it does not say."""
    metric: str
    """With its benchmark, ``ripeness.grade``."""
    group: str
    """Heading of the column as printed, where the metric is broken down; empty otherwise."""
    group_checked: str
    """Content of the column as far as the figures tell; ends in ``?`` where that is not certain."""
    value: str
    """The figure exactly as printed."""
    unit: Unit
    n: int | None
    """Items of the mean, where running text says so; no table prints it."""
    n_implied: int | None
    """Items of the mean as the figures imply: all are whole numbers out of it."""
    arrow: Literal["", "up", "down"]
    """The printed arrow against zero-shot."""
    notes: tuple[str, ...]
    """Source of the figure, and how it was made."""
    doubts: tuple[str, ...]
    """Reasons why it may be wrong, misread or not comparable."""

    @property
    def number(self) -> Decimal:
        """The figure in its own unit."""
        return Decimal(self.value)

    @property
    def fraction(self) -> float | None:
        """The figure as a share (differences: of one), None for counts and seconds."""
        if self.unit in _HUNDREDTHS:
            return float(self.number / 100)
        return float(self.number) if self.unit == "0-1" else None

    @property
    def percent(self) -> str | None:
        """The share in percent with all printed digits and no more: ``61.4``; None for counts and seconds."""
        if self.unit in _HUNDREDTHS:
            return self.value
        return f"{self.number.scaleb(2):f}" if self.unit == "0-1" else None


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One printed figure about a data set: how many ``quantity`` the ``item`` has."""

    table: str
    item: str
    quantity: str
    value: str
    """As printed: may hold separators (``6,077``), a range (``0.1–1``) or ``~``."""

    @property
    def number(self) -> Decimal | None:
        """The figure, None for a range or an approximation."""
        digits = self.value.replace(",", "")
        return Decimal(digits) if digits.replace(".", "", 1).isdecimal() else None


@dataclass(frozen=True)
class Paper:
    """Source of printed figures."""

    benchmark: str
    title: str
    arxiv: str
    version: str
    """Of the text that was read, ``v1``; empty where that is not known."""
    code: str
    protocol: str
    """Way in which the figures came about, in short."""
    tables: Mapping[str, str]
    """Number of a table to what it shows."""
    about: Mapping[str, Any] = field(repr=False)

    @property
    def url(self) -> str:
        return f"https://arxiv.org/abs/{self.arxiv}{self.version}"


def published_rows(benchmark: str) -> Sequence[PublishedRow]:
    """All figures of a paper in the order of its tables, read once.

    Args:
        benchmark: beginning of the ids of its metrics in them.

    Raises:
        UsageError: no such benchmark, or none with results.
    """
    return _rows(benchmark)


def published_set(benchmark: str) -> Sequence[PublishedFigure]:
    """Figures on the size of a paper's data set; errors as of :func:`published_rows`."""
    return tuple(PublishedFigure(**entry) for entry in _entries(benchmark, "set.csv"))


@cache
def paper(benchmark: str) -> Paper:
    """The paper that printed the results of ``benchmark``.

    Raises:
        UsageError: no such benchmark, or none with results.
    """
    about = tomllib.loads(_text(benchmark, "paper.toml"))
    return Paper(
        benchmark=benchmark,
        **{name: about[name] for name in ("title", "arxiv", "version", "code", "protocol", "tables")},
        about=about,
    )


def rows_of_table(benchmark: str, table: str) -> Sequence[PublishedRow]:
    """The figures of one table, by its number as the paper has it.

    Raises:
        UsageError: no such benchmark or table.
    """
    table_rows = [row for row in published_rows(benchmark) if row.table == table]
    if not table_rows:
        raise UsageError(
            f"no published table {table!r} of {benchmark}", hint=f"tables: {', '.join(paper(benchmark).tables)}"
        )
    return table_rows


def rows_of_model(benchmark: str, model: str) -> Sequence[PublishedRow]:
    """The figures of a model, whatever the case of its name; none if no table has it. Errors as of
    :func:`published_rows`."""
    return [row for row in published_rows(benchmark) if same_model(row.model, model)]


def same_model(first: str, second: str) -> bool:
    """True if two names are of one model: alike but for case, an organisation before a slash, and a provider
    (``openai:gpt-4o``)."""
    return _plain_name(first) == _plain_name(second)


def _plain_name(model: str) -> str:
    return split_provider(model)[1].rpartition("/")[2].casefold()


def benchmarks_with_figures() -> dict[str, PublishedFiles]:
    """Folders of printed figures, by the beginning of the ids of metrics in them."""
    return {plugin.published.family: plugin.published for plugin in plugins() if plugin.published}


@cache
def _rows(benchmark: str) -> tuple[PublishedRow, ...]:
    about = paper(benchmark).about
    access: dict[str, Access] = {model: kind for kind, models in about["access"].items() for model in models}
    return tuple(_row(benchmark, entry, access, about) for entry in _entries(benchmark, "rows.csv"))


def _row(
    benchmark: str, entry: Mapping[str, str], access: Mapping[str, Access], about: Mapping[str, Any]
) -> PublishedRow:
    group = entry["group_checked"]
    implied = [
        one["groups"][group] if "groups" in one else one["metrics"][entry["metric"]]
        for one in about.get("implied_n", ())
        if _holds(one, entry)
    ]
    fields: dict[str, Any] = {
        **entry,
        "metric": f"{benchmark}.{entry['metric']}",
        "n": int(entry["n"]) if entry["n"] else None,
        "n_implied": implied[0] if implied else None,
        "notes": tuple(one["text"] for one in about.get("notes", ()) if _holds(one, entry)),
        "doubts": tuple(one["text"] for one in about.get("doubts", ()) if _holds(one, entry)),
    }
    return PublishedRow(benchmark=benchmark, access=access.get(entry["model"], ""), **fields)


_LISTS = {
    "tables": "table",
    "settings": "setting",
    "variants": "variant",
    "models": "model",
    "metrics": "metric",
    "groups": "group_checked",
}
"""Lists of a note, a doubt or an implied number, and the column whose value must be in them."""


def _holds(note: Mapping[str, Any], entry: Mapping[str, str]) -> bool:
    return all(entry[column] in note[name] for name, column in _LISTS.items() if name in note)


def _entries(benchmark: str, name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(line for line in _text(benchmark, name).splitlines() if not line.startswith("#"))


def _text(benchmark: str, name: str) -> str:
    known = benchmarks_with_figures()
    if benchmark not in known:
        raise UsageError(f"no published results of {benchmark!r}", hint=f"there are some of {', '.join(known)}")
    return (files(known[benchmark].package) / known[benchmark].folder / name).read_text("utf-8")
