"""Intervals and probabilities: complete, and about existing fields. The page and the certificates: up to date."""

import json
import typing
from typing import Any

from accuracy import STUDIES
from accuracy.page import page
from accuracy.uncertainty import quantities
from agrotools.calling import get_tool
from agrotools.calling.result import CERTIFICATES
from write_accuracy import PAGE, certificates

_NO_MEASUREMENT = {"lookup_agronomy", "calculate", "plot", "extract_marked_region"}


def _has_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(
        _has_number(part) for part in typing.get_args(annotation)
    )


def test_every_number_of_a_result_is_a_quantity_or_said_to_be_none():
    listed, not_measured = quantities()
    for tool in {one.tool for one in listed} | set(not_measured):
        fields = get_tool(tool).result_type.model_fields
        named = {name for one in listed if one.tool == tool for name in one.fields} | set(
            not_measured.get(tool, ())
        )
        assert named <= set(fields), f"{tool} has no such field"
        numbers = {name for name, field in fields.items() if _has_number(field.annotation)}
        assert numbers <= named, tool
    assert {one.tool for one in listed} | _NO_MEASUREMENT >= set(STUDIES)


def test_the_accuracy_page_and_the_certificates_are_what_was_measured():
    assert PAGE.read_text(encoding="utf-8") == page(), "python studies/write_accuracy.py"
    stored = json.loads(CERTIFICATES.read_text(encoding="utf-8"))
    assert stored == certificates(), "python studies/write_accuracy.py"
    worst = stored["analyze_lesions"]["coverage"][1]
    assert (worst["of"], worst["subjects"], worst["below_80"]) == (
        "severity_interval_pct, rust,",
        85,
        False,
    )
