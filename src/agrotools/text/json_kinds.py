"""Kinds of JSON values of unknown content, told by name."""

from collections.abc import Mapping
from typing import Any, cast


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    """Return True for a number; Python takes ``true`` and ``false`` for numbers, too."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def fields_of(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
