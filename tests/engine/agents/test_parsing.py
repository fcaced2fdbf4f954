"""Every form in which models write calls and answers, and what is said about those that cannot be read."""

import json
from typing import Any

import pytest

from agrotools.agents.markups import MARKUPS
from agrotools.agents.parsing import HINTS, MAX_CALLS, parse_output
from agrotools.core import Answer, CallTools, Protocol, Unparseable
from agrotools.core.record import UNREAD_CALLS
from agrotools.models import RequestedCall

ARGUMENTS = {"expression": "3*2", "precision": 4, "variables": {"a": [1, 2.5, None, True]}}
CALL = [("calculate", ARGUMENTS)]
TEXT = json.dumps(ARGUMENTS)
FENCE = "```"


def calls_in(output: str, protocol: Protocol = "react") -> list[tuple[str, dict[str, Any]]]:
    action = parse_output(output, protocol=protocol)
    assert isinstance(action, CallTools), action
    return [(call.tool, call.arguments) for call in action.calls]


@pytest.mark.parametrize(
    "output",
    [
        f"Thought: I compute.\n\nAction: calculate\n\nAction Input:\n{FENCE}json\n{TEXT}\n{FENCE}\n",
        f"Action: calculate()\nAction Input: {TEXT}\nThis will work.",
        f"Action: calculate\nAction Input: '{TEXT}'",
        f"Action 1: calculate\nAction Input 1: {TEXT}\nObservation 1: 6",
        f"action: calculate action input: {TEXT}",
        f"Action: calculate\n{FENCE}\n{TEXT}\n{FENCE}",
        f"思考：算一下\n行动：calculate\n行动输入：{TEXT}",
        f"Action:\n{FENCE}json\n"
        + json.dumps({"action": "calculate", "action_input": ARGUMENTS})
        + f"\n{FENCE}",
        f"Action: calculate\nAction Input: {TEXT[:-1]}, }}",
        json.dumps(
            {"thought": "I compute", "tool_name": "calculate", "parameters": ARGUMENTS}, indent=2
        ),
        json.dumps({"name": "calculate", "args": ARGUMENTS}),
        json.dumps(
            {"function": {"name": "calculate", "arguments": TEXT}, "type": "function", "id": "x"}
        ),
        json.dumps({"tool_call": {"name": "calculate", "arguments": ARGUMENTS}}),
        json.dumps([{"name": "calculate", "arguments": ARGUMENTS}]),
        json.dumps({"name": "calculate", "arguments": json.dumps(TEXT)}),
        f"I don't know, so I'll compute:\n{FENCE}json\n"
        + json.dumps({"name": "calculate", "arguments": ARGUMENTS})
        + f"\n{FENCE}\nLet's see.",
        "<|python_tag|>" + json.dumps({"name": "calculate", "parameters": ARGUMENTS}),
        f"<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>calculate\n{FENCE}json\n{TEXT}\n{FENCE}",
        f"analysisI compute.assistantcommentary to=functions.calculate json{TEXT}",
        f"[TOOL_CALLS]calculate[CALL_ID]abcDEF123[ARGS]{TEXT}</s>",
        f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="calculate">\n{TEXT}\n</｜DSML｜invoke>',
        f"<tool_call>calculate\n{TEXT}</tool_call>",
        "I compute:\n[calculate(expression='3*2', precision=4, variables={'a': (1, 2.5, None, True)})]",
        f"{FENCE}tool_code\nproduct = calculate(\n  expression='3*2', precision=4,\n"
        f'  variables={{"a": [1, 2.5, None, True]}},\n)\n{FENCE}',
        "[TOOL_CALLS] " + json.dumps([{"name": "calculate", "arguments": ARGUMENTS}]),
        # Qwen 2.5 Coder copies the doubled braces of its chat template, with one brace too many or not.
        "{" + json.dumps({"name": "calculate", "arguments": ARGUMENTS}) + "}",
        "{" + json.dumps({"name": "calculate", "arguments": ARGUMENTS}) + "}}",
        "<think>\nFinal Answer: no, <tool_call>{}\n</think>\n"
        + json.dumps({"name": "calculate", "args": ARGUMENTS}),
        "no opening tag\n</think>\nAction: calculate\nAction Input: " + TEXT,
        '{"name": "calculate", "arguments": {"expression": "3*2", // the product\n "precision": 4, # 4 "digits"\n'
        '"variables": {"a": [1, 2.5, null, true,]},},}',
    ],
)
@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
def test_every_form_of_a_call_is_read_alike(output: str, protocol: Protocol) -> None:
    assert calls_in(output, protocol) == CALL


