"""Replies by writers who had not seen the scorer: what it read right at first sight, and what it must keep.

The sets were written from the specification (closed slots) and the knowledge base (open text) alone, each by a
writer of its own. Each was looked at after its first score and then learnt from, so they only guard what was reached.
Sets 1 to 4 and 7 of closed slots follow the specification; 5 is meant to mislead; 6 and 8 are what models of varied
strength write, a fifth of it in the answer form; 9 to 12 answer 110 questions each of our own benchmarks, as five
kinds of models would, three quarters in the form; 13 and 14 are conversations on 70 such questions each: half of the
first messages lack the form, and then hold what the model says when it is asked for it. Set t of open text was asked to
deny in every way there is.

``wrapped.jsonl`` holds what may stand around an answer ({}), written by the writer of ``stance_frames.txt`` before the
frames around whole replies there: it affirms it (right), denies it (negated), or doubts a detail (doubted). And it
holds replies that refuse: w-217 to w-304 were written before their rules; of w-339 to w-403, which were written after
the first form of the rules, 6 of 65 were recognised at first, and of w-424 to w-463, after the second, 24 of 40.

| set | closed slots, first look | open text that counts: right, negated, stuffed, constant, generic, other entry |
|---|---|---|
| 1 | 93.3 % | 89.6, 10.9, 0, 0, 1.2, 0 |
| 2 | 89.4 % | 75.6, 7.9, 7.6, 0, 0, 0 |
| 3 | 90.9 % | 97.2, 7.8, 0, 0, 0, 0 |
| 4 | 89.4 % | 94.7, 5.0, 7.3, 11.1, 0, 4.5 |
| 5 | 79.4 % | 83.1, 0, 24.3, 0, 0, 0 |
| 6 | 93.0 % | 97.2, 0, 0, 0, 0, 0 |
| 7 | 88.4 % | 83.5, 1.4, 0, 5.0, 0, 0 |
| 8 | 94.2 % | 93.5, 0.1, 0, 0, 0, 0 |
| 9 | 96.4 % | |
| 10 | 96.4 % | |
| 11 | 97.3 % | |
| 12 | 93.6 % | |
| 13 | 99.3 % | |
| 14 | 98.6 % | |
| t | | 63.7, 34.5 |
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from agrotools.build.templates.key_facts import topics_with_facts
from agrotools.build.templates.slot_draft import SlotDraft
from agrotools.core import Slot, UnresolvedRef
from agrotools.knowledge.entries import load
from agrotools.scoring.slots import score_slot

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parent / "sealed"
SLOTS = TypeAdapter(tuple[Slot, ...])
WORTHLESS = ("negated", "stuffed", "constant", "generic", "other")


def lines(name: str):
    return map(json.loads, (FOLDER / name).read_text("utf-8").splitlines())


@pytest.mark.parametrize(
    ("number", "worthless"),
    [(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.03), (5, 0.0), (6, 0.0), (7, 0.01), (8, 0.001), ("t", 0.03)],
)
def test_open_text_earns_what_it_is_worth(number, worthless):
    earned = defaultdict(list)
    for entry in lines(f"open_{number}.jsonl"):
        data = {"type": "open_text", "name": "advice", "label": "advice", "from": "'x'"}
        draft = SlotDraft.model_validate({**data, "entry": entry["entry"], "topic": entry["topic"]})
        try:
            slot = draft.slot({}, [], [], entry["lang"])
        except UnresolvedRef:
            continue  # No key facts are held: it is never asked.
        if slot.headline:
            earned[entry["kind"]].append(score_slot(slot, (slot,), entry["reply"]).value)
    assert sum(earned["paraphrase"]) / len(earned["paraphrase"]) >= 0.9
    spent = [value for kind in WORTHLESS for value in earned[kind]]
    assert sum(spent) / len(spent) <= worthless


def wrapped(kind: str) -> list[str]:
    return [each["reply"] for each in lines("wrapped.jsonl") if each["kind"] == kind]


def right_texts() -> list[tuple[Slot, str]]:
    """Short and long texts of the knowledge base, each with its slot; they score 1 alone."""
    texts: list[tuple[Slot, str]] = []
    for entry, topic in topics_with_facts():
        data = {"type": "open_text", "name": "advice", "label": "advice", "from": "'x'", "entry": entry, "topic": topic}
        slot = SlotDraft.model_validate(data).slot({}, [], [], "en")
        text = " ".join(claim.text for each in load().entries if each.id == entry for claim in each.claims_of(topic))
        if slot.headline and score_slot(slot, (slot,), text).value == 1:
            texts.append((slot, text))
    return sorted(texts, key=lambda each: len(each[1]))


def test_words_around_a_right_text_leave_it_right_and_denials_deny_it():
    texts = right_texts()
    earned = {"right": [], "negated": []}
    for kind, values in earned.items():
        for number, frame in enumerate(each for each in wrapped(kind) if each.isascii()):
            for slot, text in (texts[number % 20], texts[20 + number % (len(texts) - 20)]):
                reply = frame.replace("{}", text)
                values.append(score_slot(slot, (slot,), reply).value)
    assert sum(value < 0.5 for value in earned["right"]) <= 0.04 * len(earned["right"])
    assert sum(value < 0.5 for value in earned["negated"]) >= 0.4 * len(earned["negated"])
