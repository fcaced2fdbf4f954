"""Slots: the scored parts of an answer.

A slot defines its value, the tolerance of an answer, and (``from``) how the value is computed from the observations of
the reference trajectory. Names, labels and the answer format are shown to the policy; everything else is gold.

This module has the types shared by several benchmarks. A benchmark with other types provides subclasses of
:class:`Slot` in its plug-in (``slots`` of :class:`agrotools.plugin.BenchmarkPlugin`).
"""

import math
import operator
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator, core_schema

from agrotools.core.frozen_model import FrozenModel
from agrotools.core.registry import BENCHMARKS, join_tables


def _has_type(cls: type[FrozenModel]) -> bool:
    """True if the class is a slot type, not the base class."""
    return any("type" in vars(each).get("__annotations__", {}) for each in cls.__mro__)


class Slot(FrozenModel):
    """One scored part of an answer; as the type of a field, a slot of any known type.

    A subclass adds ``type: Literal["NAME"] = "NAME"`` and its fields. Class variables and properties tell the engine
    how answers of the type are given; the defaults are for short text in the answer form.
    """

    made_by_tools: ClassVar[bool] = False
    """True if the answer is (or may be) a file created by tool calls rather than text."""
    judged: ClassVar[bool] = False
    """True if only a judge can score the answer."""
    scored_apart: ClassVar[bool] = False
    """True if the slot has separate metrics and does not count in the Final Answer Score."""
    closed: ClassVar[bool] = False
    """True if the slot counts in the Closed-Slot Score."""
    free_text: ClassVar[bool] = False
    """True if the answer is free text."""

    if TYPE_CHECKING:
        type: Any

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """Key of the slot in the answer form, e.g. ``weed_share``."""
    label: str
    """Description in plain words, e.g. ``share of weeds in the vegetation``."""
    from_: Annotated[str | None, Field(alias="from")] = None
    """Expression over ``steps[N].observation...`` of the reference trajectory that yields ``value``."""
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Weight of the slot in the score of its sample, relative to the sample's other slots."""

    @property
    def form_value(self) -> str:
        """Placeholder of the value in the answer form."""
        return "<a short text>"

    @property
    def expected_text(self) -> str:
        """The correct answer, as printed in reports."""
        return str(getattr(self, "value", ""))

    @property
    def letters(self) -> tuple[str, ...]:
        """Keys of the options shown in the question; empty if there are none."""
        return ()

    @property
    def takes_several(self) -> bool:
        """True if several of :attr:`letters` may be correct together."""
        return False

    @property
    def right_text(self) -> str | None:
        """Answer that scores 1, for questions that need no tool; None for other questions."""
        return None

    @property
    def comparable_value(self) -> JsonValue:
        """Correct answer in a form that can be compared between samples; None if it has no such form."""
        return None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if _has_type(cls):
            return handler(source)
        return core_schema.no_info_before_validator_function(
            lambda data: _parsed(data), core_schema.any_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(
            schema if _has_type(cls) else _adapter(tuple(slot_types().values())).core_schema
        )


class ExactSlot(Slot):
    """A label (or a number compared exactly).

    ``choices`` are the primary names of all labels of the set, including the correct one; if empty, any name may be
    given. The answer form shows them, so neither the set nor a name may depend on which one is correct. ``aliases``
    maps labels to other names that an answer may use; they are accepted but never shown.
    """

    closed: ClassVar[bool] = True
    type: Literal["exact"] = "exact"
    value: str | int | float
    choices: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}
    unit: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the correct label, the primary one first."""
        return (str(self.value), *self.aliases.get(str(self.value), ()))

    @property
    def distractors(self) -> tuple[str, ...]:
        """Primary names of the wrong labels."""
        return tuple(choice for choice in self.choices if choice != self.value)


class BooleanSlot(Slot):
    """A yes or no answer."""

    closed: ClassVar[bool] = True
    type: Literal["boolean"] = "boolean"
    value: bool


class ChoiceSetSlot(Slot):
    """The correct members of the label set ``choices``, in any order. ``aliases`` maps a member to other names."""

    closed: ClassVar[bool] = True
    type: Literal["choice_set"] = "choice_set"
    value: tuple[str, ...]
    choices: tuple[str, ...]
    aliases: dict[str, tuple[str, ...]] = {}


class FileSlot(Slot):
    """The name of one of the sample's files. ``choices`` are the names of all candidate files."""

    closed: ClassVar[bool] = True
    type: Literal["file"] = "file"
    value: str
    choices: tuple[str, ...]


