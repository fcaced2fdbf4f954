"""Slot scores: what an answer asserts for a slot, against its value."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    ImageCallsSlot,
    KeywordsSlot,
    OpenTextSlot,
    OptionsSlot,
    PlotSlot,
    ReferenceTextSlot,
    ReferenceTextsSlot,
    Slot,
    SubTasksSlot,
    ToleranceSlot,
)
from agrotools.scoring.keywords import score_keywords, score_texts
from agrotools.scoring.open_text import score_facts
from agrotools.scoring.reading import AnswerText, Scope, read_answer
from agrotools.scoring.reading_keyed import keyed_scope, without_other_values
from agrotools.scoring.reading_numbers import agree, read_number, within
from agrotools.text.labels import LabelMatch, find_boolean, find_labels

VERSION = "1"


class SlotScore(NamedTuple):
    """A score in [0, 1], how the answer was read, and whether the answer used the form for this slot."""

    value: float
    reading: dict[str, JsonValue]
    used_form: bool


def score_slot(slot: Slot, slots: Sequence[Slot], answer: str) -> SlotScore:
    """Score one slot of an answer. ``slots`` are all slots of the sample: their names delimit each other's values.

    Slots whose answer is drawn are not scored here: that is no text. Nor are those of examination questions
    (:mod:`agrotools.scoring.knowledge_answers`), or those that a judge alone scores.
    """
    if isinstance(slot, PlotSlot | ImageCallsSlot | SubTasksSlot | OptionsSlot | ReferenceTextSlot):
        raise TypeError(f"slots of type {slot.type} are not scored here")
    read = read_answer(answer)
    if not read.text.strip():
        return SlotScore(0.0, {"scope": "nothing", "rule": "the answer is empty"}, False)
    if isinstance(slot, ToleranceSlot):
        return _score_number(slot, slot.value, slot.margin, slots, read)
    if isinstance(slot, ExactSlot) and not isinstance(slot.value, str):
        return _score_number(slot, float(slot.value), 0.0, slots, read)
    scope = keyed_scope(slot, slots, read, lambda text: _holds(slot, text)) or Scope("whole text", read.plain)
    if isinstance(slot, KeywordsSlot):
        # A keyword may hold what counts as markup, and may stand beside the answer line: all of the text counts.
        value, reading = score_keywords(slot, read)
        return SlotScore(value, {"scope": "whole text", "text": read.plain[:240], **reading}, scope.keyed)
    if isinstance(slot, ReferenceTextsSlot):
        value, reading = score_texts(slot, scope.text)
        return SlotScore(value, {"scope": scope.kind, "text": scope.text[:240], **reading}, scope.keyed)
    if isinstance(slot, OpenTextSlot):
        value, reading = score_facts(slot, scope.text)
        return SlotScore(value, {"scope": scope.kind, "text": scope.text[:240], **reading}, scope.keyed)
    if not scope.keyed:
        scope = Scope("whole text", without_other_values(slot, slots, read.plain))
    if isinstance(slot, BooleanSlot):
        value, reading = _score_boolean(slot, scope)
    else:
        value, reading = _score_labels(slot, slots, scope, read)
    return SlotScore(value, {"scope": scope.kind, "text": scope.text[:240], **reading}, scope.keyed)


def _holds(
    slot: ExactSlot | BooleanSlot | ChoiceSetSlot | FileSlot | OpenTextSlot | KeywordsSlot | ReferenceTextsSlot,
    text: str,
) -> bool:
    """Whether ``text`` says anything that this slot could be read from."""
    if isinstance(slot, OpenTextSlot | KeywordsSlot | ReferenceTextsSlot):
        return bool(text)
    return (
        find_boolean(text) is not None if isinstance(slot, BooleanSlot) else bool(find_labels(text, _label_names(slot)))
    )


def _score_number(
    slot: ToleranceSlot | ExactSlot, value: float, margin: float, slots: Sequence[Slot], answer: AnswerText
) -> SlotScore:
    candidates, used_form, reading = read_number(slot, slots, answer)
    if not candidates:
        return SlotScore(0.0, reading, used_form)
    if not agree(candidates):
        reading["rule"] = f"{reading['rule']}: several different candidates"
        return SlotScore(0.0, reading, used_form)
    low, high = candidates[0]
    right = within(value, margin, low, high)
    reading["off_by"] = max(abs(low - value), abs(high - value))
    return SlotScore(float(right), reading, used_form)


def _score_boolean(slot: BooleanSlot, scope: Scope) -> tuple[float, dict[str, JsonValue]]:
    found = find_boolean(scope.text)
    if found is None:
        return 0.0, {"rule": "no yes or no"}
    said, word = found
    return float(said == slot.value), {"candidate": word, "value": said, "rule": "first asserted yes or no"}


def _score_labels(
    slot: ExactSlot | ChoiceSetSlot | FileSlot, slots: Sequence[Slot], scope: Scope, answer: AnswerText
) -> tuple[float, dict[str, JsonValue]]:
    labels = _label_names(slot)
    # An alias may hold what counts as markup elsewhere ("$5"), so free text is searched as it was written.
    text = scope.text if scope.keyed else without_other_values(slot, slots, answer.text)
    matches = find_labels(text, labels)
    if not matches and not scope.keyed:
        matches = find_labels(scope.text, labels)
    asserted = sorted({match.label for match in matches if match.asserted})
    reading: dict[str, JsonValue] = {
        "candidate": [_shown(match) for match in matches[:20]],
        "value": list(asserted),
        "rule": "labels that the text asserts",
    }
    if isinstance(slot, ChoiceSetSlot):
        right = set(slot.value)
        union = right | set(asserted)
        reading["jaccard"] = len(right & set(asserted)) / len(union) if union else 1.0
        return float(set(asserted) == right and bool(asserted)), reading
    wanted = str(slot.value)
    return float(asserted == [wanted]), reading


def _label_names(slot: ExactSlot | ChoiceSetSlot | FileSlot) -> dict[str, tuple[str, ...]]:
    """Every label of the slot's set with the names under which it may stand in an answer."""
    if isinstance(slot, ExactSlot):
        return {
            label: (label, *slot.aliases.get(label, ())) for label in dict.fromkeys((str(slot.value), *slot.choices))
        }
    if isinstance(slot, ChoiceSetSlot):
        return {choice: (choice, *slot.aliases.get(choice, ())) for choice in slot.choices}
    stems = [choice.rpartition(".")[0] or choice for choice in slot.choices]
    unique = len(set(stems)) == len(stems)
    return {choice: (choice, stem) if unique else (choice,) for choice, stem in zip(slot.choices, stems, strict=True)}


def _shown(match: LabelMatch) -> str:
    return match.text if match.asserted else f"not {match.text}"
