"""One option named at one place: by its letter, by its text, by both, by a word for true or false."""

import re
from functools import cache
from typing import NamedTuple

from agrotools.scoring.choices.item import Item, truth_at
from agrotools.scoring.choices.prepare import BOXED, lowered
from agrotools.scoring.choices.words import any_of

_RUN = re.compile(r"[A-Za-z]+(?![A-Za-z0-9_])")
_OPEN = re.compile(rf"[ \t(\[{{<〔〈【「『《\"'*•{BOXED}]*")
_OPEN_NOUN = re.compile(rf"(?:选项|答案|(?:options?|choices?|answers?)\b)[ \t:(\[{{〔\"'【{BOXED}]*")
_CLOSE = re.compile(r"[^\S\n]*[)\]}>〕〉】」』》\"'*]+")
_BESIDE = re.compile(r"[^\S\n]*[.、:)(\-\"'\]】=|][^\S\n]*[(\"']?|[^\S\n]+|")
_NOUN = re.compile(r"[^\S\n]*(?:选项|答案|项(?!目)|(?:option|choice|answer)\b)")
_GLOSS = re.compile(r"[^\S\n]*\((?![A-Z]{1,7}\))[^()\n错误应不√×]{1,40}\)")
_STATEMENT = re.compile(r"的?(?:说法|表述|观点|叙述|陈述|描述|命题)")
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Named(NamedTuple):
    """What one name names: one option, or the options of a run of letters. The flags are those of ``Listing``."""

    start: int
    end: int
    keys: tuple[str, ...]
    outside: bool = False
    conflict: bool = False
    worded: bool = False


class Text(NamedTuple):
    """Prepared text, and the same in lower case."""

    text: str
    low: str


def as_text(text: str) -> Text:
    return Text(text, lowered(text))


_GAP = re.compile(r"[\s,;。.、|*-]*[(【]?([A-Za-z])[)】]?[^\S\n]*[.、:)]?[^\S\n]*")


def without_options(said: Text, item: Item) -> Text:
    """``said`` without the options of the question where it repeats them all in order and says more than that."""
    begin = end = -1
    for key, name in zip(item.keys, item.names, strict=True):
        at = said.low.find(name, max(end, 0)) if name else -1
        gap = _GAP.fullmatch(said.low, max(end, at - 8, 0), at) if at >= 0 else None
        if gap is None or gap[1] != key.lower() or (end >= 0 and at - end > 12):
            return said
        begin, end = (gap.start(1) if begin < 0 else begin), at + len(name)
    left = said.text[:begin] + "\n" + said.text[end:].lstrip(" ;。.,)】")
    return as_text(left.strip()) if left.strip(" \n。.;,*|(【") else said


@cache
def _after_letter() -> re.Pattern[str]:
    """What shows that a letter is part of a name or a word: B超, A型, D-葡萄糖, E. coli, AB两个品种."""
    nouns = any_of("not_letter_nouns")
    return re.compile(
        rf"[^\S\n]?{any_of('not_letter_after')}|[-_][A-Za-z0-9\u4e00-\u9fff]|['°]\w|"
        rf"(?:这?[两三四五几]|[^\S\n]*等)[个种块块家片]?{nouns}|/[A-Za-z]{{2}}|/[H-Z](?![A-Za-z])"
    )


_SPECIES = re.compile(r"\. ?[a-z]{3}")
_ARTICLE = re.compile(
    r"[^\S\n]+(?!(?:is|are|was|and|or|because|as|since|but|for|seems|would|should|must|fits)\b)[a-z]{2}"
)
_STOP = (
    r"\Z|[\n,;、。.!?)\]}】」\"'|:(/&+]|和|与|及|以及|或|还|都|均|全|皆|等|这?[两三四五六七二][个者项]|中的|以外|之外|外|"
    r"(?:and|or|both|because|since)\b"
)
_VERB = r"是|为|对|正确|符合|即|也|不|错|当选|入选|应选|(?:are|is)\b"
_NEXT_LETTER = r"[^\S\n]+[A-Z]{1,3}(?![A-Za-z0-9])"
ITEM_STOP = re.compile(rf"[^\S\n]*(?:选?项)?[^\S\n]*(?:{_STOP})|{_NEXT_LETTER}")
"""What may stand behind an option of a list, no verb."""
ITEM_END = re.compile(rf"[^\S\n]*(?:选?项)?[^\S\n]*(?:{_STOP}|{_VERB}|选?项)|{_NEXT_LETTER}")
"""The same, or a verb that speaks of the list."""

