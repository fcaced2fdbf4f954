"""Quantities in words: the reader of one number or range with its unit, and the numerals that it is written in.

Files of gold and a model's own words hold ``about 1.2 x 10^3 kg``, ``13-15`` and ``twelve``. Answers in the form do
not: :mod:`agrotools.text.answer_reader` reads their numbers. Cells of tables are read by :mod:`agrotools.text.cells`.
"""

import re
from math import isfinite, nan
from typing import NamedTuple

from agrotools.text.normalise import CJK, WORD_END, WORD_START, late_pattern
from agrotools.text.units import UNITS, Unit, convert, unit_at


class Quantity(NamedTuple):
    """A number or range (``low`` to ``high``), its unit, if one is written, and the counted noun, if there is one."""

    low: float
    high: float
    unit: Unit | None = None
    noun: str | None = None

    @property
    def is_share(self) -> bool:
        """True for a value in percent or another share."""
        return self.unit is not None and self.unit.dimension == "share"

    def ends_in(self, unit: str | None) -> tuple[float, float] | None:
        """Return both ends in ``unit``, which a number without a unit is in; None if the units differ in dimension."""
        if self.unit is None or unit == self.unit.symbol:
            return self.low, self.high
        if unit is None:
            return None
        try:
            return convert(self.low, self.unit.symbol, unit), convert(
                self.high, self.unit.symbol, unit
            )
        except ValueError:
            return None


_APPROXIMATE = (
    r"(?:(?<![^\W\d_])(?:about|approximately|approx\.?|around|roughly|ca\.?|circa"
    r"|cerca de|por volta de|aproximadamente|aprox\.?|mais ou menos|uns|umas"  # Portuguese
    r"|alrededor de|más o menos|unos|unas"  # Spanish, beside what it shares with Portuguese
    r"|environ|à peu près|approximativement"  # French
    r"|etwa|ungefähr|rund|zirka"  # German
    r"|all'incirca)(?![^\W\d_])|约为?|大约)"
)
"""Pattern of a word before a number, in lower case, that says that it is approximate; the number is the value."""
_LEAD = late_pattern(rf"[\s~≈=:]*(?:{_APPROXIMATE}\s?)?(?P<money>[€$£¥₹])?\s?")
_SPREAD = late_pattern(r"\s?(?:±|\+/-)\s?")
_TO = late_pattern(r"\s?(?:-|~|〜|至|到)\s?|\s(?:to|through)\s")
_SAME = late_pattern(
    r"\s?(?:[(\[]\s?(?:(?:or|或)\s?)?(?P<inner>[^()\[\]]*)[)\]]|(?:=|≈|or|或)\s?(?P<other>.*))"
)
_NOUN = late_pattern(
    rf"\s?-?(?P<noun>(?:[^\W\d_{CJK}]+[ -]?){{1,4}}|[{CJK}]{{1,6}}|[€$£¥₹])?[\s.]*"
)
_REMARK = late_pattern(r"\s?[(\[][^()\[\]]*[)\]][\s.]*\Z")
_ROUNDING = 0.02
"""Maximum relative difference of a value from itself in another unit: "3 in (76 mm)"."""


def _leading_quantity(text: str) -> tuple[Quantity, int, str | None] | None:
    """Return the number or range with which normalised ``text`` begins, its end and its sign of money."""
    lead = _LEAD.match(text)
    first = _measured(text, lead.end() if lead else 0)
    if first is None:
        return None
    low, unit, end = first
    high = low
    if spread := _SPREAD.match(text, end):
        after = _measured(text, spread.end())
        if after is None:
            return None
        _, spread_unit, end = after
        unit = unit or spread_unit
    elif (to := _TO.match(text, end)) and (second := _measured(text, to.end())):
        high, second_unit, end = second
        if unit is not None and second_unit is not None and unit != second_unit:
            return None
        unit = unit or second_unit
        low, high = sorted((low, high))
    return Quantity(low, high, unit), end, lead["money"] if lead else None


def read_quantity(text: str, *, is_repeated: bool = False) -> Quantity | None:
    """Return the quantity that is the whole of normalised ``text``; None for other text and for two different values.

    ``7.5 t·ha^-1``, ``75 ± 3 mm``, ``13-15``, ``3.2 ha (32,000 m^2)``, ``14 apple trees``, ``€930``. A remark in
    brackets that is no quantity is left out. ``is_repeated``: the value stands behind another one, so that it may not
    be repeated itself.
    """
    leading = _leading_quantity(text)
    if leading is None:
        return None
    quantity, end, money = leading
    same = None if is_repeated else _SAME.fullmatch(text.rstrip(" ."), end)
    if same and (other := read_quantity(same["inner"] or same["other"] or "", is_repeated=True)):
        return _in_both(quantity, other)
    noun = _NOUN.fullmatch(_REMARK.sub("", text), end)
    counted = noun and (noun["noun"] or money)
    return None if noun is None or (quantity.unit and counted) else quantity._replace(noun=counted)


def _in_both(quantity: Quantity, other: Quantity) -> Quantity | None:
    """Return the quantity that both are, ``0.069 (6.9 %)``; None if they differ."""
    unit = quantity.unit
    if unit is None or other.unit is None:
        with_unit, bare = (other, quantity) if unit is None else (quantity, other)
        if with_unit.is_share and _alike_both(with_unit.ends_in("fraction"), bare):
            return bare._replace(unit=UNITS["fraction"])
    return quantity if _alike_both(other.ends_in(unit.symbol if unit else None), quantity) else None


