"""Reads which options a reply to a multiple-choice question gives as its answer."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from agrotools.scoring.choices.claims import FORCES, Claim, affirmed, announced, beside, judgements
from agrotools.scoring.choices.clauses import clause_start, sentence_start
from agrotools.scoring.choices.ends import closing, filled_in, opening
from agrotools.scoring.choices.item import Item, Kind, read_item
from agrotools.scoring.choices.naming import Text, as_text, without_options
from agrotools.scoring.choices.prepare import prepared
from agrotools.scoring.choices.together import all_but, all_of_them, verdicts
from agrotools.scoring.choices.worded import worded
from agrotools.scoring.choices.words import any_of, pattern_of

LONGEST_CANDIDATE = 200
NEAR = 60
"""Characters from an answer within which words take it back."""
NOTHING = "nothing to read"
EXCLUSIVE = "answers exclude each other"


class ChoiceReading(NamedTuple):
    """What was read: ``letters`` in the order of the options, empty where nothing can be read; ``rule``: what decided;
    ``candidate``: the prepared text that it was read from; ``ambiguous``: several answers where one is due."""

    letters: tuple[str, ...]
    rule: str
    candidate: str = ""
    ambiguous: bool = False


_BARE = re.compile(r"\s*([A-Z]{1,8}(?:(?:[、,，;；.。．]\s*|\s+)[A-Z]{1,8})*)\s*[。.．]?\s*")
_RUN = re.compile(r"[A-Z]+")
_ONE = re.compile(r"\s*(?:(?:正确)?(?:答案|选项)\s*(?:是|为)?\s*[:：]?\s*|Answer\s*:\s*)?([A-Z])\s*[。.．]?\s*")
"""A letter that the whole reply comes to: what most replies are, read without a look at the item."""


def read_choices(reply: str, options: Mapping[str, str], kind: Kind) -> ChoiceReading:
    """The options that ``reply`` settles on.

    ``options``: letter to text, in order; ``kind``: how many may be chosen. Thinking is left out; of a reply longer
    than 32,000 characters the first 8,000 and the last 24,000 are read. Never raises; never guesses: two answers that
    exclude each other, or a letter that is no option, give none.
    """
    if len(reply) <= LONGEST_CANDIDATE and (one := _ONE.fullmatch(reply)) and one[1] in options:
        return ChoiceReading((one[1],), "one letter", one[1])
    item = read_item(options, kind)
    if len(reply) <= LONGEST_CANDIDATE and (bare := _BARE.fullmatch(reply)):
        runs = _RUN.findall(bare[1])
        known = frozenset(item.letters[letter] for run in runs for letter in run if letter in item.letters)
        whole = all(len(set(run)) == len(run) and item.letters.keys() >= set(run) for run in runs)
        if whole and (kind == "multiple" or len(known) == 1):
            return ChoiceReading(item.ordered(known), "bare letters", bare[1])
    said = without_options(as_text(prepared(reply, item.keys)), item)
    if not said.text:
        return ChoiceReading((), "empty")
    return _read(said, item)


def _read(said: Text, item: Item) -> ChoiceReading:
    found = _before_further_questions(said, _claims(said, item))
    strong = [claim for claim in found if claim.force != "weak"]
    if not strong and (together := all_but(said, item) or all_of_them(said, item)):
        found = beside([], [together], [claim for claim in found if not _overlap(claim, together)])
    if reading := _settled(said, item, found):
        return reading
    if item.truth is None and (reading := _by_verdicts(said, item)):
        return reading
    if filled := filled_in(said, item):
        return _reading(said, item, filled.listing.keys, filled.rule, filled.start, filled.end)
    if item.truth is None and (restated := worded(said, item)):
        return _reading(said, item, restated.keys, restated.rule, restated.start, restated.end)
    return ChoiceReading((), NOTHING)


def _claims(said: Text, item: Item) -> list[Claim]:
    """All claims, in order."""
    found = announced(said, item)
    strong = [claim for claim in found if claim.force != "weak"]
    found = beside(strong, judgements(said, item) if item.truth else affirmed(said, item), found)
    if first := opening(said, item):
        found = [first, *(claim for claim in found if claim.start >= first.end)]
    if last := closing(said, item):
        as_strong = FORCES[FORCES.index(last.force) :]
        if not any(claim.end > last.start for claim in found if claim.force in as_strong):
            found = [*(claim for claim in found if claim.end <= last.start), last]
    return found


def _overlap(one: Claim, other: Claim) -> bool:
    return one.start < other.end and other.start < one.end


def _before_further_questions(said: Text, found: list[Claim]) -> list[Claim]:
    """Claims before a further question, where there are some."""
    for mark in pattern_of("further_question").finditer(said.low):
        before = [claim for claim in found if claim.end <= mark.start()]
        if any(claim.force != "weak" for claim in before):
            return before
    return found


def _settled(said: Text, item: Item, found: list[Claim]) -> ChoiceReading | None:
    """The claim that stands in the end, or that two exclude each other; None where nothing is claimed."""
    strong = [claim for claim in found if claim.force != "weak"]
    counted = [
        claim
        for claim in found
        if claim.force != "weak"
        or not strong
        or (claim.start >= strong[-1].end and _taken_back(said, strong[-1], claim))
    ]
    current: Claim | None = None
    clash: Claim | None = None
    earlier: set[str] = set()
    for claim in _united(said, item, counted):
        if current is None or _replaces(said, current, claim, earlier):
            current, clash = claim, None
        elif set(current.listing.keys) != set(claim.listing.keys) or not claim.listing.sound:
            current, clash = claim, clash or current
        earlier |= set(claim.listing.keys)
    if current is None or (current.force == "weak" and not current.listing.sound):
        return None
    if clash is not None:
        return ChoiceReading((), EXCLUSIVE, _cut(said, clash.start, current.end), True)
    listing = current.listing
    candidate = _cut(said, listing.start, listing.end)
    if listing.outside:
        return ChoiceReading((), "no such option", candidate)
    if listing.conflict:
        return ChoiceReading((), "letter beside the text of another option", candidate, True)
    if listing.either:
        return ChoiceReading((), "one or another", candidate, True)
    return _reading(said, item, listing.keys, current.rule, listing.start, listing.end)


_AND_CHOOSE = re.compile(r"[\s,、;]*(?:也|还|再|和)?选?\s*")


def _united(said: Text, item: Item, found: list[Claim]) -> list[Claim]:
    """Claims of a multiple-choice question that follow one another (选A选C) as one."""
    united: list[Claim] = []
    for claim in found:
        last = united[-1] if united else None
        if item.kind == "multiple" and last and _AND_CHOOSE.fullmatch(said.low, last.end, claim.start):
            keys = tuple(dict.fromkeys(last.listing.keys + claim.listing.keys))
            united[-1] = last._replace(listing=last.listing._replace(end=claim.end, keys=keys))
        else:
            united.append(claim)
    return united


@cache
def _correction() -> re.Pattern[str]:
    return re.compile(rf"{any_of('correction')}|不(?:(?<=[,。.!?;\s]不)|(?<=\A不))对(?!称|应|等|劲)")


def _taken_back(said: Text, current: Claim, claim: Claim) -> bool:
    """Whether words soon behind ``current``, or before or at ``claim``, take ``current`` back."""
    near = min(claim.start, current.end + NEAR)
    return (
        _correction().search(said.low, current.end, near) is not None
        or _correction().search(said.low, max(current.end, claim.start - NEAR), claim.end + 3) is not None
        or pattern_of("contrast").search(said.low, max(current.end, sentence_start(said, claim.start)), claim.start)
        is not None
    )


def _replaces(said: Text, current: Claim, claim: Claim, earlier: set[str]) -> bool:
    """Whether ``claim``, which may say something else, takes the place of ``current``: it is final, a word between them
    takes ``current`` back, ``current`` was tentative, or ``claim`` sums up."""
    if claim.force == "final" and current.force != "final":
        return True
    if _taken_back(said, current, claim):
        return True
    tentative = pattern_of("tentative")
    if tentative.search(said.low, clause_start(said, current.start), current.start):
        return tentative.search(said.low, clause_start(said, claim.start), claim.start) is None
    if current.opening or not claim.listing.sound:
        return False
    if pattern_of("summary").search(said.low, sentence_start(said, claim.start), claim.start):
        return True
    return _sums_up(claim, earlier)


def _sums_up(claim: Claim, earlier: set[str]) -> bool:
    """Whether a claim names all that was claimed one by one before: 选A…选C…答案AC."""
    return len(claim.listing.keys) > 1 and earlier <= set(claim.listing.keys)


def _by_verdicts(said: Text, item: Item) -> ChoiceReading | None:
    """What the reply calls right; of a single-choice question also the one option that it leaves."""
    called = verdicts(said, item)
    if called.right:
        whole = len(called.right) + len(called.wrong) == len(item.keys)
        if item.kind == "multiple" and not whole and not _finished(said, called.end):
            return None
        return _reading(said, item, called.right, "called right", called.start, called.end)
    if item.kind == "single" and len(called.wrong) == len(item.keys) - 1 > 0:
        left = tuple(key for key in item.keys if key not in called.wrong)
        return _reading(said, item, left, "the only option left", called.start, called.end)
    return None


_FULL_STOP = re.compile(r"[。.!?;)\]】」\"'|√×]\s*\Z")


def _finished(said: Text, verdict_end: int) -> bool:
    """Whether a reply that goes through the options came to its end: with a full stop, or with its last verdict."""
    return len(said.text) - verdict_end <= 2 or _FULL_STOP.search(said.text) is not None


def _reading(said: Text, item: Item, keys: tuple[str, ...], rule: str, start: int, end: int) -> ChoiceReading:
    candidate = _cut(said, start, end)
    if not keys:
        return ChoiceReading((), NOTHING, candidate)
    if item.kind != "multiple" and len(keys) > 1:
        return ChoiceReading((), "several options of one", candidate, True)
    return ChoiceReading(item.ordered(frozenset(keys)), rule, candidate)


def _cut(said: Text, start: int, end: int) -> str:
    return said.text[start : min(end, start + LONGEST_CANDIDATE)].strip()