class ToleranceSlot(Slot):
    """A number, correct within ``max(abs_tol, rel_tol * abs(value))`` after conversion to ``unit``."""

    closed: ClassVar[bool] = True
    type: Literal["tolerance"] = "tolerance"
    value: float
    unit: str | None = None
    abs_tol: Annotated[float, Field(ge=0)] = 0.0
    rel_tol: Annotated[float, Field(ge=0)] = 0.0

    @property
    def margin(self) -> float:
        return max(self.abs_tol, self.rel_tol * abs(self.value))

    def shown(self, value: float) -> str:
        """Return a value for a reader, rounded by less than 1 % of the tolerance: ``30.11`` if it is 1.5."""
        if not 0 < self.margin < math.inf:
            return repr(value)
        return f"{round(value, 2 - math.floor(math.log10(self.margin))) + 0.0:.15g}"


class Fact(FrozenModel):
    """A key fact of an open answer: short ``phrases`` that each state it, and phrases (``not``) that contradict it.

    A phrase is a group of terms (:mod:`agrotools.scoring.open_text`). ``weight``: share of the fact in the score,
    relative to the other facts.
    """

    phrases: Annotated[tuple[str, ...], Field(min_length=1)]
    not_: Annotated[tuple[str, ...], Field(alias="not")] = ()
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0


class HarmfulClaim(FrozenModel):
    """Something that must not be advised, with the source that says so and its date.

    Attributes:
        phrases: names of products (``match`` = ``use``: recommending their use is harmful), or phrasings of a key fact
            (``contrary``: stating its opposite, or another number, is harmful).
        region: where a product is withdrawn.
    """

    kind: Literal["wrong_dose", "opposite_action", "withdrawn_product", "wrong_organism"]
    claim: str
    phrases: Annotated[tuple[str, ...], Field(min_length=1)]
    match: Literal["use", "contrary"]
    source: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    region: str = ""


class ExcludedBranch(FrozenModel):
    """Key facts of a branch of the question that this sample does not ask for, and the ``floor`` of their score."""

    facts: Annotated[tuple[Fact, ...], Field(min_length=1)]
    floor: Annotated[float, Field(ge=0, lt=1)] = 0.0


class OpenTextSlot(Slot):
    """Free text, scored by a judge by the key facts it states, and by a plain rule as a floor.

    ``others`` are facts about other subjects, which are wrong here, each as its phrases. ``floor`` is the share of
    facts that an answer about another subject gets right; it earns no score. ``headline``: True if the facts are
    specific enough for the slot to count in headline metrics. ``harmful``: claims that advice must not make; they never
    change the score of the slot. ``excluded``: facts of the branches that do not apply, if the question asks for one
    thing or another by a condition; an answer that states them, too, does not decide.
    """

    free_text: ClassVar[bool] = True
    type: Literal["open_text"] = "open_text"
    facts: Annotated[tuple[Fact, ...], Field(min_length=1)]
    others: tuple[tuple[str, ...], ...] = ()
    floor: Annotated[float, Field(ge=0, lt=1)] = 0.0
    headline: bool = True
    harmful: Annotated[tuple[HarmfulClaim, ...], Field(exclude_if=operator.not_)] = ()
    excluded: Annotated[tuple[ExcludedBranch, ...], Field(exclude_if=operator.not_)] = ()


class PlotSlot(Slot):
    """A figure, scored by the canonical specification of its content."""

    made_by_tools: ClassVar[bool] = True
    type: Literal["plot"] = "plot"
    value: dict[str, JsonValue]
    """Canonical plot specification (see ``PlotSpec`` in :mod:`agrotools.core.taxonomy`) as data."""
    value_from: Literal["ground_truth", "tool"] = "ground_truth"
    """Origin of the reference values: ground truth of the source, or results of the reference tools."""
    rel_tol: Annotated[float, Field(ge=0, exclude_if=lambda tolerance: tolerance == 0.05)] = 0.05
    """Relative tolerance of the values."""
    abs_tol: Annotated[float, Field(ge=0, exclude_if=operator.not_)] = 0.0
    """Absolute tolerance of the values; the larger one counts."""


class KeywordsSlot(Slot):
    """Free text that must contain one alias of every group in ``whitelist``, and none in ``blacklist``.

    This is the published form of objective answers in GTA and ThinkGeo; the lists are stored unchanged.
    """

    free_text: ClassVar[bool] = True
    type: Literal["keywords"] = "keywords"
    whitelist: tuple[tuple[str, ...], ...]
    blacklist: tuple[tuple[str, ...], ...] = ()
    questions: tuple[str, ...] = ()
    """Yes/no questions to a judge about the answer (ThinkGeo); for a correct answer, each is answered with yes."""


