"""Bindings: every fault is found before a call, and what the calls of a server become."""

from pathlib import Path
from typing import Any

import pytest

from agrotools.core import ToolError, UsageError
from agrotools.served.binding import (
    BoundTool,
    check_against,
    filled_arguments,
    our_result,
    read_binding,
)
from agrotools.served.proposal import check_schemas, proposed_binding
from agrotools.served.session import Listing, ServedTool
from agrotools.served.tools import open_toolset
from support.bound_tools import find_tool, measure_leaf

SEGMENT = ServedTool(
    "segment",
    "Segment.",
    {
        "type": "object",
        "properties": {"image_path": {"type": "string"}},
        "required": ["image_path"],
    },
    None,
)
MEASURE = ServedTool(
    "measure",
    "Measure.",
    {
        "type": "object",
        "properties": {"session_id": {"type": "string"}},
        "required": ["session_id"],
    },
    {
        "type": "object",
        "properties": {"traits": {"type": "object"}, "leaf_count": {"type": "integer"}},
    },
)
LISTING = Listing("field-tools", "3", (SEGMENT, MEASURE))
GOOD = """
[measure_leaf]
when = { crop = ["coffee", "tea"], region = false }
[[measure_leaf.calls]]
tool = "segment"
arguments = { image_path = "{image}" }
keep = { session = "session_id", codes = "pluck(warnings, 'code')" }
[[measure_leaf.calls]]
tool = "measure"
arguments = { session_id = "{session}" }
[measure_leaf.result]
total_cm2 = "convert(traits.area.value, traits.area.unit, 'cm2')"
leaves = [ { area_cm2 = "traits.area.value / 100" } ]
[measure_leaf.refuses]
when = "'empty' in codes or error"
message = "error"
"""


def bound(text: str, folder: Path) -> BoundTool:
    file = folder / "binding.toml"
    file.write_text(text)
    binding = read_binding(file, find_tool)
    check_against(binding, LISTING, find_tool)
    return binding.tools["measure_leaf"]


def test_a_result_of_ours_is_made_of_several_calls_with_units(tmp_path: Path):
    tool = bound(GOOD, tmp_path)
    first = filled_arguments(tool.calls[0], {"image": "leaf.jpg"})
    assert first == {"image_path": "leaf.jpg"}
    values = {"codes": ["small"], "traits": {"area": {"value": 1250.0, "unit": "mm2"}}}
    result = our_result(tool, values)
    assert result == {"total_cm2": 12.5, "leaves": [{"area_cm2": 12.5}]}


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("[measure_leaf.result]", "[measure_leaf.results]", "results: there is no such key (did you mean result?)"),
        ("keep =", "kept =", "calls.0.kept: there is no such key (did you mean keep?)"),
        ("message =", "mesage =", "refuses.mesage: there is no such key (did you mean message?)"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_named_with_the_one_that_is_meant(
    tmp_path: Path, right: str, wrong: str, said: str
):
    with pytest.raises(UsageError) as refused:
        bound(GOOD.replace(right, wrong, 1), tmp_path)
    assert said in refused.value.message


@pytest.mark.parametrize("texts", [("python:tools", []), ([], "binding.toml")])
def test_a_text_in_the_place_of_a_list_is_refused(texts: tuple[Any, Any]):
    with pytest.raises(UsageError, match="must be a list of texts") as refused:
        open_toolset(*texts, find_tool)
    assert "=['" in (refused.value.hint or "")


def test_a_call_that_the_binding_is_not_made_for_is_refused(tmp_path: Path):
    tool = bound(GOOD, tmp_path)
    assert tool.unfit({"crop": "tea", "region": None}) is None
    other, part = tool.unfit({"crop": "maize"}), tool.unfit({"crop": "tea", "region": [0, 0, 9, 9]})
    assert other is not None
    assert (other.argument, other.hint) == ("crop", "crop may be coffee or tea")
    assert part is not None
    assert part.argument == "region"


@pytest.mark.parametrize(
    "values", [{"codes": ["empty"]}, {"codes": [], "error": "no leaf in the picture"}]
)
def test_a_server_refuses_by_a_condition_on_its_result(tmp_path: Path, values: dict):
    with pytest.raises(ToolError) as refused:
        our_result(bound(GOOD, tmp_path), values)
    assert refused.value.kind == "nothing_found"
    assert refused.value.message in (
        "no leaf in the picture",
        "measure_leaf cannot answer this call",
    )


NESTED = GOOD.replace("'empty' in codes or error", "not rows[0].measured").replace(
    'message = "error"', 'message = "rows[0].reason"'
)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"measured": False, "reason": "the mask is empty"}, "the mask is empty"),
        ({"measured": False, "reason": None}, "measure_leaf cannot answer this call"),
        ({"measured": False}, "measure_leaf cannot answer this call"),
        ({}, "refuses.when cannot be judged"),
    ],
)
def test_a_reason_may_be_inside_the_result(tmp_path: Path, row: dict, words: str):
    tool = bound(NESTED, tmp_path)
    with pytest.raises(ToolError, match=words):
        our_result(tool, {"rows": [row], "traits": {"area": {"value": 1250.0, "unit": "mm2"}}})


