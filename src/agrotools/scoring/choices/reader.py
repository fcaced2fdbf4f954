"""The options that a reply to a multiple-choice or true-or-false question gives as its answer."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from agrotools.scoring.choices.announced_answers import (
    FORCES,
    Claim,
    affirmed_claims,
    announced_claims,
    beside,
    clause_start,
    closing_claim,
    filled_blank_claim,
    judgement_claims,
    opening_claim,
    sentence_start,
)
from agrotools.scoring.choices.judged_options import (
    all_options_claim,
    exception_claim,
    option_verdicts,
    restated_options,
)
from agrotools.scoring.choices.named_options import (
    ChoiceItem,
    Kind,
    ReplyText,
    as_reply_text,
    read_item,
    without_options,
)
from agrotools.scoring.choices.reply_text import any_of, pattern_of, prepared

LONGEST_CANDIDATE = 200
NEAR = 60
"""Characters from an answer within which words take it back."""
NOTHING = "nothing to read"
EXCLUSIVE = "answers exclude each other"


class ChoiceReading(NamedTuple):
    """The reading: ``letters`` in the order of the options, empty where nothing can be read; ``rule``: what decided;
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
    text = without_options(as_reply_text(prepared(reply, item.keys)), item)
    return _read(text, item) if text.text else ChoiceReading((), "empty")


def _read(reply: ReplyText, item: ChoiceItem) -> ChoiceReading:
    found = _before_further_questions(reply, _claims(reply, item))
    strong = [claim for claim in found if claim.force != "weak"]
    if not strong and (together := exception_claim(reply, item) or all_options_claim(reply, item)):
        found = beside([], [together], [claim for claim in found if not _overlap(claim, together)])
    if reading := _settled(reply, item, found):
        return reading
    if item.truth is None and (reading := _by_verdicts(reply, item)):
        return reading
    if filled := filled_blank_claim(reply, item):
        return _reading(reply, item, filled.listing.keys, filled.rule, filled.start, filled.end)
    if item.truth is None and (restated := restated_options(reply, item)):
        return _reading(reply, item, restated.keys, restated.rule, restated.start, restated.end)
    return ChoiceReading((), NOTHING)


def _claims(reply: ReplyText, item: ChoiceItem) -> list[Claim]:
    """All claims, in order."""
    found = announced_claims(reply, item)
    strong = [claim for claim in found if claim.force != "weak"]
    found = beside(strong, judgement_claims(reply, item) if item.truth else affirmed_claims(reply, item), found)
    if first := opening_claim(reply, item):
        found = [first, *(claim for claim in found if claim.start >= first.end)]
    if last := closing_claim(reply, item):
        as_strong = FORCES[FORCES.index(last.force) :]
        if not any(claim.end > last.start for claim in found if claim.force in as_strong):
            found = [*(claim for claim in found if claim.end <= last.start), last]
    return found


def _overlap(one: Claim, other: Claim) -> bool:
    return one.start < other.end and other.start < one.end


def _before_further_questions(reply: ReplyText, found: list[Claim]) -> list[Claim]:
    """Claims before a further question, where there are some."""
    for mark in pattern_of("further_question").finditer(reply.low):
        before = [claim for claim in found if claim.end <= mark.start()]
        if any(claim.force != "weak" for claim in before):
            return before
    return found


def _settled(reply: ReplyText, item: ChoiceItem, found: list[Claim]) -> ChoiceReading | None:
    """The claim that stands in the end, or that two exclude each other; None where nothing is claimed."""
    strong = [claim for claim in found if claim.force != "weak"]
    counted = [
        claim
        for claim in found
        if claim.force != "weak"
        or not strong
        or (claim.start >= strong[-1].end and _is_taken_back(reply, strong[-1], claim))
    ]
    current: Claim | None = None
    clash: Claim | None = None
    earlier: set[str] = set()
    for claim in _joined_claims(reply, item, counted):
        if current is None or _replaces(reply, current, claim, earlier):
            current, clash = claim, None
        elif set(current.listing.keys) != set(claim.listing.keys) or not claim.listing.sound:
            current, clash = claim, clash or current
        earlier |= set(claim.listing.keys)
    if current is None or (current.force == "weak" and not current.listing.sound):
        return None
    if clash is not None:
        return ChoiceReading((), EXCLUSIVE, _cut(reply, clash.start, current.end), True)
    listing = current.listing
    candidate = _cut(reply, listing.start, listing.end)
    if listing.outside:
        return ChoiceReading((), "no such option", candidate)
    if listing.conflict:
        return ChoiceReading((), "letter beside the text of another option", candidate, True)
    if listing.either:
        return ChoiceReading((), "one or another", candidate, True)
    return _reading(reply, item, listing.keys, current.rule, listing.start, listing.end)


