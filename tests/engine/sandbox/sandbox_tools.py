"""A tool that runs code. Imported by the tests and by their workers."""

import os
import sys
from typing import Annotated

from pydantic import Field

from agrotools.calling.contract import Agree, ToolResult, tool
from agrotools.sandbox import pool
from agrotools.sandbox.pool import pool_size
from agrotools.sandbox.running import run_code

if (
    "pytest" not in sys.modules
):  # in the worker of a tool: the code that these tools run needs no package
    pool.WARM = ()


class Ran(ToolResult):
    value: str
    termination: str
    runner: str
    pid: int
    kept: int


@tool(category="general")
def run_it(code: Annotated[str, Agree("text"), Field(description="Python")]) -> Ran:
    """Run code in a sandbox."""
    result = run_code(code)
    return Ran(
        value=result.value or result.message,
        termination=result.termination,
        runner=result.runner,
        pid=os.getpid(),
        kept=pool_size(),
    )


BY_NAME = {each.name: each for each in (run_it,)}
