"""The executor under tools that crash, hang, hog and print; under many calls at a time; and when its parent dies."""

import asyncio
import importlib
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import hostile_tools
import pytest
import pytest_asyncio

from agrotools.calling.arguments import OPTIONAL_HINT
from agrotools.calling.contract import ToolResult, tool
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import InfrastructureError, SampleFile, ToolCall, UsageError
from agrotools.core.libraries import MissingLibraryError
from agrotools.core.texts import install_command
from support.executor_calls import alive, call, children, error_kind, eventually, gone, value

pytestmark = [pytest.mark.process, pytest.mark.asyncio(loop_scope="module")]

FIND = hostile_tools.BY_NAME.__getitem__


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    (tmp_path / "image_1.jpg").write_bytes(b"pixels")
    file = SampleFile(
        name="image_1.jpg", path=str(tmp_path / "image_1.jpg"), kind="image", gsd_m=0.05
    )
    return Workspace((file,), tmp_path / "artifacts")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def executor(executors: type[ToolExecutor]) -> AsyncIterator[ToolExecutor]:
    """Shared by all tests that leave it as it was: workers that die are replaced."""
    async with executors(workers=2, timeout_s=20, memory_mb=1024, find_tool=FIND) as executor:
        yield executor


def live() -> set[int]:
    return {pid for pid, state in children().items() if state != "Z"}


class TestCheckedBeforeAnyWorker:
    """None of these starts a process."""

    @pytest_asyncio.fixture(loop_scope="module")
    async def executor(self, executors: type[ToolExecutor]) -> AsyncIterator[ToolExecutor]:
        async with executors(find_tool=FIND) as executor:
            yield executor
            assert executor.worker_pids == ()

    async def test_the_error_of_an_optional_file_says_that_it_may_be_left_out(
        self, executors, workspace
    ):
        async with executors() as executor:
            files = {"image": "image_1.jpg", "leaf_mask": "mask.png"}
            run = partial(executor.run, workspace=workspace, toolset=("analyze_lesions",))
            outcome = await run(ToolCall(tool="analyze_lesions", arguments=files))
            assert outcome.observation.error.hint.startswith(f"{OPTIONAL_HINT}: leaf_mask")
            outcome = await run(
                ToolCall(tool="analyze_lesions", arguments={"image": "image_9.jpg"})
            )
            assert error_kind(outcome) == "file_not_found"
            assert OPTIONAL_HINT not in outcome.observation.error.hint

    async def test_tools_outside_the_toolset_are_unknown_and_the_closest_told(
        self, executor, workspace
    ):
        outcome = await call(executor, workspace, "ecko")
        assert error_kind(outcome) == "unknown_tool"
        assert outcome.observation.error.candidates == ("echo",)
        outcome = await call(executor, workspace, "zzzzzz")
        assert "environment" in outcome.observation.error.hint
        outcome = await executor.run(
            ToolCall(tool="echo", arguments={"value": 1}), workspace, ("look",)
        )
        assert error_kind(outcome) == "unknown_tool"
        outcome = await executor.run(ToolCall(tool="echo", arguments={"value": 1}), workspace, ())
        assert error_kind(outcome) == "unknown_tool"

    async def test_a_toolset_with_a_tool_that_does_not_exist_is_our_fault(self, workspace):
        async with ToolExecutor() as executor:
            with pytest.raises(UsageError, match="unknown tool"):
                await executor.run(ToolCall(tool="no_such_tool"), workspace, ("no_such_tool",))

    async def test_a_tool_of_the_running_script_is_refused(self, workspace):
        def here() -> ToolResult:
            """Nothing."""
            return ToolResult()

        here.__module__ = "__main__"
        made = tool(category="general")(here)
        async with ToolExecutor(find_tool=lambda _: made) as executor:
            with pytest.raises(UsageError, match="script"):
                await executor.run(ToolCall(tool="here"), workspace, ("here",))

    async def test_a_tool_whose_libraries_are_absent_ends_the_run(self, workspace):
        def here() -> ToolResult:
            """Nothing."""
            return ToolResult()

        made = tool(category="general", libraries=("cv2_of_nobody",))(here)
        async with ToolExecutor(find_tool=lambda _: made) as executor:
            with pytest.raises(MissingLibraryError, match="here needs cv2_of_nobody"):
                await executor.run(ToolCall(tool="here"), workspace, ("here",))

    async def test_back_ends_are_checked_at_once(self, executor):
        with pytest.raises(UsageError, match="no back-end 'vlm'"):
            ToolExecutor(find_tool=FIND, backends={"environment": "vlm"})


