"""The causes of lost points have one name each: in the code, on the page about them, and in the glossary."""

import re
from pathlib import Path

from agrotools.scoring.attribution import CAUSES, FAULT, TOOL, part_label

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_about_lost_points_lists_every_cause_with_its_id():
    text = (DOCS / "attribution.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `([^`|]+)` \|", text, re.MULTILINE)
    ids = [f"{TOOL}NAME" if part == TOOL else part for part in CAUSES]
    assert rows == [(part_label(each), each) for each in ids]


def test_the_glossary_names_the_causes_as_the_screen_does():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| **cause**")]
    for part, cause in CAUSES.items():
        assert part == FAULT or cause.label in row


def test_a_part_of_tools_names_them():
    assert part_label("tool:plot") == "tool errors (plot)"
    assert part_label("tool:describe_region+plot") == "tool errors (describe_region, plot)"
    assert part_label(TOOL) == "tool errors"
