"""Step-by-step scores: what each row counts, groups, agreement, and what the shown observations imply."""

from typing import Annotated

import pytest
from pydantic import Field

from agrotools.calling import get_tool
from agrotools.calling.contract import ImageFile, Region, ToolResult, tool
from agrotools.core import (
    Answer,
    BenchmarkError,
    BooleanSlot,
    CallTools,
    ChoiceSetSlot,
    ErrorInfo,
    ExactSlot,
    FileSlot,
    Halt,
    Observation,
    OpenTextSlot,
    PlotSlot,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    RunStoreError,
    SampleFile,
    ToleranceSlot,
    ToolCall,
    Unparseable,
)
from agrotools.scoring import event_counts
from agrotools.scoring import steps as steps_module
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.floors import FLOORS
from agrotools.scoring.steps import step_scores
from support.plain_sample import plain_sample


class Cover(ToolResult):
    weed_pct: float
    crop_pct: float


@tool(category="segmentation")
def measure_cover(
    image: ImageFile,
    region: Region | None = None,
    limit: Annotated[float, Field(description="limit")] = 0.5,
) -> Cover:
    """Measure cover."""
    raise NotImplementedError


@tool(category="identification")
def name_weed(image: ImageFile) -> Cover:
    """Name a weed."""
    raise NotImplementedError


@pytest.fixture(autouse=True)
def _two_more_tools(monkeypatch):
    tools = {"measure_cover": measure_cover, "name_weed": name_weed}
    monkeypatch.setattr(
        steps_module, "get_tool", lambda name, _declared=(): tools.get(name) or get_tool(name)
    )


WEED = 8.8912
CROP = 17.8049
STEPS = (
    ReferenceStep(
        tool="measure_cover",
        arguments={"image": "image_1.jpg", "region": [0, 0, 50, 80]},
        observation=Observation(result={"weed_pct": WEED, "crop_pct": CROP, "label": "lantana"}),
        group=0,
    ),
    ReferenceStep(
        tool="measure_cover",
        arguments={"image": "image_2.jpg"},
        observation=Observation(result={"weed_pct": 3.2149, "crop_pct": 20.1}),
        group=0,
    ),
    ReferenceStep(
        tool="calculate",
        arguments={
            "expression": "a / b",
            "variables": {
                "a": {"$ref": "steps[0].observation.weed_pct", "value": WEED},
                "b": {"$ref": "steps[1].observation.weed_pct", "value": 3.2149},
            },
        },
        observation=Observation(result={"value": WEED / 3.2149}),
    ),
)
RATIO = ToleranceSlot(
    name="ratio", label="ratio", value=2.5, rel_tol=0.05, **{"from": "steps[2].observation.value"}
)


def sample(*slots, steps=STEPS):
    files = tuple(
        SampleFile(name=f"image_{index}.jpg", path="p", kind="image", width_px=100, height_px=80)
        for index in (1, 2)
    )
    return plain_sample(
        files=files,
        answer_type="tolerance",
        toolset=("measure_cover", "calculate"),
        reference=ReferenceTrajectory(steps=steps),
        answer=slots or (RATIO,),
    )


def call(name, /, **arguments):
    return CallTools(calls=(ToolCall(tool=name, arguments=arguments),))


FIRST = call("measure_cover", image="image_1.jpg", region=[0, 0, 50, 80])
SECOND = call("measure_cover", image="image_2.jpg")
THIRD = call("calculate", expression="a / b", variables={"a": WEED, "b": 3.2149})
RIGHT = (FIRST, SECOND, THIRD, Answer(text="ratio: 2.77"))


def record(*actions, of=None, **fields):
    return Record(sample=of or sample(), mode="step-by-step", actions=actions or RIGHT, **fields)


def values(scores, metric):
    return {score.step: score.value for score in scores if score.metric == metric}


def reading(scores, metric, step):
    return next(score.reading for score in scores if score.metric == metric and score.step == step)


