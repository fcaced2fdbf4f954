"""The closed table of units for answers and slots.

Factors lead to the base unit of the dimension. Areas: 1 ha = 10,000 m^2, 1 acre = 4,046.8564224 m^2 (international
acre), 1 mu (市亩) = 2000/3 m^2.
"""

import re
from typing import NamedTuple

from agrotools.text.normalise import CJK, normalise


class Unit(NamedTuple):
    """A unit: its dimension, its number of base units, and its written forms (already normalised)."""

    dimension: str
    factor: float
    names: tuple[str, ...]


def _metric(symbol: str, english: str, chinese: str) -> tuple[str, ...]:
    """Symbol, both English spellings with plurals, and the Chinese name of a length."""
    american = english.replace("metre", "meter")
    return (symbol, english, f"{english}s", american, f"{american}s", *chinese.split())


def _square(symbol: str, english: str, chinese: str) -> tuple[str, ...]:
    lengths = _metric(symbol, english, "")
    squares = tuple(f"{word} {name}" for word in ("square", "sq", "sq.") for name in lengths)
    return (f"{symbol}^2", f"{symbol}2", f"sq{symbol}", *squares, *chinese.split())


def _per(quantity: tuple[str, ...], base: tuple[str, ...], chinese: str) -> tuple[str, ...]:
    return (
        *(
            f"{top}{joint}{bottom}"
            for top in quantity
            for joint in ("/", " per ", " / ", " a ", " each ", " every ")
            for bottom in base
        ),
        *(f"{top} {bottom}^-1" for top in quantity for bottom in base[:1]),
        # Only behind a unit: "1 ha-1.5 ha" is a range.
        *(f"{top} {bottom}-1" for top in quantity if top.isalpha() for bottom in base[:1]),
        *chinese.split(),
    )


_HECTARE = ("ha", "hectare", "hectares")
_WEEK = ("week", "wk", "weeks")
_KILOGRAM = ("kg", "kilogram", "kilograms")
_TONNE = ("t", "tonne", "tonnes", "ton", "tons")
_SQUARE_METRE = _square("m", "metre", "")

UNITS: dict[str, Unit] = {
    "mm": Unit("length", 0.001, _metric("mm", "millimetre", "毫米")),
    "cm": Unit("length", 0.01, _metric("cm", "centimetre", "厘米 公分")),
    "m": Unit("length", 1.0, _metric("m", "metre", "米")),
    "km": Unit("length", 1000.0, _metric("km", "kilometre", "千米 公里")),
    "in": Unit("length", 0.0254, ("in", "inch", "inches", "英寸")),
    "ft": Unit("length", 0.3048, ("ft", "foot", "feet", "英尺")),
    "mm^2": Unit("area", 1e-6, _square("mm", "millimetre", "平方毫米")),
    "cm^2": Unit("area", 1e-4, _square("cm", "centimetre", "平方厘米")),
    "m^2": Unit("area", 1.0, (*_SQUARE_METRE, "平方米", "平米")),
    "ha": Unit("area", 10_000.0, (*_HECTARE, "公顷")),
    "km^2": Unit("area", 1e6, _square("km", "kilometre", "平方千米 平方公里")),
    "in^2": Unit("area", 0.0254**2, ("in^2", "in2", "sq in", "square inch", "square inches", "平方英寸")),
    "ft^2": Unit("area", 0.3048**2, ("ft^2", "ft2", "sq ft", "sqft", "square foot", "square feet", "平方英尺")),
    "acre": Unit("area", 4046.8564224, ("acre", "acres", "英亩")),
    "mu": Unit("area", 2000.0 / 3.0, ("mu", "亩")),
    "m^3": Unit("volume", 1.0, ("m^3", "m3", "cubic metre", "cubic metres", "cubic meter", "cubic meters", "立方米")),
    "L": Unit("volume", 0.001, ("L", "litre", "litres", "liter", "liters", "升")),
    "%": Unit(
        "share",
        0.01,
        (
            *("%", "percent", "per cent", "pct", "pp", "percentage point", "percentage points"),
            *("% points", "%-points", "个百分点", "百分点"),
        ),
    ),
    "fraction": Unit("share", 1.0, ("fraction",)),
    "g": Unit("mass", 0.001, ("g", "gram", "grams", "克")),
    "kg": Unit("mass", 1.0, (*_KILOGRAM, "千克", "公斤")),
    "jin": Unit("mass", 0.5, ("斤", "市斤")),
    "t": Unit("mass", 1000.0, (*_TONNE, "吨")),
    "kg/ha": Unit("yield", 1.0, _per(_KILOGRAM, _HECTARE, "千克/公顷 公斤/公顷 公斤每公顷 千克每公顷")),
    "kg/mu": Unit("yield", 15.0, _per(_KILOGRAM, ("mu", "亩"), "千克/亩 公斤/亩 公斤每亩 千克每亩")),
    "t/ha": Unit("yield", 1000.0, _per(_TONNE, _HECTARE, "吨/公顷 吨每公顷")),
    "1/ha": Unit("density", 1.0, (*_per(("", "1"), _HECTARE, ""), "/公顷", "每公顷", "株/公顷", "棵/公顷")),
    "1/m^2": Unit(
        "density",
        10_000.0,
        (*_per(("", "1"), _SQUARE_METRE[:8], "/平方米 每平方米 株/平方米 棵/平方米"), "m^-2"),
    ),
    "mm/week": Unit("growth", 0.1, _per(("mm", "millimetres", "millimeters"), _WEEK, "毫米/周 毫米每周")),
    "mm/day": Unit("growth", 0.7, _per(("mm", "millimetres", "millimeters"), ("day", "d", "days"), "毫米/天 毫米每天")),
    "cm/day": Unit("growth", 7.0, _per(("cm", "centimetres", "centimeters"), ("day", "d", "days"), "厘米/天 厘米每天")),
    "cm/week": Unit("growth", 1.0, _per(("cm", "centimetres", "centimeters"), _WEEK, "厘米/周 厘米每周")),
    "degC": Unit("temperature", 1.0, ("°c", "degc", "deg c", "degrees celsius", "celsius", "摄氏度", "度")),
    "days": Unit("time", 1.0, ("days", "day", "天", "日")),
    "weeks": Unit("time", 7.0, ("weeks", "week", "周", "星期")),
    "hours": Unit("time", 1 / 24, ("hours", "hour", "h", "小时")),
    "months": Unit("time", 365.25 / 12, ("months", "month", "个月")),
    "years": Unit("time", 365.25, ("years", "year", "yr", "yrs")),
    "px": Unit("pixels", 1.0, ("px", "pixel", "pixels", "像素")),
}

