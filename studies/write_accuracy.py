"""Write the accuracy page, and what the tools say about their own accuracy.

Makes docs/accuracy.md and src/agrotools/data/certificates.json.

    python studies/write_accuracy.py

Read are the CSV files of ``studies/results``, the prose of ``studies/accuracy/prose``, the figures stored beside the
weights, and ``accuracy/measured.toml``. Written are docs/accuracy.md, ``studies/results/uncertainty.csv`` and
``src/agrotools/data/certificates.json``.
"""

import json
from pathlib import Path
from typing import Any

from accuracy import STUDIES
from accuracy.errors import errors_of
from accuracy.page import MEASURED, STRANGERS, UNCERTAINTY, oldest, page
from accuracy.table import read_rows
from accuracy.uncertainty import coverages, write_uncertainty
from agrotools.calling.result import CERTIFICATES
from agrotools.core.files import read_table
from agrotools.scoring.statistics import exact_share_interval

_ACCURACY = Path(__file__).with_name("accuracy")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
FEWEST, LEAST = 40, 0.8
"""A coverage is marked if so many subjects have a lower bound under this."""


def certificates() -> dict[str, Any]:
    """Return the certificate of each tool."""
    words = read_table(_ACCURACY / "measured.toml")
    known = pictures_made_for()
    found: dict[str, Any] = {tool: {"why": why} for tool, why in words["exact"].items()}
    rows, refusals = read_rows(MEASURED), _refusals(read_rows(STRANGERS))
    for tool in STUDIES:
        version, day = oldest(rows, tool)
        mine = [row for row in rows if row["tool"] == tool]
        real = {row["folder"] for row in mine if row["sources"]}
        numbers: dict[str, tuple[int, int]] = {}
        for row in mine:
            n = int(row["n"]), int(row["independent"])
            numbers[row["folder"]] = max(
                numbers.get(row["folder"], (0, 0)), n, key=lambda each: each[0]
            )
        covered = [_coverage(*each) for each in coverages().get(tool, ())]
        found[tool] = {
            "version": version,
            "measured": day,
            "subjects": sum(n for folder, (n, _) in numbers.items() if folder in real),
            "independent": sum(n for folder, (_, n) in numbers.items() if folder in real),
            "made": sum(n for folder, (n, _) in numbers.items() if folder not in real),
            "coverage": covered[:1] + sorted(covered[1:], key=lambda part: part["low"]),
            "refused": refusals.get(tool, {}),
            "refuses": words["refuses"][tool],
            "made_for": known.get(tool, []),
            "error": {
                where: {"of": one.of, "text": one.text} for where, one in errors_of(tool).items()
            },
        }
    return found


def pictures_made_for() -> dict[str, list[str]]:
    """Return the names of the pictures that calls of each tool are made for."""
    tool_of = {row["call"]: row["tool"] for row in read_rows(STRANGERS) if row["tool"]}
    known: dict[str, set[str]] = {}
    tables = read_table(_ACCURACY / "folders.toml")
    for folder in (*tables["folders"].values(), *tables["pools"].values()):
        for call in folder.get("made_for", ()):
            known.setdefault(tool_of[call], set()).add(folder["name"])
    return {tool: sorted(names) for tool, names in known.items()}


def _coverage(of: str, share: float, subjects: int) -> dict[str, Any]:
    low, high = exact_share_interval(share * subjects, subjects)
    below = subjects >= FEWEST and low < LEAST
    numbers = {
        "share": round(share, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "subjects": subjects,
    }
    return {"of": of, **numbers, "below_80": below}


def _refusals(rows: list[dict[str, str]]) -> dict[str, dict[str, list[int]]]:
    """Return calls refused or flagged, and all calls, on known and strange pictures, by tool."""
    found: dict[str, dict[str, list[int]]] = {}
    for row in rows:
        if row["tool"]:
            of = found.setdefault(row["tool"], {}).setdefault(
                "known" if row["folder"] == "all made for" else "strange", [0, 0]
            )
            of[0] += int(row["refused"]) + int(row["flagged"])
            of[1] += int(row["calls"])
    return found


if __name__ == "__main__":
    write_uncertainty(UNCERTAINTY)
    PAGE.write_text(page(), encoding="utf-8")
    content = json.dumps(certificates(), indent=1, ensure_ascii=False)
    CERTIFICATES.write_text(content + "\n", encoding="utf-8")
