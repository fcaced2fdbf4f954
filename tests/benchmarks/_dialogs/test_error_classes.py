import pytest

from agrotools.core import (
    Answer,
    CallTools,
    ErrorInfo,
    Halt,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Step,
    ToolCall,
    Trajectory,
    Unparseable,
)
from agrotools.scoring.error_classes import Errors, add_record, keywords
from agrotools_benchmarks._dialogs.record_dialogues import errors_of_dialogues
from agrotools_benchmarks.agent_x.predictions import errors_of_agent_x
from support.gta_files import ERROR, answer, call, end_file, returned
from support.plain_sample import plain_sample

FORMAT = {"type": "API_ERROR", "msg": "Please follow the format"}


def counted(errors):
    return {name: count for name, count in errors.counts.items() if count}


def test_errors_of_calls_as_gta_and_thinkgeo_tell_them():
    steps = [
        call("NoAction", {"text": ""}, FORMAT),
        call("InvalidAction", {"text": "x"}, FORMAT),
        call("OCR", '{"image', ERROR),
        call("OCR", {"imag": "a"}, {"type": "ARGS_ERROR", "msg": "unknown arguments: {'imag'}"}),
        call("OCR", {"image": "a"}, {"type": "API_ERROR", "msg": "FileNotFoundError"}),
        call("OCR", {"image": "a"}),
        call("Calculator", {"expression": "1"}),
        call("OCR", {"image": "a"}),
        returned(),
        {"role": "assistant", "content": "[LagentAgentError] x", "error": FORMAT},
    ]
    errors = errors_of_dialogues(end_file(steps, [], [answer("a cat")]))
    assert counted(errors) == {
        "format_error": 2, "wrong_tool_name": 1, "invalid_json": 1, "invalid_arguments": 1, "valid_call_failed": 1,
        "redundant_call": 1, "repeated_tool": 1, "no_response": 1, "single_step_answer": 1,
    }  # fmt: skip
    assert [*errors.samples["no_response"]] == ["1"]


def errors_of(record):
    errors = Errors()
    add_record(record, errors)
    return counted(errors)


def record(steps):
    call = ReferenceStep(tool="count_objects", arguments={}, thought="count the trees")
    sample = plain_sample(
        "s1", reference=ReferenceTrajectory(steps=(call,)), toolset=("count_objects", "calculate")
    )
    return Record(
        sample=sample,
        mode="end-to-end",
        trajectory=Trajectory(steps=tuple(steps), termination="answered"),
    )


def made(tool, turn=0, error=None, thought="", **arguments):
    seen = (
        Observation(error=ErrorInfo(kind=error, message="x")) if error else Observation(result={})
    )
    call = ToolCall(tool=tool, arguments=arguments)
    return Step(turn=turn, kind="call", call=call, observation=seen, thought=thought)


def test_errors_of_our_own_runs():
    steps = [
        made("count_objects", image="a", thought="see the trees"),
        made("count_objects", image="a"),
        made("nope", turn=1, error="unknown_tool"),
        made("calculate", turn=2, error="invalid_argument"),
        made("calculate", turn=3, error="timeout"),
        Step(turn=4, kind="unparseable", text="?", reason="no call"),
        Step(turn=5, kind="answer", text="yes"),
    ]
    assert errors_of(record(steps)) == {
        "repeated_tool": 1, "redundant_call": 1, "several_calls": 1, "wrong_tool_name": 1, "invalid_arguments": 1,
        "valid_call_failed": 1, "format_error": 1,
    }  # fmt: skip


def test_errors_of_step_by_step_records():
    actions = (
        CallTools(
            calls=(
                ToolCall(tool="calculate", arguments={"expression": "1+1"}),
                ToolCall(tool="nope"),
            )
        ),
        Answer(text="yes"),
    )
    steps = tuple(
        ReferenceStep(tool="calculate", arguments={"expression": "1+1"}) for _ in range(3)
    )
    sample = plain_sample("s1", reference=ReferenceTrajectory(steps=steps), toolset=("calculate",))
    actions += (
        CallTools(calls=(ToolCall(tool="calculate", arguments={"x": 1}),)),
        Unparseable(text="?", reason="x"),
    )
    given = Record(sample=sample, mode="step-by-step", actions=actions)
    assert errors_of(given) == dict.fromkeys(
        (
            "several_calls",
            "wrong_tool_name",
            "single_step_answer",
            "invalid_arguments",
            "format_error",
        ),
        1,
    )
    halted = given.model_copy(update={"actions": (Halt(termination="length"),)})
    assert errors_of(halted) == {"format_error": 1}


STEP = {
    "step": 1,
    "task": "t",
    "tool_used": "OCR",
    "tool_output": "red cup",
    "thought": "look at the cup",
}
ANSWER = {"value": "3 cups", "justification": "counted"}
WHOLE = {"query": "q", "filename": "f", "reasoning_steps": [STEP], "final_answer": ANSWER}
GOLD = {
    "0": {"final_answer": {"value": "3 cups", "justification": ""}, "reasoning_steps": [[STEP]]}
}


RENAMED = {"step": 1, "task": "t", "tool": "OCR", "output": "cup", "thought": ""}
OTHER = {**STEP, "tool_used": "Solver", "tool_output": "x", "thought": "so", "task": "y"}


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({}, ()), ({"reasoning_steps": [RENAMED]}, ()),
        ({"reasoning_steps": "", "final_answer": {"value": "", "justification": ""}}, ("no_response",)),
        ({"reasoning_steps": []}, ("only_thought", "single_step_answer")),
        ({"reasoning_steps": [STEP, STEP]}, ("repeated_tool",)),
        ({"reasoning_steps": [{**STEP, "tool_used": "OCR, Solver"}]}, ("several_calls",)),
        ({"reasoning_steps": [{**STEP, "tool_used": "Eye", "tool_output": None}]},
         ("wrong_tool_name", "call_without_output")),
        ({"final_answer": "3 cups"}, ("invalid_format", "answer_in_invalid_format")),
        ({"final_answer": {"value": "two dogs", "justification": ""}}, ("no_answer_keyword",)),
        ({"reasoning_steps": [OTHER]}, ("no_step_keyword",)), (None, ("invalid_format",)),
    ],
)  # fmt: skip
def test_errors_of_agent_x(changes, errors):
    entry = "text" if changes is None else {**WHOLE, **changes}
    assert counted(errors_of_agent_x([{"0": entry}], GOLD)) == dict.fromkeys(errors, 1)


def test_keywords_are_told_by_a_fixed_rule():
    text = "The three cups are clearly on the table; a CUP, boxes and cherries"
    assert keywords(text) == ["cup", "table", "box", "cherry"]
    assert keywords("") == keywords("is of the 12 !?") == []
    assert len(keywords(" ".join(f"word{i}" for i in range(50)))) == 21
