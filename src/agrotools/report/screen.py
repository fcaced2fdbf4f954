"""The screen at the end of ``agrotools eval``: a ladder from floor to ceiling, its meaning, faults and next steps.

At most 25 lines at 80 columns or more; bars are left out below 56.
The tables of :mod:`agrotools.report.tables` hold everything else.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from rich.text import Text

from agrotools.core import Mode
from agrotools.core.texts import amount_text, benchmark_title, count_text, prompt_tokens_text
from agrotools.report.layout import (
    SYNTHETIC_NOTE,
    UNSEALED_NOTE,
    detectable_points,
    harmless,
    on_scale,
    open_text_notes,
    percent,
    points,
    run_names,
    shortened,
    value_text,
    whole_points,
)
from agrotools.report.settings import SETTINGS, Setting, has_table, settings_for
from agrotools.report.tables import ONLY_OPEN_TEXT, SHARD, caveat_lines, warning_lines
from agrotools.report.terminal import console_for
from agrotools.runner.ladder import CEILING, PLANNER, References, role_of
from agrotools.runner.rescore import Rescored
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.attribution import TOOL, Attribution
from agrotools.scoring.comparisons import common_samples, mean_on, paired_difference
from agrotools.scoring.event_counts import INVALID_TEXT, RESUME, mostly_unread
from agrotools.scoring.metrics import (
    FALSE_CONFIDENCE,
    FALSE_REFUSAL,
    FAS,
    FAS_TEXT,
    METRICS,
    OPEN_TEXT_FLOOR,
)
from agrotools.scoring.statistics import LEVEL, MIN_CLUSTERS, Estimate, Interval
from agrotools.scoring.summary import ModeSummary, Summary, tokens_of

LINES, WIDTH = 25, 100
"""Most lines of the screen, and its width on a wide terminal."""
_MOST_RUNS, _MOST_PLACES, _MOST_FAULT_LINES = 6, 2, 10
_REFUSALS = (FALSE_CONFIDENCE, FALSE_REFUSAL)
_STRANGERS = "strangers"
"""Group of samples about pictures that show nothing of what own photos are asked about; by their folder."""
_LEAST_LOST = 0.5
"""Points of a part that are shown: fewer are 0 without digits."""
_RECORDED = "The ceiling is from stored tool results; for your tools run --model baseline:oracle."
_ORDER = ("floor", "planner", "model", "ceiling")
_ROLE_CELLS, _NAME_CELLS, _VALUE_CELLS, _BAR_CELLS, _LEAST_BAR_CELLS = 9, 22, 13, 30, 10
_STYLES = {"floor": "red", "ceiling": "green", "model": "bold cyan"}
_TITLES = {"end-to-end": "End to end", "no-tool": "No tools", "step-by-step": "Step by step"}


@dataclass(frozen=True)
class Screen:
    """Everything that the screen shows: scored runs, references, further faults, and next commands.

    ``modes``: modes that the user asked for, of which the headline is one; empty for all.
    """

    scored: Sequence[Rescored]
    references: References = field(default_factory=References)
    faults: Sequence[str] = ()
    commands: Sequence[str] = ()
    page: Path | None = None
    modes: Sequence[Mode] = ()

    @property
    def summaries(self) -> list[Summary]:
        return [each.summary for each in self.scored]


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


def headline(
    summaries: Sequence[Summary], modes: Sequence[Mode] = ()
) -> tuple[Setting, str] | None:
    """Return the setting and metric that runs are judged by; None if they have no score.

    The first metric of the end-to-end mode, else of no-tool, else of a benchmark plug-in, else of step-by-step.
    Settings of ``modes`` precede all others.
    """
    ours = [setting for setting in SETTINGS if setting.whole_mode]
    ours.sort(key=lambda setting: ("end-to-end", "no-tool", "step-by-step").index(setting.mode))
    of_plugins = [setting for setting in settings_for(summaries) if setting not in SETTINGS]
    settings = [*ours[:2], *of_plugins, *ours[2:]]
    for setting in sorted(settings, key=lambda each: bool(modes) and each.mode not in modes):
        for metric in setting.metrics if has_table(setting, summaries) else ():
            if any(metric in (setting.of(summary) or {}) for summary in summaries):
                return setting, metric
    return None


def _why_no_headline(summaries: Sequence[Summary]) -> str:
    parts = [part for summary in summaries for part in summary.modes.values()]
    if any(OPEN_TEXT_FLOOR in part.metrics for part in parts):
        return f"No FAS: {ONLY_OPEN_TEXT}."
    if not any(part.counts.formless for part in parts):
        return "No records to score yet."
    words = [
        percent(part.metrics[FAS_TEXT].overall.value) for part in parts if FAS_TEXT in part.metrics
    ]
    shown = f" ({METRICS[FAS_TEXT].label} {', '.join(words)})" if words else ""
    how = "a parameter form of the function, or a reply to form_request, submits one"
    return f"No FAS: the agent submits no answer form, so its own words alone are scored{shown}; {how}."


def print_screen(shown: Screen, *, file: IO[str] | None = None) -> None:
    """Print :func:`screen`: in colour on a terminal, else as plain text."""
    console = console_for(file)
    for line in screen(shown, min(console.width, WIDTH)):
        console.print(line, soft_wrap=True)


def screen(shown: Screen, width: int = WIDTH) -> list[Text]:
    """Return the lines of the screen, at most :data:`LINES`."""
    measure = headline(shown.summaries, shown.modes)
    steps = rungs(shown, measure) if measure else []
    ladder = (
        _ladder(steps, measure, width) if measure else [Text(_why_no_headline(shown.summaries))]
    )
    ladder += (
        [line for text in _lost(steps, measure) for line in _wrapped(text, width)]
        if measure
        else []
    )
    meaning = _wrapped(_meaning(shown, steps, measure), width) if measure else []
    modes = [line for text in _other_modes(shown, measure) for line in _wrapped(text, width)]
    # Reasons and bounds of invalid records follow as caveats.
    warned = [line for line in warning_lines(shown.summaries) if INVALID_TEXT not in line]
    warned = [line.removesuffix(RESUME) if shown.faults else line for line in warned]
    patterns = _patterns(shown, _values(steps))
    faults = [*dict.fromkeys((*shown.faults, *warned, *caveat_lines(shown.summaries), *patterns))]
    next_steps = [
        Text(f"{'next' if not at else '':8}{line}") for at, line in enumerate(shown.commands)
    ]
    if shown.page is not None:
        next_steps.append(Text(f"page    {shown.page}"))
    above = [*_title(shown, measure, width), *ladder, *([Text()] if meaning else []), *meaning]
    below = [Text(), *next_steps] if next_steps else []
    room = LINES - len(above) - len(below)
    warned = _faults(faults, width, max(min(room, _MOST_FAULT_LINES), 1))
    parts = [part for summary in shown.summaries for part in summary.modes.values()]
    if any(mostly_unread(part.endings, part.n_records) for part in parts):
        return [*warned, *above, *modes[: max(room - len(warned), 0)], *below]
    return [*above, *modes[: max(room - len(warned), 0)], *warned, *below]


def _faults(faults: Sequence[str], width: int, room: int) -> list[Text]:
    """Return as many faults as fit in ``room`` lines, each in at most two, and the number of the others."""
    lines: list[Text] = []
    for at, fault in enumerate(faults):
        wrapped = _wrapped(harmless(fault).replace("\n", "; "), width, "bold yellow", most=2)
        if len(lines) + len(wrapped) > room - (at + 1 < len(faults)):
            return [
                *lines,
                *_wrapped(
                    f"{count_text(len(faults) - at, 'more warning')}: --details", width, "yellow"
                ),
            ]
        lines += wrapped
    return lines


def _wrapped(text: str, width: int, style: str = "", *, most: int | None = None) -> list[Text]:
    lines = textwrap.wrap(text, width, break_on_hyphens=False, max_lines=most, placeholder=" …")
    return [Text(line, style=style) for line in lines]


def _title(shown: Screen, measure: tuple[Setting, str] | None, width: int) -> list[Text]:
    """Return benchmark with its size, and below it whether files are synthetic or open text is not in the score."""
    summary, common = shown.summaries[0], _common(shown, measure)
    name = harmless(benchmark_title(summary.benchmark, summary.benchmark_version)).strip()
    shard = f", shard {summary.shard}" if summary.shard else ""
    title = Text(f"{name}{', quick part' * summary.quick}{shard}", style="bold")
    if estimate := _estimate(shown.scored[0], measure, common):
        n_samples = summary.modes[measure[0].mode].n_samples if measure else estimate.n
        size = (
            f"{estimate.n} of {n_samples} samples have this score,"
            if estimate.n < n_samples and not common
            else ""
        )
        size = f": {size or count_text(estimate.n, 'sample')} in {count_text(estimate.n_clusters, 'cluster')}"
        title.append(f"{size}{' that every dose has' if common else ''}", "not bold")
    notes = open_text_notes(shown.summaries) if measure and measure[1] == FAS else []
    remark = "; ".join([*([SYNTHETIC_NOTE] if summary.synthetic else []), *notes])
    return [title, *(_wrapped(remark, width, "yellow") or [Text()])]


def _dose(summary: Summary) -> str:
    """Return the degradation and the faults of a run in words."""
    degrade, faults = (summary.benchmark_options.get(name) for name in ("degrade", "faults"))
    doses = [f"at {degrade}"] * bool(degrade) + [f"with faults {faults}"] * bool(faults)
    return ", ".join(doses) or "on the original pictures"


def _common(shown: Screen, measure: tuple[Setting, str] | None) -> frozenset[str]:
    """Return the samples that runs at different doses share; empty if all have the same dose."""
    if measure is None or len({_dose(each) for each in shown.summaries}) < 2:
        return frozenset()
    return common_samples(
        [each.tally for each in shown.scored if each.tally], measure[0].mode, measure[1]
    )


def _estimate(
    scored: Rescored, measure: tuple[Setting, str] | None, common: frozenset[str] = frozenset()
) -> Estimate | None:
    """Return the headline of a run (on ``common`` samples, if any); None if it has none or may not show it."""
    if (
        measure is None
        or not (part := scored.summary.modes.get(measure[0].mode))
        or not part.headline
    ):
        return None
    if common and scored.tally:
        return mean_on(common, scored.tally, measure[0].mode, measure[1])
    metric = (measure[0].of(scored.summary) or {}).get(measure[1])
    return metric.overall if metric else None


def rungs(shown: Screen, measure: tuple[Setting, str]) -> list[Rung]:
    """Return the lines of the ladder: floor, planner, models (or other baselines), and ceiling."""
    mode, common = measure[0].mode, _common(shown, measure)
    named = zip(run_names(shown.summaries), shown.scored, strict=True)
    runs = [(role_of(scored.summary, mode), name, scored) for name, scored in named]
    known = {(scored.summary.model, role) for role, _, scored in runs}
    beside = [
        (role_of(scored.summary, mode), name, scored)
        for name, scored in shown.references.scored.items()
    ]
    runs += [each for each in beside if (each[1], each[0]) not in known]
    runs.sort(key=lambda each: _ORDER.index(each[0] if each[0] in _ORDER else "model"))
    estimates = [_estimate(scored, measure, common) for *_, scored in runs]
    most = max((estimate.n for estimate in estimates if estimate), default=0)
    ladder: list[Rung] = []
    for (role, name, scored), estimate in zip(runs, estimates, strict=True):
        metric = (measure[0].of(scored.summary) or {}).get(measure[1])
        bounds = metric.bounds if metric and not estimate else None
        dose = _dose(scored.summary)
        part = scored.summary.modes.get(mode)
        fewer = f" (n {estimate.n})" if estimate and estimate.n < most else ""
        ladder.append(
            Rung(
                role,
                f"{name.removeprefix('baseline:')}{fewer}",
                estimate,
                bounds,
                scored.tally,
                dose,
                part.lost if part else None,
            )
        )
    return ladder


def _values(ladder: Sequence[Rung]) -> dict[str, float]:
    """Return the scores by role; without a ceiling that is only of a part of the samples."""
    most = max((rung.estimate.n for rung in ladder if rung.estimate), default=0)
    of_all = [
        rung
        for rung in ladder
        if rung.role != "ceiling" or (rung.estimate and rung.estimate.n == most)
    ]
    return {rung.role: rung.estimate.value for rung in of_all if rung.estimate}


def _patterns(shown: Screen, values: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on a ceiling below the floor, and on models that call no tool or always with one argument."""
    floor, ceiling = values.get("floor", 0.0), values.get("ceiling", 1.0)
    if ceiling < floor:
        yield f"The ceiling ({percent(ceiling)}) is below the floor ({percent(floor)}): guessing beats these tools."
    for name, summary in zip(run_names(shown.summaries), shown.summaries, strict=True):
        if summary.model.startswith("baseline:"):
            continue
        with_tools = {
            mode: part
            for mode, part in summary.modes.items()
            if mode != "no-tool" and part.n_records
        }
        if silent := [mode for mode, part in with_tools.items() if not part.counts.tool_calls]:
            yield f"{name} called no tool in {' and '.join(silent)}."
        for part in with_tools.values():
            for each in part.counts.constant_arguments:
                yield (
                    f"All {each.calls} calls of {each.tool} by {name} have {each.argument} "
                    f"{value_text(each.value)}; those of the reference vary."
                )


