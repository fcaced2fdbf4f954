"""Steps that decide nothing: a call that nothing uses, that is made twice, or whose value may be any."""

import math
from collections.abc import Sequence
from typing import cast

from agrotools.core import Arguments, ReferenceStep, Sample, Slot, ToleranceSlot
from agrotools.core.record import literal_value
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools.text.json_kinds import is_number
from agrotools_build.composing.reasons import CannotCompose
from agrotools_build.composing.running import results_of
from agrotools_build.composing.tolerance import Root, defaults_of, recalculated, roots_of, value_at
from agrotools_build.quality import idle_steps

_CHANGES = (0.0, 0.5, 2.0, 10.0)
"""Factors by which a measured value is changed to see whether the answer follows it."""


def idle_step(sample: Sample) -> str:
    """Return a sentence on the first step that does not decide the answer; empty if each one does."""
    assert sample.reference is not None
    steps = sample.reference.steps
    for index in idle_steps(sample):
        return f"nothing uses the result of step {index + 1} ({steps[index].tool})"
    return _repeated(steps) or _undecided(sample) or _unchanged(steps)


def _repeated(steps: Sequence[ReferenceStep]) -> str:
    """Return which call is made twice: the second one measures nothing new."""
    made: dict[str, int] = {}
    for number, step in enumerate(steps, start=1):
        given = {**defaults_of(step.tool), **cast(Arguments, literal_value(dict(step.arguments)))}
        call = repr((step.tool, sorted((name, repr(value)) for name, value in given.items())))
        if call in made:
            return f"step {number} ({step.tool}) is the same call as step {made[call]}"
        made[call] = number
    return ""


def _undecided(sample: Sample) -> str:
    """Return which measured value the answer rests on, and would be the same whatever it is."""
    assert sample.reference is not None
    steps = sample.reference.steps
    found = [root for slot in sample.answer for root in roots_of(slot.from_ or "", steps)]
    for root in dict.fromkeys(found):
        if not _decides(root, sample):
            what = f"{root.path} of step {root.step + 1} ({steps[root.step].tool})"
            return f"the answer is the same whatever {what} is"
    return ""


def _unchanged(steps: Sequence[ReferenceStep]) -> str:
    """Return which calculation gives what was measured, whatever that is: ``s * 1``."""
    for number, step in enumerate(steps):
        value = f"steps[{number}].observation.value"
        for root in roots_of(value, steps) if step.tool == "calculate" else ():
            if _gives(value, root, steps):
                measured = f"{root.path} of step {root.step + 1}"
                return f"step {number + 1} (calculate) gives {measured} unchanged"
    return ""


def _gives(expression: str, root: Root, steps: Sequence[ReferenceStep]) -> bool:
    """Return True if an expression has the value that was measured, also if that were another one."""
    measured = value_at(root.path, results_of(steps)[root.step])
    if not is_number(measured):
        return False
    for factor in (1.0, *_CHANGES):
        changed = float(str(measured)) * factor
        try:
            value = evaluate_from(expression, recalculated(steps, {root: changed}))
        except (ValueError, ExpressionError, CannotCompose):
            return False
        if not is_number(value) or not math.isclose(float(str(value)), changed, rel_tol=1e-9):
            return False
    return True


def _decides(root: Root, sample: Sample) -> bool:
    """Return True if another measured value gives another answer."""
    assert sample.reference is not None
    steps = sample.reference.steps
    value = value_at(root.path, results_of(steps)[root.step])
    if not is_number(value):
        return True
    for factor in _CHANGES:
        try:
            results = recalculated(steps, {root: float(str(value)) * factor})
            changed = [evaluate_from(slot.from_, results) for slot in sample.answer if slot.from_]
        except (ValueError, ExpressionError, CannotCompose):
            continue
        bound = [slot for slot in sample.answer if slot.from_]
        if any(_differs(slot, other) for slot, other in zip(bound, changed, strict=True)):
            return True
    return False


def _differs(slot: Slot, value: object) -> bool:
    if isinstance(slot, ToleranceSlot):
        return is_number(value) and abs(float(str(value)) - slot.value) > slot.margin
    return value != getattr(slot, "value", None)
