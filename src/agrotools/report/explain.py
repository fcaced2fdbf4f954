"""Explanation of one sample of a run, from the question to the score, as printed by ``agrotools explain``.

A scored record comes in; blocks of text for a terminal go out, and the short reasons that the list of samples shows.
Every value is made harmless and cut before it is printed: models and tools wrote it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from rich.console import RenderableType
from rich.rule import Rule
from rich.text import Text

from agrotools.core import (
    FAMILIES,
    AbstainSlot,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    OpenTextSlot,
    PlotSlot,
    Record,
    Sample,
    SampleFile,
    Score,
    Slot,
    ToleranceSlot,
    Trajectory,
)
from agrotools.core.texts import count_text, number_text
from agrotools.loading.photos import known_name
from agrotools.report.layout import (
    DASH,
    MARK_STYLES,
    RIGHT,
    WRONG,
    LabelledText,
    expected_text,
    harmless,
    on_scale,
    percent,
    shortened,
    value_text,
)
from agrotools.report.terminal import block, indented, line, section
from agrotools.report.trace import agreements, predicted_steps, step_blocks, taken_steps, why_wrong
from agrotools.scoring.attribution import (
    ARGUMENTS,
    PLANNING,
    TOOL,
    TWIN,
    ordered_parts,
    part_label,
    part_meaning,
)
from agrotools.scoring.judging.judgements import Judgement
from agrotools.scoring.lost_points import Shares, largest_part
from agrotools.scoring.matching import reference_places
from agrotools.scoring.metrics import (
    FALSE_REFUSAL,
    METRICS,
    OPEN_TEXT,
    is_judged_text,
    scores_sample,
)
from agrotools.scoring.slots import refused_twin, refused_twin_text

_LONGEST_ANSWER = 4_000
_LONGEST_REPLY = 600
_LONGEST_SUBMITTED = 240
_LONGEST_ARGUMENT = 40
"""Most letters of an answer, of the last reply without one, of a slot's text, and of an argument in a reason."""
_LONGEST_INVALID = 80
_LONGEST_ERROR = 110
"""Most letters of the reason why a record is invalid, and of its first error: each stands in one row of a list."""
NOT_COUNTED = "not in the score: no judge"
"""Said beside open text that no judge graded."""


def explain(
    record: Record,
    scores: Sequence[Score],
    judgements: Sequence[Judgement] = (),
    *,
    details: bool = False,
    shares: Shares | None = None,
) -> list[RenderableType]:
    """Return question, steps and answer of a sample, and for each slot the matched text, the score and the reason.

    Args:
        record: one record of a run.
        scores: score rows of the record, from :func:`agrotools.scoring.aggregate.score_record`.
        judgements: replies of judges about the record.
        details: also show the rule of each score and the figures that it uses.
        shares: points that the record lost by part (:func:`agrotools.scoring.lost_points.lost_shares`).
    """
    sample = record.sample
    parts: list[RenderableType] = [_heading(record, scores), *_question(record)]
    if record.invalid is not None:
        parts.append(section("Invalid"))
        parts.append(line(f"  {harmless(record.invalid)}. Excluded from all averages.", "red"))
    elif record.actions is not None:
        reference = sample.reference.steps if sample.reference else ()
        parts.append(section("Predicted steps"))
        for step in predicted_steps(record.actions, reference, scores):
            parts += step_blocks(step)
    elif record.trajectory is not None:
        parts += _taken_steps(record, record.trajectory)
        parts.append(section("Answer"))
        parts += _answer(record)
    readings = [*slot_readings(sample.answer, scores), *summary_readings(sample.answer, scores)]
    if readings:
        parts += [section("Scores"), *reading_blocks(readings, details=details)]
    if shares:
        parts.append(block("lost by", _loss_text(shares, scores), "yellow"))
        if wrong := first_error(record, scores, largest_part(shares)):
            parts.append(block("first error", wrong, "yellow"))
    if judgements:
        parts += [section("Judge"), *_judge_replies(judgements, scores)]
    return parts


