"""Names of fields in one spelling."""

import re
from collections.abc import Mapping
from typing import Any


def snake(name: str) -> str:
    """Return a name in small letters with underscores: ``answerType`` as ``answer_type``."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z0-9])", "_", name)
    return re.sub(r"[^a-z0-9.*]+", "_", parted.lower()).strip("_")


def with_plain_keys(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with its keys in small letters with underscores where they have capitals: ``toolName``."""
    return {
        snake(key) if isinstance(key, str) and _CAPITAL.search(key) else key: value
        for key, value in given.items()
    }


_CAPITAL = re.compile(r"[A-Z]")
