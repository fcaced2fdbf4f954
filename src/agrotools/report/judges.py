"""Who judged, and how far that can be trusted, in words under the tables."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agrotools.report.cells import on_scale, percent, run_names
from agrotools.report.layout import harmless
from agrotools.scoring import METRICS, Summary
from agrotools.scoring.judging import has_rubrics
from agrotools.scoring.summary import Agreement, Panel

if TYPE_CHECKING:
    from rich.console import RenderableType


def judge_lines(summaries: Sequence[Summary]) -> list["RenderableType"]:
    """:func:`judge_notes` for a terminal."""
    from rich.text import Text

    lines = judge_notes(summaries)
    return [Text("\n".join(lines))] if lines else []


def judge_notes(summaries: Sequence[Summary]) -> list[str]:
    """For each run whose answers were graded by judges: what each gave, and how far they agree."""
    lines: list[str] = []
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        if summary.judging is not None:
            of_run = f"{name}, " if len(summaries) > 1 else ""
            lines += [f"{of_run}{line}" for line in panel_lines(summary.judging)]
    return lines


def panel_lines(panel: Panel) -> Iterator[str]:
    """A line for each judge, for the agreement between them, and for each calibration."""
    for judge in panel.judges:
        mean = f", mean {on_scale(judge.mean, METRICS[judge.metric].out_of)}" if judge.mean is not None else ""
        unreadable = f", {judge.unreadable} of {judge.votes} replies without a grade" if judge.unreadable else ""
        votes = f"; its votes agree: {_agreement(judge.between_votes)}" if judge.between_votes else ""
        label = METRICS[judge.metric].label
        rubrics = f", {harmless(panel.rubrics)}" if panel.rubrics and has_rubrics(judge.metric) else ""
        who = f"{label} by {harmless(judge.judge)} (prompt {', '.join(judge.prompts)}{rubrics})"
        yield f"{who}: {judge.graded} of {judge.answers} answers graded{mean}{unreadable}{votes}"
    for metric, agreement in panel.between_judges.items():
        yield f"{METRICS[metric].label}: the judges agree: {_agreement(agreement)}"
    for check in panel.calibrations:
        exact = f"{percent(check.exact)} % graded just so" if check.exact is not None else "none graded"
        lenience = f", {check.lenience:+.2f} grades on average" if check.lenience is not None else ""
        unread = f", {check.unreadable} replies without a grade" if check.unreadable else ""
        against = f"; with the known grades: {_agreement(check.with_labels)}" if check.with_labels else ""
        yield f"{harmless(check.judge)} on {check.n} answers with known grades: {exact}{lenience}{unread}{against}"


def _agreement(agreement: Agreement) -> str:
    if agreement.alpha is None:
        return f"all grades are the same ({agreement.n_units} answers)"
    inside = agreement.interval
    interval = f" ({inside.lower:.2f} to {inside.upper:.2f})" if inside else ""
    return f"alpha {agreement.alpha:.2f}{interval}, {agreement.n_units} answers"
