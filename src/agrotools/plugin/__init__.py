"""Public names for packages that add a benchmark or an image source.

This module exports the contracts of a benchmark (:mod:`agrotools.plugin.contracts`) and the engine types that they use.
Apart from it only :mod:`agrotools` and :mod:`agrotools.tools` are public. Importing this module imports the core only;
names of other packages are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agrotools.core import (
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
    ToolCall,
    ToolError,
    ToolSpec,
    Trajectory,
)
from agrotools.plugin.contracts import (
    NO_COMPARISONS,
    BenchmarkPlugin,
    Download,
    ErrorSource,
    ExpectedCount,
    JudgedMetric,
    Judging,
    MetricInfo,
    ModeTally,
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
    **dict.fromkeys(("Loading", "with_clusters"), "agrotools.benchmarks"),
    "assembled": "agrotools.build.sources.assembling",
    "fruit_subjects": "agrotools.build.sources.land",
    **dict.fromkeys(("Originals", "Part"), "agrotools.build.sources.part"),
    "load_templates": "agrotools.build.templates",
    **dict.fromkeys(("Progress", "no_progress"), "agrotools.core.base"),
    **dict.fromkeys(("Benchmark", "BenchmarkHeader", "SourceNote"), "agrotools.formats.benchmark"),
    **dict.fromkeys(("Message", "Model"), "agrotools.models"),
    **dict.fromkeys(
        ("paper", "published_rows", "published_set", "rows_of_model", "rows_of_table"), "agrotools.report.published"
    ),
    "Setting": "agrotools.report.settings",
    "AgentOptions": "agrotools.runner.policies",
    **dict.fromkeys(("Metric", "ModeSummary", "Summary"), "agrotools.scoring"),
    "SlotScore": "agrotools.scoring.slots",
}
"""Module of each public name that is imported on first use."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "NO_COMPARISONS",
    "Action",
    "AgentOptions",
    "Answer",
    "Benchmark",
    "BenchmarkHeader",
    "BenchmarkPlugin",
    "CallTools",
    "Download",
    "ErrorSource",
    "ExpectedCount",
    "JudgedMetric",
    "Judging",
    "Loading",
    "Message",
    "Metric",
    "MetricInfo",
    "Mode",
    "ModeSummary",
    "ModeTally",
    "Model",
    "Observation",
    "Originals",
    "PaperLabels",
    "Part",
    "PartColumn",
    "PredictionContent",
    "PredictionFormat",
    "PredictionInput",
    "Progress",
    "PromptTemplates",
    "PublishedFiles",
    "PublishedRun",
    "Record",
    "RecordErrors",
    "ReferenceStep",
    "ReferenceTrajectory",
    "Reporting",
    "RunProtocol",
    "Sample",
    "SampleView",
    "Score",
    "Scoring",
    "Setting",
    "Slot",
    "SlotScore",
    "SourceNote",
    "Step",
    "Summary",
    "TextComparisons",
    "ToolCall",
    "ToolError",
    "ToolSpec",
    "Trajectory",
    "WithPlugins",
    "assembled",
    "benchmark_id",
    "deferred",
    "fruit_subjects",
    "load_templates",
    "no_progress",
    "paper",
    "plugin_of",
    "plugins",
    "plugins_for_slot_types",
    "plugins_of_metrics",
    "plugins_of_slots",
    "published_rows",
    "published_set",
    "rows_of_model",
    "rows_of_table",
    "with_clusters",
]
