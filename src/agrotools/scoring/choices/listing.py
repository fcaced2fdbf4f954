"""One or several options named at one place: ``A``, ``A和C``, ``A. 轮作、B. 深耕``, 轮作和深耕, 错误."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agrotools.scoring.choices.item import Item
from agrotools.scoring.choices.naming import ITEM_END, ITEM_STOP, Named, Text, named_at

_SEPARATOR = re.compile(
    r"[^\S\n]*(?:"
    r"(?P<or>(?:[,、/]\s*)?(?:或者?|还是|亦或|(?:or|nor)\b))|"
    r"(?P<and>(?:[,;、][^\S\n]*)?(?:和|与|及|以及|还有|并且?|同|(?:and|plus)\b))|"
    r"(?P<close>[、·])|(?P<loose>[,;/&+|])|(?P<to>[-~–至到](?=\s*[A-Za-z](?![A-Za-z])))|"
    r"(?P<adjacent>(?<=[)\]】])(?=[(\[【]))|(?P<space>)(?<=\s)(?!\())"
)


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


def listing_at(said: Text, position: int, item: Item, *, small: bool = False, subject: bool = False) -> Listing | None:
    """The options named from ``position`` on, on one line; None where no option stands there.

    ``small``: lower-case letters count too. ``subject``: a verb may follow the list (A,B是对的); else what it follows
    belongs to another clause (选C,A是错的).
    """
    one = named_at(said, position, item, small=small)
    if one is None:
        return None
    found, joints = [one], [""]
    while len(found) <= 2 * len(item.keys):
        joint = _SEPARATOR.match(said.low, found[-1].end)
        if joint is None:
            break
        following = named_at(said, joint.end(), item, small=small or said.text[found[0].start].islower())
        loose = joint["loose"] is not None or joint["space"] is not None
        end = ITEM_STOP if loose and not subject else ITEM_END
        bound = joint["and"] is not None or joint["adjacent"] is not None
        if following is None or (not bound and not end.match(said.text, following.end)):
            break
        if joint["to"] is not None:
            following = _range(found[-1], following, item)
        found.append(following)
        joints.append(joint.lastgroup or "")
    count = _one_clause(joints)
    return _joined(found[:count], either="or" in joints[:count])


def _one_clause(joints: list[str]) -> int:
    """How many of the options belong to one list: a comma beside 、 or behind "and" begins another clause."""
    for place, joint in enumerate(joints):
        if joint == "loose" and ("close" in joints[place:] or "and" in joints[:place]):
            return place
    return len(joints)


def _joined(found: Sequence[Named | Listing], *, either: bool = False) -> Listing:
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


def _range(first: Named, last: Named, item: Item) -> Named:
    """``A-C``: the options between as well."""
    if first.keys and last.keys and (low := item.keys.index(first.keys[-1])) < (high := item.keys.index(last.keys[0])):
        return last._replace(keys=item.keys[low : high + 1])
    return last


_LINE_BEGIN = re.compile(r"[^\S\n]*(?:[-*•·|]+[^\S\n]*)?(?:\d{1,2}[^\S\n]*[.)、|][^\S\n]*)?")
_LINE_END = re.compile(r"[^\S\n]*(?:这?[两三四五六七]个?(?:选?项)?|吧|哦|呢|等)?[。.;,、|!]*[^\S\n]*(?:\n|\Z)")
_ANNOUNCED = re.compile(r"(?:[【\[(]\s*)?(?:正确|最终|参考|标准)?(?:答案|answer)")
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
        if found and _ANNOUNCED.match(said.low, begin.end() if begin else end):
            break
        listing = listing_at(said, begin.end() if begin else end, item, small=True)
        close = _LINE_END.match(said.text, listing.end) if listing else None
        if listing is None or close is None:
            break
        found.append(listing._replace(end=close.end()))
        blank = _BLANK.match(said.text, close.end())
        end = blank.end() if blank else close.end()
    if not found:
        return None
    return Block(_joined(found, either=any(each.either for each in found)), len(found))
