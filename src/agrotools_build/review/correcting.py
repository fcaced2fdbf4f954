"""Correcting of a sample and writing of a new one: what the page holds, its trial runs, and the sample that is saved.

What comes in is what a reviewer wrote: words, calls, and places in results. Values never come in: calls are made here,
and the parts of an answer take their values from the results, or from the label that stands in the sample.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue, ValidationError, field_validator

from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    ExactSlot,
    FrozenModel,
    Observation,
    PlotSlot,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    Slot,
    ToleranceSlot,
    first_error,
)
from agrotools.core.errors import ErrorInfo
from agrotools.core.record import (
    REF_PATTERN,
    FileName,
    iter_refs,
    renumber_refs,
    renumbered_text,
    without_literals,
)
from agrotools.loading.sample_checks import matches_slot
from agrotools.loading.validate import check_samples
from agrotools.report.layout import expected_text
from agrotools.scoring.steps import implied_slot
from agrotools_build.answer_origin import TOOL_VALUES, origin_of
from agrotools_build.building import with_plot_weights
from agrotools_build.composing import (
    AnswerPart,
    CannotCompose,
    Composition,
    StepRunner,
    TraceStep,
    bound_slot,
    compose_sample,
    results_of,
)
from agrotools_build.composing.idle import idle_step
from agrotools_build.composing.making import answer_type_of
from agrotools_build.composing.running import grouped
from agrotools_build.composing.tolerance import (
    EXACT_TOOLS,
    tolerance_of,
    tolerance_source,
    value_at,
    with_calculations,
)
from agrotools_build.drafting.constants import own_constants
from agrotools_build.drafting.material import looks_at_same
from agrotools_build.references import steps_behind, steps_in, steps_used, without_artifacts
from agrotools_build.review.folder_labels import (
    KnownLabels,
    label_texts,
    labelled_steps,
    roots_with_label,
    roots_without_label,
)
from agrotools_build.review.versions import Version

WRITTEN = "written"
"""Source and template of a sample that was written from nothing."""
_MOST_STEPS = 24
"""Most calls of a trace; the longest of the released AgroTools dialogs has 14."""
_FORMS = {
    "tolerance": "number",
    "boolean": "yes_no",
    "file": "file",
    "plot": "chart",
    "exact": "name",
}
"""Form of an answer by the type of its slot; slots of other types keep their value."""
_CALCULATING = frozenset({"calculate", "plot"})
"""Tools that look at nothing: what they return follows from their arguments."""
UNCHANGED = CannotCompose(
    "not_valid", "nothing was changed", hint="accept the sample as it is, or change it first"
)
"""Why a save is refused that would call a sample corrected which is as it was."""
KEPT = "kept"
"""Form of a part whose slot is of another type."""


class ChosenFile(FrozenModel):
    """File of a new question: the sample that has it, its name there, and its name in the question."""

    sample: str
    name: str
    as_: Annotated[FileName, Field(alias="as")]


class WrittenStep(FrozenModel):
    """Call of a trace. ``was``: index of the call of the sample that it comes from, from 0."""

    tool: str
    arguments: dict[str, JsonValue] = {}
    thought: Annotated[str, Field(max_length=2000)] = ""
    was: Annotated[int | None, Field(ge=0)] = None

    @field_validator("arguments")
    @classmethod
    def _without_literals(cls, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Values of references are results, which are never typed."""
        return cast("dict[str, JsonValue]", without_literals(arguments))


class WrittenPart(FrozenModel):
    """Part of the answer.

    ``value``: ``stands``: nobody chose, so that the results must give the value of the sample, or for a new part that
    of the folder's label; ``label``: that value, although the results give another; ``result``: what the results give.
    """

    name: str = ""
    label: str = ""
    form: str
    from_: Annotated[str, Field(alias="from")] = ""
    unit: str | None = None
    choices: tuple[str, ...] = ()
    value: Literal["stands", "label", "result"] = "result"


class Written(FrozenModel):
    """All that the page holds of a question. ``files``: of a new question; a sample keeps its files."""

    query: str = ""
    task_type: str = ""
    files: tuple[ChosenFile, ...] = ()
    steps: Annotated[tuple[WrittenStep, ...], Field(max_length=_MOST_STEPS)] = ()
    parts: tuple[WrittenPart, ...] = ()


