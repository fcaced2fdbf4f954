"""Dialogs of GTA, ThinkGeo and GTA-2 (a question, calls and what they returned, a final answer) and gold answers.

The first user turn of a dialog is asked and scored; the published scorers do so end-to-end, and no published dialog is
known to have a second one. Of several calls in one message the first counts, as it does there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import orjson
from pydantic import JsonValue

from agrotools.benchmarks._dialogs.files import plain_path
from agrotools.benchmarks._dialogs.findings import EntryFindings, quoted
from agrotools.core import (
    AnswerType,
    Arguments,
    BenchmarkError,
    ImageCallsSlot,
    KeywordsSlot,
    Observation,
    ReferenceStep,
    ReferenceTextsSlot,
    Slot,
)


class Turn(NamedTuple):
    """A question of a dialog with what follows it. ``user_turns``: how many questions the whole dialog has."""

    query: str
    messages: list[dict[str, Any]]
    """The messages after the question, up to the next one."""
    final_text: str
    user_turns: int


def first_turn(dialogs: Any, findings: EntryFindings, *, open_ended: bool) -> Turn | None:
    """The question of a dialog and what follows it; None where it asks none. ``open_ended``: it may lack an answer."""
    if not isinstance(dialogs, list) or not dialogs:
        findings.fault("it has no dialogs")
        return None
    messages = [cast("dict[str, Any]", each) for each in cast("list[Any]", dialogs) if isinstance(each, dict)]
    if len(messages) < len(cast("list[Any]", dialogs)):
        findings.note("messages that are no objects are left out")
    user_places = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    query = text_of(messages[user_places[0]].get("content")).strip() if user_places else ""
    if not query:
        findings.fault("its dialog asks no question")
        return None
    if len(user_places) > 1:
        findings.note("only the first of its user turns is asked and scored")
    end = user_places[1] if len(user_places) > 1 else len(messages)
    turn_messages = messages[user_places[0] + 1 : end]
    answers = [text_of(message.get("content")) for message in turn_messages if _is_answer(message)]
    if not answers and not open_ended:
        findings.note("its dialog ends without a final answer")
    return Turn(query, turn_messages, answers[-1] if answers else "", len(user_places))


def _is_answer(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" and not message.get("tool_calls")


def steps_of(
    messages: Sequence[dict[str, Any]], names: Mapping[str, str], findings: EntryFindings, *, open_ended: bool
) -> list[ReferenceStep]:
    """The calls of a turn. ``names``: by the published path of each file its name in the sample. ``open_ended``: there
    may be none."""
    steps: list[ReferenceStep] = []
    without_thought = False
    for place, message in enumerate(messages):
        calls = message.get("tool_calls")
        if message.get("role") != "assistant" or not calls:
            continue
        called = _call_of(calls, names, findings, len(steps) + 1)
        if called is None:
            continue
        tool, arguments = called
        thought = message.get("thought")
        without_thought = without_thought or not thought
        returned = messages[place + 1] if place + 1 < len(messages) else {}
        if returned.get("role") != "tool":
            findings.note("a call has no recorded observation")
            returned = {}
        elif returned.get("name") not in (None, tool):
            findings.note("an observation is that of another tool than was called")
        steps.append(
            ReferenceStep(
                tool=tool,
                arguments=arguments,
                observation=_observation_of(returned.get("content")),
                thought=thought if isinstance(thought, str) else "",
            )
        )
    if not steps:
        if not open_ended:
            findings.note("its dialog calls no tool")
    elif without_thought:
        findings.note("some steps have no thought")
    return steps


def _call_of(
    calls: Any, names: Mapping[str, str], findings: EntryFindings, number: int
) -> tuple[str, Arguments] | None:
    """Tool and arguments of the first call of a message."""
    several = cast("list[Any]", calls) if isinstance(calls, list) else [calls]
    if len(several) > 1:
        findings.note("of several calls in one message the first counts")
    first = cast("dict[str, Any]", several[0]) if isinstance(several[0], dict) else {}
    function = cast("dict[str, Any]", first.get("function") if isinstance(first.get("function"), dict) else first)
    tool, arguments = function.get("name"), function.get("arguments")
    if not isinstance(tool, str) or not tool.strip():
        findings.fault(f"step {number} names no tool")
        return None
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            arguments = arguments.strip() and {"": arguments}
    if arguments is None or arguments == "":
        arguments = {}
    if not isinstance(arguments, dict) or "" in arguments:
        findings.fault(f"the arguments of step {number} are no object")
        return None
    call_arguments = cast("Arguments", arguments)
    every = {plain_path(path): name for path, name in names.items()} | {**names}
    return tool.strip(), {name: _replace_paths(value, every) for name, value in call_arguments.items()}


def _replace_paths(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """``value`` with the published path of a file as its name in the sample; other texts stay as they are."""
    if isinstance(value, list):
        return [_replace_paths(item, names) for item in value]
    if not isinstance(value, str):
        return value
    return names.get(value) or names.get(plain_path(value)) or value


def _observation_of(content: Any) -> Observation:
    """Output of a tool: ``{"text": ...}``, or ``{"image": path as written}``; an empty result for nothing."""
    if content is None:
        return Observation(result={})
    if isinstance(content, dict):
        content_object = cast("dict[str, Any]", content)
        if "content" in content_object:
            kind = (
                "image"
                if content_object.get("type") == "image" and isinstance(content_object["content"], str)
                else "text"
            )
            return Observation(result={kind: text_of(content_object["content"])})
    return Observation(result={"text": text_of(content)})


def text_of(content: Any) -> str:
    """The text of a message: itself, the texts of its parts, or what it holds as JSON (too deep: nothing)."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and content and all(isinstance(part, dict) for part in cast("list[Any]", content)):
        parts = [cast("dict[str, Any]", part) for part in cast("list[Any]", content)]
        texts = [part.get("text", part.get("content")) for part in parts]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(cast("list[str]", texts))
    try:
        return orjson.dumps(content).decode()
    except TypeError:
        return ""


