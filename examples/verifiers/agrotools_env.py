"""Taskset of ``agrotools_build.Env`` for verifiers 0.4, and the chat loop without a shell to play it with.

``vf.load_environment`` and ``vf-eval`` find it by the id ``agrotools-env``, if this folder is in ``PYTHONPATH``; the
command is in docs/training.md. Each rollout has a tool server of its own, a process that plays one episode.

Keep the loop of this module: ``bash`` and other harnesses give the model a shell on the machine where the answers are.
"""

from typing import Any

import verifiers.v1 as vf
from mcp.types import CallToolResult, TextContent, Tool
from verifiers.v1.harnesses.null import NullHarness

from agrotools_build import Env, env_rows
from agrotools_build.env import Split, call_tool, offered_tools

__all__ = ["AgrotoolsTaskset", "NullHarness"]


class AgrotoolsData(vf.TaskData):
    """A question: ``id`` is that of its row, ``prompt`` what ``Env.reset`` returns."""


class EpisodeState(vf.State):
    """Reward of the episode so far. The tool server writes it after each call."""

    reward: float = 0.0


class AgrotoolsToolset(vf.Toolset[vf.ToolsetConfig, EpisodeState]):
    """The tools and ``submit_answer``, with agrotools' own schemas; arguments are passed on unchecked, as they came."""

    TOOL_PREFIX = None

    async def setup_task(self, task: AgrotoolsData) -> None:
        self.env = Env()
        self.env.reset(id=task.id)
        self._exit_stack.callback(self.env.close)

    def register(self, mcp: Any) -> None:
        async def list_tools() -> list[Tool]:
            return [
                Tool(
                    name=tool["name"],
                    description=tool["description"],
                    input_schema=tool["parameters"],
                )
                for tool in offered_tools()
            ]

        def call(name: str, arguments: dict[str, Any]) -> str:
            text = call_tool(self.env, name, arguments)
            self.state.reward = self.env.get_reward()
            return text

        with_state = self._with_state(call)

        async def answer(name: str, arguments: dict[str, Any], _: Any = None) -> CallToolResult:
            text = await with_state(name, arguments)
            return CallToolResult(content=[TextContent(type="text", text=text)])

        mcp.list_tools, mcp.call_tool = list_tools, answer


class AgrotoolsTaskConfig(vf.TaskConfig):
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class AgrotoolsTask(vf.Task[AgrotoolsData, EpisodeState, AgrotoolsTaskConfig]):
    @classmethod
    def toolsets(cls, config: AgrotoolsTaskConfig) -> list[vf.Toolset]:
        return [AgrotoolsToolset(config.tools)]

    @vf.reward
    async def final_answer(self, trace: vf.Trace) -> float:
        return trace.state.reward


class AgrotoolsConfig(vf.TasksetConfig):
    split: Split = "train"
    num_tasks: int = 15
    """Number of questions, which are drawn on first use: about 3 s each on two cores."""
    seed: int = 0
    task: AgrotoolsTaskConfig = AgrotoolsTaskConfig()


class AgrotoolsTaskset(vf.Taskset[AgrotoolsTask, AgrotoolsConfig]):
    def load(self) -> list[AgrotoolsTask]:
        env, tasks = Env(), []
        for row in env_rows(self.config.split, self.config.num_tasks, self.config.seed):
            data = AgrotoolsData(id=row["id"], prompt=env.reset(**row))
            tasks.append(AgrotoolsTask(data, self.config.task))
        env.close()
        return tasks


if __name__ == "__main__":
    AgrotoolsToolset.run()
