"""Lenient reader of JSON written by models: within prose, with Python quotes and constants, with trailing commas.

Repairs only change spelling (quotes, constants, commas, comments, escapes, doubled braces). Truncated or unbalanced
values are rejected, because a guess at the missing part would not be the model's answer. All functions take time linear
in the text. (json-repair 0.64 is not used because it completes truncated values, reads prose as "", and takes over 8 s
for 100 kB of ``{``.)
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn, cast

from pydantic import JsonValue

from agrotools.core.texts import without_surrogates

MAX_DEPTH = 60
_INT64 = 2**63

_OPEN = re.compile(r"[{\[]")
_BRACKET_OR_QUOTE = re.compile(r"[{}\[\]\"'“]")
_STRINGS = {
    '"': re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"', re.DOTALL),
    "'": re.compile(r"'[^'\\]*+(?>(?:\\.[^'\\]*+)*)'", re.DOTALL),
    "“": re.compile(r"“[^”]*+”"),
}
_CLOSERS = {"{": "}", "[": "]"}
_DOUBLED_BRACE = re.compile(r"\{\s*+\{")

# An unclosed string matches up to the end of the text, so that it is scanned only once.
_TOKEN = re.compile(
    r"(?P<string>"
    + "|".join(
        rf"{pattern.pattern[:-1]}(?:{pattern.pattern[-1]}|\Z)" for pattern in _STRINGS.values()
    )
    + r")|(?P<comment>(?://|#)[^\n]*)|(?P<comma>,(?=\s*+[}\]]))|(?P<constant>\b(?:True|False|None)\b)",
    re.DOTALL,
)
_IN_STRING = re.compile(
    r"\\x(?P<hex>[0-9a-fA-F]{2})|\\U(?P<long>[0-9a-fA-F]{8})|(?P<escape>\\.)|(?P<quote>\")",
    re.DOTALL,
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
dumps = json.JSONEncoder(ensure_ascii=False).encode
"""``json.dumps`` without ASCII escapes. A shared encoder, because ``json.dumps`` would create one per call."""


class NotJson(ValueError):
    """Text that cannot be read as JSON, even with repairs; the message gives the position of the error."""


def loads(text: str) -> JsonValue:
    """Read one JSON value, strictly if possible, else with repairs.

    Integers beyond 64 bits become floats and lone surrogates U+FFFD, because records cannot store them.

    Raises:
        NotJson: the text is not JSON even after repairs, holds a non-finite number, or is nested deeper than
            ``MAX_DEPTH``.
    """
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as strict:
        try:
            value = _DECODER.decode(_TOKEN.sub(_respelt, _with_single_braces(text)))
        except (ValueError, RecursionError):
            raise _not_json(strict) from None
    return _clean(value, MAX_DEPTH)


def loads_strictly(text: str) -> JsonValue:
    """Read one JSON value without repairs, like ``json.loads``; NaN and Infinity become text.

    Integers beyond 64 bits and lone surrogates are replaced as in :func:`loads`.

    Raises:
        NotJson: the text is not JSON, holds a number that overflows, or is nested deeper than ``MAX_DEPTH``.
    """
    try:
        value = _STRICT_DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(error) from None
    return _clean(value, MAX_DEPTH)


def parsed(text: Any) -> Any:
    """Return the list or object that a text holds as JSON or Python, else the value itself."""
    if isinstance(text, str) and text.strip()[:1] in ("[", "{"):
        with suppress(NotJson):
            return loads(text)
    return text


def storable(value: Any) -> JsonValue:
    """Return a value as :func:`loads_strictly` reads its JSON, which records, pages and exports can store.

    Raises:
        NotJson: it is no JSON value, holds a number that overflows, or is nested deeper than ``MAX_DEPTH``.
    """
    try:
        return loads_strictly(dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(error) from None


def _not_json(error: Exception) -> NotJson:
    return NotJson("nested too deeply" if isinstance(error, RecursionError) else str(error))


def _with_single_braces(text: str) -> str:
    """Return the text without braces that directly enclose another brace: ``{{"name": ...}}``.

    The chat template of Qwen 2.5 Coder shows calls in this form, and the model copies it. No JSON holds it.
    """
    if not _DOUBLED_BRACE.search(text):
        return text
    left_out: set[int] = set()
    open_at: list[int] = []
    doubled: set[int] = set()
    after_brace = -1  # the position behind a brace that has just opened
    for mark in _brackets(text, 0):
        at, bracket = mark.start(), mark.group()
        if bracket in "{[":
            if bracket == "{" and after_brace >= 0 and not text[after_brace:at].strip():
                doubled.add(open_at[-1])
            open_at.append(at)
        elif open_at and (start := open_at.pop()) in doubled:
            left_out.update((start, at))
        after_brace = mark.end() if bracket == "{" else -1
    return "".join(letter for at, letter in enumerate(text) if at not in left_out)


def _respelt(match: re.Match[str]) -> str:
    token = match[0]
    if match["string"]:
        if len(token) < 2 or token[-1] not in "\"'”":
            return token
        return '"' + _IN_STRING.sub(_re_escaped, token[1:-1]) + '"'
    return _CONSTANTS.get(token, "")


def _re_escaped(match: re.Match[str]) -> str:
    """Convert an escape of a Python string literal to a JSON escape."""
    if match["hex"]:
        return f"\\u00{match['hex']}"
    if match["long"]:
        code = int(match["long"], 16)
        return json.dumps(chr(code))[1:-1] if code < 0x110000 else "\\ufffd"
    if match["quote"]:
        return '\\"'
    return {"\\'": "'", "\\\n": ""}.get(match[0], match[0])


def _integer(text: str) -> int | float:
    value = int(text) if len(text) < 25 else float(text)
    return value if isinstance(value, int) and -_INT64 <= value < _INT64 else _finite(text)


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:30]} is too large a number")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


_DECODER = json.JSONDecoder(
    strict=False, parse_int=_integer, parse_float=_finite, parse_constant=_refuse
)
_STRICT_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_finite, parse_constant=str)


def _clean(value: Any, depth: int) -> JsonValue:
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list | dict) and depth == 0:
        raise NotJson("nested too deeply")
    if isinstance(value, list):
        return [_clean(item, depth - 1) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            without_surrogates(key): _clean(item, depth - 1)
            for key, item in cast("dict[str, Any]", value).items()
        }
    return value


def value_at(text: str, start: int) -> tuple[int, int] | None:
    """Return (start, end) of the first bracketed value from ``start`` on; None if there is none or it never closes."""
    opened = _OPEN.search(text, start)
    if opened is None:
        return None
    depth = 0
    for mark in _brackets(text, opened.start()):
        depth += 1 if mark.group() in "{[" else -1
        if depth == 0:
            return opened.start(), mark.end()
    return None


def parsed_values(text: str) -> Iterator[JsonValue]:
    """Yield the readable outermost JSON values in ``text``, the last one first."""
    for start, end in reversed(values_in(text)):
        with suppress(NotJson):
            yield loads(text[start:end])


def values_in(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of all outermost balanced brackets in ``text``, in order.

    An opening bracket that never closes does not hide the balanced ones after it.
    """
    stack: list[tuple[str, int]] = []
    spans: list[tuple[int, int]] = []
    for mark in _brackets(text, 0):
        bracket = mark.group()
        if bracket in "{[":
            stack.append((bracket, mark.start()))
            continue
        if not stack or _CLOSERS[stack[-1][0]] != bracket:
            stack.clear()
            continue
        _, start = stack.pop()
        while spans and spans[-1][0] > start:
            spans.pop()
        spans.append((start, mark.end()))
    return spans


def _brackets(text: str, start: int) -> Iterator[re.Match[str]]:
    """Yield brackets outside strings; quotes count only inside brackets, because prose contains apostrophes."""
    position, depth = start, 0
    # After an unclosed quote, no later quote of its kind opens a string; remembering this keeps the time linear.
    unclosed: set[str] = set()
    while mark := _BRACKET_OR_QUOTE.search(text, position):
        position = mark.end()
        symbol = mark.group()
        if symbol in _STRINGS:
            if (
                depth > 0
                and symbol not in unclosed
                and (symbol == '"' or _opens_value(text, mark.start()))
            ):
                string = _STRINGS[symbol].match(text, mark.start())
                if string:
                    position = string.end()
                else:
                    unclosed.add(symbol)
            continue
        depth = max(0, depth + (1 if symbol in "{[" else -1))
        yield mark


def _opens_value(text: str, at: int) -> bool:
    """True if a quote at position ``at`` begins a key or value rather than being part of a word."""
    while at > 0 and text[at - 1] in " \t\r\n":
        at -= 1
    return at > 0 and text[at - 1] in "{[,:("
