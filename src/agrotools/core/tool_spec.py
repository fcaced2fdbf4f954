"""A tool as data: what models, the command line and scorers know of it without running it."""

from typing import Literal

from pydantic import JsonValue

from agrotools.core.noun import Noun

AgreementKind = Literal[
    "file", "choice", "number", "box", "text", "expression", "variables", "series", "chart", "presentation"
]
"""How two values of an argument agree (text/agreement.py).

``variables`` take part in the ``expression`` argument beside them; ``presentation`` (titles, formats,
rounding) is never compared.
"""


class ToolSpec(Noun):
    """Name, JSON Schema of the arguments, defaults, and how each argument agrees with a reference value."""

    name: str
    category: str
    version: str
    description: str
    parameters: dict[str, JsonValue]
    agreement: dict[str, AgreementKind]
    defaults: dict[str, JsonValue]
