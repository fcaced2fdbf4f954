"""Tool results that show that the files do not allow an answer."""

from agrotools.core import AbstainSlot, UnresolvedRef
from agrotools.core.record import Results
from agrotools.text.expressions import ExpressionError, evaluate_from


def shows_no_answer(slot: AbstainSlot, results: Results) -> bool:
    """True if ``results`` show that there is no answer.

    That is if ``from`` of the slot is true or, without one, if no ``from`` of the slots that are asked for has a value.
    """
    if slot.from_ is not None:
        return _value(slot.from_, results) is True
    return all(each.from_ is None or _value(each.from_, results) is None for each in slot.asks)


def _value(expression: str, results: Results) -> object:
    try:
        return evaluate_from(expression, results)
    except (UnresolvedRef, ExpressionError):
        return None
