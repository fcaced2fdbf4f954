"""``examples/verifiers`` with verifiers' own command and loader: ``python tests/environments.py verifiers``."""

import importlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agrotools_build import env_rows
from agrotools_build.env import offered_tools
from support.env_episodes import N_ROWS, Played, played, scripted_episodes
from support.scripted_model import ScriptedModel

pytest.importorskip(
    "verifiers.v1", reason="needs verifiers: python tests/environments.py verifiers"
)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "verifiers"
BIN = Path(sys.executable).parent


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("agrotools_env")


def test_the_loader_of_verifiers_finds_the_taskset_and_the_loop_without_a_shell(module: Any):
    import verifiers.v1 as vf
    from verifiers.v1.utils.loaders import default_harness_id, harness_class, resolve_env_config

    taskset = {"id": "agrotools-env", "num_tasks": 2}
    env = vf.load_environment(resolve_env_config({"taskset": taskset}))
    assert [task.data.id for task in env.taskset] == [row["id"] for row in env_rows("train", 2)]
    assert harness_class(default_harness_id("agrotools-env")).EXECUTES_CODE is False


async def test_episodes_over_mcp_return_and_earn_the_same_as_directly(module: Any):
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

    for name, episode in scripted_episodes().items():
        toolset = module.AgrotoolsToolset(module.AgrotoolsTaskConfig().tools)
        server, texts = MCPServer("agrotools"), []
        async with toolset._exit_stack:
            await toolset.setup_task(module.AgrotoolsData(id=episode.row["id"]))
            toolset.register(server)
            async with Client(server) as client:
                listed = (await client.list_tools()).tools
                for tool, arguments in episode.calls:
                    result = await client.call_tool(tool, arguments)
                    texts.append(result.content[0].text)
            assert Played(texts, toolset.env.get_reward()) == played(episode), name
        assert [tool.input_schema for tool in listed] == [
            each["parameters"] for each in offered_tools()
        ]


def test_rollouts_of_the_command_return_and_earn_the_same_as_directly(tmp_path: Path):
    """A tool server and a chat loop as processes of their own, and a scripted model."""
    every = scripted_episodes()
    episodes = {name: every[name] for name in ("right", "refused", "half right")}
    model = ScriptedModel(episodes)
    ids = [episode.row["id"] for episode in episodes.values()]
    with model.server() as server:
        threading.Thread(target=server.serve_forever).start()
        command = [
            BIN / "vf-eval", "agrotools-env", "--model", "scripted", "--client.base-url",
            f"http://127.0.0.1:{server.server_port}/v1", "--client.api-key-var", "NO_KEY",
            "--env.agent.runtime.type", "subprocess", "--max-concurrent", "1", "--no-push", "--no-rich",
            "--env.taskset.num-tasks", str(N_ROWS), "--select.include.ids", json.dumps(ids),
            "--output-dir", tmp_path, "--run.dir", "run",
        ]  # fmt: skip
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # the loop is started by uv
        variables = {"PATH": path, "PYTHONPATH": str(FOLDER), "NO_KEY": "none"}
        ended = subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, check=False
        )
        server.shutdown()
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    lines = (tmp_path / "run" / "traces.jsonl").read_text().splitlines()
    rewards = dict(map(name_and_reward, map(json.loads, lines)))
    assert model.played(rewards) == {name: played(each) for name, each in episodes.items()}
    assert [tool["parameters"] for tool in model.tools] == [
        each["parameters"] for each in offered_tools()
    ]


def name_and_reward(episode: dict[str, Any]) -> tuple[str, float]:
    """Return the last message of a rollout, which names its episode, and what it earned."""
    (trace,) = episode["traces"]
    return trace["nodes"][-1]["message"]["content"], trace["rewards"]["final_answer"]["score"]
