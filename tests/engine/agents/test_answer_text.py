"""Values that a Python agent returns, as lines of the answer form."""

import math

import pytest

from agrotools.agents.task import answer_text
from agrotools.core import BooleanSlot, ChoiceSetSlot, ToleranceSlot
from agrotools.core.form_item import asked_items
from agrotools.scoring.slots import refuses, score_slot
from agrotools.text.answer_reader import form_gaps

SLOTS = (
    ToleranceSlot(name="yield", label="yield", value=3.9, unit="t/ha"),
    BooleanSlot(name="ripe", label="whether it is ripe", value=True),
    ChoiceSetSlot(
        name="parts", label="parts", value=("leaf", "stem"), choices=("leaf", "stem", "root")
    ),
)


def test_values_of_python_count() -> None:
    answer = answer_text(
        {"yield": {"value": 3.9, "unit": "t/ha"}, "ripe": True, "parts": ("stem", "leaf")}
    )
    assert [score_slot(slot, SLOTS, answer).value for slot in SLOTS] == [1, 1, 1]


@pytest.mark.parametrize("nothing", [None, math.nan, "error", {"value": None, "unit": "t/ha"}])
def test_a_program_that_fails_does_not_refuse(nothing: object) -> None:
    answer = answer_text({"yield": nothing})
    assert not refuses(SLOTS[:1], answer)
    assert form_gaps(answer, asked_items(SLOTS[:1]))


def test_the_word_unknown_refuses() -> None:
    assert refuses(SLOTS, answer_text(dict.fromkeys(("yield", "ripe", "parts"), "unknown")))