def _taken_steps(record: Record, trajectory: Trajectory) -> list[RenderableType]:
    """Return the steps of a trajectory below a heading; those of end-to-end are compared with the reference."""
    if record.mode == "end-to-end":
        taken = taken_steps(
            trajectory.steps, reference_places(record), record.sample, record.faults
        )
    else:
        n_calls = sum(step.call is not None for step in trajectory.steps)
        taken = taken_steps(trajectory.steps, [None] * n_calls, None, record.faults)
    blocks = [each for step in taken for each in step_blocks(step)]
    return [section("Steps"), *blocks] if blocks else []


def _loss_text(shares: Shares, scores: Sequence[Score]) -> str:
    """Return a line for each part that lost points of a record."""
    of_twin = twin_text(scores)
    lines: list[str] = []
    for part in ordered_parts(shares):
        why = of_twin if part == TWIN else part_meaning(part)
        points = 100 * float(shares[part])
        lines.append(f"{part_label(part)} {points:.1f} points: {why}")
    return "\n".join(lines)


def _judge_replies(
    judgements: Sequence[Judgement], scores: Sequence[Score]
) -> Iterator[RenderableType]:
    """Yield a line for each grade of a judge, and one for each of its replies."""
    for row in scores:
        if row.judge is not None:
            metric = METRICS[row.metric]
            yield line(f"  {metric.label} {on_scale(row.value, metric.out_of)}")
    for each in judgements:
        vote = f", vote {each.vote + 1}" if each.vote else ""
        reply = shortened(harmless(each.reply), _LONGEST_REPLY) or "(nothing)"
        yield line(f"  {harmless(each.judge)}{vote}: {reply}")


def _heading(record: Record, scores: Sequence[Score]) -> RenderableType:
    """Return a rule with sample, mode, epoch, end and score of a record."""
    facts = [record.sample.id, record.mode]
    if record.epoch:
        facts.append(f"epoch {record.epoch}")
    if record.invalid:
        facts.append("invalid")
    elif record.trajectory:
        facts.append(record.trajectory.termination)
    of_sample = {row.metric: row.value for row in scores if row.slot is None and row.step is None}
    for metric, value in of_sample.items():
        if scores_sample(metric):
            facts.append(f"{METRICS[metric].label} {percent(value)}")
    return Rule(" · ".join(facts), style="bold", align="left")


def _question(record: Record) -> Iterator[RenderableType]:
    sample = record.sample
    family = FAMILIES.get(sample.family, sample.family)
    about = f"{sample.task_type.replace('_', ' ')} ({family}), {sample.answer_type.replace('_', ' ')} answer"
    yield line(f"{about}, source {sample.source}, cluster {sample.cluster or sample.id}", "dim")
    yield section("Question")
    yield indented(line(harmless(sample.query)))
    for file in sample.files:
        yield indented(line(f"{file.name}  {file_text(file, sample)}", "dim"))


def own_name(file: SampleFile, sample: Sample) -> str:
    """Return the name that a file had before the benchmark named it, if that is another one and known."""
    return Path(known_name(file, sample)).name


def file_text(file: SampleFile, sample: Sample) -> str:
    """Return own name, kind, size, scale, bands and classes of a file on one line."""
    parts: list[str] = [*filter(None, [harmless(own_name(file, sample))]), file.kind]
    if file.width_px and file.height_px:
        parts.append(f"{file.width_px} x {file.height_px} px")
    if file.gsd_m:
        parts.append(
            f"{1000 * file.gsd_m:.3g} mm/px" if file.gsd_m < 1 else f"{file.gsd_m:.3g} m/px"
        )
    if file.bands:
        parts.append(f"bands {' '.join(file.bands)}")
    if file.classes:
        parts.append(
            f"classes {', '.join(f'{index} {name}' for index, name in file.classes.items())}"
        )
    if file.note:
        parts.append(harmless(file.note))
    return ", ".join(parts)


