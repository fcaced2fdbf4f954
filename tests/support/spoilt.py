"""Prediction files and data sets with something wrong in them."""

import random
from typing import Any


def spoilt(value: Any, rng: random.Random, other: Any) -> Any:
    """A copy of ``value`` with ``other`` in one place, or without what stood there."""
    if isinstance(value, dict | list) and value and rng.random() < 0.93:
        copy: Any = value.copy()
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        if rng.random() < 0.1:
            del copy[key]
        elif isinstance(copy, dict) and rng.random() < 0.05:
            copy["\ud800" if rng.random() < 0.5 else ""] = other
        else:
            copy[key] = spoilt(value[key], rng, other)
        return copy
    return other
