"""Report of runs on examination questions: tables of metrics and of the paper, and the places of right options."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING

from agrotools.benchmarks.agrieval.items import QuestionSettings
from agrotools.benchmarks.agrieval.paper_layout import ItemColumns, Kind, SettingResult, setting_of
from agrotools.benchmarks.agrieval.paper_printing import Models, agrieval_parts, blocks
from agrotools.benchmarks.agrieval.paper_tables import LaidOutTable
from agrotools.benchmarks.agrieval.plugin import METRICS
from agrotools.benchmarks.agrieval.score import OptionPlaces, Rotations
from agrotools.benchmarks.loading import settings_of
from agrotools.core import Record, Score, UsageError
from agrotools.plugin import PartColumn, Reporting
from agrotools.report.html.result_tables import Drawing, HtmlTable, html_tables, interval_drawing, templates
from agrotools.report.layout import percent
from agrotools.report.settings import Setting
from agrotools.runner.manifest import Manifest
from agrotools.scoring import Estimate, Metric, ModeSummary, Summary

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.console import RenderableType

_COLUMNS = (
    "agrieval.accuracy",
    "agrieval.partial",
    "agrieval.likelihood",
    "agrieval.rouge_l",
    "agrieval.rouge_l_lexeval",
    "agrieval.similarity_minilm",
    "agrieval.similarity_mpnet",
    "agrieval.judge",
)


def _metrics(summary: Summary) -> Mapping[str, Metric] | None:
    """Those of a run on examination questions alone."""
    metrics = summary.modes["no-tool"].metrics if "no-tool" in summary.modes else {}
    return metrics if metrics and set(metrics) <= set(METRICS) else None


def option_notes(part: ModeSummary) -> Iterator[str]:
    """Places that a model chose, and what rotating the options changed."""
    return _lines(part.part("option_places", OptionPlaces), part.part("rotations", Rotations))


def _lines(places: OptionPlaces | None, rotations: Rotations | None) -> Iterator[str]:
    if places is not None:
        n_choices = sum(places.chosen)
        shares = " ".join(
            f"{ascii_uppercase[at]} {percent(chosen / n_choices if n_choices else 0)}/{percent(right / places.n)}"
            for at, (chosen, right) in enumerate(zip(places.chosen, places.right, strict=True))
        )
        unread = f"; nothing read from {places.unread} of {places.n}" if places.unread else ""
        yield f"places chosen/right: {shares}; preference {percent(places.preference)} points{unread}"
    if rotations is not None:
        yield (
            f"every rotation of {rotations.n_questions} questions, each question counted once: "
            f"accuracy {_estimate(rotations.accuracy)}, "
            f"by majority {_estimate(rotations.majority)}, same choice in all {_estimate(rotations.consistency)}"
        )


def _estimate(estimate: Estimate) -> str:
    inside = estimate.interval
    return percent(estimate.value) + (f" ({percent(inside.lower)} to {percent(inside.upper)})" if inside else "")


BENCHMARK = "agrieval"
_KINDS: Mapping[str, Kind] = {
    "single_choice": "single",
    "multiple_choice": "multiple",
    "true_false": "true_false",
    "short_answer": "short_answer",
}
_METRICS = ("agrieval.accuracy", "agrieval.rouge_l")
_GROUPS = ("domain", "field", "level", "task")


class _Columns:
    """The items of one run while they come."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.names: dict[str, list[str]] = {name: [] for name in ("item", "kind", "cluster", *_GROUPS)}
        self.scores: list[float] = []
        self.epochs: list[int] = []
        self.has_types = False

    def result(self) -> SettingResult:
        items = ItemColumns(**self.names, score=self.scores, epoch=self.epochs)
        return SettingResult(self.manifest.model, _setting(self.manifest), items, domains_are_types=self.has_types)


