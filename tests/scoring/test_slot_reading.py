"""Rules of reading an answer, beside the replies with known scores (``replies.jsonl``) and the golden vectors there."""

import pytest

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    Fact,
    FileSlot,
    KeywordsSlot,
    OpenTextSlot,
    Slot,
    ToleranceSlot,
)
from agrotools.scoring.slots import score_slot

TREES = ToleranceSlot(name="trees", label="number of trees", value=14)
MORE = BooleanSlot(name="more_weeds", label="whether there are more weeds than crop", value=True)
WHICH = FileSlot(
    name="weedier", label="the image with more weeds", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg")
)
SPECIES = ExactSlot(name="species", label="species", value="Siam weed", distractors=("Snake weed", "Lantana"))
PARTS = ChoiceSetSlot(
    name="parts",
    label="affected parts",
    value=("leaf", "stem"),
    choices=("leaf", "stem", "root"),
    aliases={"leaf": ("leaves",)},
)


def test_number_words_count_beside_digits_where_the_label_names_what_they_count():
    five = ToleranceSlot(name="ponds", label="ponds", value=5)
    assert score_slot(five, [five], "I see five ponds.").value == 1
    assert score_slot(five, [five], "共有五个池塘").value == 1
    assert score_slot(five, [five], "I see five ponds and 3 trees.").value == 1
    assert score_slot(five, [five], "The largest one has 5 inlets.").value == 1
    two = ToleranceSlot(name="ponds", label="ponds", value=2)
    assert score_slot(two, [two], "有两个池塘").value == 1


ADVICE = OpenTextSlot(
    name="advice",
    label="what to do",
    facts=(
        Fact(phrases=("remove infected leaves", "remove the infected leaves"), **{"not": ("leave infected leaves",)}),
        Fact(phrases=("avoid overhead irrigation",)),
    ),
)


def test_open_answers_lose_in_proportion_over_several_lines():
    facts = "Remove infected leaves and avoid overhead irrigation. "
    assert score_slot(ADVICE, [ADVICE], facts + "word " * 293).value == pytest.approx(0.5)
    chinese = OpenTextSlot(name="advice", label="建议", facts=(Fact(phrases=("清除病叶",)),))
    assert score_slot(chinese, [chinese], "清除病叶" + "好" * 596).value == pytest.approx(0.5)
    text = "trees: 14\nadvice: Remove infected leaves.\nAlso avoid overhead irrigation."
    assert score_slot(ADVICE, [TREES, ADVICE], text).value == 1


GAP = ToleranceSlot(name="gap", label="difference in cover", value=-3.2, unit="%", abs_tol=0.05)
PONDS = ToleranceSlot(name="ponds", label="number of ponds", value=3)


def test_a_value_given_for_another_slot_answers_none():
    same = PONDS.model_copy(update={"value": 14.0})
    assert score_slot(same, [TREES, same], "trees: 14").value == 0
    assert score_slot(same, [TREES, same], "trees:\n14").value == 0
    assert score_slot(PONDS, [TREES, PONDS], "trees: 14. I saw 3 ponds.").value == 1
    assert score_slot(PONDS, [TREES, PONDS], "Total trees: 14, total ponds: 3").value == 1
    assert score_slot(TREES, [TREES, PONDS], "Total trees: 14, total ponds: 3").value == 1
    below = BooleanSlot(name="below", label="below the limit", value=True)
    assert score_slot(below, [MORE, below], "more_weeds: yes").value == 0
    # A line of another kind may hold it.
    assert score_slot(WHICH, [WHICH, GAP], "gap: image_2.jpg by 3.2 %").value == 1


SIAM_WEED = {"Siam weed": ("Chromolaena odorata",)}
DEERE: dict[str, tuple[str, ...]] = {"Deere": ()}


