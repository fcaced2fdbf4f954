"""Observations of the reference that step-by-step shows as history, so that a model is judged on what it sees."""

from collections.abc import Sequence

from pydantic import JsonValue

from agrotools.core.refs import (
    REF_PATTERN,
    Results,
    UnresolvedRef,
    iter_refs,
    literal_value,
    resolve_ref,
    resolved_value,
)
from agrotools.core.sample import Sample
from agrotools.core.trajectory import Observation, ReferenceStep, ReferenceTrajectory


def with_shown_observations(sample: Sample) -> Sample:
    """``sample`` with the observations that step-by-step shows.

    That is the recorded one; but where a real tool failed, or left open a value that a later step or the answer
    needs, no history could go on from it, and the truth is shown instead: there, and in every step that builds on it,
    so that no result contradicts the arguments above it.
    """
    if sample.reference is None:
        return sample
    needed = _needed_refs(sample)
    replaced: set[int] = set()
    shown: list[Observation | None] = []
    for index, step in enumerate(sample.reference.steps):
        if _serves(step, index, needed) and not replaced & _steps_used(step):
            shown.append(step.observation)
        else:
            shown.append(_truth_of(step))
            replaced.add(index)
    return _with_observations(sample, shown)


def with_truth_observations(sample: Sample) -> Sample:
    """``sample`` as if every reference call had returned the truth (where a step's truth is known)."""
    if sample.reference is None:
        return sample
    return _with_observations(sample, [_truth_of(step) for step in sample.reference.steps])


def _truth_of(step: ReferenceStep) -> Observation | None:
    return step.observation if step.truth is None else Observation(result=step.truth)


def _steps_used(step: ReferenceStep) -> set[int]:
    """The steps whose results are among the arguments of ``step``."""
    refs = [ref for _, ref, _ in iter_refs(dict(step.arguments))]
    return {int(match["step"]) for ref in refs for match in REF_PATTERN.finditer(ref)}


def _needed_refs(sample: Sample) -> list[tuple[int, str]]:
    """Every (step, reference) that an argument of a later step or a slot relies on."""
    texts = [slot.from_ for slot in sample.answer if slot.from_]
    if sample.reference:
        texts += [ref for step in sample.reference.steps for _, ref, _ in iter_refs(dict(step.arguments))]
    return [(int(match["step"]), match[0]) for text in texts for match in REF_PATTERN.finditer(text)]


def _serves(step: ReferenceStep, index: int, needed: Sequence[tuple[int, str]]) -> bool:
    if step.observation is None or step.observation.result is None:
        return False
    results: list[dict[str, JsonValue] | None] = [None] * index + [step.observation.result]
    try:
        return all(resolve_ref(ref, results) is not None for at, ref in needed if at == index)
    except UnresolvedRef:
        return False


def _with_observations(sample: Sample, observations: Sequence[Observation | None]) -> Sample:
    assert sample.reference is not None
    results = [observation.result if observation else None for observation in observations]
    steps: list[ReferenceStep] = []
    for step, observation in zip(sample.reference.steps, observations, strict=True):
        arguments = {name: restated(value, results) for name, value in step.arguments.items()}
        steps.append(step.model_copy(update={"observation": observation, "arguments": arguments}))
    return sample.model_copy(update={"reference": ReferenceTrajectory(steps=tuple(steps))})


def restated(value: JsonValue, results: Results) -> JsonValue:
    """``value`` whose reference objects carry what ``results`` hold as the literal beside them, where they hold it."""
    if isinstance(value, dict):
        if "$ref" in value:
            try:
                return {"$ref": value["$ref"], "value": resolved_value(value, results)}
            except UnresolvedRef:
                return {"$ref": value["$ref"], "value": literal_value(value)}
        return {key: restated(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [restated(item, results) for item in value]
    return value
