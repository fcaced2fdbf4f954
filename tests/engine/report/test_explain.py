from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import (
    AbstainSlot,
    Answer,
    Artifact,
    BooleanSlot,
    CallTools,
    ChoiceSetSlot,
    ErrorInfo,
    ExactSlot,
    Fact,
    FileSlot,
    Halt,
    Observation,
    OpenTextSlot,
    PlotSlot,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    SampleFile,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
    Unparseable,
)
from agrotools.report.explain import explain
from agrotools.report.layout import expected_text, harmless, value_text
from agrotools.report.trace import agreements
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.lost_points import lost_shares
from agrotools.scoring.slots import pair_rows
from support.plain_sample import plain_sample
from support.shown import explanation_text, rendered

UNKNOWN = ErrorInfo(kind="unknown_tool", message="Telescope is no name of a tool")
CHANGE = ToleranceSlot(
    name="change",
    label="change of the share of weeds",
    value=4.2,
    unit="%",
    abs_tol=0.5,
    from_="steps[2].observation.value",
)
REFERENCE = ReferenceTrajectory(
    steps=(
        ReferenceStep(
            tool="calculate",
            arguments={"expression": "2 + 2"},
            group=0,
            observation=Observation(
                result={"value": 4, "flags": ["rounded_off"], "notes": ["exact"]}
            ),
        ),
        ReferenceStep(
            tool="calculate",
            arguments={"expression": "3 * 5"},
            group=0,
            observation=Observation(result={"value": 15}),
        ),
        ReferenceStep(
            tool="calculate",
            arguments={
                "expression": "b - a",
                "variables": {"a": {"$ref": "steps[0].observation.value", "value": 4}, "b": 8.2},
            },
            observation=Observation(result={"value": 4.2}),
        ),
    )
)


def sample(*slots):
    return plain_sample(
        "rows-0001",
        query="How much did the share of weeds change?",
        files=(
            SampleFile(
                name="image_1.jpg",
                path="x",
                kind="image",
                width_px=640,
                height_px=480,
                gsd_m=0.0005,
            ),
        ),
        answer_type="tolerance",
        toolset=("calculate",),
        reference=REFERENCE,
        answer=slots or (CHANGE,),
        cluster="c7",
    )


def call(expression, **changes):
    return ToolCall(tool="calculate", arguments={"expression": expression, **changes})


def explained(*steps, slots=(), termination="answered", reason="", mode="end-to-end"):
    trajectory = Trajectory(steps=steps, termination=termination, reason=reason)
    record = Record(sample=sample(*slots), mode=mode, trajectory=trajectory)
    return explanation_text(record, score_record(record))


def answer(text):
    return Step(turn=9, kind="answer", text=text)


def test_question_files_missing_steps_and_invalid_records_are_shown():
    text = explained(answer("change: 4.2 %"))
    assert text.startswith("rows-0001 · end-to-end · answered · FAS 100.0")
    assert (
        "weed crop area (Segmentation Interpretation), tolerance answer, source made, cluster c7"
        in text
    )
    assert "How much did the share of weeds change?" in text
    assert "image_1.jpg  image, 640 x 480 px, 0.5 mm/px" in text
    assert explained(answer("change: 4.2 %")).count("missing step") == 3
    assert "missing step" not in explained(answer("change: 4.2 %"), mode="no-tool")
    record = Record(sample=sample(), mode="no-tool", invalid="HTTP 503 after 6 attempts")
    text = explanation_text(record, score_record(record))
    assert "rows-0001 · no-tool · invalid" in text
    assert "HTTP 503 after 6 attempts. Excluded from all averages." in text
    assert "Scores" not in text


def test_a_flag_that_another_server_gives_as_one_text_is_shown():
    seen = Observation(result={"value": 15, "flags": "shaded"})
    text = explained(Step(turn=0, kind="call", call=call("5 * 3"), observation=seen))
    assert "shaded" in text


