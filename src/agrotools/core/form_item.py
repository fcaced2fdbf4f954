"""Items of the answer form: slots without their gold, which is all that readers of answers and guesses may know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agrotools.core.slot import ChoiceSetSlot, ExactSlot, FileSlot, Slot, ToleranceSlot, asked_slots


@dataclass(frozen=True, slots=True)
class FormItem:
    """A slot without its value, tolerance, source and facts.

    Attributes:
        type: type of the slot, e.g. ``tolerance``.
        is_number: True if the item asks for a number.
        choices: options in alphabetical order, whichever is correct; empty if any answer may be given.
        aliases: other names of ``choices``; empty if one of them has other names where one is correct, because they
            may be written for the gold alone.
        takes_several: True if several of ``choices`` may be correct together.
    """

    name: str
    label: str
    type: str
    unit: str | None = None
    is_number: bool = False
    choices: tuple[str, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]], hash=False
    )
    takes_several: bool = False
    free_text: bool = False


def form_item(slot: Slot) -> FormItem:
    """Return ``slot`` without its gold."""
    is_number = isinstance(slot, ToleranceSlot) or (
        isinstance(slot, ExactSlot) and not isinstance(slot.value, str)
    )
    choices = slot.letters
    if isinstance(slot, ExactSlot | FileSlot | ChoiceSetSlot) and not is_number:
        choices = tuple(sorted(set(slot.choices)))
    known = slot.aliases if isinstance(slot, ExactSlot | ChoiceSetSlot) else {}
    aliases = {choice: known[choice] for choice in choices if known.get(choice)}
    return FormItem(
        name=slot.name,
        label=slot.label,
        type=slot.type,
        unit=slot.unit if isinstance(slot, ToleranceSlot | ExactSlot) else None,
        is_number=is_number,
        choices=choices,
        aliases=aliases if len(aliases) > 1 or isinstance(slot, ChoiceSetSlot) else {},
        takes_several=slot.takes_several or isinstance(slot, ChoiceSetSlot),
        free_text=slot.free_text,
    )


def asked_items(slots: Sequence[Slot]) -> tuple[FormItem, ...]:
    """Return the items of the answer form of ``slots``: all that are answered in text, without their gold."""
    return tuple(form_item(slot) for slot in asked_slots(slots) if not slot.made_by_tools)