async def test_a_call_returns_result_artifact_and_what_the_sample_knows(executor, workspace):
    outcome = await call(executor, workspace, "look", image="image_1.jpg")
    assert outcome.observation.result == {
        "size_bytes": 6, "gsd_m": 0.05, "figure": "figure.png", "runs": 1, "notes": [], "flags": [],
    }  # fmt: skip
    (artifact,) = outcome.observation.artifacts
    assert (artifact.name, artifact.kind, artifact.media_type) == (
        "figure.png",
        "plot",
        "image/png",
    )
    assert (workspace.artifacts / "figure.png").read_bytes() == b"drawn from pixels"
    assert outcome.source == "tool"
    assert 0 <= outcome.seconds < 20


async def test_a_library_that_a_call_turns_out_to_lack_is_no_fault_of_the_model(
    executor, workspace
):
    with pytest.raises(MissingLibraryError, match="read_raster needs rasterio") as caught:
        await call(executor, workspace, "read_raster")
    assert caught.value.hint == install_command("tools")


async def test_an_artifact_can_be_the_file_of_the_next_call(executor, workspace):
    await call(executor, workspace, "look", image="image_1.jpg")
    outcome = await call(executor, workspace, "look", image="figure.png")
    assert outcome.observation.result["size_bytes"] == len(b"drawn from pixels")
    assert outcome.observation.result["figure"] == "figure_2.png"


async def test_a_worker_knows_nothing_of_this_process(executor, workspace, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:password@proxy")
    first = (await call(executor, workspace, "environment")).observation.result
    assert not {"OPENAI_API_KEY", "HTTPS_PROXY", "PATH", "HOME"} & set(first["names"])
    assert "OMP_NUM_THREADS" in first["names"]
    assert (first["core_limit"], first["memory_limit_mb"], first["stdin"]) == (0, 1024, "")
    assert first["backend"] == "offline"


async def test_the_chosen_back_end_reaches_the_tool(executors, workspace):
    async with executors(find_tool=FIND, backends={"environment": "learned"}) as executor:
        assert (await call(executor, workspace, "environment")).observation.result[
            "backend"
        ] == "learned"


@pytest.mark.parametrize("threads", [1, 2])
async def test_libraries_use_the_threads_they_are_given_and_not_those_of_this_process(
    executors, workspace, monkeypatch, threads
):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    async with executors(workers=1, find_tool=FIND, threads=threads) as executor:
        seen = (await call(executor, workspace, "environment")).observation.result
    told = seen["opencv_threads"], seen["blas_threads"], seen["graph_threads"]
    assert told == (threads, str(threads), str(threads))


async def test_equal_calls_draw_equal_random_numbers(executor, workspace):
    dice = [
        (await call(executor, workspace, "environment")).observation.result["dice"]
        for _ in range(3)
    ]
    assert len(set(dice)) == 1


@pytest.mark.parametrize("where", ["python", "c", "both"])
async def test_stray_prints_do_not_reach_the_protocol(executor, workspace, where):
    assert (await call(executor, workspace, "shout", where=where)).observation.ok
    assert value(await call(executor, workspace, "echo", value=7)) == 7


async def test_exceptions_are_typed_with_their_traceback_in_the_log_and_tool_errors_kept(
    executor, workspace
):
    outcome = await call(executor, workspace, "fail", how="exception")
    assert error_kind(outcome) == "tool_failed"
    assert "secret detail" not in outcome.observation.model_dump_json()
    assert "hostile_tools" not in outcome.observation.model_dump_json()
    assert "secret detail of the inside" in outcome.log
    assert "hostile_tools.py" in outcome.log
    assert value(await call(executor, workspace, "echo", value=1)) == 1
    error = (await call(executor, workspace, "fail", how="tool_error")).observation.error
    assert error.model_dump() == {
        "kind": "nothing_found",
        "message": "there is nothing here",
        "argument": "how",
        "hint": "look elsewhere",
        "candidates": (),
    }


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("abort", "tool_failed"), ("segfault", "tool_failed"), ("exit", "tool_failed"),
        ("hard_exit", "tool_failed"), ("wrong_type", "tool_failed"), ("memory", "limit"), ("big_result", "limit"),
        ("big_artifact", "limit"),
    ],
)  # fmt: skip
async def test_the_death_of_one_call_harms_no_other(executor, workspace, how, kind):
    good = [
        asyncio.create_task(call(executor, workspace, "echo", value=n, wait_s=0.05))
        for n in range(6)
    ]
    bad = asyncio.create_task(call(executor, workspace, "fail", how=how))
    assert error_kind(await bad) == kind
    assert [value(outcome) for outcome in await asyncio.gather(*good)] == list(range(6))
    assert value(await call(executor, workspace, "echo", value=9)) == 9


