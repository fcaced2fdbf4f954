"""One form for text before it is compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.text import normalise


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("1,204 m²", "1,204 m^2"),
        ("1.2 × 10³", "1.2 × 10^3"),
        ("ha⁻¹", "ha^-1"),
        ("10⁻¹²", "10^-12"),
        ("５０％", "50%"),
        ("32㎡", "32m^2"),
        ("12–16", "12-16"),
        ("−0.3", "-0.3"),
        ("a \t b\u00a0c", "a b c"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("Lantana CAMARA", "lantana camara"),
        ("答案：是", "答案:是"),
        ("isn’t", "isn't"),
    ],
)
def test_normal_form(text: str, normal: str):
    assert normalise(text) == normal


@given(st.text())
def test_normalising_twice_changes_nothing(text: str):
    assert normalise(normalise(text)) == normalise(text)
