"""Preparation of a reply (no thinking, bounded length, one script, no markup) and patterns from ``words.toml``.

Letters keep their case, because an English "a" is seldom option A; text that is compared with words is lower-cased by
``lowered``. Patterns begin with plain characters only, so that ``re`` quickly skips text in which no word can begin.
"""

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from agrotools.text.normalise import simplified

END = r"(?=[\s,.。;!?:)\]}】」』\"'、]|\Z)"
"""Lookahead for the end of a clause after a short word: 对 in 对。 but not in 对于."""


@cache
def words() -> dict[str, tuple[str, ...]]:
    """Return the words of ``words.toml`` by role."""
    table = tomllib.loads(files("agrotools.scoring.choices").joinpath("words.toml").read_text("utf-8"))
    return {role: tuple(listed) for role, listed in table.items()}


def any_of(*roles: str) -> str:
    """Return a pattern for any word of these roles, the longest first. English words match only as whole words."""
    by_first: dict[str, list[str]] = {}
    for word in sorted({word for role in roles for word in words()[role]}, key=lambda word: (-len(word), word)):
        by_first.setdefault(word[0], []).append(word)
    return "(?:" + "|".join(_beginning(first, listed) for first, listed in by_first.items()) + ")"


def _beginning(first: str, listed: list[str]) -> str:
    alone = f"(?<![a-z]{first})" if "a" <= first <= "z" else ""
    return f"{re.escape(first)}{alone}(?:{'|'.join(_rest(word) for word in listed)})"


def _rest(word: str) -> str:
    """Return the pattern of a word without its first character; several spaces may separate English words."""
    return re.escape(word[1:]).replace(r"\ ", r"\s{1,4}") + ("(?![a-z])" if "a" <= word[-1] <= "z" else "")


class Lexicon(NamedTuple):
    """Words of several roles. A word with two roles counts for the role that is named first."""

    pattern: re.Pattern[str]
    roles: dict[str, str]

    def role(self, match: re.Match[str]) -> str:
        return self.roles[" ".join(match[0].split())]


@cache
def lexicon(*roles: str) -> Lexicon:
    return Lexicon(re.compile(any_of(*roles)), {word: role for role in reversed(roles) for word in words()[role]})


@cache
def pattern_of(*roles: str) -> re.Pattern[str]:
    return re.compile(any_of(*roles))


FIRST_CHARACTERS, LAST_CHARACTERS = 8_000, 24_000
"""Lengths of the parts of a longer reply that are read: the answer is at its beginning or end."""

BOXED = "\ue000"
"""Replacement of LaTeX's ``\\boxed{`` and of ``<answer>``, which mark the following text as the answer."""

_THINKING = re.compile(r"<(/?)(?:think|thinking|thought|thoughts|reasoning)>|◁(/?)think▷", re.IGNORECASE)
_MARKUP = re.compile(r"[\\*`_<#>$|~]")
_BOX = re.compile(r"\\f?boxed\s*\{|<(?:final_?)?(?:answer|ans|option|choice)>", re.IGNORECASE)
_LATEX_WORD = re.compile(
    r"\\(?:text|textbf|textrm|mathrm|mathbf|mathsf|mathit|operatorname|bf|rm|quad|qquad|left|right)(?![A-Za-z])\s*"
)
_LATEX_MARK = re.compile(r"\\[()\[\],;:! ]|\$+")
_TOKEN = re.compile(r"<\|[^<>|\n]{1,30}\|>")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9_]{0,15}(?: [^<>\n]{0,60})?/?>")
_EMPHASIS = re.compile(r"\*\*|__|~~|`+|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])")
_ORDINAL = re.compile(
    r"第(?P<nth>[一二三四五六七1-7])(?:个?选项|个答案|项)|前(?P<first>[一两二三四五六2-6])(?:个选项|项|个)|"
    r"最后(?:一)?(?:个选项|个答案|项)|(?<=选)第(?P<chosen>[一二三四五六七1-7])个|"
    r"(?<![a-z])(?:the )?(?P<english>first|second|third|fourth|fifth|sixth|seventh|last) "
    r"(?:option|choice|answer)(?![a-z])",
    re.IGNORECASE,
)
_PLACES = ("第", "前", "最后", " option", " choice", " answer", " Option", " Choice", " Answer")
_NUMERALS = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7}
_ENGLISH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")


def prepared(reply: str, keys: Sequence[str]) -> str:
    """Return ``reply`` prepared for reading; ``keys`` are the options in order, for "the second option"."""
    text = _answer_part(reply)
    if len(text) > FIRST_CHARACTERS + LAST_CHARACTERS:
        text = text[:FIRST_CHARACTERS] + "\n\n" + text[-LAST_CHARACTERS:]
    text = plain(text)
    if _MARKUP.search(text):
        text = _without_markup(text)
    if any(word in text for word in _PLACES):
        text = _ORDINAL.sub(lambda place: _place(place, keys), text)
    return text.strip()


def plain(text: str) -> str:
    """Normalise ``text``: NFKC (full-width forms become ASCII), simplified characters, uniform marks for yes and no."""
    if text.isascii():
        return text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFKC", text).translate(_characters())


def lowered(text: str) -> str:
    """Return ``text`` in lower case with the same length."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def _answer_part(reply: str) -> str:
    """Return the text after the last closed thinking block and before an unclosed one."""
    begin, end = 0, len(reply)
    if "<" in reply or "◁" in reply:
        opened: int | None = None
        for mark in _THINKING.finditer(reply):
            if mark[1] or mark[2]:
                begin, opened = mark.end(), None
            elif opened is None:
                opened = mark.start()
        end = len(reply) if opened is None else opened
    return reply[begin:end]


def _without_markup(text: str) -> str:
    if "\\" in text:
        text = _LATEX_MARK.sub(" ", _LATEX_WORD.sub(" ", _BOX.sub(BOXED, text)))
    elif "<" in text:
        text = _BOX.sub(BOXED, text)
    text = text.replace("$", " ")
    if "<" in text:
        text = _TAG.sub(" ", _TOKEN.sub("\n", text))
    return _EMPHASIS.sub("", text)


def _place(place: re.Match[str], keys: Sequence[str]) -> str:
    """Return the letters of "the second option"; the words themselves if there is no such option."""
    if nth := place["nth"] or place["chosen"]:
        chosen = keys[_number(nth) - 1 :][:1]
    elif place["first"]:
        chosen = keys[: _number(place["first"])] if _number(place["first"]) <= len(keys) else ()
    elif place["english"] and place["english"].lower() != "last":
        chosen = keys[_ENGLISH.index(place["english"].lower()) :][:1]
    else:
        chosen = keys[-1:]
    return "、".join(chosen) or place[0]


def _number(numeral: str) -> int:
    return _NUMERALS.get(numeral) or int(numeral)


@cache
def _characters() -> dict[int, str]:
    table = simplified() | dict.fromkeys(map(ord, "✓✔☑✅"), "√") | dict.fromkeys(map(ord, "✗✘✕✖❌☒╳"), "×")
    table |= dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f\xad"), "")
    table |= dict.fromkeys(range(0x1F300, 0x1FB00), "")
    table |= {0x0D: "\n", 0x2028: "\n", 0x2029: "\n", 0x85: "\n", 0x0B: "\n", 0x0C: "\n"}
    table |= {ord("’"): "'", ord("‘"): "'", ord("“"): '"', ord("”"): '"', ord("﹑"): "、", ord("､"): "、"}
    return table
