"""Normalised text, and numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.text.normalise import normalise
from agrotools.text.quantities import read_quantity


@given(st.text())
def test_normalising_twice_changes_nothing(text: str):
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("fifteen", 15), ("十五", 15), ("1\u202f204", 1204), ("1.204,5", 1204.5),
        ("1.204.000", 1204000), ("42,5 %", 42.5), ("3,500", 3500), ("1 204,5", 1204.5),
        ("1,204.5", 1204.5), ("0,350", 0.35), ("3.5万", 35000), ("1.2E3", 1200),
    ],
)  # fmt: skip
def test_a_number_is_read(text: str, value: float):
    quantity = read_quantity(normalise(text))
    assert quantity is not None
    assert quantity.low == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["14+ trees", "一般", "more than 14", "12,34,5", "12.5.6", "12.5.6e3", "1204 204", "forty"]
)
def test_other_text_is_no_value(text: str):
    assert read_quantity(normalise(text)) is None