def _ladder(ladder: Sequence[Rung], measure: tuple[Setting, str], width: int) -> list[Text]:
    setting, metric = measure
    out_of = METRICS[metric].out_of
    spare = width - _ROLE_CELLS - _VALUE_CELLS - 2
    names = max(
        _NAME_CELLS,
        min(max((len(rung.name) for rung in ladder), default=0) + 1, spare - _BAR_CELLS),
    )
    cells = spare - names
    left = f"{_TITLES.get(setting.mode, setting.mode)}, {METRICS[metric].label}, 95 % interval"
    if cells < _LEAST_BAR_CELLS:  # a narrow terminal: no bars, and names as wide as what is left
        cells, names, lines = 0, max(names + min(cells + 2, 0), 8), [Text(left, style="dim")]
    else:
        axis = f"0{f'{out_of // 2}':^{cells - 1 - len(str(out_of))}}{out_of}"
        lines = [
            Text(f"{shortened(left, width - cells - 2):{width - cells - 1}} {axis}", style="dim")
        ]
    middle = [rung for rung in ladder if rung.role in ("model", "baseline")]
    hidden = middle[_MOST_RUNS:]
    for rung in (rung for rung in ladder if rung not in hidden):
        if rung.role == "ceiling" and hidden:
            lines.append(Text(f"{len(hidden)} more: --details", style="dim"))
        lines.append(_rung_line(rung, names, cells, out_of))
    if cells and not any(rung.role == "model" for rung in ladder):
        value = _values(ladder)
        bar = _span(value.get("floor", 0.0), value.get("ceiling", 1.0), cells, "·")
        lines.append(
            Text(
                f"{'':{_ROLE_CELLS}}{'your model goes here':{names}}{'?':>5}{'':{_VALUE_CELLS - 5}} {bar}"
            )
        )
    return [*lines, Text(f"{METRICS[metric].label} = {METRICS[metric].meaning}", style="dim")]


