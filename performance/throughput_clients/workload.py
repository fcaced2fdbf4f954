"""Write the benchmark folder that agrotools runs, and the very same prompts as plain JSON for its peers.

    python workload.py questions|agents|exam SAMPLES FOLDER

``requests.jsonl``: one sample each, ``messages`` with the image, where there is one, as ``{"file": PATH}``.
``tools.json``: the functions that agents are offered. ``closing.txt``: what they are sent after their
answer. All are what agrotools itself sends. ``exam`` are
multiple-choice questions in the shape and the shares of AgriEval's, put in its own words; A is right of all.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from agrotools.agents.llm import LLMAgent
from agrotools.core import Mode, ToolSpec
from agrotools.loading import load_benchmark
from agrotools.models import Completion, Message, ModelSettings
from agrotools.models.base import request_body

HEADER = """name = "throughput"
version = "1"
licence = "CC0-1.0"
description = "Short questions with one answer, to measure how fast a run is."
synthetic = true
toolset = ["calculate"]
modes = ["no-tool", "end-to-end"]
"""
PROBE = "[plot 00000]"


class Recorder:
    """A model that keeps what it is asked."""

    name = "recorder"

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        self.bodies.append(request_body("mock", messages, tools, settings))
        return Completion(text="answer: 14")

    async def close(self) -> None:
        return


def question(number: int) -> str:
    return (
        f"[plot {number:05d}] In the first row 9 plants have rust, in the second row 5. "
        "How many plants of this plot have rust?"
    )


def sample(number: int, agents: bool) -> dict[str, Any]:
    file = {"name": "image_1.jpg", "path": f"files/{number:05d}.jpg", "kind": "image"}
    return {
        "id": f"s{number:05d}",
        "query": question(number),
        "files": [file] if agents else [],
        "family": "CM",
        "task_type": "organ_counting",
        "answer_type": "tolerance",
        "template": "throughput",
        "source": "made",
        "toolset": ["calculate"],
        "answer": [
            {"type": "tolerance", "name": "answer", "label": "plants with rust", "value": 14}
        ],
    }


def write_images(folder: Path, samples: int) -> None:
    """A different JPEG of 150 to 200 kB for each sample: noise over a gradient, seeded."""
    import numpy as np
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(0)
    ramp = np.linspace(40, 160, 640)[None, :, None] + np.zeros((480, 1, 3))
    for number in range(samples):
        pixels = (ramp + rng.normal(0, 30, ramp.shape)).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:05d}.jpg", quality=87)


def prompts(folder: Path, mode: Mode) -> list[dict[str, Any]]:
    """The requests of agrotools on the first sample if it is answered at once."""
    benchmark = load_benchmark(str(folder))
    model = Recorder()
    agent = LLMAgent(model, mode, "tool-calling")
    asyncio.run(agent.act(benchmark.view(benchmark.samples[0], mode), ()))
    return model.bodies


def with_number(messages: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The conversation about the sample of that number, from that about the first."""
    *system, user = messages
    content = user["content"]
    if isinstance(content, str):
        return [*system, user | {"content": content.replace(PROBE, f"[plot {number:05d}]")}]
    parts = [
        {"file": f"files/{number:05d}.jpg"}
        if part["type"] == "image_url"
        else part | {"text": part["text"].replace(PROBE, f"[plot {number:05d}]")}
        for part in content
    ]
    return [*system, user | {"content": parts}]


def write_exam(folder: Path, samples: int) -> None:
    """A file of AgriEval's shape, and its prompts as they are sent."""
    from made_agrieval import choice_items

    items = [
        item | {"question": f"[plot {number:05d}]{item['question']}", "answer": "A"}
        for number, item in enumerate(choice_items(samples))
    ]
    (folder / "made_choice(main).json").write_text(
        json.dumps(items, ensure_ascii=False), encoding="utf-8"
    )
    benchmark = load_benchmark("agrieval", data_root=folder, options={"part": "choice"})
    with (folder / "requests.jsonl").open("w", encoding="utf-8") as lines:
        for each in benchmark.samples:
            lines.write(json.dumps({"messages": [{"role": "user", "content": each.query}]}) + "\n")
    (folder / "tools.json").write_text("[]")
    (folder / "closing.txt").write_text("")


def main() -> None:
    kind, samples, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    agents = kind == "agents"
    folder.mkdir(parents=True)
    if kind == "exam":
        write_exam(folder, samples)
        return
    (folder / "benchmark.toml").write_text(HEADER if agents else f"{HEADER}bare = true\n")
    (folder / "samples.jsonl").write_text(
        "".join(json.dumps(sample(n, agents)) + "\n" for n in range(samples))
    )
    if agents:
        write_images(folder / "files", samples)
    opening, *after = prompts(folder, "end-to-end" if agents else "no-tool")
    messages = opening["messages"]
    assert any(PROBE in json.dumps(message) for message in messages)
    lines = (json.dumps({"messages": with_number(messages, n)}) + "\n" for n in range(samples))
    (folder / "requests.jsonl").write_text("".join(lines))
    (folder / "tools.json").write_text(json.dumps(opening.get("tools", [])))
    (folder / "closing.txt").write_text("".join(body["messages"][-1]["content"] for body in after))


if __name__ == "__main__":
    main()
