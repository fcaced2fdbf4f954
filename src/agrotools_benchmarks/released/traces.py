"""Traces of tool calls in any usual form: messages of OpenAI, Anthropic, Gemini, ShareGPT or GTA, steps, and text.

A trace is read by its content: whatever names a tool and has arguments is a call, and what follows from a tool is its
result. The names of the keys are those of the field map, ``[calls]``.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

from agrotools.agents.parsing import parse_output
from agrotools.core import Answer, Arguments, BenchmarkError, CallTools
from agrotools.loading.values import NOTHING, number_in, value_at
from agrotools.text.loose_json import loads, parsed
from agrotools_benchmarks.released.names import (
    argument_name,
    in_english,
    known_arguments,
    with_plain_keys,
    words,
)

Paths = Mapping[str, str]
Inputs = Mapping[str, Sequence[str]]
"""Arguments of each known tool, in order."""

USERS = ("user", "human", "question", "query")
SYSTEMS = ("system", "developer")
_TEXT_KEYS = "content|value|text|message|parts"
_HOLDERS = (
    *("tool_calls", "function_call", "tool_call", "tool_uses", "tool_use", "calls", "call"),
    *("actions", "action", "steps"),
)
"""Keys that hold calls and nothing else."""
_INNER = (*_HOLDERS, "tool", "content", "parts", "value", "message")
"""Keys of a message or a step that may hold calls, the most likely first."""
_NO_PLACE = ("observation", "thought", "thoughts")
_NAME = re.compile(r"[^\W\d][\w.\- &]{0,99}")
_WHOLE_CALL = re.compile(r"\s*[\w.]+\(.*\)\s*", re.DOTALL)
_SPACED_CALL = re.compile(r"\s*[\w.]+(?:[ -][\w.]+){0,5}\(.*\)\s*", re.DOTALL)
"""Call of a tool whose name may have several words, ``Object Counting(image=a.png)``."""
_BRACKETED = re.compile(r"\s*([\w.]+)\[(.*)\]\s*", re.DOTALL)
"""Call as the paper of ReAct writes it, ``Search[apple scab]``."""
_IMAGE_MARKS = re.compile(r"^(\s*<image>)+|(<image>\s*)+$")


class TracedCall(NamedTuple):
    """Call of a trace, with the names used there, and its result (``NOTHING``: none is recorded)."""

    tool: str
    arguments: Arguments
    thought: str = ""
    returned: Any = NOTHING


class Trace(NamedTuple):
    """What a trace holds: the question and the final answer in words (empty: not in it), calls, and pictures."""

    question: str
    calls: tuple[TracedCall, ...]
    answer: str
    pictures: tuple[Any, ...]


def read_trace(value: Any, paths: Paths, inputs: Inputs) -> Trace:
    """Read a trace. ``paths``: names of keys, ``[calls]`` of a field map.

    Raises:
        BenchmarkError: a call or a result cannot be read.
    """
    reader = _Reader(paths, inputs)
    reader.read(value)
    ends = paths["end"].split("|")
    calls = [call for call in reader.calls if call.tool not in ends]
    last = next((call for call in reversed(reader.calls) if call.tool in ends), None)
    said = [str(each) for each in last.arguments.values()] if last else []
    answer = said[-1] if said else reader.answer
    return Trace(reader.question, tuple(calls), answer.strip(), tuple(reader.pictures))


def plain_question(text: str) -> str:
    """Return a question without the marks of its pictures."""
    text = _IMAGE_MARKS.sub("", text).strip()
    return re.sub(r"^(?:Question|Query)\s*:\s*", "", text)


def text_of(value: Any) -> str:
    """Return the text of a message, whose content may be a list of parts; empty if it has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, (text_of(each) for each in cast(list[Any], value))))
    if isinstance(value, dict):
        found = value_at(value, _TEXT_KEYS)
        return "" if found is value else text_of(found)
    return ""


