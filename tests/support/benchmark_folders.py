"""Benchmark folders for tests: a sound one, written by hand, that tests then break."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HEADER = """name = "tiny"
version = "1"
licence = "Apache-2.0"
description = "three questions"
synthetic = true
toolset = ["calculate", "plot"]
modes = ["no-tool", "step-by-step", "end-to-end"]

[[sources]]
name = "made up"
licence = "Apache-2.0"
"""


def write_picture(path: Path, seed: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def number_sample(folder: Path, sample_id: str = "tiny-1", picture: int = 1) -> dict[str, Any]:
    """A sample with a number: mean of two given values."""
    digest = write_picture(folder / f"files/{picture}.png", picture)
    return {
        "id": sample_id,
        "query": f"Two cuts gave 4.5 and 6.3 t/ha on field {picture}. What is the mean yield?",
        "files": [
            {"name": "image_1.png", "path": f"files/{picture}.png", "kind": "image", "sha256": digest, "width_px": 32,
             "height_px": 24}
        ],
        "family": "VA",
        "task_type": "plotting",
        "answer_type": "tolerance",
        "template": "mean_yield",
        "source": "made up",
        "toolset": ["calculate", "plot"],
        "reference": {
            "steps": [
                {
                    "tool": "calculate",
                    "arguments": {"expression": "(a + b) / 2", "variables": {"a": 4.5, "b": 6.3}},
                    "observation": {"result": {"value": 5.4, "expression": "(a + b) / 2", "unit": None, "steps": []}},
                    "truth": {"value": 5.4, "expression": "(a + b) / 2", "unit": None, "steps": []},
                }
            ]
        },
        "answer": [
            {"type": "tolerance", "name": "mean_yield", "label": "mean yield", "value": 5.4, "unit": "t/ha",
             "rel_tol": 0.02, "from": "steps[0].observation.value"}
        ],
    }  # fmt: skip


def chart_sample(folder: Path, sample_id: str = "tiny-2", picture: int = 2) -> dict[str, Any]:
    """A sample with a chart of a calculated value, and the name of the taller bar."""
    sample = number_sample(folder, sample_id, picture)
    spec = {
        "kind": "bar",
        "series": [{"name": "yield", "x": ["north", "south"], "y": [5.4, 3.0]}],
        "title": "Yield", "x_label": "field", "y_label": "yield", "x_unit": None, "y_unit": "t/ha", "legend": False,
    }  # fmt: skip
    plot = {
        "tool": "plot",
        "arguments": {
            "kind": "bar",
            "series": [
                {
                    "name": "yield",
                    "x": ["north", "south"],
                    "y": [{"$ref": "steps[0].observation.value", "value": 5.4}, 3.0],
                }
            ],
            "title": "Yield", "x_label": "field", "y_label": "yield", "y_unit": "t/ha",
        },
        "observation": {"result": {"spec": spec}},
        "truth": {"spec": spec},
    }  # fmt: skip
    sample["query"] = (
        "Cuts of 4.5 and 6.3 t/ha in the north, 3.0 in the south: show the mean yields as bars."
    )
    sample["answer_type"] = "plot"
    sample["no_tool_eligible"] = False
    sample["template"] = "yield_bars"
    sample["reference"]["steps"].append(plot)
    sample["answer"] = [
        {"type": "plot", "name": "chart", "label": "yields", "value": spec, "from": "steps[1].observation.spec"},
        {
            "type": "exact", "name": "taller", "label": "taller bar: north or south", "value": "north",
            "choices": ["north", "south"],
            "from": "'north' if steps[0].observation.value > 3.0 else 'south'",
        },
    ]  # fmt: skip
    return sample


def write_folder(folder: Path, samples: list[Any] | None = None, header: str = HEADER) -> Path:
    """Write a benchmark folder; a sample given as text is written as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if samples is None:
        samples = [number_sample(folder), chart_sample(folder), number_sample(folder, "tiny-3", 3)]
    (folder / "benchmark.toml").write_text(header)
    lines = [sample if isinstance(sample, str) else json.dumps(sample) for sample in samples]
    (folder / "samples.jsonl").write_text("\n".join(lines) + "\n")
    return folder
