"""Questions that a model proposes: only sound ones are kept, in a folder that is no benchmark before a review."""

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from agrotools.benchmarks import load_folder
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.review.agreement import Decision
from agrotools.build.review.journal import ReviewJournal
from agrotools.build.review.material import open_material
from agrotools.cli.main import app
from agrotools.core import Sample, UsageError
from agrotools.formats.benchmark import BenchmarkHeader, read_header
from agrotools.formats.writing import replace_folder
from agrotools.models import WireSettings
from support.caches import separate_cache
from support.openai_server import Body, completion, serving, text_of

Build = Callable[..., Result]


@pytest.fixture
def build(small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    separate_cache(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr("agrotools.models.WireSettings", partial(WireSettings, attempts=2, first_wait_s=0.01))

    def ready_at_once(_source: list[str], out: Path, *_: object) -> BenchmarkHeader:
        with replace_folder(out) as partial_folder:
            shutil.copytree(small_benchmark, partial_folder, dirs_exist_ok=True)
        return read_header(out)

    monkeypatch.setattr("agrotools.build.sources.build_sources", ready_at_once)
    command = ["build", "--source", "deepweeds=x", "--out", str(tmp_path / "out"), "--propose", "m"]
    return lambda *options: CliRunner().invoke(app, [*command, *map(str, options)])


def proposals_about(sample: Sample) -> list[Any]:
    """Two sound proposals, and one for each way of being dropped."""
    name = sample.files[0].name
    area: dict[str, Any] = {"tool": "measure_crop_weed_area", "arguments": {"image": name}}
    half = {
        "tool": "calculate",
        "arguments": {"expression": "x / 2", "variables": {"x": {"$ref": "steps[0].observation.veg_pct"}}},
    }
    number = {"type": "number", "label": "green share", "unit": "%", "from": "steps[0].observation.veg_pct"}
    sound = {
        "question": f"What percentage of {name} is green?", "task_type": "weed_crop_area", "calls": [area],
        "answer": number, "why": "growers ask this",
    }  # fmt: skip
    ask = f"Is more than one percent of {name} green?"
    yes = {"type": "boolean", "label": "more than one percent", "from": "steps[0].observation.veg_pct > 1"}
    return [
        sound,
        sound | {"question": ask, "answer": yes},
        sound,
        {"question": "What?"},
        "no object",
        sound | {"question": f"Which answer does {name} give now?", "task_type": "astrology"},
        sound | {"question": f"How green is all of {name} then?", "calls": [{"tool": "rm", "arguments": {}}]},
        sound | {"question": f"How green might {name} be?", "calls": [area | {"arguments": {"image": "other.png"}}]},
        sound | {"question": f"How green is {name} at most?", "answer": number | {"from": "steps[0].observation.none"}},
        sound | {"question": f"Call measure_crop_weed_area: how green is {name}?"},
        sound
        | {
            "question": f"What is half of the green share of {name}?",
            "calls": [area, half],
            "answer": number | {"from": "steps[1].observation.value"},
        },
    ]


def responder(samples: Sequence[Sample]) -> Callable[[Body], web.Response]:
    def respond(body: Body) -> web.Response:
        shown = text_of(body["messages"][1])
        about = next(sample for sample in samples if f"- {sample.query}\n" in f"{shown}\n")
        return completion(f"Drafts:\n```json\n{json.dumps({'questions': proposals_about(about)})}\n```")

    return respond


def test_sound_proposals_go_to_review_and_only_accepted_ones_into_a_benchmark(build, small_benchmark, tmp_path):
    out, proposed = tmp_path / "out", tmp_path / "out-proposed"
    with serving(responder(load_folder(small_benchmark).samples)) as endpoint:
        done = build("--proposals", 6, "--base-url", endpoint.base_url)
        assert done.exit_code == 0, done.output
        requests = len(endpoint.requests)
        sent = endpoint.requests[0]["messages"]
        assert any(part["type"] == "image_url" for part in sent[1]["content"])
        assert '"required":["image","target"]' in text_of(sent[1]).replace(" ", "")
        assert build("--proposals", 6, "--base-url", endpoint.base_url).exit_code == 0
        assert len(endpoint.requests) == requests == 2, "replies are paid once"
    assert list(load_folder(out).samples) == list(load_folder(small_benchmark).samples)
    assert not validate_folder(proposed)
    samples = load_folder(proposed).samples
    assert len(samples) == 6
    for line in (
        "4 malformed",
        "2 repeats a question",
        "2 of an unknown task type",
        "2 calls a tool that is not offered",
        "2 no answer follows from its calls",
        "2 tool in query",
    ):
        assert line in done.output, done.output
    shares = [slot for sample in samples for slot in sample.answer if slot.type == "tolerance"]
    assert {slot.label for slot in shares} == {"green share"}
    first = samples[0]
    assert first.answer[0].value == first.reference.steps[0].observation.result["veg_pct"]  # pyright: ignore

    refused = CliRunner().invoke(
        app, ["eval", str(proposed), "--model", "baseline:oracle", "--out", str(tmp_path / "run")]
    )
    assert isinstance(refused.exception, UsageError)
    assert "nobody reviewed" in str(refused.exception)

    contents = open_material(str(proposed)).contents
    decided = {"id": "0" * 8, "sample": samples[0].id, "content": contents[samples[0].id], "reviewer": "Ada"}
    ReviewJournal(proposed / "review.jsonl", Decision).append(Decision.model_validate(decided | {"verdict": "accept"}))
    applied = CliRunner().invoke(app, ["review", str(proposed), "--apply", "--out", str(tmp_path / "new")])
    assert applied.exit_code == 0, applied.output
    assert "dropped 5: proposed and not reviewed" in applied.output
    accepted = load_folder(tmp_path / "new")
    assert [sample.query for sample in accepted.samples] == [samples[0].query]
    assert "proposed" not in accepted.header.metadata
    assert accepted.header.metadata["reviewed_proposals"]["model"] == "m"  # pyright: ignore


def test_the_budget_holds_and_unreadable_replies_are_counted(build, small_benchmark, tmp_path):
    with serving(responder(load_folder(small_benchmark).samples)) as endpoint:
        done = build("--base-url", endpoint.base_url, "--budget", 0.000001, "--price", "1000/1000")
        assert done.exit_code == 0, done.output
        assert not endpoint.requests
    assert "warning: " in done.output
    assert "questions proposed by m: 0" in done.output
    assert len(load_folder(tmp_path / "out").samples) == 8
    assert not (tmp_path / "out-proposed").exists()
    with serving(lambda _: completion("I cannot think of any.")) as endpoint:
        done = build("--base-url", endpoint.base_url, "--proposals", 3)
    assert done.exit_code == 0, done.output
    assert "1 unreadable reply" in done.output
    assert not (tmp_path / "out-proposed").exists()
