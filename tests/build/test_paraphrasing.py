"""Rules for other wordings: what a paraphrase may never change, whoever proposes it."""

import itertools
import random
import re
from importlib.resources import files

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agrotools.build.assist.paraphrase import REASONS, fixed_parts, original_of, refusal, reworded
from agrotools.build.templates import Template, load_templates
from agrotools.build.templates.wording import sentences
from agrotools.core import BooleanSlot, ExactSlot, FileSlot, Sample, SampleFile, ToleranceSlot
from agrotools.tools import AGROTOOLS
from support.plain_sample import plain_sample

SHARE = ToleranceSlot(name="share", label="share of weeds", value=41.7, unit="%", abs_tol=1)
WEEDS = "In image_1.jpg, do weeds cover more than 12.5 % of the 3 m strip, and less than in image_2.jpg?"
SWAPPED = "Do weeds in image_2.jpg cover more than 12.5 % of the 3 m strip, and less than in image_1.jpg?"
TWICE_MORE = "Do weeds cover more than 12.5 % of the 3 m strip in image_1.jpg, and more than in image_2.jpg?"
GERMAN = "Bedecken in image_1.jpg die Unkräuter mehr als 12.5 % der 3 m, weniger als in image_2.jpg?"
FRENCH = "Dans image_1.jpg, plus de 12.5 % des 3 m, et moins que dans image_2.jpg, sont de mauvaises herbes ?"
LONG = f"I would like to know this. {WEEDS} Please say so in a few words, as I have to go out to the field right now."
BOXES = "Which fruit is thicker, apple 1 in the box 10, 20, 30, 40 or apple 2 in 55, 60, 75, 80?"
MOST = "After the second visit, which crop had the most leaves per plant: maize, bean or millet?"
CHINESE = "图 image_1.jpg 中杂草占地面的比例是否超过 12.5 %?"


def _sample(query: str, *slots, files_shown: int = 2, **changes) -> Sample:
    names = [f"image_{number}.jpg" for number in range(1, files_shown + 1)]
    shown = tuple(SampleFile(name=name, path=f"files/{name}", kind="image") for name in names)
    slots = slots or (BooleanSlot(name="more", label="weeds", value=True),)
    return plain_sample(query=query, files=shown, answer=slots, toolset=AGROTOOLS, **changes)


def _reason(query: str, variant: str, *slots, **changes) -> str | None:
    found = refusal(variant, _sample(query, *slots, **changes))
    assert found is None or (found.reason in REASONS and found.detail)
    return found.reason if found else None


@pytest.mark.parametrize(
    ("query", "variant"),
    [
        (WEEDS, "Is more than 12.5 % of the 3 m strip in image_1.jpg under weeds, but less than in image_2.jpg?"),
        (WEEDS, "Is the weed cover of the 3 m strip over 12.5 % in image_1.jpg, yet lower than in image_2.jpg?"),
        ("Is this apple thicker than 60 mm?", "Would you say that the apple exceeds 60 millimetres?"),
        ("How many trees are there?", "What is the number of trees here?"),
        (CHINESE, "image_1.jpg 里,杂草占地面的比例有没有高于 12.5 %?"),
    ],
)
def test_another_way_to_ask_the_same_passes(query, variant):
    slot = ToleranceSlot(name="n", label="number", value=3) if query.startswith("How") else None
    assert refusal(variant, _sample(query, *([slot] if slot else []))) is None


