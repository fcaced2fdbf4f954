"""Options chosen without an announcement: all of the above, all but C, those called right, those restated in words."""

import re
from functools import cache
from typing import NamedTuple

from agrotools.scoring.choices.announced_answers import Claim, is_conditional
from agrotools.scoring.choices.named_options import ChoiceItem, Listing, ReplyText, listing_at
from agrotools.scoring.choices.reply_text import any_of, lexicon, pattern_of

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


def all_options_claim(reply: ReplyText, item: ChoiceItem) -> Claim | None:
    """以上都是, 全选, "all of the above": the option that says so, else all options of a multiple-choice question."""
    found = [
        match
        for match in _all().finditer(reply.low)
        if match.start() == 0 or _has_no_subject(reply.low[match.start() - 1], match[0][0])
    ]
    if not found or item.truth or is_conditional(reply, found[-1].start()):
        return None
    match = found[-1]
    if _first_verdict(reply, match.end(), match.end() + 8) is False:
        return None
    number = _NUMERALS.get(match[0][0]) or (int(match[0][0]) if match[0][0].isdigit() else len(item.keys))
    if number != len(item.keys):
        return None
    own = next((key for text, key in item.texts if pattern_of("all").fullmatch(text)), None)
    keys = (own,) if own else item.keys if item.kind == "multiple" else ()
    return Claim(Listing(match.start(), match.end(), keys), "stated", "all of them") if keys else None


def _has_no_subject(before: str, first: str) -> bool:
    """True if the words for all have no subject of their own before them: A、B都对 does not speak of all."""
    if first in "都均":
        return before in _BEFORE_BOTH
    return not (before.isascii() and before.isalnum()) and before not in "项者"


def exception_claim(reply: ReplyText, item: ChoiceItem) -> Claim | None:
    """除了C都对, "all but C", D错,其余均正确: what is left, or what is excepted where the rest is called wrong."""
    for word in list(pattern_of("except").finditer(reply.low))[-MOST_MENTIONS:][::-1]:
        if reply.low[max(0, word.start() - 1) : word.start()] in _PART_OF_A_WORD:
            continue  # 排除A
        listing = listing_at(reply, word.end(), item)
        if listing is None or not listing.sound:
            continue
        start, end = _sentence(reply, word.start())
        right = _first_verdict(reply, listing.end, end)
        if right is None:
            right = _first_verdict(reply, start, word.start())
        alone = _NOTHING_MORE.match(reply.low, listing.end)
        if right is None and not word[0].isascii() and not alone and not _SELECTED.search(reply.low, listing.end, end):
            continue
        keys = listing.keys if right is False else _without(item, listing.keys)
        if item.kind == "multiple" or len(keys) == 1:
            return Claim(Listing(word.start(), listing.end, keys), "stated", "all but these")
    for word in list(pattern_of("rest").finditer(reply.low))[-MOST_MENTIONS:][::-1]:
        start, end = _sentence(reply, word.start())
        right = _first_verdict(reply, word.end(), min(end, word.end() + 20))
        before = option_verdicts(reply, item, start, word.start())
        if right is True and before.wrong and not before.right:
            return Claim(Listing(start, word.end(), _without(item, before.wrong)), "stated", "the rest")
        if right is False and before.right and not before.wrong:
            return Claim(Listing(start, word.end(), before.right), "stated", "the rest is wrong")
    return None


def _without(item: ChoiceItem, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key for key in item.keys if key not in keys)


def _sentence(reply: ReplyText, position: int) -> tuple[int, int]:
    """The sentence at ``position``, at most 200 characters either way."""
    first = max(0, position - 200)
    start = max((end.end() for end in _SENTENCE_END.finditer(reply.low, first, position)), default=first)
    after = _SENTENCE_END.search(reply.low, position, position + 200)
    return start, after.start() if after else min(len(reply.low), position + 200)


def _verdicts_in(reply: ReplyText, start: int, end: int) -> list[tuple[int, bool]]:
    """Words that call something right (True) or wrong, with their ends, in order."""
    judging = lexicon("wrong", "right")
    found = [(word.end(), judging.role(word) == "right") for word in judging.pattern.finditer(reply.low, start, end)]
    if not found:
        found = [(word.end(), word["right"] is not None) for word in _SHORT.finditer(reply.low, start, end)]
    return found


def _first_verdict(reply: ReplyText, start: int, end: int) -> bool | None:
    found = _verdicts_in(reply, start, end)
    return found[0][1] if found else None


