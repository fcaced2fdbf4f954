"""Words beside a found name that make it the name of another thing: the fall armyworm is not the armyworm."""

import re
from collections.abc import Sequence

from agrotools.knowledge.entries import Entry
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
