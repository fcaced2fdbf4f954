"""Things that people count in pictures, with their names in other languages, as ``countables.toml`` lists them."""

import tomllib
from functools import cache
from importlib.resources import files

from agrotools.core import FrozenModel
from agrotools.knowledge.words import folded

_PLURAL_ENDINGS = ("", "s", "es")
"""Endings of regular plurals; the others are listed."""
COUNTERS = (
    *("pc", "pcs", "piece", "pieces", "stück", "stk", "un", "und", "ud", "uds"),
    *("unidad", "unidade", "unidades", "pièces"),
    *("个", "颗", "株", "棵", "只", "头", "粒", "朵", "片", "穗"),
)
"""Words behind a number that only say that things were counted, in lower case."""


class Countable(FrozenModel):
    """An object to count: its plural in English and Chinese, and the header words that identify it."""

    objects: str
    objects_zh: str
    words: tuple[str, ...]
    plurals: tuple[str, ...] = ()
    is_fruit: bool = False


@cache
def countables() -> dict[str, Countable]:
    """Return the objects that can be counted, by the counting tool's name for them."""
    text = files("agrotools.knowledge").joinpath("countables.toml").read_text("utf-8")
    return {name: Countable.model_validate(body) for name, body in tomllib.loads(text).items()}


def countable_named(noun: str) -> Countable | None:
    """Return the object that a noun in any listed language names, in singular or plural; None for another noun."""
    return _by_noun().get(folded(noun))


def is_counter(noun: str) -> bool:
    """Return True for a word that says of any number that things were counted: ``pcs``."""
    return folded(noun) in _folded_counters()


@cache
def _folded_counters() -> frozenset[str]:
    return frozenset(map(folded, COUNTERS))


@cache
def _by_noun() -> dict[str, Countable]:
    found: dict[str, Countable] = {}
    for thing in countables().values():
        regular = [word + ending for word in thing.words for ending in _PLURAL_ENDINGS]
        for noun in (*regular, *thing.plurals, thing.objects):
            found.setdefault(folded(noun), thing)
    return found
