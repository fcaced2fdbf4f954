"""Policies without a model."""

from random import Random

import pytest

from agrotools.agents.baselines.constant import ConstantPolicy
from agrotools.agents.baselines.guess import GuessPolicy
from agrotools.agents.baselines.simple import OraclePolicy, RandomPolicy, random_arguments
from agrotools.calling import get_tool, tool_specs
from agrotools.core import (
    Answer,
    BooleanSlot,
    CallTools,
    ExactSlot,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    SampleView,
    Step,
    ToleranceSlot,
    ToolCall,
    UsageError,
)
from agrotools.models import Endpoint
from agrotools.runner.policies import policy_source
from agrotools.scoring.constants import ConstantTable
from agrotools_tools import AGROTOOLS
from support.plain_sample import plain_sample

FILES = (SampleFile(name="image_1.jpg", path="files/a.jpg", kind="image"),)
VIEW = SampleView(id="s", query="?", files=FILES, toolset=AGROTOOLS, answer_form="form")


def sample(
    name: str, cluster: str, weeds: float, *, crop: str = "carrot", many: bool = True
) -> Sample:
    doubled = {
        "expression": "2 * a",
        "variables": {"a": {"$ref": "steps[0].observation.weed_pct", "value": weeds}},
    }
    steps = (
        ReferenceStep(
            tool="measure_crop_weed_area",
            arguments={"image": "image_1.jpg"},
            truth={"weed_pct": weeds},
        ),
        ReferenceStep(tool="calculate", arguments=doubled, truth={"value": 2 * weeds}),
    )
    return plain_sample(
        name,
        **{"files": FILES, "toolset": AGROTOOLS, "cluster": cluster, "answer_type": "tolerance"},
        reference=ReferenceTrajectory(steps=steps),
        answer=(
            ToleranceSlot(
                name="double",
                label="double",
                value=2 * weeds,
                **{"from": "steps[1].observation.value"},
            ),
            ExactSlot(
                name="crop",
                label="crop",
                value=crop,
                choices=(crop, "beet" if crop == "carrot" else "carrot"),
            ),
            BooleanSlot(name="many", label="many", value=many),
        ),
    )


def called(call: ToolCall, result) -> Step:
    return Step(turn=0, kind="call", call=call, observation=Observation(result=result))


async def test_oracle_passes_on_what_the_tools_returned_not_the_truth():
    policy = OraclePolicy(sample("s", "c", 9.0))
    first = await policy.act(VIEW, [])
    assert isinstance(first, CallTools)
    history = [called(first.calls[0], {"weed_pct": 8.0})]
    second = await policy.act(VIEW, history)
    assert isinstance(second, CallTools)
    assert second.calls[0].arguments["variables"] == {"a": 8.0}
    answer = await policy.act(VIEW, [*history, called(second.calls[0], {"value": 16.0})])
    assert isinstance(answer, Answer)
    assert "double: 16" in answer.text


async def test_oracle_leaves_open_what_a_tool_left_open():
    policy = OraclePolicy(sample("s", "c", 9.0))
    first = await policy.act(VIEW, [])
    assert isinstance(first, CallTools)
    for result in ({"weed_pct": None}, {}, None):
        answer = await policy.act(VIEW, [called(first.calls[0], result)])
        assert isinstance(answer, Answer)
        assert "double" not in answer.text


async def test_constant_gives_the_values_of_other_clusters_and_a_guess_where_there_is_none():
    samples = [sample(f"s{n}", f"c{n}", 2.5, crop="beet", many=False) for n in range(8)]
    own = sample("own", "c9", 1000.0, crop="carrot")
    table = ConstantTable.of([*samples, own])
    policy = ConstantPolicy(own, table.values(own))
    action = await policy.act(VIEW, [])
    assert isinstance(action, Answer)
    assert action.text.splitlines() == ["double: 5.0", "crop: beet", "many: no"]
    too_few = ConstantTable.of(samples[:7])
    assert too_few.values(own) == {}
    guess = await GuessPolicy(own).act(VIEW, [])
    assert await ConstantPolicy(own, {}).act(VIEW, []) == guess


async def test_random_is_the_same_for_the_same_seed_and_epoch_and_differs_between_them():
    taken = sample("s", "c", 9.0)

    async def actions(seed: int, epoch: int):
        policy = RandomPolicy(taken, seed, epoch)
        step = Step(turn=0, kind="call")
        return [await policy.act(VIEW, [step] * length) for length in range(10)]

    assert await actions(0, 0) == await actions(0, 0)
    assert await actions(0, 0) != await actions(1, 0)
    assert await actions(0, 0) != await actions(0, 1)
    kinds = {action.kind for seed in range(10) for action in await actions(seed, 0)}
    assert kinds == {"call", "answer"}


@pytest.mark.parametrize("name", AGROTOOLS)
def test_random_arguments_have_the_types_that_the_schema_asks_for(name: str):
    (spec,) = tool_specs([name])
    tool = get_tool(name)
    rng = Random(7)
    types = {
        "string": str,
        "number": int | float,
        "integer": int,
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    for _ in range(50):
        arguments = random_arguments(spec, VIEW, rng)
        assert (
            set(spec.parameters.get("required", ()))
            <= set(arguments)
            <= set(spec.parameters["properties"])
        )
        for key, value in arguments.items():
            wanted = spec.parameters["properties"][key].get("type")
            if isinstance(wanted, str):
                assert isinstance(value, types[wanted]), (key, value)
    assert tool.name == name


@pytest.mark.parametrize("name", ["baseline:oracle", "baseline:perfect-tools"])
def test_what_makes_the_reference_calls_needs_them(name: str):
    without = sample("b", "c2", 2.0).model_copy(update={"reference": None})
    with pytest.raises(UsageError, match=r"not all samples have any, e\.g\. b"):
        policy_source(Endpoint(name), [sample("a", "c1", 1.0), without])