def _rung_line(rung: Rung, names: int, cells: int, out_of: int) -> Text:
    style = _STYLES.get(rung.role, "")
    name = shortened_name(rung.name, names - 1)
    line = Text(f"{rung.role:{_ROLE_CELLS}}{name:{names}}", style=style)
    if rung.estimate is None:
        line.append(f"{'—':>5}{'':{_VALUE_CELLS - 5}} ", style="")
        if rung.bounds and cells:
            line.append(_span(rung.bounds.lower, rung.bounds.upper, cells, "?"), style="yellow")
        return line
    value, interval = rung.estimate.value, rung.estimate.interval
    digits = 0 if out_of == 100 else 1
    limits = (
        f" {out_of * interval.lower:.{digits}f}–{out_of * interval.upper:.{digits}f}"
        if interval
        else ""
    )
    line.append(f"{on_scale(value, out_of):>5}{limits:{_VALUE_CELLS - 5}} ")
    low, high = (interval.lower, interval.upper) if interval else (value, value)
    for mark, start, end in (("█", 0.0, low), ("▓", low, value), ("░", value, high)):
        line.append(mark * (_cell(end, cells) - _cell(start, cells)), style=style)
    return line


def shortened_name(name: str, cells: int) -> str:
    """Return beginning and end of a name that is too long."""
    return name if len(name) <= cells else f"{name[: (cells - 1) // 2]}…{name[-(cells // 2) :]}"


