"""Answers that stand by themselves: at the beginning of a reply, at its end, in the brackets of the question."""

import re

from agrotools.scoring.choices.claims import CAPITALS, Claim, patterns
from agrotools.scoring.choices.clauses import contrasted_after, denied_after, explained_after, supposed_after
from agrotools.scoring.choices.item import Item
from agrotools.scoring.choices.listing import Block, block_at, listing_at
from agrotools.scoring.choices.naming import Text
from agrotools.scoring.choices.words import lexicon, pattern_of

_BEFORE_OPENING = re.compile(
    r"(?:\s|[.。,!:—]|嗯|呃|答|回答|解|好的|(?<![A-Za-z])(?:assistant|ai)(?=:))*", re.IGNORECASE
)
_STOP = re.compile(r"[^\S\n]*(?:吧|哦|呢)?[^\S\n]*(?:\n|\Z|[。;!])")
_EXPLAINED = re.compile(r"[^\S\n]*(?:[.:,](?!\d)|\(|(?<=\s)[-—–]+\s)\s*")
_ENUMERATED = re.compile(
    r"(?:^|[;。])[^\S\n]*(?:[-*•·][^\S\n]*)?(?:选项)?\(?([A-Z])(?:选?项|[).:、]|[\u4e00-\u9fff])", re.MULTILINE
)


def opening(said: Text, item: Item) -> Claim | None:
    """An answer at the very beginning, alone on its lines or in its clause."""
    begin = _BEFORE_OPENING.match(said.text)
    position = begin.end() if begin else 0
    if block := block_at(said, position, item):
        more = said.text[block.listing.end :].strip()
        if _echo(block, item) and (more or item.kind != "multiple"):
            return None
        return Claim(block.listing, "said", "first line" if more else "whole reply", opening=True)
    listing = listing_at(said, position, item)
    if listing is None:
        return _hedged(said, item, position)
    if item.kind == "single" and len(listing.keys) == len(item.keys) > 2:
        return None  # the options repeated on one line
    apart = said.low[listing.end : listing.end + 1] in ("。", ";")
    if not apart and listing_at(said, position, item, subject=True) != listing:
        return None
    if denied_after(said, listing.end) or supposed_after(said, listing.end):
        return None
    goes_on = explained_after(said, listing.end) or contrasted_after(said, listing.end)
    if not _STOP.match(said.text, listing.end) and not goes_on:
        explained = _EXPLAINED.match(said.text, listing.end)
        if explained is None or (listing.worded and not item.truth) or _goes_through(said, explained.end()):
            return None
    lines = set(_ENUMERATED.findall(said.text))
    if len(lines) > 1 and said.text[listing.start] in lines:
        return None  # the first of several options, each with its text
    return Claim(listing, "said", "first clause", opening=True)


def _goes_through(said: Text, position: int) -> bool:
    """Whether the reply begins to go through the options: A:正确,… or A. …\\nB. …"""
    judged = lexicon("wrong", "right").pattern.match(said.low, position)
    return judged is not None or len(set(_ENUMERATED.findall(said.text))) > 1


def _hedged(said: Text, item: Item, position: int) -> Claim | None:
    """大概A, "probably A.": the whole reply behind at most four words."""
    hedge = pattern_of("tentative")
    for _ in range(4):
        step = patterns().filler.match(said.low, position) or hedge.match(said.low, position)
        if step is None:
            return None
        position = step.end()
        if (block := block_at(said, position, item)) and block.listing.end == len(said.text):
            return Claim(block.listing, "said", "whole reply", opening=True)
    return None


def _echo(block: Block, item: Item) -> bool:
    """Whether these lines repeat all options of the question, one by one."""
    return block.lines > 1 and len(block.listing.keys) == len(item.keys) and not block.listing.outside


_BEHIND_A_COLON = re.compile(r"(?<![A-Za-z]):[^\S\n]*([^\n:]{1,40})\Z")
_LAST_CLAUSE = re.compile(r"(?<![A-Za-z])[,。;:!][^\S\n]*([(\[\"']?[A-Z]{1,7}[)\]\"']?)[^\S\n]*[。.!]?\Z")


def closing(said: Text, item: Item) -> Claim | None:
    """An answer alone on the last line; less surely, alone in the last clause."""
    last = said.text.rfind("\n") + 1
    block = block_at(said, last, item) if last else None
    if block is None or said.text[block.listing.end :].strip() or block.listing.worded:
        clause = _LAST_CLAUSE.search(said.text, max(0, len(said.text) - 20))
        listing = listing_at(said, clause.start(1), item) if clause else None
        if listing is None and (colon := _BEHIND_A_COLON.search(said.text, max(0, len(said.text) - 50))):
            listing = listing_at(said, colon.start(1), item)
            alone = listing and not CAPITALS.search(said.text, 0, listing.start)
            if listing and (listing.worded or not alone or not _STOP.match(said.text, listing.end)):
                listing = None
        return Claim(listing, "weak", "last clause") if listing and listing.sound else None
    above = said.text[:last].rstrip().rfind("\n") + 1
    if (before := block_at(said, above, item)) and before.lines > 1:
        return None  # the last of several: options repeated, or a list read behind its announcing word
    if item.kind == "multiple" and len(block.listing.keys) == 1 and CAPITALS.search(said.text, above, last):
        return None  # perhaps the end of a list
    return Claim(block.listing, "said", "last line")


_BLANK_TO_FILL = re.compile(r"\([^\S\n]{0,4}([A-Z]{1,7}|[√×对错]|正确|错误)[^\S\n]{0,4}\)")


def filled_in(said: Text, item: Item) -> Claim | None:
    """The question repeated with the answer in its brackets, where no other letter stands: 适合的是(C)。"""
    blanks = list(_BLANK_TO_FILL.finditer(said.text))
    letters = len(CAPITALS.findall(said.text))
    if len(blanks) != 1 or letters != (0 if item.truth and not blanks[0][1].isascii() else 1):
        return None
    listing = listing_at(said, blanks[0].start(1), item)
    beside_text = any(said.low.endswith(text, 0, blanks[0].start()) for text, _ in item.texts)
    if listing is None or (listing.worded and not item.truth) or beside_text or denied_after(said, blanks[0].end()):
        return None
    return Claim(listing, "said", "filled in")
