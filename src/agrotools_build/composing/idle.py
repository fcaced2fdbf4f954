"""Steps that decide nothing: a call that nothing uses, or that is made twice."""

from collections.abc import Sequence
from typing import cast

from agrotools.core import Arguments, ReferenceStep, Sample
from agrotools.core.record import literal_value
from agrotools_build.composing.tolerance import defaults_of
from agrotools_build.quality import idle_steps


def idle_step(sample: Sample) -> str:
    """Return a sentence on the first step that does not decide the answer; empty if each one does."""
    assert sample.reference is not None
    steps = sample.reference.steps
    for index in idle_steps(sample):
        return f"nothing uses the result of step {index + 1} ({steps[index].tool})"
    return _repeated(steps)


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
