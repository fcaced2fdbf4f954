"""Answers in the answer form: which values are read, and what a message says about the others."""

import time

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
    Slot,
    ToleranceSlot,
)
from agrotools.core.form_item import asked_items
from agrotools.scoring.slots import refuses, score_slot
from agrotools.text.answer_reader import as_form, form_faults, is_complete, read_answer, value_text

MORE = BooleanSlot(name="more", label="whether more trees are on the left", value=True)
TREES = ToleranceSlot(name="tall_trees", label="number of tall trees", value=61)
BOTH = asked_items((MORE, TREES))
HALF = ExactSlot(name="half", label="half", value="left half", choices=("left half", "right half"))
LANTANA = ExactSlot(
    name="weed",
    label="weed",
    value="Lantana",
    choices=("Lantana", "Parthenium"),
    aliases={"Lantana": ("Lantana camara", "马缨丹"), "Parthenium": ("feverfew",)},
)
PARTS = ChoiceSetSlot(
    name="parts", label="parts", value=("leaf", "stem"), choices=("leaf", "stem", "root")
)
LETTERS = ChoiceSetSlot(
    name="causes", label="causes", value=("A", "C"), choices=("A", "B", "C", "D")
)
FILE = FileSlot(
    name="which", label="image", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg")
)
WEED = ExactSlot(name="weed", label="weed", value="Lantana camara")
ADVICE = OpenTextSlot(name="advice", label="what to do", facts=(Fact(phrases=("prune",)),))


def _points(slot: Slot, text: str) -> float:
    return score_slot(slot, [slot], f"{slot.name}: {text}").value


def _is_read(slot: Slot, text: str) -> bool:
    return is_complete(f"{slot.name}: {text}", asked_items([slot]))


@pytest.mark.parametrize(
    "text",
    [
        "more: yes\ntall_trees: 61",
        "- **more**: yes\n- `tall_trees`: 61",
        "# more = yes\n> Tall trees：61.",
        '{"more": true, "tall_trees": 61}',
        '```json\n{"answer": {"more": "yes", "tall_trees": {"value": 61}}}\n```',
        "There are 61 trees.\n\nmore: yes\ntall_trees: 61<|im_end|>",
        "more: no\ntall_trees: 7\n\nmore: yes\ntall_trees: 61",
        '{"more": false, "tall_trees": 7}\n\nmore: yes\ntall_trees: 61',
        'more: no\ntall_trees: 7\n{"more": true, "tall_trees": 61}',
        "<think>\nmore: no\ntall_trees: 7\n</think>\nmore: yes\ntall_trees: 61",
    ],
)
def test_the_last_value_of_each_item_counts(text: str):
    values = read_answer(text, BOTH)
    assert values["more"].yes is True
    assert values["tall_trees"].number == 61


def test_an_item_without_a_line_is_missing():
    assert read_answer("more: yes", BOTH).keys() == {"more"}
    assert score_slot(TREES, [MORE, TREES], "more: yes").value == 0
    assert not is_complete("more: yes", BOTH)


@pytest.mark.parametrize(
    ("written", "value", "unit"),
    [
        ("61", 61, None),
        ("~61", 61, None),
        ("-0.3", -0.3, None),
        ("\u22120.3", -0.3, None),
        ("+2", 2, None),
        ("6,800 kg", 6800, "kg"),
        ("6,8 kg", 6.8, "kg"),
        ("0,412", 0.412, None),
        ("714,24", 714.24, None),
        ("3,7551", 3.7551, None),
        ("1.2e3", 1200, None),
        ("**14.1 %**", 14.1, "%"),
        ("14.1 percent.", 14.1, "%"),
        ("1.2 m3", 1.2, "m^3"),
        ("1.2 m³", 1.2, "m3"),
        ("0.075 m", 75, "mm"),
        ("12 亩", 0.8, "ha"),
    ],
)
def test_a_number_is_read_in_the_unit_of_its_item(written: str, value: float, unit: str | None):
    slot = ToleranceSlot(name="amount", label="amount", value=value, unit=unit, abs_tol=1e-9)
    assert _points(slot, written) == 1


@pytest.mark.parametrize(
    "written",
    ["60-62", "60 to 62", "61 or 62", "about sixty", "6,80,1", "1.400.000", "61 m", "nan", "inf", "none", "error",
     "<number>", "61 % of the leaf"],
)  # fmt: skip
def test_what_is_no_single_number_is_not_read(written: str):
    assert not _is_read(TREES, written)
    assert not refuses([TREES], f"tall_trees: {written}")


@pytest.mark.parametrize("unit", ["deg", "°", "brix", "°Bx", "N", "lux", "SPAD"])
def test_a_unit_outside_the_table_is_itself_and_converts_to_no_other(unit: str):
    slot = ToleranceSlot(name="juice", label="juice", value=12.5, unit=unit, abs_tol=0.1)
    for text in ("12.5", f"12.5 {unit}", f"12.5{unit}", f"12.5 {unit.upper()}"):
        assert score_slot(slot, [slot], f"juice: {text}").value == 1, text
    for text in ("12.5 %", "12.5 °C", "12.5 kg", "12.5 points"):
        assert form_faults(f"juice: {text}", asked_items([slot])).keys() == {"juice"}, text


