"""A benchmark of calculations without images: it loads, runs and scores in no time, in all three modes."""

import json
from pathlib import Path
from typing import Any

HEADER = """name = "sums"
version = "1"
licence = "Apache-2.0"
description = "sums of two yields"
synthetic = true
toolset = ["calculate"]
modes = ["no-tool", "step-by-step", "end-to-end"]

[[sources]]
name = "made up"
licence = "Apache-2.0"
"""


def write_sums(folder: Path, count: int) -> Path:
    """``count`` questions of two dependent calculations, without files."""
    folder.mkdir(parents=True)
    (folder / "benchmark.toml").write_text(HEADER)
    lines: list[str] = []
    for number in range(count):
        north, south = 3 + number / 100, 4.5
        results = [{"value": north + south}, {"value": (north + south) / 2}]
        arguments: list[dict[str, Any]] = [
            {"expression": "a + b", "variables": {"a": north, "b": south}},
            {
                "expression": "s / 2",
                "variables": {"s": {"$ref": "steps[0].observation.value", "value": north + south}},
            },
        ]
        steps = [
            {
                "tool": "calculate",
                "arguments": given,
                "observation": {"result": result},
                "truth": result,
            }
            for given, result in zip(arguments, results, strict=True)
        ]
        mean = {"type": "tolerance", "name": "mean", "label": "mean yield", "value": (north + south) / 2,
                "unit": "t/ha", "rel_tol": 0.01, "from": "steps[1].observation.value"}  # fmt: skip
        sample = {
            "id": f"sum-{number:04d}", "query": f"Field {number} gave {north} and {south} t/ha. What is the mean?",
            "files": [], "family": "CM", "task_type": "tree_counting", "answer_type": "tolerance", "template": "sums",
            "source": "made up", "toolset": ["calculate"], "reference": {"steps": steps}, "answer": [mean],
        }  # fmt: skip
        lines.append(json.dumps(sample))
    (folder / "samples.jsonl").write_text("\n".join(lines) + "\n")
    return folder
