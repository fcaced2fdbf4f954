"""Text and numbers: normalisation, units, quantities, expressions, the answer form and submitted answers."""

from agrotools.text.answer_form import answer_form, format_answer
from agrotools.text.normalise import normalise
from agrotools.text.quantities import Quantity, read_quantity
from agrotools.text.submission import read_submission
from agrotools.text.units import UNITS, canonical_unit, convert

__all__ = [
    "UNITS",
    "Quantity",
    "answer_form",
    "canonical_unit",
    "convert",
    "format_answer",
    "normalise",
    "read_quantity",
    "read_submission",
]
