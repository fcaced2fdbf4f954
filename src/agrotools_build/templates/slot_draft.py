"""Slots of a template before their values are known."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    FrozenModel,
    OpenTextSlot,
    PlotSlot,
    PlotSpec,
    Slot,
    ToleranceSlot,
    UnresolvedRef,
)
from agrotools.core.record import Results, reference_words
from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.knowledge.kb_names import shipped_names
from agrotools.text.expressions import evaluate_from
from agrotools.text.labels import label_key
from agrotools.text.normalise import CJK
from agrotools_build.area_truth import TOLERANCES
from agrotools_build.templates.key_facts import open_gold
from agrotools_build.templates.thing import (
    Thing,
    Words,
    distinct_files,
    filled,
    references_written_out,
)
from agrotools_build.templates.wording import Language, english_names, translated

JOINED = " | "
"""Separator of several names in one word of a template."""
NAMES_OF = "names of "
"""Start of the word that holds all names of an option, which follows: ``names of rust``."""
PLOT_MARGIN = 0.05
"""Relative tolerance of the points of a chart (5 %); the truth must be known at least this precisely."""


class SlotDraft(FrozenModel):
    """Slot of a template before its value is known. Labels, options and expressions may contain words in braces.

    Attributes:
        value: expression for a number that differs from that of ``from`` only by rounding.
        tolerance: one of :data:`~agrotools_build.area_truth.TOLERANCES` and its arguments (``["share", "@0.weed_pct",
            "@0.crop_pct"]``), instead of ``abs_tol`` and ``rel_tol``.
        least_margins: a number smaller than this multiple of its own tolerance is not asked for.
        options: all members of the label set of an exact slot or a choice set; a word may hold several names, separated
            by " | ".
        aliases: other names of some of the options.
        facts: phrasings of each key fact of an open answer, used for scoring instead of ``entry`` and ``topic``.
        entry: entry of the knowledge base whose key facts on ``topic`` score an open answer.
        topic: topic of ``entry``; references (``@1.value``) are replaced by their values.
        branches: topics that a reference in ``topic`` chooses from; the facts of the others count against the answer.
    """

    type: Literal["tolerance", "exact", "boolean", "file", "plot", "choice_set", "open_text"]
    name: str
    label: str
    label_zh: str = ""
    from_: Annotated[str, Field(alias="from")]
    value: str = ""
    unit: str | None = None
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    tolerance: tuple[str, ...] = ()
    least_margins: float = 0.0
    options: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}
    facts: tuple[tuple[str, ...], ...] = ()
    entry: str = ""
    topic: str = ""
    branches: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_branches(self) -> "SlotDraft":
        if "@" in self.topic and len(self.branches) < 2:
            raise ValueError("branches must name the topics that a reference in topic chooses from")
        return self

    def slot(
        self, words: Words, results: Results, things: Sequence[Thing], language: Language
    ) -> Slot:
        """Return the slot with the value that follows from ``results``.

        UnresolvedRef: the value stays open, or no key facts are recorded. ValueError: it is not one of the options.
        """
        from_ = references_written_out(filled(self.from_, words))
        value: Any = evaluated(self.value or self.from_, words, results)
        if value is None:
            raise UnresolvedRef(f"{reference_words(from_)} is null")
        label = self.label_zh if language == "zh" and self.label_zh else self.label
        if self.type == "boolean":
            label = f"是否{label}" if label == self.label_zh else f"whether {label}"
        common: dict[str, Any] = {"name": self.name, "label": filled(label, words), "from": from_}
        options = tuple(
            dict.fromkeys(one for option in self.options for one in _several(filled(option, words)))
        )
        match self.type:
            case "tolerance":
                number = {"value": float(value), "unit": self.unit, **self._margins(words, results)}
                return ToleranceSlot.model_validate({**common, **number})
            case "boolean":
                return BooleanSlot.model_validate({**common, "value": bool(value)})
            case "file":
                names = [file.name for file in distinct_files(things)]
                called = {thing.called for thing in things}
                choices = tuple(name for name in names if name in called) or tuple(names)
                return FileSlot.model_validate({**common, "value": value, "choices": choices})
            case "plot":
                tolerances = {"rel_tol": self.rel_tol or PLOT_MARGIN, "abs_tol": self.abs_tol}
                return PlotSlot.model_validate({**common, "value": value, **tolerances})
            case "choice_set":
                aliases = {
                    option: names
                    for option in options
                    if (names := self._other_names(option, words, language))
                }
                several = ChoiceSetSlot.model_validate(
                    {**common, "value": tuple(value), "choices": options, "aliases": aliases}
                )
                translate = not any("{" in option for option in self.options)
                return with_known_names(in_one_language(several, language, translate=translate))
            case "open_text":
                return OpenTextSlot.model_validate({**common, **self._key_facts(words, results)})
            case "exact":
                if options and value not in options:
                    raise ValueError(
                        f"{self.name} is {value!r}, which is none of its options: {', '.join(options)}"
                    )
                aliases = {
                    label: names
                    for label in dict.fromkeys((str(value), *options))
                    if (names := self._other_names(label, words, language))
                }
                slot = ExactSlot.model_validate(
                    {**common, "value": value, "choices": options, "aliases": aliases}
                )
                # Options in braces keep the names that the question uses.
                translate = not any("{" in option for option in self.options)
                of_all = all(NAMES_OF + option in words for option in options)
                return with_known_names(
                    in_one_language(slot, language, translate=translate), of_all=of_all
                )

    def is_large_enough(self, slot: Slot) -> bool:
        """Return True unless the value of a number is below :attr:`least_margins` times its tolerance."""
        if not self.least_margins or not isinstance(slot, ToleranceSlot):
            return True
        return slot.value >= self.least_margins * slot.margin

    def _margins(self, words: Words, results: Results) -> dict[str, float]:
        if not self.tolerance:
            return {"abs_tol": self.abs_tol, "rel_tol": self.rel_tol}
        kind, *parents = self.tolerance
        return TOLERANCES[kind](*(evaluated(each, words, results) for each in parents))._asdict()

    def _other_names(self, value: str, words: Words, language: Language) -> tuple[str, ...]:
        """Return other names of a label, each once: its aliases, and its names in the other language."""
        alias_names = [
            name
            for of, names in self.aliases.items()
            if filled(of, words) == value
            for name in names
        ]
        candidates = [
            *(one for name in alias_names for one in _several(filled(name, words))),
            *_several(words.get(NAMES_OF + value, "")),
            translated(language, value),
            *english_names(value),
        ]
        return tuple(dict.fromkeys(name for name in candidates if name != value))

    def _key_facts(self, words: Words, results: Results) -> dict[str, Any]:
        if self.facts:
            return {
                "facts": [
                    {"phrases": [filled(phrase, words) for phrase in phrases]}
                    for phrases in self.facts
                ]
            }
        entry, topic = filled(self.entry, words), filled(self.topic, words)
        if "@" in topic:
            topic = str(evaluate_from(references_written_out(topic), results))
        if self.branches and topic not in self.branches:
            raise ValueError(
                f"the topic is {topic}, which is none of its branches: {', '.join(self.branches)}"
            )
        if (gold := open_gold(entry, topic, self.branches)) is None:
            raise UnresolvedRef(
                f"no value to calculate with: there are no key facts on {topic} of {entry}"
            )
        return gold._asdict()


def evaluated(expression: str, words: Words, results: Results) -> Any:
    """Return the value of an expression with words and references (``@0.weed_pct > {limit}``)."""
    return evaluate_from(references_written_out(filled(expression, words)), results)


def same_answer(slot: Slot, other: Slot) -> bool:
    """Return True if ``other`` is right by ``slot``: a number within its tolerance, points of a chart likewise."""
    if isinstance(slot, ToleranceSlot) and isinstance(other, ToleranceSlot):
        return abs(slot.value - other.value) <= slot.margin
    if isinstance(slot, PlotSlot) and isinstance(other, PlotSlot):
        first, second = (
            [y for series in PlotSpec.model_validate(chart.value).series for y in series.y]
            for chart in (slot, other)
        )
        return all(
            math.isclose(a, b, rel_tol=slot.rel_tol) for a, b in zip(first, second, strict=True)
        )
    return getattr(slot, "value", None) == getattr(other, "value", None)


def _several(names: str) -> list[str]:
    return [name for name in names.split(JOINED) if name]


_Labelled = TypeVar("_Labelled", ExactSlot, ChoiceSetSlot)


def in_one_language(slot: _Labelled, language: Language, *, translate: bool) -> _Labelled:
    """Return ``slot`` with choices that are all in one language, and with aliases that belong to one choice only.

    Each choice takes its first name in ``language`` (if ``translate``) or otherwise its first name in Latin letters,
    provided that all choices have such a name; the previous names become aliases. The procedure does not depend on
    which choice is right.
    """
    names = {choice: (choice, *slot.aliases.get(choice, ())) for choice in slot.choices}
    primary = {choice: choice for choice in names}
    scripts = {_is_chinese(choice) for choice in names}
    for chinese in [language == "zh"] * translate + [False] * (len(scripts) > 1):
        first = {
            choice: next((name for name in known if _is_chinese(name) == chinese), "")
            for choice, known in names.items()
        }
        if all(first.values()) and len(set(first.values())) == len(first):
            primary = first
            break
    aliases = _of_one_choice({primary[choice]: known for choice, known in names.items()})
    changes: dict[str, Any] = {"choices": tuple(primary.values()), "aliases": aliases}
    if isinstance(slot, ExactSlot):
        changes["value"] = primary.get(str(slot.value), slot.value)
        if not slot.choices:
            changes["aliases"] = slot.aliases
    else:
        changes["value"] = tuple(primary.get(value, value) for value in slot.value)
    return slot.model_copy(update=changes)


def with_known_names(slot: _Labelled, *, of_all: bool = False) -> _Labelled:
    """Return ``slot`` with the knowledge base's names of its choices as aliases, which are never shown.

    Aliases of one choice alone go, unless they contain its name: they may have been written for the right one.
    ``of_all``: the names of all choices were looked for, so that those of one alone stay.
    """
    known = {choice: _known(choice, slot.aliases.get(choice, ())) for choice in slot.choices}
    if not any(known.values()):
        return slot
    given = slot.aliases
    if len(given) == 1 and not of_all and not isinstance(slot, ChoiceSetSlot):
        given = {
            each: tuple(n for n in names if label_key(each) in label_key(n))
            for each, names in given.items()
        }
    return slot.model_copy(
        update={
            "aliases": _of_one_choice(
                {each: (*given.get(each, ()), *known[each]) for each in slot.choices}
            )
        }
    )


def _known(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return all names of the only entry of the knowledge base that has this name.

    None if the aliases ``given`` name another entry: "cercospora" of coffee is not the corn disease of that name.
    """
    entries = _entries_of(name)
    meant = {each for alias in given for each in _entries_of(alias)}
    if len(entries) != 1 or (meant and meant.isdisjoint(entries)):
        return ()
    return next(iter(entries.values())).names.all()


def _entries_of(name: str) -> dict[str, KnowledgeEntry]:
    return {each.id: each for each in shipped_names().all_of_name(name)}


def _of_one_choice(names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the other names of each choice, without those that are equal in a form to a name of another choice."""
    keyed = {
        choice: {label_key(name): name for name in (*reversed(known), choice)}
        for choice, known in names.items()
    }
    owners = Counter(key for each in keyed.values() for key in each)
    firsts = {name for each in keyed.values() for key, name in each.items() if owners[key] == 1}
    aliases = {
        choice: tuple(name for name in dict.fromkeys(known) if name != choice and name in firsts)
        for choice, known in names.items()
    }
    return {choice: known for choice, known in aliases.items() if known}


def _is_chinese(name: str) -> bool:
    return re.search(f"[{CJK}]", name) is not None
