"""Report of runs on examination questions: metrics, places of correct options, and published figures of AgriEval.

Where table headers of the paper contradict its figures (Tables 9, 10, 12), a figure is shown in the column that it
belongs to, with a doubt in :mod:`agrotools.report.published`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import fmean
from string import ascii_uppercase
from typing import NamedTuple

from markupsafe import Markup
from rich.console import RenderableType
from rich.text import Text

from agrotools.benchmarks.agrieval.items import QuestionSettings
from agrotools.benchmarks.agrieval.plugin import METRICS
from agrotools.benchmarks.agrieval.score import OptionPlaces, Rotations
from agrotools.benchmarks.loading import settings_of
from agrotools.core import Record, Sample, Score, UsageError
from agrotools.core.files import read_table
from agrotools.plugin import PartColumn, Reporting
from agrotools.report.html.result_tables import html_tables, templates
from agrotools.report.layout import DASH, Notes, harmless, new_table, percent, stacked, value_cell
from agrotools.report.published import IN_TEXT, PublishedRow, paper, published_rows, rows_of_table, same_model
from agrotools.report.settings import Setting
from agrotools.runner.manifest import Manifest
from agrotools.scoring import Estimate, Metric, ModeSummary, Summary
from agrotools.scoring.statistics import MIN_CLUSTERS, estimate_mean

BENCHMARK = "agrieval"
OVERALL = "Overall"
_SCORES = ("agrieval.accuracy", "agrieval.rouge_l")
MARK = "†"
_COLUMNS_SIDE_BY_SIDE = 7
_ARROWS = {"": "", "up": "↑", "down": "↓"}

_CATEGORIES = read_table(Path(__file__).with_name("categories.toml"))
TASKS: Mapping[str, Sequence[str]] = _CATEGORIES["tasks"]
DOMAINS: Mapping[str, Sequence[str]] = _CATEGORIES["domains"]
"""Names of each task and domain by its abbreviation, the English one first."""
FORMATS = {"single_choice": "SA", "multiple_choice": "MA", "true_false": "T/F"}
"""Table column of each type of choice question."""


class Grouping(NamedTuple):
    """Breakdown of a result, as ``categories.toml`` explains its fields."""

    title: str
    tables: Mapping[str, str]
    columns: Mapping[str, str]
    is_open: bool = False
    required_group: str = ""


_COLUMNS_OF = {"task": [code for code in TASKS if code[0] != "G"], "domain": DOMAINS}
GROUPINGS = [
    Grouping(**{"columns": {code: code for code in _COLUMNS_OF.get(row.get("required_group"), ())}, **row})
    for row in _CATEGORIES["groupings"]
]


def code_of(name: str, table: Mapping[str, Sequence[str]]) -> str:
    """Return the abbreviation of a task or domain by any of its names, ignoring case; empty for an unknown name."""
    plain = " ".join(name.split()).casefold()
    return next((code for code, names in table.items() if plain in map(str.casefold, (code, *names))), "")


def setting_of(label: str) -> str:
    """Return the name of a setting in the tables: few-shot for ``5-shot``, rag for ``retrieval``; zero-shot is dropped
    before an order of the options (``zero-shot, shuffled``)."""
    words = [re.sub(r"[1-9]\d*-shot", "few-shot", word.strip().lower()) for word in label.split(",")]
    words = ["rag" if word == "retrieval" else word for word in words]
    return ", ".join(words[1:] if len(words) > 1 and words[0] == "zero-shot" else words)


@dataclass
class _Item:
    """Question of a run: the columns that it counts in, and its scores in all epochs and rotations."""

    is_open: bool
    cluster: str
    codes: frozenset[str]
    scores: list[float] = field(default_factory=list)


@dataclass
class _Run:
    manifest: Manifest
    items: dict[str, _Item] = field(default_factory=dict[str, _Item])
    has_types: bool = False
    """True if domains are those of the older label ``type``, which the authors call deprecated."""

    @property
    def setting(self) -> str:
        try:
            settings = settings_of(QuestionSettings, BENCHMARK, self.manifest.benchmark_options)
        except UsageError:
            return "another setting"
        return setting_of(settings.label)

    def add(self, sample: Sample, score: float) -> None:
        # Rotations of a question are one item.
        name = sample.id.rpartition("-r")[0] if "rotation" in sample.metadata else sample.id
        if name not in self.items:
            groups = sample.groups
            self.has_types |= "domain" not in groups and "type" in groups
            codes = {
                code_of(groups.get("task", ""), TASKS),
                code_of(groups.get("domain") or groups.get("type", ""), DOMAINS),
                FORMATS.get(sample.task_type, ""),
            }
            is_open = sample.task_type not in FORMATS
            self.items[name] = _Item(is_open, sample.cluster or sample.id, frozenset(codes))
        self.items[name].scores.append(score)

    def estimate(self, code: str, *, is_open: bool) -> Estimate | None:
        """Return the mean over the items of a column, epochs and rotations averaged; None without items."""
        items = [item for item in self.items.values() if item.is_open == is_open and code in (OVERALL, *item.codes)]
        if not items:
            return None
        return estimate_mean([fmean(item.scores) for item in items], [item.cluster for item in items])


class PaperOfRuns:
    """Tables of the paper for runs on AgriEval; runs on other benchmarks are ignored."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._is_open = False

    def begin_run(self, manifest: Manifest) -> None:
        """Start a run; the records that follow belong to it."""
        self._is_open = manifest.benchmark == BENCHMARK
        if self._is_open:
            self._runs.append(_Run(manifest))

    def add(self, record: Record, scores: Sequence[Score]) -> None:
        """Add a record of the run and its score rows."""
        score = next((row.value for row in scores if row.metric in _SCORES), None)
        if self._is_open and score is not None:
            self._runs[-1].add(record.sample, score)

    def __bool__(self) -> bool:
        return any(run.items for run in self._runs)

    def page(self) -> Markup:
        """Return the tables as a section of a page."""
        template = templates(Path(__file__).parent).get_template("paper.html.j2")
        return Markup(template.render(tables=html_tables(self.terminal())))

    def terminal(self) -> list[RenderableType]:
        """Return a table for each grouping in which runs have items, with the figures of the paper, and notes."""
        notes = Notes()
        runs = [run for run in self._runs if run.items]
        parts: list[RenderableType] = []
        for grouping in GROUPINGS:
            parts += _tables(grouping, runs, notes)
        return [*parts, Text("\n".join([*_explanations(runs), *notes.numbered()]), style="dim")]


