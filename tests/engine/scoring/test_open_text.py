"""Open text: what the plain rule reads, what replies earn by it, and branches that do not apply."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agrotools.core import Fact, OpenTextSlot
from agrotools.scoring.open_text import read_fact, score_facts
from agrotools.text.answer_form import answer_form
from agrotools_build.templates.key_facts import open_gold, topics_with_facts
from agrotools_build.templates.slot_draft import SlotDraft

REPLIES = Path(__file__).with_name("open_text_replies.jsonl")
FACT = Fact.model_validate(
    {"phrases": ["remove infected leaves", "清除病叶"], "not": ["leave infected leaves"]}
)
DRY = Fact(phrases=("avoid overhead irrigation",))


@cache
def slot(entry: str, topic: str, branches: tuple[str, ...] = ()) -> OpenTextSlot:
    gold = open_gold(entry, topic, branches)
    return OpenTextSlot.model_validate({"name": "advice", "label": "advice", **gold._asdict()})


@pytest.mark.parametrize(
    ("fact", "text", "state"),
    [
        (FACT, "Removing the infected leaf helps.", "stated"), (FACT, "Infected leaves are removed.", "stated"),
        (FACT, "及时清除病叶。", "stated"), (FACT, "Hoe the weeds.", "missing"),
        (FACT, "Remove weeds. Leaves, infected ones.", "missing"),
        (FACT, "Do not remove infected leaves.", "contradicted"), (FACT, "不要清除病叶。", "contradicted"),
        (FACT, "Removing infected leaves is useless.", "contradicted"),
        (FACT, "Don't wait, remove infected leaves.", "stated"),
        (FACT, "Leave infected leaves on the plant.", "contradicted"), (FACT, "Remove infected leaves?", "missing"),
        (FACT, "Remove infected leaves. You need not remove infected leaves.", "stated and contradicted"),
        (DRY, "Avoid overhead irrigation.", "stated"), (DRY, "Never use overhead irrigation.", "stated"),
        (DRY, "Use overhead irrigation.", "contradicted"),
    ],
)  # fmt: skip
def test_a_phrase_is_a_group_of_terms_with_plain_polarity(fact: Fact, text: str, state: str):
    assert read_fact(fact, text).state == state


@pytest.mark.parametrize("phrase", ["not", "..."])
def test_phrases_without_a_term_are_never_stated(phrase: str):
    assert read_fact(Fact(phrases=(phrase,)), "Hoe the weeds; not the rest...").state == "missing"


@pytest.mark.slow
def test_a_phrase_of_several_sentences_is_stated_by_a_text_that_states_each_of_them():
    advice = "The leaf has brown rust. Burn the infected leaves, and never compost them."
    fact = Fact(phrases=(advice,))
    assert read_fact(fact, f"Look closely. {advice}").state == "stated"
    assert read_fact(fact, "The leaf has brown rust.").state == "missing"
    assert read_fact(fact, advice.replace("has", "has no")).state == "contradicted"


def test_a_long_answer_that_is_the_gold_itself_scores_1():
    answer = " ".join(f"The leaf number {number} has brown rust." for number in range(40))
    slot = OpenTextSlot(name="answer", label="answer", facts=(Fact(phrases=(answer,)),))
    assert score_facts(slot, answer)[0] == 1
    assert score_facts(slot, f"{answer} {answer}")[0] < 1


def test_replies_of_a_kind_earn_what_the_floor_sees_in_them():
    """Right replies are mostly missed, and a third of the denied ones are taken for right; docs/judges.md says so."""
    scores: dict[tuple[str, bool], list[float]] = {}
    for reply in map(json.loads, REPLIES.read_text("utf-8").splitlines()):
        key = reply["kind"], reply["reply"].isascii()
        scores.setdefault(key, []).append(
            score_facts(slot(reply["entry"], reply["topic"]), reply["reply"])[0]
        )
    means = {key: sum(values) / len(values) for key, values in scores.items()}
    assert means["right", True] >= 0.3
    assert means["right", True] - means["negated", True] >= 0.1
    assert all(
        means[kind, english] <= 0.02
        for kind in ("generic", "stuffed", "other")
        for english in (True, False)
    )


BRANCHED = [
    (entry, "management", other)
    for entry in dict.fromkeys(entry for entry, _ in topics_with_facts())
    for other in ("causes", "thresholds")
    if all((entry, topic) in topics_with_facts() for topic in ("management", other))
]


@given(st.data())
def test_scores_of_all_branches_sum_to_at_most_one(data: st.DataObject):
    """A reply that hedges, in whatever way, gains no more on average than one that guesses a branch."""
    entry, *topics = data.draw(st.sampled_from(BRANCHED))
    slots = [slot(entry, topic, tuple(topics)) for topic in topics]
    phrases = [fact.phrases[0] for each in slots for fact in each.facts]
    parts = st.sampled_from(
        [*phrases, "If so:", "Otherwise:", "or", "It is not so.", "none of this helps", "not"]
    )
    reply = ". ".join(data.draw(st.lists(parts, min_size=1, max_size=8)))
    assert sum(score_facts(each, reply)[0] for each in slots) <= 1 + 1e-9


def test_the_form_says_that_one_branch_is_asked_for_and_templates_name_them():
    branched = slot("disease.apple_scab", "causes", ("management", "causes"))
    assert "gives both counts as neither" in answer_form([branched])
    assert "neither" not in answer_form([slot("disease.apple_scab", "causes")])
    one, other = (
        "Venturia inaequalis, a fungus.",
        "Remove fallen leaves. Prune infected shoots. Let leaves dry.",
    )
    assert score_facts(branched, one)[0] == 1
    value, reading = score_facts(branched, f"{one} {other}")
    assert value < 0.5
    assert {"remove fallen leaves", "prune infected shoots"} <= reading["excluded"].keys()  # type: ignore[union-attr]
    with pytest.raises(ValidationError, match="branches must name the topics"):
        SlotDraft.model_validate(
            {
                "type": "open_text",
                "name": "a",
                "label": "a",
                "from": "@0.x",
                "entry": "e",
                "topic": "@1.value",
            }
        )


def test_other_subjects_and_length_lower_the_score():
    facts = (Fact(phrases=("hoe",)), Fact(phrases=("mulch",)))
    plain = OpenTextSlot(
        name="a", label="a", facts=facts, others=(("spray oil",), ("burn",), ("graze",), ("drain",))
    )
    assert score_facts(plain, "Hoe and mulch.")[0] == 1
    assert score_facts(plain, "Hoe, mulch, burn.")[0] == 1
    assert score_facts(plain, "Hoe, mulch, burn, spray oil.")[0] == 0.5
    assert score_facts(plain, "Hoe and mulch. " + "word " * 297)[0] == 0.5
    assert score_facts(plain.model_copy(update={"floor": 0.5}), "Hoe.")[0] == 0
