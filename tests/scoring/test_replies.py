"""Replies as models write them, each with the score that a careful reader would give."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agrotools.benchmarks._dialogs.answer_keywords import matches_keywords
from agrotools.core import Slot
from agrotools.scoring.slots import score_slot

FOLDER = Path(__file__).parent
SLOTS = TypeAdapter(dict[str, Slot]).validate_json((FOLDER / "reply_slots.json").read_text("utf-8"))
SLOT = TypeAdapter(Slot)
REPLIES = [json.loads(line) for line in (FOLDER / "replies.jsonl").read_text("utf-8").splitlines()]
IN_ONE_TEST = 100


def slot_of(named: Any) -> Slot:
    return SLOTS[named] if isinstance(named, str) else SLOT.validate_python(named)


@pytest.mark.parametrize("first", range(0, len(REPLIES), IN_ONE_TEST))
def test_replies_score_what_a_careful_reader_would_give(first: int):
    """``slot`` and those ``beside`` it in the sample: names in ``reply_slots.json``, or slots."""
    different = []
    for row in REPLIES[first : first + IN_ONE_TEST]:
        slot = slot_of(row["slot"])
        scored = score_slot(slot, [slot, *map(slot_of, row.get("beside", []))], row["reply"])
        # What our reader misreads is known; a reply that it learns to read loses the mark.
        if (scored.value == row["score"]) == row.get("misread", False):
            different.append((row["slot"], row["reply"], row["score"], scored.reading))
    assert not different


@pytest.mark.parametrize(
    "slot",
    [
        "six",
        "aircraft",
    ],
)
def test_the_corrected_scores_of_keywords_read_the_same(slot: str):
    whitelist = [list(group) for group in SLOTS[slot].whitelist]
    # What is denied counts there, as published.
    rows = [row for row in REPLIES if row["slot"] == slot and "not" not in row["reply"]]
    assert rows
    different = [
        row["reply"] for row in rows if matches_keywords(row["reply"], {"whitelist": whitelist}) != bool(row["score"])
    ]
    assert different == []
