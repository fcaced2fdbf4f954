"""Server of ``agrotools_build.Env`` for OpenEnv 0.10: ``uvicorn app:app --app-dir examples/openenv --port 8000``.

A client resets to an ``id`` of ``env_rows``, or to a ``split`` with an ``index`` (without one, ``seed`` counts), and
calls tools with OpenEnv's own actions ``list_tools`` and ``call_tool``. ``AGROTOOLS_ROWS`` is the number of questions
of a split. The server draws those of ``train`` when it starts, about 3 s each, and the others when they are asked for.
"""

import os
from typing import Any
from uuid import uuid4

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
)
from openenv.core.env_server.types import Action, Observation, State

from agrotools_build import Env, env_rows
from agrotools_build.env import SPLITS, call_tool, offered_tools

N_ROWS = int(os.environ.get("AGROTOOLS_ROWS", "15"))
TOOLS = [
    Tool(name=tool["name"], description=tool["description"], input_schema=tool["parameters"])
    for tool in offered_tools()
]


class PromptObservation(Observation):
    """What ``reset`` returns: the instructions, the files and the question."""

    prompt: str = ""


class EpisodeState(State):
    """The episode's question and its reward so far, which counts if the episode is cut off."""

    id: str | None = None
    reward: float = 0.0


class AgrotoolsEnvironment(Environment[Action, Observation, EpisodeState]):
    """One episode at a time. The last observation (``done``) has the reward of the episode, the others have 0."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self.env = Env()
        self._episode = EpisodeState()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        id: str | None = None,
        split: str = "train",
        index: int | None = None,
        **_: Any,
    ) -> PromptObservation:
        if id is None:
            id = self.get_task(split, (seed or 0) % N_ROWS if index is None else index)["id"]
        prompt = self.env.reset(id=id)
        self._episode = EpisodeState(episode_id=episode_id or str(uuid4()), id=id)
        return PromptObservation(prompt=prompt, reward=0.0)

    def step(self, action: Action, timeout_s: float | None = None, **_: Any) -> Observation:
        if isinstance(action, ListToolsAction):
            return ListToolsObservation(tools=TOOLS, reward=0.0)
        assert isinstance(action, CallToolAction)
        was_over = self.env.is_over
        result = call_tool(self.env, action.tool_name, action.arguments)
        self._episode.step_count += 1
        self._episode.reward = self.env.get_reward()
        ends = self.env.is_over and not was_over  # a call after the end earns nothing again
        return CallToolObservation(
            tool_name=action.tool_name,
            result=result,
            done=self.env.is_over,
            reward=self._episode.reward if ends else 0.0,
        )

    @property
    def state(self) -> EpisodeState:
        return self._episode

    def close(self) -> None:
        self.env.close()

    def list_splits(self) -> list[str]:
        return list(SPLITS)

    def num_tasks(self, split: str) -> int:
        return N_ROWS if split in SPLITS else 0

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return self.get_task_range(split)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        return self.get_task_range(split)[index]

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        rows = env_rows(split, N_ROWS)
        return [{"id": row["id"], "index": at} for at, row in enumerate(rows)][start:stop]


env_rows("train", N_ROWS)
app = create_app(
    AgrotoolsEnvironment, CallToolAction, CallToolObservation, env_name="agrotools",
    max_concurrent_envs=16, state_cls=EpisodeState, reset_observation_cls=PromptObservation,
)  # fmt: skip
