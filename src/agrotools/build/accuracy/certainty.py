"""How sure the tools are: intervals of measured quantities and probabilities of names, with the evidence for them.

The figures are read from the files that the training scripts wrote. Coverage counts independent subjects (leaves,
photographs), not calls.
"""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple

LEAST_SUBJECTS = 40
"""Independent subjects without which no interval is given."""
MANY_SUBJECTS, LEAST_COVERAGE = 300, 0.85
"""Subjects, and lower bound of the coverage (95 %, exact), from which the coverage of 90 % intervals is established."""
COLUMNS = ("tool", "quantity", "given", "subjects", "coverage, at least", "established", "score", "remark")
WITHOUT = (
    ("count_objects", "trees in height models", "a range of assumed crown widths; one stand counted, by eye"),
    ("count_objects", "crowns and round marks in colours", "flagged as weak: too few labelled pictures"),
    ("measure_crop_weed_area", "cover of plants, crop, weeds", "36 groups of photographs with masks"),
    ("measure_weed_phenotype", "height, width, area, leaves", "no measured plants, drawn ones only"),
    ("measure_fruit_size", "diameter", "26 measured apples of one scene"),
    ("detect_change", "changed area", "five labelled scenes"),
    ("detect_change", "water", "no labelled ponds, drawn ones only"),
    ("describe_region", "colour, shape, texture of a mask", "counts of its pixels: exact"),
    ("estimate_canopy_height", "heights and cover", "arithmetic on the heights given: as exact as they are"),
    ("extract_marked_region", "box and mask of a mark", "see its overlap with drawn marks below"),
)
"""Quantities without a calibrated interval, and why."""


class Certainty(NamedTuple):
    """Row of the table. ``given``: the field with the interval or probability, - if there is none."""

    tool: str
    quantity: str
    given: str
    subjects: str = "-"
    coverage: str = "-"
    established: str = "-"
    score: str = "-"
    remark: str = ""


def certainties() -> list[Certainty]:
    """Return the rows of all tools: calibrated quantities and names first, then those without."""
    return [
        *_severity(),
        *_fruit_counts(),
        *_names(),
        *(Certainty(tool, what, "-", remark=why) for tool, what, why in WITHOUT),
    ]


def markdown() -> list[str]:
    """Return the section of the page, as lines of Markdown."""
    text = (
        "Intervals are 90 %, chosen by split conformal prediction on subjects that nothing was learnt from, and given "
        f"only with {LEAST_SUBJECTS} of them; else they are null. Coverage is that of subjects held out of the choice "
        f"(five-fold), with its exact lower bound (95 %); it counts as established with {MANY_SUBJECTS} subjects and a "
        f"bound of {LEAST_COVERAGE:g}. The score is the interval score (Gneiting and Raftery 2007) over that of the "
        "best constant width; below 1 is better. Pictures unlike those of the calibration are flagged, and have no "
        "interval and no name. For names, coverage is the expected calibration error of the probabilities."
    )
    rows = [COLUMNS, *certainties()]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return ["## How sure the tools are", "", text, "", lines[0], "|" + "---|" * len(COLUMNS), *lines[1:], ""]


def _described(name: str) -> dict[str, Any]:
    return json.loads(files("agrotools.data").joinpath(name).read_text("utf-8"))


def _established(subjects: int, low: float) -> str:
    if subjects < MANY_SUBJECTS:
        return f"no: under {MANY_SUBJECTS} subjects"
    return "yes" if low >= LEAST_COVERAGE else f"no: bound under {LEAST_COVERAGE:g}"


def _severity() -> Iterator[Certainty]:
    figures = _described("lesion_model.json")["metrics"]
    leaves, low = int(figures["leaves"]), figures["interval_coverage_low"]
    yield Certainty(
        "analyze_lesions",
        "severity_pct, coffee",
        "severity_interval_pct",
        f"{leaves} leaves",
        f"{figures['interval_coverage']:.2f}, {low:.2f}",
        _established(leaves, low),
        f"{figures['interval_score_relative']:.2f}",
        "leaves on a board; other leaves have no interval",
    )


def _fruit_counts() -> Iterator[Certainty]:
    for fruit, one in _described("nets/fruits.json")["counts"].items():
        n, given = one["photographs"], one["spread"] is not None
        width = f"half-width {100 * one['half_width']:.0f} % of the count"
        yield Certainty(
            "count_objects",
            f"count of {fruit}",
            "count_interval" if given else "-",
            f"{n} photographs",
            f"{one['coverage']:.2f}, {one['coverage_low']:.2f}" if given else "-",
            _established(n, one["coverage_low"]) if given else "-",
            f"{one['interval_score_relative']:.2f}" if given else "-",
            width if given else f"{'too wide' if n >= LEAST_SUBJECTS else 'too few photographs'}: {width}",
        )


def _names() -> Iterator[Certainty]:
    domains = _described("strangeness.json")["domains"]
    for tool, net, parts in (
        ("identify_weed", "weeds", {"random split": "known days", "days left out": "unknown days, other net"}),
        ("diagnose_pest_disease", "leaves", {"all, crop unknown": "", "all, crop known": "crop given"}),
    ):  # fmt: skip
        figures = _described(f"nets/{net}.json")["figures"]
        for part, remark in parts.items():
            one = figures[part]
            kept = f"{100 * domains[net]['kept']:.0f} % of known pictures are not refused as unlike them"
            yield Certainty(
                tool,
                "names",
                "candidates[].score",
                f"{one['n']} pictures",
                f"error {one['ece']:.3f}",
                remark="; ".join(filter(None, (remark, f"right {one['top1']:.2f}", kept))),
            )
