"""Data of one record for its part of the page: question, steps, answer and scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agrotools.core import (
    FAMILIES,
    Action,
    Answer,
    Artifact,
    CallTools,
    Halt,
    Observation,
    Record,
    ReferenceStep,
    Sample,
    SampleFile,
    Score,
    Step,
    ToolCall,
    Unparseable,
)
from agrotools.report.explain import SlotReading, file_text, slot_readings, summary_readings
from agrotools.report.html.pictures import Absent, EmbeddedPicture
from agrotools.report.html.runs import facets_of
from agrotools.report.layout import RIGHT, WRONG, LabelledText, percent, shortened, value_text
from agrotools.report.trace import (
    Agreement,
    agreements,
    call_text,
    closest_steps,
    disagreements,
    praise,
    rejection_text,
    scored_agreements,
    shown_result,
    time_text,
    why_wrong,
)
from agrotools.scoring import METRICS

LONGEST_TEXT = 8_000
"""Maximum number of characters of a question, thought or answer; the rest is cut, with a note."""
MOST_STEPS = 60
STEP_METRICS = ("agrotools.st_acc", "agrotools.tool_acc", "agrotools.arg_acc", "agrotools.ear")


@dataclass(frozen=True)
class Figure:
    """Picture with its caption; ``role`` is ``file`` or the kind of an artifact."""

    name: str
    role: str
    text: str
    picture: EmbeddedPicture | Absent


@dataclass
class StepPart:
    """One step: the action, its comparison with the reference, and its result."""

    number: int
    title: str
    about: str = ""
    verdict: str = ""
    state: str = ""
    thought: str = ""
    arguments: list[Agreement] = field(default_factory=list)
    reference: str = ""
    plain_arguments: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""
    result_label: str = ""
    """Label of the fields of the observation."""
    fields: list[tuple[str, str]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""
    lines: list[LabelledText] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    scores: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Detail:
    """Data of a record on the page."""

    about: str
    query: str
    files: list[Figure]
    steps: list[StepPart]
    missing: list[str]
    """Reference calls that no call matches."""
    answer: str | None
    no_answer: str
    slots: list[SlotReading]
    score_columns: list[str]
    invalid: str
    spent: str
    facets: list[str]


class PictureSource(Protocol):
    """Source of the page's pictures of files and artifacts."""

    def file(self, file: SampleFile) -> EmbeddedPicture | Absent: ...

    def artifact(self, artifact: Artifact, *, made_here: bool) -> EmbeddedPicture | Absent:
        """Return the picture of an artifact. ``made_here``: a call of this run created and should have stored it."""
        ...


def detail_of(record: Record, scores: Sequence[Score], showing: PictureSource) -> Detail:
    """Return the data of ``record`` for the page; ``scores`` are its score rows."""
    sample = record.sample
    calls = [step.call for step in record.trajectory.steps if step.call] if record.trajectory else []
    compared = sample if record.mode == "end-to-end" else None
    matches = closest_steps(calls, compared) if compared else [None] * len(calls)
    steps: list[StepPart] = []
    if record.invalid is None and record.actions is not None:
        steps = [*_predicted_steps(record, record.actions, scores, showing)]
    elif record.invalid is None and record.trajectory is not None:
        steps = [*_taken_steps(record.trajectory.steps, matches, compared, showing)]
    reference = compared.reference.steps if compared and compared.reference and record.trajectory else ()
    missing = [f"step {at + 1}: {call_text(step)}" for at, step in enumerate(reference) if at not in matches]
    answer, no_answer = _answer(record)
    return Detail(
        about=_about(sample),
        query=_cut(sample.query),
        files=[Figure(file.name, "file", file_text(file).rstrip("."), showing.file(file)) for file in sample.files],
        steps=steps,
        missing=missing,
        answer=answer,
        no_answer=no_answer,
        slots=[*slot_readings(sample.answer, scores), *summary_readings(sample.answer, scores)],
        score_columns=[METRICS[metric].label for metric in STEP_METRICS] if record.actions else [],
        invalid=record.invalid or "",
        spent=_spent(record),
        facets=facets_of(record, scores, matches, any(part.state == "wrong" and part.arguments for part in steps)),
    )


def _about(sample: Sample) -> str:
    family = FAMILIES.get(sample.family, sample.family)
    kind = f"{sample.task_type.replace('_', ' ')} ({family}), {sample.answer_type.replace('_', ' ')} answer"
    return f"{kind}, source {sample.source}, template {sample.template}, cluster {sample.cluster or sample.id}"


def _answer(record: Record) -> tuple[str | None, str]:
    if record.invalid is not None or record.trajectory is None:
        return None, ""
    if record.trajectory.answer is not None:
        return _cut(record.trajectory.answer) or "(empty)", ""
    reason = f": {record.trajectory.reason}" if record.trajectory.reason else ""
    return None, _cut(f"{record.trajectory.termination}{reason}")


def _spent(record: Record) -> str:
    tokens_in = sum(reply.usage.input_tokens for reply in record.replies)
    tokens_out = sum(reply.usage.output_tokens for reply in record.replies)
    tokens = f", {tokens_in} tokens in, {tokens_out} out" if tokens_in or tokens_out else ""
    return f"{record.seconds:.2f} s{tokens}"


# --- end to end and without tools -----------------------------------------------------------------------------------