@pytest.mark.parametrize("value", [{}, {"area": None}, {"area": {"value": None, "unit": "mm2"}}])
def test_a_value_that_is_null_or_missing_is_never_a_number(tmp_path: Path, value: dict):
    with pytest.raises(ToolError, match="no value of total_cm2"):
        our_result(bound(GOOD, tmp_path), {"codes": [], "traits": value})


def test_a_unit_that_cannot_be_converted_is_no_number(tmp_path: Path):
    traits = {"area": {"value": 1250.0, "unit": "pixels"}}
    with pytest.raises(ToolError, match="total_cm2"):
        our_result(bound(GOOD, tmp_path), {"codes": [], "traits": traits})


@pytest.mark.parametrize(
    ("change", "to", "words"),
    [
        ("[measure_leaf.result]", "[measure_leaf.results]", "results"),
        ("[measure_leaf]", "[measure_leaves]\n[measure_leaf]", "measure_leaves"),
        ("total_cm2 =", "total_cm =", "did you mean total_cm2"),
        ("{ area_cm2 =", "{ area =", "did you mean area_cm2"),
        ("region = false", "part = false", "when.part: no argument"),
        ('"{session}"', '"{sessions}"', "'sessions'"),
        ('"{image}"', '"{file}"', "'file'"),
        ('tool = "segment"', 'tool = "segments"', "did you mean segment"),
        ("session_id =", "session =", "measure needs 'session_id'"),
        ("image_path =", "picture = 1, image_path =", "segment has no such argument"),
        ("traits.area.value / 100", "trait.area / 100", "'trait' is no field"),
        ("traits.area.value / 100", "traits. / 100", "is no expression"),
        ("'empty' in codes or error", "'empty' in codes or", "refuses.when"),
        ('message = "error"', 'message = "error."', "refuses.message"),
        ("[measure_leaf]", "server = 5\n[measure_leaf]", "server: should be an address"),
    ],
)
def test_a_fault_is_named_with_its_key_before_any_call(
    tmp_path: Path, change: str, to: str, words: str
):
    assert change in GOOD
    with pytest.raises(UsageError) as refused:
        bound(GOOD.replace(change, to, 1), tmp_path)
    assert words in str(refused.value)
    assert "measure_leaf" in str(refused.value) or "server" in words


def test_all_faults_are_said_at_once(tmp_path: Path):
    text = GOOD.replace("total_cm2 =", "total =").replace("region = false", "part = false")
    with pytest.raises(UsageError) as refused:
        bound(text, tmp_path)
    assert "when.part" in refused.value.message
    assert "result.total" in refused.value.message


def test_a_table_without_calls_is_the_served_tool_of_the_same_name(tmp_path: Path):
    file = tmp_path / "binding.toml"
    file.write_text("[measure_leaf]\n")
    binding = read_binding(file, find_tool)
    with pytest.raises(UsageError, match="has no tool 'measure_leaf'"):
        check_against(binding, LISTING, find_tool)
    same = ServedTool("measure_leaf", "", measure_leaf.spec.parameters, None)
    check_against(binding, Listing("copy", "1", (same,)), find_tool)
    assert binding.tools["measure_leaf"].is_whole


def test_a_proposal_binds_equal_names_and_leaves_the_rest_to_a_person(tmp_path: Path):
    same = ServedTool("measure_leaf", "", measure_leaf.spec.parameters, None)
    ours = {"measure_leaf": measure_leaf.spec.parameters}
    fields = {"measure_leaf": ("leaf_area_cm2",)}
    text = proposed_binding(Listing("field", "1", (*LISTING.tools, same)), "served", ours, fields)
    file = tmp_path / "binding.toml"
    file.write_text(text)
    binding = read_binding(file, find_tool)
    assert binding.server == "served"
    assert [*binding.tools] == ["measure_leaf"]
    assert '# arguments = { image_path = "{image}" }' in text
    assert '# FIELD = "leaf_count"' in text
    assert "-> leaf_area_cm2" in text


def test_a_listing_is_checked_for_what_models_need():
    nameless = ServedTool("leaf area!", "", {"properties": {"x": {}}}, None)
    segment, other = check_schemas(Listing("field", "1", (SEGMENT, nameless)))
    assert (segment.files, segment.required, segment.faults) == ("path", ("image_path",), ())
    assert other.faults == ("models cannot call this name", "no description", "x has no type")
