"""Answers that a constant meets too often are named, with what would help."""

import pytest

from agrotools.core import ToleranceSlot
from agrotools.loading import easy
from agrotools.loading.easy import easy_answers, telling_tolerance
from support.plain_sample import plain_sample

VALUES = [3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5]


def samples_within(abs_tol: float):
    slots = [
        ToleranceSlot(name="count", label="number of fruits", value=value, abs_tol=abs_tol)
        for value in VALUES
    ]
    return [
        plain_sample(f"s{n}", answer=(slot,), template="counts", cluster=f"c{n}")
        for n, slot in enumerate(slots)
    ]


def test_a_constant_that_is_right_in_more_than_half_is_named_with_a_tolerance_that_helps():
    (found,) = easy_answers(samples_within(3.0))
    assert found.share > 0.5
    assert found.tolerance == telling_tolerance(VALUES) == 0.6
    assert "an abs_tol of at most 0.6" in found.sentence()
    assert easy_answers(samples_within(0.6)) == []


@pytest.mark.parametrize(("ceiling", "is_named"), [(0.9, False), (0.55, True)])
def test_a_constant_near_the_ceiling_is_named(monkeypatch, ceiling: float, is_named: bool):
    monkeypatch.setattr(easy, "_ceiling", lambda *_: ceiling)
    found = easy_answers(samples_within(1.5))
    assert [each.share for each in found] == [0.5] * is_named
