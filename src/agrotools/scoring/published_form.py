"""Records in the form of the prediction files that GTA's and ThinkGeo's scorers read, and Agent-X's.

What a model did is told as their evaluation would have written it: output that is neither a call nor an answer is a
call of ``NoAction``, a call of a tool that was not offered one of ``InvalidAction``; arguments that the tool does not
take, or lacks, are an ``ARGS_ERROR`` with the arguments as raw text, a tool's own error an ``API_ERROR``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from agrotools.core import (
    Action,
    Answer,
    Arguments,
    CallTools,
    KeywordsSlot,
    Observation,
    Record,
    ReferenceTextsSlot,
    Sample,
    ToolCall,
    Trajectory,
    UsageError,
)
from agrotools.core.refs import literal_value
from agrotools.scoring.reference.gta_family import Dialogue
from agrotools.text.loose_json import dumps
from agrotools.tools import get_tool

Message = dict[str, Any]
_FORMAT = "Please follow the format"
_NO_TOOL = "The action is invalid, please check the action name."


def dialogue_of(record: Record) -> Dialogue:
    """The record as a sample of a prediction file of GTA or ThinkGeo, step by step or end to end."""
    paths = _published_paths(record.sample)
    gold = _gold(record.sample, paths)
    if record.actions is not None:
        own = [message for message in gold if message["role"] == "assistant"]
        predicted = [_of_action(action, record.sample, paths) for action in record.actions]
        return Dialogue(record.sample.id, own, predicted, published_answer(record.sample))
    steps = _of_trajectory(record.trajectory, record.sample, paths) if record.trajectory is not None else []
    return Dialogue(record.sample.id, [gold], [steps], published_answer(record.sample))


def prediction_entry(dialogue: Dialogue) -> dict[str, Any]:
    """The dialogue as an entry of a prediction file."""
    return {"gold": dialogue.gold, "prediction": dialogue.prediction, "origin_prompt": [], "steps": []}


def published_answer(sample: Sample) -> Any:
    """``gt_answer`` as it was published."""
    slot = sample.answer[0]
    if isinstance(slot, KeywordsSlot):
        return {
            "whitelist": [list(group) for group in slot.whitelist],
            "blacklist": [list(g) for g in slot.blacklist] or None,
        }
    return list(slot.values) if isinstance(slot, ReferenceTextsSlot) else None


def _gold(sample: Sample, paths: Mapping[str, str]) -> list[Message]:
    messages: list[Message] = []
    for step in sample.reference.steps if sample.reference else ():
        arguments = {name: literal_value(value) for name, value in step.arguments.items()}
        messages.append(_call(step.tool, _restored(arguments, paths)))
        messages.append({"role": "tool", "name": step.tool, "content": _returned(step.observation)})
    return [*messages, {"role": "assistant", "content": str(sample.metadata.get("final_text", ""))}]


def _of_action(action: Action, sample: Sample, paths: Mapping[str, str]) -> Message:
    if isinstance(action, Answer):
        return {"role": "assistant", "content": action.text}
    if isinstance(action, CallTools):
        return _checked_call(action.calls[0], sample, paths)
    return _no_action()


def _of_trajectory(trajectory: Trajectory, sample: Sample, paths: Mapping[str, str]) -> list[Message]:
    messages: list[Message] = []
    for step in trajectory.steps:
        if step.kind == "answer":
            messages.append({"role": "assistant", "content": step.text})
        elif step.call is None:
            messages += [_no_action(), {"role": "tool", "content": None}]
        else:
            message = _checked_call(step.call, sample, paths)
            if step.observation is not None and step.observation.error is not None and "error" not in message:
                message["error"] = {"type": "API_ERROR", "msg": step.observation.error.message}
            returned = None if "error" in message else [_returned(step.observation)]
            messages += [message, {"role": "tool", "content": returned}]
    return messages


def _checked_call(call: ToolCall, sample: Sample, paths: Mapping[str, str]) -> Message:
    arguments = _restored(call.arguments, paths)
    if call.tool not in sample.toolset:
        raw = dumps(call.arguments)
        return _call("InvalidAction", {"text": raw}, ("API_ERROR", raw or _NO_TOOL))
    fault = _argument_fault(call)
    return _call(call.tool, dumps(arguments), ("ARGS_ERROR", fault)) if fault else _call(call.tool, arguments)


def _argument_fault(call: ToolCall) -> str:
    """What the published evaluation says of arguments that the tool does not take, or that are missing."""
    try:
        schema = get_tool(call.tool).spec.parameters
    except UsageError:
        return ""
    known = schema.get("properties")
    required = schema.get("required")
    unknown = [name for name in call.arguments if isinstance(known, dict) and name not in known]
    if unknown:
        return f"unknown arguments: {unknown}"
    missing = [name for name in required or () if name not in call.arguments] if isinstance(required, list) else []
    return f"missing required arguments: {missing}" if missing else ""


def _call(tool: str, arguments: Any, error: tuple[str, str] | None = None) -> Message:
    message: Message = {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": {"name": tool, "arguments": arguments}}],
    }
    return message if error is None else {**message, "error": {"type": error[0], "msg": error[1]}}


def _no_action() -> Message:
    return _call("NoAction", {"text": ""}, ("API_ERROR", _FORMAT))


def _returned(observation: Observation | None) -> dict[str, Any]:
    result = (observation.result if observation is not None else None) or {}
    kind = "image" if "image" in result else "text"
    content = result.get(kind)
    return {"type": kind, "content": content if isinstance(content, str) else dumps(dict(result))}


def _published_paths(sample: Sample) -> dict[str, str]:
    """By the name of a file in the sample, the path that its benchmark publishes."""
    given = sample.metadata.get("published_paths")
    told = {name: str(path) for name, path in given.items()} if isinstance(given, dict) else {}
    return {**{file.name: file.path for file in sample.files}, **told}


def _restored(arguments: Arguments, paths: Mapping[str, str]) -> dict[str, JsonValue]:
    return {name: paths.get(value, value) if isinstance(value, str) else value for name, value in arguments.items()}


def agent_x_prediction(record: Record) -> dict[str, Any]:
    """The record as the object that Agent-X keeps of a prediction: steps with what the tools returned, and the answer.

    Agent-X has a model make the outputs up; here they are what the tools gave.
    """
    sample = record.sample
    steps: list[dict[str, Any]] = []
    for number, step in enumerate(record.trajectory.calls if record.trajectory else (), start=1):
        assert step.call is not None
        returned = "" if step.observation is None or step.observation.error else _returned(step.observation)["content"]
        steps.append(
            {
                "step": number,
                "task": step.thought,
                "tool_used": step.call.tool,
                "tool_output": returned,
                "thought": step.thought,
            }
        )
    answer = record.trajectory.answer if record.trajectory else None
    return {
        "query": sample.query,
        "filename": str(sample.metadata.get("file_path", "")),
        "reasoning_steps": steps or "",
        "final_answer": {"value": answer or "", "justification": ""},
    }


def agent_x_gold(sample: Sample) -> dict[str, Any]:
    """The sample as Agent-X publishes it."""
    return {
        "query": sample.query,
        "query_type": sample.metadata.get("query_type", ""),
        "reasoning_steps": sample.metadata.get("reasoning_steps", []),
        "final_answer": sample.metadata.get("final_answer", {}),
        "tool_metadata": {name: _described(name) for name in sample.toolset},
    }


def _described(name: str) -> dict[str, str]:
    try:
        return {"name": name, "description": get_tool(name).spec.description}
    except UsageError:
        return {"name": name}


def in_file_order(records: Sequence[Record]) -> list[Record]:
    """The records in the order of the published file."""

    def position(record: Record) -> tuple[int, str]:
        given = record.sample.metadata.get("position")
        return (given if isinstance(given, int) else 1 << 30, record.sample.id)

    return sorted(records, key=position)
