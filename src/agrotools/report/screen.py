"""The screen at the end of ``agrotools eval``: a ladder from floor to ceiling, its meaning, faults and next steps.

At most 25 lines at 80 columns or more; bars are left out below 56.
The tables of :mod:`agrotools.report.tables` hold everything else.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import IO

from rich.text import Text

from agrotools.core import Mode
from agrotools.core.installed import scope_of
from agrotools.core.texts import benchmark_title, count_text, tokens_text
from agrotools.report.comparison import ModelVerdict, model_verdict
from agrotools.report.ladder import (
    TITLES,
    Rung,
    common_to_doses,
    estimate_of,
    ladder_lines,
    rungs,
    shortened_name,
    values_by_role,
)
from agrotools.report.layout import (
    NO_CONSTANT,
    UNSEALED_NOTE,
    detectable_points,
    harmless,
    interval_text,
    lacks_constant,
    on_scale,
    open_text_notes,
    percent,
    points,
    run_names,
    value_text,
    whole_points,
)
from agrotools.report.settings import SETTINGS, Measure, has_table, settings_for
from agrotools.report.tables import (
    ONLY_OPEN_TEXT,
    SHARD,
    caveat_lines,
    invalid_line,
    warning_lines,
)
from agrotools.report.terminal import console_for
from agrotools.report.verdicts import NO_DIFFERENCE_FROM_FLOOR, TOO_FEW_FOR_FLOOR
from agrotools.runner.rescore import Rescored
from agrotools.runner.yardsticks import CEILING, PLANNER, Yardsticks
from agrotools.scoring.attribution import CAUSES, FAULT, TOOL, Attribution
from agrotools.scoring.comparisons import paired_difference
from agrotools.scoring.event_counts import (
    INVALID,
    INVALID_TEXT,
    RESUME,
    is_reported,
    mostly_unread,
)
from agrotools.scoring.metrics import (
    FALSE_CONFIDENCE,
    FALSE_REFUSAL,
    FAS,
    FAS_TEXT,
    METRICS,
    OPEN_TEXT_FLOOR,
)
from agrotools.scoring.statistics import LEVEL, MIN_CLUSTERS, Estimate
from agrotools.scoring.summary import ModeSummary, Summary, tokens_of

LINES, WIDTH = 25, 100
"""Most lines of the screen, and its width on a wide terminal."""
_MOST_PLACES = 2
"""Most models whose place on the ladder, and whose lost points, are told; and most tools that are named for these."""
_MOST_FAULT_LINES = 10
"""Most lines of warnings."""
_MOST_LINES_OF_FAULT = 3
"""Most lines of one warning: its remedy stands at its end."""
_MOST_LINES_OF_SCORES = 3
"""Most lines of a further metric: its meaning, and the scores of some six runs, as many as the ladder shows."""
_STRANGERS = "strangers"
"""Group of samples about pictures that show nothing of what own photos are asked about; by their folder."""
_LEAST_LOST = 0.5
"""Points from which a part is shown; ``attribute`` shows all parts."""
_DRAWN = "The pictures are drawn: scores say nothing about real fields."
_NO_BREAK = "\N{NO-BREAK SPACE}"
"""Space in a command at which no line ends: a space once the lines are made."""
_ATTRIBUTE = "agrotools attribute".replace(" ", _NO_BREAK)
_TERMS = f"Terms: {'agrotools docs glossary'.replace(' ', _NO_BREAK)}."
_RECORDED = (
    "The ceiling is from stored tool results. For your own tools, run --model baseline:oracle."
)


@dataclass(frozen=True)
class Screen:
    """Everything that the screen shows: scored runs, yardsticks, further faults, and next commands.

    ``modes``: modes that the user asked for, of which the headline is one; empty for all.
    """

    scored: Sequence[Rescored]
    yardsticks: Yardsticks = field(default_factory=Yardsticks)
    faults: Sequence[str] = ()
    commands: Sequence[str] = ()
    page: Path | None = None
    modes: Sequence[Mode] = ()

    @property
    def summaries(self) -> list[Summary]:
        return [each.summary for each in self.scored]

    @cached_property
    def measure(self) -> Measure | None:
        """Setting and metric that the runs are judged by; None if they have no score."""
        return headline(self.summaries, self.modes)

    @cached_property
    def ladder(self) -> list[Rung]:
        """Floor, planner, models and ceiling with their scores; empty if the runs have no score."""
        return rungs(self.scored, self.yardsticks, self.measure) if self.measure else []

    @cached_property
    def verdict(self) -> ModelVerdict | None:
        """What the difference of the two best models shows; None with fewer than two."""
        if self.measure is None:
            return None
        setting, metric = self.measure
        return model_verdict(self.scored, run_names(self.summaries), setting.mode, metric)

    @cached_property
    def warnings(self) -> list[str]:
        """Further faults, then warnings, caveats and odd patterns of the runs, each once."""
        # Reasons and bounds of invalid records follow as caveats.
        warnings = [text for text in warning_lines(self.summaries) if INVALID_TEXT not in text]
        if self.faults:
            warnings = [text.removesuffix(RESUME) for text in warnings]
        caveats = caveat_lines(self.summaries)
        patterns = _patterns(self, values_by_role(self.ladder))
        causes = _invalid_first(self.summaries)
        return list(dict.fromkeys((*self.faults, *causes, *warnings, *caveats, *patterns)))


def _invalid_first(summaries: Sequence[Summary]) -> Iterator[str]:
    """Yield why records are invalid, of the modes that lost more records to this than to any other ending.

    Other warnings on these modes may have the same cause.
    """
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        for mode, part in summary.modes.items():
            is_warned = is_reported(part.endings.get(INVALID, 0), part)
            if is_warned and part.invalid.n == max(part.endings.values()):
                yield invalid_line(name, mode, part)


def headline(summaries: Sequence[Summary], modes: Sequence[Mode] = ()) -> Measure | None:
    """Return the setting and metric that runs are judged by; None if they have no score.

    The end-to-end mode precedes no-tool, the tables of a benchmark plug-in and step-by-step; settings of ``modes``
    precede all others. The metric is the one that runs are compared by in this mode, else the first of the table.
    """
    ours = {setting.mode: setting for setting in SETTINGS if setting.whole_mode}
    of_plugins = [setting for setting in settings_for(summaries) if setting not in SETTINGS]
    settings = [ours["end-to-end"], ours["no-tool"], *of_plugins, ours["step-by-step"]]
    if modes:
        settings.sort(key=lambda setting: setting.mode not in modes)
    for setting in settings:
        if not has_table(setting, summaries):
            continue
        measured = {metric for summary in summaries for metric in setting.of(summary) or {}}
        metrics = [metric for metric in setting.metrics if metric in measured]
        if metrics:
            compared = [name for name in metrics if setting.mode in METRICS[name].compared_in]
            return setting, (compared or metrics)[0]
    return None


def _why_no_headline(summaries: Sequence[Summary]) -> str:
    parts = [part for summary in summaries for part in summary.modes.values()]
    if any(OPEN_TEXT_FLOOR in part.metrics for part in parts):
        return f"No FAS: {ONLY_OPEN_TEXT}."
    if not any(part.counts.formless for part in parts):
        return "No records to score yet."
    scores = [
        percent(part.metrics[FAS_TEXT].overall.value) for part in parts if FAS_TEXT in part.metrics
    ]
    shown = f" ({METRICS[FAS_TEXT].label} {', '.join(scores)})" if scores else ""
    how = (
        "A Python function submits a form if it has a parameter form, "
        "other agents if they answer form_request."
    )
    return f"No FAS, because the agent submits no answer form: only its own words are scored{shown}. {how}"


def print_screen(shown: Screen, *, file: IO[str] | None = None) -> None:
    """Print :func:`screen`: in colour on a terminal, else as plain text."""
    console = console_for(file)
    for line in screen(shown, min(console.width, WIDTH)):
        console.print(line, soft_wrap=True)


def screen(shown: Screen, width: int = WIDTH) -> list[Text]:
    """Return the lines of the screen, at most :data:`LINES`."""
    measure, ladder = shown.measure, shown.ladder
    if measure:
        scores = ladder_lines(ladder, measure, width)
        if verdict := shown.verdict:
            scores += _wrapped(_verdict_text(verdict), width, "bold")
        for text in _further_scores(shown.summaries, measure):
            scores += _wrapped(text, width, most=_MOST_LINES_OF_SCORES)
        for text in _lost(ladder, measure):
            scores += _wrapped(text, width)
        if meaning := _wrapped(_meaning(shown, ladder, measure), width):
            scores += [Text(), *meaning]
    else:
        scores = [Text(_why_no_headline(shown.summaries))]
    below = _next_steps(shown)
    above = [*_title(shown, measure, width), *scores]
    if len(above) + len(below) + bool(shown.warnings) > LINES:
        # The page and the list of benchmarks say what scores measure, too.
        above = [*_title(shown, measure, width, with_scope=False), *scores]

    # Faults get what room is left, and one line in any case; other modes get the rest.
    room = LINES - len(above) - len(below)
    faults = _fault_lines(shown.warnings, width, max(min(room, _MOST_FAULT_LINES), 1))
    modes = [line for text in _other_modes(shown, measure) for line in _wrapped(text, width)]
    modes = modes[: max(room - len(faults), 0)]

    parts = [part for summary in shown.summaries for part in summary.modes.values()]
    if any(mostly_unread(part.endings, part.n_records) for part in parts):
        return [*faults, *above, *modes, *below]
    return [*above, *modes, *faults, *below]


def _verdict_text(verdict: ModelVerdict) -> str:
    """Return which of the two best models is better, and that they are the best of several."""
    if verdict.n_models > 2:
        return f"The two best of {verdict.n_models} models: {verdict.text}"
    starts_with_model = verdict.is_shown
    return verdict.text if starts_with_model else f"{verdict.text[0].upper()}{verdict.text[1:]}"


def _further_scores(summaries: Sequence[Summary], measure: Measure) -> Iterator[str]:
    """Yield a line for each further metric that runs are compared by in the mode of the headline, with its meaning."""
    setting, headline_metric = measure
    parts = [summary.modes.get(setting.mode) for summary in summaries]
    measured = {name for part in parts if part and part.headline for name in part.metrics}
    for name in sorted(measured - {headline_metric}):
        metric = METRICS[name]
        if setting.mode not in metric.compared_in:
            continue
        scores: list[str] = []
        for run, part in zip(run_names(summaries), parts, strict=True):
            if part is None or not part.headline or name not in part.metrics:
                continue
            estimate = part.metrics[name].overall
            of_whom = f"{shortened_name(run, 30)} " if len(summaries) > 1 else ""
            interval = interval_text(estimate.interval, partial(on_scale, out_of=metric.out_of))
            limits = f"{interval}, " if interval else ""
            scores.append(
                f"{of_whom}{on_scale(estimate.value, metric.out_of)} ({limits}n {estimate.n})"
            )
        yield f"{metric.label} ({metric.meaning}): {', '.join(scores)}."


def _next_steps(shown: Screen) -> list[Text]:
    """Return an empty line, the next commands and the place of the page; nothing if there are none."""
    lines: list[Text] = []
    for at, command in enumerate(shown.commands):
        label = "next" if at == 0 else ""
        lines.append(Text(f"{label:8}{command}"))
    if shown.page is not None:
        lines.append(Text(f"page    {shown.page}"))
    return [Text(), *lines] if lines else []


def _fault_lines(faults: Sequence[str], width: int, room: int) -> list[Text]:
    """Return as many faults as fit in ``room`` lines, and the number of the others."""
    lines: list[Text] = []
    for at, fault in enumerate(faults):
        text = harmless(fault).replace("\n", "; ")
        wrapped = _wrapped(text, width, "bold yellow", most=_MOST_LINES_OF_FAULT)
        n_left = len(faults) - at
        # All but the last fault leave a line for the number of the others.
        most_lines = room - 1 if n_left > 1 else room
        if len(lines) + len(wrapped) > most_lines:
            others = f"{count_text(n_left, 'more warning')}: --details"
            return [*lines, *_wrapped(others, width, "yellow")]
        lines += wrapped
    return lines


def _wrapped(text: str, width: int, style: str = "", *, most: int | None = None) -> list[Text]:
    lines = textwrap.wrap(text, width, break_on_hyphens=False, max_lines=most, placeholder=" …")
    return [Text(line.replace(_NO_BREAK, " "), style=style) for line in lines]


def _title(
    shown: Screen, measure: Measure | None, width: int, *, with_scope: bool = True
) -> list[Text]:
    """Return benchmark with its size, and below it what a score says and whether open answers are not scored.

    Without the first, or of a benchmark that does not tell it, whether its pictures are drawn.
    """
    summary = shown.summaries[0]
    name = harmless(benchmark_title(summary.benchmark, summary.benchmark_version)).strip()
    shard = f", shard {summary.shard}" if summary.shard else ""
    title = Text(f"{name}{shard}", style="bold")
    title.append(_size_text(shown, measure), "not bold")
    scope = scope_of(summary.benchmark) if with_scope else ""
    remarks = [scope or (_DRAWN if summary.synthetic else "")]
    if measure and measure[1] == FAS:
        remarks += [f"{note[0].upper()}{note[1:]}." for note in open_text_notes(shown.summaries)]
    return [title, *(_wrapped(" ".join(filter(None, remarks)), width, "yellow") or [Text()])]


def _size_text(shown: Screen, measure: Measure | None) -> str:
    """Return how many questions were asked, and of how many the first run has the score; empty if it has none."""
    common = common_to_doses(shown.scored, measure)
    estimate = estimate_of(shown.scored[0], measure, common)
    if measure is None or estimate is None:
        return ""
    summary = shown.summaries[0]
    n_samples = summary.modes[measure[0].mode].n_samples
    if common:
        size = f"{count_text(estimate.n, 'question')} that every dose has"
    elif estimate.n < n_samples:
        size = f"{count_text(n_samples, 'question')}, {estimate.n} scored"
    else:
        size = count_text(n_samples, "question")
    part = ", the quick part (--quick)" if summary.quick else ""
    if types := summary.task_types:
        whole = "the quick part" if summary.quick else "the benchmark"
        part = f", of {types.n_of:,} of {whole}: only {harmless(types.words)}"
    return f": {size}{part}"


def _patterns(shown: Screen, values: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on a ceiling below the floor, and on models that call no tool or always with one argument.

    Calls are those of the modes that the user asked for.
    """
    floor, ceiling = values.get("floor", 0.0), values.get("ceiling", 1.0)
    if ceiling < floor:
        yield f"The ceiling ({percent(ceiling)}) is below the floor ({percent(floor)}): guessing beats these tools."
    for name, summary in zip(run_names(shown.summaries), shown.summaries, strict=True):
        if summary.model.startswith("baseline:"):
            continue
        with_tools = {
            mode: part
            for mode, part in summary.modes.items()
            if mode != "no-tool" and part.n_records and (not shown.modes or mode in shown.modes)
        }
        silent = [mode for mode, part in with_tools.items() if not part.counts.tool_calls]
        if silent:
            yield f"{name} called no tool in {' and '.join(silent)}."
        for part in with_tools.values():
            for each in part.counts.constant_arguments:
                yield (
                    f"All {each.calls} calls of {each.tool} by {name} have {each.argument}="
                    f"{value_text(each.value)}; in the reference, this argument varies."
                )