def written_of(sample: Sample) -> dict[str, Any]:
    """Return what the page begins a correction with."""
    steps = sample.reference.steps if sample.reference else ()
    written = Written(
        query=sample.query,
        task_type=sample.task_type,
        steps=tuple(
            WrittenStep(tool=step.tool, arguments=step.arguments, thought=step.thought, was=number)
            for number, step in enumerate(steps)
        ),
        parts=tuple(_part_of(slot) for slot in sample.answer),
    )
    return written.model_dump(mode="json", by_alias=True)


def _part_of(slot: Slot) -> WrittenPart:
    choices = getattr(slot, "choices", ())
    return WrittenPart.model_validate(
        {
            "name": slot.name,
            "label": slot.label,
            "form": _form_of(slot),
            "from": slot.from_ or "",
            "unit": getattr(slot, "unit", None),
            "choices": choices,
            "value": "stands",
        }
    )


def _form_of(slot: Slot) -> str:
    is_number = isinstance(slot, ExactSlot) and not isinstance(slot.value, str)
    return KEPT if is_number else _FORMS.get(slot.type, KEPT)


# --- running --------------------------------------------------------------------------------------------------------


async def run_steps(
    written: Written, files: Sequence[SampleFile], runner: StepRunner, base: Sample | None
) -> list[ReferenceStep]:
    """Make the calls and return them with their observations, and with the truth that labels give.

    CannotCompose: a call refers to a later one, or a variable has no value.
    """
    for number, step in enumerate(written.steps, 1):
        _check_variables(step, number)
    steps = [
        TraceStep(tool=step.tool, arguments=step.arguments, thought=step.thought)
        for step in written.steps
    ]
    ran = (await runner.run_trace(files, steps)).steps
    return with_bound_fields(steps_with_truth(ran, written.steps, base), written.parts)


def _check_variables(step: WrittenStep, number: int) -> None:
    variables = step.arguments.get("variables")
    if step.tool not in _CALCULATING or not isinstance(variables, dict):
        return
    for name, value in variables.items():
        if value is None or value == "":
            raise CannotCompose(
                "call_fails",
                f"step {number} ({step.tool}): {name} has no value",
                hint="type one, take one from a result, or remove the variable",
            )


def steps_with_truth(
    ran: Sequence[ReferenceStep], written: Sequence[WrittenStep], base: Sample | None
) -> list[ReferenceStep]:
    """Return the steps with the truth of calls that did not change, and of calculations that follow from it.

    CannotCompose: a calculation has no value by the labels.
    """
    place = {step.was: number for number, step in enumerate(written) if step.was is not None}
    unchanged: set[int] = set()
    steps: list[ReferenceStep] = []
    for number, (step, source) in enumerate(zip(ran, written, strict=True)):
        old = _step_before(source, base)
        used = steps_used(source.arguments)
        truth: dict[str, JsonValue] | None = None
        if old is not None and _same_call(old, source, place) and used <= unchanged:
            unchanged.add(number)
            truth = old.truth
        steps.append(step.model_copy(update={"truth": truth}))
    changed = [step for number, step in enumerate(steps) if number not in unchanged]
    needed = [target for step in changed for _, target, _ in iter_refs(dict(step.arguments))]
    steps = _with_needed_fields(steps, needed)
    known = [number for number, step in enumerate(steps) if step.truth is not None]
    return with_calculations(steps, known)


def with_bound_fields(
    steps: Sequence[ReferenceStep], parts: Sequence[WrittenPart]
) -> list[ReferenceStep]:
    """Return the steps, whose labels are completed with what the tool returned where a part needs another field."""
    return _with_needed_fields(steps, [part.from_ for part in parts])


def _with_needed_fields(
    steps: Sequence[ReferenceStep], expressions: Iterable[str]
) -> list[ReferenceStep]:
    """Return the steps, whose labels are completed with the tool's result where an expression needs another field."""
    completed = [*steps]
    for expression in expressions:
        for match in REF_PATTERN.finditer(expression):
            number, path = int(match["step"]), match["path"].lstrip(".")
            step = completed[number] if number < len(completed) else None
            if step is None or step.truth is None or value_at(path, step.truth) is not None:
                continue
            seen = _observed(step.observation)
            if value_at(path, seen) is not None:
                truth = {**(seen or {}), **step.truth}
                completed[number] = step.model_copy(update={"truth": truth})
    return completed


