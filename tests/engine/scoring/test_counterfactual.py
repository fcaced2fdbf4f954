"""Shares of planted faults, against Shapley values enumerated by hand over all orders of replacement."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from math import factorial
from typing import Any

import pytest

from agrotools.calling import get_tool
from agrotools.core import (
    AbstainSlot,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    Fact,
    KeywordsSlot,
    Observation,
    OpenTextSlot,
    Record,
    ReferenceStep,
    ReferenceTextsSlot,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
)
from agrotools.core.record import Fault
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.attribution import LostSample, attribution_of, rounded_points
from agrotools.scoring.counterfactual import SampleGame
from agrotools.scoring.lost_points import Shares, lost_shares
from agrotools.scoring.metrics import FAS, OPEN_TEXT
from agrotools.scoring.slots import SlotScore, score_row
from support.plain_sample import plain_sample

TREES, WEEDS, CALCULATE = "tool:count_objects", "tool:measure_crop_weed_area", "tool:calculate"
TRUE_COUNT, TRUE_SHARE = 10, 20.0
FILES = tuple(
    SampleFile(
        name=f"image_{at}.jpg",
        path=f"{at}.jpg",
        kind="image",
        gsd_m=0.1,
        width_px=100,
        height_px=80,
    )
    for at in (1, 2)
)


class Tools:
    """Tools with planted errors: ``count`` trees too many, ``share`` percent too much weed; ``calls`` were made."""

    def __init__(self, count: int = 0, share: float = 0.0) -> None:
        self._count, self._share = count, share
        self.calls: list[ToolCall] = []

    def __call__(self, call: ToolCall) -> Observation:
        self.calls.append(call)
        return self.result(call)

    def result(self, call: ToolCall) -> Observation:
        if call.tool == "calculate":
            tool = get_tool("calculate")
            return Observation(result=tool(**tool.validate(call.arguments)).model_dump(mode="json"))
        other = call.arguments["image"] != "image_1.jpg"
        if call.tool == "count_objects":
            return Observation(result={"count": (3 if other else TRUE_COUNT) + self._count})
        return Observation(result={"weed_pct": (55.0 if other else TRUE_SHARE) + self._share})


def ref(step: int, field: str, value: float) -> dict[str, Any]:
    return {"$ref": f"steps[{step}].observation.{field}", "value": value}


def slot(name: str, value: float, source: str, **fields: Any) -> ToleranceSlot:
    data = {"name": name, "label": name, "value": value, "from": source, "abs_tol": 0.5, **fields}
    return ToleranceSlot.model_validate(data)


TOTAL = slot("total", 30.0, "steps[2].observation.value")
COUNT = slot("trees", 10.0, "steps[0].observation.count")


def sample_of(*slots: Any) -> Sample:
    """Trees of one picture plus the share of weeds on it, calculated."""
    steps = (
        ReferenceStep(
            tool="count_objects",
            arguments={"image": "image_1.jpg", "target": "tree"},
            truth={"count": TRUE_COUNT},
        ),
        ReferenceStep(
            tool="measure_crop_weed_area",
            arguments={"image": "image_1.jpg"},
            truth={"weed_pct": TRUE_SHARE},
        ),
        ReferenceStep(
            tool="calculate",
            arguments={
                "expression": "a + b",
                "variables": {"a": ref(0, "count", 10), "b": ref(1, "weed_pct", 20.0)},
            },
            truth={"value": 30.0},
        ),
    )
    return plain_sample(
        "planted-1",
        files=FILES,
        family="CM",
        task_type="organ_counting",
        answer_type="tolerance",
        toolset=("count_objects", "measure_crop_weed_area", "calculate"),
        reference=ReferenceTrajectory(steps=steps),
        answer=slots or (TOTAL,),
    )


def record_of(
    tools: Tools,
    *slots: Any,
    image: str = "image_1.jpg",
    skip_weeds: bool = False,
    expression: str = "a + b",
    answer: Callable[[Mapping[str, float]], str] | None = None,
    **ending: Any,
) -> Record:
    """Run of an agent that makes the reference calls with its faults, and answers from what it sees."""
    steps: list[Step] = []

    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        made = ToolCall(tool=tool, arguments=arguments)
        observation = tools.result(made)
        steps.append(Step(turn=len(steps), kind="call", call=made, observation=observation))
        assert observation.result is not None
        return observation.result

    count = call("count_objects", image=image, target="tree")["count"]
    share = 40.0 if skip_weeds else call("measure_crop_weed_area", image="image_1.jpg")["weed_pct"]
    total = call(
        "calculate", expression=expression.format(count, share), variables={"a": count, "b": share}
    )["value"]
    seen = {"trees": count, "total": total}
    text = answer(seen) if answer else "\n".join(f"{name}: {value}" for name, value in seen.items())
    if not ending:
        steps.append(Step(turn=len(steps), kind="answer", text=text))
    trajectory = Trajectory(steps=tuple(steps), termination=ending.get("termination", "answered"))
    return Record(sample=sample_of(*slots), mode="end-to-end", trajectory=trajectory)


def shares_of(record: Record, tools: Tools) -> Shares:
    return SampleGame(record, score_record(record), tools).shares()


def points(record: Record, tools: Tools) -> dict[str, float]:
    """Points of the parts that have any."""
    return {part: float(100 * share) for part, share in shares_of(record, tools).items() if share}


def by_hand(parts: Sequence[str], value: Callable[[frozenset[str]], float]) -> dict[str, float]:
    """Shapley values by their definition: the mean gain of each part over all orders, in points."""
    totals = dict.fromkeys(parts, Fraction(0))
    for order in permutations(parts):
        for at, part in enumerate(order):
            totals[part] += Fraction(value(frozenset(order[: at + 1]))) - Fraction(
                value(frozenset(order[:at]))
            )
    return {
        part: float(100 * total / factorial(len(parts))) for part, total in totals.items() if total
    }


def misread(seen: Mapping[str, float]) -> str:
    return f"trees: {seen['trees']}\ntotal: {seen['total'] + 7}"


def test_no_fault_loses_no_point():
    tools = Tools()
    assert points(record_of(tools), tools) == {}
    assert tools.calls == []


@pytest.mark.parametrize(
    ("tools", "faults", "part"),
    [
        (Tools(count=3), {}, TREES),
        (Tools(share=4.0), {}, WEEDS),
        (Tools(), {"skip_weeds": True}, "planning"),
        (Tools(), {"image": "image_2.jpg"}, "arguments"),
        (Tools(), {"answer": misread}, "reading"),
        (Tools(), {"answer": lambda _: "total: 30 or 35"}, "form"),
        (
            Tools(),
            {"answer": lambda _: "The trees, 10, and their share, 20, make 37 in total."},
            "form",
        ),
        (Tools(), {"answer": lambda _: "I do not know."}, "form"),
        (Tools(), {"answer": lambda _: "total: unknown"}, "reading"),
        (Tools(), {"termination": "unparseable"}, "form"),
        (Tools(), {"termination": "max_steps"}, "planning"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_one_fault_has_all_points(tools: Tools, faults: dict[str, Any], part: str):
    assert points(record_of(tools, **faults), tools) == {part: 100.0}


NAMED = {"choices": ("leaf miner", "rust", "brown spot")}
_SLOTS = {
    "exact": ExactSlot,
    "tolerance": ToleranceSlot,
    "boolean": BooleanSlot,
    "choice_set": ChoiceSetSlot,
}
MINER, RUST = "pest.coffee_leaf_miner", "disease.coffee_leaf_rust"


@pytest.mark.parametrize(
    ("fields", "right", "wrong", "answers"),
    [
        ({"type": "exact", "value": "leaf miner", **NAMED}, MINER, RUST, ("brown spot", "rust")),
        ({"type": "exact", "value": "leaf miner", **NAMED}, "Leucoptera coffeella", "roya", ("brown spot", "rust")),
        ({"type": "exact", "value": "leaf miner", **NAMED}, "Coffee_Leaf-Miner", "coffee_rust", ("rust", "rust")),
        ({"type": "exact", "value": MINER, "choices": (MINER, RUST)}, "coffee leaf miner", "coffee rust", (RUST, RUST)),
        ({"type": "exact", "value": "LM", "choices": ("LM", "R"), "aliases": {"LM": ("coffee leaf miner",)}},
         MINER, RUST, ("R", RUST)),
        ({"type": "exact", "value": "yes", "choices": ("yes", "no")}, True, False, ("no", "no")),
        ({"type": "exact", "value": 3}, "3", "4", ("5", "4")),
        ({"type": "tolerance", "value": 12.0, "abs_tol": 1.0}, "12", "19", ("15", "19")),
        ({"type": "tolerance", "value": 8.9, "abs_tol": 2.0, "unit": "%"}, 9.4, 15.2, ("30 %", "15.2 %")),
        ({"type": "boolean", "value": True}, "yes", "no", ("no", "no")),
        ({"type": "choice_set", "value": ("rust", "leaf miner"), **NAMED}, [MINER, RUST], [RUST],
         ("brown spot", "rust")),
    ],
)  # fmt: skip
def test_a_right_tool_loses_no_point_under_any_name_and_a_wrong_one_does(
    fields, right, wrong, answers
):
    made = _SLOTS[fields["type"]].model_validate(
        {"name": "it", "label": "it", "from": "steps[0].observation.best", **fields}
    )
    truth = {"best": list(made.value) if isinstance(made.value, tuple) else made.value}
    step = ReferenceStep(
        tool="diagnose_pest_disease", arguments={"image": "image_1.jpg"}, truth=truth
    )
    sample = sample_of(made).model_copy(
        update={
            "reference": ReferenceTrajectory(steps=(step,)),
            "toolset": ("diagnose_pest_disease",),
        }
    )

    def lost(seen: Any, answer: str) -> dict[str, float]:
        call = ToolCall(tool=step.tool, arguments=step.arguments)
        steps = (
            Step(turn=0, kind="call", call=call, observation=Observation(result={"best": seen})),
            Step(turn=1, kind="answer", text=f"it: {answer}"),
        )
        record = Record(
            sample=sample,
            mode="end-to-end",
            trajectory=Trajectory(steps=steps, termination="answered"),
        )
        return points(record, Tools())

    assert {*lost(right, answers[0])} == {"reading"}
    assert {*lost(wrong, answers[1])} == {"tool:diagnose_pest_disease"}


def test_calculations_are_blamed_on_their_inputs_or_the_planning():
    tools = Tools(count=3, share=4.0)
    found = points(record_of(tools), tools)
    assert found == by_hand([TREES, WEEDS, CALCULATE], lambda fixed: float({TREES, WEEDS} <= fixed))
    assert CALCULATE not in found
    assert {call.tool for call in tools.calls} == {"calculate"}, (
        "only what depends on a changed result is run"
    )
    tools = Tools(count=3)
    assert points(record_of(tools, expression="{} + {}"), tools) == {TREES: 100.0}
    tools = Tools()
    assert points(record_of(tools, skip_weeds=True, expression="{} + {} - 5"), tools) == {
        "planning": 100.0
    }


def test_calls_that_an_error_prevented_are_not_missing():
    tools = Tools()
    record = record_of(tools)
    failed = record.trajectory.steps[0].model_copy(
        update={"observation": Observation(result={"count": None})}
    )
    answer = Step(turn=2, kind="answer", text="I cannot tell.")
    steps = (failed, record.trajectory.steps[1], answer)
    stopped = record.model_copy(
        update={"trajectory": Trajectory(steps=steps, termination="answered")}
    )
    assert points(stopped, tools) == {TREES: 100.0}


def test_errors_within_the_tolerance_are_shared_or_cancel():
    # Off by 6; tolerance 2.5. Without the count's 4 the rest of 2 is within it, without the share's 2 the 4 are not.
    tools = Tools(count=4, share=2.0)
    wide = slot("total", 30.0, "steps[2].observation.value", abs_tol=2.5)
    found = points(record_of(tools, wide), tools)
    assert found == by_hand([TREES, WEEDS], lambda fixed: float(TREES in fixed)) == {TREES: 100.0}
    narrow = Tools(count=3, share=3.0)
    found = points(
        record_of(narrow, slot("total", 30.0, "steps[2].observation.value", abs_tol=3.5)), narrow
    )
    assert (
        found
        == by_hand([TREES, WEEDS], lambda fixed: float(bool(fixed)))
        == {TREES: 50.0, WEEDS: 50.0}
    )
    tools = Tools(count=3, share=-3.0)
    assert points(record_of(tools), tools) == {}
    assert points(record_of(tools, COUNT, TOTAL), tools) == {TREES: 50.0}


@pytest.mark.parametrize(
    ("tools", "faults", "parts"),
    [
        (Tools(count=3), {"answer": misread}, {TREES, "reading"}),
        (Tools(share=3.0), {"image": "image_2.jpg"}, {WEEDS, "arguments"}),
        (Tools(count=3), {"skip_weeds": True}, {TREES, "planning"}),
        (
            Tools(share=3.0),
            {"image": "image_2.jpg", "answer": misread},
            {WEEDS, "arguments", "reading"},
        ),
        (Tools(count=3), {"termination": "length"}, {TREES, "form"}),
    ],
)
def test_faults_that_must_all_be_repaired_share_equally(
    tools: Tools, faults: dict[str, Any], parts: set[str]
):
    found = points(record_of(tools, **faults), tools)
    everything = [TREES, WEEDS, CALCULATE, "planning", "arguments", "reading", "form"]
    assert found == by_hand(everything, lambda fixed: float(parts <= fixed))


@pytest.mark.parametrize("timeout", [False, True])
@pytest.mark.parametrize("error", [0, 2])
def test_a_fault_is_not_blamed_on_a_tool_that_would_have_been_right(error: int, timeout: bool):
    tools, seen = Tools(count=error), Tools(count=error + 5)
    original = None if timeout else Observation(result={"count": TRUE_COUNT + error})
    fault = Fault(call=0, kind="timeout" if timeout else "noise", landed=True, original=original)
    record = record_of(seen).model_copy(update={"faults": (fault,)})
    found = points(record, tools)
    assert found == by_hand(
        ["fault", TREES], lambda fixed: float({"fault", *([TREES] if error else [])} <= fixed)
    )
    spared = fault.model_copy(update={"landed": False})
    assert points(record_of(seen).model_copy(update={"faults": (spared,)}), tools) == {TREES: 100.0}


def test_a_tool_within_the_tolerance_is_not_blamed_for_a_missing_form_of_several_slots():
    tools = Tools(share=0.3)
    record = record_of(
        tools, TOTAL, COUNT, answer=lambda seen: f"I would say {seen['total']} or so."
    )
    assert points(record, tools) == {"form": 100.0}


def test_slots_are_split_one_by_one_and_right_ones_keep_their_points():
    tools = Tools(count=3)
    record = record_of(
        tools, COUNT, TOTAL, answer=lambda seen: f"trees: 99\ntotal: {seen['total']}"
    )

    def value(fixed: frozenset[str]) -> float:
        return ({TREES, "reading"} <= fixed) / 2 + (TREES in fixed) / 2

    assert (
        points(record, tools)
        == by_hand([TREES, "reading"], value)
        == {TREES: 75.0, "reading": 25.0}
    )
    record = record_of(
        tools, COUNT, TOTAL, answer=lambda seen: f"trees: 10\ntotal: {seen['total']}"
    )
    assert points(record, tools) == {TREES: 50.0}


SHARE = slot("share", TRUE_SHARE, "steps[1].observation.weed_pct")


@pytest.mark.parametrize(
    ("written", "shares"),
    [
        # No result gives the share, so the form cannot be complete: its right line is lost by the tool, too.
        ("trees: 10", {WEEDS: 100.0}),
        ("trees: 12", {"reading": 50.0, WEEDS: 50.0}),
        ("trees: 10\nshare: unknown", {WEEDS: 50.0}),
        ("There are 10 trees.", {"form": 50.0, WEEDS: 50.0}),
    ],
)
def test_a_form_that_lacks_what_no_result_gave_is_lost_by_the_tool(
    written: str, shares: dict[str, float]
):
    tools = Tools()
    silent = Tools()
    silent.result = lambda call: (
        Observation(result={"weed_pct": None})
        if call.tool == "measure_crop_weed_area"
        else tools.result(call)
    )
    record = record_of(tools, COUNT, SHARE, answer=lambda _: written)
    steps = [
        step.model_copy(update={"observation": silent.result(step.call)})
        if step.call is not None and step.call.tool != "calculate"
        else step
        for step in record.trajectory.steps  # pyright: ignore[reportOptionalMemberAccess]
    ]
    trajectory = Trajectory(steps=tuple(steps), termination="answered")
    assert points(record.model_copy(update={"trajectory": trajectory}), silent) == shares


def test_a_form_that_lacks_what_a_result_gave_is_lost_by_the_form():
    tools = Tools()
    record = record_of(tools, COUNT, SHARE, answer=lambda _: "trees: 10")
    assert points(record, tools) == {"form": 100.0}


def test_an_answer_to_an_unanswerable_question():
    slot_ = AbstainSlot.model_validate(
        {
            "name": "abstain",
            "label": "l",
            "reason": "no_scale",
            "asks": [COUNT.model_dump(by_alias=True)],
        }
    )
    sample = sample_of(slot_)
    steps = tuple(
        step.model_copy(update={"truth": None, "observation": Observation(result={"count": None})})
        for step in sample.reference.steps[:1]  # pyright: ignore[reportOptionalMemberAccess]
    )
    sample = sample.model_copy(update={"reference": ReferenceTrajectory(steps=steps)})

    def record(count: int | None, text: str) -> Record:
        call = ToolCall(tool="count_objects", arguments={"image": "image_1.jpg", "target": "tree"})
        made = Step(
            turn=0, kind="call", call=call, observation=Observation(result={"count": count})
        )
        trajectory = Trajectory(
            steps=(made, Step(turn=1, kind="answer", text=text)), termination="answered"
        )
        return Record(sample=sample, mode="end-to-end", trajectory=trajectory)

    assert points(record(None, "trees: 12"), Tools()) == {"reading": 100.0}
    assert points(record(12, "trees: 12"), Tools()) == {TREES: 100.0}
    for text in ("There is no scale, so the trees cannot be counted.", "trees: many"):
        formless = record(None, text)
        assert points(formless, Tools()) == {"form": 100.0}
    blind = Trajectory(
        steps=(Step(turn=0, kind="answer", text="trees: 12"),), termination="answered"
    )
    failing = Tools()
    failing.result = lambda _call: Observation(result={"count": None})
    assert points(record(12, "").model_copy(update={"trajectory": blind}), failing) == {
        "planning": 100.0
    }
    assert points(record(None, "trees: unknown"), Tools()) == {}


@pytest.mark.parametrize(
    ("may_abstain", "values", "part"),
    [
        (True, ("unknown", "unknown"), "answer"),
        (False, ("unknown", "unknown"), "answer"),
        (True, ("unknown", "many"), "answer"),
        (True, ("many", "many"), "form"),
    ],
    ids=["a refusal", "unknown values", "one unknown value", "unreadable values"],
)
def test_without_calls_unknown_is_an_answer_that_was_read(
    may_abstain: bool, values: tuple[str, str], part: str
):
    trees, share = values
    step = Step(turn=0, kind="answer", text=f"trees: {trees}\nshare: {share}")
    slots = (slot("trees", 10, "steps[0].observation.count"), slot("share", 20, "0"))
    record = Record(
        sample=plain_sample("trees-1", answer=slots, may_abstain=may_abstain),
        mode="no-tool",
        trajectory=Trajectory(steps=(step,), termination="answered"),
    )
    assert lost_shares(record, score_record(record)) == {part: 1}


WORDS = KeywordsSlot(name="kind", label="kind", whitelist=(("oak", "oaks"),))
TEXTS = ReferenceTextsSlot(name="kind", label="kind", values=("There are two oaks.",))


@pytest.mark.parametrize(
    ("slot_", "text", "part"),
    [
        (WORDS, "There are birches.", "answer"),
        (TEXTS, "Birches, as it seems.", "answer"),
        (TEXTS, " ", "form"),
    ],
)
def test_a_wrong_answer_in_words_is_read_and_wrong(slot_: Any, text: str, part: str):
    """Protocols of published benchmarks ask for no form."""
    step = Step(turn=0, kind="answer", text=text)
    record = Record(
        sample=plain_sample("trees-1", answer=(slot_,)),
        mode="no-tool",
        trajectory=Trajectory(steps=(step,), termination="answered"),
    )
    assert [*lost_shares(record, score_record(record))] == [part]


@pytest.mark.parametrize("made", [0, 1])
def test_a_thing_that_was_not_measured_is_lost_by_the_plan(made: int):
    """One of two pictures was measured, and the other one guessed: no result of it was misread."""
    truths: tuple[dict[str, Any], ...] = ({"weed_pct": 20.0}, {"weed_pct": 55.0})
    reference = tuple(
        ReferenceStep(
            tool="measure_crop_weed_area",
            arguments={"image": f"image_{at}.jpg"},
            truth=truth,
            observation=Observation(result=truth),
        )
        for at, truth in enumerate(truths, start=1)
    )
    slots = (
        slot("first", 20.0, "steps[0].observation.weed_pct"),
        slot("second", 55.0, "steps[1].observation.weed_pct"),
    )
    sample = sample_of(*slots).model_copy(
        update={"reference": ReferenceTrajectory(steps=reference)}
    )
    call = ToolCall(tool="measure_crop_weed_area", arguments={"image": f"image_{made + 1}.jpg"})
    seen = Step(turn=0, kind="call", call=call, observation=Observation(result=truths[made]))
    said = [30.0, 30.0]
    said[made] = float(truths[made]["weed_pct"])
    answer = Step(turn=1, kind="answer", text=f"first: {said[0]}\nsecond: {said[1]}")
    trajectory = Trajectory(steps=(seen, answer), termination="answered")
    record = Record(sample=sample, mode="end-to-end", trajectory=trajectory)
    assert points(record, Tools()) == {"planning": 50.0}


def test_what_nobody_asked_a_tool_is_not_blamed_on_it():
    """Without the result of a call with the right arguments, that call is taken as right."""
    tools = Tools(count=3)
    record = record_of(tools, COUNT, image="image_2.jpg")
    assert points(record, tools) == {TREES: 50.0, "arguments": 50.0}
    unknown = lost_shares(record, score_record(record))
    assert {part: float(100 * share) for part, share in unknown.items()} == {"arguments": 100.0}


def test_the_recorded_result_of_the_reference_call_is_used_before_a_tool_is_asked():
    tools = Tools(count=3)
    record = record_of(tools, COUNT, image="image_2.jpg")
    assert record.sample.reference is not None
    steps = list(record.sample.reference.steps)
    seen = Observation(result={"count": TRUE_COUNT + 3})
    steps[0] = steps[0].model_copy(update={"observation": seen})
    reference = ReferenceTrajectory(steps=tuple(steps))
    sample = record.sample.model_copy(update={"reference": reference})
    record = record.model_copy(update={"sample": sample})
    shares = lost_shares(record, score_record(record))
    assert {part: float(100 * share) for part, share in shares.items()} == {
        TREES: 50.0,
        "arguments": 50.0,
    }


@pytest.mark.parametrize(
    ("grade", "expected"), [(1.0, {WEEDS: 25}), (0.5, {WEEDS: 25, "answer": 37.5})]
)
def test_open_text_that_a_judge_graded_is_no_misread_result(grade: float, expected: Shares):
    """The text has three times the weight of the number, which a tool got wrong."""
    share = slot("share", TRUE_SHARE, "steps[1].observation.weed_pct")
    advice = OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("hoe",)),), weight=3)
    record = record_of(
        Tools(share=20.0), share, advice, answer=lambda _: f"advice: hoe\nshare: {TRUE_SHARE + 20}"
    )
    rows = [row for row in score_record(record) if row.metric != FAS]
    rows.append(score_row(record, OPEN_TEXT, SlotScore(grade, {})))
    rows.append(score_row(record, FAS, SlotScore(3 * grade / 4, {})))
    lost = lost_shares(record, rows)
    assert {part: float(100 * each) for part, each in lost.items()} == expected


def test_parts_sum_to_the_gap_to_the_last_digit():
    shares = {"planning": Fraction(1, 3), "reading": Fraction(1, 7), "arguments": Fraction(-1, 9)}
    gap, parts = rounded_points(shares)
    assert sum(parts.values()) == gap == sum(reversed(parts.values()))
    assert gap == pytest.approx(float(100 * sum(shares.values())), abs=1e-6)


def test_a_run_is_the_mean_of_its_samples_with_intervals_over_clusters():
    samples = [
        LostSample(
            task="counting" if at % 2 else "weeds",
            cluster=at % 12,
            shares={"planning": Fraction(1, 3), "reading": Fraction(at % 3, 7)},
        )
        for at in range(36)
    ]
    found = attribution_of(samples)
    assert (found.run.n, found.run.n_clusters) == (36, 12)
    assert sum(found.run.parts.values()) == found.run.gap == 100 - found.run.score
    assert found.run.parts["reading"] == pytest.approx(100 / 7, abs=1e-5)
    interval = found.run.intervals["reading"]
    assert interval.lower < found.run.parts["reading"] < interval.upper
    assert found.tasks.keys() == {"counting", "weeds"}
    assert all(sum(task.parts.values()) == task.gap for task in found.tasks.values())
