"""Whether a text gives an answer away."""

import math
import re

from agrotools.core import BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, ToleranceSlot
from agrotools.text.normalise import WORD

_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w.])|(?<![\w.])\d+(?:\.\d+)?(?!\.?\d)")


def told(slot: object, text: str) -> str | None:
    """The part of ``text`` that gives the slot's value away, or None.

    A label is no leak where the text names another choice as well; a number only with two significant digits or more.
    """
    if isinstance(slot, ExactSlot) and isinstance(slot.value, str):
        said = next((label for label in labels_of(slot) if has_word(text, label)), None)
        return None if said is None or any(has_word(text, other) for other in slot.distractors) else said
    if isinstance(slot, ChoiceSetSlot):
        named = [choice for choice in slot.choices if has_word(text, choice)]
        return ", ".join(named) if named and set(named) == set(slot.value) != set(slot.choices) else None
    if isinstance(slot, FileSlot):
        named = [choice for choice in slot.choices if choice in text]
        return slot.value if named == [slot.value] and len(slot.choices) > 1 else None
    if isinstance(slot, BooleanSlot):
        return None
    value = slot.value if isinstance(slot, (ToleranceSlot, ExactSlot)) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    for match in _NUMBER.finditer(text):
        if _is_value(match[0].replace(",", ""), float(value)):
            return match[0]
    return None


def labels_of(slot: ExactSlot | ChoiceSetSlot) -> tuple[str, ...]:
    """Every name of the right answer; none where it is a number."""
    if isinstance(slot, ChoiceSetSlot):
        return slot.value
    return slot.names if isinstance(slot.value, str) else ()


def has_word(text: str, words: str) -> bool:
    """Whether ``text`` holds ``words`` and not as part of a longer word. Chinese has no spaces: there, anywhere."""
    return (
        bool(words) and re.search(rf"(?<!{WORD}){re.escape(words.casefold())}(?!{WORD})", text.casefold()) is not None
    )


def spaced(text: str) -> str:
    """``image_1.jpg`` as ``image 1 jpg``: lower case, with single spaces for all that is no letter or digit."""
    return re.sub(r"[\W_]+", " ", text).strip().casefold()


def _is_value(digits: str, value: float) -> bool:
    """Whether ``digits`` is ``value`` rounded to as many significant digits, at least two."""
    significant = len(digits.replace(".", "").lstrip("0"))
    if significant < 2 or value == 0 or not math.isfinite(value):
        return False
    return math.isclose(float(digits), float(f"{abs(value):.{significant - 1}e}"), rel_tol=1e-9)