def _step_before(step: WrittenStep, base: Sample | None) -> ReferenceStep | None:
    """Return the call of the sample that a call on the page comes from; None for a new one."""
    steps = base.reference.steps if base and base.reference else ()
    return steps[step.was] if step.was is not None and step.was < len(steps) else None


def _same_call(old: ReferenceStep, new: WrittenStep, place: Mapping[int, int]) -> bool:
    """Return True if a call is that of the sample, wherever the calls that it refers to stand now."""
    arguments = renumber_refs(without_literals(dict(old.arguments)), place)
    return old.tool == new.tool and arguments == new.arguments


def unstated_numbers(
    written: Written, files: Sequence[SampleFile], base: Sample | None
) -> list[str]:
    """Return the numbers of calls and of the answer that the question does not state, each with its place.

    Drafts of models with such a number are left out. A reviewer is warned: the number may be the answer itself. Numbers
    that stood in the sample are no news.
    """
    before = set(_unstated(Written.model_validate(written_of(base)), files)) if base else set()
    return [text for text in dict.fromkeys(_unstated(written, files)) if text not in before]


def _unstated(written: Written, files: Sequence[SampleFile]) -> Iterator[str]:
    steps = [TraceStep(tool=step.tool, arguments=step.arguments) for step in written.steps]
    expressions = [(part.name, part.from_) for part in written.parts]
    for own in own_constants(written.query, steps, expressions, files):
        if own.reason == "unstated_number":
            yield own.why


# --- parts of the answer --------------------------------------------------------------------------------------------


class PartState(FrozenModel):
    """What a part of the answer is after a run, as text for the page.

    ``state``: ``same``, ``differs``, or ``missing``. ``stands``: value in the sample, or by the label of the folder;
    ``result``: what the results give; ``origin``: where the value of a new part comes from. ``not_kept``: why the value
    of the sample cannot be kept as a label; empty if it can. ``stands_tolerance``, ``tolerance``: where the
    tolerance of the value in the sample, and that of the result, comes from.
    """

    state: Literal["same", "differs", "missing"]
    stands: str = ""
    result: str = ""
    reason: str = ""
    origin: str = ""
    not_kept: str = ""
    stands_tolerance: str = ""
    tolerance: str = ""


def part_states(
    written: Written,
    steps: Sequence[ReferenceStep],
    files: Sequence[SampleFile],
    base: Sample | None,
    labels: KnownLabels = (),
) -> list[PartState]:
    """Return the state of each part of the answer. ``labels``: what the folder knows of each step."""
    return [_part_state(part, written, steps, files, base, labels) for part in written.parts]


def _slot_of(base: Sample | None, part: WrittenPart) -> Slot | None:
    """Return the slot of the sample that a part comes from."""
    return next((slot for slot in base.answer if slot.name == part.name), None) if base else None


def _part_state(
    part: WrittenPart,
    written: Written,
    steps: Sequence[ReferenceStep],
    files: Sequence[SampleFile],
    base: Sample | None,
    labels: KnownLabels,
) -> PartState:
    old = _slot_of(base, part)
    if base is None or old is None:
        return _new_part_state(part, steps, files, labels)
    stands = expected_text(old)
    before = _tolerance_text(old, base.reference.steps if base.reference else ())
    if part.value == "result":
        try:
            slot = _bound(part, steps, files, old)
        except CannotCompose as error:
            return _missing(error, stands)
        return PartState(
            state="same",
            stands=stands,
            result=expected_text(slot),
            stands_tolerance=before,
            tolerance=_tolerance_text(slot, steps),
        )
    is_calculated_alike = _is_calculated_alike(part, old, written, base)
    # A chart whose calls have no true result is not compared with what the tools measure.
    is_uncompared = not part.from_ or (old.made_by_tools and not _has_truth(base))
    if is_calculated_alike and is_uncompared:
        return PartState(state="same", stands=stands, stands_tolerance=before)
    not_kept = _why_not_kept(base, old, is_calculated_alike=is_calculated_alike)
    if not part.from_:
        reason = "no result is chosen for it any more"
        return PartState(state="missing", stands=stands, reason=reason, not_kept=not_kept)
    now = _with_words(old, part)
    if isinstance(now, PlotSlot):
        return _chart_state(part, steps, files, now, not_kept)
    implied = implied_slot(now, results_of(steps))
    if implied.slot is None:
        return PartState(state="missing", stands=stands, reason=implied.reason, not_kept=not_kept)
    # `benchmarks check` compares with true results more closely than a score does with an answer.
    is_close = _has_truth(base) or not is_calculated_alike
    differs = implied.differs or (is_close and not matches_slot(now, implied.value))
    if not differs:
        return PartState(
            state="same", stands=stands, result=expected_text(now), stands_tolerance=before
        )
    offered = _bound_or_none(part, steps, files, old) or implied.slot
    return PartState(
        state="differs",
        stands=stands,
        result=expected_text(offered),
        not_kept=not_kept,
        stands_tolerance=before,
        tolerance=_tolerance_text(offered, steps),
    )


