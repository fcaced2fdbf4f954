"""Making of a sample from a question, files, steps with observations, and the parts of its answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints, ValidationError

from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    AnswerType,
    FrozenModel,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    Slot,
    first_error,
)
from agrotools.core.taxonomy import FAMILIES
from agrotools.loading.validate import check_samples
from agrotools_build.building import measured_difficulty, with_plot_weights
from agrotools_build.composing.binding import AnswerPart, bound_slot
from agrotools_build.composing.reasons import CannotCompose
from agrotools_build.composing.running import grouped
from agrotools_build.composing.tolerance import recalculated
from agrotools_build.references import without_artifacts
from agrotools_build.templates.thing import QuestionInstance
from agrotools_tools import AGROTOOLS


class Composition(FrozenModel):
    """All that somebody wrote of a sample, and the steps as they ran.

    ``steps``: with their observations; a ``truth`` is what labels say of a result, and counts before the observation.
    ``family`` is needed for task types beside those of AgroTools. ``source``, ``template``, ``groups``, ``cluster`` and
    ``metadata`` are those of the sample.
    """

    id: str
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
    files: tuple[SampleFile, ...]
    task_type: str
    steps: tuple[ReferenceStep, ...]
    parts: tuple[AnswerPart, ...]
    toolset: tuple[str, ...] = AGROTOOLS
    family: str = ""
    template: str = "composed"
    source: str = "composed"
    cluster: str | None = None
    groups: dict[str, str] = {}
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


def compose_sample(written: Composition, root: Path) -> Sample:
    """Return the sample, whose every value follows from the results of its steps.

    ``root``: folder of the benchmark, which holds the files.

    Raises:
        CannotCompose: with the reason; ``faults`` are those of ``agrotools benchmarks check``.
    """
    steps = _checked_steps(written.steps)
    if not written.parts:
        raise CannotCompose(
            "no_answer", "the answer has no parts", hint="bind a part of the answer to a result"
        )
    slots = tuple(bound_slot(part, steps, written.files) for part in written.parts)
    reference = ReferenceTrajectory(steps=steps)
    answer_type = answer_type_of(slots)
    instance = QuestionInstance(written.files, (), slots, answer_type, {})
    family = written.family or FAMILY_OF_TASK_TYPE.get(written.task_type, "")
    if family not in FAMILIES and not written.family:
        raise CannotCompose(
            "not_valid",
            f"{written.task_type!r} is no task type",
            hint=f"one of {', '.join(FAMILY_OF_TASK_TYPE)}",
        )
    shows_all = answer_type != "plot" and all(file.kind == "image" for file in written.files)
    fields = written.model_dump(exclude={"files", "steps", "parts", "family"})
    try:
        sample = Sample(
            **fields,
            files=written.files,
            family=family,
            answer_type=answer_type,
            reference=reference,
            answer=with_plot_weights(slots),
            no_tool_eligible=shows_all,
            difficulty=measured_difficulty(instance, reference),
        )
    except ValidationError as error:
        raise CannotCompose(
            "not_valid", first_error(error), hint="correct what the message names"
        ) from error
    for fault in check_samples([sample], root):
        raise CannotCompose(
            "faults", f"{fault.code}: {fault.message}", hint=fault.hint, part=fault.field or ""
        )
    return sample


def _checked_steps(steps: Sequence[ReferenceStep]) -> tuple[ReferenceStep, ...]:
    """Return the steps with their true results; CannotCompose if there are none, or one did not run."""
    if not steps:
        raise CannotCompose(
            "no_steps", "there are no steps", hint="add a call whose result gives the answer"
        )
    for number, step in enumerate(steps, start=1):
        observation = step.observation
        if observation is None or observation.result is None:
            error = observation.error if observation else None
            why = error.message if error else "it was not run"
            hint = (error.hint if error else None) or "run it, or change its arguments"
            raise CannotCompose(
                "call_fails",
                f"step {number} ({step.tool}): {why}",
                hint=hint,
            )
    checked: list[ReferenceStep] = []
    for step, result in zip(steps, recalculated(steps, {}), strict=True):
        assert result is not None
        assert step.observation is not None
        truth = step.truth or without_artifacts(result, step.observation)
        checked.append(step.model_copy(update={"truth": truth}))
    return grouped(checked)


def answer_type_of(slots: Sequence[Slot]) -> AnswerType:
    """Return the answer type of a sample whose answer has these parts."""
    kinds = {slot.type for slot in slots}
    if "plot" in kinds:
        return "plot"
    return "tolerance" if kinds == {"tolerance"} else "exact"
