"""Data of one record for its part of the page: question, steps, answer and scores."""

from collections.abc import Sequence
from dataclasses import dataclass

from agrotools.core import FAMILIES, Record, Sample, Score
from agrotools.report.explain import SlotReading, file_text, slot_readings, summary_readings
from agrotools.report.html.pictures import Absent, EmbeddedPicture, RunPictures
from agrotools.report.html.runs import facets_of
from agrotools.report.layout import LabelledText, percent
from agrotools.report.trace import StepPart, closest_steps, cut, missing_steps, predicted_steps, taken_steps
from agrotools.scoring import METRICS

MOST_STEPS = 60
STEP_METRICS = ("agrotools.st_acc", "agrotools.tool_acc", "agrotools.arg_acc", "agrotools.ear")


@dataclass(frozen=True)
class Figure:
    """Picture with its caption; ``role`` is ``file`` or the kind of an artifact."""

    name: str
    role: str
    text: str
    picture: EmbeddedPicture | Absent


@dataclass(frozen=True)
class PageStep:
    """Step with its figures and the texts of its scores, by label of the metric."""

    part: StepPart
    figures: list[Figure]
    scores: dict[str, str]


@dataclass(frozen=True)
class Detail:
    """Data of a record on the page."""

    about: str
    query: str
    files: list[Figure]
    steps: list[PageStep]
    left_out: int
    """Number of steps that are not shown."""
    missing: list[str]
    """Reference calls that no call matches."""
    answer: str | None
    no_answer: str
    slots: list[SlotReading]
    score_columns: list[str]
    invalid: str
    spent: str
    facets: list[str]


def detail_of(record: Record, scores: Sequence[Score], showing: RunPictures) -> Detail:
    """Return the data of ``record`` for the page; ``scores`` are its score rows."""
    sample = record.sample
    calls = [step.call for step in record.trajectory.steps if step.call] if record.trajectory else []
    compared = sample if record.mode == "end-to-end" else None
    matches = closest_steps(calls, compared) if compared else [None] * len(calls)
    reference = sample.reference.steps if sample.reference else ()
    steps: list[StepPart] = []
    if record.invalid is None and record.actions is not None:
        steps = [*predicted_steps(record.actions, reference, scores)]
    elif record.invalid is None and record.trajectory is not None:
        steps = [*taken_steps(record.trajectory.steps[:MOST_STEPS], matches, compared, record.faults)]
    in_trajectory = len(record.trajectory.steps) if record.trajectory else 0
    answer, no_answer = _answer(record)
    return Detail(
        about=_about(sample),
        query=cut(sample.query),
        files=[Figure(file.name, "file", file_text(file).rstrip("."), showing.file(file)) for file in sample.files],
        steps=[_page_step(part, showing, made_here=record.actions is None) for part in steps],
        left_out=max(0, in_trajectory - MOST_STEPS),
        missing=missing_steps(reference, matches) if compared and record.trajectory else [],
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
        return cut(record.trajectory.answer) or "(empty)", ""
    reason = f": {record.trajectory.reason}" if record.trajectory.reason else ""
    return None, cut(f"{record.trajectory.termination}{reason}")


def _spent(record: Record) -> str:
    tokens_in, tokens_out, usd = record.spending
    tokens = f", {tokens_in} tokens in, {tokens_out} out" if tokens_in or tokens_out else ""
    cost = "" if usd is None else f", {usd:.4f} USD"
    silent = ", usage not reported" if record.agent_replies == () else ""
    return f"{record.seconds:.2f} s{tokens}{cost}{silent}"


def _page_step(part: StepPart, showing: RunPictures, *, made_here: bool) -> PageStep:
    """Return a step with its figures: the artifacts that have a picture. Further artifacts are named in its lines."""
    figures: list[Figure] = []
    has_overlay = any(artifact.kind == "overlay" for artifact in part.artifacts)
    for artifact in part.artifacts:
        named = f"{artifact.name} ({artifact.kind})"
        if artifact.kind == "mask" and has_overlay:
            part.result_lines.append(LabelledText("files", named))
            continue
        picture = showing.artifact(artifact, made_here=made_here)
        if isinstance(picture, Absent) and not made_here:
            part.result_lines.append(LabelledText("files", f"{named}, made when the benchmark was built"))
        else:
            figures.append(Figure(artifact.name, artifact.kind, artifact.kind, picture))
    texts = {METRICS[name].label: percent(part.rows[name].value) if name in part.rows else "" for name in STEP_METRICS}
    return PageStep(part, figures, texts)
