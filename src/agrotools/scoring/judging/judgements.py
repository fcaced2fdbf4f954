"""Replies of judges, scores from them, and the agreement of judges with each other, themselves and known grades.

Grades are read from the raw reply whenever they are used. Agreement is Krippendorff's alpha (Content Analysis, 2004,
chapter 11) between several judges or several votes of one judge.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from statistics import fmean, median_low
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import FrozenModel, Record, Score
from agrotools.core.lazy import FloatArray, IntArray, np
from agrotools.scoring.judging.questions import (
    JUDGED_METRICS,
    SHIPPED_RUBRICS,
    JudgeQuestion,
    Rubrics,
    has_rubrics,
    judge_questions,
    read_grade,
)
from agrotools.scoring.metrics import (
    FAS,
    HARMFUL_ADVICE,
    OPEN_TEXT,
    SLOT_METRIC,
    counts_in_fas,
    is_judged_text,
)
from agrotools.scoring.slot_weights import weighted_mean
from agrotools.scoring.slots import SlotScore, score_row
from agrotools.scoring.statistics import Interval
from agrotools.scoring.summary import Calibration, JudgeAgreement, JudgeSummary, Panel

VERSION = "1"


class Judgement(FrozenModel):
    """One reply of a judge. ``asked`` identifies the question, ``vote`` is the number of the repetition, from 0.

    ``label`` is the right grade of an answer in a calibration set, which belongs to no sample; None for other answers.
    """

    metric: str
    judge: str
    prompt: str
    asked: str
    vote: int = 0
    sample_id: str = ""
    label: int | None = None
    rubrics: str = ""
    """Digest of the user's rubrics in the question; empty for the shipped rubrics and for metrics without rubrics."""
    reply: str
    finish_reason: str = ""
    unseen: tuple[str, ...] = ()
    """Kept for stored judgements of version 0.2.0: names of images that the judge could not be shown."""


Judgements = Mapping[str, Sequence[Judgement]]
"""Judgements by the question that they reply to (``JudgeQuestion.asked``)."""


class GradedQuestion(NamedTuple):
    """Grades of one answer by judge, one for each vote; None for a reply without a grade."""

    question: JudgeQuestion
    grades: dict[str, list[float | None]]

    @property
    def value(self) -> float | None:
        """Mean over the judges of the mean of their votes, in [0, 1]; None if there is no grade."""
        means = [
            fmean(valid)
            for votes in self.grades.values()
            if (valid := [vote for vote in votes if vote is not None])
        ]
        return fmean(means) / self.question.most if means else None


