"""Replies as lagent 0.2.4 reads them, and arguments as AgentLego 0.2.0 takes them."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks._dialogs.lagent_format import (
    FOLLOW_FORMAT,
    DeclaredTool,
    Failure,
    Parameter,
    arguments_in,
    cast_arguments,
    check_call,
    is_argument_failure,
    read_arguments,
    read_reply,
    strip_reply,
)

TYPES = {"image": str, "text": str, "int": int, "bool": bool}
IMAGE, TEXT = Parameter("image", "image", None, True), Parameter("text", "text", "what", True)
OCR = DeclaredTool("OCR", "reads", (IMAGE,))
COUNT = DeclaredTool("CountGivenObject", "counts", (IMAGE, TEXT))
FIND = DeclaredTool("TextToBbox", "finds", (IMAGE, TEXT, Parameter("top1", "bool", None, False)))
SEARCH = DeclaredTool(
    "GoogleSearch", "searches", (Parameter("query", "text", None, True), Parameter("k", "int", None, False))
)
SUM = DeclaredTool("Calculator", "computes", (Parameter("expression", "text", None, True),))
TOOLS = (OCR, COUNT, FIND, SEARCH, SUM)
FILE = "image/image_1.jpg"


def there(path: str) -> bool:
    return path == FILE


def checked(reply: str):
    return check_call(read_reply(reply), TOOLS, there)


@pytest.mark.parametrize(
    ("reply", "tool", "given", "failure"),
    [
        ("no idea", "NoAction", {"text": ""}, Failure("API_ERROR", FOLLOW_FORMAT)),
        (
            'Action: Nope\nAction Input: {"a": 1}',
            "InvalidAction",
            {"text": '{"a": 1}'},
            Failure("API_ERROR", '{"a": 1}'),
        ),
        ("Action: OCR.read\nAction Input: {}", "OCR", "{}", Failure("API_ERROR", "invalid API: read")),
        (
            "Action: OCR\nAction Input: {'a': 1}",
            "OCR",
            "{'a': 1}",
            Failure("ARGS_ERROR", "invalid json format: {'a': 1}"),
        ),
        (
            'Action: OCR\nAction Input: ["image"]',
            "OCR",
            '["image"]',
            Failure("ARGS_ERROR", 'invalid json format: ["image"]'),
        ),
        (
            'Action: OCR\nAction Input: {"image": "a", "colour": 1}',
            "OCR",
            '{"image": "a", "colour": 1}',
            Failure("ARGS_ERROR", "unknown arguments: {'colour'}"),
        ),
        ("Action: OCR\nAction Input: {}", "OCR", "{}", Failure("ARGS_ERROR", "missing required arguments: {'image'}")),
        (
            'Action: OCR\nAction Input: {"image": "b.jpg"}',
            "OCR",
            {"image": "b.jpg"},
            Failure("API_ERROR", "FileNotFoundError(\"No such file: 'b.jpg'\")"),
        ),
        (
            'Action: OCR\nAction Input: {"image": 5}',
            "OCR",
            {"image": 5},
            Failure(
                "API_ERROR", "NotImplementedError(\"The value type `<class 'int'>` is not supported by `ImageIO`\")"
            ),
        ),
    ],
)
def test_what_goes_wrong_before_a_tool_runs_is_told_as_published(reply: str, tool: str, given: Any, failure: Failure):
    found = checked(reply)
    assert (found.tool, found.raw_arguments, found.failure) == (tool, given, failure)
    assert found.arguments is None


def test_good_calls_are_taken_with_a_fence_marked_json():
    found = checked(f'Action: TextToBbox\nAction Input: {{"image": "{FILE}", "text": "car"}}')
    assert found == ("TextToBbox", {"image": FILE, "text": "car"}, {"image": FILE, "text": "car"}, None)
    call = f'{{"image": "{FILE}"}}'
    assert checked(f"Action: OCR\nAction Input: ```json\n{call}\n```").failure is None
    assert checked(f"Action: OCR\nAction Input: {call}\n```").failure is None
    plain = checked(f"Action: OCR\nAction Input: ```\n{call}\n```")
    assert plain.failure == Failure("ARGS_ERROR", f"invalid json format: ```\n{call}")


@pytest.mark.parametrize(
    ("parameter", "value", "taken"),
    [
        ("text", ["a"], "['a']"), ("int", 2.7, 2),
        ("float", 2, 2.0), ("bool", "False", True), ("json", [1, 2], [1, 2]),
    ],
)  # fmt: skip
def test_values_are_cast_to_the_declared_type_as_python_does(parameter: str, value: Any, taken: Any):
    cast = cast_arguments([Parameter("x", parameter, None, True)], {"x": value}, there)
    assert isinstance(cast, dict)
    assert (cast["x"], type(cast["x"])) == (taken, type(taken))


def test_unknown_nested_and_endless_inputs_are_failures():
    failed = read_arguments(OCR.parameters, '{"b": 1, "a": 2, "image": "x"}')
    assert failed == Failure("ARGS_ERROR", "unknown arguments: {'a', 'b'}")
    assert isinstance(read_arguments(OCR.parameters, "[" * 200_000), Failure)
    assert read_reply("Action:" * 50_000).kind == "nothing"
    assert read_reply("Action Input:" * 20_000 + "\n" * 20_000).kind == "nothing"


BITS = ["Thought:", "Action:", "Action Input:", "Final Answer:", "Response:", "\n", " ", '"', "{}", "OCR", "x", "\r"]
REPLIES = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(BITS), max_size=20).map("".join))


def by_expressions(message: str) -> tuple[str, str, str]:
    """The published way to read a reply: regular expressions, which take quadratic time."""
    if "Final Answer:" in message:
        return "answer", "", message.split("Final Answer:")[-1]
    tools = re.findall("Action:(.*?)\n", message)
    inputs = re.findall("Action Input:(.*)", message, re.DOTALL)
    if not tools or not inputs:
        return "nothing", "", ""
    return "call", tools[-1].strip(), inputs[-1].strip().strip('"')


@given(REPLIES)
def test_replies_are_read_as_by_the_published_expressions(reply: str):
    said = read_reply(reply)
    assert (said.kind, said.tool, said.text) == by_expressions(reply)


@given(st.one_of(REPLIES, st.text(alphabet='`json\n {}"a1:,', max_size=60)))
def test_a_fence_is_taken_off_as_by_the_published_expression(text: str):
    match = re.search(r"^\s*(```json\n)?(.*)\n```\s*$", text, re.DOTALL)
    body = match.group(2).strip() if match else text
    try:
        value = json.loads(body)
    except json.JSONDecodeError:
        value = None
    assert arguments_in(text) == (value if isinstance(value, dict) else None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(
    lambda tool, given: f"Thought: x\nAction: {tool}\nAction Input: {json.dumps(given)}",
    st.sampled_from([*(tool.name for tool in TOOLS), "Nope", "OCR.run", "OCR.x", "a.b.c", ""]),
    st.dictionaries(st.sampled_from(["image", "text", "top1", "query", "k", "expression", "other"]), JSON, max_size=4),
)


@given(st.one_of(REPLIES, CALLS))
def test_whatever_a_model_says_comes_to_a_call_or_to_one_failure(reply: str):
    found = checked(strip_reply(reply))
    assert (found.arguments is None) != (found.failure is None)
    if found.failure is not None:
        assert (found.failure.type == "ARGS_ERROR") == is_argument_failure(found.failure.message)
        assert isinstance(found.raw_arguments, str) or found.failure.type == "API_ERROR"
    else:
        kinds = {each.name: each.type for tool in TOOLS if tool.name == found.tool for each in tool.parameters}
        assert all(isinstance(value, TYPES[kinds[name]]) for name, value in found.arguments.items())
