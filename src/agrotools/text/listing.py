"""Other names and numbers that an answer lists beside a name: known ones or not."""

import re
from collections.abc import Callable
from typing import NamedTuple

from agrotools.text.normalise import CJK, WORD, reading_words


class Beside(NamedTuple):
    """Names beside a name: the items listed with it, and whether they are alternatives (or, slash)."""

    items: tuple[str, ...]
    alternatives: bool


_REACH = 400
"""Characters looked at on either side: far more than any list that may still count as an answer."""
_LONGEST_NAME = 4
_LONGEST_RUN = 6
"""More words than this, with nothing between them that makes a sentence, are a list without separators."""

_JOINT = re.compile(
    rf"\s*(?:(?P<either>(?<!{WORD})(?:and/)?or(?!{WORD})|/|\||或者?|,\s*or(?!{WORD})|(?<!{WORD})(?:versus|vs\.?)(?!{WORD}))|"
    rf"(?P<all>,\s*and(?!{WORD})|\s*\n\s*(?:[*•-]|\d{{1,3}}[.)])\s|(?<!{WORD})and(?!{WORD})|[,、;&+•·→]|->|\s-\s|和|及)|"
    r"(?P<loose>\.(?!\d)|\s*\n[\s*•>#-]*(?:\d{1,3}[.)]\s)?))\s*"
)
_ITEM = re.compile(
    rf"[\"'*]*((?:{WORD}|[{CJK}]|['’\- ](?={WORD}|[{CJK}])|\.(?=\d))+)[\"'*]*(?:\s?\([^()\n]{{0,80}}\))?"
)
_BRACKET = re.compile(r"\s*[\"'*]*\s*[(\[]([^()\[\]\n]{0,300})[)\]]")
_WORDS = re.compile(rf"{WORD}+(?:['’-]{WORD}+)*|[{CJK}]+")

_SENTENCE, _DESCRIBING = reading_words("sentence"), reading_words("describing")


_NO_NAME = ("aceae", "idae", "ly")


def is_name(text: str) -> bool:
    """True if ``text`` could be the name of something: a few words, none of which makes a sentence."""
    words = _WORDS.findall(text)
    if not words or len(words) > _LONGEST_NAME or all(word.isdigit() for word in words):
        return False
    if any(len(word) > 8 for word in words if word[0] >= "\u2e80") or re.search(rf"[{CJK}] ?\d", text):
        return False
    if any(word in _SENTENCE or (word.endswith(_NO_NAME) and word not in _DESCRIBING) for word in words):
        return False
    return any(word not in _DESCRIBING and not word.isdigit() for word in words) and not re.search(
        r"[是为有的在了]", text
    )


def beside(text: str, start: int, end: int, same: Callable[[str], bool]) -> Beside:
    """Other items of the list that ``text[start:end]`` is in. ``same`` is true for items that name the same thing."""
    items: list[str] = []
    loose: list[str] = []
    appositions: list[str] = []
    either = False

    def take(item: str, joint: re.Match[str]) -> bool:
        """True if ``item`` continues the list."""
        nonlocal either
        name = item.strip(" \"'*")
        bare = re.sub(r"^(?:an?|the) ", "", name)
        if same(name):
            return True
        if not is_name(bare):
            return False
        if bare != name and not (joint["either"] or items or "and" in joint[0]):
            appositions.append(bare)  # "lantana, a shrub"; but "a lantana, a parthenium, a rubber vine"
            return joint["loose"] is None
        name = bare
        (loose if joint["loose"] is not None else items).append(name)
        either = either or joint["either"] is not None
        return True

    at = end + len(text[end : end + 3]) - len(text[end : end + 3].lstrip("\"'*"))
    limit = min(len(text), end + _REACH)
    for _ in range(2):  # "(Lantana camara) (Verbenaceae)"
        bracket = _BRACKET.match(text, at, limit)
        if bracket is None:
            break
        inside = [
            part
            for part in re.split(r"[,;/|、]|\bor\b|\band\b", bracket[1])
            if is_name(part) and not same(part.strip())
        ]
        if len(inside) > 1:
            items += [part.strip() for part in inside]
        at = bracket.end()
    while joint := _JOINT.match(text, at, limit):
        item = _ITEM.match(text, joint.end(), limit)
        if (
            item is None
            or text[item.end() : item.end() + 2].lstrip().startswith((":", "="))
            or not take(item[1], joint)
        ):
            break
        at = item.end()
    floor = max(0, start - _REACH)
    for joint, item in _backwards(text, floor, start):
        if not take(item, joint):
            break
    if len(appositions) > 1:
        items += appositions
    items += _run(text, start, end)
    if len(loose) > 1:
        items += loose
    return Beside(tuple(dict.fromkeys(items)), either)