async def test_a_crash_leaves_its_trace_in_the_log(executor, workspace):
    outcome = await call(executor, workspace, "fail", how="segfault")
    assert "SIGSEGV" in outcome.observation.error.message
    assert "hostile_tools.py" in outcome.log


@pytest.mark.parametrize("how", ["sleep", "spin", "c"])
async def test_a_hanging_call_is_killed_in_time(executors, workspace, tmp_path, how):
    async with executors(workers=1, timeout_s=0.5, find_tool=FIND) as executor:
        assert value(await call(executor, workspace, "echo", value=1)) == 1
        outcome = await call(executor, workspace, "hang", how=how, pid_file=str(tmp_path / "pid"))
        assert error_kind(outcome) == "timeout"
        assert "0.5 s" in outcome.observation.error.message
        assert await gone(int((tmp_path / "pid").read_text()))
        assert value(await call(executor, workspace, "echo", value=2)) == 2


async def test_what_a_hanging_call_started_is_killed_with_it(executors, workspace, tmp_path):
    async with executors(workers=1, timeout_s=2, find_tool=FIND) as executor:
        outcome = await call(
            executor, workspace, "hang", how="child", pid_file=str(tmp_path / "pid")
        )
        assert error_kind(outcome) == "timeout"
        assert await gone(int((tmp_path / "pid").read_text()))


