"""Reader of the options that an answer asserts, and of the names that it gives if any name may be given."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from agrotools.core.form_item import FormItem
from agrotools.scoring.answer_text import after_correction
from agrotools.scoring.slot_subject import YEAR, count_words_of, of_other_thing, subject
from agrotools.scoring.word_forms import comparatives, is_form, question, sense_of, senses, word_pattern
from agrotools.text.clauses import Negations
from agrotools.text.labels import LabelMatch, claims, find_labels, is_denied_beside, label_pattern
from agrotools.text.normalise import WORD_END, WORD_START, late_pattern, normalise

_ASKING = frozenset("show image photo picture scene file".split())
"""Words of labels that do not describe the requested thing."""
_FINE = late_pattern(
    r"(?<!not )(?<!n't )\b(?:healthy|unaffected|intact|undamaged|normal|clean|fine|ok|adequate|sufficient|sound|"
    r"unchanged|unharmed|in (?:good )?order|within (?:the )?(?:\w+ )?(?:limits?|range))\b|(?:might|may|"
    r"could) be(?=[.;,\n]|$)|(?<!不)正常|完好|良好|健康|未变|充足|充分|允许范围|(?<!不)合格|达标|够用|不缺"
)
"""States that exclude a thing from a set of affected, changed or failing things, unless the label asks for them."""
_OR = late_pattern(r",? (?:or|and/or) (?:the |an? )?|或者?")
_CLAIM = 2.0
"""Minimum weight of an occurrence that is more than a mention."""
_MOST = 60
"""Maximum number of occurrences whose context is examined."""


class LabelReading(NamedTuple):
    """Labels that a text gives as its answer, all labels in it, and signs that it does not decide."""

    asserted: tuple[str, ...]
    matches: tuple[LabelMatch, ...]
    further: tuple[str, ...] = ()


_SPECIES = late_pattern(
    r"([A-Z])([a-z]{2,}(?:a|us|um|is|on|es|as|ys|yx|ops|ix)) ([a-z]{2,}(?:a|us|um|is|i|ae|e|ens|ans|ides|or|es))$"
)


def _with_short_names(labels: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Add short forms to ``labels`` that fit no other label: a genus, "P. ostreatus", "spider mite"."""
    short: dict[str, set[str]] = {}
    for label, names in labels.items():
        short_names: set[str] = set()
        for name in names:
            if species := _SPECIES.match(name):
                short_names |= {species[1] + species[2], f"{species[1]}. {species[3]}"}
            if name.count(" ") > 1:
                short_names.add(name.partition(" ")[2])
        short[label] = short_names
    known = {name.lower() for names in labels.values() for name in names}
    return {
        label: (
            *names,
            *(name for name in sorted(short[label]) if name.lower() not in known and _is_own(name, label, labels)),
        )
        for label, names in labels.items()
    }


def _is_own(short: str, label: str, labels: Mapping[str, Sequence[str]]) -> bool:
    """Return True if no name of another label contains ``short``."""
    return not any(short.lower() in name.lower() for other, names in labels.items() if other != label for name in names)


_PART = late_pattern(r"[.;:!?。,\n()]|\b(?:but|while|whereas)\b")
_LINKS = frozenset("of the and in on with by to from for or a an no not without non".split())


def _in_other_forms(text: str, matches: Sequence[LabelMatch], labels: Mapping[str, Sequence[str]]) -> list[LabelMatch]:
    """Return the labels whose words occur in other forms within one clause: "the bedding is dirty".

    Labels that the text names as written are left out. One-word labels count only if the text has no other label or is
    Chinese.
    """
    known = {match.label for match in matches}
    occupied = [(match.start, match.end) for match in matches]
    starts = [0, *(part.end() for part in _PART.finditer(text))]
    is_chinese = any(letter > "\u2e80" for letter in text)
    others: list[LabelMatch] = []
    for label in [each for each in labels if each not in known]:
        words = [word for word in re.findall(r"[a-z]{3,}", normalise(label)) if word not in _LINKS]
        if (
            not words
            or re.search(r"\d|\.", label)
            or _BANDS.fullmatch(label)
            or (len(words) < 2 and matches and not is_chinese)
        ):
            continue
        parts: dict[int, dict[str, tuple[int, int]]] = {}
        for word in words:
            for hit in islice(word_pattern(word, min_chinese=2).finditer(text), _MOST):
                if not is_form(hit[0], word):
                    continue
                parts.setdefault(bisect_right(starts, hit.start()), {}).setdefault(word, hit.span())
        for spans in parts.values():
            begin, end = min(span[0] for span in spans.values()), max(span[1] for span in spans.values())
            if len(spans) == len(set(words)) and not any(one < end and begin < other for one, other in occupied):
                others.append(LabelMatch(label, text[begin:end], begin, end, asserted=True))
    denials = Negations(text) if others else None
    places = sorted(match.start for match in (*matches, *others))
    return [
        match._replace(
            asserted=not denials
            or not (
                denials.before(match.end - 1)
                or denials.after(match.end)
                or is_denied_beside(text, match.start, match.end, places)
            )
        )
        for match in others
    ]


