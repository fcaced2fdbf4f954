"""Normalised text, and numbers in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.text import normalise, read_quantity
from agrotools.text.normalise import chinese_number


@given(st.text())
def test_normalising_twice_changes_nothing(text: str):
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("fifteen", 15), ("forty-two point five percent", 42.5), ("1\u202f204", 1204), ("1.204,5", 1204.5),
        ("1.204.000", 1204000), ("42,5 %", 42.5), ("3,500", 3500), ("三千五", 3500),
    ],
)  # fmt: skip
def test_a_number_is_read(text: str, value: float):
    quantity = read_quantity(normalise(text))
    assert quantity is not None
    assert quantity.low == pytest.approx(value)


@pytest.mark.parametrize("text", ["14+ trees", "一般", "more than 14"])
def test_a_bound_or_an_idiom_is_no_value(text: str):
    assert read_quantity(normalise(text)) is None


@given(st.integers(0, 99_999_999))
def test_chinese_numerals_are_read_back(number: int):
    assert chinese_number(_chinese(number)) == number


def _chinese(number: int) -> str:
    """A number below a hundred million in Chinese."""
    digits = "零一二三四五六七八九"
    if number >= 10_000:
        high, low = divmod(number, 10_000)
        return _chinese(high) + "万" + ("零" if 0 < low < 1_000 else "") + (_chinese(low) if low else "")
    text, pending = "", False
    for unit, sign in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, unit)
        if digit:
            text += ("零" if pending and text else "") + digits[digit] + sign
            pending = False
        else:
            pending = True
    return text or "零"
