"""Public names for packages that add a benchmark or an image source.

This module exports the contracts of a benchmark (:mod:`agrotools.plugin.contracts`) and the engine types that they use.
Apart from it only :mod:`agrotools` and :mod:`agrotools.tools` are public. Importing this module imports the core only;
names of other packages are imported on first use. It also has the installed plug-ins, and tables of the engine joined
with theirs.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from agrotools.core import (
    BENCHMARKS,
    Action,
    Answer,
    CallTools,
    Mode,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleView,
    Score,
    Slot,
    Step,
    ToleranceSlot,
    ToolCall,
    ToolError,
    ToolSpec,
    Trajectory,
    imported,
)
from agrotools.core.registry import join_tables
from agrotools.core.slot import SLOT_TYPES
from agrotools.plugin.contracts import (
    NO_COMPARISONS,
    BenchmarkFiles,
    BenchmarkPlugin,
    Download,
    ErrorSource,
    ExpectedCount,
    JudgedMetric,
    Judging,
    MetricInfo,
    ModeTally,
    Paper,
    PaperLabels,
    PartColumn,
    PredictionContent,
    PredictionFormat,
    PredictionInput,
    PromptTemplates,
    PublishedFiles,
    PublishedRun,
    RecordErrors,
    Reporting,
    RunProtocol,
    Scoring,
    Targets,
    TextComparisons,
    deferred,
)

if TYPE_CHECKING:
    from agrotools.benchmarks import Loading, with_clusters
    from agrotools.benchmarks.builtin import BuiltIn
    from agrotools.build.sources.assembling import assembled
    from agrotools.build.sources.land import fruit_subjects
    from agrotools.build.sources.part import Originals, Part
    from agrotools.build.templates import load_templates
    from agrotools.core.base import Progress, no_progress
    from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, SourceNote
    from agrotools.models import Message, Model
    from agrotools.report.published import paper, published_rows, published_set, rows_of_model, rows_of_table
    from agrotools.report.settings import Setting
    from agrotools.runner.policies import AgentOptions
    from agrotools.scoring import Metric, ModeSummary, Summary
    from agrotools.scoring.slots import SlotScore

_MODULES = {
    name: f"agrotools.{module}"
    for module, names in {
        "benchmarks": "Loading with_clusters",
        "build.sources.assembling": "assembled",
        "build.sources.land": "fruit_subjects",
        "build.sources.part": "Originals Part",
        "build.templates": "load_templates",
        "core.base": "Progress no_progress",
        "formats.benchmark": "Benchmark BenchmarkHeader SourceNote",
        "models": "Message Model",
        "report.published": "paper published_rows published_set rows_of_model rows_of_table",
        "report.settings": "Setting",
        "runner.policies": "AgentOptions",
        "scoring": "Metric ModeSummary Summary",
        "scoring.slots": "SlotScore",
    }.items()
    for name in names.split()
}
"""Module of each public name that is imported on first use."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


V = TypeVar("V")


def plugins() -> list[BenchmarkPlugin]:
    """Return all installed benchmark plug-ins that can be imported."""
    return BENCHMARKS.loaded()


def plugin_of(benchmark: str) -> BenchmarkPlugin | None:
    """Return the plug-in of a benchmark; None if none is installed, e.g. for a benchmark folder."""
    return BENCHMARKS.get(benchmark) if benchmark in BENCHMARKS else None


def benchmark_id(name: str) -> str:
    """Return the id of the benchmark whose name differs from ``name`` at most in case, ``-`` and ``_``; other names
    and paths are returned unchanged."""
    if name in BENCHMARKS or "/" in name or os.sep in name:
        return name
    return {_plain(each): each for each in BENCHMARKS}.get(_plain(name), name)


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")


def plugins_of_slots(slots: Iterable[Slot]) -> list[BenchmarkPlugin]:
    """Return the plug-ins that define the types of ``slots``."""
    types = {type(slot) for slot in slots}.difference(SLOT_TYPES)
    return [plugin for plugin in plugins() if not types.isdisjoint(plugin.slots)] if types else []


def plugins_for_slot_types(types: frozenset[str]) -> list[BenchmarkPlugin]:
    """Return the plug-ins that may have metrics for slots of these types. Of the benchmarks in this package only those
    with such metrics are imported; plug-ins of other packages always are."""
    known: Mapping[str, BuiltIn] = imported("agrotools.benchmarks.builtin:BUILT_IN")
    return BENCHMARKS.loaded(
        name for name in BENCHMARKS if name not in known or not types.isdisjoint(known[name].slot_types)
    )


def plugins_of_metrics(metrics: Iterable[str]) -> list[BenchmarkPlugin]:
    """Return the plug-ins that define any of ``metrics``."""
    theirs = {metric for metric in metrics if "." in metric}
    return [plugin for plugin in plugins() if not plugin.metrics.keys().isdisjoint(theirs)] if theirs else []


class WithPlugins(Mapping[str, V]):
    """Table of the engine joined with the corresponding tables of all plug-ins when it is first read. ``noun`` names
    the entries in the warning about two packages that define the same name."""

    def __init__(
        self, noun: str, entries: Mapping[str, V], table: Callable[[BenchmarkPlugin], Mapping[str, V]]
    ) -> None:
        self._noun = noun
        self._entries = entries
        self._table = table
        self._joined: Mapping[str, V] = {}
        self._names: tuple[str, ...] | None = None

    def joined(self) -> Mapping[str, V]:
        """Return all entries, the engine's first; see :func:`agrotools.core.registry.join_tables`."""
        if self._names != BENCHMARKS.names():
            tables = [(BENCHMARKS.package_of(plugin.name), self._table(plugin)) for plugin in plugins()]
            self._joined = join_tables(self._noun, [("agrotools", self._entries), *tables])
            self._names = BENCHMARKS.names()
        return self._joined

    def __getitem__(self, key: str) -> V:
        return self._entries[key] if key in self._entries else self.joined()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.joined())

    def __len__(self) -> int:
        return len(self.joined())


__all__ = [
    "NO_COMPARISONS", "Action", "AgentOptions", "Answer", "Benchmark", "BenchmarkFiles", "BenchmarkHeader",
    "BenchmarkPlugin", "CallTools", "Download", "ErrorSource", "ExpectedCount", "JudgedMetric", "Judging", "Loading",
    "Message", "Metric", "MetricInfo", "Mode", "ModeSummary", "ModeTally", "Model", "Observation", "Originals", "Paper",
    "PaperLabels", "Part", "PartColumn", "PredictionContent", "PredictionFormat", "PredictionInput", "Progress",
    "PromptTemplates", "PublishedFiles", "PublishedRun", "Record", "RecordErrors", "ReferenceStep",
    "ReferenceTrajectory", "Reporting", "RunProtocol", "Sample", "SampleView", "Score", "Scoring", "Setting", "Slot",
    "SlotScore", "SourceNote", "Step", "Summary", "Targets", "TextComparisons", "ToleranceSlot", "ToolCall",
    "ToolError", "ToolSpec", "Trajectory", "WithPlugins", "assembled", "benchmark_id", "deferred", "fruit_subjects",
    "load_templates", "no_progress", "paper", "plugin_of", "plugins", "plugins_for_slot_types", "plugins_of_metrics",
    "plugins_of_slots", "published_rows", "published_set", "rows_of_model", "rows_of_table", "with_clusters",
]  # fmt: skip
