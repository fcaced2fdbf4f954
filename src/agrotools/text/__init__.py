"""Text and numbers: normalisation, units, quantities, expressions, the answer form and submitted answers."""

from agrotools.text.answer_form import format_answer
from agrotools.text.units import canonical_unit, convert
