"""Examples of agents on other SDKs, where these are installed (environment ``agents``).

The same replies of a model give the same trajectories and scores as in agrotools' own loop.
"""

import io
import itertools
import json
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import agrotools as at
from agrotools.sandbox.agents import is_available
from support.benchmark_folders import chart_sample, number_sample, write_folder
from support.openai_server import Body, completion, serving, text_of

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[3]
SDKS = {
    "pydantic_ai": "pydantic-ai-slim",
    "openai_agents": "openai-agents",
    "openai_agents over responses": "openai-agents",
    "langgraph": "langgraph",
    "smolagents": "smolagents",
}
"""Distributions by the name of the example (and the API, if it has a choice)."""
MEAN = {"expression": "(a + b) / 2", "variables": {"a": 4.5, "b": 6.3}}
CHART = {
    "kind": "bar", "series": [{"name": "yield", "x": ["north", "south"], "y": [5.4, 3.0]}], "title": "Yield",
    "x_label": "field", "y_label": "yield", "y_unit": "t/ha",
}  # fmt: skip
SCRIPTS: dict[str, list[str | list[tuple[str, Body | str]]]] = {
    "on field 3": [
        [("measure_all", {})],
        [("calculate", '{"expression": ')],
        [("calculate", MEAN)],
        "mean_yield: 5.4",
    ],
    "What is the mean yield?": [
        [("calculate", {"expression": "(a + b"})],
        [("calculate", MEAN), ("calculate", {"expression": "2 * c", "variables": {"c": 5.4}})],
        "The mean of both cuts.\n\nmean_yield: 5.4",
    ],
    "show the mean yields as bars": [
        [("calculate", MEAN)],
        [("plot", CHART)],
        "The chart shows it.\n\ntaller: north",
    ],
}
"""Replies of the model by a part of the question: calls, or the answer."""


