"""Simple baselines: upper bounds that see the gold, lower bounds that see only the prompt or nothing, and replays.

Upper bounds make the reference calls, executed by real tools (``oracle``) or answered with the truth
(``perfect-tools``), and are marked *privileged*. Their errors are those of the tools (oracle) or of the benchmark
(perfect-tools, which must reach 100 % wherever the truth is known). Examination questions have no tools; there,
perfect-tools gives the correct answer from the files. Lower bounds are ``echo`` and ``random``, and ``guess`` in
:mod:`.guess`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from random import Random
from typing import Any

from pydantic import JsonValue

from agrotools.calling import tool_specs
from agrotools.core import (
    AbstainSlot,
    Action,
    Answer,
    CallTools,
    Halt,
    Record,
    Sample,
    SampleView,
    Slot,
    Step,
    ToolCall,
    ToolSpec,
    Unparseable,
)
from agrotools.core.form_item import FormItem, form_item
from agrotools.core.slot import asked_slots
from agrotools.formats.reference_results import derived_values, live_arguments
from agrotools.text.answer_form import UNKNOWN, format_answer
from agrotools.text.expressions import shows_no_answer


class OraclePolicy:
    """Policy that makes the reference calls in order and derives the answer from their results.

    ``knows_gold``: it also knows the gold of slots that cannot be derived from tool results.
    """

    def __init__(self, sample: Sample, *, knows_gold: bool = False) -> None:
        if sample.reference is None:
            raise ValueError(f"sample {sample.id} has no reference trajectory")
        self._slots = sample.answer
        self._steps = sample.reference.steps
        self._knows_gold = knows_gold

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        observations = [step.observation for step in history if step.kind == "call"]
        results = [observation.result if observation else None for observation in observations]
        if len(results) < len(self._steps):
            step = self._steps[len(results)]
            arguments = live_arguments(step, results)
            if arguments is not None:
                return CallTools(calls=(ToolCall(tool=step.tool, arguments=arguments),))
        for slot in self._slots:
            if isinstance(slot, AbstainSlot) and (
                self._knows_gold or shows_no_answer(slot, results)
            ):
                return Answer(text=UNKNOWN)
        slots = asked_slots(self._slots)
        return Answer(
            text=format_answer(slots, derived_values(slots, results, knows_gold=self._knows_gold))
        )


class ImmediatePolicy:
    """Policy that gives ``answer(sample, view)`` immediately, at every step."""

    def __init__(self, sample: Sample, answer: Callable[[Sample, SampleView], str]) -> None:
        self._sample = sample
        self._answer = answer

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        return Answer(text=self._answer(self._sample, view))


# Fixed before any benchmark was built: plausible ranges by unit.
NUMBER_RANGE: dict[str | None, tuple[float, float]] = {
    None: (0.01, 1000.0),
    "%": (0.1, 100.0),
    "fraction": (0.001, 1.0),
    "mm": (1.0, 1000.0),
    "cm": (1.0, 1000.0),
    "m": (0.1, 100.0),
    "ha": (0.01, 100.0),
    "m^2": (1.0, 100_000.0),
    "px": (1.0, 10_000_000.0),
}
_WORDS = ("crop", "weed", "soil", "leaf", "fruit", "tree", "area", "share", "image")


class RandomPolicy:
    """Policy that decides at random, seeded by run seed, sample, epoch and length of the history."""

    def __init__(self, sample: Sample, seed: int, epoch: int) -> None:
        self._slots = asked_slots(sample.answer)
        self._declared = sample.declared
        self._seed = f"{seed}/{sample.id}/{epoch}"

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        rng = Random(f"{self._seed}/{len(history)}")
        specs = tool_specs(view.toolset, declared=self._declared)
        choice = rng.randrange(len(specs) + 1)
        if choice == len(specs):
            return Answer(text=random_answer(self._slots, rng))
        spec = specs[choice]
        return CallTools(
            calls=(ToolCall(tool=spec.name, arguments=random_arguments(spec, view, rng)),)
        )


def random_answer(slots: Sequence[Slot], rng: Random) -> str:
    """Return a random value for every slot: uniform over its labels, or log-uniform over the range of its unit."""
    values = {slot.name: _random_value(form_item(slot), rng) for slot in slots}
    return format_answer(
        slots, {name: value for name, value in values.items() if value is not None}
    )


def _random_value(slot: FormItem, rng: Random) -> JsonValue:
    if slot.type == "boolean":
        return rng.random() < 0.5
    if slot.type == "choice_set":
        return [choice for choice in slot.choices if rng.random() < 0.5] or [
            rng.choice(slot.choices)
        ]
    if slot.takes_several:
        chosen = rng.randrange(1, 2 ** len(slot.choices))
        return "".join(choice for place, choice in enumerate(slot.choices) if chosen >> place & 1)
    if slot.choices:
        return rng.choice(slot.choices)
    if slot.type in ("tolerance", "exact"):
        least, most = NUMBER_RANGE.get(slot.unit, NUMBER_RANGE[None])
        return float(f"{math.exp(rng.uniform(math.log(least), math.log(most))):.4g}")
    if slot.free_text:
        return " ".join(rng.choice(_WORDS) for _ in range(8))
    return None


def random_arguments(spec: ToolSpec, view: SampleView, rng: Random) -> dict[str, JsonValue]:
    """Return arguments that match the tool's JSON Schema: the required ones, and optional ones with probability 0.5."""
    schema: dict[str, Any] = spec.parameters
    arguments: dict[str, JsonValue] = {}
    for name, of_argument in schema.get("properties", {}).items():
        if name not in schema.get("required", ()) and rng.random() < 0.5:
            continue
        if spec.agreement.get(name) == "file":
            arguments[name] = (
                rng.choice([file.name for file in view.files]) if view.files else "none"
            )
        else:
            arguments[name] = _random_json(of_argument, rng)
    return arguments


