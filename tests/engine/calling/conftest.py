"""The executor that tests of tool calls use; those of ``test_ray_executor.py`` use that of a Ray cluster."""

import pytest

from agrotools.calling.execution import ToolExecutor


@pytest.fixture(scope="module")
def executors() -> type[ToolExecutor]:
    return ToolExecutor
