"""Figures printed in papers, as data.

The plug-in of a benchmark names a folder (:class:`agrotools.plugin.PublishedFiles`) with the figures (``rows.csv``),
figures about the data set (``set.csv``) and the sources of both (``paper.toml``).

Printed figures are not directly comparable with runs of agrotools: items, prompts and the reading of answers may
differ. Show a row together with its number of items, its notes and its doubts. Some table headers contradict their own
figures: compare by :attr:`PublishedRow.group_checked`, not by :attr:`PublishedRow.group`.
"""

import csv
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from agrotools.core import UsageError
from agrotools.core.installed import plugins
from agrotools.loading.contract import PublishedFiles
from agrotools.models.endpoint import split_provider

Unit = Literal["%", "0-1", "% of errors", "points", "count", "s/query"]
"""Unit of a figure. ``points`` is a difference in percentage points, ``s/query`` is seconds per query."""
Access = Literal["", "open", "api", "people"]
IN_TEXT = "text"
"""Table name of figures that appear only in running text."""
_HUNDREDTHS = ("%", "% of errors", "points")


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One printed result."""

    benchmark: str
    table: str
    """Number of the table in the paper (``7``, ``A1``), or :data:`IN_TEXT`."""
    setting: str
    """Mode or prompting method; empty if the paper does not state it."""
    variant: str
    """Further conditions of the figure, such as ``SAR`` or ``judged by GPT-4o``."""
    model: str
    """Model name as printed; the spelling differs between tables."""
    access: Access
    """Access to the model according to the paper: ``open``, ``api`` or ``people``; empty if it is not stated."""
    metric: str
    """Metric id with its benchmark: ``ripeness.grade``."""
    group: str
    """Printed heading of the column if the metric is broken down, else empty."""
    group_checked: str
    """Content of the column according to its figures; ends in ``?`` if it is uncertain."""
    value: str
    """Value exactly as printed."""
    unit: Unit
    n: int | None
    """Number of items of the mean if running text states it; no table prints it."""
    n_implied: int | None
    """Number of items of the mean implied by the figures, which are all whole numbers of that many items."""
    arrow: Literal["", "up", "down"]
    """Printed arrow for the change from zero-shot."""
    notes: tuple[str, ...]
    """Notes on the source of the figure and its method."""
    doubts: tuple[str, ...]
    """Reasons why the figure may be wrong, misread or not comparable."""

    @property
    def number(self) -> Decimal:
        """Figure in its own unit."""
        return Decimal(self.value)

    @property
    def fraction(self) -> float | None:
        """Figure as a fraction, also for differences; None for counts and seconds."""
        if self.unit in _HUNDREDTHS:
            return float(self.number / 100)
        return float(self.number) if self.unit == "0-1" else None

    @property
    def percent(self) -> str | None:
        """Share in percent with exactly the printed digits: ``61.4``; None for counts and seconds."""
        if self.unit in _HUNDREDTHS:
            return self.value
        return f"{self.number.scaleb(2):f}" if self.unit == "0-1" else None


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """Printed figure about a data set: the number of ``quantity`` in ``item``."""

    table: str
    item: str
    quantity: str
    value: str
    """Value as printed; may contain separators (``6,077``), a range (``0.1–1``) or ``~``."""

    @property
    def number(self) -> Decimal | None:
        """Figure as a number; None for a range or an approximation."""
        digits = self.value.replace(",", "")
        return Decimal(digits) if digits.replace(".", "", 1).isdecimal() else None


@dataclass(frozen=True)
class PrintedPaper:
    """Source of printed figures."""

    benchmark: str
    title: str
    arxiv: str
    version: str
    """Version of the text that was read, such as ``v1``; empty if it is not known."""
    code: str
    protocol: str
    """Short description of the method behind the figures."""
    tables: Mapping[str, str]
    """Contents of the tables by number."""
    about: Mapping[str, Any] = field(repr=False)

    @property
    def url(self) -> str:
        return f"https://arxiv.org/abs/{self.arxiv}{self.version}"


def published_rows(benchmark: str) -> Sequence[PublishedRow]:
    """Return all figures of a paper in the order of its tables. The files are read once.

    Args:
        benchmark: name of the benchmark (``agent-x``), or the prefix of the ids of these figures (``agentx``).

    Raises:
        UsageError: there is no such benchmark, or it has no results.
    """
    return _rows_of_family(_family(benchmark))


@cache
def _rows_of_family(benchmark: str) -> Sequence[PublishedRow]:
    about = paper(benchmark).about
    access: dict[str, Access] = {
        model: kind for kind, models in about["access"].items() for model in models
    }
    return tuple(_row(benchmark, entry, access, about) for entry in _entries(benchmark, "rows.csv"))


def published_set(benchmark: str) -> Sequence[PublishedFigure]:
    """Return the figures about a paper's data set; for errors see :func:`published_rows`."""
    return tuple(PublishedFigure(**entry) for entry in _entries(_family(benchmark), "set.csv"))


