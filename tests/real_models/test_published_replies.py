"""Replies of real models that others published are read as when they were copied.

A row of ``published_replies.jsonl`` has ``kind`` (of the reply), ``model``, ``source`` and ``licence`` of the file that
it is copied from, ``slots`` of a form that asks the same, the raw ``reply``, and ``read``, as in ``closing.py``.
"""

import json
from pathlib import Path

import pytest

from real_models.closing import read_reply
from real_models.replies import Row

PUBLISHED = Path(__file__).with_name("published_replies.jsonl")
ROWS: list[Row] = [json.loads(line) for line in PUBLISHED.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['kind']}")
def test_a_published_reply_is_read_as_before(row: Row) -> None:
    assert read_reply(row, row) == row["read"]
