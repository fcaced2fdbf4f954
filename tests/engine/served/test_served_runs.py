"""Runs with a tool server: its tools are offered to models and agents, its failures make samples invalid, and other
tools are other runs."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import support
from agrotools.core import Action, Answer, CallTools, Record, SampleView, Step, ToolCall
from agrotools.core.errors import RunStoreError
from agrotools.report.evaluation import compare_with_reasons
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from support.agent_server import agent_serving
from support.benchmark_folders import number_sample, write_folder
from support.http_tools import serving

pytestmark = pytest.mark.process
SERVER = f"{sys.executable} {Path(support.__path__[0]) / 'tool_server.py'}"


class OneCall:
    """Policy that makes one call, with the sample's first file, and then answers."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool, self.arguments = tool, arguments

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        if history:
            return Answer(text="no idea")
        named = {
            key: view.files[0].name if value == "FILE" else value
            for key, value in self.arguments.items()
        }
        return CallTools(calls=(ToolCall(tool=self.tool, arguments=named),))


def run(
    benchmark: Path, out: Path, tool: str, *, limit: int = 2, server: str = SERVER, **arguments: Any
) -> list[Record]:
    config = EvalConfig.of(
        benchmark=str(benchmark),
        mode="end-to-end",
        limit=limit,
        tool_servers=(server,),
        out=out,
    )
    evaluate(config, io.StringIO(), model=OneCall(tool, arguments))
    return list(iter_records(out))


def test_a_served_tool_is_offered_and_a_run_goes_on(tmp_path: Path):
    # Few samples: each has a session of its own, for which the server is started.
    folder = tmp_path / "bench"
    benchmark = write_folder(folder, [number_sample(folder, f"n{at}", at) for at in (1, 2)])
    out = tmp_path / "run"
    first = run(benchmark, out, "segment", limit=1, image_path="FILE")
    manifest = read_manifest(out)
    assert [use.name for use in manifest.tool_servers] == ["field-tools"]
    assert manifest.toolset["segment"].startswith("3:")
    assert manifest.toolset.keys() > {"segment", "measure", "calculate"}
    for record in first:
        assert record.trajectory is not None
        observation = record.trajectory.calls[0].observation
        assert observation is not None
        assert observation.result is not None
        assert observation.result["session_id"] == "session-1"
    more = run(benchmark, out, "segment", limit=2, image_path="FILE")
    assert (len(first), len(more)) == (1, 2)
    seconds = {record.sample.id: record.seconds for record in more}
    assert all(seconds[record.sample.id] == record.seconds for record in first)  # not run again
    with pytest.raises(RunStoreError, match="tool servers"):
        run(
            benchmark,
            out,
            "segment",
            server=f"env TOOL_SERVER_NAME=other {SERVER}",
            image_path="FILE",
        )


def test_a_server_that_dies_makes_the_sample_invalid_and_never_wrong(
    small_benchmark: Path, tmp_path: Path
):
    records = run(small_benchmark, tmp_path / "run", "die")
    assert len(records) == 2
    assert all("ended: out of field" in (record.invalid or "") for record in records)


def test_a_run_over_http_holds_no_token_and_goes_on_after_a_sample_that_failed(
    small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out = tmp_path / "run"
    monkeypatch.setenv("FIELD_TOKEN", "Bearer orchard-secret")
    with serving(tmp_path, TOKEN="orchard-secret") as running:
        server = f"{running.url} Authorization=FIELD_TOKEN"
        failed = run(small_benchmark, out, "answer", server=server, status=500)
        assert len(failed) == 2
        assert all("answered 500" in (record.invalid or "") for record in failed)
        well = run(small_benchmark, tmp_path / "well", "cover", server=server, image_path="FILE")
        assert [record.invalid for record in well] == [None, None]
        # One session for the listing of each run, and one for each sample.
        assert len(running.requests("DELETE")) == 2 * (1 + 2)
    kept = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(b"orchard-secret" in content for content in kept)


AGENT = """
def solve(task):
    return {"mean_yield": task.tools.cover(image_path="any")["cover"]}
"""
BINDING = """
[calculate]
[[calculate.calls]]
tool = "cover"
arguments = { image_path = "{expression}" }
[calculate.result]
value = "cover * FACTOR"
"""


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A benchmark of one question without pictures."""
    folder = tmp_path / "bench"
    return write_folder(folder, [number_sample(folder, "tiny", 1)])


def served_action(request: dict[str, Any]) -> dict[str, Any]:
    if not request["steps"]:
        return {"call": {"tool": "cover", "arguments": {"image_path": "any"}}}
    return {"answer": f"mean_yield: {request['steps'][0]['observation']['result']['cover']}"}


@pytest.mark.parametrize("kind", ["function", "process", "server"])
def test_an_agent_of_ones_own_calls_served_tools(
    kind: str, numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    code = tmp_path / "code"
    code.mkdir()
    (code / "my_agent.py").write_text(AGENT)
    monkeypatch.chdir(code)
    space: dict[str, Any] = {}
    exec(AGENT, space)
    out = tmp_path / "run"
    config = EvalConfig.of(
        benchmark=str(numbers),
        model="python:my_agent:solve",
        mode="end-to-end",
        tool_servers=(SERVER,),
        out=out,
    )
    if kind == "server":
        with agent_serving(served_action) as address:
            evaluate(config.with_options(model=address), io.StringIO())
    else:
        evaluate(config, io.StringIO(), model=space["solve"] if kind == "function" else None)
    (record,) = iter_records(out)
    assert record.trajectory is not None, record.invalid
    (made,) = record.trajectory.calls
    assert made.observation is not None
    assert made.observation.result == {"cover": 0.5}
    assert "0.5" in (record.trajectory.answer or "")


def test_another_binding_is_another_run_and_a_comparison_names_it(numbers: Path, tmp_path: Path):
    config = EvalConfig.of(benchmark=str(numbers), mode="end-to-end", out=tmp_path / "ours")
    binding = tmp_path / "binding.toml"

    def evaluated(factor: int, out: str) -> Path:
        binding.write_text(BINDING.replace("FACTOR", str(factor)))
        served = config.with_options(
            tool_servers=(SERVER,), bindings=(str(binding),), out=tmp_path / out
        )
        return evaluate(served, io.StringIO(), model=OneCall("calculate", {"expression": "2"})).run

    ours = evaluate(config, io.StringIO(), model=OneCall("calculate", {"expression": "2"})).run
    first, second = evaluated(1, "first"), evaluated(2, "second")
    with pytest.raises(RunStoreError, match="data of tools, calculate"):
        evaluated(3, "second")
    own = run(numbers, tmp_path / "own", "cover", image_path="any")
    assert own[0].invalid is None

    start = "the runs differ in more than the model: different tool servers: "
    texts = compare_with_reasons([ours, first]).warnings
    assert texts == [f"{start}none / field-tools 3, binding binding.toml"]
    (text,) = compare_with_reasons([first, second]).warnings
    hashes = [read_manifest(each).tool_data["calculate"][:12] for each in (first, second)]
    assert all(f"binding binding.toml {each}" in text for each in hashes)
    texts = compare_with_reasons([ours, tmp_path / "own"]).warnings
    assert texts == [f"{start}none / field-tools 3"]
