"""Text and numbers: normalisation, units, extraction of quantities and labels, expressions, the answer form."""

from agrotools.text.answer_form import answer_form, format_answer
from agrotools.text.labels import find_labels
from agrotools.text.normalise import normalise
from agrotools.text.numbers import Quantity, find_quantities
from agrotools.text.units import UNITS, canonical_unit, convert

__all__ = [
    "UNITS",
    "Quantity",
    "answer_form",
    "canonical_unit",
    "convert",
    "find_labels",
    "find_quantities",
    "format_answer",
    "normalise",
]
