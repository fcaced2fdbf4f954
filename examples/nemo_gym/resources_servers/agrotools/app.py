"""Resources server of ``agrotools_build.Env`` for NeMo Gym 0.4 (Python 3.12).

Each tool is an endpoint, ``/verify`` returns the reward. An episode belongs to the session of a cookie, which
``simple_agent`` of NeMo Gym keeps. ``python app.py train 100 > train.jsonl`` writes rows (about 3 s each on first use).
"""

import json
import sys
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import Field

from agrotools_build import Env, env_rows
from agrotools_build.env import Split, call_tool, offered_tools


class AgrotoolsConfig(BaseResourcesServerConfig):
    pass


class SeedRequest(BaseSeedSessionRequest):
    row_id: str
    """The ``id`` of a row of ``env_rows``."""


class VerifyRequest(BaseVerifyRequest):
    row_id: str


class VerifyResponse(BaseVerifyResponse):
    row_id: str


class AgrotoolsResourcesServer(SimpleResourcesServer):
    """Episodes by session. They are kept in this process: give the server one worker."""

    config: AgrotoolsConfig
    episodes: dict[str, Any] = Field(default_factory=dict)
    rewards: dict[str, float] = Field(default_factory=dict)
    """Rewards of episodes that are verified, for a client that asks again."""

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        # After /seed_session, /verify and /aggregate_metrics: any other name is that of a tool, known or not.
        app.post("/{tool}")(self.call)
        return app

    async def seed_session(self, request: Request, body: SeedRequest) -> BaseSeedSessionResponse:
        env = self.episodes.setdefault(request.session[SESSION_ID_KEY], Env())
        await run_in_threadpool(env.reset, id=body.row_id)
        return BaseSeedSessionResponse()

    async def call(
        self, request: Request, tool: str, arguments: Annotated[dict[str, Any], Body()]
    ) -> PlainTextResponse:
        env = self.episodes.get(request.session[SESSION_ID_KEY]) or Env()
        return PlainTextResponse(await run_in_threadpool(call_tool, env, tool, arguments))

    async def verify(self, request: Request, body: VerifyRequest) -> VerifyResponse:
        session = request.session[SESSION_ID_KEY]
        if env := self.episodes.pop(session, None):
            self.rewards[session] = env.get_reward()
            env.close()
        return VerifyResponse(**body.model_dump(), reward=self.rewards.get(session, 0.0))


def gym_rows(split: Split, n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return rows of ``env_rows`` as NeMo Gym reads them: prompt and tools are a request of the Responses API."""
    tools = [{"type": "function", "strict": False, **tool} for tool in offered_tools()]
    env, rows = Env(), []
    for row in env_rows(split, n, seed):
        asked = {"input": [{"role": "user", "content": env.reset(**row)}], "tools": tools}
        rows.append({"responses_create_params": asked, "row_id": row["id"]})
    env.close()
    return rows


if __name__ == "__main__" and len(sys.argv) == 3:
    for each in gym_rows(sys.argv[1], int(sys.argv[2])):
        print(json.dumps(each))
elif __name__ == "__main__":
    AgrotoolsResourcesServer.run_webserver()
