"""The choice among the numbers of an answer: weighed features, and what makes an answer undecided."""

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from agrotools.scoring.number_features import Candidate
from agrotools.text.normalise import WORD

_CLOSE = 2.5
"""A number joined to the chosen one is an alternative to it if its score lies at most this far below."""
_ALTERNATIVELY_CLOSE = 4.5
"""The same for a number behind "or", "possibly"."""
_KEYED_CLOSE = 1.5
"""The same for the numbers of a value that stands behind the slot's name."""
_MOST_ALTERNATIVES = 120


class Choice(NamedTuple):
    """What an answer states: one value, several between which it does not decide, or none; and why."""

    chosen: tuple[Candidate, ...]
    reasons: tuple[str, ...]


@lru_cache(maxsize=1)
def weights() -> dict[str, float]:
    """The weight of each feature, fitted on labelled replies (``training/fit_number_reading.py``)."""
    return json.loads((files("agrotools") / "data" / "number_reading.json").read_text("utf-8"))["weights"]


def score(candidate: Candidate) -> float:
    """The weighed sum of the features of ``candidate``."""
    known = weights()
    return sum(known.get(name, 0.0) * value for name, value in candidate.features.items() if value)


def choose(candidates: Sequence[Candidate], *, keyed: bool) -> Choice:
    """The number that the weighed features favour, with those that the answer gives as alternatives to it."""
    if not candidates:
        return Choice((), ())
    if keyed:
        candidates = _outside_brackets(candidates)
    candidates = _without_parts(_of_asked_kind(candidates))
    scores = [score(each) for each in candidates]
    scored = list(zip(candidates, scores, strict=True))
    groups: dict[tuple[float, float], list[int]] = {}
    for index, each in enumerate(candidates):
        groups.setdefault((float(f"{each.low:.9g}"), float(f"{each.high:.9g}")), []).append(index)
    summed = {value: _log_sum([scores[index] for index in members]) for value, members in groups.items()}
    value = max(summed, key=summed.__getitem__)
    best = max(groups[value], key=scores.__getitem__)
    first = candidates[best]
    close = [each for each, own in scored if own > scores[best] - _CLOSE]
    far = [each for each, own in scored if own > scores[best] - _ALTERNATIVELY_CLOSE or _directly_or(first, each)]
    chosen = [first]
    if keyed:
        limit = scores[best] - _KEYED_CLOSE
        chosen += [each for each, own in scored if own > limit and each is not first and not _explains(each, first)]
    chosen += [each for each in _alternatives(first, close, far) if each not in chosen]
    return Choice(tuple(chosen), _reasons(first))


def _of_asked_kind(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """``candidates`` without the largest where the mean is asked, if one is said to be the mean."""
    if not any(each.features["kind asked"] and not each.features["other kind"] for each in candidates):
        return candidates
    return [each for each in candidates if not each.features["other kind"]]


def _without_parts(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """``candidates`` without "37 of them white" beside "40 sheep", where sheep are counted."""
    if not any(each.features["noun asked"] for each in candidates):
        return candidates
    kept = [
        each for each in candidates if each.features["words near"] or not _OF_THEM.match(each.text, each.quantity.end)
    ]
    return kept or candidates


_OF_THEM = re.compile(r" ?of (?:them|these|those|which)(?![a-z])")


def _outside_brackets(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """``candidates`` without those in brackets that explain, if others stand before them: "13-15 (n = 14)"."""
    first = candidates[0]
    return [each for each in candidates if not _explains(each, first)]


def _explains(other: Candidate, first: Candidate) -> bool:
    """Whether ``other`` stands in brackets that explain ``first``: "62 (60 stacked, 2 on the ground)"."""
    if other.features["part"] and not first.features["part"]:
        return True
    if not other.phrase.bracketed or first.phrase.bracketed or not other.phrase.explained:
        return False
    opened = max(other.text.rfind("(", 0, other.quantity.start), 0)
    return _ALTERNATIVE.search(other.text, opened, other.quantity.start) is None


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def _reasons(candidate: Candidate) -> tuple[str, ...]:
    known = weights()
    weighed = [(known.get(name, 0.0) * value, name) for name, value in candidate.features.items() if value]
    told = sorted((each for each in weighed if each[0] > 0), key=lambda each: -each[0])
    return tuple(name for _, name in told[:3])


# "Or 15", "but possibly 20": a further candidate, whatever stands between.
_ALTERNATIVE = re.compile(
    rf"(?<!{WORD})(?:or(?! (?:so|thereabouts|more|less|fewer|above|below|over|under|up|[a-z]+er)(?!{WORD}))|"
    r"either|possibly|perhaps|maybe|alternatively|might|could|may|"
    rf"if not|versus|vs|according to[^,.;\d]*and)(?!{WORD})|或|也许|也可能|可能(?:是|有|为)"
)
_LISTED = re.compile(r"[\s,;/|、，；&]*")


def _alternatives(first: Candidate, close: Sequence[Candidate], far: Sequence[Candidate]) -> list[Candidate]:
    """Candidates of the same sentence that are listed with ``first``, or given as alternatives to it."""
    same = [each for each in far if each.sentence == first.sentence]
    at = same.index(first)
    found = [
        each
        for each in same
        if each in close
        and each.quantity.chain == first.quantity.chain
        and each is not first
        and not each.features["of them"]
    ]
    for step in (1, -1):
        one, index = first, at + step
        while 0 <= index < len(same):
            other = same[index]
            left, right = (one, other) if step > 0 else (other, one)
            between = first.text[left.quantity.end : right.quantity.start]
            listed = other in close and _LISTED.fullmatch(between) and _alike(left, right)
            if other.features["like a year"] and not first.features["like a year"]:
                break
            if len(between) > _MOST_ALTERNATIVES or not (listed or _ALTERNATIVE.search(between)):
                break
            found.append(other)
            one, index = other, index + step
    return found


_DIRECTLY_OR = re.compile(r",? ?(?:or|或者?) ?")


def _directly_or(one: Candidate, other: Candidate) -> bool:
    """Whether nothing but "or" stands between two numbers."""
    if one.sentence != other.sentence:
        return False
    first, second = sorted((one.quantity, other.quantity), key=lambda quantity: quantity.start)
    return _DIRECTLY_OR.fullmatch(one.text, first.end, second.start) is not None


def _alike(left: Candidate, right: Candidate) -> bool:
    """Whether two numbers of a list count or measure the same: "14, 15 trees", but not "116 trees, 5 of them"."""
    one, other = left.quantity, right.quantity
    return one.bare or (one.unit, one.noun) == (other.unit, other.noun)
