"""Samples, and calls of served tools for them, through a tool executor."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agrotools.calling.contract import SERVED
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import Observation, SampleFile, ToolCall
from agrotools.served.tools import ServedCalls, ServedToolset
from support.bound_tools import find_tool


def workspace(folder: Path, name: str, n_bytes: int = 250) -> Workspace:
    """A sample of its own with one file, whose size is what the server measures."""
    path = folder / f"{name}.jpg"
    path.write_bytes(b"x" * n_bytes)
    return Workspace((SampleFile(name="leaf.jpg", path=str(path), kind="image"),), folder / name)


@asynccontextmanager
async def opened(toolset: ServedToolset, timeout_s: float = 60.0) -> AsyncGenerator[ToolExecutor]:
    file = next((binding.path for binding in toolset.bindings), "")
    backends = dict.fromkeys(toolset.bound, f"{SERVED}{file}")
    async with ToolExecutor(
        1, backends=backends, find_tool=find_tool, served=ServedCalls(toolset, timeout_s)
    ) as executor:
        yield executor


async def called(executor: ToolExecutor, at: Workspace, tool: str, **arguments: Any) -> Observation:
    call = ToolCall(tool=tool, arguments=arguments)
    return (await executor.run(call, at, [tool])).observation
