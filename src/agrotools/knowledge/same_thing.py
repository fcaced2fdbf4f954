"""Values that say the same thing: a label under any of its names, a number or a yes written as text.

The names of a label are those of the slot and those of one entry of the knowledge base as it is shipped, so that a
score is the same on every machine.
"""

import math
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agrotools.core import ChoiceSetSlot, ExactSlot
from agrotools.text.agreement_values import as_number, category, same_json

Aliases = Mapping[str, Sequence[str]]
_YES, _NO = ("yes", "true"), ("no", "false")


def same_value(
    seen: JsonValue, true: JsonValue, aliases: Aliases | None = None, crop: str | None = None
) -> bool:
    """Return True unless a value that a tool returned contradicts the true one.

    Of an object, only the fields that the true one has are compared.

    Args:
        aliases: other names of labels.
        crop: crop of labels that do not name theirs.
    """
    if isinstance(true, dict):
        return isinstance(seen, dict) and all(
            name in seen and same_value(seen[name], value, aliases, crop)
            for name, value in true.items()
        )
    if isinstance(true, list):
        return (
            isinstance(seen, list)
            and len(seen) == len(true)
            and all(same_value(*pair, aliases, crop) for pair in zip(seen, true, strict=True))
        )
    number, other = plain_number(seen), plain_number(true)
    if number is not None and other is not None:
        return math.isclose(number, other, rel_tol=1e-9, abs_tol=1e-12)
    if plain_yes(seen) is not None and plain_yes(true) is not None:
        return plain_yes(seen) is plain_yes(true)
    if isinstance(seen, str) and isinstance(true, str):
        return _same_label(seen, true, aliases or {}, crop)
    return same_json(seen, true)


def plain_number(value: JsonValue) -> float | None:
    """Return a number, also one written as text without a unit; None for anything else."""
    number = category(value) if isinstance(value, str) else as_number(value)
    return None if number is None or isinstance(number, str) else number


def plain_yes(value: JsonValue) -> bool | None:
    """Return a yes or no, also one written as text, 1 or 0; None for anything else."""
    if isinstance(value, str):
        word = category(value)
        return True if word in _YES else False if word in _NO else None
    return bool(value) if isinstance(value, bool | int) and value in (0, 1) else None


def as_listed(value: JsonValue, slot: ExactSlot | ChoiceSetSlot) -> JsonValue:
    """Return the label of a slot that a value names, or the value if it names none.

    A name that the slot itself has decides; otherwise any name of the same thing does, the right label first.
    """
    right = (slot.value,) if isinstance(slot, ExactSlot) else slot.value
    labels: list[JsonValue] = [*dict.fromkeys((*right, *slot.choices))]
    for label in labels:
        if any(
            category(value) == category(name) for name in (label, *slot.aliases.get(str(label), ()))
        ):
            return label
    return next((label for label in labels if same_value(value, label, slot.aliases)), value)


def _same_label(first: str, second: str, aliases: Aliases, crop: str | None) -> bool:
    if category(first) == category(second):
        return True
    from agrotools.knowledge.kb_names import shipped_names

    groups = [(label, *names) for label, names in aliases.items()]
    known = [
        {
            name,
            *(
                other
                for group in groups
                if category(name) in map(category, group)
                for other in group
            ),
        }
        for name in (first, second)
    ]
    return any(
        shipped_names().mean_same(one, other, crop) for one in known[0] for other in known[1]
    )
