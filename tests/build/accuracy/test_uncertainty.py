"""The section on intervals and probabilities: complete, about existing fields, and with stored figures."""

import json
import typing
from importlib.resources import files
from typing import Any

import pytest

from agrotools.build.accuracy import STUDIES
from agrotools.build.accuracy.uncertainty import coverage_text, quantities, section
from agrotools.tools import get_tool

_NO_MEASUREMENT = {"lookup_agronomy", "calculate", "plot", "extract_marked_region"}


def _has_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(_has_number(part) for part in typing.get_args(annotation))


def test_every_number_of_a_result_is_a_quantity_or_said_to_be_none():
    listed, not_measured = quantities()
    for tool in {one.tool for one in listed} | set(not_measured):
        fields = get_tool(tool).result_type.model_fields
        named = {name for one in listed if one.tool == tool for name in one.fields} | set(not_measured.get(tool, ()))
        assert named <= set(fields), f"{tool} has no such field"
        numbers = {name for name, field in fields.items() if _has_number(field.annotation)}
        assert numbers <= named, tool
    assert {one.tool for one in listed} | _NO_MEASUREMENT >= set(STUDIES)


def test_figures_are_those_stored_beside_the_weights():
    stored = json.loads(files("agrotools").joinpath("data", "nets", "fruits.json").read_text())["counts"]["apple"]
    row = next(line for line in section(["count_objects"]) if "`count`, apple" in line)
    assert f"{stored['photographs']} photographs" in row
    assert f"{stored['coverage']:.3f}" in row
    assert f"{stored['interval_score_relative']:.2f}" in row


@pytest.mark.parametrize(
    ("low", "subjects", "text"), [(0.86, 300, "established"), (0.86, 299, "not established"), (0.84, 300, "not est")]
)
def test_coverage_is_established_by_number_and_lower_bound(low: float, subjects: int, text: str):
    assert coverage_text(low, subjects).startswith(text)


def test_crops_whose_scores_are_withheld_have_no_probability():
    rows = [line.split(" | ") for line in section(["diagnose_pest_disease"]) if "`candidates`" in line]
    withheld = {row[1] for row in rows if row[2] == "none"}
    assert withheld == {f"`candidates`, {crop}{known}" for crop in ("bean", "chilli") for known in ("", ", crop known")}
    assert all("`not_calibrated`" in row[-1] for row in rows if row[2] == "none")
