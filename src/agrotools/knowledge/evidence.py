"""Evidence that a question is about an entry: one number from 0 to 1, and the threshold to accept it.

Words beside a name in a question may make it the name of another thing: the fall armyworm is not the armyworm. All
constants were chosen on the questions for development (``build/accuracy/questions``), none on those for the report.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entries import Entry, Kind
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


_QUALIFYING = frozenset(map(stem, word_list("qualifying")))
"""Words before a name that give amount, age, certainty or treatment, not the species."""
_ENDING = word_list("ending")
"""Words behind which a name begins: they belong to the sentence."""
_DIRECTIONS = frozenset("northern southern eastern western".split())
_RANKS = frozenset("pv subsp ssp var f sp race pathovar".split())
_LATIN_ENDING = re.compile("(?:a|ae|i|is|us|um|ns|des|or|ex|ix)$")
_LEAST_ALIKE = 4
"""Letters from which on a word may be a slip for another."""
_LEAST_APART = 3
"""Slips from which on words are taken for two words."""


def own_words(entry: Entry) -> frozenset[str]:
    """Stems of the words in the names and crops of an entry, and the hosts that its crops stand for."""
    hosts = (host for crop in entry.crops for host in hosts_of(crop))
    return frozenset(stem(word) for text in (*entry.names.all(), *entry.crops, *hosts) for word in folded(text).split())


def is_group(entry: Entry) -> bool:
    """True if an entry is about many species, whatever goes before their common name: aphids, flea beetles."""
    return entry.kind in ("pest", "weed") and (entry.names.sci is None or entry.names.sci.endswith(("spp.", "sp.")))


def is_slip_for(word: str, other: str) -> bool:
    """True if a word may be a wrong spelling of another: one slip, two in eight letters or more."""
    if word == other or stem(word) == stem(other):
        return True
    shorter = min(len(word), len(other))
    return shorter >= _LEAST_ALIKE and edit_distance(word, other) <= (2 if shorter >= 7 else 1)


def foreign_words(
    words: Sequence[str], start: int, end: int, entry_words: frozenset[str], lexicon: Lexicon, *, any_host: bool
) -> list[str]:
    """The words right before a name in a question that are not the entry's, and the word of no language behind it.

    Args:
        words: of the question, folded; the name is ``words[start:end]``.
        entry_words: :func:`own_words` of the entry.
        lexicon: words that are no slips for others.
        any_host: whether a host that the entry does not name is passed over: its crops are seldom all told.
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
        other = behind > end or (_LATIN_ENDING.search(word) is not None and is_strange(word, lexicon))
        if other and word.isalpha() and not is_known(word, entry_words, lexicon):
            foreign.append(word)
    return foreign


def _is_of_the_sentence(word: str) -> bool:
    is_common = word in STOPWORDS or word in ASKING or word in _ENDING
    return is_common or has_cjk(word) or not word.isalpha() or len(word) < 2


def words_before(words: Sequence[str], start: int) -> int:
    """Number of words right before ``words[start]`` that name the kind: black bean aphid."""
    at = start
    while at > 0 and not _is_of_the_sentence(words[at - 1]):
        at -= 1
    content_words = [word for word in words[at:start] if stem(word) not in _QUALIFYING]
    return start - at if content_words else 0


def words_behind(word: str, entry_words: frozenset[str], lexicon: Lexicon) -> list[str]:
    """The word behind a part of a name, where it stands for the missing part of another: southern corn rootworm."""
    qualifies = _is_of_the_sentence(word) or stem(word) in _QUALIFYING or is_known(word, entry_words, lexicon)
    return [] if qualifies else [word]


def is_known(word: str, entry_words: frozenset[str], lexicon: Lexicon) -> bool:
    """True if a word, correctly spelt or not, is among an entry's own."""
    if stem(word) in entry_words:
        return True
    if word in lexicon or word in _DIRECTIONS:
        return False
    return any(is_slip_for(word, known) for known in entry_words if abs(len(known) - len(word)) <= 2)


def is_strange(word: str, lexicon: Lexicon) -> bool:
    """True if no entry has a word, nor any that it may be a slip for: the second part of a scientific name, often."""
    return len(word) > _LEAST_ALIKE and word.isalpha() and word not in lexicon and not lexicon.corrections(word)


def is_other_name(window: Sequence[str], name: Sequence[str]) -> bool:
    """True if a name differs from words of a question by a whole word, not by slips: hornworm is not cutworm.

    Words may be missing, written together or apart; but where both sides have words that nothing on the other side
    is like, these are two names.
    """
    rest = [word for word in window if not any(is_slip_for(word, other) for other in name)]
    missing = [other for other in name if not any(is_slip_for(word, other) for word in window)]
    if not rest or not missing:
        return False
    joined, other = "".join(rest), "".join(missing)
    return edit_distance(joined, other) >= max(_LEAST_APART, 0.35 * max(len(joined), len(other)))
