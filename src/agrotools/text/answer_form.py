"""The answer form of a question, and answers in this form."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    OpenTextSlot,
    Slot,
    ToleranceSlot,
)
from agrotools.core.slot import asked_slots

UNKNOWN = "unknown"
"""What an answer gives for an item without a value; alone, for all items."""


def answer_form(slots: Sequence[Slot]) -> str:
    """Return the answer form: names, types, units, choices and meanings of ``slots``, never their values.

    It is empty if no slot is answered in text.
    """
    form_slots = [slot for slot in asked_slots(slots) if not slot.made_by_tools]
    if not form_slots:
        return ""
    branched = {
        slot.name for slot in form_slots if isinstance(slot, OpenTextSlot) and slot.excluded
    }
    meanings = [
        f"- {slot.name} is {slot.label}{_ONE_BRANCH * (slot.name in branched)}"
        for slot in form_slots
    ]
    return "\n".join([*form_lines(slots), "where", *meanings])


_ONE_BRANCH = " (only what applies: an answer that gives both counts as neither)"


def form_lines(slots: Sequence[Slot]) -> tuple[str, ...]:
    """Return the lines that the form asks for: ``name: <expected value>`` for each slot answered in text."""
    return tuple(
        f"{slot.name}: {_expected(slot)}" for slot in asked_slots(slots) if not slot.made_by_tools
    )


def _expected(slot: Slot) -> str:
    if isinstance(slot, BooleanSlot):
        return "<yes or no>"
    if isinstance(slot, FileSlot):
        return f"<one of: {', '.join(sorted(slot.choices))}>"
    if isinstance(slot, ChoiceSetSlot):
        return f"<those that apply of: {', '.join(sorted(slot.choices))}>"
    if isinstance(slot, ExactSlot) and not isinstance(slot.value, int | float):
        labels = sorted(slot.choices, key=lambda label: (label.casefold(), label))
        return f"<one of: {', '.join(labels)}>" if labels else "<name>"
    if isinstance(slot, ToleranceSlot | ExactSlot):
        return f"<number> {slot.unit}" if slot.unit else "<number>"
    return slot.form_value


def format_answer(slots: Sequence[Slot], values: Mapping[str, JsonValue]) -> str:
    """Write ``values`` (by slot name) in the answer form: one line ``name: value unit`` each.

    Slots without a value and slots answered by a figure are left out.
    """
    given = [(slot, values.get(slot.name)) for slot in asked_slots(slots) if not slot.made_by_tools]
    return "\n".join(
        f"{slot.name}: {_written(slot, value)}" for slot, value in given if value is not None
    )


def _written(slot: Slot, value: JsonValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        unit = slot.unit if isinstance(slot, ToleranceSlot | ExactSlot) else None
        number = repr(
            float(f"{value:.6g}") if isinstance(value, float) and abs(value) < 1e6 else round(value)
        )
        return f"{number} {unit}" if unit else number
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    text = str(value)
    return " ".join(text.split()) if slot.free_text else text
