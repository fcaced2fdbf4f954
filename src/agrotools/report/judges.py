"""Agreement of judges on the same answers: on the ranking of the models, and on single answers.

A judge is a model that graded answers (``agrotools score --judge``), or a metric of scoring. Rankings are compared by
Kendall's tau-b (1945), answers by Spearman's rho (1904) and Krippendorff's ordinal alpha (2004); intervals are 95 %
percentiles of a bootstrap by cluster.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import orjson

from agrotools.core import (
    MODES,
    FrozenModel,
    Mode,
    PlotSlot,
    Record,
    Sample,
    Score,
    Trajectory,
    UsageError,
)
from agrotools.core.base import benchmark_title
from agrotools.report.layout import Cell, Table, harmless, interval_text, new_table, value_cell
from agrotools.runner.manifest import Manifest
from agrotools.runner.rescore import benchmark_differences, check_distinct, judged_rows, scored_run
from agrotools.runner.store import read_manifest
from agrotools.scoring import METRICS, Estimate
from agrotools.scoring.judging.judgements import agreement
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.plots import drawn_spec
from agrotools.scoring.statistics import Interval, estimate_mean
from agrotools.scoring.summary import Agreement
from agrotools.tools.plotting.sheet import COLOURS

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_DRAWS = 1000
_FEWEST_CLUSTERS = 10
_FEW_MODELS = 5
_DPI = 150
_SUFFIXES = (".svg", ".png", ".pdf")


def answer_key(record: Record) -> str | None:
    """Return the key of an answer, the same for equal answers (with equal calls) to a question; None without answer.

    Where a figure is asked for, one that a tool drew is an answer without words.
    """
    trajectory = record.trajectory if record.invalid is None else None
    if trajectory is None or not (
        (trajectory.answer or "").strip() or _has_figure(record.sample, trajectory)
    ):
        return None
    calls = [[step.call.tool, step.call.arguments] for step in trajectory.steps if step.call]
    content = [record.sample.id, record.sample.query, calls, trajectory.answer]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]


def _has_figure(sample: Sample, trajectory: Trajectory) -> bool:
    asks = any(isinstance(slot, PlotSlot) for slot in sample.answer)
    return asks and drawn_spec(trajectory, sample.declared) is not None


class JudgeScore(FrozenModel):
    """Mean score of a model by one judge."""

    judge: str
    model: str
    value: Estimate


class JudgePair(FrozenModel):
    """Agreement of two judges. A statistic is None where it is undefined: everything has the same score."""

    judges: tuple[str, str]
    tau: float | None
    """Kendall's tau-b of the mean scores of the models, -1 to 1"""
    tau_interval: Interval | None = None
    rho: float | None
    """Spearman's rho of the scores of single answers, -1 to 1"""
    rho_interval: Interval | None = None
    alpha: Agreement | None = None


class JudgeAgreement(FrozenModel):
    """Scores of models by several judges of the same answers, and the agreement of the judges.

    ``n`` is the number of samples that every judge graded in every run; ``n_dropped`` were graded by some.
    ``n_answers``: answers to these samples in all runs. A run without an answer to a sample that the judge graded in
    another run scores 0 there.
    """

    benchmark: str
    mode: Mode
    metric: str
    models: tuple[str, ...]
    judges: tuple[str, ...]
    n: int
    n_dropped: int
    n_answers: int
    scores: tuple[JudgeScore, ...]
    pairs: tuple[JudgePair, ...]
    notes: tuple[str, ...] = ()

    def draw(self, path: str | Path) -> None:
        """Draw the score of each model by each judge as SVG, PNG or PDF; UsageError for another suffix."""
        check_picture(path)
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 1.6 + 0.5 * len(self.models)), layout="constrained")
        panel = figure.subplots()
        series = {
            judge: {each.model: each.value for each in self.scores if each.judge == judge}
            for judge in self.judges
        }
        _draw_lines(panel, self.models, series)
        panel.set_xlabel("mean score (%)")
        figure.legend(
            loc="outside lower center", ncols=min(3, len(self.judges)), frameon=False, fontsize=8
        )
        title = f"{self.benchmark}, {self.mode}, {self.n} samples"
        figure.suptitle(_plain_text(title), fontsize=9, wrap=True)
        figure.savefig(path, dpi=_DPI)


