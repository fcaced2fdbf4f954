"""Faults in tool calls of a run, by a seeded plan, to measure whether a model recovers from them (``--faults``).

A fault hits a call with the given chance. Repeating a call that was hit returns the real result, so that every fault
can be recovered from. The plan depends on the seed, the sample, the epoch and the number of the call alone: models
that make the same calls meet the same faults. Errors of a tool (``noise``) and its wrong names (``label``) are those
that were measured on the reference calls of *other* clusters of the benchmark; where there are none, the fault does
not land and the record says so.
"""

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Annotated, Any, Self, cast

from pydantic import Field, JsonValue, ValidationError, model_validator

from agrotools.agents.modes import CallTool
from agrotools.core import (
    ErrorInfo,
    FrozenModel,
    Observation,
    Sample,
    ToolCall,
    ToolOutcome,
    UsageError,
    plain_message,
)
from agrotools.core.record import Fault, FaultKind, iter_refs
from agrotools.core.texts import suggestion
from agrotools.text.json_kinds import is_number

Chance = Annotated[float, Field(ge=0, le=1)]
FEWEST_MEASURED = 5
"""Reference calls of a tool on other clusters that a fault is drawn from; with fewer, it does not land."""
_LOUD: Mapping[FaultKind, Observation] = {
    "timeout": Observation(
        error=ErrorInfo(
            kind="timeout", message="the tool did not finish within 60 s", hint="try the call again"
        )
    ),
    "error": Observation(
        error=ErrorInfo(
            kind="backend_unavailable",
            message="the tool is not available now",
            hint="try the call again",
        )
    ),
    "empty": Observation(result={}),
}
"""Observations of faults that show; the tool does not run."""


UNDISTURBED = "none"
"""Name of a run without faults, beside others."""
_EXAMPLE = "error=.2,noise=.1"