Cells = Mapping[str, Estimate]
"""Estimates of a run by column."""


def _tables(grouping: Grouping, runs: Sequence[_Run], notes: Notes) -> list[RenderableType]:
    headings = (*grouping.columns, OVERALL)
    rows: list[tuple[_Run, Cells]] = []
    for run in runs:
        estimates = {code: run.estimate(code, is_open=grouping.is_open) for code in headings}
        if cells := {code: each for code, each in estimates.items() if each is not None}:
            rows.append((run, cells))
    columns = [code for code in headings if any(code in cells for _, cells in rows)]
    if not columns:
        return []
    if columns == [OVERALL] and grouping.required_group:
        lack = f"The files do not tell the {grouping.required_group} of any choice question"
        notes.mark(f"{lack}: there is no table by it.")
        return []
    names = _names([run for run, _ in rows])
    printed = _printed(grouping, [run for run, _ in rows])
    size = ceil(len(columns) / ceil(len(columns) / _COLUMNS_SIDE_BY_SIDE))
    chunks = [columns[start : start + size] for start in range(0, len(columns), size)]
    return [_table(grouping, chunk, [*zip(names, rows, strict=True)], printed, notes) for chunk in chunks]


def _names(runs: Sequence[_Run]) -> list[list[str]]:
    """Return lines that name each run: model and setting, and the benchmark options if these two are ambiguous."""
    pairs = [(run.manifest.model, run.setting) for run in runs]
    count = Counter(pairs)
    options = [", ".join(f"{name}={value}" for name, value in run.manifest.benchmark_options.items()) for run in runs]
    return [
        [harmless(model).rpartition("/")[2], setting, *([harmless(option)] if count[model, setting] > 1 else [])]
        for (model, setting), option in zip(pairs, options, strict=True)
    ]


def _printed(grouping: Grouping, runs: Sequence[_Run]) -> dict[tuple[str, str], dict[str, PublishedRow]]:
    """Return the printed figures by model and setting, then by group."""
    lines: dict[tuple[str, str], dict[str, PublishedRow]] = {}
    for setting in dict.fromkeys(run.setting for run in runs):
        if setting not in grouping.tables:
            continue
        rows = [row for row in rows_of_table(BENCHMARK, grouping.tables[setting]) if row.setting == setting]
        overall = [row for row in rows if row.group_checked == "overall"]
        by_access = ([row for row in overall if row.access == access] for access in ("open", "api"))
        best = {max(some, key=lambda row: row.number).model for some in by_access if some}
        for row in rows:
            if row.model in best or any(same_model(row.model, run.manifest.model) for run in runs):
                lines.setdefault((row.model, row.setting), {})[row.group_checked] = row
    return lines