def _taken_steps(
    steps: Sequence[Step], matches: Sequence[int | None], compared: Sample | None, showing: PictureSource
) -> Iterator[StepPart]:
    match_of = iter(matches)
    for number, step in enumerate(steps[:MOST_STEPS], 1):
        if step.kind == "answer":
            if step.thought or step.form_reply:
                yield StepPart(number, "answer", thought=_cut(step.thought), lines=_form_reply(step))
        elif step.call is None:
            yield StepPart(
                number,
                "unparseable output",
                state="wrong",
                verdict=f"{WRONG} neither a call nor an answer",
                text=_cut(step.text) or "(empty)",
                lines=[LabelledText("feedback", _cut(step.reason))] if step.reason else [],
            )
        else:
            yield _call(number, step, step.call, next(match_of), compared, showing)
    if len(steps) > MOST_STEPS:
        yield StepPart(len(steps), f"{len(steps) - MOST_STEPS} more steps are not shown")


def _form_reply(answer: Step | Answer) -> list[LabelledText]:
    if answer.form_reply is None:
        return []
    return [LabelledText("reply to the request for the answer form", _cut(answer.form_reply.text) or "(empty)")]


def _call(
    number: int, step: Step, call: ToolCall, match: int | None, sample: Sample | None, showing: PictureSource
) -> StepPart:
    part = StepPart(number, call.tool, time_text(step), thought=_cut(step.thought))
    reference = sample.reference.steps if sample is not None and sample.reference else ()
    if match is not None and sample is not None:
        part.arguments = agreements(call, reference[match], sample)
        wrong = disagreements(part.arguments)
        part.state = "wrong" if wrong else "right"
        part.verdict = (
            f"{WRONG} differs from reference step {match + 1}" if wrong else f"{RIGHT} matches step {match + 1}"
        )
        part.reference = f"reference step {match + 1}"
    else:
        part.plain_arguments = [(name, value_text(value)) for name, value in call.arguments.items()]
        if reference:
            part.state, part.verdict = "open", "not in the reference plan"
    _add_observation(part, step.observation, "result", showing)
    return part


def _add_observation(
    part: StepPart, observation: Observation | None, label: str, showing: PictureSource, *, made_here: bool = True
) -> None:
    if observation is None:
        return
    part.result_label = label
    error = observation.error
    if error is not None:
        about = f" ({error.argument})" if error.argument else ""
        part.error = _cut(f"{error.kind}{about}: {error.message}")
        if error.hint:
            part.lines.append(LabelledText("hint", _cut(error.hint)))
        if error.candidates:
            part.lines.append(LabelledText("candidates", _cut(", ".join(error.candidates))))
        return
    result = shown_result(observation)
    part.fields = [(name, value_text(value)) for name, value in result.fields.items()]
    part.flags, part.notes = [*map(_cut, result.flags)], [*map(_cut, result.notes)]
    has_overlay = any(artifact.kind == "overlay" for artifact in observation.artifacts)
    for artifact in observation.artifacts:
        if artifact.kind == "mask" and has_overlay:
            part.lines.append(LabelledText("files", f"{artifact.name} (mask)"))
            continue
        picture = showing.artifact(artifact, made_here=made_here)
        if isinstance(picture, Absent) and not made_here:
            part.lines.append(
                LabelledText("files", f"{artifact.name} ({artifact.kind}), made when the benchmark was built")
            )
        else:
            part.figures.append(Figure(artifact.name, artifact.kind, artifact.kind, picture))


# --- step by step ---------------------------------------------------------------------------------------------------


def _predicted_steps(
    record: Record, actions: Sequence[Action], scores: Sequence[Score], showing: PictureSource
) -> Iterator[StepPart]:
    reference = record.sample.reference.steps if record.sample.reference else ()
    for index, action in enumerate(actions):
        rows = {row.metric: row for row in scores if row.step == index}
        due = reference[index] if index < len(reference) else None
        reason = why_wrong(action, due, rows)
        part = StepPart(index + 1, f"expected: {due.tool}" if due else "expected: the answer")
        part.state = "wrong" if reason else "right"
        part.verdict = f"{WRONG} {reason}" if reason else f"{RIGHT} {praise(due, rows)}"
        part.scores = {
            METRICS[metric].label: percent(rows[metric].value) if metric in rows else "" for metric in STEP_METRICS
        }
        _add_action(part, action, due, reference, rows.get("agrotools.arg_acc"))
        if due is not None:
            _add_observation(part, due.observation, "result shown", showing, made_here=False)
        yield part


def _add_action(
    part: StepPart,
    action: Action,
    due: ReferenceStep | None,
    reference: Sequence[ReferenceStep],
    row: Score | None,
) -> None:
    if isinstance(action, CallTools | Answer):
        part.thought = _cut(action.thought)
    if isinstance(action, CallTools):
        first, *others = action.calls
        part.about = f"called {first.tool}"
        step = row.reading.get("step") if row is not None else None
        if row is not None and isinstance(step, int) and step < len(reference):
            part.arguments = scored_agreements(first, reference[step], row)
            part.reference = f"reference step {step + 1}"
        else:
            part.plain_arguments = [(name, value_text(value)) for name, value in first.arguments.items()]
        if refused := rejection_text(action, row):
            part.lines.append(LabelledText("rejected", _cut(refused)))
        if others:
            also = ", ".join(call.tool for call in others)
            part.lines.append(LabelledText("not scored", _cut(f"{also}, in the same message")))
        if due is not None and not part.arguments:
            part.lines.append(LabelledText("reference", call_text(due)))
    elif isinstance(action, Halt):
        part.about = _cut(f"{action.termination} {action.reason}".strip())
    else:
        part.about = "answered" if isinstance(action, Answer) else "unparseable output"
        part.text = _cut(action.text) or "(empty)"
        if isinstance(action, Answer):
            part.lines += _form_reply(action)
        if isinstance(action, Unparseable) and action.hint:
            part.lines.append(LabelledText("feedback", _cut(action.hint)))
        if due is not None:
            part.lines.append(LabelledText("reference", call_text(due)))


def _cut(text: str) -> str:
    return shortened(text, LONGEST_TEXT)