CALL_METRICS = ("tool_acc", "tool_acc_strict", "arg_acc", "arg_acc_strict", "ear")


def test_the_reference_is_right_everywhere_with_a_row_for_each_unit():
    scores = step_scores(record())
    assert sorted(values(scores, "st_acc")) == [0, 1, 2, 3]
    for metric in CALL_METRICS:
        assert sorted(values(scores, metric)) == [0, 1, 2]
    assert sorted(values(scores, "summ_acc")) == sorted(values(scores, "summ_acc_truth")) == [3]
    assert len(scores) == 4 + 5 * 3 + 2
    for metric in (
        "st_acc",
        "tool_acc",
        "tool_acc_strict",
        "arg_acc",
        "arg_acc_strict",
        "summ_acc",
    ):
        assert set(values(scores, metric).values()) == {1}
    assert set(values(scores, "ear").values()) == {0}


def test_a_step_of_the_wrong_type_scores_0():
    answers = step_scores(
        record(Answer(text="3"), SECOND, Unparseable(text="?", reason="no JSON"), THIRD)
    )
    assert values(answers, "st_acc") == {0: 0, 1: 1, 2: 0, 3: 0}
    assert values(answers, "ear") == {0: 1, 1: 0, 2: 0}
    assert values(answers, "tool_acc") == {0: 0, 1: 1, 2: 0}
    assert values(answers, "summ_acc") == {3: 0}
    assert reading(answers, "st_acc", 2)["reason"] == "no JSON"
    assert {score.value for score in step_scores(record(*[Halt(termination="length")] * 4))} == {0}


@pytest.mark.parametrize(
    "path",
    ["images/image_2.jpg", "./image_2.jpg", "photos/two.jpg", "/home/user/data/photos/two.jpg"],
)
def test_a_path_of_a_file_is_the_file(path):
    """Transcripts of other programs name files as they were published; the tool finds them by their last part, too."""
    published = {"published_paths": {"image_2.jpg": "photos/two.jpg"}}
    of = sample().model_copy(update={"metadata": published})
    scores = step_scores(record(FIRST, call("measure_cover", image=path), THIRD, RIGHT[3], of=of))
    assert (values(scores, "arg_acc")[1], values(scores, "arg_acc_strict")[1]) == (1, 1)
    other = call("measure_cover", image="images/image_3.jpg")
    scores = step_scores(record(FIRST, other, THIRD, RIGHT[3], of=of))
    assert values(scores, "arg_acc")[1] == 0


def test_groups_come_in_any_order_and_no_call_twice():
    scores = step_scores(record(SECOND, SECOND, THIRD, RIGHT[3]))
    assert values(scores, "arg_acc") == {0: 1, 1: 1, 2: 1}
    assert values(scores, "arg_acc_strict") == {0: 0, 1: 1, 2: 1}
    assert reading(scores, "arg_acc", 0)["step"] == 1
    scores = step_scores(record(FIRST, FIRST, THIRD, RIGHT[3]))
    assert values(scores, "arg_acc") == {0: 1, 1: 0, 2: 1}
    assert values(scores, "tool_acc") == {0: 1, 1: 1, 2: 1}
    assert reading(scores, "arg_acc", 1)["step"] == 1


@pytest.mark.parametrize(
    ("action", "tool", "arguments", "strict"),
    [
        (call("measure_cover", image="image_1.jpg", region=[0, 0, 50, 80], limit=0.6), 1, 0, 0),
        (call("measure_cover", image="image_1.jpg", region=[0, 0, 50, 80], extra=1), 1, 0, 0),
        (call("measure_cover", image="image_1.jpg", region=[50, 80, 0, 0]), 1, 0, 0),
        (call("measure_cover"), 1, 0, 0),
        (call("", image="image_1.jpg"), 0, 0, 0),
    ],
)
def test_wrong_arguments_cost_the_arguments_and_leave_the_tool_right(
    action, tool, arguments, strict
):
    scores = step_scores(record(action, SECOND, THIRD, RIGHT[3]))
    assert values(scores, "tool_acc")[0] == tool
    assert values(scores, "arg_acc")[0] == arguments
    assert values(scores, "arg_acc_strict")[0] == strict