@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
@pytest.mark.parametrize("markup", MARKUPS, ids=lambda markup: markup.models)
def test_the_example_of_every_markup_is_read(markup: Any, protocol: Protocol) -> None:
    for before in ("", "I count the trees.\n"):
        assert calls_in(before + markup.example, protocol) == [
            ("count", {"image": "a.jpg", "x": 0.5})
        ]
    two = calls_in(f"{markup.example}\n{markup.example}", protocol)
    assert two == [("count", {"image": "a.jpg", "x": 0.5})] * 2


def test_untyped_values_are_typed_by_the_schema() -> None:
    output = "<function=f>" + "".join(
        f"<parameter={name}>{value}</parameter>"
        for name, value in (
            ("a", "12"),
            ("b", "12"),
            ("c", "[1, 2]"),
            ("d", "two\nlines"),
            ("e", "True"),
        )
    )
    tools = {"f": {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}}
    action = parse_output(f"{output}</function>", tools=tools)
    assert isinstance(action, CallTools)
    assert action.calls[0].arguments == {
        "a": "12",
        "b": 12,
        "c": [1, 2],
        "d": "two\nlines",
        "e": True,
    }


OFFERED = {"count_trees": {}, "OCR": {}}


@pytest.mark.parametrize(
    "output",
    [
        'count_trees(image="a.jpg")',
        'I call it now: `count_trees(image="a.jpg")`.',
        'count_trees(\n  image="a.jpg"\n)',
        '<count_trees image="a.jpg"/>',
        "<use_tool><name>count_trees</name><image>a.jpg</image></use_tool>",
        '{"to_call": "count_trees", "image": "a.jpg"}',
        '<|tool_call>call:count_trees{image:<|"|>a.jpg<|"|>}<tool_call|>',
        "<|from|>assistant\n<|recipient|>count_trees\n<|content|>a.jpg",
        '>>>count_trees\n{"image": "a.jpg"}',
        f'functioncount_trees\n{FENCE}json\n{{"image": "a.jpg"}}\n{FENCE}',
        "[TOOL_REQUEST]count_trees a.jpg[END_TOOL_REQUEST]",
        "<function=count_trees><parameter=image>a.jpg",
    ],
)
@pytest.mark.parametrize("protocol", ["react", "tool-calling"])
def test_a_call_of_an_offered_tool_in_other_markup_is_no_answer(
    output: str, protocol: Protocol
) -> None:
    action = parse_output(output, protocol=protocol, tools=OFFERED)
    assert isinstance(action, Unparseable), action
    assert action.reason.startswith(UNREAD_CALLS)
    assert action.hint
    assert isinstance(parse_output(output, protocol=protocol, answer_only=True), Answer)


@pytest.mark.parametrize(
    "answer",
    [
        "I used count_trees and got 14",
        "count_trees(image) gave 14 trees.",
        "There are 14 trees, counted with count_trees().",
        "There are 14 trees (count_trees: 14, OCR: none).",
        '{"trees": 14}',
        "The share is f(x) = 3 (x < 4), and 7 > 5.",
    ],
)
def test_prose_that_mentions_a_tool_is_an_answer(answer: str) -> None:
    for protocol in ("react", "tool-calling"):
        assert parse_output(answer, protocol=protocol, tools=OFFERED) == Answer(text=answer)
    cited = 'count_trees(image="a.jpg")'
    marked = parse_output(f"Final Answer: {cited}", tools=OFFERED)
    assert marked == Answer(text=cited)


@pytest.mark.parametrize(
    "behind",
    [
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\ntrees: 99",
        "assistant\n\ntrees: 99",
        "\n\nUser: And field 9?\nAssistant:\ntrees: 99",
        "</s>[INST] Field 9? [/INST]\ntrees: 99",
        "<end_of_turn>\n<start_of_turn>user\nField 9?<end_of_turn>\n<start_of_turn>model\ntrees: 99",
        "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Field 9?\ntrees: 99",
        "<|endoftext|>Human: Field 9?\n\nAssistant: trees: 99",
    ],
)
@pytest.mark.parametrize("before", ["", "<seed:think>I add.</seed:think>", "<think>I add.</think>"])
def test_further_turns_that_a_model_plays_are_no_part_of_its_answer(before: str, behind: str):
    action = parse_output(f"{before}trees: 14{behind}", answer_only=True)
    assert isinstance(action, Answer)
    assert action.text == "trees: 14"


