"""Write what the tools say about their own accuracy (``src/agrotools/data/certificates.json``).

    python studies/write_certificates.py

Read are docs/accuracy.md, the figures stored beside the weights, and ``accuracy/measured.toml``.
"""

import json
import re
from pathlib import Path
from typing import Any

from accuracy import STUDIES
from accuracy.study import exact_interval
from accuracy.uncertainty import coverages
from agrotools.core.files import read_table
from agrotools.tools.result import CERTIFICATES

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
FEWEST, LEAST = 40, 0.8
"""A coverage is marked if so many subjects have a lower bound under this."""
_MEASURED = re.compile(r"^Measured on (\S+) with version (\S+)\.$", re.MULTILINE)
_REAL = re.compile(r"^\* (.+), images: ", re.MULTILINE)
_CALL = re.compile(r"^\* (\w+) \(`(\w+)`\): ", re.MULTILINE)


def certificates(page: str) -> dict[str, Any]:
    """Return the certificate of each tool, from the text of the accuracy page."""
    words = read_table(Path(__file__).with_name("accuracy") / "measured.toml")
    found: dict[str, Any] = {tool: {"why": why} for tool, why in words["exact"].items()}
    sections = {text.partition("\n")[0]: text for text in page.split("\n## ")}
    refusals = _refusals(sections["Pictures that a tool is not made for"])
    for tool in STUDIES:
        text = sections[tool]
        measured = _MEASURED.search(text)
        if measured is None:
            raise SystemExit(f"{PAGE}: the section {tool} does not say with which version it was measured")
        real = set(_REAL.findall(text))
        numbers: dict[str, tuple[int, int]] = {}
        covered = [_coverage(*each) for each in coverages().get(tool, ())]
        for row in _rows(text, 10):
            numbers[row[0]] = max(numbers.get(row[0], (0, 0)), (int(row[4]), int(row[5])), key=lambda each: each[0])
        found[tool] = {
            "version": measured[2],
            "measured": measured[1],
            "subjects": sum(n for folder, (n, _) in numbers.items() if folder in real),
            "independent": sum(n for folder, (_, n) in numbers.items() if folder in real),
            "made": sum(n for folder, (n, _) in numbers.items() if folder not in real),
            "coverage": covered[:1] + sorted(covered[1:], key=lambda part: part["low"]),
            "refused": refusals.get(tool, {}),
            "refuses": words["refuses"][tool],
        }
    return found


def _rows(text: str, columns: int) -> list[list[str]]:
    """Return the cells of the rows of a section's table that has so many columns, without its heading."""
    rows = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if len(row) == columns][1:]


def _coverage(of: str, share: float, subjects: int) -> dict[str, Any]:
    low, high = exact_interval(share * subjects, subjects)
    below = subjects >= FEWEST and low < LEAST
    numbers = {"share": round(share, 4), "low": round(low, 4), "high": round(high, 4), "subjects": subjects}
    return {"of": of, **numbers, "below_80": below}


def _refusals(text: str) -> dict[str, dict[str, list[int]]]:
    """Return calls refused or flagged, and all calls, on known and strange pictures, by tool."""
    tools = dict(_CALL.findall(text))
    found: dict[str, dict[str, list[int]]] = {}
    for call, pictures, calls, _, refused, flagged, *_ in _rows(text, 9):
        if call in tools:
            of = found.setdefault(tools[call], {}).setdefault(
                "known" if pictures == "all made for" else "strange", [0, 0]
            )
            of[0] += int(refused) + int(flagged)
            of[1] += int(calls)
    return found


if __name__ == "__main__":
    content = json.dumps(certificates(PAGE.read_text(encoding="utf-8")), indent=1, ensure_ascii=False)
    CERTIFICATES.write_text(content + "\n", encoding="utf-8")