class Faults(FrozenModel):
    """Chances that a call is hit by a fault, by kind; together at most 1.

    ``timeout``: time-out. ``error``: a typed error that passes. ``empty``: an empty result. ``noise``: a measured error
    of this tool. ``label``: other names and states, as the tool returned them elsewhere. ``stale``: the result and the
    files of an earlier call of the tool.
    """

    timeout: Chance = 0.0
    error: Chance = 0.0
    empty: Chance = 0.0
    noise: Chance = 0.0
    label: Chance = 0.0
    stale: Chance = 0.0

    @property
    def doses(self) -> dict[str, float]:
        """Chances that are not 0, by kind."""
        given = (
            (name, getattr(self, name), info.default)
            for name, info in type(self).model_fields.items()
        )
        return {name: value for name, value, default in given if value != default}

    def __str__(self) -> str:
        """Return the chances as the option gives them; empty if there are none."""
        return ",".join(f"{name}={value:g}" for name, value in self.doses.items())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``KIND=CHANCE,...``, such as ``error=.2,noise=.1``; empty or ``none`` for no fault.

        Raises:
            UsageError: unknown or repeated kind, or a chance that is no number or out of range.
        """
        values: dict[str, str] = {}
        for part in text.split(",") if text.strip() not in ("", UNDISTURBED) else ():
            name, _, value = (piece.strip() for piece in part.partition("="))
            if name not in cls.model_fields:
                raise UsageError(
                    f"--faults: unknown dose {name!r}", hint=suggestion(name, cls.model_fields)
                )
            if name in values:
                raise UsageError(
                    f"--faults: {name} is given twice",
                    hint="repeat --faults for several runs",
                )
            if "_" in value:
                raise UsageError(
                    f"--faults {name}={value}: should be a valid number",
                    hint=f"e.g. {_EXAMPLE}",
                )
            values[name] = value
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else ""
            where = f" {name}={values[name]}" if name else ""
            wrong = plain_message(first).removeprefix("Input ")
            raise UsageError(f"--faults{where}: {wrong}", hint=f"e.g. {_EXAMPLE}") from error

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if sum(self.doses.values()) > 1 + 1e-9:
            raise ValueError("the chances are together more than 1")
        return self

    def drawn(self, rng: Random) -> FaultKind | None:
        """Return the kind of fault that hits a call; None for no fault."""
        limits = [*accumulate(self.doses.values())]
        at = bisect(limits, rng.random())
        return cast(FaultKind, [*self.doses][at]) if at < len(limits) else None


@dataclass(frozen=True)
class MeasuredCall:
    """A reference call of a tool: its errors, as ratios of result to truth, and its names and states, by path."""

    cluster: str
    ratios: Mapping[str, float]
    labels: Mapping[str, str | bool]


def measured_calls(samples: Iterable[Sample]) -> dict[str, list[MeasuredCall]]:
    """Return what is known of the reference calls of each tool whose truth is known.

    Calls with values of earlier steps are left out: their errors are those of the earlier tools.
    """
    calls: dict[str, list[MeasuredCall]] = defaultdict(list)
    for sample in samples:
        for step in sample.reference.steps if sample.reference else ():
            if step.truth is None or any(True for _ in iter_refs(step.arguments)):
                continue
            seen = dict(_leaves(step.observation.result)) if step.observation else {}
            truth = dict(_leaves(step.truth))
            ratios = {
                path: seen[path] / value
                for path, value in truth.items()
                if is_number(value) and value and is_number(seen.get(path))
            }
            labels = {path: value for path, value in truth.items() if isinstance(value, str | bool)}
            calls[step.tool].append(MeasuredCall(sample.cluster or sample.id, ratios, labels))
    return calls


@dataclass(frozen=True)
class FaultPlan:
    """Chances of faults in a run, and the measured calls that errors and names of tools are drawn from."""

    chances: Faults
    seed: int
    measured: Mapping[str, Sequence[MeasuredCall]]

    def tools(self, sample: Sample, epoch: int, call_tool: CallTool) -> "FaultyTools":
        """Return the tools of a sample with the faults of the plan."""
        return FaultyTools(self, sample, epoch, call_tool)


@dataclass
class FaultyTools:
    """Tools of one sample, of whose calls some are hit by a fault. ``faults`` has one entry for each call that was."""

    plan: FaultPlan
    sample: Sample
    epoch: int
    call_tool: CallTool
    faults: list[Fault] = field(default_factory=list[Fault])
    _calls: list[tuple[ToolCall, ToolOutcome]] = field(
        default_factory=list[tuple[ToolCall, ToolOutcome]]
    )

    async def __call__(self, call: ToolCall) -> ToolOutcome:
        number = len(self._calls)
        rng = Random(f"{self.plan.seed}/{self.sample.id}/{self.epoch}/{number}")
        hit = any(call.repeats(self._calls[fault.call][0]) for fault in self.faults)
        kind = None if hit or call.tool not in self.sample.toolset else self.plan.chances.drawn(rng)
        if kind is not None and kind in _LOUD:
            outcome = ToolOutcome(_LOUD[kind])
            self.faults.append(Fault(call=number, kind=kind, landed=True))
        else:
            outcome = await self.call_tool(call)
            if kind is not None:
                changed, reason = self._changed(kind, call, outcome.observation, rng)
                landed = changed is not None
                original = outcome.observation if landed else None
                self.faults.append(
                    Fault(call=number, kind=kind, landed=landed, reason=reason, original=original)
                )
                outcome = ToolOutcome(
                    changed or outcome.observation, outcome.seconds, outcome.source, outcome.log
                )
        self._calls.append((call, outcome))
        return outcome

    def _changed(
        self, kind: FaultKind, call: ToolCall, observation: Observation, rng: Random
    ) -> tuple[Observation | None, str]:
        """Return the observation after a fault that does not show; None with the reason if the fault cannot land."""
        if observation.result is None:
            return None, "the call failed by itself"
        if kind == "stale":
            hit = {fault.call for fault in self.faults if fault.landed}
            for number, (earlier, outcome) in reversed([*enumerate(self._calls)]):
                same_tool = (
                    earlier.tool == call.tool and number not in hit and outcome.observation.result
                )
                if same_tool and outcome.observation.result != observation.result:
                    return outcome.observation, ""
            return None, "no earlier call of this tool has another result"
        own = self.sample.cluster or self.sample.id
        others = [each for each in self.plan.measured.get(call.tool, ()) if each.cluster != own]
        leaves = dict(_leaves(observation.result))
        donors = [changes for each in others if (changes := _changes(kind, each, leaves))]
        if len(donors) < FEWEST_MEASURED:
            return (
                None,
                f"no measured {'errors' if kind == 'noise' else 'names'} of this tool apply to this result",
            )
        result = cast("dict[str, JsonValue]", _replaced(observation.result, rng.choice(donors)))
        return observation.model_copy(update={"result": result}), ""


def _changes(
    kind: FaultKind, donor: MeasuredCall, leaves: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the values that a donor's errors or names put in the place of others, by path; only those that differ."""
    changed: dict[str, JsonValue]
    if kind == "noise":
        changed = {
            path: _scaled(leaves[path], by)
            for path, by in donor.ratios.items()
            if is_number(leaves.get(path))
        }
    else:
        changed = {
            path: name
            for path, name in donor.labels.items()
            if type(leaves.get(path)) is type(name)
        }
    return {path: value for path, value in changed.items() if value != leaves[path]}


def _scaled(value: Any, factor: float) -> JsonValue:
    return round(value * factor) if isinstance(value, int) else float(f"{value * factor:.6g}")


def _leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _leaves(item, f"{path}/{key}")
    else:
        yield path, value


def _replaced(value: JsonValue, changes: Mapping[str, JsonValue], path: str = "") -> JsonValue:
    if isinstance(value, dict):
        return {key: _replaced(item, changes, f"{path}/{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, changes, f"{path}/{at}") for at, item in enumerate(value)]
    return changes.get(path, value)
