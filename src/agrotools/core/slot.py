"""Slots: the scored parts of an answer.

A slot knows its value, how far an answer may stray from it, and (``from``) how the value follows from the
observations of the reference trajectory. Names and labels are shown to the policy; everything else is gold.

Types that several benchmarks use stand here. A benchmark that needs another one hands over a subclass of :class:`Slot`
in its plug-in (``slots`` of :class:`agrotools.plugin.BenchmarkPlugin`).
"""

from functools import cache, reduce
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue, TypeAdapter, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from agrotools.core.base import FrozenModel
from agrotools.core.registry import BENCHMARKS, join_tables


def _has_type(cls: type[FrozenModel]) -> bool:
    """True if the class is a slot type, not the base of all."""
    return any("type" in vars(each).get("__annotations__", {}) for each in cls.__mro__)


class Slot(FrozenModel):
    """One scored part of an answer; as the type of a field it stands for a slot of any known type.

    A subclass adds ``type: Literal["NAME"] = "NAME"`` and what it holds. Class variables and properties tell the engine
    how answers of the type come about; those of free text in the answer form are the defaults.
    """

    made: ClassVar[bool] = False
    """True if the answer is (or may be) made by calls of tools, not given in words."""
    judged: ClassVar[bool] = False
    """True if a judge alone can score it."""
    scored_apart: ClassVar[bool] = False
    """True if it has metrics of its own instead of a part in the Final Answer Score."""
    closed: ClassVar[bool] = False
    """True if it counts in the Closed-Slot Score."""
    free_text: ClassVar[bool] = False
    """True if the answer is text of any words."""
    form_opening: ClassVar[str] = ""
    """Line of the answer form on an answer that is made."""
    form_closing: ClassVar[str] = ""
    """Line that asks for the words at the end, where nothing is to be given by name."""

    if TYPE_CHECKING:
        type: Any

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """Key of the slot in the answer form, e.g. ``weed_share``."""
    label: str
    """Its name in plain words, e.g. ``share of weeds in the vegetation``."""
    from_: Annotated[str | None, Field(alias="from")] = None
    """Expression over ``steps[N].observation...`` of the reference trajectory that yields ``value``."""
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Share of the slot in the score of its sample, relative to the sample's other slots."""

    @property
    def form_value(self) -> str:
        """Placeholder of the value in the answer form."""
        return "<a short text>"

    @property
    def expected_text(self) -> str:
        """The right answer, as printed in reports."""
        return str(getattr(self, "value", ""))

    @property
    def letters(self) -> tuple[str, ...]:
        """Keys of the options that the question shows; none where it shows none."""
        return ()

    @property
    def takes_several(self) -> bool:
        """True if several of :attr:`letters` may be right together."""
        return False

    @property
    def right_text(self) -> str | None:
        """Answer that scores 1, for questions that need no tool; None for all others."""
        return None

    @property
    def comparable_value(self) -> JsonValue:
        """Right answer in a form that can be compared with those of other samples; None where there is none."""
        return None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if _has_type(cls):
            return handler(source)
        return core_schema.no_info_before_validator_function(lambda data: _parsed(data), core_schema.any_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema if _has_type(cls) else _adapter(tuple(slot_types().values())).core_schema)


class ExactSlot(Slot):
    """A label (or a number compared exactly).

    ``choices`` are the primary names of all labels of the set, the right one among them; without any, every name may
    be given. The answer form shows them, so neither the set nor a name may depend on which one is right. ``aliases``
    maps labels to other names under which an answer may state them: those are read, never shown.
    """

    closed: ClassVar[bool] = True
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


class BooleanSlot(Slot):
    """A yes or no answer."""

    closed: ClassVar[bool] = True
    type: Literal["boolean"] = "boolean"
    value: bool


class ChoiceSetSlot(Slot):
    """The right members of the label set ``choices``, in any order. ``aliases`` maps a member to other names."""

    closed: ClassVar[bool] = True
    type: Literal["choice_set"] = "choice_set"
    value: tuple[str, ...]
    choices: tuple[str, ...]
    aliases: dict[str, tuple[str, ...]] = {}


class FileSlot(Slot):
    """The name of one of the sample's files. ``choices`` are the names of all files in question."""

    closed: ClassVar[bool] = True
    type: Literal["file"] = "file"
    value: str
    choices: tuple[str, ...]


