"""``examples/nemo_gym`` on a server, as NeMo Gym's agent calls it: ``python tests/environments.py nemo-gym``."""

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from agrotools_build.env import offered_tools
from support.env_episodes import N_ROWS, Episode, Played, played, scripted_episodes
from support.scripted_model import ScriptedModel

pytest.importorskip("nemo_gym", reason="needs NeMo Gym: python tests/environments.py nemo-gym")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROJECT = Path(__file__).resolve().parents[3] / "examples" / "nemo_gym"
APP = PROJECT / "resources_servers" / "agrotools" / "app.py"
GYM = Path(sys.executable).with_name("gym")


@pytest.fixture(scope="module")
def module() -> Any:
    spec = importlib.util.spec_from_file_location("nemo_gym_app", APP)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def app(module: Any) -> Iterator[Any]:
    from nemo_gym.server_utils import ServerClient

    config = module.AgrotoolsConfig(host="127.0.0.1", port=8080, entrypoint="", name="agrotools")
    server = module.AgrotoolsResourcesServer(
        config=config, server_client=MagicMock(spec=ServerClient)
    )
    yield server.setup_webserver()
    assert not server.episodes, "a verified episode is closed"


def gym_row(module: Any, episode: Episode) -> dict[str, Any]:
    rows = module.gym_rows("train", N_ROWS)
    return next(row for row in rows if row["row_id"] == episode.row["id"])


def response(episode: Episode) -> dict[str, Any]:
    """What the agent hands to /verify: the calls of the model as a response."""
    calls = [
        {"type": "function_call", "call_id": str(at), "name": name, "arguments": json.dumps(given)}
        for at, (name, given) in enumerate(episode.calls)
    ]
    return {
        "id": "1", "created_at": 1, "model": "scripted", "object": "response", "output": calls, "tools": [],
        "parallel_tool_calls": False, "tool_choice": "auto",
    }  # fmt: skip


def test_episodes_return_and_earn_the_same_as_directly(module: Any, app: Any):
    from fastapi.testclient import TestClient

    clients = {name: TestClient(app) for name in scripted_episodes()}
    episodes = scripted_episodes()
    for name, client in clients.items():  # all are open at the same time
        row = gym_row(module, episodes[name])
        assert client.post("/seed_session", json=row).status_code == 200
    for name, client in clients.items():
        episode, texts = episodes[name], []
        for tool, arguments in episode.calls:
            reply = client.post(f"/{tool}", json=arguments)
            assert reply.status_code == 200
            texts.append(reply.text)
        asked = gym_row(module, episode) | {"response": response(episode)}
        verified = [client.post("/verify", json=asked).json() for _ in range(2)]
        assert Played(texts, verified[0]["reward"]) == played(episode), name
        assert verified[0] == verified[1], "a client may ask again"


def test_calls_without_an_episode_and_of_no_tool_are_told(module: Any, app: Any):
    from fastapi.testclient import TestClient

    client = TestClient(app)
    assert "no episode has begun" in client.post("/plot", json={}).text
    client.post("/seed_session", json=gym_row(module, scripted_episodes()["right"]))
    assert "unknown_tool" in client.post("/no_such_tool", json={}).text
    asked = gym_row(module, scripted_episodes()["right"])
    verified = client.post(
        "/verify", json=asked | {"response": response(scripted_episodes()["no form"])}
    )
    assert verified.json()["reward"] == 0


def test_rows_are_written_as_nemo_gym_reads_them(module: Any):
    from nemo_gym.openai_utils import NeMoGymResponseCreateParamsNonStreaming

    ended = subprocess.run(
        [sys.executable, APP, "train", "2"], capture_output=True, text=True, check=True
    )
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert rows == module.gym_rows("train", 2)
    for row in rows:
        asked = NeMoGymResponseCreateParamsNonStreaming.model_validate(
            row["responses_create_params"]
        )
        assert [tool["name"] for tool in asked.tools] == [tool["name"] for tool in offered_tools()]


def test_rollouts_of_the_command_return_and_earn_the_same_as_directly(module: Any, tmp_path: Path):
    """NeMo Gym's own agent and model server, as processes, with a scripted model."""
    every = scripted_episodes()
    episodes = {name: every[name] for name in ("right", "refused", "half right")}
    rows = [json.dumps(gym_row(module, episode)) for episode in episodes.values()]
    shutil.copytree(PROJECT / "resources_servers", tmp_path / "resources_servers")
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    for server in (
        "resources_servers/agrotools",
        "responses_api_agents/simple_agent",
        "responses_api_models/openai_model",
    ):
        venv = tmp_path / "venvs" / server / ".venv"  # each server is given this environment
        venv.parent.mkdir(parents=True)
        venv.symlink_to(sys.prefix)
    model = ScriptedModel(episodes)
    with model.server() as server:
        threading.Thread(target=server.serve_forever).start()
        start = [
            "env", "start", "--resources-server", "agrotools", "--model-type", "openai_model", "--model", "scripted",
            "--model-url", f"http://127.0.0.1:{server.server_port}/v1", "--model-api-key", "none",
            "+skip_venv_if_present=true", f"+uv_venv_dir={tmp_path / 'venvs'}",
        ]  # fmt: skip
        with (tmp_path / "log").open("w") as log:
            started = subprocess.Popen([GYM, *start], cwd=tmp_path, stdout=log, stderr=log)
        try:
            while "servers ready" not in (tmp_path / "log").read_text():
                assert started.poll() is None, (tmp_path / "log").read_text()[-3000:]
                time.sleep(1)
            run = [
                "eval", "run", "--no-serve", "--agent", "agrotools_simple_agent", "--concurrency", "1",
                "--input", tmp_path / "rows.jsonl", "--output", tmp_path / "rollouts.jsonl",
            ]  # fmt: skip
            ended = subprocess.run(
                [GYM, *run], cwd=tmp_path, capture_output=True, text=True, check=False
            )
        finally:
            started.send_signal(signal.SIGINT)
            started.wait()
            server.shutdown()
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    lines = (tmp_path / "rollouts.jsonl").read_text().splitlines()
    rewards = dict(map(name_and_reward, map(json.loads, lines)))
    assert model.played(rewards) == {name: played(each) for name, each in episodes.items()}


def name_and_reward(rollout: dict[str, Any]) -> tuple[str, float]:
    """Return the last message of a rollout, which names its episode, and what it earned."""
    return rollout["response"]["output"][-1]["content"][0]["text"], rollout["reward"]
