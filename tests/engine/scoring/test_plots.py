"""The plot score: points, kinds and labels, and what may not change it."""

import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import ErrorInfo, Observation, PlotSeries, PlotSpec, Step, ToolCall, Trajectory
from agrotools.scoring.plots import drawn_spec, match_points, score_plot


def figure(*series, kind="bar", **labels):
    """A figure with all labels, of series given as (name, {x: y}) or (name, [(x, y), ...])."""
    plot_series = []
    for name, points in series:
        pairs = list(points.items()) if isinstance(points, dict) else list(points)
        plot_series.append(
            PlotSeries(name=name, x=tuple(x for x, _ in pairs), y=tuple(y for _, y in pairs))
        )
    given_labels = {
        "title": "Weed cover of the fields",
        "x_label": "Field",
        "y_label": "Weed cover",
        "y_unit": "%",
        "legend": len(plot_series) > 1,
    }
    return PlotSpec(kind=kind, series=tuple(plot_series), **{**given_labels, **labels})


WEEDS = figure(("weed", {"A": 8.9, "B": 3.2, "C": 12.5, "D": 0.0}))
TWO = figure(("crop", {"A": 17.8, "B": 20.1}), ("weed", {"A": 8.9, "B": 3.2}))

values = st.floats(-1000, 1000).map(lambda value: round(value, 3))
xs = (
    st.sampled_from(["A", "B", "C", "D"])
    | st.integers(0, 5)
    | st.floats(0.001, 10).map(lambda x: round(x, 3))
)
series_lists = st.lists(
    st.lists(st.tuples(xs, values), min_size=1, max_size=6), min_size=1, max_size=4
)
figures = series_lists.map(
    lambda lists: figure(*((f"series {index}", points) for index, points in enumerate(lists)))
)


@pytest.mark.parametrize("spec", [WEEDS, TWO])
def test_a_figure_with_all_labels_scores_1_against_itself(spec):
    assert score_plot(spec, spec)[0] == 1


def test_labels_that_the_reference_lacks_are_not_asked_for():
    """The tool of the reference may take no labels."""
    plain = figure(("", {"A": 8.9, "B": 3.2}), title="", x_label="", y_label="", y_unit=None)
    assert score_plot(plain, plain)[0] == 1
    assert score_plot(plain, WEEDS)[0] < 1
    assert score_plot(WEEDS, plain)[0] < 0.8


@given(figures, figures)
def test_scores_are_bounded_and_explained(first, second):
    score, reading = score_plot(first, second)
    assert 0 <= score <= 1
    assert json.loads(json.dumps(reading)) == reading
    assert match_points(first, second).matched <= min(
        sum(len(series.y) for series in spec.series) for spec in (first, second)
    )


@given(figures, figures, st.randoms(use_true_random=False))
def test_neither_order_of_series_nor_of_points_matters(first, second, source: random.Random):
    def shuffled(spec: PlotSpec) -> PlotSpec:
        series = []
        for each in source.sample(spec.series, len(spec.series)):
            order = source.sample(range(len(each.y)), len(each.y))
            series.append(
                PlotSeries(
                    name=each.name, x=[each.x[i] for i in order], y=[each.y[i] for i in order]
                )
            )
        return spec.model_copy(update={"series": tuple(series)})

    assert score_plot(first, second)[0] == pytest.approx(
        score_plot(shuffled(first), shuffled(second))[0]
    )


@given(
    st.lists(st.tuples(st.sampled_from("AB"), st.integers(1, 40)), min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from("AB"), st.integers(1, 40)), min_size=1, max_size=5),
)
def test_matching_is_the_largest_there_is(gold, drawn):
    def near(point, target):
        return point[0] == target[0] and abs(point[1] - target[1]) <= 0.05 * target[1]

    # Several drawn points where the reference has one are several answers, and none of them counts.
    drawn = [
        point
        for point in drawn
        if sum(x == point[0] for x, _ in drawn) <= sum(x == point[0] for x, _ in gold)
    ]
    short, long = sorted([(gold, True), (drawn, False)], key=lambda pair: len(pair[0]))
    best = max(
        sum(
            near(other, one) if short[1] else near(one, other)
            for one, other in zip(short[0], chosen, strict=True)
        )
        for chosen in itertools.permutations(long[0], len(short[0]))
    )
    assert match_points(figure(("r", gold)), figure(("d", drawn))).matched == best


TRUTHS = st.lists(st.sampled_from([1, 2, 4, 8, 16]), min_size=1, max_size=5, unique=True)
SPELLINGS = ["image_1.jpg", "Image_1.jpg", " image_1.jpg ", "image-1.png", "image 1"]


@given(TRUTHS, st.sampled_from(["bar", "line"]), st.booleans())
def test_several_guesses_of_one_value_earn_no_more_on_average_than_one(
    guesses, kind, each_in_a_series
):
    """Summed over the values that may be true, a figure with several guesses earns at most the one point of a guess."""
    xs = SPELLINGS if kind == "bar" else [2020.5, 2020.5, 2020.6, 2020.4, 2020.51]
    points = list(zip(xs, guesses, strict=False))
    series = (
        [(f"guess {y}", [(x, y)]) for x, y in points] if each_in_a_series else [("guess", points)]
    )
    sure = {"A": 3, "B": 5} if kind == "bar" else {1.5: 3, 2.5: 5}
    for known in ({}, sure):
        chart = figure(*((name, [*known.items(), *drawn]) for name, drawn in series), kind=kind)
        earned = [
            match_points(figure(("truth", {**known, xs[0]: truth}), kind=kind), chart).f1
            for truth in (1, 2, 4, 8, 16)
        ]
        if not known:
            assert sum(earned) <= 1 + 1e-9
        one = figure(("guess", {**known, xs[0]: guesses[0]}), kind=kind)
        alone = [
            match_points(figure(("truth", {**known, xs[0]: truth}), kind=kind), one).f1
            for truth in (1, 2, 4, 8, 16)
        ]
        assert sum(earned) <= sum(alone) + 1e-9


