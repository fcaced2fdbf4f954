"""Our own scores of keyword lists, of several right texts, and of images made by calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import KeywordsSlot, ReferenceTextsSlot
from agrotools.scoring.slots import score_slot
from agrotools.text.rouge import rouge_l_words


def keywords(
    *whitelist: tuple[str, ...], blacklist: tuple[tuple[str, ...], ...] = ()
) -> KeywordsSlot:
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
