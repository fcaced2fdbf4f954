"""Evidence that a question is about an entry: a score from 0 to 1, and thresholds to accept it.

Words next to a name in a question may make it the name of another thing: the fall armyworm is not the armyworm. All
constants were chosen on the development questions (``studies/accuracy/questions``), none on the report questions.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entries import Kind, KnowledgeEntry
from agrotools.knowledge.words import (
    ASKING,
    STOPWORDS,
    Lexicon,
    edit_distance,
    folded,
    has_cjk,
    hosts_named,
    hosts_of,
    stem,
    word_list,
)

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
"""Weights of :data:`agrotools.knowledge.text_index.FEATURES` in the order of entries (conditional logit)."""
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
        features: (entries, features) of :mod:`agrotools.knowledge.text_index`.
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


_QUALIFYING = frozenset(map(stem, word_list("qualifying")))
"""Words before a name that give amount, age, certainty or treatment, not the species."""
_ENDING = word_list("ending")
"""Words that belong to the sentence, so that a name can only begin after them."""
_DIRECTIONS = frozenset("northern southern eastern western".split())
_RANKS = frozenset("pv subsp ssp var f sp race pathovar".split())
_LATIN_ENDING = re.compile("(?:a|ae|i|is|us|um|ns|des|or|ex|ix)$")
_LEAST_ALIKE = 4
"""Minimum length of words that may be misspellings of each other, letters."""
_LEAST_APART = 3
"""Minimum edit distance of distinct words."""


def own_words(entry: KnowledgeEntry) -> frozenset[str]:
    """Return stems of the words in the names and crops of an entry, and of the hosts of its crops."""
    hosts = (host for crop in entry.crops for host in hosts_of(crop))
    return frozenset(
        stem(word)
        for text in (*entry.names.all(), *entry.crops, *hosts)
        for word in folded(text).split()
    )


def is_group(entry: KnowledgeEntry) -> bool:
    """True if an entry covers many species, whatever precedes their common name: aphids, flea beetles."""
    return entry.kind in ("pest", "weed") and (
        entry.names.sci is None or entry.names.sci.endswith(("spp.", "sp."))
    )


def is_slip_for(word: str, other: str) -> bool:
    """True if a word may be a misspelling of another: one slip, or two in words of seven letters or more."""
    if word == other or stem(word) == stem(other):
        return True
    shorter = min(len(word), len(other))
    return shorter >= _LEAST_ALIKE and edit_distance(word, other) <= (2 if shorter >= 7 else 1)


def foreign_words(
    words: Sequence[str],
    start: int,
    end: int,
    entry_words: frozenset[str],
    lexicon: Lexicon,
    *,
    any_host: bool,
) -> list[str]:
    """Return words next to a name in a question that make it the name of another thing.

    These are words right before the name that are not the entry's, and an unknown or Latin word right after it.

    Args:
        words: words of the question, folded; the name is ``words[start:end]``.
        entry_words: :func:`own_words` of the entry.
        lexicon: correctly spelt words.
        any_host: ignore hosts that the entry does not name, because entries seldom list all their crops.
    """
    hosts = hosts_named(" ".join(words))[1] if any_host else frozenset[int]()
    foreign: list[str] = []
    for at in range(start - 1, -1, -1):
        word = words[at]
        if _is_of_the_sentence(word):
            break
        if stem(word) in _QUALIFYING or at in hosts:
            continue
        if not is_known(word, entry_words, lexicon):
            foreign.append(word)
    behind = end
    while behind < len(words) and words[behind] in _RANKS:
        behind += 1
    if behind < len(words):
        word = words[behind]
        other = behind > end or (
            _LATIN_ENDING.search(word) is not None and is_strange(word, lexicon)
        )
        if other and word.isalpha() and not is_known(word, entry_words, lexicon):
            foreign.append(word)
    return foreign


def _is_of_the_sentence(word: str) -> bool:
    is_common = word in STOPWORDS or word in ASKING or word in _ENDING
    return is_common or has_cjk(word) or not word.isalpha() or len(word) < 2


def words_before(words: Sequence[str], start: int) -> int:
    """Return the number of words right before ``words[start]`` that specify the kind: black bean aphid."""
    at = start
    while at > 0 and not _is_of_the_sentence(words[at - 1]):
        at -= 1
    content_words = [word for word in words[at:start] if stem(word) not in _QUALIFYING]
    return start - at if content_words else 0


def words_behind(word: str, entry_words: frozenset[str], lexicon: Lexicon) -> list[str]:
    """Return the word after a partial name if it completes another name: southern corn rootworm."""
    qualifies = (
        _is_of_the_sentence(word)
        or stem(word) in _QUALIFYING
        or is_known(word, entry_words, lexicon)
    )
    return [] if qualifies else [word]


def is_known(word: str, entry_words: frozenset[str], lexicon: Lexicon) -> bool:
    """True if a word, correctly spelt or not, is one of an entry's own words."""
    if stem(word) in entry_words:
        return True
    if word in lexicon or word in _DIRECTIONS:
        return False
    return any(
        is_slip_for(word, known) for known in entry_words if abs(len(known) - len(word)) <= 2
    )


def is_strange(word: str, lexicon: Lexicon) -> bool:
    """True if no entry has the word or a word that it may be a slip for; often the species part of a Latin name."""
    return (
        len(word) > _LEAST_ALIKE
        and word.isalpha()
        and word not in lexicon
        and not lexicon.corrections(word)
    )


def is_other_name(window: Sequence[str], name: Sequence[str]) -> bool:
    """True if a name differs from words of a question by a whole word, not by slips: hornworm is not cutworm.

    Words may be missing, joined or split; but if both sides have words without a counterpart, the names are different.
    """
    rest = [word for word in window if not any(is_slip_for(word, other) for other in name)]
    missing = [other for other in name if not any(is_slip_for(word, other) for word in window)]
    if not rest or not missing:
        return False
    joined, other = "".join(rest), "".join(missing)
    return edit_distance(joined, other) >= max(_LEAST_APART, 0.35 * max(len(joined), len(other)))
