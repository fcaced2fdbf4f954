"""Replies of judges, the scores from them, and how far judges agree with each other, themselves and known grades.

A grade is read anew from the raw reply whenever it is used. Agreement is Krippendorff's alpha (Content
Analysis, 2004, chapter 11), of several judges or several votes of one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median_low
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from agrotools.core import FrozenModel, Record, Score, Slot
from agrotools.scoring.judging.questions import (
    JUDGED_METRICS,
    SHIPPED_RUBRICS,
    JudgeQuestion,
    Rubrics,
    has_rubrics,
    judge_questions,
    read_grade,
)
from agrotools.scoring.statistics import Interval
from agrotools.scoring.summary import Agreement, Calibration, JudgeSummary, Panel

VERSION = "1"


class Judgement(FrozenModel):
    """One reply of a judge. ``asked`` identifies the question, ``vote`` is the number of the repetition, from 0.

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
    unlabelled = {each.metric for each in judgements if each.label is None and _is_by(each, rubrics)}
    if not unlabelled:  # JUDGED_METRICS imports the judges of all plug-ins
        return []
    return [name for name, metric in JUDGED_METRICS.items() if (metric.asked_as or name) in unlabelled]


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
        """Mean over the judges of the mean of their votes, in [0, 1]; None without a grade."""
        means = [
            fmean(valid) for votes in self.grades.values() if (valid := [vote for vote in votes if vote is not None])
        ]
        return fmean(means) / self.question.most if means else None


def by_question(judgements: Iterable[Judgement]) -> dict[str, list[Judgement]]:
    """The judgements by question, those of each by judge and vote; labelled ones are left out."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        if judgement.label is None:
            groups.setdefault(judgement.asked, []).append(judgement)
    for group in groups.values():
        group.sort(key=lambda judgement: (judgement.judge, judgement.vote))
    return groups


def judged(record: Record, judgements: Judgements, rubrics: Rubrics | None = None) -> list[Judged]:
    """All questions to judges about ``record``, with the grades so far (possibly none)."""
    results: list[Judged] = []
    for question in judge_questions(record, rubrics):
        grades: dict[str, list[float | None]] = {}
        for judgement in judgements.get(question.asked, ()):
            grades.setdefault(judgement.judge, []).append(question.read(judgement.reply))
        results.append(Judged(question, grades))
    return results


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
        of_metric = [each for each in graded if each.question.metric == metric]
        values = [each.value for each in of_metric]
        numbers = [value for value in values if value is not None]
        reading: dict[str, JsonValue] = {"rule": "no answer"}
        if of_metric:
            reading = {
                each.question.slot: {name: list(votes) for name, votes in each.grades.items()} for each in of_metric
            }
        if len(numbers) < len(of_metric):
            continue
        judges = sorted({name for each in of_metric for name in each.grades})
        rows.append(
            Score(
                metric=metric,
                version=VERSION,
                sample_id=record.sample.id,
                epoch=record.epoch,
                value=_together(metric, slots, numbers) if of_metric else 0.0,
                reading=reading,
                judge=", ".join(judges) or None,
                judge_prompt_hash=of_metric[0].question.prompt if of_metric else None,
            )
        )
    return rows


def _together(metric: str, slots: Sequence[Slot], grades: Sequence[float]) -> float:
    """Value of all grades of a sample, in [0, 1]."""
    judged = JUDGED_METRICS[metric]
    return judged.together(judged.of_slots(slots, grades) if judged.of_slots else grades)


# --- agreement -------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_DRAWS = 1000
_FEWEST_UNITS = 10


def agreement(units: Sequence[Sequence[float | None]], *, seed: int = 0) -> Agreement | None:
    """Ordinal alpha of grades; a unit holds the grades of one answer, None for a missing grade.

    None if no unit has two grades.
    """
    import numpy as np

    rated = [grades for unit in units if len(grades := [grade for grade in unit if grade is not None]) > 1]
    if not rated:
        return None
    scale = {grade: rank for rank, grade in enumerate(sorted({grade for grades in rated for grade in grades}))}
    size = len(scale)
    counts = np.zeros((len(rated), size))
    for row, grades in zip(counts, rated, strict=True):
        for grade in grades:
            row[scale[grade]] += 1
    # Pairs of grades within each unit, both ways round, weighted so that a unit counts for as many as it has grades.
    m = counts.sum(axis=1)
    pairs = (counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(size)) / (m - 1)[:, None, None]
    alpha = _alpha(pairs.sum(axis=0))
    if alpha is None or len(rated) < _FEWEST_UNITS:
        return Agreement(alpha=alpha, n_units=len(rated))
    weights = np.random.default_rng(seed).multinomial(len(rated), [1 / len(rated)] * len(rated), size=_DRAWS)
    resampled = [_alpha(coincidences) for coincidences in np.tensordot(weights.astype(np.float64), pairs, axes=1)]
    alphas = [value for value in resampled if value is not None]
    lower, upper = np.percentile(alphas, [2.5, 97.5]).tolist()
    return Agreement(alpha=alpha, n_units=len(rated), interval=Interval(lower=lower, upper=upper))


def _alpha(coincidences: "FloatArray") -> float | None:
    import numpy as np

    totals = coincidences.sum(axis=0)
    n = totals.sum()
    # Two grades are as far apart as there are grades between them, each of the two counted half.
    upto = np.cumsum(totals)
    middle = upto - totals / 2
    distance = (middle[:, None] - middle[None, :]) ** 2
    expected = float((np.outer(totals, totals) * distance).sum()) / (n - 1)
    return 1 - float((coincidences * distance).sum()) / expected if expected > 0 else None


class PanelTally:
    """Counts of the judges' grades, answer by answer."""

    def __init__(self) -> None:
        self._judged: defaultdict[str, list[Judged]] = defaultdict(list)

    def add(self, graded: Iterable[Judged]) -> None:
        """The judged parts of one record."""
        for each in graded:
            self._judged[each.question.metric].append(each)

    def panel(self, labelled: Iterable[Judgement]) -> Panel:
        """Summary of all that was added; ``labelled`` are the judgements of calibration answers."""
        judges: list[JudgeSummary] = []
        between: dict[str, Agreement] = {}
        for metric, metric_judged in self._judged.items():
            names = sorted({name for each in metric_judged for name in each.grades})
            judges += [_judge_summary(metric, name, metric_judged) for name in names]
            if len(names) > 1:
                units = [[_one(each.grades.get(name, ())) for name in names] for each in metric_judged]
                if (estimate := agreement(units)) is not None:
                    between[metric] = estimate
        return Panel(judges=tuple(judges), between_judges=between, calibrations=tuple(calibrations(labelled)))