def _chart_state(
    part: WrittenPart,
    steps: Sequence[ReferenceStep],
    files: Sequence[SampleFile],
    now: PlotSlot,
    not_kept: str,
) -> PartState:
    """Return the state of a chart of the sample, whose data the results may give otherwise."""
    stands = expected_text(now)
    try:
        drawn = _bound(part, steps, files, now)
    except CannotCompose as error:
        return _missing(error, stands).model_copy(update={"not_kept": not_kept})
    assert isinstance(drawn, PlotSlot)
    state = "same" if matches_slot(now, drawn.value) else "differs"
    return PartState(state=state, stands=stands, result=expected_text(drawn), not_kept=not_kept)


def _bound_or_none(
    part: WrittenPart, steps: Sequence[ReferenceStep], files: Sequence[SampleFile], old: Slot
) -> Slot | None:
    try:
        return _bound(part, steps, files, old)
    except CannotCompose:
        return None


def _tolerance_text(slot: Slot, steps: Sequence[ReferenceStep]) -> str:
    """Return where the tolerance of a number comes from; empty for other slots."""
    if not isinstance(slot, ToleranceSlot):
        return ""
    margin = f"± {slot.margin:.3g}"
    # A label gives the true value of a step without its error, which then stands in the result of the call alone.
    measured = [step.model_copy(update={"truth": None}) for step in steps]
    for of_steps in (steps, measured):
        try:
            stated = tolerance_of(slot.from_ or "", of_steps).margin_of(slot.value)
            source = tolerance_source(slot.from_ or "", of_steps)
        except CannotCompose:
            continue
        # Tolerances are stored with three digits.
        if math.isclose(stated, slot.margin, rel_tol=0.01):
            return f"{margin}: {source}"
        return f"{margin} was set when the sample was made"
    return f"{margin} was set when the sample was made: no tool states an error of the value"


def _missing(error: CannotCompose, stands: str = "") -> PartState:
    return PartState(state="missing", stands=stands, reason=f"{error.message}: {error.hint}")


def _why_not_kept(base: Sample, old: Slot, *, is_calculated_alike: bool) -> str:
    """Return why the value of a sample cannot be kept as a label against the results; empty if it can."""
    if origin_of(base, old) == "tool":
        return "the value in the sample is a tool's, and no label"
    if not is_calculated_alike:
        return "the value in the sample was given for another calculation, another field, or a call on something else"
    return ""


def _is_calculated_alike(part: WrittenPart, old: Slot, written: Written, base: Sample) -> bool:
    """Return True if a part names the same field as in the sample, and follows by the same calculations from what tools
    measure, wherever the steps stand now. A call that measures may have changed, if it looks at the same thing.
    """
    place = {step.was: number for number, step in enumerate(written.steps) if step.was is not None}
    if part.from_ != renumbered_text(old.from_ or "", place):
        return False
    waiting = steps_in(part.from_)
    while waiting:
        number = waiting.pop()
        step = written.steps[number] if number < len(written.steps) else None
        source = _step_before(step, base) if step else None
        if step is None or source is None:
            return False
        if step.tool not in EXACT_TOOLS:
            if step.tool != source.tool or not looks_at_same(
                step.tool, dict(source.arguments), step.arguments, base.files
            ):
                return False
            continue
        if not _same_call(source, step, place):
            return False
        waiting |= steps_used(step.arguments)
    return True


