"""The expression evaluator: exact where exactness can be had, helpful where it refuses."""

import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import AbstainSlot, ExactSlot, UnresolvedRef
from agrotools.text.expressions import (
    FUNCTIONS,
    ExpressionError,
    evaluate,
    evaluate_from,
    evaluate_steps,
    shows_no_answer,
)

whole = st.integers(-(10**12), 10**12)
real = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 6))


@given(st.lists(real, min_size=1, max_size=30))
def test_sum_and_mean_are_rounded_once(values):
    exact = sum(map(Fraction, values))
    assert evaluate("sum(v)", {"v": values}) == float(exact)
    assert evaluate("mean(v)", {"v": values}) == float(exact / len(values))


@given(st.lists(real, min_size=1, max_size=30), st.integers(0, 100))
def test_percentiles_interpolate_order_statistics(values, q):
    ordered = sorted(map(Fraction, values))
    rank = Fraction(q, 100) * (len(values) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(values) - 1)
    exact = ordered[below] + (ordered[above] - ordered[below]) * (rank - below)
    scale = max(1.0, max(abs(value) for value in values))
    assert evaluate("percentile(v, q)", {"v": values, "q": q}) == pytest.approx(
        float(exact), abs=1e-12 * scale
    )
    assert evaluate("median(v)", {"v": values}) == statistics.median(values)


def test_equal_values_have_no_correlation_even_where_their_mean_is_rounded():
    with pytest.raises(ExpressionError, match="equal"):
        evaluate("corr(x, y)", {"x": [0.1] * 3, "y": [1, 2, 3]})
    assert evaluate("linreg(x, y)", {"x": [1, 2, 3], "y": [0.1] * 3}) == [
        0.0,
        pytest.approx(0.1),
        1.0,
    ]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 ** 3 ** 2", 512), ("-2 ** 2", -4), ("+2", 2), ("-7 // 2", -4), ("0.1 + 0.2", 0.1 + 0.2), ("1_000", 1000),
        ("2 ** -1", 0.5), ("2 < 3 <= 3", True), ("not 2 > 3 and 1 != 2", True), ("3×4÷2−1", 5.0),
        ("2² + 3³ + 10⁻¹", 31.1), ("mean（1，2）", 1.5), ("1\n + 2", 3), ("1if 2>1else 3", 1), ("[3, 1, 2][-1]", 2),
        ("[3, 1, 2][:2]", [3, 1]), ("(3, 1)[0]", 3), ("round(2.345678, 3)", 2.346), ("round(1234, -2)", 1200),
        ("min(3, 1, 2) + max([3, 1, 2])", 4), ("sum([4 > 3, 3 > 4])", 1),
        ("abs(-3) + sign(-2.5) + floor(-1.5) + ceil(1.2) + int(-3.7)", -1), ("sqrt(2)**2", math.sqrt(2) ** 2),
        ("cbrt(-8)", -2.0), ("log(8, 2) + log10(1000) + ln(e)", 7.0), ("degrees(pi) + degrees(π)", 360.0),
        ("factorial(5) + comb(5, 2)", 130), ("prod([2, 3, 4])", 24), ("len([1, 2, 3]) + len([])", 3),
        ("sorted([3, 1, 2], descending=True)", [3, 2, 1]), ("scale([1, 2], 10)", [10, 20]),
        ("count_above([1, 2, 3], 1) - count_below([1, 2, 3], 2)", 1),
        ("argmax([1, 3, 3]) + argmin([2, 1, 1])", 2), ("label_of_max(['a', 'b'], [1, 2])", "b"),
        ("labels_by_value(['a', 'b', 'c'], [1, 3, 2])", ["b", "c", "a"]),
        ("'image_1.jpg' if 3 > 2 else 'image_2.jpg'", "image_1.jpg"),
        ("'b' in ['a', 'b'] and 4 not in [1, 2]", True), ("weighted_mean([1, 3], [1, 3])", 2.5),
        ("cv([9, 11])", 100 * math.sqrt(2) / 10), ("rmse([1, 2], [2, 4])", math.sqrt(2.5)),
        ("mape([1, 2], [2, 4])", 100.0), ("percent_change(80, 60)", -25.0),
        ("linreg([1, 2, 3], [2, 4, 6])", [2.0, 0.0, 1.0]),
    ],
)  # fmt: skip
def test_golden_values(expression, value):
    result = evaluate(expression)
    assert type(result) is type(value)
    assert (
        result == pytest.approx(value)
        if not isinstance(value, (str, list, bool))
        else result == value
    )


