"""Agreement of arguments: what counts as the same call, argument by argument."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agrotools.core import ToolSpec
from agrotools.core.record import literal_value
from agrotools.text.agreement import compare_arguments
from agrotools.text.agreement_values import categories_agree, category, is_rounding, same_json

SPEC = ToolSpec(
    name="tool",
    category="general",
    version="1",
    description="",
    parameters={},
    agreement={
        "image": "file", "images": "file", "mode": "choice", "bands": "choice", "limit": "number",
        "region": "box", "query": "text", "values": "series", "expression": "expression",
        "variables": "variables", "kind": "choice", "series": "chart", "title": "presentation",
    },
    defaults={"mode": "auto", "limit": 10, "region": None, "variables": {}, "title": ""},
)  # fmt: skip


def row(name, predicted, reference, **options):
    rows = {
        each.argument: each for each in compare_arguments(SPEC, predicted, reference, **options)
    }
    return rows[name]


def agrees(name, predicted, reference, **options):
    return row(name, {name: predicted}, {name: reference}, **options).agrees


def ref(value, path="steps[0].observation.x"):
    return {"$ref": path, "value": value}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(-1e6, 1e6)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
arguments = st.dictionaries(st.sampled_from([*SPEC.agreement, "unknown"]), json_values, max_size=6)


@pytest.mark.parametrize(
    ("name", "predicted", "reference", "expected"),
    [
        ("images", ["b.png", "a.png"], ["a.png", "b.png"], False), ("image", 3, "image_1.jpg", False),
        ("bands", {"R": 1, "NIR": 2}, {"NIR": 2, "R": 1}, True),
        ("bands", {"R": 1}, {"R": 1, "NIR": 2}, False),
        ("limit", 8.89, ref(-8.8912), False), ("limit", 0, ref(0.0004), False),
        ("limit", True, 1, False),
        ("query", "how to control weeds in young maize", "how to control weeds in young maize plants", True),
        ("query", "玉米田杂草防治方法", "玉米田杂草防治办法", True),
        ("values", [8.89, 17.8], [ref(8.8912), 17.8], True),
    ],
)  # fmt: skip
def test_a_single_argument_is_compared_by_its_type(name, predicted, reference, expected):
    assert agrees(name, predicted, reference) is expected


def test_defaults_are_filled_in_and_what_is_lacking_without_one_disagrees():
    left_out = row("mode", {}, {"mode": "auto"})
    assert left_out.agrees
    assert not left_out.equal
    assert row("mode", {"mode": "auto"}, {}).agrees
    assert row("mode", {"mode": None}, {"mode": "auto"}).agrees
    assert not row("mode", {"mode": "row"}, {}).agrees
    assert not row("image", {}, {"image": "a.png"}).agrees
    assert not row("image", {"image": "a.png"}, {}).agrees
    unknown = row("imagee", {"imagee": "a.png"}, {})
    assert not unknown.agrees
    assert unknown.kind is None
    assert [
        each.argument for each in compare_arguments(SPEC, {"limit": 3}, {"image": "a.png"})
    ] == ["image", "limit"]


@pytest.mark.parametrize(
    ("predicted", "reference", "frame", "expected", "iou"),
    [
        (None, [0, 0, 100, 80], (100, 80), True, 1.0),
        ([1.2, 2, 10.9, 10], ref([1, 2, 11, 10]), None, True, 0.97),
    ],
)  # fmt: skip
def test_a_box_agrees_if_it_nearly_covers_the_box_of_the_reference(
    predicted, reference, frame, expected, iou
):
    result = row("region", {"region": predicted}, {"region": reference}, frame=frame)
    assert result.agrees is expected
    assert result.detail["iou"] == pytest.approx(iou)


def expression_row(predicted, reference, predicted_variables=None, reference_variables=None):
    mine = {"expression": predicted} | (
        {"variables": predicted_variables} if predicted_variables is not None else {}
    )
    gold = {"expression": reference} | (
        {"variables": reference_variables} if reference_variables is not None else {}
    )
    return row("expression", mine, gold)


MEASURED = {"a": ref(8.8912), "b": ref(1.0263)}


@pytest.mark.parametrize(
    ("predicted", "variables", "reference", "reference_variables", "expected"),
    [
        ("6", None, "2*3", None, True),
        ("8.8 / 1.03", None, "a/b", MEASURED, False),
        # The right value, worked out before the call.
        ("9360", {"a": 26, "b": 15}, "a * b * 24", {"a": ref(26), "b": ref(15)}, False),
        # Constants may be drawn together, the calculation may go another way, and a percentage is a share.
        ("3 + 9 + 7", None, "sum(v)", {"v": ref([3, 9, 7])}, True),
        # Nothing was observed that the reference calculates with.
        ("mean(v)", {"v": [8.89, 1.03]}, "(a+b)/2", MEASURED, True),
        (
            "(17.4 - -3.21) / 17.4 * 100",
            None,
            "(a-b)/a*100",
            {"a": ref(17.3962), "b": ref(-3.2114)},
            True,
        ),
        # 100 is meant as 100, though a measured value of 100.04 is near.
        # Both measured values are written alike.
        # Constants of the reference are not measured.
        ("8.89 * 2", None, "8.8912 * 2", None, False),
        ("3 > 2", None, "2 < 3", None, True),
        ("label_of_max(['a', 'b'], [1.03, 8.89])", None, "'b'", None, True),
        ("1/0", None, "2", None, False),
        ("2 * 3 /0", None, "2*3/0", None, False),
    ],
)
def test_an_expression_agrees_if_it_calculates_the_value_from_the_same_observations(
    predicted, variables, reference, reference_variables, expected
):
    assert expression_row(predicted, reference, variables, reference_variables).agrees is expected


@pytest.mark.parametrize(
    ("expression", "uses"),
    [
        ("915 + 0*61", False), ("915 + (61 - 61)", False), ("915 + 0*x", False), ("915 + min(61, 0)", True),
        ("61*15", True), ("x*15", True), ("30*30 + 15 if 61 > 50 else 0", True), ("max(61, 915)", True),
    ],
)  # fmt: skip
def test_a_number_that_never_changes_the_result_is_no_use_of_an_observation(expression, uses):
    variables = {"x": 61} if "x*" in expression or "*x" in expression else None
    assert expression_row(expression, "x*15", variables, {"x": ref(61)}).agrees == uses


def test_a_reference_that_does_not_depend_on_an_observation_does_not_ask_for_it():
    assert expression_row("915", "915 + 0*x", None, {"x": ref(61)}).agrees


def test_other_observations_may_give_the_same_value():
    mine = {"expression": "(0.15 - 0.12) / 0.15"}
    gold = {"expression": "(b - a) / b", "variables": {"a": ref(1234.5), "b": ref(1543.125)}}
    assert not row("expression", {"expression": "(0.3 - 0.24) / 0.3"}, gold).agrees
    in_hectares = {"expression": "(0.5 - 0.4) / 0.5"}
    assert row("expression", in_hectares, gold, observed=[0.5, 0.4]).agrees
    assert not row("expression", in_hectares, gold, observed=[0.5]).agrees
    assert not row("expression", mine, gold, observed=[1, 2, 3]).agrees


SERIES = [
    {"name": "crop", "x": ["A", "B"], "y": [17.8, 20.1]},
    {"name": "weed", "x": ["A", "B"], "y": [8.9, 3.2]},
]


def chart(predicted, reference=SERIES, kind="bar", reference_kind="bar"):
    rows = compare_arguments(
        SPEC, {"kind": kind, "series": predicted}, {"kind": reference_kind, "series": reference}
    )
    return all(each.agrees for each in rows)


def renamed(series, *names):
    return [{**each, "name": name} for each, name in zip(series, names, strict=True)]


def test_charts_agree_in_kind_series_and_points():
    assert chart(SERIES)
    assert chart(SERIES[::-1])
    assert chart(SERIES, kind="grouped_bar")
    assert chart(SERIES, kind="column")
    assert not chart(SERIES, kind="line")
    assert chart(renamed(SERIES, "maize", "others"))
    assert not chart(renamed(SERIES, "weed", "crop"))
    assert not chart(SERIES[:1])
    assert not chart([*SERIES, SERIES[0]])
    assert chart([{**each, "x": each["x"][::-1], "y": each["y"][::-1]} for each in SERIES])
    assert not chart([{**each, "y": each["y"][::-1]} for each in SERIES])
    assert not chart([{**each, "x": ["A"], "y": each["y"][:1]} for each in SERIES])
    assert chart([{**each, "x": ["a", "b"]} for each in SERIES])
    assert chart([{**each, "y": [value * 1.0009 for value in each["y"]]} for each in SERIES])
    assert not chart([{**each, "y": [value * 1.0011 for value in each["y"]]} for each in SERIES])
    for bad in (
        None,
        [],
        "text",
        [1],
        [{"name": "a"}],
        [{"name": "a", "x": ["A"], "y": [1, 2]}],
        [{"y": ["x"]}],
    ):
        assert not chart(bad)


def test_points_of_charts_are_numbered_and_may_be_rounded():
    reference = [{"name": "weed", "x": ["A", "B"], "y": [ref(8.9312), ref(3.2149)]}]
    assert chart([{"name": "weed", "x": ["A", "B"], "y": [8.93, 3.21]}], reference)
    assert not chart([{"name": "weed", "x": ["A", "B"], "y": [8.93, 3.2]}], reference)
    whole = [{"name": "weed", "x": ["A", "B"], "y": ref([8.9312, 3.2149])}]
    assert chart([{"name": "weed", "x": ["A", "B"], "y": [8.93, 3.21]}], whole)
    line = [{"name": "height", "x": [1, 2, 3], "y": [5, 6, 7]}]
    bare = [{"name": "height", "y": [5, 6, 7]}]
    assert chart(bare, line, "line", "line")
    assert not chart([{"name": "height", "y": [7, 6, 5]}], line, "line", "line")
    assert chart([{"name": "height", "y": [7, 6, 5]}], bare, "hist", "hist")


@given(arguments)
@example({"image": {"$ref": None}})
def test_a_call_equals_itself(call):
    # As a reference, a call may point to earlier steps; what a policy gives for that are the literals.
    literals = {name: literal_value(value) for name, value in call.items()}
    for each in compare_arguments(SPEC, literals, call):
        assert each.equal
        if (
            each.kind not in ("expression", "chart", "box")
            and each.argument != "kind"
            and each.kind is not None
        ):
            assert each.agrees


@given(arguments, arguments)
@example({"bands": {"x": {"$ref": []}}}, {"bands": {"x": {"$ref": []}}})
def test_any_two_calls_can_be_compared(predicted, reference):
    rows = compare_arguments(SPEC, predicted, reference)
    assert {each.argument for each in rows} == set(predicted) | set(reference)
    json.dumps([each.model_dump() for each in rows])
    literals = {name: literal_value(value) for name, value in reference.items()}
    assert all(each.equal for each in rows) is same_json(predicted, literals)


def test_categories_and_numbers_of_three_digits_agree():
    assert category("Image_1.JPG") == category("image 1") == "image 1"
    assert category("2019") == category(2019) == category("2019.0")
    assert category(None) is None
    assert categories_agree(1.0005, 1.0)
    assert not categories_agree(1001, 1000)
    assert not categories_agree("a", 1)
    assert is_rounding(38.2, 38.1973)
    assert not is_rounding(38, 38.1973)
    assert is_rounding(0.125, 0.12549)
    assert is_rounding(0.13, 0.125) is False
    assert is_rounding(1.25, 1.245)
    assert is_rounding(1.24, 1.245)
    assert is_rounding(12_000, 12_043.7)
    assert not is_rounding(12_000, 12_050.1)
    assert is_rounding(10, 9.996)
    assert not is_rounding(10, 9.994)


def test_hostile_nesting_disagrees_quietly():
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    for name in SPEC.agreement:
        rows = compare_arguments(SPEC, {name: nested}, {"image": "a.png"})
        assert not next(each for each in rows if each.argument == name).equal