def option_verdicts(reply: ReplyText, item: ChoiceItem, start: int = 0, end: int | None = None) -> Verdicts:
    """Options that the reply calls right and wrong: each mention goes with the last verdict before the next one."""
    stop = len(reply.low) if end is None else end
    mentions: list[Listing] = []
    at = start
    for mention in list(_MENTION.finditer(reply.text, start, stop))[-MOST_MENTIONS:]:
        if mention.start() < at or _not_letter().search(reply.low, max(0, mention.start() - 16), mention.start()):
            continue
        listing = listing_at(reply, mention.start(), item, subject=True)
        if listing is None:
            continue
        at = listing.end
        if listing.sound:
            mentions.append(listing)
    last = start
    verdicts_by_key: dict[str, set[bool]] = {}
    ends = [*(each.start for each in mentions[1:]), stop] if mentions else []
    for listing, following in zip(mentions, ends, strict=True):
        mark = _LABEL_MARK.match(reply.low, listing.end, following)
        begin = mark.end() if mark else listing.end
        close = _SENTENCE_END.search(reply.low, begin, following)
        found = _verdicts_in(reply, begin, close.start() if close else following)
        if found and not is_conditional(reply, listing.start):
            last = found[-1][0]
            for key in listing.keys:
                verdicts_by_key.setdefault(key, set()).add(found[-1][1])
    right = tuple(key for key in item.keys if verdicts_by_key.get(key) == {True})
    wrong = tuple(key for key in item.keys if verdicts_by_key.get(key) == {False})
    return Verdicts(right, wrong, mentions[0].start if mentions else start, last)


SHORT = 240
"""Bytes in UTF-8 (80 Chinese characters) of a reply that may be its answer without a word that says so."""
MOST_FINDS = 200

_SENTENCE = re.compile(r"[^。\n;!?]+[。\n;!?]*")
_FINISHED = re.compile(r"[。.!?;)\]】」\"'…]\s*\Z")
_JOINED = re.compile(r"(?:[^\S\n]*\([a-z]\))?[^\S\n]*(?:、|或者?|和|(?:or|nor)\b)[^\S\n]*")


@cache
def _denied() -> re.Pattern[str]:
    return re.compile(rf"{any_of('deny_text')}[^,。;\n]{{0,8}}\Z")


class TextOccurrence(NamedTuple):
    key: str
    start: int
    end: int
    asserted: bool


class Restatement(NamedTuple):
    keys: tuple[str, ...]
    start: int
    end: int
    rule: str


def restated_options(reply: ReplyText, item: ChoiceItem) -> Restatement | None:
    """The options that the reply restates: all that it asserts where these fit the question, else those of its last
    sentence where that concludes. None where it restates none, or two of a single-choice question."""
    found = _texts(reply, item)
    asserted = [each for each in found if each.asserted and not is_conditional(reply, each.start)]
    if not asserted or pattern_of("refusal").search(reply.low):
        return None
    keys = _keys(item, asserted)
    sentences = list(_SENTENCE.finditer(reply.low))
    finished = len(sentences) < 2 or _FINISHED.search(reply.low) is not None
    concluded = [each for each in sentences if pattern_of("conclusion").search(each[0])]
    if not finished:
        return None
    short = len(reply.low.encode()) <= SHORT
    if item.kind == "multiple" and (short or concluded):
        last = [each for each in asserted if not concluded or short or each.start >= concluded[-1].start()]
        return _result(item, last, "option text") if last else None
    if len(keys) == 1 and (short or concluded):
        return _result(item, asserted, "option text")
    for sentence in reversed(concluded):
        for word in reversed(list(pattern_of("conclusion").finditer(reply.low, sentence.start(), sentence.end()))):
            behind = [each for each in asserted if word.end() <= each.start < sentence.end()]
            if behind:
                one = len(_keys(item, behind)) == 1
                return _result(item, behind, "option text in the conclusion") if one else None
    return None


def _result(item: ChoiceItem, found: list[TextOccurrence], rule: str) -> Restatement:
    return Restatement(_keys(item, found), found[0].start, found[-1].end, rule)


def _keys(item: ChoiceItem, found: list[TextOccurrence]) -> tuple[str, ...]:
    return item.ordered(frozenset(each.key for each in found))


def _texts(reply: ReplyText, item: ChoiceItem) -> list[TextOccurrence]:
    """Occurrences of option texts that lie in no longer one, in order."""
    spans: list[tuple[int, int, str]] = []
    for text, key in item.texts:
        at = reply.low.find(text)
        count = 0
        while at >= 0 and count < MOST_FINDS:
            if item.text_at(reply.low, at) == (key, at + len(text)):
                spans.append((at, at + len(text), key))
            at = reply.low.find(text, at + len(text))
            count += 1
    spans.sort(key=lambda span: (span[0], -span[1]))
    found: list[TextOccurrence] = []
    for start, end, key in spans:
        if found and start < found[-1].end:
            continue
        joined = found and not found[-1].asserted and _JOINED.fullmatch(reply.low, found[-1].end, start)
        denied = joined or _denied().search(reply.low, max(0, start - 24), start)
        found.append(TextOccurrence(key, start, end, not denied))
    return found
