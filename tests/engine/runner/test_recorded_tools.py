"""The back-end ``recorded``: reference calls get what was recorded of them, others are told so, nothing is run."""

import json
from pathlib import Path

import pytest
import tomli_w
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import (
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    ToleranceSlot,
    ToolCall,
    UsageError,
)
from agrotools.runner.plan import RecordedTools, backend_by_tool
from agrotools.runner.run_settings import RunSettings
from support.made_gta import write_gta
from support.plain_sample import plain_sample


def sample(*steps: ReferenceStep):
    return plain_sample(
        "s", toolset=("calculate", "OCR"), reference=ReferenceTrajectory(steps=steps)
    )


def recorded(value: int, expression: str = "6*7") -> ReferenceStep:
    return ReferenceStep(
        tool="calculate",
        arguments={"expression": expression},
        observation=Observation(result={"value": value}),
    )


def test_a_call_that_agrees_gets_what_was_recorded():
    outcome = RecordedTools(sample(recorded(42))).run(
        ToolCall(tool="calculate", arguments={"expression": "7 * 6"})
    )
    assert outcome.source == "recording"
    assert outcome.observation.result == {"value": 42}


def test_a_call_made_several_times_gets_its_observations_in_turn_and_then_the_last():
    tools = RecordedTools(sample(recorded(1), recorded(2)))
    call = ToolCall(tool="calculate", arguments={"expression": "6*7"})
    assert [tools.run(call).observation.result for _ in range(3)] == [
        {"value": 1},
        {"value": 2},
        {"value": 2},
    ]


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
    assert outcome.source != "recording"
    error = outcome.observation.error
    assert error is not None
    assert error.kind == "backend_unavailable"
    assert f"--backend {call.tool}=" in (error.hint or "")


def test_what_is_said_of_all_tools_gives_way_to_what_is_said_of_one():
    spelled = backend_by_tool({"*": "recorded", "plot": "offline"}, ("calculate", "plot"))
    assert spelled == {"calculate": "recorded", "plot": "offline"}
    settings = RunSettings("react", 20, True, ("end-to-end",), spelled)
    assert (settings.recorded, settings.executed_backends) == ({"calculate"}, {"plot": "offline"})
    assert backend_by_tool({"plot": "offline"}, ("calculate", "plot")) == {"plot": "offline"}


def agrotools(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_published_benchmark_runs_without_weights_keys_or_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "data"
    write_gta(root / "gta_dataset")
    run = tmp_path / "run"
    common = (
        "gta",
        "--data-root",
        root,
        "-m",
        "baseline:oracle",
        "--mode",
        "end-to-end",
        "--limit",
        20,
        "--out",
        run,
    )
    told = agrotools("eval", *common, "--backend", "recorded")
    records = [
        json.loads(line)
        for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    calls = [
        step
        for record in records
        for step in record["trajectory"]["steps"]
        if step["kind"] == "call"
    ]
    assert len(records) == 20
    assert calls
    assert all(step["recorded"] and step["observation"]["error"] is None for step in calls)
    assert f"{len(calls)} of {len(calls)} observations are recorded ones" in " ".join(told.split())
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["backends"]["OCR"] == "recorded"


def test_a_tool_to_be_recorded_that_the_benchmark_has_not_is_refused_with_the_closest_name():
    with pytest.raises(UsageError, match="did you mean calculate"):
        backend_by_tool({"calulate": "recorded"}, ("calculate", "plot"))


def write_weighings(folder: Path, count: int) -> Path:
    """Questions that are answered by a tool which is installed nowhere, from what was recorded of it."""
    folder.mkdir(parents=True)
    header = {
        "name": "weighings",
        "version": "1",
        "licence": "CC0-1.0",
        "toolset": ["weigh_on_the_moon", "calculate"],
    }
    header |= {"modes": ["end-to-end"], "backends": {"calculate": "offline"}}
    (folder / "benchmark.toml").write_text(tomli_w.dumps(header), encoding="utf-8")
    answer_from = {"from": "steps[0].observation.mass_kg"}
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(count):
            weigh = ReferenceStep(
                tool="weigh_on_the_moon",
                arguments={"crop": f"lot {number}", "scales": ["a", {"zero": number}]},
                observation=Observation(result={"mass_kg": number / 2}),
            )
            double = ReferenceStep(
                tool="calculate",
                arguments={"expression": f"{number} / 2"},
                observation=Observation(result={"value": number / 2}),
            )
            made = plain_sample(
                f"w{number:04}",
                query=f"What does lot {number} weigh?",
                answer_type="tolerance",
                toolset=("weigh_on_the_moon", "calculate"),
                reference=ReferenceTrajectory(steps=(weigh, double) if number % 2 else (weigh,)),
                answer=(
                    ToleranceSlot(
                        name="mass", label="mass", value=number / 2, unit="kg", **answer_from
                    ),
                ),
            )
            lines.write(made.model_dump_json(by_alias=True, exclude_none=True) + "\n")
    return folder


def test_a_benchmark_runs_where_a_tool_of_it_is_not_installed(tmp_path: Path):
    benchmark, run = write_weighings(tmp_path / "benchmark", 6), tmp_path / "run"
    command = ["eval", str(benchmark), "-m", "baseline:oracle", "--out", str(run)]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert "weigh_on_the_moon" in str(refused.exception)
    agrotools(*command, "--backend", "recorded", "--limit", 3)
    told = agrotools(*command, "--backend", "recorded")
    lines = (run / "records.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 6
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["backends"] == {"calculate": "recorded", "weigh_on_the_moon": "recorded"}
    assert "9 of 9 observations are recorded ones" in " ".join(told.split())


def test_a_step_of_which_nothing_was_recorded_says_so():
    step = ReferenceStep(tool="calculate", arguments={"expression": "1"})
    outcome = RecordedTools(sample(step)).run(
        ToolCall(tool="calculate", arguments={"expression": "1"})
    )
    assert outcome.observation.error is not None
    assert "nothing was recorded" in outcome.observation.error.message