def _alike_both(ends: tuple[float, float] | None, quantity: Quantity) -> bool:
    return ends is not None and _alike(ends[0], quantity.low) and _alike(ends[1], quantity.high)


def _measured(text: str, at: int) -> tuple[float, Unit | None, int] | None:
    """Return the value of the number at ``at``, its unit and the end of both."""
    if numeral := NUMERAL.match(text, at):
        value, end = numeral_value(text, numeral)
    elif word := _NUMBER_WORD.match(text, at):
        value, end = _multiplied(text, _WORDS[word[0]], word.end())
    else:
        return None
    if not isfinite(value):
        return None
    found = unit_at(text, end)
    return (value, *found) if found else (value, None, end)


def _alike(value: float, other: float) -> bool:
    return abs(value - other) <= _ROUNDING * max(abs(value), abs(other))


# --- numerals --------------------------------------------------------------------------------------------------------

_DIGITS = r"(?:\d++(?>(?:[.,']\d++|(?<!\d{4}) \d{3}(?!\d))*)|\.\d++)"
_TEN_TO = r"10\s?(?:\^|\*\*)\s?[({]?(?P<power>[-+]?\d{1,4})[)}]?"
NUMERAL = late_pattern(
    rf"(?:{WORD_START}(?<![)\]}}^])(?P<sign>[-+]))?{WORD_START}(?<![.^])(?<!\^[-+])"
    rf"(?:(?:(?P<mantissa>{_DIGITS})\s?[x×*·]\s?)?{_TEN_TO}"
    rf"|(?P<whole>\d{{1,6}} )?(?P<top>\d{{1,6}})(?P<slash>[/⁄])(?P<bottom>[1-9]\d{{0,5}})(?![/\d])"
    rf"|(?P<digits>{_DIGITS})(?:e(?P<e>[-+]?\d{{1,4}})(?!\d))?)"
)
"""A number in digits: with marks between its groups and a decimal mark, a power of ten, or a fraction."""
_GROUPS = late_pattern(r"[1-9]\d{0,2}([.,' ])\d{3}(?:\1\d{3})*")
_WORDS = {
    word: float(value)
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty",
        "零 一 二 三 四 五 六 七 八 九 十 十一 十二 十三 十四 十五 十六 十七 十八 十九 二十",
    )
    for value, word in enumerate(words.split())
} | {"〇": 0.0, "两": 2.0}
_NUMBER_WORD = late_pattern(
    rf"{WORD_START}(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))}){WORD_END}"
)
_POWERS = {
    "百": 2,
    "千": 3,
    "万": 4,
    "亿": 8,
    "k": 3,
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
}
_MULTIPLIER = late_pattern(
    rf"\s?(?P<word>[万亿]|[百千](?![分克米瓦])|(?:(?<=\d)k|hundred|thousand|million|billion){WORD_END})"
)
_GOES_ON = late_pattern(
    rf"[零一二三四五六七八九十万亿两半点般些]|[百千](?![分克米瓦])|分之|(?:st|nd|rd|th){WORD_END}"
    rf"|(?: and a)?[ -](?:{'|'.join(word for word in _WORDS if word.isascii())}"
    rf"|point|dozens?|hal(?:f|ves)|(?:third|quarter|fourth|fifth|sixth|eighth|tenth)s?){WORD_END}"
)
"""Rest of a word that is not read as a whole: twenty-five, two thirds, 三千五, 3rd."""


def numeral_value(text: str, numeral: re.Match[str]) -> tuple[float, int]:
    """Return the value of a :data:`NUMERAL` with its multiplier, and the end of both; NaN if that is no number."""
    power = numeral["power"] or numeral["e"]
    value = _decimal(numeral["digits"] or numeral["mantissa"] or ("1" if power else numeral["top"]))
    if power and isfinite(value):
        # Via text, so that 1.204 x 10^3 is the float nearest to 1204, as in e notation.
        exponent = max(-300, min(int(power), 300))
        value = float(f"{value!r}e{power}") if "e" not in repr(value) else value * 10.0**exponent
    end = numeral.end()
    if numeral["slash"]:
        value = int(numeral["whole"] or 0) + value / int(numeral["bottom"])
        if numeral["slash"] == "/" and unit_at(text, end) is None:
            value = nan  # 3/4 may be 3 of 4
    return _multiplied(text, -value if numeral["sign"] == "-" else value, end)


def _decimal(written: str) -> float:
    """Return the value of digits with marks between groups of three and a decimal point or comma; else NaN."""
    marks, whole, decimals = [mark for mark in written if not mark.isdigit()], written, ""
    last = marks[-1] if marks else ""
    if marks.count(last) == 1 and (last == "." or (last == "," and not _GROUPS.fullmatch(written))):
        whole, _, decimals = written.rpartition(marks[-1])
    if whole and not whole.isdigit() and not _GROUPS.fullmatch(whole):
        return nan
    return float(f"{''.join(filter(str.isdigit, whole))}.{decimals or 0}")


def _multiplied(text: str, value: float, end: int) -> tuple[float, int]:
    while multiplier := _MULTIPLIER.match(text, end):
        value, end = value * 10 ** _POWERS[multiplier["word"]], multiplier.end()
    return nan if _GOES_ON.match(text, end) else value, end
