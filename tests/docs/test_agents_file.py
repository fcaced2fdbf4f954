"""AGENTS.md names things that are there: a coding agent opens what it names."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| `(?P<room>\w+)` \| (?P<entries>[^|]+)\|", re.MULTILINE)


def _entries() -> list[tuple[str, str]]:
    """Return room and entry point of each row of the table of rooms: ``module.py``, ``folder/`` or ``module.name``."""
    table = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    rows = [row for row in _ROW.finditer(table) if not row["room"].startswith("agrotools")]
    return [
        (row["room"], entry) for row in rows for entry in re.findall(r"`([^`]+)`", row["entries"])
    ]


@pytest.mark.parametrize(("room", "entry"), _entries())
def test_each_room_is_entered_at_something_that_is_there(room: str, entry: str):
    folder = ROOT / "src" / "agrotools" / room
    if entry.endswith((".py", "/")):
        assert (folder / entry).exists()
        return
    module, _, name = entry.rpartition(".")
    loaded = importlib.import_module(f"agrotools.{room}.{module}")
    assert hasattr(loaded, name)
