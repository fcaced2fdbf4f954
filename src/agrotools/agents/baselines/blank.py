"""What a slot asks, without what it expects: all that an image-blind guesser may know."""

from dataclasses import dataclass

from agrotools.core import ChoiceSetSlot, ExactSlot, FileSlot, OptionsSlot, Slot


@dataclass(frozen=True)
class BlankSlot:
    """Name, type, unit and label set of a slot: exactly what the answer form shows every policy."""

    name: str
    type: str
    unit: str | None
    choices: tuple[str, ...]


def blank(slot: Slot) -> BlankSlot:
    """``slot`` without its gold."""
    choices: tuple[str, ...] = ()
    if (isinstance(slot, ExactSlot) and isinstance(slot.value, str)) or isinstance(slot, FileSlot | ChoiceSetSlot):
        choices = tuple(sorted(slot.choices))
    elif isinstance(slot, OptionsSlot):
        choices = tuple(slot.options)
    kind = "several_options" if isinstance(slot, OptionsSlot) and slot.kind == "multiple" else slot.type
    return BlankSlot(slot.name, kind, getattr(slot, "unit", None), choices)
