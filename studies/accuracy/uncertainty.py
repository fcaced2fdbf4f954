"""Intervals and probabilities of the tools, for a section and a table of the accuracy page.

What is measured is in ``measured.toml``; all figures are those that the training scripts stored beside the weights.
"""

import csv
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from agrotools.core.files import read_table
from agrotools.scoring.statistics import exact_share_interval
from agrotools_tools.recognition.candidates import LEAST_SUBJECTS

LEAST_FOR_COVERAGE, LEAST_COVERAGE = 300, 0.85
"""Coverage of a class is established by so many subjects and so high an exact lower bound of 95 %."""
WORST_SCORE = 0.8
"""Goal for the interval score, relative to that of the best interval of constant width."""
COLUMNS = (
    "tool",
    "field",
    "interval or probability",
    "calibrated on",
    "coverage or calibration",
    "interval score",
    "remark",
)


@dataclass(frozen=True)
class Quantity:
    """Fields of a tool's result, and the calibration ``of`` them or the reason ``why`` there is none.

    ``sure``: field with the interval or the probability; ``what``: which cases, if not all.
    """

    tool: str
    fields: tuple[str, ...]
    sure: str = ""
    of: str = ""
    why: str = ""
    what: str = ""


def quantities() -> tuple[list[Quantity], dict[str, tuple[str, ...]]]:
    """Return the measured quantities, and per tool the numbers of its result that are no measurement."""
    read = read_table(Path(__file__).with_name("measured.toml"))
    return [Quantity(**one) for one in read["quantities"]], read["not_measured"]


def coverage_text(low: float, subjects: int) -> str:
    """Return whether a coverage is established, with the reason if not."""
    if subjects < LEAST_FOR_COVERAGE:
        return f"not established: fewer than {LEAST_FOR_COVERAGE} subjects"
    if low < LEAST_COVERAGE:
        return f"not established: lower bound under {LEAST_COVERAGE:.2f}"
    return "established"


def sure_lines() -> list[str]:
    """Return a table of calibrated intervals and probabilities; those of a single crop are in the CSV file alone."""
    lines = ["| tool | value | result of the test | calibrated on |", "|---|---|---|---|"]
    for tool, field, sure, on, figure, *_ in _all():
        if sure and on != "-" and not re.search("candidates`, (citrus|coffee)", field):
            short = re.sub(r" [(][^()]*uncalibrated[^()]*[)]", "", figure)
            short = re.sub(
                r"right on (\S+) ([(].*, Wilson[)]) of (\d+ pictures)",
                r"first candidate right for \1 of \3 \2",
                short,
            )
            lines.append(f"| `{tool}` | {field} | {short} | {on} |")
    return lines


