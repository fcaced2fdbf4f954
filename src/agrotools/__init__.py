"""agrotools: how well do multimodal models use tools to solve agricultural problems?

import agrotools as at

run = at.evaluate("embedded", model="baseline:planner", mode="end-to-end", limit=20)
run.scores["fas"]
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agrotools.agents.modes import Policy
    from agrotools.agents.task import Task
    from agrotools.api import (
        Comparison,
        MetricDifference,
        MetricScore,
        Run,
        RunSample,
        compare,
        evaluate,
        gate,
        merge,
        read_run,
        score,
        study,
    )
    from agrotools.calling.contract import tool
    from agrotools.core import (
        Action,
        AgrotoolsError,
        Answer,
        CallTools,
        SampleView,
        Step,
        ToolCall,
        ToolError,
    )
    from agrotools.core.errors import InvalidRunError
    from agrotools.core.record import Record
    from agrotools.formats.benchmark import Benchmark
    from agrotools.loading import load_benchmark
    from agrotools.models.base import Model

__version__: str

_MODULES = {
    **dict.fromkeys(
        (
            "Comparison",
            "MetricDifference",
            "MetricScore",
            "Run",
            "RunSample",
            "compare",
            "evaluate",
            "gate",
            "merge",
            "read_run",
            "score",
            "study",
        ),
        "agrotools.api",
    ),
    **dict.fromkeys(
        (
            "Action",
            "AgrotoolsError",
            "Answer",
            "CallTools",
            "SampleView",
            "Step",
            "ToolCall",
            "ToolError",
        ),
        "agrotools.core",
    ),
    "InvalidRunError": "agrotools.core.errors",
    "Benchmark": "agrotools.formats.benchmark",
    "Model": "agrotools.models.base",
    "Policy": "agrotools.agents.modes",
    "Record": "agrotools.core.record",
    "Task": "agrotools.agents.task",
    "load_benchmark": "agrotools.loading",
    "tool": "agrotools.calling.contract",
}
"""Public names by the module that they are imported from on first use: ``import agrotools`` alone stays cheap."""

__all__ = [
    "Action",
    "AgrotoolsError",
    "Answer",
    "Benchmark",
    "CallTools",
    "Comparison",
    "InvalidRunError",
    "MetricDifference",
    "MetricScore",
    "Model",
    "Policy",
    "Record",
    "Run",
    "RunSample",
    "SampleView",
    "Step",
    "Task",
    "ToolCall",
    "ToolError",
    "compare",
    "evaluate",
    "gate",
    "load_benchmark",
    "merge",
    "read_run",
    "score",
    "study",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Read when asked for: importlib.metadata alone would cost a tenth of the start of the command.
        from importlib.metadata import version

        return version("agrotools")
    if name in _MODULES:
        from agrotools.core.libraries import public_name

        value = public_name(__name__, name, _MODULES[name])
        globals()[name] = value
        return value
    raise AttributeError(f"module 'agrotools' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
