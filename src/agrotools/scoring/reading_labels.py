"""Reading labels out of an answer: which it asserts, and, where any name may be given, what else it names."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from agrotools.core import Slot
from agrotools.scoring.reading_opposites import sense_of, senses
from agrotools.scoring.reading_qualifiers import elsewhere, spoken, subject
from agrotools.text.labels import LabelMatch, claims, find_labels
from agrotools.text.listing import beside, further_claims

_UNAFFECTED = re.compile(
    r"[^.;:,\n]{0,40}\b(?:is|are|remains?|looks?|appears?) (?:healthy|unaffected|intact|undamaged|normal|free|clean)\b|"
    r"[^.;:,\n]{0,40}\b(?:might|may|could) be(?=[.;,\n]|$)"
)
_OR = re.compile(r",? (?:or|and/or) (?:the |an? )?|或者?")
_MOST = 60
"""Occurrences looked at for what stands beside them."""


class LabelReading(NamedTuple):
    """The labels that a text answers with, all that were found in it, and other names that it offers beside."""

    asserted: tuple[str, ...]
    found: tuple[LabelMatch, ...]
    further: tuple[str, ...] = ()


def read_labels(
    text: str, labels: Mapping[str, Sequence[str]], *, several: bool, closed: bool, slot: Slot | None = None
) -> LabelReading:
    """The labels that ``text`` gives as its answer.

    ``several``: the answer is a set. ``closed``: the answer is one of ``labels``; where it is not, names that are in no
    list count as candidates when they stand beside the label as it does.
    """
    found = find_labels(text, labels)
    of = subject(slot) if slot is not None else None
    said = senses(slot) if slot is not None else ()
    claimed = claims(
        found,
        text,
        several=several,
        fits=lambda part: 0 if of is None or not closed else -1 if elsewhere(part, of) else spoken(part, of.words),
        sense=lambda part: sense_of(part, said),
    )
    if several:
        claimed = [match for match in claimed if not _UNAFFECTED.match(text, match.end)]
        if any(_OR.fullmatch(text, one.end, other.start) for one, other in pairwise(claimed)):
            return LabelReading(tuple(sorted({match.label for match in claimed})), tuple(found), ("alternatives",))
    asserted = tuple(sorted({match.label for match in claimed}))
    if closed or len(asserted) != 1:
        return LabelReading(asserted, tuple(found))
    names = labels[asserted[0]]

    def same(item: str) -> bool:
        return bool(find_labels(item, {"": names}))

    most = max(match.weight for match in claimed)
    strongest = [match for match in claimed if match.weight == most]
    listed = [beside(text, match.start, match.end, same).items for match in strongest[:_MOST]]
    # A list of candidates may come before a claim: "A, B or C. It is B."
    decided = most > 2 and not all(listed)
    further = () if decided else tuple(item for items in listed for item in items)
    return LabelReading(asserted, tuple(found), further or further_claims(text, same))
