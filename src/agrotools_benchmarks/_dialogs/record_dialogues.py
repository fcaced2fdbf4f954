"""Conversion of records to prediction files of GTA and ThinkGeo, and counts of error classes in such files.

Records are written as the published evaluation would have written them: output that is neither a call nor an answer
becomes a call of ``NoAction``, a call of a tool that was not offered becomes a call of ``InvalidAction``, unknown or
missing arguments are an ``ARGS_ERROR`` with the arguments as raw text, and an error of the tool itself is an
``API_ERROR``.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from agrotools.calling import get_tool
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
from agrotools.scoring.contracts import RecordErrors
from agrotools.scoring.error_classes import (
    IN_HEAD,
    IN_HEAD_REASON,
    KEYWORD_CLASSES,
    NOT_IN_CALLS,
    NOT_IN_STEPS,
    OF_SINGLE_SHOT,
    Errors,
    add_missed_keywords,
    arguments_key,
)
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools.text.loose_json import dumps
from agrotools_benchmarks._dialogs.lagent_format import (
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
from agrotools_benchmarks._dialogs.prediction_files import failure_after, read_message
from agrotools_benchmarks._dialogs.published_scorer import Dialogue

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
        predicted = [
            _of_action(action, record.sample, paths, from_raw_replies) for action in record.actions
        ]
        return Dialogue(record.sample.id, gold_replies, predicted, published_answer(record.sample))
    steps = record.trajectory and _of_trajectory(
        record.trajectory, record.sample, paths, from_raw_replies
    )
    return Dialogue(record.sample.id, [gold], [steps or []], published_answer(record.sample))


def prediction_entry(record: Record, protocol: Protocol) -> dict[str, Any]:
    """Return the record as an entry of a prediction file.

    Its prompts are the dialog up to each step, or the question (end-to-end).
    """
    prompts: list[Any] = [record.sample.query]
    if record.actions is not None:
        gold = _gold(record.sample, _published_paths(record.sample))
        dialog = [{"role": "user", "content": record.sample.query}, *gold]
        prompts = [
            dialog[:place] for place, message in enumerate(dialog) if message["role"] == "assistant"
        ]
    dialogue = dialogue_of(record, protocol)
    return {
        "gold": dialogue.gold,
        "prediction": dialogue.prediction,
        "origin_prompt": prompts,
        "steps": [],
    }


def published_answer(sample: Sample) -> Any:
    """Return ``gt_answer`` in its published form."""
    slot = sample.answer[0]
    if isinstance(slot, KeywordsSlot):
        return {
            "whitelist": [*map(list, slot.whitelist)],
            "blacklist": [*map(list, slot.blacklist)] or None,
        }
    return list(slot.values) if isinstance(slot, ReferenceTextsSlot) else None


def _gold(sample: Sample, paths: Mapping[str, str]) -> list[Message]:
    messages: list[Message] = []
    for step in sample.reference.steps if sample.reference else ():
        arguments = {name: literal_value(value) for name, value in step.arguments.items()}
        messages.append(_call(step.tool, rename_texts(arguments, paths)))
        messages.append(
            {"role": "tool", "name": step.tool, "content": returned_content(step.observation)}
        )
    return [*messages, {"role": "assistant", "content": str(sample.metadata.get("final_text", ""))}]


def _of_action(
    action: Action, sample: Sample, paths: Mapping[str, str], from_raw_replies: bool
) -> Message:
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
        return _call(
            INVALID_ACTION,
            {"text": parsed_reply.text},
            ("API_ERROR", parsed_reply.text or CHECK_NAME),
        )
    tool = parsed_reply.tool.partition(".")[0]
    call_arguments = arguments_in(parsed_reply.text)
    if failed is None:
        return _call(tool, call_arguments)
    kind = "ARGS_ERROR" if is_argument_failure(failed.message) else "API_ERROR"
    is_raw = call_arguments is None or kind == "ARGS_ERROR"
    return _call(tool, parsed_reply.text if is_raw else call_arguments, (kind, failed.message))


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
    return (
        _call(call.tool, dumps(arguments), ("ARGS_ERROR", fault))
        if fault
        else _call(call.tool, arguments)
    )


def _argument_fault(call: ToolCall) -> str:
    """Return the message of the published evaluation for unknown or missing arguments; empty if there are none."""
    try:
        schema = get_tool(call.tool).spec.parameters
    except UsageError:
        return ""
    known, required = schema.get("properties"), schema.get("required")
    names = known if isinstance(known, dict) else call.arguments
    needed = map(str, required) if isinstance(required, list) else ()
    failure = name_failure(names, needed, call.arguments)
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
    paths = (
        {name: str(path) for name, path in published_paths.items()}
        if isinstance(published_paths, dict)
        else {}
    )
    return {**{file.name: file.path for file in sample.files}, **paths}


def errors_of_dialogues(samples: Sequence[Dialogue]) -> Errors:
    """Count the errors in prediction files of GTA and ThinkGeo, of either mode."""
    errors = Errors()
    errors.skip((IN_HEAD,), IN_HEAD_REASON)
    errors.skip(OF_SINGLE_SHOT, "these predictions are made call by call")
    errors.skip(
        KEYWORD_CLASSES,
        "counted where answers are written with their steps (Agent-X) and in records",
    )
    for sample in samples:
        add_dialogue(sample, errors)
    return errors


def add_dialogue(sample: Dialogue, errors: Errors) -> None:
    """Count the errors of one dialogue, of either mode."""
    errors.total += 1
    prediction: list[Any] = sample.prediction if is_list(sample.prediction) else []
    by_step = not any(map(is_list, prediction))
    first: Any = prediction[0] if prediction else None
    messages: list[Any] = prediction if by_step else first if is_list(first) else [first]
    gold: Any = (
        sample.gold if by_step else sample.gold[0] if is_list(sample.gold) and sample.gold else []
    )
    is_call = [
        is_object(message) and "tool_calls" in message
        for message in (gold if is_list(gold) else ())
    ]
    _errors_of_messages(str(sample.key), messages, is_call, errors, by_step=by_step)


def _errors_of_messages(
    key: str, messages: list[Any], gold: list[bool], errors: Errors, *, by_step: bool
) -> None:
    """Count the errors of messages. ``gold``: for each gold message whether it is a call."""
    called: list[tuple[str, str]] = []
    answered = False
    for index, message in enumerate(messages):
        if is_object(message) and message.get("role") in ("tool", "user", "system"):
            continue
        meta: Any = message.get("meta") if is_object(message) else None
        if is_object(meta) and meta.get("type") == "thought":
            continue
        errors.steps += 1
        if is_object(message) and "tool_calls" in message:
            _errors_of_call(
                key, message, errors, called, failure_after(messages, index), by_step=by_step
            )
        elif (read := read_message(message)).kind != "answer" or read.failed:
            errors.add("format_error", key)
        else:
            answered = answered or bool(read.text.strip())
            if by_step and index < len(gold) and gold[index]:
                errors.add("single_step_answer", key)
    if not by_step and answered and not called and any(gold):
        errors.add("single_step_answer", key)
    read = map(read_message, messages)
    if (
        not answered
        and not called
        and all(each.kind == "answer" and not each.failed for each in read)
    ):
        errors.add("no_response", key)
    names = [name for name, _ in called]
    if not by_step and any(one == other for one, other in pairwise(names)):
        errors.add("repeated_tool", key)


def _errors_of_call(
    key: str,
    message: Any,
    errors: Errors,
    called: list[tuple[str, str]],
    failure: str | None,
    *,
    by_step: bool,
) -> None:
    """Count the errors of a call. ``failure``: class of an error that only the text of its result tells."""
    calls: Any = message["tool_calls"]
    function: Any = (
        calls[0].get("function") if is_list(calls) and calls and is_object(calls[0]) else None
    )
    if not is_object(function) or not is_text(function.get("name")):
        errors.add("format_error", key)
        return
    errors.add("several_calls", key, int(len(calls) > 1))
    name, arguments = str(function["name"]), function.get("arguments")
    error: Any = message.get("error")
    if not (is_object(arguments) or is_text(arguments)) or name == NO_ACTION:
        errors.add("format_error", key)
        return
    if name == INVALID_ACTION:
        errors.add("wrong_tool_name", key)
    elif error is not None:
        errors.add(_class_of(error, arguments), key)
    elif failure is not None:
        errors.add(failure, key)
    failed = error is not None or failure is not None
    call = (name, arguments_key(arguments))
    if not by_step and not failed and call in called:
        errors.add("redundant_call", key)
    called.append(call if not failed else (name, f"failed {len(called)}"))


def _class_of(error: Any, arguments: Any) -> str:
    """Return the class of a failed call, from the error type and message that the published evaluation writes."""
    kind: Any = error.get("type") if is_object(error) else None
    message: Any = error.get("msg") if is_object(error) else error
    if kind == "ARGS_ERROR" or not is_object(arguments):
        is_name_error = is_text(message) and message.startswith(
            ("unknown arguments", "missing required arguments")
        )
        return "invalid_arguments" if is_name_error else "invalid_json"
    return "valid_call_failed"


def _add_replies(record: Record, errors: Errors) -> None:
    """Count the errors of a record of the protocol lagent from the model's raw replies, as in prediction files."""
    add_dialogue(dialogue_of(record, "lagent"), errors)
    add_missed_keywords(record, errors)


OF_RUNS = RecordErrors(_add_replies, NOT_IN_CALLS)
# Calls that failed before their tool would run are known in step-by-step mode too.
OF_STEPS = RecordErrors(_add_replies, {**NOT_IN_CALLS, **NOT_IN_STEPS})