_NUMBER_BEHIND = late_pattern(
    r"[^\d\n;|。]{0,40}?(?<![\d.])(?<!\bin (?=(?:19|20)\d\d(?!\d)))(\d[\d,]*(?:\.\d+)?) ?(%|[^\W\d]*)"
)
_THAN = late_pattern(r"\b(?:than|as)\b")
_UNKNOWN = late_pattern(
    r"\b(?:cannot|can't|could|couldn't|unable|un(?:clear|known|certain|sure)|whether|if|sure|would|may|might|compared|tell)\b"
)


def _left_over(
    text: str, matches: Sequence[LabelMatch], labels: Mapping[str, Sequence[str]], opposed: bool
) -> tuple[str, ...]:
    """Return the only option left if the text denies all others, or of two the other one if it states the opposite.

    Examples: "no pond dried up or was refilled"; "the lower half has fewer peaches (than the upper one)"."""
    named = list(dict.fromkeys(match.label for match in matches))
    if _UNKNOWN.search(text):
        return ()
    if opposed and len(labels) == 2 and (len(named) == 1 or _THAN.search(text, matches[0].end, matches[1].start)):
        rest = [label for label in labels if label != named[0]]
    else:
        rest = [label for label in labels if label not in named and not any(match.asserted for match in matches)]
    return tuple(rest) if len(rest) == 1 else ()


_NUMBER_BEFORE = late_pattern(r"(?<![\d.])(\d[\d,]*(?:\.\d+)?)(?: ?%)?(?: [^\W\d]+){0,4} (?:in|on|for|at) (?:the )?$")


def _leading(text: str, claimed: Sequence[LabelMatch], item: FormItem) -> tuple[str, ...]:
    """Return the label with the largest (or smallest) number if the item asks for it.

    The result is empty unless the text gives exactly one number for each label and one of them leads."""
    comparatives_in_label = comparatives().find(question(item))
    if not comparatives_in_label:
        return ()
    limits = [*(match.start for match in claimed[1:]), len(text)]
    behind = [_NUMBER_BEHIND.match(text, one.end, limit) for one, limit in zip(claimed, limits, strict=True)]
    ends = [0, *(match.end for match in claimed)]
    before = [_NUMBER_BEFORE.search(text, end, one.start) for one, end in zip(claimed, ends, strict=False)]
    numbers: dict[str, set[float]] = {}
    for match, number in zip(claimed, before if all(before) else behind, strict=True):
        if number is not None:
            numbers.setdefault(match.label, set()).add(float(number[1].replace(",", "")))
    if numbers.keys() != {match.label for match in claimed} or any(len(each) > 1 for each in numbers.values()):
        return ()
    values = {label: each.pop() for label, each in numbers.items()}
    best = (max if comparatives_in_label[-1][2] else min)(values.values())
    leading = tuple(label for label, value in values.items() if value == best)
    return leading if len(leading) == 1 else ()


def last_word_label(text: str, labels: Mapping[str, Sequence[str]]) -> str | None:
    """Return the only label whose last word is ``text``, as in ``1`` for "site 1"; None if there is not exactly one."""
    written = text.strip(" .*`'\"").lower()
    endings = [label for label in labels if label.lower().rpartition(" ")[2] == written and " " in label]
    return endings[0] if len(endings) == 1 and written not in {label.lower() for label in labels} else None


# --- names of an open set ---------------------------------------------------------------------------------------------

_CLAIM_OF_NAME = late_pattern(
    rf"(?:\\boxed ?\{{(?:\\[a-z]+ ?\{{)?|\banswer[:=] ?|(?:{WORD_START}(?:is|are|looks like|shows)|'s){WORD_END} ?"
    r"(?:(?:most likely|probably) )?|[为是])([^.!?}\n。]{1,120})"
)
_BESIDE_NAME = late_pattern(r"\s*[(\[][^()\[\]]*[)\]]")
_PART_OF_NAMES = late_pattern(r"\s*[,;\n、，；]\s*")
_REMARK = late_pattern(rf"(?:an?|the|which|who|also|commonly|because|caused|[a-z]+ing|[a-z]+:){WORD_END}")
_JOINT = late_pattern(rf"\s*(?:[/|+&=]|{WORD_START}(?:or|and|vs\.?|versus){WORD_END}|或|和)\s*")
_ARTICLE = late_pattern(r"^(?:an?|the) ")
_LONGEST_NAMES = 120


