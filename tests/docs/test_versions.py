"""Pages quote the present versions of benchmarks: a figure of an older version is measured again, or goes.

Three pages set versions beside each other on purpose: ``field-made.md`` (questions before and after a revision),
``field.md`` (baselines of an earlier version) and ``accuracy.md`` (each tool by the version that was measured).
"""

import re
from pathlib import Path

import pytest

from agrotools.loading.pack import read_pack

ROOT = Path(__file__).resolve().parents[2]
BESIDE_EACH_OTHER = ("field-made.md", "field.md", "accuracy.md")
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if path.name not in BESIDE_EACH_OTHER
]
NAMED = re.compile(r"\b(embedded|frontier|field)(?:` |`?,? version )(\d+)\b(?![.,]\d| samples)")
"""A benchmark with its version: "`embedded` 21", "embedded, version 21"."""
ALONE = re.compile(r"\b[Vv]ersions? (\d+)\b(?!\.)")
SUBJECTS = {"scenes.md": "embedded", "frontier.md": "frontier"}
"""Benchmark that any version on a page is one of."""


def quoted_versions(page: str, text: str) -> list[tuple[str, str]]:
    """Return the benchmarks that a page names with a version, and these versions."""
    quoted = NAMED.findall(text)
    if page in SUBJECTS:
        quoted += [(SUBJECTS[page], version) for version in ALONE.findall(text)]
    return quoted


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_quotes_present_versions_alone(path: Path):
    quoted = quoted_versions(path.name, path.read_text(encoding="utf-8"))
    old = {(name, version) for name, version in quoted if version != read_pack(name).header.version}
    assert not old, f"{path.name}: measure these figures again, or remove them"


def test_versions_are_found_however_they_are_written():
    text = "`embedded` 18, embedded, version 20, `field` 14 and `frontier` 13\nfield 3 is wet; version 0.2"
    assert quoted_versions("a.md", text) == [
        ("embedded", "18"),
        ("embedded", "20"),
        ("field", "14"),
        ("frontier", "13"),
    ]
    assert quoted_versions("scenes.md", "FAS of versions 18 to 20") == [("embedded", "18")]