def _backwards(text: str, floor: int, start: int) -> list[tuple[re.Match[str], str]]:
    """The items before ``start`` with the joint after each, the nearest first; they end at a colon or equals sign."""
    stop = max(text.rfind(mark, floor, start) for mark in ":=?!")
    joints = list(_JOINT.finditer(text, max(floor, stop + 1), start))
    if not joints or text[joints[-1].end() : start].strip(" \"'*(") not in ("", "a", "an", "the"):
        return []
    items: list[tuple[re.Match[str], str]] = []
    for index in range(len(joints) - 1, -1, -1):
        begin = joints[index - 1].end() if index else max(floor, stop + 1)
        item = text[begin : joints[index].start()]
        if joints[index]["either"]:  # "it could be siam weed or ..."
            words = item.split()
            begin_at = next((at for at in range(len(words), 0, -1) if words[at - 1] in _SENTENCE), 0)
            item = " ".join(words[begin_at:])
        items.append((joints[index], item))
    return items


def _run(text: str, start: int, end: int) -> list[str]:
    """The words around a name with nothing but spaces between, up to a word of a sentence, if they are too many."""
    before = re.split(rf"[^\w\s'-]|\n|[{CJK}]", text[max(0, start - _REACH) : start])[-1].split()
    behind = re.split(rf"[^\w\s'-]|\n|[{CJK}]", text[end : end + _REACH])[0].split()
    run: list[str] = []
    ends = 0
    for words in (reversed(before), behind):
        for word in words:
            if word in _SENTENCE:
                ends += 1
                break
            if word not in _DESCRIBING:
                run.append(word)
    # Half as many where there is no sentence at all, only words.
    return run if len(run) * (1 if ends else 2) > _LONGEST_RUN else []


_CLAIMS = re.compile(
    rf"(?:^|(?<=[.!?;\n。]))[^\w\n]{{0,12}}(?:it|this|that|these|i|(?:the|this) {WORD}+(?: {WORD}+)?)"
    rf"(?: (?:is|are|was|looks like|look like|could be|may be|might be|must be|see|think it is|say|guess)|'s) "
    rf"(?:(?:possibly|perhaps|maybe|probably|likely|also) )*(?:an? |the )?([^.!?;\n。,]{{1,60}})(?=[.!?;\n。,]|$)"
)


def further_claims(text: str, same: Callable[[str], bool]) -> tuple[str, ...]:
    """Further names in sentences of the form "it is X": several that name other things are a list in sentences."""
    names = dict.fromkeys(claim[1].strip(" \"'*") for claim in _CLAIMS.finditer(text))
    others = tuple(name for name in names if (is_name(name) or name.isdigit()) and not same(name))
    return others if len(others) > 1 else ()


_EITHER = rf"(?:,\s*)?(?<!{WORD})(?:or|versus|vs|maybe|perhaps|possibly)(?!{WORD})"
_NUMBER_JOINT = re.compile(
    rf"\s*(?:(?P<either>/|\||{_EITHER}|或)|[,;、&]|(?<!{WORD})and(?!{WORD})|和|\n[\s*•-]*|\s)\s*(?=[$€£¥₹-]?\d)"
)
_NUMBER = re.compile(r"[$€£¥₹]?-?\d++(?:[.,]\d++)*+")
_NUMBERS_BEFORE = re.compile(
    rf"((?:[$€£¥₹]?-?\d++(?:[.,]\d++)*+%?+(?>\s*(?:/|\||{_EITHER}|[,;、&]|(?:,\s*)?and\b|\n[\s*•-]*|或|和)\s*(?:(?:or|and)\s)?|\s))+)$"
)
_MOST_NUMBERS = 12
"""More different numbers than this in a text are a working: its last sentence alone states a result."""
_MOST_STATED = 8


def numbers_beside(text: str, start: int, end: int) -> Beside:
    """The numbers in one list with ``text[start:end]``: joined to it by or, and, comma, slash or space."""
    numbers: list[str] = []
    either = False
    at = end
    while joint := _NUMBER_JOINT.match(text, at, min(len(text), end + _REACH)):
        number = _NUMBER.match(text, joint.end())
        if number is None:
            break
        either = either or joint["either"] is not None
        numbers.append(number[0])
        at = number.end()
    if before := _NUMBERS_BEFORE.search(text[max(0, start - _REACH // 4) : start]):
        either = either or re.search(r"/|\||\b(?:or|maybe|perhaps|possibly)\b|或", before[1]) is not None
        numbers += _NUMBER.findall(before[1])
    return Beside(tuple(dict.fromkeys(numbers)), either)


def concluding_numbers(text: str) -> tuple[int, int] | None:
    """Span of the result in a text with many numbers; None for few numbers.

    The span is empty where its last sentence with numbers still has too many of them to be a result.
    """
    numbers = list(_NUMBER.finditer(text))
    if len({number[0] for number in numbers}) <= _MOST_NUMBERS:
        return None
    last = numbers[-1]
    begin = max(text.rfind(mark, 0, last.start()) for mark in ("\n", ". ", "! ", "? ", "。")) + 1
    stated = {number[0] for number in numbers if number.start() >= begin}
    return (begin, len(text)) if len(stated) <= _MOST_STATED else (len(text), len(text))
