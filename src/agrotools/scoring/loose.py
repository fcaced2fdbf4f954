"""Looking into JSON of unknown form. The checks do not narrow types: what is found stays ``Any``."""

from typing import Any


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def zeroes(*names: str) -> dict[str, int]:
    """A count of 0 under each name."""
    return dict.fromkeys(names, 0)
