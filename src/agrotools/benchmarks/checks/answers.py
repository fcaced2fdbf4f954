"""Slots: values that follow from the truth, units that exist, types that fit together."""

import math
from collections.abc import Sequence

from pydantic import JsonValue, ValidationError

from agrotools.benchmarks.checks.fault import Checked, dotted, plain_results
from agrotools.core import (
    FAMILIES,
    FAMILY_OF_TASK_TYPE,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    ImageCallsSlot,
    KeywordsSlot,
    PlotSlot,
    PlotSpec,
    Slot,
    ToleranceSlot,
    UnresolvedRef,
)
from agrotools.core.record import REF_PATTERN
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools.text.normalise import canonical_unit

_NEED_NO_FROM = frozenset(
    {"open_text", "keywords", "reference_texts", "image_calls", "options", "reference_text", "sub_tasks"}
)
"""Types of slots whose value does not follow from observations by an expression."""


def check_answer(at: Checked) -> None:
    """Codes: duplicate_slot, no_from, from_unresolved, from_differs, unknown_unit, no_tolerance, not_a_choice,
    value_is_distractor, no_keywords, no_image_call, bad_plot, unknown_task_type, unknown_family, family_mismatch,
    answer_type_mismatch, not_no_tool.
    """
    _check_task(at)
    names: set[str] = set()
    for index, slot in enumerate(at.sample.answer):
        where = f"answer[{index}]"
        if slot.name in names:
            at.fault("duplicate_slot", f"{where}.name", f"two slots are called {slot.name!r}", "rename one of them")
        names.add(slot.name)
        _check_value(at, where, slot)
        _check_from(at, where, slot)
    _check_no_tool(at)


def _check_task(at: Checked) -> None:
    sample = at.sample
    family = FAMILY_OF_TASK_TYPE.get(sample.task_type)
    if family is None:
        hint = f"known: {', '.join(FAMILY_OF_TASK_TYPE)}"
        at.fault("unknown_task_type", "task_type", f"unknown task type {sample.task_type!r}", hint)
    if sample.family not in FAMILIES:
        hint = f"known: {', '.join(FAMILIES)}"
        at.fault("unknown_family", "family", f"unknown family {sample.family!r}", hint)
    elif family is not None and family != sample.family:
        at.fault(
            "family_mismatch",
            "family",
            f"{sample.task_type} belongs to {family}, not {sample.family}",
            f"write {family}",
        )
    types = {slot.type for slot in sample.answer}
    plots = sample.reference is not None and any(step.tool == "plot" for step in sample.reference.steps)
    fits = {
        # What a chart shows may be asked for in words.
        "plot": "plot" in types or plots,
        "open_text": bool(types & {"open_text", "reference_texts", "reference_text", "sub_tasks"}),
        "tolerance": "tolerance" in types,
        "exact": bool(types & {"exact", "boolean", "choice_set", "file", "keywords", "options"}),
        "image": "image_calls" in types,
    }
    if not fits[sample.answer_type]:
        message = f"answer type {sample.answer_type}, but the slots are of type {', '.join(sorted(types))}"
        at.fault("answer_type_mismatch", "answer_type", message, "name the type of the leading slot")


def _check_value(at: Checked, where: str, slot: Slot) -> None:
    unit = slot.unit if isinstance(slot, (ToleranceSlot, ExactSlot)) else None
    if unit is not None and canonical_unit(unit) is None:
        at.fault(
            "unknown_unit", f"{where}.unit", f"unknown unit {unit!r}", "use a unit of the table, e.g. %, ha, m^2, mm"
        )
    if isinstance(slot, ToleranceSlot):
        if not math.isfinite(slot.value):
            at.fault("bad_value", f"{where}.value", "the value is not finite", "give a number")
        elif slot.margin == 0:
            hint = "set abs_tol or rel_tol, or make the slot exact"
            at.fault("no_tolerance", where, "a tolerance slot whose tolerance is 0", hint)
    elif isinstance(slot, FileSlot):
        _check_files_named(at, where, slot)
    elif isinstance(slot, ChoiceSetSlot):
        for value in slot.value:
            if value not in slot.choices:
                at.fault("not_a_choice", f"{where}.value", f"{value!r} is not among the choices", "add it to choices")
    elif isinstance(slot, ExactSlot):
        _check_labels(at, where, slot)
    elif isinstance(slot, PlotSlot):
        _check_plot(at, where, slot)
    elif isinstance(slot, KeywordsSlot):
        _check_keywords(at, where, slot)
    elif isinstance(slot, ImageCallsSlot) and not any(tool in slot.tools for tool in _reference_tools(at)):
        hint = "add the calls that make the image, or name their tools"
        at.fault("no_image_call", f"{where}.tools", f"the reference calls none of {', '.join(slot.tools)}", hint)


def _check_labels(at: Checked, where: str, slot: ExactSlot) -> None:
    if slot.choices and slot.value not in slot.choices:
        at.fault("not_a_choice", f"{where}.value", f"{slot.value!r} is not among the choices", "add it to choices")
    labels = {name.casefold() for name in slot.names}
    for wrong in slot.distractors:
        for name in (wrong, *slot.aliases.get(wrong, ())):
            if name.casefold() in labels:
                hint = "remove it from one of the two"
                at.fault("value_is_distractor", f"{where}.choices", f"{name!r} is both right and wrong", hint)


def _reference_tools(at: Checked) -> tuple[str, ...]:
    return at.sample.reference.tools if at.sample.reference else ()