def by_question(judgements: Iterable[Judgement]) -> dict[str, list[Judgement]]:
    """Group judgements by question, each group sorted by judge and vote. Labelled judgements are left out."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        if judgement.label is None:
            groups.setdefault(judgement.asked, []).append(judgement)
    for group in groups.values():
        group.sort(key=lambda judgement: (judgement.judge, judgement.vote))
    return groups


def judged(
    record: Record, judgements: Judgements, rubrics: Rubrics | None = None
) -> list[GradedQuestion]:
    """Return all questions to judges about ``record`` with their grades so far, which may be none."""
    results: list[GradedQuestion] = []
    for question in judge_questions(record, rubrics):
        grades: dict[str, list[float | None]] = {}
        for judgement in judgements.get(question.asked, ()):
            grades.setdefault(judgement.judge, []).append(question.read(judgement.reply))
        results.append(GradedQuestion(question, grades))
    return results


def judged_scores(
    record: Record, graded: Sequence[GradedQuestion], metrics: Iterable[str]
) -> list[Score]:
    """Return one row for each of ``metrics`` (metrics that any judge was asked for) that has slots in the sample.

    The value combines all questions of the metric; a record without an answer scores 0, as with every other metric. A
    metric with a missing grade has no row, because ungraded answers are counted, not guessed.
    """
    if (
        record.trajectory is None
        or record.invalid is not None
        or record.trajectory.termination == "infrastructure"
    ):
        return []
    rows: list[Score] = []
    for metric in metrics:
        kind = JUDGED_METRICS[metric]
        slots = [slot for slot in record.sample.answer if kind.applies_to(slot)]
        if not slots:
            continue
        of_metric = [each for each in graded if each.question.metric == metric]
        if not of_metric:
            nothing = SlotScore(0.0, {"rule": "no answer"})
            rows.append(score_row(record, metric, nothing, version=VERSION))
            continue
        numbers = [each.value for each in of_metric if each.value is not None]
        if len(numbers) < len(of_metric):
            continue
        value = kind.combine(numbers)
        grades: dict[str, JsonValue] = {}
        for each in of_metric:
            grades[each.question.slot] = {name: [*votes] for name, votes in each.grades.items()}
        judges = sorted({name for each in of_metric for name in each.grades})
        rows.append(
            score_row(
                record,
                metric,
                SlotScore(value, grades),
                version=VERSION,
                judge=", ".join(judges) or None,
                prompt=of_metric[0].question.prompt,
            )
        )
    return rows


# --- agreement -------------------------------------------------------------------------------------------------------

_DRAWS = 1000
_SEED = 0
_FEWEST_UNITS = 10


def agreement(
    units: Sequence[Sequence[float | None]],
    clusters: Sequence[Hashable] | None = None,
) -> JudgeAgreement | None:
    """Return Krippendorff's ordinal alpha of grades; None if no unit has two grades.

    A unit holds the grades of one answer, None for a missing grade. ``clusters``: the cluster of each unit, which the
    bootstrap draws as a whole; None to draw single units.
    """
    rated: list[list[float]] = []
    labels: list[Hashable] = []
    for unit, label in zip(units, range(len(units)) if clusters is None else clusters, strict=True):
        grades = sorted(grade for grade in unit if grade is not None)
        if len(grades) > 1:
            rated.append(grades)
            labels.append(label)
    if not rated:
        return None
    sizes = np.array([len(grades) for grades in rated])
    all_grades = [grade for grades in rated for grade in grades]
    levels = np.unique(all_grades, return_inverse=True)[1]
    alpha = _alpha(levels, sizes, np.ones(len(rated)))
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    if alpha is None or len(numbers) < _FEWEST_UNITS:
        return JudgeAgreement(alpha=alpha, n_units=len(rated))
    cluster_of = np.array([numbers[label] for label in labels])
    interval = _alpha_interval(levels, sizes, cluster_of, len(numbers))
    return JudgeAgreement(alpha=alpha, n_units=len(rated), interval=interval)


def _alpha_interval(
    levels: IntArray, sizes: IntArray, cluster_of: IntArray, n_clusters: int
) -> Interval:
    """Return the 95 % percentile interval of alpha over bootstrap draws of clusters; ``cluster_of``: by unit."""
    generator = np.random.default_rng(_SEED)
    even = [1 / n_clusters] * n_clusters
    times_drawn = generator.multinomial(n_clusters, even, size=_DRAWS)
    alphas: list[float] = []
    for times in times_drawn:
        alpha = _alpha(levels, sizes, times[cluster_of].astype(np.float64))
        if alpha is not None:  # None: all drawn grades are equal
            alphas.append(alpha)
    lower, upper = np.percentile(alphas, [2.5, 97.5]).tolist()
    return Interval(lower=lower, upper=upper)


def _alpha(levels: IntArray, sizes: IntArray, weights: FloatArray) -> float | None:
    """Return alpha of grades, given as ``levels`` from 0, unit by unit; ``sizes`` and ``weights`` are those of units.

    The ordinal distance of two grades is the number of ratings between them, with half of the ratings at either end:
    the squared difference of their mean ranks.
    """
    totals = np.bincount(levels, np.repeat(weights, sizes))
    if np.count_nonzero(totals) < 2:
        return None
    n = totals.sum()
    rank = np.cumsum(totals) - totals / 2
    expected = n * (totals * (rank - (totals * rank).sum() / n) ** 2).sum() / (n - 1)
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(rank[levels], starts) / sizes
    spread = np.add.reduceat((rank[levels] - np.repeat(means, sizes)) ** 2, starts)
    return 1 - float((weights * sizes * spread / (sizes - 1)).sum() / expected)


class JudgedRows:
    """Score rows from judges for each record, and the panel summary of all records.

    ``rubrics`` are the rubrics of the criteria, None for the shipped ones; judgements by other rubrics are ignored.
    """

    def __init__(self, judgements: Sequence[Judgement], rubrics: Rubrics | None = None) -> None:
        self._rubrics = rubrics
        self._labelled = [each for each in judgements if each.label is not None]
        self._by_question = by_question(judgements)
        digest = rubrics.digest if rubrics else ""
        used = [
            each for each in judgements if each.rubrics == digest or not has_rubrics(each.metric)
        ]
        asked = {each.metric for each in used if each.label is None}
        kinds = JUDGED_METRICS.items() if asked else ()  # it imports the judges of all plug-ins
        self.metrics = [name for name, kind in kinds if (kind.replies_of or name) in asked]
        """Metrics that judges graded samples by, including those that read the same replies in another way."""
        self.criteria_judges = sorted({each.judge for each in used if has_rubrics(each.metric)})
        """Names of the judges that graded criteria by these rubrics."""
        self._graded_of: defaultdict[str, list[GradedQuestion]] = defaultdict(list)
        """Questions about the records so far, by metric."""

    @property
    def rubrics_label(self) -> str:
        """Source of the rubrics that the criteria were graded by."""
        return self._rubrics.label if self._rubrics else SHIPPED_RUBRICS

    def joined(self, record: Record, rows: Sequence[Score]) -> list[Score]:
        """Return the rows of ``record`` and its judge rows.

        Where judges graded open text, it counts in FAS, and their verdicts on harmful claims replace the rule's.
        """
        every = judged(record, self._by_question, self._rubrics) if self.metrics else []
        for each in every:
            self._graded_of[each.question.metric].append(each)
        of_judges = judged_scores(record, every, self.metrics)
        if all(row.metric != OPEN_TEXT for row in of_judges):
            return [*rows, *of_judges]
        graded = [each for each in every if each.question.metric == OPEN_TEXT]
        replacing = [score_row(record, FAS, _fas_with_text(record, rows, graded))]
        harmful = self._harmful_advice(graded)
        if harmful is not None and any(row.metric == HARMFUL_ADVICE for row in rows):
            replacing.append(score_row(record, HARMFUL_ADVICE, harmful))
        replaced = {row.metric for row in replacing}
        kept = [row for row in rows if row.metric not in replaced]
        return [*kept, *replacing, *of_judges]

    def _harmful_advice(self, graded: Sequence[GradedQuestion]) -> SlotScore | None:
        """Return the share of replies that found harmful claims in answers, with the claims; None if none replied."""
        found: list[Sequence[str]] = []
        for question, _ in graded:
            for judgement in self._by_question.get(question.asked, ()):
                found.append(question.harmful(judgement.reply))
        if not found:
            return None
        claims = dict.fromkeys(claim for each in found for claim in each)
        return SlotScore(fmean(map(bool, found)), {"claims": [*claims]})

    def values(self, record: Record) -> dict[str, float | None]:
        """Return the judges' value of ``record`` by metric, over all its questions.

        A value is None if a grade is missing; the result is empty if there are no questions about the record."""
        values: dict[str, list[float | None]] = defaultdict(list)
        for each in judged(record, self._by_question, self._rubrics):
            values[each.question.metric].append(each.value)
        return {metric: _combined(metric, each) for metric, each in values.items()}

    def of(self, record: Record) -> list[Judgement]:
        """Return the replies of judges about ``record``."""
        question_ids = (
            dict.fromkeys(q.asked for q in judge_questions(record, self._rubrics))
            if self.metrics
            else ()
        )
        return [each for key in question_ids for each in self._by_question.get(key, ())]

    def panel(self) -> Panel | None:
        """Return the summary of the judges over all records with rows; None if no judge was asked."""
        if not self.metrics and not self._labelled:
            return None
        judges: list[JudgeSummary] = []
        between: dict[str, JudgeAgreement] = {}
        for metric, graded in self._graded_of.items():
            names = sorted({name for each in graded for name in each.grades})
            judges += [_judge_summary(metric, name, graded) for name in names]
            units = [[_one(each.grades.get(name, ())) for name in names] for each in graded]
            if len(names) > 1 and (estimate := agreement(units)) is not None:
                between[metric] = estimate
        rubrics = self.rubrics_label if self.criteria_judges else ""
        known = tuple(calibrations(self._labelled))
        return Panel(
            judges=tuple(judges), between_judges=between, calibrations=known, rubrics=rubrics
        )


def _fas_with_text(
    record: Record, rows: Sequence[Score], graded: Sequence[GradedQuestion]
) -> SlotScore:
    """Return the Final Answer Score of a record in which open text counts by the grades of judges."""
    values = {row.slot: row.value for row in rows if row.metric == SLOT_METRIC}
    by_judges = {each.question.slot: each.value for each in graded}
    values |= by_judges
    counted = [slot for slot in record.sample.answer if counts_in_fas(slot) or is_judged_text(slot)]
    mean = weighted_mean(counted, [values[slot.name] or 0.0 for slot in counted])
    return SlotScore(mean, {"slots": {slot.name: values[slot.name] for slot in counted}})


def _combined(metric: str, values: Sequence[float | None]) -> float | None:
    """Return the value of a record from those of its questions; None if one is missing."""
    numbers = [value for value in values if value is not None]
    return JUDGED_METRICS[metric].combine(numbers) if len(numbers) == len(values) else None


def _judge_summary(metric: str, name: str, results: Sequence[GradedQuestion]) -> JudgeSummary:
    of_judge = [(each, each.grades[name]) for each in results if name in each.grades]
    replies = [grade for _, votes in of_judge for grade in votes]
    graded = [
        (each, read)
        for each, votes in of_judge
        if (read := [vote for vote in votes if vote is not None])
    ]
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


def calibrations(labelled: Iterable[Judgement]) -> list[Calibration]:
    """Return the results of each judge on answers with known grades, by the median of its votes."""
    votes: defaultdict[str, defaultdict[tuple[str, int], list[float | None]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for judgement in labelled:
        if judgement.label is not None:
            votes[judgement.judge][judgement.asked, judgement.label].append(
                read_grade(judgement.reply)
            )
    results: list[Calibration] = []
    for judge, answers in sorted(votes.items()):
        pairs = [(label, _one(grades)) for (_, label), grades in answers.items()]
        read = [(label, grade) for label, grade in pairs if grade is not None]
        confusion = [[0] * 3 for _ in range(3)]
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
