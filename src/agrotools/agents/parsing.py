"""Parser from a model's output to an action: all formats in which models write calls and answers.

Recognised as calls: native calls; ``Action:`` / ``Action Input:``; the markups of :mod:`agrotools.agents.markups`; JSON
objects (or lists of them) with a name and arguments under any of their usual keys, bare, fenced or as a JSON string.
Several calls in one message keep their order. An unknown tool name is still a call; the caller reports the error.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agrotools.agents import markups
from agrotools.core import Answer, Arguments, CallTools, Protocol, Reply, ToolCall, Unparseable
from agrotools.core.frozen_model import from_valid
from agrotools.core.record import UNREAD_ARGUMENTS, UNREAD_CALL
from agrotools.core.texts import without_surrogates
from agrotools.models import RequestedCall
from agrotools.text import turns
from agrotools.text.loose_json import NotJson, dumps, loads, value_at, values_in

MAX_CALLS = 50
"""Maximum calls in one message; beyond it the model is looping, and none of the calls is executed."""
_KEPT_OF_UNREADABLE = 4000
"""Characters of an unparseable reply that its action keeps."""
_LONGEST_BEFORE_INPUT = 1000
"""Characters of the line ``Action: ...`` in which ``Action Input:`` is looked for."""

_ANSWER = r"(?:final[ \t_]*answer|最终答案|最终回答|最后答案)"
_ACTION = r"(?:action|行动|动作)"
_COLON = r"[*_`]*[ \t]*[:：][*_]*"
_NUMBER = r"(?:[ _]?\d{1,3})?"
_MARKER = re.compile(
    rf"(?P<answer>{_ANSWER}{_COLON}|^[#*_ \t]*+{_ANSWER}[#*_ \t]*$|{markups.HARMONY_ANSWER})"
    rf"|^[ \t>#*_\-]*+(?:(?P<action>{_ACTION}{_NUMBER}{_COLON})|(?P<turn>(?:{markups.INVENTED_LINE}){_NUMBER}{_COLON}))"
    rf"|(?P<tag>{markups.INVENTED_TAG})|(?P<call>{markups.ANY_OPENING})",
    re.IGNORECASE | re.MULTILINE,
)
_INPUT = re.compile(rf"[\s*_>`]*+{_ACTION}[ _]?(?:input|输入){_NUMBER}{_COLON}", re.IGNORECASE)
_INPUT_IN_LINE = re.compile(rf"[*_]*{_ACTION}[ _](?:input|输入){_COLON}", re.IGNORECASE)
_BEFORE_VALUE = re.compile(r"\s*+(?:```[ \t]*\w*)?\s*+(?:['`](?=[{\[]))?")
_STRING_LITERAL = re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"', re.DOTALL)
_NOTHING = re.compile(
    r"(?:none|null|n/?a|no (?:tool|action|input)(?: needed)?|无)?[.。]?", re.IGNORECASE
)
_ANSWER_AS_TOOL = re.compile(rf"{_ANSWER}|finish", re.IGNORECASE)
_FINISH = re.compile(r"[ \t*_`]*+finish[ \t]*+\[", re.IGNORECASE)
_END_OF_FINISH = re.compile(r"\][ \t.*_`]*$", re.MULTILINE)
# Anchored at the beginning of a run of blanks and marks: a search from each position would be quadratic.
_THOUGHT = re.compile(r"(?<![\s*_#])[\s*_#]*+(?:thought|思考)" + _COLON, re.IGNORECASE)
_THOUGHT_LINES = re.compile(
    rf"(?>(?:[\s*_#>]*+(?:thought|思考){_NUMBER}{_COLON}\s*+[^\n]*+)*)", re.IGNORECASE
)
_OPEN_FENCE_AT_END = re.compile(r"```[ \t]*+\w*+\s*+\Z")
_ANALYSIS = r"<\|channel\|>analysis<\|message\|>"
_THINKING_ENDS = r"</(?:\w+:)?think(?:ing)?>|<\|END_THINKING\|>|<channel\|>"
_THINKING = re.compile(
    r"\s*+(?:<(?:\w+:)?think(?:ing)?>|<\|START_THINKING\|>|<\|channel>(?:thought\b)?"
    rf"|{_ANALYSIS})(?P<inner>.*?)"
    rf"(?:{_THINKING_ENDS}|<\|end\|>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_END_OF_THINKING = re.compile(_THINKING_ENDS, re.IGNORECASE)
_ROLE = r"(?:assistant|model)"
_BEGIN_TOKENS = re.compile(
    rf"(?:\s*+(?:<s>|<bos>|<start_of_turn>{_ROLE}|<\|(?:im_start|start_header_id)\|>{_ROLE}(?:<\|end_header_id\|>)?"
    r"|<\|(?:begin_of_text|startoftext|assistant|START_RESPONSE|begin_of_box)\|>|<｜(?:begin▁of▁sentence|Assistant)｜>))+",
)
"""Special tokens that chat templates put before a reply, and that some programs leave in its text."""
_END_TOKENS = re.compile(
    rf"(?:{turns.TOKENS}|<pad>|<\|(?:eom_id|end|eos|end_of_box|END_RESPONSE)\|>)"
)
"""Special tokens that end a reply."""
HINTS: Mapping[Protocol, str] = {
    "react": 'Write either "Action:" with one tool name and "Action Input:" with one JSON object of its arguments, '
    'or "Final Answer:" followed by the answer.',
    "tool-calling": "Either call a tool with a JSON object of its arguments, or write the answer as plain text.",
}
_UNREAD_HINT = 'Write a call as one JSON object, {"name": ..., "arguments": {...}}, or the answer without a call.'


class CallError(ValueError):
    """Text that is meant as a tool call but cannot be parsed as one. The message gives the reason."""


def parse_output(
    text: str,
    requested: Sequence[RequestedCall] = (),
    *,
    protocol: Protocol = "react",
    tools: markups.Schemas | None = None,
    answer_only: bool = False,
    marked_only: bool = False,
    reply: Reply | None = None,
) -> CallTools | Answer | Unparseable:
    """Parse a model's reply as an action.

    Native calls take precedence over text. In text, the first marker decides: a call, or ``Final Answer:`` (if there
    are several, the answer follows the last). A turn of others (``Observation:``, ``User:``...) that the model writes
    after its call is invented, so it and all following text are ignored. Text without a marker is an answer in the
    model's own words, unless it calls one of the ``tools`` in unknown markup or, in ``react``, holds only a thought.

    Args:
        tools: offered tools with the JSON Schemas of their arguments.
        answer_only: no calls are possible (mode no-tool); any text is an answer.
        marked_only: text without a marker is unparseable.
        reply: raw reply to attach to the action.
    """
    text = _without_begin_tokens(without_surrogates(text))
    requested = [_clean(call) for call in requested]
    thinking, body = _split_thinking(text)
    body = turns.own_turn(_without_begin_tokens(body))
    try:
        if requested and not answer_only:
            return _native_calls(requested, _thought(thinking, body), reply)
        if not body.strip():
            raise CallError(
                "the output ends inside its own thinking" if thinking else "the output is empty"
            )
        reader = _TextReader(_unquoted(body), tools or {}, calls_possible=not answer_only)
        if reader.calls:
            thought = _thought(thinking, reader.before)
            return CallTools(calls=tuple(reader.calls), thought=thought, reply=reply)
        if reader.answer_at is None and not answer_only:
            reader.find_own_words(protocol, marked_only=marked_only)
        answer = reader.answer()
        thought = _thought(thinking, reader.before if reader.answer_at is not None else "")
        return Answer(text=answer, thought=thought, reply=reply)
    except CallError as error:
        return _unparseable(text, requested, error, protocol, reply)


def _without_begin_tokens(text: str) -> str:
    begin = _BEGIN_TOKENS.match(text)
    return text[begin.end() :] if begin else text


def _native_calls(
    requested: Sequence[RequestedCall], thought: str, reply: Reply | None
) -> CallTools:
    """Return the calls that a model made in its endpoint's own format."""
    if len(requested) > MAX_CALLS:
        raise CallError(f"one message holds more than {MAX_CALLS} calls")
    calls = tuple(call_of(call.name, call.arguments, call.id or None) for call in requested)
    fields = {"kind": "call", "calls": calls, "thought": thought, "reply": reply, "refused": None}
    return from_valid(CallTools, fields)


