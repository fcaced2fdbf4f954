"""Words next to a name in a question that make it the name of another thing: the fall armyworm is not the armyworm."""

import re
from collections.abc import Sequence

from agrotools.knowledge.entries import KnowledgeEntry
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
