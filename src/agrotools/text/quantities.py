"""Quantities: the reader of one number or range with its unit, and the numerals that it is written in.

:func:`read_quantity` reads a value that is a whole text, as after the name in an answer form.
"""

import re
from math import isfinite
from typing import NamedTuple

from agrotools.text.normalise import CJK, WORD_END, WORD_START, late_pattern, normalise, spelled_numbers
from agrotools.text.units import Unit, convert, unit_at


class Quantity(NamedTuple):
    """A number or range (``low`` to ``high``), its unit, if one is written, and the counted noun, if there is one."""

    low: float
    high: float
    unit: Unit | None = None
    noun: str | None = None

    def ends_in(self, unit: str | None) -> tuple[float, float] | None:
        """Return both ends in ``unit``, which a number without a unit is in; None if the units differ in dimension."""
        if self.unit is None or unit == self.unit.symbol:
            return self.low, self.high
        if unit is None:
            return None
        try:
            return convert(self.low, self.unit.symbol, unit), convert(self.high, self.unit.symbol, unit)
        except ValueError:
            return None


_LEAD = late_pattern(
    r"[\s~≈=:]*(?:(?:about|approximately|approx\.?|around|roughly|ca\.?|约为?|大约)\s?)?(?P<money>[€$£¥₹])?\s?"
)
_SPREAD = late_pattern(r"\s?(?:±|\+/-)\s?")
_TO = late_pattern(r"\s?(?:-|~|〜|至|到)\s?|\s(?:to|through)\s")
_SAME = late_pattern(r"\s?(?:[(\[](?P<inner>[^()\[\]]*)[)\]]|(?:=|≈|or|或)\s?(?P<other>.*))")
_NOUN = late_pattern(rf"\s?-?(?P<noun>(?:[^\W\d_{CJK}]+[ -]?){{1,4}}|[{CJK}]{{1,6}}|[€$£¥₹])?[\s.]*")
_REMARK = late_pattern(r"\s?[(\[][^()\[\]]*[)\]][\s.]*\Z")
_ROUNDING = 0.02
"""Maximum relative difference of a value from itself in another unit: "3 in (76 mm)"."""


def read_quantity(text: str) -> Quantity | None:
    """Return the quantity that is the whole of normalised ``text``; None for other text and for two different values.

    ``7.5 t·ha^-1``, ``75 ± 3 mm``, ``13-15``, ``3.2 ha (32,000 m^2)``, ``14 apple trees``, ``€930``. A remark in
    brackets that is no quantity is left out.
    """
    lead = _LEAD.match(text)
    first = _measured(text, lead.end() if lead else 0)
    if first is None:
        return None
    low, unit, end = first
    high = low
    if spread := _SPREAD.match(text, end):
        margin = _measured(text, spread.end())
        if margin is None:
            return None
        _, spread_unit, end = margin
        unit = unit or spread_unit
    elif (to := _TO.match(text, end)) and (second := _measured(text, to.end())):
        high, second_unit, end = second
        if unit is not None and second_unit is not None and unit != second_unit:
            return None
        unit = unit or second_unit
        low, high = sorted((low, high))
    quantity = Quantity(low, high, unit)
    if (same := _SAME.fullmatch(text.rstrip(" ."), end)) and (
        other := read_quantity(same["inner"] or same["other"] or "")
    ):
        ends = other.ends_in(unit.symbol if unit else "fraction" if _is_share(other) else None)
        return quantity if ends and _alike(ends[0], low) and _alike(ends[1], high) else None
    noun = _NOUN.fullmatch(_REMARK.sub("", text), end)
    counted = noun and (noun["noun"] or (lead and lead["money"]))
    return None if noun is None or (unit and counted) else quantity._replace(noun=counted)


def _is_share(quantity: Quantity) -> bool:
    return quantity.unit is not None and quantity.unit.dimension == "share"


