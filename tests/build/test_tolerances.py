import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.build import tolerances

_COVER = st.floats(0.2, 60)


def test_cover_is_right_within_two_points():
    assert tolerances.of_cover().abs_tol == 2.0
    assert tolerances.of_cover().abs_tol < tolerances.LEAST_COVER


def test_worked_examples():
    # Parents of 5 % and 2 % cover: each within 10 % (2 points would be 40 % and 100 %), together 14.1 %; 5 % beyond.
    assert tolerances.of_quotient(5.0, 2.0).rel_tol == pytest.approx(0.191, abs=5e-4)
    # A parent of 40 % cover: 2 points are 5 %, less than 10 %.
    assert tolerances.of_product(40.0).rel_tol == pytest.approx(0.10)
    # 8 % and 6 %: 0.8 and 0.6 points make 1.0, and 5 % of the difference of 2.
    assert tolerances.of_difference(8.0, 6.0).abs_tol == pytest.approx(1.1)
    # Half of the plants: 25 % of 14.1 %, and 5 % of 50 points.
    assert tolerances.of_share(3.0, 3.0).abs_tol == pytest.approx(100 * (0.25 * math.sqrt(0.02) + 0.025), abs=0.01)
    assert tolerances.of_sum(0.3, 0.4).abs_tol == pytest.approx(0.05 + 0.035)


@given(_COVER, _COVER)
def test_parents_at_the_edge_of_their_tolerance_stay_right(first, second):
    """One parent off by all it may be, the other right: the derived value is still right."""
    off = first * (1 + min(2.0 / first, 0.10))
    for derived, tolerance in (
        (lambda a, b: a / b, tolerances.of_quotient(first, second)),
        (lambda a, b: a - b, tolerances.of_difference(first, second)),
        (lambda a, b: 100 * a / (a + b), tolerances.of_share(first, second)),
        (lambda a, _: a * 3, tolerances.of_product(first)),
    ):
        value = derived(first, second)
        margin = max(tolerance.abs_tol, tolerance.rel_tol * abs(value))
        assert abs(derived(off, second) - value) <= margin * 1.01


@given(_COVER, _COVER)
def test_no_tolerance_lets_nothing_be_right(first, second):
    assert tolerances.of_quotient(first, second).rel_tol < 0.2
    assert tolerances.of_product(first).rel_tol <= 0.15
    share = 100 * first / (first + second)
    assert tolerances.of_share(first, second).abs_tol < max(7.0, 0.2 * share)
