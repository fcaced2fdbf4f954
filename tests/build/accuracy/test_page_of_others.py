"""The page about images of other people says nothing about ours, and links no picture that was not drawn."""

import pytest

from agrotools.build.accuracy import STUDIES
from agrotools.build.accuracy.studies import Row
from agrotools.build.accuracy.table import curves, markdown


@pytest.mark.parametrize("is_ours", [True, False])
def test_nothing_of_ours_is_said_of_images_of_others(is_ours: bool) -> None:
    rows = [Row(tool, "f", "m", 1.0, n=12, independent=12, is_ours=is_ours) for tool in STUDIES]
    text = markdown(rows, "agrotools tools bench --data DIR", strangers="| call |")
    for sentence in ("Truth is what people drew", "How sure the tools are", "and of training pools", "coffee leaves"):
        assert (sentence in text) is is_ours, sentence
    assert "| call |" in text


def test_a_page_links_the_curves_that_are_drawn_and_no_others() -> None:
    for number, drawn in ((15, False), (20, True)):
        row = Row("identify_weed", "f", "calibration error of the probability", 0.1, points=[[0.5, 1.0]] * number)
        assert bool(curves([row])) is drawn
        assert ("](images/" in markdown([row], "agrotools tools bench", pictures="images")) is drawn
