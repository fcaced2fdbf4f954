"""``examples/nemo_gym`` on a server, as NeMo Gym's agent calls it: ``python tests/environments.py nemo-gym``."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from agrotools_build.env import offered_tools
from support.env_episodes import Episode, Played, played, scripted_episodes

pytest.importorskip("nemo_gym", reason="needs NeMo Gym: python tests/environments.py nemo-gym")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

APP = (
    Path(__file__).resolve().parents[3]
    / "examples" / "nemo_gym" / "resources_servers" / "agrotools" / "app.py"
)  # fmt: skip


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
    rows = module.gym_rows("train", 12)
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
    assert "call reset to start an episode" in client.post("/plot", json={}).text
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
