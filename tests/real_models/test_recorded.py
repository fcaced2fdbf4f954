"""Replies that real models wrote are parsed as when they were recorded (``record.py``)."""

import pytest

from real_models.replies import Row, parse_row, read_rows


def _name(row: Row) -> str:
    return "-".join(row[key] for key in ("model", "benchmark", "protocol", "mode", "sample"))


@pytest.mark.parametrize("row", read_rows(), ids=_name)
async def test_a_recorded_reply_is_parsed_as_before(row: Row) -> None:
    assert await parse_row(row) == row["outcome"]
