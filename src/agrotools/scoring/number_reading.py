"""Reader of the number that an answer gives for a slot: by the slot's name, else by weighted features."""

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core.form_item import FormItem
from agrotools.scoring.answer_text import AnswerText, Scope, sentences, without_markup
from agrotools.scoring.keyed_values import keyed_scopes, mentions, without_other_values
from agrotools.scoring.number_candidates import Candidate, find_candidates, only_quantity
from agrotools.scoring.number_cues import DIFFERENCE, in_unit
from agrotools.scoring.slot_subject import Subject, speaks_of, subject
from agrotools.text.normalise import WORD_END, WORD_START, late_pattern
from agrotools.text.numbers import Quantity, find_quantities
from agrotools.text.units import canonical_unit

_CLOSE = 2.5
"""Maximum difference in score from the chosen number to a joined number that counts as an alternative."""
_ALTERNATIVELY_CLOSE = 4.5
"""Maximum difference in score for a number after "or" or "possibly"."""
_KEYED_CLOSE = 1.5
"""Maximum difference in score for the numbers of a value after the slot's name."""
_MOST_ALTERNATIVES = 120


class Choice(NamedTuple):
    """Numbers that an answer states: one, none, or several if it does not decide; ``reasons`` are the main features."""

    chosen: tuple[Candidate, ...]
    reasons: tuple[str, ...]


@lru_cache(maxsize=1)
def weights() -> dict[str, float]:
    """Return the weight of each feature, fitted on labelled replies (``training/fit_number_reading.py``)."""
    return json.loads((files("agrotools") / "data" / "number_reading.json").read_text("utf-8"))["weights"]


def score(candidate: Candidate) -> float:
    """Return the weighted sum of the features of ``candidate``."""
    known = weights()
    return sum(known.get(name, 0.0) * value for name, value in candidate.features.items() if value)


def choose(candidates: Sequence[Candidate], *, keyed: bool) -> Choice:
    """Choose the number with the best features, and the numbers that the answer gives as alternatives to it."""
    if not candidates:
        return Choice((), ())
    if keyed:
        candidates = [each for each in candidates if not _explains(each, candidates[0])]
    candidates = _without_parts(_without_terms(candidates, keyed=keyed))
    scores = [score(each) for each in candidates]
    scored = list(zip(candidates, scores, strict=True))
    groups: dict[tuple[float, float], list[int]] = {}
    for index, each in enumerate(candidates):
        groups.setdefault((float(f"{each.low:.9g}"), float(f"{each.high:.9g}")), []).append(index)
    summed = {value: _log_sum([scores[index] for index in members]) for value, members in groups.items()}
    value = max(summed, key=summed.__getitem__)
    best = max(groups[value], key=scores.__getitem__)
    first = candidates[best]
    close = [each for each, points in scored if points > scores[best] - _CLOSE]
    far = [each for each, points in scored if points > scores[best] - _ALTERNATIVELY_CLOSE or _directly_or(first, each)]
    chosen = [first]
    if keyed:
        limit = scores[best] - _KEYED_CLOSE
        chosen += [each for each, points in scored if points > limit and each is not first]
    chosen += [each for each in _alternatives(first, close, far) if each not in chosen]
    return Choice(tuple(chosen), _reasons(first))


