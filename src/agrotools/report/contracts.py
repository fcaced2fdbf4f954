"""Contracts of reports: what a benchmark adds to a report on runs that have its metrics."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from agrotools.core import Mode, Sample, imported

if TYPE_CHECKING:
    from agrotools.formats.manifest import Manifest
    from agrotools.loading.contract import BenchmarkPlugin
    from agrotools.report.layout import Notes, Part
    from agrotools.report.settings import Setting
    from agrotools.scoring.summary import ModeSummary, Summary


class PaperLabels(NamedTuple):
    """Functions that return the setting of a run, and the name of a sample's question with the columns that it counts
    in, as the tables of a benchmark's paper have them. Without them, settings are modes, and samples are questions."""

    setting_of: "Callable[[Manifest], str]"
    item_of: Callable[[Sample], tuple[str, Collection[str]]]


class PartColumn(NamedTuple):
    """Metric in the tables by task and answer type. ``title``: title of its separate table in a report on
    several runs."""

    mode: Mode
    metric: str
    heading: str
    title: str = ""


@dataclass(frozen=True)
class Reporting:
    """Sections of a report on runs that have metrics of the benchmark."""

    settings: "tuple[Setting, ...]" = ()
    """Tables of metrics with one row per run."""
    variants: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Variants shown below a metric in the same cell, by metric id: pairs of a word and the id of the variant."""
    parts: tuple[PartColumn, ...] = ()
    tables: "Callable[[Sequence[Summary], Notes], list[Part]] | None" = None
    """Function that returns additional tables for the terminal and the HTML page."""
    notes: "Callable[[ModeSummary], Iterable[str]] | None" = None
    """Function that returns lines of text below the tables on one mode of a run."""
    paper: PaperLabels | None = None
    """Settings and questions in the paper's tables (``agrotools score RUN --paper``)."""


NO_REPORTING = Reporting()
"""Of a benchmark that adds nothing to a report."""


def reporting_of(plugin: "BenchmarkPlugin") -> Reporting:
    """Return what a plug-in adds to a report."""
    return imported(plugin.targets.reporting) if plugin.targets.reporting else NO_REPORTING