def _new_part_state(
    part: WrittenPart,
    steps: Sequence[ReferenceStep],
    files: Sequence[SampleFile],
    labels: KnownLabels,
) -> PartState:
    """Return the state of a part that the sample does not have: the folder may have a label of its value."""
    by_tool: Slot | None = None
    reason = ""
    try:
        by_tool = _bound(part, steps, files, None)
    except CannotCompose as error:
        reason = f"{error.message}: {error.hint}"
    result = expected_text(by_tool) if by_tool else ""
    tolerance = _tolerance_text(by_tool, steps) if by_tool else ""
    roots = roots_with_label(part.from_, steps, labels)
    if not roots:
        if by_tool is None:
            return PartState(state="missing", reason=reason)
        is_label = not roots_without_label(part.from_, steps, labels)
        origin = "" if is_label else "no label: the value is the tool's"
        return PartState(state="same", result=result, origin=origin, tolerance=tolerance)
    said = label_texts(roots, labels)
    if part.value == "result":
        if by_tool is None:
            return PartState(state="missing", reason=reason)
        origin = f"the tool's value; {said}"
        return PartState(state="same", result=result, origin=origin, tolerance=tolerance)
    try:
        labelled = labelled_steps(steps, labels, {root.step for root in roots})
        by_label = _bound(part, labelled, files, None)
    except CannotCompose as error:
        return _missing(error)
    stands = expected_text(by_label)
    given = getattr(by_tool, "value", None)
    if part.value == "label" or (by_tool and matches_slot(by_label, cast(JsonValue, given))):
        source = _tolerance_text(by_label, labelled)
        return PartState(state="same", stands=result, result=stands, origin=said, tolerance=source)
    return PartState(
        state="differs",
        stands=stands,
        result=result,
        reason="" if by_tool else reason,
        origin=said,
        stands_tolerance=_tolerance_text(by_label, labelled),
        tolerance=tolerance,
    )


def _bound(
    part: WrittenPart, steps: Sequence[ReferenceStep], files: Sequence[SampleFile], old: Slot | None
) -> Slot:
    """Return the slot of a part with the value of its result. CannotCompose: there is none that an answer can have.

    A number whose tool states no error keeps the tolerance that the sample has for it.
    """
    try:
        return bound_slot(_answer_part(part, old), steps, files)
    except CannotCompose as error:
        if error.reason != "no_stated_error" or not isinstance(old, ToleranceSlot):
            raise
        slot = implied_slot(_with_words(old, part), results_of(steps)).slot
        if not isinstance(slot, ToleranceSlot) or abs(slot.value) <= slot.margin:
            raise
        return slot


def _answer_part(part: WrittenPart, old: Slot | None) -> AnswerPart:
    aliases = getattr(old, "aliases", {})
    try:
        return AnswerPart.model_validate(
            {
                "name": part.name,
                "label": part.label,
                "form": part.form,
                "from": part.from_,
                "unit": part.unit,
                "choices": part.choices,
                "aliases": {name: aliases[name] for name in part.choices if name in aliases},
            }
        )
    except ValidationError as error:
        raise CannotCompose(
            "not_valid",
            f"{part.name or 'a part of the answer'}: {first_error(error)}",
            hint="correct it on the page",
            part=part.name,
        ) from error


def _with_words(slot: Slot, part: WrittenPart) -> Slot:
    """Return the slot of a sample with the words, choices and place in the results that a reviewer gave it."""
    changes: dict[str, Any] = {"label": part.label, "from_": part.from_ or None}
    if hasattr(slot, "choices"):
        changes["choices"] = part.choices
    if aliases := getattr(slot, "aliases", {}):
        changes["aliases"] = {
            name: names
            for name, names in aliases.items()
            if name in part.choices or not part.choices
        }
    return slot.model_copy(update=changes)


# --- making ---------------------------------------------------------------------------------------------------------


def new_sample(
    sample_id: str,
    written: Written,
    files: tuple[SampleFile, ...],
    steps: Sequence[ReferenceStep],
    runner: StepRunner,
    by: str,
    labels: KnownLabels = (),
) -> Sample:
    """Return a sample that a reviewer wrote from nothing. CannotCompose: it cannot be made, with the reason."""
    _check_deciding(written, steps)
    chosen = _chosen_steps(written, steps, files, None, labels)
    written_by: dict[str, JsonValue] = {"by": by, "date": datetime.now(UTC).date().isoformat()}
    if untaken := _untaken_labels(written, steps, None, labels):
        written_by["labels_dropped"] = cast(JsonValue, untaken)
    metadata: dict[str, JsonValue] = {WRITTEN: written_by}
    if by_tools := _tool_values(written, chosen, None, labels):
        metadata[TOOL_VALUES] = cast(JsonValue, by_tools)
    try:
        composition = Composition(
            id=sample_id,
            query=written.query,
            files=files,
            task_type=written.task_type,
            steps=tuple(chosen),
            parts=tuple(_answer_part(part, None) for part in written.parts),
            toolset=runner.toolset,
            template=WRITTEN,
            source=WRITTEN,
            metadata=metadata,
        )
    except ValidationError as error:
        raise CannotCompose(
            "not_valid", first_error(error), hint="correct it on the page"
        ) from error
    sample = compose_sample(composition, runner.root)
    if why := idle_step(sample):
        raise _idle(why)
    return sample


