"""Tables of the report: the metrics of a run in each setting, and the tables of the benchmarks' papers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.core import BENCHMARKS, Mode, Record, Score
from agrotools.plugin import BenchmarkPlugin, PaperTables, plugin_of, plugins, plugins_of_metrics
from agrotools.report.layout import Notes, run_names
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring import Metric, Summary, score_record
from agrotools.scoring.metrics import own_metric
from agrotools.scoring.summary import GAIN_METRICS

if TYPE_CHECKING:
    from rich.console import RenderableType

OUTCOME = (*GAIN_METRICS, "agrotools.plot")
PROCESS = ("agrotools.st_acc", "agrotools.tool_acc", "agrotools.arg_acc", "agrotools.ear", "agrotools.summ_acc")
CALL_RATIO = "agrotools.call_ratio"
_BESIDE = {
    "agrotools.fas": (("guess", "agrotools.guess"),),
    "agrotools.tool_acc": (("strict", "agrotools.tool_acc_strict"), ("guess", "agrotools.tool_acc_guess")),
    "agrotools.arg_acc": (("strict", "agrotools.arg_acc_strict"), ("guess", "agrotools.arg_acc_guess")),
    "agrotools.summ_acc": (("truth", "agrotools.summ_acc_truth"),),
}


@dataclass(frozen=True)
class Setting:
    """A table of the report: its title and the metrics that it shows."""

    title: str
    mode: Mode
    metrics: Sequence[str]
    of: Callable[[Summary], Mapping[str, Metric] | None]
    """The metrics of a run in this setting; None where the run has none at all."""
    plots_left_out: bool = False
    whole_mode: bool = True
    """True if it shows all samples of the mode."""
    by_rubrics: bool = False
    """The title names the rubrics that judges graded by."""
    marks_differences: bool = False
    """A note names what keeps a run from comparison with printed scores."""


def _metrics_of_mode(mode: Mode) -> Callable[[Summary], Mapping[str, Metric] | None]:
    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        if mode not in summary.modes:
            return None
        mode_metrics = summary.modes[mode].metrics
        # Metrics of a benchmark plug-in alone stand in its own tables.
        return None if mode_metrics and not any(map(own_metric, mode_metrics)) else mode_metrics

    return metrics


def judge_alone_scores(summary: Summary) -> bool:
    """True if tasks are scored by judges alone and are not run without tools."""
    part = summary.modes.get("end-to-end")
    if part is None or part.invalid.n == part.n_records:
        return False
    return not any(map(own_metric, part.metrics))


def _metrics_on_no_tool(summary: Summary) -> Mapping[str, Metric] | None:
    has = "end-to-end" in summary.modes and summary.no_tool_part is not None and not judge_alone_scores(summary)
    return summary.no_tool_part.metrics if has and summary.no_tool_part else None


SETTINGS = (
    Setting("No tools", "no-tool", OUTCOME, _metrics_of_mode("no-tool"), plots_left_out=True),
    Setting("End to end", "end-to-end", (*OUTCOME, CALL_RATIO), _metrics_of_mode("end-to-end")),
    Setting(
        "End to end, on the samples of no-tool",
        "end-to-end",
        OUTCOME,
        _metrics_on_no_tool,
        plots_left_out=True,
        whole_mode=False,
    ),
    Setting("Step by step", "step-by-step", PROCESS, _metrics_of_mode("step-by-step")),
)


def settings_for(summaries: Sequence[Summary]) -> list[Setting]:
    """Tables of metrics for these runs: those of the engine, then those of benchmark plug-ins."""
    return [*SETTINGS, *(setting for plugin in used_plugins(summaries) for setting in plugin.reporting.settings)]


def used_plugins(summaries: Sequence[Summary]) -> list[BenchmarkPlugin]:
    """Benchmark plug-ins of the runs and of their metrics."""
    metrics = {metric for summary in summaries for part in summary.modes.values() for metric in part.metrics}
    names = {plugin.name for plugin in plugins_of_metrics(metrics)} | {summary.benchmark for summary in summaries}
    return BENCHMARKS.loaded(name for name in BENCHMARKS if name in names)


def variants_of(metric: str) -> Sequence[tuple[str, str]]:
    """Variants printed beneath a metric in its cell: label and id."""
    if metric in _BESIDE:
        return _BESIDE[metric]
    return [each for plugin in plugins_of_metrics([metric]) for each in plugin.reporting.beside.get(metric, ())]


def plugin_tables(summaries: Sequence[Summary], notes: Notes) -> list["RenderableType"]:
    """Tables of benchmark plug-ins beside their tables of metrics."""
    makers = [plugin.reporting.tables for plugin in used_plugins(summaries)]
    return [table for make in makers if make is not None for table in make(summaries, notes)]


def plugin_notes(summaries: Sequence[Summary]) -> list[str]:
    """Lines of benchmark plug-ins on each mode of each run."""
    lines: list[str] = []
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        of_run = f"{name}, " if len(summaries) > 1 else ""
        for plugin in used_plugins([summary]):
            if (notes := plugin.reporting.notes) is not None:
                lines += [f"{of_run}{line}" for part in summary.modes.values() for line in notes(part)]
    return lines


class Papers:
    """The tables of all papers that runs of a report belong to."""

    def __init__(self) -> None:
        self._tables: dict[str, PaperTables] = {}

    def begin_run(self, manifest: Manifest) -> bool:
        """The records that follow are of this run. Returns whether its benchmark has a paper with tables."""
        plugin = plugin_of(manifest.benchmark)
        paper = plugin.reporting.paper if plugin else None
        if paper is not None and manifest.benchmark not in self._tables:
            self._tables[manifest.benchmark] = paper()
        for tables in self._tables.values():
            tables.begin_run(manifest)
        return paper is not None

    def add(self, record: Record, scores: Sequence[Score]) -> None:
        """A record of the run and its score rows."""
        for tables in self._tables.values():
            tables.add(record, scores)

    def filled(self) -> list[PaperTables]:
        """The tables that records were added to."""
        return [tables for tables in self._tables.values() if tables]


def papers_of_runs(runs: Sequence[Path]) -> Papers:
    """The papers of ``runs``, whose records are scored for them.

    Raises:
        RunStoreError: not a run, or its records cannot be read.
    """
    papers = Papers()
    for run in runs:
        if papers.begin_run(read_manifest(run)):
            for record in iter_records(run):
                papers.add(record, score_record(record))
    return papers


def benchmarks_with_papers() -> list[str]:
    """Names of the benchmarks whose paper has tables here."""
    return [plugin.name for plugin in plugins() if plugin.reporting.paper is not None]
