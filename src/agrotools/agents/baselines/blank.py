"""What a slot asks, without what it expects: all that an image-blind guesser may know."""

from dataclasses import dataclass

from agrotools.core import ChoiceSetSlot, ExactSlot, FileSlot, Slot


@dataclass(frozen=True)
class BlankSlot:
    """Name, type, unit and label set of a slot: exactly what the answer form shows every policy."""

    name: str
    type: str
    unit: str | None
    choices: tuple[str, ...]
    free_text: bool = False


def blank(slot: Slot) -> BlankSlot:
    """``slot`` without its gold."""
    choices: tuple[str, ...] = ()
    if (isinstance(slot, ExactSlot) and isinstance(slot.value, str)) or isinstance(slot, FileSlot | ChoiceSetSlot):
        choices = tuple(sorted(slot.choices))
    else:
        choices = slot.letters
    kind = "several_options" if slot.takes_several else slot.type
    return BlankSlot(slot.name, kind, getattr(slot, "unit", None), choices, slot.free_text)