def _idle(why: str) -> CannotCompose:
    return CannotCompose("idle_step", why, hint="remove the step, or let the answer rest on it")


def _check_deciding(written: Written, steps: Sequence[ReferenceStep]) -> None:
    """Raise CannotCompose if nobody needs to look at anything for the answer: it is calculated from numbers alone."""
    used = steps_behind({at for part in written.parts for at in steps_in(part.from_)}, steps)
    if used and all(steps[number].tool in _CALCULATING for number in used if number < len(steps)):
        raise CannotCompose(
            "not_measured",
            "the answer rests on no picture and no look-up, so that every model can calculate it",
            hint="add a call whose result decides the answer, and use it in the calculation",
        )


def _chosen_steps(
    written: Written,
    steps: Sequence[ReferenceStep],
    files: Sequence[SampleFile],
    base: Sample | None,
    labels: KnownLabels,
) -> list[ReferenceStep]:
    """Return the steps with the labels that new parts of the answer take; those of a new question with all labels.

    CannotCompose: a label and a result differ, and nobody chose, or one part takes the label and another the result.
    """
    by_label: dict[int, str] = {}
    by_tool: dict[int, str] = {}
    for part in written.parts:
        roots = roots_with_label(part.from_, steps, labels)
        if _slot_of(base, part) is not None:
            if part.value == "result":
                untrue = roots_without_label(part.from_, steps, labels)
                by_tool.update({root.step: part.name for root in untrue if root in roots})
            continue
        if not roots:
            continue
        state = _new_part_state(part, steps, files, labels)
        if state.state == "differs":
            raise CannotCompose(
                "no_value",
                f"{part.name}: {state.origin}, so that the answer is {state.stands},"
                f" but the results give {state.result or f'none ({state.reason})'}",
                hint="say which counts: Take the result, or Keep the label",
                part=part.name,
            )
        taken = by_tool if part.value == "result" else by_label
        taken.update({root.step: part.name for root in roots})
    for number in by_label.keys() & by_tool.keys():
        raise CannotCompose(
            "not_valid",
            f"{by_label[number]} takes the label of step {number + 1}, and {by_tool[number]} its result",
            hint="take the label, or the result, for both",
            part=by_tool[number],
        )
    if base is not None:
        return labelled_steps(steps, labels, by_label.keys())
    # What people noted of a field that nobody asks about stands in the trace, too: its truth contradicts no label.
    noted = {number for number, known in enumerate(labels) if known}
    return labelled_steps(steps, labels, noted - by_tool.keys())


def _tool_values(
    written: Written, steps: Sequence[ReferenceStep], base: Sample | None, labels: KnownLabels
) -> list[str]:
    """Return the names of the parts whose value is a tool's."""
    found: list[str] = []
    for part in written.parts:
        old = _slot_of(base, part)
        if base is not None and old is not None and part.value != "result":
            is_tools = origin_of(base, old) == "tool"
        else:
            is_tools = bool(roots_without_label(part.from_, steps, labels))
        if is_tools:
            found.append(part.name)
    return found