def test_arguments_must_pass_the_schema_except_the_references_own():
    action = call("calculate", expression="8.89 / 3.21", variables={}, precision=99)
    scores = step_scores(record(FIRST, SECOND, action, RIGHT[3]))
    assert values(scores, "arg_acc")[2] == 0
    assert all(row["agrees"] for row in reading(scores, "arg_acc", 2)["arguments"])
    assert "precision" in reading(scores, "arg_acc", 2)["invalid"]
    odd = STEPS[0].model_copy(update={"arguments": {"input": "image_1.jpg, weeds"}})
    odd_sample = sample(steps=(odd, *STEPS[1:]))
    same = step_scores(
        record(call("measure_cover", input="image_1.jpg, weeds"), *RIGHT[1:], of=odd_sample)
    )
    assert values(same, "arg_acc")[0] == values(same, "arg_acc_strict")[0] == 1
    other = step_scores(
        record(call("measure_cover", input="image_1.jpg"), *RIGHT[1:], of=odd_sample)
    )
    assert values(other, "arg_acc")[0] == values(other, "arg_acc_strict")[0] == 0


def test_a_value_worked_out_before_the_call_is_a_class_of_its_own():
    in_head = call("calculate", expression=repr(WEED / 3.2149))
    wrong = call("calculate", expression="2.5")
    for action, expected in ((in_head, True), (wrong, None), (THIRD, None)):
        scores = step_scores(record(FIRST, SECOND, action, RIGHT[3]))
        assert values(scores, "arg_acc")[2] == (1 if action is THIRD else 0)
        assert reading(scores, "arg_acc", 2).get("calculated_in_head") is expected
        tally = RunAggregator()
        tally.add(record(FIRST, SECOND, action, RIGHT[3]), scores)
        errors = {row.error: row for row in tally.summary().modes["step-by-step"].errors}
        assert (errors["calculated_in_head"].count, errors["calculated_in_head"].of) == (
            int(bool(expected)),
            4,
        )


def test_only_the_first_call_of_a_message_is_scored():
    both = CallTools(calls=(*SECOND.calls, *FIRST.calls, *FIRST.calls))
    scores = step_scores(record(FIRST, both, THIRD, RIGHT[3]))
    assert values(scores, "arg_acc")[1] == 1
    assert reading(scores, "st_acc", 1)["extra_calls"] == 2
    swapped = CallTools(calls=(*FIRST.calls, *SECOND.calls))
    assert values(step_scores(record(FIRST, swapped, THIRD, RIGHT[3])), "arg_acc")[1] == 0


def summary(slots, answer, steps=STEPS):
    scores = step_scores(
        record(FIRST, SECOND, THIRD, Answer(text=answer), of=sample(*slots, steps=steps))
    )
    implied, truth = values(scores, "summ_acc"), values(scores, "summ_acc_truth")
    return implied.get(3), truth.get(3), reading(scores, "summ_acc_truth", 3) if truth else None


def slot(kind, source, **fields):
    return kind(**{"name": "own", "label": "it", "from": source, **fields})


def test_a_faithful_reader_of_a_fallible_tool_is_right():
    implied, truth, read = summary([RATIO], "ratio: 2.77")
    assert (implied, truth) == (1, 0)
    assert read["differs"] == ["ratio"]
    implied, truth, _ = summary([RATIO], "ratio: 2.5")
    assert (implied, truth) == (0, 1)
    near = RATIO.model_copy(update={"value": 2.75})
    implied, truth, read = summary([near], "ratio: 2.77")
    assert (implied, truth, read["differs"]) == (1, 1, [])


LABEL = "steps[0].observation.label"
WEEDS = ("Lantana", "Parthenium", "Siam weed")


