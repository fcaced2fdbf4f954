"""Settings of the report (mode and metrics of each table), and the tables of the benchmarks' papers.

Summaries come in; the settings that have a table go out, those of the engine first, then those of plug-ins.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agrotools.core import BENCHMARKS, MODES, Mode, Record, Score
from agrotools.core.installed import plugin_of, plugins_of_metrics
from agrotools.loading.contract import BenchmarkPlugin
from agrotools.report.contracts import reporting_of
from agrotools.report.layout import Notes, Part, of_runs
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.contracts import NO_COMPARISONS, TextComparisons
from agrotools.scoring.metrics import own_metric
from agrotools.scoring.summary import GAIN_METRICS, Metric, Summary

OUTCOME = (*GAIN_METRICS, "plot")
PROCESS = ("st_acc", "tool_acc", "arg_acc", "ear", "summ_acc")
KNOWING = ("false_confidence", "false_refusal")
HARMING = ("harmful_advice",)
CALL_RATIO = "call_ratio"
_BESIDE = {
    "fas": (("guess", "guess"), ("constant", "constant")),
    "tool_acc": (("strict", "tool_acc_strict"), ("guess", "tool_acc_guess")),
    "arg_acc": (("strict", "arg_acc_strict"), ("guess", "arg_acc_guess")),
    "summ_acc": (("truth", "summ_acc_truth"),),
}


@dataclass(frozen=True)
class Setting:
    """Table of the report: its title, mode and metrics."""

    title: str
    mode: Mode
    metrics: Sequence[str]
    of: Callable[[Summary], Mapping[str, Metric] | None]
    """Function that returns the metrics of a run in this setting; None if the run has none."""
    plots_left_out: bool = False
    whole_mode: bool = True
    """True if the table shows all samples of the mode."""
    by_rubrics: bool = False
    """True if the title names the rubrics of the judges."""
    needs: Sequence[Mode] = ()
    """Modes that at least one run must have for the table to be shown."""


def _metrics_of_mode(mode: Mode) -> Callable[[Summary], Mapping[str, Metric] | None]:
    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        if mode not in summary.modes:
            return None
        mode_metrics = summary.modes[mode].metrics
        # A mode that has only metrics of a plug-in is shown in the plug-in's tables.
        return None if mode_metrics and not any(map(own_metric, mode_metrics)) else mode_metrics

    return metrics


def judge_alone_scores(summary: Summary) -> bool:
    """Return True if the end-to-end mode has no metric of the engine, as in tasks that only judges score."""
    part = summary.modes.get("end-to-end")
    if part is None or part.invalid.n == part.n_records:
        return False
    return not any(map(own_metric, part.metrics))


def _metrics_on_no_tool(summary: Summary) -> Mapping[str, Metric] | None:
    has = (
        "end-to-end" in summary.modes
        and summary.no_tool_part is not None
        and not judge_alone_scores(summary)
    )
    return summary.no_tool_part.metrics if has and summary.no_tool_part else None


Measure = tuple[Setting, str]
"""Setting and metric that runs are judged by."""

SETTINGS = (
    Setting(
        "No tools",
        "no-tool",
        (*OUTCOME, *HARMING),
        _metrics_of_mode("no-tool"),
        plots_left_out=True,
    ),
    Setting(
        "End to end",
        "end-to-end",
        (*OUTCOME, *KNOWING, *HARMING, CALL_RATIO),
        _metrics_of_mode("end-to-end"),
    ),
    Setting(
        "End to end, on the samples of no-tool",
        "end-to-end",
        OUTCOME,
        _metrics_on_no_tool,
        plots_left_out=True,
        whole_mode=False,
        needs=("no-tool", "end-to-end"),
    ),
    Setting("Step by step", "step-by-step", PROCESS, _metrics_of_mode("step-by-step")),
)


def settings_for(summaries: Sequence[Summary]) -> list[Setting]:
    """Return the settings of the engine, then of plug-ins, then of metrics of plug-ins that these leave out."""
    named = [
        *SETTINGS,
        *(
            setting
            for plugin in used_plugins(summaries)
            for setting in reporting_of(plugin).settings
        ),
    ]
    return [*named, *_unnamed_settings(summaries, named)]


def _unnamed_settings(summaries: Sequence[Summary], named: Sequence[Setting]) -> Iterator[Setting]:
    """Yield a setting for each plug-in and mode with metrics of runs that no other setting or table shows."""
    for plugin in used_plugins(summaries):
        for mode in MODES:
            parts = [each.modes[mode] for each in summaries if mode in each.modes]
            shown = {name for each in named if each.mode == mode for name in each.metrics}
            for part in parts:
                if part.published is not None:
                    shown |= part.published.corrected.keys()
            has = set[str]().union(*(part.metrics for part in parts))
            metrics = [name for name in plugin.metrics if name in has - shown]
            if metrics:
                yield Setting(f"{plugin.name}, {mode}", mode, metrics, _with_any(mode, metrics))


def _with_any(mode: Mode, names: Sequence[str]) -> Callable[[Summary], Mapping[str, Metric] | None]:
    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        part = summary.modes.get(mode)
        return part.metrics if part and any(name in part.metrics for name in names) else None

    return metrics


def has_table(setting: Setting, summaries: Sequence[Summary]) -> bool:
    """Return True if a run has metrics in the setting, and a run has all modes that it needs."""
    has_modes = any(all(mode in summary.modes for mode in setting.needs) for summary in summaries)
    return has_modes and any(setting.of(summary) is not None for summary in summaries)


def used_plugins(summaries: Sequence[Summary]) -> list[BenchmarkPlugin]:
    """Return the benchmark plug-ins of the runs and of their metrics."""
    metrics = {
        metric
        for summary in summaries
        for part in summary.modes.values()
        for metric in part.metrics
    }
    names = {plugin.name for plugin in plugins_of_metrics(metrics)} | {
        summary.benchmark for summary in summaries
    }
    return BENCHMARKS.loaded(name for name in BENCHMARKS if name in names)


def variants_of(metric: str) -> Sequence[tuple[str, str]]:
    """Return label and id of the variants printed below a metric in its cell."""
    if metric in _BESIDE:
        return _BESIDE[metric]
    return [
        each
        for plugin in plugins_of_metrics([metric])
        for each in reporting_of(plugin).variants.get(metric, ())
    ]


def plugin_tables(summaries: Sequence[Summary], notes: Notes) -> list[Part]:
    """Return the further tables of benchmark plug-ins, after their tables of metrics."""
    makers = [reporting_of(plugin).tables for plugin in used_plugins(summaries)]
    return [table for make in makers if make is not None for table in make(summaries, notes)]


def plugin_notes(summaries: Sequence[Summary]) -> list[str]:
    """Return the notes of benchmark plug-ins on each mode of each run."""
    lines: list[str] = []
    for of_run, summary in of_runs(summaries):
        for plugin in used_plugins([summary]):
            if (notes := reporting_of(plugin).notes) is not None:
                lines += [
                    f"{of_run}{line}" for part in summary.modes.values() for line in notes(part)
                ]
    return lines


PaperTables = tuple[str, list[Part]]
"""Short title of a paper, and its tables filled with runs."""


class PaperTally:
    """Collector of the scored records of runs, for the tables of the papers of their benchmarks."""

    def __init__(self, runs: Sequence[Path]) -> None:
        from agrotools.report.paper import RunParts, RunsBesidePaper

        self._papers: dict[str, RunsBesidePaper] = {}
        """Papers with figures by benchmark, in the order of the runs."""
        self._parts: dict[Path, RunParts] = {}
        """Collected records by run, of the runs whose benchmark has such a paper."""
        for run in runs:
            manifest = read_manifest(run)
            plugin = plugin_of(manifest.benchmark)
            if plugin is None or plugin.paper.figures is None:
                continue
            if manifest.benchmark not in self._papers:
                family = plugin.paper.figures.family
                self._papers[manifest.benchmark] = RunsBesidePaper(
                    family, reporting_of(plugin).paper
                )
            self._parts[run] = RunParts(manifest)

    @property
    def runs(self) -> Sequence[Path]:
        """Runs whose benchmark has a paper with figures; the records of others are ignored."""
        return [*self._parts]

    def add(self, run: Path, record: Record, scores: Sequence[Score]) -> None:
        """Add a record of ``run`` with its score rows."""
        if (parts := self._parts.get(run)) is not None:
            self._papers[parts.manifest.benchmark].add_record(parts, record, scores)

    def tables(self, summaries: Mapping[Path, Summary]) -> list[PaperTables]:
        """Return the tables, filled with the runs; called once, after all records. ``summaries``: of each run."""
        for run, parts in self._parts.items():
            self._papers[parts.manifest.benchmark].finish_run(parts, summaries[run])
        filled = [(paper.name, paper.tables()) for paper in self._papers.values()]
        return [(name, tables) for name, tables in filled if tables]


def paper_tables(
    runs: Sequence[Path],
    summaries: Sequence[Summary],
    comparisons: TextComparisons = NO_COMPARISONS,
) -> list[PaperTables]:
    """Score the records of ``runs`` whose benchmark has a paper with figures, and return the filled tables."""
    tally = PaperTally(runs)
    for run in tally.runs:
        for record in iter_records(run):
            tally.add(run, record, score_record(record, comparisons))
    return tally.tables(dict(zip(runs, summaries, strict=True)))
