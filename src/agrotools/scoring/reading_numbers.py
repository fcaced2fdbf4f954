"""Reading a number out of an answer: which sentence, which candidates, whether the value is within tolerance."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import ExactSlot, Slot, ToleranceSlot
from agrotools.scoring.reading import AnswerText, Scope, ScopeKind, after_correction, sentences
from agrotools.scoring.reading_keyed import keyed_scopes, mentions, without_other_values
from agrotools.scoring.reading_qualifiers import (
    Phrase,
    Subject,
    bound_elsewhere,
    elsewhere,
    has_subject,
    kinds,
    kinds_of,
    of_another,
    phrases,
    speaks_of,
    spoken,
    subject,
)
from agrotools.text.normalise import CJK, WORD
from agrotools.text.numbers import Quantity, find_quantities
from agrotools.text.units import canonical_unit, compatible, convert

_MARKER = re.compile(
    r"[=≈→]|(?<!\d):|:(?!\d)|\b(?:is|are|was|were|about|approximately|gives?|giving|yields?|makes?|making|equals?|"
    r"found|so|therefore|thus|hence|i\.e\.|that is|remain(?:s|ing)?)\b|为|是|约|得|共|达|有"
)
_CONCLUDES = re.compile(
    r"\b(?:in total|totals?|total(?:ling|ing)|altogether|in all|sum|combined|found|so|therefore|thus|hence|"
    r"answer|final|today|nowadays|at present|currently|"
    r"result|conclusion|overall)\b|总|共|合计|因此|所以|答案|结论|现在|目前"
)
_OPERATORS = re.compile(r"[-+*/×÷·x=≈()\[\]| ]*")
# "Or 15", "but possibly 20": a further candidate, whatever stands between.
_ALTERNATIVE = re.compile(
    rf"(?<!{WORD})(?:or(?! (?:so|thereabouts){{1}})|either|possibly|perhaps|maybe|alternatively|might|could|may|"
    rf"if not|versus|vs|according to[^,.;\d]*and)(?!{WORD})|或|也许|也可能|可能(?:是|有|为)"
)
_SHOWN = 240
_MOST_SENTENCES = 1_000


class NumberReading(NamedTuple):
    """The candidates read for a slot (in its unit, as low and high ends) and how they were found."""

    candidates: tuple[tuple[float, float], ...]
    used_form: bool
    reading: dict[str, JsonValue]


def read_number(slot: ToleranceSlot | ExactSlot, slots: Sequence[Slot], answer: AnswerText) -> NumberReading:
    """The number that ``answer`` states for ``slot``; several different candidates where it does not decide."""
    unit = canonical_unit(slot.unit)
    keyed = keyed_scopes(slot, slots, answer, lambda text: bool(_quantities(text)) or _says_none(text))
    found = [_keyed(slot, unit, scope) for scope in keyed] or [_unkeyed(slot, slots, unit, answer)]
    given = [each for each in found if each.candidates] or found[-1:]
    merged = _merged([_signed(slot, each) for each in given])
    reading: dict[str, JsonValue] = {"scope": merged.scope.kind, "text": merged.scope.text[:_SHOWN]}
    if merged.candidates:
        reading["candidate"] = list(merged.shown)
        reading["value"] = [low if low == high else [low, high] for low, high in merged.candidates]
    return NumberReading(merged.candidates, merged.scope.keyed, {**reading, "rule": merged.rule})


class _Found(NamedTuple):
    """What one scope gives: candidates in the slot's unit, as written, and by which rule."""

    scope: Scope
    candidates: tuple[tuple[float, float], ...]
    shown: tuple[str, ...]
    rule: str
    turn: int = 0
    """-1: said to be a decrease, 1: an increase."""


def _merged(found: Sequence[_Found]) -> _Found:
    """What several keys of one slot say: the total of the others if one is, else all that they say."""
    if len(found) == 1:
        return found[0]
    candidates = _distinct([candidate for each in found for candidate in each.candidates])
    if len(candidates) == 1 or any(len(each.candidates) != 1 for each in found):
        return found[-1]._replace(candidates=candidates)
    total = _total(candidates, found[-1].scope.text)
    if total is not None:
        return next(each for each in found if each.candidates[0] == total)._replace(rule="total of the other values")
    shown = tuple(dict.fromkeys(text for each in found for text in each.shown))
    return found[-1]._replace(candidates=candidates, shown=shown, rule="the key stands more than once")