def test_an_exact_slot_takes_the_implied_label_even_outside_its_set():
    also = {"Parthenium": ("Congress grass",), "Lantana": ("wild sage",)}
    wrong = slot(ExactSlot, LABEL, value="Parthenium", aliases=also, choices=WEEDS)
    assert summary([wrong], "own: lantana")[:2] == (1, 0)
    assert summary([wrong], "own: parthenium")[:2] == (0, 1)
    assert summary([wrong], "own: Congress grass")[:2] == (0, 1)
    assert summary([wrong], "own: lantana or congress grass")[:2] == (0, 0)
    assert summary([wrong], "own: lantana or siam weed")[:2] == (0, 0)
    outside = slot(ExactSlot, "'giant hogweed'", value="Lantana", choices=WEEDS)
    assert summary([outside], "own: giant hogweed")[:2] == (1, 0)


ROUNDED = "round(steps[2].observation.value)"
LARGER = "'image_1.jpg' if steps[0].observation.weed_pct > steps[1].observation.weed_pct else 'image_2.jpg'"
NUMBER = slot(ExactSlot, ROUNDED, value=2)
GRADE = slot(ExactSlot, ROUNDED, value="2", choices=("1", "2", "3"))
QUESTION = slot(BooleanSlot, "steps[0].observation.weed_pct > 5", value=False)
CHOSEN = slot(
    ChoiceSetSlot,
    "['siam_weed', 'Lantana']",
    value=("Parthenium",),
    choices=WEEDS,
    aliases={"Lantana": ("sage",)},
)
FILE = slot(FileSlot, LARGER, value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg"))


@pytest.mark.parametrize(
    ("of", "answer", "scores"),
    [
        (NUMBER, "3", (1, 0)), (GRADE, "3", (1, 0)), (QUESTION, "Yes.", (1, 0)),
        (QUESTION, "No.", (0, 1)), (CHOSEN, "Lantana, Siam weed", (1, 0)),
        (CHOSEN, "Siam weed; sage", (1, 0)), (CHOSEN, "Parthenium", (0, 1)),
        (FILE, "image_2.jpg", (0, 1)),
    ],
)  # fmt: skip
def test_slots_of_each_kind_take_the_implied_value(of, answer, scores):
    assert summary([of], f"own: {answer}")[:2] == scores


def test_open_text_keeps_the_facts_that_the_observation_states():
    facts = [{"phrases": ["toxic to cattle"]}, {"phrases": ["spreads by birds"]}]
    steps = (
        STEPS[0].model_copy(
            update={"observation": Observation(result={"text": "It is toxic to cattle."})}
        ),
    )
    text = slot(OpenTextSlot, "steps[0].observation.text", facts=facts)
    scores = step_scores(
        record(FIRST, Answer(text="It is toxic to cattle."), of=sample(text, steps=steps))
    )
    assert values(scores, "summ_acc") == {1: 1}
    assert values(scores, "summ_acc_truth") == {1: 0.5}
    assert reading(scores, "summ_acc", 1)["differs"] == ["own"]


@pytest.mark.parametrize(
    "unknown",
    [
        slot(ToleranceSlot, None, value=1.0), slot(ToleranceSlot, "steps[0].observation.height_m", value=1.0),
        slot(ToleranceSlot, "steps[0].observation.weed_pct / 0", value=1.0), slot(ToleranceSlot, LABEL, value=1.0),
        slot(BooleanSlot, LABEL, value=True), slot(ExactSlot, "''", value="Lantana"),
        slot(ChoiceSetSlot, LABEL, value=("Lantana",), choices=WEEDS),
        slot(FileSlot, "steps[0].observation.weed_pct", value="image_1.jpg", choices=("image_1.jpg",)),
        slot(OpenTextSlot, LABEL, facts=[{"phrases": ["toxic"]}]),
    ],
)  # fmt: skip
def test_slots_of_which_nothing_is_implied_are_left_out_and_counted(unknown):
    implied, truth, read = summary([unknown], "own: 1")
    assert implied is None
    assert truth is not None
    assert list(read["left_out"]) == ["own"]
    assert read["left_out"]["own"]
    both, _, _ = summary([unknown, RATIO], "own: 1\nratio: 2.77")
    assert both == 1


def test_failed_steps_plots_and_invalid_records_are_no_part():
    failed = Observation(error=ErrorInfo(kind="nothing_found", message="no weeds"))
    steps = (*STEPS[:2], STEPS[2].model_copy(update={"observation": failed}))
    assert summary([RATIO], "ratio: 2.5", steps)[:2] == (None, 1)
    plot = PlotSlot(name="figure", label="figure", value={})
    assert summary([RATIO, plot], "ratio: 2.77")[0] == 1
    assert summary([plot], "done")[:2] == (None, None)
    assert step_scores(record(invalid="connection refused")) == []


def test_records_that_do_not_fit_their_sample_are_refused():
    with pytest.raises(RunStoreError, match="2 actions, not 4"):
        step_scores(record(FIRST, SECOND))
    with pytest.raises(RunStoreError):
        step_scores(Record(sample=sample(), mode="step-by-step"))
    with pytest.raises(BenchmarkError):
        step_scores(record(of=sample().model_copy(update={"reference": None})))


def test_the_floor_is_what_the_usual_plan_of_such_a_question_scores(monkeypatch):
    assert not values(step_scores(record()), "tool_acc_guess")  # No plan is known.
    first = ("measure_cover", {"image": "image_1.jpg", "region": [50, 0, 100, 80]})
    second = ("measure_cover", {"image": "image_2.jpg"})
    variables = {
        "a": {"$ref": "steps[0].observation.weed_pct"},
        "b": {"$ref": "steps[1].observation.weed_pct"},
    }
    divided = ("calculate", {"expression": "a / b", "variables": variables})
    floor = FLOORS.get("guess")
    monkeypatch.setattr(type(floor), "calls", lambda *_: (first, second, divided))
    scores = step_scores(record(*[Answer(text="?")] * 4))  # Whatever was done.
    assert values(scores, "tool_acc") == {0: 0, 1: 0, 2: 0}
    assert values(scores, "tool_acc_guess") == {0: 1, 1: 1, 2: 1}
    assert values(scores, "arg_acc_guess") == {0: 0, 1: 1, 2: 1}  # The region is the sample's own.
    tally = RunAggregator()
    tally.add(record(), step_scores(record()))
    metrics = tally.summary().modes["step-by-step"].metrics
    assert metrics["tool_acc_guess"].overall.value == 1
    assert metrics["arg_acc_guess"].overall.value == pytest.approx(2 / 3)
    other = (("calculate", {"expression": "1"}),)
    monkeypatch.setattr(type(floor), "calls", lambda *_: other)
    assert values(step_scores(record()), "tool_acc_guess") == {0: 0, 1: 0, 2: 0}


def test_arguments_given_as_text_are_scored_as_the_tool_reads_them_and_counted(monkeypatch) -> None:
    monkeypatch.setattr(event_counts, "get_tool", steps_module.get_tool)
    given = {"image": "a.jpg", "region": "[0, 0, 40, 40]", "limit": "0.5"}
    reference = ReferenceStep(
        tool="measure_cover",
        arguments={"image": "a.jpg", "region": [0, 0, 40, 40]},
        observation=Observation(result={}),
    )
    told = sample().model_copy(update={"reference": ReferenceTrajectory(steps=(reference,))})
    calls = [CallTools(calls=(ToolCall(tool="measure_cover", arguments=arguments),)) for arguments in
             (given, {**given, "region": "[0, 0, 9, 9]"}, {**given, "region": "here"})]  # fmt: skip
    records = [record(call, Answer(text="x"), of=told) for call in calls]
    assert [values(step_scores(each), "arg_acc")[0] for each in records] == [1.0, 0.0, 0.0]
    aggregator = RunAggregator()
    for each in records:
        aggregator.add(each, step_scores(each))
    assert aggregator.summary().modes["step-by-step"].counts.read_texts == 4