def _cell(share: float, cells: int) -> int:
    return round(max(0.0, min(share, 1.0)) * cells)


def _span(low: float, high: float, cells: int, mark: str) -> str:
    return f"{'':{_cell(low, cells)}}{mark * max(_cell(high, cells) - _cell(low, cells), 1)}"


def _lost(ladder: Sequence[Rung], measure: tuple[Setting, str]) -> Iterator[str]:
    """Yield a line on where each model, or else the planner, lost its points."""
    split = [rung for rung in ladder if rung.lost and rung.estimate]
    models = [rung for rung in split if rung.role == "model"]
    for rung in models[:_MOST_PLACES] or [rung for rung in split if rung.role == "planner"]:
        lost = rung.lost.run.parts if rung.lost and measure[1] == FAS else {}
        tools = {
            part.removeprefix(TOOL): value for part, value in lost.items() if part.startswith(TOOL)
        }
        whole = {part: value for part, value in lost.items() if not part.startswith(TOOL)}
        whole |= {"tools": sum(tools.values())} if tools else {}
        parts = sorted(
            ((value, part) for part, value in whole.items() if value >= _LEAST_LOST),
            reverse=True,
        )
        named = ", ".join(sorted(tools, key=lambda tool: -tools[tool])[:_MOST_PLACES])
        texts = [
            f"{part} {value:.0f}{f' ({named})' if part == 'tools' else ''}" for value, part in parts
        ]
        if texts:
            yield f"{rung.name} lost {sum(whole.values()):.0f} points: {', '.join(texts)}."