def corrected_sample(
    base: Sample,
    written: Written,
    steps: Sequence[ReferenceStep],
    root: Path,
    by: str,
    twin: Sample | None = None,
    labels: KnownLabels = (),
) -> Sample:
    """Return a sample as a reviewer corrected it, whose ``twin`` asks the same.

    CannotCompose: it cannot be made, with the reason.
    """
    _check_ran(base, written, steps)
    steps = _chosen_steps(written, steps, base.files, base, labels)
    slots = tuple(_final_slot(part, written, steps, base) for part in written.parts)
    if not slots:
        raise CannotCompose(
            "no_answer", "the answer has no parts", hint="bind a part of the answer to a result"
        )
    toolset = (*base.toolset, *(step.tool for step in steps if step.tool not in base.toolset))
    changes: dict[str, Any] = {
        "query": written.query.strip(),
        "task_type": written.task_type,
        "family": FAMILY_OF_TASK_TYPE.get(written.task_type, base.family),
        "toolset": tuple(dict.fromkeys(toolset)),
        "reference": ReferenceTrajectory(
            steps=_in_groups(_true_steps(steps, base, written), base, written)
        ),
        "answer": with_plot_weights(slots),
        "answer_type": _answer_type(slots, base),
        "metadata": _corrected_metadata(base, written, steps, slots, by, labels),
    }
    try:
        sample = Sample.model_validate_json(
            base.model_copy(update=changes).model_dump_json(by_alias=True)
        )
    except ValidationError as error:
        raise CannotCompose(
            "not_valid", first_error(error), hint="correct it on the page"
        ) from error
    for fault in check_samples([sample, twin] if twin else [sample], root):
        if fault.sample == sample.id:
            raise CannotCompose("faults", f"{fault.code}: {fault.message}", hint=fault.hint)
    # A sample of a data set may have such steps already: what its authors recorded stays.
    if not _has_idle_step(base) and (why := idle_step(sample)):
        raise _idle(why)
    return sample


def _has_idle_step(sample: Sample) -> bool:
    return sample.reference is None or bool(idle_step(sample))


def _corrected_metadata(
    base: Sample,
    written: Written,
    steps: Sequence[ReferenceStep],
    slots: Sequence[Slot],
    by: str,
    labels: KnownLabels,
) -> dict[str, JsonValue]:
    """Return the metadata of a corrected sample: by whom, what became of labels, and which values are a tool's."""
    entry: dict[str, JsonValue] = {"by": by, "date": datetime.now(UTC).date().isoformat()}
    if kept := [part.name for part in written.parts if part.value == "label"]:
        entry["labels_kept"] = cast(JsonValue, kept)
    lost = _lost_labels(base, slots) | _untaken_labels(written, steps, base, labels)
    if lost:
        entry["labels_dropped"] = cast(JsonValue, lost)
    earlier = base.metadata.get("corrected")
    metadata = {**base.metadata}
    metadata["corrected"] = [*(earlier if isinstance(earlier, list) else ()), entry]
    by_tools = _tool_values(written, steps, base, labels)
    if by_tools or TOOL_VALUES in base.metadata:
        metadata[TOOL_VALUES] = cast(JsonValue, by_tools)
    return metadata


def _check_ran(base: Sample, written: Written, steps: Sequence[ReferenceStep]) -> None:
    """Raise CannotCompose if a call failed that did not fail in the sample."""
    for number, step in enumerate(steps, 1):
        error = _error_of(step)
        if error is not None and _was_fine(base, written, number):
            raise CannotCompose(
                "call_fails",
                f"step {number} ({step.tool}): {error.message}",
                hint=error.hint or "change its arguments",
            )


def _error_of(step: ReferenceStep) -> ErrorInfo | None:
    return step.observation.error if step.observation else None


def _was_fine(base: Sample, written: Written, number: int) -> bool:
    """Return False for a call that failed in the sample, too: its error is part of the trace."""
    old = _step_before(written.steps[number - 1], base)
    return old is None or _error_of(old) is None


def _lost_labels(base: Sample, slots: Sequence[Slot]) -> dict[str, str]:
    """Return the values of the sample that were labels and are in it no more, as text by part."""
    now = {slot.name: slot for slot in slots}
    return {
        old.name: expected_text(old)
        for old in base.answer
        if origin_of(base, old) != "tool"
        and getattr(old, "value", None) != getattr(now.get(old.name), "value", None)
    }


def _untaken_labels(
    written: Written, steps: Sequence[ReferenceStep], base: Sample | None, labels: KnownLabels
) -> dict[str, str]:
    """Return the labels of the folder in whose place new parts take the result, as text by part."""
    untaken: dict[str, str] = {}
    for part in written.parts:
        roots = roots_with_label(part.from_, steps, labels)
        if part.value == "result" and _slot_of(base, part) is None and roots:
            untaken[part.name] = label_texts(roots, labels)
    return untaken


def _has_truth(base: Sample) -> bool:
    """Return True if the sample knows the true result of each of its calls."""
    return base.reference is not None and all(
        step.truth is not None for step in base.reference.steps
    )


