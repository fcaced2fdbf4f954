"""Arguments that a model gives the same value in every call, although those of the reference vary.

A prompt that a model does not understand shows in this more clearly than in a score.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from agrotools.core import Record, ReferenceStep, ToolCall
from agrotools.scoring.summary import ConstantArgument

LEAST_CALLS = 5
"""Calls from which on one value is told: fewer questions may well ask for the same."""


@dataclass
class _Made:
    value: JsonValue
    n: int = 0
    differs: bool = False


class ConstantArgumentTally:
    """Tally of the calls of end-to-end records, by tool and argument."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], _Made] = {}
        self._asked = defaultdict[tuple[str, str], set[str]](set)
        """Values of the reference, written out; two are enough to know that they vary."""

    def add(self, record: Record) -> None:
        """Add a record of end-to-end; one without a reference says nothing."""
        if record.trajectory is None or record.sample.reference is None:
            return
        own = [step.call for step in record.trajectory.calls if step.call]
        for tool, argument, value in _arguments_of(own):
            made = self._made.setdefault((tool, argument), _Made(value))
            made.n += 1
            made.differs = made.differs or value != made.value
        called = {call.tool for call in own}
        for tool, argument, value in _arguments_of(record.sample.reference.steps):
            if tool not in called:
                continue
            values = self._asked[tool, argument]
            if len(values) < 2:
                values.add(str(value))

    def found(self) -> tuple[ConstantArgument, ...]:
        """Return the arguments of one value in at least :data:`LEAST_CALLS` calls, where the reference has several."""
        return tuple(
            ConstantArgument(tool=tool, argument=argument, value=made.value, calls=made.n)
            for (tool, argument), made in self._made.items()
            if made.n >= LEAST_CALLS and not made.differs and len(self._asked[tool, argument]) > 1
        )


def _arguments_of(
    calls: Iterable[ToolCall | ReferenceStep],
) -> Iterable[tuple[str, str, JsonValue]]:
    for call in calls:
        for argument, value in call.arguments.items():
            yield call.tool, argument, value