def _meaning(shown: Screen, ladder: Sequence[Rung], measure: tuple[Setting, str]) -> str:
    """Return the sentences on what the ladder says."""
    if shard := shown.summaries[0].shard:
        return f"{SHARD.format(shard)[0].upper()}{SHARD.format(shard)[1:]}. Floor and ceiling are those of its samples."
    out_of, common = METRICS[measure[1]].out_of, _common(shown, measure)
    floor = next((rung for rung in ladder if rung.role == "floor" and rung.estimate), None)
    ceilings = [
        (rung.dose, rung.estimate) for rung in ladder if rung.role == "ceiling" and rung.estimate
    ]
    sentences = [_ceiling_sentence(shown, ladder, ceilings, out_of)] if ceilings else []
    if floor and floor.estimate:
        sentences.append(
            f"Guessing from the question alone gets {on_scale(floor.estimate.value, out_of)}."
        )
    models, ceiling = (
        [rung for rung in ladder if rung.role == "model"],
        _values(ladder).get("ceiling"),
    )
    for rung in models if len(models) <= _MOST_PLACES else ():
        sentences += _place(rung, floor, ceiling if len(ceilings) == 1 else None, measure, common)
    estimates = [each for scored in shown.scored if (each := _estimate(scored, measure, common))]
    if shown.summaries[0].quick and estimates:
        least = detectable_points(estimates, out_of)
        apart = f": only gaps over about {least} points are detectable" if least else ""
        n = max(each.n for each in estimates)
        sentences.append(f"{count_text(n, 'sample')} are too few to rank models{apart}.")
    return " ".join([*sentences, *_caveats(shown)])


