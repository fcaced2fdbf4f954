"""Slot scores: what an answer asserts for a slot, against its value.

The reader of a kind of slot is imported when the first slot of that kind is scored.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    ImageCallsSlot,
    KeywordsSlot,
    OpenTextSlot,
    PlotSlot,
    ReferenceTextsSlot,
    Slot,
    ToleranceSlot,
)
from agrotools.plugin import plugins_of_slots
from agrotools.scoring.answer_text import LONGEST_ANSWER, AnswerText, Scope, read_answer
from agrotools.scoring.keyed_values import keyed_scopes, without_other_values

if TYPE_CHECKING:
    from agrotools.text.labels import LabelMatch

VERSION = "3"
_SHOWN = 240
_IN_WORDS = OpenTextSlot | KeywordsSlot | ReferenceTextsSlot
_UNDECIDED = re.compile(
    r"\b(?:any|all|each) of (?:these|them|those) (?:may|might|could|can) be\b|"
    r"\bleave (?:the |that |this )?(?:choice|decision)(?: open| to you)|\bin which case\b[^.;]{0,20}\d|"
    r"\b(?:remains?|stays?|left) (?:undetermined|undecided|unresolved)\b|"
    r"\b(?:cannot|can't|could not|couldn't|unable to|not able to) (?:choose|decide|tell|say) "
    r"(?:between|which|whether)\b|\bnot sure which\b|\banswer depends on\b|\beither (?:one )?of (?:the two|these|them)|"
    r"\beither (?:image|file|map|one|option|answer) (?:could|may|might)\b|"
    r"无法(?:确定|判断)(?:是)?(?:哪|两者|到底)|(?:无法|难以|不能)区分(?=[,。;]|$)"
)


class SlotScore(NamedTuple):
    """A score in [0, 1], how the answer was read, and whether the answer used the form for this slot."""

    value: float
    reading: dict[str, JsonValue]
    used_form: bool


def score_slot(slot: Slot, slots: Sequence[Slot], answer: str) -> SlotScore:
    """Score one slot of an answer. ``slots`` are all slots of the sample: their names delimit each other's values.

    Slots whose answer is drawn are not scored here, which is no text; nor are those of benchmark plug-ins.
    """
    if isinstance(slot, PlotSlot | ImageCallsSlot):
        raise TypeError(f"slots of type {slot.type} are not scored here")
    for plugin in plugins_of_slots((slot,)):
        if (scorer := plugin.scoring.slot_scorers.get(slot.type)) is not None:
            return scorer(slot, slots, answer)
    read = read_answer(answer)
    score = _score(slot, slots, read)
    if read.unread:
        score.reading["unread"] = f"{read.unread} characters behind the first {LONGEST_ANSWER} are not read"
    return score


def _score(slot: Slot, slots: Sequence[Slot], read: AnswerText) -> SlotScore:
    if not read.text.strip():
        return SlotScore(0.0, {"scope": "nothing", "rule": "the answer is empty"}, False)
    if not isinstance(slot, _IN_WORDS) and _only_asks(read.plain):
        return SlotScore(0.0, {"scope": "nothing", "text": read.plain[:_SHOWN], "rule": "the answer only asks"}, False)
    if not isinstance(slot, _IN_WORDS) and (undecided := _UNDECIDED.search(read.plain)):
        return SlotScore(0.0, {"scope": "whole text", "text": undecided[0], "rule": "declared undecided"}, False)
    if isinstance(slot, ToleranceSlot):
        return _score_number(slot, slot.value, slot.margin, slots, read)
    if isinstance(slot, ExactSlot) and not isinstance(slot.value, str):
        return _score_number(slot, float(slot.value), 0.0, slots, read)
    if isinstance(slot, BooleanSlot):
        return _score_boolean(slot, slots, read)
    if isinstance(slot, ExactSlot | ChoiceSetSlot | FileSlot):
        return _score_labels(slot, slots, read)
    keyed = keyed_scopes(slot, slots, read, bool)
    scope = keyed[-1] if keyed else Scope("whole text", read.plain)
    if isinstance(slot, KeywordsSlot):
        from agrotools.scoring.keywords import score_keywords

        # A keyword may hold what counts as markup, and may stand beside the answer line: all of the text counts.
        value, reading = score_keywords(slot, read)
        return SlotScore(value, {"scope": "whole text", "text": read.plain[:_SHOWN], **reading}, scope.keyed)
    if isinstance(slot, ReferenceTextsSlot):
        from agrotools.scoring.keywords import score_texts

        value, reading = score_texts(slot, scope.text)
    elif isinstance(slot, OpenTextSlot):
        from agrotools.scoring.open_text import score_facts

        value, reading = score_facts(slot, scope.text)
    else:
        raise TypeError(f"slots of type {slot.type} are not scored here")
    return SlotScore(value, {"scope": scope.kind, "text": scope.text[:_SHOWN], **reading}, scope.keyed)


def _only_asks(text: str) -> bool:
    """Whether every sentence is a question, and no line gives a value by key."""
    said = [sentence for sentence in re.split(r"(?<=[.!?。])\s+|\n", text) if sentence.strip()]
    return ":" not in text and all(sentence.rstrip(" \"')").endswith("?") for sentence in said)


def _score_number(
    slot: ToleranceSlot | ExactSlot, value: float, margin: float, slots: Sequence[Slot], answer: AnswerText
) -> SlotScore:
    from agrotools.scoring.number_reading import read_number, within

    candidates, used_form, reading = read_number(slot, slots, answer)
    if not candidates:
        return SlotScore(0.0, reading, used_form)
    if len(candidates) > 1:
        reading["rule"] = f"{reading['rule']}: several different candidates"
        return SlotScore(0.0, reading, used_form)
    low, high = next(iter(candidates))
    right = within(value, margin, low, high)
    reading["off_by"] = max(abs(low - value), abs(high - value))
    return SlotScore(float(right), reading, used_form)


def _score_boolean(slot: BooleanSlot, slots: Sequence[Slot], answer: AnswerText) -> SlotScore:
    from agrotools.scoring.yes_no_reading import read_form_answer, read_yes_no

    scopes = keyed_scopes(slot, slots, answer, lambda text: read_yes_no(slot, text).said is not None)
    scopes = scopes or [Scope("whole text", without_other_values(slot, slots, answer.plain))]
    found = [(scope.keyed and read_form_answer(scope.text)) or read_yes_no(slot, scope.text) for scope in scopes]
    said = {each.said for each in found}
    scope = scopes[-1]
    words = list(dict.fromkeys(word for each in found for word in each.words))
    rule = found[-1].rule if len(said) == 1 else "the key stands more than once, with yes and no"
    reading: dict[str, JsonValue] = {"scope": scope.kind, "text": scope.text[:_SHOWN], "rule": rule}
    if words:
        reading["candidate"] = list(words)
    if len(said) > 1 or None in said:
        return SlotScore(0.0, reading, scope.keyed)
    reading["value"] = found[0].said
    return SlotScore(float(found[0].said == slot.value), reading, scope.keyed)


def _score_labels(slot: ExactSlot | ChoiceSetSlot | FileSlot, slots: Sequence[Slot], answer: AnswerText) -> SlotScore:
    from agrotools.scoring.label_reading import LabelReading, last_word_label, read_labels
    from agrotools.text.labels import find_labels

    labels = _label_names(slot)
    several = isinstance(slot, ChoiceSetSlot)
    closed = not isinstance(slot, ExactSlot) or len(labels) > 1

    def read(text: str) -> LabelReading:
        return read_labels(text, labels, several=several, closed=closed, slot=slot)

    def read_form(text: str) -> LabelReading:
        own = last_word_label(text, labels) if closed and not several else None
        return LabelReading((own,), ()) if own else read(text)

    scopes = keyed_scopes(slot, slots, answer, lambda text: bool(find_labels(text, labels) if closed else text.strip()))
    # An alias may hold what counts as markup elsewhere ("$5"), so free text is searched as it was written.
    texts = [scope.text for scope in scopes] or [without_other_values(slot, slots, answer.text)]
    found = [read_form(text) if scopes else read(text) for text in texts]
    if not scopes:
        plain = without_other_values(slot, slots, answer.plain)
        scopes = [Scope("whole text", plain)]
        if not found[0].found:
            found = [read(plain)]
    last = found[-1]
    asserted = sorted({label for each in found for label in each.asserted})
    if several and len({each.asserted for each in found}) > 1:
        last = last._replace(further=("another set under the same key",))
    further = [name for each in found for name in each.further] or list(last.further)
    if not closed and scopes[-1].keyed:
        further += [scope.text[:60] for scope, each in zip(scopes, found, strict=True) if not each.found]
    reading: dict[str, JsonValue] = {
        "scope": scopes[-1].kind,
        "text": scopes[-1].text[:_SHOWN],
        "candidate": [*(_shown(match) for match in last.found[:20]), *further[:20]],
        "value": list(asserted),
        "rule": "other names stand beside it" if further else "labels that the text asserts",
    }
    keyed = scopes[-1].keyed
    if isinstance(slot, ChoiceSetSlot):
        right = set(slot.value)
        union = right | set(asserted)
        reading["jaccard"] = len(right & set(asserted)) / len(union) if union else 1.0
        return SlotScore(float(set(asserted) == right and bool(asserted) and not further), reading, keyed)
    return SlotScore(float(asserted == [str(slot.value)] and not further), reading, keyed)


_BANDS = re.compile(r"[A-Z]{1,4}(?:-[A-Z]{1,4})+")


_PLURAL = re.compile(r"[a-z ]{4,}[^su]s")


def _singular(names: Sequence[str]) -> tuple[str, ...]:
    """``true bug`` for ``true bugs``."""
    return tuple(f"{name[:-3]}y" if name.endswith("ies") else name[:-1] for name in names if _PLURAL.fullmatch(name))


def _without_hyphens(label: str) -> tuple[str, ...]:
    """``RGB`` for ``R-G-B``."""
    return (label.replace("-", ""),) if _BANDS.fullmatch(label) else ()


def _label_names(slot: ExactSlot | ChoiceSetSlot | FileSlot) -> dict[str, tuple[str, ...]]:
    """Every label of the slot's set with the names under which it may stand in an answer."""
    if isinstance(slot, ExactSlot):
        return {
            label: (
                label,
                *_without_hyphens(label),
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


def _shown(match: "LabelMatch") -> str:
    return match.text if match.asserted else f"not {match.text}"
