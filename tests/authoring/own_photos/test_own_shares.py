"""Shares of 1 among percentages."""

import pytest

from agrotools_build.own_photos.plan import Column, measures
from agrotools_build.own_photos.shares import shares_among_percents

PERCENT = Column(column="Severity", ask="severity", unit="%", decimal=".")


@pytest.mark.parametrize(
    ("texts", "shares"),
    [
        (["6.7", "12.3", "0.0672"], {"0.0672"}),
        (["7", "12", "0.07"], {"0.07"}),
        # As many decimals as the others, or one more: small percentages.
        (["6.7", "12.3", "0.4"], set()),
        (["7", "12", "0.5"], set()),
        (["7.00", "12.00", "0.05"], set()),
        # A unit in the cell leaves no doubt, and a column without percentages is asked about as a whole.
        (["6.7", "0.0672 %"], set()),
        (["0.0672", "0.12"], set()),
        (["6.7", "0", "0.0"], set()),
    ],
)
def test_two_decimals_more_tell_a_share_from_a_percentage(texts, shares):
    assert shares_among_percents(texts, PERCENT, measures()["severity"]) == shares


def test_a_decimal_comma_is_one_mark_like_another():
    column = PERCENT.model_copy(update={"decimal": ","})
    measure = measures()["severity"]
    assert shares_among_percents(["6,7", "0,0672"], column, measure) == {"0,0672"}


def test_shares_of_other_measures_are_no_question():
    column = Column(column="Height", ask="plant_height", unit="cm", decimal=".")
    assert not shares_among_percents(["6.7", "0.0672"], column, measures()["plant_height"])