@pytest.mark.parametrize(
    ("query", "variant", "reason"),
    [
        (WEEDS, WEEDS.upper(), "unchanged"),
        (WEEDS, "", "length"),
        (WEEDS, WEEDS.replace("In", "## In"), "form"),
        (WEEDS, WEEDS.replace("more", "\nmore"), "form"),
        (WEEDS, "Weeds in image_1.jpg?", "length"),
        (WEEDS, LONG, "length"),
        (WEEDS, GERMAN, "language"),
        (WEEDS, FRENCH, "language"),
        (CHINESE, "In image_1.jpg, do weeds cover more than 12.5 % of the ground?", "language"),
        ("How many trees?", "树有多少棵?How many", "language"),
        (WEEDS, WEEDS.replace("In", "Well, in").replace("12.5", "15.2"), "number"),
        (WEEDS, WEEDS.replace("In", "Well, in").replace("3 m", "3 cm"), "number"),
        (WEEDS, WEEDS.replace("In", "Well, in").replace("3 m ", ""), "number"),
        (WEEDS, WEEDS.replace("In", "Over three strips, in"), "number"),
        (WEEDS, WEEDS.replace("In", "Well, in").replace("12.5 %", "12.5"), "number"),
        (BOXES, BOXES.replace("Which", "Tell me which").replace("10, 20, 30, 40", "20, 10, 30, 40"), "number"),
        (BOXES, BOXES.replace("Which", "So which").replace("e 1", "e 2").replace("or apple 2", "or apple 1"), "number"),
        (WEEDS, SWAPPED, "file"),
        (WEEDS, WEEDS.replace("In", "Well, in").replace("image_2.jpg", "image_3.jpg"), "file"),
        ('Is it "bean rust"?', 'Would you call it "rust"?', "quotation"),
        (WEEDS, TWICE_MORE, "meaning"),
        (WEEDS, WEEDS.replace("In", "Well, in").replace("weeds", "crops"), "word"),
        (WEEDS, WEEDS.replace("do weeds", "don't weeds"), "meaning"),
        ("Is the fruit ripe enough?", "Is the fruit unripe or so?", "meaning"),
        ("Was it bare before the rain?", "Was it bare after the rain?", "meaning"),
        ("Which was larger, before or after the rain?", "Which was larger, after or before the rain?", "meaning"),
        ("Is the average size above 60 mm?", "Is the size, all in all, above 60 mm?", "meaning"),
        ("Are there weeds in the row?", "How many weeds are in the row?", "meaning"),
        ("Are there weeds in the row?", "Which weeds are there in the row?", "question"),
        ("Are there weeds in the row?", "Can you use count_objects on the weeds in the row?", "tool"),
        ("Are there weeds in the row?", "With gsd_m, are there weeds in the row?", "tool"),
        ("Are there weeds in the row?", "Find the row, and step by step, are there weeds?", "tool"),
        ("这里有没有杂草?", "请先分割图像,然后看有没有杂草?", "tool"),
    ],
)  # fmt: skip
def test_what_changes_the_question_is_refused(query, variant, reason):
    assert _reason(query, variant) == reason


def test_an_open_question_does_not_become_one_of_yes_or_no():
    slot = ToleranceSlot(name="height", label="height", value=3.2, unit="m")
    assert _reason("What height do these plants reach?", "Do these plants reach any height?", slot) == "question"
    assert _reason("What height do these plants reach?", "Tell me what height these plants reach.", slot) is None