class _Reader:
    """Reader of a trace. ``_waiting``: ids and positions of the calls without a result."""

    def __init__(self, paths: Paths, inputs: Inputs) -> None:
        self._paths, self._inputs = paths, inputs
        self._inner = dict.fromkeys([*paths["each"].split("|"), *_INNER])
        self._replies = paths["reply_role"].split("|")
        self._waiting: list[tuple[Any, int]] = []
        self._thought = ""
        self.calls: list[TracedCall] = []
        self.pictures: list[Any] = []
        self.question = self.answer = ""

    def _at(self, item: Any, name: str, default: Any = None) -> Any:
        return value_at(item, self._paths[name], default) if self._paths[name] else default

    def read(self, value: Any) -> None:
        """Read a list of messages or steps, one of them, or a text."""
        if isinstance(value, str):
            self._read_text(value)
        elif isinstance(value, list) and (accepted := self._accepted_calls(value)):
            for tool, arguments in accepted:
                self._add_call(tool, arguments)
        elif isinstance(value, list):
            for each in cast(list[Any], value):
                self.read(each)
        elif isinstance(value, dict):
            value = with_plain_keys(cast(dict[str, Any], value))
            rows = _rows_of_columns(value) or _numbered_steps(value)
            if rows:
                self.read(rows)
            else:
                self._read_object(value)

    def _accepted_calls(self, items: list[Any]) -> list[tuple[str, Arguments]]:
        """Return the calls of a list that gives the accepted values of all arguments; empty if it does not."""
        found = [_of_accepted_values(item) for item in items]
        calls = [call for call in found if call]
        is_so = len(calls) == len(items) and not any(tool in self._inputs for tool, _ in calls)
        return calls if is_so else []

    def _read_object(self, item: dict[str, Any]) -> None:
        role = str(self._at(item, "role", "")).lower().strip()
        self._note_pictures(item)
        if role in SYSTEMS:
            return
        if role in USERS:
            self._read_user(item)
        elif role in self._replies and not self._is_call(item):
            content = self._at(item, "reply", NOTHING)
            self._attach(self._at(item, "reply_id"), text_of(content) or content)
        elif self._is_call(item):
            self._add(item, item)
        else:
            self._read_message(item)

    def _is_call(self, item: Mapping[str, Any]) -> bool:
        """True if an object names a tool and has arguments or a result, or is nothing but a step."""
        if any(isinstance(item.get(key), dict | list) for key in (*_HOLDERS, "tool")):
            return False  # the call is inside
        tool = self._at(item, "tool")
        if isinstance(tool, str) and _WHOLE_CALL.fullmatch(tool):
            return True
        if not isinstance(tool, str) or not _NAME.fullmatch(tool.strip()) or self._is_schema(item):
            return False
        if self._at(item, "arguments", NOTHING) is not NOTHING:
            return True
        speaks = self._at(item, "role") is not None or "content" in item
        return not speaks and ("name" not in item or self._returned(item) is not NOTHING)

    def _is_schema(self, item: Mapping[str, Any]) -> bool:
        """True if an object describes a tool: it has a description, or names of arguments with their types."""
        described = value_at(item, "function") if isinstance(item.get("function"), dict) else item
        arguments = value_at(described, "parameters|input_schema|inputSchema|inputs|arguments")
        if isinstance(arguments, list):
            return any(isinstance(each, dict) and "value" not in each for each in arguments)
        if isinstance(arguments, dict) and isinstance(arguments.get("properties"), dict):
            return True
        is_about = {"description", "desc", "usage"} & {*described} and self._at(
            item, "role"
        ) is None
        return bool(is_about) and self._returned(item) is NOTHING

    def _returned(self, item: Mapping[str, Any]) -> Any:
        return self._at(item, "observation", NOTHING)

    def _add(self, item: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        tool, arguments = self._at(item, "tool"), self._at(item, "arguments", NOTHING)
        if _WHOLE_CALL.fullmatch(tool):
            tool, arguments = _written(tool, self._inputs)
        if arguments is NOTHING:
            arguments = self._only_object(item)
        thought = self._at(message, "thought")
        self._add_call(
            tool, arguments, thought if isinstance(thought, str) else "", self._at(item, "id")
        )
        returned = self._returned(item)
        if returned is not NOTHING:
            self._attach(None, returned)

    def _only_object(self, item: Mapping[str, Any]) -> Any:
        """Return the only object in a call that is not its result: its arguments, whatever their name."""
        returned = self._returned(item)
        objects = [
            each for each in item.values() if isinstance(each, dict) and each is not returned
        ]
        return objects[0] if len(objects) == 1 else NOTHING

    def _add_call(self, tool: str, arguments: Any, thought: str = "", key: Any = None) -> None:
        tool = tool.strip()
        given = self._given(tool, parsed(arguments))
        self._waiting.append((key, len(self.calls)))
        self.calls.append(TracedCall(tool, given, thought or self._thought))
        self._thought = ""

    def _given(self, tool: str, arguments: Any) -> Arguments:
        """Return arguments by name; a plain text is the only argument of its tool."""
        if isinstance(arguments, list) and (pairs := _pairs(arguments)):
            arguments = pairs
        if isinstance(arguments, dict):  # columns of objects have all keys that any row has
            return {name: value for name, value in arguments.items() if value is not None}
        if arguments in (NOTHING, None, "", []):
            return {}
        names = self._inputs.get(tool, ())
        if isinstance(arguments, list) and len(names) >= len(arguments):
            return dict(zip(names, arguments, strict=False))
        if isinstance(arguments, str) and not arguments.lstrip().startswith(("{", "[")):
            named = named_in_text(arguments, names)
            return named or {names[0] if names else "input": arguments}
        fault = f"not JSON: {arguments[:60]!r}" if isinstance(arguments, str) else "not an object"
        raise BenchmarkError(f"the arguments of {tool} are {fault} ([calls] arguments)")

    def _attach(self, key: Any, returned: Any) -> None:
        """Give a result to the call with its id, or to the first one without a result."""
        places = [each for each in self._waiting if None in (key, each[0]) or each[0] == key]
        if not places:
            raise BenchmarkError(
                f"there is a result without a call, {key or 'no id'} ([calls] at, each, id)"
            )
        self._waiting.remove(places[0])
        at = places[0][1]
        self.calls[at] = self.calls[at]._replace(returned=returned)

    def _read_user(self, item: Mapping[str, Any]) -> None:
        content = value_at(item, _TEXT_KEYS)
        results = content if isinstance(content, list) else []
        replies = [each for each in results if self._at(each, "role") in self._replies]
        for each in replies:
            self._read_object(each)
        text = text_of(content).strip()
        observed = _OBSERVED.match(text)
        if observed and self._waiting:
            self._attach(None, _unmarked(text[observed.end() :]))
        elif not replies and not self.question:
            self.question = plain_question(text)

    def _read_message(self, item: Mapping[str, Any]) -> None:
        """Read a message of the model or a step: its calls, wherever they are, its text, and its result."""
        before = len(self.calls)
        thought = self._at(item, "thought")
        self._thought = thought if isinstance(thought, str) else self._thought
        own = (key for key in item if key not in self._inner and key not in _NO_PLACE)
        for key in (*self._inner, *own):
            inner = parsed(item.get(key))
            if isinstance(inner, dict | list) and len(self.calls) == before:
                self._read_inner(key, inner)
        for tool, inputs in item.items() if len(self.calls) == before else ():
            if tool in self._inputs and isinstance(
                inputs, dict
            ):  # {"count_objects": {"image": ...}}
                self._add_call(tool, inputs)
        if len(self.calls) == before:
            text = text_of(value_at(item, "content|value|text|action|answer|final_answer"))
            self._read_text(text)
        returned = self._returned(item)
        new = len(self.calls) - before
        if not new or returned is NOTHING or not self._waiting:
            return
        are_apart = isinstance(returned, list) and len(returned) == new > 1
        for each in cast(list[Any], returned) if are_apart else [returned]:
            self._attach(None, each)

    def _read_inner(self, key: str, inner: Any) -> None:
        """Read the objects in a value that are calls or hold calls; other values say nothing on calls."""
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, str) and key in _INNER and _NAME.match(each) and "(" in each:
                self._read_text(each)
            elif isinstance(each, dict):
                each = with_plain_keys(each)
                self._note_pictures(each)
                nested = each.get("function_call")
                if isinstance(nested, dict):
                    each = nested
                if self._is_call(each) or {*each} & {*_HOLDERS}:
                    self._read_object(each)
            elif isinstance(each, list):
                self._read_inner(key, each)

    def _note_pictures(self, item: Mapping[str, Any]) -> None:
        """Keep the pictures in the parts of a message, as OpenAI, Qwen and Anthropic write them."""
        parts = value_at(item, "content")
        for part in parts if isinstance(parts, list) else ():
            found = value_at(part, "image_url.url|image_url|image|source.data|image_path")
            if found:
                self.pictures.append(found)

    # --- text ---------------------------------------------------------------------------------------------------------

    def _read_text(self, text: str) -> None:
        """Read the calls in a text, each with the observation after it, and the answer at its end."""
        if _WHOLE_CALL.fullmatch(text):
            with suppress(BenchmarkError):
                self._add_call(*_written(text, self._inputs))
                return
        text = _in_words_of_react(_NUMBERED.sub(r"\1:", _SPEAKER.sub("", text)))
        first, *others = _OBSERVATION.split(text)
        opening = _FIRST_MARK.search(first)
        head = first[: opening.start()] if opening else ""
        if asked := _QUESTION.search(head):
            self.question = self.question or plain_question(asked[1])
        self._read_turn(first[asked.end() :] if asked else first)
        for other in others:
            mark = _FIRST_MARK.search(other)
            end = mark.start() if mark else len(other)
            if self._waiting:
                self._attach(None, _unmarked(other[:end]))
            self._read_turn(other[end:])

    def _read_turn(self, text: str) -> None:
        if not text.strip():
            return
        written = re.search(r"^\s*Action:\s*(.+?)\s*(?:\n|\Z)", text, re.MULTILINE)
        action = written[1].strip("`* ") if written else ""
        thought = re.search(r"Thought:\s*(.*?)\s*(?:\n\s*Action:|\Z)", text, re.DOTALL)
        said = thought[1] if thought else ""
        if bracketed := _BRACKETED.fullmatch(action):
            self._add_call(bracketed[1], bracketed[2], said)
            return
        tools = {
            tool: {"type": "object", "properties": {name: {} for name in names}}
            for tool, names in self._inputs.items()
        }
        output = parse_output(text, tools=tools)
        if isinstance(output, CallTools):
            for call in output.calls:
                if "properties" in call.arguments:
                    continue  # the schema of a tool
                self._add_call(call.tool, call.arguments, output.thought, call.id)
        elif action and _SPACED_CALL.fullmatch(action):
            tool, arguments = _written(action, self._inputs)
            self._add_call(tool, arguments, said)
        elif action:
            plain = re.search(r"^\s*Action Input:\s*(.*)", text, re.MULTILINE | re.DOTALL)
            self._add_call(action, plain[1].strip() if plain else "", said)
        elif isinstance(output, Answer):
            self._thought = self.answer = output.text
        else:
            self._thought = said or text.strip()