def _answer(record: Record) -> Iterator[RenderableType]:
    trajectory = record.trajectory
    assert trajectory is not None
    if trajectory.answer_text is not None:
        yield indented(
            line(shortened(harmless(trajectory.answer_text), _LONGEST_ANSWER) or "(empty)")
        )
    if trajectory.answer is None:
        reason = f": {harmless(trajectory.reason)}" if trajectory.reason else ""
        yield indented(line(f"no answer ({trajectory.termination}{reason})", "red"))
        if trajectory.halted_by and (reply := harmless(trajectory.halted_by.text)):
            yield block("last reply", shortened(reply, _LONGEST_REPLY))


_READING_KEYS = frozenset(
    "text value rule off_by facts said foreign excluded harmful termination".split()
)
_PLOT_KEYS = frozenset({"kind", "reference_kind", "f1", "points", "labels", "weight"})
"""Keys of a plot reading that are shown separately; other keys are listed under details."""


@dataclass(frozen=True)
class SlotReading:
    """Slot with its score and lines about the expected value, the matched text and the reason."""

    slot: Slot
    value: float
    lines: tuple[LabelledText, ...]
    is_counted: bool = True
    """False for open text that no judge graded: the score of the sample leaves it out."""


def slot_readings(slots: Sequence[Slot], rows: Sequence[Score]) -> Iterator[SlotReading]:
    """Yield one reading for each row of ``slots``; rows of other slots are left out."""
    by_name = {slot.name: slot for slot in slots}
    left_out = uncounted(slots, rows)
    for row in rows:
        if slot := by_name.get(row.slot or ""):
            lines = tuple(slot_lines(slot, row.value, row.reading))
            yield SlotReading(slot, row.value, lines, is_counted=slot.name not in left_out)


def uncounted(slots: Sequence[Slot], rows: Sequence[Score]) -> list[str]:
    """Return the names of open text that is not in the score, because no judge graded it."""
    if any(row.metric == OPEN_TEXT for row in rows):
        return []
    return [slot.name for slot in slots if is_judged_text(slot)]


def reading_blocks(readings: Iterable[SlotReading], *, details: bool) -> Iterator[RenderableType]:
    """Yield readings for a terminal: a headline and its lines for each slot.

    Without ``details``, the rule is shown only where it is the reason for a lower score.
    """
    for reading in readings:
        yield _headline(reading)
        hidden = {"details"}
        if reading.value >= 1 or any(each.label == "reason" for each in reading.lines):
            hidden.add("rule")
        for each in reading.lines:
            if details or each.label not in hidden:
                yield block(each.label, each.text, each.style)


def summary_readings(slots: Sequence[Slot], rows: Sequence[Score]) -> Iterator[SlotReading]:
    """Yield the readings of each slot in a step-by-step answer against the truth, with the implied values."""
    against = {row.metric: row.reading for row in rows if row.metric in (_TRUTH, _IMPLIED)}
    truth, implied = against.get(_TRUTH, {}), against.get(_IMPLIED, {})
    values, readings = _fields(truth, "slots"), _fields(truth, "readings")
    for slot in slots:
        value, reading = values.get(slot.name), readings.get(slot.name)
        if not isinstance(value, int | float):
            continue
        if not isinstance(reading, dict):
            reading = {"rule": "no answer was given"}
        lines = [*slot_lines(slot, value, reading), *_implied_lines(slot, truth, implied)]
        yield SlotReading(slot, value, tuple(lines))


