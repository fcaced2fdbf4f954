"""``--concurrency 1`` means one sample at a time: a server with one slot keeps the prompt of its conversation."""

import io
import itertools
import json
import re
from pathlib import Path

import pytest
from aiohttp import web

from agrotools.runner import evaluate as evaluation
from agrotools.runner.config import EvalConfig
from support.openai_server import Body, completion, is_first_contact, serving
from support.sums_benchmark import write_sums

pytestmark = pytest.mark.process

SAMPLES = 6


def test_a_conversation_ends_before_the_next_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    asked: list[str] = []

    def respond(body: Body) -> web.Response:
        if is_first_contact(body):
            return completion("OK")
        text = str(body["messages"])
        (field,) = set(re.findall(r"Field (\d) gave", text))
        asked.append(field)
        if "Observation:" not in str(body["messages"][2:]):
            arguments = json.dumps({"expression": f"{field} + 1"})
            return completion(f"Thought: Add.\nAction: calculate\nAction Input: {arguments}")
        return completion("Final Answer: mean: 3.75")

    with serving(respond) as server:
        config = EvalConfig.of(
            benchmark=str(write_sums(tmp_path / "sums", SAMPLES)),
            model="m",
            base_url=server.base_url,
            mode="end-to-end",
            protocol="react",
            concurrency=1,
            out=tmp_path / "run",
        )
        evaluation.evaluate(config, io.StringIO())
    conversations = [field for field, _ in itertools.groupby(asked)]
    assert sorted(conversations) == [str(number) for number in range(SAMPLES)]
    assert len(asked) >= 2 * SAMPLES
