"""The numbers of an answer that could be a slot's value, each with what speaks for and against it.

A feature is a named figure, mostly 0 or 1: the unit fits, the words around the number are those of the label, the
sentence concludes, the number is a term of a calculation. :mod:`agrotools.scoring.number_choice` weighs them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from agrotools.core import ExactSlot, Slot, ToleranceSlot
from agrotools.scoring import number_cues as cues
from agrotools.scoring.reading import after_correction, sentences
from agrotools.scoring.reading_keyed import TABLE_RULE, cells_of, is_number, mentions
from agrotools.scoring.reading_qualifiers import (
    Phrase,
    Subject,
    bound_elsewhere,
    elsewhere,
    kinds,
    kinds_of,
    last_place_named,
    of_another,
    phrases,
    speaks_of,
    subject,
)
from agrotools.scoring.word_families import roots, says
from agrotools.text.numbers import Quantity, find_quantities
from agrotools.text.units import canonical_unit, compatible, convert

NumberSlot = ToleranceSlot | ExactSlot
Features = dict[str, float]


class Candidate(NamedTuple):
    """A number that could be the value: its ends in the slot's unit, where it stands, and its features."""

    low: float
    high: float
    quantity: Quantity
    phrase: Phrase
    sentence: int
    text: str
    features: Features


_MOST_SENTENCES = 1_000
_MOST_CANDIDATES = 400


def find_candidates(
    slot: NumberSlot,
    slots: Sequence[Slot],
    text: str,
    unit: str | None,
    emphasised: frozenset[float] = frozenset(),
    own_unit: str | None = None,
) -> list[Candidate]:
    """The numbers of normalised ``text`` that fit ``unit``, in order, with their features.

    ``emphasised`` are values that the answer writes in bold or in a box; ``own_unit`` is that of bare numbers.
    """
    asked = subject(slot)
    parts = sentences(tables_as_lines(text))[-_MOST_SENTENCES:]
    stated = [_stated(slot, asked, unit, own_unit, part) for part in parts]
    first = _first_kept([len(quantities) for quantities in stated])
    found: list[Candidate] = []
    for index in range(first, len(parts)):
        before = parts[index - 1] if index and not stated[index - 1] else ""
        heading = before if len(before) < 80 else ""
        if stated[index]:
            found += _of_sentence(slot, slots, asked, unit, parts[index], index, stated[index], heading)
    corrected = max((index for index, part in enumerate(parts) if after_correction(part)), default=-1)
    _compare(found, text, len(parts), asked, emphasised, corrected)
    return found


def _stated(slot: NumberSlot, asked: Subject, unit: str | None, own_unit: str | None, part: str) -> list[Quantity]:
    """The numbers of a sentence, in order, with the units that they have there."""
    quantities = _counts_per_area(part, _quantities(part), unit) + _nones(part, asked, unit)
    if own_unit:
        quantities = [replace(each, unit=own_unit) if each.bare else each for each in quantities]
    if unit is None and _PART_OF_ONE.search(slot.label.lower()):
        quantities = [_as_part_of_one(each) for each in quantities]
    if unit == "%":
        quantities = [_as_share(part, each) for each in quantities]
    return sorted(quantities, key=lambda quantity: quantity.start)


def _first_kept(counts: Sequence[int]) -> int:
    """The sentence from which on there are at most :data:`_MOST_CANDIDATES` numbers."""
    left = _MOST_CANDIDATES
    for index in range(len(counts) - 1, -1, -1):
        left -= counts[index]
        if left < 0:
            return index + 1
    return 0