def _lost(ladder: Sequence[Rung], measure: Measure) -> Iterator[str]:
    """Yield a line on where each model, or else the planner, lost its points."""
    if measure[1] != FAS:
        return
    split = [rung for rung in ladder if rung.lost and rung.estimate]
    models = [rung for rung in split if rung.role == "model"]
    for rung in models[:_MOST_PLACES] or [rung for rung in split if rung.role == "planner"]:
        if rung.lost and (text := _lost_text(shortened_name(rung.name, 40), rung.lost)):
            yield text


def _lost_text(name: str, lost: Attribution) -> str:
    """Return where points were lost, the most first, with the tools that lost most; empty if none were lost."""
    by_tool: dict[str, float] = {}
    by_part: dict[str, float] = {}
    for part, value in lost.run.parts.items():
        if part.startswith(TOOL):
            by_tool[part.removeprefix(TOOL)] = value
        else:
            by_part[part] = value
    if by_tool:
        by_part[TOOL] = sum(by_tool.values())
    worst_tools = sorted(by_tool, key=lambda tool: -by_tool[tool])[:_MOST_PLACES]

    texts: list[str] = []
    for part in sorted(by_part, key=lambda part: -by_part[part]):
        if by_part[part] >= _LEAST_LOST:
            tools = f" ({', '.join(worst_tools)})" if part == TOOL else ""
            texts.append(f"{CAUSES[part].label} {by_part[part]:.1f}{tools}")
    if not texts:
        return ""
    told = f"Where {name} lost {sum(by_part.values()):.1f} points: {', '.join(texts)}."
    if lost.unknown_results:
        # Without the results of these calls, no tool is blamed for what it would have returned.
        calls = count_text(lost.unknown_results, "more call")
        # What these calls return decides which others are made.
        told += f" This split is an estimate. {_ATTRIBUTE} makes about {calls} to measure it."
    return told