def test_calls_stand_beside_the_reference_call_they_come_closest_to():
    seen = Observation(
        result={"value": 15, "flags": ["odd"], "notes": ["made by hand"]},
        artifacts=(Artifact(name="steps.png", kind="overlay", media_type="image/png"),),
    )
    text = explained(
        Step(
            turn=0,
            kind="call",
            call=call("5 * 3"),
            observation=seen,
            thought="Multiply first.",
            seconds=1.5,
        ),
        Step(
            turn=1,
            kind="call",
            call=call("1 + 1"),
            observation=Observation(result={"value": 2}),
            cached=True,
        ),
        answer("change: 4.2 %"),
    )
    assert "1 call calculate  1.50 s  ✓ matches reference step 2" in text
    assert "Multiply first." in text
    assert "expression  ≈ 5 * 3   reference: 3 * 5" in text
    assert "value: 15" in text
    assert "odd" in text
    assert "made by hand" in text
    assert "steps.png (overlay)" in text
    assert "2 call calculate  cached  ✗ differs from reference step 1" in text
    assert "expression  ✗ 1 + 1   reference: 2 + 2" in text
    assert "- missing step  ✗ no call matches reference step 3" in text
    assert "calculate(expression: b - a" in text


def test_errors_and_unparseable_output_are_shown_with_what_the_policy_was_told():
    error = ErrorInfo(
        kind="file_not_found",
        message="there is no file x.jpg",
        argument="image",
        hint="use image_1.jpg",
    )
    text = explained(
        Step(turn=0, kind="call", call=call("1 +"), observation=Observation(error=error)),
        Step(turn=1, kind="unparseable", text="<tool>meas", reason="neither a call nor an answer"),
        Step(
            turn=2,
            kind="call",
            call=call("2"),
            observation=Observation(error=UNKNOWN),
            refused=True,
        ),
        termination="max_steps",
        reason="20 turns",
    )
    assert "error file_not_found (image): there is no file x.jpg" in text
    assert "use image_1.jpg" in text
    assert text.count("rejected, tool not run") == 1
    assert "unparseable output" in text
    assert "neither a call nor an answer" in text
    assert "no answer (max_steps: 20 turns)" in text
    assert "the sample ended without an answer (max_steps)" in text


@pytest.mark.parametrize(
    ("slot", "said", "lines"),
    [
        (
            CHANGE,
            "change: 4.6 %",
            [
                "✓ 100.0  change",
                "expected      4.2 % ± 0.5",
                "submitted     4.6 %",
                "within the tolerance of 0.5",
            ],
        ),
        (
            CHANGE,
            "change: 0.05 fraction",
            ["✗ 0.0  change", "off by 0.8 percentage points, outside the tolerance"],
        ),
        (
            ToleranceSlot(name="litres", label="litres", value=6660.0, rel_tol=0.15),
            "litres: 8516.75",
            ["expected      6660 ± 999", "off by 1857, outside the tolerance of 999"],
        ),
        (CHANGE, "change: 3 % or 9 %", ["✗ 0.0  change", "the value is not a number"]),
        (CHANGE, "It is 4.2 %.", ["✗ 0.0  change", "does not give all values in the form"]),
        (
            ExactSlot(
                name="weed", label="weed", value="Lantana", choices=("Lantana", "Parthenium")
            ),
            "weed: parthenium",
            [
                "expected      Lantana",
                "answer names Parthenium; missing Lantana; wrong: Parthenium",
            ],
        ),
        (
            ChoiceSetSlot(
                name="weeds", label="weeds", value=("a1", "b2"), choices=("a1", "b2", "c3")
            ),
            "weeds: a1",
            ["expected      a1, b2 (of a1, b2, c3)", "missing b2"],
        ),
        (
            BooleanSlot(name="ripe", label="ripe", value=True),
            "ripe: no",
            ["the answer says no, expected yes"],
        ),
        (
            FileSlot(name="best", label="best", value="a.jpg", choices=("a.jpg", "b.jpg")),
            "",
            ["expected      a.jpg"],
        ),
        (
            OpenTextSlot(
                name="advice",
                label="advice",
                facts=(Fact(phrases=("hoe",)), Fact(phrases=("mulch",))),
            ),
            "advice: hoe",
            [
                "— 50.0  advice",
                "not in the score: no judge",
                "✓             hoe: stated",
                "✗             mulch: missing",
            ],
        ),
    ],
)
def test_every_slot_says_what_was_wanted_read_and_why(slot, said, lines):
    text = explained(answer(said), slots=(slot,))
    for line in lines:
        assert line in text


