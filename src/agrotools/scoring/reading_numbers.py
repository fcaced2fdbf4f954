"""Reading a number out of an answer: which sentence, which candidate, whether it is within tolerance."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import ExactSlot, Slot, ToleranceSlot
from agrotools.scoring.reading import AnswerText, Scope, sentences
from agrotools.scoring.reading_keyed import keyed_scope, mentions, without_other_values
from agrotools.text.numbers import Quantity, find_quantities
from agrotools.text.units import canonical_unit, compatible, convert

_MARKER = re.compile(r"[=≈]|(?<!\d):|:(?!\d)|\b(?:is|are|was|were|about|approximately)\b|为|是|约")
_OPERATORS = re.compile(r"[-+*/×÷·x=()\[\]| ]*")
_SHOWN = 240


class NumberReading(NamedTuple):
    """The candidates read for a slot (in its unit, as low and high ends) and how they were found."""

    candidates: tuple[tuple[float, float], ...]
    used_form: bool
    reading: dict[str, JsonValue]


def read_number(slot: ToleranceSlot | ExactSlot, slots: Sequence[Slot], answer: AnswerText) -> NumberReading:
    """The number that ``answer`` states for ``slot``; several different candidates where it does not decide."""
    unit = canonical_unit(slot.unit)
    keyed = keyed_scope(slot, slots, answer, lambda text: bool(_quantities(text)))
    scope, fitting = _scope(slot, slots, unit, keyed, answer)
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


def _scope(
    slot: Slot, slots: Sequence[Slot], unit: str | None, keyed: Scope | None, answer: AnswerText
) -> tuple[Scope, list[Quantity]]:
    """The scope to read, and the quantities in it that fit the slot."""
    if keyed is not None:
        found = _quantities(keyed.text)
        return keyed, _fitting([replace(q, unit=keyed.unit) if q.bare else q for q in found], unit)
    parts = sentences(without_other_values(slot, slots, answer.plain))
    labelled = [mentions(part, slot, slots) for part in parts]
    digits = [find_quantities(part) for part in parts]
    # Number words count in scopes without digits, and give way to any scope with them.
    words = [[] if found else find_quantities(part, words=True) for part, found in zip(parts, digits, strict=True)]
    stated = [[[q for q in found if not q.denied] for found in column] for column in (digits, words)]
    for found in stated:
        for part, has_label, quantities in reversed(list(zip(parts, labelled, found, strict=True))):
            if has_label and (fitting := _fitting(quantities, unit)):
                return Scope("sentence with the label", part), fitting
    for found in stated if not any(digits) else stated[:1]:
        for fits in (_explicit if unit else _unitless, _bare, _any_compatible):
            for part, quantities in reversed(list(zip(parts, found, strict=True))):
                if any(fits(quantity, unit) for quantity in quantities):
                    return Scope("last sentence that fits", part), _fitting(quantities, unit)
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
        result = _result(scope.text, fitting)
        first, rule = (result, "result of the calculation") if result else (fitting[0], "first number of the value")
    else:
        first, rule = _marked(scope.text, fitting)
    chosen = [quantity for quantity in fitting if quantity.chain == first.chain]
    if len(chosen) > 1:
        rule += ", with the numbers joined to it"
    return chosen, rule


def _result(text: str, fitting: Sequence[Quantity]) -> Quantity | None:
    """The number after the last ``=`` of a value that is written as a calculation: ``8 + 6 = 14``."""
    equals = text.rfind("=")
    behind = next((quantity for quantity in fitting if equals >= 0 and quantity.start > equals), None)
    if behind is None:
        return None
    terms = find_quantities(text[:equals])
    ends = [0, *(term.end for term in terms)]
    between = [text[end : term.start] for end, term in zip(ends, terms, strict=False)] + [text[ends[-1] : equals]]
    spanned = any(term.low < term.high for term in terms)  # "33 % - 30 %" reads as a range
    joints = "".join(between[1:])
    return behind if terms and _OPERATORS.fullmatch(joints) and (spanned or joints.strip(" ()[]=|")) else None


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
