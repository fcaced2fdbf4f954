"""Inspect AI, tuned: no live log, no display, no control servers, requests over aiohttp, all that may be open at once.

    python inspect_client.py WORKLOAD FOLDER URL CONCURRENCY SCRATCH

Questions go through ``generate()``, agents through ``react()`` with a tool that is evaluated in place.
"""

import sys
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.agent import as_solver, react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
)
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, user_message
from inspect_ai.tool import Tool, tool
from openai import DefaultAioHttpClient
from shared import RIGHTS, SETTINGS, closing, conversations, report, tools
from shared import calculate as calculated


@tool
def calculate(description: str) -> Tool:
    async def execute(expression: str) -> str:
        """Calculate.

        Args:
            expression: what to calculate
        """
        return calculated(expression)

    execute.__doc__ = (execute.__doc__ or "").replace("Calculate.", description.split("\n", 1)[0])
    return execute


def as_sample(messages: list[dict[str, Any]], right: str) -> Sample:
    *system, user = messages
    content: str | list[Content] = user["content"]
    if not isinstance(content, str):
        content = [
            ContentText(text=part["text"])
            if part["type"] == "text"
            else ContentImage(image=part["image_url"]["url"])
            for part in user["content"]
        ]
    opening: list[ChatMessage] = [ChatMessageSystem(content=each["content"]) for each in system]
    return Sample(input=[*opening, ChatMessageUser(content=content)], target=right)


def main() -> None:
    workload, folder, url, concurrency, scratch = sys.argv[1:]
    offered = tools(Path(folder))
    solver: Any = generate()
    if workload == "agents":
        description = offered[0]["function"]["description"]
        agent = react(prompt=None, tools=[calculate(description)], submit=False)
        solver = [
            as_solver(agent),
            user_message(closing(Path(folder))),
            generate(tool_calls="none"),
        ]
    task = Task(
        dataset=MemoryDataset(
            [as_sample(messages, RIGHTS[workload]) for messages in conversations(Path(folder))]
        ),
        solver=solver,
        scorer=includes(),
    )
    [log] = eval(
        task,
        model="openai-api/local/mock",
        model_base_url=url,
        model_args={"api_key": "none-needed", "http_client": DefaultAioHttpClient()},
        temperature=SETTINGS["temperature"],
        max_tokens=SETTINGS["max_tokens"],
        max_connections=int(concurrency),
        max_samples=int(concurrency),
        display="none",
        log_level="error",
        log_dir=scratch,
        log_format="eval",
        log_realtime=False,
        log_images=False,
        log_model_api=False,
        log_buffer=1000,
        score_display=False,
        acp_server=False,
        ctl_server=False,
    )
    if log.status != "success" or log.results is None:
        sys.exit(str(log.error))
    accuracy = log.results.scores[0].metrics["accuracy"].value
    report(round(accuracy * log.results.completed_samples))


if __name__ == "__main__":
    main()