_SPEAKER = re.compile(r"^[ \t]*(?:Assistant|Agent|AI|GPT)[ ]*:[ ]*", re.MULTILINE)
_STEP = r"^[ \t]*(?:[-*][ ]+)?(?:(?:Step|步骤)[ ]*\d+[ ]*[:：.)-][ ]*|\d+[.)、][ ]*)?"
_REACT_WORDS = {
    "Action": r"(?:Tool|Tool Name|Tool Call|Function|API|Call)",
    "Action Input": r"(?:Input|Inputs|Arguments|Args|Parameters|Params|Tool Input)",
    "Observation": r"(?:Output|Result|Response|Returns|Return|Tool Output|Tool Result)",
    "Thought": r"(?:Reasoning|Rationale|Think)",
    "Final Answer": r"(?:Answer|Conclusion|Final)",
}
"""Words of ReAct, with other words for them at the start of a line."""
_WRITTEN_STEP = re.compile(
    _STEP
    + r"(?:Action[ ]*:[ ]*)?(?:(?:Calls?|Calling|Use|Run)[ ]+|调用[ ]*)?"
    + r"`?(?P<call>[\w.]+\(.*?\)|[A-Z]\w*(?:[ -]\w+){1,5}\(\w+[ ]*[=:].*?\)(?=[ ]*(?:->|=>|→)))`?"
    + r"[ ]*(?:->|=>|→|:)[ ]*(?P<result>.+)$",
    re.MULTILINE | re.IGNORECASE,
)
"""Step as a call of Python and its result, ``1. count(image="a.png") -> {"count": 3}``."""


