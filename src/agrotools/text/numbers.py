"""Quantities in an answer: numbers with signs, multipliers, exponents and units, ranges, and lists of numbers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from agrotools.text.clauses import Negations, is_alternative
from agrotools.text.normalise import (
    CJK,
    NUMBER_WORDS,
    WORD,
    WORD_END,
    WORD_START,
    chinese_number,
    late_pattern,
    reading_words,
    spelled_numbers,
)
from agrotools.text.quantities import DIGITS_ALONE, NUMERAL, multiplied, numeral_value
from agrotools.text.units import canonical_unit, convert, unit_at


@dataclass(frozen=True)
class Quantity:
    """A number or range in normalised text.

    ``unit`` is the explicit unit from the unit table, ``noun`` the counted thing if another word follows the number.
    Quantities with the same ``chain`` are joined by "or", "and", a comma or a slash. ``denied``: the quantity is
    negated, or is a bound ("more than 14") rather than a value. ``spelled``: it is written in words.
    """

    low: float
    high: float
    unit: str | None
    noun: str | None
    start: int
    end: int
    chain: int
    denied: bool = False
    spelled: bool = False

    @property
    def bare(self) -> bool:
        return self.unit is None and self.noun is None


_FUNCTION_WORDS = reading_words("behind_number") | NUMBER_WORDS
_CJK_FUNCTION = frozenset("的和或与至到在是为约而比于从对以及则所，、；。")

_MINUS_WORD = late_pattern(rf"(?:{WORD_START}(?:minus|negative)\s?|(?<!正)负\s?|零下\s?)$")
_NOUN = late_pattern(rf"(?: (?:more|fewer|additional|extra)(?= [a-z]))?[ -]?(?P<noun>(?!\d){WORD}+|[{CJK}])")
_PERCENT_BEFORE = late_pattern(r"百分之\s?$")
_NUMBERED = late_pattern(
    rf"(?:{WORD_START}(?:image|img|figure|fig\.?|photo|picture|tile|plot|field|block|step|table|scene|sample|file|band|"
    r"row|column|zone|region|no\.)\s?#?|#|第|图|表)$"
)
_OF_SIDE = late_pattern(r"\b(?:left|right|upper|lower|first|second|other|old|new)(?:-hand)? [a-z]+ $")
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = late_pattern(
    r"(?<![\w.,:])(?:\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}/\d{1,2}/\d{4}|\d{2}:[0-5]\d(?::[0-5]\d)?|"
    rf"{_DAY} {_MONTH},? \d{{4}}|{_MONTH} {_DAY},? \d{{4}}|{_MONTH} \d{{4}})(?![\d:])|"
    r"(?:\bin |(?<=\bsince )|(?<=\bfor )|(?<=\bfrom )|(?<=\buntil )|(?<=\bbetween )|(?<=\()|(?<=\bin \d{4} and )|"
    r"(?<=\bfrom \d{4} to ))(?:19|20)\d\d(?= ?(?:[,;:)|]|$|\.(?!\d)|(?:to|and|but|it|the|there|we|i|that|which|while|"
    r"against|compared|is|are|was|were|so)\b))|(?:(?<=\A\| )|(?<=\n\| )|(?<![^\n]))(?:19|20)\d\d(?= ?[|:])|"
    r"(?<!\d)(?:\d{4}\s?年(?:\s?\d{1,2}\s?月)?(?:\s?\d{1,2}\s?[日号])?|\d{1,2}\s?月\s?\d{1,2}\s?[日号])"
)
_RANGE = late_pattern(r"\s?(?:-|~|〜|至|到)\s?|\s(?:to|through)\s")
_EQUALS = late_pattern(r"\s?[)\]]?\s?[=≈]")
_BY = late_pattern(r" by (?:about |approximately )?$")
_BETWEEN = late_pattern(r"(?:between|介于|在)\s?$")
_AND = late_pattern(r"\s?(?:and|和|与)\s?")
_JOINT = late_pattern(r"\s?(?:,|/|、|,?\s?(?:or|and|或|和)(?![a-z]))\s?(?:(?:maybe|perhaps|about|approximately)\s)?")
_TENTHS = late_pattern(r"\s?成(?![功立熟为分本果员长虫])")
# The area may precede the quantity: 每公顷165公斤, 亩产427公斤.
_PER_BEFORE = late_pattern(r"(?:每(?P<per>公顷|亩|平方米|周)|(?P<mu>亩)产)[^\d,。;]{0,4}$")
_PER = {"公顷": "ha", "平方米": "m^2", "亩": "mu", "周": "week"}
_PARTS_OF = late_pattern(r"分之\s?$")
# "More than 14" is a bound, not a value; "spread over 14 ha" is a value.
_BOUND_BEFORE = late_pattern(
    rf"(?:{WORD_START}(?:(?:more|less|fewer|greater|larger|smaller|higher|lower|bigger) than(?: or equal to)?|"
    r"at (?:the )?(?:least|most|minimum|maximum)|(?<!adds )(?<!add )(?<!adding )(?<!added )(?<!sums )(?<!sum )up to|"
    r"below|above|exceed(?:s|ed|ing)?|in excess of|upwards of|under|"
    r"(?<!spread )(?<!spreads )(?<!cover )(?<!covers )(?<!extends )(?<!extending )(?<!stretches )(?<!distributed )over|"
    r"minimum of|maximum of|not exceeding)|(?<![-=])[<>]=?|!=|[≠≥≤≧≦⩾⩽±]|"
    r"超过|超出|多于|少于|不到|至少|至多|不少于|不多于|不超过|不足|大于|小于|高于|低于|起码|最多|最少)"
    r"(?:\s?(?:about|approximately|around|roughly|the|an?|some|约|大约|有|[~≈]))*\s?$"
)
_BOUND_AFTER = late_pattern(
    rf"\+(?!\s?[\d(])|\s?(?:(?:or|and) (?:more|less|fewer|greater|higher|above|over|up|beyond){WORD_END}|"
    rf"plus(?! \d){WORD_END})|,? which (?:i (?:consider|find)|seems|would be) too |\s?(?:以上|以下|以内|之多(?!少)|"
    rf"[多余](?=[棵株个只头亩公米平]))|\s?个?(?:以上|以下)"
)
_LONGEST_NUMERAL = 60
_MOST_NUMBERS = 300
"""A text with more numbers than this states no result."""


def find_quantities(text: str) -> list[Quantity]:
    """Return all quantities in normalised text, in order: in digits and in words."""
    return list(_quantities(text))


# Cached because the same text is read for each slot of an answer and by several rules.
@lru_cache(maxsize=256)
def _quantities(text: str) -> tuple[Quantity, ...]:
    text = _DATE.sub(lambda date: ";" * len(date[0]), text)
    raw = _raw_quantities(text)
    if len(raw) > _MOST_NUMBERS:
        return ()
    quantities = _chains(text, _ranges(text, _added(text, raw)))
    negations = Negations(text)
    result: list[Quantity] = []
    negated = False
    for quantity in quantities:
        negated = (negated and is_alternative(text, result[-1].end, quantity.start)) or negations.before_number(
            quantity.start
        )
        denied = negated or quantity.denied or negations.after(quantity.end)
        result.append(replace(quantity, denied=denied) if denied != quantity.denied else quantity)
    return tuple(result)


class _Written(NamedTuple):
    """A number in a text: its value and position."""

    value: float
    start: int
    end: int
    spelled: bool
    unit: str | None = None


def _written_numbers(text: str) -> Iterator[_Written]:
    """Yield numbers in digits and in words, in order; a number in words is skipped if digits overlap it."""
    words = list(spelled_numbers(text))
    next_word = 0
    at = 0
    while True:
        match = NUMERAL.search(text, at)
        limit = match.start() if match else len(text)
        while next_word < len(words) and words[next_word].start < limit:
            word = words[next_word]
            next_word += 1
            if word.start >= at and word.end <= limit:
                value, end = multiplied(text, word.value, word.end)
                yield _Written(value, word.start, end, True, word.unit)
                at = max(at, end)
        if match is None:
            return
        at = match.end()
        start, digits = match.start("digits"), match["digits"]
        if at - start > _LONGEST_NUMERAL:
            continue
        before = text[max(0, start - 12) : start]
        if ("," in digits or " " in digits) and _NUMBERED.search(before):
            first = DIGITS_ALONE.match(text, start)
            at = first.end() if first else at
            yield _Written(float(text[start:at]), start, at, False)
            continue
        value, end = numeral_value(text, match)
        at = max(at, end)
        yield _Written(value, match.start(), end, False)


def _raw_quantities(text: str) -> list[Quantity]:
    quantities: list[Quantity] = []
    taken_to = 0
    for value, start, end, spelled, unit_in_match in _written_numbers(text):
        if len(quantities) > _MOST_NUMBERS:
            break
        if start < taken_to or not math.isfinite(value):
            continue
        behind_number = quantities[-1].end if quantities else -1
        if text[start] == "-" and behind_number == start:
            value, start = -value, start + 1  # "12%-13%", "12公顷-13公顷": the dash of a range
        elif minus := _MINUS_WORD.search(text, max(0, start - 10), start):
            value, start = -value, minus.start()
        unit, noun, behind = (unit_in_match, None, end) if unit_in_match else _unit_or_noun_after(text, end)
        before = text[max(0, start - 12) : start]
        if unit is None and _PERCENT_BEFORE.search(before):
            unit, noun = "%", None
        elif unit is None and quantities and _PARTS_OF.search(before) and start - quantities[-1].end <= 4:
            whole = quantities.pop()  # 三分之一
            value, start, unit, noun = value / whole.low if whole.low else math.inf, whole.start, "fraction", None
        elif unit is None and (tenths := _TENTHS.match(text, end)):
            last = text[tenths.end() : tenths.end() + 1]
            half = 5.0 if last == "半" else chinese_number(last)
            value, unit, noun, behind = 10 * value + (half or 0), "%", None, tenths.end() + (half is not None)
        if per := _PER_BEFORE.search(before):
            unit = canonical_unit(f"{unit or 1}/{_PER[per['per'] or per['mu']]}") or unit
        is_name = (
            unit is None
            and value.is_integer()
            and _NUMBERED.search(before) is not None
            and _OF_SIDE.search(text, max(0, start - 40), start) is None
        )
        if not is_name and math.isfinite(value):
            bound = (
                _BOUND_BEFORE.search(text, max(0, start - 40), start) is not None
                or _BOUND_AFTER.match(text, end) is not None
                or (behind > end and _BOUND_AFTER.match(text, behind) is not None)
            )
            quantities.append(Quantity(value, value, unit, noun, start, behind, len(quantities), bound, spelled))
        taken_to = behind if unit else end
    return quantities


def _unit_or_noun_after(text: str, end: int) -> tuple[str | None, str | None, int]:
    """Return unit, counted noun (at most one of them) and end position of the words after a number."""
    if found := unit_at(text, end):
        return found[0].symbol, None, found[1]
    if match := _NOUN.match(text, end):
        noun = match["noun"]
        if noun not in _FUNCTION_WORDS and noun not in _CJK_FUNCTION:
            return None, noun, match.end()
    return None, None, end


_THEN = late_pattern(r" ?")


def _added(text: str, quantities: list[Quantity]) -> list[Quantity]:
    """Merge lengths, masses and times in two units (``3 ft 11 in``, 一米二) into one quantity."""
    quantities_left: list[Quantity] = []
    for quantity in quantities:
        before = quantities_left[-1] if quantities_left else None
        if before is None or before.unit is None or not _THEN.fullmatch(text, before.end, quantity.start):
            quantities_left.append(quantity)
        elif (before.unit, quantity.unit) in _SMALLER:
            more = convert(quantity.low, quantity.unit or "", before.unit)
            quantities_left[-1] = replace(before, low=before.low + more, high=before.high + more, end=quantity.end)
        elif before.spelled and quantity.spelled and quantity.bare and text[before.end - 1] == "米":
            more = quantity.low / 10 if quantity.low < 10 else quantity.low / 100
            quantities_left[-1] = replace(before, low=before.low + more, high=before.high + more, end=quantity.end)
        else:
            quantities_left.append(quantity)
    return quantities_left


_SMALLER = {("ft", "in"), ("m", "cm"), ("km", "m"), ("kg", "g"), ("t", "kg"), ("week", "day"), ("lb", "oz")}


def _ranges(text: str, quantities: list[Quantity]) -> list[Quantity]:
    """Merge ranges (``a-b``, ``a to b``, ``between a and b``, ``a至b``) into one quantity."""
    quantities_left: list[Quantity] = []
    for quantity in quantities:
        before = quantities_left[-1] if quantities_left else None
        if before is not None and before.low == before.high and _spans(text, before, quantity):
            low, high = sorted((before.low, quantity.low))
            unit = quantity.unit or before.unit
            noun = None if unit else quantity.noun or before.noun
            quantities_left[-1] = replace(before, low=low, high=high, unit=unit, noun=noun, end=quantity.end)
        else:
            quantities_left.append(quantity)
    return quantities_left


def _spans(text: str, first: Quantity, second: Quantity) -> bool:
    if first.unit and second.unit and first.unit != second.unit:
        return False
    if first.noun and first.noun != second.noun:  # not ranges: "2019 comes to 17.2", 0.58降至0.46
        return False
    if second.start - first.end > 12:
        return False
    if _RANGE.fullmatch(text, first.end, second.start):
        if _EQUALS.match(text, second.end):  # "2.7 ha - 2.3 ha = 0.4 ha" subtracts
            return False
        return _BY.search(text, max(0, first.start - 20), first.start) is None
    is_between = _BETWEEN.search(text, max(0, first.start - 9), first.start) is not None
    return is_between and _AND.fullmatch(text, first.end, second.start) is not None


def _chains(text: str, quantities: list[Quantity]) -> list[Quantity]:
    """Give joined quantities the same chain, and the following unit to those without a unit."""
    linked: list[Quantity] = []
    for quantity in quantities:
        before = linked[-1] if linked else None
        if before is not None and _joint(text, before, quantity):
            linked.append(replace(quantity, chain=before.chain))
        else:
            linked.append(quantity)
    for index in range(len(linked) - 2, -1, -1):
        this, following = linked[index], linked[index + 1]
        if this.bare and following.unit == "%" and math.isclose(100 * this.low, following.low, rel_tol=0.02):
            linked[index] = replace(this, unit="fraction")  # "0.186 or 18.6 %"
        elif this.bare and this.chain == following.chain:
            linked[index] = replace(this, unit=following.unit, noun=following.noun)
    return linked


def _joint(text: str, first: Quantity, second: Quantity) -> bool:
    if second.start - first.end > 24 or not _JOINT.fullmatch(text, first.end, second.start):
        return False
    # "2 images, 14 trees" lists different things: neither is an alternative to the other.
    return first.noun is None or second.noun is None or first.noun == second.noun