def _implied_lines(
    slot: Slot, truth: Mapping[str, JsonValue], implied: Mapping[str, JsonValue]
) -> Iterator[LabelledText]:
    """Yield what value the results shown imply for a slot, and the score against that, or why they imply none."""
    scored = _fields(implied, "slots").get(slot.name)
    left_out = _fields(truth, "left_out")
    if isinstance(scored, int | float):
        value = value_text(_fields(implied, "implied").get(slot.name))
        differs = ""
        if slot.name in _list(truth, "differs"):
            differs = ", which differs from the ground truth"
        yield LabelledText(
            "implied",
            f"{value} by the results shown{differs}; scored against that: {percent(scored)}",
        )
    elif slot.name in left_out:
        yield LabelledText("implied", f"nothing: {value_text(left_out[slot.name])}", "dim")


_TRUTH, _IMPLIED = "summ_acc_truth", "summ_acc"


def _fields(reading: Mapping[str, JsonValue], name: str) -> dict[str, JsonValue]:
    return field if isinstance(field := reading.get(name), dict) else {}


def _list(reading: Mapping[str, JsonValue], name: str) -> list[JsonValue]:
    return field if isinstance(field := reading.get(name), list) else []


def slot_lines(
    slot: Slot, value: float, reading: Mapping[str, JsonValue]
) -> Iterator[LabelledText]:
    """Yield expected value, extracted value, matched text, rule, and the reason for the score ``value``."""
    yield LabelledText("expected", expected_text(slot))
    if "text" in reading:
        submitted = shortened(harmless(str(reading["text"])), _LONGEST_SUBMITTED)
        yield LabelledText("submitted", submitted, "dim")
    if "rule" in reading:
        rule = value_text(reading["rule"])
        yield LabelledText("rule", _FACTS_RULE if rule.endswith(" x branch") else rule, "dim")
    if isinstance(reading.get("facts"), dict):
        yield from _fact_lines(reading)
    yield from _harm_lines(reading)
    shown_keys = _READING_KEYS
    if isinstance(slot, PlotSlot):
        yield from _plot_lines(reading)
        shown_keys |= _PLOT_KEYS
    if why := reason_text(slot, value, reading):
        yield LabelledText("reason", why, "" if value >= 1 else "yellow")
    rest = [
        f"{name}: {value_text(item)}" for name, item in reading.items() if name not in shown_keys
    ]
    if rest:
        yield LabelledText("details", ", ".join(rest), "dim")


_UNWANTED = {"foreign": "about another subject", "excluded": "what does not apply"}
"""Fields of a reading with phrases that an open answer should not have, and what is wrong with them."""


def _fact_lines(reading: Mapping[str, JsonValue]) -> Iterator[LabelledText]:
    """Yield the facts of an open answer, stated or not, and what it should not have said, with the matched words."""
    said = _fields(reading, "said")
    for phrase, state in _fields(reading, "facts").items():
        mark = RIGHT if state == "stated" else WRONG
        words = said.get(phrase)
        quote = f', matched "{harmless(str(words))}"' if words else ""
        text = f"{value_text(phrase)}: {value_text(state)}{quote}"
        yield LabelledText(mark, text, MARK_STYLES[mark])
    for field, fault in _UNWANTED.items():
        for phrase, words in _fields(reading, field).items():
            text = f'{fault}: {value_text(phrase)}, matched "{harmless(str(words))}"'
            yield LabelledText(WRONG, text, MARK_STYLES[WRONG])


def _harm_lines(reading: Mapping[str, JsonValue]) -> Iterator[LabelledText]:
    """Yield the harmful advice of an answer, with the matched words and the source that calls it so."""
    for harm in _list(reading, "harmful"):
        if not isinstance(harm, dict):
            continue
        said = f'{value_text(harm["claim"])}, matched "{harmless(str(harm["words"]))}"'
        origin = f"{value_text(harm['source'])}, {value_text(harm['date'])}"
        if harm.get("region"):
            origin += f", {value_text(harm['region'])}"
        text = f"{said} ({origin}); no part of the score"
        yield LabelledText("harmful advice", text, MARK_STYLES[WRONG])


