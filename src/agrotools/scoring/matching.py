"""Calls of a run and the reference steps that they belong to.

A record comes in; the call of each reference step goes out, with the names of its wrong arguments
(:class:`OwnCall`). A call belongs to one step at most, and whether an argument is wrong is told as in step-by-step
(:func:`agrotools.scoring.steps.compare_calls`). No score rests on this: it splits lost points, and names steps in
``explain`` and on the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from agrotools.calling import get_tool
from agrotools.core import (
    AbstainSlot,
    ChoiceSetSlot,
    ExactSlot,
    Observation,
    Record,
    ReferenceStep,
    Sample,
    Step,
    UsageError,
)
from agrotools.core.record import (
    REF_PATTERN,
    Fault,
    UnresolvedRef,
    iter_refs,
    literal_value,
    resolve_ref,
    update_literals,
)
from agrotools.knowledge.same_thing import same_value
from agrotools.scoring.steps import compare_calls

Values = dict[str, JsonValue]
EXPRESSION = "expression"
"""Argument that is compared together with its variables."""


@dataclass(frozen=True)
class OwnCall:
    """Call of the run for a reference step, and the names of its wrong arguments."""

    step: Step
    wrong: frozenset[str]
    excused: frozenset[str] = frozenset()
    """Arguments whose inputs no earlier call of the run gave: they count as right."""

    @property
    def values(self) -> Values | None:
        return self.step.observation.result if self.step.observation else None


def own_calls(record: Record) -> list[OwnCall | None]:
    """Return the call of the run for each reference step; None for missing calls.

    It is the unused call of the same tool with the fewest wrong arguments, given what the run had seen. A call that has
    wrong arguments for this step and none for a later one is left to that one: whoever made the second of two calls
    lacks the first.
    """
    reference = record.sample.reference.steps if record.sample.reference else ()
    remaining = [
        step for step in (record.trajectory.calls if record.trajectory else ()) if step.call
    ]
    values: list[Values | None] = []
    calls: list[OwnCall | None] = []
    for index, step in enumerate(reference):
        # Compared anew for each step: what an argument must be depends on the results that the run has by then.
        candidates = [
            _compared(record, own, step, values)
            for own in remaining
            if own.call and own.call.tool == step.tool
        ]
        later_steps = [later for later in reference[index + 1 :] if later.tool == step.tool]
        left = _left_to_later(record, candidates, later_steps, values)
        free = [call for call in candidates if id(call.step) not in left]
        best = min(free, key=_rank, default=None)
        if best is not None:
            remaining.remove(best.step)
        calls.append(best)
        values.append(best.values if best else None)
    return calls


def _rank(call: OwnCall) -> tuple[int, bool]:
    """Return how badly a call fits its step; one with a result fits better than one without."""
    return len(call.wrong), call.values is None


def _left_to_later(
    record: Record,
    candidates: Sequence[OwnCall],
    later_steps: Sequence[ReferenceStep],
    values: Sequence[Values | None],
) -> set[int]:
    """Return the ids of the calls, wrong for a step, that fit one of the later steps; each step has one of them."""
    left = set[int]()
    wrong_calls = [call for call in candidates if call.wrong]
    if not wrong_calls:
        return left
    for step in later_steps:
        for call in wrong_calls:
            if id(call.step) in left:
                continue
            at_later = _compared(record, call.step, step, values)
            # An excused argument fits any value, so it is no sign that the call was meant for that step.
            if not at_later.wrong and not at_later.excused:
                left.add(id(call.step))
                break
    return left


def _compared(
    record: Record, own: Step, step: ReferenceStep, values: Sequence[Values | None]
) -> OwnCall:
    """Compare a call with a reference step whose references have the values that the run saw."""
    arguments = {name: update_literals(value, values) for name, value in step.arguments.items()}
    excused = frozenset(
        name
        for name, value in step.arguments.items()
        if not all(has_value(ref, values) for _, ref, _ in iter_refs(value))
    )
    if excused:  # the value of an expression depends on its variables
        excused |= {EXPRESSION}
    return OwnCall(
        own,
        wrong_arguments(record, own, step.model_copy(update={"arguments": arguments})) - excused,
        excused,
    )


def gives_truth(
    sample: Sample, at: int, observation: Observation | None, truth: Observation | None
) -> bool:
    """True if an observation of reference step ``at`` does not contradict the truth (:func:`same_value`).

    Where the answer says how it follows from the results, only the values that it or a later call uses are compared.
    """
    if observation is None or truth is None or truth.result is None or observation.result is None:
        return (
            observation is not None
            and truth is not None
            and (observation.result, truth.result) == (None, None)
        )
    assert sample.reference is not None
    steps, seen = sample.reference.steps, [None] * at + [observation.result]
    labelled = [slot for slot in sample.answer if isinstance(slot, ExactSlot | ChoiceSetSlot)]
    aliases = {label: names for slot in labelled for label, names in slot.aliases.items()}
    crop = literal_value(steps[at].arguments.get("crop"))
    same = partial(same_value, aliases=aliases, crop=crop if isinstance(crop, str) else None)
    used = {match[0] for slot in sample.answer for match in REF_PATTERN.finditer(slot.from_ or "")}
    used |= {ref for step in steps for _, ref, _ in iter_refs(step.arguments)}
    used = {ref for ref in used if step_index(ref) == at}
    if not used or any(
        slot.from_ is None or isinstance(slot, AbstainSlot) for slot in sample.answer
    ):
        return same(observation.result, truth.result)
    for ref in used:
        try:
            true = resolve_ref(ref, [None] * at + [truth.result])
        except UnresolvedRef:
            continue
        try:
            if not same(resolve_ref(ref, seen), true):
                return False
        except UnresolvedRef:
            return False
    return True


def reference_places(record: Record) -> list[int | None]:
    """Return the index of the reference step of each call of a trajectory; None for calls that belong to none."""
    places = {id(own.step): at for at, own in enumerate(own_calls(record)) if own}
    return [places.get(id(step)) for step in (record.trajectory.calls if record.trajectory else ())]


def landed_faults(record: Record, own: Sequence[OwnCall | None]) -> dict[int, Fault]:
    """Return the fault that landed in the call of each reference step, by the index of the step."""
    if not record.faults or record.trajectory is None:
        return {}
    hit = {
        id(record.trajectory.calls[fault.call]): fault for fault in record.faults if fault.landed
    }
    return {at: hit[id(each.step)] for at, each in enumerate(own) if each and id(each.step) in hit}


def missing_calls(steps: Sequence[ReferenceStep], own: Sequence[OwnCall | None]) -> set[int]:
    """Return the steps whose call is missing, without those from the first on that an earlier error prevented."""
    values = [each.values if each else None for each in own]
    missing = {at for at, each in enumerate(own) if each is None}
    for at in sorted(missing):
        lacking = [
            ref for _, ref, _ in iter_refs(steps[at].arguments) if not has_value(ref, values[:at])
        ]
        if lacking and not any(step_index(ref) in missing for ref in lacking):
            return {other for other in missing if other < at}
    return missing


def step_index(ref: str) -> int:
    """Return the index of the step that a reference is to."""
    match = REF_PATTERN.fullmatch(ref.strip())
    return int(match["step"]) if match else 0


def wrong_arguments(record: Record, own: Step, step: ReferenceStep) -> frozenset[str]:
    """Return the names of the arguments of a call that disagree with a reference step of the same tool."""
    assert own.call is not None
    try:
        tool = get_tool(step.tool, record.sample.declared)
        rows = compare_calls(record.sample, tool, own.call, step)
    except UsageError:
        literal = {name: literal_value(value) for name, value in step.arguments.items()}
        names: set[str] = {*literal, *own.call.arguments}
        return frozenset(
            name for name in names if literal.get(name) != own.call.arguments.get(name)
        )
    same = all(row.equal for row in rows)
    wrong = frozenset[str]() if same else frozenset(row.argument for row in rows if not row.agrees)
    kinds = tool.spec.agreement
    if any(kinds.get(name) == "expression" for name in wrong):  # compared as one with its variables
        wrong |= {name for name, kind in kinds.items() if kind == "variables"}
    error = own.observation.error if own.observation else None
    # The very arguments that worked in the reference are not at fault: this tool is another one, such as a server's.
    is_rejected = error is not None and error.kind == "invalid_argument" and not same
    if not wrong and (own.source == "none" or is_rejected):
        works = step.observation is not None and step.observation.ok
        return frozenset(own.call.arguments) or frozenset(step.arguments) if works else wrong
    return wrong


def has_value(ref: str, values: Sequence[Values | None]) -> bool:
    """True if a reference has a value among the results of earlier calls."""
    try:
        return resolve_ref(ref, values) is not None
    except UnresolvedRef:
        return False