def tables_as_lines(text: str) -> str:
    """``text`` with each cell of its Markdown tables as a line ``row header: cell``."""
    if "|" not in text:
        return text
    lines = text.split("\n")
    kept: list[str] = []
    header: list[str] = []
    for index, line in enumerate(lines):
        if "|" not in line:
            header = []
            kept.append(line)
        elif TABLE_RULE.fullmatch(line):
            continue
        elif index + 1 < len(lines) and TABLE_RULE.fullmatch(lines[index + 1]):
            header = cells_of(line)
        elif not header:
            kept.append(line)
        else:
            cells = cells_of(line)
            key = "" if cues.FIGURE.fullmatch(cells[0]) and not cues.YEAR.fullmatch(cells[0]) else cells[0]
            key = f"({key})" if cues.YEAR.fullmatch(key) else key
            for name, cell in zip(header[bool(key) :], cells[bool(key) :], strict=False):
                unit = cues.UNIT_IN_HEADER.search(name)
                name, cell = (
                    (name[: unit.start()], f"{cell} {unit[1]}") if unit and cell[-1:].isdigit() else (name, cell)
                )
                kept.append(f"{key} {name}: {cell}".strip())
    return "\n".join(kept)


def _of_sentence(
    slot: NumberSlot,
    slots: Sequence[Slot],
    asked: Subject,
    unit: str | None,
    part: str,
    index: int,
    quantities: list[Quantity],
    heading: str,
) -> list[Candidate]:
    around = phrases(part, quantities)
    operands = _operands(part, quantities)
    shared: Features = {
        "words in sentence": _share(part, asked),
        "label in sentence": mentions(part, slot, slots),
        "other label in sentence": len(slots) > 1 and mentions(part, slot, slots, others=True),
        "words in heading": _share(heading, asked) if heading else 0,
        "kind in sentence": bool(asked.kinds & kinds(part)),
        "sentence concludes": cues.CONCLUDES.match(part) is not None,
        "question": part.endswith("?"),
        "aside": cues.ASIDE.match(part) is not None,
        "alone": len(quantities) == 1,
    }
    corrected = after_correction(part)
    counts = isinstance(slot, ExactSlot) or cues.COUNT.search(slot.label.lower()) is not None
    rivals = [subject(other) for other in slots if other.name != slot.name and is_number(other)]
    following = [*quantities[1:], None]
    chains = Counter(quantity.chain for quantity in quantities)
    found: list[Candidate] = []
    for at, (quantity, phrase, behind) in enumerate(zip(quantities, around, following, strict=True)):
        if not _fits(quantity, unit, counts=counts) or (
            "each" not in asked.kinds and cues.EACH_HAS.search(part, max(0, quantity.start - 60), quantity.start)
        ):
            continue
        lead = part[max(0, quantity.start - _QUALIFIED) : quantity.start]
        since = part[quantities[at - 1].end if at else 0 : quantity.start]
        since = cues.CLAUSE.split(since, maxsplit=1)[-1] if at else since
        features: Features = {
            **shared,
            **_of_unit(slot, asked, unit, part, quantity),
            **_of_words(asked, rivals, phrase, lead),
            **_of_place(part, quantity, phrase, asked),
            **_of_calculation(part, quantity, phrase, asked, operands, quantities[at - 1] if at else None),
            "before a correction": 3.0 * (quantity.start < corrected),
            "in a calculation": cues.IN_CALCULATION.search(lead[-6:]) is not None
            or cues.CALCULATED_WITH.match(part, quantity.end) is not None,
            "of this whole": 3.0 * bool(cues.OF_THIS_WHOLE.search(lead)),
            "preliminary": 2.0 * bool(cues.PRELIMINARY.search(f"{since} {phrase.behind}")),
            "preliminary in sentence": cues.PRELIMINARY.search(lead) is not None,
            "reference": cues.REFERENCE.search(f"{phrase.before} {phrase.behind}") is not None,
            "reference in sentence": cues.REFERENCE.search(lead) is not None,
            "hypothetical": 2.0 * bool(cues.HYPOTHETICAL.search(since)),
            "hypothetical in sentence": cues.HYPOTHETICAL.search(lead) is not None,
            "concluded just before": cues.CONCLUDES.search(since) is not None,
            "concluded": cues.CONCLUDES.search(lead) is not None,
            "rough": cues.ROUGH.search(lead) is not None,
            "total behind": cues.TOTAL_BEHIND.match(part, quantity.end) is not None,
            "last in sentence": behind is None,
            "first in sentence": at == 0,
            "whole of a part": 3.0 * (at > 0 and cues.OF_WHOLE.fullmatch(phrase.between) is not None),
            "has a whole": behind is not None
            and cues.OF_WHOLE.fullmatch(part[quantity.end : behind.start]) is not None,
            "part": cues.OF_WHICH.search(lead) is not None or cues.OF_WHICH.match(phrase.behind.lstrip()) is not None,
            "left out": cues.EXCEPTED.search(phrase.before) is not None,
            "bracketed": phrase.bracketed,
            "explained": phrase.explained,
            "range": quantity.low < quantity.high,
            "in words": quantity.spelled,
            "one of a list": chains[quantity.chain] > 2,
            "none": quantity.chain < 0,
            "like a year": quantity.bare and quantity.low.is_integer() and 1900 <= quantity.low <= 2100,
            "of them": 2.0 * bool(cues.OF_THEM.match(part, quantity.end)),
        }
        if word := _word_before(lead):
            features[f"after {word!r}"] = 1
        if word := _word_behind(part[quantity.end :]):
            features[f"before {word!r}"] = 1
        low, high = in_unit(quantity, unit)
        found.append(Candidate(low, high, quantity, phrase, index, part, features))
    return found


