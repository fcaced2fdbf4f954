"""The screen at the end of ``agrotools eval``: a ladder from floor to ceiling, its meaning, faults and next steps.

At most 25 lines of at least 80 columns. The tables of :mod:`agrotools.report.tables` hold everything else.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from rich.text import Text

from agrotools.core.base import count_text
from agrotools.report.layout import (
    UNSEALED_NOTE,
    console_for,
    harmless,
    on_scale,
    percent,
    points,
    run_names,
    shortened,
)
from agrotools.report.settings import PROCESS, SETTINGS, Setting, has_table, settings_for
from agrotools.report.tables import caveat_lines, warning_lines
from agrotools.runner.ladder import CEILING, FLOOR, PLANNER, References
from agrotools.scoring import METRICS, Estimate, Summary
from agrotools.scoring.metrics import FALSE_CONFIDENCE, FALSE_REFUSAL
from agrotools.scoring.statistics import Interval

LINES, WIDTH = 25, 100
"""Most lines of the screen, and its width on a wide terminal."""
_MOST_RUNS, _MOST_PLACES, _MOST_FAULT_LINES = 6, 2, 10
BESIDE = (FALSE_CONFIDENCE, FALSE_REFUSAL)
"""Metrics beside the headline, in its mode."""
_ROLES = {FLOOR: "floor", PLANNER: "planner", CEILING: "ceiling"}
_ORDER = (FLOOR, PLANNER, "", CEILING)
_ROLE_CELLS, _NAME_CELLS, _VALUE_CELLS = 9, 22, 13
_STYLES = {"floor": "red", "ceiling": "green", "model": "bold cyan"}
_TITLES = {"end-to-end": "End to end", "no-tool": "No tools", "step-by-step": "Step by step"}


@dataclass(frozen=True)
class Screen:
    """Everything that the screen shows: runs with their summaries, references, further faults, and next commands."""

    runs: Sequence[Path]
    summaries: Sequence[Summary]
    references: References = field(default_factory=References)
    faults: Sequence[str] = ()
    commands: Sequence[str] = ()
    page: Path | None = None


class Rung(NamedTuple):
    """One line of the ladder. ``bounds``: limits of a score that is withheld because too many records are invalid."""

    role: str
    name: str
    estimate: Estimate | None
    bounds: Interval | None = None


def headline(summaries: Sequence[Summary]) -> tuple[Setting, str] | None:
    """Return the setting and metric that runs are judged by; None if they have no score.

    The first metric of the end-to-end mode, else of no-tool, else of a benchmark plug-in, else of step-by-step.
    """
    ours = [setting for setting in SETTINGS if setting.whole_mode]
    ours.sort(key=lambda setting: ("end-to-end", "no-tool", "step-by-step").index(setting.mode))
    of_plugins = [setting for setting in settings_for(summaries) if setting not in SETTINGS]
    for setting in [*ours[:2], *of_plugins, *ours[2:]]:
        for metric in setting.metrics if has_table(setting, summaries) else ():
            if any(metric in (setting.of(summary) or {}) for summary in summaries):
                return setting, metric
    return None


def print_screen(shown: Screen, *, file: IO[str] | None = None) -> None:
    """Print :func:`screen`: in colour on a terminal, else as plain text."""
    console = console_for(file)
    for line in screen(shown, min(console.width, WIDTH)):
        console.print(line, soft_wrap=True)


def screen(shown: Screen, width: int = WIDTH) -> list[Text]:
    """Return the lines of the screen, at most :data:`LINES`."""
    measure = headline(shown.summaries)
    ladder = _ladder(shown, measure, width) if measure else [Text("No records to score yet.")]
    meaning = _wrapped(_meaning(shown, measure), width) if measure else []
    modes = [line for text in _other_modes(shown, measure) for line in _wrapped(text, width)]
    faults = [*dict.fromkeys((*warning_lines(shown.summaries), *shown.faults, *caveat_lines(shown.summaries)))]
    next_steps = [Text(f"{'next' if not at else '':8}{line}") for at, line in enumerate(shown.commands)]
    if shown.page is not None:
        next_steps.append(Text(f"page    {shown.page}"))
    above = [*_title(shown, measure), *ladder, *([Text()] if meaning else []), *meaning]
    below = [Text(), *next_steps] if next_steps else []
    room = LINES - len(above) - len(below)
    warned = _faults(faults, width, max(min(room, _MOST_FAULT_LINES), 1))
    return [*above, *modes[: max(room - len(warned), 0)], *warned, *below]


def _faults(faults: Sequence[str], width: int, room: int) -> list[Text]:
    """Return as many faults as fit in ``room`` lines, each in at most two, and the number of the others."""
    lines: list[Text] = []
    for at, fault in enumerate(faults):
        wrapped = _wrapped(harmless(fault).replace("\n", "; "), width, "bold yellow", most=2)
        if len(lines) + len(wrapped) > room - (at + 1 < len(faults)):
            return [*lines, *_wrapped(f"{count_text(len(faults) - at, 'more warning')}: --details", width, "yellow")]
        lines += wrapped
    return lines


def _wrapped(text: str, width: int, style: str = "", *, most: int | None = None) -> list[Text]:
    lines = textwrap.wrap(text, width, break_on_hyphens=False, max_lines=most, placeholder=" …")
    return [Text(line, style=style) for line in lines]


def _title(shown: Screen, measure: tuple[Setting, str] | None) -> list[Text]:
    """Return two lines: benchmark with its size, and a warning if its files are synthetic."""
    summary = shown.summaries[0]
    title = Text(harmless(f"{summary.benchmark} {summary.benchmark_version}").strip(), style="bold")
    estimate = _estimate(summary, measure)
    title.append(", quick part" if summary.quick else "", style="bold")
    if estimate:
        title.append(
            f": {count_text(estimate.n, 'sample')} in {count_text(estimate.n_clusters, 'cluster')}", "not bold"
        )
    remark = "synthetic: generated images, scores say nothing about real fields" if summary.synthetic else ""
    return [title, Text(remark, style="yellow")]


def _estimate(summary: Summary, measure: tuple[Setting, str] | None) -> Estimate | None:
    """Return the headline of a run; None if it has none or may not show it."""
    if measure is None or not (part := summary.modes.get(measure[0].mode)) or not part.headline:
        return None
    metric = (measure[0].of(summary) or {}).get(measure[1])
    return metric.overall if metric else None


def rungs(shown: Screen, measure: tuple[Setting, str]) -> list[Rung]:
    """Return the lines of the ladder: floor, planner, models (or other baselines), and ceiling."""
    runs = list(zip(run_names(shown.summaries), shown.summaries, strict=True))
    known = {summary.model for summary in shown.summaries}
    runs += [(name, summary) for name, summary in shown.references.summaries.items() if name not in known]
    runs.sort(key=lambda each: _ORDER.index(each[1].model if each[1].model in _ROLES else ""))
    ladder: list[Rung] = []
    for name, summary in runs:
        metric = (measure[0].of(summary) or {}).get(measure[1])
        role = _ROLES.get(summary.model, "baseline" if _is_baseline(summary) else "model")
        estimate = _estimate(summary, measure)
        bounds = metric.bounds if metric and not estimate else None
        ladder.append(Rung(role, name.removeprefix("baseline:"), estimate, bounds))
    return ladder


def _values(ladder: Sequence[Rung]) -> dict[str, float]:
    return {rung.role: rung.estimate.value for rung in ladder if rung.estimate}


def _is_baseline(summary: Summary) -> bool:
    return summary.model.startswith("baseline:")


def _ladder(shown: Screen, measure: tuple[Setting, str], width: int) -> list[Text]:
    setting, metric = measure
    out_of = METRICS[metric].out_of
    cells = max(width - _ROLE_CELLS - _NAME_CELLS - _VALUE_CELLS - 2, 10)
    left = f"{_TITLES.get(setting.mode, setting.mode)}, {METRICS[metric].label}, 95 % interval"
    axis = f"0{f'{out_of // 2}':^{cells - 1 - len(str(out_of))}}{out_of}"
    lines = [Text(f"{shortened(left, width - cells - 2):{width - cells - 1}} {axis}", style="dim")]
    ladder = rungs(shown, measure)
    middle = [rung for rung in ladder if rung.role in ("model", "baseline")]
    hidden = middle[_MOST_RUNS:]
    for rung in (rung for rung in ladder if rung not in hidden):
        if rung.role == "ceiling" and hidden:
            lines.append(Text(f"{len(hidden)} more: --details", style="dim"))
        lines.append(_rung_line(rung, cells, out_of))
    if not any(rung.role == "model" for rung in ladder):
        value = _values(ladder)
        bar = _span(value.get("floor", 0.0), value.get("ceiling", 1.0), cells, "·")
        lines.append(
            Text(f"{'':{_ROLE_CELLS}}{'your model goes here':{_NAME_CELLS}}{'?':>5}{'':{_VALUE_CELLS - 5}} {bar}")
        )
    return [*lines, Text(f"{METRICS[metric].label} = {METRICS[metric].meaning}", style="dim")]


def _rung_line(rung: Rung, cells: int, out_of: int) -> Text:
    style = _STYLES.get(rung.role, "")
    name = shortened_name(rung.name, _NAME_CELLS - 1)
    line = Text(f"{rung.role:{_ROLE_CELLS}}{name:{_NAME_CELLS}}", style=style)
    if rung.estimate is None:
        line.append(f"{'—':>5}{'':{_VALUE_CELLS - 5}} ", style="")
        if rung.bounds:
            line.append(_span(rung.bounds.lower, rung.bounds.upper, cells, "?"), style="yellow")
        return line
    value, interval = rung.estimate.value, rung.estimate.interval
    digits = 0 if out_of == 100 else 1
    limits = f" {out_of * interval.lower:.{digits}f}–{out_of * interval.upper:.{digits}f}" if interval else ""
    line.append(f"{on_scale(value, out_of):>5}{limits:{_VALUE_CELLS - 5}} ")
    low, high = (interval.lower, interval.upper) if interval else (value, value)
    for mark, start, end in (("█", 0.0, low), ("▓", low, value), ("░", value, high)):
        line.append(mark * (_cell(end, cells) - _cell(start, cells)), style=style)
    return line


def shortened_name(name: str, cells: int) -> str:
    """Return the end of a name that is too long, where models differ."""
    return name if len(name) <= cells else f"…{name[1 - cells :]}"


def _cell(share: float, cells: int) -> int:
    return round(max(0.0, min(share, 1.0)) * cells)


def _span(low: float, high: float, cells: int, mark: str) -> str:
    return f"{'':{_cell(low, cells)}}{mark * max(_cell(high, cells) - _cell(low, cells), 1)}"


def _meaning(shown: Screen, measure: tuple[Setting, str]) -> str:
    """Return the sentences on what the ladder says."""
    ladder = rungs(shown, measure)
    value = _values(ladder)
    floor, ceiling = value.get("floor"), value.get("ceiling")
    out_of = METRICS[measure[1]].out_of
    sentences: list[str] = []
    if ceiling is not None:
        share, rest = (on_scale(ceiling, out_of), "the rest") if ceiling < 1 else ("everything", "nothing")
        sentences.append(f"A model that makes every reference call gets {share}: the tools lose {rest}.")
    if floor is not None:
        sentences.append(f"Guessing from the question alone gets {on_scale(floor, out_of)}.")
    models = [rung for rung in ladder if rung.role == "model"]
    for rung in models if len(models) <= _MOST_PLACES else ():
        if rung.estimate is not None:
            sentences.append(_place(rung.name, rung.estimate, floor, ceiling))
    if shown.summaries[0].quick:
        estimates = [rung.estimate for rung in ladder if rung.estimate]
        n = max((each.n for each in estimates), default=0)
        detectable = max((each.detectable or 0 for each in estimates), default=0)
        apart = f" (only differences of about {on_scale(detectable, out_of)} show)" if detectable else ""
        sentences.append(f"{count_text(n, 'sample')} are a first look and rank no models{apart}.")
    privileged = [rung.name for rung in ladder if rung.role in ("planner", "ceiling")]
    if privileged:
        verb = "sees the reference and is no result" if len(privileged) == 1 else "see the reference and are no results"
        recorded = "; ceiling from recorded tool results" if CEILING in shown.references.recorded else ""
        sentences.append(f"({' and '.join(privileged)} {verb}{recorded}.)")
    if any(summary.unsealed for summary in shown.summaries):
        sentences.append(UNSEALED_NOTE)
    return " ".join(sentences)


def _place(name: str, estimate: Estimate, floor: float | None, ceiling: float | None) -> str:
    """Return a sentence on a model's place between floor and ceiling."""
    short = shortened_name(name, 40)
    interval = estimate.interval
    if floor is not None and interval is not None and interval.lower <= floor <= interval.upper:
        return f"{short} cannot be told from guessing."
    if floor is not None and estimate.value < floor:
        return f"{short} is below guessing."
    if floor is None or ceiling is None or ceiling <= floor:
        return ""
    if estimate.value > ceiling:
        return f"{short} is above the reference calls."
    share = (estimate.value - floor) / (ceiling - floor)
    return f"{short} makes {100 * share:.0f} % of the way from guessing to the ceiling."


