"""An agent on smolagents (smolagents[openai] 1.26). See docs/agents.md for the command.

The model is that of any OpenAI-compatible endpoint: OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL.
"""

import io
import os
from collections.abc import Callable
from typing import Any

from PIL import Image
from smolagents import ActionStep, ChatMessage, OpenAIModel, Tool, ToolCallingAgent

from agrotools import Task


class TaskTool(Tool):
    """Tool of a task as a tool of smolagents. ``pictures`` collects those of the results."""

    output_type = "string"
    skip_forward_signature_validation = True

    def __init__(self, function: Callable[..., Any], pictures: list[Image.Image]) -> None:
        spec, self.function, self.pictures = function.spec, function, pictures
        self.name, self.description = spec.name, spec.description
        required = spec.parameters.get("required", [])
        self.inputs = {
            name: {"type": "any", "description": "", **schema, "nullable": name not in required}
            for name, schema in spec.parameters["properties"].items()
        }
        super().__init__()

    def forward(self, **arguments: Any) -> str:
        reply = self.function.reply(**arguments)
        self.pictures += [to_image(each) for each in reply.pictures]
        return reply.text


class ReportingModel(OpenAIModel):
    """Model that reports its tokens to the task."""

    def __init__(self, task: Task) -> None:
        super().__init__(os.environ["OPENAI_MODEL"])
        self.task = task

    def generate(self, *arguments: Any, **options: Any) -> ChatMessage:
        message = super().generate(*arguments, **options)
        if used := message.token_usage:
            tokens = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
            self.task.report_usage(**tokens, model=self.model_id)
        return message


def to_image(picture: Any) -> Image.Image:
    return Image.open(io.BytesIO(picture.data))


def solve(task: Task, form: str | None = None) -> str:
    """Return the agent's final answer; with ``form``, the task asks for the form of its answer, and has no tools."""
    model = ReportingModel(task)
    if form:  # one question to the model: the agent would go on until it has called a tool
        question = ChatMessage(role="user", content=[{"type": "text", "text": task.prompt}])
        return str(model.generate([question]).content)
    pictures: list[Image.Image] = []

    def show_pictures(step: ActionStep, **_: object) -> None:
        step.observations_images, pictures[:] = [*pictures], []

    agent = ToolCallingAgent(
        tools=[TaskTool(function, pictures) for function in task.tools.values()],
        model=model,
        max_steps=2 * task.max_steps,
        max_tool_threads=1,  # calls are executed in the order in which the model made them
        step_callbacks=[show_pictures],
        verbosity_level=0,
    )
    return str(agent.run(task.prompt, images=[to_image(each) for each in task.pictures]))
