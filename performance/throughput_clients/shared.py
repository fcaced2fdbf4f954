"""What the peers have in common: the prompts as conversations, and the tool. Needs nothing but Python."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {"model": "mock", "temperature": 0.0, "max_tokens": 4096}
RIGHTS = {"questions": "answer: 14", "agents": "answer: 14", "exam": "答案：A"}
"""How a right answer to each workload ends."""


def conversations(
    folder: Path, loads: Callable[[bytes], Any] = json.loads
) -> Iterator[list[dict[str, Any]]]:
    """The opening messages of each sample, read when asked for; an image is encoded once, here."""
    with (folder / "requests.jsonl").open("rb") as lines:
        for line in lines:
            messages = loads(line)["messages"]
            for part in messages[-1]["content"]:
                if isinstance(part, dict) and "file" in part:
                    data = base64.b64encode((folder / part.pop("file")).read_bytes()).decode()
                    part |= {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/jpeg;base64,{data}"},
                    }
            yield messages


def tools(folder: Path) -> list[dict[str, Any]]:
    """The functions that agents are offered; none for questions."""
    return json.loads((folder / "tools.json").read_bytes())


def closing(folder: Path) -> str:
    """The message that asks an agent for the form of its answer; empty for questions."""
    return (folder / "closing.txt").read_text()


def calculate(expression: str) -> str:
    """The tool, evaluated in place; the expressions are those of our own mock server."""
    return json.dumps({"value": eval(expression, {"__builtins__": {}})})


def report(right: int) -> None:
    """Say how many answers were right."""
    print(json.dumps({"right": right}))