def write_uncertainty(path: Path) -> None:
    """Write all quantities with their calibration, or why they have none, to a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *((*row[:2], row[2] or "none", *row[3:]) for row in _all())])


def _all() -> list[tuple[str, ...]]:
    return [row for one in quantities()[0] for row in _rows(one)]


def _rows(one: Quantity) -> list[tuple[str, ...]]:
    fields = ", ".join(f"`{name}`" for name in one.fields) + (f" ({one.what})" if one.what else "")
    if one.of:
        return [
            (
                one.tool,
                f"{fields}, {_CASES.get(cells[0], cells[0])}",
                one.sure if cells[1] else "",
                *cells[2:],
            )
            for cells in _CALIBRATIONS[one.of]()
        ]
    numbers = {name: pool["subjects"] for name, pool in _subjects()["pools"].items()}
    return [
        (one.tool, fields, one.sure, "-", "-", "-", one.why.format(**numbers, least=LEAST_SUBJECTS))
    ]


def coverages() -> dict[str, list[tuple[str, float, int]]]:
    """Return by tool what its interval is of, the share of subjects that it covers, and their number; then by part."""
    found, fruits = _stored("lesion_model.json")["metrics"], _stored("nets/fruits.json")["counts"]
    kinds = [name.removeprefix("coverage_") for name in found if name.startswith("coverage_")]
    lesions = [("all leaves", found["interval_coverage"], int(found["leaves"]))]
    by_kind = [
        (kind.replace("_", " "), found[f"coverage_{kind}"], int(found[f"leaves_{kind}"]))
        for kind in kinds
    ]
    lesions += [each for each in by_kind if each[2] >= LEAST_SUBJECTS]
    counts = [
        (name, one["coverage"], one["photographs"])
        for name, one in fruits.items()
        if one["spread"] is not None
    ]
    return {
        "analyze_lesions": [
            (f"severity_interval_pct, {kind},", share, n) for kind, share, n in lesions
        ],
        "count_objects": [(f"count_interval, {fruit},", share, n) for fruit, share, n in counts],
    }


@cache
def _stored(name: str) -> dict[str, Any]:
    return json.loads(files("agrotools_tools").joinpath("data", name).read_text(encoding="utf-8"))


@cache
def _subjects() -> dict[str, Any]:
    return json.loads(
        Path(__file__).with_name("calibration_subjects.json").read_text(encoding="utf-8")
    )


_Cells = tuple[str, bool, str, str, str, str]
"""Class, whether it has an interval or probability, then the last four columns."""


def _lesions() -> list[_Cells]:
    found, pool = (
        _stored("lesion_model.json")["metrics"],
        _subjects()["pools"]["leaf_lesion_masks"],
    )
    n, low, high = (
        int(found["leaves"]),
        found["interval_coverage_low"],
        found["interval_coverage_high"],
    )
    classes = ", ".join(
        f"{name.replace('_', ' ')} {found[f'coverage_{name}']:.3f} of {found[f'leaves_{name}']:.0f}"
        for name in pool["subjects_by_label"]
    )
    return [(
        "coffee",
        True,
        f"{n} leaves",
        f"coverage {found['interval_coverage']:.3f} ({low:.3f} to {high:.3f}), {coverage_text(low, n)}",
        _score(found["interval_score_relative"]),
        "none where the picture is flagged; fitted to the kind of damage with the largest errors; "
        f"of each kind it covers {classes}; "
        f"for a kind by itself {coverage_text(0, max(pool['subjects_by_label'].values()))}",
    )]  # fmt: skip


def _fruits() -> list[_Cells]:
    rows = []
    for fruit, one in _stored("nets/fruits.json")["counts"].items():
        n = one["photographs"]
        low, high = exact_share_interval(one["coverage"] * n, n)
        reason = (
            f"under {LEAST_SUBJECTS} photographs"
            if n < LEAST_SUBJECTS
            else "errors too large to be useful"
        )
        rows.append((
            fruit,
            one["spread"] is not None,
            f"{n} photographs",
            f"coverage {one['coverage']:.3f} ({low:.3f} to {high:.3f}), {coverage_text(low, n)}",
            _score(one["interval_score_relative"]),
            f"half-width {one['half_width']:.0%} of the count" + ("" if one["spread"] is not None else f"; {reason}"),
        ))  # fmt: skip
    return rows


def _names(net: str) -> list[_Cells]:
    described, calibrated = _stored(f"nets/{net}.json"), _subjects()["calibrated_on"][net]
    refusal = (
        f"names are refused by {described['abstention']['score'].replace('_', ' ')}, which keeps "
    )
    refusal += (
        f"{described['abstention']['kept']:.3f} of known pictures, and by strangeness, which keeps "
    )
    refusal += f"{_stored('strangeness.json')['domains'][net]['kept']:.3f}"
    withheld = described.get("uncalibrated", {})
    rows = []
    for name, one in described["figures"].items():
        crop = name.partition(",")[0]
        subjects = calibrated["subjects_by_crop"].get(crop, calibrated["subjects"])
        low, high = one["top1_95"]
        chance = f", {one['ece_by_chance']:.3f} by chance" if "ece_by_chance" in one else ""
        right = (
            f"right on {one['top1']:.3f} ({low:.3f} to {high:.3f}, Wilson) of {one['n']} pictures; "
        )
        right += f"calibration error {one['ece']:.3f} ({one['ece_uncalibrated']:.3f} uncalibrated{chance})"
        few = (
            f"under {LEAST_SUBJECTS} subjects of its own"
            if subjects < LEAST_SUBJECTS
            else "error beyond chance"
        )
        few = f"{few}: scores are null, flag `not_calibrated`" if crop in withheld else ""
        worse = "worse than uncalibrated" if one["ece"] > one["ece_uncalibrated"] else ""
        by_day = (
            "days of calibration are also learnt from"
            if one is described["figures"].get("random split")
            else ""
        )
        other = (
            "another, smaller net, which did not see these days" if name == "days left out" else ""
        )
        remark = "; ".join(filter(None, (few, worse, by_day, other, refusal if not rows else "")))
        on = "the tested days themselves" if other else f"{subjects} subjects"
        rows.append((name, crop not in withheld, on, right, "-", remark or "-"))
    return rows


def _score(value: float) -> str:
    return f"{value:.2f}, goal {'reached' if value <= WORST_SCORE else 'missed'}"


_CASES = {
    "all, crop unknown": "all leaves, crop not given",
    "all, crop known": "all leaves, crop given",
    "random split": "pictures from the training days",
    "days left out": "days left out of training",
}
"""Cases of the stored figures, as the page calls them."""
_CALIBRATIONS = {
    "lesions": _lesions,
    "fruits": _fruits,
    "leaves": lambda: _names("leaves"),
    "weeds": lambda: _names("weeds"),
}
