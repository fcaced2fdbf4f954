"""Curves of errors by coverage, the table of certainty, and results of other domains in the page."""

import pytest

from agrotools.build.accuracy.studies import Row
from agrotools.build.accuracy.study import Columns, calibration_points, estimate
from agrotools.build.accuracy.table import curves, markdown


def _columns(*answers: tuple[float, bool]) -> Columns:
    columns = Columns()
    for probability, right in answers:
        columns.add(probability=probability, right=right)
    return columns


def test_the_area_under_the_errors_is_that_by_hand():
    # Errors among the surest 1, 2, 3 and 4 answers: 0, 1/2, 1/3 and 1/2.
    figure = _columns((0.9, True), (0.8, False), (0.7, True), (0.6, False)).aurc("area", "probability", "right")
    assert estimate(figure).value == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert "best order of these answers would have 0.208, a random one 0.500" in figure.note
    for answers in (((0.5, True), (0.5, False)), ((0.5, False), (0.5, True))):
        assert estimate(_columns(*answers).aurc("area", "probability", "right")).value == 0.5


def test_answers_behind_a_calibration_error_are_drawn_in_the_page():
    columns = _columns(*((0.05 * n, n % 3 > 0) for n in range(20)))
    points = calibration_points(columns.calibration("calibration error of the probability", "probability", "right"))
    assert not calibration_points(columns.mean("right", "right"))
    row = Row("identify_weed", "fields", "calibration error of the probability", 0.1, points=points)
    [(name, content)] = curves([row]).items()
    assert name == "accuracy-identify-weed-fields.svg"
    assert b"share wrong" in content
    assert len(content) < 60_000
    assert f"](images/{name})" in markdown([row], "command", pictures="images")
