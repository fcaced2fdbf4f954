"""An answer prepared for reading: the text that counts, normalised, without markup; its JSON objects; its sentences.

Formatting that models add around values (Markdown, LaTeX) is taken off first.
"""

import re
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from agrotools.scoring.reading_json import json_objects
from agrotools.text.normalise import normalise

ScopeKind = Literal["json", "form line", "sentence with the label", "last sentence that fits", "whole text", "nothing"]


class Scope(NamedTuple):
    """The part of an answer that a slot is read from. ``keyed`` scopes hold the value of this slot alone.

    ``unit`` is the unit of bare numbers where the key gives one: ``area (m^2): 32000``.
    """

    kind: ScopeKind
    text: str
    unit: str | None = None

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


@lru_cache(maxsize=256)
def read_answer(answer: str) -> AnswerText:
    """Rule 1: the text after the last ``Final Answer:``, normalised, and its JSON objects."""
    answer = answer[-_LONGEST_ANSWER:]
    body = answer[max((marker.end() for marker in _FINAL_ANSWER.finditer(answer)), default=0) :]
    text = normalise(body)
    return AnswerText(text, without_markup(text), json_objects(body))


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
_LATEX_THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|\\[,;])(?=\d{3}(?!\d))")
_LATEX_POWER = re.compile(r"\^\{([+-]?\d{1,4})\}")
# A dollar before a digit stays: it may be the currency of a label, and does no harm to a number.
_MARKDOWN = re.compile(r"\$(?!\d)|\*\*|__(?=\W|$)|(?<!\w)__|`+")


def without_markup(text: str) -> str:
    """``text`` without Markdown emphasis, code marks and LaTeX commands around values."""
    text = _LATEX_THOUSANDS.sub(",", text)
    if "\\" in text:
        text = _LATEX_WORD.sub(lambda word: _LATEX_WORDS[word[0]], text)
        for _ in range(3):  # groups nest, as in \boxed{12\text{ m}}
            text, changed = _LATEX_GROUP.subn(r"\1", text)
            if not changed:
                break
    text = _LATEX_POWER.sub(r"^\1", text)
    return _MARKDOWN.sub("", text)


def sentences(text: str) -> list[str]:
    """The sentences of a text: they end at . ! ? 。 or a line break, not at a point between digits."""
    return [part.strip() for part in _SENTENCE_END.split(text.replace("sq. ", "sq ")) if part.strip()]
