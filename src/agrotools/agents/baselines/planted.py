"""Baseline ``planted:ABILITY``: a scripted agent of known ability, to check that a benchmark separates models.

It knows the reference calls (and is therefore *privileged*), but makes each of them right only with some probability.
Otherwise it makes a mistake that models make: another tool, a wrong argument, a skipped step, a misread number. All
its calls are run by the real tools, and it answers from what they returned; where that implies no answer, it guesses.
It refuses an unanswerable question only if it made no mistake.

A sample of difficulty ``level`` in [0, 1] is solved without a mistake with the probability ``ability ** 4 ** (2 *
level - 1)``: the ability itself at medium difficulty, 1 and 0 at any for abilities of 1 and 0. The probability is
spread evenly over the calls and the answer. Agents of equal ability make the same mistakes only with the same seed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import cast

from pydantic import JsonValue

from agrotools.agents.baselines.simple import blank, derived_values, live_arguments, random_arguments
from agrotools.core import (
    AbstainSlot,
    Action,
    Answer,
    Arguments,
    CallTools,
    Mode,
    Sample,
    SampleView,
    Slot,
    Step,
    ToleranceSlot,
    ToolCall,
    ToolSpec,
    UsageError,
)
from agrotools.core.record import Results
from agrotools.core.slot import asked_slots
from agrotools.text import format_answer
from agrotools.text.answer_form import guessed_values
from agrotools.text.refusal import refusal_of, shows_no_answer
from agrotools.tools import get_tool, tool_specs

SKIPPED, WRONG_TOOL, WRONG_ARGUMENT = "skipped step", "wrong tool", "wrong argument"
_MISTAKES = (SKIPPED, WRONG_TOOL, WRONG_ARGUMENT, WRONG_ARGUMENT)
_FACTORS = (0.1, 0.5, 2.0, 10.0)


@dataclass(frozen=True)
class Planted:
    """Ability in [0, 1] and seed of a planted agent."""

    ability: float
    seed: int

    @classmethod
    def parse(cls, text: str, seed: int) -> "Planted":
        """Return the agent of ``ABILITY`` or ``ABILITY:SEED``; ``seed`` is used if the text has none.

        Raises:
            UsageError: the text is something else.
        """
        match = re.fullmatch(r"(0(?:\.\d+)?|1(?:\.0+)?)(?::(\d{1,9}))?", text)
        if match is None:
            raise UsageError(
                f"baseline:planted:{text} should be baseline:planted:ABILITY or baseline:planted:ABILITY:SEED",
                hint="with an ability from 0 to 1 and a whole number, e.g. baseline:planted:0.6:1",
            )
        return cls(float(match[1]), int(match[2] or seed))

    def success(self, level: float) -> float:
        """Return the probability of no mistake in a sample of this difficulty."""
        return self.ability**4 ** (2 * level - 1)


def difficulty_level(sample: Sample) -> float:
    """Return the measured ``level`` of a sample, in [0, 1]; without one, it follows from its calls and unused files."""
    measured = sample.difficulty
    n_calls = len(sample.reference.steps) if sample.reference else 1
    estimated = (n_calls - 1) / 5 + measured.get("unused_files", 0.0) / 10
    return min(1.0, max(0.0, measured.get("level", estimated)))


class PlantedPolicy:
    """Policy of a planted agent for one sample, mode and epoch. Its mistakes are drawn before any call."""

    def __init__(self, sample: Sample, agent: Planted, mode: Mode, epoch: int) -> None:
        if sample.reference is None:
            raise ValueError(f"sample {sample.id} has no reference trajectory")
        self._slots = asked_slots(sample.answer)
        self._abstains = next((slot for slot in sample.answer if isinstance(slot, AbstainSlot)), None)
        self._steps = sample.reference.steps
        self._seed = f"{agent.ability:g}/{agent.seed}/{sample.id}/{epoch}"
        right = agent.success(difficulty_level(sample)) ** (1 / (len(self._steps) + 1))
        rng = Random(self._seed)
        self._mistakes = [None if rng.random() < right else rng.choice(_MISTAKES) for _ in self._steps]
        self._misreads = rng.random() >= right
        # In step-by-step the history is the reference's, whatever this agent would have done.
        self._skips = [mistake == SKIPPED and mode != "step-by-step" for mistake in self._mistakes]

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        results: list[dict[str, JsonValue] | None] = [None] * len(self._steps)
        calls = [step for step in history if step.kind == "call"]
        places = [at for at, skipped in enumerate(self._skips) if not skipped]
        for at, step in zip(places, calls, strict=False):
            results[at] = step.observation.result if step.observation else None
        at = places[len(calls)] if len(calls) < len(places) else len(self._steps)
        if at < len(self._steps) and self._mistakes[at] == SKIPPED:
            at += 1
        if at < len(self._steps) and (call := self._call(at, view, results)):
            return CallTools(calls=(call,))
        return Answer(text=self._answer(view, results))

    def _call(self, at: int, view: SampleView, results: Results) -> ToolCall | None:
        """Return the call of a step, with its mistake; None if an earlier result that it needs is missing."""
        step, mistake = self._steps[at], self._mistakes[at]
        arguments = live_arguments(step, results)
        if arguments is None or mistake is None:
            return None if arguments is None else ToolCall(tool=step.tool, arguments=arguments)
        rng = Random(f"{self._seed}/{at}")
        if mistake == WRONG_ARGUMENT and (changed := _with_wrong_argument(step.tool, arguments, view, rng)):
            return ToolCall(tool=step.tool, arguments=changed)
        others = [spec for spec in tool_specs(view.toolset) if spec.name != step.tool]
        if not others:
            return ToolCall(tool=step.tool, arguments={})
        spec = rng.choice(others)
        return ToolCall(tool=spec.name, arguments=random_arguments(spec, view, rng))

    def _answer(self, view: SampleView, results: Results) -> str:
        slip = self._misreads or any(self._mistakes)
        if self._abstains and not slip and shows_no_answer(self._abstains, results):
            return refusal_of(self._abstains)
        values = derived_values(self._slots, results)
        if self._misreads:
            rng = Random(f"{self._seed}/answer")
            values = {slot.name: _misread(slot, values[slot.name], rng) for slot in self._slots if slot.name in values}
        return format_answer(self._slots, {**guessed_values(view, self._slots), **values})


def _with_wrong_argument(tool: str, arguments: Arguments, view: SampleView, rng: Random) -> Arguments | None:
    """Return the arguments with one wrong value; None if no argument can be changed."""
    spec = get_tool(tool).spec
    changed = {name: _wrong_value(spec, name, value, view, rng) for name, value in arguments.items()}
    names = [name for name, value in changed.items() if value is not None]
    if not names:
        return None
    name = rng.choice(names)
    return {**arguments, name: changed[name]}


def _wrong_value(spec: ToolSpec, name: str, value: JsonValue, view: SampleView, rng: Random) -> JsonValue:
    """Return a plausible wrong value of an argument; None if there is none."""
    match spec.agreement.get(name):
        case "file":
            others = [file.name for file in view.files if file.name != value]
            return rng.choice(others) if others else None
        case "choice" if isinstance(value, str):
            choices = _choices(cast("dict[str, JsonValue]", spec.parameters["properties"]).get(name))
            return rng.choice([each for each in choices if each != value] or [None])
        case "expression" if isinstance(value, str):
            return f"({value}) * {rng.choice(_FACTORS)}"
        case "text" if isinstance(value, str) and " " in value:
            return value.rpartition(" ")[0]
        case "number" | "box" | "series" | "chart" | "variables":
            scaled = _scaled(value, rng.choice(_FACTORS))
            return None if scaled == value else scaled
        case _:
            return None


def _choices(schema: JsonValue) -> list[JsonValue]:
    """Return the values that the JSON Schema of an argument lists."""
    if not isinstance(schema, dict):
        return []
    parts = cast("list[JsonValue]", schema.get("anyOf", []))
    return [*cast("list[JsonValue]", schema.get("enum", [])), *(each for part in parts for each in _choices(part))]


def _scaled(value: JsonValue, factor: float) -> JsonValue:
    """Return ``value`` with all its numbers multiplied by ``factor``; whole numbers stay whole."""
    if isinstance(value, bool) or not isinstance(value, int | float | list | dict):
        return value
    if isinstance(value, list):
        return [_scaled(item, factor) for item in value]
    if isinstance(value, dict):
        return {key: _scaled(item, factor) for key, item in value.items()}
    return round(value * factor) if isinstance(value, int) else value * factor


def _misread(slot: Slot, value: JsonValue, rng: Random) -> JsonValue:
    """Return another value than the one that was read: a number outside the tolerance, another label, half a text."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        margin = slot.margin if isinstance(slot, ToleranceSlot) else 0.0
        wrong = value * rng.choice(_FACTORS)
        return wrong if abs(wrong - value) > margin else value + 3 * margin + 1
    others = [choice for choice in blank(slot).choices if choice != value and [choice] != value]
    if isinstance(value, list):
        return [rng.choice(others)] if others else []
    if others:
        return rng.choice(others)
    return value[: len(value) // 2] if isinstance(value, str) else None