def test_x_is_a_category_or_a_number():
    by_year = figure(("yield", {2019: 5.0, 2020: 6.0, 2021: 7.0}), kind="line", x_label="Year")
    assert score_plot(by_year, by_year)[0] == 1
    as_text = figure(
        ("yield", {"2019": 5.0, "2020": 6.0, "2021": 7.0}), kind="line", x_label="Year"
    )
    assert score_plot(by_year, as_text)[0] == 1
    shifted = figure(("yield", {2020: 5.0, 2021: 6.0, 2022: 7.0}), kind="line", x_label="Year")
    assert match_points(by_year, shifted).matched == 0
    files = figure(("weed", {"image_1.jpg": 8.9, "image_2.jpg": 3.2}))
    assert match_points(files, figure(("weed", {"Image 1": 8.9, "image-2": 3.2}))).matched == 2
    wavelengths = figure(("reflectance", {550.2: 0.1, 670.1: 0.05}), kind="line")
    assert (
        match_points(
            wavelengths, figure(("reflectance", {550: 0.1, 670: 0.05}), kind="line")
        ).matched
        == 2
    )
    assert (
        match_points(
            wavelengths, figure(("reflectance", {551: 0.1, 671: 0.05}), kind="line")
        ).matched
        == 0
    )


@pytest.mark.parametrize(
    ("change", "score"),
    [
        ({"y_unit": None, "y_label": "(%)"}, 0.9),
        ({"title": "", "x_label": "", "y_label": "", "y_unit": None}, 0.8),
        ({"title": "", "legend": True}, 1),
    ],
)  # fmt: skip
def test_labels_that_are_left_out_cost_part_of_the_score(change, score):
    assert score_plot(WEEDS, WEEDS.model_copy(update=change))[0] == pytest.approx(score)


def test_axes_units_and_legends_count_where_they_tell_something():
    spec = figure(
        ("yield", {0: 4.0, 60: 6.5}),
        kind="line",
        x_label="Nitrogen rate",
        x_unit="kg/ha",
        y_unit="t/ha",
    )
    assert score_plot(spec, spec)[0] == 1
    assert score_plot(spec, spec.model_copy(update={"x_unit": None}))[0] == pytest.approx(0.9)
    in_label = {"x_unit": None, "x_label": "Nitrogen rate (kg per ha)"}
    assert score_plot(spec, spec.model_copy(update=in_label))[0] == 1
    bare = {"title": "", "legend": True}
    assert score_plot(TWO, TWO.model_copy(update=bare))[0] == 1
    numbered = [
        each.model_copy(update={"name": f"series {index}"}) for index, each in enumerate(TWO.series)
    ]
    assert score_plot(TWO, TWO.model_copy(update={**bare, "series": tuple(numbered)}))[
        0
    ] == pytest.approx(0.9)
    hidden = {"title": "", "legend": False}
    assert score_plot(TWO, TWO.model_copy(update=hidden))[0] == pytest.approx(0.9)
    fields = figure(("A", {"x": 1.0}), ("B", {"x": 2.0}), title="", legend=True)
    assert score_plot(fields, fields)[0] == 1
    pie = figure(
        ("cover", {"soil": 71.0, "crop": 20.0, "weed": 9.0}), kind="pie", title="Ground cover (%)"
    )
    bare = pie.model_copy(update={"x_label": "", "y_label": "", "y_unit": None})
    assert score_plot(pie, bare)[0] == 1
    assert score_plot(pie, bare.model_copy(update={"title": ""}))[0] == pytest.approx(0.8)
    assert score_plot(pie, bare.model_copy(update={"title": "", "legend": True}))[
        0
    ] == pytest.approx(0.9)


def plot_step(spec, turn=0, **observation):
    result = {"spec": spec if isinstance(spec, dict | None) else spec.model_dump(mode="json")}
    call = ToolCall(tool="plot", arguments={})
    return Step(
        turn=turn,
        kind="call",
        call=call,
        observation=Observation(**{"result": result, **observation}),
    )


FAILED = Observation(error=ErrorInfo(kind="invalid_argument", message="no"))


def trajectory(*steps):
    return Trajectory(steps=steps, termination="answered")


def test_the_last_successful_figure_counts():
    answer = Step(turn=3, kind="answer", text="done")
    other = Step(
        turn=2,
        kind="call",
        call=ToolCall(tool="calculate"),
        observation=Observation(result={"spec": {}}),
    )
    failed = Step(turn=2, kind="call", call=ToolCall(tool="plot"), observation=FAILED)
    assert drawn_spec(trajectory(plot_step(WEEDS), plot_step(TWO, 1), failed, other, answer)) == TWO
    assert (
        drawn_spec(trajectory(plot_step(WEEDS), plot_step({"kind": "video"}), plot_step(None)))
        == WEEDS
    )
    assert drawn_spec(trajectory(failed, other, answer)) is None
    assert drawn_spec(trajectory(Step(turn=0, kind="call", call=ToolCall(tool="plot")))) is None
    assert drawn_spec(trajectory()) is None


def test_an_absolute_tolerance_counts_where_it_is_larger():
    near = figure(("weed", {"A": 10.4, "B": 4.7, "C": 12.5, "D": 1.0}))
    assert score_plot(WEEDS, near)[1]["f1"] == 0.25
    assert score_plot(WEEDS, near, abs_tol=1.5)[0] == 1
    assert score_plot(WEEDS, near, abs_tol=1.4)[1]["f1"] == 0.5
