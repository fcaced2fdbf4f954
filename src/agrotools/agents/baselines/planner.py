"""``planner``: follows the reference of the most similar question of another template.

It sees the gold of samples of other templates and other clusters, and so is marked *privileged*; of its own sample it
sees no gold. It shows what a model reaches that only copies how such questions are solved.
"""

import math
import re
from collections.abc import Sequence
from functools import cached_property
from typing import cast

from pydantic import JsonValue

from agrotools.agents.baselines.oracle import live_arguments
from agrotools.agents.baselines.plan_table import Plan, PlanTable
from agrotools.agents.baselines.simple import BlankSlot, blank
from agrotools.core import Action, Answer, CallTools, Sample, SampleView, Step, ToolCall, UnresolvedRef
from agrotools.core.refs import Results
from agrotools.text import canonical_unit, convert, format_answer
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools.text.normalise import compatible

__all__ = ["PlanTable", "PlannerPolicy"]


class PlannerPolicy:
    """Follows the plan of the most similar sample of another template and another cluster (:class:`PlanTable`).

    End-to-end, it makes that sample's reference calls on the files of its own, with references resolved from what its
    own calls returned. Step-by-step, it predicts at step k the k-th call of that plan, resolved from the shown history.
    Where the plan is over, or needs a value that an observation does not have, it answers: each slot as the plan
    answered its slot of that name, type and unit; else from the last results; else as the plan answered a slot of that
    type and unit; else as ``prior`` does. Without tools (no-tool), and where no sample of another template and another
    cluster has a reference, it answers as ``prior``.
    """

    def __init__(self, sample: Sample, table: PlanTable) -> None:
        self._sample = sample
        self._slots = [blank(slot) for slot in sample.answer]
        self._table = table

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        if not view.toolset or self._plan is None:
            return Answer(text=self._answer(None, ()))
        observations = [step.observation for step in history if step.kind == "call"]
        results = [observation.result if observation else None for observation in observations]
        steps = self._plan.steps
        if len(results) < len(steps):
            step = steps[len(results)]
            arguments = live_arguments(step, results)
            if arguments is not None:
                thought = f"Step {len(results) + 1} of {len(steps)} of the plan of {self._plan.donor}."
                return CallTools(calls=(ToolCall(tool=step.tool, arguments=arguments),), thought=thought)
        return Answer(text=self._answer(self._plan, results), thought=f"As the plan of {self._plan.donor} ends.")

    @cached_property
    def _plan(self) -> Plan | None:
        return self._table.plan(self._sample)

    def _answer(self, plan: Plan | None, results: Results) -> str:
        values: dict[str, JsonValue] = {}
        for slot, planned_slot in zip(self._sample.answer, self._slots, strict=True):
            value = planned_value(planned_slot, plan, results) if plan else None
            values[slot.name] = self._table.guess(self._sample, slot) if value is None else value
        return format_answer(self._sample.answer, values)


def planned_value(slot: BlankSlot, plan: Plan, results: Results) -> JsonValue:
    """The answer of ``results`` to ``slot`` if one follows ``plan``; None where they say nothing of its type."""
    alike = [each for each in plan.slots if (each.slot.type, each.slot.unit) == (slot.type, slot.unit)]
    namesakes = [each for each in alike if each.slot.name == slot.name]
    for each in namesakes:
        if (value := _fitting(slot, _evaluated(each.from_, results))) is not None:
            return value
    for result in reversed(results):
        if result is not None and (value := _derived(slot, result)) is not None:
            return value
    for each in alike:
        if (value := _fitting(slot, _evaluated(each.from_, results))) is not None:
            return value
    return None


def _evaluated(expression: str, results: Results) -> JsonValue:
    try:
        return evaluate_from(expression, results)
    except (UnresolvedRef, ExpressionError):
        return None


def _fitting(slot: BlankSlot, value: JsonValue) -> JsonValue:
    """``value`` as an answer to ``slot``; None where it cannot be one."""
    if slot.type == "boolean":
        return value if isinstance(value, bool) else None
    if slot.type == "tolerance":
        return value if _is_number(value) else None
    if slot.type in ("open_text", "keywords", "reference_texts"):
        parts = value if isinstance(value, list) else [value]
        return " ".join(part for part in parts if isinstance(part, str)) or None
    if slot.type == "choice_set":
        members = value if isinstance(value, list) else [value]
        chosen = [choice for choice in slot.choices if choice in members]
        return cast(JsonValue, chosen) or None
    if slot.choices:
        return value if value in slot.choices else None
    return value if slot.type == "exact" and (isinstance(value, str) or _is_number(value)) else None


def _derived(slot: BlankSlot, result: dict[str, JsonValue]) -> JsonValue:
    """The answer of one result to ``slot``: a label of its set, a yes or no, or the number named most like it."""
    if slot.type in ("boolean", "exact", "file") and (slot.choices or slot.type == "boolean"):
        return next((value for value in result.values() if _fitting(slot, value) is not None), None)
    if slot.type != "tolerance":
        return None
    unit = canonical_unit(slot.unit)
    best: tuple[float, float] | None = None
    for name, value in result.items():
        if not _is_number(value):
            continue
        words, of_field = _words_and_unit(name, result)
        # A bare ``value`` is what was calculated for the purpose.
        alike = 1.0 if name == "value" else _dice(words, set(_words(slot.name)))
        number = _in_unit(cast(float, value), of_field, unit, lenient=name == "value")
        if alike and number is not None and (best is None or alike > best[0]):
            best = (alike, number)
    return best[1] if best else None


def _words_and_unit(name: str, result: dict[str, JsonValue]) -> tuple[set[str], str | None]:
    """The words of a field's name, and the unit: the one at its end (``diameter_mm``), or the one told beside it."""
    *words, last = name.split("_")
    unit = canonical_unit(last)
    if words and unit is not None:
        return set(_words("_".join(words))), unit
    stated_unit = result.get("unit")
    return set(_words(name)), canonical_unit(stated_unit) if isinstance(stated_unit, str) else None


def _in_unit(value: float, unit: str | None, target_unit: str | None, *, lenient: bool) -> float | None:
    """``value`` in the unit that is asked for; a number without unit has it where ``lenient``."""
    if unit == target_unit or (unit is None and lenient):
        return value
    if unit is None or target_unit is None or not compatible(unit, target_unit):
        return None
    return convert(value, unit, target_unit)


def _words(name: str) -> list[str]:
    """``weeds_in_field`` -> weed, field: without plurals and without what joins words."""
    return [word.removesuffix("s") for word in re.split(r"[_\W]+", name) if len(word) > 2]


def _dice(first: set[str], second: set[str]) -> float:
    """Overlap of two sets of words, from 0 to 1 (Dice 1945)."""
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
