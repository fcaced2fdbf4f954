"""Calls with a ``learned`` back-end on a Ray cluster that declares GPUs, which this machine need not have.

Needs Ray: ``python tests/environments.py ray``.
"""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hostile_tools
import pytest
import pytest_asyncio

from agrotools.core import InfrastructureError, ToolCall
from agrotools.tools import ray_actors
from agrotools.tools.workspace import Workspace
from support.executor_calls import call, value
from support.ray_cluster import started_cluster

pytest.importorskip("ray", reason="needs Ray: python tests/environments.py ray")
from agrotools.tools.ray_executor import MOST_TRIES, RayToolExecutor

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore"), pytest.mark.asyncio(loop_scope="module")]

FIND = hostile_tools.BY_NAME.__getitem__
LEARNED = {"use_gpu": "learned:net"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started_cluster(tmp_path_factory.mktemp("cache"), num_cpus=1, num_gpus=1) as nodes:
        yield nodes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def executor(cluster: Any) -> AsyncIterator[RayToolExecutor]:
    async with RayToolExecutor(find_tool=FIND, backends=LEARNED) as executor:
        yield executor


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace((), tmp_path / "artifacts")


async def use(executor: RayToolExecutor, workspace: Workspace, number: int = 0, **given: Any) -> dict[str, Any]:
    outcome = await call(executor, workspace, "use_gpu", value=number, **given)
    assert value(outcome) == number
    return dict(outcome.observation.result or {})


async def gpus(executor: RayToolExecutor, count: int) -> None:
    """Wait until the cluster has a number of GPUs, as the executor sees it."""
    while await executor._count_gpus() != count:  # noqa: ASYNC110 - nodes set no event
        await asyncio.sleep(0.2)


async def test_a_call_has_a_gpu_and_the_next_one_finds_the_model_loaded(executor: Any, workspace: Workspace):
    assert executor.place == "tool calls run on a Ray cluster of 1 node, 1 CPU and 1 GPU"
    first, second = await use(executor, workspace), await use(executor, workspace, 1)
    assert first["devices"] == "0"
    assert second["pid"] == first["pid"]
    assert value(await call(executor, workspace, "echo", value=3)) == 3, "an idle actor takes no CPU from other tools"


async def test_an_actor_that_dies_while_it_is_idle_is_replaced_unseen(executor: Any, workspace: Workspace):
    first = await use(executor, workspace)
    os.kill(first["caller"], signal.SIGKILL)
    again = executor.calls_sent_again
    assert (await use(executor, workspace))["caller"] != first["caller"]
    assert executor.calls_sent_again <= again + 1


async def test_a_call_that_kills_its_actor_each_time_is_no_fault_of_the_model(executor: Any, workspace: Workspace):
    with pytest.raises(InfrastructureError, match=f"use_gpu was lost on the Ray cluster {MOST_TRIES} times"):
        await executor.run(ToolCall(tool="use_gpu", arguments={"value": 1, "kill": True}), workspace, ["use_gpu"])
    await use(executor, workspace)


async def test_gpus_that_others_use_are_given_up(executor: Any, workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    await use(executor, workspace)
    async with RayToolExecutor(find_tool=FIND, backends=LEARNED) as other:
        with monkeypatch.context() as patch:
            patch.setattr(ray_actors, "_START_S", 2)
            with pytest.raises(InfrastructureError, match="no GPU of the Ray cluster is free"):
                await use(other, workspace)
        executor._actors.close()
        await use(other, workspace)


async def test_kills_of_actors_and_nodes_lose_and_double_nothing(executor: Any, cluster: Any, workspace: Workspace):
    chance = random.Random(4)
    nodes = [cluster.add_node(num_cpus=1, num_gpus=1) for _ in range(2)]
    await gpus(executor, 3)
    callers, done, sent = set[int](), list[float](), executor.calls_sent_again

    async def work(number: int) -> None:
        for _ in range(20):  # each loss is counted for one call, which may have bad luck
            with suppress(InfrastructureError):
                result = await use(executor, workspace, number, wait_s=0.3)
                break
        else:
            pytest.fail("lost")
        callers.add(result["caller"])
        done.append(result["value"])

    calls = asyncio.gather(*(work(number) for number in range(60)))
    kills = 0
    while not calls.done():
        await asyncio.sleep(chance.uniform(1, 3))
        if kills % 4 == 1:
            cluster.remove_node(nodes.pop(), allow_graceful=False)
            nodes.append(cluster.add_node(num_cpus=1, num_gpus=1))
        elif callers:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(sorted(callers)), signal.SIGKILL)
        kills += 1
    await calls
    assert sorted(done) == list(range(60))
    assert kills > 3
    assert executor.calls_sent_again > sent
    for node in nodes:
        cluster.remove_node(node, allow_graceful=False)
    await gpus(executor, 1)
    await asyncio.wait_for(asyncio.gather(*(use(executor, workspace) for _ in range(4))), 120)
    assert len(executor._actors._actors) == 1
    states = [actor["State"] for actor in executor._ray._private.state.actors().values()]
    assert not {"RESTARTING", "PENDING_CREATION"} & set(states), "a displaced actor would take the next GPU"


async def test_calls_run_on_cpus_once_the_last_gpu_is_lost_and_on_gpus_again(executor, workspace, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(executor._actors, "_count_gpus", lambda: asyncio.sleep(0, 0))
        assert (await use(executor, workspace))["devices"] == ""
    assert (await use(executor, workspace))["devices"] == "0"
