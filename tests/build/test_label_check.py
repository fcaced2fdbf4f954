"""Slips in a table of labels that the tool's own measurements give away."""

import pytest

from agrotools.build.own_photos.building import compare_with_tool
from agrotools.build.own_photos.plan import Column
from agrotools.build.own_photos.questions import Pictured
from agrotools.core import SampleFile
from support.plain_sample import plain_sample

MEASURED = [4.0, 30.0, 12.0, 21.0, 8.0, 26.0, 16.0, 9.0]


def said(labels: list[float], measured: list[float]) -> str:
    column = Column(column="Severity", ask="severity", unit="%")
    files = [SampleFile(name="image_1.jpg", path=f"{k}.jpg", kind="image", sha256=f"{k:064x}") for k in range(8)]
    samples = []
    for file, value in zip(files, measured, strict=True):
        step = {
            "tool": "analyze_lesions",
            "arguments": {"image": "image_1.jpg"},
            "observation": {"result": {"severity_pct": value}},
        }
        more = {"toolset": ("analyze_lesions",), "metadata": {"column": "Severity"}}
        samples.append(plain_sample(files=(file,), reference={"steps": [step]}, **more))
    pictured = [Pictured(file, label) for file, label in zip(files, labels, strict=True)]
    names = {str(file.sha256): f"IMG_{k}.jpg" for k, file in enumerate(files)}
    (line,) = compare_with_tool(samples, [column], {"Severity": pictured}, names)
    return line


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        (MEASURED, "agrees with the table on 8 of 8 photos"),
        ([*MEASURED[1:], MEASURED[0]], "8 values fit the photo of the next row"),
        ([*MEASURED[:4], 0.08, 0.26, 0.16, 0.09], "4 values are 100 times smaller than measured"),
        ([MEASURED[0], 3.0, *MEASURED[2:]], "look at these, either may be wrong: IMG_1.jpg 3 (measured 30)"),
    ],
)
def test_the_build_names_the_slip_that_explains_most(labels: list[float], line: str):
    assert line in said(labels, MEASURED)


def test_a_tool_that_is_off_everywhere_is_no_slip_of_the_table():
    line = said(MEASURED, [value * 1.7 + 6 for value in MEASURED])
    assert "agrees with the table on 0 of 8 photos within 2 or 20 %, 17 too high on average; it measures" in line
