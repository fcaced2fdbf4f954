from agrotools.benchmarks._dialogs.record_dialogues import errors_of_dialogues
from agrotools.benchmarks.agent_x.predictions import errors_of_agent_x
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
    Termination,
    ToolCall,
    Trajectory,
    Unparseable,
)
from agrotools.scoring.error_classes import Errors, add_record, keywords
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
        "format_error": 2, "wrong_tool_name": 1, "invalid_json": 1, "invalid_arguments": 1, "tool_error": 1,
        "redundant_call": 1, "repeated_tool": 1, "no_response": 1, "single_step_answer": 1,
    }  # fmt: skip
    assert [*errors.samples["no_response"]] == ["1"]


def errors_of_records(records):
    errors = Errors()
    for each in records:
        add_record(each, errors)
    return errors


def record(steps, termination: Termination = "answered", **changes):
    reference = ReferenceTrajectory(
        steps=(ReferenceStep(tool="count_objects", arguments={}, thought="count the trees"),)
    )
    sample = plain_sample("s1", reference=reference, toolset=("count_objects", "calculate"))
    trajectory = Trajectory(steps=tuple(steps), termination=termination)
    return Record(sample=sample, mode="end-to-end", trajectory=trajectory, **changes)


def made(tool, turn=0, error=None, thought="", **arguments):
    observation = Observation(error=ErrorInfo(kind=error, message="x")) if error else Observation(result={})
    return Step(
        turn=turn, kind="call", call=ToolCall(tool=tool, arguments=arguments), observation=observation, thought=thought
    )


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
    assert counted(errors_of_records([record(steps)])) == {
        "repeated_tool": 1, "redundant_call": 1, "several_calls": 1, "wrong_tool_name": 1, "invalid_arguments": 1,
        "tool_error": 1, "format_error": 1,
    }  # fmt: skip


def test_errors_of_step_by_step_records():
    actions = (
        CallTools(calls=(ToolCall(tool="calculate", arguments={"expression": "1+1"}), ToolCall(tool="nope"))),
        Answer(text="yes"),
    )
    steps = tuple(ReferenceStep(tool="calculate", arguments={"expression": "1+1"}) for _ in range(3))
    sample = plain_sample("s1", reference=ReferenceTrajectory(steps=steps), toolset=("calculate",))
    actions += (CallTools(calls=(ToolCall(tool="calculate", arguments={"x": 1}),)), Unparseable(text="?", reason="x"))
    given = Record(sample=sample, mode="step-by-step", actions=actions)
    assert counted(errors_of_records([given])) == {
        "several_calls": 1,
        "wrong_tool_name": 1,
        "single_step_answer": 1,
        "invalid_arguments": 1,
        "format_error": 1,
    }
    halted = given.model_copy(update={"actions": (Halt(termination="length"),)})
    assert counted(errors_of_records([halted])) == {"format_error": 1}


STEP = {"step": 1, "task": "t", "tool_used": "OCR", "tool_output": "red cup", "thought": "look at the cup"}
WHOLE = {
    "query": "q",
    "filename": "f",
    "reasoning_steps": [STEP],
    "final_answer": {"value": "3 cups", "justification": "counted"},
}
GOLD = {"0": {"final_answer": {"value": "3 cups", "justification": ""}, "reasoning_steps": [[STEP]]}}


def errors_in(entry, data=GOLD):
    return counted(errors_of_agent_x([{"0": entry}], data))


def test_errors_of_agent_x():
    assert errors_in(WHOLE) == {}
    assert errors_in({**WHOLE, "reasoning_steps": "", "final_answer": {"value": "", "justification": ""}}) == {
        "no_response": 1
    }
    assert errors_in({**WHOLE, "reasoning_steps": []}) == {"only_thought": 1, "single_step_answer": 1}
    assert errors_in({**WHOLE, "reasoning_steps": [STEP, STEP]}) == {"repeated_tool": 1}
    renamed = {"step": 1, "task": "t", "tool": "OCR", "output": "cup", "thought": ""}
    assert errors_in({**WHOLE, "reasoning_steps": [renamed]}) == {}
    assert errors_in({**WHOLE, "reasoning_steps": [{**STEP, "tool_used": "OCR, Solver"}]}) == {"several_calls": 1}
    assert errors_in({**WHOLE, "reasoning_steps": [{**STEP, "tool_used": "Eye", "tool_output": None}]}) == {
        "wrong_tool_name": 1,
        "call_without_output": 1,
    }
    assert errors_in({**WHOLE, "final_answer": "3 cups"}) == {"invalid_format": 1, "answer_in_invalid_format": 1}
    assert errors_in({**WHOLE, "final_answer": {"value": "two dogs", "justification": ""}}) == {"no_answer_keyword": 1}
    assert errors_in(
        {
            **WHOLE,
            "reasoning_steps": [{**STEP, "tool_used": "Solver", "tool_output": "x", "thought": "so", "task": "y"}],
        }
    ) == {"no_step_keyword": 1}
    assert errors_in("text") == {"invalid_format": 1}


def test_keywords_are_told_by_a_fixed_rule():
    assert keywords("The three cups are clearly on the table; a CUP, boxes and cherries") == [
        "cup",
        "table",
        "box",
        "cherry",
    ]
    assert keywords("") == keywords("is of the 12 !?") == []
    assert len(keywords(" ".join(f"word{i}" for i in range(50)))) == 21
