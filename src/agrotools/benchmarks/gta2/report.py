"""Report of runs on GTA-2: a table of what a judge gave."""

from collections.abc import Mapping

from agrotools.benchmarks.gta2.judge import GPT_SCORE, SCORE_CORRECTED
from agrotools.plugin import Reporting
from agrotools.report.settings import Setting
from agrotools.scoring import Metric, Summary


def _judged_metrics(summary: Summary) -> Mapping[str, Metric] | None:
    """Those of a run where a judge was asked."""
    metrics = summary.modes["end-to-end"].metrics if "end-to-end" in summary.modes else {}
    return metrics if GPT_SCORE in metrics else None


REPORTING = Reporting(
    settings=(
        Setting(
            "GTA-2 (end-to-end), by a judge, in words of ours",
            "end-to-end",
            (GPT_SCORE, SCORE_CORRECTED),
            _judged_metrics,
            marks_differences=True,
        ),
    )
)