def _unparseable(
    text: str,
    requested: Sequence[RequestedCall],
    error: CallError,
    protocol: Protocol,
    reply: Reply | None,
) -> Unparseable:
    """Return the action of a reply that is neither a call nor an answer, with a hint how to write one."""
    unread = text + "".join(as_text(call) for call in requested)
    is_unread_call = str(error).startswith(UNREAD_CALL)
    hint = _UNREAD_HINT if protocol == "tool-calling" and is_unread_call else HINTS[protocol]
    return Unparseable(text=excerpt(unread), reason=f"{error}.", hint=hint, reply=reply)


def unread_call(what: str, text: str, reply: Reply) -> Unparseable:
    """Return the action of a reply whose call the server did not pass on: ``text`` is where it stands."""
    return Unparseable(
        text=excerpt(text), reason=f"{UNREAD_CALL}: {what}.", hint=_UNREAD_HINT, reply=reply
    )


def spoken_answer(text: str) -> str:
    """Return the answer in a reply without calls: without thinking, special tokens and marks; empty if there is none.

    Replies of endpoints in mode no-tool and predictions of files are read alike.
    """
    action = parse_output(text, protocol="tool-calling", answer_only=True)
    return action.text if isinstance(action, Answer) else ""


def before_invented_turn(text: str) -> str:
    """Return the text before the first turn of others that the model invents; empty if there is none."""
    found = next((each for each in _MARKER.finditer(text) if each["turn"] or each["tag"]), None)
    return text[: found.start()] if found else ""