_BY_NAME = {normalise(name).strip(): unit for unit, entry in UNITS.items() for name in entry.names}
_LATIN_END = re.compile(rf"[^\W{CJK}]$")


def canonical_unit(name: str | None) -> str | None:
    """The table's symbol for a unit as someone wrote it; None for no unit or one that is not in the table."""
    if name is None:
        return None
    return name if name in UNITS else _BY_NAME.get(normalise(name).strip())


def convert(value: float, unit: str, to: str) -> float:
    """``value`` given in ``unit``, expressed in ``to``.

    Raises:
        ValueError: one of the two is not in the table, or they measure different things.
    """
    if unit not in UNITS or to not in UNITS or UNITS[unit].dimension != UNITS[to].dimension:
        raise ValueError(f"cannot convert {unit} to {to}")
    return value if unit == to else value * UNITS[unit].factor / UNITS[to].factor


def compatible(unit: str, other: str) -> bool:
    """True if two units of the table measure the same thing."""
    return UNITS[unit].dimension == UNITS[other].dimension


def unit_pattern() -> str:
    """Regular expression for any written unit after a number, longest first; a noun may precede ``/ha``."""
    names = sorted(_BY_NAME, key=len, reverse=True)
    alternatives = "|".join(_name_pattern(name) for name in names)
    # "250 trees/ha" and "12 plants per m^2": the counted noun belongs to the number, the rest is the unit.
    return rf"(?:[a-z]{{2,20}} ?(?=/|per |(?:ha|m)\^-))??(?P<unit>{alternatives})"


# "14 in the field" are no inches: behind the sign ends the statement, or a word says which way it was measured.
_INCH_END = (
    r"(?=\.?\s*(?:$|[\n.,;:!?)\]|×*/}]|\(|(?:long|wide|tall|high|deep|thick|across|(?:in|on) [a-z]+er|on average)\b))"
)


def _name_pattern(name: str) -> str:
    if name == "in":
        return name + _INCH_END
    end = r"(?![a-z0-9_^]|/[a-z])" if _LATIN_END.search(name) else ""
    return re.escape(name) + end
