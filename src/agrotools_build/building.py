"""Samples from chosen questions: the calls are run with the real tools and stored together with their true results."""

import asyncio
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.services import run_now
from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    AbstainSlot,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    Slot,
    ToleranceSlot,
)
from agrotools.core.progress import Progress, no_progress
from agrotools.loading.validate import BenchmarkFault, check_samples
from agrotools.text.expressions import ExpressionError, evaluate_from, shows_no_answer
from agrotools_build.choosing import Chosen
from agrotools_build.references import MISSING_BACKEND, ChainBroken, Tally, record_reference
from agrotools_build.templates.template import result_after
from agrotools_build.templates.thing import QuestionInstance

_FOLLOWING = (BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, ToleranceSlot)
"""Slots whose value follows from the true tool results."""


@dataclass(frozen=True)
class Group:
    """Questions from one ``source`` whose samples are numbered together, with ids ``prefix-001``..."""

    prefix: str
    source: str
    chosen: Sequence[Chosen]


def build_samples(
    groups: Sequence[Group],
    root: Path,
    *,
    toolset: tuple[str, ...],
    progress: Progress = no_progress,
    workers: int = 2,
    backends: Mapping[str, str] | None = None,
    people_decide: bool = False,
    open_executor: Callable[..., ToolExecutor] = ToolExecutor,
) -> tuple[list[Sample], Tally]:
    """Run the call chain of every chosen question on the files in ``root``, and count what is left out.

    Left out are questions whose chain breaks, and those that fail the check of benchmarks.

    Results go into the user's result cache, where the first evaluation finds them. ``backends``: by tool, where not the
    default. ``people_decide``: a question without an answer stays if people see the reason, even if the tools answer
    it. ``open_executor``: makes what runs the calls. BenchmarkError: more than half of the chains break.
    InfrastructureError: no tool worker starts.
    """
    items = [(group, item) for group in groups for item in group.chosen]

    async def build() -> list[Sample | ChainBroken]:
        finished = 0
        async with open_executor(
            workers=workers, timeout_s=300, cache=ResultCache(), backends=backends
        ) as executor:
            gate = asyncio.Semaphore(2 * workers)

            async def one(group: Group, item: Chosen) -> Sample | ChainBroken:
                nonlocal finished
                async with gate:
                    sample = await _sample(
                        group, item, root, executor, toolset, people_decide=people_decide
                    )
                finished += 1
                progress("reference calls", finished, len(items))
                return sample

            try:
                async with asyncio.TaskGroup() as running:
                    tasks = [running.create_task(one(group, item)) for group, item in items]
            except BaseExceptionGroup as failures:
                raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    results, tally = run_now(build()), Tally(len(items))
    pairs = [item.pair for _, item in items]
    numbered = _numbered_samples(pairs, results, tally)
    tally.check()
    samples = with_levels(without_faulty(numbered, root, tally.dropped))
    for sample in samples:
        tally.keep(sample)
    return samples, tally


_TWINS = 2


def _numbered_samples(
    pairs: Sequence[str], results: Sequence[Sample | ChainBroken], tally: Tally
) -> list[Sample]:
    """Return the samples with numbers behind their ids, and count broken chains in ``tally``.

    Samples of equal, non-empty ``pairs`` are twins. An unanswerable sample whose twin broke is left out.
    """
    samples: list[Sample] = []
    numbers: Counter[str] = Counter()
    paired = Counter(
        pair for pair, one in zip(pairs, results, strict=True) if isinstance(one, Sample)
    )
    twins: dict[str, int] = {}
    for pair, one in zip(pairs, results, strict=True):
        if isinstance(one, ChainBroken):
            tally.dropped[one.reason] += 1
            tally.first = tally.first or one
        elif one.answerable or paired[pair] == _TWINS:
            numbers[one.id] += 1
            samples.append(one.model_copy(update={"id": f"{one.id}-{numbers[one.id]:03d}"}))
            if pair and (first := twins.setdefault(pair, len(samples) - 1)) < len(samples) - 1:
                for position, other in ((first, -1), (-1, first)):
                    samples[position] = samples[position].model_copy(
                        update={"twin": samples[other].id}
                    )
    return samples


