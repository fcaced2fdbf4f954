"""An agent on the OpenAI Agents SDK (openai-agents 0.24). See docs/agents.md for the command.

The model is that of any OpenAI-compatible endpoint: OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL. With
OPENAI_RESPONSES=1 it is asked over the Responses API: over chat completions, the SDK leaves out pictures in results.
"""

import json
import os
from collections.abc import Callable
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    ModelResponse,
    RunConfig,
    RunHooks,
    Runner,
    ToolOutputImage,
    ToolOutputText,
)
from agents.models.openai_provider import OpenAIProvider

from agrotools import Task


def to_tool(function: Callable[..., Any]) -> FunctionTool:
    """Return a tool of a task as a tool of the SDK."""

    async def run(_context: object, arguments: str) -> str | list[ToolOutputText | ToolOutputImage]:
        try:
            values = json.loads(arguments or "{}")
        except ValueError as error:
            return f"The arguments are not valid JSON: {error}"
        reply = await function.reply(**values)
        return [
            ToolOutputText(text=reply.text),
            *(ToolOutputImage(image_url=each.url) for each in reply.pictures),
        ]

    spec = function.spec
    return FunctionTool(
        spec.name, spec.description, dict(spec.parameters), run, strict_json_schema=False
    )


class Usage(RunHooks[Any]):
    """Reports the tokens of each reply to the task."""

    def __init__(self, task: Task) -> None:
        self.task = task

    async def on_llm_end(self, context: object, agent: object, response: ModelResponse) -> None:
        used = response.usage
        self.task.report_usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_input_tokens=used.input_tokens_details.cached_tokens,
            model=os.environ["OPENAI_MODEL"],
        )


async def solve(task: Task, form: str | None = None) -> str:
    """Return the agent's last message; with ``form``, the task asks for the form of its answer, and has no tools."""
    tools = [to_tool(function) for function in task.tools.values()]
    agent = Agent("agronomist", model=os.environ["OPENAI_MODEL"], tools=tools)
    config = RunConfig(
        model_provider=OpenAIProvider(use_responses="OPENAI_RESPONSES" in os.environ),
        tracing_disabled=True,  # traces would be sent to OpenAI
        tool_not_found_behavior="return_error_to_model",
    )
    text = {"type": "input_text", "text": task.prompt}
    pictures = [
        {"type": "input_image", "image_url": each.url, "detail": "auto"}
        for each in ([] if form else task.pictures)
    ]
    question = [{"role": "user", "content": [text, *pictures]}]
    result = await Runner.run(agent, question, max_turns=None, hooks=Usage(task), run_config=config)
    return result.final_output
