"""Numbers written in words: English ones read by text2num, Chinese ones here (no library reads them inside a text)."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from text_to_num import text2num  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from agrotools.text.normalise import WORD


class SpelledNumber(NamedTuple):
    """A number in words: its value and position."""

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
_FIRST = "|".join((*_TEENS, *_TENS, *_DIGITS_EN, rf"an? (?=(?:{'|'.join(_LARGE)}|dozen)(?!{WORD}))"))
# At most a dozen words: no number has more, and a list of a thousand words is no number.
_ENGLISH = re.compile(
    rf"(?<!{WORD})(?<!{WORD}-)(?P<whole>(?:{_FIRST})(?:(?<=a )dozen|"
    rf"(?:(?<=a )(?:{'|'.join(_LARGE)}))?(?:[ -](?:(?<=hundred )and |(?<=thousand )and |(?<=million )and )?(?:{_ANY})"
    rf"(?!{WORD})){{0,11}}))"
    rf"(?: point(?P<decimals>(?: (?:{'|'.join(_DIGITS_EN)})){{1,9}}))?(?P<half> and a half)?(?!{WORD})"
    r"(?! (?:of (?:the|these|those|them)|another|or more)(?![a-z])|[ -](?:third|quarter|fourth|fifth|sixth|eighth|"
    r"tenth)s?(?![a-z]))"
)
_SINGLE = re.compile(rf"(?<!{WORD})(?:{_ANY})(?!{WORD})")

NUMBER_WORDS = frozenset((*_TEENS, *_TENS, *_DIGITS_EN, *_LARGE))

_DIGITS = {**{digit: value for value, digit in enumerate("零一二三四五六七八九")}, "〇": 0, "两": 2}
_SMALL = {"十": 10, "百": 100, "千": 1000}
_BIG = {"万": 10_000, "亿": 100_000_000}
_CHINESE = re.compile(
    r"(?!零下)(?<![第唯统进每另同某这那图表初周])(?<!(?<!分)之)(?P<whole>(?:[零〇一二三四五六七八九两]|"
    r"十(?!分))[零〇一二三四五六七八九十百千万亿两]*)"
    r"(?:点(?P<decimals>[零〇一二三四五六七八九]+))?(?P<half>半)?"
)
# Alone, 一 is a number only before what is counted or measured.
_COUNTED = re.compile(r"\s?[棵株个只头块片处条座栋亩公厘毫平米吨克千倍成颗粒枚朵穗根枝群窝种张分]")
_LONGEST = 24


def spelled_numbers(text: str) -> Iterator[SpelledNumber]:
    """The numbers of normalised ``text`` that are written in words, in order."""
    numbers = [number for match in _ENGLISH.finditer(text) for number in _english(text, match)]
    numbers += [
        SpelledNumber(_PART[match["top"] or "a"] / _PARTS[match["bottom"] or "half"], *match.span(), "fraction")
        for match in _FRACTION.finditer(text)
    ]
    numbers += [SpelledNumber(_FEW[match[1]], *match.span()) for match in _GROUP.finditer(text)]
    numbers += [number for match in _CHINESE.finditer(text) if (number := _chinese(text, match)) is not None]
    return iter(sorted(numbers, key=lambda number: (number.start, -number.end)))


_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_PART = {"a": 1, "an": 1, "one": 1, **{word: int(digit) for word, digit in list(_DIGITS_EN.items())[2:]}}
# "Two fifths", "a third of the field"; but "one third pond" is the third.
_FRACTION = re.compile(
    rf"(?<!{WORD})(?P<top>an?|one|{'|'.join(list(_DIGITS_EN)[2:])})[ -](?P<bottom>{'|'.join(_PARTS)})"
    rf"(?:s(?!{WORD})|(?= of(?!{WORD})))|(?<!{WORD})(?<!first )(?<!second )(?<!other )half (?=of(?!{WORD}))"
)
_FEW = {"half a dozen": 6.0, "a pair of": 2.0, "a couple of": 2.0, "a single": 1.0, "a lone": 1.0}
_GROUP = re.compile(rf"(?<!{WORD})(?<!not )({'|'.join(_FEW)})(?!{WORD})")


def _read(words: str) -> float:
    return float(text2num(words, "en"))  # pyright: ignore[reportUnknownArgumentType]


_PRONOUN_BEFORE = re.compile(
    rf"(?<!{WORD})(?:the|this|that|which|each|every|another|other|last|next|new|old|same|{WORD}+est) $"
)


def _english(text: str, match: re.Match[str]) -> list[SpelledNumber]:
    whole = match["whole"].removeprefix("an ").removeprefix("a ")
    # "The largest one is red": a pronoun.
    if whole == "one" and _PRONOUN_BEFORE.search(text, max(0, match.start() - 24), match.start()):
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
    """The value of a Chinese numeral (一百二十, 三千五, 二〇二三); None for others, as 三四 ("three or four")."""
    if not text or any(letter not in _DIGITS and letter not in _SMALL and letter not in _BIG for letter in text):
        return None
    if len(text) > 1 and all(letter in _DIGITS for letter in text):
        return float("".join(str(_DIGITS[letter]) for letter in text)) if "〇" in text or "零" in text else None
    total = section = 0
    digit: int | None = None
    last_unit = 1
    for letter in text:
        if letter in _DIGITS:
            if digit:  # two digits beside each other
                return None
            digit = _DIGITS[letter]
            last_unit = 1 if letter in "零〇" else last_unit
        elif letter in _SMALL:
            section += (1 if digit is None else digit) * _SMALL[letter]
            last_unit, digit = _SMALL[letter], None
        else:
            total = (total + section + (digit or 0)) * _BIG[letter]
            section, last_unit, digit = 0, _BIG[letter], None
    # 三千五 is 3,500; 一百零五 and 十五 are what they say.
    tail = (digit or 0) * (last_unit // 10 if last_unit > 10 else 1)
    return float(total + section + tail)