class ScriptedModel:
    """Endpoint that follows ``SCRIPTS`` and notes the tools that it was offered."""

    def __init__(self) -> None:
        self.offered: dict[str, Any] = {}
        self.requests: list[Body] = []
        self._turns: Counter[str] = Counter()
        self._numbers = itertools.count()

    def __call__(self, body: Body) -> web.Response:
        self.requests.append(body)
        question = next(
            text_of(message) for message in body["messages"] if "Question: " in text_of(message)
        )
        part = next(part for part in SCRIPTS if part in question)
        offered = {tool["function"]["name"]: tool["function"] for tool in body.get("tools", ())}
        if any(
            "Now copy the values of your answer" in text_of(message) for message in body["messages"]
        ):
            reply = str(SCRIPTS[part][-1]).rpartition("\n")[2]
        else:
            reply = SCRIPTS[part][self._turns[part]]
            self._turns[part] += 1
            self.offered = offered
        if isinstance(reply, str) and "final_answer" in offered:
            reply = [("final_answer", {"answer": reply})]
        if isinstance(reply, str):
            return self._response(completion(reply))
        calls = [
            (name, given if isinstance(given, str) else json.dumps(given)) for name, given in reply
        ]
        return self._response(completion(None, calls))

    def _response(self, reply: web.Response) -> web.Response:
        data, number = json.loads(reply.text or ""), next(self._numbers)
        for call in data["choices"][0]["message"].get("tool_calls", []):
            call["id"] = f"{call['id']}-{number}"
        return web.json_response(
            {**data, "id": f"chatcmpl-{number}", "created": 1, "model": "scripted"}
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bench = tmp_path_factory.mktemp("sdks") / "bench"
    return write_folder(bench, [number_sample(bench, "tiny-1"), chart_sample(bench, "tiny-2")])


def evaluated(folder: Path, model: str, out: Path, **options: Any) -> at.Run:
    return at.evaluate(folder, model, mode="end-to-end", out=out, progress=io.StringIO(), **options)


def outcome(run: at.Run) -> Any:
    """Steps of all samples, without times and replies, and the scores."""
    steps = {
        record.sample.id: [
            (
                step.kind,
                step.call and (step.call.tool, step.call.arguments),
                step.observation,
                step.text,
            )
            for step in record.trajectory.steps
        ]
        for record in run.samples()
        if record.trajectory is not None
    }
    return steps, {name: score.value for name, score in run.scores.items()}


@pytest.fixture(scope="module")
def expected(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel()
    with serving(model) as endpoint:
        out = tmp_path_factory.mktemp("sdks") / "run"
        run = evaluated(
            folder, "scripted", out, protocol="tool-calling", base_url=endpoint.base_url
        )
    return outcome(run), model


def test_the_script_has_an_error_and_a_picture(expected: tuple[Any, ScriptedModel]):
    steps, scores = expected[0]
    assert [step[2].error is not None for step in steps["tiny-1"][:-1]] == [True, False, False]
    assert steps["tiny-2"][1][2].artifacts[0].media_type == "image/png"
    assert scores["fas"] > 0


@pytest.fixture(params=SDKS)
def sdk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of an SDK that is installed. Its agent ends at once if it looks for any other machine."""
    try:
        version(SDKS[request.param])
    except PackageNotFoundError:
        pytest.skip(f"{SDKS[request.param]} is not installed")
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "guard"))
    monkeypatch.chdir(ROOT)
    return request.param


GUARD = """
import os, sys

def check(event, arguments):
    host = {"socket.connect": lambda _, address: address[0], "socket.getaddrinfo": lambda host, *_: host}.get(event)
    if host and host(*arguments) not in ("127.0.0.1", b"127.0.0.1"):
        print(f"foreign address: {event} {arguments}", file=sys.stderr, flush=True)
        os._exit(9)

sys.addaudithook(check)
"""


def evaluated_with(
    sdk: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[at.Run, ScriptedModel]:
    model = ScriptedModel()
    with serving(model, latency_s=2, greets=False) as endpoint:  # traces are sent after 5 s
        variables = {
            "OPENAI_BASE_URL": endpoint.base_url,
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "scripted",
        }
        if sdk.endswith("responses"):
            variables["OPENAI_RESPONSES"] = "1"
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        run = evaluated(
            folder,
            f"python:examples.{sdk.split()[0]}_agent:solve",
            tmp_path / "run",
            agent_env=[*variables, "PYTHONPATH"],
            agent_path=[tmp_path / "guard"],
        )
    assert [record.invalid for record in run.samples()] == [None] * len(run.samples())
    assert run.manifest.sealed is is_available()
    return run, model


def test_an_agent_on_an_sdk_has_the_trajectory_of_the_own_loop(
    sdk, expected, folder, tmp_path, monkeypatch
):
    run, model = evaluated_with(sdk, folder, tmp_path, monkeypatch)
    assert outcome(run) == expected[0]
    requests = [
        len(SCRIPTS[part]) + 1
        for part in ("What is the mean yield?", "show the mean yields as bars")
    ]
    assert [record.spending[:2] for record in run.samples()] == [
        (100 * n, 10 * n) for n in requests
    ]
    for name, tool in expected[1].offered.items():
        offered = model.offered[name]
        assert offered["description"] == tool["description"].strip()
        assert properties(offered) == properties(tool)
        maps = [
            each
            for each in offered["parameters"]["properties"].values()
            if each.get("type") == "object"
        ]
        assert all(
            each.get("properties") or each.get("additionalProperties") is True for each in maps
        )
        assert offered["parameters"]["required"] == tool["parameters"]["required"]
    texts = [text_of(message) for body in model.requests for message in body["messages"]]
    assert any('"hint"' in text for text in texts)
    last = next(
        body
        for body in model.requests
        if any('"spec"' in text_of(each) for each in body["messages"])
    )
    assert len(pictures_of(last)) == (
        1 if sdk == "openai_agents" else 2
    )  # of the file and of the chart


def test_calls_that_an_sdk_refuses_do_not_end_its_run(
    sdk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An unknown tool, and arguments that are not JSON: the SDKs tell the model, or end (LangGraph)."""
    bench = tmp_path / "bench"
    folder = write_folder(bench, [number_sample(bench, "tiny-3", 3)])
    run, _ = evaluated_with(sdk, folder, tmp_path, monkeypatch)
    (record,) = run.samples()
    called = [step.call.tool for step in record.trajectory.calls if step.call]
    assert called == ([] if sdk == "langgraph" else ["calculate"])
    assert record.trajectory.steps[-1].text.endswith("mean_yield: 5.4")


ADDED = ("nullable", "title", "additionalProperties")
"""Keys that an SDK adds to a schema."""


def properties(tool: Body) -> Body:
    """Properties of the arguments without what an SDK adds."""

    def plain(schema: Any) -> Any:
        if isinstance(schema, list):
            return [plain(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        return {
            key: plain(each)
            for key, each in schema.items()
            if key not in ADDED and each not in ("", {})
        }

    return plain(tool["parameters"]["properties"])


def pictures_of(body: Body) -> list[str]:
    contents = [
        message["content"]
        for message in body["messages"]
        if isinstance(message.get("content"), list)
    ]
    return [
        part["image_url"]["url"]
        for content in contents
        for part in content
        if part["type"] == "image_url"
    ]
