"""Calls of one worker at once: each is answered with its own, and no fate of one befalls another."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import hostile_tools
import pytest
import pytest_asyncio

from agrotools.tools.execution import ToolExecutor
from agrotools.tools.workspace import Workspace
from support.executor_calls import call, error_kind, value

FIND = hostile_tools.BY_NAME.__getitem__


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace((), tmp_path / "artifacts")


@pytest_asyncio.fixture
async def executor(workspace: Workspace) -> AsyncIterator[ToolExecutor]:
    async with ToolExecutor(workers=1, timeout_s=20, memory_mb=1024, find_tool=FIND) as executor:
        yield executor


async def test_replies_find_their_callers(executor, workspace):
    await call(executor, workspace, "echo", value=0)
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


async def test_a_worker_killed_from_outside_costs_no_call(executor, workspace):
    await call(executor, workspace, "echo", value=0)
    (pid,) = executor.worker_pids
    tasks = [asyncio.create_task(call(executor, workspace, "echo", value=n, wait_s=0.05)) for n in range(7)]
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    assert [value(outcome) for outcome in await asyncio.gather(*tasks)] == list(range(7))


async def test_the_log_of_a_crash_is_its_own(executor, workspace):
    outcomes = await asyncio.gather(
        call(executor, workspace, "shout", where="both"), call(executor, workspace, "fail", how="segfault")
    )
    assert "hostile_tools.py" in outcomes[1].log
    assert "stray" not in outcomes[1].log