_RUN_END = re.compile(r"[^\S\n]*(?:\Z|[\n,;、。.!)\]}】」\"'])")


def letters_at(said: Text, position: int, item: Item, *, small: bool) -> Named | None:
    """The run of option letters at ``position``; ``small``: lower-case ones count too."""
    run = _RUN.match(said.text, position)
    if run is None or len(run[0]) > max(len(item.keys), 1) + 1:
        return None
    written, end = run[0], run.end()
    big = written.upper()
    if (written != big and not (small and written.islower())) or len(set(big)) < len(big):
        return None
    if item.truth and big in ("T", "F", "X") and big not in item.letters:
        return None
    known = [item.letters[letter] for letter in big if letter in item.letters]
    outside = len(known) < len(big)
    if written != big and (outside or (len(big) > 1 and not _RUN_END.match(said.text, end))):
        return None
    if outside and (big not in _CAPITALS if len(big) == 1 else max(big) > "H"):
        return None
    if len(big) > len(item.keys) and not outside:
        return None
    if _after_letter().match(said.low, end) and not _own_text(said, end, known, item):
        return None
    if _SPECIES.match(said.text, end) and not _own_text(said, end, known, item):
        return None
    if written in ("A", "a") and _ARTICLE.match(said.text, end) and not _own_text(said, end, known, item):
        return None
    return Named(position, end, tuple(known), outside=outside)


def _own_text(said: Text, end: int, known: list[str], item: Item) -> bool:
    """Whether the text of one of these options stands right behind the letter."""
    beside = _BESIDE.match(said.low, end)
    found = item.text_at(said.low, beside.end() if beside else end)
    return found is not None and found[0] in known


def named_at(said: Text, position: int, item: Item, *, small: bool) -> Named | None:
    """One letter (with its text, where that stands beside it), one option text, one word for true or false."""
    start = _OPEN.match(said.low, position)
    at = start.end() if start else position
    if not item.truth and (text := item.text_at(said.low, at)):
        return _closed(said, _with_letter(said, Named(at, text[1], (text[0],), worded=True)))
    if noun := _OPEN_NOUN.match(said.low, at):
        at = noun.end()
        if not item.truth and (text := item.text_at(said.low, at)):
            return _closed(said, _with_letter(said, Named(at, text[1], (text[0],), worded=True)))
    opened = said.text[position:at]
    noted = "(" in opened or BOXED in opened or '"' in opened
    letters = letters_at(said, at, item, small=small or noted)
    if letters is None:
        if item.truth and (truth := truth_at(said.low, at)):
            said_so = _STATEMENT.match(said.low, truth[1])
            end = said_so.end() if said_so else truth[1]
            return _closed(said, Named(at, end, (item.truth[truth[0]],), worded=True))
        return None
    return _with_text(said, _closed(said, letters), item)


def _closed(said: Text, one: Named) -> Named:
    close = _CLOSE.match(said.text, one.end)
    return one._replace(end=close.end()) if close else one


_ITS_LETTER = re.compile(r"[^\S\n]*\(([A-Za-z])\)")


def _with_letter(said: Text, one: Named) -> Named:
    """An option text with its own letter in brackets behind it."""
    letter = _ITS_LETTER.match(said.text, one.end)
    own = letter is not None and letter[1].upper() == one.keys[0].upper()
    return one._replace(end=letter.end()) if letter and own else one


def _with_text(said: Text, one: Named, item: Item) -> Named:
    """``one`` with the option text that stands beside its letter."""
    noun = _NOUN.match(said.low, one.end)
    end = noun.end() if noun else one.end
    beside = _BESIDE.match(said.low, end)
    at = beside.end() if beside else end
    named: tuple[str, int] | None
    if item.truth:
        truth = truth_at(said.low, at)
        named = (item.truth[truth[0]], truth[1]) if truth else None
    else:
        named = item.text_at(said.low, at)
    if named and len(one.keys) == 1:
        if named[0] == one.keys[0]:
            return _closed(said, one._replace(end=named[1]))
        if at > end and ITEM_END.match(said.text, named[1]) and said.text[end:at].strip() != "、":
            return _closed(said, one._replace(end=named[1], conflict=True))
    gloss = _GLOSS.match(said.text, end)
    return one._replace(end=gloss.end() if gloss else end)