def _check_keywords(at: Checked, where: str, slot: KeywordsSlot) -> None:
    right = {alias.casefold() for group in slot.whitelist for alias in group}
    if not right:
        at.fault("no_keywords", f"{where}.whitelist", "there is no keyword: every answer is right", "name one at least")
    for alias in (alias for group in slot.blacklist for alias in group if alias.casefold() in right):
        at.fault(
            "value_is_distractor", f"{where}.blacklist", f"{alias!r} is both right and wrong", "remove one of them"
        )


def _check_files_named(at: Checked, where: str, slot: FileSlot) -> None:
    names = {file.name for file in at.sample.files}
    if slot.value not in slot.choices:
        at.fault("not_a_choice", f"{where}.value", f"{slot.value!r} is not among the choices", "add it to choices")
    for name in (slot.value, *slot.choices):
        if name not in names:
            hint = f"its files: {', '.join(sorted(names)) or 'none'}"
            at.fault("file_not_in_sample", where, f"the sample has no file {name!r}", hint)
            return


def _check_plot(at: Checked, where: str, slot: PlotSlot) -> None:
    try:
        spec = PlotSpec.model_validate(slot.value)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            field = f"{where}.value.{dotted(detail['loc'])}"
            at.fault("bad_plot", field, detail["msg"], "see PlotSpec in `agrotools validate --schema`")
        return
    for index, series in enumerate(spec.series):
        if len(series.x) != len(series.y) or not series.x:
            message = f"{len(series.x)} x values but {len(series.y)} y values"
            at.fault("bad_plot", f"{where}.value.series[{index}]", message, "give as many x as y, at least one")


def _check_from(at: Checked, where: str, slot: Slot) -> None:
    reference = at.sample.reference
    if slot.from_ is None or reference is None:
        if slot.from_ is None and slot.type not in _NEED_NO_FROM:
            hint = "say how the value follows from the observations, e.g. steps[0].observation.weed_pct"
            at.fault("no_from", f"{where}.from", "the slot does not say how its value follows", hint)
        return
    used = sorted({int(match["step"]) for match in REF_PATTERN.finditer(slot.from_)})
    if not used:
        hint = "write an expression over steps[N].observation..."
        at.fault("from_unresolved", f"{where}.from", "it refers to no step", hint)
        return
    if any(index < len(reference.steps) and reference.steps[index].truth is None for index in used):
        return  # The source does not know the truth of that step, so nothing can be compared.
    try:
        value = evaluate_from(slot.from_, plain_results(step.truth for step in reference.steps))
    except (UnresolvedRef, ExpressionError) as error:
        hint = "refer to fields that the truth of the step has"
        at.fault("from_unresolved", f"{where}.from", f"{slot.from_}: {error}", hint)
        return
    if not yields(slot, value):
        message = f"{slot.from_} gives {_short(value)} from the truth, but the value is {_short(_value(slot))}"
        at.fault("from_differs", f"{where}.value", message, "correct the value or the expression")


def yields(slot: Slot, value: JsonValue) -> bool:
    """True if ``value`` (the result of ``from``) is the slot's value.

    Numbers may differ by a hundredth of the slot's margin or by 1e-5 of the value (results are rounded to six digits).
    """
    if isinstance(slot, ToleranceSlot):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return abs(value - slot.value) <= max(0.01 * slot.margin, 1e-5 * abs(slot.value))
    if isinstance(slot, BooleanSlot):
        return value is slot.value
    if isinstance(slot, ChoiceSetSlot):
        return isinstance(value, list) and sorted(map(str, value)) == sorted(slot.value)
    if isinstance(slot, PlotSlot):
        return _same_figure(value, slot.value)
    if isinstance(slot, ExactSlot) and isinstance(slot.value, (int, float)):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isclose(value, slot.value)
    if isinstance(slot, (ExactSlot, FileSlot)):
        labels = slot.names if isinstance(slot, ExactSlot) else (slot.value,)
        return isinstance(value, str) and value.casefold() in {name.casefold() for name in labels}
    return True


def _same_figure(value: JsonValue, expected: JsonValue) -> bool:
    try:
        figure, expected_figure = PlotSpec.model_validate(value), PlotSpec.model_validate(expected)
    except ValidationError:
        return False
    return (
        _flat(figure) == _flat(expected_figure)
        and figure.kind == expected_figure.kind
        and _close(_numbers(figure), _numbers(expected_figure))
    )


def _flat(spec: PlotSpec) -> list[tuple[str, tuple[str, ...]]]:
    return [(series.name, tuple(x for x in series.x if isinstance(x, str))) for series in spec.series]


def _numbers(spec: PlotSpec) -> list[float]:
    return [number for series in spec.series for number in (*series.x, *series.y) if not isinstance(number, str)]


def _close(first: Sequence[float], second: Sequence[float]) -> bool:
    return len(first) == len(second) and all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-9) for a, b in zip(first, second, strict=True)
    )


def _check_no_tool(at: Checked) -> None:
    if not at.sample.no_tool_eligible:
        return
    needs = [slot.name for slot in at.sample.answer if slot.made]
    needs += [file.name for file in at.sample.files if file.kind in ("raster", "mask", "depth", "table")]
    if needs:
        message = f"{needs[0]} cannot be had by looking at the pictures"
        at.fault("not_no_tool", "no_tool_eligible", message, "set no_tool_eligible to false")


def _value(slot: Slot) -> JsonValue:
    value = getattr(slot, "value", None)
    return list(value) if isinstance(value, tuple) else value


def _short(value: JsonValue) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
