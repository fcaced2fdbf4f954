"""Tolerances of a new plan: they follow the values of the table, and those of a plan stay."""

import pytest

from agrotools_build.own_photos.plan import Column, Plan, measures
from agrotools_build.own_photos.questions import templates_for
from agrotools_build.own_photos.tolerances import proposed_tolerance


@pytest.mark.parametrize(
    ("ask", "values", "tolerance"),
    [
        ("severity", [3.0 + k / 2 for k in range(11)], (0.5, 0.09)),
        ("severity", [10.0 * k for k in range(11)], (2.0, 0.2)),
        # Nobody wrote more finely than whole percents.
        ("severity", [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 4.0, 5.0], (1.0, 0.2)),
        ("count", [2.0, 5.0, 9.0, 11.0, 14.0, 18.0, 20.0, 22.0], (1.0, 0.1)),
    ],
)
def test_values_close_to_each_other_get_a_smaller_tolerance(ask, values, tolerance):
    assert proposed_tolerance(measures()[ask], values) == tolerance


def test_the_number_of_photos_with_a_yes_keeps_its_own_tolerance():
    column = Column(column="sick", ask="diseased", yes_means="the leaf is sick")
    plan = Plan(images_column="photo", columns=(column,))
    templates = templates_for(column, 0, plan, [], counted_per_area=False)
    slots = [slot for template in templates for slot in template.slots if slot.type == "tolerance"]
    assert [slot.abs_tol for slot in slots] == [0.4]