def _distinct(candidates: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    kept: list[tuple[float, float]] = []
    for low, high in dict.fromkeys(candidates):
        if not any(within(low, 0.0, other, other) and within(high, 0.0, top, top) for other, top in kept[-20:]):
            kept.append((low, high))
    return tuple(kept)


# 12 is the sum of 9 and 3, and 3 their difference.
_DIFFERENCE = re.compile(
    rf"(?<!{WORD})(?:differ\w*|minus|less|fewer|loss|lost|decreas\w*|fell|drop\w*|declin\w*|more than|gap|gain\w*)"
    rf"(?!{WORD})|"
    r"\d\s?-\s?\d|差|减|增|缺|欠|缩"
)


def _total(candidates: Sequence[tuple[float, float]], text: str) -> tuple[float, float] | None:
    """The candidate that is the sum of all others, of which there are at least two."""
    if not 3 <= len(candidates) <= 60 or _DIFFERENCE.search(text) or any(low != high for low, high in candidates):
        return None
    whole = sum(low for low, _ in candidates)
    return next(
        (each for each in candidates if each[0] and within(each[0], 0.0, whole - each[0], whole - each[0])), None
    )


def _keyed(slot: ToleranceSlot | ExactSlot, unit: str | None, scope: Scope) -> _Found:
    found = _counts_per_area(scope.text, _quantities(scope.text), unit)
    if scope.unit:
        found = [replace(quantity, unit=scope.unit) if quantity.bare else quantity for quantity in found]
    fitting = _fitting(found, unit)
    if not fitting:
        if not found and _says_none(scope.text):
            return _Found(scope, ((0.0, 0.0),), ("none",), "none is 0")
        return _Found(scope, (), (), _why_nothing(scope.text))
    return _decided(slot, unit, scope, fitting, keyed=True)


def _unkeyed(slot: ToleranceSlot | ExactSlot, slots: Sequence[Slot], unit: str | None, answer: AnswerText) -> _Found:
    text = without_other_values(slot, slots, answer.plain)
    corrected = text[after_correction(text, weak=False) :]
    asked = subject(slot)
    for body in (corrected, text):
        parts = sentences(body)[-_MOST_SENTENCES:]
        quantities = [_counts_per_area(part, _quantities(part), unit) for part in parts]
        stated = _without_rates(parts, quantities, asked, unit)
        main = [[] if _ASIDE.match(part) else found for part, found in zip(parts, stated, strict=True)]
        stated = main if any(_fitting(found, unit) for found in main) else stated
        index, kind = _sentence(slot, slots, unit, parts, stated)
        if index is not None or body == text:
            break
    if index is None:
        nothing = Scope("nothing", answer.plain)
        if _none_of(parts, asked.words):
            return _Found(nothing._replace(kind="whole text"), ((0.0, 0.0),), ("none",), "none is 0")
        return _Found(nothing, (), (), _why_nothing(answer.plain[: 4 * _SHOWN]))
    scope = Scope(kind, parts[index])
    if kind != "sentence with the label" and any(
        _COULD_NOT.search(part) and mentions(part, slot, slots) for part in parts[-20:]
    ):
        return _Found(scope._replace(kind="whole text"), (), (), "declared unknown")
    if _GONE.search(f"{slot.name} {slot.label}") and any(_NONE_GONE.search(part) for part in parts):
        return _Found(scope._replace(kind="whole text"), ((0.0, 0.0),), ("none",), "none is 0")
    found = _decided(slot, unit, scope, _fitting(stated[index], unit), keyed=False)
    masked = _shape(parts[index])
    rivals = (
        []
        if asked.years or _asked_for(scope.text, asked)
        else [at for at, part in enumerate(parts) if at != index and len(part) < 200 and _shape(part) == masked]
    )
    for at in rivals[:20]:  # "It is 14. It is 15.", or a list of bare numbers
        if fitting := _fitting(stated[at], unit):
            other = _decided(slot, unit, scope._replace(text=parts[at]), fitting, keyed=False)
            candidates = _distinct(found.candidates + other.candidates)
            if len(candidates) > len(found.candidates):
                rule = "the same sentence stands with other numbers"
                found = found._replace(candidates=candidates, shown=found.shown + other.shown, rule=rule)
    return found


# Sentences that state something else than what was found.
_ASIDE = re.compile(
    r"\W*(?:(?:for|in|by) (?:comparison|reference)|as a reference|if|for example|作为对比|相比之下|如果)(?![a-z])"
)
_EACH_HAS = re.compile(r"\b(?:each|every)(?: [a-z]+){1,3} (?:has|holds|contains|have) (?:about )?$")
_COULD_NOT = re.compile(
    r"\b(?:could not|couldn't|cannot|can't|unable to|not able to) (?:determine|find|measure|estimate|count|give)\b"
)
_RATE = re.compile(
    rf" ?/ ?[a-z]|(?: (?!and|or|in|on|with){WORD}+)?,? "
    rf"(?:per|an? (?:day|week|month|year)|each|every|apiece|daily)(?!{WORD})"
)


def _is_rate(part: str, quantity: Quantity) -> bool:
    before = max(0, quantity.start - 60)
    return bool(_RATE.match(part, quantity.end) or _EACH_HAS.search(part, before, quantity.start))


def _without_rates(
    parts: Sequence[str], stated: list[list[Quantity]], asked: Subject, unit: str | None
) -> list[list[Quantity]]:
    """``stated`` without what holds for each of several things ("12 trees per row"), if more is said."""
    if "each" in asked.kinds:
        return stated
    kept = [
        [quantity for quantity in found if quantity.bare or not _is_rate(part, quantity)]
        for part, found in zip(parts, stated, strict=True)
    ]
    return kept if any(_fitting(found, unit) for found in kept) else stated


@lru_cache(maxsize=2_000)
def _shape(part: str) -> str:
    """What a sentence says but for its numbers: "west block: 31 trees" says the same as "east block: 86 trees"."""
    key = _ITEM_KEY.match(part)
    return _masked(part[key.end() :] if key and not _CONCLUDES.search(part) else part)


@lru_cache(maxsize=2_000)
def _masked(part: str) -> str:
    return re.sub(r"[\d.,' ]*\d", "#", part).strip(" .*#-") + "#"


def _sentence(
    slot: Slot, slots: Sequence[Slot], unit: str | None, parts: Sequence[str], stated: Sequence[Sequence[Quantity]]
) -> tuple[int | None, ScopeKind]:
    """The sentence to read: the last with the slot's label, or what concludes behind it; else the last that fits."""
    asked = subject(slot)
    order = range(len(parts) - 1, -1, -1)
    fits = [bool(_fitting(found, unit)) for found in stated]
    said = [spoken(part, asked.words) for part in parts]
    # Beside a number with the unit that is asked, in a sentence about it, no bare number counts.
    explicit = [any(_explicit(each, unit) for each in found) for found in stated]
    if any(fitting and words for fitting, words in zip(explicit, said, strict=True)):
        fits = explicit
    if asked.years and any(fits[index] and _of_year(parts[index], asked) for index in order):
        fits = [fitting and _of_year(part, asked) for fitting, part in zip(fits, parts, strict=True)]

    def last(holds: Callable[[int], bool]) -> int | None:
        return next((index for index in order if fits[index] and holds(index)), None)

    def counts(index: int) -> bool:
        return any(
            _names(parts[index], quantity, asked.words) for quantity in stated[index] if _right_unit(quantity, unit)
        )

    def concludes(index: int) -> bool:
        if index == len(parts) - 1 and len(stated[index]) == 1 and _ALONE.fullmatch(_masked(parts[index])):
            return True
        if not _CONCLUDES.search(parts[index]):
            return False
        best = _fitting(stated[index], unit)
        return counts(index) or any(quantity.bare or quantity.unit for quantity in best)

    def speaks(index: int) -> bool:
        if len(slots) > 1 and mentions(parts[index], slot, slots, others=True):
            return False
        all_said = spoken(parts[index], asked.label) == len(asked.label)
        right_kind = not asked.kinds or bool(asked.kinds & kinds(parts[index]))
        return (
            bool(asked.words)
            and all_said
            and right_kind
            and any(_explicit(quantity, unit) for quantity in stated[index])
        )

    def named_by(index: int) -> bool:
        return mentions(parts[index], slot, slots) or speaks(index)

    # "Two gaps in row 3 point to trees that are gone" states no number of trees.
    named = last(lambda index: named_by(index) and (counts(index) or any(not each.spelled for each in stated[index])))
    named = last(named_by) if named is None else named
    if named is not None and spoken(parts[named], asked.label) == 0:  # the slot's name by chance
        about = max((index for index in order if fits[index]), key=lambda index: said[index])
        named = about if spoken(parts[about], asked.label) > 1 else named
    later = last(lambda index: _asked_for(parts[index], asked))
    if named is not None and later is not None and later > named and not _asked_for(parts[named], asked):
        named = later  # "plants 1 and 2 have 4 and 5 tillers. Mean = 4.5"
    concluded = last(concludes)
    asked_of = [index for index in order if fits[index] and _asked_for(parts[index], asked)]
    if named is None and asked_of and len(asked_of) < sum(fits):
        named = asked_of[0]
    if named is not None:
        if (
            concluded is not None
            and concluded > named
            and not mentions(parts[concluded], slot, slots, others=True)
            and (
                not _asked_for(parts[named], asked)
                or _asked_for(parts[concluded], asked)
                or _CONCLUDES.match(parts[concluded])
                or (concluded == len(parts) - 1 and _ALONE.fullmatch(_masked(parts[concluded])))
            )
        ):
            return concluded, "last sentence that fits"
        return named, "sentence with the label"
    counting = [index for index in range(len(parts)) if fits[index] and counts(index)]
    fullest = max(counting, key=lambda index: (said[index], index), default=None)
    for index in (concluded, fullest):
        if index is not None:
            return index, "last sentence that fits"
    tiers = (_explicit if unit else _unitless, _bare, _any_compatible)
    for spelled in (False, True):
        for tier in tiers:
            for index in order:
                if fits[index] and any(
                    tier(quantity, unit) and quantity.spelled == spelled for quantity in stated[index]
                ):
                    return index, "last sentence that fits"
    return None, "nothing"


def _of_year(part: str, asked: Subject) -> bool:
    return any(year in part for year in asked.years)


_ITEM_KEY = re.compile(r"([^:=\n\d]{0,60}(?:\d\dth )?[^:=\n\d]{1,60})[:=]")
_NOT_SPECIFIC = frozenset("total first second third place each dead setting spread".split())


def _asked_for(part: str, asked: Subject) -> bool:
    """Whether ``part`` is of the kind that is asked, or a line "weed: 18.6 %" whose key has a word of the label."""
    if asked.kinds & kinds(part) - _NOT_SPECIFIC:
        return True
    key = _ITEM_KEY.match(part)
    if key is None or not speaks_of(key[1], asked.words):
        return False
    return bool(asked.kinds & kinds(key[1])) if asked.kinds else not kinds(key[1])


def _quantities(text: str) -> list[Quantity]:
    return [_per_area(text, quantity) for quantity in find_quantities(text) if not quantity.denied]


_PER_AREA = re.compile(
    r"(?: of [a-z]+(?: [a-z]+)?)?(?: per | ?/ ?)(?P<area>hectare|ha|acre|mu|"
    r"square met(?:er|re)|sq m|m\^2|m2)(?![a-z\d^])"
)


def _per_area(text: str, quantity: Quantity) -> Quantity:
    """ "120 kg of nitrogen per hectare" in kg/ha."""
    if quantity.unit is None or (per := _PER_AREA.match(text, quantity.end)) is None:
        return quantity
    unit = canonical_unit(f"{quantity.unit}/{_area(per)}")
    return replace(quantity, unit=unit, end=per.end()) if unit else quantity


def _area(per: re.Match[str]) -> str:
    return canonical_unit(per["area"]) or per["area"]


def _counts_per_area(text: str, quantities: Sequence[Quantity], unit: str | None) -> list[Quantity]:
    """``quantities`` with the unit of "340 planthoppers per m^2" where counts per area are asked."""
    if unit is None or not compatible(unit, "1/m^2"):
        return list(quantities)
    found: list[Quantity] = []
    for quantity in quantities:
        per = _PER_AREA.match(text, quantity.end) if quantity.noun else None
        per_unit = canonical_unit(f"1/{_area(per)}") if per else None
        found.append(replace(quantity, unit=per_unit, noun=None) if per_unit else quantity)
    return found


def _right_unit(quantity: Quantity, unit: str | None) -> bool:
    return quantity.unit is None if unit is None else _explicit(quantity, unit)


def _explicit(quantity: Quantity, unit: str | None) -> bool:
    return unit is not None and quantity.unit is not None and compatible(quantity.unit, unit)


def _unitless(quantity: Quantity, unit: str | None) -> bool:
    return unit is None and quantity.unit is None


def _bare(quantity: Quantity, _unit: str | None) -> bool:
    return quantity.bare


def _any_compatible(quantity: Quantity, unit: str | None) -> bool:
    return quantity.unit is None or _explicit(quantity, unit)


def _fitting(quantities: Sequence[Quantity], unit: str | None) -> list[Quantity]:
    """The quantities that may answer: beside an explicit compatible unit no bare number, beside those no noun."""
    if unit is None:
        return [quantity for quantity in quantities if quantity.unit is None]
    for kind in (_explicit, _bare, _any_compatible):
        fitting = [quantity for quantity in quantities if kind(quantity, unit)]
        if fitting:
            return fitting
    return []


_PHRASE = re.compile(rf"[ -]?((?:(?!(?:and|or|but|with)[ -]){WORD}+[ -]?){{1,4}}|[{CJK}]{{1,6}})")


def _names(text: str, quantity: Quantity, words: frozenset[str]) -> bool:
    """Whether the thing counted is what the slot's label names: "14 apple trees" for "number of trees"."""
    if quantity.noun is None:
        return False
    at = max(quantity.start, quantity.end - len(quantity.noun))
    phrase = _PHRASE.match(text, at)
    if phrase is None:
        return False
    return speaks_of(phrase[1], words)


def _is_counter(text: str, quantity: Quantity) -> bool:
    """Whether a Chinese measure word with no noun behind it follows the number: 多9个."""
    noun = quantity.noun
    return noun is not None and noun > "\u2e80" and not text[quantity.end : quantity.end + 1] > "\u2e80"


_YEAR = re.compile(r"(?<![\d.])(?:19|20)\d\d(?!\d|\.\d)")
_YEAR_BEHIND = re.compile(
    r"(?:(?! and | but | while |,|;|\. |。)[^\d]){0,40}?(?: in (?:the year )?| for |[(])((?:19|20)\d\d)(?!\d|\.\d)"
)
_QUALIFIED = 200
"""Characters before a number in which a year or letter that it belongs to is looked for."""


def _year_behind(text: str, quantity: Quantity) -> str | None:
    behind = _YEAR_BEHIND.match(text, quantity.end)
    return behind[1] if behind else None


def _year(text: str, quantity: Quantity) -> str | None:
    """The year that a number belongs to: the one behind it in its clause, else the last one before it."""
    before = _YEAR.findall(text, max(0, quantity.start - _QUALIFIED), quantity.start)
    return _year_behind(text, quantity) or (before[-1] if before else None)


def _letter(text: str, quantity: Quantity, asked: Subject) -> str | None:
    """The letter of the thing that a number belongs to ("tree A"): the last one before it."""
    if asked.lettered is None:
        return None
    before = [*asked.lettered.finditer(text, max(0, quantity.start - _QUALIFIED), quantity.start)]
    return next((each for each in before[-1].groups() if each), None) if before else None


_ARE = re.compile(r" (?:are|were|is|was) (?:the )?([a-z]+)")


def _is_named(behind: str, asked: Subject) -> bool:
    """Whether the words behind a number say what is counted: "of which 46 are greenhouses"."""
    said = _ARE.match(behind)
    return said is not None and speaks_of(said[1], asked.counted)


def _decided(
    slot: ToleranceSlot | ExactSlot, unit: str | None, scope: Scope, fitting: Sequence[Quantity], *, keyed: bool
) -> _Found:
    """The candidates among ``fitting``, after parts, conversions and values of other things are removed."""
    text = scope.text
    asked = subject(slot)
    around = phrases(text, fitting)
    totals = _distinct([_in_unit(quantity, unit) for quantity in fitting])
    if not keyed and (whole := _total(totals, text)) is not None:
        chosen = [
            quantity
            for quantity, phrase in zip(fitting, around, strict=True)
            if _in_unit(quantity, unit) == whole and "total" in kinds_of(phrase)
            if not any(
                speaks_of(each.words, (word,)) and not speaks_of(phrase.words, (word,))
                for each in around
                for word in asked.words
            )
        ]
        if chosen:
            return _as_found(scope, unit, chosen, [], "total of the other values")
    left, rule = _narrowed(text, list(zip(fitting, around, strict=True)), asked, unit)
    if keyed:
        result = _result(text, [quantity for quantity, _ in left])
        if result is not None:
            return _as_found(scope, unit, [result], left, "result of the calculation")
        chosen = [quantity for quantity, _ in left]
        values = _distinct([_in_unit(quantity, unit) for quantity in chosen])
        if len(values) > 1 and (total := _total(values, text)) is not None:
            chosen = [quantity for quantity in chosen if _in_unit(quantity, unit) == total]
            rule = "total of the other values"
        return _as_found(scope, unit, chosen, left, rule or "number of the value")
    values = _distinct([_in_unit(quantity, unit) for quantity, _ in left])
    if (total := _total(values, text)) is not None:
        chosen = [quantity for quantity, _ in left if _in_unit(quantity, unit) == total]
        return _as_found(scope, unit, chosen, left, "total of the other values")
    first, marked = _marked(text, [quantity for quantity, _ in left], asked.words)
    chosen = [quantity for quantity, _ in left if quantity.chain == first.chain]
    extra = _alternatives(text, [quantity for quantity, _ in left], first)
    extra += [
        other
        for before, other in pairwise(fitting)
        if before is first and _OR_SO.fullmatch(text[before.end : other.start]) and other not in extra
    ]
    if len(chosen) > 1 or extra:
        marked += ", with the numbers joined to it"
    return _as_found(scope, unit, [*chosen, *extra], left, f"{rule}; {marked}" if rule else marked)


_FALLS = re.compile(
    rf"(?<!{WORD})(?:decreas\w*|loss(?:es)?|los[et]\w*|declin\w*|drop\w*|fell|falls?|fallen|reduc\w*|shr[aiu]nk\w*|"
    rf"diminish\w*|lower\w*|less|fewer|smaller|down|cool\w*|colder|shorter|thinner|lighter|drier|below|shallower|"
    rf"narrower|decline[sd]?)(?!{WORD})|减少|下降|减小|损失|降低|缩小|少|低于|变冷|比[^,。;]{{1,15}}低"
)


def _as_found(
    scope: Scope,
    unit: str | None,
    chosen: Sequence[Quantity],
    left: Sequence[tuple[Quantity, Phrase]],
    rule: str,
) -> _Found:
    candidates = _distinct([_in_unit(quantity, unit) for quantity in chosen])
    candidates = candidates if len(candidates) == 1 else _without_conversions(chosen, candidates)
    phrase = next((phrase for quantity, phrase in left if quantity is chosen[0]), None)
    turn = 0 if phrase is None else _turn(phrase.words)
    return _Found(scope, candidates, tuple(_shown(quantity) for quantity in chosen[:20]), rule, turn)


_RISES = re.compile(
    rf"(?<!{WORD})(?:increas\w*|gain\w*|grew|grown|grows?|rose|risen|rises?|expand\w*|warmer|hotter|taller|heavier|"
    rf"wetter|higher|deeper|wider)(?!{WORD})|增加|增长|扩大|上升|升高|比[^,。;]{{1,15}}高"
)
_NET = re.compile("net change|change in|变化量")


def _turn(words: str) -> int:
    """-1 where ``words`` speak of a decrease, 1 of an increase, 0 of neither or both."""
    return (_RISES.search(words) is not None) - (_FALLS.search(words) is not None)


_CONVERSION_ROUNDING = 0.02


def _without_conversions(
    chosen: Sequence[Quantity], candidates: tuple[tuple[float, float], ...]
) -> tuple[tuple[float, float], ...]:
    """One candidate where two quantities of different units are the same value, rounded: ``3 in (76 mm)``."""
    units = {quantity.unit for quantity in chosen}
    if len(candidates) != 2 or len(units) != 2 or None in units:
        return candidates
    (low, high), (other, top) = candidates
    if within(low, _CONVERSION_ROUNDING * abs(low), other, other) and within(
        high, _CONVERSION_ROUNDING * abs(high), top, top
    ):
        return candidates[:1]
    return candidates


def _signed(slot: ToleranceSlot | ExactSlot, found: _Found) -> _Found:
    """A decrease has the sign that the slot asks for: "a decrease of 3.2 ha" is -3.2 ha where a change is asked.

    Where a loss is asked, it is a gain that is negative.
    """
    label = f"{slot.name} {slot.label}".replace("_", " ").lower()
    asked = _turn(label)
    if asked == 0 and (float(slot.value) < 0 or _NET.search(label)):
        asked = 1
    if found.turn * asked != -1 or any(low < 0 for low, _ in found.candidates):
        return found
    turned = tuple((-high, -low) for low, high in found.candidates)
    return found._replace(candidates=turned, rule=f"{found.rule}; {'a decrease' if asked > 0 else 'an increase'}")


_OF_WHOLE = re.compile(r"\s?(?:out )?of(?: the| all| a total of| those| these| its| their)* ?")
_OF_WHICH = re.compile(
    rf"(?<!{WORD})(?:of which|of them|of these|of those|includ(?:ing|es?)|among (?:which|them)|"
    rf"comprising|consisting of|made up of|composed of|namely)(?!{WORD})|其中|包括|分别"
)
_EXCEPTED = re.compile(rf"(?<!{WORD})(?:after|before|without|besides|excluding|except)(?: the)? ?$")
_BY = re.compile(r"(?:increas|decreas|rose|rise|risen|grew|grown|fell|fall|drop|declin|reduc|chang)\w* by (?:\w+ )?$")
_MORE_THAN = re.compile(rf" ?(?:{WORD}+ )?(?:fewer|more|less) than\b")
_OPERAND = re.compile(r"(?:mean|average|sum|median|difference|product|ratio|total) (?:of|between)(?: the)? ?$")
_PLACED = re.compile(
    rf"(?<!{WORD})(?:in|on|from|across|among|within|at|per|after|for|over|with|using|by)"
    r"(?: the| all| each| a total of| these| those| both)* ?$"
)


def _narrowed(
    text: str, found: list[tuple[Quantity, Phrase]], asked: Subject, unit: str | None
) -> tuple[list[tuple[Quantity, Phrase]], str]:
    """``found`` without what is no value of the slot: each rule applies only where it leaves something."""
    rules: list[str] = []

    def keep(holds: Callable[[Quantity, Phrase], bool], why: str) -> None:
        nonlocal found
        kept = [each for each in found if holds(*each)]
        if kept and len(kept) < len(found):
            found = kept
            rules.append(why)

    if asked.years:
        keep(lambda quantity, _: _year_behind(text, quantity) in asked.years, "values of other years left out")
        keep(lambda quantity, _: _year(text, quantity) in asked.years, "values of other years left out")
    if asked.letters:
        keep(lambda quantity, _: _letter(text, quantity, asked) in asked.letters, "what the label names")
    operands = _operands(text, find_quantities(text))
    keep(lambda quantity, _: quantity.start not in operands, "what it was worked out from left out")
    if any(quantity.spelled for quantity, _ in found) and any(not quantity.spelled for quantity, _ in found):
        keep(lambda quantity, _: not quantity.spelled or _names(text, quantity, asked.words), "digits before words")
    if any(_names(text, quantity, asked.counted) for quantity, _ in found):
        keep(
            lambda quantity, _: (
                quantity.noun is None or _is_counter(text, quantity) or _names(text, quantity, asked.counted)
            ),
            "what the label counts",
        )
        if "mean" not in asked.kinds:
            keep(lambda quantity, _: quantity.low.is_integer() and quantity.high.is_integer(), "what the label counts")
    keep(lambda _, phrase: not phrase.endpoint, "what it changed from and to left out")
    chains = Counter(quantity.chain for quantity, _ in found)
    operands = {q.chain for q, phrase in found if chains[q.chain] > 1 and _OPERAND.search(phrase.before)}
    keep(lambda quantity, _: quantity.chain not in operands, "what it was worked out from left out")
    if "change" not in asked.kinds:
        keep(lambda _, phrase: not _MORE_THAN.match(phrase.behind), "by how much it differs")
    keep(lambda _, phrase: not elsewhere(phrase.words, asked), "values of other things left out")
    keep(lambda _, phrase: not of_another(phrase.before, asked), "values of other things left out")
    keep(lambda _, phrase: bool(kinds_of(phrase) & asked.kinds), "what the label asks for")
    if unit is None and not _ALTERNATIVE.search(text):
        keep(lambda quantity, phrase: quantity.bare and _is_named(phrase.behind, asked), "what the label names")
    if unit is None and len(asked.words) > 1:
        named = Counter[int]()
        for quantity, near in found:
            named[quantity.chain] = max(named[quantity.chain], spoken(near.words, asked.words))
        keep(lambda quantity, _: named[quantity.chain] == max(named.values()), "what the label names")
    keep(lambda _, phrase: not bound_elsewhere(phrase, asked), "values of other things left out")
    about_change = "change" in asked.kinds
    keep(lambda _, phrase: (_BY.search(phrase.before) is not None) == about_change, "by how much it changed")
    if unit is not None and all(speaks_of(phrase.words, asked.words) or has_subject(phrase) for _, phrase in found):
        most = max(spoken(phrase.words, asked.words) for _, phrase in found)
        keep(lambda _, phrase: spoken(phrase.words, asked.words) == most, "what the label names")
    if len(found) > 1:
        starts = {quantity.start for quantity, _ in found[1:]}
        keep(
            lambda quantity, phrase: quantity.start not in starts or not _OF_WHOLE.fullmatch(phrase.between), "no whole"
        )
        first_part = _OF_WHICH.search(text, found[0][0].end)
        behind = first_part.end() if first_part else len(text)
        # "52 roofs, of which 46 are greenhouses": what the whole is not called.
        whole = found[0][1].words
        own = {word for word in asked.words if not speaks_of(whole, (word,))}
        if first_part and any(q.start >= behind and speaks_of(phrase.words, own) for q, phrase in found):
            keep(lambda quantity, _: quantity.start >= behind, "what the label names")
        keep(lambda quantity, _: quantity.start < behind, "parts left out")
        keep(lambda _, phrase: not _OF_WHICH.match(phrase.behind.lstrip()), "parts left out")
        keep(lambda _, phrase: not _EXCEPTED.search(phrase.before), "what is left out of it")
        keep(lambda quantity, phrase: not (quantity.noun and _PLACED.search(phrase.before)), "where it is left out")
        if any(not phrase.bracketed for _, phrase in found):
            outer = [_in_unit(quantity, unit) for quantity, phrase in found if not phrase.bracketed]
            inner = [_in_unit(quantity, unit) for quantity, phrase in found if phrase.bracketed]
            parts = len(inner) > 1 and len(outer) == 1 and within(sum(low for low, _ in inner), 0.0, *outer[0])
            keep(
                lambda quantity, phrase: (
                    not phrase.bracketed
                    or not (phrase.explained or parts)
                    or _ALTERNATIVE.search(text, max(text.rfind("(", 0, quantity.start), 0), quantity.start) is not None
                ),
                "brackets left out",
            )
    return found, ", ".join(dict.fromkeys(rules))


_OPERATOR = re.compile(r"[ )\]]*[-+*/×÷·x:][ (\[]*(?:(?:tan|sin|cos|ln|log|exp|sqrt) ?\(?)?")


def _operands(text: str, quantities: Sequence[Quantity]) -> set[int]:
    """Where the terms of calculations begin whose result follows: 8 and 6 in "8 + 6 = 14"."""
    found: set[int] = set()
    terms: list[int] = []
    for before, after in pairwise(quantities):
        between = text[before.end : after.start]
        if _OPERATOR.fullmatch(between):
            terms += [before.start, after.start]
            continue
        if terms and between.strip(" )],°") in ("=", "≈", "that is", "i.e.", "which is", "or"):
            found.update(terms)
        terms = []
    return found


_OR_SO = re.compile(rf"(?: {WORD}+){{0,2}},? (?:or|maybe|perhaps|possibly)(?: (?:only|even|just|maybe|perhaps))? ")


def _alternatives(text: str, left: Sequence[Quantity], first: Quantity) -> list[Quantity]:
    """Numbers that are given as alternatives to ``first`` without being joined to it."""
    found: list[Quantity] = []
    for before, quantity in zip([None, *left], left, strict=False):
        if quantity.chain == first.chain or quantity is first:
            if before is not None and before.chain != quantity.chain:
                lead = text[before.end : quantity.start]
                if len(lead) < 120 and _ALTERNATIVE.search(lead):
                    found.append(before)
            continue
        if before is not None and _ALTERNATIVE.search(text, max(before.end, quantity.start - 120), quantity.start):
            found.append(quantity)
    return found


def _result(text: str, fitting: Sequence[Quantity]) -> Quantity | None:
    """The number after the last ``=`` of a value that is written as a calculation: ``8 + 6 = 14``."""
    equals = max(text.rfind("="), text.rfind("≈"))
    behind = next((quantity for quantity in fitting if equals >= 0 and quantity.start > equals), None)
    if behind is None:
        return None
    terms = find_quantities(text[:equals])
    ends = [0, *(term.end for term in terms)]
    between = [text[end : term.start] for end, term in zip(ends, terms, strict=False)] + [text[ends[-1] : equals]]
    spanned = any(term.low < term.high for term in terms)  # "33 % - 30 %" reads as a range
    joints = "".join(between[1:])
    return behind if terms and _OPERATORS.fullmatch(joints) and (spanned or joints.strip(" ()[]=|")) else None


def _marked(text: str, fitting: Sequence[Quantity], words: frozenset[str]) -> tuple[Quantity, str]:
    last = None
    for marker in _MARKER.finditer(text, 0, fitting[-1].start):
        last = marker
    if last is None:
        counted = [quantity for quantity in fitting if _names(text, quantity, words)]
        return (counted or fitting)[-1], "last number"
    behind = next(quantity for quantity in fitting if quantity.start >= last.end())
    return behind, f"first number after {last[0]!r}"


_ALONE = re.compile(rf"\W*#\W*(?:#|{WORD}{{0,3}}[%°^]?\d?)\W*#?")
_NONE = re.compile(r"[^\w\n]*(?:none|nothing|nil|zero|no|没有|无|零)\b[^\d\n]{0,40}")
_NO = re.compile(
    rf"(?:n't any|(?<!{WORD})(?:no|zero|not (?:a single|any)|none of(?: the| these| those)?|without(?: any)?|"
    r"never any|free of|absence of|lack of))"
    rf" (?P<of>(?:{WORD}+[ -]?){{1,5}})|(?<!{WORD})(?P<not>do(?:es)? not (?:see|find|contain|show|have)(?: any)?) "
    rf"(?P<of_2>(?:{WORD}+[ -]?){{1,5}})|(?:没有|未发现|未见|没看到|没发现|未检测到|不存在|无)(?P<of_3>[{CJK}]{{1,12}})"
)
_NO_CJK = re.compile(f"[{CJK}]{{0,8}}?(?:没有|未见|未发现|未检测到|无)[{CJK}]{{1,12}}")
_GONE = re.compile(r"(?<![a-z])(?:disappear|vanish|lost|loss|gone)|消失|损失")
_NONE_GONE = re.compile(
    rf"(?<!{WORD})(?:no|none of)(?: (?!(?:longer|more) )[a-z]+){{1,5}}? "
    rf"(?:disappeared|vanished|lost|gone|missing)(?!{WORD})|"
    r"没有[^,。;\d]{0,10}(?:消失|损失)"
)
_PHRASE_END = re.compile(r"\b(?:to|that|in|on|at|and|but|for|with|way|idea|if|whether)\b")
_ABSENT = re.compile(r"\b(?:absent|not (?:present|visible|found|detected|seen))\b|不存在")


def _says_none(text: str) -> bool:
    """Whether a value says none: "none", "no trees", 没有."""
    return _NONE.fullmatch(text.strip()) is not None


def _none_of(parts: Sequence[str], words: frozenset[str]) -> bool:
    """Whether a text without numbers says that there is none of what the label names, or nothing but "none"."""
    if parts and len(parts) <= 3 and re.fullmatch(r"\W*(?:none|nothing|nil|没有|无)\W*", parts[0]):
        return True
    for part in parts:
        for said in _NO.finditer(part):
            phrase = said["of"] or said["of_2"] or said["of_3"]
            if speaks_of(_PHRASE_END.split(phrase)[0], words):
                return True
        if _ABSENT.search(part) and speaks_of(part, words):
            return True
        # The label's words may be of another language.
        if len(parts) == 1 and _NO_CJK.match(part) and not any(word > "\u2e80" for word in words):
            return True
    return False


def _why_nothing(text: str) -> str:
    found = find_quantities(text)
    if any(quantity.denied for quantity in found):
        return "no number that fits: those given are negated or bounds"
    return "no number that fits"


def _in_unit(quantity: Quantity, unit: str | None) -> tuple[float, float]:
    if unit is None or quantity.unit is None:
        return quantity.low, quantity.high
    return convert(quantity.low, quantity.unit, unit), convert(quantity.high, quantity.unit, unit)


def _shown(quantity: Quantity) -> str:
    value = f"{quantity.low:.10g}" if quantity.low == quantity.high else f"{quantity.low:.10g} to {quantity.high:.10g}"
    named = quantity.unit or quantity.noun
    return f"{value} {named}" if named else value


def within(value: float, margin: float, low: float, high: float) -> bool:
    """Whether both ends lie within ``margin`` of ``value``, to a relative 1e-9."""
    slack = 1e-9 * max(abs(value), abs(low), abs(high))
    return abs(low - value) <= margin + slack and abs(high - value) <= margin + slack
