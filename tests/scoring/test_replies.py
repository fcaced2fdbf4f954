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
MISREAD = pytest.mark.xfail(strict=True, reason="a careful reader would, ours does not")
REPLIES = [
    pytest.param(
        row["slot"], row.get("beside", []), row["reply"], row["score"], marks=MISREAD if row.get("misread") else ()
    )
    for row in map(json.loads, (FOLDER / "replies.jsonl").read_text("utf-8").splitlines())
]


def slot_of(named: Any) -> Slot:
    return SLOTS[named] if isinstance(named, str) else SLOT.validate_python(named)


@pytest.mark.parametrize(("slot", "beside", "reply", "score"), REPLIES)
def test_a_reply_scores_what_a_careful_reader_would_give(slot: Any, beside: list[Any], reply: str, score: int):
    """``slot`` and those ``beside`` it in the sample: names in ``reply_slots.json``, or slots."""
    slots = slot_of(slot)
    scored = score_slot(slots, [slots, *map(slot_of, beside)], reply)
    assert scored.value == score, scored.reading


@pytest.mark.parametrize(
    ("slot", "beside", "reply", "score"), [row for row in REPLIES if row.values[0] in ("six", "aircraft", "colours")]
)
def test_the_corrected_scores_of_keywords_read_the_same(slot: str, beside: list[Any], reply: str, score: int):
    lists = SLOTS[slot]
    if "not" not in reply:  # what is denied counts there, as published
        assert matches_keywords(reply, {"whitelist": [list(group) for group in lists.whitelist]}) == bool(score)