def _plot_lines(reading: Mapping[str, JsonValue]) -> Iterator[LabelledText]:
    """Yield chart type, points and labels of a figure, drawn and expected."""
    if "kind" in reading:
        kind, expected = value_text(reading["kind"]), value_text(reading.get("reference_kind"))
        yield LabelledText(
            "chart type", kind if kind == expected else f"{kind}, expected {expected}"
        )
    points, labels = _fields(reading, "points"), _fields(reading, "labels")
    f1, weight = reading.get("f1"), reading.get("weight")
    if points and isinstance(f1, int | float):
        counts = f"{points.get('matched')} of {points.get('reference')} points correct, {points.get('drawn')} drawn"
        yield LabelledText("points", f"{counts}: F1 {percent(f1)}", "" if f1 >= 1 else "yellow")
    if labels:
        axes, title = value_text(labels.get("axes")), value_text(labels.get("title"))
        missing = _list(labels, "missing")
        without = f" (missing: {', '.join(map(value_text, missing))})" if missing else ""
        labels_text = (
            f"axis labels with quantity and unit: {axes}{without}; title or legend: {title}"
        )
        yield LabelledText("labels", f"{labels_text}; weight {value_text(weight)}")


_FACTORS = {
    "precision": "facts about other subjects",
    "length_factor": "its length",
    "branch_factor": "facts about the case that does not apply",
}
"""Factors below 1 that reduce the score of open text, with their causes."""


_FACTS_RULE = (
    "facts stated minus contradicted, by weight, above the floor; reduced for facts about other subjects, "
    "for more than 150 words, and for facts about the case that does not apply"
)
"""Rule of open text in words; stored scores hold it as the formula of ``docs/judges.md``."""


_UNREAD = {
    "refused": "every value is unknown, which counts as a refusal",
    "no form": "the answer does not give all values in the form",
    "unknown": "the value is unknown",
    "not a number": "the value is not a number",
    "neither yes nor no": "the value is neither yes nor no",
    "not one name": "the value is no name that the form allows",
}
"""Reasons by the rule of a reading without a value."""


def reason_text(slot: Slot, value: float, reading: Mapping[str, JsonValue]) -> str:
    """Return the reason for a score; empty if the rule explains it."""
    why = _unread_reason(slot, reading)
    if reading.get("termination") == "no_form":
        return why or "another value of the answer form is missing"
    if "termination" in reading:
        return f"the sample ended without an answer ({value_text(reading['termination'])})"
    if isinstance(slot, AbstainSlot) and reading.get("rule") == "answered":
        return "the files do not allow an answer, and the reply is not a refusal"
    if why:
        return why

    read, off_by, f1 = reading.get("value"), reading.get("off_by"), reading.get("f1")
    if isinstance(slot, ToleranceSlot | ExactSlot) and isinstance(off_by, int | float):
        return _distance_reason(slot, value, off_by)
    if isinstance(slot, PlotSlot) and isinstance(f1, int | float):
        return _plot_reason(f1, reading.get("weight"))
    if isinstance(slot, OpenTextSlot) and isinstance(reading.get("facts"), dict):
        return _facts_reason(reading)
    if isinstance(slot, BooleanSlot) and isinstance(read, bool):
        return f"the answer says {value_text(read)}, expected {value_text(slot.value)}"
    if isinstance(slot, ChoiceSetSlot) and isinstance(read, list):
        return _labels_reason(set(slot.value), read)
    if isinstance(slot, ExactSlot | FileSlot) and isinstance(read, list):
        return _labels_reason({str(slot.value)}, read)
    return ""


def _unread_reason(slot: Slot, reading: Mapping[str, JsonValue]) -> str:
    """Return why an answer gives no value of a slot; empty if it gives one."""
    rule = str(reading.get("rule"))
    if rule == "refused" and isinstance(slot, PlotSlot):
        return "no chart was drawn, which counts as a refusal"
    return _UNREAD.get(rule, "")


