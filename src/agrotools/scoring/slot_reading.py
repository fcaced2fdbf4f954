"""Readings of answers: what a text states for an item of the answer form, found without the gold.

``read_slot`` reads one item; :mod:`agrotools.scoring.slots` compares its value with the gold. ``refusing_words`` tells
whether an answer refuses. The reader of a kind of item is imported when the first item of that kind is read.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from agrotools.core.form_item import FormItem
from agrotools.scoring.answer_text import AnswerText, Scope, read_answer
from agrotools.scoring.keyed_values import keyed_scopes, without_other_values
from agrotools.text.labels import find_labels
from agrotools.text.normalise import normalise
from agrotools.text.refusal import ends_in_refusal, estimates_in, refusing_clauses, statements_of_no_answer

if TYPE_CHECKING:
    from agrotools.text.labels import LabelMatch

MAX_EXCERPT = 240


class SlotReading(NamedTuple):
    """What an answer states for an item, and how it was read. Without a value it states none or does not decide.

    ``number``: low and high end in the unit of the item. ``names``: options, or names if any may be given; if not
    ``decided``, the text names others beside them.
    ``used_form``: True if the answer used the form for the item."""

    details: dict[str, JsonValue]
    used_form: bool = False
    yes: bool | None = None
    number: tuple[float, float] | None = None
    names: tuple[str, ...] = ()
    decided: bool = True


def read_slot(item: FormItem, items: Sequence[FormItem], answer: AnswerText) -> SlotReading:
    """Read the value of ``item``, a number, yes or no, options or a name, from ``answer``.

    ``items`` are all items of the form, whose names delimit each other's values."""
    if _only_asks(answer.plain):
        why = "the answer is only a question"
        return SlotReading({"scope": "nothing", "text": answer.plain[:MAX_EXCERPT], "rule": why})
    if undecided := _UNDECIDED.search(answer.plain):
        return SlotReading({"scope": "whole text", "text": undecided[0], "rule": "declared undecided"})
    if item.is_number:
        return _read_number(item, items, answer)
    if item.type == "boolean":
        return _read_boolean(item, items, answer)
    return _read_options(item, items, answer) if is_closed(item) else _read_names(item, items, answer)


def is_closed(item: FormItem) -> bool:
    """Return True if the answer is among the choices of ``item``; False if any name may be given."""
    return item.type in ("file", "choice_set") or (item.type == "exact" and len(item.choices) > 1)


def _only_asks(text: str) -> bool:
    """Return True if every sentence is a question and the text has no colon, so that no line gives a value by key."""
    parts = [sentence for sentence in re.split(r"(?<=[.!?。])\s+|\n", text) if sentence.strip()]
    return ":" not in text and all(sentence.rstrip(" \"')").endswith("?") for sentence in parts)


def _read_number(item: FormItem, items: Sequence[FormItem], answer: AnswerText) -> SlotReading:
    from agrotools.scoring.number_reading import read_number

    candidates, used_form, details = read_number(item, items, answer)
    if len(candidates) > 1:
        details["rule"] = f"{details['rule']}: several different candidates"
    return SlotReading(details, used_form, number=candidates[0] if len(candidates) == 1 else None)


def _read_boolean(item: FormItem, items: Sequence[FormItem], answer: AnswerText) -> SlotReading:
    from agrotools.scoring.yes_no_reading import YES_OR_NO_LINE, read_form_answer, read_yes_no

    scopes = keyed_scopes(
        item,
        items,
        answer,
        lambda text: read_yes_no(item, text).value is not None,
        lambda line: YES_OR_NO_LINE.fullmatch(line) is not None,
    )
    scopes = scopes or [Scope("whole text", without_other_values(item, items, answer.plain))]
    answers = [(scope.keyed and read_form_answer(scope.text)) or read_yes_no(item, scope.text) for scope in scopes]
    verdicts = {each.value for each in answers}
    scope = scopes[-1]
    words = list(dict.fromkeys(word for each in answers for word in each.words))
    rule = answers[-1].rule if len(verdicts) == 1 else "the key is given more than once, with yes and no"
    details: dict[str, JsonValue] = {"scope": scope.kind, "text": scope.text[:MAX_EXCERPT], "rule": rule}
    if words:
        details["candidate"] = list(words)
    yes = answers[0].value if len(verdicts) == 1 else None
    if yes is not None:
        details["value"] = yes
    return SlotReading(details, scope.keyed, yes=yes)


