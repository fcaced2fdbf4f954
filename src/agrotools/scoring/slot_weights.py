"""The weight of a slot in the score of its sample, and means by weights: the one place that says what a slot counts.

Scores, floors, lost points, unread values and the certificate of ``Env`` call :func:`weighted_mean`, so that they agree
on any weights.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from agrotools.core import Slot

_Number = TypeVar("_Number", float, Fraction)


def slot_weight(slot: Slot) -> float:
    """Return the weight of a slot in the means over the slots of a sample, such as the Final Answer Score."""
    return slot.weight


def weights_by_name(slots: Sequence[Slot]) -> Mapping[str, float]:
    """Return the weights of the slots of a sample by name."""
    return {slot.name: slot_weight(slot) for slot in slots}


def weighted_mean(
    slots: Sequence[Slot], values: Sequence[_Number], number: Callable[[float], _Number] = float
) -> _Number:
    """Return the mean of the values of ``slots`` by their weights.

    ``number``: type of the values. Fractions are for shares that must add up to the digit.
    """
    weights = [number(slot_weight(slot)) for slot in slots]
    weighted = [weight * value for weight, value in zip(weights, values, strict=True)]
    return sum(weighted, number(0)) / sum(weights, number(0))