def _meaning(shown: Screen, ladder: Sequence[Rung], measure: Measure) -> str:
    """Return the sentences on what the ladder says."""
    if shard := shown.summaries[0].shard:
        of_shard = SHARD.format(shard)
        return f"{of_shard[0].upper()}{of_shard[1:]}. Floor and ceiling are computed on the same questions."
    out_of, common = METRICS[measure[1]].out_of, common_to_doses(shown.scored, measure)
    sentences: list[str] = []

    ceilings = [
        (rung.dose, rung.estimate) for rung in ladder if rung.role == "ceiling" and rung.estimate
    ]
    if ceilings:
        sentences.append(_ceiling_sentence(shown, ladder, ceilings, measure))
    floor = next((rung for rung in ladder if rung.role == "floor" and rung.estimate), None)

    models = [rung for rung in ladder if rung.role == "model"]
    ceiling = values_by_role(ladder).get("ceiling") if len(ceilings) == 1 else None
    if len(models) <= _MOST_PLACES:
        for rung in models:
            sentences += _place(rung, floor, ceiling, measure, common)

    estimates = [each for scored in shown.scored if (each := estimate_of(scored, measure, common))]
    if shown.summaries[0].quick and estimates:
        sentences.append(_quick_sentence(estimates, out_of))
    if lacks_constant(shown.summaries[0].modes[measure[0].mode]):
        sentences.append(NO_CONSTANT)
    return " ".join([*sentences, *_caveats(shown, ladder)])