def _ceiling_sentence(
    shown: Screen, ladder: Sequence[Rung], ceilings: Sequence[tuple[str, Estimate]], out_of: int
) -> str:
    """Return what a model gets that makes every reference call, by dose if there are several."""
    several, loses = len(ceilings) > 1, any(each.value < 1 for _, each in ceilings)
    values = [f"{on_scale(each.value, out_of)}{f' {dose}' * several}" for dose, each in ceilings]
    faulty = any(each.benchmark_options.get("faults") for each in shown.summaries)
    n, most = ceilings[0][1].n, max(rung.estimate.n for rung in ladder if rung.estimate)
    where = f" on the {n} of {most} samples whose answer follows from the calls" * (n < most)
    where = where or f" on these {count_text(n, 'sample')}" * (not loses)
    blamed = "the tools" + ", with these faults," * faulty
    blamed += " or wrong labels" * (
        not all(each.synthetic for each in shown.summaries)
    )  # drawn labels are exact
    rest = f": {blamed} lose the rest" * loses
    return f"A model that makes every reference call gets {', '.join(values)}{where}{rest}."


def _caveats(shown: Screen) -> Iterator[str]:
    """Yield sentences on policies that are given the reference, and on agents that were not isolated."""
    models = {*(summary.model for summary in shown.summaries), *shown.references.scored}
    given = [model for model in (PLANNER, CEILING) if model in models]
    given += [each.model for each in shown.summaries if each.privileged]
    privileged = list(dict.fromkeys(model.removeprefix("baseline:") for model in given))
    if privileged:
        names = " and ".join(filter(None, (", ".join(privileged[:-1]), privileged[-1])))
        one = "sees reference solutions: a yardstick, not a result"
        several = "see reference solutions: yardsticks, not results"
        yield f"{names} {one if len(privileged) == 1 else several}."
    if CEILING in shown.references.recorded and all(
        each.model != CEILING for each in shown.summaries
    ):
        yield _RECORDED
    if any(summary.unsealed for summary in shown.summaries):
        yield UNSEALED_NOTE
    yield "Words: docs/glossary.md."


def _place(
    rung: Rung,
    floor: Rung | None,
    ceiling: float | None,
    measure: tuple[Setting, str],
    common: frozenset[str],
) -> Iterator[str]:
    """Yield a sentence on a model's place between floor and ceiling, by its paired difference from the floor."""
    if not (rung.estimate and rung.tally and floor and floor.estimate and floor.tally):
        return
    short, guessed = shortened_name(rung.name, 40), floor.estimate.value
    difference = paired_difference(floor.tally, rung.tally, measure[0].mode, measure[1], common)
    if difference is None:
        return
    above = ceiling is not None and rung.estimate.value > ceiling
    if difference.p is None:
        yield f"{short}: too few clusters (under {MIN_CLUSTERS}) to say whether it beats guessing."
    elif difference.p >= 1 - LEVEL:
        yield f"{short}: no difference from guessing shown on {count_text(difference.n, 'sample')}."
    elif difference.value < 0:
        yield f"{short} is below guessing by {whole_points(-difference.value, METRICS[measure[1]].out_of)} points."
    elif ceiling is not None and ceiling > guessed and not above:
        share = (rung.estimate.value - guessed) / (ceiling - guessed)
        yield f"{short} makes {100 * share:.0f} % of the way from guessing to the ceiling."
    if above:
        yield f"{short} is above the ceiling: other calls, or none, can get more than those of the reference."


