"""Replies to the closing message as models write them, right and wrong ones, to questions of embedded and field.

``replies.jsonl`` holds the slots of a question (``form``), and replies with what they should be read as: ``gold``,
``unknown``, or ``wrong``, which is wrong or asked for again. They were written before the reader was.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import BooleanSlot, ExactSlot, FileSlot, Slot, ToleranceSlot
from agrotools.core.form_item import asked_items
from agrotools.scoring.slots import refuses, score_slot
from agrotools.text.form_values import read_values
from agrotools.text.submission import form_faults, is_complete, read_submission

TYPES: dict[str, type[Slot]] = {
    "exact": ExactSlot,
    "boolean": BooleanSlot,
    "tolerance": ToleranceSlot,
    "file": FileSlot,
}


@cache
def _lines() -> tuple[dict[str, list[Slot]], list[dict[str, str]]]:
    lines: list[dict[str, Any]] = [
        json.loads(line)
        for line in Path(__file__).with_name("replies.jsonl").read_text("utf-8").splitlines()
    ]
    forms = {
        line["form"]: [TYPES[slot["type"]].model_validate(slot) for slot in line["slots"]]
        for line in lines
        if "form" in line
    }
    return forms, [line for line in lines if "of" in line]


FORMS, REPLIES = _lines()


def _name(reply: dict[str, str]) -> str:
    return f"{reply['of']}-{reply['style']}-{reply['reply']}"


def _is_right(slots: Sequence[Slot], text: str) -> bool:
    is_read = is_complete(text, asked_items(slots), listed=True)
    return is_read and all(score_slot(slot, slots, text).value for slot in slots)


ASKED_AGAIN = {
    "half: right half of the area\nchanged_share: $27.3\\%$ newly covered by buildings",
    "larger_part: weeds area\narea_times: 9.24 (area of weeds divided by area of crop)",
    "worse_leaf: image_2.jpg (larger affected share)\nseverity: 3.51 % (affected share)",
}
"""Right replies that hold a word from outside the item, or both options behind a number."""


@pytest.mark.parametrize("reply", [r for r in REPLIES if r["expect"] == "gold"], ids=_name)
def test_a_right_reply_is_read(reply: dict[str, str]) -> None:
    slots, text = FORMS[reply["of"]], reply["reply"]
    if text in ASKED_AGAIN:
        assert form_faults(text, asked_items(slots))
    else:
        assert _is_right(slots, text)
        assert not form_faults(text, asked_items(slots))


@pytest.mark.parametrize("reply", [r for r in REPLIES if r["expect"] == "unknown"], ids=_name)
def test_a_refusal_is_read(reply: dict[str, str]) -> None:
    assert refuses(FORMS[reply["of"]], reply["reply"])


@pytest.mark.parametrize("reply", [r for r in REPLIES if r["expect"] == "wrong"], ids=_name)
def test_a_wrong_reply_is_wrong_or_asked_for_again(reply: dict[str, str]) -> None:
    slots = FORMS[reply["of"]]
    assert not all(score_slot(slot, slots, reply["reply"]).value for slot in slots)
    assert not refuses(slots, reply["reply"])


def test_the_faults_name_the_lines_and_what_is_asked_for() -> None:
    items = asked_items(FORMS["f-buildings-001"])
    faults = form_faults("half: the other\nchanged_share: 27.3 m²", items)
    assert faults == {
        "half": "cannot be read (the other): write one of: left, right, and nothing else",
        "changed_share": "cannot be read (27.3 m²): write one number in %, and nothing else",
    }
    assert form_faults("half: right", items) == {
        "changed_share": "is missing: write one number in %"
    }


PIECES = sorted({word for reply in REPLIES for word in reply["reply"].split()})
NUMBERS = [0.0, 1.0, 2.0, 8.0, 14.0581, 67.1367, 80.7, 190.0, 24292.0, 35400.0]


def possible_golds(slot: Slot) -> list[Slot]:
    """Return the slot with each of its possible golds; those of a number are apart."""
    if isinstance(slot, BooleanSlot):
        values: Sequence[Any] = (True, False)
    elif isinstance(slot, ToleranceSlot):
        return [
            slot.model_copy(update={"value": value, "abs_tol": 0.4, "rel_tol": 0.0})
            for value in NUMBERS
        ]
    else:
        assert isinstance(slot, ExactSlot | FileSlot)
        values = slot.choices or ("Chromolaena odorata", "Lantana camara", "Siam weed")
    return [slot.model_copy(update={"value": value}) for value in values]


def read_with_each_gold(slots: Sequence[Slot], slot: Slot, text: str) -> tuple[list[Any], float]:
    """Return the readings of a text with each gold that ``slot`` might have, and the sum of its scores."""
    readings: list[Any] = []
    total = 0.0
    for gold in possible_golds(slot):
        swapped = [gold if each.name == slot.name else each for each in slots]
        items = asked_items(swapped)
        submitted = read_submission(text, items)
        readings.append(submitted and read_values(items, submitted))
        total += score_slot(gold, swapped, text).value
    return readings, total


@given(
    st.sampled_from(sorted(FORMS)), st.lists(st.sampled_from(PIECES), min_size=1, max_size=8), st.data()
)  # fmt: skip
def test_a_reading_knows_no_gold_and_agrees_with_at_most_one(form: str, words: list[str], data):
    slots = FORMS[form]
    slot = data.draw(st.sampled_from(slots))
    lines = [f"{each.name}: {' '.join(words)}" for each in slots]
    text = data.draw(st.sampled_from(["\n".join(lines), " ".join(words)]))
    readings, total = read_with_each_gold(slots, slot, text)
    assert all(reading == readings[0] for reading in readings)
    assert total <= 1


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("(66.2 + 68.9 + 66.3) / 3 = 67.13 mm", 67.13),
        ("53.3282 * 3 = 26.6641 mm", None),  # a false equation
        ("~~33.5~~ 67.1 mm", 67.1),
        ("<b>67.1</b> mm", 67.1),
    ],
)
def test_what_is_struck_out_is_not_read_and_a_false_equation_is_asked_about(written, number):
    items = asked_items(FORMS["e-apples-046"])
    form = f"mean_diameter: {written}"
    value = read_values(items, read_submission(form, items) or {})["mean_diameter"]
    assert value.number == (None if number is None else (number, number))
    assert is_complete(form, items, listed=True) == (number is not None)


def test_a_name_twice_in_an_object_has_two_values():
    items = asked_items(FORMS["e-apples-046"])
    assert not is_complete('{"mean_diameter": 33.5, "mean_diameter": 67.1}', items, listed=True)


@pytest.mark.parametrize(
    "form",
    [
        "Answer: mean_diameter: 67.1 mm",
        "**Final Answer:** mean_diameter: 67.1 mm",
        '[{"name": "mean_diameter", "value": 67.1}]',
    ],
)
def test_a_form_behind_a_lead_and_as_a_list_is_read(form):
    assert _is_right(FORMS["e-apples-046"], form)


_PICTURES = FileSlot(
    name="dead", label="picture of the dead tree", value="image_1.jpg",
    choices=("image_1.jpg", "image_2.jpg"),
)  # fmt: skip
_CHANGE = ExactSlot(
    name="event", label="what happened", value="built", choices=("built", "removed", "no change"),
    aliases={"no change": ("none",)},
)  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        "none",
        "None of them",
        "neither",
        "neither image",
        "no picture.",
        "none (all are alive)",
        "都不是",
    ],
)
def test_that_no_option_holds_is_a_refusal(said):
    (item,) = asked_items([_PICTURES])
    assert read_values([item], {"dead": [said]})["dead"].unknown


@pytest.mark.parametrize(
    ("slot", "said"),
    [(_CHANGE, "none"), (_PICTURES, "none but image_2.jpg"), (_PICTURES, "image_2.jpg")],
)
def test_an_option_called_none_and_a_named_picture_are_no_refusal(slot, said):
    (item,) = asked_items([slot])
    assert not read_values([item], {slot.name: [said]})[slot.name].unknown
