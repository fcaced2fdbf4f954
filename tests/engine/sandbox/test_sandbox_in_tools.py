"""Sandboxes inside of the workers that run tools: those keep their warm workers from call to call, and lose none."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
import sandbox_tools
from test_sandbox_pool import alive, descendants, gone_within

from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import ToolCall
from agrotools.sandbox import RUNNER_VARIABLE


async def call(executor: ToolExecutor, folder: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    workspace = Workspace((), folder)
    outcome = await executor.run(
        ToolCall(tool=tool, arguments=arguments), workspace, tuple(sandbox_tools.BY_NAME)
    )
    assert outcome.observation.ok, outcome
    return dict(outcome.observation.result or {})


def executor() -> ToolExecutor:
    return ToolExecutor(
        workers=1, timeout_s=60, memory_mb=4096, find_tool=sandbox_tools.BY_NAME.__getitem__
    )


async def test_a_tool_worker_keeps_its_sandboxes(
    runner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUNNER_VARIABLE, runner)
    before = descendants(os.getpid())
    async with executor() as tools:
        ran = [
            await call(tools, tmp_path, "run_it", code=f"def solution():\n    return {number}")
            for number in range(4)
        ]
        timed_out = await call(
            tools, tmp_path, "run_it", code="def solution():\n    while True: print('x' * 999)"
        )
        last = await call(tools, tmp_path, "run_it", code="def solution():\n    return 'last'")
        started = descendants(os.getpid()) - before
        for _ in range(
            600
        ):  # the tool worker and the next sandbox, which is started after the call
            if len(alive(started)) >= 2:
                break
            await asyncio.sleep(0.1)
            started = descendants(os.getpid()) - before
        assert len(alive(started)) >= 2
    assert [each["value"] for each in ran] == ["0", "1", "2", "3"]
    assert {each["runner"] for each in ran} == {runner}
    assert {each["kept"] for each in ran} == {1}
    assert timed_out["termination"] == "output_cap"
    assert last["value"] == "last"
    assert {each["pid"] for each in (*ran, timed_out, last)} == {ran[0]["pid"]}, (
        "the tool worker was replaced"
    )
    assert gone_within(started, 60), alive(started)
