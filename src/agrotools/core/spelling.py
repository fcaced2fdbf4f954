"""Hints for misspelt names."""

from collections.abc import Collection
from difflib import get_close_matches


def names_hint(name: str, known: Collection[str], names: str) -> str:
    """Return the hint for an unknown name: the nearest known one, if one is near, and all names.

    ``names``: all names, as the user reads them.

    >>> names_hint("oracel", ["oracle", "guess"], "known: oracle, guess")
    'did you mean oracle? known: oracle, guess'
    """
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}? {names}" if near else names
