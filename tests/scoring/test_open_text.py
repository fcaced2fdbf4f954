"""Open text: right advice in other words, and what denied, stuffed, general and foreign replies earn."""

import importlib.util
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agrotools.benchmarks.pack import read_pack
from agrotools.build.templates.key_facts import open_gold, topics_with_facts
from agrotools.build.templates.slot_draft import SlotDraft
from agrotools.core import Fact, OpenTextSlot
from agrotools.scoring.open_text import score_facts
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import answer_form

REPLIES = Path(__file__).with_name("open_text_replies.jsonl")


@cache
def slot(entry: str, topic: str, branches: tuple[str, ...] = ()) -> OpenTextSlot:
    gold = open_gold(entry, topic, branches)
    return OpenTextSlot.model_validate({"name": "advice", "label": "advice", **gold._asdict()})


def value(entry: str, topic: str, reply: str) -> float:
    return score_facts(slot(entry, topic), reply)[0]


@cache
def scores_by_kind() -> dict[str, list[float]]:
    scores: dict[str, list[float]] = defaultdict(list)
    for line in REPLIES.read_text("utf-8").splitlines():
        reply = json.loads(line)
        scores[reply["kind"]].append(value(reply["entry"], reply["topic"], reply["reply"]))
    return scores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("right", 0.95, 1.0), ("negated", 0.0, 0.0), ("generic", 0.0, 0.02), ("stuffed", 0.0, 0.02), ("other", 0.0, 0.02)],
)
def test_replies_of_a_kind_earn_what_they_are_worth(kind: str, least: float, most: float):
    scores = scores_by_kind()[kind]
    assert len(scores) >= 36
    assert least <= sum(scores) / len(scores) <= most


BRANCHES = [("management", "causes"), ("management", "thresholds")]
BRANCHED = [
    (entry, *topics)
    for entry in dict.fromkeys(entry for entry, _ in topics_with_facts())
    for topics in BRANCHES
    if all((entry, topic) in topics_with_facts() for topic in topics)
]


@cache
def right_replies(entry: str, topic: str) -> list[str]:
    replies = map(json.loads, REPLIES.read_text("utf-8").splitlines())
    return [
        each["reply"] for each in replies if (each["entry"], each["topic"], each["kind"]) == (entry, topic, "right")
    ]


def branch_scores(entry: str, first: str, second: str, reply: str) -> tuple[float, float]:
    """Return the scores of a reply if the first and if the second topic is the one that applies."""
    slots = (slot(entry, topic, (first, second)) for topic in (first, second))
    one, other = (score_facts(each, reply)[0] for each in slots)
    return one, other


@pytest.mark.parametrize(("entry", "first", "second"), BRANCHED)
def test_a_reply_on_one_branch_keeps_its_score_and_one_on_both_has_none(entry: str, first: str, second: str):
    one, other = right_replies(entry, first), right_replies(entry, second)
    for reply, topic in [*((reply, first) for reply in one[:3]), *((reply, second) for reply in other[:3])]:
        scores = dict(zip((first, second), branch_scores(entry, first, second, reply), strict=True))
        assert scores[topic] == pytest.approx(value(entry, topic, reply), abs=0.05)
    for text in ("{} {}", "If it is above the limit: {} Otherwise: {}"):
        both = text.format(one[0], other[0])
        assert max(branch_scores(entry, first, second, both)) <= 0.35 * max(value(entry, first, both), 1)


@given(st.data())
def test_scores_of_all_branches_sum_to_at_most_one(data: st.DataObject):
    """A reply that hedges, in whatever way, gains no more on average than one that guesses a branch."""
    entry, first, second = data.draw(st.sampled_from(BRANCHED))
    parts = st.sampled_from(
        [*right_replies(entry, first), *right_replies(entry, second), "If so:", "Otherwise:", "It is not true that",
         "or", "It is not so.", "Do not do the following:", "none of this helps", "not"]
        + [fact.phrases[0] for topic in (first, second) for fact in slot(entry, topic).facts]
    )  # fmt: skip
    reply = " ".join(data.draw(st.lists(parts, min_size=1, max_size=5)))
    assert sum(branch_scores(entry, first, second, reply)) <= 1 + 1e-9


def test_the_form_says_that_one_branch_is_asked_for_and_templates_name_them():
    branched = slot("disease.apple_scab", "causes", ("management", "causes"))
    assert "gives both counts as neither" in answer_form([branched])
    assert "neither" not in answer_form([slot("disease.apple_scab", "causes")])
    reading = score_facts(branched, "Venturia inaequalis, a fungus. Remove fallen leaves and prune infected shoots.")[1]
    assert reading["branch_factor"] == 0
    assert set(reading["excluded"]) == {"remove fallen leaves", "prune infected shoots"}  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="branches must name the topics"):
        SlotDraft.model_validate(
            {"type": "open_text", "name": "a", "label": "a", "from": "@0.x", "entry": "e", "topic": "@1.value"}
        )


