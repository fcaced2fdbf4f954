"""Public names for packages that add a benchmark or an image source.

This module exports the contracts of a benchmark (:mod:`agrotools.loading.contract` begins with the plug-in itself)
and the engine types that they use. Of the engine only :mod:`agrotools` and :mod:`agrotools.calling` (for packages that
add a tool) are public beside it. Importing this module imports the core only; names of other rooms are imported on
first use. It also has the installed plug-ins, and tables of the engine joined with theirs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agrotools.core import (
    Action,
    Answer,
    BooleanSlot,
    CallTools,
    ExactSlot,
    Mode,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    SampleView,
    Score,
    Slot,
    Step,
    ToleranceSlot,
    ToolCall,
    ToolError,
    ToolSpec,
    Trajectory,
)
from agrotools.core.files import sha256_of_file
from agrotools.core.installed import (
    WithPlugins,
    benchmark_id,
    plugin_of,
    plugins,
    plugins_for_slot_types,
    plugins_of_metrics,
    plugins_of_slots,
)
from agrotools.core.progress import Progress, no_progress
from agrotools.core.registry import deferred

if TYPE_CHECKING:
    from agrotools.agents.options import AgentOptions
    from agrotools.agents.protocols import PromptTemplates, RunProtocol
    from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, SourceNote
    from agrotools.loading import Loading, with_clusters
    from agrotools.loading.contract import (
        BenchmarkFiles,
        BenchmarkPlugin,
        Download,
        ExpectedCount,
        Paper,
        PublishedFiles,
        Targets,
    )
    from agrotools.models import Message, Model
    from agrotools.report.contracts import PaperLabels, PartColumn, Reporting
    from agrotools.report.published import (
        paper,
        published_rows,
        published_set,
        rows_of_model,
        rows_of_table,
    )
    from agrotools.report.settings import Setting
    from agrotools.scoring.contracts import (
        NO_COMPARISONS,
        ErrorSource,
        MetricInfo,
        ModeTally,
        PublishedRun,
        RecordErrors,
        Scoring,
        TextComparisons,
    )
    from agrotools.scoring.judging.contracts import JudgedMetric, Judging
    from agrotools.scoring.prediction_format import (
        PredictionContent,
        PredictionFormat,
        PredictionInput,
    )
    from agrotools.scoring.slots import SlotScore
    from agrotools.scoring.summary import Metric, ModeSummary, Summary

_MODULES = {
    name: f"agrotools.{module}"
    for module, names in {
        "agents.options": "AgentOptions",
        "agents.protocols": "PromptTemplates RunProtocol",
        "loading": "Loading with_clusters",
        "loading.contract": (
            "BenchmarkFiles BenchmarkPlugin Download ExpectedCount Paper PublishedFiles Targets"
        ),
        "formats.benchmark": "Benchmark BenchmarkHeader SourceNote",
        "models": "Message Model",
        "report.contracts": "PaperLabels PartColumn Reporting",
        "report.published": "paper published_rows published_set rows_of_model rows_of_table",
        "report.settings": "Setting",
        "scoring.contracts": (
            "NO_COMPARISONS ErrorSource MetricInfo ModeTally PublishedRun RecordErrors Scoring"
            " TextComparisons"
        ),
        "scoring.judging.contracts": "JudgedMetric Judging",
        "scoring.prediction_format": "PredictionContent PredictionFormat PredictionInput",
        "scoring.slots": "SlotScore",
        "scoring.summary": "Metric ModeSummary Summary",
    }.items()
    for name in names.split()
}
"""Module of each public name that is imported on first use."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "NO_COMPARISONS", "Action", "AgentOptions", "Answer", "Benchmark", "BenchmarkFiles", "BenchmarkHeader",
    "BenchmarkPlugin", "BooleanSlot", "CallTools", "Download", "ErrorSource", "ExactSlot", "ExpectedCount",
    "JudgedMetric", "Judging", "Loading", "Message", "Metric", "MetricInfo", "Mode", "ModeSummary", "ModeTally",
    "Model", "Observation", "Paper", "PaperLabels", "PartColumn", "PredictionContent", "PredictionFormat",
    "PredictionInput", "Progress", "PromptTemplates", "PublishedFiles", "PublishedRun", "Record", "RecordErrors",
    "ReferenceStep", "ReferenceTrajectory", "Reporting", "RunProtocol", "Sample", "SampleFile", "SampleView",
    "Score", "Scoring", "Setting", "Slot", "SlotScore", "SourceNote", "Step", "Summary", "Targets",
    "TextComparisons", "ToleranceSlot", "ToolCall", "ToolError", "ToolSpec", "Trajectory", "WithPlugins",
    "benchmark_id", "deferred", "no_progress", "paper", "plugin_of", "plugins", "plugins_for_slot_types",
    "plugins_of_metrics", "plugins_of_slots", "published_rows", "published_set", "rows_of_model", "rows_of_table",
    "sha256_of_file", "with_clusters",
]  # fmt: skip
