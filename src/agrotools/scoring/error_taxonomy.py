"""Counts errors by the classes of GTA, ThinkGeo and Agent-X: in their prediction files, and in records of our own runs.

Nothing here raises on what a model wrote: a malformed message is an error of the class ``format_error``.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from agrotools.core import Answer, CallTools, Halt, Record, Step, ToolError, ToolErrorKind, Unparseable, UsageError
from agrotools.scoring.error_classes import Errors
from agrotools.scoring.loose import is_list, is_object, is_text
from agrotools.scoring.nouns import keywords
from agrotools.scoring.reference.gta_family import Dialogue
from agrotools.tools import get_tool

_NO_ACTION, _UNKNOWN_TOOL = "NoAction", "InvalidAction"
_OF_SINGLE_SHOT = ("call_without_output", "invalid_format", "answer_in_invalid_format")
_OF_KEYWORDS = ("no_answer_keyword", "no_step_keyword")
_ARGUMENT_KINDS: frozenset[ToolErrorKind] = frozenset({"invalid_argument", "missing_metadata"})


def errors_of_dialogues(samples: Sequence[Dialogue]) -> Errors:
    """Errors in the prediction files of GTA and ThinkGeo, of either mode."""
    found = Errors(total=len(samples))
    found.skip(_OF_SINGLE_SHOT, "these predictions are made call by call")
    found.skip(_OF_KEYWORDS, "counted where answers are written with their steps (Agent-X) and in records")
    for sample in samples:
        key = str(sample.key)
        prediction: list[Any] = sample.prediction if is_list(sample.prediction) else []
        by_step = not any(map(is_list, prediction))
        first: Any = prediction[0] if prediction else None
        messages: list[Any] = prediction if by_step else first if is_list(first) else [first]
        _errors_of_messages(key, messages, _gold_calls(sample.gold, by_step), found, by_step=by_step)
    return found


def _gold_calls(gold: Any, by_step: bool) -> list[bool]:
    """For each message of the gold whether it is a call."""
    messages: Any = gold if by_step else gold[0] if is_list(gold) and gold else []
    listed: Any = messages if is_list(messages) else []
    return [is_object(message) and "tool_calls" in message for message in listed]


def _errors_of_messages(key: str, messages: list[Any], gold: list[bool], found: Errors, *, by_step: bool) -> None:
    called: list[tuple[str, str]] = []
    answered = False
    for index, message in enumerate(messages):
        if is_object(message) and message.get("role") in ("tool", "user", "system"):
            continue
        found.steps += 1
        meta: Any = message.get("meta") if is_object(message) else None
        if is_object(meta) and meta.get("type") == "thought":
            found.steps -= 1
            continue
        if is_object(message) and "tool_calls" in message:
            _errors_of_call(key, message, found, called, by_step=by_step)
        elif not is_object(message) or not is_text(message.get("content")) or message.get("error") is not None:
            found.add("format_error", key)
        else:
            answered = answered or bool(message["content"].strip())
            if by_step and index < len(gold) and gold[index]:
                found.add("single_step_answer", key)
    if not by_step and answered and not called and any(gold):
        found.add("single_step_answer", key)
    if not answered and not called and not messages:
        found.add("no_response", key)
    names = [name for name, _ in called]
    if not by_step and any(one == other for one, other in pairwise(names)):
        found.add("repeated_tool", key)


def _errors_of_call(key: str, message: Any, found: Errors, called: list[tuple[str, str]], *, by_step: bool) -> None:
    calls: Any = message["tool_calls"]
    function: Any = calls[0].get("function") if is_list(calls) and calls and is_object(calls[0]) else None
    if not is_object(function) or not is_text(function.get("name")):
        found.add("format_error", key)
        return
    found.add("several_calls", key, int(len(calls) > 1))
    name: str = function["name"]
    arguments: Any = function.get("arguments")
    error: Any = message.get("error")
    if name == _NO_ACTION:
        found.add("format_error", key)
        return
    if name == _UNKNOWN_TOOL:
        found.add("wrong_tool_name", key)
    elif error is not None:
        found.add(_class_of(error, arguments), key)
    call = (name, _said(arguments))
    if not by_step and error is None and call in called:
        found.add("redundant_call", key)
    called.append(call if error is None else (name, f"failed {len(called)}"))


def _class_of(error: Any, arguments: Any) -> str:
    """The class of a failed call by the type and the message that the published evaluation writes."""
    kind: Any = error.get("type") if is_object(error) else None
    said: Any = error.get("msg") if is_object(error) else error
    if kind == "ARGS_ERROR" or not is_object(arguments):
        named = is_text(said) and said.startswith(("unknown arguments", "missing required arguments"))
        return "invalid_arguments" if named else "invalid_json"
    return "tool_error"


def _said(arguments: Any) -> str:
    try:
        return json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(arguments)[:10_000]


# --- records of our own runs ---------------------------------------------------------------------------------------


def errors_of_records(records: Iterable[Record]) -> Errors:
    """Errors in records of any mode; those without a reply are left out.

    In step-by-step no tool is run: whether arguments would be taken is asked of the tool's schema, and errors inside of
    tools are not to be seen.
    """
    found = Errors()
    found.skip(_OF_SINGLE_SHOT, "these records are made call by call")
    for record in records:
        if record.invalid is not None:
            continue
        found.total += 1
        if record.actions is not None:
            _errors_of_actions(record, found)
        elif record.trajectory is not None:
            _errors_of_trajectory(record, found)
            _missed_keywords(record, found)
    return found


def _errors_of_actions(record: Record, found: Errors) -> None:
    key = record.sample.id
    due = len(record.sample.reference.steps) if record.sample.reference else 0
    for index, action in enumerate(record.actions or ()):
        found.steps += 1
        if isinstance(action, Unparseable | Halt):
            found.add("format_error", key)
        elif isinstance(action, Answer):
            found.add("single_step_answer", key, int(index < due))
        else:
            _errors_of_call_action(record, action, found)


def _errors_of_call_action(record: Record, action: CallTools, found: Errors) -> None:
    key = record.sample.id
    found.add("several_calls", key, int(len(action.calls) > 1))
    for call in action.calls:
        if call.tool not in record.sample.toolset:
            found.add("wrong_tool_name", key)
            continue
        try:
            get_tool(call.tool).validated(call.arguments)
        except ToolError:
            found.add("invalid_arguments", key)
        except (UsageError, RecursionError):
            continue


def _errors_of_trajectory(record: Record, found: Errors) -> None:
    assert record.trajectory is not None
    key, steps = record.sample.id, record.trajectory.steps
    found.steps += len(steps)
    found.add("format_error", key, sum(step.kind == "unparseable" for step in steps))
    worked: list[tuple[str, str]] = []
    turns: dict[int, int] = {}
    for step in record.trajectory.calls:
        turns[step.turn] = turns.get(step.turn, 0) + 1
        if error := _class_of_step(step):
            found.add(error, key)
        elif step.call is not None:
            call = (step.call.tool, _said(step.call.arguments))
            found.add("redundant_call", key, int(call in worked))
            worked.append(call)
    found.add("several_calls", key, sum(count > 1 for count in turns.values()))
    names = [step.call.tool for step in record.trajectory.calls if step.call]
    if any(one == other for one, other in pairwise(names)):
        found.add("repeated_tool", key)
    wanted = record.mode != "no-tool" and bool(record.sample.reference and record.sample.reference.steps)
    answer = record.trajectory.answer
    if wanted and answer is not None and not names:
        found.add("single_step_answer", key)
    if answer is None and not names:
        found.add("only_thought" if any(step.text.strip() for step in steps) else "no_response", key)


def _class_of_step(step: Step) -> str | None:
    """The class of a call's error; None where it worked."""
    error = step.observation.error if step.observation else None
    if error is None:
        return None
    if error.kind == "unknown_tool":
        return "wrong_tool_name"
    return "invalid_arguments" if error.kind in _ARGUMENT_KINDS else "tool_error"


