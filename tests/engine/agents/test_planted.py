"""Scripted agents of planted ability."""

import asyncio
from pathlib import Path

import pytest

import agrotools as at
from agrotools.agents.baselines.planted import Planted, PlantedPolicy
from agrotools.agents.modes import run_step_by_step, with_shown_observations
from agrotools.core import AbstainSlot, Action, Answer, ReferenceTrajectory, Sample, UsageError
from agrotools.loading import Benchmark, load_benchmark
from agrotools.scoring.steps import agrees
from agrotools.text.answer_form import UNKNOWN

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def benchmark(small_benchmark: Path) -> Benchmark:
    return load_benchmark(small_benchmark)


def actions(benchmark: Benchmark, agent: Planted) -> list[Action]:
    """All actions of an agent in step-by-step."""
    done: list[Action] = []
    for sample in map(with_shown_observations, benchmark.samples):
        assert sample.reference is not None
        policy = PlantedPolicy(sample, agent, "step-by-step", 0)
        done += asyncio.run(
            run_step_by_step(policy, benchmark.view(sample, "step-by-step"), sample.reference)
        )
    return done


def _share_right(ability: float, sample: Sample) -> float:
    """Share of 400 agents that fail no decision of the sample."""
    policies = [
        PlantedPolicy(sample, Planted(ability, seed), "end-to-end", 0) for seed in range(400)
    ]
    return sum(not policy.failed for policy in policies) / len(policies)


def test_draws_depend_on_ability_length_and_seed_alone(benchmark: Benchmark):
    sample = max(
        benchmark.samples, key=lambda each: len(each.reference.steps) if each.reference else 0
    )
    steps = sample.reference.steps[:1]
    shorter = sample.model_copy(update={"reference": ReferenceTrajectory(steps=steps)})
    decisions = 3 + len(steps[0].arguments)
    for ability in (0.2, 0.8):
        assert _share_right(ability, shorter) == pytest.approx(
            ability ** (decisions / 10), abs=0.07
        )
        assert _share_right(ability, sample) < _share_right(ability, shorter)
    assert _share_right(0.2, sample) < _share_right(0.8, sample)
    assert (_share_right(0, sample), _share_right(1, sample)) == (0, 1)
    agent = actions(benchmark, Planted(0.4, 1))
    assert agent == actions(benchmark, Planted(0.4, 1))
    assert agent != actions(benchmark, Planted(0.4, 2))
    assert agent != actions(benchmark, Planted(0.41, 1))


def test_mistakes_are_those_of_models(benchmark: Benchmark):
    calls = early = wrong_tool = wrong_argument = 0
    for seed in range(5):
        done = actions(benchmark, Planted(0.05, seed))
        for sample in benchmark.samples:
            for step in sample.reference.steps:
                action = done.pop(0)
                if isinstance(action, Answer):
                    early += 1
                    continue
                (call,) = action.calls
                calls += 1
                wrong_tool += call.tool != step.tool
                wrong_argument += call.tool == step.tool and not agrees(sample, call, step)
            assert isinstance(done.pop(0), Answer)
    assert min(early, wrong_tool, wrong_argument) >= 3


@pytest.mark.parametrize("wrong", ["0.5:x", "1.5:2"])
def test_other_abilities_are_refused(wrong: str):
    with pytest.raises(UsageError, match="baseline:planted:ABILITY"):
        Planted.parse(wrong, 0)
    assert (Planted.parse("0.5", 7), Planted.parse("0.5:3", 7)) == (
        Planted(0.5, 7),
        Planted(0.5, 3),
    )


def test_an_agent_of_full_ability_is_the_oracle_and_one_of_none_is_not(
    small_benchmark: Path, tmp_path: Path
):
    scores = {
        name: at.evaluate(
            small_benchmark,
            f"baseline:{name}",
            mode="end-to-end",
            out=tmp_path / name.replace(":", "-"),
        )
        for name in ("oracle", "planted:1", "planted:0")
    }
    assert all(run.manifest.privileged for run in scores.values())
    fas = {name: run.scores["fas"].value for name, run in scores.items()}
    assert fas["planted:1"] == fas["oracle"] > fas["planted:0"] + 0.1
    assert all(step.observation for record in scores["planted:0"].samples() if record.trajectory
               for step in record.trajectory.steps if step.kind == "call")  # fmt: skip


def test_unanswerable_questions_are_refused_only_without_a_mistake(benchmark: Benchmark):
    refused: list[float] = []
    for ability in (0, 0.5, 1):
        answers: list[Action] = []
        for sample in map(with_shown_observations, benchmark.samples):
            slot = AbstainSlot(
                name="none",
                label="none",
                reason="no_scale",
                asks=sample.answer,
                **{"from": "1 == 1"},
            )
            unanswerable = sample.model_copy(update={"answer": (slot,)})
            assert sample.reference is not None
            policy = PlantedPolicy(unanswerable, Planted(ability, 1), "step-by-step", 0)
            view = benchmark.view(sample, "step-by-step")
            answers.append(asyncio.run(run_step_by_step(policy, view, sample.reference))[-1])
        refused.append(
            sum(isinstance(each, Answer) and (each.text == UNKNOWN) for each in answers)
            / len(answers)
        )
    assert refused[0] == 0 < refused[1] < refused[2] == 1
