"""Curves of score against dose, of degraded pictures or of faults in tool calls; losses of tools and model apart.

All runs are compared on the samples that are valid in every one of them. The oracle makes the reference calls, so
what its score loses against the original pictures is lost by the tools, if all answers follow from these calls. What
a model loses on samples where the oracle loses nothing is its own loss; the rest is shared with the tools. The growth
of its distance to the oracle is no measure of that: a model near the floor has nothing to lose, and the distance
shrinks. Intervals are those of :mod:`agrotools.scoring.statistics`, paired by sample. Runs with faults also show
which of them were noticed and recovered from (:mod:`agrotools.scoring.recovery`).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agrotools.core import MODES, FrozenModel, Mode, Record, UsageError
from agrotools.core.base import benchmark_title
from agrotools.report.layout import (
    DASH,
    Cell,
    Table,
    harmless,
    new_table,
    percent,
    points,
    value_cell,
)
from agrotools.runner.degradation import Degradation
from agrotools.runner.faults import UNDISTURBED, Faults, doses_text
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring import METRICS, Estimate, RunAggregator, score_record
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.recovery import Recovery, recoveries
from agrotools.scoring.statistics import Interval, estimate_difference, estimate_mean
from agrotools.tools.plotting.sheet import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ORACLE = "baseline:oracle"
_DPI = 150
_COMBINED = "several doses"
_SUFFIXES = (".svg", ".png", ".pdf")
_Doses = tuple[tuple[str, float], ...]


class CurvePoint(FrozenModel):
    """Score of a model at one dose. Losses are None without the runs that they need.

    ``loss``: loss against the same model without any dose. ``own_loss``: the part of it on samples where the
    oracle loses nothing, so that it is not the tools'. ``below_oracle``: distance to the oracle at the same dose.
    """

    model: str
    doses: dict[str, float]
    score: Estimate
    loss: Estimate | None = None
    own_loss: Estimate | None = None
    below_oracle: Estimate | None = None
    recovery: tuple[Recovery, ...] = ()
    """Recovery from faults, from all of them and by kind; shares of recovered samples need a run without faults."""

    @property
    def label(self) -> str:
        """Doses as text, ``none`` for original pictures and tools without faults."""
        return doses_text(self.doses) or UNDISTURBED

    @property
    def kind(self) -> str:
        """Name of the dose, for a panel of its own."""
        return next(iter(self.doses)) if len(self.doses) == 1 else _COMBINED


class Curve(FrozenModel):
    """Curves of several models on the same samples. ``n_dropped``: samples that are not valid in every run."""

    benchmark: str
    mode: Mode
    metric: str
    n: int
    n_dropped: int
    points: tuple[CurvePoint, ...]

    def draw(self, path: str | Path) -> None:
        """Draw the curve with its intervals, a panel for each kind of dose, as SVG, PNG or PDF.

        Raises:
            UsageError: another suffix.
        """
        check_picture(path)
        from matplotlib.figure import Figure

        kinds = sorted({point.kind for point in self.points if point.doses}) or [""]
        figure = Figure(figsize=(1.2 + 3.6 * len(kinds), 3.6), layout="constrained")
        axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for kind, panel in zip(kinds, axes, strict=True):
            shown = [point for point in self.points if not point.doses or point.kind == kind]
            series: dict[str, dict[str, Estimate]] = defaultdict(dict)
            for point in sorted(shown, key=lambda each: _severity(tuple(each.doses.items()))):
                series[point.model][point.label] = point.score
            draw_lines(
                panel,
                list(dict.fromkeys(label for of_model in series.values() for label in of_model)),
                series,
            )
            panel.set_xlabel(kind)
        axes[0].set_ylabel(f"{METRICS[self.metric].label} (%)")
        axes[0].legend(frameon=False, fontsize=8)
        save_figure(figure, path, f"{self.benchmark}, {self.mode}, {self.n} samples")


def draw_lines(
    panel: "Axes",
    groups: Sequence[str],
    series: Mapping[str, Mapping[str, Estimate]],
    *,
    sideways: bool = False,
    joined: bool = True,
) -> None:
    """Draw a line with intervals for each of ``series``, over its ``groups``; the oracle's is black and dashed.

    The lines are shifted, so that intervals do not hide each other. ``sideways``: from the top to the bottom.
    Without ``joined``, only points are drawn."""
    for number, (name, values) in enumerate(series.items()):
        shift = 0.4 * ((number + 0.5) / len(series) - 0.5)
        places = [at + shift for at, group in enumerate(groups) if group in values]
        style: dict[str, Any] = {"color": COLOURS[number % 6], "marker": "osD^v"[number // 6 % 5]}
        style |= {"color": "black", "linestyle": "--"} if name == ORACLE else {}
        style |= {} if joined else {"linestyle": "", "marker": "osD^v"[number % 5]}
        shares, lengths = in_percent([values[group] for group in groups if group in values])
        ends, xy = (
            {"xerr" if sideways else "yerr": lengths},
            (shares, places) if sideways else (places, shares),
        )
        panel.errorbar(*xy, **ends, ms=4, lw=1, capsize=2, label=plain_text(name), **style)
    texts = range(len(groups)), list(map(plain_text, groups))
    if sideways:
        panel.set_yticks(*texts)
        panel.invert_yaxis()
        panel.set_xlim(-2, 102)
    else:
        panel.set_xticks(*texts, fontsize=8)
        panel.set_ylim(0, 100)
    panel.spines[["top", "right"]].set_visible(False)


def plain_text(text: str) -> str:
    """Return a text that matplotlib shows as it is, without reading formulas in it."""
    return harmless(text).replace("$", r"\$")


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


def save_figure(figure: "Figure", path: str | Path, title: str) -> None:
    """Write a figure with a title over it."""
    figure.suptitle(plain_text(title), fontsize=9, wrap=True)
    figure.savefig(path, dpi=_DPI)


def in_percent(estimates: Sequence[Estimate]) -> tuple[list[float], list[list[float]]]:
    """Return values in percent, and the lengths of their intervals below and above; 0 without an interval."""
    below = [
        100 * (each.value - each.interval.lower) if each.interval else 0.0 for each in estimates
    ]
    above = [
        100 * (each.interval.upper - each.value) if each.interval else 0.0 for each in estimates
    ]
    return [100 * each.value for each in estimates], [below, above]


def common_mode(manifests: Sequence[Manifest], mode: str | None = None) -> Mode:
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


class _RunScores(NamedTuple):
    """Scores of a run: mean score and number of calls over epochs, and cluster, of each sample that has a score."""

    model: str
    doses: _Doses
    scores: Mapping[str, float]
    clusters: Mapping[str, str]
    calls: Mapping[str, float]
    derivable: bool
    """True if all answers follow from the reference calls."""
    faulty: Sequence[tuple[Record, float]]
    """Records with faults, and their scores."""


def dose_curve(
    runs: Sequence[str | Path], *, mode: str | None = None, metric: str = "fas"
) -> Curve:
    """Return the curve of ``metric`` over the doses of ``runs``. The default mode is end-to-end if all runs have it.

    Raises:
        UsageError: runs of different benchmarks or of equal model and doses, no common mode or sample, unknown metric.
        RunStoreError: a run cannot be read.
    """
    folders = [Path(run) for run in runs]
    manifests = [read_manifest(run) for run in folders]
    _check_runs(folders, manifests)
    mode = common_mode(manifests, mode)
    parts = [
        _read(run, manifest, mode, metric) for run, manifest in zip(folders, manifests, strict=True)
    ]
    known = set.union(*(set(part.scores) for part in parts))
    shared = [
        sample_id
        for sample_id in parts[0].clusters
        if all(sample_id in part.scores for part in parts)
    ]
    if not shared:
        raise UsageError(
            "the runs have no valid sample in common",
            hint="run them without --limit, or with the same",
        )
    clusters = [parts[0].clusters[sample_id] for sample_id in shared]
    derivable = all(part.derivable for part in parts)
    runs_by_dose = {(part.model, part.doses): part for part in parts}
    values = {
        key: [part.scores[sample_id] for sample_id in shared] for key, part in runs_by_dose.items()
    }
    models = sorted({part.model for part in parts}, key=lambda model: (model != ORACLE, model))
    doses = sorted({part.doses for part in parts}, key=_severity)
    return Curve(
        benchmark=benchmark_title(manifests[0].benchmark, manifests[0].benchmark_version)
        + ", quick part" * all(each.quick for each in manifests),
        mode=mode,
        metric=metric,
        n=len(shared),
        n_dropped=len(known) - len(shared),
        points=tuple(
            _point(model, each, values, clusters, derivable=derivable).model_copy(
                update={"recovery": _recovery(model, each, runs_by_dose)}
            )
            for model in models
            for each in doses
            if (model, each) in values
        ),
    )


def _check_runs(folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    """Refuse runs of different benchmarks, several of one model and dose, and runs without any dose."""
    hashes = [manifest.clean_hash or manifest.benchmark_hash for manifest in manifests]
    if others := [str(run) for run, of in zip(folders, hashes, strict=True) if of != hashes[0]]:
        raise UsageError(
            f"{folders[0]} is on another benchmark than {', '.join(others)}",
            hint="give runs on one benchmark",
        )
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for run, manifest in zip(folders, manifests, strict=True):
        alike[_name(manifest), manifest.conditions].append(str(run))
    (name, conditions), same = max(alike.items(), key=lambda each: len(each[1]))
    if len(same) > 1:
        text = (
            f"{len(same)} runs of {name} {f'at {conditions}' if conditions else 'without any dose'}"
        )
        raise UsageError(f"{text}: {', '.join(same)}", hint="give one run of each model and dose")
    if not any(manifest.conditions for manifest in manifests):
        hint = "add runs of eval --degrade, e.g. --degrade blur=1, or of eval --faults, e.g. --faults error=.2"
        raise UsageError("no run is on degraded pictures or has faults", hint=hint)


def _recovery(
    model: str, doses: _Doses, runs: Mapping[tuple[str, _Doses], _RunScores]
) -> tuple[Recovery, ...]:
    """Return the recovery of a run from its faults, beside the same model at the same other doses without faults."""
    clean = runs.get((model, tuple(each for each in doses if each[0] not in Faults.model_fields)))
    before = (
        {name: (each, clean.calls[name]) for name, each in clean.scores.items()} if clean else None
    )
    return recoveries(runs[model, doses].faulty, before)


def _name(manifest: Manifest) -> str:
    return (
        manifest.model if manifest.tools == "all" else f"{manifest.model} ({manifest.tools} tools)"
    )


def _read(run: Path, manifest: Manifest, mode: Mode, metric: str) -> _RunScores:
    tally, counts, clusters = RunAggregator(), Counter[str](), dict[str, str]()
    calls, faulty = Counter[str](), list[tuple[Record, float]]()
    for record in (
        each for each in iter_records(run) if each.mode == mode and not is_invalid(each)
    ):
        rows = score_record(record)
        tally.add(record, rows)
        counts[record.sample.id] += 1
        clusters[record.sample.id] = record.sample.cluster or record.sample.id
        calls[record.sample.id] += len(record.trajectory.calls) if record.trajectory else 0
        value = next((row.value for row in rows if row.metric == metric and row.slot is None), None)
        if value is not None and record.faults:
            faulty.append((record, value))
    units = tally.modes[mode].headline_units(metric) if counts else None
    if units is None:
        known = ", ".join(sorted(name for name in METRICS if "." not in name))
        raise UsageError(f"{run} has no {metric} in {mode}", hint=f"--metric, one of {known}")
    doses = (
        *Degradation.parse(manifest.degrade).doses.items(),
        *Faults.parse(manifest.faults).doses.items(),
    )
    mean_calls = {name: calls[name] / n for name, n in counts.items()}
    units = units.where(units.valued)
    scores = dict(zip(tally.table.ids(units.samples.tolist()), units.values.tolist(), strict=True))
    clusters = {name: cluster for name, cluster in clusters.items() if name in scores}
    derivable = all(kind.derivable for kind in tally.table.kinds)
    return _RunScores(_name(manifest), doses, scores, clusters, mean_calls, derivable, faulty)


def _severity(doses: _Doses) -> tuple[int, list[tuple[str, float]]]:
    """Return a key that sorts single doses by name and strength, before combinations."""
    return len(doses), [(name, -value if name == "jpeg" else value) for name, value in doses]


def _point(
    model: str,
    doses: _Doses,
    values: Mapping[tuple[str, _Doses], list[float]],
    clusters: Sequence[str],
    *,
    derivable: bool,
) -> CurvePoint:
    here, clean = values[model, doses], values.get((model, ()))
    oracle, clean_oracle = (
        values.get((ORACLE, each)) if derivable else None for each in (doses, ())
    )
    below = estimate_difference(oracle, here, clusters) if oracle and model != ORACLE else None
    own = None
    if below and doses and oracle and clean and clean_oracle:
        no_loss = [after >= before for before, after in zip(clean_oracle, oracle, strict=True)]
        first, second = (
            [keep * value for keep, value in zip(no_loss, part, strict=True)]
            for part in (clean, here)
        )
        own = estimate_difference(first, second, clusters)
    return CurvePoint(
        model=model,
        doses=dict(doses),
        score=estimate_mean(here, clusters),
        loss=estimate_difference(clean, here, clusters) if clean and doses else None,
        below_oracle=below,
        own_loss=own,
    )


def curve_tables(curve: Curve) -> list[Table]:
    """Return a table of the curve, and of recovery from faults. Values are in percent and percentage points."""
    label = METRICS[curve.metric].label
    headings = [label, "change", "own change", "below oracle"]
    table = new_table(f"{label} by dose: {curve.benchmark}, {curve.mode}", headings)
    for point, before in zip(curve.points, (curve.points[0], *curve.points), strict=False):
        differences = (_negated(point.loss), _negated(point.own_loss), point.below_oracle)
        cells = (value_cell(each, points) for each in differences)
        name = Cell((point.label, point.model))
        table.add_row(name, value_cell(point.score), *cells, ruled=point.model != before.model)
    table.notes += [
        f"{curve.n} samples that are valid in every run ({curve.n_dropped} are not); 95 % intervals, paired by sample",
        "change: against the same model without any dose; for the oracle, the change by the tools",
        "own change: the part on samples on which the oracle loses nothing",
        "below oracle: distance to the oracle at the same dose",
    ]
    return [table, *_recovery_tables(curve)]


def _recovery_tables(curve: Curve) -> list[Table]:
    table = new_table(
        "Faults in tool calls", ["planned", "landed", "noticed", "recovered", "extra calls"]
    )
    for point in curve.points:
        for at, each in enumerate(point.recovery):
            name = Cell((point.label, point.model)) if each.kind is None else f"  {each.kind}"
            noticed = f"{percent(each.noticed / each.landed)}" if each.landed else DASH
            extra = DASH if each.extra_calls is None else f"{each.extra_calls:+.1f}"
            counts = (str(each.planned), str(each.landed), noticed)
            table.add_row(
                name, *counts, value_cell(each.recovered), extra, ruled=not at and bool(table.rows)
            )
    table.notes += [
        "Answerable samples only. landed: faults that changed what the model saw. noticed: it repeated the call or "
        "declined to answer.",
        "recovered: of the hit samples that it solves without faults, the share that it still solves; extra calls: "
        "more calls in these samples than without faults (both need a run without faults)",
    ]
    return [table] if table.rows else []


def _negated(estimate: Estimate | None) -> Estimate | None:
    if estimate is None or estimate.interval is None:
        return estimate and estimate.model_copy(update={"value": -estimate.value})
    interval = Interval(lower=-estimate.interval.upper, upper=-estimate.interval.lower)
    return estimate.model_copy(update={"value": -estimate.value, "interval": interval})
