"""Counts of executed lines: a measure of work that a busy machine does not change."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def executed_lines(function: Callable[[], object]) -> int:
    """Number of Python lines that ``function`` executes, a line in a loop once per pass."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
