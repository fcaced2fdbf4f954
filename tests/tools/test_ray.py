"""Tool calls on a Ray cluster of two nodes on this machine. Needs Ray: ``python tests/environments.py ray``."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hostile_tools
import pytest
from PIL import Image

from agrotools.core import InfrastructureError, ToolCall, UsageError
from agrotools.tools import get_tool, ray_executor
from agrotools.tools.ray_executor import MOST_TRIES, RayToolExecutor
from agrotools.tools.ray_node import installation
from agrotools.tools.workspace import Workspace
from support.picture_files import field, planted_rows
from support.ray_cluster import KEY, started_cluster

pytest.importorskip("ray", reason="needs Ray: python tests/environments.py ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[2]
SUM = ToolCall(tool="calculate", arguments={"expression": "2 + 3"})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started_cluster(tmp_path_factory.mktemp("cache"), num_cpus=1) as nodes:
        nodes.add_node(num_cpus=1)
        yield nodes


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace((), tmp_path / "artifacts")


async def test_a_call_runs_on_the_cluster(cluster: Any, workspace: Workspace):
    async with RayToolExecutor() as executor:
        assert executor.place == "tool calls run on a Ray cluster of 2 nodes and 2 CPUs"
        outcome = await executor.run(SUM, workspace, ["calculate"])
    assert outcome.observation.result["value"] == 5
    assert not executor.worker_pids, "no worker of this machine ran it"


async def test_a_file_that_a_node_does_not_have_is_sent_once(cluster, tmp_path, monkeypatch):
    """The path leads through an open folder of this process, so that it exists in no other one."""
    Image.fromarray(field(planted_rows()[0])).save(tmp_path / "field.png")
    opened = os.dup2(os.open(tmp_path, os.O_RDONLY), 900)
    path = f"/proc/self/fd/{opened}/field.png"
    tool = get_tool("measure_crop_weed_area")
    request = {"target": tool.target, "arguments": tool.validate({"image": "field.png"}), "paths": {"field.png": path}}
    async with RayToolExecutor() as executor:
        import ray

        stored: list[int] = []
        put = ray.put
        monkeypatch.setattr(ray, "put", lambda content: stored.append(len(content)) or put(content))
        for _ in range(3):
            message, _ = await executor.reply_to({**request, "files": {}, "backend": tool.backends[0]})
            assert "error" not in message, message
    os.close(opened)
    assert stored == [(tmp_path / "field.png").stat().st_size]


async def test_neither_a_task_nor_a_tool_has_a_key(cluster: Any, workspace: Workspace):
    import ray

    sent: list[bytes] = []
    async with RayToolExecutor(find_tool=hostile_tools.BY_NAME.__getitem__) as executor:
        options = executor._task.options

        def watched(**given: Any) -> Any:
            task = options(**given)
            assert "runtime_env" not in given
            return SimpleNamespace(remote=lambda *call: sent.append(ray.cloudpickle.dumps(call)) or task.remote(*call))

        executor._task = SimpleNamespace(options=watched)
        outcome = await executor.run(ToolCall(tool="environment", arguments={}), workspace, ["environment"])
        assert ray.get_runtime_context().runtime_env == {}
    assert outcome.observation.result is not None, outcome.observation.error
    names: Any = outcome.observation.result["names"]
    assert not {"OPENAI_API_KEY", "PATH", "HOME"} & set(names)
    assert sent
    assert not any(KEY.encode() in call for call in sent)


async def test_a_call_takes_one_cpu_and_a_call_on_large_files_its_memory(cluster, tmp_path, monkeypatch):
    Image.fromarray(field(planted_rows()[0])).save(tmp_path / "field.png")
    files = {"field.png": tmp_path / "field.png"}
    async with RayToolExecutor(memory_mb=64) as executor:
        for limit, memory in ((2**40, {}), (1, {"memory": 64 * 2**20})):
            monkeypatch.setattr(ray_executor, "_LARGE_FILES", limit)
            async with executor._place({"backend": "offline"}, files) as options:
                assert options == {"num_cpus": 1, **memory}
        async with executor._place({"backend": "learned:net"}, {}) as options:
            assert options["memory"] == 64 * 2**20
        executor.memory_mb = 2**30
        async with executor._place({"backend": "learned:net"}, {}) as options:
            assert options["memory"] == max(node["Resources"]["memory"] for node in executor._nodes())


def test_the_command_prints_nothing_of_ray_and_no_usage_is_reported(cluster: Any, tmp_path: Path):
    """Without and with a cluster: it starts one itself with as many CPUs as workers."""
    environment = {name: value for name, value in os.environ.items() if name != "RAY_USAGE_STATS_ENABLED"}
    code = (
        "import asyncio, os\n"
        "from agrotools.tools.ray_executor import RayToolExecutor\n"
        "from agrotools.core import ToolCall\n"
        "from agrotools.tools.workspace import Workspace\n"
        "from pathlib import Path\n"
        "async def main():\n"
        "    async with RayToolExecutor(2) as executor:\n"
        "        call = ToolCall(tool='calculate', arguments={'expression': '2 + 3'})\n"
        "        await executor.run(call, Workspace((), Path('artifacts')), ['calculate'])\n"
        "        print(executor.place, os.environ['RAY_USAGE_STATS_ENABLED'])\n"
        "asyncio.run(main())\n"
    )
    for address, nodes in (("local", "1 node"), (cluster.address, "2 nodes")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, "RAY_ADDRESS": address},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.stderr == ""
        assert done.stdout == f"tool calls run on a Ray cluster of {nodes} and 2 CPUs 0\n"


async def test_a_node_with_another_version_is_refused_before_the_first_call(cluster, monkeypatch):
    monkeypatch.setattr(ray_executor, "installation", lambda: {**installation(), "agrotools": "9.9"})
    with pytest.raises(UsageError, match=r"a Ray node, [\d.]+, has agrotools .*, and this machine 9\.9") as refused:
        async with RayToolExecutor():
            pass
    assert "install the same versions on every node" in str(refused.value.hint)


async def test_other_data_files_of_a_tool_stop_the_run(cluster, workspace, monkeypatch):
    here = {**installation("agrotools.tools.general.calculate:calculate"), "file mine.toml": "f" * 64}
    monkeypatch.setattr(ray_executor, "_expected", lambda *_: here)
    async with RayToolExecutor() as executor:
        with pytest.raises(UsageError, match=r"a Ray node has "):
            await executor.run(SUM, workspace, ["calculate"])


async def test_a_call_that_is_lost_each_time_is_no_fault_of_the_model(cluster, workspace, tmp_path):
    tries = tmp_path / "tries"

    def die(*_: object) -> None:
        with tries.open("a") as file:
            file.write("x")
        os._exit(1)

    async with RayToolExecutor() as executor:
        executor._task = executor._ray.remote(die)
        with pytest.raises(InfrastructureError, match=f"calculate was lost on the Ray cluster {MOST_TRIES} times"):
            await executor.run(SUM, workspace, ["calculate"])
        assert executor.calls_sent_again == MOST_TRIES - 1
    assert tries.read_text() == "x" * MOST_TRIES


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("ray://127.0.0.1:10001", UsageError, "Ray Client"),
        ("127.0.0.1:1", InfrastructureError, "there is no Ray cluster at 127.0.0.1:1: .*refused"),
        ("127.0.0.1", InfrastructureError, "there is no Ray cluster at 127.0.0.1"),
    ],
)
async def test_an_address_without_a_cluster_is_refused_at_once(address, error, message, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", address)
    started = time.monotonic()
    with pytest.raises(error, match=message):
        async with RayToolExecutor():
            pass
    assert time.monotonic() - started < 30


def test_kills_of_workers_nodes_and_the_command_lose_and_double_nothing():
    script = str(ROOT / "performance" / "ray_cluster.py")
    kills = ["--worker-kills", "4", "--node-kills", "2", "--driver-kills", "1", "--pause", "4", "--seed", "3"]
    done = subprocess.run([sys.executable, script, *kills], capture_output=True, text=True, check=False, timeout=900)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["kills"] == {"worker": 4, "node": 2, "driver": 1}
    assert (result["lost"], result["doubled"], result["different"]) == (0, 0, 0)
    assert result["records"] >= 60
    assert done.returncode == 0, done.stderr[-2000:]