def _quick_sentence(estimates: Sequence[Estimate], out_of: int) -> str:
    """Return about which difference of two models so few questions find, as ``detectable`` is defined elsewhere."""
    n = max(each.n for each in estimates)
    questions = count_text(n, "question")
    if least := detectable_points(estimates, out_of):
        # The scores of another model are not known yet, so that what pairing gains cannot be counted.
        return (
            f"With {questions}, a true difference of about {least} points between two models is found in "
            "4 of 5 cases, and a smaller one if both fail on the same questions."
        )
    return f"{questions} cannot rank models."


def _ceiling_sentence(
    shown: Screen,
    ladder: Sequence[Rung],
    ceilings: Sequence[tuple[str, Estimate]],
    measure: Measure,
) -> str:
    """Return the score with every call right, and what costs the rest; by dose if there are several."""
    out_of = METRICS[measure[1]].out_of
    values: list[str] = []
    for dose, estimate in ceilings:
        value = on_scale(estimate.value, out_of)
        values.append(f"{value} {dose}" if len(ceilings) > 1 else value)

    n = ceilings[0][1].n
    most = max(rung.estimate.n for rung in ladder if rung.estimate)
    where = ""
    if n < most:
        where = f" on the {n} of {most} questions whose answer follows from the calls"

    score = f"every call right, the score is {', '.join(values)}{where}"
    if all(estimate.value >= 1 for _, estimate in ceilings):
        return f"With {score}."
    blamed = CAUSES[TOOL].label + _without_backend(shown, measure[0].mode)
    if any(each.benchmark_options.get("faults") for each in shown.summaries):
        blamed += f" and {CAUSES[FAULT].label}"
    if not all(each.synthetic for each in shown.summaries):  # drawn labels are exact
        blamed += " or wrong labels"
    cost = "the rest"
    if len(ceilings) == 1:
        cost = f"{on_scale(1 - ceilings[0][1].value, out_of)} points"
    return f"Even with {score}: {blamed} cost {cost}."


