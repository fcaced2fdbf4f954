"""``agrotools eval`` with tools that ask a vision model: what is recorded, what it costs, what is never written."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import BudgetReached, UsageError
from agrotools.models.metered import read_spend
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.records import record_index
from agrotools.runner.store import read_manifest
from support.openai_server import Body, Endpoint, completion, serving

pytestmark = pytest.mark.process

KEY = "sk-planted-51d0e8"
ONE = json.dumps({"objects": [{"box": [10, 10, 40, 40]}]})
EACH = 100 * 2e-6 + 10 * 8e-6
HEADER = """name = "orchard"
version = "1"
licence = "Apache-2.0"
description = "drawn fruit"
synthetic = true
toolset = ["count_objects"]
modes = ["end-to-end"]

[[sources]]
name = "drawn"
licence = "Apache-2.0"
"""


def _benchmark(folder: Path, count: int) -> Path:
    (folder / "files").mkdir(parents=True)
    (folder / "benchmark.toml").write_text(HEADER)
    lines: list[str] = []
    for number in range(count):
        pixels = np.full((80, 120, 3), 90 + number, np.uint8)
        pixels[10:40, 10:40] = (190, 30, 40)
        Image.fromarray(pixels).save(folder / "files" / f"{number}.png")
        step = {"tool": "count_objects", "arguments": {"image": "tree.png", "target": "apple"},
                "observation": {"result": {"count": 1}}, "truth": {"count": 1}}  # fmt: skip
        slot = {"type": "tolerance", "name": "count", "label": "apples", "value": 1, "unit": "", "rel_tol": 0.01,
                "from": "steps[0].observation.count"}  # fmt: skip
        sample = {
            "id": f"tree-{number}", "query": f"How many apples hang on tree {number}?", "family": "CM",
            "files": [{"name": "tree.png", "path": f"files/{number}.png", "kind": "image"}],
            "task_type": "tree_counting", "answer_type": "tolerance", "template": "apples", "source": "drawn",
            "toolset": ["count_objects"], "reference": {"steps": [step]}, "answer": [slot],
        }  # fmt: skip
        lines.append(json.dumps(sample))
    (folder / "samples.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def _config(benchmark: Path, endpoint: Endpoint, out: Path, **more: object) -> EvalConfig:
    given = {"benchmark": str(benchmark), "model": "baseline:oracle", "mode": "end-to-end", "out": out,
             "backends": {"count_objects": "vlm"}, "vlm_model": "eye", "vlm_base_url": endpoint.base_url,
             "vlm_price": "2/8", "tool_workers": 1, **more}  # fmt: skip
    return EvalConfig.of(**given)


def test_a_run_whose_tool_asks_is_recorded_and_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    benchmark = _benchmark(tmp_path / "orchard", 3)
    said = io.StringIO()
    with serving(lambda _body: completion(ONE)) as endpoint:
        done = evaluate(_config(benchmark, endpoint, tmp_path / "run"), said)
        assert len(endpoint.requests) == 3
        assert {headers["Authorization"] for headers in endpoint.headers} == {f"Bearer {KEY}"}
        evaluate(_config(benchmark, endpoint, tmp_path / "again"), said)
        assert len(endpoint.requests) == 6, "no result of a model is shared between runs"
    assert done.stopped is None
    spend = read_spend(tmp_path / "run" / "spend.jsonl")
    assert (spend.replies, spend.input_tokens, spend.output_tokens) == (3, 300, 30)
    assert spend.usd == pytest.approx(3 * EACH)
    index = record_index(tmp_path / "run")
    for key in index.each_key():
        record = index.get(key)
        assert record is not None
        assert record.trajectory is not None
        observed = record.trajectory.calls[0].observation
        assert observed is not None
        assert observed.result is not None
        assert observed.result["count"] == 1
        assert "said by the model eye, not measured" in observed.result["notes"]
    manifest = read_manifest(tmp_path / "run")
    assert manifest.backends == {"count_objects": "vlm:eye"}
    assert manifest.vlm_base_url == endpoint.base_url
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert index.n_finished == 3
    assert not [path for path in written if KEY.encode() in path.read_bytes()]
    assert KEY not in said.getvalue()


def test_a_budget_holds_for_what_tools_ask(tmp_path: Path) -> None:
    benchmark = _benchmark(tmp_path / "orchard", 6)
    with serving(lambda _body: completion(ONE)) as endpoint:
        # One question may cost up to 12,000 tokens of output: 0.11 USD or so are set aside for it.
        done = evaluate(_config(benchmark, endpoint, tmp_path / "run", budget=0.115), io.StringIO())
        assert done.stopped is None
        assert read_spend(tmp_path / "run" / "spend.jsonl").usd == pytest.approx(6 * EACH)
        with pytest.raises(BudgetReached):
            evaluate(_config(benchmark, endpoint, tmp_path / "poor", budget=0.01), io.StringIO())
    assert read_spend(tmp_path / "poor" / "spend.jsonl").replies == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"vlm_model": None}, "none is given"),
        ({"backends": {}}, "no tool uses it"),
        ({"vlm_price": "cheap"}, "is not a price"),
        ({"vlm_price": None, "vlm_base_url": "https://example.org/v1", "budget": 1}, "not known"),
    ],
)
def test_a_model_for_tools_that_is_named_wrongly(
    tmp_path: Path, more: dict[str, object], said: str
) -> None:
    benchmark = _benchmark(tmp_path / "orchard", 1)
    endpoint = Endpoint("http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match=said):
        evaluate(_config(benchmark, endpoint, tmp_path / "run", **more), io.StringIO())


def test_one_call_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYE_KEY", KEY)
    image = tmp_path / "tree.png"
    pixels = np.full((80, 120, 3), 90, np.uint8)
    pixels[10:40, 10:40] = (190, 30, 40)
    Image.fromarray(pixels).save(image)
    asked: list[Body] = []

    def answer(body: Body) -> object:
        asked.append(body)
        return completion(ONE)

    command = [
        "tools",
        "run",
        "count_objects",
        "--image",
        str(image),
        "--target",
        "gate",
        "--out",
        str(tmp_path / "o"),
    ]
    with serving(answer) as endpoint:  # type: ignore[arg-type]
        options = [
            "--vlm-model",
            "eye",
            "--vlm-base-url",
            endpoint.base_url,
            "--vlm-api-key-env",
            "EYE_KEY",
        ]
        done = CliRunner().invoke(app, [*command, "--json", "--backend", "vlm", *options])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["result"]["count"] == 1
    assert "eye: 100 input and 10 output tokens, 0 USD" in done.stderr
    assert len(asked) == 1
    assert KEY not in done.output
    gone = CliRunner().invoke(app, [*command, "--backend", "vlm"])
    assert gone.exit_code == 2
    assert "--vlm-model" in gone.stderr