@pytest.mark.parametrize(
    ("expression", "in_message"),
    [
        ("35%", "35/100"), ("2x + 1", "*"), ("5!", "factorial"), ("(1 + 2", "1 opening and 0 closing"),
        ("1,204 * 3", "thousands"), ("a = 3", "=="), ("", "empty"), ("1 / (3 - 3)", "'1 / (3 - 3)'"),
        ("sqrt(-1)", "from 0"), ("log(0)", "above 0"), ("(-8) ** (1/3)", "cbrt"), ("meen([1, 2])", "mean"),
        ("mean + 1", "mean(...)"), ("weeds / crp", "crop"), ("round(1, places=2)", "round(x, digits"),
        ("[1, 2] * 3", "scale"), ("[1, 2][5]", "list of 2"), ("'a' + 'b'", "text"), ("std([1])", "at least 2"),
        ("mean([1, 'a'])", "element [1] is text"), ("corr([1, 2], [1])", "2 and 1"), ("[1].append(2)", "methods"),
        ("(lambda: 1)()", "function"), ("max(*[1, 2])", "max(values)"), ("_a", "letter"), ("0x1f", "decimal"),
        ("√2", "sqrt"), ("2j", "real"), ("percentile([1, 2], 101)", "0 to 100"),
        ("factorial(-1)", "n must be at least 0, not -1"), ("severity(12, 10)", "same unit"),
        ("exp(1000)", "too large"), ("1e308 * 10", "finite"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_change(expression, in_message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(expression, {"weeds": 1, "crop": 2, "a": 1, "b": 2})
    assert in_message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("variables", "in_message"),
    [
        ({"if": 1}, "if"), ({"a": None}, "null"),
        ({"a": [1, math.inf]}, "finite"), ({"a": 10**400}, "too large"), ({"a": [0] * 10_001}, "10000"),
        ({"µ": 1, "μ": 2}, "twice"), ({"a": object()}, "a"),
    ],
)  # fmt: skip
def test_bad_variables_are_refused(variables, in_message):
    with pytest.raises(ExpressionError) as caught:
        evaluate("1", variables)
    assert in_message in str(caught.value)


@given(st.text(max_size=60) | st.text(alphabet="0123456789.+-*/%^() ,[]ab'eE_<>=!", max_size=40))
def test_any_text_gives_a_value_or_a_refusal(text):
    try:
        value = evaluate(text, {"a": 2, "b": [1, 2.5]})
    except ExpressionError as error:
        assert error.hint  # noqa: PT017
    else:
        assert not isinstance(value, float) or math.isfinite(value)


@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.lists(st.sampled_from(["a", "b", "c", "0", "-1", "'t'"]), max_size=5),
)
def test_any_call_gives_a_value_or_a_refusal(name, arguments):
    variables = {"a": 2.5, "b": [1, 2, 3], "c": [[1, 0], [0, 1]]}
    try:
        evaluate(f"{name}({', '.join(arguments)})", variables)
    except ExpressionError as error:
        assert error.hint  # noqa: PT017


def test_steps_come_in_order_and_end_with_the_whole():
    steps = evaluate_steps("(a - b) / a * 100", {"a": 4, "b": 3})
    assert [tuple(step) for step in steps] == [
        ("a - b", 1),
        ("(a - b) / a", 0.25),
        ("(a - b) / a * 100", 25.0),
    ]
    assert evaluate_steps("a", {"a": 2}) == [("a", 2)]
    assert evaluate_steps("-(a + 1)", {"a": 2}) == [("a + 1", 3), ("-(a + 1)", -3)]
    assert evaluate_steps("面 + mean([面, 3])", {"面": 1})[-1] == ("面 + mean([面, 3])", 3)


RESULTS = [
    {
        "weed_pct": 8.9,
        "crop_pct": 17.8,
        "none": None,
        "name": "lantana",
        "fruits": [{"mm": 70}, {"mm": 80}],
    },
    None,
    {"sizes": [1.5, None], "by_class": {"crop->pond": 4}, "empty": []},
]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("steps[0].observation.fruits[1]", {"mm": 80}),
        ("'image_1.jpg' if steps[0].observation.weed_pct > 5 else 'image_2.jpg'", "image_1.jpg"),
        ("mean(pluck(steps[0].observation.fruits, 'mm'))", 75),
        ("steps[2].observation.by_class['crop->pond'] * 2", 8),
        (
            "label_of_max(['a', 'b'], [steps[0].observation.weed_pct, steps[0].observation.crop_pct])",
            "b",
        ),
    ],
)
def test_values_that_observations_imply(expression, value):
    assert evaluate_from(expression, RESULTS) == value


@pytest.mark.parametrize(
    "expression",
    [
        "steps[0].observation.nothing", "sum(steps[2].observation.sizes)",
        "steps[0].observation.fruits[2].mm / 2",
    ],
)  # fmt: skip
def test_references_without_a_value_are_unresolved(expression):
    with pytest.raises(UnresolvedRef):
        evaluate_from(expression, RESULTS)


@pytest.mark.parametrize(
    ("best", "shows"), [(None, True), ("smut", True), ("rust", False)], ids=str
)
def test_a_name_that_is_not_offered_is_no_answer(best, shows):
    asked = ExactSlot.model_validate(
        {
            "name": "name",
            "label": "disease",
            "value": "rust",
            "choices": ["rust", "blight"],
            "from": "'rust' if steps[0].observation.best == 'rust' else ''",
        }
    )
    slot = AbstainSlot(name="refusal", label="none", reason="wrong_subject", asks=(asked,))
    assert shows_no_answer(slot, [{"best": best}]) is shows
