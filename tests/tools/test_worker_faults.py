"""What a tool does to its worker: nothing of it reaches other calls, and nothing of it is left."""

import asyncio
import time
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import hostile_tools
import pytest
import pytest_asyncio

from agrotools.core import InfrastructureError, SampleFile
from agrotools.tools import worker_process
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.result import BrokenFrame, pack_frame, read_frame
from agrotools.tools.workspace import Workspace
from support.executor_calls import call, children, gone

FIND = hostile_tools.BY_NAME.__getitem__


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "image_1.jpg").write_bytes(b"pixels")
    file = SampleFile(name="image_1.jpg", path=str(tmp_path / "image_1.jpg"), kind="image")
    return Workspace((file,), tmp_path / "artifacts")


@pytest_asyncio.fixture
async def executor(executors: type[ToolExecutor]) -> AsyncIterator[ToolExecutor]:
    async with executors(workers=1, timeout_s=20, memory_mb=1024, find_tool=FIND) as executor:
        yield executor


def kind_of(outcome: ToolOutcome) -> str | None:
    return outcome.observation.error.kind if outcome.observation.error else None


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("garbage", "tool_failed"),
        ("large_header", "tool_failed"),
        ("close_output", "tool_failed"),
        ("crash_beside_child", "tool_failed"),
        pytest.param("numpy_memory", "limit", marks=pytest.mark.slow),
    ],
)
async def test_a_broken_line_is_seen_at_once_and_costs_its_own_call_alone(executor, workspace, how, kind):
    good = [asyncio.create_task(call(executor, workspace, "echo", value=n)) for n in range(4)]
    started = time.monotonic()
    assert kind_of(await call(executor, workspace, "break_line", how=how)) == kind
    assert time.monotonic() - started < 15  # long before the time-out of a call
    good += [asyncio.create_task(call(executor, workspace, "echo", value=n)) for n in range(4, 8)]
    results = [outcome.observation.result for outcome in await asyncio.gather(*good)]
    assert [result and result["value"] for result in results] == list(range(8))


@pytest.mark.parametrize("how", ["poison", "daemon_thread", "come_back_twice"])
async def test_what_a_call_leaves_behind_is_not_charged_to_the_next(executor, workspace, how):
    for round_ in range(2):
        assert (await call(executor, workspace, "spoil", how=how)).observation.ok
        for number in range(2):
            outcome = await call(executor, workspace, "echo", value=round_ + number, wait_s=0.1)
            assert outcome.observation.ok, outcome
            assert outcome.observation.result["value"] == round_ + number


async def test_leaked_memory_is_not_charged_to_the_next(executor, workspace):
    assert kind_of(await call(executor, workspace, "weigh", size_mb=2000)) == "limit"
    assert (await call(executor, workspace, "spoil", how="leak")).observation.ok
    assert (await call(executor, workspace, "weigh", size_mb=500)).observation.ok


async def test_a_call_that_crashes_every_time_is_tried_on_a_new_worker_once(executor, workspace):
    assert (await call(executor, workspace, "echo", value=1)).observation.ok
    assert kind_of(await call(executor, workspace, "fail", how="segfault")) == "tool_failed"
    assert executor.calls_of_workers == 3
    assert kind_of(await call(executor, workspace, "fail", how="segfault")) == "tool_failed"
    assert executor.calls_of_workers == 4


@pytest.mark.parametrize("how", ["child", "daemon"])
async def test_processes_that_a_tool_leaves_behind_are_ended(executor, workspace, tmp_path, how):
    outcome = await call(executor, workspace, "spoil", how=how, pid_file=str(tmp_path / "pid"))
    assert outcome.observation.ok
    assert await gone(int((tmp_path / "pid").read_text()))
    assert (await call(executor, workspace, "echo", value=1)).observation.ok


@pytest.mark.slow
async def test_crashes_leave_no_zombie_and_no_open_file(workspace):
    before = children()
    async with ToolExecutor(workers=2, timeout_s=0.5, memory_mb=1024, find_tool=FIND) as executor:
        assert (await call(executor, workspace, "echo", value=0)).observation.ok
        files = open_files()
        for _ in range(2):
            await asyncio.gather(
                call(executor, workspace, "fail", how="segfault"),
                call(executor, workspace, "hang", how="c"),
                call(executor, workspace, "break_line", how="crash_beside_child"),
            )
        assert (await call(executor, workspace, "echo", value=0)).observation.ok
        await asyncio.sleep(0.3)
        # two workers, with three files each, may be idle now where one was
        assert open_files() <= files + 6
        assert set(children()) - set(before) == set(executor.worker_pids)
    assert children() == before


async def test_no_room_for_a_log_is_an_infrastructure_error(workspace, monkeypatch):
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker_process, "_anonymous_file", full)
    async with ToolExecutor(workers=1, find_tool=FIND) as executor:
        with pytest.raises(InfrastructureError, match="No space left"):
            await call(executor, workspace, "echo", value=1)


class TestFrames:
    MESSAGE = {"result": {"value": 1.5, "text": "ü"}}
    CONTENTS = [b"first", b"", b"third" * 1000]

    def test_a_frame_is_read_as_it_was_packed(self):
        source = BytesIO(pack_frame(self.MESSAGE, self.CONTENTS) + pack_frame({"n": 1}))
        assert read_frame(source) == (self.MESSAGE, self.CONTENTS)
        assert read_frame(source) == ({"n": 1}, [])
        assert read_frame(source) is None

    @pytest.mark.parametrize("noise", [b"\0\0\0\2" + bytes(8) + b"{]", b"\0\0\0\2" + bytes(8) + b"12"])
    def test_noise_is_no_frame(self, noise):
        with pytest.raises(BrokenFrame):
            read_frame(BytesIO(noise))
