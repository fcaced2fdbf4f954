"""Uniqueness of the order of tools in a reference trajectory.

The rule "no other sequence of tool *names* gives the answer" is checked as follows:

* Calls of one group count as one call: they apply one tool to several things, in any order.
* A call *uses* another if an argument refers to its result (``$ref``); the answer uses the calls that the ``from`` of a
  slot refers to. Every call must be used by a later call or by the answer.
* A sequence is a subset of the reference calls in an order in which each comes after all that it uses. It *gives the
  answer* if every slot follows from the true results of its calls. A slot follows if all results that its ``from``
  refers to are included; or if one of the results already contains its value unchanged, as a label or with at least
  four significant digits (unless other labels of its set also occur); or, for open text, if each key fact is stated in
  one of the results. If no result of the whole chain states a fact (because people wrote it), the last call is assumed
  to be needed.
* All sequences with at most as many calls as the reference are tried. The order is unique if every sequence that gives
  the answer has the same tool names in the same order as the reference.

So an unnecessary step is found by a shorter sequence, and two independent steps of different tools by a sequence with
the two exchanged. Calls of *other* tools are not tried, because their true results are unknown.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import Arguments, ExactSlot, OpenTextSlot, ReferenceTrajectory, Sample, Slot, ToleranceSlot
from agrotools.core.record import REF_PATTERN, iter_refs
from agrotools.scoring.open_text import states_fact

MOST_UNITS = 12
"""Maximum length of a chain that is searched (a group counts as one call)."""


class OrderFault(NamedTuple):
    """Reason why an order is not unique. ``other``: tools of another sequence that gives the answer, if one exists."""

    message: str
    other: tuple[str, ...] = ()


def order_faults(sample: Sample) -> list[OrderFault]:
    """Return the reasons why the order of tools in the sample's reference trajectory is not unique; empty if it is.

    Of other sequences that give the answer, only the shortest one is reported.
    """
    reference = sample.reference
    if reference is None or not reference.steps:
        return []
    needed = _needed_by_answer(sample)
    used = needed.union(*(steps_used(step.arguments) for step in reference.steps))
    idle = [index for index in range(len(reference.steps)) if index not in used]
    faults = [OrderFault(f"nothing uses the result of step {index} ({reference.steps[index].tool})") for index in idle]
    if len(_units(reference)) > MOST_UNITS:
        return [*faults, OrderFault(f"{len(reference.steps)} steps are too many to try all orders")]
    declared = tuple(reference.steps[unit[0]].tool for unit in _units(reference))
    others = [names for names in sequences_that_answer(sample) if names != declared]
    if others:
        other = min(others, key=lambda names: (len(names), names))
        other_order = " -> ".join(other) or "no call at all"
        faults.append(OrderFault(f"{other_order} gives the answer as well as {' -> '.join(declared)}", other))
    return faults


def sequences_that_answer(sample: Sample) -> set[tuple[str, ...]]:
    """Return the tool names (one per group) of every sequence of reference calls that gives the answer."""
    assert sample.reference is not None
    reference = sample.reference
    units = _units(reference)
    unit_of = {step: number for number, unit in enumerate(units) for step in unit}
    before = [
        {unit_of[used] for step in unit for used in steps_used(reference.steps[step].arguments)} for unit in units
    ]
    sequences: set[tuple[str, ...]] = set()
    seen: set[tuple[frozenset[int], tuple[str, ...]]] = set()
    open_ends: list[tuple[frozenset[int], tuple[str, ...]]] = [(frozenset(), ())]
    while open_ends:
        executed, names = open_ends.pop()
        if (executed, names) in seen:
            continue
        seen.add((executed, names))
        executed_steps = frozenset(step for unit in executed for step in units[unit])
        if all(_follows(slot, sample, executed_steps) for slot in sample.answer):
            sequences.add(names)
            continue  # Further calls add nothing to the answer.
        for number in range(len(units)):
            if number not in executed and before[number] <= executed:
                tool = reference.steps[units[number][0]].tool
                open_ends.append((executed | {number}, (*names, tool)))
    return sequences


def steps_used(arguments: Arguments) -> set[int]:
    """Return the steps whose results are used in the arguments of a call."""
    return {used for _, ref, _ in iter_refs(dict(arguments)) for used in steps_in(ref)}


def steps_in(text: str) -> set[int]:
    """Return the steps that a reference or an expression names."""
    return {int(match["step"]) for match in REF_PATTERN.finditer(text)}


def _units(reference: ReferenceTrajectory) -> list[list[int]]:
    """Return the steps in order, with those of a group in one list."""
    units: dict[tuple[str, int], list[int]] = {}
    for index, step in enumerate(reference.steps):
        units.setdefault(("step", index) if step.group is None else ("group", step.group), []).append(index)
    return list(units.values())


def _needed_by_answer(sample: Sample) -> set[int]:
    assert sample.reference is not None
    last = len(sample.reference.steps) - 1
    needed = [steps_in(slot.from_) if slot.from_ and slot.type != "open_text" else {last} for slot in sample.answer]
    return set[int]().union(*needed)


def _follows(slot: Slot, sample: Sample, made: frozenset[int]) -> bool:
    """True if the value of ``slot`` follows from the true results of the steps ``made``."""
    assert sample.reference is not None
    steps = sample.reference.steps
    results = [steps[index].truth for index in sorted(made)]
    if isinstance(slot, OpenTextSlot):
        stated = _facts_stated(slot, [step.truth for step in steps])
        return _facts_stated(slot, results) >= stated if stated else len(steps) - 1 in made
    if slot.from_ is None:
        return len(steps) - 1 in made
    return steps_in(slot.from_) <= made or _stands_there(slot, list(_leaves([*results])))


def _facts_stated(slot: OpenTextSlot, results: Sequence[dict[str, JsonValue] | None]) -> set[int]:
    texts = [text for text in _leaves([*results]) if isinstance(text, str)]
    return {number for number, fact in enumerate(slot.facts) if any(states_fact(fact, text) for text in texts)}


def _stands_there(slot: Slot, values: Sequence[JsonValue]) -> bool:
    if isinstance(slot, ExactSlot):
        texts = {value.casefold() for value in values if isinstance(value, str)}
        # If results contain several labels of the set, they do not determine the answer.
        if any(
            name.casefold() in texts for other in slot.distractors for name in (other, *slot.aliases.get(other, ()))
        ):
            return False
    return any(_is_value(slot, value) for value in values)


def _is_value(slot: Slot, value: JsonValue) -> bool:
    if isinstance(slot, ToleranceSlot):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        # Short numbers (counts, round shares) may be equal by chance.
        return len(f"{abs(value):.12g}".replace(".", "").lstrip("0")) >= 4 and (
            abs(value - slot.value) <= 1e-6 * abs(slot.value)
        )
    if isinstance(slot, ExactSlot) and isinstance(slot.value, str):
        return isinstance(value, str) and value.casefold() == slot.value.casefold()
    return False


def _leaves(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
