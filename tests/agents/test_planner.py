"""The planner does what was right for a similar question, and sees no gold of its own."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.agents import run_end_to_end, run_no_tool
from agrotools.agents.baselines.planner import PlannerPolicy, PlanTable, planned_value
from agrotools.agents.baselines.plans import adapted_plan
from agrotools.agents.baselines.prior import SimilarQuestions, masked
from agrotools.benchmarks import load_folder
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
    ToolOutcome,
)
from agrotools.core.form_item import form_item
from agrotools.text.answer_form import UNKNOWN, answer_form, guessed_text
from support.plain_sample import plain_sample

MEASURE, CALCULATE = "measure_crop_weed_area", "calculate"
TOOLS = (MEASURE, CALCULATE, "plot")


def ref(step: int, field: str, value: Any = None) -> dict[str, Any]:
    return {"$ref": f"steps[{step}].observation.{field}", "value": value}


def image(number: int = 1, **more: Any) -> SampleFile:
    return SampleFile(name=f"image_{number}.jpg", path=f"files/{number}.jpg", kind="image", **more)


def raster(number: int = 1) -> SampleFile:
    return SampleFile(name=f"bands_{number}.tif", path=f"files/{number}.tif", kind="raster")


def share(name: str = "weed_share", value: float = 10.0, from_: str | None = None, unit: str | None = "%") -> Slot:
    return ToleranceSlot.model_validate(
        {"name": name, "label": name, "value": value, "unit": unit, "abs_tol": 1, "from": from_}
    )


def doubled(image_name: str = "image_1.jpg") -> ReferenceTrajectory:
    return ReferenceTrajectory(
        steps=(
            ReferenceStep(
                tool=MEASURE,
                arguments={"image": image_name},
                observation=Observation(result={"weed_pct": 4.0}),
                truth={"weed_pct": 5.0},
            ),
            ReferenceStep(
                tool=CALCULATE,
                arguments={"expression": "2 * a", "variables": {"a": ref(0, "weed_pct", 4.0)}, "unit": "%"},
                observation=Observation(result={"value": 8.0}),
                truth={"value": 10.0},
            ),
        )
    )


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
OWN = sample("own", "How much of image_1.jpg is weeds, in percent of 7 ha?", "t0", "c0", files=(raster(),))


async def test_it_makes_the_calls_of_the_most_similar_question_with_its_own_files_and_results():
    donors = [
        sample("far", "Chart the yield against rainfall over ten years, please.", "t1", "c1", files=(raster(),)),
        sample("near", "How much of image_1.jpg is crop, in percent of 12.5 ha?", "t2", "c2", files=(raster(3),)),
    ]
    near = donors[1].model_copy(update={"reference": doubled("bands_3.tif")})
    policy = PlannerPolicy(OWN, PlanTable([OWN, donors[0], near]))
    view = view_of(OWN)
    first = await policy.act(view, [])
    assert first.thought == "Step 1 of 2 of the plan of near."
    assert first.calls[0] == ToolCall(tool=MEASURE, arguments={"image": "bands_1.tif"})
    history = [called(first.calls[0], {"weed_pct": 3.5})]
    second = await policy.act(view, history)
    assert second.calls[0].arguments == {"expression": "2 * a", "variables": {"a": 3.5}, "unit": "%"}
    answer = await policy.act(view, [*history, called(second.calls[0], {"value": 7.0})])
    assert answer.text == "weed_share: 7.0 %"


async def test_a_plan_that_a_failed_call_stops_ends_with_a_guess():
    near = sample("near", "How much of image_1.jpg is crop?", "t2", "c2", answer=(share("crop_share", 31.0),))
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
        {"reference": ReferenceTrajectory(steps=(ReferenceStep(tool="no_such_tool", arguments={}),))},
    ],
)
async def test_without_a_usable_plan_it_answers_as_guess(changes: dict[str, Any]):
    fields = {"template": "t1", "cluster": "c1"} | changes
    twin = sample("twin", OWN.query, fields.pop("template"), fields.pop("cluster"), **fields)
    other = sample("other", "?", "t0", "c9", reference=None, answer=(share(value=44.0),))
    samples = [OWN, twin, other]
    action = await PlannerPolicy(OWN, PlanTable(samples)).act(view_of(OWN), [])
    assert action.text == guessed_text(OWN, OWN.answer) != ""


@pytest.mark.parametrize(
    ("slot", "answer"),
    [(share(), guessed_text(OWN, OWN.answer)), (ExactSlot(name="soil", label="soil", value="clay"), "soil: clay")],
)
async def test_in_no_tool_it_answers_as_guess_or_as_prior_where_guess_knows_nothing(slot: Slot, answer: str):
    own = OWN.model_copy(update={"answer": (slot,)})
    samples = [own, sample("near", OWN.query, OWN.template, "c1", answer=(slot,))]
    trajectory = await run_no_tool(PlannerPolicy(own, PlanTable(samples)), view_of(own))
    assert trajectory.answer == answer


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
async def test_it_refuses_if_the_form_offers_it_and_a_result_shows_that_there_is_no_answer(observation, refused):
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
    donor = sample("donor", "Is the plant at (10, 20, 30, 40) in the red box over 12 cm?", "t1", "c1", files=(pot,))
    donor = donor.model_copy(update={"reference": ReferenceTrajectory(steps=steps), "answer": (limit,)})
    own = sample("own", "Over 7.5 cm: is it the plant at (5, 6, 7, 8), in the cyan box?", "t0", "c0",
                 files=(image(note="The disc is 8.4 cm across."),))  # fmt: skip
    plan = adapted_plan(donor, own, {"mark_color": ["red", "cyan", "blue"]})
    assert plan.steps[0].arguments == {
        "image": "image_1.jpg", "scale_marker": {"type": "circle", "size_cm": 8.4}, "region": other
    }  # fmt: skip
    assert plan.steps[1].arguments["mark_color"] == "cyan"
    assert (plan.steps[2].arguments["expression"], plan.slots[0].from_) == ("100 * a > 7.5", "a > 7.5")


@pytest.mark.parametrize(("query", "refused"), [("Is the plant in the cyan box sick?", True), ("Is it sick?", False)])
async def test_a_mark_that_is_not_there_shows_it_only_if_the_question_names_its_colour(query: str, refused: bool):
    own = sample("own", query, "t0", "c0")
    call = ToolCall(tool="extract_marked_region", arguments={"image": "image_1.jpg", "mark_color": "cyan"})
    view = view_of(own).model_copy(update={"may_abstain": True})
    action = await PlannerPolicy(own, PlanTable([own])).act(view, [called(call, None)])
    assert (action.text == UNKNOWN) == refused


async def test_step_by_step_predicts_the_plan_from_the_history_that_is_shown():
    near = sample("near", OWN.query, "t1", "c1")
    policy = PlannerPolicy(OWN, PlanTable([OWN, near]))
    assert OWN.reference is not None
    shown = [called(ToolCall(tool=MEASURE), {"weed_pct": 66.0}), called(ToolCall(tool=CALCULATE), {"value": 9.0})]
    kinds = [await policy.act(view_of(OWN), shown[:k]) for k in range(3)]
    assert [action.kind for action in kinds] == ["call", "call", "answer"]
    assert (kinds[1].calls[0].arguments["variables"], kinds[2].text) == ({"a": 66.0}, "weed_share: 9.0 %")


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
        changes |= {"value": slot.choices[-1], "choices": slot.choices[::-1], "aliases": {MARKER: (MARKER,)}}
    elif isinstance(slot, FileSlot):
        changes |= {"value": slot.choices[-1], "choices": slot.choices[::-1]}
    elif slot.type == "plot":
        changes["value"] = {MARKER: MARKER}
    return slot.model_copy(update=changes)


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
        with_gold, without = PlannerPolicy(each, PlanTable(samples)), PlannerPolicy(bare, PlanTable(others))
        for toolset in (each.toolset, ()):
            for shown in range(len(history) + 1):
                action = await with_gold.act(view_of(each, toolset), history[:shown])
                assert action == await without.act(view_of(bare, toolset), history[:shown])
                assert MARKER not in action.model_dump_json()
                assert "98765" not in action.model_dump_json()
                calls += action.kind == "call"
    assert calls >= len(samples)


async def test_the_plan_of_every_sample_runs_with_the_real_tools_of_others_data(small_benchmark: Path):
    samples = load_folder(small_benchmark).samples
    table = PlanTable(samples)
    for each in samples:
        plan = table.plan(each)
        donor = next(other for other in samples if other.id == plan.donor)
        assert donor.template != each.template
        assert donor.cluster != each.cluster
        names = {file.name for file in each.files}
        assert all(step.arguments["image"] in names for step in plan.steps if step.tool == MEASURE)

        async def answer(call: ToolCall) -> ToolOutcome:
            return ToolOutcome(Observation(result={"veg_pct": 10.0, "weed_pct": 2.0, "soil_pct": 90.0, "value": 1.0}))

        trajectory = await run_end_to_end(PlannerPolicy(each, table), view_of(each), answer)
        assert trajectory.termination == "answered"


# Whose plan.

WORDS = ("weeds", "crop", "soil", "cover", "chart")


def some_samples(seed: int, count: int) -> list[Sample]:
    rng = Random(seed)
    made: list[Sample] = []
    for number in rng.sample(range(100, 1000), count):
        query = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 3))) + rng.choice(["", " 7", " 8,5"])
        files = tuple(rng.choice([image, raster])(k) for k in range(rng.randint(0, 2)))
        reference = rng.choice([None, doubled(), doubled(), ReferenceTrajectory(steps=doubled().steps[:1])])
        toolset = rng.choice([TOOLS, TOOLS, (MEASURE,)])
        made.append(
            sample(f"s{number}", query, f"t{rng.randrange(3)}", f"c{rng.randrange(4)}", files=files)
            .model_copy(update={"reference": reference, "toolset": toolset})
        )  # fmt: skip
    return made


def nearest_of_all(own: Sample, samples: Sequence[Sample]) -> str | None:
    """The definition, pair by pair."""

    def text_of(each: Sample) -> str:
        return masked(f"{each.query} {each.answer[0].label}", [file.name for file in each.files])

    texts = list(dict.fromkeys(map(text_of, samples)))
    cosines = dict(zip(texts, SimilarQuestions(texts).cosines(text_of(own)), strict=True))
    ranked: list[tuple[float, str]] = []
    for each in samples:
        if each.reference is None or each.template == own.template or each.cluster == own.cluster:
            continue
        if not set(each.reference.tools) <= set(own.toolset):
            continue
        mine, theirs = sorted(f.kind for f in own.files), sorted(f.kind for f in each.files)
        both = sum(min(mine.count(kind), theirs.count(kind)) for kind in ("image", "raster"))
        either = sum(max(mine.count(kind), theirs.count(kind)) for kind in ("image", "raster"))
        cosine = cosines[text_of(each)]
        ranked.append((float(cosine) + (both / either if either else 1.0), each.id))
    best = max((similarity for similarity, _ in ranked), default=0.0)
    return min((name for similarity, name in ranked if similarity >= best - 1e-9), default=None)


@given(st.integers(0, 10**6), st.integers(1, 25))
def test_the_donor_is_the_most_similar_of_another_template_and_cluster_and_the_first_of_equals(seed: int, count: int):
    samples = some_samples(seed, count)
    table = PlanTable(samples)
    for each in samples:
        plan = table.plan(each)
        assert (plan.donor if plan else None) == nearest_of_all(each, samples)


# Putting a plan to use.


def plan_arguments(arguments: dict[str, Any], theirs: Sequence[SampleFile], ours: Sequence[SampleFile]) -> Any:
    steps = (ReferenceStep(tool=MEASURE, arguments=arguments),)
    donor = sample("donor", "?", "t1", "c1", files=tuple(theirs), reference=ReferenceTrajectory(steps=steps))
    return adapted_plan(donor, sample("own", "?", "t0", "c0", files=tuple(ours))).steps[0].arguments


def labels(number: int = 1) -> SampleFile:
    return SampleFile(name=f"labels_{number}.png", path="x.png", kind="mask")


@pytest.mark.parametrize(
    ("arguments", "theirs", "ours", "adapted"),
    [
        (
            {"image": "image_2.jpg", "label_raster": "labels_2.png"},
            [image(1), labels(1), image(2), labels(2)],
            [image(7), image(8)],
            {"image": "image_8.jpg"},
        ),
        (
            {"image": "image_1.jpg", "region": [0, 0, 320, 240], "index": "exg"},
            [image(width_px=640, height_px=480)],
            [image(3, width_px=1280, height_px=240)],
            {"image": "image_3.jpg", "region": [0, 0, 640, 120], "index": "exg"},
        ),
        (
            {"image": "image_1.jpg", "gsd_m": 0.01},
            [image(gsd_m=0.01)],
            [image(3, gsd_m=0.25)],
            {"image": "image_3.jpg", "gsd_m": 0.25},
        ),
        ({"image": "image_1.jpg", "gsd_m": 0.01}, [image(gsd_m=0.01)], [image(3)], {"image": "image_3.jpg"}),
    ],
)
def test_a_plan_is_carried_over_to_other_files(arguments: Any, theirs: Any, ours: Any, adapted: Any):
    assert plan_arguments(arguments, theirs, ours) == adapted


def test_names_are_exchanged_inside_of_texts_and_never_twice():
    series = [{"name": "cover", "x": ["image_1.jpg", "image_2.jpg", "image_1.jpg.bak"], "y": [ref(0, "veg_pct"), 2]}]
    steps = (ReferenceStep(tool="plot", arguments={"kind": "bar", "series": series, "title": "of image_2.jpg."}),)
    slot = FileSlot.model_validate(
        {
            "name": "more",
            "label": "more",
            "value": "image_1.jpg",
            "choices": ("image_1.jpg", "image_2.jpg"),
            "from": "'image_1.jpg' if steps[0].observation.veg_pct > 2 else 'image_2.jpg'",
        }
    )
    donor = sample(
        "donor", "?", "t", "c", files=(image(1), image(2)), reference=ReferenceTrajectory(steps=steps), answer=(slot,)
    )
    plan = adapted_plan(donor, sample("own", "?", "t0", "c0", files=(image(2), image(1))))
    assert plan.steps[0].arguments["series"] == [
        {"name": "cover", "x": ["image_2.jpg", "image_1.jpg", "image_1.jpg.bak"], "y": [ref(0, "veg_pct"), 2]}
    ]
    assert plan.steps[0].arguments["title"] == "of image_1.jpg."
    assert plan.slots[0].from_ == "'image_2.jpg' if steps[0].observation.veg_pct > 2 else 'image_1.jpg'"


FEW = MANY.model_copy(update={"name": "few", "from_": "steps[0].observation.weed_pct > 7"})
MEASURED = {
    "veg_px": 30, "veg_pct": 20.0, "weed_pct": 5.0, "weed_share_of_veg_pct": 25.0, "weed_to_crop_ratio": 0.5,
    "method": "rows", "soil_m2": 20_000.0, "flags": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "donor_slots", "results", "value"),
    [
        # As the plan answered its slot of that name, type and unit.
        (share("weed_gap"), [share("other", from_="1 + 1"), share("weed_gap", from_="3 * 3")], [MEASURED], 9),
        # From the last results: what was calculated, or the field named most like it, in the unit that is asked for.
        (share("weed_to_crop", unit=None), [], [MEASURED], 0.5),
        (share("bare_soil", unit="ha"), [], [MEASURED], 2.0),
        # As the plan answered a slot of that type and unit.
        (MANY, [FEW], [MEASURED], False),
        (share("z"), [share("y", from_="steps[3].observation.value"), share("y", from_="7 * 7")], [MEASURED], 49),
        # Labels that are none of the slot's, and numbers that are none.
        (ExactSlot(name="how", label="h", value="a", choices=("a", "b")), [], [MEASURED], None),
        (share("z"), [share("z", from_="'text'"), share("z", from_="1 / 0")], [], None),
    ],
)  # fmt: skip
def test_an_answer_is_read_out_of_the_results(asked: Slot, donor_slots: Any, results: Any, value: Any):
    donor = sample("donor", "?", "t1", "c1", answer=donor_slots or (share("unrelated", unit="degC"),))
    plan = adapted_plan(donor, sample("own", "?", "t0", "c0"))
    found = planned_value(form_item(asked), plan, results)
    assert found == (value if value is None or isinstance(value, str) else pytest.approx(value))
    assert isinstance(found, bool) == isinstance(value, bool)


# The prior that it falls back to.
