"""Checks of a drafted question after its calls ran: a sample, or the reason why it is dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic import JsonValue, ValidationError

from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    ReferenceStep,
    Sample,
    SampleFile,
    ToleranceSlot,
    first_error,
)
from agrotools.core.record import REF_PATTERN
from agrotools.scoring.floors import prompt_floor
from agrotools.scoring.slots import guess_points
from agrotools.text.json_kinds import is_number
from agrotools_build.answer_origin import TOOL_VALUES
from agrotools_build.composing import (
    AnswerPart,
    CannotCompose,
    Composition,
    StepRunner,
    TraceStep,
    bound_slot,
    compose_sample,
)
from agrotools_build.composing.binding import means
from agrotools_build.composing.idle import idle_step
from agrotools_build.composing.tolerance import (
    EXACT_TOOLS,
    Root,
    roots_of,
    stated_error,
    value_at,
)
from agrotools_build.drafting.constants import check_constants
from agrotools_build.drafting.known_names import check_answer_unsaid
from agrotools_build.drafting.material import Labels, Noted, PictureGroup
from agrotools_build.drafting.reasons import Dropped, dropped
from agrotools_build.drafting.replies import DraftedQuestion, check_plain, part_of, trace_of
from agrotools_build.own_photos.plan import measures
from agrotools_build.quality import sequences_that_answer, units_of
from agrotools_build.references import without_artifacts
from agrotools_build.templates.slot_draft import same_answer

_WIDE = 0.5
"""Share of a value from which its tolerance is a doubt: half of it."""


@dataclass
class Checked:
    """A draft that passed all checks, with what is doubtful about it."""

    sample: Sample
    doubts: tuple[str, ...]


def plain_parts(
    draft: DraftedQuestion, pictures: PictureGroup, *, is_persons: bool = False
) -> list[AnswerPart]:
    """Return the parts of a draft's answer; a name is offered the choices that people noted.

    ``is_persons``: a person wrote the question, with whatever signs.

    Raises:
        Dropped: a text is not plain, or a number or a text of a call is the model's own.
    """
    if not is_persons:
        check_plain(draft.question)
    for part in draft.answer:
        check_plain(part.label)
    parts = [part_of(part, place) for place, part in enumerate(draft.answer)]
    steps = trace_of(draft.steps)
    check_constants(draft.question, steps, parts, pictures.files)
    return [_with_choices(part, steps, pictures.noted) for part in parts]


def _with_choices(
    part: AnswerPart, steps: Sequence[TraceStep], noted: Sequence[Noted]
) -> AnswerPart:
    if part.form != "name":
        return part
    for each in noted:
        offers = [
            number
            for number, step in enumerate(steps)
            if step.tool == each.tool and part.from_ == f"steps[{number}].observation.{each.path}"
        ]
        if offers and each.choices:
            return part.model_copy(update={"choices": each.choices, "aliases": dict(each.aliases)})
    return part


def checked(
    number: str,
    draft: DraftedQuestion,
    parts: Sequence[AnswerPart],
    steps: Sequence[ReferenceStep],
    pictures: PictureGroup,
    labels: Labels,
    runner: StepRunner,
) -> Checked:
    """Return the sample of a draft whose calls ran.

    Raises:
        Dropped: a check refuses it.
    """
    known = [labels.truth_of(step, pictures.files) for step in steps]
    labelled = [_with_label(step, noted) for step, noted in zip(steps, known, strict=True)]
    task_type = _task_type(parts, steps, pictures)
    try:
        sample = compose_sample(
            Composition(
                id=number,
                query=draft.question,
                files=pictures.files,
                task_type=task_type,
                family=FAMILY_OF_TASK_TYPE.get(task_type, pictures.family),
                steps=tuple(labelled),
                parts=tuple(parts),
                toolset=runner.toolset,
                template=_kind_of(steps, parts),
                source=pictures.source,
                cluster=pictures.cluster,
                groups=dict(pictures.groups),
            ),
            runner.root,
        )
        _check_labels(sample, parts, steps, pictures.files)
        _check_inputs(sample, steps, known)
    except CannotCompose as error:
        raise dropped(error) from error
    except ValidationError as error:
        raise Dropped("not_valid", first_error(error)) from error
    check_answer_unsaid(sample)
    _check_steps(sample)
    _check_words(sample)
    unlabelled = _unlabelled(sample, steps, known)
    if unlabelled:
        metadata = {**sample.metadata, TOOL_VALUES: list(unlabelled)}
        sample = sample.model_copy(update={"metadata": metadata})
    return Checked(sample, tuple(_doubts(sample, steps, unlabelled)))


_Known = Sequence[Mapping[str, JsonValue] | None]
"""What people noted of the result of each step; None where nobody did."""


def _unlabelled(
    sample: Sample, steps: Sequence[ReferenceStep], known: _Known
) -> dict[str, list[Root]]:
    """Return the measured values that no label stands behind, by the part of the answer that rests on them."""
    by_part: dict[str, list[Root]] = {}
    for slot in sample.answer:
        for root in roots_of(slot.from_ or "", steps):
            if value_at(root.path, known[root.step]) is None:
                by_part.setdefault(slot.name, []).append(root)
    return by_part


def _with_label(step: ReferenceStep, noted: Mapping[str, JsonValue] | None) -> ReferenceStep:
    """Return a step with what people noted in place of what its tool returned."""
    observation = step.observation
    if noted is None or observation is None or observation.result is None:
        return step
    seen = without_artifacts(observation.result, observation)
    return step.model_copy(update={"truth": {**seen, **noted}})


def _check_labels(
    sample: Sample,
    parts: Sequence[AnswerPart],
    steps: Sequence[ReferenceStep],
    files: Sequence[SampleFile],
) -> None:
    """Raise Dropped if the tools give another answer than what people noted."""
    for slot, part in zip(sample.answer, parts, strict=True):
        seen = bound_slot(part, steps, files)
        if not same_answer(slot, seen):
            why = f"{slot.name} is {slot.expected_text} by the labels, and {seen.expected_text} by the tools"
            raise Dropped("contradicts_label", why)


def _check_inputs(sample: Sample, steps: Sequence[ReferenceStep], known: _Known) -> None:
    """Raise Dropped if a label contradicts a value that the answer is calculated from, whatever the answer is.

    A remainder or a comparison may be right by chance.
    """
    for slot in sample.answer:
        from_ = slot.from_ or ""
        named = REF_PATTERN.fullmatch(from_)
        if named and steps[int(named["step"])].tool not in EXACT_TOOLS:
            continue  # The answer is the value itself, which has been compared.
        roots = roots_of(from_, steps)
        for root in roots:
            step = steps[root.step]
            noted = value_at(root.path, known[root.step])
            seen = value_at(root.path, step.observation.result if step.observation else None)
            if noted is not None and not _agree(noted, seen, step, root):
                what = f"{root.path} of step {root.step + 1} ({step.tool})"
                why = f"{what} is {noted} by the labels, and {seen} by the tool"
                raise Dropped("contradicts_label", why)


def _agree(noted: JsonValue, seen: JsonValue, step: ReferenceStep, root: Root) -> bool:
    """Return True if a tool gave what a label says: a number within its error, or a name of the same thing."""
    if is_number(noted) and is_number(seen):
        label = float(str(noted))
        result = step.observation.result if step.observation else None
        error = stated_error(step.tool, root.path, result)
        return abs(float(str(seen)) - label) <= error.margin_of(label)
    if isinstance(noted, str) and isinstance(seen, str):
        return means(noted, seen)
    return noted == seen


def _task_type(
    parts: Sequence[AnswerPart], steps: Sequence[ReferenceStep], pictures: PictureGroup
) -> str:
    """Return the task type of the quantity that is asked for; that of the pictures where no quantity is known."""
    for root in (root for part in parts for root in roots_of(part.from_, steps)):
        for measure in measures().values():
            if (measure.tool, measure.answer) == (steps[root.step].tool, root.path):
                return measure.task_type
    return pictures.task_type


def _kind_of(steps: Sequence[ReferenceStep], parts: Sequence[AnswerPart]) -> str:
    """Return the template of a draft: one constant answer is compared with all drafts of a kind."""
    tools = "+".join(step.tool for step in steps)
    return f"draft: {tools} -> {'+'.join(part.form for part in parts)}"


def _check_steps(sample: Sample) -> None:
    """Raise Dropped if a step changes nothing, or another sequence of the calls gives the answer."""
    assert sample.reference is not None
    steps = sample.reference.steps
    if why := idle_step(sample):
        raise Dropped("idle_step", why)
    if not any(roots_of(slot.from_ or "", steps) for slot in sample.answer):
        raise Dropped("idle_step", "the answer rests on no measured value")
    # Steps without data between them may swap: only a shorter sequence is another way.
    n_units = len(units_of(sample.reference))
    others = {names for names in sequences_that_answer(sample) if len(names) < n_units}
    if others:
        shortest = min(others, key=lambda names: (len(names), names))
        raise Dropped("other_way", f"{' -> '.join(shortest) or 'no call'} gives the answer, too")


def _check_words(sample: Sample) -> None:
    """Raise Dropped if the baseline that sees the words alone answers the question."""
    if prompt_floor().ignores_prompt(sample.answer):
        return  # It gives one answer to all such questions, as the constant does.
    if guess_points(sample).score >= 1:
        raise Dropped("text_baseline", "the guess from the words of the question is right")


def _doubts(
    sample: Sample, steps: Sequence[ReferenceStep], unlabelled: Mapping[str, Sequence[Root]]
) -> list[str]:
    """Return what a reviewer should look at, each as a short sentence."""
    doubts: list[str] = []
    for number, step in enumerate(steps):
        result = step.observation.result if step.observation else None
        flags = result.get("flags") if result else None
        if isinstance(flags, list) and flags:
            doubts.append(
                f"step {number + 1} ({step.tool}) has flags: {', '.join(map(str, flags))}"
            )
    for root in dict.fromkeys(chain.from_iterable(unlabelled.values())):
        tool = steps[root.step].tool
        doubts.append(f"step {root.step + 1} ({tool}): no label stands behind {root.path}")
    for slot in sample.answer:
        if isinstance(slot, ToleranceSlot) and slot.margin > _WIDE * abs(slot.value):
            share = slot.margin / abs(slot.value)
            doubts.append(f"{slot.name}: the tolerance is {share:.0%} of the value")
    return doubts
