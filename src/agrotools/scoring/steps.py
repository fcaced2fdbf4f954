"""Step-by-step (teacher-forced) scores: one row for each unit that a metric counts.

``st_acc`` counts all steps; ``tool_acc``, ``tool_acc_strict``, ``arg_acc``, ``arg_acc_strict`` and ``ear``
count call steps; ``summ_acc`` and ``summ_acc_truth`` count samples with a slot other than plots that may count in a
headline, at their answer step.

Members of a group are independent of each other: a call is right if it agrees with any member of the group that the
shown history does not contain yet. The strict variants require the written order, and ``arg_acc_strict`` also requires
equal arguments. Of several calls in one message the first is scored and the others are counted.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import JsonValue

from agrotools.calling import get_tool
from agrotools.calling.arguments import ReferenceCall
from agrotools.core import (
    AbstainSlot,
    Action,
    Answer,
    Arguments,
    BenchmarkError,
    BooleanSlot,
    CallTools,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    Halt,
    OpenTextSlot,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    RunStoreError,
    Sample,
    SampleFile,
    Score,
    Slot,
    ToleranceSlot,
    ToolCall,
    ToolError,
    ToolSpec,
    Unparseable,
    UnresolvedRef,
    UsageError,
    counts_in_headline,
)
from agrotools.core.form_item import asked_items
from agrotools.core.record import CallSequence, Results, literal_value, resolved_value
from agrotools.knowledge.same_thing import as_listed, plain_number, plain_yes
from agrotools.scoring.error_classes import IN_HEAD
from agrotools.scoring.floors import prompt_floor
from agrotools.scoring.slots import SlotScore, score_row, score_slot
from agrotools.text.agreement import ArgumentAgreement, StepAgreement, best_step, compare_arguments
from agrotools.text.agreement_values import Number, numbers_in, same_json
from agrotools.text.answer_reader import lacks_form
from agrotools.text.expression_functions import ExpressionError
from agrotools.text.expressions import evaluate_from, shows_no_answer

if TYPE_CHECKING:
    from agrotools.calling.contract import Tool

VERSION = "2"
MOST_OBSERVED = 100_000
_SCALE = "gsd_m"


def step_scores(record: Record) -> list[Score]:
    """Return all rows of a step-by-step record; an invalid record has none.

    Slots whose ``from`` has no value over the shown observations are left out of ``summ_acc``, because their true value
    could not be known. They stay in ``summ_acc_truth``, and ``left_out`` of its reading gives the reason. A sample
    whose slots are all left out has no ``summ_acc`` row.

    Raises:
        BenchmarkError: the sample has no reference trajectory.
        RunStoreError: the record does not have one action for each step.
        UsageError: a tool of the reference is not installed.
    """
    if record.invalid is not None:
        return []
    if record.sample.reference is None:
        raise BenchmarkError(
            f"sample {record.sample.id} has no reference trajectory", hint="step-by-step needs one"
        )
    steps = record.sample.reference.steps
    actions = record.actions or ()
    if len(actions) != len(steps) + 1:
        why = f"the step-by-step record of sample {record.sample.id} holds {len(actions)} actions, not {len(steps) + 1}"
        raise RunStoreError(
            why,
            hint="make the run again on this version of the benchmark",
        )
    rows: list[Score] = []
    # No calls are known for some questions, and one of the tools may not be offered.
    usual_calls = prompt_floor().calls(record.sample)
    if usual_calls and not {tool for tool, _ in usual_calls} <= {*record.sample.toolset}:
        usual_calls = None
    for index, action in enumerate(actions):
        rows.append(_type_row(record, index, action, is_call=index < len(steps)))
        if index < len(steps):
            rows += [
                *_call_rows(record, index, action, steps),
                *_guess_rows(record, index, steps, usual_calls),
            ]
    return rows + _summary_rows(record, actions[len(steps)])


def _row(
    record: Record, metric: str, step: int, value: float, reading: dict[str, JsonValue]
) -> Score:
    return score_row(record, metric, SlotScore(value, reading), step=step, version=VERSION)


def _type_row(record: Record, index: int, action: Action, *, is_call: bool) -> Score:
    reading: dict[str, JsonValue] = {
        "predicted": action.kind,
        "reference": "call" if is_call else "answer",
    }
    if isinstance(action, CallTools) and len(action.calls) > 1:
        reading["extra_calls"] = len(action.calls) - 1
    if isinstance(action, (Unparseable, Halt)):
        reading["reason"] = action.reason
    return _row(
        record,
        "st_acc",
        index,
        float(isinstance(action, CallTools if is_call else Answer)),
        reading,
    )


# --- call steps ----------------------------------------------------------------------------------------------------


def _call_rows(
    record: Record, index: int, action: Action, steps: Sequence[ReferenceStep]
) -> list[Score]:
    call = action.calls[0] if isinstance(action, CallTools) else None
    group = steps[index].group
    alike = [
        at for at in range(index + 1, len(steps)) if group is not None and steps[at].group == group
    ]
    open_steps = [index, *alike]  # members of the group that are not in the history shown
    tools: dict[str, JsonValue] = {
        "predicted": call.tool if call else None,
        "reference": steps[index].tool,
    }
    tool_right = call is not None and any(steps[step].tool == call.tool for step in open_steps)
    right, arguments = (
        _arguments(record.sample, call, open_steps, steps) if call and tool_right else (False, {})
    )
    as_written = call is not None and call.tool == steps[index].tool
    refused = action.refused if isinstance(action, CallTools) else None
    if refused is not None:  # the remainder of arguments that could not be parsed is not scored
        right, arguments = False, {**arguments, "invalid": refused.message}
    equal = (
        call is not None
        and as_written
        and refused is None
        and _equal(record.sample, call, steps[index])
    )
    return [
        _row(record, "tool_acc", index, float(tool_right), tools),
        _row(record, "tool_acc_strict", index, float(as_written), tools),
        _row(record, "arg_acc", index, float(right), {**tools, **arguments}),
        _row(record, "arg_acc_strict", index, float(equal), tools),
        _row(record, "ear", index, float(isinstance(action, Answer)), {"predicted": action.kind}),
    ]


def _guess_rows(
    record: Record, index: int, steps: Sequence[ReferenceStep], usual_calls: CallSequence | None
) -> list[Score]:
    """Return the scores of the usual calls at this step; none if no usual calls are known."""
    if usual_calls is None:
        return []
    action: Action = Answer(text="")
    if index < len(usual_calls):
        assert record.sample.reference is not None
        tool, arguments = usual_calls[index]
        results = shown_results(record.sample.reference)[:index]
        live: Arguments = {}
        for name, value in arguments.items():
            with suppress(
                UnresolvedRef
            ):  # without the value the call is wrong, but its tool may be right
                live[name] = resolved_value(value, results)
        action = CallTools(calls=(ToolCall(tool=tool, arguments=live),))
    rows = {row.metric: row for row in _call_rows(record, index, action, steps)}
    names = ("tool_acc", "arg_acc")
    return [
        rows[name].model_copy(update={"metric": f"{name}_guess", "reading": {}}) for name in names
    ]


def _arguments(
    sample: Sample, call: ToolCall, open_steps: Sequence[int], steps: Sequence[ReferenceStep]
) -> tuple[bool, dict[str, JsonValue]]:
    """Return True if the arguments are valid and agree with an open step, and the details of the comparison.

    Arguments equal to those of the reference are right even if a published reference violates the tool's schema.
    """
    tool = get_tool(call.tool, sample.declared)
    fault: str | None = None
    try:
        tool.validate(call.arguments)
    except ToolError as error:
        fault = str(error)
    compared = [
        StepAgreement(step, compare_calls(sample, tool, call, steps[step]))
        for step in open_steps
        if steps[step].tool == call.tool
    ]
    best = best_step(compared)
    reading: dict[str, JsonValue] = {
        "step": best.step,
        "arguments": [cast(JsonValue, row.model_dump(mode="json")) for row in best.rows],
    }
    if fault is not None:
        reading["invalid"] = fault
    if any(row.detail.get("in_head") for row in best.rows):
        reading[IN_HEAD] = (
            True  # the reference's value was given without the observations that it is computed from
        )
    same = all(row.equal for row in best.rows)
    return same or (fault is None and best.agrees), reading


def compare_calls(
    sample: Sample, tool: "Tool[..., Any] | ToolSpec", call: ToolCall, step: ReferenceStep
) -> list[ArgumentAgreement]:
    """Compare the arguments of a call with those of a reference call of the same tool, on the files of ``sample``.

    The arguments are compared as the tool would resolve them, as far as the files' metadata and the result of the
    reference call allow. A call that the tool would reject is compared as written.
    """
    spec = tool if isinstance(tool, ToolSpec) else tool.spec
    arguments = call.arguments if isinstance(tool, ToolSpec) else tool.read(call.arguments)
    arguments = _with_names_of_files(arguments, spec, sample)
    by_name = {file.name: file for file in sample.files}
    literal = {name: literal_value(value) for name, value in step.arguments.items()}
    result = (step.observation.result if step.observation else None) or {}
    resolved = None
    if not isinstance(tool, ToolSpec) and tool.resolver is not None:
        resolved = _resolved(tool, arguments, literal, by_name, result)
    reference = resolved[1] if resolved else literal
    names = (reference.get(name) for name, kind in spec.agreement.items() if kind == "file")
    files = [by_name[name] for name in names if isinstance(name, str) and name in by_name]
    spec = _with_known_defaults(spec, files, reference, result)
    width, height = (files[0].width_px, files[0].height_px) if files else (None, None)
    frame = (width, height) if width and height else None
    observed = _observed(sample, step) if "expression" in spec.agreement.values() else ()
    return compare_arguments(
        spec, arguments, step.arguments, frame=frame, resolved=resolved, observed=observed
    )


def _with_names_of_files(arguments: Arguments, spec: ToolSpec, sample: Sample) -> Arguments:
    """Return arguments in which a path of a file of the sample, ``images/a.jpg``, is its name, as for the tool itself.

    Transcripts of other programs have the paths of the published files, also with the folders of a machine before them.
    """
    names = {file.name: file.name for file in sample.files}
    names |= {path: name for name, path in (sample.published_paths or {}).items()}

    def named(value: JsonValue) -> JsonValue:
        if isinstance(value, list):
            return [named(item) for item in value]
        if not isinstance(value, str):
            return value
        path = "/" + value.strip().replace("\\", "/").removeprefix("./")
        ends = [known for known in names if path.endswith(f"/{known}")]
        return names[max(ends, key=len)] if ends else value

    return {
        name: named(value) if spec.agreement.get(name) == "file" else value
        for name, value in arguments.items()
    }


def _resolved(
    tool: "Tool[..., Any]",
    predicted: Arguments,
    reference: Arguments,
    files: Mapping[str, SampleFile],
    result: Mapping[str, JsonValue],
) -> tuple[Arguments, Arguments] | None:
    """Return the arguments of both calls with defaults filled in; None if the tool would reject one of them."""
    try:
        known = ReferenceCall(files, tool.validate(reference), result)
        return tool.resolve(predicted, known), tool.resolve(reference, known)
    except ToolError:
        return None


def _observed(sample: Sample, step: ReferenceStep) -> list[Number]:
    steps = sample.reference.steps if sample.reference else ()
    before = takewhile(lambda each: each.observation is not step.observation, steps)
    results = (each.observation.result for each in before if each.observation)
    return list(islice(chain.from_iterable(map(numbers_in, results)), MOST_OBSERVED))


def _with_known_defaults(
    spec: ToolSpec,
    files: Sequence[SampleFile],
    reference: Arguments,
    result: Mapping[str, JsonValue],
) -> ToolSpec:
    """Return ``spec`` with the metadata of the files as defaults.

    A tool reads omitted arguments from the metadata, so a call that states them (``gsd_m`` of the file) is equivalent.
    A scale that only the file's content gives is in the result of the reference call.
    """
    known = {
        name: value
        for file in files
        for name, value in file.known_arguments.items()
        if name in spec.defaults
    }
    if (
        reference.get(_SCALE) is None
        and _SCALE in spec.defaults
        and isinstance(result.get(_SCALE), int | float)
    ):
        known.setdefault(_SCALE, result[_SCALE])
    return spec.model_copy(update={"defaults": {**spec.defaults, **known}})


def _equal(sample: Sample, call: ToolCall, step: ReferenceStep) -> bool:
    tool = get_tool(step.tool, sample.declared)
    arguments = _with_names_of_files(tool.read(call.arguments), tool.spec, sample)
    rows = compare_arguments(tool.spec, arguments, step.arguments)
    return all(row.equal for row in rows)


# --- the answer step -----------------------------------------------------------------------------------------------


def _summary_rows(record: Record, action: Action) -> list[Score]:
    assert record.sample.reference is not None
    slots = [
        slot for slot in record.sample.answer if not slot.made_by_tools and counts_in_headline(slot)
    ]
    if not slots:
        return []
    results = shown_results(record.sample.reference)
    implied = {slot.name: implied_slot(slot, results) for slot in slots}
    known = [each.slot for each in implied.values() if each.slot is not None]
    common: dict[str, JsonValue] = {
        "predicted": action.kind,
        "differs": [name for name, each in implied.items() if each.differs],
        "left_out": {name: each.reason for name, each in implied.items() if each.slot is None},
    }
    step = len(record.sample.reference.steps)
    rows: list[Score] = []
    if known:
        value, reading = _mean(record.sample, known, action)
        found = {name: each.value for name, each in implied.items() if each.slot}
        values: dict[str, JsonValue] = {
            k: v[:200] if isinstance(v, str) else v for k, v in found.items()
        }
        rows.append(_row(record, "summ_acc", step, value, {**common, **reading, "implied": values}))
    value, reading = _mean(record.sample, slots, action)
    rows.append(_row(record, "summ_acc_truth", step, value, {**common, **reading}))
    return rows


def _mean(
    sample: Sample, slots: Sequence[Slot], action: Action
) -> tuple[float, dict[str, JsonValue]]:
    """Return the mean score of ``slots``, whose values may differ from those of the sample; no answer scores 0."""
    if not isinstance(action, Answer) or lacks_form(action, asked_items(sample.answer)):
        return 0.0, {"slots": {slot.name: 0.0 for slot in slots}}
    by_name = {slot.name: slot for slot in slots}
    everything = [by_name.get(slot.name, slot) for slot in sample.answer]
    scored = {slot.name: score_slot(slot, everything, action.text) for slot in slots}
    reading: dict[str, JsonValue] = {
        "slots": {name: score.value for name, score in scored.items()},
        "readings": {name: score.reading for name, score in scored.items()},
    }
    return sum(score.value for score in scored.values()) / len(scored), reading


def agrees(sample: Sample, call: ToolCall, step: ReferenceStep) -> bool:
    """Return True if a call matches the reference step: the same tool, and every argument agrees."""
    if call.tool != step.tool:
        return False
    try:
        tool = get_tool(step.tool, sample.declared)
    except UsageError:
        tool = ToolSpec(
            name=step.tool,
            category="unknown",
            version="",
            description="",
            parameters={},
            agreement=dict.fromkeys([*step.arguments, *call.arguments], "choice"),
            defaults={},
        )
    return all(row.agrees for row in compare_calls(sample, tool, call, step))


# --- values implied by the shown observations, so that correct reading of a wrong observation counts as right ---------


class Implied(NamedTuple):
    """Slot with the value that the shown observations imply.

    ``slot`` is None if they imply no value; ``reason`` says why. ``differs`` is True if the implied value deviates from
    the true one by more than the slot's tolerance.
    """

    slot: Slot | None
    value: JsonValue = None
    differs: bool = False
    reason: str = ""


def shown_results(reference: ReferenceTrajectory) -> Results:
    """Return the results of the reference steps as shown; None for a failed step."""
    return [step.observation.result if step.observation else None for step in reference.steps]


def implied_slot(slot: Slot, results: Results) -> Implied:
    """Return ``slot`` with the value of its ``from`` over ``results``.

    An implied label, member or file replaces the true one, which then must not be asserted. Another name of the true
    label, of the slot or the knowledge base, changes nothing. Open text keeps the facts that the observed text states.
    No value is implied if the slot has no ``from``, if ``from`` cannot be evaluated, or if its value does not fit the
    slot.
    """
    if isinstance(slot, AbstainSlot):
        shown = shows_no_answer(slot, results)
        return (
            Implied(slot, True)
            if shown
            else Implied(None, reason="the observations give an answer")
        )
    if slot.from_ is None:
        return Implied(None, reason="the slot does not say how it follows from the observations")
    try:
        value = evaluate_from(slot.from_, results)
    except (UnresolvedRef, ExpressionError) as error:
        return Implied(None, reason=str(error))
    implied: Implied | None = None
    if isinstance(slot, ToleranceSlot) and (number := plain_number(value)) is not None:
        differs = abs(number - slot.value) > slot.margin + 1e-9 * abs(slot.value)
        implied = Implied(slot.model_copy(update={"value": float(number)}), value, differs)
    elif isinstance(slot, BooleanSlot) and (answer := plain_yes(value)) is not None:
        implied = Implied(slot.model_copy(update={"value": answer}), value, answer != slot.value)
    elif isinstance(slot, ExactSlot):
        implied = _label(slot, value)
    elif isinstance(slot, ChoiceSetSlot):
        implied = _members(slot, value)
    elif isinstance(slot, FileSlot) and isinstance(value, str) and value.strip():
        choices = tuple(dict.fromkeys((*slot.choices, value)))
        implied = Implied(
            slot.model_copy(update={"value": value, "choices": choices}), value, value != slot.value
        )
    elif isinstance(slot, OpenTextSlot):
        implied = _facts(slot, value)
    return implied or Implied(
        None, value, reason=f"the observations yield no value of type {slot.type}"
    )


def _label(slot: ExactSlot, value: JsonValue) -> Implied | None:
    if value in (None, "") or isinstance(value, list | dict):
        return None
    label = as_listed(value, slot)
    if same_json(label, slot.value):
        return Implied(slot, value)
    number = plain_number(label)
    if isinstance(slot.value, str):
        label = label.strip() if isinstance(label, str) else "" if number is None else f"{number:g}"
    else:
        label = number
    if label is None or label == "":
        return None
    choices = tuple(dict.fromkeys((*slot.choices, str(slot.value), str(label))))
    return Implied(
        slot.model_copy(update={"value": label, "choices": choices}), value, differs=True
    )


def _members(slot: ChoiceSetSlot, value: JsonValue) -> Implied | None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    members = [str(as_listed(item, slot)) for item in value]
    choices = dict.fromkeys((*slot.choices, *members))
    implied = slot.model_copy(
        update={"value": tuple(dict.fromkeys(members)), "choices": tuple(choices)}
    )
    return Implied(implied, value, set(members) != set(slot.value))


def _facts(slot: OpenTextSlot, value: JsonValue) -> Implied | None:
    from agrotools.scoring.open_text import states_fact

    parts = value if isinstance(value, list) else [value]
    text = "\n".join(part for part in parts if isinstance(part, str))
    stated = tuple(fact for fact in slot.facts if states_fact(fact, text))
    if not stated:
        return None
    differs = len(stated) < len(slot.facts)
    # The slot's floor applies to all facts together.
    changed = {"facts": stated, "floor": 0.0} if differs else {}
    return Implied(slot.model_copy(update=changed), value, differs)