def test_options_and_words_of_calls_stay_and_the_answer_is_not_told():
    crops = ("bean", "maize", "millet")
    slot = ExactSlot(name="crop", label="crop", value="bean", aliases={"bean": ("haricot",)}, choices=crops)
    asked = "After the second visit, maize, bean or millet: which crop had the most leaves per plant?"
    assert _reason(MOST, asked, slot) is None
    assert _reason(MOST, asked.replace("maize, bean", "bean, maize"), slot) == "option"
    assert _reason(MOST, asked.replace("millet", "sorghum"), slot) == "option"
    assert _reason(MOST, asked.replace("bean", "haricot"), slot) == "option"
    assert _reason("Which crop is it?", "Which crop is it, bean?", slot) == "option"
    assert _reason("Which crop is it?", "So, which crop might it be?", slot) is None
    steps = [{"tool": "diagnose_pest_disease", "arguments": {"image": "image_1.jpg", "crop": "rice"}}]
    query, slot = "What is wrong with my rice here?", ExactSlot(name="name", label="what it is", value="blast")
    changes = {"reference": {"steps": steps}}
    assert _reason(query, "What ails my rice here?", slot, **changes) is None
    assert _reason(query, "What ails my plants here?", slot, **changes) == "word"
    assert _reason("What share do weeds have, in %?", "Is 41.7 % the share that weeds have?", SHARE) == "number"
    slot = FileSlot(name="file", label="photo", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg"))
    assert _reason("Which photo shows more weeds?", "More weeds: which photo, image_2.jpg?", slot) == "file"
    told = ExactSlot(name="kind", label="kind", value="rust")
    assert _reason("What kind of rust is it?", "Which kind of rust might it be?", told) == "leak"


def test_a_sentence_of_another_question_is_refused():
    query, variant = "Would there be any weeds left here?", "I am in a hurry. Are any weeds left here?"
    assert refusal(variant, _sample(query)) is None
    found = refusal(variant, _sample(query), sentences("I am in a hurry. Count them."))
    assert found.reason == "sentence"


def _reordered(query: str) -> str:
    """A wording that passes, to be spoilt."""
    return {
        WEEDS: "Do weeds in image_1.jpg cover more than 12.5 % of the 3 m strip, and less than in image_2.jpg?",
        BOXES: "Apple 1 is in the box 10, 20, 30, 40 and apple 2 in 55, 60, 75, 80: which fruit is thicker?",
        MOST: "Which crop, maize, bean or millet, had the most leaves per plant after the second visit?",
        CHINESE: "image_1.jpg 里,杂草占地面的比例有没有高于 12.5 %?",
    }[query]


@given(query=st.sampled_from([WEEDS, BOXES, CHINESE]), at=st.integers(0, 40), digit=st.sampled_from("0123456789"))
def test_a_paraphrase_that_changes_a_digit_is_always_refused(query, at, digit):
    good = _reordered(query)
    places = [match.start() for match in re.finditer(r"\d", good)]
    place = places[at % len(places)]
    assume(good[place] != digit)
    found = refusal(good[:place] + digit + good[place + 1 :], _sample(query))
    assert found.reason in ("number", "file")


@given(query=st.sampled_from([WEEDS, BOXES, CHINESE]), number=st.decimals(0, 5000, places=2), at=st.integers(0, 200))
def test_a_paraphrase_that_adds_a_number_is_always_refused(query, number, at):
    words = _reordered(query).split(" ")
    place = at % (len(words) + 1)
    variant = " ".join([*words[:place], str(number), *words[place:]])
    assert refusal(variant, _sample(query)) is not None


@given(st.text(max_size=300))
def test_any_text_at_all_is_judged(text):
    for query in (WEEDS, CHINESE):
        found = refusal(text, _sample(query))
        assert found is None or found.reason in REASONS


def test_what_is_fixed_is_told_and_the_first_wording_kept():
    slot = ExactSlot(name="crop", label="crop", value="bean", choices=("bean", "maize", "millet"))
    assert {"maize", "bean", "millet", "crop"} <= set(fixed_parts(MOST, _sample(MOST, slot)))
    assert {"image_1.jpg", "image_2.jpg", "12.5 %", "3 m", "weed"} <= set(fixed_parts(WEEDS, _sample(WEEDS)))
    assert "10,20,30,40" in fixed_parts(BOXES, _sample(BOXES))
    once = reworded(_sample(WEEDS), "Other words?", "m")
    twice = reworded(once, "Yet other words?", "n")
    assert original_of(twice) == WEEDS
    assert (twice.query, twice.metadata["paraphrased_by"]) == ("Yet other words?", "n")


def _of(template: Template, wording: str) -> str:
    names = {"limit": "60", "one_box": "10, 20, 30, 40", "two_box": "50, 60, 70, 80", "one": "image_1.jpg"}
    names |= {"two": "image_2.jpg", "three": "image_3.jpg"}
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], f"x{match[1].replace('_', '')}ing"), wording)


def _slot(template: Template):
    label = _of(template, template.slots[0].label)
    if template.slots[0].type == "boolean":
        return BooleanSlot(name="x", label=label, value=True)
    if template.slots[0].type == "tolerance":
        return ToleranceSlot(name="x", label=label, value=0.1234567)
    return ExactSlot(name="x", label=label, value="zz")


def test_questions_that_ask_for_something_else_hardly_ever_pass():
    """The wordings of every template against those of its neighbours: people wrote them to ask for different things."""
    rng, asked, passed = random.Random(1), 0, []
    for entry in sorted(files("agrotools.build.templates").iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".toml") or entry.name in ("harms.toml", "unanswerable.toml"):
            continue
        for mine, other in itertools.permutations(load_templates(entry.name.removesuffix(".toml")), 2):
            query, variant = _of(mine, rng.choice(mine.wordings)), _of(other, rng.choice(other.wordings))
            asked += 1
            if refusal(variant, _sample(query, _slot(mine))) is None:
                passed.append((query, variant))
    assert asked > 500
    assert len(passed) / asked < 0.01, passed
