"""What models get of a tool: it is short, and it refuses no call that the tool takes."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from PIL import Image

from agrotools.calling import get_tool, tool_names, tool_specs
from agrotools.core import PROTOCOLS, Protocol, ToolError, ToolSpec
from agrotools_tools import AGROTOOLS
from support.prompt_size import CHARACTERS_PER_TOKEN, system_text

MOST_TOKENS_A_TOOL = 239
"""Mean over the tools of native schemas, the longest list, with the two sentences that ask for a call at once."""
MOST_SHOWN = 9
"""Arguments of detect_change, which compares two files with two masks."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_instructions_with_all_tools_are_short(protocol: Protocol) -> None:
    n_tokens = len(system_text(protocol, tool_specs(AGROTOOLS))) / CHARACTERS_PER_TOKEN
    assert n_tokens <= MOST_TOKENS_A_TOOL * len(AGROTOOLS)


@pytest.mark.parametrize("name", tool_names())
def test_the_offered_schema_names_all_arguments_and_choices(name: str) -> None:
    spec = get_tool(name).spec
    offered: Any = spec.offered()["parameters"]
    everything: Any = spec.offered(all_arguments=True)["parameters"]
    Draft202012Validator.check_schema(offered)
    Draft202012Validator.check_schema(everything)
    assert facts(offered) == facts(spec.shown_parameters)
    assert facts(everything) == facts(spec.parameters)


@pytest.mark.parametrize("name", AGROTOOLS)
def test_a_model_is_shown_few_arguments_and_every_required_one(name: str) -> None:
    spec = get_tool(name).spec
    shown: Any = spec.offered()["parameters"]
    assert len(shown["properties"]) <= MOST_SHOWN
    assert {*shown.get("required", ())} <= {*shown["properties"]}
    assert not {*shown["properties"]} & {*spec.expert}


def test_a_setting_that_no_model_is_shown_may_be_given() -> None:
    tool = get_tool("count_objects")
    given: Any = {"image": "a.jpg", "target": "tree", "score_min": 0.9, "window_a_m": 1.5}
    assert tool.validate(given).items() >= given.items()


def test_a_0_that_an_optional_argument_does_not_allow_is_read_as_not_given(
    tmp_path: Path,
) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    tool = get_tool("count_objects")
    given: Any = {"image": "a.png", "target": "tree", "gsd_m": 0, "expected_size_px": 0.0}
    given |= {"score_min": 0, "min_height_m": 0}
    read = tool.validate(given)
    assert read["gsd_m"] is None
    assert read["expected_size_px"] is None
    assert (read["score_min"], read["min_height_m"]) == (0, 0)
    with pytest.raises(ToolError, match="gsd_m must be a number"):
        tool.validate({**given, "gsd_m": -1})
    with pytest.raises(ToolError, match="gsd_m must be a number"):
        tool(**{**given, "image": tmp_path / "a.png"})  # a person who writes 0 is told


def test_a_choice_that_cannot_work_here_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGROTOOLS_PACKS", str(tmp_path))

    def kinds(backends: dict[str, str] | None) -> Any:
        (spec,) = tool_specs(["diagnose_pest_disease"], backends=backends)
        return spec.offered()["parameters"]["properties"]["kind"]["enum"]

    assert kinds({}) == ["disease", "auto"]
    assert kinds({"diagnose_pest_disease": "vlm"}) == ["pest", "disease", "auto"]
    assert kinds(None) == ["pest", "disease", "auto"]
    get_tool("diagnose_pest_disease").validate({"image": "a.jpg", "kind": "pest"})


def test_an_error_names_the_arguments_that_a_model_is_shown() -> None:
    tool = get_tool("count_objects")
    with pytest.raises(ToolError) as caught:
        tool.validate({"image": "a.jpg", "colour_of_the_sky": "blue"})
    text = f"{caught.value.message} {caught.value.hint}"
    assert "min_height_m" in text
    assert "window_a_m" not in text


