"""The ladder of a screen: scores of models between floor and ceiling, as lines with bars.

Scored runs and yardsticks come in; rungs (:class:`Rung`) go out, and lines of a given width. Only baselines on the
samples of the runs may be floor or ceiling.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from agrotools.core import Mode
from agrotools.report.layout import on_scale, run_names, shortened
from agrotools.report.settings import Measure
from agrotools.runner.rescore import Rescored
from agrotools.runner.yardsticks import (
    CEILING,
    COLOURS,
    CONSTANT,
    GUESS,
    PLANNER,
    Yardsticks,
    role_of,
    roles_of,
)
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.attribution import Attribution
from agrotools.scoring.comparisons import common_samples, mean_on
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.statistics import Estimate, Interval
from agrotools.scoring.summary import Summary

_MOST_RUNS = 6
"""Most models and other baselines on the ladder."""
_ORDER = ("floor", "colours", "planner", "model", "ceiling")
_ROLE_CELLS, _NAME_CELLS, _VALUE_CELLS, _BAR_CELLS, _LEAST_BAR_CELLS = 9, 22, 13, 30, 10
"""Widths of the columns of the ladder. Long names leave 30 cells to the bars; bars of less than 10 are left out."""
_STYLES = {"floor": "red", "colours": "red", "ceiling": "green", "model": "bold cyan"}
_SHOWN_ROLES = {"colours": "floor", "planner": "example"}
"""Roles that are shown by another word: ``colours`` is a second floor."""
_DOES = {
    GUESS: "question only",
    CONSTANT: "best value",
    COLOURS: "mean colours",
    PLANNER: "copies steps",
    CEILING: "right calls",
}
"""What a baseline answers from; with its name in at most 21 cells."""
TITLES = {"end-to-end": "End to end", "no-tool": "No tools", "step-by-step": "Step by step"}
"""Names of modes at the beginning of a line."""


class Rung(NamedTuple):
    """One line of the ladder. ``bounds``: limits of a score that is withheld because too many records are invalid."""

    role: str
    name: str
    estimate: Estimate | None
    bounds: Interval | None = None
    tally: RunAggregator | None = None
    dose: str = ""
    """``at blur=1``"""
    lost: Attribution | None = None

    @property
    def shown_name(self) -> str:
        """Name with what the baseline does: ``oracle: right calls``."""
        if self.role in ("model", "baseline"):
            return self.name
        does = _DOES.get(f"baseline:{self.name}", "")
        return f"{self.name}: {does}" if does else self.name


def dose_of(summary: Summary) -> str:
    """Return the degradation and the faults of a run in words."""
    doses: list[str] = []
    if degrade := summary.benchmark_options.get("degrade"):
        doses.append(f"at {degrade}")
    if faults := summary.benchmark_options.get("faults"):
        doses.append(f"with faults {faults}")
    return ", ".join(doses) or "on the original pictures"


def common_to_doses(scored: Sequence[Rescored], measure: Measure | None) -> frozenset[str]:
    """Return the samples that runs at different doses share; empty if all have the same dose."""
    doses = {dose_of(each.summary) for each in scored}
    if measure is None or len(doses) < 2:
        return frozenset()
    tallies = [each.tally for each in scored if each.tally]
    return common_samples(tallies, measure[0].mode, measure[1])


def estimate_of(
    scored: Rescored, measure: Measure | None, common: frozenset[str] = frozenset()
) -> Estimate | None:
    """Return the headline of a run (on ``common`` samples, if any); None if it has none or may not show it."""
    if measure is None:
        return None
    part = scored.summary.modes.get(measure[0].mode)
    if part is None or not part.headline:
        return None
    if common and scored.tally:
        return mean_on(common, scored.tally, measure[0].mode, measure[1])
    metric = (measure[0].of(scored.summary) or {}).get(measure[1])
    return metric.overall if metric else None


def rungs(scored: Sequence[Rescored], yardsticks: Yardsticks, measure: Measure) -> list[Rung]:
    """Return the lines of the ladder: floor, planner, models (or other baselines), and ceiling."""
    mode, common = measure[0].mode, common_to_doses(scored, measure)
    runs = _runs_by_role(scored, yardsticks, mode)
    estimates = [estimate_of(run, measure, common) for _, _, run in runs]
    most = max((estimate.n for estimate in estimates if estimate), default=0)
    ladder: list[Rung] = []
    for (role, name, run), estimate in zip(runs, estimates, strict=True):
        metric = (measure[0].of(run.summary) or {}).get(measure[1])
        part = run.summary.modes.get(mode)
        label = name.removeprefix("baseline:")
        if estimate and estimate.n < most:
            label += f" (n {estimate.n})"
        ladder.append(
            Rung(
                role=role,
                name=label,
                estimate=estimate,
                bounds=metric.bounds if metric and not estimate else None,
                tally=run.tally,
                dose=dose_of(run.summary),
                lost=part.lost if part else None,
            )
        )
    return ladder


def _runs_by_role(
    scored: Sequence[Rescored], yardsticks: Yardsticks, mode: Mode
) -> list[tuple[str, str, Rescored]]:
    """Return role, name and scores of the runs, and of yardsticks that are no runs, in the order of the ladder."""
    names = run_names([run.summary for run in scored])
    runs = [
        (role_of(run.summary, mode), name, run) for name, run in zip(names, scored, strict=True)
    ]
    known = {(run.summary.model, role) for role, _, run in runs}
    has_model = any(role == "model" for role, _, _ in runs)
    for name, run in yardsticks.scored.items():
        role = role_of(run.summary, mode)
        # The planner is an example of what a model may lose: a model shows that itself.
        is_needed = not (has_model and role == "planner")
        if is_needed and (name, role) not in known:
            runs.append((role, name, run))
    roles = roles_of([run.summary for _, _, run in runs], mode)
    runs = [(role, name, run) for role, (_, name, run) in zip(roles, runs, strict=True)]
    return sorted(runs, key=lambda run: _ORDER.index(run[0] if run[0] in _ORDER else "model"))


def values_by_role(ladder: Sequence[Rung]) -> dict[str, float]:
    """Return the scores by role; without a ceiling that is only of a part of the samples."""
    most = max((rung.estimate.n for rung in ladder if rung.estimate), default=0)
    values: dict[str, float] = {}
    for rung in ladder:
        if rung.estimate and (rung.role != "ceiling" or rung.estimate.n == most):
            values[rung.role] = rung.estimate.value
    return values


class _Columns(NamedTuple):
    """Widths of the columns of the ladder that depend on names and terminal, in cells."""

    names: int
    bars: int
    """0 on a narrow terminal."""


def _columns(ladder: Sequence[Rung], width: int) -> _Columns:
    spare = width - _ROLE_CELLS - _VALUE_CELLS - 2
    longest = max((len(rung.shown_name) for rung in ladder), default=0)
    names = max(_NAME_CELLS, min(longest + 1, spare - _BAR_CELLS))
    bars = spare - names
    if bars < _LEAST_BAR_CELLS:
        # A narrow terminal: no bars and no space before them, and names as wide as what is left.
        return _Columns(max(names + min(bars + 2, 0), 8), 0)
    return _Columns(names, bars)


def ladder_lines(ladder: Sequence[Rung], measure: Measure, width: int) -> list[Text]:
    """Return the meaning of the metric, a heading with the axis of the bars, and a line for each rung."""
    setting, metric = measure[0], METRICS[measure[1]]
    columns = _columns(ladder, width)
    meaning = Text(f"{metric.label} = {metric.meaning}", style="dim")
    heading = f"{TITLES.get(setting.mode, setting.mode)}, {metric.label}, 95 % interval"
    if columns.bars:
        heading = shortened(heading, width - columns.bars - 2)
        heading = f"{heading:{width - columns.bars - 1}} {_axis(columns.bars, metric.out_of)}"
    lines = [meaning, Text(heading, style="dim")]

    middle = [rung for rung in ladder if rung.role in ("model", "baseline")]
    hidden = middle[_MOST_RUNS:]
    for rung in ladder:
        if rung in hidden:
            continue
        if rung.role == "ceiling" and hidden:
            lines.append(Text(f"{len(hidden)} more: --details", style="dim"))
        lines.append(_rung_line(rung, columns, metric.out_of))
    if columns.bars and all(rung.role != "model" for rung in ladder):
        lines.append(_free_rung(values_by_role(ladder), columns))
    return lines


def _axis(cells: int, out_of: int) -> str:
    """Return 0, half and whole of a scale over ``cells``."""
    between = cells - 1 - len(str(out_of))
    half = f"{out_of // 2}"
    return f"0{half:^{between}}{out_of}"


def _free_rung(values: Mapping[str, float], columns: _Columns) -> Text:
    """Return a line for a model that was not run yet: from floor to ceiling; ``values``: scores by role."""
    value = f"{'?':>5}{'':{_VALUE_CELLS - 5}}"
    bar = _span(values.get("floor", 0.0), values.get("ceiling", 1.0), columns.bars, "·")
    return Text(f"{'':{_ROLE_CELLS}}{'your model goes here':{columns.names}}{value} {bar}")


def _rung_line(rung: Rung, columns: _Columns, out_of: int) -> Text:
    """Return role, name, score with interval, and bar: full up to the interval, and lighter within it."""
    style = _STYLES.get(rung.role, "")
    name = shortened_name(rung.shown_name, columns.names - 1)
    role = _SHOWN_ROLES.get(rung.role, rung.role)
    line = Text(f"{role:{_ROLE_CELLS}}{name:{columns.names}}", style=style)
    if rung.estimate is None:
        line.append(f"{'—':>5}{'':{_VALUE_CELLS - 5}} ", style="")
        if rung.bounds and columns.bars:
            bar = _span(rung.bounds.lower, rung.bounds.upper, columns.bars, "?")
            line.append(bar, style="yellow")
        return line

    value, interval = rung.estimate.value, rung.estimate.interval
    limits = ""
    low, high = value, value
    if interval:
        low, high = interval.lower, interval.upper
        digits = 0 if out_of == 100 else 1
        limits = f" {out_of * low:.{digits}f}–{out_of * high:.{digits}f}"
    line.append(f"{on_scale(value, out_of):>5}{limits:{_VALUE_CELLS - 5}} ")
    for mark, start, end in (("█", 0.0, low), ("▓", low, value), ("░", value, high)):
        line.append(mark * (_cell(end, columns.bars) - _cell(start, columns.bars)), style=style)
    return line


def shortened_name(name: str, cells: int) -> str:
    """Return beginning and end of a name that is too long."""
    return name if len(name) <= cells else f"{name[: (cells - 1) // 2]}…{name[-(cells // 2) :]}"


def _cell(share: float, cells: int) -> int:
    return round(max(0.0, min(share, 1.0)) * cells)


def _span(low: float, high: float, cells: int, mark: str) -> str:
    """Return a bar from ``low`` to ``high``, at least one cell wide."""
    start, end = _cell(low, cells), _cell(high, cells)
    return f"{'':{start}}{mark * max(end - start, 1)}"