def paper(benchmark: str) -> PrintedPaper:
    """Return the paper with the results of ``benchmark``; for names and errors see :func:`published_rows`."""
    return _paper_of_family(_family(benchmark))


@cache
def _paper_of_family(benchmark: str) -> PrintedPaper:
    about = tomllib.loads(_text(benchmark, "paper.toml"))
    return PrintedPaper(
        benchmark=benchmark,
        **{
            name: about[name]
            for name in ("title", "arxiv", "version", "code", "protocol", "tables")
        },
        about=about,
    )


def rows_of_table(benchmark: str, table: str) -> Sequence[PublishedRow]:
    """Return the figures of one table, by its number in the paper.

    Raises:
        UsageError: there is no such benchmark or table.
    """
    if rows := [row for row in published_rows(benchmark) if row.table == table]:
        return rows
    tables = ", ".join(paper(benchmark).tables)
    raise UsageError(f"no published table {table!r} of {benchmark}", hint=f"tables: {tables}")


def rows_of_model(benchmark: str, model: str) -> Sequence[PublishedRow]:
    """Return the figures of a model, matched by :func:`same_model`; for errors see :func:`published_rows`."""
    return [row for row in published_rows(benchmark) if same_model(row.model, model)]


def same_model(first: str, second: str) -> bool:
    """Return True if two names denote one model.

    Case, an organisation before a slash and a provider (``openai:gpt-4o``) are ignored."""
    return _plain_name(first) == _plain_name(second)


def denotes(model: str, names: Collection[str]) -> set[str]:
    """Return those of ``names`` that denote the model: equal ones, else those of which one is cut off."""
    plain, key = {name: _plain_name(name) for name in names}, _plain_name(model)
    cut_off = {name for name in names if plain[name].startswith(key) or key.startswith(plain[name])}
    return {name for name in names if plain[name] == key} or cut_off


def _plain_name(model: str) -> str:
    return split_provider(model)[1].rpartition("/")[2].casefold()


def benchmarks_with_figures() -> dict[str, PublishedFiles]:
    """Return the folders of printed figures, by the prefix of the ids of their metrics."""
    return {figures.family: figures for plugin in plugins() if (figures := plugin.paper.figures)}


def _family(benchmark: str) -> str:
    """Return the prefix of the ids of a benchmark's figures, from this prefix or from the benchmark's name.

    Raises:
        UsageError: there is no such benchmark, or it has no results.
    """
    families = {
        plugin.name: plugin.paper.figures.family for plugin in plugins() if plugin.paper.figures
    }
    if benchmark in families.values():
        return benchmark
    if benchmark not in families:
        raise UsageError(
            f"no published results of {benchmark!r}", hint=f"available for {', '.join(families)}"
        )
    return families[benchmark]


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
"""Lists of a note, a doubt or an implied number, and the column whose value each list must contain."""


def _holds(note: Mapping[str, Any], entry: Mapping[str, str]) -> bool:
    return all(entry[column] in note[name] for name, column in _LISTS.items() if name in note)


def _entries(benchmark: str, name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(
        line for line in _text(benchmark, name).splitlines() if not line.startswith("#")
    )


def _text(benchmark: str, name: str) -> str:
    figures = benchmarks_with_figures()[benchmark]
    return (files(figures.package) / figures.folder / name).read_text("utf-8")