class JudgedRows:
    """Score rows from judges for each record, and the panel summary of all.

    ``rubrics``: those of the criteria that have some; what was graded by others is left aside. None: those that ship.
    """

    def __init__(self, judgements: Sequence[Judgement], rubrics: Rubrics | None = None) -> None:
        self._rubrics = rubrics
        self._labelled = [each for each in judgements if each.label is not None]
        self._by_question = by_question(judgements)
        self.metrics = asked_metrics(judgements, self._rubrics)
        """Those that a judge was asked for."""
        self.criteria_judges = criteria_judges(judgements, self._rubrics)
        """Judges asked for criteria by these rubrics."""
        self._tally = PanelTally()

    @property
    def rubrics_label(self) -> str:
        """Source of the rubrics that the criteria were graded by."""
        return self._rubrics.label if self._rubrics else SHIPPED_RUBRICS

    def rows(self, record: Record) -> list[Score]:
        """Judge rows of ``record``; empty if no judge was asked about the run."""
        if not self.metrics:
            return []
        graded = judged(record, self._by_question, self._rubrics)
        self._tally.add(graded)
        return judged_scores(record, graded, self.metrics)

    def values(self, record: Record) -> dict[str, float | None]:
        """By metric what the judges gave ``record``, over all its questions; None where a grade is missing, empty where
        nothing could be asked about it."""
        values_by_metric: dict[str, list[float | None]] = {}
        for each in judged(record, self._by_question, self._rubrics):
            values_by_metric.setdefault(each.question.metric, []).append(each.value)
        return {
            metric: None
            if None in values
            else JUDGED_METRICS[metric].together([each for each in values if each is not None])
            for metric, values in values_by_metric.items()
        }

    def of(self, record: Record) -> list[Judgement]:
        """Replies of judges about ``record``."""
        question_ids = dict.fromkeys(q.asked for q in judge_questions(record, self._rubrics)) if self.metrics else ()
        return [each for key in question_ids for each in self._by_question.get(key, ())]

    def panel(self) -> Panel | None:
        """Summary of the judges over all records with rows; None if no judge was asked."""
        if not self.metrics and not self._labelled:
            return None
        panel = self._tally.panel(self._labelled)
        if not self.criteria_judges:
            return panel
        return panel.model_copy(update={"rubrics": self.rubrics_label})


def _judge_summary(metric: str, name: str, results: Sequence[Judged]) -> JudgeSummary:
    of_judge = [(each, each.grades[name]) for each in results if name in each.grades]
    replies = [grade for _, votes in of_judge for grade in votes]
    graded = [(each, read) for each, votes in of_judge if (read := [vote for vote in votes if vote is not None])]
    means = [sum(read) / len(read) / each.question.most for each, read in graded]
    return JudgeSummary(
        metric=metric,
        judge=name,
        prompts=tuple(sorted({each.question.prompt for each, _ in of_judge})),
        answers=len(results),
        graded=len(graded),
        mean=sum(means) / len(means) if means else None,
        votes=len(replies),
        unreadable=replies.count(None),
        between_votes=agreement([votes for _, votes in of_judge]),
    )


def _one(votes: Sequence[float | None]) -> float | None:
    numeric = [vote for vote in votes if vote is not None]
    return median_low(numeric) if numeric else None


def calibrations(labelled: Iterable[Judgement], most: int = 2) -> list[Calibration]:
    """Results of each judge on answers with known grades; of several votes on one, the median counts."""
    votes: defaultdict[str, defaultdict[tuple[str, int], list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for judgement in labelled:
        if judgement.label is not None:
            votes[judgement.judge][judgement.asked, judgement.label].append(read_grade(judgement.reply, most))
    results: list[Calibration] = []
    for judge, answers in sorted(votes.items()):
        pairs = [(label, _one(grades)) for (_, label), grades in answers.items()]
        read = [(label, grade) for label, grade in pairs if grade is not None]
        confusion = [[0] * (most + 1) for _ in range(most + 1)]
        for label, grade in read:
            confusion[label][int(grade)] += 1
        results.append(
            Calibration(
                judge=judge,
                n=len(pairs),
                unreadable=len(pairs) - len(read),
                exact=sum(label == grade for label, grade in read) / len(read) if read else None,
                lenience=sum(grade - label for label, grade in read) / len(read) if read else None,
                with_labels=agreement(pairs),
                confusion=tuple(map(tuple, confusion)),
            )
        )
    return results
