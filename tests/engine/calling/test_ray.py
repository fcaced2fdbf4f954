"""Tool calls on a Ray cluster of this machine. Needs Ray: ``python tests/environments.py ray``.

What it shares with the executor of this machine: test_ray_executor.py.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hostile_tools
import pytest
import pytest_asyncio
from PIL import Image

from agrotools.calling import get_tool, ray_executor
from agrotools.calling.workspace import Workspace
from agrotools.core import InfrastructureError, ToolCall, UsageError
from support.executor_calls import call, value
from support.picture_files import field, planted_rows
from support.ray_cluster import KEY, started_cluster

pytest.importorskip("ray", reason="needs Ray: python tests/environments.py ray")
from agrotools.calling.ray_executor import MOST_TRIES, RayToolExecutor, installation

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.asyncio(loop_scope="module"),
]

ROOT = Path(__file__).parents[3]
FIND = hostile_tools.BY_NAME.__getitem__
SUM = ToolCall(tool="calculate", arguments={"expression": "2 + 3"})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started_cluster(tmp_path_factory.mktemp("cache"), num_cpus=1) as nodes:
        yield nodes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def executor(cluster: Any) -> AsyncIterator[RayToolExecutor]:
    async with RayToolExecutor(find_tool=FIND) as executor:
        yield executor


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace((), tmp_path / "artifacts")


async def test_a_file_that_a_node_does_not_have_is_sent_once(executor, tmp_path, monkeypatch):
    """The path leads through an open folder of this process, so that it exists in no other one."""
    Image.fromarray(field(planted_rows()[0])).save(tmp_path / "field.png")
    opened = os.dup2(os.open(tmp_path, os.O_RDONLY), 900)
    path = f"/proc/self/fd/{opened}/field.png"
    tool = get_tool("measure_crop_weed_area")
    request = {
        "target": tool.target,
        "arguments": tool.validate({"image": "field.png"}),
        "paths": {"field.png": path},
    }
    stored: list[int] = []
    put = executor._ray.put
    monkeypatch.setattr(
        executor._ray, "put", lambda content: stored.append(len(content)) or put(content)
    )
    for _ in range(3):
        message, _ = await executor.reply_to({**request, "files": {}, "backend": tool.backends[0]})
        assert "error" not in message, message
    os.close(opened)
    assert stored == [(tmp_path / "field.png").stat().st_size]
    assert not executor.worker_pids, "no worker of this machine ran it"


async def test_neither_a_task_nor_a_tool_has_a_key(executor, workspace, monkeypatch):
    sent: list[bytes] = []
    options = executor._task.options
    dumps = executor._ray.cloudpickle.dumps

    def watched(**given: Any) -> Any:
        assert given == {"num_cpus": 1, "max_retries": 0}
        return SimpleNamespace(
            remote=lambda *each: sent.append(dumps(each)) or options(**given).remote(*each)
        )

    monkeypatch.setattr(executor, "_task", SimpleNamespace(options=watched))
    outcome = await call(executor, workspace, "environment")
    assert executor._ray.get_runtime_context().runtime_env == {}
    assert not {"OPENAI_API_KEY", "PATH", "HOME"} & set(outcome.observation.result["names"])
    assert sent
    assert not any(KEY.encode() in each for each in sent)


async def test_calls_on_large_files_reserve_memory(executor, tmp_path, monkeypatch):
    given: list[dict[str, Any]] = []
    task = SimpleNamespace(
        options=lambda **options: given.append(options) or SimpleNamespace(remote=None)
    )
    monkeypatch.setattr(executor, "_task", task)
    monkeypatch.setattr(executor, "memory_mb", 64)
    file = tmp_path / "field.tif"
    file.write_bytes(b"1" * 9)
    for least in (9, 10):
        monkeypatch.setattr(ray_executor, "_LARGE_FILES", least)
        async with executor._remote({"field.tif": file}):
            pass
    assert [options.get("memory") for options in given] == [64 * 2**20, None]


def test_the_command_prints_nothing_of_ray_and_no_usage_is_reported(cluster: Any, tmp_path: Path):
    code = (
        "import asyncio, os\n"
        "from agrotools.calling.ray_executor import RayToolExecutor\n"
        "from agrotools.core import ToolCall\n"
        "from agrotools.calling.workspace import Workspace\n"
        "from pathlib import Path\n"
        "async def main():\n"
        "    async with RayToolExecutor(2) as executor:\n"
        "        call = ToolCall(tool='calculate', arguments={'expression': '2 + 3'})\n"
        "        done = await executor.run(call, Workspace((), Path('artifacts')), ['calculate'])\n"
        "        print(done.observation.result['value'], os.environ['RAY_USAGE_STATS_ENABLED'])\n"
        "asyncio.run(main())\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if name != "RAY_USAGE_STATS_ENABLED"
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "RAY_ADDRESS": cluster.address},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (done.stdout, done.stderr) == ("5 0\n", "")


@pytest.mark.parametrize("part", ["agrotools", "file mine.toml"])
async def test_a_node_with_another_version_or_data_file_stops_the_run(
    executor, workspace, monkeypatch, part
):
    here = {**installation("agrotools_tools.general.calculate:calculate", "offline"), part: "9.9"}
    monkeypatch.setattr(executor, "_find_tool", get_tool)
    monkeypatch.setattr(ray_executor, "installation", lambda *_: here)
    with pytest.raises(
        UsageError, match=f"a Ray node has {part} .*, and this machine 9.9"
    ) as refused:
        await executor.run(SUM, workspace, ["calculate"])
    assert "install the same versions on every node" in str(refused.value.hint)


async def test_a_node_without_agrotools_stops_the_run(executor, workspace, monkeypatch):
    monkeypatch.setattr(executor, "_find_tool", get_tool)
    monkeypatch.setattr(
        executor, "_task", executor._ray.remote(lambda *_: __import__("no_such_agrotools"))
    )
    with pytest.raises(UsageError, match=r"a Ray node cannot run agrotools: .*no_such_agrotools"):
        await executor.run(SUM, workspace, ["calculate"])


async def test_a_call_that_is_lost_each_time_is_no_fault_of_the_model(
    executor, workspace, tmp_path, monkeypatch
):
    tries = tmp_path / "tries"

    def die(*_: object) -> None:
        with tries.open("a") as file:
            file.write("x")
        os._exit(1)

    sent = executor.calls_sent_again
    with monkeypatch.context() as patch:
        patch.setattr(executor, "_task", executor._ray.remote(die))
        with pytest.raises(
            InfrastructureError, match=f"echo was lost on the Ray cluster {MOST_TRIES} times"
        ):
            await call(executor, workspace, "echo", value=1)
    assert executor.calls_sent_again == sent + MOST_TRIES - 1
    assert tries.read_text() == "x" * MOST_TRIES
    assert value(await call(executor, workspace, "echo", value=3)) == 3


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "127.0.0.1:1", "127.0.0.1"])
async def test_an_address_without_a_cluster_is_refused_at_once(address, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", address)
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match=f"there is no Ray cluster at {address} "):
        RayToolExecutor()._connect()
    assert time.monotonic() - started < 30


def test_kills_of_workers_nodes_and_the_command_lose_and_double_nothing():
    script = str(ROOT / "performance" / "ray_cluster.py")
    kills = [
        "--worker-kills",
        "4",
        "--node-kills",
        "2",
        "--driver-kills",
        "1",
        "--pause",
        "4",
        "--seed",
        "3",
    ]
    done = subprocess.run(
        [sys.executable, script, *kills], capture_output=True, text=True, check=False, timeout=900
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["kills"] == {"worker": 4, "node": 2, "driver": 1}
    assert (result["lost"], result["doubled"], result["different"]) == (0, 0, 0)
    assert result["records"] >= 60
    assert done.returncode == 0, done.stderr[-2000:]
