"""Whether something in a text is asserted or denied (English and Chinese)."""

import re
from collections.abc import Sequence

from agrotools.text.normalise import CJK, WORD

_TOKEN = re.compile(rf"{WORD}+(?:'{WORD}+)?|[{CJK}]")
_CLAUSE_END = re.compile(r"[,;!?。，；()\n]|\.(?!\d)")
LOOK_BACK = 160
"""Characters looked back at: far more than any reach in tokens."""

_NEGATION = re.compile(
    rf"(?<!{WORD})(?:not(?! only(?!{WORD}))|no|never|unlike|rather than|instead of|neither|nor|cannot|without|"
    rf"{WORD}+n't)(?!{WORD})|不是|并非|而非|而不是|没有|无(?!人机)"
)
_REACH_END = re.compile(rf"(?<!{WORD})but(?!{WORD})|而是")
_JOIN = re.compile(rf"\s*(?:,|、|或|(?<!{WORD})(?:or|nor)(?!{WORD})|,\s*(?:or|nor)(?!{WORD}))\s*(?:(?:an?|the)\s+)?")

Span = tuple[int, int]


def denied(text: str, start: int, reach: int, masked: Sequence[Span] = ()) -> bool:
    """Whether a negation or contrast word stands in the clause at most ``reach`` tokens before ``start``.

    ``masked`` spans are parts of labels: a "no" inside the label "no weeds" denies nothing.
    """
    clause_start = max(0, start - LOOK_BACK)
    for end in _CLAUSE_END.finditer(text, clause_start, start):
        clause_start = end.end()
    for end in _REACH_END.finditer(text, clause_start, start):
        clause_start = end.end()
    for word in _NEGATION.finditer(text, clause_start, start):
        if any(low <= word.start() and word.end() <= high for low, high in masked):
            continue
        # The word itself counts as one of the tokens in reach.
        between = sum(1 for _ in _TOKEN.finditer(text, word.end(), start))
        if between < reach:
            return True
    return False


def joined(text: str, end: int, start: int) -> bool:
    """Whether only a comma, or, nor, 、 or 或 stands between ``end`` of one thing and ``start`` of the next."""
    return start - end <= 24 and _JOIN.fullmatch(text, end, start) is not None
