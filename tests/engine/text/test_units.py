"""Units: every spelling of a unit is read alike, and no other unit is taken for it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import ToleranceSlot
from agrotools.scoring.slots import score_slot
from agrotools.text.normalise import normalise
from agrotools.text.quantities import read_quantity
from agrotools.text.units import UNITS, canonical_unit, compatible, convert, read_unit, unit_at

WORDS = {
    "t": "tonnes", "kg": "kilograms", "g": "grams", "dt": "quintals", "lb": "pounds", "L": "litres",
    "mm": "millimetres", "plants": "plants", "ha": "hectare", "acre": "acre", "mu": "mu", "m^2": "square metre",
    "km^2": "square kilometre",
    "day": "day", "week": "week",
}  # fmt: skip
CHINESE = {
    "t": "吨", "kg": "公斤", "g": "克", "dt": "公担", "lb": "磅", "L": "升", "mm": "毫米", "plants": "株", "ha": "公顷",
    "acre": "英亩", "mu": "亩", "m^2": "平方米", "km^2": "平方公里", "day": "天", "week": "周",
}  # fmt: skip
TOPS, BOTTOMS = list(WORDS)[:8], list(WORDS)[8:]
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
FULLWIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(33, 127)})


def spellings(top: str, bottom: str) -> list[str]:
    """Every way to write ``top`` per ``bottom`` that we know from replies."""
    base, _, power = bottom.partition("^")
    power = f"-{power or 1}"
    size = power[1:].replace("1", "")
    raised = f"{base}{size.translate(SUPERSCRIPT)}"
    return [
        f"{top}/{bottom}", f"{top} / {bottom}", f"{top}/{raised}", f"{top}/{base}{size}", f"({top}/{raised})",
        f"{top} per {WORDS[bottom]}", f"{WORDS[top]} per {WORDS[bottom]}", f"{WORDS[top]}/{raised}",
        f"{top} {base}{power}", f"{top} {base}^{power}", f"{top} {base}^{{{power}}}", f"{top} {base}^({power})",
        f"{top}·{base}{power.translate(SUPERSCRIPT)}", f"{top} {base}{power.translate(SUPERSCRIPT)}",
        f"{top}*{base}^{power}", f"{top}.{base}{power}", f"{top} × {base}^{power}", f"{top} {base}**{power}",
        f"{top} ${base}^{{{power}}}$", f"{top} {base}$^{{{power}}}$", f"{top}/{raised}.", f"{top}/{bottom}`",
        f"{top}/{bottom}".translate(FULLWIDTH),
        f"{CHINESE[top]}/{CHINESE[bottom]}", f"{CHINESE[top]}每{CHINESE[bottom]}",
    ]  # fmt: skip


QUOTIENTS = [(top, bottom) for top in TOPS for bottom in BOTTOMS if (top, bottom) != ("mm", "ha")]


def factor(top: str, bottom: str) -> float:
    unit = read_unit(f"{'1' if top == 'plants' else top}/{bottom}")
    assert unit is not None
    return unit.factor


def score(text: str, value: float, unit: str) -> float:
    slot = ToleranceSlot(
        name="amount", label="amount of plants", value=value, unit=unit, rel_tol=1e-6
    )
    return score_slot(slot, [slot], f"amount: {text}").value


@given(
    st.sampled_from(QUOTIENTS),
    st.sampled_from(QUOTIENTS),
    st.sampled_from(range(25)),
    st.sampled_from([7.5, 32000, 0.35]),
)
def test_a_value_scores_alike_in_every_spelling_of_its_unit(first, second, spelling, value):
    unit = f"{'1' if first[0] == 'plants' else first[0]}/{first[1]}"
    other = f"{'1' if second[0] == 'plants' else second[0]}/{second[1]}"
    assert score(f"{value} {spellings(*first)[spelling]}", value, unit) == 1
    same = compatible(unit, other) and math.isclose(factor(*first), factor(*second), rel_tol=1e-6)
    assert score(f"{value} {spellings(*second)[spelling]}", value, unit) == same
    if compatible(unit, other):
        converted = convert(value, unit, other)
        assert score(f"{converted:.9g} {spellings(*second)[spelling]}", value, unit) == 1


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("24,000 m^{2}", 24000, "m^2"), ("48 $m^{2}$", 48, "m^2"), ("12 m^{3}", 12, "m^3"), ("2.4 ha", 24000, "m^2"),
        ("7.5 Mg ha⁻¹", 7.5, "t/ha"), ("750 g/m²", 7.5, "t/ha"), ("0.75 kg m^-2", 7.5, "t/ha"), ("36亩", 2.4, "ha"),
        ("320 plants per 100 m²", 3.2, "1/m^2"), ("120 kg N ha-1", 120, "kg/ha"), ("107.06 lb/acre", 119.995, "kg/ha"),
        ("77 °F", 25, "degC"), ("298.15 K", 25, "degC"), ("18 ppm", 18, "mg/kg"), ("4200 µS/cm", 4.2, "dS/m"),
        ("20 mL/m²", 200, "L/ha"), ("2 cm/pixel", 2, "cm/px"), ("3.2 hm²", 3.2, "ha"), ("75 L/m²", 75, "mm"),
        ("280 1/ha", 280, "1/ha"), ("0.075 m", 75, "mm"),
        ("120 kg of nitrogen per hectare", 120, "kg/ha"),
    ],
)  # fmt: skip
def test_values_of_replies_count_in_the_unit_of_the_slot(text: str, value: float, unit: str):
    slot = ToleranceSlot(
        name="amount", label="amount of plants or nitrogen", value=value, unit=unit, rel_tol=1e-4
    )
    assert score_slot(slot, [slot], f"amount: {text}").value == 1


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("7.5 bu/ac", "t/ha"), ("7.5 kg/plant", "t/ha"), ("7.5 t/ha/year", "t/ha"), ("7.5 t", "t/ha"),
        ("7.5 mg/ha", "t/ha"),
        ("7.5 maize plants/acre", "1/ha"), ("7.5 sq mi", "ha"), ("7.5 in/day", "mm/day"), ("7.5 °F", "degC"),
        ("7.5 pounds", "kg"), ("7.5 ‰", "%"), ("7.5 Hz", "dB"), ("7.5 m^{3}", "m^2"), ("7.5 px³", "px"),
        ("7.5 foo·bar^{-1}/ha", "t/ha"), ("7.5 t/亩", "t/ha"), ("1e308 km", "mm"),
    ],
)  # fmt: skip
def test_another_unit_makes_a_value_wrong(text: str, unit: str):
    assert score(text, 7.5, unit) == 0


@given(
    st.sampled_from(list(UNITS)), st.sampled_from(list(UNITS)), st.sampled_from([-2, -1, 1, 2, 3])
)
def test_the_symbol_of_a_unit_is_read_as_the_unit(top: str, bottom: str, power: int):
    unit = read_unit(f"{top}/{bottom}^{abs(power)}" if power < 0 else f"{top}^{power}")
    assert unit is not None
    assert read_unit(unit.symbol) == unit
    assert canonical_unit(unit.symbol) == unit.symbol


@given(st.text())
def test_normalising_twice_changes_nothing(text: str):
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error(text: str):
    plain = normalise(f"7.5 {text}")
    read = read_quantity(plain)
    assert read is None or read.low <= read.high
    found = unit_at(plain, 3)
    assert found is None or 3 < found[1] <= len(plain)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7.5", (7.5, 7.5, None, None)), ("about 1,204.5 m^2", (1204.5, 1204.5, "m^2", None)),
        ("13-15", (13, 15, None, None)), ("from 13", None), ("12 to 16 mm", (12, 16, "mm", None)),
        ("75 ± 3 mm", (75, 75, "mm", None)), ("14 apple trees", (14, 14, None, "apple trees")),
        ("3 in (76 mm)", (3, 3, "in", None)), ("3 in (90 mm)", None), ("14 or 15", None), ("more than 14", None),
        ("三公斤/亩", (3, 3, "kg/mu", None)), ("三千五公斤/亩", None), ("3.2万株/公顷", (32000, 32000, "1/ha", None)),
        ("fourteen", (14, 14, None, None)), ("twenty-five", None), ("two thirds", None), ("3rd", None),
        ("二十五", None), ("14 in total", (14, 14, None, "in total")), ("3/4 ha", (0.75, 0.75, "ha", None)),
        ("3/4", None), ("2½ m", (2.5, 2.5, "m", None)), ("10^4", (10000, 10000, None, None)),
        ("3.2 million", (3.2e6, 3.2e6, None, None)),
        ("-0.3", (-0.3, -0.3, None, None)),
        ("1.2 × 10^4 t", (12000, 12000, "t", None)),
        ("none", None), ("", None), ("9e999", None), ("14, 15", None), ("2 m wide 3", None), ("14+ trees", None),
        ("一般", None), ("12,34,5", None), ("12.5.6", None), ("12.5.6e3", None), ("1204 204", None), ("forty", None),
        ("十五", (15, 15, None, None)), ("1\u202f204", (1204, 1204, None, None)), ("42,5 %", (42.5, 42.5, "%", None)),
        ("1.204,5", (1204.5, 1204.5, None, None)), ("1.204.000", (1204000, 1204000, None, None)),
        ("3,500", (3500, 3500, None, None)), ("0,350", (0.35, 0.35, None, None)), ("1.2E3", (1200, 1200, None, None)),
    ],
)  # fmt: skip
def test_a_quantity_is_the_whole_of_its_text(text: str, expected):
    read = read_quantity(normalise(text))
    assert (
        read and (read.low, read.high, read.unit.symbol if read.unit else None, read.noun)
    ) == expected
