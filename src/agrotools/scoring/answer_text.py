"""Preparation of an answer: the text that counts, normalised and without markup, its JSON objects and sentences.

Formatting that models add around values (Markdown, LaTeX) is removed first.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast

from agrotools.text.normalise import normalise
from agrotools.text.units import fold_case

ScopeKind = Literal["json", "form line", "sentence with the label", "last sentence that fits", "whole text", "nothing"]


class Scope(NamedTuple):
    """Part of an answer that a slot is read from. ``keyed`` scopes hold only the value of this slot.

    ``unit`` is the unit of bare numbers if the key gives one: ``area (m^2): 32000``.
    """

    kind: ScopeKind
    text: str
    unit: str | None = None

    @property
    def keyed(self) -> bool:
        return self.kind in ("json", "form line")


class JsonObject(NamedTuple):
    """JSON object in a text, with the number of its JSON document and its nesting depth."""

    document: int
    depth: int
    fields: dict[str, Any]


class AnswerText(NamedTuple):
    """Answer prepared once for all slots: the normalised text, the text without markup, and the JSON objects in it.

    ``outside`` is the text without those objects, ``unread`` the number of characters beyond :data:`LONGEST_ANSWER`,
    which are ignored: those in the middle.
    """

    text: str
    plain: str
    objects: tuple[JsonObject, ...]
    outside: str
    unread: int = 0


_FINAL_ANSWER = re.compile(r"(?:final answer|最终答案|最终回答)\W{0,6}[:：]", re.IGNORECASE)
_SENTENCE_END = re.compile(
    r"(?:!(?!=)|[?。\n])+|(?<!\bapprox)(?<!\bca)(?<!\be\.g)(?<!\bi\.e)(?<!\bi)(?<!\be)(?<!\bvs)(?<!\bsq)(?<!\bfig)(?<!\bno)"
    r"(?<!\d in)(?<!\din)\."
    r"(?!\d|(?:png|jpe?g|tiff?|webp|bmp|gif|npy|csv|json|txt|pdf)\b)"
)
_LIST_MARK = re.compile(r"(?m)^[^\S\n]*(?:(?:\(?\d{1,2}[.)]|[-*•+>])[^\S\n]+|#{1,6}[^\S\n]*)(?=[^\s])")
# Beginning of a sentence that continues the previous one: "There are 14. Or 15."
_GOES_ON = re.compile(
    r"(?:or|maybe|perhaps|possibly|alternatively|(?:but )?it (?:could|might|may)(?: also)? be|也可能|或者|"
    r"也许)(?![a-z])|(?:this|that) (?:is|equals|makes|gives|corresponds to) (?:(?:about|approximately|roughly) )?\d"
)
# Tokens of chat templates, which are no part of an answer: <|im_end|>, </s>, [/INST], <s> around all of it. A value is
# struck out in "<s>64</s> 63".
_TEMPLATE_TOKEN = re.compile(
    r"<[|｜](?:(?:im_start|start_header_id)\|>(?:assistant|user|system)?|[^<>|｜\n]{1,60}[|｜]>)|\A\s*<s>(?=(?:(?!</s>).)*(?:</s>\s*)?\Z)|"
    r"</s>\s*\Z|<(?:eos|bos|pad|unk|(?:start|end)_of_turn)>|\[/?INST\]|<</?SYS>>",
    re.DOTALL,
)
_THOUGHTS = re.compile(r"<(think(?:ing)?|reasoning)>(?:(?!</\1>).)*+</\1>(?=\s*\S)", re.DOTALL)
_THOUGHT_END = re.compile(r"</(?:think(?:ing)?|reasoning)>(?=\s*\S)")
# Struck out: ~~64~~, <del>64</del>, \sout{64}; but ~~~ is a fence of code.
_STRUCK = re.compile(
    r"(?<!~)~~(?=[^~\s])(?:[^~\n]|\n(?!\s*\n)|~(?!~)){1,2000}~~(?!~)|\\(?:sout|cancel|st)\{[^{}]{0,300}\}|"
    r"<(?P<tag>del|strike|s)(?:\s[^<>]{0,200})?>(?:(?!</?(?P=tag)[\s>]).)*+</(?P=tag)\s*>",
    re.DOTALL | re.IGNORECASE,
)
# Marks of notes behind a number: 354 [1], 354<sup>1</sup>, but not those of powers: m<sup>2</sup>, 10<sup>3</sup>.
_RAISED = re.compile(r"(?i:(?<=m)<sup>([23])</sup>|(?<=10)<sup>([-\d]{1,2})</sup>|(?<=[a-z])<sup>([-−]\d)</sup>)")
_NOTE_MARK = re.compile(
    r"(?i:<sup>[^<>\d]{0,6}\d?[^<>\d]{0,6}</sup>)|"
    r"(?<=\d)(?P<unit>(?: ?[^\W\d_]{1,12}[²³]?| ?%)?)(?: ?\[(?:[1-9]|\^[\w-]{1,12})\])+(?!:)"
)
LONGEST_ANSWER = 65_536
"""Maximum number of characters read after the last ``Final Answer:``: the first and the last half of a longer text."""


@lru_cache(maxsize=256)
def read_answer(answer: str) -> AnswerText:
    """Prepare the text after the last ``Final Answer:`` (rule 1); the whole answer if it has no such marker."""
    answer = _TEMPLATE_TOKEN.sub(" ", answer) if "<" in answer or "[" in answer else answer
    begin = 0
    for marker in _FINAL_ANSWER.finditer(answer):
        begin = marker.end()
    body = answer[begin:]
    if len(body) > LONGEST_ANSWER:
        body = body[max((thought.end() for thought in _THOUGHT_END.finditer(body)), default=0) :]
    unread = max(0, len(body) - LONGEST_ANSWER)
    body = _both_ends(body) if unread else body
    body = _STRUCK.sub(" ", _THOUGHTS.sub("", body))
    body = _RAISED.sub(lambda power: f"^{power[1] or power[2] or power[3]}", body) if "<" in body else body
    body = fold_case(_NOTE_MARK.sub(r"\g<unit>", body))
    text = normalise(body)[:LONGEST_ANSWER]
    plain = without_markup(text)
    objects, spans = json_objects(body)
    outside = without_markup(normalise(_cut(body, spans))[:LONGEST_ANSWER]) if objects else plain
    return AnswerText(text, plain, objects, outside, unread)


def _both_ends(text: str) -> str:
    """Return what is read of a long text, half of it from each end, without the words that the cuts shorten."""
    half = LONGEST_ANSWER // 2
    first, last = text[: half - 1], text[-half:]
    line = last.find("\n", 0, 400)
    return f"{first[: first.rfind(' ', -40)]}\n{last[line if line >= 0 else max(0, last.find(' ', 0, 40)) :]}"


def _cut(text: str, spans: Sequence[tuple[int, int]]) -> str:
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return "\n".join(text[start:end] for start, end in zip(starts, ends, strict=True))


_LATEX_WORDS = {r"\times": "×", r"\cdot": "×", r"\approx": "≈", r"\pm": "±", r"\%": "%", r"\_": "_"} | {
    **dict.fromkeys((r"\,", r"\;", r"\ "), " "),
    **dict.fromkeys((r"\(", r"\)", r"\[", r"\]", r"\left", r"\right"), ""),
}
_LATEX_WORD = re.compile("|".join(re.escape(word) for word in sorted(_LATEX_WORDS, key=len, reverse=True)))
_LATEX_GROUP = re.compile(r"\\(?:boxed|text|textbf|mathbf|mathrm|mathit|mathsf|operatorname)\s?\{([^{}]{0,300})\}")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]{1,80})\}\s?\{([^{}]{1,80})\}")
# Powers and products of units: m^{2}, ha^(-1), t*ha^-1.
_BRACED_POWER = re.compile(
    r"\^\s?(?:\{\s?([-+]?\d{1,3})\s?\}|\(\s?([-+]\d{1,3})\s?\))|(?<=[a-z])\*\*(-?[1-4])(?![\d.,*])"
)
_PRODUCT = re.compile(r"(?<=[a-z\d])(?:\s?\*\s?|\.)(?=[a-z]{1,5}\^?-\d)")
_DEGREE = re.compile(r"\s?\^\s?(?:\{\s?\\circ\s?\}|\\circ)")
_LATEX_THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|\\[,;])(?=\d{3}(?!\d))")
# A dollar sign before a digit is kept: it may be the currency of a label, and does not affect numbers.
_TAG = re.compile(r"</?[A-Za-z_]{1,24}>")
_PLACEHOLDER = re.compile(r"<(\s?[-+]?\d[\d.,]{0,20}[^<>\n]{0,12})>")
"""Value that is still in the angle brackets of the form: ``<78> %``."""
_PLACEHOLDER_OF_WORDS = re.compile(
    r"(?:\A|(?<=[:=,>])|(?<=[:=,>][\s*\"']))([\s*\"']{0,3})<(?!(?:br|hr|p|li)>)([^\W_](?:[^<>|\n]{0,200}[\w)])?)>"
)
"""Words that are still in the angle brackets of the form, ``<magenta>``, or a tag that is closed, ``<b>``."""
_CLOSING_TAG = re.compile(r"</([^<>\n]{1,40})>")
_SPREAD = re.compile(r"(?:\+ ?/ ?-|\+-|\bplus(?: or |/)minus|\bgive or take) ?(?=\d)")
_MARKDOWN = re.compile(
    r"\$(?!\d)|\*\*|__(?=\W|$)|(?<!\w)__|`+|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|\*(?=[^\W\d])|(?<=[^\W\d])\*"
)


def without_markup(text: str) -> str:
    """Remove Markdown emphasis, code marks and LaTeX commands around values."""
    text = _LATEX_THOUSANDS.sub(",", _DEGREE.sub("°", text.replace(r"\mathrm{~", r"\mathrm{ ")))
    text = _BRACED_POWER.sub(lambda power: f"^{power[1] or power[2] or power[3]}", text)
    text = _PRODUCT.sub("·", text)
    if "\\" in text:
        text = _LATEX_WORD.sub(lambda word: _LATEX_WORDS[word[0]], text)
        for _ in range(3):  # groups are nested, as in \boxed{12\text{ m}}
            text, changed = _LATEX_GROUP.subn(r"\1", text)
            if not changed:
                break
        text = _LATEX_FRACTION.sub(_as_division, text)
    text = _PLACEHOLDER.sub(r"\1", _SPREAD.sub("±", text))
    if "<" in text:
        closed = set(_CLOSING_TAG.findall(text))
        text = _PLACEHOLDER_OF_WORDS.sub(lambda each: each[0] if each[2] in closed else each[1] + each[2], text)
    return _MARKDOWN.sub("", _TAG.sub("\n", text))


def _as_division(fraction: re.Match[str]) -> str:
    top, bottom = (part if part.replace("^", "").isalnum() else f"({part})" for part in fraction.groups())
    return f"{top}/{bottom}"


_CORRECTION = re.compile(
    r"(?<![a-z])(?:wait|correction|corrected|correcting|edit(?:ed)?(?= ?:)|(?P<weak>actually)|sorry|oops|mistake|"
    r"revised|revising|on second thought|let me (?:correct|recount|re-?check|revise)|scratch that|i was wrong|"
    r"but (?:this|that|it) (?:still )?(?:includes?|included|counts?|counted|contains?|contained))(?![a-z])|"
    r"更正|纠正|修正|不对,|重新"
)


def after_correction(text: str, limit: int | None = None, *, weak: bool = True) -> int:
    """Return the start of the text after the last retraction; 0 if there is no retraction before ``limit``.

    With ``weak``, "actually" counts as a retraction too.
    """
    begin = 0
    for mark in _CORRECTION.finditer(text, 0, len(text) if limit is None else limit):
        begin = mark.end() if weak or not mark["weak"] else begin
    return begin


def sentences(text: str) -> list[str]:
    """Split a text into sentences without list marks. They end at . ! ? 。 or a line break, but not within a number."""
    parts: list[str] = []
    for part in _SENTENCE_END.split(_LIST_MARK.sub("", text)):
        part = part.strip()
        if parts and _GOES_ON.match(part) and len(parts[-1]) < 1_000:
            parts[-1] += f"; {part}"
        elif part:
            parts.append(part)
    return parts


TABLE_RULE = re.compile(r"[|: -]*--[|: -]*")
"""Line below the header of a Markdown table."""


def cells_of(line: str) -> list[str]:
    """Return the cells of a row of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