def _distance_reason(slot: ToleranceSlot | ExactSlot, value: float, off_by: float) -> str:
    """Return how far a number is from the expected one, beside the tolerance."""
    if not off_by and value >= 1:
        return "exact match"
    unit = f" {slot.unit}" if slot.unit else ""
    if slot.unit == "%":
        # "12 %" of a value in percent could be read as a relative error.
        unit = " percentage points"
    margin = slot.margin if isinstance(slot, ToleranceSlot) else 0.0
    side = "within" if value >= 1 else "outside"
    return (
        f"off by {number_text(off_by, 3)}{unit}, {side} the tolerance of {number_text(margin, 3)}"
    )


def _plot_reason(f1: float, weight: JsonValue) -> str:
    """Return the F1 of a figure's points, and the weight of incomplete labels if it is not 1."""
    unnamed = f"; axes or title incomplete, times {weight}" if weight != 1 else ""
    return f"F1 of the points {number_text(f1, 3)}{unnamed}"


def _facts_reason(reading: Mapping[str, JsonValue]) -> str:
    """Return how many facts an open answer states, and what reduced its score."""
    facts = _fields(reading, "facts")
    n_stated = sum(str(state).startswith("stated") for state in facts.values())
    reasons = [f"{n_stated} of {count_text(len(facts), 'fact')} found"]
    for key, cause in _FACTORS.items():
        factor = reading.get(key)
        if isinstance(factor, int | float) and factor < 1:
            reasons.append(f"reduced for {cause}")
    return "; ".join(reasons)


def _labels_reason(expected: set[str], read: Sequence[JsonValue]) -> str:
    """Return which labels are missing or wrong; empty if none is."""
    asserted = {str(item) for item in read}
    if asserted == expected:
        return ""
    if not asserted:
        return "the answer names none of the labels"
    parts = [f"answer names {', '.join(sorted(asserted))}"]
    if missing := expected - asserted:
        parts.append(f"missing {', '.join(sorted(missing))}")
    if wrong := asserted - expected:
        parts.append(f"wrong: {', '.join(sorted(wrong))}")
    return harmless("; ".join(parts))


def lost_reason(record: Record, rows: Sequence[Score], part: str = "") -> str:
    """Return the reason why a record lost points, in one line: the first call, argument or slot that is wrong.

    ``part`` is the one that lost most; empty in step-by-step.
    """
    sample, trajectory = record.sample, record.trajectory
    if wrong := _wrong_step(record, rows):
        return wrong
    if part in (PLANNING, ARGUMENTS) and (found := _wrong_call(record)):
        return found[1]
    if any(row.metric == FALSE_REFUSAL and row.value for row in rows):
        return "refused"
    if not sample.answerable and trajectory is not None and trajectory.answer is not None:
        if any(row.reading.get("rule") == "refused" for row in rows):
            return f"refused, as was its answerable twin {sample.twin}"
        return "answered, although the files do not allow an answer"
    left_out = uncounted(sample.answer, rows)
    slots = {slot.name: slot for slot in sample.answer if slot.name not in left_out}
    for row in rows:
        if row.slot in slots and row.value < 1:
            why = reason_text(slots[row.slot], row.value, row.reading)
            return f"{row.slot}: {why or value_text(row.reading.get('rule'))}"
    return ""


def first_error(record: Record, rows: Sequence[Score], part: str) -> str:
    """Return the first error of a record on one line, the same wherever it is shown; empty if it lost no points.

    ``part`` is the one that lost most; empty in step-by-step.
    """
    if record.invalid is not None:
        return f"invalid: {shortened(harmless(record.invalid), _LONGEST_INVALID)}"
    wrong = twin_text(rows) or first_wrong_step(record, rows, part)
    return shortened(harmless(wrong), _LONGEST_ERROR)


