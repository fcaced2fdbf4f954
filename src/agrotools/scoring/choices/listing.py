"""One or several options named at one place: ``A``, ``A和C``, ``A. 轮作、B. 深耕``, 轮作和深耕, 错误."""

import re
from functools import cache
from typing import NamedTuple

from agrotools.scoring.choices.item import Item, truth_at
from agrotools.scoring.choices.prepare import BOXED, lowered
from agrotools.scoring.choices.words import any_of

_RUN = re.compile(r"[A-Za-z]+(?![A-Za-z0-9_])")
_OPEN = re.compile(
    rf"(?:[^\S\n]|[(\[{{<【「『《\"'*•{BOXED}])*"
    rf"(?:(?:选项|答案|(?:options?|choices?|answers?)\b)(?:[^\S\n]|[:(\[{{\"'【{BOXED}])*)?",
    re.IGNORECASE,
)
_CLOSE = re.compile(r"[^\S\n]*[)\]}>】」』》\"'*]+")
_BESIDE = re.compile(r"[^\S\n]*[.、:)(\-\"'\]】=|][^\S\n]*[(\"']?|[^\S\n]+|")
_NOUN = re.compile(r"[^\S\n]*(?:选项|答案|项(?!目)|(?:option|choice|answer)\b)")
_SEPARATOR = re.compile(
    r"[^\S\n]*(?:"
    r"(?P<or>(?:[,、/]\s*)?(?:或者?|还是|亦或|(?:or|nor)\b))|"
    r"(?P<and>(?:[,;、][^\S\n]*)?(?:和|与|及|以及|还有|并且?|同|(?:and|plus)\b))|"
    r"(?P<close>[、·])|(?P<loose>[,;/&+|])|(?P<to>[-~–至到](?=\s*[A-Za-z](?![A-Za-z])))|(?P<space>)(?<=\s))"
)
_OUTSIDE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Listing(NamedTuple):
    """``keys`` in the order in which they stand. ``outside``: a letter that is no option is among them. ``conflict``: a
    letter stands beside the text of another option. ``either``: joined by "or". ``worded``: named by text alone."""

    start: int
    end: int
    keys: tuple[str, ...]
    outside: bool = False
    conflict: bool = False
    either: bool = False
    worded: bool = False

    @property
    def sound(self) -> bool:
        return not (self.outside or self.conflict or self.either)


class _One(NamedTuple):
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


@cache
def _after_letter() -> re.Pattern[str]:
    """What shows that a letter is part of a name or a word: B超, A型, D-葡萄糖, E. coli, AB两个品种."""
    nouns = any_of("not_letter_nouns")
    return re.compile(
        rf"[^\S\n]?{any_of('not_letter_after')}|[-_][A-Za-z0-9\u4e00-\u9fff]|['°]\w|"
        rf"(?:这?[两三四五几]|[^\S\n]*等)[个种块块家片]?{nouns}|/[A-Za-z]{{2}}|/[H-Z](?![A-Za-z])"
    )


_SPECIES = re.compile(r"\. ?[a-z]{3}")
_ARTICLE = re.compile(r"[^\S\n]+(?!(?:is|are|was|and|or|because|as|since|but|for|seems|would|should|must|fits)\b)[a-z]")
_ITEM_END = re.compile(
    r"[^\S\n]*(?:\Z|[\n,;、。.!?)\]}】」\"'|:(/&+]|\Z|和|与|及|以及|或|还|都|均|全|皆|项|选项|等|这?[两三四五六七二][个者项]|是|为|对|正确|符合|即|也|不|错|当选|入选|应选|"
    r"(?:and|or|are|is|both|because|since)\b)|[^\S\n]+[A-Z]{1,3}(?![A-Za-z0-9])"
)


_RUN_END = re.compile(r"[^\S\n]*(?:\Z|[\n,;、。.!)\]}】」\"'])")


def letters_at(said: Text, position: int, item: Item, *, small: bool) -> _One | None:
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
    if outside and (big not in _OUTSIDE if len(big) == 1 else max(big) > "H"):
        return None
    if len(big) > len(item.keys) and not outside:
        return None
    if _after_letter().match(said.low, end) and not _own_text(said, end, known, item):
        return None
    if _SPECIES.match(said.text, end) and not _own_text(said, end, known, item):
        return None
    if written in ("A", "a") and _ARTICLE.match(said.text, end) and not _own_text(said, end, known, item):
        return None
    return _One(position, end, tuple(known), outside=outside)


def _own_text(said: Text, end: int, known: list[str], item: Item) -> bool:
    """Whether the text of one of these options stands right behind the letter."""
    beside = _BESIDE.match(said.low, end)
    found = item.text_at(said.low, beside.end() if beside else end)
    return found is not None and found[0] in known


