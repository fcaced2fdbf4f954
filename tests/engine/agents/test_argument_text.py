"""Arguments of tools in one line: nothing that the schema says is lost, and examples are calls that the tools take."""

import json
import re

import pytest

from agrotools.agents.argument_text import arguments_text
from agrotools.agents.llm import REACT
from agrotools.agents.parsing import parse_output
from agrotools.calling import get_tool, tool_specs

pytestmark = pytest.mark.unit

TOOLS = (
    "count_objects", "plot", "measure_weed_phenotype", "describe_region", "detect_change", "calculate",
)  # fmt: skip


def test_types_of_arguments() -> None:
    schema = {
        "type": "object",
        "required": ["image"],
        "properties": {
            "image": {"type": "string"},
            "mode": {"type": "string", "enum": ["leaf", "field"], "description": "field: busy background"},
            "boxes": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "x": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
            "height_m": {"type": "number", "default": 2.0},
            "marker": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}},
            "bands": {"type": "object"},
            "free": {},
            "either": {"type": ["string", "null"]},
        },
    }  # fmt: skip
    assert arguments_text(schema) == (
        '{"image": string, "mode"?: "leaf" | "field" (field: busy background), "boxes"?: number[][], '
        '"x"?: (string | number)[], "height_m"?: number (default 2), "marker"?: {"size": integer}, "bands"?: object, '
        '"free"?: any, "either"?: string | null}'
    )


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_and_every_choice_is_named(name: str) -> None:
    (spec,) = tool_specs([name])
    parameters = spec.offered()["parameters"]
    text = arguments_text(parameters)
    named = re.findall(r'"(\w+)"\??:', text)
    for argument, schema in parameters["properties"].items():
        assert argument in named
        assert all(json.dumps(choice) in text for choice in schema.get("enum", ()))
    assert {
        argument for argument in parameters["required"] if f'"{argument}":' not in text
    } == set()


@pytest.mark.parametrize("name", TOOLS)
def test_the_prompt_shows_a_valid_call_of_each_tool(name: str) -> None:
    (spec,) = tool_specs([name])
    found = re.search(r"^Example: (.*)$", REACT.system([spec]), re.MULTILINE)
    assert found
    call = json.loads(found[1])
    assert get_tool(name).validate(call)
    shown = spec.offered()["parameters"]["properties"]
    assert call.keys() <= shown.keys()


@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
@pytest.mark.parametrize(
    "reply",
    [
        '{"image": "image_1.jpg", "target": "tree"}',
        'Example: {"image": "image_1.jpg", "target": "tree"}',
        'Action Input: {"image": "image_1.jpg", "target": "tree"}',
        '```json\n{"image": "image_1.jpg", "target": "tree"}\n```',
        'count_objects: {"image": "image_1.jpg", "target": "tree"}',
        '{"image": string, "target": string (e.g. tree, plant, apple, spot)}',
    ],
)
def test_a_copy_of_the_prompt_is_no_answer(reply: str, protocol: str) -> None:
    tools = {spec.name: spec.parameters for spec in tool_specs(TOOLS)}
    assert parse_output(reply, protocol=protocol, tools=tools).kind == "unparseable"


@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
@pytest.mark.parametrize(
    "reply", ['{"region": [0, 0, 64, 48]}', '{"count": 7}', "I counted by eye: there are 7 trees."]
)
def test_an_answer_in_json_stays_an_answer(reply: str, protocol: str) -> None:
    tools = {spec.name: spec.parameters for spec in tool_specs(TOOLS)}
    assert parse_output(reply, protocol=protocol, tools=tools).kind == "answer"
