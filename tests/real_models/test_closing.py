"""Replies that real models wrote to the closing message are read as when they were recorded (``closing.py``)."""

import pytest

from real_models.closing import RECORDED, read_cases, read_reply
from real_models.replies import Row, read_rows

CASES = read_cases()


def _name(row: Row) -> str:
    return "-".join(row[key] for key in ("model", "wording", "case"))


@pytest.mark.parametrize("row", read_rows(RECORDED), ids=_name)
def test_a_reply_to_the_closing_message_is_read_as_before(row: Row) -> None:
    assert read_reply(row, CASES[row["case"]]) == row["read"]