async def test_a_cancelled_call_frees_its_worker_at_once(executors, workspace, tmp_path):
    async with executors(workers=1, timeout_s=60, find_tool=FIND) as executor:
        task = asyncio.create_task(
            call(executor, workspace, "hang", how="sleep", pid_file=str(tmp_path / "pid"))
        )
        assert await eventually(
            lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != ""
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert value(await call(executor, workspace, "echo", value=3)) == 3
        assert await gone(int((tmp_path / "pid").read_text()))


async def test_calls_cancelled_at_any_moment_leave_a_working_executor(workspace):
    before = live()
    async with ToolExecutor(workers=2, timeout_s=60, find_tool=FIND) as executor:
        for delay in (0, 0.01, 0.1, 0.3):
            tasks = [
                asyncio.create_task(call(executor, workspace, "echo", value=n, wait_s=0.1))
                for n in range(6)
            ]
            await asyncio.sleep(delay)
            for task in tasks[::2]:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            for number, outcome in enumerate(outcomes):
                if not isinstance(outcome, asyncio.CancelledError):
                    assert value(outcome) == number  # pyright: ignore[reportArgumentType]
        assert len(executor.worker_pids) <= 2
        assert await eventually(lambda: live() - before == set(executor.worker_pids))
    assert await eventually(lambda: live() == before)


async def test_leaked_memory_is_not_charged_to_the_next_call(workspace):
    async with ToolExecutor(workers=1, timeout_s=20, memory_mb=1024, find_tool=FIND) as executor:
        assert error_kind(await call(executor, workspace, "weigh", size_mb=2000)) == "limit"
        assert (await call(executor, workspace, "keep_memory")).observation.ok
        assert (await call(executor, workspace, "weigh", size_mb=500)).observation.ok


async def test_a_call_that_crashes_every_time_is_tried_on_a_new_worker_once(workspace):
    async with ToolExecutor(workers=1, timeout_s=20, find_tool=FIND) as executor:
        assert (await call(executor, workspace, "echo", value=1)).observation.ok
        assert error_kind(await call(executor, workspace, "fail", how="segfault")) == "tool_failed"
        assert executor.calls_of_workers == 3


async def test_a_worker_killed_from_outside_costs_no_call(workspace):
    async with ToolExecutor(workers=1, timeout_s=20, find_tool=FIND) as executor:
        await call(executor, workspace, "echo", value=0)
        (pid,) = executor.worker_pids
        tasks = [
            asyncio.create_task(call(executor, workspace, "echo", value=n, wait_s=0.05))
            for n in range(7)
        ]
        await asyncio.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        assert [value(outcome) for outcome in await asyncio.gather(*tasks)] == list(range(7))


async def test_nothing_is_left_after_the_end(workspace, tmp_path):
    async with ToolExecutor(workers=2, timeout_s=60, find_tool=FIND) as executor:
        await asyncio.gather(
            *(call(executor, workspace, "echo", value=n, wait_s=0.05) for n in range(4))
        )
        pids = executor.worker_pids
        assert len(pids) == 2
        running = asyncio.create_task(call(executor, workspace, "hang", how="sleep"))
        await asyncio.sleep(0.05)
    assert await gone(*pids)
    with pytest.raises(InfrastructureError, match="closed"):
        await running
    with pytest.raises(InfrastructureError, match="closed"):
        await call(executor, workspace, "echo", value=1)


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python"])
async def test_a_worker_that_cannot_start_is_an_infrastructure_error(
    workspace, monkeypatch, python
):
    monkeypatch.setattr(sys, "executable", python)
    async with ToolExecutor(find_tool=FIND) as executor:
        with pytest.raises(InfrastructureError, match="does not start"):
            await call(executor, workspace, "echo", value=1)


LARGE_MODULE = """
import os
from agrotools.calling.contract import ToolResult, tool

class Nothing(ToolResult):
    pass

@tool(category="general")
def large() -> Nothing:
    "Return nothing."
    return Nothing()

WEIGHTS = bytearray(0 if os.getpid() == {test} else 2 * 2**30)
"""


async def test_a_tool_whose_module_does_not_fit_into_the_memory_is_a_limit(
    workspace, tmp_path, monkeypatch
):
    # the module is small here and large in a worker, whose memory is limited
    (tmp_path / "large_module.py").write_text(LARGE_MODULE.format(test=os.getpid()))
    monkeypatch.syspath_prepend(tmp_path)
    large = importlib.import_module("large_module").large
    async with ToolExecutor(memory_mb=1024, find_tool={"large": large}.__getitem__) as executor:
        outcome = await executor.run(ToolCall(tool="large", arguments={}), workspace, ("large",))
        assert error_kind(outcome) == "limit"


async def test_artifacts_that_cannot_be_written_are_an_infrastructure_error(
    executor, workspace, tmp_path
):
    (tmp_path / "taken").write_bytes(b"")
    blocked = Workspace(workspace.files, tmp_path / "taken" / "folder")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        await call(executor, blocked, "look", image="image_1.jpg")


@pytest.mark.parametrize("how", ["sleep", "spin", "c"])
async def test_no_worker_outlives_a_parent_that_was_killed(tmp_path, how):
    script = f"""
        import asyncio, sys
        sys.path.insert(0, {str(Path(hostile_tools.__file__).parent)!r})
        import hostile_tools
        from pathlib import Path
        from agrotools.core import ToolCall
        from agrotools.calling.execution import ToolExecutor
        from agrotools.calling.workspace import Workspace

        async def main():
            workspace = Workspace((), Path({str(tmp_path)!r}))
            async with ToolExecutor(workers=2, timeout_s=300, find_tool=hostile_tools.BY_NAME.__getitem__) as executor:
                await asyncio.gather(*(
                    executor.run(ToolCall(tool="echo", arguments={{"value": 1, "wait_s": 0.2}}), workspace, ["echo"])
                    for _ in range(2)
                ))
                print(*executor.worker_pids, flush=True)
                await executor.run(ToolCall(tool="hang", arguments={{"how": {how!r}}}), workspace, ["hang"])

        asyncio.run(main())
    """
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(script), stdout=asyncio.subprocess.PIPE
    )
    pids = [int(pid) for pid in (await parent.stdout.readline()).split()]
    assert len(pids) == 2
    assert all(map(alive, pids))
    await asyncio.sleep(0.3)
    parent.kill()
    await parent.wait()
    assert await gone(*pids)


async def test_prepared_workers_have_their_tools_loaded_and_no_call_counts(tmp_path: Path) -> None:
    async with ToolExecutor(workers=2) as executor:
        await executor.prepare(["calculate", "no_such_tool"])
        await executor.prepare(["calculate"])
        assert executor.calls_of_workers == 0
        prepared = set(executor.worker_pids)
        assert len(prepared) == 2
        call = ToolCall(tool="calculate", arguments={"expression": "2+3"})
        outcome = await executor.run(call, Workspace((), tmp_path), ["calculate"])
        assert outcome.observation.result["value"] == 5
        assert (set(executor.worker_pids), executor.calls_of_workers) == (prepared, 1)