class PaperOfRuns:
    """The tables of the paper with runs on AgriEval in them; runs on other benchmarks are passed over."""

    def __init__(self) -> None:
        self._runs: list[_Columns] = []
        self._is_open = False

    def begin_run(self, manifest: Manifest) -> None:
        """The records that follow are of this run."""
        self._is_open = manifest.benchmark == BENCHMARK
        if self._is_open:
            self._runs.append(_Columns(manifest))

    def add(self, record: Record, scores: Sequence[Score]) -> None:
        """A record of the run and what it scored. The rotations of a question are one item."""
        score = next((row.value for row in scores if row.metric in _METRICS), None)
        if not self._is_open or score is None:
            return
        sample, columns = record.sample, self._runs[-1]
        names, groups = columns.names, sample.groups
        names["item"].append(sample.id.rpartition("-r")[0] if "rotation" in sample.metadata else sample.id)
        names["kind"].append(_KINDS[sample.task_type])
        names["cluster"].append(sample.cluster or sample.id)
        for name in _GROUPS:
            names[name].append(groups.get(name, ""))
        if "domain" not in groups and "type" in groups:
            names["domain"][-1] = groups["type"]
            # The older label; open questions of the published files have both.
            columns.has_types = True
        columns.scores.append(score)
        columns.epochs.append(record.epoch)

    def results(self) -> list[SettingResult]:
        """A result for each run of AgriEval that has a scored question; those of one model and setting are told apart
        by the options of their runs."""
        run_results = [(run.manifest, run.result()) for run in self._runs if run.scores]
        times = Counter((result.model, result.setting) for _, result in run_results)
        return [
            replace(result, apart=_options(manifest)) if times[result.model, result.setting] > 1 else result
            for manifest, result in run_results
        ]

    def __bool__(self) -> bool:
        return any(run.scores for run in self._runs)

    def terminal(self) -> list["RenderableType"]:
        """The tables, with the figures of the paper."""
        return agrieval_parts(self.results())

    def page(self) -> "Markup":
        """The tables as a section of a page."""
        return agrieval_section(self.results(), models="some")


def _options(manifest: Manifest) -> str:
    return ", ".join(f"{name}={value}" for name, value in manifest.benchmark_options.items())


def _setting(manifest: Manifest) -> str:
    try:
        return setting_of(settings_of(QuestionSettings, BENCHMARK, manifest.benchmark_options).label)
    except UsageError:
        return "another setting"


_SIDE_BY_SIDE = 8


def agrieval_section(results: Sequence[SettingResult], *, published: bool = True, models: Models = "all") -> "Markup":
    """A ``<section>`` for the page of :func:`agrotools.report.html.build_report`, whose styles it uses.

    Args:
        results: one for each model and setting.
        published: put figures of the paper beneath the runs.
        models: published models to show, by name or as ``some`` or ``all``.
    """
    from markupsafe import Markup

    table_blocks, notes = blocks(results, published=published, models=models, side_by_side=_SIDE_BY_SIDE)
    tables: list[HtmlTable] = []
    for block in table_blocks:
        for rendered, columns in zip(block.tables, block.columns, strict=True):
            tables += html_tables([rendered], _intervals(block.table, columns))
        tables[-1].below.extend([(line, "")] for line in block.below)
    return Markup(templates(Path(__file__).parent).get_template("paper.html.j2").render(tables=tables, notes=notes))


def _intervals(table: LaidOutTable | None, columns: Sequence[int]) -> Drawing:
    """Draws the interval of each cell of a run; ``columns``: which columns of ``table`` are shown."""

    def draw(row: int, column: int) -> "Markup | None":
        if table is None or not columns or row >= len(table.rows):
            return None
        cell = table.rows[row].cells[columns[column]]
        return interval_drawing(cell.estimate) if cell is not None else None

    return draw


REPORTING = Reporting(
    settings=(Setting("Examination questions", "no-tool", _COLUMNS, _metrics),),
    beside={
        "agrieval.accuracy": (
            ("authors' scorer", "agrieval.accuracy_published"),
            ("LexEval's rule", "agrieval.accuracy_lexeval"),
        ),
        "agrieval.rouge_l": (
            ("authors' scorer", "agrieval.rouge_l_published"),
            ("normalised", "agrieval.rouge_l_normalised"),
        ),
    },
    parts=(
        PartColumn("no-tool", "agrieval.accuracy", "Accuracy", "Accuracy"),
        PartColumn("no-tool", "agrieval.partial", "Partial"),
        PartColumn("no-tool", "agrieval.likelihood", "Likelihood"),
        PartColumn("no-tool", "agrieval.rouge_l", "ROUGE-L", "ROUGE-L"),
    ),
    notes=option_notes,
    paper=PaperOfRuns,
)
