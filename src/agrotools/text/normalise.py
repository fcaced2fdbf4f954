"""Normalisation of text before comparison; numbers in words.

English number words are parsed by text2num, Chinese ones here, because no library finds them inside a text.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, cast

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Characters of scripts written without spaces, each of which is one token."""

WORD = rf"[^\W{CJK}]"
"""A word character of a script that separates words by spaces. Each occurrence adds a millisecond to compiling."""

WORD_START, WORD_END = r"(?<!\w(?<=[\0-\u2fff]))", r"(?!\w(?<=[\0-\u2fff]))"
"""No such character before, and after: in a third of the time, for the scripts up to U+2FFF."""


class _LatePattern:
    """A regular expression that is compiled when it is first used; its attributes are those of ``re.Pattern``."""

    def __init__(self, regex: str, flags: re.RegexFlag) -> None:
        self._source = regex, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._source), name)
        setattr(self, name, value)
        return value


def late_pattern(regex: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return the pattern of ``regex``, which is compiled when it is first used: a command needs few of hundreds."""
    return cast("re.Pattern[str]", _LatePattern(regex, flags))


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
# 3·2公顷, 3。2 ha; but 5·10^3 multiplies, and a sentence may end with a number: 共3。5号地块.
_DECIMAL_POINT = late_pattern(
    r"(?<=\d)(?:(?<!·\d)[·‧・](?!10 ?(?:\^|\*\*)|\d+·)|"
    r"。(?=\d{1,3}(?: ?(?:[a-z%°]|[公亩吨克斤升度]|[厘毫千平]?[米方克升]|摄氏)|[,)。]?(?:\s|$))))(?=\d)"
)
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
    if any(mark in text for mark in "·‧・。"):
        text = _DECIMAL_POINT.sub(".", text)
    return _SPACES.sub(" ", text)


@cache
def simplified() -> dict[int, str]:
    """Return the simplified forms of traditional Chinese characters."""
    pairs = "".join(data_lines("traditional.txt"))
    return {ord(old): new for old, new in zip(pairs[::2], pairs[1::2], strict=True)}


@cache
def _characters() -> dict[int, str]:
    return simplified() | str.maketrans(_PUNCTUATION)


@cache
def reading_words(name: str) -> frozenset[str]:
    """Return a closed class of words from ``data/reading_words.toml``."""
    return frozenset(_reading_words()[name].split())


@cache
def _reading_words() -> dict[str, str]:
    return tomllib.loads((files("agrotools.data") / "reading_words.toml").read_text("utf-8"))


@cache
def stemmer() -> Any:
    """Return the English stemmer; cached."""
    import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

    return snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def data_lines(name: str) -> list[str]:
    """Return the lines of a file in ``data``, without comments and empty lines."""
    lines = (files("agrotools.data") / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


# --- numbers in words ------------------------------------------------------------------------------------------------


class SpelledNumber(NamedTuple):
    """A number in words: its value, position and, if part of the words, its unit."""

    value: float
    start: int
    end: int
    unit: str | None = None


_DIGITS_EN = {
    word: str(value) for value, word in enumerate("zero one two three four five six seven eight nine".split())
}
_TENS = "ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_TEENS = "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_LARGE = "hundred thousand million billion".split()
_ANY = "|".join((*_TEENS, *_TENS, *_DIGITS_EN, *_LARGE))
_FIRST = "|".join((*_TEENS, *_TENS, *_DIGITS_EN, rf"an? (?=(?:{'|'.join(_LARGE)}|dozen){WORD_END})"))
# At most twelve words, because no number has more and a long list of number words is not a number.
_ENGLISH = late_pattern(
    rf"{WORD_START}(?<!{WORD}-)(?P<whole>(?:{_FIRST})(?:(?<=a )dozen|"
    rf"(?:(?<=a )(?:{'|'.join(_LARGE)}))?(?:[ -](?:(?<=hundred )and |(?<=thousand )and |(?<=million )and )?(?:{_ANY})"
    rf"{WORD_END}){{0,11}}))"
    rf"(?: point(?P<decimals>(?: (?:{'|'.join(_DIGITS_EN)})){{1,9}}))?(?P<half> and a half)?{WORD_END}"
    r"(?! (?:of (?:the|these|those|them)|another|or more)(?![a-z])|[ -](?:third|quarter|fourth|fifth|sixth|eighth|"
    r"tenth)s?(?![a-z]))"
)
_SINGLE = late_pattern(rf"{WORD_START}(?:{_ANY}){WORD_END}")

_DIGITS = {**{digit: value for value, digit in enumerate("零一二三四五六七八九")}, "〇": 0, "两": 2}
_SMALL = {"十": 10, "百": 100, "千": 1000}
_BIG = {"万": 10_000, "亿": 100_000_000}
_CHINESE = late_pattern(
    r"(?!零下)(?<![第唯统进每另同某这那图表初周])(?<!(?<!分)之)(?P<whole>(?:[零〇一二三四五六七八九两]|"
    r"十(?!分))[零〇一二三四五六七八九十百千万亿两]*)"
    r"(?:点(?P<decimals>[零〇一二三四五六七八九]+))?(?P<half>半)?"
)
# A lone 一 is a number only before a measure word or unit.
_COUNTED = late_pattern(r"\s?[棵株个只头块片处条座栋亩公厘毫平米吨克千倍成颗粒枚朵穗根枝群窝种张分]")
_HALF = late_pattern(
    r"(?<![个大小多一过后前上下另夜零〇一二三四五六七八九十百千万亿两])(?<!\d)(?<!\d )"
    r"半(?=公[顷亩里斤]|英?亩|[厘毫千]?米|[吨斤升天]|[千毫]?克|平方|小时)"
)
_LONGEST = 24


def spelled_numbers(text: str) -> Iterator[SpelledNumber]:
    """Return an iterator over the numbers written in words in normalised ``text``, in order."""
    numbers = [number for match in _ENGLISH.finditer(text) for number in _english(text, match)]
    numbers += [
        SpelledNumber(_PART[match["top"] or "a"] / _PARTS[match["bottom"] or "half"], *match.span(), "fraction")
        for match in _FRACTION.finditer(text)
    ]
    numbers += [SpelledNumber(_FEW[match[1]], *match.span()) for match in _GROUP.finditer(text)]
    numbers += [SpelledNumber(0.5, *match.span()) for match in _HALF.finditer(text)]
    numbers += [number for match in _CHINESE.finditer(text) if (number := _chinese(text, match)) is not None]
    return iter(sorted(numbers, key=lambda number: (number.start, -number.end)))


_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_PART = {"a": 1, "an": 1, "one": 1, **{word: int(digit) for word, digit in list(_DIGITS_EN.items())[2:]}}
# "Two fifths", "a third of the field"; but in "one third pond", "third" is an ordinal.
_FRACTION = late_pattern(
    rf"{WORD_START}(?P<top>an?|one|{'|'.join(list(_DIGITS_EN)[2:])})[ -](?P<bottom>{'|'.join(_PARTS)})"
    rf"(?:s{WORD_END}|(?= of{WORD_END}))|{WORD_START}(?<!first )(?<!second )(?<!other )half (?=of{WORD_END})"
)
_FEW = {"half a dozen": 6.0, "a pair of": 2.0, "a couple of": 2.0, "a single": 1.0, "a lone": 1.0}
_GROUP = late_pattern(rf"{WORD_START}(?<!not )({'|'.join(_FEW)}){WORD_END}")


def _read(words: str) -> float:
    from text_to_num import text2num  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    return float(text2num(words, "en"))  # pyright: ignore[reportUnknownArgumentType]


_PRONOUN_BEFORE = late_pattern(
    rf"{WORD_START}(?:the|this|that|which|each|every|another|other|last|next|new|old|same|{WORD}+est) $"
)
# "The magenta one, 4.87 %".
_THE_BEFORE = late_pattern(rf"{WORD_START}the {WORD}+ $")
_ONE_ENDS = late_pattern(r"[,:;(]| ?[(:]| (?:is|has|was|with|at|shows?|looks?|reaches)(?![a-z])|\W*$")


def _english(text: str, match: re.Match[str]) -> list[SpelledNumber]:
    whole = match["whole"].removeprefix("an ").removeprefix("a ")
    # In "the largest one is red", "one" is a pronoun.
    lead = text[max(0, match.start() - 24) : match.start()]
    if whole == "one" and (
        _PRONOUN_BEFORE.search(lead) or (_THE_BEFORE.search(lead) and _ONE_ENDS.match(text, match.end()))
    ):
        return []
    try:
        value = 12.0 if whole == "dozen" else _read(whole)
    except ValueError:  # a list: "one two three"
        return [
            SpelledNumber(_read(word[0]), word.start(), word.end())
            for word in _SINGLE.finditer(text, match.start(), match.end())
        ]
    if match["decimals"]:
        value = float(f"{value:.0f}." + "".join(_DIGITS_EN[word] for word in match["decimals"].split()))
    return [SpelledNumber(value + 0.5 * bool(match["half"]), match.start(), match.end())]


def _chinese(text: str, match: re.Match[str]) -> SpelledNumber | None:
    whole = match["whole"]
    if len(whole) > _LONGEST or (whole == "一" and not match["decimals"] and not _counted(text, match)):
        return None
    value = chinese_number(whole)
    if value is None:
        return None
    if match["decimals"]:
        value = float(f"{value:.0f}." + "".join(str(_DIGITS[digit]) for digit in match["decimals"][:12]))
    return SpelledNumber(value + 0.5 * bool(match["half"]), match.start(), match.end())


def _counted(text: str, match: re.Match[str]) -> bool:
    if text.startswith("分之", match.end()) or text.endswith("分之", 0, match.start()):
        return True
    return text.strip(" 。.") == "一" or _COUNTED.match(text, match.end()) is not None


def chinese_number(text: str) -> float | None:
    """Return the value of a Chinese numeral (一百二十, 三千五, 二〇二三); None for other text, also 三四 ("3 or 4")."""
    if not text or any(letter not in _DIGITS and letter not in _SMALL and letter not in _BIG for letter in text):
        return None
    if len(text) > 1 and all(letter in _DIGITS for letter in text):
        return float("".join(str(_DIGITS[letter]) for letter in text)) if "〇" in text or "零" in text else None
    total = section = 0
    digit: int | None = None
    last_unit = 1
    for letter in text:
        if letter in _DIGITS:
            if digit:  # two adjacent digits
                return None
            digit = _DIGITS[letter]
            last_unit = 1 if letter in "零〇" else last_unit
        elif letter in _SMALL:
            section += (1 if digit is None else digit) * _SMALL[letter]
            last_unit, digit = _SMALL[letter], None
        else:
            total = (total + section + (digit or 0)) * _BIG[letter]
            section, last_unit, digit = 0, _BIG[letter], None
    # A final digit counts in the next lower power (三千五 is 3,500), but as ones in 一百零五 (105) and 十五 (15).
    tail = (digit or 0) * (last_unit // 10 if last_unit > 10 else 1)
    return float(total + section + tail)
