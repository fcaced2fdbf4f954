"""Reading a number out of an answer: which sentence, which candidate, whether it is within tolerance."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import ExactSlot, Slot, ToleranceSlot
from agrotools.scoring.reading import AnswerText, Scope, keyed_scope, mentions, sentences
from agrotools.text.numbers import Quantity, find_quantities
from agrotools.text.units import canonical_unit, compatible, convert

_MARKER = re.compile(r"[=≈]|(?<!\d):|:(?!\d)|\b(?:is|are|was|were|about|approximately)\b|为|是|约")
_SHOWN = 240


class NumberReading(NamedTuple):
    """The candidates read for a slot (in its unit, as low and high ends) and how they were found."""

    candidates: tuple[tuple[float, float], ...]
    used_form: bool
    reading: dict[str, JsonValue]


def read_number(slot: ToleranceSlot | ExactSlot, slots: Sequence[Slot], answer: AnswerText) -> NumberReading:
    """The number that ``answer`` states for ``slot``; several different candidates where it does not decide."""
    unit = canonical_unit(slot.unit)
    keyed = keyed_scope(slot, slots, answer)
    scope, fitting = _scope(slot, unit, keyed, answer)
    if not fitting:
        shown: dict[str, JsonValue] = {"scope": scope.kind, "text": scope.text[:_SHOWN], "rule": "no number that fits"}
        return NumberReading((), scope.keyed, shown)
    chosen, rule = _choose(scope, fitting)
    candidates = tuple(dict.fromkeys(_in_unit(quantity, unit) for quantity in chosen))
    reading: dict[str, JsonValue] = {
        "scope": scope.kind,
        "text": scope.text[:_SHOWN],
        "candidate": [_shown(quantity) for quantity in chosen],
        "value": [low if low == high else [low, high] for low, high in candidates],
        "rule": rule,
    }
    return NumberReading(candidates, scope.keyed, reading)


def _scope(slot: Slot, unit: str | None, keyed: Scope | None, answer: AnswerText) -> tuple[Scope, list[Quantity]]:
    """The scope to read, and the quantities in it that fit the slot."""
    if keyed is not None:
        return keyed, _fitting(_quantities(keyed.text), unit)
    parts = sentences(answer.plain)
    for words in (False, True):
        found = [(part, [q for q in find_quantities(part, words=words) if not q.denied]) for part in parts]
        if not any(quantities for _, quantities in found):
            continue
        for part, quantities in reversed(found):
            if (mentions(part, slot.label) or mentions(part, slot.name)) and (fitting := _fitting(quantities, unit)):
                return Scope("sentence with the label", part), fitting
        for fits in (_explicit if unit else _unitless, _bare, _any_compatible):
            for part, quantities in reversed(found):
                if any(fits(quantity, unit) for quantity in quantities):
                    return Scope("last sentence that fits", part), _fitting(quantities, unit)
        break
    return Scope("nothing", answer.plain), []


def _quantities(text: str) -> list[Quantity]:
    """Quantities of a keyed value that are not denied; number words only where there are no digits."""
    found = [quantity for quantity in find_quantities(text) if not quantity.denied]
    if found or any(letter.isdigit() for letter in text):
        return found
    return [quantity for quantity in find_quantities(text, words=True) if not quantity.denied]


def _explicit(quantity: Quantity, unit: str | None) -> bool:
    return unit is not None and quantity.unit is not None and compatible(quantity.unit, unit)


def _unitless(quantity: Quantity, unit: str | None) -> bool:
    return unit is None and quantity.unit is None


def _bare(quantity: Quantity, _unit: str | None) -> bool:
    return quantity.bare


def _any_compatible(quantity: Quantity, unit: str | None) -> bool:
    return quantity.unit is None or _explicit(quantity, unit)


def _fitting(quantities: Sequence[Quantity], unit: str | None) -> list[Quantity]:
    """The quantities that may answer: beside an explicit compatible unit no bare number, beside those no noun."""
    if unit is None:
        return [quantity for quantity in quantities if quantity.unit is None]
    for kind in (_explicit, _bare, _any_compatible):
        fitting = [quantity for quantity in quantities if kind(quantity, unit)]
        if fitting:
            return fitting
    return []


def _choose(scope: Scope, fitting: Sequence[Quantity]) -> tuple[list[Quantity], str]:
    """The candidate and what is joined to it."""
    if scope.keyed:
        first, rule = fitting[0], "first number of the value"
    else:
        first, rule = _marked(scope.text, fitting)
    chosen = [quantity for quantity in fitting if quantity.chain == first.chain]
    if len(chosen) > 1:
        rule += ", with the numbers joined to it"
    return chosen, rule


def _marked(text: str, fitting: Sequence[Quantity]) -> tuple[Quantity, str]:
    markers = list(_MARKER.finditer(text))
    for marker in reversed(markers):
        behind = next((quantity for quantity in fitting if quantity.start >= marker.end()), None)
        if behind is not None:
            return behind, f"first number after {marker[0]!r}"
    return fitting[-1], "last number"


def _in_unit(quantity: Quantity, unit: str | None) -> tuple[float, float]:
    if unit is None or quantity.unit is None:
        return quantity.low, quantity.high
    return convert(quantity.low, quantity.unit, unit), convert(quantity.high, quantity.unit, unit)


def _shown(quantity: Quantity) -> str:
    value = f"{quantity.low:.10g}" if quantity.low == quantity.high else f"{quantity.low:.10g} to {quantity.high:.10g}"
    named = quantity.unit or quantity.noun
    return f"{value} {named}" if named else value


def within(value: float, margin: float, low: float, high: float) -> bool:
    """Whether both ends lie within ``margin`` of ``value``, to a relative 1e-9."""
    slack = 1e-9 * max(abs(value), abs(low), abs(high))
    return abs(low - value) <= margin + slack and abs(high - value) <= margin + slack


def agree(candidates: Sequence[tuple[float, float]]) -> bool:
    """Whether all candidates are the same, to a relative 1e-9."""
    low, high = candidates[0]
    return all(within(low, 0.0, other, other) and within(high, 0.0, top, top) for other, top in candidates)
