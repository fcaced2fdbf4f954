"""Misspelt names for measuring retrieval: one or two slips of the hand, drawn by a seed."""

import random
import string
from collections.abc import Iterator, Sequence

from agrotools.knowledge import Entry
from agrotools.knowledge.words import folded, has_cjk

_LEAST_LETTERS = 5
_LONG = 8
"""Letters from which on a name may carry two slips."""


def slipped(name: str, rng: random.Random, slips: int) -> str:
    """``name`` with that many letters dropped, doubled wrongly, replaced or swapped with a neighbour."""
    letters = list(name)
    for _ in range(slips):
        places = [at for at, letter in enumerate(letters) if letter.isalpha()]
        at = rng.choice(places)
        kind = rng.choice(("drop", "insert", "replace", "swap"))
        if kind == "drop":
            del letters[at]
        elif kind == "insert":
            letters.insert(at, rng.choice(string.ascii_lowercase))
        elif kind == "replace":
            others = [letter for letter in string.ascii_lowercase if letter != letters[at].lower()]
            letters[at] = rng.choice(others)
        elif at + 1 < len(letters):
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return "".join(letters)


def misspelt(entries: Sequence[Entry], seed: int) -> Iterator[tuple[str, str, frozenset[str]]]:
    """(misspelt name, name, ids of all entries of that name) for every name with five letters or more.

    One slip in names under eight letters, one or two in longer ones. Chinese names are left out, and slips that give
    a name of another entry or change nothing are drawn again.
    """
    rng = random.Random(seed)
    owners = names_and_owners(entries)
    for name, ids in owners.items():
        if has_cjk(name) or sum(letter.isalpha() for letter in name) < _LEAST_LETTERS:
            continue
        for _ in range(20):
            wrong = slipped(name, rng, 1 if len(name) < _LONG else rng.choice((1, 2)))
            if folded(wrong) != name and folded(wrong) not in owners and folded(wrong):
                yield wrong, name, ids
                break


def names_and_owners(entries: Sequence[Entry]) -> dict[str, frozenset[str]]:
    """Each name, folded -> the ids of the entries that bear it."""
    owners: dict[str, set[str]] = {}
    for entry in entries:
        for name in entry.names.all():
            if form := folded(name):
                owners.setdefault(form, set()).add(entry.id)
    return {name: frozenset(ids) for name, ids in owners.items()}