def check_picture(path: str | Path) -> None:
    """Check that a picture can be drawn in the format of ``path`` and that its folder is there.

    Raises:
        UsageError: another suffix than .svg, .png or .pdf, or no such folder.
    """
    if not (folder := Path(path).absolute().parent).is_dir():
        raise UsageError(
            f"there is no folder {folder} for the picture", hint="create it, or choose another file"
        )
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise UsageError(
            f"cannot draw a picture as {Path(path).name}", hint=f"use one of {', '.join(_SUFFIXES)}"
        )


def _draw_lines(
    panel: "Axes", models: Sequence[str], series: Mapping[str, Mapping[str, Estimate]]
) -> None:
    """Draw a line with intervals for each of ``series`` over the models, shifted so that intervals do not overlap."""
    for number, (name, values) in enumerate(series.items()):
        shift = 0.4 * ((number + 0.5) / len(series) - 0.5)
        places = [at + shift for at, model in enumerate(models) if model in values]
        estimates = [values[model] for model in models if model in values]
        shares = [100 * each.value for each in estimates]
        below = [
            100 * (each.value - each.interval.lower) if each.interval else 0.0 for each in estimates
        ]
        above = [
            100 * (each.interval.upper - each.value) if each.interval else 0.0 for each in estimates
        ]
        style: dict[str, Any] = {"color": COLOURS[number % 6], "marker": "osD^v"[number // 6 % 5]}
        label = _plain_text(name)
        panel.errorbar(
            shares, places, xerr=[below, above], ms=4, lw=1, capsize=2, label=label, **style
        )
    panel.set_yticks(range(len(models)), list(map(_plain_text, models)))
    panel.invert_yaxis()
    panel.set_xlim(-2, 102)
    panel.spines[["top", "right"]].set_visible(False)


def _plain_text(text: str) -> str:
    """Return a text that matplotlib shows as it is, without reading formulas in it."""
    return harmless(text).replace("$", r"\$")


Values = dict[str, list[float]]
"""Scores of the epochs by sample."""


def judge_agreement(
    runs: Sequence[str | Path],
    *,
    mode: str | None = None,
    metric: str | None = None,
    scores: Sequence[str] = (),
) -> JudgeAgreement:
    """Return the agreement of all judges of ``runs`` on the samples that every judge graded in every run.

    Args:
        mode: default: end-to-end if all runs have it.
        metric: metric whose judges are compared. Default: the first that judges graded all runs by.
        scores: ids of metrics of scoring that count as judges, too.

    Raises:
        UsageError: runs of different benchmarks, fewer than two runs or judges, or no answer that all judges graded.
        RunStoreError: a run cannot be read.
    """
    folders = [Path(run) for run in runs]
    manifests = [read_manifest(run) for run in folders]
    if len(folders) < 2:
        raise UsageError(
            "a ranking needs at least two runs", hint="give the runs of several models"
        )
    if different := benchmark_differences(manifests):
        raise UsageError(f"judges are compared on runs of one benchmark: {different[0]}")
    scored_mode = _common_mode(manifests, mode)
    judges = {run: judged_rows(run) for run in folders}
    asked = [
        name
        for name in judges[folders[0]].metrics
        if all(name in each.metrics for each in judges.values())
    ]
    metric = metric or (asked[0] if asked else "")
    names = _run_names(folders, manifests)
    values: dict[str, dict[str, Values]] = defaultdict(lambda: {name: {} for name in names})
    clusters: dict[str, str] = {}
    unanswered: set[tuple[str, str, int]] = set()
    for run, name in zip(folders, names, strict=True):

        def collect(record: Record, rows: list[Score], run: Path = run, name: str = name) -> None:
            if record.mode != scored_mode or is_invalid(record):
                return
            sample = record.sample.id
            clusters[sample] = record.sample.cluster or sample
            found = judges[run].by_judge(record, metric) if metric in asked else {}
            for score in scores:
                if of_score := [
                    row.value
                    for row in rows
                    if row.metric == score and row.slot is row.step is None
                ]:
                    found[score] = fmean(of_score)
            for judge, value in found.items():
                values[judge][name].setdefault(sample, []).append(value)
            if answer_key(record) is None:
                unanswered.add((name, sample, record.epoch))

        scored_run(run, collect)
    for by_run in values.values():
        graded = set[str]().union(*by_run.values())
        for name, sample, _ in unanswered:
            if sample in graded:
                by_run[name].setdefault(sample, [0.0])
    compared = {judge: by_run for judge, by_run in values.items() if all(by_run.values())}
    return _agreement_of(
        compared,
        names,
        clusters,
        {(name, sample) for name, sample, _ in unanswered},
        benchmark=benchmark_title(manifests[0].benchmark, manifests[0].benchmark_version),
        mode=scored_mode,
        metric=metric,
        notes=["synthetic images: scores say nothing about real fields"]
        * any(m.synthetic for m in manifests),
    )


def _common_mode(manifests: Sequence[Manifest], mode: str | None) -> Mode:
    """Return ``mode``, or the first scored mode that all runs have: end-to-end, else no-tool.

    Raises:
        UsageError: there is no such mode, or not all runs have it.
    """
    if mode is not None and mode not in MODES:
        raise UsageError(f"unknown mode {mode!r}", hint="end-to-end or no-tool")
    for each in ("end-to-end", "no-tool"):
        if mode in (None, each) and all(each in manifest.modes for manifest in manifests):
            return each
    raise UsageError(
        f"the runs have no {mode or 'scored'} mode in common", hint="--mode end-to-end or no-tool"
    )


def _run_names(folders: Sequence[Path], manifests: Sequence[Manifest]) -> list[str]:
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


def _agreement_of(
    values: Mapping[str, Mapping[str, Values]],
    names: Sequence[str],
    clusters: Mapping[str, str],
    unanswered: set[tuple[str, str]],
    *,
    notes: Sequence[str],
    **about: Any,
) -> JudgeAgreement:
    import numpy as np

    if len(values) < 2:
        have = f"only {next(iter(values))} graded" if values else "no judge graded"
        raise UsageError(
            f"agreement needs at least two judges: {have} answers of every run",
            hint="agrotools score RUNS --judge MODEL, or --score METRIC",
        )
    graded = [by_sample.keys() for by_run in values.values() for by_sample in by_run.values()]
    shared = [sample for sample in clusters if all(sample in keys for keys in graded)]
    if not shared:
        raise UsageError(
            "no sample was graded by every judge in every run",
            hint="grade the same samples of each run",
        )
    judges = list(values)
    table = np.array([[[fmean(values[j][m][s]) for s in shared] for m in names] for j in judges])
    given = np.array([[(name, sample) not in unanswered for sample in shared] for name in names])
    of_sample = [clusters[sample] for sample in shared]
    order: list[int] = np.argsort(-table.mean(axis=(0, 2)), kind="stable").tolist()
    pairs = [
        _pair((judges[a], judges[b]), table[a], table[b], given, of_sample)
        for a, b in combinations(range(len(judges)), 2)
    ]
    dropped = len(set[str]().union(*graded)) - len(shared)
    few = f"tau of {len(names)} models has few possible values" if len(names) < _FEW_MODELS else ""
    lacking = f"{len(unanswered & {(n, s) for n in names for s in shared})} answers are missing and score 0"
    return JudgeAgreement(
        **about,
        models=tuple(names[at] for at in order),
        judges=tuple(judges),
        n=len(shared),
        n_dropped=dropped,
        n_answers=int(given.sum()),
        scores=tuple(
            JudgeScore(judge=judge, model=names[at], value=estimate_mean(scores[at], of_sample))
            for judge, scores in zip(judges, table, strict=True)
            for at in order
        ),
        pairs=tuple(pairs),
        notes=tuple(filter(None, (few, lacking * (not given.all()), *notes))),
    )


def _pair(
    judges: tuple[str, str],
    first: "FloatArray",
    second: "FloatArray",
    given: "NDArray[np.bool_]",
    clusters: Sequence[str],
) -> JudgePair:
    """Return the agreement of two judges; scores have shape ``(models, samples)``, ``given`` marks real answers."""
    import numpy as np
    from scipy import stats

    library: Any = stats  # its types are wrong

    def tau(columns: Any) -> float:
        means = [np.round(scores[:, columns].mean(axis=1), 12) for scores in (first, second)]
        return (
            library.kendalltau(*means).statistic
            if all(np.ptp(each) > 0 for each in means)
            else np.nan
        )

    def rho(columns: Any) -> float:
        mask = given[:, columns]
        single = [scores[:, columns][mask] for scores in (first, second)]
        return (
            library.spearmanr(*single).statistic
            if all(len(x) > 2 and np.ptp(x) > 0 for x in single)
            else np.nan
        )

    number = {label: at for at, label in enumerate(dict.fromkeys(clusters))}
    cluster_of, n = np.array([number[label] for label in clusters]), len(number)
    columns = np.arange(len(clusters))
    drawn = (
        np.random.default_rng(0).multinomial(n, [1 / n] * n, size=_DRAWS)
        if n >= _FEWEST_CLUSTERS
        else ()
    )
    draws = [np.repeat(columns, weights[cluster_of]) for weights in drawn]
    fields: dict[str, Any] = {}
    for name, statistic in (("tau", tau), ("rho", rho)):
        value = float(statistic(columns))
        fields[name] = value if np.isfinite(value) else None
        resampled = [each for draw in draws if np.isfinite(each := statistic(draw))]
        if fields[name] is not None and len(resampled) > _DRAWS / 2:
            lower, upper = np.percentile(resampled, [2.5, 97.5]).tolist()
            fields[f"{name}_interval"] = Interval(lower=lower, upper=upper)
    units = np.stack([first[given], second[given]], axis=1).tolist()
    labels = [clusters[at] for at in np.nonzero(given)[1].tolist()]
    return JudgePair(judges=judges, alpha=agreement(units, labels), **fields)


def agreement_tables(result: JudgeAgreement) -> list[Table]:
    """Return the tables of :class:`JudgeAgreement`. Scores are in percent."""
    of = f"{result.benchmark}, {result.mode}"
    label = f"{METRICS[result.metric].label}: " if result.metric in METRICS else ""
    cells = {(each.model, each.judge): each.value for each in result.scores}
    means = new_table(f"Mean score by judge: {label}{of}", result.judges)
    for model in result.models:
        means.add_row(model, *(value_cell(cells[model, judge]) for judge in result.judges))
    headings = [
        "Kendall's tau-b\nof the ranking",
        "Spearman's rho\nof answers",
        "Krippendorff's\nalpha",
    ]
    pairs = new_table("Agreement of judges", headings)
    for each in result.pairs:
        alpha = each.alpha or Agreement(alpha=None, n_units=0)
        figures = [
            (each.tau, each.tau_interval),
            (each.rho, each.rho_interval),
            (alpha.alpha, alpha.interval),
        ]
        pairs.add_row(" and ".join(each.judges), *(_figure_cell(*figure) for figure in figures))
    pairs.notes += [
        f"{result.n} samples that every judge graded in each of {len(result.models)} runs"
        f" ({result.n_dropped} were graded by some); {result.n_answers} answers",
        "1: the judges agree, 0: as by chance, -1: they rank the other way round. 95 % intervals by cluster",
        *result.notes,
    ]
    return [means, pairs]


def _figure_cell(value: float | None, interval: Interval | None) -> Cell:
    if value is None:
        return value_cell(None)
    return Cell((f"{value:.2f}", *filter(None, [interval_text(interval, "{:.2f}".format)])), "bold")