def _without_backend(shown: Screen, mode: Mode) -> str:
    """Return on how many questions a tool of the ceiling had no back-end, in brackets; empty if all had one."""
    runs = [*shown.yardsticks.scored.values(), *shown.scored]
    ceiling = next((each.summary for each in runs if each.summary.model == CEILING), None)
    if ceiling is None or mode not in ceiling.modes:
        return ""
    missing = ceiling.modes[mode].counts.missing_backends
    texts = [
        f"{each.tool} has no back-end for {count_text(each.samples, 'question')}"
        for each in missing
    ]
    return f" ({'; '.join(texts)})" if texts else ""


def _caveats(shown: Screen, ladder: Sequence[Rung]) -> Iterator[str]:
    """Yield sentences on policies that are given the reference, and on agents that were not isolated."""
    roles = {rung.role for rung in ladder}
    if "planner" in roles and "model" not in roles:
        yield "planner, which copies steps, stands in for your model."
    models = {*(summary.model for summary in shown.summaries), *shown.yardsticks.scored}
    shown_baselines = {f"baseline:{rung.name}" for rung in ladder}
    given = [model for model in (PLANNER, CEILING) if model in models & shown_baselines]
    given += [each.model for each in shown.summaries if each.privileged]
    privileged = list(dict.fromkeys(model.removeprefix("baseline:") for model in given))
    if len(privileged) == 1:
        yield f"{privileged[0]} uses the benchmark's solutions, so its score is a yardstick, not a result."
    elif privileged:
        names = f"{', '.join(privileged[:-1])} and {privileged[-1]}"
        yield f"{names} use the benchmark's solutions, so their scores are yardsticks, not results."
    if CEILING in shown.yardsticks.recorded and all(
        each.model != CEILING for each in shown.summaries
    ):
        yield _RECORDED
    if any(summary.unsealed for summary in shown.summaries):
        yield UNSEALED_NOTE
    yield _TERMS


