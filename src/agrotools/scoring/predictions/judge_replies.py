"""Reading the score out of what a judge of Agent-X replied.

The judge is told to write a Python dict, ``{'Score': ..., 'Justification': ...}``; how the published tables read that
is not known. Here: the last object in the reply that has a score, in either kind of quotes, in a fence or among prose;
else the last ``Score: ...``; else a reply that is nothing but a number. ``0.5/1`` and ``80%`` are shares. What is no
number between 0 and 1 is unreadable.
"""

import math
import re
from typing import Any, NamedTuple

from agrotools.text.loose_json import NotJson, is_list, is_object, is_text, loads, values_in

_THINKING = re.compile(r"^.*</think>", re.DOTALL)
_SHARE = re.compile(
    r"\s*+(?P<number>[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d{1,3})?)\s*+"
    r"(?:(?P<percent>%)|/\s*+(?P<whole>\d++(?:\.\d++)?))?\s*+",
    re.ASCII | re.IGNORECASE,
)
_NAMED = re.compile(rf"\bscore\b['\"*`]*+\s*+[:=]\s*+['\"*`]*+(?P<share>{_SHARE.pattern})", re.ASCII | re.IGNORECASE)
_LONGEST = 200_000


class JudgeScore(NamedTuple):
    """``value`` between 0 and 1; None where the reply is missing or says no score, which ``rule`` tells apart."""

    value: float | None
    rule: str


MISSING, UNREADABLE, BEYOND = "missing", "unreadable", "not between 0 and 1"


def read_judge_score(reply: Any) -> JudgeScore:
    """The score in a saved reply: a text, an object, a number, or null. Never raises."""
    if reply is None or (is_text(reply) and not reply.strip()):
        return JudgeScore(None, MISSING)
    if not is_text(reply):
        value: Any = _scored(reply) if is_object(reply) else reply
        return _share(value, "value")
    text: str = _THINKING.sub("", reply[:_LONGEST])
    for start, end in reversed(values_in(text)):
        try:
            value = _scored(loads(text[start:end]))
        except NotJson:
            continue
        if value is not None:
            return _share(value, "object")
    named = [match["share"] for match in _NAMED.finditer(text)]
    if named:
        return _share(named[-1], "score:")
    return _share(text.strip().strip("`'\"* "), "number")


def _scored(value: Any) -> Any:
    """What stands under the key score, in any case; None where there is none."""
    if is_list(value) and len(value) == 1:
        value = value[0]
    if not is_object(value):
        return None
    return next((item for key, item in value.items() if str(key).strip().lower() == "score"), None)


def _share(value: Any, rule: str) -> JudgeScore:
    if isinstance(value, bool):
        return JudgeScore(None, UNREADABLE)
    number = float("nan")
    if isinstance(value, int | float):
        number = math.inf if abs(value) > 1e9 else float(value)
    elif is_text(value) and (match := _SHARE.fullmatch(value)):
        number = float(match["number"])
        whole = 100.0 if match["percent"] else float(match["whole"] or 1)
        number = number / whole if whole else math.nan
    if math.isnan(number):
        return JudgeScore(None, UNREADABLE)
    return JudgeScore(number, rule) if 0 <= number <= 1 else JudgeScore(None, BEYOND)
