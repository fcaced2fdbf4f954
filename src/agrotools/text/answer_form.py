"""The answer form at the end of every prompt, and answers written in it."""

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    PlotSlot,
    Slot,
    ToleranceSlot,
)

# A name at the beginning of a line, after list marks and emphasis at most; or quoted, as in JSON.
_KEY = re.compile(r"""(?m)^[ \t>#*_`~|+•(\d.)-]{0,12}(\w+)[*_` \t]{0,6}[:：=]|["'](\w+)["']\s?[:：]""")


def answer_form(slots: Sequence[Slot]) -> str:
    """Names, meanings, types, units and choices of ``slots``; never their values."""
    form_slots = [slot for slot in slots if not slot.made]
    lines: list[str] = []
    if any(isinstance(slot, PlotSlot) for slot in slots):
        figure_labels = "; ".join(slot.label for slot in slots if isinstance(slot, PlotSlot))
        lines.append(f"The answer includes a figure: {figure_labels}. It must be drawn, not described.")
    lines += dict.fromkeys(slot.form_opening for slot in slots if slot.form_opening)
    if not form_slots:
        lines += [slot.form_closing for slot in slots if slot.form_closing][:1]
        return "\n".join(lines)
    lines.append("End your answer with one line per item, in exactly this form:")
    lines += form_lines(slots)
    lines.append("where")
    lines += [f"- {slot.name} is {slot.label}" for slot in form_slots]
    return "\n".join(lines)


def form_lines(slots: Sequence[Slot]) -> tuple[str, ...]:
    """The lines that the form asks for: ``name: <what is expected>`` for each slot whose answer is text."""
    return tuple(f"{slot.name}: {_expected(slot)}" for slot in slots if not slot.made)


def lacks_form(answer: str, lines: Sequence[str]) -> bool:
    """True if ``answer`` lacks one of the form's ``lines``: a line that begins with its name, or a JSON key.

    A line of the form as it was shown, without a value, is none.
    """
    answer = _without_copies(answer, lines)
    names = {line.partition(":")[0].casefold() for line in lines}
    return not names <= {(key[1] or key[2]).casefold() for key in _KEY.finditer(answer)}


def with_form(answer: str, reply: str, lines: Sequence[str]) -> str:
    """``answer`` and the ``reply`` to the request for its form; a reply in the form is the final answer."""
    marker = "" if lacks_form(reply, lines) else "Final Answer:\n"
    return f"{answer}\n\n{marker}{_without_copies(reply, lines)}".rstrip()


def _without_copies(text: str, lines: Sequence[str]) -> str:
    """``text`` without ``lines`` that were copied as they were shown, without a value."""
    for line in lines:
        text = text.replace(line, "")
    return text


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
    """``values`` by slot name, written in the answer form: one line ``name: value unit`` each.

    Slots without a value are left out, and so are those whose answer is what was drawn.
    """
    lines: list[str] = []
    for slot in slots:
        value = values.get(slot.name)
        if value is None or slot.made:
            continue
        lines.append(f"{slot.name}: {_written(slot, value)}")
    return "\n".join(lines)


def _written(slot: Slot, value: JsonValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        unit = slot.unit if isinstance(slot, ToleranceSlot | ExactSlot) else None
        return f"{value!r} {unit}" if unit else repr(value)
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    text = str(value)
    return " ".join(text.split()) if slot.free_text else text
