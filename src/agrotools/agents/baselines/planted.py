"""Baseline ``planted:ABILITY``: a scripted agent of known ability, to check that a benchmark separates models.

It knows the reference calls (and is therefore *privileged*), but fails every decision with some probability: the tool
of each call (another one, or the call is skipped), each argument, and the reading of each result and of the answer. A
file is confused with any file that is shown, and misread numbers are off by a factor, so that questions with many files
or with close values fail more often. All its calls are run by the real tools, and it answers from what it read; where
that implies no answer, it guesses. It refuses an unanswerable question only if it failed no decision.

A decision is right with the probability ``ability ** (1 / 10)``: ability is the probability of ten right decisions.
Nothing depends on the measured difficulty. Agents of equal ability fail the same decisions only with the same seed; a
failure has two variants, so that the cache holds the results of most calls of later agents.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, cast

from pydantic import JsonValue

from agrotools.agents.baselines.guess import guessed_values
from agrotools.agents.baselines.simple import random_arguments
from agrotools.calling import get_tool, tool_specs
from agrotools.core import (
    AbstainSlot,
    Action,
    Answer,
    Arguments,
    CallTools,
    Mode,
    ReferenceStep,
    Sample,
    SampleView,
    Slot,
    Step,
    ToolCall,
    ToolSpec,
    UsageError,
)
from agrotools.core.form_item import form_item
from agrotools.core.record import Results
from agrotools.core.slot import asked_slots
from agrotools.formats.reference_results import derived_values, live_arguments
from agrotools.text.answer_form import UNKNOWN, format_answer
from agrotools.text.expressions import shows_no_answer

_DECISIONS = 10
_VARIANTS = 2
_FACTORS = (0.1, 0.5, 2.0, 10.0)
_SPREAD = 0.3
"""Standard deviation of the logarithm of the factor by which misread numbers are off."""


@dataclass(frozen=True)
class Planted:
    """Ability in [0, 1] and seed of a planted agent."""

    ability: float
    seed: int

    @classmethod
    def parse(cls, text: str, seed: int) -> "Planted":
        """Return the agent of ``ABILITY`` or ``ABILITY:SEED`` (default: ``seed``); UsageError for any other text."""
        match = re.fullmatch(r"(0(?:\.\d+)?|1(?:\.0+)?)(?::(\d{1,9}))?", text)
        if match is None:
            raise UsageError(
                f"baseline:planted:{text} should be baseline:planted:ABILITY or baseline:planted:ABILITY:SEED",
                hint="with an ability from 0 to 1 and a whole number, e.g. baseline:planted:0.6:1",
            )
        return cls(float(match[1]), int(match[2] or seed))

    def fails(self, rng: Random) -> bool:
        """Draw whether a decision fails."""
        return rng.random() >= self.ability ** (1 / _DECISIONS)


class _Slips(NamedTuple):
    skips: bool
    wrong_tool: bool
    wrong_arguments: frozenset[str]
    factor: float
    """Factor by which the numbers of the result are misread; 1 if they are not."""


class PlantedPolicy:
    """Policy of a planted agent for one sample, mode and epoch. Its failures are drawn before any call."""

    def __init__(self, sample: Sample, agent: Planted, mode: Mode, epoch: int) -> None:
        if sample.reference is None:
            raise ValueError(f"sample {sample.id} has no reference trajectory")
        self._slots = asked_slots(sample.answer)
        self._abstains = next(
            (slot for slot in sample.answer if isinstance(slot, AbstainSlot)), None
        )
        self._steps, self._declared = sample.reference.steps, sample.declared
        rng = Random(f"{agent.ability:g}/{agent.seed}/{sample.id}/{epoch}")
        self._slips = [_slips(step, agent, rng) for step in self._steps]
        # In step-by-step the history is the reference's, whatever this agent would have done.
        follows = mode == "step-by-step"
        self._places = [at for at, slips in enumerate(self._slips) if follows or not slips.skips]
        self._misreads = agent.fails(rng)
        self.failed = self._misreads or any(slips != _NO_SLIPS for slips in self._slips)
        """True if any decision is failed."""
        self._seed = f"{sample.id}/{rng.randrange(_VARIANTS)}"

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        results: list[dict[str, JsonValue] | None] = [None] * len(self._steps)
        calls = [step for step in history if step.kind == "call"]
        for at, step in zip(self._places, calls, strict=False):
            seen = step.observation.result if step.observation else None
            results[at] = cast("dict[str, JsonValue] | None", _scaled(seen, self._slips[at].factor))
        at = self._places[len(calls)] if len(calls) < len(self._places) else len(self._steps)
        if at < len(self._steps) and self._slips[at].skips:
            at += 1
        if at < len(self._steps) and (call := self._call(at, view, results)):
            return CallTools(calls=(call,))
        return Answer(text=self._answer(view, results))

    def _call(self, at: int, view: SampleView, results: Results) -> ToolCall | None:
        """Return the call of a step, with its mistakes; None if an earlier result that it needs is missing."""
        step, slips = self._steps[at], self._slips[at]
        arguments = live_arguments(step, results)
        if arguments is None:
            return None
        others = [
            spec
            for spec in tool_specs(view.toolset, declared=self._declared)
            if spec.name != step.tool
        ]
        if slips.wrong_tool and others:
            rng = Random(f"{self._seed}/{at}")
            spec = rng.choice(others)
            return ToolCall(tool=spec.name, arguments=random_arguments(spec, view, rng))
        spec = get_tool(step.tool, self._declared).spec
        wrong: Arguments = {
            name: _wrong_value(
                spec, name, arguments[name], view, Random(f"{self._seed}/{at}/{name}")
            )
            for name in sorted(slips.wrong_arguments & arguments.keys())
        }
        return ToolCall(tool=step.tool, arguments={**arguments, **wrong})

    def _answer(self, view: SampleView, results: Results) -> str:
        if self._abstains and not self.failed and shows_no_answer(self._abstains, results):
            return UNKNOWN
        values = derived_values(self._slots, results)
        if self._misreads:
            rng = Random(f"{self._seed}/answer")
            values = {
                slot.name: misread(slot, values[slot.name], rng)
                for slot in self._slots
                if slot.name in values
            }
        return format_answer(self._slots, {**guessed_values(view, self._slots), **values})


_NO_SLIPS = _Slips(skips=False, wrong_tool=False, wrong_arguments=frozenset(), factor=1.0)


def _slips(step: ReferenceStep, agent: Planted, rng: Random) -> _Slips:
    """Draw the failed decisions of a step: a third of the calls without the right tool are skipped."""
    wrong_tool = agent.fails(rng)
    skips = wrong_tool and rng.random() < 1 / 3
    wrong_arguments = frozenset(name for name in step.arguments if agent.fails(rng))
    return _Slips(skips, wrong_tool, wrong_arguments, _factor(rng) if agent.fails(rng) else 1.0)


def _factor(rng: Random) -> float:
    return rng.lognormvariate(0, _SPREAD)


def _wrong_value(
    spec: ToolSpec, name: str, value: JsonValue, view: SampleView, rng: Random
) -> JsonValue:
    """Return a plausible other value of an argument, or the value itself if there is none."""
    match spec.agreement.get(name):
        case "file" if view.files:
            return rng.choice(view.files).name
        case "choice" if isinstance(value, str):
            choices = _choices(
                cast("dict[str, JsonValue]", spec.parameters["properties"]).get(name)
            )
            return rng.choice([each for each in choices if each != value] or [value])
        case "expression" if isinstance(value, str):
            return f"({value}) * {rng.choice(_FACTORS)}"
        case "text" if isinstance(value, str) and " " in value:
            return value.rpartition(" ")[0]
        case "number" | "box" | "series" | "chart" | "variables":
            return _scaled(value, rng.choice(_FACTORS))
        case _:
            return value


def _choices(schema: JsonValue) -> list[JsonValue]:
    if not isinstance(schema, dict):
        return []
    parts = cast("list[JsonValue]", schema.get("anyOf", []))
    return [
        *cast("list[JsonValue]", schema.get("enum", [])),
        *(each for part in parts for each in _choices(part)),
    ]


def _scaled(value: JsonValue, factor: float) -> JsonValue:
    """Return ``value`` with all its numbers multiplied by ``factor``; whole numbers stay whole."""
    if isinstance(value, list):
        return [_scaled(item, factor) for item in value]
    if isinstance(value, dict):
        return {key: _scaled(item, factor) for key, item in value.items()}
    if factor == 1 or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return round(value * factor) if isinstance(value, int) else value * factor


def misread(slot: Slot, value: JsonValue, rng: Random) -> JsonValue:
    """Return another value than the one that was read: a number that is off, another label, half a text."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return _scaled(value, _factor(rng))
    others = [choice for choice in form_item(slot).choices if choice != value and [choice] != value]
    if isinstance(value, list):
        return [rng.choice(others)] if others else []
    if others:
        return rng.choice(others)
    return value[: len(value) // 2] if isinstance(value, str) else None