def _random_json(schema: Mapping[str, Any], rng: Random) -> JsonValue:
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return _random_json(rng.choice(schema["anyOf"]), rng)
    match schema.get("type"):
        case "boolean":
            return rng.random() < 0.5
        case "integer" | "number" as kind:
            least = float(schema.get("minimum", schema.get("exclusiveMinimum", 0)))
            most = float(schema.get("maximum", schema.get("exclusiveMaximum", least + 1000)))
            if kind == "integer":
                return rng.randint(math.ceil(least), math.floor(most))
            # The open interval lies within all closed and half-open ones.
            return least + (most - least) * rng.uniform(0.001, 0.999)
        case "array":
            fewest = schema.get("minItems", 1)
            n = rng.randint(fewest, min(schema.get("maxItems", fewest + 3), fewest + 3))
            return [_random_json(schema.get("items", {"type": "number"}), rng) for _ in range(n)]
        case "object":
            properties, required = schema.get("properties", {}), schema.get("required", ())
            return {
                name: _random_json(properties[name], rng) for name in properties if name in required
            }
        case "string":
            return rng.choice(_WORDS)
        case _:
            return None


class ReplayPolicy:
    """Policy that replays one record: its predicted actions in step-by-step, its turns in the other modes."""

    def __init__(self, record: Record) -> None:
        self._actions: tuple[Action, ...] = (
            record.actions if record.actions is not None else _turns(record)
        )
        self._step_by_step = record.actions is not None

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        n_done = len(history) if self._step_by_step else len({step.turn for step in history})
        if n_done < len(self._actions):
            return self._actions[n_done]
        return Halt(termination="max_steps", reason="the replayed run ended here")


def _turns(record: Record) -> tuple[Action, ...]:
    if record.trajectory is None:
        return ()
    actions: list[Action] = []
    for _, group in groupby(record.trajectory.steps, key=lambda step: step.turn):
        steps = list(group)
        first = steps[0]
        if first.kind == "answer":
            given = {
                name: getattr(first, name)
                for name in ("text", "thought", "reply", "form_replies", "formless")
            }
            actions.append(Answer(**given))
        elif first.kind == "unparseable":
            actions.append(Unparseable(text=first.text, reason=first.reason, reply=first.reply))
        else:
            calls = tuple(step.call for step in steps if step.call is not None)
            shown = first.observation if first.source == "none" else None
            refused = shown.error if shown is not None else None
            actions.append(
                CallTools(calls=calls, thought=first.thought, reply=first.reply, refused=refused)
            )
    if record.trajectory.termination not in ("answered", "no_form", "max_steps", "unparseable"):
        halt = record.trajectory
        actions.append(Halt(termination=halt.termination, reason=halt.reason, reply=halt.halted_by))
    return tuple(actions)