def _place(
    rung: Rung,
    floor: Rung | None,
    ceiling: float | None,
    measure: Measure,
    common: frozenset[str],
) -> Iterator[str]:
    """Yield a sentence on a model's place between floor and ceiling, by its paired difference from the floor."""
    if not (rung.estimate and rung.tally and floor and floor.estimate and floor.tally):
        return
    difference = paired_difference(floor.tally, rung.tally, measure[0].mode, measure[1], common)
    if difference is None:
        return
    short = shortened_name(rung.name, 40)
    lowest = floor.estimate.value
    above = ceiling is not None and rung.estimate.value > ceiling
    if difference.p is None:
        yield f"{short}: {TOO_FEW_FOR_FLOOR}"
    elif difference.p >= 1 - LEVEL:
        questions = count_text(difference.n, "question")
        yield f"On {questions}, the score of {short} {NO_DIFFERENCE_FROM_FLOOR}."
    elif difference.value < 0:
        lost = whole_points(-difference.value, METRICS[measure[1]].out_of)
        yield f"The score of {short} is {lost} points below the floor."
    elif ceiling is not None and ceiling > lowest and not above:
        share = (rung.estimate.value - lowest) / (ceiling - lowest)
        yield f"The score of {short} lies {100 * share:.0f} % of the way from floor to ceiling."
    if above:
        yield (
            f"The score of {short} is above the ceiling, because other calls, or none, can score more "
            "than the calls of the reference."
        )


