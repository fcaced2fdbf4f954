"""The parser on anything: it never fails, and reads back every call in every form."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from agrotools.agents.parsing import as_text, parse_output
from agrotools.core import Answer, CallTools, Unparseable
from agrotools.models import RequestedCall
from agrotools.text.loose_json import MAX_DEPTH, NotJson, dumps, loads, loads_strictly, storable

names = st.from_regex(r"[a-z][a-z0-9_]{0,30}", fullmatch=True).filter(
    lambda name: name not in ("none", "null", "na", "final_answer", "finalanswer")
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
arguments = st.dictionaries(st.text(max_size=12), values, max_size=5)

# Pieces of which calls are made, so that random texts come close to meaning something.
pieces = st.sampled_from(
    [
        *(
            "Action:",
            "Action Input:",
            "Final Answer:",
            "Observation:",
            "Thought:",
            "最终答案：",
            "<think>",
            "</think>",
        ),
        *"<function=a> <parameter=x> </parameter> [a( x= to=functions.a <｜tool▁call▁begin｜> a(".split(),
        *(
            "<|message|>",
            "<|channel|>",
            "final",
            "<arg_key>x</arg_key>",
            "<arg_value>",
            "```tool_code",
            "Finish[",
        ),
        *(
            "<tool_call>",
            "</tool_call>",
            "```json",
            "```",
            '"name"',
            '"arguments"',
            "calculate",
            "None",
            "True",
        ),
        *(
            "{",
            "}",
            "[",
            "]",
            '"',
            "'",
            ",",
            ":",
            "\\",
            "//",
            " ",
            "\n",
            "“",
            "”",
            "1",
            "1e999",
            "\\ud800",
        ),
        '{"name": "a", "arguments": {}}',
    ]
)
outputs = st.text(st.characters(), max_size=200) | st.lists(
    pieces | st.text(max_size=5), max_size=30
).map("".join)


@given(outputs, st.sampled_from(["react", "tool-calling"]), st.booleans())
def test_any_text_becomes_an_action_that_a_record_can_hold(
    text: str, protocol: Any, answer_only: bool
) -> None:
    action = parse_output(
        text, protocol=protocol, tools={"a": {}, "calculate": {}}, answer_only=answer_only
    )
    assert isinstance(action, CallTools | Answer | Unparseable)
    assert type(action).model_validate_json(action.model_dump_json()) == action
    if isinstance(action, Unparseable):
        assert action.reason
        assert action.hint


@given(st.lists(st.tuples(st.text(max_size=20), outputs), min_size=1, max_size=3), outputs)
@example(requested=[("", "\ud800")], text="")
@example(requested=[("\udfff", "{}")], text="\ud800")
def test_any_native_call_becomes_an_action(requested: list[tuple[str, str]], text: str) -> None:
    calls = [RequestedCall(name=name, arguments=given) for name, given in requested]
    action = parse_output(text, calls, protocol="tool-calling")
    assert isinstance(action, CallTools | Unparseable)
    assert type(action).model_validate_json(action.model_dump_json()) == action


def forms(name: str, given: dict[str, Any]) -> list[str]:
    """Every form in which this call can be written."""
    as_json = json.dumps(given)
    readable = json.dumps(given, ensure_ascii=False, indent=1)
    call = {"name": name, "arguments": given}
    return [
        f"Thought: see\nAction: {name}\nAction Input: {as_json}",
        f"Action: {name}\nAction Input:\n```json\n{readable}\n```\nObservation: none",
        f"Action: {name}\nAction Input: {given!r}",
        f"Action: {name}\nAction Input: {json.dumps(as_json)}",
        json.dumps(call),
        repr(call),
        json.dumps({"tool": name, "parameters": as_json}),
        json.dumps({"function": {"name": name, "arguments": as_json}}),
        json.dumps({"tool_calls": [call]}),
        f"Let me call it:\n```json\n{json.dumps(call, ensure_ascii=False)}\n```",
        f"<tool_call>\n{json.dumps(call)}\n</tool_call>",
        json.dumps(json.dumps(call)),
        as_text(RequestedCall(name=name, arguments=as_json)),
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{as_json}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{as_json}<|tool_call_end|>",
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{as_json}<|call|>",
        f"<function={name}>{as_json}</function>",
        f"[TOOL_CALLS]{name}[ARGS]{as_json}",
    ]


@given(names, st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), values, max_size=5))
def test_any_python_call_is_read_back_equal(name: str, given: dict[str, Any]) -> None:
    action = parse_output(
        f"```tool_code\n{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})\n```"
    )
    assert isinstance(action, CallTools), action
    assert [(call.tool, call.arguments) for call in action.calls] == [(name, given)]


@given(names, arguments)
def test_any_call_in_any_form_is_read_back_equal(name: str, given: dict[str, Any]) -> None:
    for text in forms(name, given):
        for protocol in ("react", "tool-calling"):
            action = parse_output(text, protocol=protocol)
            assert isinstance(action, CallTools), (text, action)
            assert [(call.tool, call.arguments) for call in action.calls] == [(name, given)], text


@given(outputs)
def test_loose_json_raises_nothing_but_its_own_error(text: str) -> None:
    try:
        value = loads(text)
    except NotJson:
        return
    json.dumps(value, allow_nan=False).encode()


odd_values = st.recursive(
    values | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.text(st.characters(), max_size=5) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(odd_values)
@example(10**400)
@example(json.loads("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)))
def test_a_value_is_stored_as_its_json_is_read(value: Any) -> None:
    try:
        read = loads_strictly(dumps(value))
    except (NotJson, ValueError) as error:
        read = type(error)
    try:
        stored = storable(value)
    except NotJson as error:
        stored = type(error)
    assert repr(stored) == repr(read)
