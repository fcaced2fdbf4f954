"""Slots: the scored parts of an answer.

A slot knows its value, how far an answer may stray from it, and (``from``) how the value follows from the
observations of the reference trajectory. Names and labels are shown to the policy; everything else is gold.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, JsonValue, model_validator

from agrotools.core.frozen_model import FrozenModel


class _Slot(FrozenModel):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """Key of the slot in the answer form, e.g. ``weed_share``."""
    label: str
    """What a person would call it, e.g. ``share of weeds in the vegetation``."""
    from_: Annotated[str | None, Field(alias="from")] = None
    """Expression over ``steps[N].observation...`` of the reference trajectory that yields ``value``."""
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Share of the slot in the score of its sample, relative to the sample's other slots."""


class ExactSlot(_Slot):
    """A label (or a number compared exactly).

    ``choices`` are the primary names of all labels of the set, the right one among them; without any, every name may
    be given. The answer form shows them, so neither the set nor a name may depend on which one is right. ``aliases``
    maps labels to other names under which an answer may state them: those are read, never shown.
    """

    type: Literal["exact"] = "exact"
    value: str | int | float
    choices: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}
    unit: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_first_form(cls, data: Any) -> Any:
        """Read the form of older folders and runs: ``aliases`` of the value alone, and ``distractors``."""
        if not isinstance(data, dict):
            return data
        fields = dict(cast(dict[str, Any], data))
        value, wrong = str(fields.get("value")), fields.pop("distractors", ())
        if isinstance(fields.get("aliases"), list | tuple):
            names = tuple(cast("list[str]", fields.pop("aliases")))
            fields["aliases"] = {value: names} if names else {}
        if wrong and isinstance(wrong, list | tuple):
            fields["choices"] = (value, *cast("list[str]", wrong))
        elif wrong:
            fields["distractors"] = wrong  # No list: refused with the other unknown fields.
        return fields

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the right label, the primary one first."""
        return (str(self.value), *self.aliases.get(str(self.value), ()))

    @property
    def distractors(self) -> tuple[str, ...]:
        """Primary names of the wrong labels."""
        return tuple(choice for choice in self.choices if choice != self.value)


class BooleanSlot(_Slot):
    """Yes or no."""

    type: Literal["boolean"] = "boolean"
    value: bool


class ChoiceSetSlot(_Slot):
    """The right members of the label set ``choices``, in any order. ``aliases`` maps a member to other names."""

    type: Literal["choice_set"] = "choice_set"
    value: tuple[str, ...]
    choices: tuple[str, ...]
    aliases: dict[str, tuple[str, ...]] = {}


class FileSlot(_Slot):
    """The name of one of the sample's files. ``choices`` are the names of all files in question."""

    type: Literal["file"] = "file"
    value: str
    choices: tuple[str, ...]


class ToleranceSlot(_Slot):
    """A number, right within ``max(abs_tol, rel_tol * abs(value))`` after conversion to ``unit``."""

    type: Literal["tolerance"] = "tolerance"
    value: float
    unit: str | None = None
    abs_tol: Annotated[float, Field(ge=0)] = 0.0
    rel_tol: Annotated[float, Field(ge=0)] = 0.0

    @property
    def margin(self) -> float:
        return max(self.abs_tol, self.rel_tol * abs(self.value))


class Fact(FrozenModel):
    """A key fact of an open answer: short ``phrases`` that each state it, and phrases (``not``) that contradict it.

    A phrase is found in other words as well (see :mod:`agrotools.text.claims`). ``weight``: its share of the score,
    beside those of the other facts.
    """

    phrases: Annotated[tuple[str, ...], Field(min_length=1)]
    not_: Annotated[tuple[str, ...], Field(alias="not")] = ()
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0


class OpenTextSlot(_Slot):
    """Free text, scored by the key facts it states.

    ``others`` are facts that would be wrong here, each with its phrases: those of other subjects. ``floor`` is the
    share of the facts that an answer about another subject gets, which earns nothing. ``headline``: whether the facts
    are particular enough for the slot to count in headline figures.
    """

    type: Literal["open_text"] = "open_text"
    facts: Annotated[tuple[Fact, ...], Field(min_length=1)]
    others: tuple[tuple[str, ...], ...] = ()
    floor: Annotated[float, Field(ge=0, lt=1)] = 0.0
    headline: bool = True


class PlotSlot(_Slot):
    """A figure, scored by the canonical specification of what was drawn."""

    type: Literal["plot"] = "plot"
    value: dict[str, JsonValue]
    """Canonical plot specification (see ``PlotSpec`` in :mod:`agrotools.core.specs`) as data."""
    value_from: Literal["ground_truth", "tool"] = "ground_truth"
    """Whether the reference values are the source's ground truth or the reference tools' values."""