@pytest.mark.parametrize("name", ["embedded", "frontier"])
def test_packs_hold_the_key_facts_of_today_and_those_of_branches_that_do_not_apply(name: str):
    refreshed = script("training/refresh_open_text.py").refreshed
    samples = read_pack(name).samples
    assert all(refreshed(sample) == sample for sample in samples)
    slots = [slot for sample in samples for slot in sample.answer if isinstance(slot, OpenTextSlot)]
    assert sum(bool(slot.excluded) for slot in slots) >= 0.8 * len(slots) > 0


def script(path: str) -> Any:
    """Return a script outside the package as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, Path(__file__).parents[2] / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_constant_reply_earns_much():
    search = script("performance/open_text_constant.py")
    for language in ("en", "zh"):
        result = search.best_constant("causes", language, headline=True, most=5)
        assert result.slots >= 10
        assert 0.01 < result.mean <= 0.1


BEAN = ("disease.bean_rust", "management")


@pytest.mark.parametrize(
    "reply",
    [
        "Rotation is useless, resistant varieties are a waste of money.",
        "None of the following helps: rotation, removing debris, sowing at the advised time, resistant cultivars.",
        "It is a mistake to rotate crops, work debris into the soil and grow resistant cultivars.",
        "Some rotate crops and grow resistant cultivars. None of this helps.",
        "Plant susceptible varieties and leave the debris on the field.",
        "轮作没有用，抗病品种是浪费钱。",
        "不要轮作、翻埋残体或种植抗病品种。",
    ],
)
def test_denied_facts_earn_nothing(reply: str):
    assert value(*BEAN, reply) == 0


@pytest.mark.parametrize(
    "reply",
    [
        "Do not forget to rotate, never leave out resistant cultivars, plough debris in and sow at the proper time.",
        "Not only rotate, but also turn residues under, plant on time and choose varieties that resist rust.",
        "Control is impossible without rotation. Sow at the right time. Bury residues. Avoid susceptible varieties.",
        "与其他作物轮换，把残体翻入土中，适期播种，选用抗病品种。",
    ],
)
def test_right_advice_in_other_words_earns_all(reply: str):
    assert value(*BEAN, reply) == 1


def test_shared_wrong_and_rejected_facts_earn_nothing():
    assert value("disease.apple_scab", "causes", "A fungus.") == 0
    assert value("disease.apple_scab", "causes", "Venturia inaequalis.") > 0.8
    assert value("disease.apple_scab", "causes", "It is caused by Venturia inaequalis or Alternaria solani.") == 0
    entry = ("pest.english_grain_aphid", "thresholds")
    assert value(*entry, "12 to 15 aphids per head, or more than half of the tillers with aphids.") == 1
    assert value(*entry, "Twelve to fifteen aphids per ear; half the tillers infested at flowering.") == 1
    assert value(*entry, "3 aphids per head, or more than half of the tillers with aphids.") == 0
    assert value("disease.apple_scab", "causes", "A fungus, Venturia inaequalis.") == 1
    assert value("disease.apple_scab", "causes", "A fungus, a bacterium or a virus; Venturia inaequalis.") == 0
    blight = "Phytophthora infestans, a water mould that resembles a fungus."
    assert value("disease.late_blight", "causes", blight) == 1
    reply = "Rotation, early sowing and resistant cultivars: so much for bedtime stories, none of it ever did any good."
    score, reading = score_facts(slot(*BEAN), reply)
    assert score == 0
    assert reading["stance"] > 0
    assert reading["read_as_denial_by"]
    assert "stated" not in reading["facts"].values()
    reply = "Do not lift the tubers until the tops have dried for two to three weeks, and clear away cull heaps."
    assert value("disease.late_blight", "management", reply) == 1
    crowded = "Growers do best by feeding the bushes well, giving neither too much nor too little shade, and choosing \
cultivars with resistance at a wide spacing."
    assert value("disease.coffee_leaf_rust", "management", crowded) == 1


def test_facts_in_the_old_form_are_scored():
    plain = {
        "type": "open_text", "name": "advice", "label": "what to do",
        "facts": [{"phrases": ["remove infected leaves"], "not": ["leave infected leaves"]}, {"phrases": ["轮作"]}],
    }  # fmt: skip
    old = OpenTextSlot.model_validate(plain)
    assert old.headline
    assert score_slot(old, [old], "Pick off diseased leaves and change crops: rotate.").value == 1
    assert score_slot(old, [old], "Leave infected leaves. Rotation does not help.").value == 0


@pytest.mark.parametrize(
    "phrase",
    [
        "leave out",
        "not",
        "...",
    ],
)
def test_phrases_without_an_idea_of_their_own_break_nothing(phrase):
    slot = OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=(phrase,)), Fact(phrases=("hoe",))))
    assert 0 <= score_slot(slot, (slot,), "Hoe the weeds; leave out the rest.").value <= 1
