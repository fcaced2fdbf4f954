"""Krippendorff's alpha: his own worked example, the extremes, and intervals that follow from the answers."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.scoring.judging.judgements import agreement

# Four observers, twelve units (Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011, section C).
OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)

grades = st.lists(
    st.lists(st.sampled_from([0, 1, 2, None]), min_size=2, max_size=4), min_size=1, max_size=30
)


def test_alpha_is_that_of_krippendorff_one_for_equal_judges_and_zero_by_lot():
    by_observer = [
        [None if mark == "." else int(mark) for mark in marks.split()] for marks in OBSERVERS
    ]
    result = agreement(list(zip(*by_observer, strict=True)))
    assert result.alpha == pytest.approx(0.815, abs=5e-4)  # as he prints it for ordinal grades
    assert result.n_units == 11, "the unit that one observer graded says nothing"
    chance = random.Random(1)
    same = agreement([(grade, grade) for grade in (0, 1, 2) * 10])
    lots = agreement([(chance.randrange(3), chance.randrange(3)) for _ in range(2000)])
    assert same.alpha == 1
    assert lots.alpha == pytest.approx(0, abs=0.06)
    assert lots.interval.lower < 0 < lots.interval.upper


def test_the_bootstrap_draws_whole_clusters():
    """A cluster of equal answers is one answer to the bootstrap."""
    chance = random.Random(1)
    single = [(chance.randrange(3), chance.randrange(3)) for _ in range(30)]
    repeated = [unit for unit in single for _ in range(20)]
    by_cluster = agreement(repeated, [at // 20 for at in range(600)])
    by_answer, alone = agreement(repeated), agreement(single)

    def width(each: object) -> float:
        return each.interval.upper - each.interval.lower  # pyright: ignore[reportAttributeAccessIssue]

    assert width(by_cluster) == pytest.approx(width(alone), rel=0.1)
    assert width(by_answer) < width(alone) / 3


@given(grades)
def test_alpha_is_at_most_one_and_does_not_ask_who_is_who(units: list[list[int | None]]):
    result = agreement(units)
    assert result == agreement([unit[::-1] for unit in units])
    if result is not None and result.alpha is not None:
        assert result.alpha <= 1 + 1e-12
        if result.interval is not None:
            assert result.interval.lower <= result.interval.upper