def _compare(
    found: Sequence[Candidate], text: str, n: int, asked: Subject, emphasised: frozenset[float], corrected: int
) -> None:
    """Add the features that set a candidate beside the others."""
    if not found:
        return
    near, sentence, lead, own = (
        max(each.features[name] for each in found)
        for name in ("words near", "words in sentence", "words in lead", "own words near")
    )
    explicit = any(each.features.get("unit same") or each.features.get("unit convertible") for each in found)
    named = any(each.features.get("noun asked") for each in found)
    last = found[-1].sentence
    paragraph = sentences(tables_as_lines(text.rstrip().rpartition("\n\n")[2]))
    in_last = max(0, n - len(paragraph))
    places: dict[float, set[int]] = {}
    for each in found:
        places.setdefault(round(each.low, 6), set()).add(each.sentence)
    kind = any(each.features["kind asked"] for each in found)
    terms = {each.low for each in found if each.features["term"]}
    labelled = [_words_near(each, asked) for each in found]
    said = Counter(
        word
        for words in {each.low: words for each, words in zip(found, labelled, strict=True)}.values()
        for word in words
    )
    values = [each.low for each in found if each.low == each.high]
    whole = _totals(values)
    for each, words in zip(found, labelled, strict=True):
        each.features.update(
            {
                "words missing near": near - each.features["words near"],
                "distinctive words": _distinctive(words, said, asked),
                "most words near": near > 0 and each.features["words near"] == near,
                "most words in sentence": sentence > 0 and each.features["words in sentence"] == sentence,
                "unit beside bare": explicit and each.quantity.bare,
                "other noun beside asked": named and bool(each.quantity.noun) and not each.features["noun asked"],
                "last sentence": each.sentence == last,
                "first sentence": each.sentence == found[0].sentence,
                "order": each.sentence / max(1, n - 1),
                "last paragraph": each.sentence >= in_last,
                "said again": min(2, len(places[round(each.low, 6)]) - 1),
                "kind asked elsewhere": 3.0 * (kind and not each.features["kind asked"]),
                "corrected later": 2.0 * (each.sentence < corrected),
                "term elsewhere": each.low in terms and not each.features["term"],
                "most words in lead": lead > 0 and each.features["words in lead"] == lead,
                "most own words": own > 0 and each.features["own words near"] == own,
                "emphasised": each.low in emphasised,
                "total": 2.0 * (each.low in whole and not cues.DIFFERENCE.search(each.text)),
            }
        )


