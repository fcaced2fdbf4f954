"""Simple baselines: ``echo`` and ``guess`` from the prompt alone, ``random`` by chance, ``replay`` of a run."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import cast

from pydantic import JsonValue

from agrotools.core import (
    Action,
    Answer,
    CallTools,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
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
from agrotools.text import format_answer
from agrotools.text.answer_form import guessed_values
from agrotools.tools import tool_specs


class EchoPolicy:
    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        return Answer(text=view.query)


class GuessPolicy:
    """Policy that answers at once, at every step, from what the answer form shows."""

    def __init__(self, sample: Sample) -> None:
        self._slots = sample.answer

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        return Answer(text=format_answer(self._slots, guessed_values(view, self._slots)) or "I cannot tell.")


# Fixed before any benchmark was built: the span within which a sensible quantity of that unit may lie.
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


@dataclass(frozen=True)
class BlankSlot:
    """Name, type, unit and label set of a slot: exactly what the answer form shows every policy."""

    name: str
    type: str
    unit: str | None
    choices: tuple[str, ...]
    free_text: bool = False


def blank(slot: Slot) -> BlankSlot:
    """``slot`` without its gold."""
    choices: tuple[str, ...] = ()
    if (isinstance(slot, ExactSlot) and isinstance(slot.value, str)) or isinstance(slot, FileSlot | ChoiceSetSlot):
        choices = tuple(sorted(slot.choices))
    else:
        choices = slot.letters
    kind = "several_options" if slot.takes_several else slot.type
    return BlankSlot(slot.name, kind, getattr(slot, "unit", None), choices, slot.free_text)


class RandomPolicy:
    """Policy with random decisions, seeded by run seed, sample, epoch and length of the history."""

    def __init__(self, sample: Sample, seed: int, epoch: int) -> None:
        self._slots = sample.answer
        self._seed = f"{seed}/{sample.id}/{epoch}"

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        rng = Random(f"{self._seed}/{len(history)}")
        specs = tool_specs(view.toolset)
        choice = rng.randrange(len(specs) + 1)
        if choice == len(specs):
            return Answer(text=random_answer(self._slots, rng))
        spec = specs[choice]
        return CallTools(calls=(ToolCall(tool=spec.name, arguments=random_arguments(spec, view, rng)),))


def random_answer(slots: Sequence[Slot], rng: Random) -> str:
    """One value for every slot, uniform over its labels or log-uniform over the range of its unit."""
    values = {slot.name: _random_value(blank(slot), rng) for slot in slots}
    return format_answer(slots, {name: value for name, value in values.items() if value is not None})


def _random_value(slot: BlankSlot, rng: Random) -> JsonValue:
    if slot.type == "boolean":
        return rng.random() < 0.5
    if slot.type == "choice_set":
        return [choice for choice in slot.choices if rng.random() < 0.5] or [rng.choice(slot.choices)]
    if slot.type == "several_options":
        chosen = rng.randrange(1, 2 ** len(slot.choices))
        return "".join(choice for place, choice in enumerate(slot.choices) if chosen >> place & 1)
    if slot.choices:
        return rng.choice(slot.choices)
    if slot.type in ("tolerance", "exact"):
        return _log_uniform(NUMBER_RANGE.get(slot.unit, NUMBER_RANGE[None]), rng)
    if slot.free_text:
        return " ".join(rng.choice(_WORDS) for _ in range(8))
    return None


def _log_uniform(span: tuple[float, float], rng: Random) -> float:
    return float(f"{math.exp(rng.uniform(math.log(span[0]), math.log(span[1]))):.4g}")


def random_arguments(spec: ToolSpec, view: SampleView, rng: Random) -> dict[str, JsonValue]:
    """Arguments that pass the tool's JSON Schema: every required one, and each optional one half of the time."""
    properties = cast(dict[str, dict[str, JsonValue]], spec.parameters.get("properties", {}))
    required = cast(list[str], spec.parameters.get("required", []))
    arguments: dict[str, JsonValue] = {}
    for name, schema in properties.items():
        if name not in required and rng.random() < 0.5:
            continue
        if spec.agreement.get(name) == "file":
            arguments[name] = rng.choice([file.name for file in view.files]) if view.files else "none"
        else:
            arguments[name] = _random_json(schema, rng)
    return arguments


def _random_json(schema: Mapping[str, JsonValue], rng: Random) -> JsonValue:
    if "enum" in schema:
        return rng.choice(cast(list[JsonValue], schema["enum"]))
    if "anyOf" in schema:
        return _random_json(rng.choice(cast(list[dict[str, JsonValue]], schema["anyOf"])), rng)
    kind = schema.get("type")
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("integer", "number"):
        return _random_number(schema, rng, whole=kind == "integer")
    if kind == "array":
        return _random_array(schema, rng)
    if kind == "object":
        properties = cast(dict[str, dict[str, JsonValue]], schema.get("properties", {}))
        required = cast(list[str], schema.get("required", []))
        return {name: _random_json(properties[name], rng) for name in properties if name in required}
    if kind == "string":
        return rng.choice(_WORDS)
    return None


def _random_array(schema: Mapping[str, JsonValue], rng: Random) -> JsonValue:
    least = int(cast(float, schema.get("minItems", 1)))
    most = int(cast(float, schema.get("maxItems", least + 3)))
    items = cast(dict[str, JsonValue], schema.get("items", {"type": "number"}))
    return [_random_json(items, rng) for _ in range(rng.randint(least, min(most, least + 3)))]


def _random_number(schema: Mapping[str, JsonValue], rng: Random, *, whole: bool) -> float | int:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    least = float(cast(float, low))
    most = float(cast(float, high)) if high is not None else least + 1000
    if whole:
        return rng.randint(math.ceil(least), math.floor(most))
    # The open interval is inside every closed and half-open one.
    return least + (most - least) * rng.uniform(0.001, 0.999)


class ReplayPolicy:
    """Replays one record: its predicted actions in step-by-step, its turns elsewhere."""

    def __init__(self, record: Record) -> None:
        self._actions: tuple[Action, ...] = record.actions if record.actions is not None else _turns(record)
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
            answer = Answer(text=first.text, thought=first.thought, reply=first.reply, form_reply=first.form_reply)
            actions.append(answer)
        elif first.kind == "unparseable":
            actions.append(Unparseable(text=first.text, reason=first.reason, reply=first.reply))
        else:
            calls = tuple(step.call for step in steps if step.call is not None)
            refused = first.observation.error if first.refused and first.observation else None
            actions.append(CallTools(calls=calls, thought=first.thought, reply=first.reply, refused=refused))
    if record.trajectory.termination not in ("answered", "max_steps", "unparseable"):
        halt = record.trajectory
        actions.append(Halt(termination=halt.termination, reason=halt.reason, reply=halt.halted_by))
    return tuple(actions)
