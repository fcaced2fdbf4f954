"""Markups in which models write calls as text when the server has no parser for them.

Tables: markups that are read, and invented turns. All other markups are recognised by the names of the offered tools.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from agrotools.core import Arguments
from agrotools.text.loose_json import NotJson, loads

Schemas = Mapping[str, Mapping[str, Any]]
"""JSON Schemas of the arguments of the offered tools."""


class Markup(NamedTuple):
    """How the calls of some models begin, and an example: ``count`` of the image ``a.jpg`` with ``x`` 0.5.

    After an opening with the group ``tool``, the arguments follow: a JSON object, or a tag for each parameter. After
    any other one, whole calls follow: JSON objects with name and arguments, or Python calls with keywords.
    """

    models: str
    opening: str
    example: str


_NAME = r"[^\W\d][\w.\-]{0,99}"
_TOOL = rf"(?P<tool>{_NAME})"
# fmt: off
MARKUPS = (
    Markup("DeepSeek V3, R1", rf"<｜tool▁call(?:s▁begin｜>\s*<｜tool▁call)?▁begin｜>function<｜tool▁sep｜>{_TOOL}",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>count\n```json\n"
           '{"image": "a.jpg", "x": 0.5}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'),
    Markup("DeepSeek V3.1", rf"<｜tool▁call(?:s▁begin｜>\s*<｜tool▁call)?▁begin｜>{_TOOL}<｜tool▁sep｜>",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>count<｜tool▁sep｜>"
           '{"image": "a.jpg", "x": 0.5}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'),
    Markup("Kimi K2", r"<\|tool_call(?:s_section_begin\|>\s*<\|tool_call)?_begin\|>\s*(?:functions\.)?"
           rf"{_TOOL}(?::\d+)?\s*<\|tool_call_argument_begin\|>",
           "<|tool_calls_section_begin|><|tool_call_begin|>functions.count:0<|tool_call_argument_begin|>"
           '{"image": "a.jpg", "x": 0.5}<|tool_call_end|><|tool_calls_section_end|>'),
    Markup("gpt-oss", r"(?:<\|start\|>assistant(?:<\|channel\|>\w+)?|<\|channel\|>\w+|commentary) to=(?:functions\.)?"
           rf"{_TOOL}\s*+(?:<\|channel\|>\w+ ?)?(?:<\|constrain\|>)?(?:json|code)?(?:<\|message\|>)?\s*(?=\{{)",
           "<|channel|>analysis<|message|>I count.<|end|><|start|>assistant<|channel|>commentary to=functions.count "
           '<|constrain|>json<|message|>{"image": "a.jpg", "x": 0.5}<|call|>'),
    Markup("Qwen3-Coder", rf"<tool_call>\s*<function={_TOOL}>", "<tool_call>\n<function=count>\n<parameter=image>\n"
           "a.jpg\n</parameter>\n<parameter=x>\n0.5\n</parameter>\n</function>\n</tool_call>"),
    Markup("Llama 3.1", rf"<function={_TOOL}>", '<function=count>{"image": "a.jpg", "x": 0.5}</function>'),
    Markup("GLM 4.5", rf"<tool_call>\s*{_TOOL}\s*(?=<arg_key>|</tool_call>|\{{)", "<tool_call>count\n<arg_key>image"
           "</arg_key>\n<arg_value>a.jpg</arg_value>\n<arg_key>x</arg_key>\n<arg_value>0.5</arg_value>\n</tool_call>"),
    Markup("MiniMax M2, DeepSeek V3.2",
           rf"<(?:(?:minimax:tool_call|(?:｜DSML｜)?function_calls)>\s*<)?(?:｜DSML｜)?invoke\s+name=[\"']{_TOOL}[\"']>",
           '<minimax:tool_call>\n<invoke name="count">\n<parameter name="image">a.jpg</parameter>\n'
           '<parameter name="x">0.5</parameter>\n</invoke>\n</minimax:tool_call>'),
    Markup("Mistral, 2025", rf"\[TOOL_CALLS\]\s*{_TOOL}(?:\[CALL_ID\]\w{{1,40}})?(?:\[ARGS\])?(?=\s*\{{)",
           '[TOOL_CALLS]count[ARGS]{"image": "a.jpg", "x": 0.5}'),
    Markup("Mistral", r"\[TOOL_CALLS\]", '[TOOL_CALLS][{"name": "count", "arguments": {"image": "a.jpg", "x": 0.5}}]'),
    Markup("Hermes, Qwen, Granite", r"<\|?(?:tool_call|function_call|tool_use)\|?>",
           '<|tool_call|>[{"name": "count", "arguments": {"image": "a.jpg", "x": 0.5}}]'),
    Markup("Llama, LFM2", r"<\|(?:python_tag|python_start|tool_call_start)\|>",
           '<|tool_call_start|>[count(image="a.jpg", x=0.5)]<|tool_call_end|>'),
    Markup("Llama 3.2, 4", rf"^[ \t]*+\[(?={_NAME}\(\s*(?:\)|{_NAME}\s*=))", "[count(image='a.jpg', x=0.5)]"),
    Markup("Gemma 3", r"```tool_code\b", '```tool_code\nprint(default_api.count(image="a.jpg", x=0.5))\n```'),
)
# fmt: on
ANY_OPENING = "|".join(markup.opening.replace("?P<tool>", "?:") for markup in MARKUPS)
_OPENINGS = tuple(re.compile(markup.opening, re.IGNORECASE | re.MULTILINE) for markup in MARKUPS)

# Beginnings of turns that are not the model's: words before a colon, and tags.
INVENTED_LINE = (
    r"observation|观察|(?:(?:tool|function)[ _])?(?:response|results?|output)|user|human"
)
INVENTED_TAG = (
    r"<(?:tool_respon|function_resul|tool_resul|observ)\w+>"
    r"|<[|｜](?:user|observation|im_start)[|｜]>|```tool_output"
)
# The answer of gpt-oss, also where the server removed the special tokens.
HARMONY_ANSWER = (
    r"(?:<\|(?:start\|>assistant<\|)?channel\|>|assistant)final(?:[^<\n]{0,40}<\|message\|>)?"
)

_PARAMETER = re.compile(
    r"\s*+(?:<(?:｜DSML｜)?parameter(?:=|\s+name=)[\"']?(?P<name>[^\"'<>\s]{1,100})[\"']?[^<>\n]{0,40}>"
    r"|<arg_key>(?P<key>[^<>\n]{1,100})</arg_key>(?>(?:\\n|\s)*)<arg_value>)"
)
_PARAMETER_END = re.compile(r"</(?:｜DSML｜)?(?:parameter|arg_value)>")
_PYTHON_CALL = re.compile(
    r"[\s;,\[)]*+(?:[^\W\d]\w{0,60} ?= ?)?(?:print\()?(?:[^\W\d]\w{0,60}\.){0,3}(?P<tool>[^\W\d]\w{0,99})\("
)
# An unclosed string matches up to the end of the text, so that it is scanned only once.
_PYTHON_TOKEN = re.compile(
    r"\"[^\"\\]*+(?>(?:\\.[^\"\\]*+)*)(?:\"|\Z)|'[^'\\]*+(?>(?:\\.[^'\\]*+)*)(?:'|\Z)"
    r"|(?<!\w)(?P<keyword>[^\W\d]\w{0,99}+)\s*+=(?!=)|(?P<bracket>[()\[\]{}])",
    re.DOTALL,
)


def opening_at(text: str, position: int) -> re.Match[str]:
    """Return the match of the markup that begins at ``position``, where :data:`ANY_OPENING` matches."""
    return next(match for opening in _OPENINGS if (match := opening.match(text, position)))


def parameters_at(
    text: str, position: int, schema: Mapping[str, Any]
) -> tuple[Arguments, int] | None:
    """Return the arguments in tags from ``position`` on, and their end; None if they do not end with a closing tag.

    Values are JSON if they can be parsed and the ``schema`` of the arguments does not ask for text.
    """
    arguments: Arguments = {}
    properties = schema.get("properties", {})
    while opened := _PARAMETER.match(text, position):
        closed = _PARAMETER_END.search(text, opened.end())
        if closed is None:
            return None
        name, value = (
            opened["name"] or opened["key"].strip(),
            text[opened.end() : closed.start()].strip("\r\n"),
        )
        arguments[name], position = value, closed.end()
        if properties.get(name, {}).get("type") != "string":
            with suppress(NotJson):
                arguments[name] = loads(value)
    rest = text[position : position + 100].lstrip()
    return (arguments, position) if not rest or rest.startswith("</") else None


def python_call_at(text: str, position: int) -> tuple[str, str, int] | None:
    """Return name, arguments as JSON and end of the Python call at ``position``; None if there is none."""
    called = _PYTHON_CALL.match(text, position)
    if called is None:
        return None
    parts = ["{"]
    depth = 1
    end = called.end()
    for token in _PYTHON_TOKEN.finditer(text, end):
        parts.append(text[end : token.start()])
        end, bracket = token.end(), token["bracket"]
        depth += 0 if bracket is None else 1 if bracket in "([{" else -1
        if depth == 0:
            return called["tool"], "".join([*parts, "}"]), end
        parts.append(
            f'"{token["keyword"]}":'
            if token["keyword"]
            else {"(": "[", ")": "]"}.get(token[0], token[0])
        )
    return called["tool"], "", len(text)


def unread_call(text: str, tools: Iterable[str]) -> str:
    """Return the part of ``text`` that calls an offered tool in whatever markup; empty if it only mentions tools."""
    names = tuple(sorted(name for name in tools if name and name in text))
    found = _call_like(names).finditer(text) if names else ()
    return next(
        (match[0] for match in found if not match["open"] or _is_python_call(text, match)), ""
    )


@lru_cache(maxsize=256)
def _call_like(names: tuple[str, ...]) -> re.Pattern[str]:
    name = rf"(?:(?<!\w)|(?<=function))(?:{'|'.join(map(re.escape, names))})(?!\w)"
    token = r"(?:<[|｜][^<>\n]{0,40}>|<[^<>\n]{0,40}(?:[|｜]|tool|func|call|name)[^<>\n]{0,9}>|\[/?TOOL[A-Z_]{0,20}\])"
    as_value = rf"[{{,]\s{{0,40}}[\"']\w{{1,40}}[\"']\s?:\s{{0,9}}[\"']{name}[\"']"
    before_object = rf"{name}(?::\d+)?:?\s{{0,3}}(?:```\w{{0,9}}\s{{0,3}})?\{{"
    in_tag, after_token = (
        rf"<[^<>\n]{{0,100}}?{name}[^<>\n]{{0,200}}>",
        rf"{token}\s{{0,9}}[^\s<]{{0,40}}?\s?{name}",
    )
    first = re.escape("".join({"<", "[", "{", ",", *(name[0] for name in names)}))
    return re.compile(
        rf"(?=[{first}])(?:{in_tag}|{after_token}|{as_value}|{before_object}|{name}(?P<open>\())"
    )


_ONLY_AN_OBJECT = re.compile(
    r"\s*+(?:(?:example|action[ _]input|arguments)\s?+:\s*+)?(?:```\w*+\s*+)?(?P<object>\{.*\})(?:\s*+```)?\s*+",
    re.IGNORECASE | re.DOTALL,
)
_TYPES_IN_PLACE_OF_VALUES = re.compile(
    r"\{\s*+\"\w++\"\??+:\s*+(?:string|number|integer|boolean|object|any)\b"
)


def bare_arguments(text: str, tools: Schemas) -> str:
    """Return a reply that is nothing but arguments of an offered tool, such as a copied example; empty if it is not.

    They are not run, because the reply does not say of which tool. Tools without a required argument are left out: a
    box alone may be an answer.
    """
    found = _ONLY_AN_OBJECT.fullmatch(text)
    if found is None or not tools:
        return ""
    written = found["object"]
    if _TYPES_IN_PLACE_OF_VALUES.match(written):
        return written
    try:
        value = loads(written)
    except NotJson:
        return ""
    given = set(value) if isinstance(value, dict) else set[str]()
    for schema in tools.values():
        required, known = set(schema.get("required", ())), set(schema.get("properties", ()))
        if required and required <= given <= known:
            return written
    return ""


def _is_python_call(text: str, match: re.Match[str]) -> bool:
    """True if a name with a parenthesis ends its line, and begins it or has keywords or texts: prose does neither."""
    rest = text[match.end() : match.end() + 2000].partition("\n")[0].rstrip(" \t\r`*.;,]")
    before = text[max(0, match.start() - 100) : match.start()].rpartition("\n")[2].strip(" \t`*>-[")
    return not rest or (rest.endswith(")") and (not before or any(mark in rest for mark in "=\"'")))