def test_several_calls_of_a_message_are_kept_in_order() -> None:
    order = list(zip("aba", (1, 2, 3), strict=True))
    react = "\n".join(f'Action: {name}\nAction Input: {{"x": {x}}}' for name, x in order)
    tags = "".join(
        f'<tool_call>{{"name": "{name}", "arguments": {{"x": {x}}}}}</tool_call>'
        for name, x in order
    )
    requested = [
        RequestedCall(name=name, arguments=f'{{"x": {x}}}', id=f"id{x}") for name, x in order
    ]
    native = parse_output("", requested)
    expected = [("a", {"x": 1}), ("b", {"x": 2}), ("a", {"x": 3})]
    assert calls_in(react) == calls_in(tags) == expected
    assert isinstance(native, CallTools)
    assert [(call.tool, call.arguments) for call in native.calls] == expected
    assert [call.id for call in native.calls] == ["id1", "id2", "id3"]


def test_calls_without_arguments_and_what_comes_first_are_read() -> None:
    for given in ("{}", "", "None", "N/A", "null"):
        assert calls_in(f"Action: list_files\nAction Input: {given}") == [("list_files", {})]
    output = 'Action: a\nAction Input: {"x": 1}\nObservation: {"y": 2}\nAction: b\nAction Input: {}\nFinal Answer: 2'
    assert calls_in(output) == [("a", {"x": 1})]
    for turn in (
        *(f"{word}:" for word in ("Response", "Result", "Tool response", "User", "观察")),
        "<tool_response>",
    ):
        turns = (f'Action: {name}\nAction Input: {{"x": 1}}\n{turn} 5\n' for name in "abc")
        assert calls_in("".join(turns)) == [("a", {"x": 1})]
    bare = '{"name": "a", "arguments": {"x": 1}}\nObservation: 5\n{"name": "b", "arguments": {}}'
    assert calls_in(bare) == [("a", {"x": 1})]
    assert calls_in("Action: a\nAction Input: {}\nFinal Answer: 3") == [("a", {})]
    action = parse_output('Final Answer: use it\nAction: a\nAction Input: {"x": 1}')
    assert isinstance(action, Answer)
    assert action.text.startswith("use it")


def test_markers_inside_arguments_are_arguments() -> None:
    tricky = {
        "q": "Final Answer: 3",
        "r": "</tool_call>",
        "s": "Action: x\nAction Input: {}",
        "t": "}{",
        "u": "it's",
    }
    text = json.dumps(tricky)
    for output in (
        f"Action: a\nAction Input: {text}",
        f'<tool_call>{{"name": "a", "arguments": {text}}}</tool_call>',
        f'{{"name": "a", "arguments": {text}}}',
        f'{{"name": "a", "arguments": {json.dumps(text)}}}',
        f"Action: a\nAction Input: {tricky!r}",
    ):
        assert calls_in(output) == [("a", tricky)]


@pytest.mark.parametrize(
    ("output", "answer", "thought"),
    [
        ("Final Answer: 14\nFinal Answer: weeds: 15 %", "weeds: 15 %", "Final Answer: 14"),
        ("**Final Answer:** 14", "14", None),
        ("思考：好了\n最终答案：杂草占 14%", "杂草占 14%", "好了"),
        ("Thought: no tool\nAction: None\nFinal Answer: 14", "14", None),
        ("Action: Final Answer\nAction Input: 14", "14", ""),
        ("Thought: done\nAction 3: Finish[14]\nObservation: correct", "14", "done"),
        ("Action: finish\nAction Input: 14", "14", ""),
        ("<|channel|>final<|message|>14<|return|>", "14", ""),
        (
            "<|channel|>analysis<|message|>I see.<|end|><|start|>assistant<|channel|>final<|message|>14",
            "14",
            "I see.",
        ),
        ("analysisI see 3.assistantfinal14", "14", None),
        ("Final Answer:\n```\nweeds: 14\n```", "weeds: 14", ""),
        ("```\nThought: done\nFinal Answer: 14\n```", "14", None),
        ('Final Answer: {"name": "Lantana", "input": 3}', '{"name": "Lantana", "input": 3}', ""),
        ("<think>\nFinal Answer: 3\n</think>\nFinal Answer: 14", "14", "Final Answer: 3"),
        (
            "Final Answer: Coffee rust.\nAction: remove the leaves\nObservation: orange spots",
            None,
            "",
        ),
    ],
)
def test_a_final_answer_is_what_follows_its_last_marker(
    output: str, answer: str | None, thought: str | None
) -> None:
    action = parse_output(output)
    assert isinstance(action, Answer), action
    assert action.text == (answer if answer is not None else output.removeprefix("Final Answer: "))
    if thought is not None:
        assert action.thought == thought