def _in_words_of_react(text: str) -> str:
    """Return a trace in the words of ReAct, where it has others."""
    if not text.isascii():
        text = _CHINESE_WORD.sub(_word_of_react, text)
    found = _WRITTEN_STEP.sub(r"Action: \g<call>\nObservation: \g<result>", text)
    if re.search(r"^[ \t]*Action:", text, re.MULTILINE):
        return found
    for word, others in _REACT_WORDS.items():
        found = re.sub(rf"{_STEP}\**{others}\**[ ]*:\**", f"{word}:", found, flags=re.MULTILINE)
    return found if re.search(r"^Action:", found, re.MULTILINE) else text


_CHINESE_WORD = re.compile(rf"{_STEP}([\u4e00-\u9fff]+)\d*[ ]*[:：][ ]*", re.MULTILINE)
"""Word of a step in Chinese at the start of a line."""


def _word_of_react(found: re.Match[str]) -> str:
    word = words("steps").get(found[1])
    return f"{word}: " if word else found[0]


_OBSERVED = re.compile(
    r"\s*(?:Observation|Tool (?:output|result|response))\s*:|\s*(?=<tool_respon)", re.I
)
_OBSERVATION = re.compile(
    r"^[ \t]*(?:\**(?:Observation|Tool Response|Tool Output|Tool Result)\**\s*:\**|(?=<tool_respon\w+>))",
    re.MULTILINE | re.IGNORECASE,
)
_FIRST_MARK = re.compile(
    r"^[ \t]*\**(?:Thought|Action|Final Answer|Answer)\**\s*:|<(?:think|tool_call|answer)>",
    re.MULTILINE,
)
_NUMBERED = re.compile(
    r"^[ \t]*\**(Thought|Action Input|Action|Observation|Final Answer)[ ]*\d*\**[ ]*:\**",
    re.MULTILINE,
)
_QUESTION = re.compile(r"(?:Question|Query|User|Human)\s*:\s*(.+?)\s*\Z", re.DOTALL)
_RESULT_TAG = re.compile(r"\s*<(tool_respon\w+)>(.*?)(?:</\1>|\Z)", re.DOTALL)


