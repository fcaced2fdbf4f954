"""Submitted answers: which form in a text counts, and the values of its lines by type, without the gold."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, Slot, ToleranceSlot
from agrotools.core.form_item import asked_items
from agrotools.scoring.slots import refuses, score_slot
from agrotools.text.submission import is_complete, read_submission

MORE = BooleanSlot(name="more", label="whether more trees are on the left", value=True)
TREES = ToleranceSlot(name="trees", label="number of trees", value=61)
BOTH = asked_items((MORE, TREES))
ONE = {"more": ("yes",), "trees": ("61",)}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("more: yes\ntrees: 61", ONE), ("- **more**: yes\n- `trees`: 61", ONE), ("1. more: yes\n2. trees: 61", ONE),
        ("whether more trees are on the left: yes\nNumber of trees: 61", ONE), ("more = yes\ntrees：61", ONE),
        ('{"answer": {"more": true, "trees": 61}}', ONE),
        ('{"more": true, "trees": 61}', ONE), ('```json\n{"more": "yes", "trees": "61"}\n```', ONE),
        ("There are 61 trees, more on the left.\n\nmore: yes\ntrees: 61<|im_end|>", ONE),
        ("more: no\ntrees: 7\n\nmore: yes\ntrees: 61", ONE), ('more: no\ntrees: 7\n{"more": true, "trees": 61}', ONE),
        ("more: yes\ntrees: 61\ntrees: 62", {"more": ("yes",), "trees": ("61", "62")}),
        ("more: yes\n\ntrees: 61\n\ntrees: 62", ONE), ("Trees: 3 and 4.\n\nmore: yes\ntrees: 61", ONE),
        ("| item | value |\n|---|---|\n| more | yes |\n| **trees** | 61 |", ONE),
        ("more (left): yes\n**trees** (all): 61", ONE),
        ("unknown", {"more": ("unknown",), "trees": ("unknown",)}),
        ("more: yes", None), ("more: yes\ntrees: <number>", None), ("There are 61 trees.", None), ("", None),
        ('{"more": true}', None), ("more: yes\ntrees:", None), ("\0 more: yes\n\ufffdtrees: 61", ONE),
    ],
)  # fmt: skip
def test_the_last_complete_form_counts(text: str, values):
    assert read_submission(text, BOTH) == values


@pytest.mark.parametrize(
    ("other", "score"),
    [("12,5", 1), ("1.234,5 m", 1), ("12.5", 0), ("12,500", 0), ("12", 0), ("1,234,567", 0)],
)
def test_a_decimal_comma_beside_it_decides_what_3755_is(other: str, score: float):
    slots = [ToleranceSlot(name="yield", label="yield", value=3.755, unit="t/ha"),
             ToleranceSlot(name="other", label="other", value=1)]  # fmt: skip
    assert score_slot(slots[0], slots, f"yield: 3,755 t/ha\nother: {other}").value == score


@pytest.mark.parametrize(
    ("text", "value", "unit", "margin", "score"),
    [
        ("14", 15, None, 1, 1), ("14", 16, None, 1, 0), ("12-16", 14, None, 0, 0), ("13-15", 14, None, 1, 1),
        ("0.075 m", 75, "mm", 0, 1), ("3.2 ha (32,000 m²)", 3.2, "ha", 0, 1), ("37%", 0.35, "fraction", 0.02, 1),
        ("-0.3", -0.3, None, 0, 1), ("75 ± 3 mm", 75, "mm", 0, 1), ("7.5 t·ha⁻¹", 7.5, "t/ha", 0, 1),
        ("24,000 m^{2}", 24000, "m^2", 0, 1), ("$3.2\\text{ ha}$", 3.2, "ha", 0, 1), ("<78> %", 78, "%", 0, 1),
        ("<|begin_of_box|>3.755<|end_of_box|>", 3.755, None, 0, 1), ("32000 plants/acre", 32000, "1/ha", 0, 0),
        ("12 kg/tree", 12, "kg", 0, 0), ("59 trees", 59, None, 0, 1), ("59 bananas", 59, "m", 0, 0),
        ("fourteen", 14, None, 0, 1), ("３．５万", 35000, None, 0, 1), ("12 亩", 0.8, "ha", 0.001, 1),
        ("1 204,5", 1204.5, None, 0, 1), ("1.2 x 10^3", 1200, None, 0, 1), ("14, 15", 14, None, 1, 0),
        ("481 (rows times trees per row)", 481, None, 0, 0), ("14 (16)", 14, None, 0, 0),
        ("0.93 (93 %)", 0.93, None, 0, 1),
        ("6.9 % (0.069)", 6.9, "%", 0, 1), ("0.069 (6.9 %)", 6.9, "%", 0, 1), ("3 ha (or 30 ha)", 3, "ha", 0, 0),
        ("€930.00", 930, None, 0, 1), ("930 €", 930, None, 0, 1), ("€930", 930, "ha", 0, 0),
        ("200.6 % days", 200.6, "%*day", 0, 1),
    ],
)  # fmt: skip
def test_a_number_counts_in_the_unit_of_its_slot(text, value, unit, margin, score):
    slot = ToleranceSlot(
        name="amount", label="amount of trees", value=value, unit=unit, abs_tol=margin
    )
    assert score_slot(slot, [slot], f"amount: {text}").value == score


@pytest.mark.parametrize(
    ("label", "text", "score"),
    [
        ("litres of water", "6660 L", 1), ("litres of water", "6660升", 1), ("litres of water", "6660 kg", 0),
        ("area under the curve, percent days", "6660 %·day", 1), ("area under the curve, percent days", "6660 mm", 0),
    ],
)  # fmt: skip
def test_a_unit_in_the_label_is_the_unit_of_a_slot_without_one(label: str, text: str, score: float):
    slot = ToleranceSlot(name="amount", label=label, value=6660)
    assert score_slot(slot, [slot], f"amount: {text}").value == score


LANTANA = ExactSlot(
    name="weed", label="weed", value="Lantana", choices=("Lantana", "Parthenium"),
    aliases={"Lantana": ("Lantana camara", "马缨丹"), "Parthenium": ("feverfew",)},
)  # fmt: skip
HALF = ExactSlot(name="half", label="half", value="left half", choices=("left half", "right half"))
PARTS = ChoiceSetSlot(
    name="parts", label="parts", value=("leaf", "stem"), choices=("leaf", "stem", "root")
)
FILE = FileSlot(
    name="which", label="image", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg")
)


@pytest.mark.parametrize(
    ("slot", "text", "score"),
    [
        (LANTANA, "lantana camara", 1), (LANTANA, "马缨丹", 1), (LANTANA, "**Lantana** (a weed)", 1),
        (LANTANA, "Lantana (ruled out)", 0),
        (LANTANA, "lantana or parthenium", 0), (LANTANA, "Parthenium", 0), (LANTANA, "not Lantana", 0),
        (HALF, "the other", 0), (HALF, "Left half.", 1), (HALF, "<one of: left half, right half>", 0),
        (PARTS, "stem, leaf", 1), (PARTS, "leaf and stem", 1), (PARTS, "['leaf', 'stem']", 1), (PARTS, "leaf", 0),
        (PARTS, "leaf, stem, root", 0), (PARTS, "leaf；stem", 1), (FILE, "`image_2.jpg`", 1), (FILE, "image_1.jpg", 0),
        (HALF, "left half (right half)", 0), (MORE, "yes (no)", 0), (MORE, "YES!", 1),
        (MORE, "Yes", 1), (MORE, "是", 1), (MORE, "true.", 1), (MORE, "否", 0), (MORE, "yes and no", 0), (MORE, "", 0),
    ],
)  # fmt: skip
def test_a_label_counts_as_a_whole(slot: Slot, text: str, score: float):
    assert score_slot(slot, [slot], f"{slot.name}: {text}").value == score


def test_a_form_is_complete_if_each_value_is_one_of_its_type():
    assert is_complete("more: yes\ntrees: 61", BOTH)
    assert is_complete("more: no\ntrees: unknown", BOTH)
    assert not is_complete("more: perhaps\ntrees: 61", BOTH)
    assert not is_complete("more: yes\ntrees: many", BOTH)
    weed = asked_items((LANTANA,))
    assert is_complete("weed: thistle", weed)
    assert not is_complete("weed: thistle", weed, listed=True)


@pytest.mark.parametrize(
    "text",
    [
        "unknown",
        "unknown %",
        "unknown (image too dark)",
        "Unknown, because it is dark",
        "未知（太暗）",
    ],
)
def test_unknown_abstains_with_its_reason_too(text: str):
    assert refuses([TREES], f"trees: {text}")
    assert refuses([LANTANA], f"weed: {text}")
    assert not refuses([TREES], "trees: unknown, else 61")


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str):
    for each in (text, f"more: {text}\ntrees: {text}", f'{{"more": {text}, "trees": 1}}'):
        is_complete(each, BOTH)


@pytest.mark.parametrize(
    "text", ["*" * 200_000, ":" * 200_000, "{" * 50_000, "more: yes\n" * 20_000, "<|" * 100_000]
)
def test_long_texts_are_read_in_little_time(text: str):
    before = time.process_time()
    read_submission(text, BOTH)
    assert time.process_time() - before < 5
