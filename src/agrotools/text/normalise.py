"""One form for text before it is compared: widths, superscripts, dashes, spaces, case; the English stemmer."""

import re
import tomllib
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Characters that are written without spaces: each one is a token of its own."""

WORD = rf"[^\W{CJK}]"
"""A word character of a script that separates words by spaces."""

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERSCRIPT_RUN = re.compile("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_SQUARED = str.maketrans({"㎡": "m^2", "㎢": "km^2", "㎠": "cm^2", "㎟": "mm^2", "㎥": "m^3"})
_PUNCTUATION = str.maketrans(
    dict.fromkeys("‐‑‒–—―−﹣－", "-") | dict.fromkeys("’‘ʼ`´", "'") | dict.fromkeys("“”„«»", '"')
)
_MIXED = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")  # 2¾ is no 23⁄4
_SPACES = re.compile(r"[^\S\n]+")
_LINE_BREAKS = re.compile(r"\r\n?|[\u2028\u2029\x0b\x0c\x85]")


def normalise(text: str) -> str:
    """``text`` in the form in which answers are compared; idempotent.

    Superscript digits become ``^n``, then Unicode NFKC; minus signs and dashes become ``-``; ``㎡`` becomes ``m^2``;
    spaces and tabs collapse while line breaks stay; letters become lower case.
    """
    while True:
        once = _once(text)
        if once == text:
            return once
        text = once


def _once(text: str) -> str:
    text = _MIXED.sub(" ", text.translate(_SQUARED))
    text = _SUPERSCRIPT_RUN.sub(lambda run: "^" + run[0].translate(_SUPERSCRIPTS), text)
    text = unicodedata.normalize("NFKC", _LINE_BREAKS.sub("\n", text))
    text = text.translate(_PUNCTUATION).lower()
    return _SPACES.sub(" ", text)


@cache
def reading_words(name: str) -> frozenset[str]:
    """A closed class of words of ``data/reading_words.toml``."""
    return frozenset(_reading_words()[name].split())


@cache
def _reading_words() -> dict[str, str]:
    return tomllib.loads((files("agrotools.data") / "reading_words.toml").read_text("utf-8"))


@cache
def stemmer() -> Any:
    """The English stemmer, made once."""
    import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

    return snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