def _table(
    grouping: Grouping,
    columns: Sequence[str],
    runs: Sequence[tuple[list[str], tuple[_Run, Cells]]],
    printed: Mapping[tuple[str, str], Mapping[str, PublishedRow]],
    notes: Notes,
) -> RenderableType:
    table = new_table(f"AgriEval. {grouping.title}")
    table.add_column("", overflow="fold", min_width=22)
    for code in columns:
        table.add_column(code, justify="right")
    for name, (_, cells) in runs:
        estimates = [cells.get(code) for code in columns]
        figures = [value_cell(each, below=[f"n {each.n}"]) if each else stacked([DASH]) for each in estimates]
        table.add_row(stacked(name, value_style=""), *figures)
    groups = [grouping.columns.get(code, "overall") for code in columns]
    lines = {name: [row.get(group) for group in groups] for name, row in printed.items()}
    shown = [row for line in lines.values() for row in line if row]
    if not shown:
        return table
    common = [doubt for doubt in shown[0].doubts if all(doubt in row.doubts for row in shown)]
    marks = "".join(notes.mark(f"{MARK} {doubt}") for doubt in common)
    table.add_row(stacked([f"printed {MARK}{marks}"]), *(stacked([""]) for _ in columns))
    implied = {row.group_checked: row.n_implied for row in shown}
    sizes = [str(implied.get(group) or DASH) for group in groups]
    table.add_row("  items (implied)", *sizes, style="dim")
    for (model, setting), line in lines.items():
        cells = (_printed_cell(row, common, notes) for row in line)
        table.add_row(stacked([f"  {model}", f"  {setting}"], value_style=""), *cells, style="dim")
    return table


def _printed_cell(row: PublishedRow | None, common: Sequence[str], notes: Notes) -> str:
    if row is None:
        return DASH
    marks = "".join(notes.mark(f"{MARK} {doubt}") for doubt in row.doubts if doubt not in common)
    return f"{row.percent}{_ARROWS[row.arrow]}{marks}"


def _explanations(runs: Sequence[_Run]) -> list[str]:
    source = paper(BENCHMARK)
    names = {code: names[0] for code, names in {**TASKS, **DOMAINS}.items()}
    lines = [
        "Values in percent (of open questions ROUGE-L), beneath them 95 % intervals over clusters of items "
        f"(none under {MIN_CLUSTERS} clusters); n: items, epochs averaged.",
        "SA one right option, MA several, T/F true or false; " + "; ".join(f"{c} {name}" for c, name in names.items()),
        f"{MARK} as printed in {source.title} (arXiv {source.arxiv}): {source.protocol}. Its questions, prompts and "
        "reading of answers are not those of these runs: a difference need not be one of models.",
    ]
    if any(run.has_types for run in runs):
        lines.append("Domains are the older label type of the files, which the authors call deprecated.")
    settings = {run.setting for run in runs}
    return lines + [
        _sentence(row)
        for row in published_rows(BENCHMARK)
        if row.table == IN_TEXT and (row.access == "people" or row.setting in settings)
    ]


def _sentence(row: PublishedRow) -> str:
    """Return a figure of the paper's running text as a sentence."""
    what = ", ".join(part for part in (row.model, row.setting, row.variant) if part)
    n = f" (n {row.n:,})" if row.n is not None else ""
    unit = "points" if row.unit == "points" else "%"
    return " ".join([f"{MARK} {what}: {row.percent} {unit}{n}.", *row.notes, *row.doubts])


# --- metrics and places of options --------------------------------------------------------------------------------

_COLUMNS = tuple(
    f"agrieval.{name}"
    for name in "accuracy partial likelihood rouge_l rouge_l_lexeval similarity_minilm similarity_mpnet judge".split()
)


def _metrics(summary: Summary) -> Mapping[str, Metric] | None:
    """Return the metrics of a run that has only examination questions; None for any other run."""
    metrics = summary.modes["no-tool"].metrics if "no-tool" in summary.modes else {}
    return metrics if metrics and set(metrics) <= set(METRICS) else None


def option_notes(part: ModeSummary) -> Iterator[str]:
    """Yield lines on the places that a model chose and on the effect of rotating the options."""
    places, rotations = part.part("option_places", OptionPlaces), part.part("rotations", Rotations)
    if places is not None:
        n_choices = sum(places.chosen)
        shares = " ".join(
            f"{ascii_uppercase[at]} {percent(chosen / n_choices if n_choices else 0)}/{percent(right / places.n)}"
            for at, (chosen, right) in enumerate(zip(places.chosen, places.right, strict=True))
        )
        unread = f"; nothing read from {places.unread} of {places.n}" if places.unread else ""
        yield f"places chosen/right: {shares}; preference {percent(places.preference)} points{unread}"
        if places.constant is not None:
            yield f"the best constant answer for each kind of choice question gets {percent(places.constant)}"
    if rotations is not None:
        yield (
            f"every rotation of {rotations.n_questions} questions, each question counted once: "
            f"accuracy {_estimate(rotations.accuracy)}, "
            f"by majority {_estimate(rotations.majority)}, same choice in all {_estimate(rotations.consistency)}"
        )


def _estimate(estimate: Estimate) -> str:
    inside = estimate.interval
    return percent(estimate.value) + (f" ({percent(inside.lower)} to {percent(inside.upper)})" if inside else "")


REPORTING = Reporting(
    settings=(Setting("Examination questions", "no-tool", _COLUMNS, _metrics),),
    variants={
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