@pytest.mark.parametrize(
    ("names", "text", "score"),
    [
        (SIAM_WEED, "Lantana (Siam weed)", 0), (SIAM_WEED, "Lantana aka Siam weed", 0),
        (SIAM_WEED, "Siam weed = Lantana", 0), (SIAM_WEED, r"\boxed{Siam weed} \boxed{Lantana}", 0),
        (SIAM_WEED, "**Siam weed** **Lantana**", 0), (SIAM_WEED, "Siam weed\nLantana", 0),
        (SIAM_WEED, "Siam weed Lantana", 0), (SIAM_WEED, "It is Siam weed. It is Lantana.", 0),
        (SIAM_WEED, "lantana or Siam weed", 0), (SIAM_WEED, "It is not Siam weed.", 0),
        (SIAM_WEED, "Siam weed (Chromolaena odorata, Asteraceae)", 1), (SIAM_WEED, "Siam weed (Christmas bush)", 1),
        (SIAM_WEED, "species: Siam weed, an invasive shrub", 1), (SIAM_WEED, "species: Chromolaena odorata", 1),
        (SIAM_WEED, "The answer is Lantana. Wait, it is Siam weed.", 1), (DEERE, r"\boxed{Deere}", 1),
        (DEERE, r"$\boxed{\text{Deere}}$", 1), (DEERE, r"The brand is \boxed{Deere}.", 1),
        (DEERE, "Deere (logo visible)", 1), (DEERE, "It is a Deere.", 1), (DEERE, "Deeres", 1),
    ],
)  # fmt: skip
def test_a_name_that_is_given_with_another_one_is_no_answer(names, text, score):
    (value,) = names
    slot = ExactSlot(name="species", label="species", value=value, aliases=names)
    assert score_slot(slot, [slot], text).value == score


def test_a_list_below_its_key_is_its_value():
    assert score_slot(PARTS, [PARTS], "parts:\n\n* leaf\n* stem\n\nThe root is healthy.").value == 1
    assert score_slot(PARTS, [PARTS], "parts:\n1. leaf\n2. stem\n3. root").value == 0
    assert score_slot(SPECIES, [SPECIES], "species:\nSiam weed\n\nLantana was considered.").value == 1
    assert score_slot(SPECIES, [SPECIES], "| species |\n|---|\n| Siam weed |").value == 1
    assert score_slot(SPECIES, [SPECIES], "| species | Siam weed |\n|---|---|\n| certainty | high |").value == 1


FILE = FileSlot(name="file", label="file", value="image_1.jpg", choices=("image_1.jpg", "image_2.jpg"))
APPLES = BooleanSlot(name="more", label="there are more apples", value=True)
COUNT = ToleranceSlot(name="count", label="number of apples", value=14, unit="apples")


@pytest.mark.parametrize(
    ("slot", "right", "wrong"),
    [(APPLES, "yes", "no"), (APPLES, "y", "N."), (COUNT, "14", "15"), (COUNT, "14 apples", "- 15 apples"),
     (SPECIES, "Siam weed", "Lantana"), (FILE, "image_1.jpg", "image_2.jpg"), (PARTS, "leaf, stem", "root")],
)  # fmt: skip
def test_another_value_on_the_next_line_leaves_an_answer_open(slot: Slot, right: str, wrong: str):
    def score(text: str, *others: Slot) -> float:
        return score_slot(slot, [slot, *others], f"{slot.name}: {text}").value

    assert score(right) == score(f"{right}\n{right}") == score(f"{right}\n\nAbout {wrong} I am not sure.") == 1
    assert score(f"{right}\n{wrong}") == score(f"{wrong}\n{right}") == score(f"{right}\n\n{wrong}") == 0
    # A slot of the same kind without a key takes the next line; one with a key does not.
    other = slot.model_copy(update={"name": "second", "label": "something else"})
    assert score(f"{right}\n{wrong}", other) == 1
    assert score(f"{right}\n{wrong}\nsecond: {right}", other) == 0


@pytest.mark.parametrize("text", ["{}", '{{"more": "{}"}}', "more:\n{}", "Final Answer: {}"])
def test_y_and_n_are_yes_and_no(text: str):
    for yes, no in (("y", "n"), ("Y", "N"), ("Y.", "N.")):
        assert score_slot(APPLES, [APPLES], text.format(yes)).value == 1
        reading = score_slot(APPLES, [APPLES], text.format(no))
        assert (reading.value, reading.reading["value"]) == (0, False)
    assert score_slot(APPLES, [APPLES], "more: n/a").reading.get("value") is None
    assert score_slot(APPLES, [APPLES], "more: y\nmore: n").value == 0