def _true_steps(
    steps: Sequence[ReferenceStep], base: Sample, written: Written
) -> list[ReferenceStep]:
    """Return the steps, each with a truth if all had one in the sample and no label stands against the results.

    A kept label is the truth of the call that it stands against. Where the sample has no truth of it, that of the
    result is not known.
    """
    kept = [part for part in written.parts if part.value == "label" and _slot_of(base, part)]
    if kept:
        steps = _with_kept_labels(steps, base, written, kept)
        untrue = {number for part in kept for number in _contradicted(part, written, steps, base)}
        return [
            step.model_copy(update={"truth": None}) if number in untrue else step
            for number, step in enumerate(steps)
        ]
    if not _has_truth(base):
        return [*steps]
    return [
        step.model_copy(update={"truth": step.truth or _observed(step.observation)})
        for step in steps
    ]


def _with_kept_labels(
    steps: Sequence[ReferenceStep], base: Sample, written: Written, kept: Sequence[WrittenPart]
) -> list[ReferenceStep]:
    """Return the steps, where changed calls that kept parts rest on have the truth that they had in the sample."""
    labelled = [*steps]
    touched: set[int] = set()
    for number in steps_behind({at for part in kept for at in steps_in(part.from_)}, steps):
        step, old = steps[number], _step_before(written.steps[number], base)
        if old is None or old.truth is None or step.truth is not None or step.tool in EXACT_TOOLS:
            continue
        truth = {**(_observed(step.observation) or {}), **old.truth}
        labelled[number] = step.model_copy(update={"truth": truth})
        touched.add(number)
    return with_calculations(labelled, touched)


def _contradicted(
    part: WrittenPart, written: Written, steps: Sequence[ReferenceStep], base: Sample
) -> set[int]:
    """Return the steps that a part is bound to, if they give another value than its label."""
    state = _part_state(part, written, steps, base.files, base, ())
    return set() if state.state == "same" else steps_in(part.from_)


def _in_groups(
    steps: Sequence[ReferenceStep], base: Sample, written: Written
) -> tuple[ReferenceStep, ...]:
    """Return the steps in groups that may swap: those of the sample, if its calls and their order did not change."""
    before = base.reference.steps if base.reference else ()
    order = {number: number for number in range(len(before))}
    is_same = len(before) == len(steps) and all(
        source.was == number and _same_call(before[number], source, order)
        for number, source in enumerate(written.steps)
    )
    if not is_same:
        return grouped(steps)
    return tuple(
        step.model_copy(update={"group": old.group})
        for step, old in zip(steps, before, strict=True)
    )


def _observed(observation: Observation | None) -> dict[str, JsonValue] | None:
    if observation is None or observation.result is None:
        return None
    return without_artifacts(observation.result, observation)


def _final_slot(
    part: WrittenPart, written: Written, steps: Sequence[ReferenceStep], base: Sample
) -> Slot:
    old = _slot_of(base, part)
    if old is None or part.value == "result":
        return _bound(part, steps, base.files, old)
    state = _part_state(part, written, steps, base.files, base, ())
    is_kept = part.value == "label" and not state.not_kept
    if state.state != "same" and not is_kept:
        gives = f"the results give {state.result}" if state.result else state.reason
        why = f"; {state.not_kept}" if state.not_kept else ""
        ways = ["Take the result"] if state.result else []
        ways += [] if state.not_kept else ["Keep the label"]
        raise CannotCompose(
            "no_value",
            f"{part.name}: {state.stands} stands in the sample, but {gives}{why}",
            hint=", or ".join([*ways, "choose another value for the part"]),
            part=part.name,
        )
    return _with_words(old, part)


def _answer_type(slots: Sequence[Slot], base: Sample) -> str:
    """Return the answer type of a corrected sample: that of the sample, if its answer has parts of the same types."""
    is_same = {slot.type for slot in slots} == {slot.type for slot in base.answer}
    return base.answer_type if is_same else answer_type_of(slots)


def drafted_by(sample: Sample, history: Sequence[Version]) -> list[dict[str, str]]:
    """Return who made a sample what it is, the first one first: ``what``, ``by``, ``at``."""
    draft = sample.metadata.get("draft")
    made: list[dict[str, str]] = []
    if isinstance(draft, dict):
        made.append(
            {
                "what": "drafted",
                "by": str(draft.get("model", "a model")),
                "at": str(draft.get("date", "")),
            }
        )
    elif not history or history[0].of:
        made.append({"what": "drafted", "by": f"template {sample.template}", "at": ""})
    for version in history:
        made.append(
            {
                "what": "corrected" if version.of else "written",
                "by": version.by,
                "at": version.at,
            }
        )
    return made
