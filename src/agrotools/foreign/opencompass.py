"""Prediction files of agents in OpenCompass, as GTA and ThinkGeo write them: transcripts of their samples.

What comes in is an object of samples by position, such as ``{"0": {"gold": [...], "prediction": [...]}}``. Step by
step, ``prediction`` has a message for each message of the assistant in the gold; end to end, it has a list of messages
for each message of the user. What goes out is a row for each sample with ``steps`` or ``messages``, in the form that
:mod:`agrotools.foreign.transcripts` reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from agrotools.text.json_kinds import fields_of, is_list, is_object, is_text

Fields = Mapping[str, Any]

_NO_CALL = "NoAction"
"""Tool that stands for a reply in which the agent found neither a call nor an answer."""
_ARGUMENTS_ERROR = "ARGS_ERROR"
"""Type of an error in the arguments of a call; the others are errors of the tool."""


class AgentPredictions(NamedTuple):
    """Rows of a file. ``gold_tools``: tools of the reference calls that the file itself has, by number of the row.

    ``left``: what else the file holds, in words.
    """

    rows: list[Fields]
    gold_tools: dict[int, tuple[str, ...]]
    left: tuple[str, ...] = ()


def read_agent_predictions(content: Fields) -> AgentPredictions | None:
    """Return the transcripts in the object of a file; None if it has another form."""
    samples = [fields_of(sample) for sample in content.values()]
    predictions = [sample.get("prediction") for sample in samples]
    if not samples or not all(map(str.isdecimal, content)) or not all(map(is_list, predictions)):
        return None
    elements = [element for prediction in predictions for element in cast("list[Any]", prediction)]
    messages, turns = sum(map(is_object, elements)), sum(map(is_list, elements))
    if not messages and not turns:
        return None
    is_by_step = messages > turns
    rows: list[Fields] = []
    gold_tools: dict[int, tuple[str, ...]] = {}
    later_turns = 0
    for number, (key, sample) in enumerate(zip(content, samples, strict=True), start=1):
        row: dict[str, Any] = {"index": key, "question": _question(sample)}
        if is_by_step:
            row["steps"] = _as_transcript(sample["prediction"])
        else:
            row["messages"] = _as_transcript(_first_turn(sample["prediction"]))
            later_turns += len(sample["prediction"]) > 1
        rows.append(row)
        gold = sample.get("gold")
        if is_list(gold) and gold:
            gold_tools[number] = tuple(_tools(gold if is_by_step else _first_turn(gold)))
    left = (f"turns after the first question ({later_turns} samples)",) if later_turns else ()
    return AgentPredictions(rows, gold_tools, left)


def _question(sample: Fields) -> str | None:
    """Return the question: the first prompt, or the first message of the user in it; None if the file has none."""
    prompts = sample.get("origin_prompt")
    first: Any = prompts[0] if is_list(prompts) and prompts else None
    if is_list(first):
        first = fields_of(first[0]).get("content") if first else None
    return first if is_text(first) else None


def _first_turn(turns: Any) -> list[Any]:
    """Return the messages after the first message of the user; the published scores are of these alone."""
    first: Any = turns[0] if is_list(turns) and turns else None
    return first if is_list(first) else []


def _tools(messages: Sequence[Any]) -> Iterator[str]:
    """Yield the tools that messages call."""
    for message in map(fields_of, messages):
        if "tool_calls" in message:
            yield str(_called(message).get("name"))


def _called(message: Fields) -> Fields:
    """Return the function that a message calls, with its ``name`` and ``arguments``."""
    calls = message["tool_calls"]
    first: Any = calls[0] if is_list(calls) and calls else None
    return fields_of(fields_of(first).get("function"))


def _as_transcript(messages: Sequence[Any]) -> list[Any]:
    """Return messages with the error of a call as its result, and a reply without a call as an empty one."""
    transcript: list[Any] = []
    error: Fields = {}
    for message in messages:
        fields = fields_of(message)
        if fields.get("role") == "tool":
            content = {"error": _tool_error(error)} if error else _result(fields.get("content"))
            transcript.append({"role": "tool", "content": content})
            continue
        error = fields_of(fields.get("error"))
        if "tool_calls" not in fields:
            transcript.append(message)
        elif _called(fields).get("name") == _NO_CALL:
            transcript.append({"role": "assistant", "content": ""})
        else:
            transcript.append({"role": "assistant", "tool_calls": fields["tool_calls"]})
    return transcript


def _tool_error(error: Fields) -> Fields:
    """Return the error of a call as an observation has it."""
    kind = "invalid_argument" if error.get("type") == _ARGUMENTS_ERROR else "tool_failed"
    return {"kind": kind, "message": str(error.get("msg") or error.get("type"))}


def _result(content: Any) -> Any:
    """Return the result of a call: the only part of a list, each with ``type`` and ``content``, or the text of all."""
    if not is_list(content):
        return content
    parts = [fields_of(part) for part in content]
    if len(parts) == 1:
        return parts[0]
    return {"type": "text", "content": "\n".join(str(part.get("content")) for part in parts)}
