"""Score of an entry for a question: the evidence as one number from 0 to 1, and the threshold to accept it.

All constants were chosen on the questions for development (``build/accuracy/questions``), none on those for the
report.
"""

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entries import Kind

ACCEPTED = 0.5
"""Lowest score at which an entry is accepted."""
_ACCEPTED_BY_WORDS = (0.5, 0.5, 0.5, 0.5, 0.5, 0.42, 0.36)
"""The same for an entry that is found by its words, by the number of words that fit: who describes at length uses many
words that no entry has, and no question on another matter shares five words with one passage."""
NEAR = 0.12
"""Entries whose score lies further below the best are not shown."""
RANK_WEIGHT = 6.0
"""Weight of the fused reciprocal ranks (about 0.016 per ranking that an entry leads) in the order of entries."""
SLIP = 0.85
"""Credit of a word that is matched by its correction."""
OTHER = 0.6
"""Maximum share that is left of the similarity of a name where the words around it make it another thing's name."""
OF_GROUP = 0.75
"""The same for an entry on a group, of which the other thing may be one."""
NAMED_ALIKE = 0.85
"""Similarity of a name from which on it is told as the name of another thing."""
MOST_OF_A_CROP = 0.9
"""A crop that is found by its words alone never comes before what is named."""
LONGEST_NAME = 4
"""Telling words up to which a question may be nothing but a name."""
_LEAST_NAME = 0.7
"""Similarity from which on a name counts as found."""
_NAMED = 0.5
_NAMED_BY_A_WORD = 0.25
"""Share of the doubt that is gone once a name of several words, or of one, is found."""
_BARE_CROP = 0.7
_LOOKS_ORDER = (0.29, 2.22, 3.86, 0.87, 2.64, 3.92, -1.83, 0.12, 0.57, 0.0, -1.29)
"""Weights of :data:`agrotools.knowledge.text_index.FEATURES` in the order of entries: a conditional logit."""
_LOOKS_CHANCE = (-7.3, 0.489, 0.573, 0.292, 2.394, 0.956)
"""Of constant, order, lead over the next, share, unit and strange, in the chance that the first entry is right: a
logistic regression, its constant raised by 0.2, so that about 3 % of the questions outside the base are answered."""
_BY_COUNT = (0.0, 0.2, 0.45, 0.85, 1.15, 1.3, 1.4)
"""By the number of different words that fit: six words of which half fit say more than two of which both do."""


def by_name(similarity: float, covered: float, words: int, kind: Kind) -> float:
    """Confidence, 0 to 1, that a question means an entry whose name is found in it.

    Args:
        similarity: of the name to words of the question, 0 to 1.
        covered: share of the question's telling words, by weight, that the entry accounts for.
        words: of the name. Several leave little doubt, whatever else the question says.
        kind: the bare name of a crop says only what the question is about.
    """
    if similarity < _LEAST_NAME:
        return covered * similarity
    if kind == "crop":
        return covered * _BARE_CROP
    return covered + max(0.0, similarity - covered) * (_NAMED if words > 1 else _NAMED_BY_A_WORD)


def by_words(covered: float, matched: int) -> float:
    """Confidence, 0 to 1, that a question means an entry that shares words with it, but no name.

    It needs several of them: a word or two fit many entries.
    """
    return min(1.0, covered * _BY_COUNT[min(matched, len(_BY_COUNT) - 1)])


def accepts(score: float, matched: int, *, sure: bool) -> bool:
    """True if an entry is accepted as the one that a question means."""
    if sure:
        return score >= ACCEPTED
    return score >= _ACCEPTED_BY_WORDS[min(matched, len(_ACCEPTED_BY_WORDS) - 1)]


def by_looks(
    features: NDArray[np.float64], allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(entries,) order of the entries by their looks, and the probability that each is the one described.

    Args:
        features: (entries, features) of :mod:`agrotools.knowledge.text_index`.
        allowed: (entries,) entries that may be found.

    An entry behind the first has a part of the first one's chance, the less the further it lies behind.
    """
    possible = np.flatnonzero(allowed & features.any(axis=1))
    order, chances = np.zeros(len(features)), np.zeros(len(features))
    if not len(possible):
        return order, chances
    order[possible] = features[possible] @ np.array(_LOOKS_ORDER)
    ranked = possible[np.argsort(-order[possible], kind="stable")]
    first = ranked[0]
    margin = order[first] - order[ranked[1]] if len(ranked) > 1 else order[first]
    evidence = np.array([1.0, order[first], margin, *features[first, [0, 3, 9]]])
    chance = 1.0 / (1.0 + np.exp(-float(evidence @ np.array(_LOOKS_CHANCE))))
    chances[possible] = chance * (0.5 + 0.5 * np.exp(order[possible] - order[first]))
    return order, chances