def _clean(call: RequestedCall) -> RequestedCall:
    """Return ``call`` without characters that a record cannot store."""
    return call.model_copy(
        update={
            "name": without_surrogates(call.name),
            "arguments": without_surrogates(call.arguments),
            "id": without_surrogates(call.id),
        }
    )


def as_text(call: RequestedCall) -> str:
    """Return a native call as text that :func:`parse_output` can parse."""
    fields = {"name": call.name, "arguments": call.arguments}
    if call.id:
        fields["id"] = call.id
    return f"\n<tool_call>{dumps(fields)}</tool_call>"


def excerpt(text: str, length: int = _KEPT_OF_UNREADABLE) -> str:
    """Return ``text``, or its beginning and end if it is longer than ``length`` characters."""
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


class _TextReader:
    """Single left-to-right pass over a text.

    ``calls``: calls before any answer marker; ``answer_at``: position of the answer if a marker came first;
    ``before``: text before either; ``complaint``: why something that looked like a call was not one.
    """

    def __init__(self, text: str, tools: markups.Schemas, *, calls_possible: bool = True) -> None:
        self.text = text
        self._tools = tools
        self.calls: list[ToolCall] = []
        self.answer_at: int | None = None
        self.answer_end = len(text)
        self.complaint = ""
        self._begin = len(text)
        self._read(calls_possible)

    @property
    def before(self) -> str:
        return self.text[: self._begin]

    def answer(self) -> str:
        """Return the answer behind its marker, or the whole text if there is none; CallError if it is empty."""
        own_words = turns.first_answer(self.text[self.answer_at or 0 : self.answer_end])
        answer = _answer_text(own_words)
        if not answer:
            raise CallError("the final answer is empty")
        return answer

    def find_own_words(self, protocol: Protocol, *, marked_only: bool) -> None:
        """Set ``answer_at`` in a text without a marker; raise a :class:`CallError` if it is no answer."""
        react = protocol == "react"
        lines = _THOUGHT_LINES.match(self.text) if react else None
        self.answer_at = self._begin = lines.end() if lines else 0
        if self.complaint and (react or any(name in self.complaint for name in self._tools)):
            raise CallError(self.complaint)
        if call := markups.unread_call(self.text, self._tools):
            raise CallError(f"{UNREAD_CALL}: {excerpt(call, 100)!r}")
        if bare := markups.bare_arguments(self.text[self._begin :], self._tools):
            raise CallError(f"{UNREAD_CALL}: arguments without a tool, {excerpt(bare, 100)!r}")
        if react and self.text.lstrip()[:1] in ("{", "[") and value_at(self.text, 0) is None:
            raise CallError("the JSON of the output is cut off or its brackets do not match")
        if marked_only or not self.text[self._begin :].strip():
            raise CallError("the output has neither an Action nor a Final Answer")

    def _read(self, calls_possible: bool) -> None:
        """Read objects and markers in the order of the text, until one of them ends the model's own turn."""
        objects = deque(_objects_like_calls(self.text) if calls_possible else ())
        marker = _MARKER.search(self.text)
        position: int | None = 0
        while position is not None:
            if marker is not None and marker.start() < position:
                marker = _MARKER.search(self.text, position)
            while objects and objects[0][0] < position:
                objects.popleft()
            if objects and (marker is None or objects[0][0] < marker.start()):
                start, end = objects.popleft()
                position = self._object(start, end)
            elif marker is not None:
                position = self._marker(marker, calls_possible=calls_possible)
            else:
                break
        is_found = bool(self.calls) or self.answer_at is not None
        if calls_possible and not is_found and _is_cut_off(self.text):
            raise CallError("the JSON of the call is cut off or its brackets do not match")

    # The methods that read one part return the position of its end, or None where the model's own turn ends.

    def _object(self, start: int, end: int) -> int | None:
        """Read a JSON object that looks like a call. Behind an answer marker it is part of the answer."""
        if self._in_further_turn(start):
            return None
        if self.answer_at is None:
            self._add(calls_of(loaded(self.text[start:end], "the call")), start)
        return end

    def _marker(self, marker: re.Match[str], *, calls_possible: bool) -> int | None:
        if marker["answer"]:
            return self._answer_marker(marker)
        if (marker["turn"] or marker["tag"]) and self.calls:
            return None
        opens_call = bool(marker["call"] or marker["action"])
        if not opens_call or not calls_possible or self.answer_at is not None:
            return marker.end()
        if self._in_further_turn(marker.start()):
            return None
        return self._action(marker) if marker["action"] else self._in_markup(marker.start())

    def _answer_marker(self, marker: re.Match[str]) -> int | None:
        """Let the answer begin behind ``marker``, unless calls come first or an invented turn lies before it."""
        if self.calls:
            return None
        if self.answer_at is not None:
            earlier = self.text[self.answer_at : marker.start()]
            own = turns.first_answer(earlier)
            if len(own) < len(earlier):  # another turn, whose answer is not to this question
                self.answer_end = self.answer_at + len(own)
                return None
        self._begin = marker.start()
        self.answer_at = marker.end()
        self.answer_end = len(self.text)
        return marker.end()

    def _in_further_turn(self, start: int) -> bool:
        """Whether a turn in plain text lies between the calls that were found and ``start``."""
        if not self.calls:
            return False
        between = self.text[self._begin : start]
        return len(turns.first_answer(between)) < len(between)

    def _add(self, calls: Sequence[ToolCall], start: int) -> None:
        if calls and not self.calls:
            self._begin = start
        self.calls.extend(calls)
        if len(self.calls) > MAX_CALLS:
            raise CallError(f"one message holds more than {MAX_CALLS} calls")

    def _in_markup(self, start: int) -> int:
        """Parse the calls in the markup that begins at ``start`` and return the position of their end."""
        opened = markups.opening_at(self.text, start)
        try:
            if tool := opened.groupdict().get("tool"):
                arguments, end = self._arguments(tool, opened.end())
                calls = [call_of(tool, arguments)]
            else:
                calls, end = self._whole_calls(opened)
        except CallError as error:
            raise CallError(f"{UNREAD_CALL}: {error}") from error
        self._add(calls, start)
        return end

    def _arguments(self, tool: str, start: int) -> tuple[Any, int]:
        if (value_start := self._value_start(start)) is not None:
            return self._value(value_start, f"the arguments of {tool}")
        found = markups.parameters_at(self.text, start, self._tools.get(tool, {}))
        if found is None:
            raise CallError(f"no JSON object follows the name {tool}, and no closed parameters")
        return found

    def _whole_calls(self, opened: re.Match[str]) -> tuple[list[ToolCall], int]:
        calls: list[ToolCall] = []
        end = opened.end()
        while len(calls) <= MAX_CALLS and (found := markups.python_call_at(self.text, end)):
            tool, written, end = found
            arguments = loaded(written, f"the list of names and values of {tool}(...)")
            calls.append(call_of(tool, arguments))
        if calls:
            return calls, end
        if (value_start := self._value_start(end)) is None:
            raise CallError(f"no JSON object follows {opened[0].strip()}")
        value, end = self._value(value_start, "the call")
        if not (calls := calls_of(value)):
            raise CallError("the call must be a JSON object with a name and arguments")
        return calls, end

    def _action(self, marker: re.Match[str]) -> int:
        """Parse ``Action: NAME`` and the input that follows, and return the position of their end."""
        finish = _FINISH.match(self.text, marker.end())
        if finish and not self.calls:
            return self._finish(marker.start(), finish.end())
        line_end = self._line_end(marker.end())
        line = self.text[marker.end() : line_end]
        in_line = _INPUT_IN_LINE.search(line[:_LONGEST_BEFORE_INPUT])
        name_text = line[: in_line.start()] if in_line else line
        name = name_text.strip(" \t\r*`\"'").removesuffix("()")
        start = marker.end() + in_line.end() if in_line else self._input_below(name, line_end)
        if start is None:
            # A bare marker may be followed by a whole call as JSON, which is parsed as an object later.
            if not _NOTHING.fullmatch(name):
                self.complaint = f"the Action {excerpt(name, 60)!r} has no Action Input"
            return marker.end()
        if _ANSWER_AS_TOOL.fullmatch(name) and name not in self._tools:
            if self.calls:
                return len(self.text)
            self._begin = marker.start()
            self.answer_at = start
            return start
        if name and _NOTHING.fullmatch(name):
            return start
        arguments, end = self._input(start)
        self._add([call_of(name, arguments)], marker.start())
        return end

    def _finish(self, start: int, answer_at: int) -> int:
        """Read the answer in ``Action: Finish[...]``, and return the position of its end."""
        ended = _END_OF_FINISH.search(self.text, answer_at)
        self._begin, self.answer_at = start, answer_at
        self.answer_end = ended.start() if ended else len(self.text)
        return self.answer_end

    def _input_below(self, name: str, line_end: int) -> int | None:
        """Return where the input of an action begins on the lines below its name; None if there is none."""
        if match := _INPUT.match(self.text, line_end):
            return match.end()
        is_name = bool(name) and name[0] not in "{["
        return self._value_start(line_end) if is_name else None

    def _line_end(self, start: int) -> int:
        end = self.text.find("\n", start)
        return len(self.text) if end < 0 else end

    def _input(self, start: int) -> tuple[Any, int]:
        """Return the value of an ``Action Input:`` and the position of its end."""
        value_start = self._value_start(start)
        if value_start is not None:
            return self._value(value_start, "the Action Input")
        literal = _STRING_LITERAL.match(self.text, _skip(self.text, start))
        if literal:
            return loaded(literal[0], "the Action Input"), literal.end()
        end = self._line_end(start)
        if _NOTHING.fullmatch(self.text[start:end].strip(" \t\r*`")):
            return {}, end
        raise CallError("the Action Input is not a JSON object")

    def _value_start(self, start: int) -> int | None:
        at = _skip(self.text, start)
        return at if self.text[at : at + 1] in ("{", "[") else None

    def _value(self, start: int, what: str) -> tuple[Any, int]:
        span = value_at(self.text, start)
        if span is None:
            raise CallError(f"the JSON of {what} is cut off or its brackets do not match")
        return loaded(self.text[start : span[1]], what), span[1]


