"""Tests of the executor of this machine, run on a Ray cluster of two nodes. Needs Ray: tests/environments.py ray.

Those about worker processes of this process itself are left out.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import hostile_tools
import pytest
import pytest_asyncio
from test_executor import (  # noqa: F401
    TestCheckedBeforeAnyWorker,
    test_a_call_returns_result_artifact_and_what_the_sample_knows,
    test_a_cancelled_call_frees_its_worker_at_once,
    test_a_crash_leaves_its_trace_in_the_log,
    test_a_hanging_call_is_killed_in_time,
    test_a_worker_knows_nothing_of_this_process,
    test_an_artifact_can_be_the_file_of_the_next_call,
    test_artifacts_that_cannot_be_written_are_an_infrastructure_error,
    test_equal_calls_draw_equal_random_numbers,
    test_exceptions_are_typed_with_their_traceback_in_the_log_and_tool_errors_kept,
    test_libraries_use_the_threads_they_are_given_and_not_those_of_this_process,
    test_stray_prints_do_not_reach_the_protocol,
    test_the_chosen_back_end_reaches_the_tool,
    test_the_death_of_one_call_harms_no_other,
    test_what_a_hanging_call_started_is_killed_with_it,
    workspace,
)

from support.ray_cluster import started_cluster

pytest.importorskip("ray", reason="needs Ray: python tests/environments.py ray")
from agrotools.calling.ray_executor import RayToolExecutor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.fixture(scope="module")
def executors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[RayToolExecutor]]:
    with started_cluster(tmp_path_factory.mktemp("cache"), num_cpus=1) as nodes:
        nodes.add_node(num_cpus=1)
        yield RayToolExecutor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def executor(executors: Any) -> AsyncIterator[RayToolExecutor]:
    find_tool = hostile_tools.BY_NAME.__getitem__
    async with executors(timeout_s=20, memory_mb=1024, find_tool=find_tool) as executor:
        yield executor
