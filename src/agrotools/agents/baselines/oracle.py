"""The ceilings: reference calls executed by real tools (``oracle``) or answered with the truth (``perfect-tools``).

Both see gold and are marked *privileged*. What they lose is lost by the tools (oracle) or by the benchmark itself
(perfect-tools, which must reach 100 % wherever the truth is known). Examination questions have no tools: perfect-tools
answers them with what the files say is right.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from agrotools.core import (
    Action,
    Answer,
    Arguments,
    CallTools,
    KeywordsSlot,
    Observation,
    ReferenceStep,
    ReferenceTextsSlot,
    Sample,
    SampleView,
    Slot,
    Step,
    ToolCall,
    UnresolvedRef,
)
from agrotools.core.refs import Results, iter_refs, resolve_ref, resolved_value
from agrotools.text import format_answer
from agrotools.text.expressions import ExpressionError, evaluate_from


class OraclePolicy:
    """Policy that makes the reference calls in written order and rebuilds the answer from their results.

    ``told``: it is given texts that cannot be derived from tool results.
    """

    def __init__(self, sample: Sample, *, told: bool = False) -> None:
        if sample.reference is None:
            raise ValueError(f"sample {sample.id} has no reference trajectory")
        self._slots = sample.answer
        self._steps = sample.reference.steps
        self._told = told

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        observations = [step.observation for step in history if step.kind == "call"]
        results = [observation.result if observation else None for observation in observations]
        if len(results) < len(self._steps):
            step = self._steps[len(results)]
            arguments = live_arguments(step, results)
            if arguments is not None:
                return CallTools(calls=(ToolCall(tool=step.tool, arguments=arguments),))
        return Answer(text=answer_from(self._slots, results, told=self._told))


class RightAnswerPolicy:
    """Policy that gives the right answer to a question that needs no tool."""

    def __init__(self, sample: Sample) -> None:
        (slot,) = sample.answer
        if slot.right_text is None:
            raise ValueError(f"sample {sample.id} has a slot without a right text")
        self._text = slot.right_text

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        return Answer(text=self._text)


def live_arguments(step: ReferenceStep, results: Results) -> Arguments | None:
    """The step's arguments with live values; None where an earlier tool failed or left such a value open."""
    try:
        if any(resolve_ref(ref, results) is None for _, ref, _ in iter_refs(step.arguments)):
            return None
        return {name: resolved_value(value, results) for name, value in step.arguments.items()}
    except UnresolvedRef:
        return None


def answer_from(slots: Sequence[Slot], results: Results, *, told: bool = False) -> str:
    """The answer that ``results`` imply, in the answer form. A slot they do not yield is left unanswered.

    Keywords and texts of which nothing says how they follow are looked for in what the last call returned; they are
    the right ones where the policy is ``told``.
    """
    values: dict[str, JsonValue] = {}
    for slot in slots:
        if slot.from_ is None and isinstance(slot, KeywordsSlot | ReferenceTextsSlot):
            values[slot.name] = _right_text(slot) if told else _last_text(results)
        if slot.from_ is None or slot.made:
            continue
        try:
            values[slot.name] = evaluate_from(slot.from_, results)
        except (UnresolvedRef, ExpressionError):
            continue
    return format_answer(slots, values)


def _last_text(results: Results) -> JsonValue:
    texts = [result.get("text") for result in results if result]
    return next((text for text in reversed(texts) if isinstance(text, str) and text.strip()), None)


def _right_text(slot: KeywordsSlot | ReferenceTextsSlot) -> JsonValue:
    if isinstance(slot, KeywordsSlot):
        return ", ".join(group[0] for group in slot.whitelist if group)
    return next(iter(slot.values), None)


class TruthTools:
    """Answers the k-th call of a sample with the truth of its k-th reference step.

    Where nothing says how an answer follows from what tools return, there is no such truth: what was recorded stands
    for it.
    """

    def __init__(self, sample: Sample) -> None:
        steps = sample.reference.steps if sample.reference else ()
        truths = [step.truth for step in steps]
        if all(slot.from_ is None for slot in sample.answer):
            truths = [truth or (step.observation and step.observation.result)
                      for truth, step in zip(truths, steps, strict=True)]  # fmt: skip
        self._truths = [_with_made_files(index, truth, steps) for index, truth in enumerate(truths)]
        self._calls = 0

    def observe(self) -> Observation:
        truth = self._truths[self._calls]
        self._calls += 1
        return Observation(result=truth)


def _with_made_files(
    index: int, truth: dict[str, JsonValue] | None, steps: Sequence[ReferenceStep]
) -> dict[str, JsonValue] | None:
    """A step's truth and, under the names that the real tool gave them, the files it makes that later steps use.

    A mask has no truth of its own: what a later step finds in it has.
    """
    if truth is None:
        return None
    start = f"steps[{index}].observation."
    used = [(ref.removeprefix(start), name) for step in steps for _, ref, name in iter_refs(step.arguments)
            if ref.startswith(start)]  # fmt: skip
    return {**{field: name or field for field, name in used if field.isidentifier()}, **truth}