def _missed_keywords(record: Record, found: Errors) -> None:
    """Whether the answer has a keyword of a right text, and the thoughts one of the reference's thoughts."""
    assert record.trajectory is not None
    key, answer = record.sample.id, record.trajectory.answer
    texts = [text for slot in record.sample.answer for text in _texts_of(slot)]
    if answer is not None and (wanted := keywords(" ".join(texts))):
        found.add("no_answer_keyword", key, int(not any(word in answer.lower() for word in wanted)))
    reference = record.sample.reference.steps if record.sample.reference else ()
    if steps := [step for step in record.trajectory.steps if step.call]:
        gold = keywords(" ".join(f"{step.tool} {step.thought}" for step in reference))
        said = " ".join(f"{step.call.tool} {step.thought}" for step in steps if step.call).lower()
        found.add("no_step_keyword", key, int(bool(gold) and not any(word in said for word in gold)))


def _texts_of(slot: Any) -> list[str]:
    """Right answers of a slot that are free text."""
    if slot.type == "open_text":
        return [phrase for fact in slot.facts for phrase in fact.phrases]
    if slot.type == "reference_text":
        return [slot.value]
    if slot.type == "reference_texts":
        return list(slot.values)
    return [alias for group in slot.whitelist for alias in group] if slot.type == "keywords" else []
