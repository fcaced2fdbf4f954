"""How messages about data sets list what is missing, and why items were dropped."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def first_few(names: Sequence[str | Path], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(str, names[:most]))}{more}"


def reasons(dropped: Counter[str]) -> str:
    """``7 empty, 2 unreadable``, the most frequent first; empty where nothing was dropped."""
    return ", ".join(f"{count} {reason}" for reason, count in dropped.most_common())
