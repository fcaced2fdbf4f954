"""Reader of the labels that an answer asserts, and of other names if any name is a valid answer."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from agrotools.core import ChoiceSetSlot, ExactSlot, FileSlot, Slot
from agrotools.scoring.answer_text import after_correction
from agrotools.scoring.slot_subject import YEAR, count_words_of, of_other_thing, subject
from agrotools.scoring.word_forms import comparatives, is_form, question, sense_of, senses, word_pattern
from agrotools.text.clauses import Negations, further_claims, is_name, list_neighbours
from agrotools.text.labels import LabelMatch, claims, find_labels, is_denied_beside
from agrotools.text.normalise import CJK, WORD, WORD_END, late_pattern, normalise, reading_words

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
    """Labels that a text gives as its answer, all labels in it, and other names that it offers."""

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


_ORDINALS = ("first|1st|第一|一", "second|2nd|第二|二", "third|3rd|第三|三", "fourth|4th|第四|四", "fifth|5th|第五|五")
_REFERENCE = late_pattern(
    r"\bthe (?:(?P<latter>latter|last(?: one)?(?: of (?:these|them|the \w+))?)|(?P<former>former)|(?P<other>other)|"
    + r"(?:"
    + "|".join(f"(?P<n{number}>{words})" for number, words in enumerate(_ORDINALS))
    + r"))(?: (?:image|picture|photo|file|one|option|candidate|map|tile|frame))?\b"
    r"(?! (?:of|glance|sight|time|step|place|half|week|day|hand))|"
    r"(?P<later>后者)|(?P<earlier>前者)|第(?P<cn>[一二三四五])[幅张个项种]"
)


def _referred(text: str, matches: Sequence[LabelMatch], labels: Sequence[str]) -> list[LabelMatch]:
    """Return the labels that "the latter", "the other image", "the second picture", 后者 or 第二幅 refer to."""
    references: list[LabelMatch] = []
    starts = [each.start for each in matches]
    for match in islice(_REFERENCE.finditer(text), _MOST) if len(labels) > 1 else ():
        before = matches[: bisect_left(starts, match.start())][-_MOST:]
        recent = list(dict.fromkeys(each.label for each in reversed(before)))[:2][::-1]
        label = None
        if match["latter"] or match["later"]:
            label = recent[-1] if len(recent) > 1 else None
        elif match["former"] or match["earlier"]:
            label = recent[0] if len(recent) > 1 else None
        elif match["other"]:
            label = next((each for each in labels if each not in recent[-1:]), None) if len(labels) == 2 else None
        else:
            number = next((n for n in range(len(_ORDINALS)) if match[f"n{n}"]), None)
            number = "一二三四五".index(match["cn"]) if match["cn"] else number
            if number is not None and number < len(labels) and "." in labels[0]:
                label = labels[number]
        if label is not None:
            references.append(LabelMatch(label, match[0], match.start(), match.end(), True))
    return references


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


def _leading(text: str, claimed: Sequence[LabelMatch], slot: Slot) -> tuple[str, ...]:
    """Return the label with the largest (or smallest) number if the slot asks for it.

    The result is empty unless the text gives exactly one number for each label and one of them leads."""
    comparatives_in_label = comparatives().find(question(slot))
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


# --- names beside a name: "a (b)", "a, also known as b" ---------------------------------------------------------------

_ALSO = (
    r"(?:(?:aka|a\.k\.a\.?|alias|syn\.?|synonym:?|i\.e\.,?|that is|namely|rather|or|and|plus|with|as well as|maybe|"
    r"perhaps|possibly|probably|likely|also|(?:also )?(?:known as|called|named)|(?:an? |its )?synonym is)"
    rf"{WORD_END}|又名|又称|即|或|和|[=~/\\>→-]) ?"
)
_BETWEEN = late_pattern(
    rf"[\"'*]*(?:,? ?[(\[{{<\"']\s?(?:{_ALSO})*|,? ?(?:{_ALSO})+[(\[{{<\"']?|"
    rf"(?: ?\}}[.;,]?\s*(?:{_ALSO})*\\boxed ?\{{|(?<=\*\*) (?:{_ALSO})*\*\*))"
)
_NAME = rf"(?:{WORD}|[{CJK}]|[ '-](?={WORD}|[{CJK}])){{1,60}}+"
_NAME_BEHIND, _NAME_BEFORE = late_pattern(rf"(?:an? |the )?({_NAME})"), late_pattern(rf"({_NAME})$")
_TWO_PARTS = late_pattern(rf"\W*({_NAME})\W*(?:[.:!。…\n] ?)+\W*({_NAME})\W*")
_ANSWER = late_pattern(
    rf"(?:\\boxed ?\{{(?:\\[a-z]+ ?\{{)?|\banswer(?: is|:| =) ?(?:an? |the )?|"
    rf"(?:^|[.!\n。] ?)(?:it|this)(?: is|'s) (?:an? |the )?"
    r"(?![^.!}\n。,;]{0,60}(?:ous|ive|al|ic|[^e]ed|ing|ble|ful|less|ant|ent|y)(?:[.!}\n。,;]|$)))"
    rf"({_NAME})(?=[.!}}\n。,;]|$)"
)
_LONGEST_REST = 60


def _other_names(text: str, strongest: Sequence[LabelMatch], names: Sequence[str], label: str) -> tuple[str, ...]:
    """Return the names that ``text`` gives as equal to, or as an answer beside, the accepted ``names``."""
    beside = [name for match in strongest for name in _names_beside(text, match)]
    beside += [answer[1] for answer in _ANSWER.finditer(text, after_correction(text))]
    if len(text) < 2 * _LONGEST_REST and (parts := _TWO_PARTS.fullmatch(text)):
        beside += parts.groups()
    rest = f"{text[: strongest[0].start]}{text[strongest[0].end :]}"
    if len(rest) < _LONGEST_REST and rest.strip() and re.search(r"^ | $", rest):  # "a b"
        beside.append(rest.strip(" .*"))
    return tuple(name for name in dict.fromkeys(beside) if _is_other_name(name, names, label))


def _names_beside(text: str, match: LabelMatch) -> list[str]:
    """Return the texts in brackets or behind "also known as" directly after or before a name."""
    ends = reading_words("sentence")
    beside: list[str] = []
    gap = _BETWEEN.match(text, match.end)
    if gap and (name := _NAME_BEHIND.match(text, gap.end())):
        beside.append(" ".join(takewhile(lambda word: word not in ends, name[1].split())))
    ahead = text[max(0, match.start - 120) : match.start]
    gap = next((gap for gap in _BETWEEN.finditer(ahead) if gap.end() == len(ahead)), None)
    if gap and (name := _NAME_BEFORE.search(ahead, 0, gap.start())):
        beside.append(" ".join([*takewhile(lambda word: word not in ends, name[1].split()[::-1])][::-1]))
    return beside


def _is_other_name(name: str, names: Sequence[str], label: str) -> bool:
    """Return True if ``name``, beside one of the accepted ``names``, is the name of another thing.

    The knowledge base must hold both: any other word beside a name may be a remark ("Deere (left)").
    """
    if not is_name(name) or find_labels(name, {"": names}):
        return False
    from agrotools.knowledge.kb_names import shipped_names

    known = shipped_names()
    accepted = [normalise(each) for each in names]
    own_entries = [entry for each in accepted for entry in known.all_of_name(each)]
    with_crops = any(entry.kind == "crop" for entry in own_entries) or "crop" in label
    found = known.all_of_name(name) or known.all_of_name(name.removesuffix("s"))
    entries = [entry for entry in found if entry.kind != "crop" or with_crops]  # "late blight (potato)"
    if not own_entries or not entries or any(entry in own_entries for entry in entries):
        return False
    return not any(name in each or each in name for each in accepted)


def read_labels(
    text: str, labels: Mapping[str, Sequence[str]], *, several: bool, closed: bool, slot: Slot | None = None
) -> LabelReading:
    """Return the labels that ``text`` gives as its answer.

    ``several``: the answer is a set. ``closed``: the answer is one of ``labels``; otherwise unlisted names count as
    candidates too if the text offers them in the same way as the label.
    """
    matches = find_labels(text, _with_short_names(labels) if closed else labels)
    if closed:
        matches += [*_referred(text, matches, list(labels)), *_in_other_forms(text, matches, labels)]
        matches.sort(key=lambda match: match.start)
    of = subject(slot) if slot is not None else None
    years = sorted(set(YEAR.findall(text))) if of is not None else []
    slot_senses = senses(slot) if slot is not None else ()
    leaves_out = several and slot is not None and not _FINE.search(normalise(slot.label))
    claimed = claims(
        matches,
        text,
        several=several,
        fits=lambda part: 0 if of is None or not closed else count_words_of(part, of.words - _ASKING),
        sense=lambda part: sense_of(part, slot_senses) or -(leaves_out and _FINE.search(part) is not None),
        elsewhere=lambda part: None if of is None or not closed else of_other_thing(part, of, years),
    )
    if several and any(_OR.fullmatch(text, one.end, other.start) for one, other in pairwise(claimed)):
        return LabelReading(tuple(sorted({match.label for match in claimed})), tuple(matches), ("alternatives",))
    asserted = tuple(sorted({match.label for match in claimed}))
    if closed and not several and not claimed and matches:
        opposed = sense_of(text, slot_senses) < 0
        asserted = _left_over(text, matches, labels, opposed) if opposed or isinstance(slot, ExactSlot) else ()
    compared = len(asserted) == 1 and (not slot_senses or slot_senses[0][0].find(text))
    if (
        slot is not None
        and closed
        and not several
        and claimed
        and not (compared and max(match.weight for match in claimed) >= _CLAIM)
    ):
        asserted = _leading(text, [match for match in matches if match.asserted][-_MOST:], slot) or asserted
    if closed or len(asserted) != 1:
        return LabelReading(asserted, tuple(matches))
    names = labels[asserted[0]]

    def same(item: str) -> bool:
        return bool(find_labels(item, {"": names}))

    most = max(match.weight for match in claimed)
    strongest = [match for match in claimed if match.weight == most]
    listed = [list_neighbours(text, match.start, match.end, same).items for match in strongest[:_MOST]]
    # A list of candidates may come before a claim: "A, B or C. It is B."
    decided = most >= _CLAIM and not all(listed)
    further = () if decided else tuple(item for items in listed for item in items)
    label = normalise(slot.label) if slot is not None else ""
    further = further or _other_names(text, strongest[:_MOST], names, label) or further_claims(text, same)
    return LabelReading(asserted, tuple(matches), further)


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


def label_names(slot: ExactSlot | ChoiceSetSlot | FileSlot) -> dict[str, tuple[str, ...]]:
    """Return every label of the slot with the names that an answer may use for it."""
    if isinstance(slot, ExactSlot):
        return {
            label: (
                label,
                *_as_listed(label),
                *slot.aliases.get(label, ()),
                *_singular(slot.aliases.get(label, ())),
            )
            for label in dict.fromkeys((str(slot.value), *slot.choices))
        }
    if isinstance(slot, ChoiceSetSlot):
        return {choice: (choice, *slot.aliases.get(choice, ())) for choice in slot.choices}
    stems = [choice.rpartition(".")[0] or choice for choice in slot.choices]
    unique = len(set(stems)) == len(stems)
    return {choice: (choice, stem) if unique else (choice,) for choice, stem in zip(slot.choices, stems, strict=True)}