@pytest.mark.parametrize(
    "query",
    [
        "How many trees are inside the magenta box on image_1.jpg, and is that more than 30?",
        "Was any cropland lost between before_1.jpg and after_1.jpg, and what percentage is that (0 if none)?",
        "品红框里有多少棵树，超过30棵了吗？",
    ],
)
def test_a_question_answers_nothing(query):
    more = BooleanSlot(name="more", label="there are more than 30 trees", value=True)
    share = ToleranceSlot(name="share", label="share", value=0.0, unit="%", abs_tol=1.0)
    assert score_slot(more, (more, share), query).value == 0
    assert score_slot(share, (more, share), query).value == 0
    assert score_slot(more, (more,), f"{query} Yes, there are 41.").value == 1


@pytest.mark.parametrize(
    ("label", "text", "said"),
    [
        ("the gate is open", "The gate stands closed.", False),
        ("the gate is closed", "The gate has not been shut.", False),
        ("the soil is wet", "On top lies stubble. The soil of the plot is bone dry.", False),
        ("the hay is dry enough to bale", "At 24 % the hay is still too wet, so baling is not advised.", False),
        ("all animals are inside the fence", "并非所有牲畜都在围栏内。", False),
        ("part of the wheat has lodged", "In the south some wheat is flattened; the rest stands upright.", True),
        ("the left plot has more weeds than the right plot", "The right plot has more weeds than the left one.", False),
        ("the left field is flooded", "The right field is flooded, the left field is dry.", False),
        ("the fence is intact", "It would be wrong to say that the fence is broken.", True),
        ("the field is flooded", "If it rained, the field would be flooded.", None),
        ("the field is flooded", "Last week the field was flooded, but now it is dry.", False),
        ("the field is flooded", "I cannot tell whether the field is flooded.", None),
        ("the fence is intact", "Is the fence broken anywhere? No.", True),
        ("the field is irrigated", "The field is irrigated. The field is not irrigated.", None),
        ("水渠已经干涸", "水渠里仍有水,并未干涸。", False),
        ("田里有积水", "田面干燥,没有积水。", False),
        ("the ditch is blocked", "Apart from some leaves, the ditch is clear.", False),
        ("the crop has lodged", "I see nothing that would point to lodging.", False),
        ("the crop has lodged", "I was going to say no, but the crop has lodged.", True),
        ("the pond has grown", "Is the pond bigger? It went from 1.2 ha to 1.9 ha, so it is.", True),
        ("there are stones between the rows", "The soil between the rows is free of stones.", False),
        ("苗床适合播种", "土块过大,目前不适合播种。", False),
        ("田里有积水", "是否有积水无法判断。", None),
        ("新修了道路", "可能新修了,也可能是旧路翻新。", None),
        ("地表残留地膜", "地表干净,未发现任何残膜。", False),
        ("水位高于警戒线", "水位已超过警戒线。", True),
        ("birds are breeding in the hedge", "树篱中有三个鸟巢,说明有鸟在树篱中繁殖。", True),
    ],
)
def test_a_reply_answers_by_what_it_says_of_the_statement(label, text, said):
    right = {value: score_slot(slot, (slot,), text).value for value in (True, False) if (slot := yes_no(label, value))}
    assert right == {True: said is True, False: said is False}


def yes_no(label: str, value: bool) -> BooleanSlot:
    return BooleanSlot(name="it", label=label, value=value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        "dry field ", "more than ", "the latter a.png ", "| a.png | no |\n", "? no. ", "not ",
        "siam weed (a) ",
    ],
)  # fmt: skip
def test_reading_takes_linear_time(shape):
    for slot in (
        yes_no("the left field is wetter than the right field", True),
        yes_no("the field is wet", True),
        WHICH,
        ExactSlot(name="species", label="species", value="Siam weed"),
        KeywordsSlot(name="answer", label="the answer", whitelist=(("1",),)),
    ):
        score_slot(slot, (slot,), shape * (30_000 // len(shape)))
