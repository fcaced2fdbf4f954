"""Checks of the reference and the answer of a sample. Each fault is a code, a field, a message and a hint."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from agrotools.calling import Tool, get_tool
from agrotools.core import (
    FAMILIES,
    FAMILY_OF_TASK_TYPE,
    AbstainSlot,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    KeywordsSlot,
    PlotSlot,
    PlotSpec,
    ReferenceStep,
    Sample,
    Slot,
    ToleranceSlot,
    ToolError,
    UnresolvedRef,
    UsageError,
)
from agrotools.core.form_item import FormItem
from agrotools.core.record import (
    REF_PATTERN,
    iter_refs,
    literal_value,
    reference_words,
    resolve_ref,
)
from agrotools.core.slot import ENGINE_TYPES, asked_slots
from agrotools.core.texts import spell_location
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.text.agreement_values import same_json
from agrotools.text.answer_reader import read_answer
from agrotools.text.expressions import ExpressionError, evaluate_from, shows_no_answer

Remark = tuple[str, str, str, str]
"""Fault of a sample: its code, field, message and hint."""
Results = list[dict[str, JsonValue] | None]


@cache
def tool_or_none(name: str) -> Tool[..., Any] | None:
    """Return the tool with this name; None if it is unknown or cannot be imported."""
    try:
        return get_tool(name)
    except (UsageError, ToolError):
        return None


class SampleUnderCheck:
    """Sample under check, with the root folder and the header of its benchmark."""

    def __init__(self, sample: Sample, root: Path, header: BenchmarkHeader | None) -> None:
        self.sample, self.root, self.header = sample, root, header

    @cached_property
    def steps(self) -> Sequence[ReferenceStep]:
        """Steps of the reference; empty if the sample has no reference."""
        return self.sample.reference.steps if self.sample.reference else ()

    @cached_property
    def truths(self) -> Results:
        """True result of each step, which answer expressions (``from``) refer to."""
        return [None if step.truth is None else dict(step.truth) for step in self.steps]

    @cached_property
    def recorded(self) -> Results:
        """Observed result of each step."""
        results = [step.observation.result if step.observation else None for step in self.steps]
        return [None if result is None else dict(result) for result in results]


def check_reference(at: SampleUnderCheck) -> Iterator[Remark]:
    """Check that the tools exist and accept the arguments, and that references resolve to the recorded values.

    Codes: no_reference, unknown_tool, toolset_lacks_tool, bad_arguments, file_not_in_sample, unresolved_ref,
    ref_forward, ref_differs, group_not_independent.
    """
    toolset = at.sample.toolset
    named_tools = [(f"toolset[{index}]", name) for index, name in enumerate(toolset)]
    named_tools += [
        (f"reference.steps[{index}].tool", step.tool) for index, step in enumerate(at.steps)
    ]
    for where, name in named_tools:
        if tool_or_none(name) is None:
            yield (
                "unknown_tool",
                where,
                f"there is no tool {name!r}",
                "`agrotools tools list` names the tools",
            )
    for name in toolset:
        if (
            at.header is not None
            and name not in at.header.toolset
            and tool_or_none(name) is not None
        ):
            hint = "add it to `toolset` in benchmark.toml"
            yield "toolset_lacks_tool", "toolset", f"{name} is not in the benchmark's toolset", hint
    if not at.steps:
        hint = (
            "add the reference calls; without them no process metric and no ceiling can be computed"
        )
        yield "no_reference", "reference", "the sample has no reference trajectory", hint
    for index, step in enumerate(at.steps):
        where = f"reference.steps[{index}]"
        if step.tool not in toolset and tool_or_none(step.tool) is not None:
            hint = f"add {step.tool!r} to the sample's toolset"
            yield (
                "toolset_lacks_tool",
                f"{where}.tool",
                f"{step.tool} is not in the sample's toolset",
                hint,
            )
        yield from _check_refs(at, index, step)
        yield from _check_arguments(at, where, step)
        yield from _check_group(at, index, step)


def _check_refs(at: SampleUnderCheck, index: int, step: ReferenceStep) -> Iterator[Remark]:
    for inside, ref, literal in iter_refs(dict(step.arguments)):
        where = f"reference.steps[{index}].arguments.{inside}"
        match = REF_PATTERN.fullmatch(ref.strip())
        if match and int(match["step"]) >= index:
            hint = "a step may only use what earlier steps returned"
            yield (
                "ref_forward",
                where,
                f"{reference_words(ref)} is not of a step before step {index + 1}",
                hint,
            )
            continue
        target = at.steps[int(match["step"])] if match else None
        if (
            target is not None
            and target.observation is not None
            and target.observation.result is None
        ):
            continue  # The tool failed at that step, so there is no value to compare with.
        try:
            value = resolve_ref(ref, at.recorded)
        except UnresolvedRef as error:
            try:  # The tool may have returned a wrong result, which lacks a field that the truth has.
                unknown = resolve_ref(ref, at.truths) is None
            except UnresolvedRef:
                unknown = True
            if unknown:
                yield (
                    "unresolved_ref",
                    where,
                    str(error),
                    "refer to a field that the recorded observation has",
                )
            continue
        if not same_json(value, literal, rounded=True):
            message = f"{reference_words(ref)} is {value!r} in the recorded observation, {literal!r} beside it"
            yield "ref_differs", where, message, "write the recorded value beside the reference"


def _check_arguments(at: SampleUnderCheck, where: str, step: ReferenceStep) -> Iterator[Remark]:
    tool = tool_or_none(step.tool)
    if tool is None:
        return
    if not any(literal is None for _, _, literal in iter_refs(dict(step.arguments))):
        try:
            tool.validate({name: literal_value(value) for name, value in step.arguments.items()})
        except ToolError as error:
            yield "bad_arguments", f"{where}.arguments", error.message, error.hint or "change it"
    files = sorted(file.name for file in at.sample.files)
    made = {
        artifact.name
        for each in at.steps
        if each.observation
        for artifact in each.observation.artifacts
    }
    error = step.observation.error if step.observation else None
    if not at.sample.answerable and error and error.kind == "file_not_found":
        return  # the file is withheld, and the call shows it
    for argument, kind in tool.spec.agreement.items():
        name = literal_value(step.arguments.get(argument))
        if kind == "file" and isinstance(name, str) and name not in files and name not in made:
            place, hint = (
                f"{where}.arguments.{argument}",
                f"its files: {', '.join(files) or 'none'}",
            )
            yield "file_not_in_sample", place, f"the sample has no file {name!r}", hint


def _check_group(at: SampleUnderCheck, index: int, step: ReferenceStep) -> Iterator[Remark]:
    if step.group is None:
        return
    for _, ref, _ in iter_refs(dict(step.arguments)):
        match = REF_PATTERN.fullmatch(ref.strip())
        if (
            match
            and int(match["step"]) < index
            and at.steps[int(match["step"])].group == step.group
        ):
            hint = "steps of a group must not use each other's results"
            yield (
                "group_not_independent",
                f"reference.steps[{index}]",
                f"{reference_words(ref)} is in the same group",
                hint,
            )


def check_answer(at: SampleUnderCheck) -> Iterator[Remark]:
    """Check that slot values follow from the truth, that units can be read, and that types match.

    Codes: duplicate_slot, no_from, from_unresolved, from_differs, unreadable_unit, no_tolerance, not_a_choice,
    value_is_distractor, no_keywords, bad_plot, unknown_task_type, unknown_family, family_mismatch,
    answer_type_mismatch, not_no_tool, shows_answer, offers_no_refusal.
    """
    yield from _check_task(at.sample)
    names: set[str] = set()
    for index, slot in enumerate(at.sample.answer):
        where = f"answer[{index}]"
        if slot.name in names:
            yield (
                "duplicate_slot",
                f"{where}.name",
                f"two slots are called {slot.name!r}",
                "rename one of them",
            )
        names.add(slot.name)
        yield from _check_value(at, where, slot)
        yield from _check_from(at, where, slot)
    yield from _check_abstaining(at)
    if at.sample.no_tool_eligible:
        needs = [slot.name for slot in at.sample.answer if slot.made_by_tools]
        needs += [
            file.name
            for file in at.sample.files
            if file.kind in ("raster", "mask", "depth", "table")
        ]
        if needs:
            message = f"{needs[0]} cannot be known by looking at the images"
            yield "not_no_tool", "no_tool_eligible", message, "set no_tool_eligible to false"


_EXACT = ("exact", "boolean", "choice_set", "file", "keywords")


_MISSPELT = 0.85
"""Similarity of names from which one is taken for a misspelling of the other: ``apple_counting`` is 0.74 of
``tree_counting``, and ``tree_countin`` 0.96."""


def _check_task(sample: Sample) -> Iterator[Remark]:
    family = FAMILY_OF_TASK_TYPE.get(sample.task_type)
    # A benchmark may have task types of its own. A name that is nearly a known one is a mistake.
    meant = get_close_matches(sample.task_type, FAMILY_OF_TASK_TYPE, n=1, cutoff=_MISSPELT)
    if family is None and meant:
        message = f"unknown task type {sample.task_type!r}, nearly {meant[0]!r}"
        hint = f"write {meant[0]}, or a name of your own that cannot be mistaken for it"
        yield "unknown_task_type", "task_type", message, hint
    if sample.family not in FAMILIES:
        yield (
            "unknown_family",
            "family",
            f"unknown family {sample.family!r}",
            f"known: {', '.join(FAMILIES)}",
        )
    elif family is not None and family != sample.family:
        message = f"{sample.task_type} belongs to {family}, not {sample.family}"
        yield "family_mismatch", "family", message, f"write {family}"
    slots = asked_slots(sample.answer)
    types = {slot.type for slot in slots}
    plots = sample.reference is not None and any(
        step.tool == "plot" for step in sample.reference.steps
    )
    fits = {
        # A question with a chart in its reference may ask for the content of the chart in words.
        "plot": "plot" in types or plots,
        "open_text": any(slot.free_text or slot.judged for slot in slots),
        "tolerance": "tolerance" in types,
        "exact": any(slot.letters or slot.type in _EXACT for slot in slots),
        "image": any(slot.made_by_tools and slot.type not in ENGINE_TYPES for slot in slots),
    }
    if not fits[sample.answer_type]:
        message = f"answer type {sample.answer_type}, but the slots are of type {', '.join(sorted(types))}"
        yield "answer_type_mismatch", "answer_type", message, "name the type of the leading slot"


def _check_value(at: SampleUnderCheck, where: str, slot: Slot) -> Iterator[Remark]:
    """Check the gold of a slot: its unit, its tolerance, its choices, and that nothing is both right and wrong."""
    unit = slot.unit if isinstance(slot, (ToleranceSlot, ExactSlot)) else None
    if unit is not None and not _is_readable(unit):
        message = f"an answer cannot give a number with the unit {unit!r}"
        hint = "write it as an answer would behind a number, on one line: %, t/ha, °Bx"
        yield "unreadable_unit", f"{where}.unit", message, hint
    match slot:
        case ToleranceSlot():
            yield from _check_tolerance(where, slot)
        case ChoiceSetSlot():
            yield from _check_choices(where, slot.value, slot.choices)
        case ExactSlot():
            if slot.choices:
                yield from _check_choices(where, (slot.value,), slot.choices)
            wrong: list[str] = []
            for distractor in slot.distractors:
                wrong += [distractor, *slot.aliases.get(distractor, ())]
            yield from _check_both(f"{where}.choices", slot.names, wrong)
        case FileSlot():
            yield from _check_choices(where, (slot.value,), slot.choices)
            names = sorted(file.name for file in at.sample.files)
            missing = [name for name in (slot.value, *slot.choices) if name not in names]
            if missing:
                hint = f"its files: {', '.join(names) or 'none'}"
                yield "file_not_in_sample", where, f"the sample has no file {missing[0]!r}", hint
        case PlotSlot():
            yield from _check_plot(where, slot)
        case KeywordsSlot():
            right = [alias for group in slot.whitelist for alias in group]
            wrong = [alias for group in slot.blacklist for alias in group]
            if not right:
                message = "there is no keyword: every answer is right"
                yield "no_keywords", f"{where}.whitelist", message, "name one at least"
            yield from _check_both(f"{where}.blacklist", right, wrong)
        case _:
            pass


def _is_readable(unit: str) -> bool:
    """Return True if the form of an answer can hold a number with this unit."""
    item = FormItem(name="value", label="value", type="tolerance", unit=unit, is_number=True)
    values = read_answer(f"value: 12 {unit}", (item,))
    return bool(unit.strip()) and "value" in values and values["value"].number is not None


def _check_tolerance(where: str, slot: ToleranceSlot) -> Iterator[Remark]:
    if not math.isfinite(slot.value):
        yield "bad_value", f"{where}.value", "the value is not finite", "give a number"
    elif slot.margin == 0:
        hint = "set abs_tol or rel_tol, or make the slot exact"
        yield "no_tolerance", where, "a tolerance slot whose tolerance is 0", hint


def _check_choices(
    where: str, values: Iterable[object], choices: Collection[object]
) -> Iterator[Remark]:
    for value in values:
        if value not in choices:
            message = f"{value!r} is not among the choices"
            yield "not_a_choice", f"{where}.value", message, "add it to choices"


def _check_both(where: str, right: Iterable[str], wrong: Iterable[str]) -> Iterator[Remark]:
    folded = {name.casefold() for name in right}
    for name in wrong:
        if name.casefold() in folded:
            message = f"{name!r} is both right and wrong"
            yield "value_is_distractor", where, message, "remove it from one of the two"


def _check_plot(where: str, slot: PlotSlot) -> Iterator[Remark]:
    try:
        spec = PlotSpec.model_validate(slot.value)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            field = f"{where}.value.{spell_location(detail['loc'])}"
            yield (
                "bad_plot",
                field,
                detail["msg"],
                "see PlotSpec in `agrotools benchmarks check --schema`",
            )
        return
    for index, series in enumerate(spec.series):
        if len(series.x) != len(series.y) or not series.x:
            message = f"{len(series.x)} x values but {len(series.y)} y values"
            yield (
                "bad_plot",
                f"{where}.value.series[{index}]",
                message,
                "give as many x as y, at least one",
            )


def _check_abstaining(at: SampleUnderCheck) -> Iterator[Remark]:
    sample = at.sample
    if sample.answerable:
        return
    if len(sample.answer) > 1:
        yield (
            "shows_answer",
            "answer",
            "an unanswerable question has other slots",
            "move them to `asks`",
        )
    if not sample.may_abstain:
        message, hint = (
            "it is unanswerable, and may_abstain is not set",
            "set may_abstain to true in every sample",
        )
        yield "offers_no_refusal", "may_abstain", message, hint
    if sample.no_tool_eligible:
        hint = "set no_tool_eligible to false"
        yield (
            "not_no_tool",
            "no_tool_eligible",
            "without tools an estimate is asked for, never a refusal",
            hint,
        )
    abstaining = [slot for slot in sample.answer if isinstance(slot, AbstainSlot)]
    if at.steps and not all(shows_no_answer(slot, at.truths) for slot in abstaining):
        message, hint = "the true results give an answer", "ask for what the files do not show"
        yield "shows_answer", "answer[0]", message, hint


def _check_from(at: SampleUnderCheck, where: str, slot: Slot) -> Iterator[Remark]:
    if isinstance(slot, AbstainSlot):
        return
    if slot.from_ is None or at.sample.reference is None:
        if slot.from_ is None and slot.type in ENGINE_TYPES and not slot.free_text:
            hint = "say how the value follows from the observations, e.g. steps[0].observation.weed_pct"
            yield "no_from", f"{where}.from", "the slot does not say how its value follows", hint
        return
    used = sorted({int(match["step"]) for match in REF_PATTERN.finditer(slot.from_)})
    if not used:
        hint = "write an expression over steps[N].observation..."
        yield "from_unresolved", f"{where}.from", "it refers to no step", hint
        return
    if any(index < len(at.steps) and at.truths[index] is None for index in used):
        return  # The truth of that step is unknown, so nothing can be compared.
    try:
        value = evaluate_from(slot.from_, at.truths)
    except (UnresolvedRef, ExpressionError) as error:
        hint = "refer to fields that the truth of the step has"
        yield "from_unresolved", f"{where}.from", f"{reference_words(slot.from_)}: {error}", hint
        return
    if not matches_slot(slot, value):
        expected = getattr(slot, "value", None)
        gives = f"{reference_words(slot.from_)} gives {_short(value)} from the truth"
        message = f"{gives}, but the value is {_short(expected)}"
        yield "from_differs", f"{where}.value", message, "correct the value or the expression"


def matches_slot(slot: Slot, value: JsonValue) -> bool:
    """Return True if ``value`` (the result of ``from``) equals the slot's value.

    Numbers may differ by 1 % of the slot's margin or by a relative 1e-5, because results are rounded to six digits.
    """
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    if isinstance(slot, ToleranceSlot):
        return abs(number - slot.value) <= max(0.01 * slot.margin, 1e-5 * abs(slot.value))
    if isinstance(slot, BooleanSlot):
        return value is slot.value
    if isinstance(slot, ChoiceSetSlot):
        return isinstance(value, list) and sorted(map(str, value)) == sorted(slot.value)
    if isinstance(slot, PlotSlot):
        return _same_figure(value, slot.value)
    if isinstance(slot, ExactSlot) and isinstance(slot.value, (int, float)):
        return math.isclose(number, slot.value)
    if isinstance(slot, (ExactSlot, FileSlot)):
        labels = slot.names if isinstance(slot, ExactSlot) else (slot.value,)
        return isinstance(value, str) and value.casefold() in {name.casefold() for name in labels}
    return True


def _same_figure(value: JsonValue, expected: JsonValue) -> bool:
    """Return True if two plots have the same kind and texts, and the same numbers to a relative 1e-5."""
    try:
        (texts, numbers), (expected_texts, expected_numbers) = map(_plot_parts, (value, expected))
    except ValidationError:
        return False
    alike = texts == expected_texts and len(numbers) == len(expected_numbers)
    return alike and all(
        map(partial(math.isclose, rel_tol=1e-5, abs_tol=1e-9), numbers, expected_numbers)
    )


def _plot_parts(plot: JsonValue) -> tuple[list[object], list[float]]:
    spec = PlotSpec.model_validate(plot)
    texts = [(series.name, *(x for x in series.x if isinstance(x, str))) for series in spec.series]
    values = [value for series in spec.series for value in (*series.x, *series.y)]
    return [spec.kind, *texts], [value for value in values if not isinstance(value, str)]


def _short(value: object) -> str:
    text = repr([*value] if isinstance(value, tuple) else value)
    return text if len(text) <= 80 else f"{text[:77]}..."