def test_defaults_that_are_numbers_are_offered() -> None:
    offered: Any = get_tool("count_objects").spec.offered(all_arguments=True)["parameters"]
    defaults = {
        name: each["default"] for name, each in offered["properties"].items() if "default" in each
    }
    assert defaults == {"min_height_m": 2.0, "score_min": 0.3, "window_a_m": 0.6, "window_b": 0.085}


def facts(schema: Any) -> Any:
    """What a call must know of a schema: types, allowed texts, names of values, and which are required."""
    if isinstance(schema, list):
        return [facts(each) for each in schema]
    kept = {key: schema[key] for key in ("type", "enum", "required") if key in schema}
    if "properties" in schema:
        kept["properties"] = {name: facts(each) for name, each in schema["properties"].items()}
    if "items" in schema:
        kept["items"] = facts(schema["items"])
    branches = [facts(each) for each in schema.get("anyOf", ())]
    distinct = [each for at, each in enumerate(branches) if each not in branches[:at]]
    return kept | (distinct[0] if len(distinct) == 1 else {"anyOf": distinct} if distinct else {})


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values that a plain schema accepts, within its limits."""
    if "anyOf" in schema:
        return st.one_of([values(branch) for branch in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    least, most = (
        schema.get("minItems", schema.get("minLength", 0)),
        schema.get("maxItems", schema.get("maxLength", 5)),
    )
    match schema.get("type"):
        case "integer":
            return st.integers(low, high)
        case "number":
            return st.floats(
                low,
                high,
                allow_nan=False,
                allow_infinity=False,
                exclude_min="exclusiveMinimum" in schema,
            )
        case "boolean":
            return st.booleans()
        case "string":
            return st.text("abc.1", min_size=least, max_size=max(least, min(most, 8)))
        case "array":
            return st.lists(
                values(schema["items"]), min_size=least, max_size=max(least, min(most, 5))
            )
        case "object" if "properties" in schema:
            fields = {name: values(each) for name, each in schema["properties"].items()}
            required = {name: fields.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(required, optional=fields)
        case "object":
            return st.dictionaries(
                st.text("ab", min_size=1), values(schema["additionalProperties"]), max_size=3
            )
        case _:
            return st.none()


@pytest.mark.parametrize("name", tool_names())
@given(data=st.data())
def test_the_offered_schema_accepts_what_the_tool_accepts(name: str, data: st.DataObject) -> None:
    spec = get_tool(name).spec
    arguments = data.draw(values(spec.parameters))
    assume(Draft202012Validator(spec.parameters).is_valid(arguments))
    Draft202012Validator(spec.offered()["parameters"]).validate(arguments)


@pytest.mark.parametrize("name", tool_names())
@given(data=st.data())
def test_what_only_the_offered_schema_accepts_is_reported(name: str, data: st.DataObject) -> None:
    tool = get_tool(name)
    offered = tool.spec.offered()["parameters"]
    arguments = data.draw(values(_with_any_values(offered)))
    Draft202012Validator(offered).validate(arguments)
    with suppress(ToolError):  # no other error
        tool.validate(arguments)


def _with_any_values(schema: Any) -> Any:
    """Return the schema with texts as the values of objects that say nothing of them."""
    if isinstance(schema, list):
        return [_with_any_values(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    of_maps = {"additionalProperties": {"type": "string"}} if schema.get("type") == "object" else {}
    return of_maps | {key: _with_any_values(each) for key, each in schema.items()}


def test_a_tool_with_a_single_kind_of_item_is_offered_without_a_union() -> None:
    limits = [{"type": "number", "minimum": low} for low in (0, 1)]
    values_of = {"default": {"type": "array", "items": {"anyOf": limits}}}
    parameters: Any = {"type": "object", "properties": values_of, "additionalProperties": False}
    texts: Any = {"name": "t", "category": "c", "version": "1", "description": "One.\n\nTwo."}
    spec = ToolSpec(**texts, parameters=parameters, agreement={}, defaults={})
    assert spec.offered() == {
        "name": "t",
        "description": "One. Two.",
        "parameters": {
            "type": "object",
            "properties": {"default": {"type": "array", "items": {"type": "number"}}},
        },
    }
