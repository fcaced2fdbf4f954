"""Reference calls over results: their arguments, the values that answer the slots, and the results that are true."""

from collections.abc import Sequence

from pydantic import JsonValue

from agrotools.core import (
    Arguments,
    ChoiceSetSlot,
    ExactSlot,
    KeywordsSlot,
    Observation,
    OpenTextSlot,
    ReferenceStep,
    ReferenceTextsSlot,
    Sample,
    Slot,
    UnresolvedRef,
)
from agrotools.core.record import Results, iter_refs, resolve_ref, resolved_value
from agrotools.knowledge.same_thing import as_listed
from agrotools.text.expressions import ExpressionError, evaluate_from


def live_arguments(step: ReferenceStep, results: Results) -> Arguments | None:
    """Return the step's arguments with live values; None if an earlier tool failed or did not yield a needed value."""
    try:
        if any(resolve_ref(ref, results) is None for _, ref, _ in iter_refs(step.arguments)):
            return None
        return {name: resolved_value(value, results) for name, value in step.arguments.items()}
    except UnresolvedRef:
        return None


def derived_values(
    slots: Sequence[Slot], results: Results, *, knows_gold: bool = False
) -> dict[str, JsonValue]:
    """Return the values that ``results`` imply, by slot, labels as the slot names them.

    Slots without a derivable value are left out: the expression fails, or yields an empty text. Slots without an
    expression take the gold if ``knows_gold``; else keywords and texts take the last text that a call returned.
    """
    values: dict[str, JsonValue] = {}
    for slot in slots:
        if slot.from_ is None and knows_gold:
            values[slot.name] = _gold(slot)
        elif slot.from_ is None and isinstance(slot, KeywordsSlot | ReferenceTextsSlot):
            texts = [result.get("text") for result in reversed(results) if result]
            values[slot.name] = next(
                (text for text in texts if isinstance(text, str) and text.strip()), None
            )
        if slot.from_ is None or slot.made_by_tools:
            continue
        try:
            value = evaluate_from(slot.from_, results)
        except (UnresolvedRef, ExpressionError):
            continue
        if isinstance(slot, ExactSlot):
            value = as_listed(value, slot)
        elif isinstance(slot, ChoiceSetSlot) and isinstance(value, list):
            value = [as_listed(item, slot) for item in value]
        if value != "":
            values[slot.name] = value
    return values


def _gold(slot: Slot) -> JsonValue:
    if isinstance(slot, KeywordsSlot):
        return ", ".join(group[0] for group in slot.whitelist if group)
    if isinstance(slot, ReferenceTextsSlot):
        return slot.values[0]
    if isinstance(slot, OpenTextSlot):
        return [fact.phrases[0] for fact in slot.facts]
    if isinstance(slot, ChoiceSetSlot):
        return [*slot.value]
    return slot.right_text or getattr(slot, "value", None)


def true_observations(sample: Sample) -> list[Observation]:
    """Return the truth of each reference step of a sample, with which its calls are answered.

    If no step has a truth, as in published and imported dialogs, these are the recorded results.
    """
    steps = sample.reference.steps if sample.reference else ()
    truths = [step.truth for step in steps]
    if all(truth is None for truth in truths):
        truths = [step.observation and step.observation.result for step in steps]
    return [
        Observation(result=with_made_files(index, truth, steps))
        for index, truth in enumerate(truths)
    ]


def with_made_files(
    index: int, truth: dict[str, JsonValue] | None, steps: Sequence[ReferenceStep]
) -> dict[str, JsonValue] | None:
    """Return a step's truth together with the files it creates that later steps use, under their recorded names.

    A mask itself has no truth; the values that a later step measures in it have one.
    """
    if truth is None:
        return None
    start = f"steps[{index}].observation."
    used = [(ref.removeprefix(start), name) for step in steps for _, ref, name in iter_refs(step.arguments)
            if ref.startswith(start)]  # fmt: skip
    return {**{field: name or field for field, name in used if field.isidentifier()}, **truth}
