"""Reference calls whose result decides: with that of another question in its place, the right answer changes.

A call may be there for show: nothing uses its result, or any result of its tool leads to the same answer. For each
call, true results of the same tool in other questions take its place, one after the other, and the answer is derived
anew by the ``from`` of its slots. No tool is run: of later calls whose arguments change thereby, ``calculate`` is
calculated anew, and any other is taken to return something else. So a call that only finds a region counts as deciding
if a later result decides. Charts are compared as they are drawn, open text by its entry in the knowledge base.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from agrotools.core import (
    ChoiceSetSlot,
    ExactSlot,
    ReferenceStep,
    Sample,
    Slot,
    ToleranceSlot,
    UnresolvedRef,
)
from agrotools.core.record import resolved_value
from agrotools.loading.describing import DecidingCalls
from agrotools.text.expressions import ExpressionError, evaluate, evaluate_from
from agrotools_build.references import steps_in, steps_used

OTHERS = 12
"""Most other results that are tried for a call: each moves its share by at least a twelfth."""
DECIDES_FROM = 0.25
"""Share of other results with which the answer changes, from which a call decides. A yes or no stays the same with half
of all results, the choice of one of four pictures with most results of a picture that is not chosen."""
_CALCULATES = "calculate"

Result = dict[str, JsonValue]


class TriedCall(NamedTuple):
    """A call of a reference, by its sample and number from 0.

    ``share``: share of other results with which the answer changes; None if no other question has such a result.
    """

    sample: str
    step: int
    tool: str
    share: float | None

    @property
    def decides(self) -> bool:
        return self.share is not None and self.share >= DECIDES_FROM


def tried_calls(samples: Sequence[Sample]) -> list[TriedCall]:
    """Return the calls of all answerable questions whose true results are all known."""
    chains = [_Chain(sample) for sample in samples if _has_true_results(sample)]
    results: defaultdict[str, list[tuple[str, Result]]] = defaultdict(list)
    for chain in chains:
        for step, truth in zip(chain.steps, chain.truths, strict=True):
            results[step.tool].append((chain.sample.id, truth))
    return [
        TriedCall(chain.sample.id, number, step.tool, _share(chain, number, results[step.tool]))
        for chain in chains
        for number, step in enumerate(chain.steps)
    ]


def count_deciding(samples: Sequence[Sample]) -> DecidingCalls | None:
    """Return counts of the calls that decide; None if no question has true results of all its calls."""
    calls = tried_calls(samples)
    if not calls:
        return None
    tools: defaultdict[str, set[str]] = defaultdict(set)
    numbers = Counter[str]()
    for call in calls:
        tools[call.sample] |= {call.tool} if call.decides else set()
        numbers[call.sample] += call.decides
    by_tools = Counter(len(each) for each in tools.values())
    by_calls = Counter(numbers.values())
    return DecidingCalls(
        questions=len(tools),
        calls=sum(call.share is not None for call in calls),
        deciding=sum(call.decides for call in calls),
        tools_per_question={str(number): by_tools[number] for number in sorted(by_tools)},
        calls_per_question={str(number): by_calls[number] for number in sorted(by_calls)},
    )


def _has_true_results(sample: Sample) -> bool:
    steps = sample.reference.steps if sample.reference else ()
    return sample.answerable and bool(steps) and all(step.truth is not None for step in steps)


def _share(chain: "_Chain", number: int, results: Sequence[tuple[str, Result]]) -> float | None:
    """Return the share of results of other samples with which the answer changes; None without any to try."""
    others = [result for sample, result in results if sample != chain.sample.id]
    Random(f"{chain.sample.id} {number}").shuffle(others)
    changes: list[bool] = []
    for other in others:
        changed = chain.changes(number, other)
        if changed is not None:
            changes.append(changed)
        if len(changes) == OTHERS:
            break
    return sum(changes) / len(changes) if changes else None


class _Chain:
    """The calls of a sample with their true results, and what follows from these."""

    def __init__(self, sample: Sample) -> None:
        assert sample.reference is not None
        self.sample = sample
        self.steps: tuple[ReferenceStep, ...] = sample.reference.steps
        self.truths = [cast(Result, step.truth) for step in self.steps]
        self._arguments = [resolved_value(dict(step.arguments), self.truths) for step in self.steps]
        self._used = [steps_used(step.arguments) for step in self.steps]
        self._values = {
            slot.name: evaluate_from(slot.from_, self.truths)
            for slot in sample.answer
            if slot.from_ is not None
        }
        """What the true results give for each slot."""

    def changes(self, number: int, result: Result) -> bool | None:
        """Return True if the answer changes with another result of a call; None if that lacks a field that is used."""
        results = [*self.truths]
        results[number] = result
        changed = {number} if result != self.truths[number] else set[int]()
        unknown: set[int] = set()
        try:
            for later in range(number + 1, len(self.steps)):
                used = self._used[later]
                if used & unknown:
                    unknown.add(later)
                elif used & changed:
                    self._change(later, results, changed, unknown)
            return any(
                self._slot_changes(slot, results, changed, unknown) for slot in self.sample.answer
            )
        except (UnresolvedRef, ExpressionError):
            return None

    def _change(
        self, later: int, results: list[Result], changed: set[int], unknown: set[int]
    ) -> None:
        """Calculate a later call anew, or note that its result is unknown, if its arguments change."""
        step = self.steps[later]
        arguments = resolved_value(dict(step.arguments), results)
        if arguments == self._arguments[later]:
            return
        if step.tool != _CALCULATES:
            unknown.add(later)
            return
        plain = cast("Mapping[str, Any]", arguments)
        value = evaluate(plain["expression"], plain.get("variables") or {})
        results[later] = {**results[later], "value": cast(JsonValue, value)}
        if results[later] != self.truths[later]:
            changed.add(later)

    def _slot_changes(
        self, slot: Slot, results: Sequence[Result], changed: set[int], unknown: set[int]
    ) -> bool:
        """Return True if the value of a slot changes, a number by more than its tolerance.

        A slot without ``from`` follows from all results.
        """
        if slot.from_ is None:
            return bool(changed | unknown)
        used = steps_in(slot.from_)
        if used & unknown:
            return True
        if not used & changed:
            return False
        before = self._values[slot.name]
        after = evaluate_from(slot.from_, results)
        if isinstance(slot, ToleranceSlot):
            both = isinstance(before, int | float) and isinstance(after, int | float)
            return not both or abs(cast(float, after) - cast(float, before)) > slot.margin
        if isinstance(slot, ExactSlot):
            return after not in (before, *slot.names)
        if isinstance(slot, ChoiceSetSlot) and isinstance(after, list):
            return {*map(str, after)} != {*slot.value}
        return after != before
