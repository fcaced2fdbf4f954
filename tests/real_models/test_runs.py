"""Runs of real models (``runs.py``): no record is lost, and no call in a known markup is unread."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from agrotools.agents.markups import ANY_OPENING
from agrotools.agents.parsing import parse_output
from agrotools.core import CallTools, Record, Unparseable
from agrotools.runner.records import iter_records
from real_models.runs import RESULTS

FOLDER = Path(os.environ.get("AGROTOOLS_TEST_MODELS_RUNS", ""))
ROWS: list[dict[str, Any]] = (
    json.loads((FOLDER / RESULTS).read_bytes()) if (FOLDER / RESULTS).is_file() else []
)
_OPENING = re.compile(ANY_OPENING, re.IGNORECASE | re.MULTILINE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not ROWS, reason="AGROTOOLS_TEST_MODELS_RUNS names no folder with runs of real models"
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['run']}")
def test_a_run_is_whole_and_every_known_call_is_read(row: dict[str, Any]) -> None:
    print(f"{row['model']}, {row['run']}: {row.get('terminations')}")
    log = (FOLDER / row["model"] / f"{row['run']}.log").read_text(errors="replace")
    assert row["code"] in (0, 3), log[
        -2000:
    ]  # 3: most samples ended at a limit, so that there is no score
    assert "Traceback" not in log
    assert row["n"] == row["planned"]
    records = list(iter_records(FOLDER / row["model"] / row["run"]))
    assert records
    assert [record.invalid for record in records if record.invalid] == []
    assert [text for record in records for text in unread(record)] == []


def unread(record: Record) -> list[str]:
    """Texts that ended a sample as unparseable, and hold a call in a known markup or in that of another protocol."""
    if record.trajectory is None or record.trajectory.termination != "unparseable":
        return []
    texts = [
        step.reply.text
        for step in record.trajectory.steps
        if step.kind == "unparseable" and step.reply
    ]
    return [text for text in texts if _OPENING.search(text) or isinstance(_read(text), CallTools)]


def _read(text: str) -> object:
    found = (parse_output(text, protocol=protocol) for protocol in ("react", "tool-calling"))
    return next((each for each in found if not isinstance(each, Unparseable)), None)
