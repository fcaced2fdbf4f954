"""Our own scores of keyword lists, of several right texts, and of images made by calls."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.agents.baselines.prior import PriorTable
from agrotools.agents.baselines.simple import derived_values, random_answer
from agrotools.benchmarks._dialogs.plugin_parts import ImageCallsSlot
from agrotools.build.export.gta import gt_answer
from agrotools.core import (
    ErrorInfo,
    KeywordsSlot,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTextsSlot,
    ReferenceTrajectory,
    Sample,
    Step,
    ToolCall,
    Trajectory,
)
from agrotools.scoring.slots import outcome_scores, score_slot
from agrotools.text.rouge import rouge_l_words
from support.plain_sample import plain_sample


def keywords(*whitelist: tuple[str, ...], blacklist: tuple[tuple[str, ...], ...] = ()) -> KeywordsSlot:
    return KeywordsSlot(name="answer", label="the answer", whitelist=whitelist, blacklist=blacklist)


def scored(slot: KeywordsSlot | ReferenceTextsSlot, answer: str) -> float:
    return score_slot(slot, (slot,), answer).value


@pytest.mark.parametrize(
    ("answer", "slot", "right"),
    [
        ("The answer is 2.", keywords(("2", "two")), True), ("Two boxes", keywords(("2", "two")), True),
        ("12 boxes", keywords(("2", "two")), False), ("2.5 boxes", keywords(("2",)), False),
        ("2,500 boxes", keywords(("2",)), False), ("1,200 boxes", keywords(("1200",)), True),
        ("1200 boxes", keywords(("1,200",)), True), ("It costs $5", keywords(("$5",)), True),
        ("about 50%", keywords(("50%",)), True), ("x = -3", keywords(("-3",)), True),
        ("-3", keywords(("3",)), False), ("答案是5个", keywords(("5",)), True),
        ("red and blue", keywords(("red",), ("blue",)), True), ("red only", keywords(("red",), ("blue",)), False),
        ("a beef burger", keywords(("burger", "beef burger"), ("beef",)), True),
        ("yes, but no", keywords(("yes",), blacklist=(("no",),)), False),
        ("yes, nothing", keywords(("yes",), blacklist=(("no",),)), True),
        ("a pork chop", keywords(("pork chop",), blacklist=(("pork",),)), True),
        ("pork, or a pork chop", keywords(("pork chop",), blacklist=(("pork",),)), False),

        ("No, it is not red. Yes?", keywords(("yes",)), False), ("Yes, no doubt.", keywords(("yes",)), True),
        ("First 7. Final Answer: 8", keywords(("7",)), False),
        ("anything", keywords(("",), ()), True),
    ],
)  # fmt: skip
def test_keywords_are_stated_as_a_whole(answer: str, slot: KeywordsSlot, right: bool) -> None:
    assert scored(slot, answer) == float(right)


@given(st.integers(-9999, 9999), st.integers(0, 9))
def test_a_number_is_never_found_inside_a_longer_one(number: int, digit: int) -> None:
    slot = keywords((str(number),))
    assert scored(slot, f"it is {number} in all") == 1
    assert scored(slot, f"it is {number}{digit} in all") == 0
    assert scored(slot, f"it is {number}.{digit} in all") == (digit == 0)


def texts(*values: str) -> ReferenceTextsSlot:
    return ReferenceTextsSlot(name="answer", label="the answer", values=values)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ("3.5", "3 5", 0.0),
        ("水稻叶", "水叶", 0.8), ("...", "x", 0.0),
    ],
)  # fmt: skip
def test_overlap_by_words(first: str, second: str, value: float) -> None:
    assert rouge_l_words(first, second) == pytest.approx(value)


IMAGE = ImageCallsSlot(name="image", label="the image", tools=("DrawBox9",))
"""A tool of that name is installed nowhere: arguments are compared as they stand."""


def image_sample() -> Sample:
    steps = (
        ReferenceStep(tool="Look9", arguments={"image": "a.png"}),
        ReferenceStep(tool="DrawBox9", arguments={"image": "a.png", "bbox": "(1, 2, 3, 4)"}),
        ReferenceStep(tool="DrawBox9", arguments={"image": "a.png", "bbox": "(5, 6, 7, 8)"}),
    )
    reference = ReferenceTrajectory(steps=steps)
    return plain_sample(
        "s1", answer=(IMAGE,), answer_type="image", reference=reference, no_tool_eligible=False, toolset=("DrawBox9",)
    )


def drew(*boxes: str, answer: str | None = "done", error: ErrorInfo | None = None) -> Record:
    steps = [
        Step(
            turn=turn,
            kind="call",
            call=ToolCall(tool="DrawBox9", arguments={"image": "a.png", "bbox": box}),
            observation=Observation(error=error),
        )
        for turn, box in enumerate(boxes)
    ]
    end: list[Any] = [] if answer is None else [Step(turn=len(boxes), kind="answer", text=answer)]
    ended = "max_steps" if answer is None else "answered"
    trajectory = Trajectory(steps=(*steps, *end), termination=ended)
    return Record(sample=image_sample(), mode="end-to-end", trajectory=trajectory)


def value_of(record: Record) -> float:
    return next(row.value for row in outcome_scores(record) if row.metric == "fas")


def test_images_are_scored_by_their_calls_and_answers_exported_as_in_gta() -> None:
    assert value_of(drew("(5, 6, 7, 8)", "(1, 2, 3, 4)")) == 1
    assert value_of(drew("(1, 2, 3, 4)", "(1, 2, 3, 4)")) == 0.5
    assert value_of(drew("(1, 2, 3, 5)")) == 0
    assert value_of(drew()) == 0
    assert value_of(drew("(5, 6, 7, 8)", "(1, 2, 3, 4)", answer=None)) == 0
    lists = {"whitelist": [["2", "two"]], "blacklist": [["no"]]}
    assert gt_answer((keywords(("2", "two"), blacklist=(("no",),)),)) == lists
    assert gt_answer((keywords(("2",)),)) == {"whitelist": [["2"]], "blacklist": None}
    assert gt_answer((texts("a", "b"),)) == ["a", "b"]
    assert gt_answer((IMAGE,)) is None


def test_baselines_answer_in_words() -> None:
    import random

    slots = (keywords(("2", "two"), ("red",)), texts("some words").model_copy(update={"name": "text"}), IMAGE)
    answer = random_answer(slots, random.Random(1))
    assert "answer: " in answer
    assert "image" not in answer.split("\n")[-1].split(":")[0]
    assert derived_values(slots, [{"text": "2 red"}, {"image": "x.png"}]) == {"answer": "2 red", "text": "2 red"}
    samples = [plain_sample(f"s{number}", answer=slots, cluster=f"s{number}") for number in range(2)]
    table = PriorTable(samples)
    assert [table.guess(samples[0], slot) for slot in slots] == ["2, red", "some words", None]
