"""Faults in tool calls: the plan, what lands, and the recovery of agents that never, always or at times recover."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import agrotools as at
from agrotools.agents.baselines.simple import OraclePolicy
from agrotools.core import (
    Action,
    CallTools,
    Observation,
    Record,
    SampleView,
    Step,
    ToolCall,
    ToolOutcome,
    UsageError,
)
from agrotools.core.record import Fault, ReferenceStep, ReferenceTrajectory
from agrotools.formats.manifest import Manifest
from agrotools.runner.faults import FaultPlan, Faults, FaultyTools, measured_calls
from agrotools.runner.records import iter_records
from support.made_runs import made_sample

COUNT = ToolCall(tool="count_objects", arguments={"image": "a.png"})
OTHER = ToolCall(tool="count_objects", arguments={"image": "b.png"})


def measured_sample(number: int) -> Any:
    """A sample whose tool counted 10 % too many and called a linden an oak."""
    step = ReferenceStep(
        tool="count_objects",
        arguments={"image": "a.png"},
        observation=Observation(result={"count": 110, "kind": "oak", "box": [1, 2]}),
        truth={"count": 100, "kind": "linden"},
    )
    sample = made_sample(f"s{number}", cluster=f"s{number}")
    return sample.model_copy(
        update={
            "reference": ReferenceTrajectory(steps=(step,)),
            "toolset": ("count_objects", "calculate"),
        }
    )


def faulty(chances: str, number: int = 0, n_measured: int = 9) -> FaultyTools:
    samples = [measured_sample(each) for each in range(n_measured)]

    async def call_tool(call: ToolCall) -> ToolOutcome:
        count = 50 if call == COUNT else 70
        return ToolOutcome(Observation(result={"count": count, "kind": "pine", "box": [1, 2]}), 1.0)

    plan = FaultPlan(Faults.parse(chances), 0, measured_calls(samples))
    return FaultyTools(plan, measured_sample(number), 0, call_tool)


@pytest.mark.parametrize(
    ("chances", "seen"),
    [
        ("noise=1", {"count": 55, "kind": "pine", "box": [1, 2]}),
        ("label=1", {"count": 50, "kind": "linden", "box": [1, 2]}),
        ("empty=1", {}),
        ("none", {"count": 50, "kind": "pine", "box": [1, 2]}),
    ],
)
async def test_a_repeated_call_returns_the_real_result(chances: str, seen: dict[str, Any]):
    tools = faulty(chances)
    assert (await tools(COUNT)).observation.result == seen
    assert (await tools(COUNT)).observation.result == {"count": 50, "kind": "pine", "box": [1, 2]}
    assert [fault.landed for fault in tools.faults] == [True] * (chances != "none")


async def test_errors_are_typed_and_the_tool_does_not_run():
    for kind, expected in (("timeout", "timeout"), ("error", "backend_unavailable")):
        tools = faulty(f"{kind}=1")
        error = (await tools(COUNT)).observation.error
        assert error
        assert error.kind == expected
        assert tools.faults[0].original is None


async def test_a_stale_result_is_that_of_an_earlier_call():
    tools = faulty("stale=1")
    first, second = await tools(COUNT), await tools(OTHER)
    assert second.observation == first.observation
    assert [(fault.landed, fault.reason) for fault in tools.faults] == [
        (False, "no earlier call of this tool has another result"), (True, ""),
    ]  # fmt: skip
    original = tools.faults[1].original
    assert original
    assert original.result
    assert original.result["count"] == 70


async def test_errors_of_a_sample_are_never_its_own():
    """Five other clusters are needed; the sample's own cluster does not count."""
    landed, reasons = [], set[str]()
    for n_measured in (5, 6):
        tools = faulty("noise=1", n_measured=n_measured)
        await tools(COUNT)
        landed.append(tools.faults[0].landed)
        reasons.add(tools.faults[0].reason)
    assert landed == [False, True]
    assert "no measured errors of this tool apply to this result" in reasons