OptionKind = Literal["single", "multiple", "true_false"]


class OptionsSlot(_Slot):
    """The right options of an examination question, by their letters. ``options``: letter to text, as shown."""

    type: Literal["options"] = "options"
    kind: OptionKind
    value: Annotated[tuple[str, ...], Field(min_length=1)]
    options: dict[str, str]


class ReferenceTextSlot(_Slot):
    """Free text, scored by its overlap with the text ``value``."""

    type: Literal["reference_text"] = "reference_text"
    value: Annotated[str, Field(min_length=1)]


class KeywordsSlot(_Slot):
    """Free text that must state one alias of every group of ``whitelist``, and none of those in ``blacklist``.

    The form in which GTA and ThinkGeo publish objective answers; the lists are kept as they were written.
    """

    type: Literal["keywords"] = "keywords"
    whitelist: tuple[tuple[str, ...], ...]
    blacklist: tuple[tuple[str, ...], ...] = ()
    questions: tuple[str, ...] = ()
    """Yes/no questions that a judge is asked about the answer (ThinkGeo); a right answer has yes to each."""


class ReferenceTextsSlot(_Slot):
    """Free text, scored by its likeness to the nearest of several texts that are all right."""

    type: Literal["reference_texts"] = "reference_texts"
    values: Annotated[tuple[str, ...], Field(min_length=1)]


class ImageCallsSlot(_Slot):
    """An image, scored by the calls that make it: those of the reference trajectory to ``tools``."""

    type: Literal["image_calls"] = "image_calls"
    tools: Annotated[tuple[str, ...], Field(min_length=1)]


DEEPEST_SUB_TASK = 12
"""Levels that a tree of sub-tasks may have."""


class SubTask(FrozenModel):
    """Something that a task asks for: a requirement, or several that are weighed against each other.

    ``requirements`` of one without ``sub_tasks`` (a leaf) is what a judge grades.
    """

    id: Annotated[str, Field(min_length=1, max_length=200)]
    requirements: str = ""
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    sub_tasks: tuple["SubTask", ...] = ()

    @property
    def leaves(self) -> Iterator["SubTask"]:
        """The leaves below it in written order; itself where it is one."""
        if not self.sub_tasks:
            yield self
        for each in self.sub_tasks:
            yield from each.leaves

    @property
    def depth(self) -> int:
        """Levels of it: 1 for a leaf."""
        return 1 + max((each.depth for each in self.sub_tasks), default=0)

    @property
    def ids(self) -> Iterator[str]:
        """Its own, then those of all below it."""
        yield self.id
        for each in self.sub_tasks:
            yield from each.ids


class SubTasksSlot(_Slot):
    """What came of a whole task, by its tree of sub-tasks (GTA-2): a judge grades each leaf, weighted means the rest.

    No two sub-tasks of a tree share an id.
    """

    type: Literal["sub_tasks"] = "sub_tasks"
    sub_tasks: Annotated[tuple[SubTask, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        if self.depth > DEEPEST_SUB_TASK:
            raise ValueError(f"sub-tasks are nested deeper than {DEEPEST_SUB_TASK} levels")
        seen: set[str] = set()
        for name in (name for each in self.sub_tasks for name in each.ids):
            if name in seen:
                raise ValueError(f"two sub-tasks have the id {name!r}")
            seen.add(name)
        return self

    @property
    def leaves(self) -> tuple[SubTask, ...]:
        """All leaves in written order."""
        return tuple(leaf for each in self.sub_tasks for leaf in each.leaves)

    @property
    def depth(self) -> int:
        """Levels of the tree, 1 where all are leaves."""
        return max(each.depth for each in self.sub_tasks)


Slot = Annotated[
    ExactSlot
    | BooleanSlot
    | ChoiceSetSlot
    | FileSlot
    | ToleranceSlot
    | OpenTextSlot
    | PlotSlot
    | OptionsSlot
    | ReferenceTextSlot
    | KeywordsSlot
    | ReferenceTextsSlot
    | ImageCallsSlot
    | SubTasksSlot,
    Field(discriminator="type"),
]


def counts_in_headline(slot: Slot) -> bool:
    """Whether a slot may count in a headline; open text whose facts other subjects share does not."""
    return not isinstance(slot, OpenTextSlot) or slot.headline


CLOSED_SLOT_TYPES = frozenset({"exact", "boolean", "choice_set", "file", "tolerance"})
"""Slot types of the Closed-Slot Score."""

MADE_SLOT_TYPES = frozenset({"plot", "image_calls", "sub_tasks"})
"""Slot types whose answer is (or may be) made by calls of tools, not given in words."""

JUDGED_SLOT_TYPES = frozenset({"sub_tasks"})
"""Slot types that a judge alone can score."""
