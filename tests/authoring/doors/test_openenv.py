"""``examples/openenv`` on a server, with OpenEnv's client and validation: ``python tests/environments.py openenv``."""

import importlib.util
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.env_episodes import N_ROWS, Episode, Played, played, scripted_episodes

pytest.importorskip("openenv.core", reason="needs OpenEnv: python tests/environments.py openenv")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "openenv"
OPENENV = Path(sys.executable).with_name("openenv")
RUNTIME_CHECKS = {
    "static.manifest",
    "runtime.startup",
    "runtime.reward_well_formed",
    "runtime.observation_schema",
    "runtime.state_contract",
}
"""Checks that openenv 0.10 has code for, but for that of the network, which needs a container."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    import uvicorn

    spec = importlib.util.spec_from_file_location("openenv_app", FOLDER / "app.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.N_ROWS == N_ROWS
    server = uvicorn.Server(uvicorn.Config(module.app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def played_by_client(url: str, episode: Episode) -> tuple[Played, dict[str, Any]]:
    """What the observations of an episode say, the sum of their rewards, and the state at the end."""
    from openenv import GenericEnvClient

    texts, total = [], 0.0
    with GenericEnvClient(base_url=url).sync() as client:
        result = client.reset(id=episode.row["id"])
        assert "\nQuestion: " in result.observation["prompt"]
        for name, arguments in episode.calls:
            action = {"type": "call_tool", "tool_name": name, "arguments": arguments}
            result = client.step(action)
            texts.append(result.observation["result"])
            total += result.reward
        return Played(texts, total), client.state()


def test_episodes_return_and_earn_the_same_as_directly(url: str):
    for name, episode in scripted_episodes().items():
        by_client, state = played_by_client(url, episode)
        assert by_client == played(episode), name
        assert state["reward"] == by_client.reward, name
        assert state["step_count"] == len(episode.calls)


def test_a_task_is_reset_by_split_and_place_or_by_seed(url: str):
    import requests
    from openenv import GenericEnvClient

    from agrotools_build import env_rows

    rows = [row["id"] for row in env_rows("train", N_ROWS)]
    asked = {"split": "train"}
    tasks = requests.post(f"{url}/agrotools/tasks", json=asked, timeout=60).json()["tasks"]
    assert [task["id"] for task in tasks] == rows
    with GenericEnvClient(base_url=url).sync() as client:
        for named, at in (({"split": "train", "index": 1}, 1), ({"seed": N_ROWS + 2}, 2), ({}, 0)):
            client.reset(**named)
            assert client.state()["id"] == rows[at]


def test_the_tools_are_listed_and_called_over_mcp_of_openenv(url: str):
    from openenv.core.mcp_client import MCPToolClient

    with MCPToolClient(base_url=url).sync() as client:
        client.reset(seed=0)
        tools = client.list_tools()
        assert len(tools) == 15
        assert {"plot", "submit_answer"} <= {tool.name for tool in tools}
        assert '"value": 42' in str(client.call_tool("calculate", expression="6 * 7"))


def validated(*arguments: str) -> dict[str, Any]:
    ended = subprocess.run(
        [OPENENV, "validate", *arguments, "--json"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    return json.loads(ended.stdout)


def test_the_package_and_the_server_pass_the_checks_of_the_command(url: str):
    report = validated(str(FOLDER), "--level", "static")
    assert (report["verdict"], {each["status"] for each in report["results"]}) == ("pass", {"pass"})
    report = validated(str(FOLDER))
    assert {each["status"] for each in report["results"]} == {"pass", "skip"}
    assert validated("--url", url)["passed"]


def test_the_server_passes_the_runtime_checks(url: str, tmp_path: Path):
    """The server of this test in place of a container, which needs Docker."""
    import yaml
    from openenv.validation import run_validation

    package = tmp_path / "agrotools"
    shutil.copytree(FOLDER, package, ignore=shutil.ignore_patterns("__pycache__"))
    manifest = yaml.safe_load((package / "openenv.yaml").read_text())
    manifest["validation"]["execution"] = {"probe_path": "runtime.json"}
    (package / "openenv.yaml").write_text(yaml.safe_dump(manifest))
    episode = scripted_episodes()["right"]
    actions = [
        {"type": "call_tool", "tool_name": name, "arguments": arguments}
        for name, arguments in episode.calls
    ]
    reset = {"episode_id": "one", "seed": 0, "options": {"id": episode.row["id"]}}
    plan = {"plan_schema_version": "1", "reset": reset, "actions": actions}
    (package / "runtime.json").write_text(json.dumps(plan))
    running = SimpleNamespace(base_url=url, inspect=dict, stop=lambda: None)
    provider = SimpleNamespace(
        name="this process",
        capabilities=frozenset({_image_build()}),
        supported_network_modes=frozenset({"public"}),
        build=lambda *_: "sha256:" + "0" * 64,
        start=lambda _: running,
    )
    report = run_validation(package, provider=provider)
    found = {each.check_id: (each.status.value, each.evidence) for each in report.results}
    assert {name for name, (status, _) in found.items() if status == "pass"} == RUNTIME_CHECKS
    assert {status for status, _ in found.values()} == {"pass", "skip"}


def _image_build() -> Any:
    from openenv.validation.types import ProviderCapability

    return ProviderCapability.IMAGE_BUILD