def twin_text(rows: Sequence[Score]) -> str:
    """Return why the twin of an unanswerable sample takes a point from it, or an empty text."""
    twin = refused_twin(rows)
    return f"the answerable twin {twin} was refused: {refused_twin_text()}" if twin else ""


def first_wrong_step(record: Record, rows: Sequence[Score], part: str) -> str:
    """Return the first step that cost points, with its number, and what is wrong with it.

    ``part`` is the one that lost most. Where calls and results are right, the step is the answer.
    """
    trajectory = record.trajectory
    ending = ""
    if trajectory is not None and trajectory.answer is None:
        ending = f"no answer ({trajectory.termination})"
    if part in (PLANNING, ARGUMENTS) and (found := _wrong_call(record)):
        number, wrong = found
        of_call = f"reference step {number}: {wrong}"
        return f"{ending}; {of_call}" if ending else of_call
    if ending:
        return ending
    reason = lost_reason(record, rows, part)
    if part.startswith(TOOL) and trajectory is not None:
        tools = part.removeprefix(TOOL).split("+")
        of_tools = [
            (number, step.call.tool, step.observation)
            for number, step in enumerate(trajectory.steps, start=1)
            if step.call is not None and step.call.tool in tools
        ]
        for number, tool, observation in of_tools:
            if observation is not None and observation.error is not None:
                return f"step {number}, {tool}: no result: {observation.error.message}"
        if of_tools:
            number, tool, _ = of_tools[0]
            return f"step {number}, {tool}: {reason}"
    return reason


def _wrong_step(record: Record, rows: Sequence[Score]) -> str:
    """Return the first wrong step of step-by-step, and why it is wrong; empty if there is none."""
    reference = record.sample.reference.steps if record.sample.reference else ()
    if not reference or record.actions is None:
        return ""
    for at, action in enumerate(record.actions):
        expected = reference[at] if at < len(reference) else None
        of_step = {row.metric: row for row in rows if row.step == at}
        if why := why_wrong(action, expected, of_step):
            return f"step {at + 1}: {why}"
    return ""


def _wrong_call(record: Record) -> tuple[int, str] | None:
    """Return the number of the first reference step that is missing or has a wrong argument, and what is wrong."""
    trajectory, reference = record.trajectory, record.sample.reference
    if trajectory is None or reference is None:
        return None
    calls = [step.call for step in trajectory.steps if step.call]
    matches = reference_places(record)
    for at, step in enumerate(reference.steps):
        if at not in matches:
            return at + 1, f"no call of {step.tool}"
        compared = agreements(calls[matches.index(at)], step, record.sample)
        if wrong := [each for each in compared if each.mark == WRONG]:
            # An expression is wrong by the values of its variables, too.
            differing = [each for each in [*wrong, *compared] if each.predicted != each.reference]
            shown = differing[0] if differing else wrong[0]
            predicted, expected = _short_argument(shown.predicted), _short_argument(shown.reference)
            reason = f"{shown.name}={predicted}, reference {shown.name}={expected}"
            return at + 1, f"{step.tool}: {reason}"
    return None


def _short_argument(text: str) -> str:
    return f"{text[: _LONGEST_ARGUMENT - 1]}…" if len(text) > _LONGEST_ARGUMENT else text


def _headline(reading: SlotReading) -> Text:
    slot, value = reading.slot, reading.value
    mark = RIGHT if value >= 1 else WRONG
    style = MARK_STYLES[mark] if value in (0, 1) else "yellow"
    line = Text("  ")
    if reading.is_counted:
        line.append(f"{mark} {percent(value)}", style=style)
    else:
        line.append(f"{DASH} {percent(value)}", style="dim")
    line.append(f"  {slot.name}", style="bold")
    line.append(f"  {harmless(slot.label)} ({slot.type.replace('_', ' ')})", style="dim")
    if not reading.is_counted:
        line.append(f"  {NOT_COUNTED}", style="yellow")
    return line
