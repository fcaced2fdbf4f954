"""Calls of any size are scored in time that grows with their size: a pair of nested loops would take minutes."""

import sys
from typing import Any

import pytest

from agrotools.core import (
    Answer,
    CallTools,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    SampleFile,
    ToolCall,
)
from agrotools.scoring.aggregate import RunAggregator, score_record
from support.plain_sample import plain_sample

WORDS = "word " * 200_000
FILE = SampleFile(name="a.png", path="a.png", kind="image", width_px=10, height_px=10)
MEASURED = {
    "$ref": "steps[0].observation.x",
    "value": [8.8912 + number * 0.0001 for number in range(200)],
}
GOLD: dict[str, dict[str, Any]] = {
    "lookup_agronomy": {"query": "lantana"},
    "count_objects": {"image": "a.png", "target": "tree"},
    "calculate": {"expression": "sum(v) / 3", "variables": {"v": MEASURED}},
    "plot": {
        "kind": "bar",
        "series": [{"name": "a", "x": [str(x) for x in range(50)], "y": list(range(50))}],
    },
    "measure_crop_weed_area": {"image": "a.png", "label_map": {"crop": [1]}},
    "add_text": {"image": "a.png", "text": "t", "position": "lt"},
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("lookup_agronomy", {"query": WORDS}), ("lookup_agronomy", {"query": "x", "kb_id": WORDS}),
    ("lookup_agronomy", {f"name_{number}": number for number in range(20_000)}),
    ("lookup_agronomy", {"a" * 1_000_000: 1}), ("count_objects", {"image": "./" * 500_000, "target": "s" * 1_000_000}),
    ("calculate", {"expression": "9**9**9**9"}), ("calculate", {"expression": "(" * 500_000}),
    ("calculate", {"expression": "1+" * 250_000 + "1"}), ("calculate", {"expression": "9" * 1_000_000}),
    ("calculate", {"expression": "sum(v)", "variables": {"v": [1.5] * 1_000_000}}),
    ("calculate", {"expression": "+".join(f"{8.89 + 0.0003 * number:.4f}" for number in range(60))}),
    ("plot", {"kind": "line", "series": [{"name": "a", "y": list(range(1_000_000))}]}),
    ("plot", {"kind": "bar", "series": [{"name": "a", "x": ["x"], "y": ["a"] * 90_000}]}),
    ("plot", {"kind": "bar", "series": [{"name": "_" * 1_000_000, "x": ["a"], "y": [1]}]}),
    ("measure_crop_weed_area", {"image": "a.png", "label_map": {"crop": list(range(90_000))}}),
    ("add_text", {"image": "a.png", "text": "t", "position": "(" + " " * 1_000_000}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=range(len(CALLS)))
def test_a_large_call_is_wrong(tool: str, arguments: dict[str, Any]) -> None:
    check_wrong(tool, arguments)


def test_a_deeply_nested_call_is_wrong() -> None:
    nested: Any = 1
    for _ in range(sys.getrecursionlimit() // 2):
        nested = [nested]
    check_wrong("plot", {"kind": "bar", "series": nested})
    check_wrong("calculate", {"expression": "v", "variables": {"v": nested}})


def check_wrong(tool: str, arguments: dict[str, Any]) -> None:
    step = ReferenceStep(
        tool=tool, arguments=GOLD[tool], observation=Observation(result={"value": 1})
    )
    sample = plain_sample(
        toolset=(tool,), files=(FILE,), reference=ReferenceTrajectory(steps=(step,))
    )
    call = CallTools.model_construct(
        calls=(ToolCall.model_construct(tool=tool, arguments=arguments),)
    )
    record = Record.model_construct(
        sample=sample, mode="step-by-step", actions=(call, Answer(text="yes"))
    )
    rows = score_record(record)
    tally = RunAggregator()
    tally.add(record, rows)
    assert next(row.value for row in rows if row.metric == "arg_acc") == 0
