"""Numbers of an answer that could be the value of a item, each with features for and against it.

A feature is a named number, mostly 0 or 1: the unit fits, the surrounding words are those of the label, the sentence
concludes, the number is a term of a calculation. :mod:`agrotools.scoring.number_reading` weighs them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from agrotools.core.form_item import FormItem
from agrotools.scoring import number_cues as cues
from agrotools.scoring.answer_text import after_correction, sentences
from agrotools.scoring.keyed_values import mentions
from agrotools.scoring.slot_subject import (
    Phrase,
    Subject,
    is_other_kind,
    kinds,
    kinds_of,
    last_place_named,
    of_another,
    phrases,
    subject,
)
from agrotools.scoring.word_forms import roots, says
from agrotools.text.numbers import Quantity
from agrotools.text.quantities import read_quantity

Features = dict[str, float]


class Candidate(NamedTuple):
    """Number that could be the value, with its bounds in the slot's unit, its position and its features."""

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
    item: FormItem,
    items: Sequence[FormItem],
    text: str,
    unit: str | None,
    emphasised: frozenset[float] = frozenset(),
    own_unit: str | None = None,
) -> list[Candidate]:
    """Return the numbers of normalised ``text`` that fit ``unit``, in order, with their features.

    ``emphasised`` holds the values in bold or in a box in the answer, ``own_unit`` is the unit of bare numbers.
    """
    target = subject(item)
    parts = sentences(cues.tables_as_lines(text))[-_MOST_SENTENCES:]
    stated = [_stated(item, target, unit, own_unit, part) for part in parts]
    first = _first_kept([len(quantities) for quantities in stated])
    candidates: list[Candidate] = []
    for index in range(first, len(parts)):
        before = parts[index - 1] if index and not stated[index - 1] else ""
        heading = before if len(before) < 80 else ""
        if stated[index]:
            candidates += _of_sentence(item, items, target, unit, parts[index], index, stated[index], heading)
    corrected = max((index for index, part in enumerate(parts) if after_correction(part)), default=-1)
    _compare(candidates, text, len(parts), target, emphasised, corrected)
    return candidates


def only_quantity(item: FormItem, text: str, unit: str | None, own_unit: str | None) -> Quantity | None:
    """Return the number that is all of ``text``, with its unit if it has one; None if there is more or it does not fit.

    No features decide about such a value, which is most of the values in the answer form.
    """
    read = read_quantity(text) if len(text) <= _LONGEST_QUANTITY else None
    if read is None or read.noun:
        return None
    written = read.unit.symbol if read.unit else own_unit
    only = Quantity(read.low, read.high, written, None, 0, len(text), 0)
    if unit is None and cues.PART_OF_ONE.search(item.label.lower()):
        only = cues.as_part_of_one(only)
    return only if cues.fits_unit(only, unit, counts=_is_count(item)) else None


_LONGEST_QUANTITY = 80


def _is_count(item: FormItem) -> bool:
    return item.type == "exact" or cues.COUNT.search(item.label.lower()) is not None


def _stated(item: FormItem, target: Subject, unit: str | None, own_unit: str | None, part: str) -> list[Quantity]:
    """Return the numbers of a sentence in order, with their units in this sentence."""
    quantities = cues.stated_quantities(part) + cues.zero_quantities(part, target, unit)
    if own_unit:
        quantities = [replace(each, unit=own_unit) if each.bare else each for each in quantities]
    if unit is None and cues.PART_OF_ONE.search(item.label.lower()):
        quantities = [cues.as_part_of_one(each) for each in quantities]
    if unit == "%":
        quantities = [cues.as_share(part, each) for each in quantities]
    return sorted(quantities, key=lambda quantity: quantity.start)


def _first_kept(counts: Sequence[int]) -> int:
    """Return the first sentence from which the text has at most :data:`_MOST_CANDIDATES` numbers."""
    budget = _MOST_CANDIDATES
    for index in range(len(counts) - 1, -1, -1):
        budget -= counts[index]
        if budget < 0:
            return index + 1
    return 0