def _words_near(candidate: Candidate, asked: Subject) -> frozenset[str]:
    """The words (and pairs of Chinese characters) of the label that stand near a candidate."""
    text = candidate.phrase.words
    said = roots(text)
    return frozenset(word for word in asked.words if says(word, said, text)) | {
        pair for pair in asked.pairs if pair in text
    }


def _distinctive(words: frozenset[str], said: Counter[str], asked: Subject) -> float:
    """How many of the label's ``words`` near a candidate stand near few others."""
    return 2.0 * sum(1 / max(1, said[word]) for word in words) / max(1, len(asked.words) + len(asked.pairs))


def _totals(values: Sequence[float]) -> set[float]:
    """Values that are the sum of some run of at least two others beside them."""
    distinct = list(dict.fromkeys(values))[:40]
    found: set[float] = set()
    for start in range(len(distinct)):
        total = 0.0
        for stop in range(start, min(len(distinct), start + 12)):
            total += distinct[stop]
            if stop > start:
                found.update(
                    each
                    for each in distinct
                    if each and abs(each - total) <= 1e-9 * abs(total) and each not in distinct[start : stop + 1]
                )
    return found


def _of_unit(slot: NumberSlot, asked: Subject, unit: str | None, part: str, quantity: Quantity) -> Features:
    noun = unit is None and _names(part, quantity, asked.counted)
    return {
        "unit same": unit is not None and quantity.unit == unit,
        "unit convertible": unit is not None and quantity.unit not in (None, unit),
        "unit not asked": unit is None and quantity.unit is not None,
        "bare": quantity.bare,
        "noun asked": noun,
        "noun other": unit is None and quantity.noun is not None and not noun and not _is_counter(part, quantity),
        "noun for a unit": unit is not None and quantity.noun is not None,
        "no whole number": isinstance(slot, ExactSlot) and not quantity.low.is_integer(),
    }


def _of_words(asked: Subject, rivals: Sequence[Subject], phrase: Phrase, lead: str) -> Features:
    share = _share(phrase.words, asked)
    other = max((_share(phrase.words, rival, without=asked) for rival in rivals), default=0.0)
    own = min((_share(phrase.words, asked, without=rival) for rival in rivals), default=share)
    named = kinds_of(phrase)
    return {
        "words near": share,
        "words before": _share(phrase.before, asked),
        "words in lead": _share(lead + phrase.behind, asked),
        "other value near": max(0.0, other - own),
        "own words near": own,
        "kind asked": 3.0 * bool(named & asked.kinds),
        "other kind": 3.0 * bound_elsewhere(phrase, asked),
        "change not asked": 2.0 * ("change" in named - asked.kinds),
        "other thing": 3.0 * of_another(phrase.before, asked),
        "is named": _is_named(phrase.behind, asked),
        "change asked": 2.0 * ("change" in named & asked.kinds),
        "change missing": 2.0 * ("change" in asked.kinds - named),
        "kind missing": 2.0 * (bool(asked.kinds - {"place"}) and not named & asked.kinds),
    }


def _of_place(part: str, quantity: Quantity, phrase: Phrase, asked: Subject) -> Features:
    # A change is asked between two years: neither binds it.
    years = asked.years if "change" not in asked.kinds or len(asked.years) == 1 else ()
    year = _year(part, quantity) if years else None
    behind = cues.YEAR_BEHIND.match(part, quantity.end) if years else None
    letter = _letter(part, quantity, asked) if asked.letters else None
    place = last_place_named(part[max(0, quantity.start - _QUALIFIED) : quantity.start]) if asked.places else None
    return {
        "other place": 3.0 * elsewhere(phrase.words, asked),
        "total of all": 3.0 * (bool(asked.places or asked.years or asked.letters) and "total" in kinds_of(phrase)),
        "asked year": 3.0 * (year in years),
        "asked year behind": 3.0 * (behind is not None and behind[1] in years),
        "other year": 3.0 * (year is not None and year not in years),
        "asked letter": 3.0 * (letter in asked.letters),
        "other letter": 3.0 * (letter is not None and letter not in asked.letters),
        "asked place in lead": 3.0 * (place is not None and place in asked.places),
        "other place in lead": 3.0 * (place is not None and place not in asked.places),
        "where": bool(quantity.noun) and cues.PLACED.search(phrase.before) is not None,
    }