def test_a_plot_slot_says_what_was_drawn_and_what_is_missing():
    spec = {
        "kind": "bar", "series": [{"name": "weeds", "x": ["a", "b"], "y": [1, 2]}], "title": "Share of weeds",
        "x_label": "field", "y_label": "share", "y_unit": "%",
    }  # fmt: skip
    slot = PlotSlot(name="chart", label="chart", value=spec)
    assert "no figure came from a successful call" in explained(answer("done"), slots=(slot,))
    drawn = {**spec, "title": "x", "series": [{"name": "weeds", "x": ["a", "b"], "y": [1, 3]}]}
    observation = Observation(result={"spec": drawn, "summary": "bars of weeds"})
    plotted = Step(turn=0, kind="call", call=ToolCall(tool="plot"), observation=observation)
    text = explained(plotted, answer("done"), slots=(slot,))
    assert "expected      bar of weeds: a 1, b 2 (ground truth)" in text
    assert "1 of 2 points correct, 2 drawn: F1 50.0" in text
    assert "title or legend: no" in text
    assert "result        summary: bars of weeds" in text
    other = Observation(result={"spec": {**spec, "kind": "pie"}})
    wrong_kind = explained(
        plotted.model_copy(update={"observation": other}), answer("done"), slots=(slot,)
    )
    assert "pie, expected bar" in wrong_kind


def test_step_by_step_says_of_each_step_why_it_is_right_or_wrong():
    actions = (
        CallTools(calls=(call("3 * 5"), call("2 + 2")), thought="Any order will do."),
        CallTools(calls=(call("7 * 7"),)),
        Answer(text="change: 4.2 %"),
        Answer(text="change: 4.2 %"),
    )
    record = Record(sample=sample(), mode="step-by-step", actions=actions)
    text = explanation_text(record, score_record(record))
    assert "1 of 4  call calculate  ✓ correct" in text
    assert "Any order will do." in text
    assert "not scored    calculate, in the same message" in text
    assert "2 of 4  call calculate  ✗ right tool, but the arguments do not match" in text
    assert "3 of 4  call calculate  ✗ answered where a call was expected" in text
    assert "calculate(expression: b - a, variables: {a: 4 (from steps[0].observation.value)" in text
    assert "4 of 4  answer  ✓ correct" in text
    assert "STAcc ✓  ToolAcc ✓  ToolAcc strict ✓  ArgAcc ✗  ArgAcc strict ✗  EAR ✓" in text
    assert "✓ 100.0  change" in text
    assert "implied       4.2 by the results shown; scored against that: 100.0" in text
    actions = (
        Unparseable(text="{", reason="JSON ends early"),
        Halt(termination="length", reason="4096 tokens"),
        CallTools(calls=(ToolCall(tool="plot"),)),
        CallTools(calls=(ToolCall(tool="Telescope"),), refused=UNKNOWN),
    )
    record = Record(sample=sample(), mode="step-by-step", actions=actions)
    text = explanation_text(record, score_record(record))
    assert "neither a call nor an answer: JSON ends early" in text
    assert "ended with neither a call nor an answer: length, 4096 tokens" in text
    assert "called plot instead" in text
    assert "called Telescope where an answer was expected" in text
    assert "Telescope is no name of a tool" in text


def test_a_tool_that_is_not_installed_is_compared_by_plain_equality():
    step = ReferenceStep(
        tool="measure_moon",
        arguments={"image": "a.jpg", "x": {"$ref": "steps[0].observation.v", "value": 2}},
    )
    compared = agreements(
        ToolCall(tool="measure_moon", arguments={"image": "a.jpg", "x": 3}), step, sample()
    )
    assert [(item.name, item.mark) for item in compared] == [("image", "✓"), ("x", "✗")]
    assert compared[1].reference == "2 (from steps[0].observation.v)"


