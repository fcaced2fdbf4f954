"""Quick calls that share a worker: each is answered with its own, and no fate of one befalls another."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import hostile_tools
import pytest
import pytest_asyncio

from agrotools.tools import worker_process
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.workspace import Workspace
from support.executor_calls import call, error_kind, value

FIND = hostile_tools.BY_NAME.__getitem__


@pytest.fixture(autouse=True)
def _a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_QUICK_S", 0.09)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace((), tmp_path / "artifacts")


@pytest_asyncio.fixture
async def executor(workspace: Workspace) -> AsyncIterator[ToolExecutor]:
    async with ToolExecutor(workers=1, timeout_s=20, memory_mb=1024, find_tool=FIND) as executor:
        await show_that_they_are_quick(executor, workspace)
        yield executor


async def show_that_they_are_quick(executor: ToolExecutor, workspace: Workspace) -> None:
    for number in range(3):
        assert value(await call(executor, workspace, "echo", value=number)) == number
        assert value(await call(executor, workspace, "fail", how="nan")) is None


async def test_replies_find_their_callers(executor, workspace):
    pids = executor.worker_pids
    outcomes = await asyncio.gather(*(call(executor, workspace, "echo", value=n) for n in range(300)))
    assert [value(outcome) for outcome in outcomes] == list(range(300))
    assert executor.worker_pids == pids


@pytest.mark.parametrize(
    ("how", "place"), [("segfault", 0), ("segfault", 3), ("hard_exit", 6), ("memory", 3), ("big_result", 3)]
)
async def test_the_death_of_a_call_is_not_charged_to_those_around_it(executor, workspace, how, place):
    calls = [call(executor, workspace, "fail", how="nan") for _ in range(7)]
    calls.insert(place, call(executor, workspace, "fail", how=how))
    outcomes = await asyncio.gather(*calls)
    assert error_kind(outcomes.pop(place)) == ("limit" if how in ("memory", "big_result") else "tool_failed")
    assert [value(outcome) for outcome in outcomes] == [None] * 7


async def test_a_call_that_is_slow_for_once_is_killed_in_time_and_those_behind_it_are_answered(workspace):
    waits = [0, 600, 0, 0, 0]
    async with ToolExecutor(workers=1, timeout_s=1, find_tool=FIND) as executor:
        await show_that_they_are_quick(executor, workspace)
        outcomes = await asyncio.gather(*(call(executor, workspace, "echo", value=1, wait_s=wait) for wait in waits))
    assert error_kind(outcomes.pop(1)) == "timeout"
    assert [value(outcome) for outcome in outcomes] == [1] * 4


async def test_each_call_has_the_whole_time_limit_from_when_its_turn_comes(workspace):
    async with ToolExecutor(workers=1, timeout_s=1.5, find_tool=FIND) as executor:
        await show_that_they_are_quick(executor, workspace)
        outcomes = await asyncio.gather(*(call(executor, workspace, "echo", value=1, wait_s=0.5) for _ in range(4)))
    assert [value(outcome) for outcome in outcomes] == [1] * 4


async def test_a_worker_killed_from_outside_costs_no_call(executor, workspace):
    (pid,) = executor.worker_pids
    tasks = [asyncio.create_task(call(executor, workspace, "echo", value=n, wait_s=0.05)) for n in range(7)]
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    assert [value(outcome) for outcome in await asyncio.gather(*tasks)] == list(range(7))


async def test_no_quick_call_waits_behind_a_slow_one(workspace):
    async with ToolExecutor(workers=2, timeout_s=20, find_tool=FIND) as executor:
        await executor.prepare(["echo", "fail"])
        await show_that_they_are_quick(executor, workspace)
        assert value(await call(executor, workspace, "echo", value=1, wait_s=0.2)) == 1
        slow = asyncio.create_task(call(executor, workspace, "echo", value=9, wait_s=3))
        await asyncio.sleep(0.1)
        for _ in range(5):
            await asyncio.gather(*(call(executor, workspace, "fail", how="nan") for _ in range(20)))
        assert not slow.done()
        assert value(await slow) == 9


async def test_the_log_of_a_crash_is_its_own(executor, workspace):
    outcomes = await asyncio.gather(
        call(executor, workspace, "shout", where="both"), call(executor, workspace, "fail", how="segfault")
    )
    assert "hostile_tools.py" in outcomes[1].log
    assert "stray" not in outcomes[1].log