_AND_CHOOSE = re.compile(r"[\s,、;]*(?:也|还|再|和)?选?\s*")


def _joined_claims(reply: ReplyText, item: ChoiceItem, found: list[Claim]) -> list[Claim]:
    """Claims of a multiple-choice question that follow one another (选A选C) as one."""
    united: list[Claim] = []
    for claim in found:
        last = united[-1] if united else None
        if item.kind == "multiple" and last and _AND_CHOOSE.fullmatch(reply.low, last.end, claim.start):
            keys = tuple(dict.fromkeys(last.listing.keys + claim.listing.keys))
            united[-1] = last._replace(listing=last.listing._replace(end=claim.end, keys=keys))
        else:
            united.append(claim)
    return united


@cache
def _correction() -> re.Pattern[str]:
    return re.compile(rf"{any_of('correction')}|不(?:(?<=[,。.!?;\s]不)|(?<=\A不))对(?!称|应|等|劲)")


def _is_taken_back(reply: ReplyText, current: Claim, claim: Claim) -> bool:
    """True if words soon behind ``current``, or before or at ``claim``, take ``current`` back."""
    near = min(claim.start, current.end + NEAR)
    return (
        _correction().search(reply.low, current.end, near) is not None
        or _correction().search(reply.low, max(current.end, claim.start - NEAR), claim.end + 3) is not None
        or pattern_of("contrast").search(reply.low, max(current.end, sentence_start(reply, claim.start)), claim.start)
        is not None
    )


def _replaces(reply: ReplyText, current: Claim, claim: Claim, earlier: set[str]) -> bool:
    """True if ``claim``, which may say something else, takes the place of ``current``: it is final, a word between them
    takes ``current`` back, ``current`` was tentative, or ``claim`` sums up."""
    if claim.force == "final" and current.force != "final":
        return True
    if _is_taken_back(reply, current, claim):
        return True
    tentative = pattern_of("tentative")
    if tentative.search(reply.low, clause_start(reply, current.start), current.start):
        return tentative.search(reply.low, clause_start(reply, claim.start), claim.start) is None
    if current.opening or not claim.listing.sound:
        return False
    if pattern_of("summary").search(reply.low, sentence_start(reply, claim.start), claim.start):
        return True
    return _is_summary(claim, earlier)


def _is_summary(claim: Claim, earlier: set[str]) -> bool:
    """True if a claim names all that was claimed one by one before: 选A…选C…答案AC."""
    return len(claim.listing.keys) > 1 and earlier <= set(claim.listing.keys)


def _by_verdicts(reply: ReplyText, item: ChoiceItem) -> ChoiceReading | None:
    """Options called right; of a single-choice question also the one option that it leaves."""
    called = option_verdicts(reply, item)
    if called.right:
        whole = len(called.right) + len(called.wrong) == len(item.keys)
        if item.kind == "multiple" and not whole and not _finished(reply, called.end):
            return None
        return _reading(reply, item, called.right, "called right", called.start, called.end)
    if item.kind == "single" and len(called.wrong) == len(item.keys) - 1 > 0:
        left = tuple(key for key in item.keys if key not in called.wrong)
        return _reading(reply, item, left, "the only option left", called.start, called.end)
    return None


_FULL_STOP = re.compile(r"[。.!?;)\]】」\"'|√×]\s*\Z")


def _finished(reply: ReplyText, verdict_end: int) -> bool:
    """True if a reply that goes through the options came to its end: with a full stop, or with its last verdict."""
    return len(reply.text) - verdict_end <= 2 or _FULL_STOP.search(reply.text) is not None


def _reading(
    reply: ReplyText, item: ChoiceItem, keys: tuple[str, ...], rule: str, start: int, end: int
) -> ChoiceReading:
    candidate = _cut(reply, start, end)
    if not keys:
        return ChoiceReading((), NOTHING, candidate)
    if item.kind != "multiple" and len(keys) > 1:
        return ChoiceReading((), "several options of one", candidate, True)
    return ChoiceReading(item.ordered(frozenset(keys)), rule, candidate)


def _cut(reply: ReplyText, start: int, end: int) -> str:
    return reply.text[start : min(end, start + LONGEST_CANDIDATE)].strip()