def _other_modes(shown: Screen, measure: Measure | None) -> Iterator[str]:
    """Yield a line on the refusals of each model, and one on its score in each other mode that is scored alike."""
    names = run_names(shown.summaries)
    for name, scored in zip(names, shown.scored, strict=True):
        summary = scored.summary
        of_whom = f"{shortened_name(name, 30)}: " if len(names) > 1 else ""
        tokens_in, cached, tokens_out = tokens_of(summary.modes.values())
        if tokens_in:
            yield f"{of_whom}{tokens_text(tokens_in, cached, tokens_out)}."
        if measure is None:
            continue
        for mode, part in summary.modes.items():
            if not part.headline:
                continue
            text = ""
            if mode != measure[0].mode:
                text = _other_score(mode, part, scored, measure[1])
            elif len(names) == 1 or not summary.model.startswith("baseline:"):
                text = _refusals(part)
            else:  # Of a yardstick beside others only what its tools say of strangers, which the builder added.
                text = " ".join(stranger_sentences(part))
            if text:
                yield f"{of_whom}{text[0].lower() if of_whom else text[0]}{text[1:]}"


def _refusals(part: ModeSummary) -> str:
    """Return how many unanswerable questions were answered, and how many answerable ones were refused."""
    answered, refused = part.metrics.get(FALSE_CONFIDENCE), part.metrics.get(FALSE_REFUSAL)
    texts: list[str] = []
    if answered:
        share = _share_text(answered.overall, part)
        texts.append(f"Answered {share} unanswerable questions")
    if refused:
        verb = "left" if texts else "Left"
        share = _share_text(refused.overall, part)
        charts = " (a missing chart counts as unanswered)" if _asks_for_charts(part) else ""
        texts.append(f"{verb} {share} answerable questions unanswered{charts}")
    sentences = [f"{'; '.join(texts)}."] if texts else []
    return " ".join([*sentences, *stranger_sentences(part)])


def _asks_for_charts(part: ModeSummary) -> bool:
    """Return True if charts are asked for, and may be left out as a refusal."""
    return "plot" in part.metrics


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
    """Return ``12 of 40``; of several epochs, which may differ, the share in percent."""
    if part.epochs > 1:
        return f"{100 * estimate.value:.0f} % of {estimate.n}"
    return f"{estimate.value * estimate.n:.0f} of {estimate.n}"


def _other_score(mode: Mode, part: ModeSummary, scored: Rescored, metric: str) -> str:
    """Return a sentence on the headline metric in another mode, with the gain by tools; empty if it has none."""
    of_mode = part.metrics.get(metric)
    if of_mode is None:
        return ""
    out_of = METRICS[metric].out_of
    paired = scored.summary.no_tool_part if mode == "no-tool" else None
    if scored.tally is None or paired is None or metric not in paired.gain:
        score = on_scale(of_mode.overall.value, out_of)
        return f"{TITLES[mode]}: {METRICS[metric].label} {score}."
    pair = scored.tally.pair_by_tools(metric)
    assert pair is not None  # there is a gain
    with_tools, without = pair.means
    gain = paired.gain[metric].overall
    questions = f"{count_text(gain.n, 'question')} that can be asked without tools"
    return (
        f"On the {questions}: {on_scale(without, out_of)} without, {on_scale(with_tools, out_of)} "
        f"with tools ({points(gain.value)}, {_significance(gain)})."
    )


def _significance(difference: Estimate) -> str:
    """Return the adjusted p-value of a difference, or why there is none to show."""
    if difference.differs():
        small = not difference.p_adjusted or difference.p_adjusted < 0.001
        return "p <0.001" if small else f"p {difference.p_adjusted:.3f}"
    if difference.p_adjusted is None:
        return f"fewer than {MIN_CLUSTERS} clusters, not tested"
    return "not significant"
