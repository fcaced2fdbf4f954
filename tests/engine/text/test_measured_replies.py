"""Replies to closing messages by people who knew the questions and the message, but not the reader: 400 right, 300 not.

``measured_replies.jsonl`` holds the slots of a question (``form``), and replies with what a fair judge takes them for:
``right`` or ``wrong``. A right reply that is not read must be asked about, which costs one more message; it must never
be read as another value. A wrong reply must never count as right.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agrotools.core import Slot, slot_types
from agrotools.core.form_item import asked_items
from agrotools.scoring.slots import refuses, score_slot
from agrotools.text.submission import as_form, is_complete

LEAST_READ = 0.79
"""Least share of the right replies that are read at once, without a second message; 0.80 when it was measured."""


@cache
def _lines() -> tuple[dict[str, tuple[bool, list[Slot]]], list[dict[str, str]]]:
    lines: list[dict[str, Any]] = [
        json.loads(line)
        for line in Path(__file__)
        .with_name("measured_replies.jsonl")
        .read_text("utf-8")
        .splitlines()
    ]
    types = slot_types()
    forms = {
        line["form"]: (
            line["answerable"],
            [TypeAdapter(types[slot["type"]]).validate_python(slot) for slot in line["slots"]],
        )
        for line in lines
        if "form" in line
    }
    return forms, [line for line in lines if "of" in line]


def _outcome(of: str, reply: str) -> str:
    """Return ``right``, ``wrong`` or ``asked`` for the reply to the first closing message."""
    answerable, slots = _lines()[0][of]
    items = asked_items(slots)
    form = as_form(reply, items)
    if not is_complete(form, items, listed=True):
        return "asked"
    return "right" if _is_right(slots, form, answerable) else "wrong"


def _is_right(slots: Sequence[Slot], form: str, answerable: bool) -> bool:
    if not answerable:
        return refuses(slots, form)
    return all(score_slot(slot, slots, form).value for slot in slots)


REPLIES = _lines()[1]


@pytest.mark.parametrize("line", REPLIES, ids=lambda line: f"{line['of']}-{line['reply'][:40]}")
def test_no_right_reply_is_misread_and_no_wrong_one_counts(line: dict[str, str]) -> None:
    allowed = {"right", "asked"} if line["expect"] == "right" else {"wrong", "asked"}
    assert _outcome(line["of"], line["reply"]) in allowed


def test_most_right_replies_are_read_at_once() -> None:
    right = [line for line in REPLIES if line["expect"] == "right"]
    read = [line for line in right if _outcome(line["of"], line["reply"]) == "right"]
    assert len(right) == 400
    assert len(read) >= LEAST_READ * len(right)