def _of_sentence(
    item: FormItem,
    items: Sequence[FormItem],
    target: Subject,
    unit: str | None,
    part: str,
    index: int,
    quantities: list[Quantity],
    heading: str,
) -> list[Candidate]:
    around = phrases(part, quantities)
    operands = cues.operand_starts(part, quantities)
    left_out = cues.shown_starts(part, item.label) | cues.part_starts(part, quantities, target)
    shared: Features = {
        "words in sentence": _share(part, target),
        "label in sentence": mentions(part, item, items),
        "words in heading": _share(heading, target) if heading else 0,
        "kind in sentence": bool(target.kinds & kinds(part)),
        "aside": cues.ASIDE.match(part) is not None,
        "alone": len(quantities) == 1,
    }
    corrected = after_correction(part)
    counts = _is_count(item)
    rivals = [subject(other) for other in items if other.name != item.name and other.is_number]
    following = [*quantities[1:], None]
    chains = Counter(quantity.chain for quantity in quantities)
    candidates: list[Candidate] = []
    for at, (quantity, phrase, behind) in enumerate(zip(quantities, around, following, strict=True)):
        if (
            quantity.start in left_out
            or not cues.fits_unit(quantity, unit, counts=counts)
            or ("each" not in target.kinds and cues.EACH_HAS.search(part, max(0, quantity.start - 60), quantity.start))
        ):
            continue
        lead = part[max(0, quantity.start - cues.LEAD_LENGTH) : quantity.start]
        since = part[quantities[at - 1].end if at else 0 : quantity.start]
        since = cues.CLAUSE.split(since, maxsplit=1)[-1] if at else since
        features: Features = {
            **shared,
            **_of_unit(item, target, unit, part, quantity),
            **_of_words(target, rivals, phrase, lead),
            **_of_place(part, quantity, phrase, target),
            **_of_calculation(part, quantity, phrase, target, operands),
            "before a correction": 3.0 * (quantity.start < corrected),
            "preliminary": 2.0 * bool(cues.PRELIMINARY.search(f"{since} {phrase.behind}")),
            "reference": cues.REFERENCE.search(f"{phrase.before} {phrase.behind}") is not None,
            "reference in sentence": cues.REFERENCE.search(lead) is not None,
            "hypothetical": 2.0 * bool(cues.HYPOTHETICAL.search(since)),
            "hypothetical in sentence": cues.HYPOTHETICAL.search(lead) is not None,
            "concluded just before": cues.CONCLUDES.search(since) is not None,
            "concluded": cues.CONCLUDES.search(lead) is not None,
            "total behind": cues.TOTAL_BEHIND.match(part, quantity.end) is not None,
            "last in sentence": behind is None,
            "first in sentence": at == 0,
            "whole of a part": 3.0 * (at > 0 and cues.OF_WHOLE.fullmatch(phrase.between) is not None),
            "bracketed": phrase.bracketed,
            "explained": phrase.explained,
            "range": quantity.low < quantity.high,
            "in words": quantity.spelled,
            "one of a list": chains[quantity.chain] > 2,
            "none": quantity.chain < 0,
            "like a year": quantity.bare and quantity.low.is_integer() and 1900 <= quantity.low <= 2100,
            "of them": 2.0 * bool(cues.OF_THEM.match(part, quantity.end)),
        }
        if word := cues.word_before(lead):
            features[f"after {word!r}"] = 1
        if word := cues.word_behind(part[quantity.end :]):
            features[f"before {word!r}"] = 1
        low, high = cues.in_unit(quantity, unit)
        candidates.append(Candidate(low, high, quantity, phrase, index, part, features))
    return candidates


def _compare(
    candidates: Sequence[Candidate], text: str, n: int, target: Subject, emphasised: frozenset[float], corrected: int
) -> None:
    """Add the features that compare a candidate with the others."""
    if not candidates:
        return
    near, sentence, lead, own_words = (
        max(each.features[name] for each in candidates)
        for name in ("words near", "words in sentence", "words in lead", "own words near")
    )
    paragraph = sentences(cues.tables_as_lines(text.rstrip().rpartition("\n\n")[2]))
    in_last = max(0, n - len(paragraph))
    kind = any(each.features["kind asked"] for each in candidates)
    terms = {each.low for each in candidates if each.features["term"]}
    labelled = [_words_near(each, target) for each in candidates]
    frequencies = Counter(
        word
        for words in {each.low: words for each, words in zip(candidates, labelled, strict=True)}.values()
        for word in words
    )
    values = [each.low for each in candidates if each.low == each.high]
    whole = _totals(values)
    for each, words in zip(candidates, labelled, strict=True):
        each.features.update(
            {
                "words missing near": near - each.features["words near"],
                "distinctive words": _distinctive(words, frequencies, target),
                "most words near": near > 0 and each.features["words near"] == near,
                "most words in sentence": sentence > 0 and each.features["words in sentence"] == sentence,
                "order": each.sentence / max(1, n - 1),
                "last paragraph": each.sentence >= in_last,
                "kind asked elsewhere": 3.0 * (kind and not each.features["kind asked"]),
                "corrected later": 2.0 * (each.sentence < corrected),
                "term elsewhere": each.low in terms and not each.features["term"],
                "most words in lead": lead > 0 and each.features["words in lead"] == lead,
                "most own words": own_words > 0 and each.features["own words near"] == own_words,
                "emphasised": each.low in emphasised,
                "total": 2.0 * (each.low in whole and not cues.DIFFERENCE.search(each.text)),
            }
        )


def _words_near(candidate: Candidate, target: Subject) -> frozenset[str]:
    """Return the words (and pairs of Chinese characters) of the label that are near a candidate."""
    text = candidate.phrase.words
    spoken_words = roots(text)
    return frozenset(word for word in target.words if says(word, spoken_words, text)) | {
        pair for pair in target.pairs if pair in text
    }