async def test_the_plan_depends_on_seed_and_sample_alone():
    async def kinds(number: int) -> list[tuple[int, str]]:
        tools = faulty("timeout=.2,empty=.3", number)
        for at_call in range(40):
            await tools(COUNT.model_copy(update={"arguments": {"image": f"{at_call}.png"}}))
        return [(fault.call, fault.kind) for fault in tools.faults]

    assert await kinds(0) == await kinds(0) != await kinds(1)
    counts = [kind for number in range(25) for _, kind in await kinds(number)]
    assert 0.16 < counts.count("timeout") / 1000 < 0.24
    assert 0.25 < counts.count("empty") / 1000 < 0.35


@pytest.mark.parametrize(
    "text", ["sleet=.1", "error=2", "error=.6,empty=.6", "error=.1,error=.1", "error=_"]
)
def test_wrong_chances_are_refused(text: str):
    with pytest.raises(UsageError, match="--faults"):
        Faults.parse(text)


class Recovering:
    """Agent that makes the reference calls and repeats a call that failed with a chance; ``checks``: every call."""

    def __init__(self, samples: Sequence[Any], chance: float, *, checks: bool = False) -> None:
        self.name = f"recovers-{chance:g}{'-checks' * checks}"
        self._samples = {sample.id: sample for sample in samples}
        self._chance, self._checks, self._rng = chance, checks, Random(0)

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        last: list[Step] = []
        for step in history:
            if last and last[-1].call == step.call:
                last[-1] = step
            else:
                last.append(step)
        repeated = len(history) > 1 and history[-1].call == history[-2].call
        if last and not repeated:
            observation = last[-1].observation
            failed = self._checks or observation is None or not observation.result
            if failed and last[-1].call and self._rng.random() < self._chance:
                return CallTools(calls=(last[-1].call,))
        return await OraclePolicy(self._samples[view.id]).act(view, last)


class Hit(NamedTuple):
    """An answerable sample whose calls were hit by faults, with its scores without them and with them."""

    record: Record
    clean: float
    faulty: float


def hit_samples(
    tmp_path: Path, benchmark: Path, chance: float, faults: str, *, checks: bool = False
) -> list[Hit]:
    """Return the samples of an agent that faults hit."""
    samples = [sample for sample in at.load_benchmark(str(benchmark)).samples if sample.reference]
    agent = Recovering(samples, chance, checks=checks)
    clean = at.evaluate(str(benchmark), model=agent, mode="end-to-end", out=tmp_path / "clean")
    faulty = at.evaluate(
        str(benchmark), model=agent, mode="end-to-end", faults=faults, out=tmp_path / "faulty"
    )
    manifest = Manifest.model_validate_json((faulty.path / "manifest.json").read_text())
    assert manifest.faults == faults
    clean_scores = {row["sample"]: row["fas"] for row in clean.rows() if "fas" in row}
    faulty_scores = {row["sample"]: row["fas"] for row in faulty.rows() if "fas" in row}
    return [
        Hit(record, clean_scores[record.sample.id], faulty_scores[record.sample.id])
        for record in iter_records(faulty.path)
        if record.faults and record.sample.answerable
    ]


def is_repeated(record: Record, fault: Fault) -> bool:
    """True if the agent made the call that the fault hit once more."""
    assert record.trajectory
    calls = [step.call for step in record.trajectory.calls]
    hit, later = calls[fault.call], calls[fault.call + 1 :]
    return any(call and hit and call.repeats(hit) for call in later)


@pytest.mark.process
@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_agents_that_never_and_always_recover(tmp_path: Path, small_benchmark: Path, chance: float):
    hits = hit_samples(tmp_path, small_benchmark, chance, "error=1")
    assert hits
    assert all(fault.landed for hit in hits for fault in hit.record.faults)
    assert {is_repeated(hit.record, fault) for hit in hits for fault in hit.record.faults} == {
        chance == 1
    }
    solved = [hit for hit in hits if hit.clean == 1]
    assert solved
    assert {hit.faulty == 1 for hit in solved} == {chance == 1}


@pytest.mark.process
def test_an_agent_that_checks_its_results_recovers_from_faults_that_do_not_show(
    tmp_path: Path, small_benchmark: Path
):
    hits = hit_samples(tmp_path, small_benchmark, 1.0, "stale=1", checks=True)
    assert all(
        is_repeated(hit.record, fault)
        for hit in hits
        for fault in hit.record.faults
        if fault.landed
    )
    assert all(hit.faulty == 1 for hit in hits if hit.clean == 1)