def read_names(text: str) -> tuple[str, ...]:
    """Return the names that ``text`` gives: those of its claims ("it is ..."), else the names that are all of it.

    Remarks in brackets and behind commas are left out. A longer text without a claim gives no name."""
    text = text[after_correction(text) :]
    denials = Negations(text)
    claimed = [claim[1] for claim in _CLAIM_OF_NAME.finditer(text) if not denials.before(claim.start(1))]
    if not claimed and len(text) <= _LONGEST_NAMES:
        claimed = [text]
    names: list[str] = []
    for each in claimed:
        first, *others = _PART_OF_NAMES.split(_BESIDE_NAME.sub("", each))
        for part in (first, *(other for other in others if not _REMARK.match(other))):
            names += (_ARTICLE.sub("", name.strip(" .:!*`'\"{}")) for name in _JOINT.split(part))
    return tuple(dict.fromkeys(name for name in names if name))


def is_name_of(text: str, names: Iterable[str]) -> bool:
    """Return True if ``text`` is one of ``names``, singular or plural."""
    return any(label_pattern(name)[0].fullmatch(text) for name in names if name.strip())


def read_labels(text: str, labels: Mapping[str, Sequence[str]], item: FormItem) -> LabelReading:
    """Return the options of ``item`` that ``text`` gives as its answer; ``labels`` are its :func:`label_names`."""
    several = item.takes_several
    matches = find_labels(text, _with_short_names(labels))
    matches += _in_other_forms(text, matches, labels)
    matches.sort(key=lambda match: match.start)
    of = subject(item)
    years = sorted(set(YEAR.findall(text)))
    item_senses = senses(item)
    leaves_out = several and not _FINE.search(normalise(item.label))
    claimed = claims(
        matches,
        text,
        several=several,
        fits=lambda part: count_words_of(part, of.words - _ASKING),
        sense=lambda part: sense_of(part, item_senses) or -(leaves_out and _FINE.search(part) is not None),
        elsewhere=lambda part: of_other_thing(part, of, years),
    )
    if several and any(_OR.fullmatch(text, one.end, other.start) for one, other in pairwise(claimed)):
        return LabelReading(tuple(sorted({match.label for match in claimed})), tuple(matches), ("alternatives",))
    asserted = tuple(sorted({match.label for match in claimed}))
    if several:
        return LabelReading(asserted, tuple(matches))
    if not claimed and matches:
        opposed = sense_of(text, item_senses) < 0
        asserted = _left_over(text, matches, labels, opposed) if opposed or item.type == "exact" else ()
    compared = len(asserted) == 1 and (not item_senses or item_senses[0][0].find(text))
    if claimed and not (compared and max(match.weight for match in claimed) >= _CLAIM):
        asserted = _leading(text, [match for match in matches if match.asserted][-_MOST:], item) or asserted
    return LabelReading(asserted, tuple(matches))


_BANDS = re.compile(r"[A-Z]{1,4}(?:-[A-Z]{1,4})+")
_PLURAL = re.compile(r"[a-z ]{4,}[^su]s")


def _singular(names: Sequence[str]) -> tuple[str, ...]:
    """Return the singular of plural names: ``true bug`` for ``true bugs``."""
    return tuple(f"{name[:-3]}y" if name.endswith("ies") else name[:-1] for name in names if _PLURAL.fullmatch(name))


def _as_listed(label: str) -> tuple[str, ...]:
    """Return the other ways to write a label that lists bands: ``RGB``, ``R, G, B``, ``R, G and B`` for ``R-G-B``."""
    *first, last = label.split("-")
    listed = ", ".join(first)
    return ("".join((*first, last)), f"{listed}, {last}", f"{listed} and {last}") if _BANDS.fullmatch(label) else ()


def label_names(item: FormItem) -> dict[str, tuple[str, ...]]:
    """Return the options of ``item``, each with the names that an answer may use for it."""
    if item.type == "file":
        stems = [choice.rpartition(".")[0] or choice for choice in item.choices]
        unique = len(set(stems)) == len(stems)
        return {
            choice: (choice, stem) if unique else (choice,) for choice, stem in zip(item.choices, stems, strict=True)
        }
    names = {choice: (choice, *item.aliases.get(choice, ())) for choice in item.choices}
    if item.takes_several:
        return names
    return {choice: (*each, *_as_listed(choice), *_singular(each[1:])) for choice, each in names.items()}
