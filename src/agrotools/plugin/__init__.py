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
from agrotools.plugin.installed import (
    WithPlugins,
    benchmark_id,
    plugin_of,
    plugins,
    plugins_for_slot_types,
    plugins_of_metrics,
    plugins_of_slots,
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
    from agrotools.report.published import (
        paper,
        published_rows,
        published_set,
        rows_of_model,
        rows_of_table,
    )
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
