"""Points that the samples of a run lost, by part: collected record by record, once for every surface that shows them.

The split of a record follows from the record alone, and from results of calls that the run did not make, where
``agrotools attribute`` has made them (:data:`agrotools.scoring.counterfactual.FindResult`).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from agrotools.core import Mode, Observation, Record, Score, Slot, ToolCall
from agrotools.scoring.attribution import (
    ANSWER,
    AT_LIMIT,
    FORM,
    PLANNING,
    READING,
    TWIN,
    Attribution,
    LostSample,
    attribution_of,
    mean_shares,
    ordered_parts,
)
from agrotools.scoring.counterfactual import FindResult, SampleGame, lacks_values
from agrotools.scoring.metrics import FAS, OPEN_TEXT, SLOT_METRIC, is_judged_text
from agrotools.scoring.slot_weights import slot_weight
from agrotools.scoring.slots import UNREAD_RULES, pair_points, refusals, refused_twin


class LostScore(NamedTuple):
    """Final Answer Score of a sample, with what tells where its lost points count."""

    sample: str
    score: float
    task_type: str
    cluster: int
    weight: float


Shares = dict[str, Fraction]
"""Points that a record or sample lost, as fractions of 1, by part."""
FindResultFor = Callable[[Record], FindResult]
_ROUNDING = 1e-9
"""Two sums of scores that differ by less are equal: scores are floats, shares are exact."""


def no_result(_call: ToolCall) -> Observation | None:
    """Return None: the result of a call that the run did not make is not known."""
    return None


class CountedResults:
    """Results of calls that a run did not make, with the number of those that are not known."""

    def __init__(self, find_result: FindResult) -> None:
        self._find_result = find_result
        self.n_unknown = 0

    def __call__(self, call: ToolCall) -> Observation | None:
        observation = self._find_result(call)
        self.n_unknown += observation is None
        return observation


def lost_shares(
    record: Record, rows: Sequence[Score], find_result: FindResult = no_result
) -> Shares:
    """Return the points that a valid no-tool or end-to-end record lost, by part; empty if it lost nothing.

    Args:
        record: the record.
        rows: its score rows.
        find_result: returns the results of calls that the run did not make.

    The point that an unanswerable sample loses because its twin was refused is among them if the rows of its twin are
    (:func:`agrotools.scoring.slots.pair_rows`).
    """
    shares = _own_shares(record, rows, find_result)
    return _with_refused_twin(shares) if refused_twin(rows) else shares


def _own_shares(record: Record, rows: Sequence[Score], find_result: FindResult) -> Shares:
    """Return the lost points of a record, without what its twin loses."""
    lost = _lost(record, rows)
    if not lost:
        return {}
    if not is_split(record, rows):
        return {_part_without_calls(record, rows): lost}
    game = SampleGame(record, rows, find_result)
    # The game is played for the slots that rules score. Where a judge graded open text, it counts beside them.
    weight_in_score = _weight_beside_text(game.slots, record, rows)
    shares = {part: share * weight_in_score for part, share in game.shares().items()}
    by_open_text = lost - sum(shares.values())
    if abs(by_open_text) > _ROUNDING:
        shares[ANSWER] = by_open_text  # words follow from no result, so that no call explains them
    return {part: shares[part] for part in ordered_parts(shares) if shares[part]}


def _weight_beside_text(slots: Sequence[Slot], record: Record, rows: Sequence[Score]) -> Fraction:
    """Return the share of ``slots`` in the Final Answer Score of a record: 1, or less beside open text with a grade."""
    if all(row.metric != OPEN_TEXT for row in rows):
        return Fraction(1)
    texts = [slot for slot in record.sample.answer if is_judged_text(slot)]
    of_slots = sum((Fraction(slot_weight(slot)) for slot in slots), Fraction(0))
    of_texts = sum((Fraction(slot_weight(slot)) for slot in texts), Fraction(0))
    return of_slots / (of_slots + of_texts)


def _with_refused_twin(shares: Shares) -> Shares:
    """Return shares with what an unanswerable sample loses because its twin was refused."""
    alone = pair_points(refused=True, twin_refused=False)
    beside_refused_twin = pair_points(refused=True, twin_refused=True)
    return {**shares, TWIN: Fraction(alone - beside_refused_twin)}


def largest_part(shares: Mapping[str, Fraction] | Mapping[str, float]) -> str:
    """Return the part that lost most, of equal ones the first; empty if none lost anything."""
    return max(shares, key=shares.__getitem__, default="")


def is_split(record: Record, rows: Sequence[Score]) -> bool:
    """Return True if the points that a record lost are split between its calls, their results and its answer.

    Other records have no reference calls, or lost nothing. ``rows``: its score rows, none if it is invalid.
    """
    reference = record.sample.reference
    has_calls = reference is not None and bool(reference.steps)
    if record.mode != "end-to-end" or not has_calls or record.trajectory is None:
        return False
    return bool(_lost(record, rows))


def _lost(record: Record, rows: Sequence[Score]) -> Fraction:
    """Return what a record lacks to a Final Answer Score of 1, without what depends on its twin.

    0 if it has no such score.
    """
    metric = FAS if record.sample.answerable else SLOT_METRIC
    score = next((row.value for row in rows if row.metric == metric), 1.0)
    lost = Fraction(1) - Fraction(score)
    return lost if abs(lost) > _ROUNDING else Fraction(0)


def _part_without_calls(record: Record, rows: Sequence[Score]) -> str:
    """Return the part that lost the points of a record without reference calls, or without calls at all.

    It is the form of an answer that gives no value, a call that should have made what is scored, or the answer.
    """
    sample, trajectory = record.sample, record.trajectory
    if trajectory is None or trajectory.answer is None:
        at_limit = trajectory is not None and trajectory.termination in AT_LIMIT
        return PLANNING if at_limit else FORM
    if not sample.answerable:  # a refusal has no value to read
        return FORM if lacks_values(sample, trajectory.answer) else ANSWER
    # Open text is graded by a judge, so that its plain rule says nothing about the cause.
    slots = {slot.name: slot for slot in sample.answer if slot.type != "open_text"}
    wrong = [(slots[row.slot], row) for row in rows if row.slot in slots and row.value < 1]
    if wrong and all(slot.made_by_tools for slot, _ in wrong):
        return PLANNING  # no call made it, or a wrong one did
    said = [(slot, row) for slot, row in wrong if not slot.made_by_tools]
    return FORM if said and all(_is_unread(*each) for each in said) else ANSWER


def _is_unread(slot: Slot, row: Score) -> bool:
    """Return True if an answer gives no value of a slot, not even as unknown. Words are read as they are."""
    if row.reading.get("rule") in UNREAD_RULES:
        return True
    has_no_value = row.reading.get("value") == []
    return has_no_value and not slot.free_text


class LostPoints:
    """Lost points of a run by mode, sample and part.

    ``find_result_for``: returns for a record where the results of calls are found that the run did not make.
    """

    def __init__(self, find_result_for: FindResultFor | None = None) -> None:
        self._find_result_for = find_result_for
        self._of_record: dict[tuple[str, str, int], Shares] = {}
        self._epochs_of_sample: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._refused_twins = set[tuple[str, str, int]]()
        """Unanswerable records whose twin was refused."""
        self._calls: dict[tuple[str, str], set[int]] = defaultdict(set)
        """Hashes of the calls and results of each sample's epochs that ended with an answer; of the others, 0."""
        self._unknown: Counter[Mode] = Counter()

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a valid no-tool or end-to-end record with its score rows."""
        sample, place = record.sample, (record.mode, record.sample.id)
        if record.mode == "end-to-end" and (made := record.trajectory) is not None:
            calls = [each.model_dump(include={"call", "observation"}) for each in made.calls]
            seen = hash(json.dumps(calls, sort_keys=True)) if made.answer is not None else 0
            self._calls[place].add(seen)
        known = self._find_result_for(record) if self._find_result_for else no_result
        find_result = CountedResults(known)
        shares = lost_shares(record, rows, find_result)
        self._unknown[record.mode] += find_result.n_unknown
        if shares:
            self._of_record[record.key] = shares
        self._epochs_of_sample[place].add(record.epoch)
        if sample.answerable and sample.twin and refusals(record, rows)[FAS]:
            self._refused_twins.add((record.mode, sample.twin, record.epoch))

    def of_record(self, record: Record, rows: Sequence[Score]) -> Shares:
        """Return the points that an added record lost by part.

        ``rows``: its score rows with those of its twin, which may not have been added yet.
        """
        shares = self._of_record.get(record.key, {})
        is_refused = refused_twin(rows) or record.key in self._refused_twins
        return _with_refused_twin(shares) if is_refused else shares

    def _of_key(self, key: tuple[str, str, int]) -> Shares:
        shares = self._of_record.get(key, {})
        return _with_refused_twin(shares) if key in self._refused_twins else shares

    def of_sample(self, mode: Mode, sample_id: str, score: float) -> Shares:
        """Return the points that a sample lost by part, over its epochs; their sum is ``1 - score``.

        ``score``: its score in the run, of the epochs that count.
        """
        epochs = self._epochs_of_sample.get((mode, sample_id), set())
        of_epochs = [self._of_key((mode, sample_id, epoch)) for epoch in epochs]
        shares = mean_shares(of_epochs) if of_epochs else {}
        rest = Fraction(1) - Fraction(score) - sum(shares.values())
        if abs(rest) > _ROUNDING:
            # An epoch whose twin has no valid record does not count in the score: the others are scaled to it.
            total = sum(shares.values())
            if total <= 0:
                return {ANSWER: Fraction(1) - Fraction(score)}
            scale = (total + rest) / total
            shares = {part: share * scale for part, share in shares.items()}
        return shares

    def beside(
        self, mode: Mode, sample_id: str, score: float, other: "LostPoints | None"
    ) -> dict[str, float]:
        """Return the points that a sample lost by part, as floats, beside another run that scored it differently.

        If calls and results are the same in both, no earlier part than the answer is the cause.
        """
        shares = self.of_sample(mode, sample_id, score)
        losses = {part: float(share) for part, share in shares.items()}
        calls = self._calls.get((mode, sample_id), {0})
        if other is None or len(calls) > 1 or 0 in calls:
            return losses
        if calls != other._calls.get((mode, sample_id)):
            return losses
        return losses if losses.keys() <= {READING, TWIN, FORM, ANSWER} else {ANSWER: 1 - score}

    def attribution(self, mode: Mode, samples: Sequence[LostScore]) -> Attribution | None:
        """Return the split of a mode; None without samples."""
        lost = [
            LostSample(
                task=each.task_type,
                cluster=each.cluster,
                shares=self.of_sample(mode, each.sample, each.score),
                weight=each.weight,
            )
            for each in samples
        ]
        return attribution_of(lost, self._unknown[mode]) if lost else None
