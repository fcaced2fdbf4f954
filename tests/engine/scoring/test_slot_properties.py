"""What holds for every slot and every text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    Fact,
    FileSlot,
    OpenTextSlot,
    ToleranceSlot,
)
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import format_answer
from agrotools.text.units import UNITS

LABELS = (
    "Lantana",
    "Siam weed",
    "Snake weed",
    "马缨丹",
    "no weeds",
    "C-4",
    "50%",
    "-3",
    "$5",
    "rust",
    "bean rust",
)
SLOTS = (
    ToleranceSlot(name="share", label="share of weeds", value=12.5, unit="%", abs_tol=0.2),
    ToleranceSlot(name="trees", label="number of trees", value=14),
    ExactSlot(
        name="species",
        label="species",
        value="Siam weed",
        choices=("Siam weed", "Snake weed", "Lantana"),
    ),
    ExactSlot(name="rows", label="rows", value=3),
    BooleanSlot(name="more", label="more weeds", value=True),
    ChoiceSetSlot(name="parts", label="parts", value=("leaf",), choices=("leaf", "stem")),
    FileSlot(
        name="which", label="image", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg")
    ),
    OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("remove leaves",)),)),
)
PIECES = st.sampled_from(
    "share trees species : = 12.5 14 3 % mm ha not no yes image_2.jpg leaf stem Siam-weed or and but , . \n { } [ ] \\ "
    "^ 万 百分之 不是 或 没有 ± - 10^3 1,204 e5 final answer: ** ` $ 是 两 about between".split(" ")
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(PIECES, max_size=40).map(" ".join),
    st.lists(PIECES, max_size=40).map("".join),
)


@given(
    value=st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12),
    unit=st.sampled_from([None, *UNITS]),
)
def test_a_number_in_the_answer_form_is_read_back(value: float, unit: str | None):
    slot = ToleranceSlot(name="value", label="value", value=value, unit=unit, rel_tol=1e-5)
    other = ToleranceSlot(name="value_2", label="other value", value=value + 1, unit=unit)
    text = format_answer([slot, other], {"value": value, "value_2": value + 1})
    assert score_slot(slot, [slot, other], text).value == 1


def test_a_whole_answer_in_the_form_scores_everything():
    values = {
        "share": 12.5, "trees": 14, "species": "Siam weed", "rows": 3, "more": True, "parts": ["leaf"],
        "which": "image_2.jpg", "advice": "remove\nleaves",
    }  # fmt: skip
    text = format_answer(SLOTS, values)
    assert [score_slot(slot, SLOTS, text).value for slot in SLOTS] == [1] * len(SLOTS)


@given(TEXTS, st.sampled_from(LABELS))
def test_a_further_distractor_never_raises_a_score(text: str, extra: str):
    few = ExactSlot(
        name="species", label="species", value="Siam weed", choices=("Siam weed", "Lantana")
    )
    many = few.model_copy(update={"choices": (*few.choices, extra)})
    if extra not in ("Lantana", "Siam weed"):
        assert score_slot(many, [many], text).value <= score_slot(few, [few], text).value


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot.name)
def test_the_form_is_read_at_the_end_of_a_long_reply(slot):
    value = getattr(slot, "value", "remove leaves")
    right = format_answer([slot], {slot.name: [*value] if isinstance(value, tuple) else value})
    assert score_slot(slot, [slot], ".\n" * 100_000 + right).value == 1