_MOST_STARTS = 40
_MOST_OBJECTS = 400
_NAME_FIELDS = ("name", "slot", "item", "key", "label")
_VALUE_FIELDS = ("value", "answer")


def _without_loss(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object; the value of a repeated key is the list of all its values."""
    fields: dict[str, Any] = {}
    several: dict[str, list[Any]] = {}
    for key, value in pairs:
        if key in fields:
            several.setdefault(key, [fields[key]]).append(value)
        else:
            fields[key] = value
    return {**fields, **several}


def json_objects(text: str) -> tuple[tuple[JsonObject, ...], list[tuple[int, int]]]:
    """Return all JSON objects in ``text``, including nested ones (breadth first), and the spans of the documents.

    An entry ``{"name": "trees", "value": 14}`` also gives ``{"trees": entry}``.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_without_loss)
    objects: list[JsonObject] = []
    spans: list[tuple[int, int]] = []
    at = text.find("{")
    for _ in range(_MOST_STARTS):
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        objects += _unfolded(value, len(spans))
        spans.append((at, end))
        at = text.find("{", end)
    return tuple(objects), spans


def _unfolded(value: Any, document: int) -> list[JsonObject]:
    """Return an object and its nested objects, breadth first, so that an outer object comes before its parts."""
    objects: list[JsonObject] = []
    waiting: list[tuple[int, Any]] = [(0, value)]
    for depth, item in waiting:
        if len(objects) >= _MOST_OBJECTS:
            break
        if isinstance(item, dict):
            fields = cast(dict[str, Any], item)
            objects.append(JsonObject(document, depth, fields))
            name = next((fields[field] for field in _NAME_FIELDS if isinstance(fields.get(field), str)), None)
            if name is not None and any(field in fields for field in _VALUE_FIELDS):
                objects.append(JsonObject(document, depth, {name: fields}))
            waiting += [(depth + 1, inner) for inner in fields.values() if isinstance(inner, dict | list)]
        elif isinstance(item, list):
            waiting += [(depth + 1, inner) for inner in cast(list[Any], item) if isinstance(inner, dict | list)]
    return objects


def json_text(value: Any) -> str:
    """Format a JSON value as an answer would write it: ``{"unit": "m", "value": 3}`` becomes ``3 m``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        stated = next((field for field in _VALUE_FIELDS if field in fields), None)
        parts = list(fields.values()) if stated is None else [fields[stated], fields.get("unit")]
        return " ".join(json_text(part) for part in parts)
    if isinstance(value, list):
        return ", ".join(json_text(item) for item in cast(list[Any], value))
    return "" if value is None else str(value)