def test_text_without_a_call_is_an_answer() -> None:
    for output in ("weeds: 14 %", "There are 59 trees.", '{"species": "Lantana", "count": 4}'):
        assert parse_output(output) == Answer(text=output)
        assert isinstance(parse_output(output, marked_only=True), Unparseable)
        assert parse_output(f"Thought: I see.\n{output}") == Answer(text=output, thought="I see.")
    for output in (
        "weeds: 14 %",
        '{"species": "Lantana", "count": 4}',
        "Action: spray now, then wait.",
    ):
        for options in ({"protocol": "tool-calling"}, {"answer_only": True}):
            action = parse_output(output, **options)
            assert isinstance(action, Answer)
            assert action.text == output
    call = 'Action: a\nAction Input: {"x": 1}'
    assert parse_output(call, answer_only=True) == Answer(text=call)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "empty"),
        ("<think>I should", "thinking"),
        ("Thought: I should count.\nThought: now", "neither an Action nor a Final Answer"),
        ('{"trees": 14, ', "cut off"),
        ("Action: calculate", "has no Action Input"),
        ("Action: calculate\nAction Input: 3*2", "not a JSON object"),
        ('Action: calculate\nAction Input: {"expression": ', "cut off"),
        ('Action: calculate\nAction Input: {"expression": 3*2}', "not valid JSON"),
        ("Action: calculate\nAction Input: [1, 2]", "not a list"),
        ("Action: \nAction Input: {}", "no tool name"),
        ('{"tool": "calculate", "arguments": {"expression": "3', "cut off"),
        ('{"tool": 5, "arguments": {}}', "no tool name"),
        ('{"tool": "calculate", "arguments": {"x": NaN}}', "not a JSON number"),
        ('{"tool": "calculate", "arguments": {"x": 1e999}}', "too large"),
        ("<tool_call>calculate(3*2)</tool_call>", "not valid JSON"),
        ("<tool_call>3*2</tool_call>", "no JSON object follows"),
        ("<function=a><parameter=x>1", "no closed parameters"),
        ('<tool_call>{"weeds": 4}</tool_call>', "name and arguments"),
        ('{"name": "a", "arguments": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"name": "a", "arguments": {}}\n' * (MAX_CALLS + 1), "more than"),
    ],
)
def test_what_cannot_be_read_gets_a_reason_and_a_hint(output: str, reason: str) -> None:
    action = parse_output(output)
    assert isinstance(action, Unparseable), action
    assert reason in action.reason
    assert action.hint == HINTS["react"]
    assert len(action.text) < 5000


@pytest.mark.parametrize("inner", ["I add the two yields.", "yield: 99 t/ha\n"])
def test_the_thinking_of_gemma_is_no_part_of_the_answer(inner: str) -> None:
    action = parse_output(f"<|channel>thought\n{inner}<channel|>yield: 3.75 t/ha", answer_only=True)
    assert isinstance(action, Answer)
    assert (action.text, action.thought) == ("yield: 3.75 t/ha", inner.strip())


def test_arguments_of_two_objects_are_told_to_the_model_and_counted_as_a_call_that_is_not_read():
    call = RequestedCall(name="a", arguments='{"x": 1}{}')
    action = parse_output("", [call], protocol="tool-calling")
    assert isinstance(action, Unparseable)
    assert action.reason.startswith(UNREAD_CALLS)
    assert "the text of the arguments goes on behind its JSON: '{}'" in action.reason


@pytest.mark.parametrize("arguments", ['{"x": ', "[]", "3", "x=1", '"text"', '{"x": Infinity}'])
def test_native_calls_with_broken_arguments_are_unparseable(arguments: str) -> None:
    action = parse_output(
        "Let me see.", [RequestedCall(name="a", arguments=arguments)], protocol="tool-calling"
    )
    assert isinstance(action, Unparseable)
    assert action.hint == HINTS["tool-calling"]
    assert "Let me see." in action.text
    assert json.dumps(arguments)[1:-1] in action.text


def test_native_arguments_are_repaired_and_numbers_bounded() -> None:
    for arguments in ("{'x': True,}", '"{\\"x\\": true}"', '{"x": true}'):
        action = parse_output(
            "", [RequestedCall(name="a", arguments=arguments)], protocol="tool-calling"
        )
        assert isinstance(action, CallTools)
        assert action.calls[0].arguments == {"x": True}
    for nothing in ("", "null", "{}"):
        action = parse_output(
            "", [RequestedCall(name="a", arguments=nothing)], protocol="tool-calling"
        )
        assert isinstance(action, CallTools)
        assert action.calls[0].arguments == {}
    ((_, arguments),) = calls_in(
        '{"name": "a", "args": {"x": 123456789012345678901234567890, "y": "\\ud83d"}}'
    )
    assert arguments == {"x": 1.2345678901234568e29, "y": "\ufffd"}

    # 0.25 s at most on an idle core of 2020. Anything quadratic takes minutes.