class ToleranceSlot(Slot):
    """A number, right within ``max(abs_tol, rel_tol * abs(value))`` after conversion to ``unit``."""

    closed: ClassVar[bool] = True
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


class OpenTextSlot(Slot):
    """Free text, scored by the key facts it states.

    ``others`` are facts that would be wrong here, each with its phrases: those of other subjects. ``floor`` is the
    share of the facts that an answer about another subject gets, which earns nothing. ``headline``: whether the facts
    are particular enough for the slot to count in headline figures.
    """

    free_text: ClassVar[bool] = True
    type: Literal["open_text"] = "open_text"
    facts: Annotated[tuple[Fact, ...], Field(min_length=1)]
    others: tuple[tuple[str, ...], ...] = ()
    floor: Annotated[float, Field(ge=0, lt=1)] = 0.0
    headline: bool = True


class PlotSlot(Slot):
    """A figure, scored by the canonical specification of what was drawn."""

    made: ClassVar[bool] = True
    form_closing: ClassVar[str] = "When the figure is drawn, end with one sentence that says what it shows."
    type: Literal["plot"] = "plot"
    value: dict[str, JsonValue]
    """Canonical plot specification (see ``PlotSpec`` in :mod:`agrotools.core.taxonomy`) as data."""
    value_from: Literal["ground_truth", "tool"] = "ground_truth"
    """True if the reference values are the source's ground truth or the reference tools' values."""


class KeywordsSlot(Slot):
    """Free text that must state one alias of every group of ``whitelist``, and none of those in ``blacklist``.

    The form in which GTA and ThinkGeo publish objective answers; the lists are kept as they were written.
    """

    free_text: ClassVar[bool] = True
    type: Literal["keywords"] = "keywords"
    whitelist: tuple[tuple[str, ...], ...]
    blacklist: tuple[tuple[str, ...], ...] = ()
    questions: tuple[str, ...] = ()
    """Yes/no questions that a judge is asked about the answer (ThinkGeo); a right answer has yes to each."""


class ReferenceTextsSlot(Slot):
    """Free text, scored by its likeness to the nearest of several texts that are all right."""

    free_text: ClassVar[bool] = True
    type: Literal["reference_texts"] = "reference_texts"
    values: Annotated[tuple[str, ...], Field(min_length=1)]


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
)
"""Slot types that any benchmark may use."""


def slot_types() -> dict[str, type[Slot]]:
    """All slot types by name: those of the engine, then those of plug-ins."""
    types = [*SLOT_TYPES, *(each for plugin in BENCHMARKS.loaded() for each in plugin.slots)]
    return join_tables(
        "slot type",
        ((each.__module__.partition(".")[0], {each.model_fields["type"].default: each}) for each in types),
    )


@cache
def _adapter(types: tuple[type[Slot], ...]) -> TypeAdapter[Slot]:
    known: tuple[Any, ...] = types
    union: Any = reduce(lambda one, other: one | other, known)
    choice: Any = Annotated[union, Field(discriminator="type")]  # pyright: ignore[reportInvalidTypeForm]
    return TypeAdapter(choice)


ENGINE_TYPES = frozenset(each.model_fields["type"].default for each in SLOT_TYPES)


def _parsed(data: Any) -> Slot:
    """A slot from data, of the type that it names."""
    if isinstance(data, Slot):
        return data
    name: Any = cast("dict[str, Any]", data).get("type") if isinstance(data, dict) else None
    if name in ENGINE_TYPES or not isinstance(name, str):
        return _adapter(SLOT_TYPES).validate_python(data)
    types = slot_types()
    if name not in types:
        raise PydanticCustomError(
            "slot_type",
            "slots of type '{name}' are of no installed benchmark plug-in; install the package that adds them "
            "(known types: {known}){broken}",
            {"name": name, "known": ", ".join(types), "broken": _broken_plugins()},
        )
    return _adapter(tuple(types.values())).validate_python(data)


def _broken_plugins() -> str:
    broken = BENCHMARKS.broken()
    return "".join(f"; plug-in {name!r} cannot be loaded: {error.message}" for name, error in broken.items())


def counts_in_headline(slot: Slot) -> bool:
    """True if a slot may count in a headline; open text whose facts other subjects share does not."""
    return not isinstance(slot, OpenTextSlot) or slot.headline
