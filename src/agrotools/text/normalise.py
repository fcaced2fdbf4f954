"""Normalisation of text before comparison.

Text as people and models write it comes in; the form in which it is compared goes out. Normalising twice changes
nothing. It only unites spellings of one thing: no word is dropped, and no meaning is guessed.
"""

import re
import threading
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any, cast

from agrotools.core.lazy import late

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Characters of scripts written without spaces, each of which is one token."""

WORD = rf"[^\W{CJK}]"
"""A word character of a script that separates words by spaces. Each occurrence adds a millisecond to compiling."""

WORD_START, WORD_END = r"(?<!\w(?<=[\0-\u2fff]))", r"(?!\w(?<=[\0-\u2fff]))"
"""No such character before, and after: in a third of the time, for the scripts up to U+2FFF."""


def late_pattern(regex: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return the pattern of ``regex``, which is compiled when it is first used: a command needs few of hundreds."""
    return late(lambda: re.compile(regex, flags))


TOKEN = late_pattern(rf"{WORD}+|[{CJK}]")
"""A word, or a character of a script without spaces."""
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERSCRIPT_RUN = late_pattern("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_ZEROS = "٠۰०০੦૦୦௦౦೦൦๐໐༠၀០"
"""The first of the ten digits of each other script."""
_SQUARED = str.maketrans({"㎡": "m^2", "㎢": "km^2", "㎠": "cm^2", "㎟": "mm^2", "㎥": "m^3"})
_PUNCTUATION = {
    **dict.fromkeys("‐‑‒–—―−﹣－➖", "-"),
    **dict.fromkeys("’‘ʼ`´", "'"),
    **dict.fromkeys("“”„«»", '"'),
    **dict(zip("٪٫٬،؛؟🔟", ("%", ".", ",", ",", ";", "?", "10"), strict=True)),
    # Signs without width, of the direction of writing and of the style of a character: keycaps, zero-width spaces.
    **dict.fromkeys("\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f\u20e3", ""),
    **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""),
    **{chr(ord(zero) + digit): str(digit) for zero in _ZEROS for digit in range(10)},
}
_MIXED = late_pattern(r"(?<=\d)(?=[¼-¾⅐-⅞])")  # keeps 2¾ from becoming 23⁄4
_SPACES = late_pattern(r"[^\S\n]+")
_LINE_BREAKS = late_pattern(r"\r\n?|[\u2028\u2029\x0b\x0c\x85]")


def normalise(text: str) -> str:
    """Return ``text`` in the form in which answers are compared; idempotent.

    Superscript digits become ``^n``, then Unicode NFKC is applied; minus signs and dashes become ``-``; ``㎡`` becomes
    ``m^2``; the digits and separators of other scripts become those of ASCII, traditional characters simplified ones;
    signs without width disappear; spaces and tabs collapse while line breaks are kept; letters become lower case.
    """
    if text.isascii():  # the same in one pass, without what only other characters need
        return _SPACES.sub(" ", _LINE_BREAKS.sub("\n", text).replace("`", "'").lower())
    while True:
        once = _once(text)
        if once == text:
            return once
        text = once


def _once(text: str) -> str:
    text = _MIXED.sub(" ", text.translate(_SQUARED))
    text = _SUPERSCRIPT_RUN.sub(lambda run: "^" + run[0].translate(_SUPERSCRIPTS), text)
    text = unicodedata.normalize("NFKC", _LINE_BREAKS.sub("\n", text))
    text = text.translate(_characters()).lower()
    return _SPACES.sub(" ", text)


@cache
def simplified() -> dict[int, str]:
    """Return the simplified forms of traditional Chinese characters."""
    pairs = "".join(data_lines("traditional.txt"))
    return {ord(old): new for old, new in zip(pairs[::2], pairs[1::2], strict=True)}


@cache
def _characters() -> dict[int, str]:
    return simplified() | str.maketrans(_PUNCTUATION)


_of_thread = threading.local()


def stemmer() -> Any:
    """Return the English stemmer of this thread: it keeps the word in work, and threads would mix theirs."""
    if not hasattr(_of_thread, "stemmer"):
        import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

        _of_thread.stemmer = snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType]
    return cast("Any", _of_thread.stemmer)  # pyright: ignore[reportUnknownMemberType]


def data_lines(name: str) -> list[str]:
    """Return the lines of a file in ``data``, without comments and empty lines."""
    lines = (files("agrotools.data") / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
