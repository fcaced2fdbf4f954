"""Replies of judges and the scores from them; a grade is read anew from the raw reply whenever it is used."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import FrozenModel, Record, Score, Slot
from agrotools.scoring.judging.questions import JUDGED_METRICS, Rubrics, has_rubrics, judge_questions
from agrotools.scoring.judging.replies import JudgeQuestion

VERSION = "1"


class Judgement(FrozenModel):
    """One reply of a judge. ``asked`` says to which question, ``vote`` which time it was asked, from 0.

    ``label`` is the right grade where it is known: answers of a calibration set, which belong to no sample.
    """

    metric: str
    judge: str
    prompt: str
    asked: str
    vote: int = 0
    sample_id: str = ""
    label: int | None = None
    rubrics: str = ""
    """Digest of the user's rubrics that it was asked by; empty for ours, and where a metric has none."""
    reply: str
    finish_reason: str = ""
    unseen: tuple[str, ...] = ()
    """Images of the question that it could not be shown: all it knew of them is their names."""


def asked_metrics(judgements: Iterable[Judgement], rubrics: Rubrics | None = None) -> list[str]:
    """The metrics that a judge was asked for about samples (criteria with rubrics: by ``rubrics``), and those that
    read the same replies otherwise."""
    asked = {each.metric for each in judgements if each.label is None and _is_by(each, rubrics)}
    if not asked:  # JUDGED_METRICS imports the judges of all plug-ins
        return []
    return [name for name, metric in JUDGED_METRICS.items() if (metric.asked_as or name) in asked]


def criteria_judges(judgements: Iterable[Judgement], rubrics: Rubrics | None) -> list[str]:
    """Judges asked for criteria with rubrics, by ``rubrics``."""
    return sorted({each.judge for each in judgements if has_rubrics(each.metric) and _is_by(each, rubrics)})


def _is_by(judgement: Judgement, rubrics: Rubrics | None) -> bool:
    """True if nothing speaks against its being one by ``rubrics`` (None: ours)."""
    return judgement.rubrics == (rubrics.digest if rubrics else "") or not has_rubrics(judgement.metric)


Judgements = Mapping[str, Sequence[Judgement]]
"""By the question that they reply to (``JudgeQuestion.asked``)."""


class Judged(NamedTuple):
    """Grades of one answer: their grades by name, vote by vote; None is a reply without a grade."""

    question: JudgeQuestion
    grades: dict[str, list[float | None]]

    @property
    def value(self) -> float | None:
        """Mean over the judges of the mean of their votes, in [0, 1]; None where none gave a grade."""
        means = [
            fmean(given) for votes in self.grades.values() if (given := [vote for vote in votes if vote is not None])
        ]
        return fmean(means) / self.question.most if means else None


def by_question(judgements: Iterable[Judgement]) -> dict[str, list[Judgement]]:
    """The judgements by question, those of each by judge and vote; labelled ones are left out."""
    found: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        if judgement.label is None:
            found.setdefault(judgement.asked, []).append(judgement)
    for given in found.values():
        given.sort(key=lambda judgement: (judgement.judge, judgement.vote))
    return found


def judged(record: Record, judgements: Judgements, rubrics: Rubrics | None = None) -> list[Judged]:
    """All that judges could be asked about ``record``, with what they gave (maybe nothing yet)."""
    found: list[Judged] = []
    for question in judge_questions(record, rubrics):
        grades: dict[str, list[float | None]] = {}
        for judgement in judgements.get(question.asked, ()):
            grades.setdefault(judgement.judge, []).append(question.read(judgement.reply))
        found.append(Judged(question, grades))
    return found


def judged_scores(record: Record, graded: Sequence[Judged], metrics: Iterable[str]) -> list[Score]:
    """One row for each of ``metrics`` (those that any judge was asked for) that the sample has slots of.

    Its value is that of all its questions together; a record without an answer scores 0, as by every other metric.
    No row where a grade is missing: what no judge graded is counted, not guessed.
    """
    if record.trajectory is None or record.invalid is not None or record.trajectory.termination == "infrastructure":
        return []
    rows: list[Score] = []
    for metric in metrics:
        slots = [slot for slot in record.sample.answer if JUDGED_METRICS[metric].belongs(slot)]
        if not slots:
            continue
        own = [each for each in graded if each.question.metric == metric]
        values = [each.value for each in own]
        given = [value for value in values if value is not None]
        reading: dict[str, JsonValue] = {"rule": "no answer"}
        if own:
            reading = {each.question.slot: {name: list(votes) for name, votes in each.grades.items()} for each in own}
        if len(given) < len(own):
            continue
        judges = sorted({name for each in own for name in each.grades})
        rows.append(
            Score(
                metric=metric,
                version=VERSION,
                sample_id=record.sample.id,
                epoch=record.epoch,
                value=_together(metric, slots, given) if own else 0.0,
                reading=reading,
                judge=", ".join(judges) or None,
                judge_prompt_hash=own[0].question.prompt if own else None,
            )
        )
    return rows


def _together(metric: str, slots: Sequence[Slot], grades: Sequence[float]) -> float:
    """Value of all grades of a sample, in [0, 1]."""
    judged = JUDGED_METRICS[metric]
    return judged.together(judged.of_slots(slots, grades) if judged.of_slots else grades)