def _without_parts(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Remove parts such as "37 of them white" after "40 sheep" if sheep are counted."""
    if not any(each.features["noun asked"] for each in candidates):
        return candidates
    wholes = [
        each for each in candidates if each.features["words near"] or not _OF_THEM.match(each.text, each.quantity.end)
    ]
    return wholes or candidates


def _without_terms(candidates: Sequence[Candidate], *, keyed: bool) -> Sequence[Candidate]:
    """Remove the numbers whose product or sum is the number that their sentence begins with: "42, 6 rows of 7".

    They explain it, unless nothing tells what they are ("42, 20 and 22") or they lead to another value ("17 - 3 = 14").
    """
    for _, sentence in groupby(candidates, key=lambda each: each.sentence):
        first, *terms = whole = [*sentence]
        values, near = [each.low for each in terms], [each.features["words near"] for each in whole]
        ends = [each.quantity.end if each.features["noun other"] else each.quantity.start for each in terms]
        if (
            len(terms) > 1
            and any(within(first.low, 0.0, each, first.high) for each in (sum(values), math.prod(values)))
            and not re.search(r"\w", first.text[: first.quantity.start])
            and (first.features["noun asked"] or _ENDS_VALUE.match(first.text, first.quantity.end))
            and (keyed or near[0] == max(near))
            and any(_TELLS.search(first.text, one.quantity.end, end) for one, end in zip(whole, ends, strict=False))
            and not any(cue.search(first.text, first.quantity.start) for cue in (_ALTERNATIVE, DIFFERENCE))
            and not any(terms[-1].features[name] for name in ("after equals", "after gives", "concluded just before"))
        ):
            candidates = [each for each in candidates if each not in terms]
    return candidates


_ENDS_VALUE = late_pattern(r" ?(?:[,;:([=]|(?:in total|in all|altogether)(?![a-z]))")
_TELLS = late_pattern(rf"{WORD_START}(?!and{WORD_END})[^\W\d_]{{2,}}|[×*+x:=(]")
_OF_THEM = late_pattern(r" ?of (?:them|these|those|which)(?![a-z])")


def _explains(other: Candidate, first: Candidate) -> bool:
    """Return True if ``other`` explains ``first``: "62 (60 stacked, 2 on the ground)", "62, of which 2 are torn"."""
    if _OF_WHICH.search(other.text[: other.quantity.start]) and other.low < first.low:
        return other.features["words near"] <= first.features["words near"]
    if not other.phrase.bracketed or first.phrase.bracketed or not other.phrase.explained:
        return False
    opened = max(other.text.rfind("(", 0, other.quantity.start), 0)
    return _ALTERNATIVE.search(other.text, opened, other.quantity.start) is None


_OF_WHICH = late_pattern(r"\d,? (?:of (?:which|whom|these|them)|including) (?:about |only )?$|其中[^,;\d]*$")


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def _reasons(candidate: Candidate) -> tuple[str, ...]:
    known = weights()
    weighed = [(known.get(name, 0.0) * value, name) for name, value in candidate.features.items() if value]
    strongest = sorted((each for each in weighed if each[0] > 0), key=lambda each: -each[0])
    return tuple(name for _, name in strongest[:3])


# "Or 15", "but possibly 20": a further candidate, regardless of the words between.
_ALTERNATIVE = late_pattern(
    rf"{WORD_START}(?:or(?! (?:so|thereabouts|more|less|fewer|above|below|over|under|up|[a-z]+er){WORD_END})|"
    r"either|possibly|perhaps|maybe|alternatively|might|could|may|"
    rf"if not|versus|vs|according to[^,.;\d]*and){WORD_END}|或|也许|也可能|可能(?:是|有|为)"
)
_LISTED = late_pattern(r"[\s,;/|、，；&]*")


def _alternatives(first: Candidate, close: Sequence[Candidate], far: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of the same sentence that are listed with ``first`` or given as alternatives to it."""
    same = [each for each in far if each.sentence == first.sentence]
    at = same.index(first)
    rivals = [
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
            listed = other in close and _LISTED.fullmatch(between)
            if other.features["like a year"] and not first.features["like a year"]:
                break
            if len(between) > _MOST_ALTERNATIVES or not (listed or _ALTERNATIVE.search(between)):
                break
            rivals.append(other)
            one, index = other, index + step
    return rivals


_DIRECTLY_OR = late_pattern(r",? ?(?:or|或者?) ?")


def _directly_or(one: Candidate, other: Candidate) -> bool:
    """Return True if only "or" separates two numbers."""
    if one.sentence != other.sentence:
        return False
    first, second = sorted((one.quantity, other.quantity), key=lambda quantity: quantity.start)
    return _DIRECTLY_OR.fullmatch(one.text, first.end, second.start) is not None


_MAX_EXCERPT = 240
_LIKE = 2.5
"""Maximum difference in score to a rival: another number in a sentence with the same words."""


class NumberReading(NamedTuple):
    """Candidates read for a item, as low and high ends in its unit, with the details of the reading."""

    candidates: tuple[tuple[float, float], ...]
    used_form: bool
    reading: dict[str, JsonValue]


def read_number(item: FormItem, items: Sequence[FormItem], answer: AnswerText) -> NumberReading:
    """Read the number that ``answer`` states for ``item``; several different candidates if it does not decide."""
    unit = canonical_unit(item.unit)
    keyed = keyed_scopes(
        item,
        items,
        answer,
        lambda text: _has_number(text) or _says_none(text),
        lambda line: _NUMBER_LINE.fullmatch(line) is not None,
    )
    readings = [_keyed(item, items, unit, scope) for scope in keyed] or [_unkeyed(item, items, unit, answer)]
    usable = [each for each in readings if each.candidates] or readings[-1:]
    merged = _merged([_signed(item, each) for each in usable])
    reading: dict[str, JsonValue] = {"scope": merged.scope.kind, "text": merged.scope.text[:_MAX_EXCERPT]}
    if merged.candidates:
        reading["candidate"] = list(merged.written)
        reading["value"] = [low if low == high else [low, high] for low, high in merged.candidates]
    return NumberReading(merged.candidates, merged.scope.keyed, {**reading, "rule": merged.rule})


class _ScopeReading(NamedTuple):
    """Reading of one scope: candidates in the slot's unit, their text and the rule."""

    scope: Scope
    candidates: tuple[tuple[float, float], ...]
    written: tuple[str, ...]
    rule: str
    turn: int = 0
    """-1 if the text calls the value a decrease, 1 for an increase, else 0."""


def _merged(readings: Sequence[_ScopeReading]) -> _ScopeReading:
    """Merge the readings of several keys of one slot: the value that is the total of the others, else all values."""
    if len(readings) == 1:
        return readings[0]
    candidates = _distinct([candidate for each in readings for candidate in each.candidates])
    if len(candidates) == 1 or any(len(each.candidates) != 1 for each in readings):
        return readings[-1]._replace(candidates=candidates)
    total = _total(candidates)
    if total is not None:
        return next(each for each in readings if each.candidates[0] == total)._replace(rule="total of the other values")
    written = tuple(dict.fromkeys(text for each in readings for text in each.written))
    return readings[-1]._replace(candidates=candidates, written=written, rule="the key is given more than once")


def _distinct(candidates: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    distinct: list[tuple[float, float]] = []
    for low, high in dict.fromkeys(candidates):
        if not any(within(low, 0.0, other, other) and within(high, 0.0, top, top) for other, top in distinct[-20:]):
            distinct.append((low, high))
    return tuple(distinct)


def _total(candidates: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the candidate that is the sum of all others, of which there must be at least two."""
    if not 3 <= len(candidates) <= 60 or any(low != high for low, high in candidates):
        return None
    whole = sum(low for low, _ in candidates)
    return next(
        (each for each in candidates if each[0] and within(each[0], 0.0, whole - each[0], whole - each[0])), None
    )


_NUMBER_LINE = late_pattern(r"[-*•~≈]? ?-?\d[\d.,]*(?: ?[^\W\d_][\w/²^-]*| ?%){0,2}\W?")


def _has_number(text: str) -> bool:
    return any(not quantity.denied for quantity in find_quantities(text))


def _keyed(item: FormItem, items: Sequence[FormItem], unit: str | None, scope: Scope) -> _ScopeReading:
    text = _VALUE_FIRST.sub(r"\1\n", _before_next_key(scope.text))
    if (only := only_quantity(item, text, unit, scope.unit)) is not None:
        return _ScopeReading(scope, (in_unit(only, unit),), (_as_written(only),), _ONLY)
    candidates = find_candidates(item, items, text, unit, own_unit=scope.unit)
    if not candidates:
        if not find_quantities(text) and _says_none(text):
            return _ScopeReading(scope, ((0.0, 0.0),), ("none",), "none is 0")
        return _ScopeReading(scope, (), (), _why_nothing(text))
    result = _result(text, [each.quantity for each in candidates])
    if result is not None:
        candidates = [each for each in candidates if each.quantity is result]
    return _as_found(scope, choose(candidates, keyed=True))


_ONLY = "the only number"
_VALUE_FIRST = late_pattern(r"\A(\d{1,2}\.) (?!\d)(?!.* \d{1,2}[.)] )")
"""A value that a sentence follows, which is no list mark: "9. The trees stand in rows"."""
_NEXT_KEY = late_pattern(r"[.;,。] ?(?:[^\W\d_]+ ?){1,4}[:=] ?")


def _before_next_key(text: str) -> str:
    """Cut a value before the next key: "sixteen. Geese: four", "15; thereof damaged: 2"."""
    for key in _NEXT_KEY.finditer(text):
        if _has_number(text[: key.start()]):
            return text[: key.start()]
    return text


def _unkeyed(item: FormItem, items: Sequence[FormItem], unit: str | None, answer: AnswerText) -> _ScopeReading:
    text = without_other_values(item, items, answer.plain)
    candidates = find_candidates(item, items, text, unit, emphasised(answer.text))
    parts = sentences(text)
    if _GONE.search(f"{item.name} {item.label}"):  # "no new ponds" says nothing about disappeared ponds
        candidates = [each for each in candidates if not each.features["none"]] or candidates
    if not candidates:
        scope = Scope("nothing", answer.plain)
        if _NONE_ALONE.fullmatch(text.strip()):
            return _ScopeReading(scope._replace(kind="whole text"), ((0.0, 0.0),), ("none",), "none is 0")
        return _ScopeReading(scope, (), (), _why_nothing(answer.plain[: 4 * _MAX_EXCERPT]))
    choice = choose(candidates, keyed=False)
    first = choice.chosen[0]
    labelled = bool(first.features["label in sentence"])
    scope = Scope("sentence with the label" if labelled else "last sentence that fits", first.text)
    if (labelled and _COULD_NOT.search(first.text, first.quantity.end)) or (
        not labelled and any(_COULD_NOT.search(part) and mentions(part, item, items) for part in parts[-20:])
    ):
        return _ScopeReading(scope._replace(kind="whole text"), (), (), "declared unknown")
    if _GONE.search(f"{item.name} {item.label}") and any(_NONE_GONE.search(part) for part in parts):
        return _ScopeReading(scope._replace(kind="whole text"), ((0.0, 0.0),), ("none",), "none is 0")
    if not (target := subject(item)).years:
        choice = choice._replace(chosen=(*choice.chosen, *_rivals(first, candidates, target)))
    return _as_found(scope, choice)


_BOXED = late_pattern(r"\*\*([^*\n]{1,90})\*\*|\\boxed\s?\{([^{}]{1,60}(?:\{[^{}]{0,40}\}[^{}]{0,20})?)\}")


@lru_cache(maxsize=64)
def emphasised(text: str) -> frozenset[float]:
    """Return the numbers that ``text`` writes in bold or in a box."""
    marked = (without_markup(box[1] or box[2]) for box in _BOXED.finditer(text))
    return frozenset(quantity.low for part in marked for quantity in find_quantities(part))


_COULD_NOT = late_pattern(
    r"\b(?:could not|couldn't|cannot|can't|unable to|not able to) "
    r"(?:determine|find|measure|estimate|count|give|say|tell|know|state|work out)\b"
)


def _rivals(first: Candidate, candidates: Sequence[Candidate], target: Subject) -> list[Candidate]:
    """Return the candidates of sentences that differ only in the number: "It is 14. It is 15.", a list of numbers."""
    shape = _shape(first.text, target)
    return [
        each
        for each in candidates
        if each.sentence != first.sentence
        and len(each.text) < 200
        and _shape(each.text, target) == shape
        and score(each) > score(first) - _LIKE
    ][:20]


def _shape(part: str, target: Subject) -> str:
    """Return a sentence with masked numbers and without a key that does not name the subject of the question."""
    head, _, tail = part.rpartition(": ")
    if not speaks_of(head, target.words):
        head = ""
    return head + re.sub(r"[\d.,' ]*\d", "#", tail).strip(" .*#-") + "#"


def _as_found(scope: Scope, choice: Choice) -> _ScopeReading:
    candidates = _distinct([(each.low, each.high) for each in choice.chosen])
    if len(candidates) == 2:
        candidates = _without_conversions([each.quantity for each in choice.chosen], candidates)
    written = tuple(_as_written(each.quantity) for each in choice.chosen[:20])
    rule = ", ".join(choice.reasons) or _ONLY
    return _ScopeReading(scope, candidates, written, rule, _turn(choice.chosen[0].phrase.words))


_FALLS = late_pattern(
    rf"{WORD_START}(?:decreas\w*|loss(?:es)?|los[et]\w*|declin\w*|drop\w*|fell|falls?|fallen|reduc\w*|shr[aiu]nk\w*|"
    rf"diminish\w*|lower\w*|less|fewer|smaller|down|cool\w*|colder|shorter|thinner|lighter|drier|below|shallower|"
    rf"narrower|decline[sd]?){WORD_END}|减少|下降|减小|减产|损失|降低|降了|缩小|少|低于|变冷|比[^,。;]{{1,15}}低"
)
_RISES = late_pattern(
    rf"{WORD_START}(?:increas\w*|gain\w*|grew|grown|grows?|rose|risen|rises?|expand\w*|warmer|hotter|taller|heavier|"
    rf"wetter|higher|deeper|wider){WORD_END}|增加|增长|增产|扩大|上升|升高|比[^,。;]{{1,15}}高"
)
_NET = late_pattern("net change|change (?:in|of)|变化")


def _turn(words: str) -> int:
    """Return -1 if ``words`` state a decrease, 1 for an increase, 0 for neither or both."""
    return (_RISES.search(words) is not None) - (_FALLS.search(words) is not None)


def _signed(item: FormItem, reading: _ScopeReading) -> _ScopeReading:
    """Return the reading with the sign that the slot asks for.

    "a decrease of 3.2 ha" is -3.2 ha if the slot asks for a change. If it asks for a loss, a gain is negative.
    """
    label = f"{item.name} {item.label}".replace("_", " ").lower()
    direction = 1 if _NET.search(label) else _turn(label)
    if reading.turn * direction != -1 or any(low < 0 for low, _ in reading.candidates):
        return reading
    turned = tuple((-high, -low) for low, high in reading.candidates)
    return reading._replace(
        candidates=turned, rule=f"{reading.rule}; {'a decrease' if direction > 0 else 'an increase'}"
    )


_CONVERSION_ROUNDING = 0.02


def _without_conversions(
    chosen: Sequence[Quantity], candidates: tuple[tuple[float, float], ...]
) -> tuple[tuple[float, float], ...]:
    """Merge two candidates that are the same rounded value in different units: ``3 in (76 mm)``."""
    units = {quantity.unit for quantity in chosen}
    if len(units) != 2 or None in units:
        return candidates
    (low, high), (other, top) = candidates
    if within(low, _CONVERSION_ROUNDING * abs(low), other, other) and within(
        high, _CONVERSION_ROUNDING * abs(high), top, top
    ):
        return candidates[:1]
    return candidates


_WORKED_OUT = late_pattern(r" ?[(\[]? ?=[^=]*$")
_OPERATORS = late_pattern(r"[-+*/×÷·x=≈()\[\]| ]*")


def _result(text: str, fitting: Sequence[Quantity]) -> Quantity | None:
    """Return the result of a value that is written as a calculation: ``8 + 6 = 14`` or ``14 = 8 + 6``."""
    if (
        len(fitting) > 1
        and _WORKED_OUT.match(text, fitting[0].end)
        and _OPERATORS.fullmatch(re.sub(r"[\d.,]+", "", text[fitting[0].end :]))
    ):
        return fitting[0]  # 14 = 8 + 6
    equals = max(text.rfind("="), text.rfind("≈"))
    behind = next((quantity for quantity in fitting if equals >= 0 and quantity.start > equals), None)
    if behind is None:
        return None
    terms = find_quantities(text[:equals])
    ends = [0, *(term.end for term in terms)]
    between = [text[end : term.start] for end, term in zip(ends, terms, strict=False)] + [text[ends[-1] : equals]]
    joints = "".join(between[1:])
    return behind if terms and _OPERATORS.fullmatch(joints) and joints.strip(" ()[]=|") else None


_NONE = late_pattern(r"[^\w\n]*(?:none|nothing|nil|zero|no|没有|无|零)\b[^\d\n]{0,40}")
_NONE_ALONE = late_pattern(r"\W*(?:none|nothing|nil|没有|无)\W*")
_GONE = late_pattern(r"(?<![a-z])(?:disappear|vanish|lost|loss|gone)|消失|损失")
_NONE_GONE = late_pattern(
    rf"{WORD_START}(?:no|none of)(?: (?!(?:longer|more) )[a-z]+){{1,5}}? "
    rf"(?:disappeared|vanished|lost|gone|missing){WORD_END}|"
    r"没有[^,。;\d]{0,10}(?:消失|损失)"
)


def _says_none(text: str) -> bool:
    """Return True if a value says none: "none", "no trees", 没有."""
    return _NONE.fullmatch(text.strip()) is not None


def _why_nothing(text: str) -> str:
    quantities = find_quantities(text)
    if any(quantity.denied for quantity in quantities):
        return "no number that fits: those given are negated or bounds"
    return "no number that fits"


def _as_written(quantity: Quantity) -> str:
    value = f"{quantity.low:.10g}" if quantity.low == quantity.high else f"{quantity.low:.10g} to {quantity.high:.10g}"
    name = quantity.unit or quantity.noun
    return f"{value} {name}" if name else value


def within(value: float, margin: float, low: float, high: float) -> bool:
    """Return True if both bounds are within ``margin`` of ``value``, with a relative tolerance of 1e-9."""
    slack = 1e-9 * max(abs(value), abs(low), abs(high))
    return slack < math.inf and abs(low - value) <= margin + slack and abs(high - value) <= margin + slack
