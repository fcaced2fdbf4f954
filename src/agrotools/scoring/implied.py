"""Values that the shown observations imply for a slot, so that a faithful reader of a fallible tool is right."""

import math
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    OpenTextSlot,
    ReferenceTrajectory,
    Slot,
    ToleranceSlot,
    UnresolvedRef,
)
from agrotools.core.record import Results
from agrotools.scoring.open_text import states_fact
from agrotools.text.agreement_values import as_number, category
from agrotools.text.expression_functions import ExpressionError
from agrotools.text.expressions import evaluate_from


class Implied(NamedTuple):
    """A slot as the shown observations imply it.

    ``slot`` is None where they imply nothing, and ``reason`` says why. ``differs``: whether the implied value is not
    the true one, beyond the slot's tolerance.
    """

    slot: Slot | None
    value: JsonValue = None
    differs: bool = False
    reason: str = ""


def shown_results(reference: ReferenceTrajectory) -> Results:
    """Results of the reference steps as they are shown; None for one that failed."""
    return [step.observation.result if step.observation else None for step in reference.steps]


def implied_slot(slot: Slot, results: Results) -> Implied:
    """``slot`` with the value that its ``from`` has over ``results``.

    A label, member or file that the observations imply and the truth does not takes the truth's place, and the truth
    becomes one of those that must not be asserted. A label that is the true one by another name changes nothing. Open
    text keeps those facts that the observed text states. Nothing is implied where the slot has no ``from``, where it
    cannot be evaluated, or where it yields something that the slot cannot hold.
    """
    if slot.from_ is None:
        return Implied(None, reason="the slot does not say how it follows from the observations")
    try:
        value = evaluate_from(slot.from_, results)
    except (UnresolvedRef, ExpressionError) as error:
        return Implied(None, reason=str(error))
    if isinstance(slot, ToleranceSlot):
        implied = _number(slot, value)
    elif isinstance(slot, ExactSlot):
        implied = _label(slot, value)
    elif isinstance(slot, BooleanSlot):
        implied = _yes_or_no(slot, value)
    elif isinstance(slot, ChoiceSetSlot):
        implied = _members(slot, value)
    elif isinstance(slot, FileSlot):
        implied = _file(slot, value)
    elif isinstance(slot, OpenTextSlot):
        implied = _facts(slot, value)
    else:
        implied = None
    return implied or Implied(None, value, reason=f"the observations yield no value of type {slot.type}")


def _number(slot: ToleranceSlot, value: JsonValue) -> Implied | None:
    number = as_number(value)
    if number is None:
        return None
    differs = abs(number - slot.value) > slot.margin + 1e-9 * abs(slot.value)
    return Implied(slot.model_copy(update={"value": float(number)}), value, differs)


def _label(slot: ExactSlot, value: JsonValue) -> Implied | None:
    number = as_number(value)
    if isinstance(slot.value, str):
        label = value.strip() if isinstance(value, str) else f"{number:g}" if number is not None else ""
    else:
        label = number
    if label is None or label == "":
        return None
    if _same(label, slot.value) or any(_same(label, name) for name in slot.names):
        return Implied(slot, value)
    known = {choice: (choice, *slot.aliases.get(choice, ())) for choice in slot.choices}
    as_listed = next((choice for choice, names in known.items() if any(_same(label, name) for name in names)), label)
    choices = tuple(dict.fromkeys((*slot.choices, str(slot.value), str(as_listed))))
    return Implied(slot.model_copy(update={"value": as_listed, "choices": choices}), value, differs=True)


def _same(value: JsonValue, name: JsonValue) -> bool:
    first, second = as_number(value), as_number(name)
    if first is not None and second is not None:
        return math.isclose(first, second, rel_tol=1e-9)
    return category(value) == category(name)


def _yes_or_no(slot: BooleanSlot, value: JsonValue) -> Implied | None:
    if not isinstance(value, bool):
        return None
    return Implied(slot.model_copy(update={"value": value}), value, value != slot.value)


def _members(slot: ChoiceSetSlot, value: JsonValue) -> Implied | None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    members = [_known(str(item), slot) for item in value]
    choices = dict.fromkeys((*slot.choices, *members))
    implied = slot.model_copy(update={"value": tuple(dict.fromkeys(members)), "choices": tuple(choices)})
    return Implied(implied, value, set(members) != set(slot.value))


def _known(name: str, slot: ChoiceSetSlot) -> str:
    for choice in slot.choices:
        if any(_same(name, known) for known in (choice, *slot.aliases.get(choice, ()))):
            return choice
    return name


def _file(slot: FileSlot, value: JsonValue) -> Implied | None:
    if not isinstance(value, str) or not value.strip():
        return None
    choices = tuple(dict.fromkeys((*slot.choices, value)))
    return Implied(slot.model_copy(update={"value": value, "choices": choices}), value, value != slot.value)


def _facts(slot: OpenTextSlot, value: JsonValue) -> Implied | None:
    parts = value if isinstance(value, list) else [value]
    text = "\n".join(part for part in parts if isinstance(part, str))
    stated = tuple(fact for fact in slot.facts if states_fact(fact, text))
    if not stated:
        return None
    differs = len(stated) < len(slot.facts)
    # The floor is that of all facts together.
    changed = {"facts": stated, "floor": 0.0} if differs else {}
    return Implied(slot.model_copy(update=changed), value, differs)


def is_text_slot(slot: Slot) -> bool:
    """True if the slot is answered in words: all but figures and images."""
    return not slot.made
