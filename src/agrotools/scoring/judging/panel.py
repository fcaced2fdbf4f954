"""Judges of a run: how much they graded, how far they agree with each other, themselves and labels.

Agreement is Krippendorff's alpha (Content Analysis, 2004, chapter 11), of several judges or several votes of one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import TYPE_CHECKING

from agrotools.core import Record, Score
from agrotools.scoring.judging.judgements import (
    Judged,
    Judgement,
    asked_metrics,
    by_question,
    criteria_judges,
    judged,
    judged_scores,
)
from agrotools.scoring.judging.questions import JUDGED_METRICS, Rubrics, judge_questions, shipped_rubrics
from agrotools.scoring.judging.replies import read_grade
from agrotools.scoring.statistics import Interval
from agrotools.scoring.summary import Agreement, Calibration, JudgeSummary, Panel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_DRAWS = 1000
_FEWEST_UNITS = 10


def agreement(units: Sequence[Sequence[float | None]], *, seed: int = 0) -> Agreement | None:
    """Ordinal alpha of grades; a unit is what was given for one answer, None where a grade is missing.

    None where no unit has two grades.
    """
    import numpy as np

    rated = [given for unit in units if len(given := [grade for grade in unit if grade is not None]) > 1]
    if not rated:
        return None
    scale = {grade: rank for rank, grade in enumerate(sorted({grade for given in rated for grade in given}))}
    size = len(scale)
    counts = np.zeros((len(rated), size))
    for row, given in zip(counts, rated, strict=True):
        for grade in given:
            row[scale[grade]] += 1
    # Pairs of grades within each unit, both ways round, weighted so that a unit counts for as many as it has grades.
    m = counts.sum(axis=1)
    pairs = (counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(size)) / (m - 1)[:, None, None]
    alpha = _alpha(pairs.sum(axis=0))
    if alpha is None or len(rated) < _FEWEST_UNITS:
        return Agreement(alpha=alpha, n_units=len(rated))
    weights = np.random.default_rng(seed).multinomial(len(rated), [1 / len(rated)] * len(rated), size=_DRAWS)
    drawn = [_alpha(coincidences) for coincidences in np.tensordot(weights.astype(np.float64), pairs, axes=1)]
    told = [value for value in drawn if value is not None]
    lower, upper = np.percentile(told, [2.5, 97.5]).tolist()
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
    """Counts what judges gave, answer by answer."""

    def __init__(self) -> None:
        self._given: defaultdict[str, list[Judged]] = defaultdict(list)

    def add(self, graded: Iterable[Judged]) -> None:
        """The judged parts of one record."""
        for each in graded:
            self._given[each.question.metric].append(each)

    def panel(self, labelled: Iterable[Judgement]) -> Panel:
        """Summary of all that was added; ``labelled`` are the judgements of calibration answers."""
        judges: list[JudgeSummary] = []
        between: dict[str, Agreement] = {}
        for metric, given in self._given.items():
            names = sorted({name for each in given for name in each.grades})
            judges += [_judge_summary(metric, name, given) for name in names]
            if len(names) > 1:
                units = [[_one(each.grades.get(name, ())) for name in names] for each in given]
                if (found := agreement(units)) is not None:
                    between[metric] = found
        return Panel(judges=tuple(judges), between_judges=between, calibrations=tuple(calibrations(labelled)))


class JudgedRows:
    """The score rows that judges give records, and the panel that they come to.

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
    def rubrics(self) -> Rubrics:
        """Rubrics that the criteria were graded by."""
        return self._rubrics or shipped_rubrics()

    def rows(self, record: Record) -> list[Score]:
        """Those of ``record``; none where no judge was asked about the run."""
        if not self.metrics:
            return []
        graded = judged(record, self._by_question, self._rubrics)
        self._tally.add(graded)
        return judged_scores(record, graded, self.metrics)

    def values(self, record: Record) -> dict[str, float | None]:
        """By metric what the judges gave ``record``, over all its questions; None where a grade is missing, empty where
        nothing could be asked about it."""
        found: dict[str, list[float | None]] = {}
        for each in judged(record, self._by_question, self._rubrics):
            found.setdefault(each.question.metric, []).append(each.value)
        return {
            metric: None
            if None in values
            else JUDGED_METRICS[metric].together([each for each in values if each is not None])
            for metric, values in found.items()
        }

    def of(self, record: Record) -> list[Judgement]:
        """Replies of judges about ``record``."""
        asked = dict.fromkeys(q.asked for q in judge_questions(record, self._rubrics)) if self.metrics else ()
        return [each for key in asked for each in self._by_question.get(key, ())]

    def panel(self) -> Panel | None:
        """Summary of the judges over all records that rows were made for; None where nobody was asked."""
        if not self.metrics and not self._labelled:
            return None
        panel = self._tally.panel(self._labelled)
        if not self.criteria_judges:
            return panel
        return panel.model_copy(update={"rubrics": self.rubrics.label})


def _judge_summary(metric: str, name: str, given: Sequence[Judged]) -> JudgeSummary:
    own = [(each, each.grades[name]) for each in given if name in each.grades]
    replies = [grade for _, votes in own for grade in votes]
    graded = [(each, read) for each, votes in own if (read := [vote for vote in votes if vote is not None])]
    means = [sum(read) / len(read) / each.question.most for each, read in graded]
    return JudgeSummary(
        metric=metric,
        judge=name,
        prompts=tuple(sorted({each.question.prompt for each, _ in own})),
        answers=len(given),
        graded=len(graded),
        mean=sum(means) / len(means) if means else None,
        votes=len(replies),
        unreadable=replies.count(None),
        between_votes=agreement([votes for _, votes in own]),
    )


def _one(votes: Sequence[float | None]) -> float | None:
    given = [vote for vote in votes if vote is not None]
    return median_low(given) if given else None


def calibrations(labelled: Iterable[Judgement], most: int = 2) -> list[Calibration]:
    """Results of each judge on answers with known grades; of several votes on one, the median counts."""
    votes: defaultdict[str, defaultdict[tuple[str, int], list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for judgement in labelled:
        if judgement.label is not None:
            votes[judgement.judge][judgement.asked, judgement.label].append(read_grade(judgement.reply, most))
    found: list[Calibration] = []
    for judge, answers in sorted(votes.items()):
        pairs = [(label, _one(given)) for (_, label), given in answers.items()]
        read = [(label, grade) for label, grade in pairs if grade is not None]
        confusion = [[0] * (most + 1) for _ in range(most + 1)]
        for label, grade in read:
            confusion[label][int(grade)] += 1
        found.append(
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
    return found
