"""Conversion of records to prediction files of GTA and ThinkGeo.

Records are written as the published evaluation would have written them: output that is neither a call nor an answer
becomes a call of ``NoAction``, a call of a tool that was not offered becomes a call of ``InvalidAction``, unknown or
missing arguments are an ``ARGS_ERROR`` with the arguments as raw text, and an error of the tool itself is an
``API_ERROR``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agrotools.benchmarks._dialogs.lagent_format import (
    CHECK_NAME,
    FOLLOW_FORMAT,
    INVALID_ACTION,
    NO_ACTION,
    arguments_in,
    is_argument_failure,
    name_failure,
    read_reply,
    strip_reply,
)
from agrotools.benchmarks._dialogs.published_scorer import Dialogue
from agrotools.core import (
    Action,
    Answer,
    CallTools,
    ErrorInfo,
    Halt,
    KeywordsSlot,
    Observation,
    Protocol,
    Record,
    ReferenceTextsSlot,
    Reply,
    Sample,
    ToolCall,
    Trajectory,
    UsageError,
)
from agrotools.core.record import literal_value, rename_texts
from agrotools.text.loose_json import dumps
from agrotools.tools import get_tool

Message = dict[str, Any]


def in_file_order(records: Sequence[Record]) -> list[Record]:
    """Return the records in the order of the published file."""

    def place(record: Record) -> tuple[int, str]:
        position = record.sample.metadata.get("position")
        return (position if isinstance(position, int) else 1 << 30, record.sample.id)

    return sorted(records, key=place)


def returned_content(observation: Observation | None) -> dict[str, Any]:
    """Return the result of a call as in prediction files: its type (image or text) and its content."""
    result = (observation.result if observation is not None else None) or {}
    kind = "image" if "image" in result else "text"
    content = result.get(kind) if result else ""
    return {"type": kind, "content": content if isinstance(content, str) else dumps(dict(result))}


def dialogue_of(record: Record, protocol: Protocol = "react") -> Dialogue:
    """Convert the record to a sample of a prediction file of GTA or ThinkGeo, step-by-step or end-to-end.

    With ``protocol`` lagent the model's raw replies are parsed as in the published evaluation; with any other protocol
    the actions that agrotools parsed are used.
    """
    paths = _published_paths(record.sample)
    gold = _gold(record.sample, paths)
    from_raw_replies = protocol == "lagent"
    if record.actions is not None:
        gold_replies = [message for message in gold if message["role"] == "assistant"]
        predicted = [_of_action(action, record.sample, paths, from_raw_replies) for action in record.actions]
        return Dialogue(record.sample.id, gold_replies, predicted, published_answer(record.sample))
    steps = (
        _of_trajectory(record.trajectory, record.sample, paths, from_raw_replies)
        if record.trajectory is not None
        else []
    )
    return Dialogue(record.sample.id, [gold], [steps], published_answer(record.sample))


def prediction_entry(record: Record, protocol: Protocol) -> dict[str, Any]:
    """Return the record as an entry of a prediction file.

    Its prompts are the dialog up to each step, or the question (end-to-end).
    """
    prompts: list[Any] = [record.sample.query]
    if record.actions is not None:
        gold = _gold(record.sample, _published_paths(record.sample))
        dialog = [{"role": "user", "content": record.sample.query}, *gold]
        prompts = [dialog[:place] for place, message in enumerate(dialog) if message["role"] == "assistant"]
    dialogue = dialogue_of(record, protocol)
    return {"gold": dialogue.gold, "prediction": dialogue.prediction, "origin_prompt": prompts, "steps": []}


def published_answer(sample: Sample) -> Any:
    """Return ``gt_answer`` in its published form."""
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
        messages.append(_call(step.tool, rename_texts(arguments, paths)))
        messages.append({"role": "tool", "name": step.tool, "content": returned_content(step.observation)})
    return [*messages, {"role": "assistant", "content": str(sample.metadata.get("final_text", ""))}]


def _of_action(action: Action, sample: Sample, paths: Mapping[str, str], from_raw_replies: bool) -> Message:
    if from_raw_replies and action.reply is not None and not isinstance(action, Halt):
        return _of_reply(action.reply, action.refused if isinstance(action, CallTools) else None)
    if isinstance(action, Answer):
        return {"role": "assistant", "content": action.text}
    if isinstance(action, CallTools):
        return _checked_call(action.calls[0], sample, paths)
    return _no_action()


def _of_reply(reply: Reply, failed: ErrorInfo | None) -> Message:
    """Return the message that the published evaluation parses from a reply; ``failed``: error of its call, if any."""
    parsed_reply = read_reply(strip_reply(reply.text))
    if parsed_reply.kind == "answer":
        return {"role": "assistant", "content": parsed_reply.text}
    if parsed_reply.kind == "nothing":
        return _no_action()
    if not parsed_reply.tool or (failed is not None and failed.kind == "unknown_tool"):
        return _call(INVALID_ACTION, {"text": parsed_reply.text}, ("API_ERROR", parsed_reply.text or CHECK_NAME))
    tool = parsed_reply.tool.partition(".")[0]
    call_arguments = arguments_in(parsed_reply.text)
    if failed is None:
        return _call(tool, call_arguments)
    if call_arguments is None or is_argument_failure(failed.message):
        kind = "ARGS_ERROR" if is_argument_failure(failed.message) else "API_ERROR"
        return _call(tool, parsed_reply.text, (kind, failed.message))
    return _call(tool, call_arguments, ("API_ERROR", failed.message))


def _of_trajectory(
    trajectory: Trajectory, sample: Sample, paths: Mapping[str, str], from_raw_replies: bool
) -> list[Message]:
    messages: list[Message] = []
    for step in trajectory.steps:
        failed = step.observation.error if step.observation else None
        if from_raw_replies and step.reply is not None:
            message = _of_reply(step.reply, failed)
        elif step.kind == "answer":
            message = {"role": "assistant", "content": step.text}
        elif step.call is None:
            message = _no_action()
        else:
            message = _checked_call(step.call, sample, paths)
            if failed is not None and "error" not in message:
                message["error"] = {"type": "API_ERROR", "msg": failed.message}
        messages.append(message)
        if step.kind != "answer":
            returned = None if "error" in message else [returned_content(step.observation)]
            messages.append({"role": "tool", "content": returned})
    # The sample ended before its first step: the published client continues with an empty reply.
    return messages or [_no_action(), {"role": "tool", "content": None}]


def _checked_call(call: ToolCall, sample: Sample, paths: Mapping[str, str]) -> Message:
    arguments = rename_texts(call.arguments, paths)
    if call.tool not in sample.toolset:
        raw = dumps(arguments)
        return _call(INVALID_ACTION, {"text": raw}, ("API_ERROR", raw))
    fault = _argument_fault(call)
    return _call(call.tool, dumps(arguments), ("ARGS_ERROR", fault)) if fault else _call(call.tool, arguments)


def _argument_fault(call: ToolCall) -> str:
    """Return the message of the published evaluation for unknown or missing arguments; empty if there are none."""
    try:
        schema = get_tool(call.tool).spec.parameters
    except UsageError:
        return ""
    known, required = schema.get("properties"), schema.get("required")
    failure = name_failure(
        known if isinstance(known, dict) else call.arguments,
        map(str, required) if isinstance(required, list) else (),
        call.arguments,
    )
    return failure.message if failure else ""


def _call(tool: str, arguments: Any, error: tuple[str, str] | None = None) -> Message:
    message: Message = {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": {"name": tool, "arguments": arguments}}],
    }
    return message if error is None else {**message, "error": {"type": error[0], "msg": error[1]}}


def _no_action() -> Message:
    return _call(NO_ACTION, {"text": ""}, ("API_ERROR", FOLLOW_FORMAT))


def _published_paths(sample: Sample) -> dict[str, str]:
    """Return the published path of each file, by its name in the sample."""
    published_paths = sample.metadata.get("published_paths")
    paths = {name: str(path) for name, path in published_paths.items()} if isinstance(published_paths, dict) else {}
    return {**{file.name: file.path for file in sample.files}, **paths}
