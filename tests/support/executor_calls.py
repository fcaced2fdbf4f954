"""Calls of the hostile tools by an executor, and processes that these leave."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agrotools.calling.execution import ToolExecutor, ToolOutcome
from agrotools.calling.workspace import Workspace
from agrotools.core import ToolCall


async def call(
    executor: ToolExecutor, workspace: Workspace, tool: str, **arguments: Any
) -> ToolOutcome:
    import hostile_tools

    return await executor.run(
        ToolCall(tool=tool, arguments=arguments), workspace, tuple(hostile_tools.BY_NAME)
    )


def value(outcome: ToolOutcome) -> Any:
    assert outcome.observation.result is not None, outcome
    return outcome.observation.result["value"]


def error_kind(outcome: ToolOutcome) -> str:
    assert outcome.observation.error is not None, outcome
    assert outcome.observation.result is None
    return outcome.observation.error.kind


def alive(pid: int) -> bool:
    """False also for a zombie: in a container without an init process, strangers' orphans stay as such."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children() -> dict[int, str]:
    """Processes that this one started and has not cleared away, with the letter of their state; zombies too."""
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found[int(entry.parent.name)] = state
    return found


async def eventually(condition: Callable[[], bool], within_s: float = 10.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if condition():
            return True
        await asyncio.sleep(0.02)
    return False


async def gone(*pids: int) -> bool:
    return await eventually(lambda: not any(map(alive, pids)))
