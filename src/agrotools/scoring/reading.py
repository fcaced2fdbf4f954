"""Where in an answer the value of a slot stands: the answer text, its keyed values, its sentences.

The order is fixed: a JSON object whose keys are slot names, a line ``name: value``, then free text. Formatting that
models add around values (Markdown, LaTeX, tables) is taken off first.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast

from agrotools.core import Slot
from agrotools.text.normalise import CJK, WORD, normalise

ScopeKind = Literal["json", "form line", "sentence with the label", "last sentence that fits", "whole text", "nothing"]


class Scope(NamedTuple):
    """The part of an answer that a slot is read from. ``keyed`` scopes hold the value of this slot alone."""

    kind: ScopeKind
    text: str

    @property
    def keyed(self) -> bool:
        return self.kind in ("json", "form line")


class AnswerText(NamedTuple):
    """An answer, prepared once for all slots: normalised text, the same without markup, JSON objects in it."""

    text: str
    plain: str
    objects: tuple[dict[str, Any], ...]


_FINAL_ANSWER = re.compile(r"(?:final answer|最终答案|最终回答)\W{0,6}[:：]", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[!?。\n]+|\.(?!\d)")
_LONGEST_ANSWER = 100_000
"""Characters read, from the end: whoever needs more has not answered."""
_LONGEST_JSON_REGION = 50_000
_MOST_JSON_STARTS = 40


@lru_cache(maxsize=256)
def read_answer(answer: str) -> AnswerText:
    """Rule 1: the text after the last ``Final Answer:``, normalised, and its JSON objects."""
    answer = answer[-_LONGEST_ANSWER:]
    body = answer[max((marker.end() for marker in _FINAL_ANSWER.finditer(answer)), default=0) :]
    text = normalise(body)
    return AnswerText(text, without_markup(text), _json_objects(body))


_LATEX_WORDS = {
    r"\times": "×",
    r"\cdot": "×",
    r"\approx": "≈",
    r"\pm": "±",
    r"\,": " ",
    r"\;": " ",
    r"\ ": " ",
    r"\%": "%",
    r"\_": "_",
    r"\(": "",
    r"\)": "",
    r"\[": "",
    r"\]": "",
    r"\left": "",
    r"\right": "",
}
_LATEX_WORD = re.compile("|".join(re.escape(word) for word in sorted(_LATEX_WORDS, key=len, reverse=True)))
_LATEX_GROUP = re.compile(r"\\(?:boxed|text|textbf|mathbf|mathrm|mathit|mathsf|operatorname)\s?\{([^{}]{0,300})\}")
_LATEX_POWER = re.compile(r"\^\{([+-]?\d{1,4})\}")
# A dollar before a digit stays: it may be the currency of a label, and does no harm to a number.
_MARKDOWN = re.compile(r"\$(?!\d)|\*\*|__(?=\W|$)|(?<!\w)__|`+")


def without_markup(text: str) -> str:
    """``text`` without Markdown emphasis, code marks and LaTeX commands around values."""
    if "\\" in text:
        text = _LATEX_WORD.sub(lambda word: _LATEX_WORDS[word[0]], text)
        for _ in range(3):  # groups nest, as in \boxed{12\text{ m}}
            text, changed = _LATEX_GROUP.subn(r"\1", text)
            if not changed:
                break
    text = _LATEX_POWER.sub(r"^\1", text)
    return _MARKDOWN.sub("", text)


def _json_objects(text: str) -> tuple[dict[str, Any], ...]:
    """All JSON objects in ``text`` (one level of nesting unfolded), the last one first."""
    region = text[-_LONGEST_JSON_REGION:]
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at = region.find("{")
    tries = 0
    while at >= 0 and tries < _MOST_JSON_STARTS:
        tries += 1
        try:
            value, end = decoder.raw_decode(region, at)
        except (ValueError, RecursionError):
            at = region.find("{", at + 1)
            continue
        if isinstance(value, dict):
            outer = cast(dict[str, Any], value)
            found.append(outer)
            found += [cast(dict[str, Any], inner) for inner in outer.values() if isinstance(inner, dict)]
        at = region.find("{", end)
    return tuple(reversed(found))


def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", normalise(text)).strip()


def keyed_scope(slot: Slot, slots: Sequence[Slot], answer: AnswerText) -> Scope | None:
    """The value given for ``slot`` by its name (or label) in a JSON object or in a line ``name: value``."""
    names = {_key(slot.name), _key(slot.label)}
    for fields in answer.objects:
        for key, value in fields.items():
            if _key(key) in names:
                return Scope("json", without_markup(normalise(_json_text(value))))
    return _form_line(slot, slots, answer.plain)


def _json_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(_json_text(item) for item in cast(dict[str, Any], value).values())
    if isinstance(value, list):
        return ", ".join(_json_text(item) for item in cast(list[Any], value))
    return "" if value is None else str(value)


def _form_line(slot: Slot, slots: Sequence[Slot], text: str) -> Scope | None:
    """The last ``name: value``: by name anywhere, by label at the start of a line, up to the next key or line end."""
    keys = _form_keys(tuple((other.name, other.label) for other in slots))
    own = {_key(slot.name), _key(slot.label)}
    last: str | None = None
    matches = list(keys.finditer(text))
    for index, match in enumerate(matches):
        if _key(match["name"] or match["label"]) not in own:
            continue
        stop = text.find("\n", match.end())
        if slot.type == "open_text" or stop < 0:
            stop = len(text)
        if index + 1 < len(matches):
            stop = min(stop, matches[index + 1].start())
        last = text[match.end() : stop].strip(" \t|\"',;{}").strip()
    return None if last is None else Scope("form line", last)


@lru_cache(maxsize=2_000)
def _form_keys(names: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    """Pattern of any slot's key: its name as an identifier anywhere, its label where a line begins."""
    by_name = "|".join(_spelled(name) for name, _ in sorted(names, key=lambda pair: -len(pair[0])))
    by_label = "|".join(_spelled(label) for _, label in sorted(names, key=lambda pair: -len(pair[1])))
    return re.compile(
        rf"(?<![{CJK}\w.])(?P<name>{by_name})[\"']?\s?[:=|]"
        rf"|^[^\w\n]{{0,12}}(?:\d{{1,2}}[.)]\s?)?(?P<label>{by_label})[\"']?\s?[:=|]",
        re.MULTILINE,
    )


def _spelled(key: str) -> str:
    return re.sub(r"(?:\\?[ _-])+", r"[\\s_-]", re.escape(normalise(key).strip()))


def sentences(text: str) -> list[str]:
    """The sentences of a text: they end at . ! ? 。 or a line break, not at a point between digits."""
    return [part.strip() for part in _SENTENCE_END.split(text.replace("sq. ", "sq ")) if part.strip()]


def mentions(sentence: str, label: str) -> bool:
    """Whether ``sentence`` names ``label`` (case, spaces and underscores aside)."""
    words = _spelled(label)
    return bool(words) and re.search(rf"(?<!{WORD}){words}(?!{WORD})", sentence) is not None