def without_faulty(
    samples: Sequence[Sample],
    root: Path,
    dropped: Counter[str],
    codes: Collection[str] | None = None,
) -> list[Sample]:
    """Return the samples that pass ``agrotools benchmarks check``, and count the others in ``dropped``.

    What a question holds comes from data that nobody has seen before, so that a fault is no error of the build. An
    unanswerable sample goes with its twin, an answerable one stays without. ``codes``: faults that count; None: all.
    """
    offers_refusal = not all(sample.answerable for sample in samples)
    as_written = [each.model_copy(update={"may_abstain": offers_refusal}) for each in samples]
    first_faults: dict[str, BenchmarkFault] = {}
    for fault in check_samples(as_written, root):
        if fault.sample is not None and (codes is None or fault.code in codes):
            first_faults.setdefault(fault.sample, fault)
    examples: dict[str, str] = {}
    for fault in first_faults.values():
        example = examples.setdefault(fault.code, fault.message)
        dropped[f"with the fault {fault.code} ({example})"] += 1
    kept: list[Sample] = []
    for sample in samples:
        has_lost_twin = sample.twin in first_faults
        if sample.id in first_faults:
            continue
        if has_lost_twin and not sample.answerable:
            dropped["whose twin was dropped"] += 1
        else:
            kept.append(sample.model_copy(update={"twin": None}) if has_lost_twin else sample)
    return kept


async def _sample(
    group: Group,
    item: Chosen,
    root: Path,
    executor: ToolExecutor,
    toolset: tuple[str, ...],
    *,
    people_decide: bool,
) -> Sample | ChainBroken:
    instance = item.instance
    slots = instance.slots
    try:
        refused = next((slot for slot in instance.slots if isinstance(slot, AbstainSlot)), None)
        reference = await record_reference(
            instance.calls,
            instance.files,
            root,
            executor,
            toolset,
            to_failure=refused is not None and not instance.has_known_truth,
        )
        if refused is None:
            _check_answers(instance.slots, reference)
        elif not (people_decide and instance.reason_is_seen):
            _check_no_answer(refused, reference)
        elif not _is_shown(refused, reference):
            # The results say nothing true about what is not there: a person's word stands against them.
            reference = _without_truth(reference)
            slots = (refused.model_copy(update={"from_": None}),)
    except ChainBroken as broken:
        return broken
    looks_enough = instance.answer_type != "plot" and all(
        file.kind == "image" for file in instance.files
    )
    return Sample(
        id=group.prefix,
        query=item.query,
        files=instance.files,
        family=FAMILY_OF_TASK_TYPE[item.question.task_type],
        task_type=item.question.task_type,
        answer_type=instance.answer_type,
        template=item.question.template,
        source=group.source,
        toolset=toolset,
        reference=reference,
        answer=with_plot_weights(slots),
        no_tool_eligible=looks_enough and refused is None,
        groups={**item.subject.groups, **({"unanswerable": refused.reason} if refused else {})},
        cluster=f"{group.prefix} {item.subject.cluster}" if item.subject.cluster else None,
        difficulty=measured_difficulty(instance, reference),
        metadata={"subject": item.subject.name, **item.subject.metadata},
    )


def _check_answers(slots: Sequence[Slot], reference: ReferenceTrajectory) -> None:
    """Raise ChainBroken if the true tool results do not lead to the answer of the sample."""
    truths = [None if step.truth is None else dict(step.truth) for step in reference.steps]
    for slot in slots:
        if not isinstance(slot, _FOLLOWING) or slot.from_ is None:
            continue
        try:
            result = evaluate_from(slot.from_, truths)
        except (ValueError, ExpressionError) as error:
            raise ChainBroken(
                "true values do not give its answer", f"{slot.name}: {error}"
            ) from error
        if not _is_answer(slot, result):
            message = f"{slot.name} is {slot.value!r}, but true values give {result!r}"
            raise ChainBroken("true values do not give its answer", message)


def _check_no_answer(slot: AbstainSlot, reference: ReferenceTrajectory) -> None:
    """Raise ChainBroken if the true results do not show that there is no answer.

    They are those of the real tools, unless the source knows better (``has_known_truth``).
    """
    for step in reference.steps:
        error = step.observation.error if step.observation and step.truth is None else None
        if error is not None and error.kind == MISSING_BACKEND:
            raise ChainBroken(
                "a back-end that is not on this machine would have to show that there is no answer",
                f"{slot.reason}: {error.message}",
            )
    if not _is_shown(slot, reference):
        raise ChainBroken(
            "the tools answer what has no answer",
            f"{slot.reason}: the results show no reason to refuse",
        )


def _is_shown(slot: AbstainSlot, reference: ReferenceTrajectory) -> bool:
    """Return True if the true results show that there is no answer."""
    truths = [None if step.truth is None else dict(step.truth) for step in reference.steps]
    return shows_no_answer(slot, truths)


def _without_truth(reference: ReferenceTrajectory) -> ReferenceTrajectory:
    """Return the calls with their observations, whose true results nobody knows."""
    steps = tuple(step.model_copy(update={"truth": None}) for step in reference.steps)
    return reference.model_copy(update={"steps": steps})