def _measured(text: str, at: int) -> tuple[float, Unit | None, int] | None:
    """Return the value of the number at ``at``, its unit and the end of both."""
    if numeral := NUMERAL.match(text, at):
        value, end = numeral_value(text, numeral)
    else:
        words = next(spelled_numbers(text[at : at + _LONGEST_WORDS]), None)
        if words is None or words.start or words.unit:
            return None
        value, end = multiplied(text, words.value, at + words.end)
    if not isfinite(value):
        return None
    found = unit_at(text, end)
    return (value, *found) if found else (value, None, end)


_LONGEST_WORDS = 60


def _alike(value: float, other: float) -> bool:
    return abs(value - other) <= _ROUNDING * max(abs(value), abs(other))


# --- numerals --------------------------------------------------------------------------------------------------------

NUMERAL = late_pattern(
    rf"(?P<sign>{WORD_START}(?<![)\]}}}}^])[-+])?{WORD_START}(?<!\d\.)(?<!\^)(?<!\^[-+])(?P<digits>"
    r"(?<!\d,)[1-9]\d?,\d\d,\d{3}(?![\d,])(?:\.\d++)?|"  # 1,20,000: lakhs
    # Groups of three digits separated by a space, an apostrophe or a comma; a point counts only if it occurs twice.
    r"[1-9]\d{0,2}+(?:(?:,\d{3}(?!\d))++|(?:'\d{3}(?!\d))++|(?<!\d [1-9])(?: \d{3}(?![\d]))++)(?:\.\d++|"
    r"(?<=[ ']\d{3}),\d{1,2}(?!\d))?|[1-9]\d{0,2}+(?:(?:\.\d{3}(?!\d)){2,}+(?:,\d++)?|\.\d{3},\d++)"
    # A comma that cannot separate groups is a decimal comma.
    r"|(?<!\d,)(?:\d++,(?:\d{1,2}|\d{4,})|0,\d{3})(?!\d)(?!,\d)|\d++(?:\.\d++)?|"
    r"(?<!\d)\.\d++)(?:e(?P<e>[+-]?\d{1,4})(?!\d))?(?!(?:st|nd|rd|th)(?![a-z]))"
)
DIGITS_ALONE = late_pattern(r"\d++")
_GROUPED = late_pattern(
    r"\d{1,3}(?:([,' ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}"
)
_TEN_TO = late_pattern(r"\s?[x×*·]\s?10\s?(?:\^|\*\*)\s?[({]?(?P<power>[+-]?\d{1,4})[)}]?")
_WORDS_OF_POWERS = {
    2: "hundred",
    3: "thousand mil mille tausend nghìn ngàn ribu тысяча тысячи тысяч тыс ألف آلاف الاف هزار हज़ार हजार হাজার",
    5: "lakh lakhs लाख লাখ",
    6: "million millions millones milhões millionen triệu juta миллион миллиона миллионов млн مليون ملايين میلیون",
    7: "crore crores करोड़ কোটি",
    9: "billion billions млрд",
}
_SPACED_MULTIPLIERS = {
    **{normalise(word): 10.0**power for power, words in _WORDS_OF_POWERS.items() for word in words.split()},
    **{"k": 1e3, "dozen": 12.0, "dozens": 12.0},
}
_MULTIPLIERS = {
    **_SPACED_MULTIPLIERS,
    **{"百": 1e2, "千": 1e3, "万": 1e4, "亿": 1e8, "천": 1e3, "만": 1e4, "억": 1e8},
    **{"ร้อย": 1e2, "พัน": 1e3, "หมื่น": 1e4, "แสน": 1e5, "ล้าน": 1e6},
}
# A "k" must follow the digits directly: 5 K is a temperature.
_MULTIPLIER = late_pattern(
    rf"\s?(?P<word>百(?!分)|千(?![克米瓦])|[万亿천만억]|ร้อย|พัน|หมื่น|แสน|ล้าน|(?!(?<!\d)k)(?:{'|'.join(_SPACED_MULTIPLIERS)}){WORD_END})"
)
_REST = late_pattern(r"(?P<digits>[1-9]\d{0,3})(?:(?P<word>[百千万])|(?!\d|[.,]\d))")
_POWER = late_pattern(r"\^\(?(?P<power>-?\d{1,2})\)?(?!\d)")
# "3/4 ha", "2 1/2 m": a fraction if a unit follows, else two numbers.
_SLASHED = late_pattern(r"(?: (?P<top>[1-9]))?/(?P<bottom>[2-9]|10|16)(?![\d/.])")
_MIXED = late_pattern(r" ?(?P<top>\d{1,2})⁄(?P<bottom>\d{1,2})")
_THREES = late_pattern(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def numeral_value(text: str, match: re.Match[str]) -> tuple[float, int]:
    """Return the value of a numeral with its multiplier, and the end position of both."""
    value = _decimal(match["digits"])
    if match["e"]:
        value = _scaled(value, int(match["e"]))
    end = match.end()
    if fraction := _MIXED.match(text, end):  # 2 3⁄4
        value, end = value + int(fraction["top"]) / max(1, int(fraction["bottom"])), fraction.end()
    elif text.startswith("⁄", end) and (bottom := DIGITS_ALONE.match(text, end + 1)):
        value, end = value / max(1.0, float(bottom[0])), bottom.end()
    elif match["digits"].isdigit() and (slashed := _fraction(text, match)):
        value, end = slashed
    elif (raised := _POWER.match(text, end)) and (
        value == 10 or (value < 1e6 and value.is_integer() and raised["power"] in "23")
    ):
        value, end = _scaled(1.0, int(raised["power"])) if value == 10 else value ** int(raised["power"]), raised.end()
    if match["sign"] == "-":
        value = -value
    if power := _TEN_TO.match(text, end):
        value, end = _scaled(value, int(power["power"])), power.end()
    return multiplied(text, value, end)


def _fraction(text: str, match: re.Match[str]) -> tuple[float, int] | None:
    """Return the value and the end of ``3/4 ha`` or ``2 1/2 ha``; None for other text, also ``12/13 ha`` (12 or 13)."""
    slashed = _SLASHED.match(text, match.end())
    if slashed is None or text[match.start() - 1 : match.start()] == "/" or unit_at(text, slashed.end()) is None:
        return None
    first, bottom = int(match["digits"]), int(slashed["bottom"])
    whole, top = (first, int(slashed["top"])) if slashed["top"] else (0, first)
    if top > 99 or (top >= bottom if slashed["top"] else bottom == top + 1 > 5):
        return None
    return whole + top / bottom, slashed.end()


def _decimal(digits: str) -> float:
    """Return the value of digits with thousands separators and a decimal point or comma."""
    if digits.count(",") == 2 and not _GROUPED.fullmatch(digits):
        return float(digits.replace(",", ""))  # 1,20,000
    if _GROUPED.fullmatch(digits):
        groups = digits.replace(" ", "").replace("'", "")
        if "." in groups and "," in groups:
            last, other = (".", ",") if groups.rfind(".") > groups.rfind(",") else (",", ".")
            return float(groups.replace(other, "").replace(last, "."))
        if groups.count(".") > 1:
            return float(groups.replace(".", ""))
        by_comma = "," in groups and not digits.startswith("0,") and "," in digits and _THREES.fullmatch(digits)
        return float(groups.replace(",", "" if by_comma else "."))
    return float(digits.replace(",", "."))


def multiplied(text: str, value: float, end: int) -> tuple[float, int]:
    factor = 1.0
    while multiplier := _MULTIPLIER.match(text, end):  # 3千万, "2 lakh crore"
        factor, end = _MULTIPLIERS[multiplier["word"]], multiplier.end()
        value *= factor
    while text[end - 1] in "百千万亿" and (rest := _REST.match(text, end)):  # 3万5千, 3万5
        digits = rest["digits"]
        smaller = _MULTIPLIERS.get(rest["word"], factor / 10 if len(digits) == 1 else 1.0)
        if int(digits) * smaller >= factor:
            break
        value, factor, end = value + int(digits) * smaller, smaller, rest.end()
    return value, end


def _scaled(value: float, power: int) -> float:
    # Via text, so that 1.204 x 10^3 is the float nearest to 1204, as in e notation.
    return float(f"{value!r}e{power}") if "e" not in repr(value) else value * 10.0 ** max(-300, min(power, 300))
