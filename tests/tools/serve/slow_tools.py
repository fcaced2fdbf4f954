"""A tool that does not end, for tests of servers; workers import it by its module."""

import time

from agrotools.calling import ToolResult, tool


class Nothing(ToolResult):
    """No result."""


@tool(category="general")
def wait() -> Nothing:
    """Wait for ten minutes."""
    time.sleep(600)
    return Nothing()