class ReferenceTextsSlot(Slot):
    """Free text, scored by its similarity to the most similar of several correct texts."""

    free_text: ClassVar[bool] = True
    type: Literal["reference_texts"] = "reference_texts"
    values: Annotated[tuple[str, ...], Field(min_length=1)]


AbstainReason = Literal[
    "no_scale", "missing_file", "no_data", "wrong_subject", "unfit_image", "within_error"
]
"""Reasons why files do not allow an answer: the scale is unknown, a file is missing or holds no data, the thing asked
about is not in the picture, a picture shows nothing or cuts it off, or values differ by less than the error of their
measurement."""


class AbstainSlot(Slot):
    """A question that the files do not allow to answer; right is a reply that says so and gives no value.

    ``asks`` are the slots that the answer form shows, those of the answerable twin of the sample; their values are
    not known from the files and score nothing. The results of the reference calls show that there is no answer if the
    expression ``from`` is true or, without one, if no ``from`` of ``asks`` has a value (a call failed or gave null).
    """

    type: Literal["abstain"] = "abstain"
    reason: AbstainReason
    asks: Annotated[
        tuple[Slot, ...],
        Field(min_length=1),
        WithJsonSchema({"type": "array", "items": {"type": "object"}}),
    ]

    @property
    def expected_text(self) -> str:
        return f"cannot be determined ({self.reason})"


SLOT_TYPES: tuple[type[Slot], ...] = (
    ExactSlot,
    BooleanSlot,
    ChoiceSetSlot,
    FileSlot,
    ToleranceSlot,
    OpenTextSlot,
    PlotSlot,
    KeywordsSlot,
    ReferenceTextsSlot,
    AbstainSlot,
)
"""Slot types that any benchmark may use."""


def slot_types() -> Mapping[str, type[Slot]]:
    """Return all slot types by name: those of the engine, then those of plug-ins."""
    of_plugins = (each for plugin in BENCHMARKS.loaded() for each in plugin.slots)
    return _by_name((*SLOT_TYPES, *of_plugins))


@cache
def _by_name(types: tuple[type[Slot], ...]) -> Mapping[str, type[Slot]]:
    """Return slot types by name; kept, because each slot of a plug-in that is read asks for them."""
    return join_tables(
        "slot type",
        (
            (each.__module__.partition(".")[0], {each.model_fields["type"].default: each})
            for each in types
        ),
    )


@cache
def _adapter(types: tuple[type[Slot], ...]) -> TypeAdapter[Slot]:
    known: tuple[Any, ...] = types
    union: Any = reduce(lambda one, other: one | other, known)
    choice: Any = Annotated[union, Field(discriminator="type")]  # pyright: ignore[reportInvalidTypeForm]
    return TypeAdapter(choice)


@cache
def _engine_slots() -> SchemaValidator:
    return cast(
        "SchemaValidator", _adapter(SLOT_TYPES).validator
    )  # without the costs of the adapter at each slot


ENGINE_TYPES = frozenset(each.model_fields["type"].default for each in SLOT_TYPES)


def _parsed(data: Any) -> Slot:
    if isinstance(data, Slot):
        return data
    name: Any = cast("dict[str, Any]", data).get("type") if isinstance(data, dict) else None
    if not isinstance(name, str) or name in ENGINE_TYPES:
        return _engine_slots().validate_python(data)
    types = slot_types()
    if name not in types:
        faults = BENCHMARKS.broken().items()
        broken = (f"; plug-in {name!r} cannot be loaded: {error.message}" for name, error in faults)
        raise PydanticCustomError(
            "slot_type",
            "slots of type '{name}' are of no installed benchmark plug-in; install the package that adds them "
            "(known types: {known}){broken}",
            {"name": name, "known": ", ".join(types), "broken": "".join(broken)},
        )
    return _adapter(tuple(types.values())).validate_python(data)


def counts_in_headline(slot: Slot) -> bool:
    """True if a slot may count in headline metrics; open text with facts shared by other subjects does not."""
    return not isinstance(slot, OpenTextSlot) or slot.headline


def is_derivable(slot: Slot) -> bool:
    """True if the answer follows from tool calls: they create it, or an expression over their results yields it."""
    if isinstance(slot, AbstainSlot) and slot.from_ is None:
        return any(map(is_derivable, slot.asks))
    return slot.made_by_tools or slot.from_ is not None


def asked_slots(slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """Return the slots that the answer form shows: those of ``asks`` in place of an :class:`AbstainSlot`."""
    return tuple(
        each for slot in slots for each in (slot.asks if isinstance(slot, AbstainSlot) else (slot,))
    )
