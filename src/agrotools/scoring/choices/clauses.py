"""What the words around a place in a reply do to it: whether its clause supposes, denies or contrasts."""

import re
from functools import cache

from agrotools.scoring.choices.naming import Text
from agrotools.scoring.choices.words import END, any_of, pattern_of

_CLAUSE, _SENTENCE = ("。", "\n", ";", "!", "?", ". ", ","), ("。", "\n", ";", "!", "?", ". ")


def clause_start(said: Text, position: int, marks: tuple[str, ...] = _CLAUSE) -> int:
    """Where the clause at ``position`` begins, at most 120 characters before."""
    first = max(0, position - 120)
    return max(first, *(said.low.rfind(mark, first, position) + 1 for mark in marks))


def sentence_start(said: Text, position: int) -> int:
    return clause_start(said, position, _SENTENCE)


_ONE_HAS_TO_CHOOSE = re.compile(r"选|猜|choose|pick|guess|say")
_SO = re.compile(r"\s*(?:所以|因此|故|therefore|thus|hence|so\b)")


def conditional(said: Text, position: int) -> bool:
    """Whether the clause at ``position`` only supposes (如果是A), or an earlier one of its sentence does.
    如果一定要选 supposes nothing, and what begins with 所以 does not depend on it."""
    condition = pattern_of("condition")
    clause, sentence = clause_start(said, position), sentence_start(said, position)
    if condition.search(said.low, clause, position):
        return True
    if clause == sentence or _SO.match(said.low, clause):
        return False
    earlier = condition.search(said.low, sentence, clause)
    return earlier is not None and _ONE_HAS_TO_CHOOSE.search(said.low, earlier.end(), clause) is None


@cache
def _denial() -> re.Pattern[str]:
    return re.compile(
        rf"[^\S\n]*(?:{any_of('between_and_denial')}[^\S\n]*){{0,4}}{any_of('deny_after')}(?!\s?[a-z](?![a-z0-9]))|"
        r"\s*,\s*(?:都|均|也|全|但|其实|实际上|却|这|显然|并)*(?:不对|不正确|不符合?|不合适|不成立|不准确|错误?|有误|×)"
        rf"[\u4e00-\u9fff]{{0,4}}{END}"
    )


@cache
def _supposed() -> re.Pattern[str]:
    return re.compile(rf"[^\S\n]*{any_of('supposed')}")


@cache
def _explanation() -> re.Pattern[str]:
    return re.compile(rf"[\s,]*[(【\[]?\s*{any_of('explanation')}")


_CONTRAST = re.compile(
    r"[\s,]*而?(?:不是|并非|非|不选|别选|(?:not|rather than|instead of)\b)[^\S\n]*选?[a-z](?![a-z0-9])"
)


def denied_after(said: Text, position: int) -> bool:
    """Whether what stands before ``position`` is called wrong right behind it: A和B都不对."""
    return _denial().match(said.low, position) is not None


def supposed_after(said: Text, position: int) -> bool:
    """Whether what stands before ``position`` is asked or supposed: A? 选A的话."""
    return _supposed().match(said.low, position) is not None


def contrasted_after(said: Text, position: int) -> bool:
    """Whether another letter is denied right behind: D不是A, "D, not A"."""
    return _CONTRAST.match(said.low, position) is not None


def explained_after(said: Text, position: int) -> bool:
    """Whether an explanation begins: 解析, 因为, "because"."""
    return _explanation().match(said.low, position) is not None