AnswerKind = Literal["objective", "subjective", "image", "workflow"]
ANSWER_TYPES: dict[AnswerKind, AnswerType] = {
    "objective": "exact",
    "subjective": "open_text",
    "image": "image",
    "workflow": "open_text",
}
"""The answer type of samples of each kind."""

MISSING = object()
"""Stands for an entry without the field."""


class Gold(NamedTuple):
    """The slot of an answer, what kind of answer it is, and what to say of it."""

    kind: AnswerKind
    slot: Slot
    notes: tuple[str, ...] = ()


def gold_of(
    answer: object, questions: Sequence[str], image_tools: Iterable[str], called: Sequence[str], final_text: str
) -> Gold:
    """The gold of an entry from its ``gt_answer``.

    An object with ``whitelist`` is objective, a list of texts subjective, and null, ``[]`` or ``{}`` an image. Where
    nothing is given and no tool of ``called`` makes an image, the final text of the dialog is the answer.

    Raises:
        BenchmarkError: it has none of these forms; the message says what it is.
    """
    if answer is MISSING:
        raise BenchmarkError("it has no gt_answer")
    if answer is None or answer in ([], {}, ""):
        return _image(image_tools, called, final_text)
    if isinstance(answer, dict):
        return Gold("objective", _keywords(answer, questions))
    if isinstance(answer, str | int | float) and not isinstance(answer, bool):
        texts = [str(answer)]
        note = ("gt_answer is one value, not a list of texts",)
        return Gold("subjective", _texts(texts), note)
    if isinstance(answer, list) and all(isinstance(text, str | int | float) for text in answer):
        texts = [str(text) for text in answer if str(text).strip()]
        if texts:
            return Gold("subjective", _texts(texts))
        raise BenchmarkError("the texts of its gt_answer are all empty")
    raise BenchmarkError(f"its gt_answer has an unknown form: {quoted(answer)}")  # pyright: ignore[reportArgumentType]


def _texts(texts: Sequence[str]) -> ReferenceTextsSlot:
    return ReferenceTextsSlot(name="answer", label="the answer", values=tuple(texts))


def _keywords(answer: dict[str, JsonValue], questions: Sequence[str]) -> KeywordsSlot:
    if "whitelist" not in answer:
        raise BenchmarkError(f"its gt_answer has no whitelist: {quoted(list(answer))}")
    return KeywordsSlot(
        name="answer",
        label="the answer",
        whitelist=_groups(answer["whitelist"], "whitelist"),
        blacklist=_groups(answer.get("blacklist"), "blacklist"),
        questions=tuple(questions),
    )


def _groups(value: JsonValue, which: str) -> tuple[tuple[str, ...], ...]:
    """Groups of aliases as they were written; numbers become text."""
    if value is None and which == "blacklist":
        return ()
    if not isinstance(value, list) or not all(isinstance(group, list) for group in value):
        raise BenchmarkError(f"its {which} is no list of lists: {quoted(value)}")
    groups: list[tuple[str, ...]] = []
    for group in value:
        assert isinstance(group, list)
        if not all(isinstance(alias, str | int | float) for alias in group):
            raise BenchmarkError(f"its {which} holds something else than texts: {quoted(group)}")
        groups.append(tuple(str(alias) for alias in group))
    return tuple(groups)


def _image(image_tools: Iterable[str], called: Sequence[str], final_text: str) -> Gold:
    tools = set(image_tools)
    used = tuple(dict.fromkeys(tool for tool in called if tool in tools))
    if used:
        return Gold("image", ImageCallsSlot(name="image", label="the image", tools=used))
    if final_text.strip():
        note = "it has no gt_answer, and no call makes an image: the final text of the dialog is its answer"
        return Gold("subjective", _texts([final_text]), (note,))
    raise BenchmarkError("it has no gt_answer, no call makes an image, and the dialog ends without a text")