def _other_modes(shown: Screen, measure: tuple[Setting, str] | None) -> Iterator[str]:
    """Yield a line on the refusals of each model, and one on its score in each other mode that is scored alike."""
    names = run_names(shown.summaries)
    for name, scored in zip(names, shown.scored, strict=True):
        summary = scored.summary
        of_whom = f"{shortened_name(name, 30)}: " if len(names) > 1 else ""
        tokens_in, cached, tokens_out = tokens_of(summary.modes.values())
        if tokens_in:
            yield f"{of_whom}{prompt_tokens_text(tokens_in, cached)}, {amount_text(tokens_out)} out."
        for mode, part in summary.modes.items() if measure else ():
            if not part.headline or measure is None:
                continue
            if mode != measure[0].mode:
                text = _other_score(mode, part, scored, measure[1])
            else:
                text = (
                    ""
                    if len(names) > 1 and summary.model.startswith("baseline:")
                    else _refusals(part)
                )
            if text:
                yield f"{of_whom}{text[0].lower() if of_whom else text[0]}{text[1:]}"


def _refusals(part: ModeSummary) -> str:
    """Return how many unanswerable questions were answered, and how many answerable ones were refused."""
    answered, refused = (
        part.metrics[name].overall if name in part.metrics else None for name in _REFUSALS
    )
    texts = [f"Answered {_share_text(answered, part)} unanswerable questions"] if answered else []
    verb = "gave" if texts else "Gave"
    texts += (
        [f"{verb} no value or chart in {_share_text(refused, part)} answerable questions"]
        if refused
        else []
    )
    sentences = [f"{'; '.join(texts)}."] if texts else []
    return " ".join([*sentences, *stranger_sentences(part)])


def stranger_sentences(part: ModeSummary) -> Iterator[str]:
    """Yield on how many pictures of something else a name was given, with the interval; nothing without such ones."""
    metric = part.metrics.get(FALSE_CONFIDENCE)
    groups = metric.by_group.get(_STRANGERS, {}) if metric is not None else {}
    for folder, estimate in groups.items():
        text = f"Named something on {_share_text(estimate, part)} strangers ({folder}"
        if interval := estimate.interval:
            text += f"; {100 * interval.lower:.0f} to {100 * interval.upper:.0f} %"
        yield f"{text})."


def _share_text(estimate: Estimate, part: ModeSummary) -> str:
    share = (
        f"{100 * estimate.value:.0f} %" if part.epochs > 1 else f"{estimate.value * estimate.n:.0f}"
    )
    return f"{share} of {estimate.n}"


def _other_score(mode: Mode, part: ModeSummary, scored: Rescored, metric: str) -> str:
    """Return a sentence on the headline metric in another mode, with the gain by tools; empty if it has none."""
    out_of, of_mode = METRICS[metric].out_of, part.metrics.get(metric)
    if of_mode is None:
        return ""
    paired = scored.summary.no_tool_part if mode == "no-tool" else None
    if scored.tally is None or paired is None or metric not in paired.gain:
        return (
            f"{_TITLES[mode]}: {METRICS[metric].label} {on_scale(of_mode.overall.value, out_of)}."
        )
    pair = scored.tally.pair_by_tools(metric)
    assert pair is not None  # there is a gain
    gain, (with_tools, without) = (
        paired.gain[metric].overall,
        (on_scale(each, out_of) for each in pair.means),
    )
    p = (
        "not significant"
        if gain.p_adjusted is not None
        else f"fewer than {MIN_CLUSTERS} clusters, not tested"
    )
    if gain.differs():
        p = (
            f"p {gain.p_adjusted:.3f}"
            if gain.p_adjusted and gain.p_adjusted >= 0.001
            else "p <0.001"
        )
    questions = f"{count_text(gain.n, 'question')} that can be asked without tools"
    return f"On the {questions}: {without} without, {with_tools} with tools ({points(gain.value)}, {p})."