def _skip(text: str, start: int) -> int:
    """Skip blanks and an opening code fence."""
    match = _BEFORE_VALUE.match(text, start)
    return match.end() if match else start


def _objects_like_calls(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of balanced values in ``text`` that contain or attempt a call, but not of other JSON."""
    if not holds_call_keys(text):
        return
    for start, end in values_in(text):
        if not holds_call_keys(text, start, end):
            continue
        try:
            if calls_of(loads(text[start:end])):
                yield start, end
        except (NotJson, CallError):
            yield start, end


def _is_cut_off(text: str) -> bool:
    """True if ``text`` contains the beginning of a JSON call that is never closed."""
    name = _NAME_KEY.search(text)
    if name is None or not _ARGUMENT_KEY.search(text, name.end()):
        return False
    at = name.start()
    return "{" in text[:at] and not any(start < at < end for start, end in values_in(text))


def _unquoted(text: str) -> str:
    """Return the content of an output that is a single JSON string."""
    literal = _STRING_LITERAL.fullmatch(text.strip())
    if literal is None:
        return text
    try:
        inner = loads(literal[0])
    except NotJson:
        return text
    return inner if isinstance(inner, str) and inner.strip() else text


def _split_thinking(text: str) -> tuple[str, str]:
    """Split off a leading ``<think>`` block (whose opening tag some chat templates omit) from the text after it."""
    block = _THINKING.match(text)
    if block:
        return block["inner"].strip(), text[block.end() :]
    end = _END_OF_THINKING.search(text)
    if end is None:
        return "", text
    return text[: end.start()].strip(), text[end.end() :]


def _thought(thinking: str, before: str) -> str:
    if not before:
        return thinking
    before = _OPEN_FENCE_AT_END.sub("", _THOUGHT.sub("", before, count=1)).strip()
    return "\n".join(part for part in (thinking, before) if part)


def _answer_text(text: str) -> str:
    text = text.strip()
    while (tokens := [*_END_TOKENS.finditer(text)]) and tokens[-1].end() == len(text):
        text = text[: tokens[-1].start()].rstrip()
    n_fences = text.count("```")
    lines = text.splitlines()
    is_fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```"
    if is_fenced and n_fences == 2:
        return "\n".join(lines[1:-1]).strip()
    if text.endswith("```") and n_fences == 1:
        return text.removesuffix("```").strip()
    return text


_NAME_KEYS = ("tool", "tool_name", "name", "function", "function_name", "action")
_ARGUMENT_KEYS = (
    "arguments",
    "parameters",
    "args",
    "input",
    "action_input",
    "tool_input",
    "kwargs",
)
_LIST_KEYS = ("tool_calls", "calls", "actions")
_WRAPPER_KEYS = ("tool_call", "function_call", "call", "action")
_LONGEST_NAME = 200
_NAME_KEY = re.compile(rf"[\"'“](?:{'|'.join(_NAME_KEYS + _LIST_KEYS)})[\"'”]\s*+:")
_ARGUMENT_KEY = re.compile(rf"[\"'“](?:{'|'.join(_ARGUMENT_KEYS)})[\"'”]\s*+:")


def holds_call_keys(text: str, start: int = 0, end: int | None = None) -> bool:
    """True if ``text[start:end]`` has both a key for a name and one for arguments, in any order."""
    stop = len(text) if end is None else end
    return bool(_NAME_KEY.search(text, start, stop) and _ARGUMENT_KEY.search(text, start, stop))


def loaded(text: str, what: str) -> Any:
    """Parse JSON with repairs; raise a :class:`CallError` that names the text ``what`` if it is invalid."""
    try:
        return loads(text)
    except NotJson as error:
        whole = value_at(text, 0)
        if whole is not None and (behind := text[whole[1] :].strip()):
            raise CallError(f"{what} goes on behind its JSON: {excerpt(behind, 100)!r}") from error
        raise CallError(f"{what} is not valid JSON: {error}") from error


def calls_of(value: Any) -> list[ToolCall]:
    """Return the calls in a decoded value, if any; CallError if it has the keys of a call but invalid content."""
    if isinstance(value, list):
        return [call for item in value for call in calls_of(item)]
    if not isinstance(value, dict):
        return []
    for key in _LIST_KEYS:
        if isinstance(value.get(key), list):
            return calls_of(value[key])
    for key in _WRAPPER_KEYS:
        if isinstance(value.get(key), dict):
            return calls_of(value[key])
    if isinstance(value.get("function"), dict):
        value = {"id": value.get("id"), **value["function"]}
    name_key = next((key for key in _NAME_KEYS if key in value), None)
    arguments_key = next((key for key in _ARGUMENT_KEYS if key in value), None)
    if name_key is None or arguments_key is None:
        return []
    identifier = value.get("id")
    if not isinstance(identifier, str):
        identifier = None
    return [call_of(value[name_key], value[arguments_key], identifier)]


def call_of(name: object, arguments: object, identifier: str | None = None) -> ToolCall:
    """Return a call from its parts (arguments as an object, JSON text, or None); CallError if they are unusable."""
    if not isinstance(name, str) or not name.strip():
        raise CallError("the call has no tool name")
    if len(name) > _LONGEST_NAME:
        raise CallError("the tool name is far too long")
    return from_valid(
        ToolCall, {"tool": name.strip(), "arguments": _arguments(arguments), "id": identifier}
    )


def _arguments(value: object) -> Arguments:
    # Arguments may be a JSON string, and from some models a JSON string within one.
    for _ in range(2):
        if isinstance(value, str):
            value = loaded(value, UNREAD_ARGUMENTS) if value.strip() else {}
    if value is None:
        return {}
    if not isinstance(value, dict):
        kinds = {list: "a list", str: "text", bool: "true or false"}
        raise CallError(
            f"the arguments must be a JSON object, not {kinds.get(type(value), 'a number')}"
        )
    return value
