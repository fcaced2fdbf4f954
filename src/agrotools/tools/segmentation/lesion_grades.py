"""Grading scales: from the share of a leaf that is diseased to the grade that people write down."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

GradeScale = Literal["percent", "0-4", "1-9"]


@dataclass(frozen=True)
class Bounds:
    """``upper``: the largest severity, percent, of each grade but the last; ``grades``: one more than that."""

    upper: tuple[float, ...]
    grades: tuple[int, ...]
    source: str


SCALES: dict[GradeScale, Bounds] = {
    "0-4": Bounds(
        (0.1, 5.0, 10.0, 15.0),
        (0, 1, 2, 3, 4),
        "0 healthy (to 0.1 %), 1 very low (to 5 %), 2 low (to 10 %), 3 high (to 15 %), 4 very high: coffee leaves, "
        "Esgario, Krohling and Ventura 2020, Computers and Electronics in Agriculture 169, 105162",
    ),
    "1-9": Bounds(
        (0.0, 5.0, 12.0, 25.0, 50.0),
        (0, 1, 3, 5, 7, 9),
        "0 none, 1 to 5 %, 3 to 12 %, 5 to 25 %, 7 to 50 %, 9 above: bacterial blight of rice in the field, Standard "
        "Evaluation System for Rice, IRRI 2013",
    ),
}


def grade_of(severity_pct: float, scale: GradeScale) -> float:
    """The grade of a severity in percent; on the scale ``percent`` the severity itself."""
    if scale == "percent":
        return severity_pct
    bounds = SCALES[scale]
    return bounds.grades[bisect_left(bounds.upper, severity_pct)]


def source_of(scale: GradeScale) -> str:
    """Where the bounds of a scale come from."""
    return "grade: the severity itself, percent" if scale == "percent" else f"grade {scale}: {SCALES[scale].source}"
