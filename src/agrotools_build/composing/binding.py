"""Parts of an answer bound to results: each becomes a slot whose value the results give."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue, StringConstraints

from agrotools.core import (
    BooleanSlot,
    ExactSlot,
    FileSlot,
    FrozenModel,
    PlotSlot,
    ReferenceStep,
    SampleFile,
    Slot,
    ToleranceSlot,
)
from agrotools.core.record import REF_PATTERN, reference_words
from agrotools.knowledge.kb_names import healthy_crop, shipped_names
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools.text.json_kinds import is_number
from agrotools.text.labels import label_key
from agrotools_build.composing.reasons import CannotCompose
from agrotools_build.composing.running import results_of
from agrotools_build.composing.tolerance import (
    EXACT_TOOLS,
    roots_of,
    tolerance_of,
    values_within_error,
    without_noise,
)
from agrotools_build.templates.slot_draft import PLOT_MARGIN, with_known_names

AnswerForm = Literal["number", "name", "yes_no", "file", "chart"]
FEWEST_CHOICES = 2
_UNITS = {
    "pct": "%",
    "mm": "mm",
    "cm": "cm",
    "m": "m",
    "ha": "ha",
    "mm2": "mm2",
    "cm2": "cm2",
    "m2": "m2",
    "px": "px",
}
"""Units by the last word of a field's name: names of result fields include the unit."""


