"""Replies in the form of Agent-X, as models write them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools_benchmarks.agent_x.replies import Prediction, read_prediction

STEP = {"step": 1, "task": "read", "tool_used": "OCR", "tool_output": "7", "thought": "it's needed"}
WHOLE: dict[str, Any] = {
    "reasoning_steps": [STEP],
    "final_answer": {"value": "7", "justification": "OCR says so"},
}
READ = Prediction([STEP], "7", "OCR says so")
JSON = json.dumps(WHOLE)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"0": WHOLE}), json.dumps([WHOLE]),
        JSON[:-1] + ",}", json.dumps({**WHOLE, "reasoning_steps": [[STEP]]}),
        json.dumps({**WHOLE, "reasoning_steps": {"1": STEP}}),
        f"A draft: {json.dumps({**WHOLE, 'final_answer': {'value': '8'}})} and then: {JSON}",
    ],
)  # fmt: skip
def test_a_prediction_is_read_in_every_form(text: str):
    assert read_prediction(text) == READ


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (JSON[:40], "it is no JSON object"),
        ('{"a": 1, "b": 2}', "it has no reasoning_steps and no final_answer"),
        (
            '{"reasoning_steps": "none", "final_answer": "7"}',
            "its reasoning_steps are no list of objects",
        ),
        (
            '{"reasoning_steps": ["look"], "final_answer": "7"}',
            "its reasoning_steps are no list of objects",
        ),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str):
    assert read_prediction(text) == why


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
STEPS = st.lists(
    st.dictionaries(st.sampled_from(["step", "task", "tool", "output", "thought"]), VALUES),
    max_size=3,
)


@given(STEPS, st.text(max_size=9), st.sampled_from([json.dumps, repr]), st.booleans())
def test_what_is_written_is_read_back(
    steps: list[dict[str, Any]], value: str, write: Any, fenced: bool
):
    answer = {"value": value, "justification": ""}
    text = write({"reasoning_steps": steps, "final_answer": answer})
    assert len(read_prediction(f"```json\n{text}\n```" if fenced else text).steps) == len(steps)
