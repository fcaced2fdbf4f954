"""One sample of a run, from the question to the score: what ``agrotools explain`` shows."""

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

from agrotools.core import FAMILIES, Record, SampleFile, Score
from agrotools.report.cells import on_scale, percent
from agrotools.report.layout import PLAIN_WIDTH, console_for, indented, line, rendered, section
from agrotools.report.readings import reading_blocks, slot_readings, summary_readings
from agrotools.report.trace import step_by_step_trace, trajectory_trace
from agrotools.report.values import harmless, shortened
from agrotools.scoring import METRICS, SAMPLE_METRICS
from agrotools.scoring.judging import Judgement

if TYPE_CHECKING:
    from rich.console import RenderableType

_LONGEST_ANSWER = 4_000
_LONGEST_REPLY = 600


def print_explanation(
    record: Record, scores: Sequence[Score], judgements: Sequence[Judgement] = (), *, file: IO[str] | None = None
) -> None:
    """Print :func:`explain`: in colour on a terminal, as plain text anywhere else."""
    console = console_for(file)
    for part in explain(record, scores, judgements):
        console.print(part)


def explanation_text(record: Record, scores: Sequence[Score], *, width: int = PLAIN_WIDTH) -> str:
    """:func:`explain` as plain text of at most ``width`` columns."""
    return rendered(explain(record, scores), width)


def explain(record: Record, scores: Sequence[Score], judgements: Sequence[Judgement] = ()) -> list["RenderableType"]:
    """What was asked, done and answered, how each slot was read, and what each scored and why.

    Args:
        record: one record of a run.
        scores: its rows, as :func:`agrotools.scoring.score_record` gives them.
        judgements: what judges replied about it.
    """
    parts: list[RenderableType] = [_heading(record, scores), *_asked(record)]
    reference = record.sample.reference.steps if record.sample.reference else ()
    if record.invalid is not None:
        parts += [section("Invalid"), line(f"  {harmless(record.invalid)}. Left out of every mean.", "red")]
    elif record.actions is not None:
        parts += [section("Predicted"), *step_by_step_trace(record.actions, reference, scores)]
    elif record.trajectory is not None:
        unparseable = any(step.kind == "unparseable" for step in record.trajectory.steps)
        if record.mode == "end-to-end" or record.trajectory.calls or unparseable:
            compared_with = record.sample if record.mode == "end-to-end" else None
            parts += [section("Done"), *trajectory_trace(record.trajectory, compared_with)]
        parts += [section("Answered"), *_answered(record)]
    readings = [*slot_readings(record.sample.answer, scores), *summary_readings(record.sample.answer, scores)]
    if readings:
        parts += [section("Scored"), *reading_blocks(readings)]
    if judgements:
        parts += [section("Judged"), *_judged(judgements, scores)]
    return parts


def _judged(judgements: Sequence[Judgement], scores: Sequence[Score]) -> Iterator["RenderableType"]:
    for row in scores:
        if row.judge is not None:
            yield line(f"  {METRICS[row.metric].label} {on_scale(row.value, METRICS[row.metric].out_of)}")
    for each in judgements:
        vote = f", vote {each.vote + 1}" if each.vote else ""
        yield line(f"  {harmless(each.judge)}{vote}: {shortened(harmless(each.reply), _LONGEST_REPLY) or '(nothing)'}")


def _heading(record: Record, scores: Sequence[Score]) -> "RenderableType":
    from rich.rule import Rule

    epoch = f" · epoch {record.epoch}" if record.epoch else ""
    of_sample = {row.metric: row.value for row in scores if row.slot is None and row.step is None}
    of_sample = {METRICS[name].label: of_sample[name] for name in SAMPLE_METRICS if name in of_sample}
    score = "".join(f" · {label} {percent(value)}" for label, value in of_sample.items())
    ended = f" · {record.trajectory.termination}" if record.trajectory and not record.invalid else ""
    ended = " · invalid" if record.invalid else ended
    return Rule(f"{record.sample.id} · {record.mode}{epoch}{ended}{score}", style="bold", align="left")


def _asked(record: Record) -> Iterator["RenderableType"]:
    sample = record.sample
    family = FAMILIES.get(sample.family, sample.family)
    about = f"{sample.task_type.replace('_', ' ')} ({family}), {sample.answer_type.replace('_', ' ')} answer"
    yield line(f"{about}, source {sample.source}, cluster {sample.cluster or sample.id}", "dim")
    yield section("Asked")
    yield indented(line(harmless(sample.query)))
    for file in sample.files:
        yield indented(line(f"{file.name}  {file_text(file)}", "dim"))


def file_text(file: SampleFile) -> str:
    """What is known of a file, in a line."""
    parts: list[str] = [file.kind]
    if file.width_px and file.height_px:
        parts.append(f"{file.width_px} x {file.height_px} px")
    if file.gsd_m:
        parts.append(f"{1000 * file.gsd_m:.3g} mm/px" if file.gsd_m < 1 else f"{file.gsd_m:.3g} m/px")
    if file.bands:
        parts.append(f"bands {' '.join(file.bands)}")
    if file.classes:
        parts.append(f"classes {', '.join(f'{index} {name}' for index, name in file.classes.items())}")
    if file.note:
        parts.append(harmless(file.note))
    return ", ".join(parts)


def _answered(record: Record) -> Iterator["RenderableType"]:
    trajectory = record.trajectory
    assert trajectory is not None
    if trajectory.answer is None:
        reason = f": {harmless(trajectory.reason)}" if trajectory.reason else ""
        yield indented(line(f"no answer ({trajectory.termination}{reason})", "red"))
        return
    yield indented(line(shortened(harmless(trajectory.answer), _LONGEST_ANSWER) or "(empty)"))
