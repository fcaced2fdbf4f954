"""Best constant answers: which value is taken, on which questions it is chosen, and what it scores."""

from collections.abc import Sequence

import pytest

from agrotools.core import BooleanSlot, ExactSlot, FileSlot, Record, Slot, Step, ToleranceSlot
from agrotools.core.record import Trajectory
from agrotools.scoring.aggregate import tallied
from agrotools.scoring.constants import (
    FEWEST_CLUSTERS,
    ConstantTable,
    RightAnswer,
    best_value,
)
from agrotools.scoring.floors import GuessPoints
from support.plain_sample import plain_sample

FRUIT = ("apples", "pears", "plums")


def count(value: float, abs_tol: float = 1.0) -> ToleranceSlot:
    return ToleranceSlot(name="count", label="number of fruits", value=value, abs_tol=abs_tol)


def samples_of(slots: Sequence[Slot], *, clusters: int | None = None, template: str = "counts"):
    """Return a sample of each slot, in as many clusters or in the given number of them."""
    return [
        plain_sample(
            f"s{n}", answer=(slot,), template=template, cluster=f"c{n % (clusters or len(slots))}"
        )
        for n, slot in enumerate(slots)
    ]


def table_of(samples) -> ConstantTable:
    """Return the table of samples whose guesses are all wrong."""
    table = ConstantTable()
    for each in samples:
        table.add(each)
    return table


def test_the_best_number_lies_in_most_tolerances():
    answers = [RightAnswer(value, 1.0) for value in (2.0, 6.0, 7.0, 8.0, 20.0)]
    assert best_value(answers) == 7.0
    two_ends = [RightAnswer(10.0, 1.0), RightAnswer(12.0, 1.0), RightAnswer(30.0, 1.0)]
    assert best_value(two_ends) == 11.0, "the ends of both tolerances meet"


def test_a_sample_gets_what_is_best_in_other_clusters():
    samples = samples_of([count(6)] * 8 + [count(90)] * 4, clusters=None)
    own = samples[-1].model_copy(update={"cluster": "large"})
    samples = [
        *samples[:8],
        *(each.model_copy(update={"cluster": "large"}) for each in samples[8:]),
    ]
    assert table_of(samples).values(own) == {"count": 6.0}


@pytest.mark.parametrize("clusters", [FEWEST_CLUSTERS - 1, FEWEST_CLUSTERS])
def test_too_few_clusters_give_no_constant(clusters: int):
    samples = samples_of([count(6)] * 20, clusters=clusters)
    is_enough = clusters >= FEWEST_CLUSTERS
    assert table_of(samples).values(samples[0]) == ({"count": 6.0} if is_enough else {})


def test_a_small_template_takes_the_answers_of_its_task_type():
    large = samples_of([count(6)] * 8)
    small = samples_of([count(50)], template="other")
    table = table_of([*large, *small])
    assert table.values(small[0]) == {"count": 6.0}


def test_labels_are_given_only_where_the_form_offers_them_and_files_by_their_place():
    label = [ExactSlot(name="fruit", label="fruit", value="pears", choices=FRUIT)] * 8
    other = ExactSlot(name="fruit", label="fruit", value="plums", choices=("apples", "plums"))
    samples = samples_of([*label, other])
    table = table_of(samples)
    assert table.values(samples[0]) == {"fruit": "pears"}
    assert table.values(samples[-1]) == {}
    files = [
        FileSlot(name="photo", label="photo", value=f"b{n}.jpg", choices=(f"b{n}.jpg", f"a{n}.jpg"))
        for n in range(8)
    ]
    assert table_of(samples_of(files)).values(samples_of(files)[3]) == {"photo": "b3.jpg"}


def test_as_many_yes_as_no_give_a_constant_of_about_half():
    """Chosen on all questions but one, the constant would always be wrong."""
    slots = [BooleanSlot(name="ripe", label="ripe", value=n % 2 == 0) for n in range(80)]
    samples = samples_of(slots)
    table = table_of(samples)
    right = [
        table.values(each)["ripe"] == slot.value for each, slot in zip(samples, slots, strict=True)
    ]
    assert 0.35 <= sum(right) / len(right) <= 0.5


def test_a_guess_that_is_right_as_often_as_the_best_constant_stays():
    slots = [BooleanSlot(name="ripe", label="ripe", value=n % 4 > 0) for n in range(16)]
    samples = samples_of(slots)
    guess = GuessPoints([slots[0]], {slots[0].name: 1.0})
    table = ConstantTable()
    for each in samples:
        table.add(each, guess)
    assert table.values(samples[0]) == {}
    assert table_of(samples).values(samples[0]) == {"ripe": True}


def record_of(sample) -> Record:
    step = Step(turn=0, kind="answer", text="count: 1")
    trajectory = Trajectory(steps=(step,), termination="answered")
    return Record(sample=sample, mode="end-to-end", trajectory=trajectory)


def test_the_floor_of_a_run_is_the_higher_of_guess_and_constant():
    samples = samples_of([count(6)] * 12)
    summary = tallied([record_of(each) for each in samples]).summary().modes["end-to-end"]
    assert summary.floor == "constant"
    assert summary.metrics["constant"].overall.value == 1
    assert summary.metrics["guess"].overall.value < 1
    assert summary.metrics["constant"].overall.n == summary.metrics["fas"].overall.n


def test_a_run_with_few_places_has_the_floor_of_guesses_alone():
    samples = samples_of([count(6)] * 12, clusters=3)
    summary = tallied([record_of(each) for each in samples]).summary().modes["end-to-end"]
    assert summary.floor == "guess"
    assert "constant" not in summary.metrics
