"""Result of a tool, and its plain JSON form."""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from agrotools.core import Artifact

ARTIFACT_KEY = "$artifact"
"""In an encoded result, ``{"$artifact": n}`` stands where the name of the n-th artifact will be written."""


class ToolResult(BaseModel):
    """Base of all results. Fields carry their unit in the name; a field of type ``Artifact`` is a file that was made.

    A line of text below a field is its description. ``notes`` say what the numbers rest on (method, scale used);
    ``flags`` are short identifiers that say where they may be wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class ResultPart(BaseModel):
    """Base of the records inside a result."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)


def encode_result(
    result: ToolResult, significant_digits: int | None = 6
) -> tuple[dict[str, JsonValue], tuple[Artifact, ...]]:
    """The result as JSON with place holders for its artifacts, and the artifacts, numbered in order of appearance.

    Floats are rounded to ``significant_digits`` (None: as they are); NaN and infinities become null, since JSON has
    neither; integers beyond 64 bits become floats. Notes and flags come last.
    """
    artifacts: list[Artifact] = []

    def plain(value: Any) -> JsonValue:
        if isinstance(value, Artifact):
            if value not in artifacts:
                artifacts.append(value)
            return {ARTIFACT_KEY: artifacts.index(value)}
        if isinstance(value, BaseModel):
            names = {name: field.alias or name for name, field in type(value).model_fields.items()}
            return {alias: plain(getattr(value, name)) for name, alias in names.items()}
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, Enum):
            return plain(value.value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return round_significant(float(value), significant_digits)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return round_significant(value, significant_digits)
        if hasattr(value, "tolist"):  # numpy scalars and arrays, without importing numpy
            return plain(value.tolist())
        if isinstance(value, (list, tuple, set, frozenset)):
            return [plain(item) for item in value]
        raise TypeError(f"a result cannot hold a {type(value).__name__}")

    encoded = cast(dict[str, JsonValue], plain(result))
    for name in ("notes", "flags"):
        encoded[name] = encoded.pop(name)
    return encoded, tuple(artifacts)


def round_significant(value: float, significant_digits: int | None) -> float | None:
    """``value`` to that many significant digits; None where it is not finite."""
    if not math.isfinite(value):
        return None
    return value if significant_digits is None else float(f"{value:.{significant_digits}g}")


def with_artifact_names(value: JsonValue, names: list[str]) -> JsonValue:
    """An encoded result with the names of its artifacts written in place of the numbers."""
    if isinstance(value, dict):
        if value.keys() == {ARTIFACT_KEY}:
            return names[cast(int, value[ARTIFACT_KEY])]
        return {key: with_artifact_names(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [with_artifact_names(item, names) for item in value]
    return value
