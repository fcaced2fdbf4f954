"""Probe of an endpoint: servers that see, drop and refuse are told apart, and runs warn of what is not there."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import agrotools as at
from agrotools.models import probe as probing
from agrotools.models.probe import find_report
from support.benchmark_folders import write_folder
from support.command import run_command
from support.openai_server import ReferenceFollower, completion, error, serving, text_of

pytestmark = pytest.mark.process


class Capable:
    """A model that does whatever is asked, as far as its server lets it; it "reads" pictures by comparing pixels."""

    def __init__(self, drops: str = "", refuses: str = "", gives: str = "") -> None:
        self.drops, self.refuses, self.gives = drops, refuses, gives
        self.drawn: dict[str, str] = {}

    def __call__(self, body: dict[str, Any]) -> web.Response:
        messages, tools = body["messages"], body.get("tools")
        images = [
            (m["role"], url)
            for m in messages
            for url in _images(m)
            if m["role"] not in self.drops.split()
        ]
        if any(m["role"] in self.refuses.split() and _images(m) for m in messages):
            return error(400, "image input is not supported")
        question = text_of(next(m for m in messages if m["role"] == "user"))
        if "number is in" in question:
            return completion(self.drawn[images[-1][1]] if images else "I cannot see a picture.")
        if tools and "tools" not in self.drops:
            pairs = re.findall(r"([\d.]*\d) \+ ([\d.]*\d)", question)
            if self.gives:
                return completion(None, [("add", self.gives)])
            return completion(
                None, [("add", json.dumps({"a": float(a), "b": float(b)})) for a, b in pairs]
            )
        if "response_format" in body and "schema" not in self.drops:
            return completion('{"crop": "wheat", "trees": 7}')
        if "Invent" in question:
            return completion(
                f"Apple{body.get('seed', 0) if 'seed' not in self.drops else len(self.drawn)}"
            )
        reply = completion("OK")
        if body.get("logprobs"):
            data = json.loads(reply.text or "")
            data["choices"][0]["logprobs"] = {
                "content": [{"top_logprobs": [{"token": "yes", "logprob": -0.1}]}]
            }
            return web.json_response(data)
        return reply


def _images(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


@pytest.fixture
def probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str]]:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    draw = probing._numbered_picture

    def states(model: Capable, suffix: str = "") -> dict[str, str]:
        def drawing(seed: int) -> Any:
            picture, number = draw(seed)
            model.drawn[picture.url] = number
            return picture, number

        monkeypatch.setattr(probing, "_numbered_picture", drawing)
        with serving(model, greets=False) as endpoint:
            done = run_command(
                "doctor", "-m", "m", "--base-url", endpoint.base_url + suffix, "--json"
            )
            assert done.returncode == 0, done.stderr
            report = json.loads(done.stdout)
            assert find_report(endpoint.base_url + suffix, "m") is not None
        return {each["feature"]: each["state"] for each in report["findings"]}

    return states


def test_what_works_is_found(probed: Callable[..., dict[str, str]]):
    everything = (
        "text",
        "images",
        "images of tools",
        "native tools",
        "parallel calls",
        "json schema",
        "seed",
    )
    found = probed(Capable())
    assert {name: found[name] for name in everything} == dict.fromkeys(everything, "yes")
    assert (found["logprobs"], found["context"]) == ("yes", "unclear")
    assert probed(Capable(), "/responses")["images of tools"] == "yes"


@pytest.mark.parametrize(
    ("model", "feature", "state"),
    [
        (Capable(drops="tool"), "images of tools", "no"),
        (Capable(refuses="tool"), "images of tools", "refused"),
        (Capable(drops="tools"), "parallel calls", "no"),
        (Capable(drops="seed"), "seed", "unclear"),
        (Capable(gives='{"a": 3, "b": "4"}'), "native tools", "unclear"),
        (Capable(gives='{"a": null, "b": [[4]]}'), "native tools", "unclear"),
        (Capable(gives="[" * 100_000), "native tools", "no"),
    ],
)
def test_what_does_not_work_is_told(
    probed: Callable[..., dict[str, str]], model: Capable, feature: str, state: str
):
    found = probed(model)
    assert found[feature] == state
    assert found["text"] == "yes"


def test_no_server_and_a_refused_model_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path))
    assert run_command("doctor", "-m", "m", "--base-url", "http://127.0.0.1:9/v1").returncode == 3
    with serving(lambda _body: error(404, "no such model"), greets=False) as endpoint:
        assert run_command("doctor", "-m", "m", "--base-url", endpoint.base_url).returncode == 2
    assert run_command("doctor", "-m", "scripted:none.json").returncode == 2


def test_a_run_warns_of_what_a_probe_missed_and_stores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    folder = write_folder(tmp_path / "bench")
    follower, blind = ReferenceFollower.of_folder(folder), Capable(drops="user tool tools")

    def responder(body: dict[str, Any]) -> web.Response:
        return follower(body) if "Question:" in json.dumps(body) else blind(body)

    shown = io.StringIO()
    with serving(responder) as endpoint:
        assert run_command("doctor", "-m", "m", "--base-url", endpoint.base_url).returncode == 0
        options = {"mode": "end-to-end", "protocol": "tool-calling", "base_url": endpoint.base_url}
        run = at.evaluate(folder, "m", out=tmp_path / "run", progress=shown, **options)
    assert "did not see a picture" in shown.getvalue()
    assert "made no native tool call" in shown.getvalue()
    assert json.loads((run.path / "probe.json").read_text())["model"] == "m"
