"""Reading labels out of an answer: which it asserts, and, where any name may be given, what else it names."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agrotools.text.labels import LabelMatch, Strength, claims, find_labels
from agrotools.text.listing import beside, further_claims

_MOST = 60
"""Occurrences looked at for what stands beside them."""


class LabelReading(NamedTuple):
    """The labels that a text answers with, all that were found in it, and other names that it offers beside."""

    asserted: tuple[str, ...]
    found: tuple[LabelMatch, ...]
    further: tuple[str, ...] = ()


def read_labels(text: str, labels: Mapping[str, Sequence[str]], *, several: bool, closed: bool) -> LabelReading:
    """The labels that ``text`` gives as its answer.

    ``several``: the answer is a set. ``closed``: the answer is one of ``labels``; where it is not, names that are in no
    list count as candidates when they stand beside the label as it does.
    """
    found = find_labels(text, labels)
    claimed = claims(found, text, several=several)
    asserted = tuple(sorted({match.label for match in claimed}))
    if closed or len(asserted) != 1:
        return LabelReading(asserted, tuple(found))
    names = labels[asserted[0]]
    words = {word for name in names for word in re.findall(r"\w{4,}", name.lower())}

    def same(item: str) -> bool:
        return any(word in item for word in words) or bool(find_labels(item, {"": names}))

    strongest = [match for match in claimed if match.strength is Strength.CLAIMED] or claimed
    further: tuple[str, ...] = ()
    for match in strongest[:_MOST]:
        further = beside(text, match.start, match.end, same).items
        if not further:
            break
    return LabelReading(asserted, tuple(found), further or further_claims(text, same))
