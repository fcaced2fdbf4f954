"""Evidence that a question is about an entry: a score from 0 to 1, and thresholds to accept it.

All constants were chosen on the development questions (``studies/accuracy/questions``), none on the report questions.
"""

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entries import Kind

ACCEPTED = 0.5
"""Lowest score at which an entry is accepted."""
_ACCEPTED_BY_WORDS = (0.5, 0.5, 0.5, 0.5, 0.5, 0.42, 0.36)
"""Lowest accepted score of an entry found by its words, by number of matching words.

The threshold is lower for many words: long descriptions contain many words that no entry has, but questions on another
matter do not share five words with one passage.
"""
NEAR = 0.12
"""Largest difference to the best score of an entry that is still shown."""
RANK_WEIGHT = 6.0
"""Weight of the fused reciprocal ranks (about 0.016 per ranking that an entry leads) in the order of entries."""
SLIP = 0.85
"""Credit of a word that matches after correction."""
OTHER = 0.6
"""Maximum factor on the similarity of a name if the words around it make it the name of another thing."""
OF_GROUP = 0.75
"""Factor on the similarity for an entry on a group, which may include the other thing."""
NAMED_ALIKE = 0.85
"""Minimum similarity at which a name is reported as part of another thing's name."""
MOST_OF_A_CROP = 0.9
"""Maximum score of a crop that is found by its words alone, so that it never precedes a named entry."""
LONGEST_NAME = 4
"""Maximum number of informative words in a question that may consist of a name only."""
_LEAST_NAME = 0.7
"""Minimum similarity at which a name counts as found."""
_NAMED = 0.5
_NAMED_BY_A_WORD = 0.25
"""Shares by which the remaining doubt is reduced once a name of several words, or of one word, is found."""
_BARE_CROP = 0.7
_LOOKS_ORDER = (0.29, 2.22, 3.86, 0.87, 2.64, 3.92, -1.83, 0.12, 0.57, 0.0, -1.29)
"""Weights of :data:`agrotools_tools.lookup.text_index.FEATURES` in the order of entries (conditional logit).

``training/fit_description_search.py`` fits these weights and those below."""
_LOOKS_CHANCE = (-7.3, 0.489, 0.573, 0.292, 2.394, 0.956)
"""Weights in the logistic regression for the chance that the first entry is correct.

They apply to a constant, order, lead over the second entry, and the features share, unit and strange. The constant was
raised by 0.2, so that about 3 % of the questions outside the base are answered.
"""
_BY_COUNT = (0.0, 0.2, 0.45, 0.85, 1.15, 1.3, 1.4)
"""Factor by number of distinct matching words: six words of which half match say more than two that both match."""


def by_name(similarity: float, covered: float, words: int, kind: Kind) -> float:
    """Return the confidence, 0 to 1, that a question means an entry whose name is found in it.

    Args:
        similarity: similarity of the name to words of the question, 0 to 1.
        covered: share of the question's informative words, by weight, that the entry accounts for.
        words: number of words of the name. A name of several words leaves little doubt, whatever else the question
            contains.
        kind: kind of the entry. The bare name of a crop only gives the topic of the question.
    """
    if similarity < _LEAST_NAME:
        return covered * similarity
    if kind == "crop":
        return covered * _BARE_CROP
    return covered + max(0.0, similarity - covered) * (_NAMED if words > 1 else _NAMED_BY_A_WORD)


def by_words(covered: float, matched: int) -> float:
    """Return the confidence, 0 to 1, that a question means an entry that shares words with it, but no name.

    One or two words fit many entries, so several must match.
    """
    return min(1.0, covered * _BY_COUNT[min(matched, len(_BY_COUNT) - 1)])


def accepts(score: float, matched: int, *, sure: bool) -> bool:
    """True if an entry is accepted as the one that a question means. ``sure``: use the fixed threshold."""
    if sure:
        return score >= ACCEPTED
    return score >= _ACCEPTED_BY_WORDS[min(matched, len(_ACCEPTED_BY_WORDS) - 1)]


def by_looks(
    features: NDArray[np.float64], allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the order of entries by appearance, and the chance that each is the one described, both (entries,).

    Args:
        features: (entries, features) of :mod:`agrotools_tools.lookup.text_index`.
        allowed: (entries,), True for entries that may be found.

    The chance of a later entry is a share of the first one's, which decreases with its distance in order.
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
