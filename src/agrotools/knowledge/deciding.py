"""Whether an entry is what was asked for: how the evidence becomes one number from 0 to 1.

All constants were chosen on the questions for development (``agrotools/accuracy/questions``), none on those for the
report.
"""

from agrotools.knowledge.entry import Kind

ACCEPTED = 0.5
"""A score from which on an entry is taken to be what was asked for."""
_ACCEPTED_BY_WORDS = (0.5, 0.5, 0.5, 0.5, 0.5, 0.42, 0.36)
"""The same for an entry that is found by its words, by the number of words that fit: who describes at length uses many
words that no entry has, and no question on another matter shares five words with one passage."""
NEAR = 0.12
"""Entries whose score lies further below the best are not shown."""
RANK_WEIGHT = 6.0
"""How much the fused reciprocal ranks (about 0.016 per ranking that an entry leads) count in the order of entries."""
SLIP = 0.85
"""What a word counts that is matched by its correction."""
_LEAST_NAME = 0.7
"""Similarity from which on a name counts as found."""
_NAMED = 0.5
_NAMED_BY_A_WORD = 0.25
"""Which share of the doubt is gone once a name of several words, or of one, is found."""
_BARE_CROP = 0.7
_BY_COUNT = (0.0, 0.2, 0.45, 0.85, 1.15, 1.3, 1.4)
"""By the number of different words that fit: six words of which half fit say more than two of which both do."""


def by_name(similarity: float, covered: float, words: int, kind: Kind) -> float:
    """How surely an entry is meant whose name is found in a question, 0 to 1.

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
    """How surely an entry is meant that shares words with a question, but no name, 0 to 1.

    It needs several of them: a word or two fit many entries.
    """
    return min(1.0, covered * _BY_COUNT[min(matched, len(_BY_COUNT) - 1)])


def accepts(score: float, matched: int, *, named: bool) -> bool:
    """Whether an entry is taken to be what was asked for."""
    if named:
        return score >= ACCEPTED
    return score >= _ACCEPTED_BY_WORDS[min(matched, len(_ACCEPTED_BY_WORDS) - 1)]
