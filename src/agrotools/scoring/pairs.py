"""Scores of unanswerable samples, each of which counts only beside the record of its answerable twin.

If both records of an epoch are valid, the unanswerable sample scores 1 if it alone was refused, -1 if the twin alone
was, and else 0. Refusals at random therefore earn nothing in the mean. Without both records it has no score.
"""

from collections.abc import Sequence

from agrotools.core import Record, Score
from agrotools.scoring.metrics import FALSE_REFUSAL, FAS, GUESS_METRIC
from agrotools.scoring.slots import SlotScore, score_row
from agrotools.text.answer_form import UNKNOWN, guessed_text

NO_TWIN = "not in FAS: no valid record of the answerable twin"
Pair = tuple[str | None, str | None, int]


def pair_of(record: Record) -> Pair | None:
    """Return the ids of the unanswerable and the answerable sample, and the epoch; None for other records."""
    sample = record.sample
    if record.actions is not None or (sample.answerable and sample.twin is None):
        return None
    return (sample.twin, sample.id, record.epoch) if sample.answerable else (sample.id, sample.twin, record.epoch)


def refusals(record: Record, rows: Sequence[Score]) -> dict[str, bool]:
    """Return whether a record of a pair refuses (FAS), and whether the guess from its prompt does ."""
    sample = record.sample
    refused = any(row.reading.get("rule") == "refused" or (row.metric == FALSE_REFUSAL and row.value) for row in rows)
    return {FAS: refused, GUESS_METRIC: guessed_text(sample, sample.answer) == UNKNOWN}


def pair_scores(unanswerable: dict[str, bool], answerable: dict[str, bool]) -> dict[str, float]:
    """Return the scores of an unanswerable sample by metric, from the refusals of both samples of the pair."""
    return {metric: float(refused) - float(answerable[metric]) for metric, refused in unanswerable.items()}


def pair_rows(record: Record, rows: Sequence[Score], twin: Record, twin_rows: Sequence[Score]) -> list[Score]:
    """Return the rows that the valid record of a twin adds to those of an unanswerable sample."""
    own, other = refusals(record, rows), refusals(twin, twin_rows)
    return [
        score_row(record, metric, SlotScore(value, {"twin": twin.sample.id, "twin_refused": other[metric]}))
        for metric, value in pair_scores(own, other).items()
    ]


def refused_twin(rows: Sequence[Score]) -> str:
    """Return the id of the answerable twin if its refusal takes a point from these rows; else an empty text."""
    return next((str(row.reading["twin"]) for row in rows if row.metric == FAS and row.reading.get("twin_refused")), "")


class PairTally:
    """Records of one mode whose twin is awaited, and the number of unanswerable samples that score 1."""

    def __init__(self) -> None:
        self.n_right = 0
        self._waiting: dict[Pair, tuple[bool, int, dict[str, bool]]] = {}

    def add(self, record: Record, place: int, rows: Sequence[Score]) -> tuple[int, dict[str, float]] | None:
        """Add the valid record of the sample at ``place``.

        Returns:
            The place of the unanswerable sample and its scores, if the pair is complete."""
        if (pair := pair_of(record)) is None:
            return None
        answerable, refused = record.sample.answerable, refusals(record, rows)
        other = self._waiting.pop(pair, None)
        if other is None:
            self._waiting[pair] = (answerable, place, refused)
            return None
        scores = pair_scores(other[2], refused) if answerable else pair_scores(refused, other[2])
        self.n_right += scores[FAS] == 1
        return (other[1] if answerable else place), scores

    @property
    def n_alone(self) -> int:
        """Number of unanswerable samples without a valid record of the twin in an epoch of theirs."""
        return len({place for answerable, place, _ in self._waiting.values() if not answerable})
