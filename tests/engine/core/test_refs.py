"""References between steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import UnresolvedRef
from agrotools.core.record import iter_refs, literal_value, resolve_ref, resolved_value

RESULTS = [
    {"weed_pct": 8.9, "row": {"angle_deg": 3.5}, "boxes": [[1, 2, 3, 4]], "crop_px": None},
    None,
]


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        ("steps[0].observation.weed_pct", 8.9), ("steps[0].observation.row.angle_deg", 3.5),
        ("steps[0].observation.boxes[0][2]", 3), ("steps[0].observation.crop_px", None),
        ("steps[0].observation", RESULTS[0]),
    ],
)  # fmt: skip
def test_a_reference_leads_to_its_value(ref, value):
    assert resolve_ref(ref, RESULTS) == value


@pytest.mark.parametrize(
    "ref",
    [
        "steps[2].observation.weed_pct", "steps[1].observation.weed_pct", "steps[0].observation.fruit",
        "steps[0].observation.boxes[1]", "steps[0].observation.weed_pct.x", "steps[0].arguments.image",
        "weed_pct", "",
    ],
)  # fmt: skip
def test_a_reference_that_leads_nowhere_is_an_error(ref):
    with pytest.raises(UnresolvedRef):
        resolve_ref(ref, RESULTS)


def test_references_are_found_and_replaced_at_any_depth():
    arguments = {
        "series": [{"y": [{"$ref": "steps[0].observation.weed_pct", "value": 9.0}, 1]}],
        "title": "t",
    }
    assert list(iter_refs(arguments)) == [("series[0].y[0]", "steps[0].observation.weed_pct", 9.0)]
    assert literal_value(arguments) == {"series": [{"y": [9.0, 1]}], "title": "t"}
    assert resolved_value(arguments, RESULTS) == {"series": [{"y": [8.9, 1]}], "title": "t"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != "$ref"), inner)
    ),
)


@given(json_values)
def test_values_without_references_stay_as_they_are(value):
    assert literal_value(value) == value
    assert resolved_value(value, []) == value
    assert list(iter_refs(value)) == []