def _unmarked(text: str) -> str:
    """Return the text of a result without the tag around it."""
    tagged = _RESULT_TAG.match(text)
    return (tagged[2] if tagged else text).strip()


def _unquoted(value: Any) -> Any:
    is_quoted = isinstance(value, str) and len(value) > 1 and value[0] == value[-1] in "\"'"
    return value[1:-1] if is_quoted else value


def _pairs(arguments: Sequence[Any]) -> dict[str, Any]:
    """Return arguments that are listed as names and values, as columns of objects can hold them; empty if not so."""
    found: dict[str, Any] = {}
    for each in arguments:
        name = value_at(each, "name|key|argument") if isinstance(each, dict) else None
        if not isinstance(name, str) or "value" not in each:
            return {}
        found[name] = each["value"]
    return found


_NAMED = re.compile(r"\s*([^\W\d][\w \-]{0,39}?)\s*[=:：]\s*(\S.*?)\s*", re.DOTALL)
"""Argument as ``expression = 2 + 3`` or ``图像：a.png``: a short name, and its value."""
_LISTS = {*"x y labels values categories series x_values y_values".split()}
"""Names of arguments of charts whose values are lists."""


def named_in_text(text: str, names: Sequence[str] = ()) -> Arguments:
    """Return arguments by name that are written as ``image = a.png; object = tree``; empty if they are not.

    ``names``: arguments of the tool. A single argument counts only under a known name, as an equation is one, too.
    """
    parts = [part for part in re.split(r"[;；\n]", text) if part.strip()]
    if len(parts) == 1:
        by_comma = re.split(r"[,，]", text)
        parts = by_comma if all(_NAMED.fullmatch(part) for part in by_comma) else parts
    found: dict[str, Any] = {}
    last = ""
    for part in parts:
        pair = _NAMED.fullmatch(part)
        if pair:
            last = pair[1] if pair[1] in names else argument_name(pair[1])
            found[last] = pair[2]
        elif last:  # a value may have the mark between two arguments
            found[last] = f"{found[last]};{part}"
        else:
            return {}
    if len(found) == 1 and last not in known_arguments() | {*names}:
        return {}
    return {name: _value_of(name, value) for name, value in found.items()}


