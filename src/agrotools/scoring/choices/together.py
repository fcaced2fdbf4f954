"""Several options named at once (all of the above, all but C, the rest), and what a reply says of each option."""

import re
from functools import cache
from typing import NamedTuple

from agrotools.scoring.choices.claims import Claim
from agrotools.scoring.choices.clauses import conditional
from agrotools.scoring.choices.item import Item
from agrotools.scoring.choices.listing import Listing, listing_at
from agrotools.scoring.choices.naming import Text
from agrotools.scoring.choices.words import any_of, lexicon, pattern_of

MOST_MENTIONS = 400
"""Mentions of options looked at, the last ones."""


_NUMERALS = {"两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7}
_SENTENCE_END = re.compile(r"[。\n;!?]|\.(?=\s|\Z)")
_MENTION = re.compile(r"(?<![A-Za-z0-9_°'/])(?<![A-Za-z0-9]-)[A-Z]{1,8}(?![A-Za-z0-9_])")
_LABEL_MARK = re.compile(r"[^\S\n]*[.:、)\"'][^\S\n]*")
_SHORT = re.compile(r"(?P<right>对|(?<=[:( ])是)(?=[\s,。;!.)的]|\Z)|(?:错|(?<=[:( ])否)(?=[\s,。;!.)]|\Z)")
_PART_OF_A_WORD = frozenset("排消清解去切扣根防铲剔免拆删")
_BEFORE_BOTH = frozenset("\n ,。;:!?\"'是选为即")
_NOTHING_MORE = re.compile(r"(?:选?项)?(?:以外|之外|外)\W*\Z")
_SELECTED = re.compile(r"选|都|均|全|皆|是")


@cache
def _all() -> re.Pattern[str]:
    each = (
        r"[个项者条种](?:选项|说法|措施|因素|途径|方法|做法|方式|都|全部?|均|皆|全都|应|该|应该|可)*"
        r"(?:是|对|正确|应?选|符合|可以)"
    )
    numbers = "|".join(f"{numeral}{each}" for numeral in [*_NUMERALS, *"234567"])
    return re.compile(f"{any_of('all')}|{numbers}")


@cache
def _not_letter() -> re.Pattern[str]:
    return re.compile(rf"{any_of('not_letter_before')}[\s-]?\Z")


class Verdicts(NamedTuple):
    """Options called right and wrong, in order; one that was called both is neither."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]
    start: int
    end: int


def all_of_them(said: Text, item: Item) -> Claim | None:
    """以上都是, 全选, "all of the above": the option that says so, else all options of a multiple-choice question."""
    found = [
        match
        for match in _all().finditer(said.low)
        if match.start() == 0 or _stands(said.low[match.start() - 1], match[0][0])
    ]
    if not found or item.truth or conditional(said, found[-1].start()):
        return None
    match = found[-1]
    if _first_verdict(said, match.end(), match.end() + 8) is False:
        return None
    number = _NUMERALS.get(match[0][0]) or (int(match[0][0]) if match[0][0].isdigit() else len(item.keys))
    if number != len(item.keys):
        return None
    own = next((key for text, key in item.texts if pattern_of("all").fullmatch(text)), None)
    keys = (own,) if own else item.keys if item.kind == "multiple" else ()
    return Claim(Listing(match.start(), match.end(), keys), "said", "all of them") if keys else None


def _stands(before: str, first: str) -> bool:
    """Whether the words for all have no subject of their own before them: A、B都对 does not speak of all."""
    if first in "都均":
        return before in _BEFORE_BOTH
    return not (before.isascii() and before.isalnum()) and before not in "项者"


def all_but(said: Text, item: Item) -> Claim | None:
    """除了C都对, "all but C", D错,其余均正确: what is left, or what is excepted where the rest is called wrong."""
    for word in list(pattern_of("except").finditer(said.low))[-MOST_MENTIONS:][::-1]:
        if said.low[max(0, word.start() - 1) : word.start()] in _PART_OF_A_WORD:
            continue  # 排除A
        listing = listing_at(said, word.end(), item)
        if listing is None or not listing.sound:
            continue
        start, end = _sentence(said, word.start())
        right = _first_verdict(said, listing.end, end)
        if right is None:
            right = _first_verdict(said, start, word.start())
        alone = _NOTHING_MORE.match(said.low, listing.end)
        if right is None and not word[0].isascii() and not alone and not _SELECTED.search(said.low, listing.end, end):
            continue
        keys = listing.keys if right is False else _without(item, listing.keys)
        if item.kind == "multiple" or len(keys) == 1:
            return Claim(Listing(word.start(), listing.end, keys), "said", "all but these")
    for word in list(pattern_of("rest").finditer(said.low))[-MOST_MENTIONS:][::-1]:
        start, end = _sentence(said, word.start())
        right = _first_verdict(said, word.end(), min(end, word.end() + 20))
        before = verdicts(said, item, start, word.start())
        if right is True and before.wrong and not before.right:
            return Claim(Listing(start, word.end(), _without(item, before.wrong)), "said", "the rest")
        if right is False and before.right and not before.wrong:
            return Claim(Listing(start, word.end(), before.right), "said", "the rest is wrong")
    return None


def _without(item: Item, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key for key in item.keys if key not in keys)


def _sentence(said: Text, position: int) -> tuple[int, int]:
    """The sentence at ``position``, at most 200 characters either way."""
    first = max(0, position - 200)
    start = max((end.end() for end in _SENTENCE_END.finditer(said.low, first, position)), default=first)
    after = _SENTENCE_END.search(said.low, position, position + 200)
    return start, after.start() if after else min(len(said.low), position + 200)


def _verdicts_in(said: Text, start: int, end: int) -> list[tuple[int, bool]]:
    """Words that call something right (True) or wrong, with their ends, in order."""
    judging = lexicon("wrong", "right")
    found = [(word.end(), judging.role(word) == "right") for word in judging.pattern.finditer(said.low, start, end)]
    if not found:
        found = [(word.end(), word["right"] is not None) for word in _SHORT.finditer(said.low, start, end)]
    return found


def _first_verdict(said: Text, start: int, end: int) -> bool | None:
    found = _verdicts_in(said, start, end)
    return found[0][1] if found else None


def verdicts(said: Text, item: Item, start: int = 0, end: int | None = None) -> Verdicts:
    """What the reply calls right and wrong: each mention of options goes with the last verdict before the next one."""
    stop = len(said.low) if end is None else end
    mentions: list[Listing] = []
    at = start
    for mention in list(_MENTION.finditer(said.text, start, stop))[-MOST_MENTIONS:]:
        if mention.start() < at or _not_letter().search(said.low, max(0, mention.start() - 16), mention.start()):
            continue
        listing = listing_at(said, mention.start(), item, subject=True)
        if listing is None:
            continue
        at = listing.end
        if listing.sound:
            mentions.append(listing)
    last = start
    said_of: dict[str, set[bool]] = {}
    ends = [*(each.start for each in mentions[1:]), stop] if mentions else []
    for listing, following in zip(mentions, ends, strict=True):
        mark = _LABEL_MARK.match(said.low, listing.end, following)
        begin = mark.end() if mark else listing.end
        close = _SENTENCE_END.search(said.low, begin, following)
        found = _verdicts_in(said, begin, close.start() if close else following)
        if found and not conditional(said, listing.start):
            last = found[-1][0]
            for key in listing.keys:
                said_of.setdefault(key, set()).add(found[-1][1])
    right = tuple(key for key in item.keys if said_of.get(key) == {True})
    wrong = tuple(key for key in item.keys if said_of.get(key) == {False})
    return Verdicts(right, wrong, mentions[0].start if mentions else start, last)