def _read_options(item: FormItem, items: Sequence[FormItem], answer: AnswerText) -> SlotReading:
    from agrotools.scoring.label_reading import LabelReading, label_names, last_word_label, read_labels, read_names

    labels = label_names(item)
    several = item.takes_several

    def read(text: str) -> LabelReading:
        return read_labels(text, labels, item)

    def read_form(text: str) -> LabelReading:
        by_last_word = None if several else last_word_label(text, labels)
        return LabelReading((by_last_word,), ()) if by_last_word else read(text)

    spelled = {normalise(name).strip() for names in labels.values() for name in names}
    scopes = keyed_scopes(
        item,
        items,
        answer,
        lambda text: bool(find_labels(text, labels)),
        lambda line: line.strip(".*- ") in spelled,
    )
    # An alias may contain markup characters ("$5"), so free text is searched as it was written.
    texts = [scope.text for scope in scopes] or [without_other_values(item, items, answer.text)]
    readings = [read_form(text) if scopes else read(text) for text in texts]
    if not scopes:
        plain = without_other_values(item, items, answer.plain)
        scopes = [Scope("whole text", plain)]
        if not readings[0].matches:
            readings = [read(plain)]
    last = readings[-1]
    asserted = sorted({label for each in readings for label in each.asserted})
    if several and len({each.asserted for each in readings}) > 1:
        last = last._replace(further=("another set under the same key",))
    further = [name for each in readings for name in each.further] or list(last.further)
    scope = scopes[-1]
    details: dict[str, JsonValue] = {
        "scope": scope.kind,
        "text": scope.text[:MAX_EXCERPT],
        "candidate": [*(_as_written(match) for match in last.matches[:20]), *further[:20]],
        "value": list(asserted),
        "rule": "other names are listed with it" if further else "labels that the text asserts",
    }
    # A name that is no option may be another name of the correct one.
    if not several and not any(each.matches or each.asserted for each in readings):
        asserted = [name for text in texts for name in read_names(text)]
    return SlotReading(details, scope.keyed, names=tuple(dict.fromkeys(asserted)), decided=not further)


def _as_written(match: "LabelMatch") -> str:
    return match.text if match.asserted else f"not {match.text}"


def _read_names(item: FormItem, items: Sequence[FormItem], answer: AnswerText) -> SlotReading:
    from agrotools.scoring.label_reading import read_names

    scopes = keyed_scopes(item, items, answer, lambda text: bool(text.strip()))
    scopes = scopes or [Scope("whole text", without_other_values(item, items, answer.plain))]
    names = tuple(dict.fromkeys(name for scope in scopes for name in read_names(scope.text)))
    scope = scopes[-1]
    details: dict[str, JsonValue] = {
        "scope": scope.kind,
        "text": scope.text[:MAX_EXCERPT],
        "value": list(names[:20]),
        "rule": "names that the text gives",
    }
    return SlotReading(details, scope.keyed, names=names)


# --- refusals ---------------------------------------------------------------------------------------------------------


def refusing_words(items: Sequence[FormItem], answer: str) -> str | None:
    """Return the words by which ``answer`` refuses; None if it does not, or gives a value of ``items``.

    An answer with a value and doubts is an answer. If it ends in a refusal as the form offers it, only values in the
    form and announced estimates count, because a reason may name numbers and files; so of names if it does not decide.
    """
    plain = read_answer(answer).plain
    asked = [item for item in items if not item.made_by_tools]
    refused = refusing_clauses(plain)
    in_words = any(item.free_text for item in asked)
    unknown = statements_of_no_answer(refused.rest if refused else plain, _labels(asked), in_words=in_words)
    said = refused or unknown
    if said is None:
        return None
    rest = unknown.rest if unknown else said.rest
    closing = ends_in_refusal(plain)
    open_choice = _UNDECIDED.search(said.words) is not None
    given = any(
        _gives_value(item, asked, rest, said.words, form_only=closing or (open_choice and bool(item.choices)))
        for item in asked
    ) or (closing and any(_gives_value(item, asked, estimates_in(rest)) for item in asked))
    return None if given else said.words[:MAX_EXCERPT]


def _labels(items: Sequence[FormItem]) -> Iterator[str]:
    for item in items:
        yield from map(normalise, item.choices)
        yield from (normalise(alias) for names in item.aliases.values() for alias in names)


def _gives_value(
    item: FormItem, items: Sequence[FormItem], text: str, doubts: str = "", *, form_only: bool = False
) -> bool:
    if not text.strip():
        return False
    if item.free_text:
        keyed = keyed_scopes(item, items, read_answer(text), bool)
        if any(len(scope.text.split()) >= _FEWEST_KEYED for scope in keyed):
            return True
        return not (form_only and ":" in doubts) and len(text.replace(doubts, " ", 1).split()) >= _FEWEST_WORDS
    reading = read_slot(item, items, read_answer(text))
    is_name = not (item.is_number or item.type == "boolean" or is_closed(item))
    if (form_only or is_name) and not reading.used_form:
        return False
    return reading.details.get("value") not in (None, [])


_FEWEST_WORDS, _FEWEST_KEYED = 12, 5
"""Words beside a refusal from which an answer in free text counts as given, without and with the name of its slot."""
_UNDECIDED = re.compile(
    r"\b(?:any|all|each) of (?:these|them|those) (?:may|might|could|can) be\b|\bleave (?:the |that |this )?(?:choice|"
    r"decision)(?: open| to you)|\bin which case\b[^.;]{0,20}\d|\b(?:remains?|stays?|left) (?:undetermined|undecided|"
    r"unresolved)\b|\b(?:cannot|can't|could not|couldn't|unable to|not able to) (?:choose|decide|tell|say) (?:between|"
    r"which|whether)\b|\bnot sure which\b|\banswer depends on\b|\beither (?:one )?of (?:the two|these|them)|"
    r"\beither (?:image|file|map|one|option|answer) (?:could|may|might)\b|无法(?:确定|判断)(?:是)?(?:哪|两者|到底)|"
    r"(?:无法|难以|不能)区分(?=[,。;]|$)"
)
