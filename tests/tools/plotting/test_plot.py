"""The plot tool: what is drawn, said again as data; every kind; every kind of bad input."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agrotools.calling.workspace import artifacts_in
from agrotools.core import PlotSpec, ToolError
from agrotools_tools import plot
from agrotools_tools.plotting import sheet as text_on_figures
from agrotools_tools.plotting.sheet import number_format
from agrotools_tools.plotting.tool import prepare_data


def series(name: str, x: Any, y: Any) -> dict[str, Any]:
    return {"name": name, "y": y} if x is None else {"name": name, "x": x, "y": y}


RANDOM = random.Random(7)
VALUES = [RANDOM.gauss(70, 8) for _ in range(200)]

ONE_OF_EACH: dict[str, list[dict[str, Any]]] = {
    "line": [
        series("2023", [1, 2, 3], [0.2, 0.5, 0.4]),
        series("2024", [1, 2, 3], [0.3, 0.6, 0.2]),
    ],
    "bar": [series("weeds", ["a", "b", "c"], [3, -1, 2.5])],
    "grouped_bar": [series("crop", ["a", "b"], [3, 1]), series("weed", ["b", "c"], [2, 4])],
    "scatter": [series("fruit", [1.5, 2.5, 2.5], [3, 4, 5])],
    "hist": [series("diameter", None, VALUES)],
    "pie": [series("cover", ["crop", "weed", "soil"], [50, 20, 30])],
    "box": [
        series("control", None, [*VALUES, 200]),
        series("treated", None, [v + 5 for v in VALUES]),
    ],
    "heatmap": [series("r1", ["c1", "c2"], [1, 2]), series("r2", ["c1", "c2"], [3, 4])],
}


@pytest.fixture
def out(tmp_path):
    with artifacts_in(tmp_path) as folder:
        yield folder


def refusal(kind: str, given_series: Any, **others: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        plot(kind=kind, series=given_series, **others)  # pyright: ignore[reportArgumentType]
    assert caught.value.kind == "invalid_argument"
    return caught.value


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), int)


@pytest.mark.parametrize("kind", ONE_OF_EACH)
class TestEveryKind:
    def test_is_drawn_and_equal_calls_give_equal_bytes(self, out, kind):
        words: dict[str, Any] = {"title": "A title", "y_label": "Quantity", "y_unit": "%"}
        made, again = (plot(kind=kind, series=ONE_OF_EACH[kind], **words) for _ in range(2))
        assert made.figure == again.figure
        drawn = pixels(out / made.figure.name)
        assert min(drawn.shape[:2]) >= 400
        assert (drawn.min(axis=2) < 200).mean() > 0.005
        assert (made.figure.media_type, made.flags) == ("image/png", ())
        first, second = (
            plot(kind=kind, series=ONE_OF_EACH[kind], annotate=True, fmt="svg") for _ in range(2)
        )
        assert first.figure == second.figure
        assert len(list(out.iterdir())) == 2

    def test_the_specification_draws_itself_again(self, out, kind):
        """What comes back as data is canonical: drawing it gives the same data."""
        spec = plot(kind=kind, series=ONE_OF_EACH[kind], title="T", x_label="X", x_unit="m").spec
        assert PlotSpec.model_validate_json(spec.model_dump_json()) == spec
        if kind == "box":
            return
        again = plot(
            kind=spec.kind,
            series=[each.model_dump() for each in spec.series],  # pyright: ignore[reportArgumentType]
            title="T",
            x_label="X",
            x_unit="m",
        )
        assert again.spec == spec


class TestSpecification:
    def test_bars_histograms_and_legends_are_there_where_they_tell_something(self, out):
        assert plot(kind="bar", series=ONE_OF_EACH["grouped_bar"]).spec.kind == "grouped_bar"
        assert plot(kind="grouped_bar", series=ONE_OF_EACH["bar"]).spec.kind == "bar"
        assert plot(kind="bar", series=ONE_OF_EACH["grouped_bar"]).spec.legend
        assert plot(kind="pie", series=ONE_OF_EACH["pie"]).spec.legend
        assert not plot(kind="bar", series=ONE_OF_EACH["bar"]).spec.legend
        made = plot(kind="hist", series=ONE_OF_EACH["hist"])
        drawn = made.spec.series[0]
        assert sum(drawn.y) == len(VALUES)
        steps = np.diff(np.array(drawn.x, float))
        assert np.allclose(steps, steps[0], rtol=1e-3)
        assert made.notes == (f"200 values counted in {len(drawn.x)} bins of width {steps[0]:.4g}",)

    @pytest.mark.parametrize(
        "values", [[5.5] * 3, [0.1, 1e12], [0, 0, 0, 0, 1e9], [1e-9, 2e-9], [-1e100, 1e100]]
    )
    def test_extreme_histograms_stay_small(self, values):
        data = prepare_data("hist", [("v", None, values)], [])
        (drawn,) = data.series
        assert 1 <= len(drawn.x) <= 50
        assert sum(drawn.y) == len(values)

    def test_quartiles_numbers_and_ends_are_in_the_summary(self, out):
        made = plot(kind="box", series=[series("v", None, [1, 2, 3, 4, 5, 6, 7, 8, 9, 100])])
        assert made.spec.series[0].y == (1, 3.25, 5.5, 7.75, 9)
        (summary,) = made.summary.series
        assert (summary.n_points, summary.max, summary.argmax) == (10, 100, None)
        made = plot(kind="line", series=[series("v", None, [3, 4])])
        assert (made.spec.series[0].x, made.notes) == (
            (1, 2),
            ("x was not given: values are numbered from 1",),
        )
        (summary,) = plot(kind="bar", series=ONE_OF_EACH["bar"]).summary.series
        assert (summary.argmax, summary.max, summary.argmin, summary.min, summary.range) == (
            "a",
            3,
            "b",
            -1,
            4,
        )

    @given(
        st.sampled_from(["line", "bar", "scatter", "heatmap"]),
        st.lists(
            st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=3, max_size=3),
            min_size=1,
            max_size=4,
        ),
    )
    def test_values_come_back_as_they_were_given(self, kind, rows):
        data = prepare_data(
            kind, [(f"s{index}", [1.5, 2, 3.25], row) for index, row in enumerate(rows)], []
        )
        assert [list(each.y) for each in data.series] == rows
        assert all(each.x == (1.5, 2, 3.25) for each in data.series)


class TestRefusals:
    @pytest.mark.parametrize(
        "value", [float("nan"), float("inf"), -float("inf"), None, "three", True, 1e300]
    )
    def test_values_that_are_no_finite_numbers(self, out, value):
        for kind, x in (("line", [1, 2]), ("hist", None), ("box", None), ("bar", ["a", "b"])):
            error = refusal(kind, [series("v", x, [1, value])])
            assert error.argument == "series"
            assert "series[0]" in error.message
        assert not list(out.iterdir())

    @pytest.mark.parametrize(
        ("kind", "given_series", "says"),
        [
            ("bar", [("v", ["a", 2], [1, 2])], "mixes"),
            ("line", [("v", ["a"], [1]), ("w", [2], [1])], "mixes"),
            ("bar", [(str(n), ["a"], [1]) for n in range(51)], "1 to 50"),
            ("hist", [("v", None, [1.0] * 6_000), ("w", None, [1.0] * 6_000)], "10,000"),
            ("pie", [("v", ["a", "b"], [1, -1])], "no negative y and a positive sum"),
            ("pie", [("v", ["a", "b"], [0, 0])], "no negative y and a positive sum"),
            ("pie", [("v", ["a"], [1]), ("w", ["a"], [1])], "one series"),
            ("bar", [("v", None, [1])], "needs one x"),
            ("scatter", [("v", ["a"], [1])], "needs numbers"),
            ("hist", [("v", ["a"], [1])], "use bar"),
            ("hist", [("v", [2, 1], [1, 1])], "bin centres"),
            ("box", [("v", [1], [1])], "from y alone"),
            ("line", [("v", [3, 4, 3], [1, 2, 3])], "more than once"),
            (
                "bar",
                [("v", ["b", "img_1.jpg", "Img 1 ", "img–1"], [1, 2, 3, 4])],
                "'img_1.jpg' and 'Img 1 ' and 'img–1'",
            ),
            (
                "heatmap",
                [("r", ["a", "b"], [1, 2]), ("s", ["a", "c"], [1, 2])],
                "the same in every row",
            ),
            ("line", [("v", [1], [1]), ("v", [1], [2])], "must differ"),
            ("radar", [("v", ["a"], [1])], "one of line, bar"),
        ],
    )
    def test_what_cannot_be_drawn_is_told(self, kind, given_series, says):
        assert says in refusal(kind, [series(*each) for each in given_series]).message

    def test_limits_and_all_faults_at_once_are_told(self):
        for limits in ([1, 1], [2, 1], [1], [1, 2, 3], ["a", "b"], [0, math.nan]):
            assert refusal("bar", ONE_OF_EACH["bar"], y_limits=limits).argument == "y_limits"
        message = refusal(
            "bar", [series("v", ["a"], [1, 2]), series("w", [1], []), series("w", None, [1])]
        ).message
        parts = (
            "series[0] (v) has 1 x and 2 y",
            "series[1] (w) has no values",
            "series[2] (w) has no x",
            "differ",
        )
        assert all(part in message for part in parts)


class TestHonesty:
    def test_bars_that_do_not_start_at_zero_are_flagged(self, out):
        tall = [series("v", ["a", "b"], [100, 101])]
        assert plot(kind="bar", series=tall, y_limits=[99, 102]).flags == ("truncated_axis",)
        assert plot(kind="bar", series=tall, y_limits=[0, 102]).flags == ()
        assert plot(kind="line", series=tall, y_limits=[99, 102]).flags == ()

    @pytest.mark.parametrize("kind", ["line", "bar", "scatter", "heatmap", "box"])
    def test_values_outside_the_limits_are_flagged(self, out, kind):
        flags = plot(kind=kind, series=ONE_OF_EACH[kind], y_limits=[0.25, 0.3]).flags
        assert "data_outside_limits" in flags

    def test_what_finds_no_room_is_flagged(self, out):
        crowd = [series("v", list(range(60)), list(range(60)))]
        assert plot(kind="line", series=crowd, annotate=True).flags == ("annotations_left_out",)
        assert "annotations_left_out" in plot(kind="bar", series=crowd, annotate=True).flags
        days = [f"2024-{month:02d}-{day:02d}" for month in range(1, 9) for day in range(1, 29)]
        made = plot(kind="line", series=[series("catch", days, list(range(len(days))))])
        assert made.flags == ("labels_thinned",)
        assert len(made.spec.series[0].x) == len(days)

    def test_letters_without_a_font_are_flagged(self, out, monkeypatch):
        monkeypatch.setattr(text_on_figures, "CJK_FAMILIES", ())
        made = plot(kind="bar", series=[series("面积", ["玉米", "小麦"], [1, 2])], title="作物")
        assert (made.flags, made.spec.title) == (("glyphs_missing",), "作物")


class TestText:
    def test_names_quantities_and_units_are_written_as_they_are(self, out):
        made = plot(
            kind="bar",
            series=[series("$x_1$ & <b>", ["$5", "\\alpha", "a_b^2"], [1, 2, 3])],
            title="Cost in $ and $$ {oops \\frac",
            x_label="Time",
            x_unit="days",
            y_label="Yield",
            y_unit="$/ha",
            fmt="svg",
        )
        drawn = (out / made.figure.name).read_text()
        for text in ("Cost in $ and $$ {oops \\frac", "a_b²", "Time (days)", "Yield ($/ha)"):
            assert text in drawn
        assert "<b>" not in drawn


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, 20, 300], ["1", "20", "300"]),
        ([0.2, 0.123456], ["0.200", "0.123"]),
        ([-3.5], ["−3.5"]),
        ([2e-7], ["2e−07"]),
    ],
)
def test_values_have_common_decimals(values, texts):
    assert [number_format(values)(value) for value in values] == texts
