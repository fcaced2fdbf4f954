r"""Search for the keywords of an objective task in an answer, replacing the word boundaries of the published rule.

``\b`` matches only between a word character and another character. The published rule therefore cannot find the alias
``-3`` or ``50%`` in most contexts, nor ``5`` before a Chinese letter, and it finds ``2`` in ``2.5`` and in ``-2``. Here

* both texts are normalised first (widths, minus signs, case);
* a number is compared by value: ``1,200`` and ``1200.0`` match ``1200``, while neither ``2.5`` nor ``-2`` matches
``2``; a known unit may follow directly (``2kg``); an alias with ``$`` or ``%`` needs that mark, one without accepts
any;
* other words must not continue where they begin or end with a letter or digit; Chinese, Japanese and Korean letters are
exempt because they are written without spaces.

A keyword does not count within a pile of words or numbers that would match any keyword
(:mod:`agrotools.scoring.open_text`), nor does a yes or no in an answer that says both. Only the first 64 kB of an
answer count.

Parts of fractions, times and dates are separate numbers, as in the published rule.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from agrotools.core import BenchmarkError
from agrotools.scoring.answer_text import LONGEST_ANSWER
from agrotools.scoring.open_text import MOST_PLACES, KeywordLists, asks_yes_or_no
from agrotools.scoring.yes_no_reading import plain_answers
from agrotools.text.loose_json import is_list, is_object, is_text
from agrotools.text.normalise import WORD, WORD_END, WORD_START, normalise
from agrotools.text.units import unit_at

_MONEY = "$€£¥₹"
_DIGITS = r"(?:[1-9]\d{0,2}(?:,\d{3})++(?!\d)|\d++)"
_NUMBER = re.compile(
    rf"(?P<sign>{WORD_START}(?<![)\]}}.%])[-+]|{WORD_START}(?:minus|negative) )?"
    rf"(?P<money>[{_MONEY}])?"
    rf"(?P<value>{WORD_START}(?<!\d\.){_DIGITS}(?:\.\d++)?|{WORD_START}(?<!\.)\.\d++)"
    r"(?!\.\d)"
)
_ALIAS = re.compile(
    rf"(?P<sign>[-+])? ?(?P<money>[{_MONEY}])?(?P<value>(?:[1-9]\d{{0,2}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|\.\d+)"
    r"(?P<percent> ?%)?"
)
_PERCENT = re.compile(rf" ?(?:%|percent{WORD_END}|per cent{WORD_END})")
_LONGEST = 60
"""Number of characters above which a number is compared as text."""


class StatedNumber(NamedTuple):
    """Number in a text: its value, its money and percent signs, and its span."""

    value: Decimal
    money: str
    percent: bool
    start: int = 0
    end: int = 0


def is_scorable(reference: Any) -> bool:
    """Return True if the keyword lists of an objective task contain a keyword."""
    return any(_groups(reference, "whitelist")) or any(_groups(reference, "blacklist"))


def check(reference: Any, where: str) -> None:
    """Check the form of ``reference``, two lists of lists of texts; BenchmarkError if it has another one."""
    for name in ("whitelist", "blacklist"):
        groups: Any = reference.get(name) if is_object(reference) else 0
        if groups is None and name == "blacklist":
            continue
        lists: Any = groups if is_list(groups) else [None]
        if not all(is_list(group) and all(map(is_text, group)) for group in lists):
            raise BenchmarkError(
                f"{where}: the {name} of the answer is no list of lists of texts",
                hint='it looks like {"whitelist": [["2", "two"]], "blacklist": null}',
            )


def matches_keywords(answer: str, reference: Any) -> bool:
    """Return True if ``answer`` states an alias of each group of the whitelist and none of the blacklist.

    ``reference`` must have passed :func:`check`. Empty groups and empty aliases are ignored.
    """
    text = normalise(answer[:LONGEST_ANSWER])
    numbers = _numbers(text)
    whitelist = _groups(reference, "whitelist")
    keyword_lists = KeywordLists(text, [alias for group in whitelist for alias in group])
    polarities = {answered for answered, _ in plain_answers(text)}
    both = {asks_yes_or_no(group) for group in whitelist} >= {True, False}
    for group in whitelist:
        if asks_yes_or_no(group) is not None and len(polarities) > 1 and not both:
            return False
        if not any(states_alias(alias, text, numbers, keyword_lists) for alias in group):
            return False
    unwanted = (alias for group in _groups(reference, "blacklist") for alias in group)
    return not any(True for alias in unwanted for _ in _find_alias(alias, text, numbers))


def _groups(reference: Any, name: str) -> list[list[str]]:
    groups: list[list[str]] = reference.get(name) or []
    named_groups = [[alias for alias in group if alias.strip()] for group in groups]
    return [group for group in named_groups if group]


def states_alias(alias: str, text: str, numbers: list[StatedNumber], keyword_lists: KeywordLists) -> bool:
    places = list(_find_alias(alias, text, numbers))
    places = places[:MOST_PLACES] + places[MOST_PLACES:][-MOST_PLACES:]
    return any(not keyword_lists.holds(start, end) for start, end in places)


def _find_alias(alias: str, text: str, numbers: list[StatedNumber]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each place where ``text`` states ``alias``."""
    number, pattern = _alias_pattern(alias)
    if number is None:
        yield from (match.span() for match in pattern.finditer(text))
        return
    for stated in numbers:
        if (
            stated.value == number.value
            and (not number.money or stated.money == number.money)
            and (not number.percent or stated.percent)
        ):
            yield stated.start, stated.end


