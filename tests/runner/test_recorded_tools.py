"""The back-end ``recorded``: reference calls get what was recorded of them, others are told so, nothing is run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import Observation, ReferenceStep, ReferenceTrajectory, ToolCall
from agrotools.runner.recorded_tools import RecordedTools, real_backends, spelled_out
from support.made_gta import write_gta
from support.plain_sample import plain_sample


def sample(*steps: ReferenceStep):
    return plain_sample("s", toolset=("calculate", "OCR"), reference=ReferenceTrajectory(steps=steps))


def recorded(value: int, expression: str = "6*7") -> ReferenceStep:
    return ReferenceStep(
        tool="calculate", arguments={"expression": expression}, observation=Observation(result={"value": value})
    )


def test_a_call_that_agrees_gets_what_was_recorded():
    outcome = RecordedTools(sample(recorded(42))).run(ToolCall(tool="calculate", arguments={"expression": "7 * 6"}))
    assert outcome.recorded
    assert outcome.observation.result == {"value": 42}


def test_a_call_made_several_times_gets_its_observations_in_turn_and_then_the_last():
    tools = RecordedTools(sample(recorded(1), recorded(2)))
    call = ToolCall(tool="calculate", arguments={"expression": "6*7"})
    assert [tools.run(call).observation.result for _ in range(3)] == [{"value": 1}, {"value": 2}, {"value": 2}]


@pytest.mark.parametrize(
    "call",
    [
        ToolCall(tool="calculate", arguments={"expression": "6*8"}),
        ToolCall(tool="calculate", arguments={"expression": ["no", "text"]}),
        ToolCall(tool="calculate", arguments={}),
        ToolCall(tool="OCR", arguments={"image": "a.png"}),
    ],
)
def test_any_other_call_is_told_so(call: ToolCall):
    outcome = RecordedTools(sample(recorded(42))).run(call)
    assert not outcome.recorded
    error = outcome.observation.error
    assert error is not None
    assert error.kind == "backend_unavailable"
    assert f"--backend {call.tool}=" in (error.hint or "")


def test_a_step_of_which_nothing_was_recorded_says_so():
    step = ReferenceStep(tool="calculate", arguments={"expression": "1"})
    outcome = RecordedTools(sample(step)).run(ToolCall(tool="calculate", arguments={"expression": "1"}))
    assert outcome.observation.error is not None
    assert "nothing was recorded" in outcome.observation.error.message


def test_what_is_said_of_all_tools_gives_way_to_what_is_said_of_one():
    spelled = spelled_out({"*": "recorded", "plot": "offline"}, ("calculate", "plot"))
    assert spelled == {"calculate": "recorded", "plot": "offline"}
    assert real_backends(spelled) == {"plot": "offline"}
    assert spelled_out({"plot": "offline"}, ("calculate", "plot")) == {"plot": "offline"}


def agrotools(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_published_benchmark_runs_without_weights_keys_or_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "data"
    write_gta(root / "gta_dataset")
    run = tmp_path / "run"
    common = ("gta", "--data-root", root, "-m", "baseline:oracle", "--mode", "end-to-end", "--limit", 20, "--out", run)
    told = agrotools("eval", *common, "--backend", "recorded")
    records = [json.loads(line) for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    calls = [step for record in records for step in record["trajectory"]["steps"] if step["kind"] == "call"]
    assert len(records) == 20
    assert calls
    assert all(step["recorded"] and step["observation"]["error"] is None for step in calls)
    assert f"{len(calls)} of {len(calls)} observations were recorded ones" in " ".join(told.split())
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["backends"]["OCR"] == "recorded"


def test_some_tools_may_run_while_others_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "data"
    write_gta(root / "gta_dataset")
    run = tmp_path / "run"
    common = ("gta", "--data-root", root, "-m", "baseline:oracle", "--mode", "end-to-end", "--limit", 40, "--out", run)
    agrotools("eval", *common, "--backend", "recorded", "--backend", "Calculator=offline")
    records = [json.loads(line) for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    calls = [step for record in records for step in record["trajectory"]["steps"] if step["kind"] == "call"]
    by_tool = {step["call"]["tool"]: step["recorded"] for step in calls}
    assert by_tool.pop("Calculator") is False
    assert by_tool
    assert all(by_tool.values())
