"""Report of runs on Agent-X: tables of its criteria."""

from collections.abc import Callable, Mapping

from agrotools.core import Mode
from agrotools.plugin import Reporting
from agrotools.report.settings import Setting
from agrotools.scoring import Metric, Summary

STEPS = tuple(f"agent_x.{name}" for name in ("ground_s", "tool_p", "tool_acc", "step_s", "clarity", "reward"))
OUTCOME = tuple(
    f"agent_x.{name}" for name in ("faith_acc", "context_s", "fact_p", "sem_acc", "goal_acc", "toolset_acc")
)
_MODES: tuple[Mode, ...] = ("no-tool", "end-to-end")


def _judged_metrics(mode: Mode) -> Callable[[Summary], Mapping[str, Metric] | None]:
    """Those of a run where a judge was asked and they do not stand beside the printed rows."""

    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        part = summary.modes.get(mode)
        if part is None or (part.published is not None and part.published.reference):
            return None
        return part.metrics if any(metric in part.metrics for metric in (*STEPS, *OUTCOME)) else None

    return metrics


REPORTING = Reporting(
    settings=tuple(
        Setting(
            f"Agent-X ({mode}), {what}, by a judge",
            mode,
            columns,
            _judged_metrics(mode),
            lambda _: 0,
            by_rubrics=True,
        )
        for mode in _MODES
        for what, columns in (("steps", STEPS), ("reasoning and outcome", OUTCOME))
    )
)