def test_the_lost_points_of_a_sample_are_shown_by_part():
    record = Record(
        sample=sample(),
        mode="end-to-end",
        trajectory=Trajectory(steps=(answer("x"),), termination="answered"),
    )
    scores = score_record(record)
    text = rendered(explain(record, scores, shares=lost_shares(record, scores)), 100)
    assert "wrong plan 100.0 points: a call is wrong or missing" in text
    shares = {"tool:calculate": Fraction(1, 4), "planning": Fraction(1, 2)}
    text = rendered(explain(record, scores, shares=shares), 100)
    assert text.index("wrong plan 50.0 points") < text.index("tool errors (calculate) 25.0")
    assert "tool errors (calculate) 25.0 points: a result is missing" in text


def test_a_point_that_the_twin_alone_lost_is_put_down_to_the_twin():
    yes = plain_sample("yes", twin="no", may_abstain=True)
    refusal = AbstainSlot(name="refusal", label="no answer", reason="no_scale", asks=yes.answer)
    no = plain_sample("no", twin="yes", may_abstain=True, answer=(refusal,))
    refused = Trajectory(steps=(answer("weeds: unknown"),), termination="answered")
    own = Record(sample=no, mode="end-to-end", trajectory=refused)
    twin = Record(sample=yes, mode="end-to-end", trajectory=refused)
    rows = score_record(own)
    rows += pair_rows(own, rows, twin, score_record(twin))
    shares = lost_shares(own, rows)
    of_twin = "twin refused 100.0 points: the answerable twin yes was refused"
    assert of_twin in rendered(explain(own, rows, shares=shares), 120)


@given(st.text(max_size=300))
def test_hostile_text_is_shown_without_control_characters(said):
    assert all(letter == "\n" or letter.isprintable() for letter in harmless(said))
    text = explained(Step(turn=0, kind="unparseable", text=said, reason=said), answer(said))
    assert all(letter == "\n" or letter.isprintable() for letter in text)
    assert "[red]4.2[/red] [/]" in explained(answer("[red]4.2[/red] [/]"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner),
        max_leaves=30,
    )
)
def test_any_value_is_one_short_line(value):
    text = value_text(value)
    assert "\n" not in text
    assert len(text) < 400


def test_arguments_that_are_written_alike_are_not_marked_for_what_another_changes():
    """Without the heights, ``tree`` is looked for in the photograph, which is not what the tool was told wrong."""
    files = (
        SampleFile(name="image_1.jpg", path="x", kind="image", width_px=64, height_px=64),
        SampleFile(
            name="heights_1.tif",
            path="y",
            kind="raster",
            width_px=64,
            height_px=64,
            bands=("height",),
        ),
    )
    arguments = {
        "image": "image_1.jpg",
        "target": "tree",
        "chm": "heights_1.tif",
        "region": [1, 2, 30, 40],
    }
    step = ReferenceStep(
        tool="count_objects", arguments=arguments, observation=Observation(result={"count": 3})
    )
    mine = ToolCall(tool="count_objects", arguments={"image": "image_1.jpg", "target": "tree"})
    marks = {
        each.name: each.mark
        for each in agreements(mine, step, sample().model_copy(update={"files": files}))
    }
    assert marks == {"image": "✓", "target": "✓", "region": "✗", "chm": "✗"}


@pytest.mark.parametrize(
    ("value", "tolerance", "expected"),
    [
        (30.11157042090403, 1.5, "30.11 cm ± 1.5"),
        (0.0123456, 0.0005, "0.012346 cm ± 0.0005"),
        (1234567.89, 1500, "1234570 cm ± 1500"),
        (30.5, 0, "30.5 cm ± 0"),
    ],
)
def test_numbers_have_the_digits_that_their_tolerance_needs(value, tolerance, expected):
    assert (
        expected_text(
            ToleranceSlot(name="height", label="height", value=value, unit="cm", abs_tol=tolerance)
        )
        == expected
    )