def _distinctive(words: frozenset[str], frequencies: Counter[str], target: Subject) -> float:
    """Return the weight of the label's ``words`` near a candidate; a word near few other candidates counts more."""
    return 2.0 * sum(1 / max(1, frequencies[word]) for word in words) / max(1, len(target.words) + len(target.pairs))


def _totals(values: Sequence[float]) -> set[float]:
    """Return the values that are the sum of at least two other consecutive values."""
    distinct = list(dict.fromkeys(values))[:40]
    sums: set[float] = set()
    for start in range(len(distinct)):
        total = 0.0
        for stop in range(start, min(len(distinct), start + 12)):
            total += distinct[stop]
            if stop > start:
                sums.update(
                    each
                    for each in distinct
                    if each and abs(each - total) <= 1e-9 * abs(total) and each not in distinct[start : stop + 1]
                )
    return sums


def _of_unit(item: FormItem, target: Subject, unit: str | None, part: str, quantity: Quantity) -> Features:
    noun = unit is None and cues.names_subject(part, quantity, target.counted)
    return {
        "unit same": unit is not None and quantity.unit == unit,
        "unit convertible": unit is not None and quantity.unit not in (None, unit),
        "unit not asked": unit is None and quantity.unit is not None,
        "bare": quantity.bare,
        "noun asked": noun,
        "noun other": unit is None and quantity.noun is not None and not noun and not cues.is_counter(part, quantity),
        "noun for a unit": unit is not None and quantity.noun is not None,
        "no whole number": item.type == "exact" and not quantity.low.is_integer(),
    }


def _of_words(target: Subject, rivals: Sequence[Subject], phrase: Phrase, lead: str) -> Features:
    share = _share(phrase.words, target)
    other = max((_share(phrase.words, rival, without=target) for rival in rivals), default=0.0)
    exclusive = min((_share(phrase.words, target, without=rival) for rival in rivals), default=share)
    phrase_kinds = kinds_of(phrase)
    return {
        "words near": share,
        "words before": _share(phrase.before, target),
        "words in lead": _share(lead + phrase.behind, target),
        "other value near": max(0.0, other - exclusive),
        "own words near": exclusive,
        "kind asked": 3.0 * bool(phrase_kinds & target.kinds),
        "other kind": 3.0 * is_other_kind(phrase, target),
        "other thing": 3.0 * of_another(phrase.before, target),
        "is named": cues.is_named(phrase.behind, target),
        "kind missing": 2.0 * (bool(target.kinds - {"place"}) and not phrase_kinds & target.kinds),
    }


def _of_place(part: str, quantity: Quantity, phrase: Phrase, target: Subject) -> Features:
    # A change is asked between two years, so neither year determines the value.
    years = target.years if "change" not in target.kinds or len(target.years) == 1 else ()
    year = cues.year_of(part, quantity) if years else None
    behind = cues.YEAR_BEHIND.match(part, quantity.end) if years else None
    letter = cues.letter_of(part, quantity, target) if target.letters else None
    place = (
        last_place_named(part[max(0, quantity.start - cues.LEAD_LENGTH) : quantity.start]) if target.places else None
    )
    return {
        "total of all": 3.0 * (bool(target.places or target.years or target.letters) and "total" in kinds_of(phrase)),
        "asked year": 3.0 * (year in years),
        "asked year behind": 3.0 * (behind is not None and behind[1] in years),
        "other letter": 3.0 * (letter is not None and letter not in target.letters),
        "asked place in lead": 3.0 * (place is not None and place in target.places),
        "other place in lead": 3.0 * (place is not None and place not in target.places),
    }


def _of_calculation(part: str, quantity: Quantity, phrase: Phrase, target: Subject, operands: set[int]) -> Features:
    change = "change" in target.kinds
    head = part[max(0, quantity.start - 24) : quantity.start]
    by = cues.BY.search(phrase.before) is not None
    rate = cues.is_rate(part, quantity)
    return {
        "term": quantity.start in operands,
        "after equals": cues.EQUALS_BEFORE.search(head) is not None,
        "after colon": cues.COLON_BEFORE.search(head) is not None,
        "after is": cues.IS_BEFORE.search(head) is not None,
        "after gives": cues.GIVES_BEFORE.search(part[max(0, quantity.start - 40) : quantity.start]) is not None,
        "from or to": phrase.endpoint,
        "by": by and not change,
        "compared with": 2.0 * bool(cues.COMPARED_WITH.search(phrase.before)),
        "rate": rate and "each" not in target.kinds,
    }


def _share(text: str, target: Subject, without: Subject | None = None) -> float:
    words = target.words - without.words if without else target.words
    if not words or not text.strip():
        return 0.0
    spoken_words = roots(text)
    pairs = [pair for pair in target.pairs if without is None or pair not in without.pairs]
    matches = sum(says(word, spoken_words, text) for word in words) + sum(pair in text for pair in pairs)
    return matches / (len(words) + len(pairs))