def _is_answer(
    slot: ExactSlot | BooleanSlot | ChoiceSetSlot | FileSlot | ToleranceSlot, found: JsonValue
) -> bool:
    match slot:
        case ToleranceSlot():
            return isinstance(found, int | float) and abs(found - slot.value) <= slot.margin
        case ChoiceSetSlot():
            return isinstance(found, list) and set(map(str, found)) == set(slot.value)
        case BooleanSlot():
            return bool(found) == slot.value
        case _:
            return found == slot.value or (isinstance(slot, ExactSlot) and found in slot.names)


def with_plot_weights(slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """Return ``slots`` with weights such that figures make up half of the score if there are other slots as well."""
    plots = sum(slot.type == "plot" for slot in slots)
    if plots in (0, len(slots)):
        return tuple(slots)
    weights = {True: 0.5 / plots, False: 0.5 / (len(slots) - plots)}
    return tuple(slot.model_copy(update={"weight": weights[slot.type == "plot"]}) for slot in slots)


def measured_difficulty(
    instance: QuestionInstance, reference: ReferenceTrajectory
) -> dict[str, float]:
    """Return measures of the reference: ``calls``, different ``tools``, ``files``, ``unused_files`` and ``margin``.

    The margin is the share, at most 1, by which values may be wrong before the answer is: the smallest tolerance of a
    number, or the smallest tried change of measured values that changes a label.
    """
    names = {file.name for file in instance.files}
    used = {
        value
        for step in reference.steps
        for value in step.arguments.values()
        if isinstance(value, str)
    } & names
    margins = [
        slot.margin / abs(slot.value)
        for slot in instance.slots
        if isinstance(slot, ToleranceSlot) and slot.value
    ]
    measured = {
        "calls": float(len(reference.steps)),
        "tools": float(len(set(reference.tools))),
        "files": float(len(names)),
        "unused_files": float(len(names - used)),
    }
    labels = [
        slot
        for slot in instance.slots
        if isinstance(slot, _FOLLOWING) and not isinstance(slot, ToleranceSlot)
    ]
    margins += [_label_margin(slot, reference) for slot in labels if slot.from_ is not None]
    return measured | ({"margin": round(min([1.0, *margins]), 4)} if margins else {})


_CHANGES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7)
"""Changes of measured values that are tried, as shares."""


def _label_margin(slot: Slot, reference: ReferenceTrajectory) -> float:
    """Return the smallest of :data:`_CHANGES` of all numbers of a call that changes a label; 1 if none does."""
    for change in _CHANGES:
        for turn in (0, 1):
            results: list[dict[str, JsonValue] | None] = []
            try:
                for index, step in enumerate(reference.steps):
                    results.append(
                        _changed_result(
                            step, 1 + (change if (index + turn) % 2 else -change), results
                        )
                    )
                value = evaluate_from(str(slot.from_), results)
            except (ValueError, ExpressionError):
                continue
            if not _is_answer(cast("ExactSlot", slot), value):
                return change
    return 1.0


def _changed_result(
    step: ReferenceStep, factor: float, results: Sequence[dict[str, JsonValue] | None]
) -> dict[str, JsonValue] | None:
    """Return the true result of a step with its numbers times ``factor``, or the exact result of changed values."""
    if step.tool in ("calculate", "plot"):
        return result_after(step.tool, step.arguments, results)
    return (
        None
        if step.truth is None
        else cast("dict[str, JsonValue]", _scaled(dict(step.truth), factor))
    )


def _scaled(value: JsonValue, factor: float) -> JsonValue:
    if isinstance(value, dict):
        return {key: _scaled(item, factor) for key, item in value.items()}
    if isinstance(value, list):
        return [_scaled(item, factor) for item in value]
    return (
        value * factor if isinstance(value, int | float) and not isinstance(value, bool) else value
    )


def with_levels(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with the measure ``level``: their rank by difficulty among all, from 0 to 1.

    Samples are ranked by the mean of their ranks in number of calls, files that are not used, and smallness of the
    margin; equally difficult ones share a rank.
    """
    if len(samples) < 2:
        return [*samples]
    measures = [
        [sample.difficulty.get(key, 0.0) * sign for sample in samples]
        for key, sign in (("calls", 1.0), ("unused_files", 1.0), ("margin", -1.0))
    ]
    levels = _ranks([sum(each) for each in zip(*map(_ranks, measures), strict=True)])
    return [
        sample.model_copy(update={"difficulty": {**sample.difficulty, "level": round(level, 4)}})
        for sample, level in zip(samples, levels, strict=True)
    ]


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [
        (bisect_left(ordered, value) + bisect_right(ordered, value) - 1) / 2 / (len(ordered) - 1)
        for value in values
    ]