def _other_modes(shown: Screen, measure: tuple[Setting, str] | None) -> Iterator[str]:
    """Yield a line on what stands beside the headline of each model, and one for each of its other modes."""
    names = run_names(shown.summaries)
    for name, summary in zip(names, shown.summaries, strict=True):
        of_whom = f"{shortened_name(name, 30)}, " if len(names) > 1 else ""
        for mode, part in summary.modes.items():
            is_beside = measure is not None and mode == measure[0].mode
            if measure is None or not part.headline or (is_beside and len(names) > 1 and _is_baseline(summary)):
                continue
            metrics = BESIDE if is_beside else PROCESS if mode == "step-by-step" else (measure[1],)
            present = [(METRICS[each], part.metrics[each].overall.value) for each in metrics if each in part.metrics]
            values = [f"{info.label}{' ↓' * info.lower_is_better} {percent(mean)}" for info, mean in present]
            gain = summary.no_tool_part.gain.get(measure[1]) if mode == "no-tool" and summary.no_tool_part else None
            added = f"; tools add {points(gain.overall.value)} points{_interval(gain.overall)}" if gain else ""
            if values:
                yield f"{of_whom}{_TITLES[mode].lower()}: {', '.join(values)}{added}"


def _interval(difference: Estimate) -> str:
    each = difference.interval
    return f" ({points(each.lower)} to {points(each.upper)})" if each else ""
