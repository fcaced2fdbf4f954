"""Charts of runs, each with its table: score by size or release, outcomes of calls, scores by difficulty and depth.

All runs of a chart are compared on the samples that are valid in every one of them. Means and 95 % intervals are those
of scoring (:func:`agrotools.scoring.comparisons.mean_on`). Similar figures are in GTA (calls), ThinkGeo (difficulty),
Agent-X (depth) and AgriEval (size).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from agrotools.core import FrozenModel, Mode, Record, Sample, Score, UsageError, first_error
from agrotools.core.base import benchmark_title
from agrotools.report.curve import (
    check_picture,
    common_mode,
    draw_lines,
    in_percent,
    plain_text,
    save_figure,
)
from agrotools.report.layout import DASH, Cell, Table, new_table, percent, value_cell
from agrotools.runner.config import check_keys, read_toml
from agrotools.runner.manifest import Manifest
from agrotools.runner.rescore import benchmark_differences, check_distinct, scored_run
from agrotools.runner.store import read_manifest
from agrotools.scoring import METRICS, Estimate
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import common_samples, mean_on
from agrotools.scoring.matching import CALL_OUTCOMES, call_outcomes
from agrotools.scoring.metrics import is_invalid
from agrotools.tools.plotting.sheet import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["size", "calls", "difficulty", "depth"]
CALLS, DIFFICULTY = "calls of the reference", "difficulty"
_AXES = {"parameters_b": "parameters (billions)", "released": "date of release"}
_THIRDS = ("easiest third", "middle third", "hardest third")
_LEVELS = ("very easy", "easy", "medium", "moderate", "hard", "difficult", "very hard")
_CALL_COLOURS = ("#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#D55E00")
_LONG_NAME = 40
"""Letters of a name that leaves no room for others in its line of the legend."""
_MOST_NAMES = 8
"""Models whose names are beside their points; more are numbered, with their names below."""
_FEWEST = 10
"""Samples of the last group of reference calls; longer chains join it until it has as many."""


class ModelAttributes(FrozenModel):
    """Attributes of a model. ``family``: models with one colour and a line between them."""

    parameters_b: Annotated[float | None, Field(gt=0)] = None
    """Number of parameters in billions."""
    released: date | None = None
    family: str = ""


class ChartRow(FrozenModel):
    """Value of a model in one group of samples, or over all samples at a size or date ``x``."""

    model: str
    axis: str
    """Name of the horizontal axis: the attribute, or the grouping of the samples."""
    group: str = ""
    family: str = ""
    x: float | date | None = None
    value: Estimate


class CallRow(FrozenModel):
    """Calls of a model by outcome, as means over the epochs of each sample; ``needed``: calls of the reference."""

    model: str
    outcomes: dict[str, float]
    needed: int


class Chart(FrozenModel):
    """Chart of several runs on the same samples. ``n_dropped``: samples that are not valid in every run."""

    kind: Kind
    benchmark: str
    mode: Mode
    metric: str
    label: str
    n: int
    n_dropped: int
    rows: tuple[ChartRow, ...] = ()
    calls: tuple[CallRow, ...] = ()
    notes: tuple[str, ...] = ()

    def draw(self, path: str | Path) -> None:
        """Draw the chart as SVG, PNG or PDF.

        Raises:
            UsageError: another suffix.
        """
        check_picture(path)
        from matplotlib.figure import Figure

        models = len({row.model for row in self.rows or self.calls})
        axes = list(dict.fromkeys(row.axis for row in self.rows))
        sideways = self.kind in ("calls", "difficulty")
        height = 1.6 + models * (0.35 if self.kind == "calls" else 0.6) if sideways else 4.4
        figure = Figure(figsize=(7.2 if len(axes) < 2 else 9.6, height), layout="constrained")
        panels = figure.subplots(1, max(1, len(axes)), sharey=True, squeeze=False)[0]
        if self.kind == "calls":
            _draw_calls(panels[0], self.calls)
        draw = {"size": _draw_size, "difficulty": _draw_difficulty}.get(self.kind, _draw_groups)
        for axis, panel in zip(axes, panels, strict=False):
            draw(panel, [row for row in self.rows if row.axis == axis])
        if self.rows:
            (panels[0].set_xlabel if sideways else panels[0].set_ylabel)(f"{self.label} (%)")
        for panel in panels:
            panel.spines[["top", "right"]].set_visible(False)
        labels = [label for label in panels[0].get_legend_handles_labels()[1] if label]
        if labels:
            columns = 3 if max(map(len, labels)) < _LONG_NAME else 1
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, height + 0.16 * (-(-len(labels) // columns) - 1))
            figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
        left_out = [note for note in self.notes if "not shown" in note]
        save_figure(
            figure, path, "\n".join([f"{self.benchmark}, {self.mode}, {self.n} samples", *left_out])
        )


class _Case(NamedTuple):
    """Difficulty of a sample, as stated by its benchmark and as measured, and its number of reference calls."""

    stated: str
    level: float | None
    calls: int | None


class _Runs(NamedTuple):
    """Scored runs by name, and the samples that are valid in all of them."""

    benchmark: str
    mode: Mode
    metric: str
    tallies: Mapping[str, RunAggregator]
    shared: frozenset[str]
    n_dropped: int
    cases: Mapping[str, _Case]
    outcomes: Mapping[str, Mapping[str, Sequence[Counter[str]]]]
    """Outcomes of the calls of each valid record, by run and sample; only for a chart of calls."""
    notes: tuple[str, ...]

    def mean(
        self, run: str, samples: frozenset[str] | None = None, *, whole: bool = False
    ) -> Estimate | None:
        return mean_on(
            self.shared, self.tallies[run], self.mode, self.metric, part=samples, whole=whole
        )


def chart_of(
    kind: Kind,
    runs: Sequence[str | Path],
    *,
    mode: str | None = None,
    metric: str | None = None,
    attributes: Mapping[str, ModelAttributes] | None = None,
    by: str = "parameters_b",
) -> Chart:
    """Return the chart ``kind`` of ``runs``. The default mode is end-to-end if all runs have it.

    Args:
        metric: id of the score; None: the one that runs are compared in.
        attributes: attributes by model, for ``size``.
        by: ``parameters_b`` or ``released``, for ``size``.

    Raises:
        UsageError: runs of different benchmarks, no mode or sample in common, or nothing to show.
        RunStoreError: a run cannot be read.
    """
    read = _read(runs, mode, metric, with_calls=kind == "calls")
    rows: list[ChartRow] = []
    calls: list[CallRow] = []
    notes: list[str] = []
    if kind == "size":
        rows, notes = _size_rows(read, attributes or {}, by)
    elif kind == "calls":
        calls, notes = _call_rows(read)
    else:
        axes = {} if kind == "difficulty" else {CALLS: _by_calls(read)}
        if by_difficulty := _by_difficulty(read):
            axes[DIFFICULTY] = by_difficulty
        rows = [
            ChartRow(model=name, axis=axis, group=group, value=value)
            for axis, groups in axes.items()
            for name in read.tallies
            for group, samples in groups.items()
            if (value := read.mean(name, samples, whole=kind == "difficulty"))
        ]
        grouped = frozenset[str]().union(
            *(each for groups in axes.values() for each in groups.values())
        )
        if not rows:
            needs = "a difficulty" if kind == "difficulty" else "reference calls or a difficulty"
            raise UsageError(
                f"no sample of these runs has {needs}", hint="agrotools benchmarks describe NAME"
            )
        if left_out := len(read.shared - grouped):
            notes.append(f"{left_out} samples without reference calls or difficulty are not shown")
        elif kind == "depth" and DIFFICULTY not in axes:
            notes.append(
                "the samples have no difficulty: only the number of reference calls is drawn"
            )
    label = METRICS[read.metric].label
    return Chart(
        kind=kind,
        benchmark=read.benchmark,
        mode=read.mode,
        metric=read.metric,
        label="calls"
        if kind == "calls"
        else "fully right answers"
        if kind == "difficulty"
        else label,
        n=len(read.shared),
        n_dropped=read.n_dropped,
        rows=tuple(rows),
        calls=tuple(calls),
        notes=(*notes, *read.notes),
    )


def _read(
    runs: Sequence[str | Path], mode: str | None, metric: str | None, *, with_calls: bool
) -> _Runs:
    folders = [Path(run) for run in runs]
    manifests = [read_manifest(run) for run in folders]
    if different := benchmark_differences(manifests):
        raise UsageError(
            f"a chart needs runs on one benchmark: {different[0]}",
            hint="draw a chart of each benchmark",
        )
    mode = common_mode(manifests, "end-to-end" if with_calls else mode)
    tallies: dict[str, RunAggregator] = {}
    cases: dict[str, _Case] = {}
    outcomes = defaultdict[str, defaultdict[str, list[Counter[str]]]](lambda: defaultdict(list))
    names = run_names(folders, manifests)
    for folder, name in zip(folders, names, strict=True):

        def collect(record: Record, _: list[Score], name: str = name) -> None:
            if record.mode == mode and not is_invalid(record):
                cases[record.sample.id] = _case(record.sample)
                if with_calls and record.sample.reference and record.sample.reference.steps:
                    outcomes[name][record.sample.id].append(Counter(call_outcomes(record)))

        tallies[name] = scored_run(folder, collect)
    in_all = [each.modes[mode].metrics if mode in each.modes else [] for each in tallies.values()]
    known = [each for each in in_all[0] if all(each in names for names in in_all)]
    wanted = [
        each
        for each in known
        if each == metric or (metric is None and mode in METRICS[each].compared_in)
    ]
    found = ((each, common_samples([*tallies.values()], mode, each)) for each in wanted)
    chosen, shared = next((each for each in found if each[1]), ("", frozenset[str]()))
    if not shared:
        raise UsageError(
            f"the runs have no sample with {metric or 'a score'} in common",
            hint=f"--metric, one of {', '.join(known)}"
            if metric
            else "run them without --limit, or with the same",
        )
    knowing = [name for name, each in zip(names, manifests, strict=True) if each.privileged]
    notes = ["synthetic images: scores say nothing about real fields"] * any(
        each.synthetic for each in manifests
    )
    notes += [f"privileged, do not report as results: {', '.join(knowing)}"] if knowing else []
    benchmark = benchmark_title(manifests[0].benchmark, manifests[0].benchmark_version)
    return _Runs(
        benchmark,
        mode,
        chosen,
        tallies,
        shared,
        len(cases.keys() - shared),
        cases,
        outcomes,
        tuple(notes),
    )


def run_names(folders: Sequence[Path], manifests: Sequence[Manifest]) -> list[str]:
    """Return a distinct name for each run: model, tools and doses; the folder too where these are the same."""
    names = [
        ", ".join(
            filter(
                None,
                (each.model, "" if each.tools == "all" else f"{each.tools} tools", each.conditions),
            )
        )
        for each in manifests
    ]
    check_distinct(folders)
    return [
        f"{name} ({folder})" if names.count(name) > 1 else name
        for folder, name in zip(folders, names, strict=True)
    ]


def _case(sample: Sample) -> _Case:
    level = sample.difficulty.get("level")
    stated = sample.groups.get(
        "difficulty", sample.metadata.get("difficulty") if level is None else None
    )
    calls = len(sample.reference.steps) if sample.reference else None
    return _Case("" if stated is None else str(stated), level, calls)


def read_attributes(file: Path) -> dict[str, ModelAttributes]:
    """Return the attributes of models from a TOML file with a table for each model.

    Raises:
        UsageError: the file cannot be read, or a key or a value is not valid.
    """
    attributes: dict[str, ModelAttributes] = {}
    for model, values in read_toml(
        file, "file of models", hint="check the path of --models"
    ).items():
        if not isinstance(values, dict):
            raise UsageError(f"{file}: {model} is not a table", hint='e.g. ["openai:gpt-4.1"]')
        check_keys(values, ModelAttributes.model_fields, f"[{model}] of {file}")
        try:
            attributes[model] = ModelAttributes.model_validate(values)
        except ValidationError as error:
            hint = 'e.g. parameters_b = 7, released = "2025-04-01", family = "Qwen"'
            raise UsageError(f"{file}, [{model}] {first_error(error)}", hint=hint) from error
    return attributes


def _size_rows(
    read: _Runs, attributes: Mapping[str, ModelAttributes], by: str
) -> tuple[list[ChartRow], list[str]]:
    shown: list[tuple[str, Any, str, Estimate]] = []
    missing: list[str] = []
    for name in read.tallies:
        known = attributes.get(name) or attributes.get(name.split(", ")[0]) or ModelAttributes()
        if (x := getattr(known, by)) is None:
            missing.append(name)
        elif value := read.mean(name):
            shown.append((known.family, x, name, value))
    if not shown:
        example = f'["{missing[0]}"] with {by} = ' + (
            "7" if by == "parameters_b" else '"2025-04-01"'
        )
        raise UsageError(
            f"no model of these runs has {by}",
            hint=f"add tables to the file of --models: {example}",
        )
    shown.sort(key=lambda each: each[:3])
    rows = [
        ChartRow(model=name, axis=by, family=family, x=x, value=value)
        for family, x, name, value in shown
    ]
    return rows, [f"no {_AXES[by]} given, not shown: {', '.join(missing)}"] if missing else []


def _call_rows(read: _Runs) -> tuple[list[CallRow], list[str]]:
    calls = {sample: n for sample in read.shared if (n := read.cases[sample].calls)}
    if not calls:
        raise UsageError(
            "no sample of these runs has reference calls", hint="take runs of another benchmark"
        )
    rows: list[CallRow] = []
    for name, of_run in read.outcomes.items():
        outcomes = {
            outcome: sum(
                sum(each[outcome] for each in of_run[sample]) / len(of_run[sample])
                for sample in calls
            )
            for outcome in CALL_OUTCOMES
        }
        rows.append(CallRow(model=name, outcomes=outcomes, needed=sum(calls.values())))
    left_out = len(read.shared) - len(calls)
    return rows, [f"{left_out} samples without reference calls are not shown"] if left_out else []


def _by_calls(read: _Runs) -> dict[str, frozenset[str]]:
    """Return the samples by number of reference calls; the last numbers are joined to have at least ten samples."""
    of_number = defaultdict[int, set[str]](set)
    for sample in read.shared:
        if (calls := read.cases[sample].calls) is not None:
            of_number[calls].add(sample)
    numbers = sorted(of_number)
    while len(numbers) > 1 and len(of_number[numbers[-1]]) < _FEWEST:
        of_number[numbers[-2]] |= of_number[numbers.pop()]
    longest = max(of_number, default=0)
    return {
        f"{n}+" if n == numbers[-1] < longest else str(n): frozenset(of_number[n]) for n in numbers
    }


def _by_difficulty(read: _Runs) -> dict[str, frozenset[str]]:
    """Return the samples by the difficulty that the benchmark states, else by thirds of the measured level."""
    stated = {
        sample: read.cases[sample].stated for sample in read.shared if read.cases[sample].stated
    }
    if not stated:
        levels = {
            sample: level
            for sample in read.shared
            if (level := read.cases[sample].level) is not None
        }
        ranked = sorted(levels.values())
        cuts = [ranked[len(ranked) * third // 3] for third in (1, 2)] if ranked else []
        stated = {
            sample: _THIRDS[sum(level >= cut for cut in cuts)] for sample, level in levels.items()
        }
    places = {name: at for at, name in enumerate([*_THIRDS, *_LEVELS])}
    names = sorted(
        {*stated.values()},
        key=lambda name: (
            places.get(name.lower(), 99),
            float(name) if name.isdecimal() else 0.0,
            name,
        ),
    )
    return {
        name: frozenset(sample for sample, each in stated.items() if each == name) for name in names
    }


def chart_tables(chart: Chart) -> list[Table]:
    """Return the tables of a chart. Scores are in percent."""
    tables = (
        [_calls_table(chart)]
        if chart.kind == "calls"
        else [_size_table(chart)]
        if chart.kind == "size"
        else []
    )
    tables += [
        _group_table(chart, axis)
        for axis in dict.fromkeys(row.axis for row in chart.rows if row.group)
    ]
    notes = (
        [f"{name}: {meaning}" for name, meaning in CALL_OUTCOMES.items()]
        if chart.kind == "calls"
        else []
    )
    notes += ["95 % intervals by cluster; none with fewer than 10 clusters"] if chart.rows else []
    n = f"{chart.n} samples that are valid in every run ({chart.n_dropped} are not)"
    tables[-1].notes += [n, *notes, *chart.notes]
    return tables


def _calls_table(chart: Chart) -> Table:
    table = new_table(
        f"Calls by outcome: {chart.benchmark}, {chart.mode}", [*CALL_OUTCOMES, "all", "needed"]
    )
    for row in chart.calls:
        made = sum(row.outcomes.values())
        cells = (
            Cell((f"{n:g}", f"{percent(n / made)} %"), "bold") if made else DASH
            for n in row.outcomes.values()
        )
        table.add_row(row.model, *cells, f"{made:g}", str(row.needed))
    return table


def _size_table(chart: Chart) -> Table:
    axis = _AXES[chart.rows[0].axis]
    table = new_table(
        f"{chart.label} by {axis}: {chart.benchmark}, {chart.mode}", ["family", axis, chart.label]
    )
    for row in chart.rows:
        table.add_row(row.model, row.family or DASH, f"{row.x}", value_cell(row.value))
    return table


def _group_table(chart: Chart, axis: str) -> Table:
    cells = {(row.model, row.group): row.value for row in chart.rows if row.axis == axis}
    sizes = {row.group: row.value.n for row in chart.rows if row.axis == axis}
    title = f"{chart.label} by {axis}: {chart.benchmark}, {chart.mode}"
    table = new_table(title, [f"{group}\nn {n}" for group, n in sizes.items()])
    for model in dict.fromkeys(model for model, _ in cells):
        table.add_row(model, *(value_cell(cells.get((model, group))) for group in sizes))
    return table


def _draw_size(panel: "Axes", rows: Sequence[ChartRow]) -> None:
    families = list(dict.fromkeys(row.family for row in rows))
    crowded = len(rows) > _MOST_NAMES
    for family in families:
        of_family = [row for row in rows if row.family == family]
        x: Any = [row.x for row in of_family]
        style: dict[str, Any] = (
            {"color": COLOURS[families.index(family) % 6]} if family else {"color": COLOURS[-1]}
        )
        line = "-" if family else ""
        values, lengths = in_percent([row.value for row in of_family])
        panel.errorbar(
            x,
            values,
            lengths,
            fmt=f"o{line}",
            lw=0.8,
            ms=5,
            capsize=2,
            label=plain_text(family),
            **style,
        )
        for row, value in zip(of_family, values, strict=True):
            at: Any = (row.x, value)
            name = str(rows.index(row) + 1) if crowded else plain_text(row.model)
            panel.annotate(name, at, (6, -10), textcoords="offset points", fontsize=7, **style)
    for number, row in enumerate(rows if crowded else (), 1):
        panel.plot([], [], " ", label=plain_text(f"{number} {row.model}"))
    if rows[0].axis == "parameters_b":
        panel.set_xscale("log")
        sizes = [row.x for row in rows if isinstance(row.x, float)]
        ticks = [each * 10.0**power for power in range(-2, 5) for each in (1, 2, 5)]
        ticks = [tick for tick in ticks if min(sizes) / 2 <= tick <= max(sizes) * 2]
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
    panel.set_xlabel(_AXES[rows[0].axis])
    panel.margins(x=0.15)
    panel.set_ylim(0, 100)


def _draw_calls(panel: "Axes", rows: Sequence[CallRow]) -> None:
    names = [plain_text(row.model) for row in rows]
    left = [0.0] * len(rows)
    for outcome, colour in zip(CALL_OUTCOMES, _CALL_COLOURS, strict=True):
        widths = [row.outcomes[outcome] for row in rows]
        panel.barh(names, widths, left=left, color=colour, label=outcome)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    panel.axvline(rows[0].needed, color="black", ls="--", lw=1, label=f"needed: {rows[0].needed}")
    panel.invert_yaxis()
    panel.set_xlabel("calls")


def _draw_groups(panel: "Axes", rows: Sequence[ChartRow]) -> None:
    """Draw a line over the groups for each model."""
    sizes = {row.group: f"{row.group}\nn {row.value.n}" for row in rows}
    series: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for row in rows:
        series[row.model][sizes[row.group]] = row.value
    draw_lines(panel, [*sizes.values()], series)
    panel.set_xlabel(rows[0].axis)


def _draw_difficulty(panel: "Axes", rows: Sequence[ChartRow]) -> None:
    """Draw the points of each group, one model below the other."""
    series: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for row in rows:
        series[f"{row.group} (n {row.value.n})"][row.model] = row.value
    models = list(dict.fromkeys(row.model for row in rows))
    draw_lines(panel, models, series, sideways=True, joined=False)
