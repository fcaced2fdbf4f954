"""Answers that restate an option in words, without its letter."""

import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from agrotools.scoring.choices.clauses import conditional
from agrotools.scoring.choices.item import Item
from agrotools.scoring.choices.naming import Text
from agrotools.scoring.choices.words import any_of, pattern_of

SHORT = 240
"""Bytes in UTF-8 (80 Chinese characters) of a reply that may be its answer without a word that says so."""
MOST_FINDS = 200

_SENTENCE = re.compile(r"[^。\n;!?]+[。\n;!?]*")
_FINISHED = re.compile(r"[。.!?;)\]】」\"'…]\s*\Z")
_JOINED = re.compile(r"(?:[^\S\n]*\([a-z]\))?[^\S\n]*(?:、|或者?|和|(?:or|nor)\b)[^\S\n]*")
_OR = re.compile(r"[^\S\n]*(?:、|,)?\s*(?:或者?|还是|\bor\b)\s*(?:是)?[^\S\n]*")


@cache
def _denied() -> re.Pattern[str]:
    return re.compile(rf"{any_of('deny_text')}[^,。;\n]{{0,8}}\Z")


@cache
def _denied_behind() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{any_of('between_and_denial')}\s*){{0,3}}{any_of('deny_after')}")


class Found(NamedTuple):
    key: str
    start: int
    end: int
    asserted: bool


class Worded(NamedTuple):
    keys: tuple[str, ...]
    start: int
    end: int
    rule: str


def worded(said: Text, item: Item) -> Worded | None:
    """The options that the reply restates: all that it asserts where these fit the question, else those of its last
    sentence where that concludes. None where it restates none, or two of a single-choice question."""
    found = _texts(said, item)
    asserted = [each for each in found if each.asserted and not conditional(said, each.start)]
    if not asserted or pattern_of("refusal").search(said.low):
        return None
    if any(_OR.fullmatch(said.low, one.end, two.start) for one, two in pairwise(asserted)):
        return None
    keys = _keys(item, asserted)
    sentences = list(_SENTENCE.finditer(said.low))
    finished = len(sentences) < 2 or _FINISHED.search(said.low) is not None
    concluded = [each for each in sentences if pattern_of("conclusion").search(each[0])]
    if not finished:
        return None
    short = len(said.low.encode()) <= SHORT
    if item.kind == "multiple" and (short or concluded):
        last = [each for each in asserted if not concluded or short or each.start >= concluded[-1].start()]
        return _result(item, last, "option text") if last else None
    if len(keys) == 1 and (short or concluded):
        return _result(item, asserted, "option text")
    for sentence in reversed(concluded):
        for word in reversed(list(pattern_of("conclusion").finditer(said.low, sentence.start(), sentence.end()))):
            behind = [each for each in asserted if word.end() <= each.start < sentence.end()]
            if behind:
                one = len(_keys(item, behind)) == 1
                return _result(item, behind, "option text in the conclusion") if one else None
    return None


def _result(item: Item, found: list[Found], rule: str) -> Worded:
    return Worded(_keys(item, found), found[0].start, found[-1].end, rule)


def _keys(item: Item, found: list[Found]) -> tuple[str, ...]:
    return item.ordered(frozenset(each.key for each in found))


def _texts(said: Text, item: Item) -> list[Found]:
    """Occurrences of option texts that lie in no longer one, in order."""
    spans: list[tuple[int, int, str]] = []
    for text, key in item.texts:
        at = said.low.find(text)
        count = 0
        while at >= 0 and count < MOST_FINDS:
            if item.text_at(said.low, at) == (key, at + len(text)):
                spans.append((at, at + len(text), key))
            at = said.low.find(text, at + len(text))
            count += 1
    spans.sort(key=lambda span: (span[0], -span[1]))
    found: list[Found] = []
    for start, end, key in spans:
        if found and start < found[-1].end:
            continue
        joined = found and not found[-1].asserted and _JOINED.fullmatch(said.low, found[-1].end, start)
        denied = (
            joined or _denied().search(said.low, max(0, start - 24), start) or _denied_behind().match(said.low, end)
        )
        found.append(Found(key, start, end, not denied))
    return found