def _of_calculation(
    part: str, quantity: Quantity, phrase: Phrase, asked: Subject, operands: set[int], before: Quantity | None
) -> Features:
    change = "change" in asked.kinds
    head = part[max(0, quantity.start - 24) : quantity.start]
    by = cues.BY.search(phrase.before) is not None
    rate = _is_rate(part, quantity)
    return {
        "term": quantity.start in operands,
        "after equals": cues.EQUALS_BEFORE.search(head) is not None,
        "after colon": cues.COLON_BEFORE.search(head) is not None,
        "after is": cues.IS_BEFORE.search(head) is not None,
        "after gives": cues.GIVES_BEFORE.search(part[max(0, quantity.start - 40) : quantity.start]) is not None,
        "from or to": phrase.endpoint,
        "by": by and not change,
        "by, change asked": by and change,
        "more than another": not change and cues.MORE_THAN.match(phrase.behind) is not None,
        "compared with": 2.0 * bool(cues.COMPARED_WITH.search(phrase.before)),
        "rate": rate and "each" not in asked.kinds,
        "rate asked": rate and "each" in asked.kinds,
        "no rate": not rate and "each" in asked.kinds,
        "joined": before is not None and before.chain == quantity.chain,
    }


def _word_before(lead: str) -> str | None:
    word = cues.LAST_WORD.search(lead[-24:])
    return word[1] if word and word[1] in cues.BEFORE_WORDS else None


def _word_behind(tail: str) -> str | None:
    word = cues.NEXT_WORD.match(tail[:24])
    return word[1] if word and word[1] in cues.BEHIND_WORDS else None


def _share(text: str, asked: Subject, without: Subject | None = None) -> float:
    words = asked.words - without.words if without else asked.words
    if not words or not text.strip():
        return 0.0
    said = roots(text)
    pairs = [pair for pair in asked.pairs if without is None or pair not in without.pairs]
    found = sum(says(word, said, text) for word in words) + sum(pair in text for pair in pairs)
    return found / (len(words) + len(pairs))


def _fits(quantity: Quantity, unit: str | None, *, counts: bool) -> bool:
    if unit is None:
        return quantity.unit is None or not counts
    return quantity.unit is None or compatible(quantity.unit, unit)


def in_unit(quantity: Quantity, unit: str | None) -> tuple[float, float]:
    """The ends of ``quantity`` in ``unit``; bare numbers as they are."""
    if unit is None or quantity.unit is None:
        return quantity.low, quantity.high
    return convert(quantity.low, quantity.unit, unit), convert(quantity.high, quantity.unit, unit)


def _is_rate(part: str, quantity: Quantity) -> bool:
    before = max(0, quantity.start - 60)
    return not quantity.bare and bool(
        cues.RATE.match(part, quantity.end) or cues.EACH_HAS.search(part, before, quantity.start)
    )


def _quantities(text: str) -> list[Quantity]:
    return [_per_area(text, quantity) for quantity in find_quantities(text) if not quantity.denied]


def _per_area(text: str, quantity: Quantity) -> Quantity:
    """ "120 kg of nitrogen per hectare" in kg/ha."""
    if quantity.unit is None or (per := cues.PER_AREA.match(text, quantity.end)) is None:
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
        per = cues.PER_AREA.match(text, quantity.end) if quantity.noun else None
        per_unit = canonical_unit(f"1/{_area(per)}") if per else None
        found.append(replace(quantity, unit=per_unit, noun=None) if per_unit else quantity)
    return found


_PART_OF_ONE = re.compile(r"0 (?:to|and|-) 1|accuracy|probability|fraction")


