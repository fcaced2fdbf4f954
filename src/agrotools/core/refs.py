"""References to values of earlier steps, and the observations of the reference that step-by-step shows as history.

A reference is ``steps[0].observation.crop_pct`` in an expression and ``{"$ref": ..., "value": ...}`` in an argument. A
model is judged on the history that it is shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from agrotools.core.record import Observation, ReferenceStep, ReferenceTrajectory, Sample

Results = Sequence[dict[str, JsonValue] | None]
"""Result of each step so far; None where the step failed or has not run."""

REF_PATTERN = re.compile(r"steps\[(?P<step>\d+)\]\.observation(?P<path>(?:\.[A-Za-z_]\w*|\[\d+\])*)")
_PATH_PART = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")


class UnresolvedRef(ValueError):
    """A reference that cannot be resolved."""


def resolve_ref(ref: str, results: Results) -> JsonValue:
    """The value that ``ref`` points to.

    Raises:
        UnresolvedRef: not a reference, no such step, or no such field in its result.
    """
    match = REF_PATTERN.fullmatch(ref.strip())
    if match is None:
        raise UnresolvedRef(f"{ref!r} is not of the form steps[N].observation.field")
    index = int(match["step"])
    if index >= len(results):
        raise UnresolvedRef(f"{ref}: there is no step {index}")
    value: JsonValue = results[index]
    if value is None:
        raise UnresolvedRef(f"{ref}: step {index} has no result")
    for part in _PATH_PART.finditer(match["path"]):
        value = _field(value, part[1], ref) if part[1] else _element(value, int(part[2]), ref)
    return value


def _field(value: JsonValue, name: str, ref: str) -> JsonValue:
    if not isinstance(value, dict) or name not in value:
        raise UnresolvedRef(f"{ref}: no field {name!r}")
    return value[name]


def _element(value: JsonValue, position: int, ref: str) -> JsonValue:
    if not isinstance(value, list) or position >= len(value):
        raise UnresolvedRef(f"{ref}: no element [{position}]")
    return value[position]


def is_ref(value: JsonValue) -> bool:
    """True if ``value`` is a reference object, ``{"$ref": ..., "value": ...}``."""
    return isinstance(value, dict) and "$ref" in value


def iter_refs(value: JsonValue, at: str = "") -> Iterator[tuple[str, str, JsonValue]]:
    """All reference objects in ``value`` as (where, ref, literal beside it)."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield at, str(value["$ref"]), value.get("value")
            return
        for key, item in value.items():
            yield from iter_refs(item, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from iter_refs(item, f"{at}[{index}]")


def literal_value(value: JsonValue) -> JsonValue:
    """``value`` with each reference object replaced by the literal beside it."""
    if isinstance(value, dict):
        if "$ref" in value:
            return value.get("value")
        return {key: literal_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [literal_value(item) for item in value]
    return value


def resolved_value(value: JsonValue, results: Results) -> JsonValue:
    """``value`` with each reference object replaced by what it points to in ``results``.

    Raises:
        UnresolvedRef: where a reference leads to no value.
    """
    if isinstance(value, dict):
        if "$ref" in value:
            return resolve_ref(cast(str, value["$ref"]), results)
        return {key: resolved_value(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved_value(item, results) for item in value]
    return value


def renamed(value: dict[str, JsonValue], names: Mapping[str, str]) -> dict[str, JsonValue]:
    """``value`` with every text in it that is a key of ``names``, as a whole, exchanged for what stands there."""
    return {key: _renamed(item, names) for key, item in value.items()} if names else value


def _renamed(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _renamed(item, names) for key, item in value.items()}
    return value


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
    observations: list[Observation | None] = []
    for index, step in enumerate(sample.reference.steps):
        if _serves(step, index, needed) and not replaced & _steps_used(step):
            observations.append(step.observation)
        else:
            observations.append(_truth_of(step))
            replaced.add(index)
    return _with_observations(sample, observations)


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
