"""One choice of scale: the caller, the sample or sidecar, the file itself, in this order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.tools.pictures import choose_scale

LENGTHS = st.floats(1e-4, 1e4)


@pytest.mark.parametrize(
    ("given_m", "known", "in_file", "chosen"),
    [
        (None, None, None, None),
        (None, None, 0.1, 0.1),
        (None, 0.2, None, 0.2),
        (None, 0.2, 0.1, 0.2),
        (0.3, None, None, 0.3),
        (0.3, 0.2, 0.1, 0.3),
    ],
)
def test_who_wins(given_m: float | None, known: float | None, in_file: float | None, chosen: float | None):
    assert choose_scale(given_m, known, in_file).gsd_m == chosen


def test_a_caller_who_contradicts_the_file_is_told():
    scale = choose_scale(0.3, 0.2)
    assert scale.flags == ("gsd_differs_from_file",)
    assert "0.3" in scale.notes[0]
    assert "0.2" in scale.notes[0]
    assert choose_scale(0.3, None, 0.2).flags == ("gsd_differs_from_file",)


@given(value=LENGTHS, factor=st.floats(1.021, 100) | st.floats(0.001, 0.979))
def test_anything_beyond_two_percent_is_one(value: float, factor: float):
    assert choose_scale(value * factor, value).flags