def _as_part_of_one(quantity: Quantity) -> Quantity:
    """ "92.3 %" as 0.923 where a part of one is asked."""
    if quantity.unit != "%":
        return quantity
    return replace(quantity, low=quantity.low / 100, high=quantity.high / 100, unit=None)


def _as_share(text: str, quantity: Quantity) -> Quantity:
    """ "6 / 50 = 0.12", "0.46 of it" as a fraction where a percentage is asked."""
    if not quantity.bare or not 0 < quantity.low < 1 or not 0 < quantity.high <= 1:
        return quantity
    if cues.SHARE_BEHIND.match(text, quantity.end) or cues.SHARE_BEFORE.search(
        text, max(0, quantity.start - 40), quantity.start
    ):
        return replace(quantity, unit="fraction")
    return quantity


def _names(text: str, quantity: Quantity, words: frozenset[str]) -> bool:
    """Whether the thing counted is what the slot's label names: "14 apple trees" for "number of trees"."""
    if quantity.noun is None:
        return False
    at = max(quantity.start, quantity.end - len(quantity.noun))
    phrase = cues.PHRASE.match(text, at)
    return phrase is not None and speaks_of(phrase[1], words)


def _is_counter(text: str, quantity: Quantity) -> bool:
    """Whether a Chinese measure word with no noun behind it follows the number: 多9个."""
    noun = quantity.noun
    return noun is not None and noun > "\u2e80" and not text[quantity.end : quantity.end + 1] > "\u2e80"


_QUALIFIED = 300
"""Characters before a number in which what it belongs to is looked for."""


def _year(text: str, quantity: Quantity) -> str | None:
    """The year that a number belongs to: the one behind it in its clause, else the last one before it."""
    behind = cues.YEAR_BEHIND.match(text, quantity.end)
    if behind:
        return behind[1]
    before = [*cues.YEAR.finditer(text, max(0, quantity.start - _QUALIFIED), quantity.start)]
    # "5.42 ha in 2015": that year belongs to the number before it.
    free = [year for year in before if not cues.OWNED.search(text, max(0, year.start() - 40), year.start())]
    return free[-1][0] if free else None


def _letter(text: str, quantity: Quantity, asked: Subject) -> str | None:
    """The letter of the thing that a number belongs to ("tree A"): the last one before it."""
    if asked.lettered is None:
        return None
    before = [*asked.lettered.finditer(text, max(0, quantity.start - _QUALIFIED), quantity.start)]
    return next((each for each in before[-1].groups() if each), None) if before else None


def _is_named(behind: str, asked: Subject) -> bool:
    """Whether the words behind a number say what is counted: "of which 46 are greenhouses"."""
    said = cues.ARE.match(behind)
    return said is not None and speaks_of(said[1], asked.counted)


def _operands(text: str, quantities: Sequence[Quantity]) -> set[int]:
    """Where the terms of calculations begin whose result follows: 8 and 6 in "8 + 6 = 14"."""
    found: set[int] = set()
    terms: list[int] = []
    for before, after in pairwise(quantities):
        between = text[before.end : after.start]
        if cues.OPERATOR.fullmatch(between):
            terms += [before.start, after.start]
            continue
        if cues.OPERAND.search(text, max(0, before.start - 40), before.start) and cues.LISTED.fullmatch(between):
            found.update((before.start, after.start))  # "the mean of 12 and 14"
        if terms and between.strip(cues.WORKED[0]) in cues.WORKED[1]:
            found.update(terms)
        terms = []
    return found


def _nones(part: str, asked: Subject, unit: str | None) -> list[Quantity]:
    """ "No trees" as 0 trees, where the label names what there is none of."""
    found: list[Quantity] = []
    for said in cues.NO.finditer(part):
        phrase = cues.PHRASE_END.split(said["of"] or said["of_2"] or said["of_3"])[0].strip()
        if phrase and speaks_of(phrase, asked.counted):
            noun = phrase.split()[-1] if unit is None else None
            found.append(Quantity(0.0, 0.0, unit, noun, said.start(), said.end(), -1 - said.start(), spelled=True))
    return found
