"""Replies of real models to the closing message, and what they are read as: rows of ``closing_replies.jsonl.gz``.

    python tests/real_models/closing.py REPLIES...

adds the replies of files of ``studies/closing_messages.py`` to the recorded ones, and reads all of them anew. A row has
the ``case`` of ``closing_cases.jsonl`` by its id, ``model``, ``wording`` of the message, the raw ``reply``, its
``finish_reason``, and ``read``: the value of each item (:func:`read_reply`).

A case has ``id``, ``language`` and ``kinds`` (to count by), ``question``, ``slots`` of the form, ``answer`` in prose,
and ``stated``: the value of each item that the prose states, in the unit of the form; null where it states none; of
open text, words that a copy must hold.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agrotools.agents.llm import halt_of, reply_of
from agrotools.agents.parsing import parse_output
from agrotools.core import Answer
from agrotools.core.form_item import FormItem, asked_items
from agrotools.core.slot import slot_types
from agrotools.models import Completion
from agrotools.text.answer_form import UNKNOWN
from agrotools.text.answer_reader import FormValue, as_form, read_answer
from real_models.replies import Row, read_rows, write_rows

CASES = Path(__file__).with_name("closing_cases.jsonl")
RECORDED = Path(__file__).with_name("closing_replies.jsonl.gz")
UNREAD = "unread"
"""What stands for an item without a value that can be read."""


def read_cases() -> dict[str, Row]:
    """Return the cases by id."""
    cases = map(json.loads, CASES.read_text(encoding="utf-8").splitlines())
    return {case["id"]: case for case in cases}


def items_of(case: Row) -> tuple[FormItem, ...]:
    """Return the items of the form of a case."""
    types = slot_types()
    return asked_items([types[slot["type"]].model_validate(slot) for slot in case["slots"]])


def form_of(row: Row) -> str:
    """Return the form in a reply as a run takes it: without thinking; empty if the reply was cut off or is a call."""
    completion = Completion(text=row["reply"], finish_reason=row["finish_reason"])
    if halt_of(completion, reply_of(completion, completion.text)) is not None:
        return ""
    action = parse_output(completion.text, protocol="tool-calling")
    return action.text.strip() if isinstance(action, Answer) else ""


def read_reply(row: Row, case: Row) -> dict[str, Any]:
    """Return what each item of a reply is read as: a yes or no, a number, names, unknown or unread."""
    items = items_of(case)
    values = read_answer(as_form(form_of(row), items), items)
    return {item.name: _as_data(values.get(item.name, FormValue())) for item in items}


def _as_data(value: FormValue) -> Any:
    if value.unknown:
        return UNKNOWN
    if not value.is_read:
        return UNREAD
    if value.yes is not None:
        return value.yes
    return [*value.names] if value.number is None else value.number


def main() -> None:
    cases = read_cases()
    rows = read_rows(RECORDED) if RECORDED.exists() else []
    for file in map(Path, sys.argv[1:]):
        rows += map(json.loads, file.read_text(encoding="utf-8").splitlines())
    kept: dict[tuple[str, str, str], Row] = {}
    for row in rows:  # of several replies to one message, the first
        kept.setdefault((row["model"], row["wording"], row["case"]), row)
    read = [row | {"read": read_reply(row, cases[row["case"]])} for _, row in sorted(kept.items())]
    write_rows(read, RECORDED)
    print(f"{RECORDED}: {len(read)} replies, {RECORDED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