class AnswerPart(FrozenModel):
    """A part of an answer as somebody wrote it; its value comes from ``from``, an expression over results.

    ``choices``: names that the answer form offers, for the form ``name``; ``aliases``: other names of some of them.
    ``unit``: of a calculated number; of other numbers, the field of the result states it.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    label: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
    form: AnswerForm
    from_: Annotated[str, Field(alias="from", min_length=1, max_length=2000)]
    unit: Annotated[str | None, Field(max_length=20)] = None
    choices: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}


def bound_slot(
    part: AnswerPart, steps: Sequence[ReferenceStep], files: Sequence[SampleFile]
) -> Slot:
    """Return the slot of a part, with the value and the tolerance that the results give.

    Raises:
        CannotCompose: there is no value, it does not fit the form, or the answer is not certain.
    """
    value = _value(part, steps)
    common: dict[str, Any] = {"name": part.name, "label": part.label, "from": part.from_}
    match part.form:
        case "number":
            return _number_slot(part, value, steps, common)
        case "yes_no":
            if not isinstance(value, bool):
                raise _wrong_kind(part, value, "yes or no")
            _check_certain(part, value, steps)
            return BooleanSlot.model_validate({**common, "value": value})
        case "file":
            names = tuple(file.name for file in files)
            if value not in names:
                raise _wrong_kind(part, value, "the name of a file")
            if len(names) < FEWEST_CHOICES:
                raise _no_choices(part)
            _check_certain(part, value, steps)
            return FileSlot.model_validate({**common, "value": value, "choices": names})
        case "name":
            return _name_slot(part, value, common)
        case "chart":
            if not isinstance(value, dict) or "series" not in value:
                raise _wrong_kind(part, value, "the data of a chart")
            chart = {"value": value, "value_from": "tool", "rel_tol": PLOT_MARGIN}
            return PlotSlot.model_validate({**common, **chart})


def _value(part: AnswerPart, steps: Sequence[ReferenceStep]) -> JsonValue:
    hint = "bind it to a value of a result"
    if not REF_PATTERN.search(part.from_):
        raise CannotCompose(
            "no_value",
            f"{part.name} names no result: {reference_words(part.from_)}",
            hint=hint,
            part=part.name,
        )
    try:
        value = evaluate_from(part.from_, results_of(steps))
    except (ValueError, ExpressionError) as error:
        raise CannotCompose(
            "no_value", f"{part.name}: {error}", hint=hint, part=part.name
        ) from error
    if value is None:
        raise CannotCompose(
            "nothing_found",
            f"{part.name}: {reference_words(part.from_)} is empty",
            hint=hint,
            part=part.name,
        )
    return value


def _number_slot(
    part: AnswerPart, value: JsonValue, steps: Sequence[ReferenceStep], common: dict[str, Any]
) -> ToleranceSlot:
    if not is_number(value):
        raise _wrong_kind(part, value, "a number")
    number = without_noise(float(cast(float, value)))
    tolerance = tolerance_of(part.from_, steps)
    margin = tolerance.margin_of(number)
    if abs(number) <= margin:
        raise CannotCompose(
            "error_too_large",
            f"{part.name} is {number:g}, within {margin:g} of 0, so that the answer 0 would be right",
            hint="ask about another picture or another quantity",
            part=part.name,
        )
    stated = REF_PATTERN.fullmatch(part.from_.strip())
    is_measured = stated is not None and steps[int(stated["step"])].tool not in EXACT_TOOLS
    unit = unit_of(stated["path"]) if is_measured and stated else part.unit
    return ToleranceSlot.model_validate(
        {
            **common,
            "value": number,
            "unit": unit,
            "abs_tol": tolerance.abs_tol,
            "rel_tol": tolerance.rel_tol,
        }
    )


def unit_of(path: str) -> str | None:
    """Return the unit that the name of a field states; None if it states none."""
    field = path.rpartition(".")[2].partition("[")[0]
    return _UNITS.get(field.rpartition("_")[2]) if "_" in field else None


def _name_slot(part: AnswerPart, value: JsonValue, common: dict[str, Any]) -> ExactSlot:
    if not isinstance(value, str):
        raise _wrong_kind(part, value, "a name")
    choices = tuple(dict.fromkeys(part.choices))
    if len(choices) < FEWEST_CHOICES:
        raise _no_choices(part)
    right = [choice for choice in choices if means(choice, value, part.aliases.get(choice, ()))]
    if len(right) != 1:
        raise CannotCompose(
            "not_a_choice",
            f"{part.name} is {value!r}, which {len(right) or 'none'} of its choices name: {', '.join(choices)}",
            hint="add the name to the choices, or bind the part to another value",
            part=part.name,
        )
    aliases = dict(part.aliases)
    if value != right[0]:
        aliases[right[0]] = tuple(dict.fromkeys((*aliases.get(right[0], ()), value)))
    slot = ExactSlot.model_validate({**common, "value": right[0], "choices": choices})
    known = with_known_names(slot.model_copy(update={"aliases": aliases}), of_all=True)
    # The names of the knowledge base replace aliases that it has; what the tool returns must stay one.
    names = tuple(dict.fromkeys((*known.aliases.get(right[0], ()), *aliases.get(right[0], ()))))
    return known.model_copy(update={"aliases": {**known.aliases, right[0]: names} if names else {}})


def means(choice: str, result: str, aliases: Sequence[str] = ()) -> bool:
    """Return True if a tool that returned ``result``, a name or the id of an entry, named the choice."""
    of_choice = {label_key(name) for name in (choice, *aliases)}
    entries = [entry for entry in shipped_names().entries if entry.id == result]
    of_result = {label_key(name) for entry in entries for name in entry.names.all()}
    if of_choice & {label_key(result), *of_result}:
        return True
    if healthy_crop(choice) is not None and healthy_crop(result) is not None:
        return True
    return any(entry.id == result for entry in shipped_names().all_of_name(choice))


def _check_certain(part: AnswerPart, value: JsonValue, steps: Sequence[ReferenceStep]) -> None:
    """Raise CannotCompose if another answer is as good within the errors of the tools."""
    for root in roots_of(part.from_, steps):
        others = values_within_error(part.from_, steps, root)
        if any(other != value for other in others):
            raise CannotCompose(
                "within_error",
                f"{part.name} changes if {root.path} of step {root.step + 1} strays by its error",
                hint="ask about values that are further apart",
                part=part.name,
            )


def _wrong_kind(part: AnswerPart, value: JsonValue, wanted: str) -> CannotCompose:
    return CannotCompose(
        "wrong_kind",
        f"{part.name} must be {wanted}, and the result is {str(value)[:80]!r}",
        hint="bind it to another value, or choose another form of answer",
        part=part.name,
    )


def _no_choices(part: AnswerPart) -> CannotCompose:
    return CannotCompose(
        "no_choices",
        f"{part.name} needs at least {FEWEST_CHOICES} choices",
        hint="add choices, or files for the answer to name",
        part=part.name,
    )
