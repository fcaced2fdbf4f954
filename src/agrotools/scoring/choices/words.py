"""The words of ``words.toml`` as patterns. Text is prepared (prepare.py) and, for these patterns, lower-cased.

A pattern begins with plain characters only, so that ``re`` skips over text in which no word can begin; that is what
keeps reading fast.
"""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

END = r"(?=[\s,.。;!?:)\]}】」』\"'、]|\Z)"
"""Where a short word ends a clause: 对 in 对。 but not in 对于."""


@cache
def words() -> dict[str, tuple[str, ...]]:
    """Role to words, as they stand in ``words.toml``."""
    table = tomllib.loads(files("agrotools.scoring.choices").joinpath("words.toml").read_text("utf-8"))
    return {role: tuple(listed) for role, listed in table.items()}


def any_of(*roles: str) -> str:
    """A pattern for any word of these roles, the longest first. English words stand alone."""
    by_first: dict[str, list[str]] = {}
    for word in sorted({word for role in roles for word in words()[role]}, key=lambda word: (-len(word), word)):
        by_first.setdefault(word[0], []).append(word)
    return "(?:" + "|".join(_beginning(first, listed) for first, listed in by_first.items()) + ")"


def _beginning(first: str, listed: list[str]) -> str:
    alone = f"(?<![a-z]{first})" if "a" <= first <= "z" else ""
    return f"{re.escape(first)}{alone}(?:{'|'.join(_rest(word) for word in listed)})"


def _rest(word: str) -> str:
    """A word without its first character; between English words there may be several spaces."""
    return re.escape(word[1:]).replace(r"\ ", r"\s{1,4}") + ("(?![a-z])" if "a" <= word[-1] <= "z" else "")


class Lexicon(NamedTuple):
    """Words of several roles; one of two roles counts for the role named first."""

    pattern: re.Pattern[str]
    roles: dict[str, str]

    def role(self, match: re.Match[str]) -> str:
        return self.roles[" ".join(match[0].split())]


@cache
def lexicon(*roles: str) -> Lexicon:
    return Lexicon(re.compile(any_of(*roles)), {word: role for role in reversed(roles) for word in words()[role]})


@cache
def pattern_of(*roles: str) -> re.Pattern[str]:
    return re.compile(any_of(*roles))
