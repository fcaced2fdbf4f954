"""The options of a question in another order: letters stay where they are, texts move, the answer follows."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agrotools.benchmarks.agrieval.settings import Order

LATER_SHARE = 0.585
"""Share of right options in the later half under the order ``later``: that of AgriEval's own test (section 4.3)."""


class Ordered(NamedTuple):
    """Options in an order, the letters of the right ones, and from which place (from 0) each text came."""

    options: dict[str, str]
    answer: tuple[str, ...]
    origin: tuple[int, ...]
    rotation: int | None = None


def orders_of(options: Mapping[str, str], answer: Sequence[str], order: Order, seed: str) -> Iterator[Ordered]:
    """The question's options under ``order``: once, or once for each rotation.

    ``shuffled`` is a permutation, ``later`` one whose right options stand in the later half of the places with
    probability :data:`LATER_SHARE`; both are drawn from ``seed``.
    """
    places = list(range(len(options)))
    if order == "rotated":
        for turn in places:
            yield _ordered(options, answer, places[turn:] + places[:turn])._replace(rotation=turn)
        return
    if order == "given":
        yield Ordered(dict(options), tuple(answer), tuple(places))
        return
    rng = random.Random(seed)
    if order == "shuffled":
        rng.shuffle(places)
    else:
        places = _later(options, answer, rng)
    yield _ordered(options, answer, places)


def _later(options: Mapping[str, str], answer: Sequence[str], rng: random.Random) -> list[int]:
    """Places of the texts, right ones drawn into the later or the earlier half one by one while there is room."""
    letters = list(options)
    right = [place for place, letter in enumerate(letters) if letter in answer]
    wrong = [place for place, letter in enumerate(letters) if letter not in answer]
    rng.shuffle(right)
    rng.shuffle(wrong)
    middle = (len(letters) + 1) // 2
    early, late = list(range(middle)), list(range(middle, len(letters)))
    rng.shuffle(early)
    rng.shuffle(late)
    result = [-1] * len(letters)
    for origin in right:
        first, second = (late, early) if rng.random() < LATER_SHARE else (early, late)
        result[(first or second).pop()] = origin
    for place in sorted(early + late):
        result[place] = wrong.pop()
    return result


def _ordered(options: Mapping[str, str], answer: Sequence[str], origin: Sequence[int]) -> Ordered:
    letters, texts = list(options), list(options.values())
    moved = {letter: texts[place] for letter, place in zip(letters, origin, strict=True)}
    right = tuple(letter for letter, place in zip(letters, origin, strict=True) if letters[place] in answer)
    return Ordered(moved, right, tuple(origin))
