"""Weights of slots: scores, floors, lost points and verdicts follow the one function that says what a slot counts."""

from fractions import Fraction

import pytest

from agrotools.core import (
    ExactSlot,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Slot,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
)
from agrotools.scoring import slot_weights
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import comparisons
from agrotools.scoring.constants import ConstantScores
from agrotools.scoring.floors import GuessPoints
from agrotools.scoring.lost_points import LostPoints, lost_shares
from agrotools.scoring.slots import outcome_value
from agrotools.scoring.unread import open_score
from support.plain_sample import plain_sample

TREES = ToleranceSlot.model_validate(
    {"name": "trees", "label": "trees", "value": 10.0, "from": "steps[0].observation.count"}
)
CROP = ExactSlot(name="crop", label="crop", value="maize", choices=("maize", "wheat"))
CALL = ToolCall(tool="count_objects", arguments={"image": "image_1.jpg", "target": "tree"})
STEP = ReferenceStep(tool=CALL.tool, arguments=CALL.arguments, truth={"count": 10})
RIGHT = "trees: 10\ncrop: maize"
WRONG_NUMBER = "trees: 99\ncrop: maize"
UNREAD_NUMBER = "trees: more than last year\ncrop: maize"


def double_numbers(slot: Slot) -> float:
    return 2 * slot.weight if isinstance(slot, ToleranceSlot) else slot.weight


@pytest.fixture(params=[None, double_numbers], ids=["equal", "numbers doubled"])
def share_of_number(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """Share of the number in the score of a number and a label, with the weights of slots patched in one place."""
    if request.param is None:
        return Fraction(1, 2)
    monkeypatch.setattr(slot_weights, "slot_weight", request.param)
    return Fraction(2, 3)


def record_of(text: str, name: str = "s1") -> Record:
    sample = plain_sample(
        name, answer=(TREES, CROP), reference=ReferenceTrajectory(steps=(STEP,)), cluster=name
    )
    call = Step(turn=0, kind="call", call=CALL, observation=Observation(result={"count": 10}))
    steps = (call, Step(turn=1, kind="answer", text=text))
    trajectory = Trajectory(steps=steps, termination="answered")
    return Record(sample=sample, mode="end-to-end", trajectory=trajectory)


def fas_of(record: Record) -> float:
    (value,) = (row.value for row in score_record(record) if row.metric == "fas")
    return value


def run_of(text: str) -> RunAggregator:
    run = RunAggregator("predictions", lost=LostPoints())
    for number in range(40):
        record = record_of(text, f"s{number}")
        run.add(record, score_record(record))
    return run


def test_scores_and_rewards_follow_the_weight(share_of_number: Fraction):
    record = record_of(WRONG_NUMBER)
    assert record.trajectory is not None
    assert fas_of(record) == pytest.approx(1 - share_of_number)
    assert outcome_value(record.sample, record.trajectory) == pytest.approx(1 - share_of_number)


def test_floors_follow_the_weight(share_of_number: Fraction):
    guess = GuessPoints([TREES, CROP], {"trees": 1.0})
    assert guess.score == pytest.approx(share_of_number)
    constants = ConstantScores()
    for number in range(40):
        sample = record_of(RIGHT, f"s{number}").sample
        # The crop varies, so that no constant names it: the guess counts, which is wrong.
        crop = CROP.model_copy(update={"value": CROP.choices[number % 2]})
        constants.add(number, sample.model_copy(update={"answer": (TREES, crop)}), guess)
    scores = constants.by_sample()
    assert all(score >= float(share_of_number) - 1e-9 for score in scores.values())
    assert min(scores.values()) == pytest.approx(share_of_number)


def test_lost_points_and_unread_values_follow_the_weight(share_of_number: Fraction):
    record = record_of(WRONG_NUMBER)
    lost = lost_shares(record, score_record(record), lambda call: Observation(result={"count": 10}))
    assert lost is not None
    assert sum(lost.values()) == share_of_number
    unread = record_of(UNREAD_NUMBER)
    assert open_score(unread, score_record(unread)).above == pytest.approx(share_of_number)


def test_comparisons_follow_the_weight(share_of_number: Fraction):
    (found,) = comparisons([run_of(RIGHT), run_of(WRONG_NUMBER)], ["A", "B"])
    assert found.means["end-to-end"] == pytest.approx((1, 1 - share_of_number))
    difference = found.modes["end-to-end"]["fas"].overall.value
    assert difference == pytest.approx(-share_of_number)
