import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import (
    BenchmarkError,
    ExactSlot,
    Fact,
    Observation,
    OpenTextSlot,
    PlotSlot,
    Record,
    RunStoreError,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
)
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.slots import outcome_scores
from support.plain_sample import plain_sample

AREA = ToleranceSlot(name="area", label="area", value=7, unit="%", abs_tol=0.5)
WEED = ExactSlot(name="weed", label="weed", value="Lantana", choices=("Lantana", "Parthenium"))
ADVICE = OpenTextSlot(
    name="advice", label="advice", facts=(Fact(phrases=("hoe",)), Fact(phrases=("spray",)))
)
SPEC = {
    "kind": "bar", "series": [{"name": "weeds", "x": ["a", "b"], "y": [1, 2]}], "title": "Share of weeds",
    "x_label": "field", "y_label": "share", "y_unit": "%",
}  # fmt: skip
CHART = PlotSlot(name="chart", label="chart", value=SPEC)


def record(*slots, answer: str | None = "", drawn=None, termination="answered"):
    sample = plain_sample(answer_type="tolerance", toolset=("plot",), answer=slots)
    steps = []
    if drawn is not None:
        call = ToolCall(tool="plot", arguments={})
        steps.append(
            Step(turn=0, kind="call", call=call, observation=Observation(result={"spec": drawn}))
        )
    if answer is not None:
        steps.append(Step(turn=1, kind="answer", text=answer))
    return Record(
        sample=sample,
        mode="end-to-end",
        trajectory=Trajectory(steps=tuple(steps), termination=termination),
    )


def values(made: Record) -> dict[str, float]:
    return {row.slot or row.metric: row.value for row in outcome_scores(made)}


def test_samples_score_the_mean_of_their_slots_and_have_no_row_without():
    scored = values(
        record(
            AREA,
            WEED,
            ADVICE,
            CHART,
            answer="area: 7.2 %\nweed: Parthenium\nadvice: hoe",
            drawn=SPEC,
        )
    )
    assert (scored["area"], scored["weed"], scored["advice"], scored["chart"]) == (
        1.0,
        0.0,
        0.5,
        1.0,
    )
    assert (scored["fas"], scored["css"]) == (pytest.approx((1 + 0 + 1) / 3), 0.5)
    assert (scored["ots_floor"], scored["plot"]) == (0.5, 1.0)
    assert "ots" not in scored
    names = set(values(record(AREA, answer="area: 7 %")))
    assert names == {"area", "fas", "css", "fas_text", "guess"}


SHARED = ADVICE.model_copy(update={"name": "shared", "headline": False})


def test_open_text_is_not_in_fas_and_alone_has_none():
    scored = values(
        record(AREA, ADVICE, SHARED, answer="area: 7 %\nadvice: hoe\nshared: hoe, spray")
    )
    assert (scored["fas"], scored["ots_floor"], scored["shared"]) == (1.0, 0.5, 1.0)
    assert scored["guess"] == values(record(AREA, answer="area: 7 %"))["guess"]
    alone = values(record(ADVICE, answer="advice: hoe"))
    assert set(alone) == {"advice", "ots_floor"}


@given(st.text(max_size=200))
def test_any_answer_gets_scores_in_bounds_and_the_same_ones_again(answer):
    answered = record(AREA, WEED, ADVICE, CHART, answer=answer)
    rows = outcome_scores(answered)
    assert rows == outcome_scores(answered)
    assert all(0 <= row.value <= 1 for row in rows)
    assert len(rows) == 10


def test_records_without_trajectory_and_plots_without_specification_are_refused():
    answered = record(AREA).model_copy(update={"trajectory": None})
    with pytest.raises(RunStoreError, match="no trajectory"):
        score_record(answered)
    broken = PlotSlot(name="chart", label="chart", value={"kind": "volcano"})
    with pytest.raises(BenchmarkError, match="chart"):
        outcome_scores(record(broken, answer="done", drawn=SPEC))


def test_figures_weigh_half_and_the_floor_is_what_the_prompt_suggests():
    chart, count = (
        CHART.model_copy(update={"weight": 0.5}),
        AREA.model_copy(update={"weight": 0.25}),
    )
    answered = record(
        chart, count, WEED.model_copy(update={"weight": 0.25}), answer="area: 7 %\nweed: Lantana"
    )
    assert values(answered)["fas"] == 0.5  # The right words without the figure.
    rows = {row.metric: row for row in outcome_scores(answered)}
    assert rows["fas"].reading["weights"] == {"chart": 0.5, "area": 0.25, "weed": 0.25}
    guesses = {
        values(record(AREA, WEED, CHART, answer=answer))["guess"] for answer in ("area: 7 %", "?")
    }
    assert len(guesses) == 1