def _value_of(name: str, text: str) -> Any:
    """Return the value of an argument in a text: the list of a chart, JSON, or the text."""
    if name in _LISTS and not text.startswith("["):
        items = [item.strip() for item in re.split(r"[,，、]", text)]
        numbers = [number_in(item) for item in items]
        if len(items) > 1:
            return items if None in numbers else numbers
    is_number = name not in _TEXTS and _PLAIN_NUMBER.fullmatch(text)
    return loads(text) if is_number else parsed(text)


_TEXTS = {"expression", "formula", "query", "question", "keywords", "topic", "title"}
"""Names of arguments that are texts, also where they are a number."""
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d+)?")


def english_call(call: TracedCall) -> TracedCall:
    """Return a call with its tool and its arguments in English, where the names are Chinese and known."""
    given = {
        name if name.isascii() else argument_name(name): value
        for name, value in call.arguments.items()
    }
    for name in ("type", "kind", "chart_type"):
        if isinstance(word := given.get(name), str):
            given[name] = in_english(word, "charts")
    return call._replace(tool=in_english(call.tool, "tools_in_chinese"), arguments=given)


def _rows_of_columns(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of an object of lists of one length, as ``datasets`` stores a list of objects; empty if none."""
    columns = list(value.values())
    if len(columns) < 2 or not all(isinstance(column, list) for column in columns):
        return []
    if len({len(column) for column in columns}) != 1:
        return []
    return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]


_STEP_KEY = re.compile(r"(?:step|turn|call)?[_ ]?\d+", re.IGNORECASE)


def _of_accepted_values(value: Any) -> tuple[str, Arguments] | None:
    """Return the call of an object that lists the values of each argument that count, as BFCL does; None if none.

    The first value counts: ``{"count": {"image": ["a.png"], "gsd_m": [0.25, ""]}}``.
    """
    if not isinstance(value, dict) or len(cast(Arguments, value)) != 1:
        return None
    ((tool, arguments),) = value.items()
    is_tool = isinstance(tool, str) and _NAME.fullmatch(tool) and tool not in _INNER
    if not is_tool or not isinstance(arguments, dict) or not arguments:
        return None
    if not all(isinstance(each, list) and each for each in arguments.values()):
        return None
    return tool, {name: each[0] for name, each in arguments.items() if each[0] != ""}


def _numbered_steps(value: dict[str, Any]) -> list[Any]:
    """Return the steps of an object that numbers them, ``{"step_1": {...}}``; empty if it is none."""
    is_numbered = all(_STEP_KEY.fullmatch(str(key)) for key in value)
    return list(value.values()) if value and is_numbered else []


def _written(call: str, inputs: Inputs) -> tuple[str, Arguments]:
    """Return tool and arguments of a call that is written as Python, ``Tool(a="x")``."""
    with suppress(SyntaxError, ValueError, AttributeError):
        tree: Any = ast.parse(call.strip(), mode="eval").body
        tool = ast.unparse(tree.func)
        names = inputs.get(tool, ())
        plain = [ast.literal_eval(each) for each in tree.args]
        named = {each.arg: ast.literal_eval(each.value) for each in tree.keywords}
        if len(plain) == 1 and isinstance(plain[0], dict) and not named:
            return tool, plain[0]
        if len(tree.args) <= len(names):
            return tool, {**dict(zip(names, plain, strict=False)), **named}
    tool, _, inner = call.strip().removesuffix(")").partition("(")
    given = named_in_text(inner.strip(), inputs.get(tool, ()))  # texts without quotes, image=a.png
    if given or not inner.strip():
        return tool, {name: _unquoted(value) for name, value in given.items()}
    raise BenchmarkError(
        f"the tool {call[:60]!r} is a whole call, with arguments without names ([calls] tool)"
    )