@lru_cache(maxsize=20_000)
def _alias_pattern(alias: str) -> tuple[StatedNumber | None, re.Pattern[str]]:
    text = normalise(alias).strip()
    match = _ALIAS.fullmatch(text)
    if match and len(text) <= _LONGEST and not re.match(r"0\d", match["value"]):
        value = Decimal(match["value"].replace(",", ""))
        value = -value if match["sign"] == "-" else value
        return StatedNumber(value, match["money"] or "", bool(match["percent"])), re.compile("")
    words = r"\s+".join(map(re.escape, text.split()))
    return None, re.compile(_left_boundary(text[:1]) + words + _right_boundary(text[-1:]))


def _left_boundary(first: str) -> str:
    if first.isdecimal():
        # Neither the end of a longer number nor a negative number.
        return rf"{WORD_START}(?<!\d[.,])(?<![^\w)\]][-+])(?<!^[-+])"
    return rf"{WORD_START}" if re.match(WORD, first) else r"(?<![\w)\]])" if first in ("-", "+") else ""


def _right_boundary(last: str) -> str:
    if last.isdecimal():
        return rf"{WORD_END}(?![.,]\d)"
    return rf"{WORD_END}" if re.match(WORD, last) else ""


_WORD = re.compile(WORD)


def _numbers(text: str) -> list[StatedNumber]:
    numbers: list[StatedNumber] = []
    for match in _NUMBER.finditer(text):
        end = match.end()
        if len(match["value"]) > _LONGEST or re.match(r"0\d", match["value"]):
            continue
        if _WORD.match(text, end) and unit_at(text, end) is None:
            continue
        value = Decimal(match["value"].replace(",", ""))
        minus = match["sign"] in ("-", "minus ", "negative ") and not _subtracts(text, match)
        percent = bool(_PERCENT.match(text, end))
        numbers.append(StatedNumber(-value if minus else value, match["money"] or "", percent, match.start(), end))
    return numbers


def _subtracts(text: str, match: re.Match[str]) -> bool:
    """Return True if a minus written as a word follows a number, as in "5 minus 3"."""
    before = text[max(0, match.start() - 2) : match.start()].rstrip()
    return match["sign"] not in ("-", "+") and before[-1:].isdecimal()
