"""A tool as data: what models, the command line and scorers know of it without running it."""

from typing import Literal

from pydantic import JsonValue

from agrotools.core.noun import Noun

AgreementKind = Literal["file", "choice", "number", "box", "text", "expression", "variables", "series", "chart"]
"""How two values of an argument agree (text/agreement.py).

``variables`` has no rule of its own: its values take part in the tool's ``expression`` argument.
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
