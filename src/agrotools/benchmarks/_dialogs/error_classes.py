"""Counts of errors by the classes of GTA, ThinkGeo and Agent-X in dialogues: of prediction files, and of lagent runs.

Nothing here raises on what a model wrote: a malformed message is an error of the class ``format_error``.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from agrotools.benchmarks._dialogs.lagent_format import INVALID_ACTION, NO_ACTION
from agrotools.benchmarks._dialogs.messages import read_message
from agrotools.benchmarks._dialogs.published_scorer import Dialogue
from agrotools.benchmarks._dialogs.record_dialogues import dialogue_of
from agrotools.core import Record
from agrotools.plugin import RecordErrors
from agrotools.scoring.error_classes import IN_HEAD, OF_KEYWORDS, OF_SCORES, OF_SINGLE_SHOT, Errors, arguments_key
from agrotools.scoring.errors_in_records import NOT_IN_CALLS, NOT_IN_STEPS, add_missed_keywords
from agrotools.text.loose_json import is_list, is_object, is_text


def errors_of_dialogues(samples: Sequence[Dialogue]) -> Errors:
    """Errors in the prediction files of GTA and ThinkGeo, of either mode."""
    found = Errors()
    found.skip((IN_HEAD,), OF_SCORES)
    found.skip(OF_SINGLE_SHOT, "these predictions are made call by call")
    found.skip(OF_KEYWORDS, "counted where answers are written with their steps (Agent-X) and in records")
    for sample in samples:
        add_dialogue(sample, found)
    return found


def add_dialogue(sample: Dialogue, found: Errors) -> None:
    """Count the errors of one dialogue, of either mode."""
    found.total += 1
    prediction: list[Any] = sample.prediction if is_list(sample.prediction) else []
    by_step = not any(map(is_list, prediction))
    first: Any = prediction[0] if prediction else None
    messages: list[Any] = prediction if by_step else first if is_list(first) else [first]
    _errors_of_messages(str(sample.key), messages, _gold_calls(sample.gold, by_step), found, by_step=by_step)


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
        elif (read := read_message(message)).kind != "answer" or read.failed:
            found.add("format_error", key)
        else:
            answered = answered or bool(read.text.strip())
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
    if not (is_object(arguments) or is_text(arguments)):
        found.add("format_error", key)
        return
    error: Any = message.get("error")
    if name == NO_ACTION:
        found.add("format_error", key)
        return
    if name == INVALID_ACTION:
        found.add("wrong_tool_name", key)
    elif error is not None:
        found.add(_class_of(error, arguments), key)
    call = (name, arguments_key(arguments))
    if not by_step and error is None and call in called:
        found.add("redundant_call", key)
    called.append(call if error is None else (name, f"failed {len(called)}"))


def _class_of(error: Any, arguments: Any) -> str:
    """The class of a failed call by the type and the message that the published evaluation writes."""
    kind: Any = error.get("type") if is_object(error) else None
    told: Any = error.get("msg") if is_object(error) else error
    if kind == "ARGS_ERROR" or not is_object(arguments):
        named = is_text(told) and told.startswith(("unknown arguments", "missing required arguments"))
        return "invalid_arguments" if named else "invalid_json"
    return "tool_error"


def _add_replies(record: Record, found: Errors) -> None:
    """Count the errors of a record of the protocol lagent from the model's own replies, as in prediction files."""
    add_dialogue(dialogue_of(record, "lagent"), found)
    add_missed_keywords(record, found)


OF_RUNS = RecordErrors(_add_replies, NOT_IN_CALLS)
# A failure of a call before its tool would run is known step by step, too.
OF_STEPS = RecordErrors(_add_replies, {**NOT_IN_CALLS, **NOT_IN_STEPS})
