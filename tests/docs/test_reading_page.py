"""The spine of the code that docs/reading.md lists exists and can be read in a day."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_spine_is_small():
    rows = [
        line
        for line in (ROOT / "docs" / "reading.md").read_text(encoding="utf-8").splitlines()
        if re.match(r"\| \d+ \|", line)
    ]
    files = [path for row in rows for path in re.findall(r"`([a-z_/]+\.py)`", row)]
    lines = [len((ROOT / "src" / "agrotools" / path).read_text(encoding="utf-8").splitlines()) for path in files]
    assert 20 <= len(files) <= 40
    assert sum(lines) <= 10_000