def _one_at(said: Text, position: int, item: Item, *, small: bool) -> _One | None:
    """One letter (with its text, where that stands beside it), one option text, one word for true or false."""
    start = _OPEN.match(said.text, position)
    at = start.end() if start else position
    noted = bool(start and ("(" in start[0] or BOXED in start[0] or '"' in start[0]))
    if not item.truth and (text := item.text_at(said.low, at)):
        return _closed(said, _with_letter(said, _One(at, text[1], (text[0],), worded=True)))
    letters = letters_at(said, at, item, small=small or noted)
    if letters is None:
        if item.truth and (truth := truth_at(said.low, at)):
            return _closed(said, _One(at, truth[1], (item.truth[truth[0]],), worded=True))
        return None
    return _with_text(said, _closed(said, letters), item)


def _closed(said: Text, one: _One) -> _One:
    close = _CLOSE.match(said.text, one.end)
    return one._replace(end=close.end()) if close else one


_ITS_LETTER = re.compile(r"[^\S\n]*\(([A-Za-z])\)")


def _with_letter(said: Text, one: _One) -> _One:
    """An option text with its own letter in brackets behind it."""
    letter = _ITS_LETTER.match(said.text, one.end)
    own = letter is not None and letter[1].upper() == one.keys[0].upper()
    return one._replace(end=letter.end()) if letter and own else one


def _with_text(said: Text, one: _One, item: Item) -> _One:
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
        if at > end and _ITEM_END.match(said.text, named[1]) and said.text[end:at].strip() != "、":
            return _closed(said, one._replace(end=named[1], conflict=True))
    return one._replace(end=end)


def listing_at(said: Text, position: int, item: Item, *, small: bool = False) -> Listing | None:
    """The options named from ``position`` on, on one line; None where no option stands there."""
    one = _one_at(said, position, item, small=small)
    if one is None:
        return None
    found, joints = [one], [""]
    either = False
    while len(found) <= 2 * len(item.keys):
        joint = _SEPARATOR.match(said.low, found[-1].end)
        if joint is None:
            break
        following = _one_at(said, joint.end(), item, small=small or said.text[found[0].start].islower())
        if following is None or (joint["and"] is None and not _ITEM_END.match(said.text, following.end)):
            break
        if joint["to"] is not None:
            following = _range(found[-1], following, item)
        either = either or joint["or"] is not None
        found.append(following)
        joints.append(joint.lastgroup or "")
    if "loose" in joints and "close" in joints:
        # A comma beside 、 divides clauses: 选B,A、C错.
        found = found[: joints.index("loose")] if joints.index("loose") < joints.index("close") else found
    keys = tuple(dict.fromkeys(key for each in found for key in each.keys))
    return Listing(
        found[0].start,
        found[-1].end,
        keys,
        outside=any(each.outside for each in found),
        conflict=any(each.conflict for each in found),
        either=either and len(keys) > 1,
        worded=all(each.worded for each in found),
    )


def _range(first: _One, last: _One, item: Item) -> _One:
    """``A-C``: the options between as well."""
    if first.keys and last.keys and (low := item.keys.index(first.keys[-1])) < (high := item.keys.index(last.keys[0])):
        return last._replace(keys=item.keys[low : high + 1])
    return last


_LINE_BEGIN = re.compile(r"[^\S\n]*(?:[-*•·|]+[^\S\n]*)?(?:\d{1,2}[^\S\n]*[.)、|][^\S\n]*)?")
_LINE_END = re.compile(r"[^\S\n]*(?:吧|哦|呢)?[。.;,、|!]*[^\S\n]*(?:\n|\Z)")
_BLANK = re.compile(r"\s*")


class Block(NamedTuple):
    """Lines that hold nothing but options. ``lines``: how many."""

    listing: Listing
    lines: int


def block_at(said: Text, position: int, item: Item) -> Block | None:
    """The lines from ``position`` on that hold nothing but options: a list with one option on each line, too."""
    found: list[Listing] = []
    end = position
    while len(found) <= len(item.keys):
        begin = _LINE_BEGIN.match(said.text, end)
        listing = listing_at(said, begin.end() if begin else end, item, small=True)
        close = _LINE_END.match(said.text, listing.end) if listing else None
        if listing is None or close is None:
            break
        found.append(listing._replace(end=close.end()))
        blank = _BLANK.match(said.text, close.end())
        end = blank.end() if blank else close.end()
    if not found:
        return None
    keys = tuple(dict.fromkeys(key for each in found for key in each.keys))
    merged = Listing(
        found[0].start,
        found[-1].end,
        keys,
        outside=any(each.outside for each in found),
        conflict=any(each.conflict for each in found),
        either=any(each.either for each in found),
        worded=all(each.worded for each in found),
    )
    return Block(merged, len(found))
