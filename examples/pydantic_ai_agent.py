"""An agent on Pydantic AI (pydantic-ai-slim[openai] 2.68). See docs/agents.md for the command.

The model is that of any OpenAI-compatible endpoint: OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

from pydantic_ai import Agent, BinaryContent, ModelResponse, Tool, ToolReturn, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel

from agrotools import Task


class ReportingModel(OpenAIChatModel):
    """Model that reports its tokens to the task."""

    def __init__(self, task: Task) -> None:
        super().__init__(os.environ["OPENAI_MODEL"])
        self.task = task

    async def request(self, *arguments: Any, **options: Any) -> ModelResponse:
        response = await super().request(*arguments, **options)
        used = response.usage
        self.task.report_usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_input_tokens=used.cache_read_tokens,
            model=self.model_name,
        )
        return response


def to_contents(pictures: Sequence[Any]) -> list[BinaryContent]:
    return [BinaryContent(each.data, media_type=each.media_type) for each in pictures]


def to_tool(function: Callable[..., Any]) -> Tool:
    """Return a tool of a task as a tool of Pydantic AI."""

    async def run(**arguments: Any) -> ToolReturn:
        reply = await function.reply(**arguments)
        return ToolReturn(reply.text, content=to_contents(reply.pictures))

    spec = function.spec
    return Tool.from_schema(run, spec.name, spec.description, dict(spec.parameters))


async def solve(task: Task, form: str | None = None) -> str:
    """Return the agent's last message; with ``form``, the task asks for the form of its answer, and has no tools."""
    tools = [to_tool(function) for function in task.tools.values()]
    agent = Agent(ReportingModel(task), tools=tools, retries=task.max_steps)
    question = [task.prompt, *to_contents([] if form else task.pictures)]
    result = await agent.run(question, usage_limits=UsageLimits(request_limit=None))
    return result.output