@pytest.mark.parametrize(
    ("slot", "written", "points"),
    [
        (LANTANA, "lantana camara", 1),
        (LANTANA, "马缨丹", 1),
        (LANTANA, "Parthenium", 0),
        (HALF, "**Left half.**", 1),
        (HALF, "right-half", 0),
        (FILE, "`image_2.jpg`", 1),
        (FILE, "image_1.jpg", 0),
        (PARTS, "stem, leaf", 1),
        (PARTS, "leaf；stem", 1),
        (PARTS, "\n- leaf\n- stem", 1),
        (PARTS, "leaf", 0),
        (LETTERS, "A, C", 1),
        (LETTERS, "AC", 1),
        (LETTERS, "ABC", 0),
        (MORE, "YES", 1),
        (MORE, "true.", 1),
        (MORE, "是", 1),
        (MORE, "否", 0),
    ],
)
def test_an_option_and_a_yes_are_read_alone(slot: Slot, written: str, points: float):
    assert _is_read(slot, written)
    assert _points(slot, written) == points


@pytest.mark.parametrize(
    ("slot", "written"),
    [
        (MORE, "yes, it stays under 16 %"),
        (MORE, "yes and no"),
        (HALF, "left half (right half)"),
        (HALF, "the other"),
        (HALF, "<one of: left half, right half>"),
        (LANTANA, "Lantana (ruled out)"),
        (LANTANA, "not Lantana"),
        (PARTS, "leaf, stem, flower"),
        (PARTS, "leafstem"),
        (LETTERS, "AE"),
        (LETTERS, "AC 都是正确的。"),
    ],
)
def test_words_beside_a_value_are_asked_about(slot: Slot, written: str):
    assert not _is_read(slot, written)
    assert _points(slot, written) == 0


def test_open_text_goes_on_to_the_next_item():
    items = asked_items([ADVICE, MORE])
    values = read_answer("advice: Prune the tree.\nBurn the wood.\nmore: yes", items)
    assert values["advice"].text == "Prune the tree.\nBurn the wood."
    assert values["more"].yes is True
    assert not is_complete("advice: <a short text>\nmore: yes", items)


@pytest.mark.parametrize("written", ["unknown", "**Unknown**.", "<unknown>", "未知"])
def test_unknown_alone_refuses(written: str):
    assert refuses([MORE, TREES], written)
    assert refuses([MORE, TREES], f"more: {written}\ntall_trees: {written}")
    assert not refuses([MORE, TREES], f"more: {written}\ntall_trees: 61")
    assert as_form(written, BOTH) == "more: unknown\ntall_trees: unknown"


def test_null_refuses_and_words_around_unknown_do_not():
    assert refuses([MORE, TREES], '{"more": null, "tall_trees": null}')
    mass = ToleranceSlot(name="mass", label="mass", value=1, unit="kg")
    assert refuses([mass], "mass: <unknown> kg")
    assert not refuses([mass], "mass: unknown t")
    assert not refuses([TREES], "tall_trees: unknown, perhaps 61")
    assert not refuses([TREES], '{"tall_trees": NaN}')


def test_a_value_alone_is_the_line_of_the_only_item():
    assert as_form("61", asked_items([TREES])) == "tall_trees: 61"
    assert as_form("Prune the tree.", asked_items([ADVICE])) == "advice: Prune the tree."
    assert as_form("It is Lantana camara", asked_items([WEED])) == "It is Lantana camara"
    assert as_form("Lantana camara", asked_items([WEED])) == "weed: Lantana camara"
    assert as_form("11:18", asked_items([WEED])) == "weed: 11:18"
    assert as_form("Answer: 11:18", asked_items([WEED])) == "Answer: 11:18"
    assert as_form("61", BOTH) == "61"


@pytest.mark.parametrize(
    "thought",
    ["<think>tall_trees: 7\n</think>", "[THINK]I count 7.[/THINK]", "◁think▷7 or 61◁/think▷"],
)
def test_a_thought_before_a_value_is_cut_off(thought: str):
    assert as_form(f"{thought}\n61", asked_items([TREES])) == "tall_trees: 61"
    assert as_form("[61]", asked_items([TREES])) == "tall_trees: [61]"


def test_values_of_python_and_json_are_written_as_the_form_writes_them():
    assert value_text({"value": 3.9, "unit": "t/ha"}) == "3.9 t/ha"
    assert value_text(("leaf", "stem")) == "leaf; stem"
    assert (value_text(True), value_text(None), value_text(2)) == ("yes", "unknown", "2")


def test_the_faults_name_the_lines_what_they_hold_and_what_they_must_hold():
    size = ToleranceSlot(name="size", label="size", value=3, unit="mm")
    assert form_faults("half: the other\nsize: 27.3 kg", asked_items([HALF, size, MORE])) == {
        "half": "cannot be read (the other): write one of: left half, right half, and nothing else",
        "size": "cannot be read (27.3 kg): write one number in mm, and nothing else",
        "more": "is missing: write yes or no, and nothing else",
    }


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str):
    for each in (text, f"more: {text}\ntall_trees: {text}", f'{{"more": {text}, "tall_trees": 1}}'):
        is_complete(each, BOTH)


_WORDS = "yes no 61 62 unknown left half right leaf stem , ; not or mm % - 60-62".split()


@given(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=5))
def test_no_text_agrees_with_two_golds(words: list[str]):
    text = " ".join(words)
    golds: list[list[Slot]] = [
        [MORE.model_copy(update={"value": value}) for value in (True, False)],
        [TREES.model_copy(update={"value": value}) for value in (60.0, 61.0, 62.0)],
        [HALF.model_copy(update={"value": value}) for value in HALF.choices],
        [PARTS.model_copy(update={"value": value}) for value in (("leaf",), ("leaf", "stem"))],
    ]
    for slots in golds:
        assert sum(_points(slot, text) for slot in slots) <= 1


@pytest.mark.parametrize(
    "text",
    ["*" * 200_000, ":" * 200_000, "{" * 50_000, '{"a":' * 20_000, "more: yes\n" * 20_000, "<|" * 100_000],
)  # fmt: skip
def test_long_texts_are_read_in_little_time(text: str):
    before = time.process_time()
    read_answer(text, BOTH)
    assert time.process_time() - before < 5
