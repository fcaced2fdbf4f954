"""The planner does what was right for a similar question, and sees no gold of its own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agrotools.agents.baselines.guess import guessed_text
from agrotools.agents.baselines.planner import PlannerPolicy, PlanTable, adapted_plan
from agrotools.agents.modes import run_no_tool
from agrotools.core import (
    Answer,
    BooleanSlot,
    ErrorInfo,
    ExactSlot,
    FileSlot,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    SampleView,
    Slot,
    Step,
    ToleranceSlot,
    ToolCall,
)
from agrotools.loading import load_folder
from agrotools.text.answer_form import UNKNOWN, answer_form
from support.plain_sample import plain_sample

MEASURE, CALCULATE = "measure_crop_weed_area", "calculate"
TOOLS = (MEASURE, CALCULATE, "plot")


def ref(step: int, field: str, value: Any = None) -> dict[str, Any]:
    return {"$ref": f"steps[{step}].observation.{field}", "value": value}


def image(number: int = 1, **more: Any) -> SampleFile:
    return SampleFile(name=f"image_{number}.jpg", path=f"files/{number}.jpg", kind="image", **more)


def raster(number: int = 1) -> SampleFile:
    return SampleFile(name=f"bands_{number}.tif", path=f"files/{number}.tif", kind="raster")


def share(
    name: str = "weed_share", value: float = 10.0, from_: str | None = None, unit: str | None = "%"
) -> Slot:
    return ToleranceSlot.model_validate(
        {"name": name, "label": name, "value": value, "unit": unit, "abs_tol": 1, "from": from_}
    )


def doubled(image_name: str = "image_1.jpg") -> ReferenceTrajectory:
    seen, twice = Observation(result={"weed_pct": 4.0}), Observation(result={"value": 8.0})
    arguments = {"expression": "2 * a", "variables": {"a": ref(0, "weed_pct", 4.0)}, "unit": "%"}
    measure = {
        "tool": MEASURE,
        "arguments": {"image": image_name},
        "observation": seen,
        "truth": {"weed_pct": 5.0},
    }
    calculate = {
        "tool": CALCULATE,
        "arguments": arguments,
        "observation": twice,
        "truth": {"value": 10.0},
    }
    return ReferenceTrajectory(steps=(ReferenceStep(**measure), ReferenceStep(**calculate)))


def sample(name: str, query: str, template: str, cluster: str, **changes: Any) -> Sample:
    fields: dict[str, Any] = {
        "query": query, "template": template, "cluster": cluster, "files": (image(),), "toolset": TOOLS,
        "answer_type": "tolerance", "answer": (share(from_="steps[1].observation.value"),),
        "reference": doubled(),
    }  # fmt: skip
    return plain_sample(name, **(fields | changes))


def view_of(each: Sample, toolset: Sequence[str] | None = None) -> SampleView:
    return SampleView(
        id=each.id,
        query=each.query,
        files=each.files,
        toolset=each.toolset if toolset is None else tuple(toolset),
        answer_form=answer_form(each.answer),
    )


def called(call: ToolCall, result: dict[str, Any] | None) -> Step:
    error = None if result is not None else ErrorInfo(kind="nothing_found", message="nothing")
    return Step(turn=0, kind="call", call=call, observation=Observation(result=result, error=error))


MANY = BooleanSlot(name="many", label="many", value=True)
OWN = sample(
    "own", "How much of image_1.jpg is weeds, in percent of 7 ha?", "t0", "c0", files=(raster(),)
)


async def test_it_makes_the_calls_of_the_most_similar_question_with_its_own_files_and_results():
    donors = [
        sample(
            "far",
            "Chart the yield against rainfall over ten years, please.",
            "t1",
            "c1",
            files=(raster(),),
        ),
        sample(
            "near",
            "How much of image_1.jpg is crop, in percent of 12.5 ha?",
            "t2",
            "c2",
            files=(raster(3),),
        ),
    ]
    near = donors[1].model_copy(update={"reference": doubled("bands_3.tif")})
    policy = PlannerPolicy(OWN, PlanTable([OWN, donors[0], near]))
    view = view_of(OWN)
    first = await policy.act(view, [])
    assert first.thought == "Step 1 of 2 of the plan of near."
    assert first.calls[0] == ToolCall(tool=MEASURE, arguments={"image": "bands_1.tif"})
    history = [called(first.calls[0], {"weed_pct": 3.5})]
    second = await policy.act(view, history)
    assert second.calls[0].arguments == {
        "expression": "2 * a",
        "variables": {"a": 3.5},
        "unit": "%",
    }
    answer = await policy.act(view, [*history, called(second.calls[0], {"value": 7.0})])
    assert answer.text == "weed_share: 7.0 %"


async def test_a_plan_that_a_failed_call_stops_ends_with_a_guess():
    near = sample(
        "near", "How much of image_1.jpg is crop?", "t2", "c2", answer=(share("crop_share", 31.0),)
    )
    table = PlanTable([OWN, near])
    policy = PlannerPolicy(OWN, table)
    for result in (None, {}, {"weed_pct": None}):
        action = await policy.act(view_of(OWN), [called(ToolCall(tool=MEASURE), result)])
        assert action.text == guessed_text(OWN, OWN.answer)


@pytest.mark.parametrize(
    "changes",
    [
        {"template": "t0"},
        {"cluster": "c0"},
        {"reference": None},
        {"reference": ReferenceTrajectory(steps=())},
        {
            "reference": ReferenceTrajectory(
                steps=(ReferenceStep(tool="no_such_tool", arguments={}),)
            )
        },
    ],
)
async def test_without_a_usable_plan_it_answers_as_guess(changes: dict[str, Any]):
    fields = {"template": "t1", "cluster": "c1"} | changes
    twin = sample("twin", OWN.query, fields.pop("template"), fields.pop("cluster"), **fields)
    other = sample("other", "?", "t0", "c9", reference=None, answer=(share(value=44.0),))
    samples = [OWN, twin, other]
    action = await PlannerPolicy(OWN, PlanTable(samples)).act(view_of(OWN), [])
    assert action.text == guessed_text(OWN, OWN.answer) != ""


async def test_in_no_tool_it_answers_as_guess():
    samples = [OWN, sample("near", OWN.query, OWN.template, "c1", answer=OWN.answer)]
    trajectory = await run_no_tool(PlannerPolicy(OWN, PlanTable(samples)), view_of(OWN))
    assert trajectory.answer == guessed_text(OWN, OWN.answer)


@pytest.mark.parametrize(
    ("observation", "refused"),
    [
        (Observation(error=ErrorInfo(kind="missing_metadata", message="no scale")), True),
        (Observation(error=ErrorInfo(kind="nothing_found", message="too dark")), True),
        (Observation(error=ErrorInfo(kind="timeout", message="slow")), False),
        (Observation(result={"weed_pct": 3.0, "flags": ["registration_uncertain"]}), True),
        (Observation(result={"weed_pct": 3.0, "flags": ["shadow"]}), False),
    ],
)
async def test_it_refuses_if_the_form_offers_it_and_a_result_shows_that_there_is_no_answer(
    observation, refused
):
    own = sample("own", "How much is weeds, in percent?", "t0", "c0")
    policy = PlannerPolicy(own, PlanTable([own, sample("near", own.query, "t1", "c1")]))
    history = [Step(turn=0, kind="call", call=ToolCall(tool=MEASURE), observation=observation)]
    offered = view_of(own).model_copy(update={"may_abstain": True})
    for view, may_refuse in ((offered, True), (view_of(own), False)):
        action = await policy.act(view, history)
        assert (isinstance(action, Answer) and action.text == UNKNOWN) == (refused and may_refuse)


def test_what_the_other_question_states_takes_the_place_of_what_the_donors_states():
    box, other = [10, 20, 30, 40], [5, 6, 7, 8]
    pot = image(note="The disc is 2.4 cm across.")
    steps = (
        ReferenceStep(tool="measure_weed_phenotype", arguments={
            "image": "image_1.jpg", "scale_marker": {"type": "circle", "size_cm": 2.4}, "region": box}),
        ReferenceStep(tool="extract_marked_region", arguments={"image": "image_1.jpg", "mark_color": "red"}),
        ReferenceStep(tool=CALCULATE, arguments={"expression": "100 * a > 12", "variables": {"a": ref(0, "x")}}),
    )  # fmt: skip
    limit = MANY.model_copy(update={"from_": "a > 12"})
    donor = sample(
        "donor",
        "Is the plant at (10, 20, 30, 40) in the red box over 12 cm?",
        "t1",
        "c1",
        files=(pot,),
    )
    donor = donor.model_copy(
        update={"reference": ReferenceTrajectory(steps=steps), "answer": (limit,)}
    )
    own = sample("own", "Over 7.5 cm: is it the plant at (5, 6, 7, 8), in the cyan box?", "t0", "c0",
                 files=(image(note="The disc is 8.4 cm across."),))  # fmt: skip
    plan = adapted_plan(donor, own, {"mark_color": ["red", "cyan", "blue"]})
    assert plan.steps[0].arguments == {
        "image": "image_1.jpg", "scale_marker": {"type": "circle", "size_cm": 8.4}, "region": other
    }  # fmt: skip
    assert plan.steps[1].arguments["mark_color"] == "cyan"
    assert (plan.steps[2].arguments["expression"], plan.slots[0].from_) == (
        "100 * a > 7.5",
        "a > 7.5",
    )


@pytest.mark.parametrize(
    ("query", "refused"), [("Is the plant in the cyan box sick?", True), ("Is it sick?", False)]
)
async def test_a_mark_that_is_not_there_shows_it_only_if_the_question_names_its_colour(
    query: str, refused: bool
):
    own = sample("own", query, "t0", "c0")
    call = ToolCall(
        tool="extract_marked_region", arguments={"image": "image_1.jpg", "mark_color": "cyan"}
    )
    view = view_of(own).model_copy(update={"may_abstain": True})
    action = await PlannerPolicy(own, PlanTable([own])).act(view, [called(call, None)])
    assert (action.text == UNKNOWN) == refused


async def test_step_by_step_predicts_the_plan_from_the_history_that_is_shown():
    near = sample("near", OWN.query, "t1", "c1")
    policy = PlannerPolicy(OWN, PlanTable([OWN, near]))
    assert OWN.reference is not None
    shown = [
        called(ToolCall(tool=MEASURE), {"weed_pct": 66.0}),
        called(ToolCall(tool=CALCULATE), {"value": 9.0}),
    ]
    kinds = [await policy.act(view_of(OWN), shown[:k]) for k in range(3)]
    assert [action.kind for action in kinds] == ["call", "call", "answer"]
    assert (kinds[1].calls[0].arguments["variables"], kinds[2].text) == (
        {"a": 66.0},
        "weed_share: 9.0 %",
    )


# No gold of its own.

MARKER = "zzgold"


def without_gold(each: Sample) -> Sample:
    """``each`` as if nobody had ever answered it; what the answer form shows stays."""
    return each.model_copy(
        update={
            "reference": None, "answer": tuple(_marked(slot) for slot in each.answer),
            "metadata": {MARKER: MARKER}, "family": "VA", "task_type": "plotting", "answer_type": "open_text",
            "source": MARKER,
        }
    )  # fmt: skip


def _marked(slot: Slot) -> Slot:
    changes: dict[str, Any] = {"from_": f"'{MARKER}'", "label": slot.label}
    if isinstance(slot, ToleranceSlot):
        changes |= {"value": 98765.4321, "abs_tol": 98765.4321, "rel_tol": 0.98765}
    elif isinstance(slot, BooleanSlot):
        changes["value"] = not slot.value
    elif isinstance(slot, ExactSlot) and slot.choices:
        changes |= {
            "value": slot.choices[-1],
            "choices": slot.choices[::-1],
            "aliases": {MARKER: (MARKER,)},
        }
    elif isinstance(slot, FileSlot):
        changes |= {"value": slot.choices[-1], "choices": slot.choices[::-1]}
    elif slot.type == "plot":
        changes["value"] = {MARKER: MARKER}
    return slot.model_copy(update=changes)


@pytest.mark.process
async def test_what_it_does_is_the_same_without_gold_of_its_own(small_benchmark: Path):
    samples = load_folder(small_benchmark).samples
    calls = 0
    for position, each in enumerate(samples):
        bare = without_gold(each)
        others = [*samples[:position], bare, *samples[position + 1 :]]
        history = [
            called(ToolCall(tool=step.tool), step.observation.result if step.observation else None)
            for step in each.reference.steps
        ]
        with_gold, without = (
            PlannerPolicy(each, PlanTable(samples)),
            PlannerPolicy(bare, PlanTable(others)),
        )
        for toolset in (each.toolset, ()):
            for shown in range(len(history) + 1):
                action = await with_gold.act(view_of(each, toolset), history[:shown])
                assert action == await without.act(view_of(bare, toolset), history[:shown])
                assert MARKER not in action.model_dump_json()
                assert "98765" not in action.model_dump_json()
                calls += action.kind == "call"
    assert calls >= len(samples)


def test_where_questions_repeat_word_for_word_the_answer_form_tells_the_plan():
    query = "What do you see in image_1.jpg?"
    form = (share("found", from_="steps[1].observation.value"),)
    own = sample("own", query, "t0", "c0", answer=form)
    yes_or_no = (BooleanSlot(name="found", label="found", value=True),)
    others = [
        sample("a", query, "t1", "c1", answer=yes_or_no),
        sample("b", query, "t2", "c2", answer=form),
    ]
    plan = PlanTable([own, *others]).plan(own)
    assert plan is not None
    assert plan.donor == "b"
