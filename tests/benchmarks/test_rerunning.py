"""Running reference calls again: what was recorded on this machine comes out the same; what was not is listed."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from agrotools.benchmarks import load_folder
from agrotools.benchmarks.rerunning import kind_of_place
from agrotools.benchmarks.sample_checks import differing
from agrotools.build.references import PlannedCall, record_reference
from agrotools.cli.validate import validate
from agrotools.tools.execution import ToolExecutor
from support.benchmark_folders import HEADER, chart_sample, number_sample, write_folder

TOOLSET = ("calculate", "plot", "extract_marked_region")


@pytest.fixture
def run(tmp_path, monkeypatch) -> Callable[..., Any]:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    app = typer.Typer()
    app.command()(validate)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def recorded(tmp_path, recorded_folder) -> list[dict[str, Any]]:
    """Samples whose observations are those of the tools of this machine, in a folder ``made``."""
    shutil.copytree(recorded_folder, tmp_path / "made")
    return [json.loads(line) for line in (recorded_folder / "samples.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def recorded_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "made"
    samples = [number_sample(folder), chart_sample(folder), number_sample(folder, "tiny-3", 3)]
    # A tool that finds nothing is an observation as well.
    samples[2]["reference"]["steps"].append({"tool": "extract_marked_region", "arguments": {"image": "image_1.png"}})
    for sample in samples:
        sample["toolset"] = list(TOOLSET)
    header = HEADER.replace('"calculate", "plot"', ", ".join(f'"{name}"' for name in TOOLSET))
    write_folder(folder, samples, header)

    async def observe() -> None:
        async with ToolExecutor() as executor:
            for sample, held in zip(load_folder(folder).samples, samples, strict=True):
                assert sample.reference is not None
                calls = [
                    PlannedCall(step.tool, step.arguments, step.truth or {"x": 1}) for step in sample.reference.steps
                ]
                made = await record_reference(calls, sample.files, folder, executor, TOOLSET)
                for step, kept in zip(made.steps, held["reference"]["steps"], strict=True):
                    assert step.observation is not None
                    kept["observation"] = step.observation.model_dump(mode="json")

    asyncio.run(observe())
    return write_folder(folder, samples, header)


def _write(folder: Path, samples: list[dict[str, Any]]) -> None:
    (folder / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))


@pytest.mark.slow
def test_what_was_recorded_here_comes_out_the_same_without_the_cache(run, recorded, tmp_path):
    done = run(tmp_path / "made", "--rerun", "--threads", 2)
    assert done.exit_code == 0, done.output
    assert "rerun: 5 calls of 3 samples, 2 threads each" in done.stdout
    assert "0 values other than recorded" in done.stdout
    assert "1 of 1 have the recorded bytes" in done.stdout
    assert "calls run again: 5/5" in done.stderr
    assert not (tmp_path / "cache" / "tool-results").exists()


@pytest.mark.slow
def test_what_comes_out_otherwise_is_listed_by_tool_and_field(run, recorded, tmp_path):
    number, chart, nothing = (sample["reference"]["steps"] for sample in recorded)
    number[0]["observation"]["result"]["value"] = 5.4 * 1.001
    chart[0]["observation"]["result"]["value"] = 5.4 * 1.00005
    chart[1]["observation"]["result"]["spec"]["title"] = "Harvest"
    chart[1]["observation"]["artifacts"][0]["sha256"] = "0" * 64
    nothing[1]["observation"]["error"]["kind"] = "low_confidence"
    _write(tmp_path / "made", recorded)
    done = run(tmp_path / "made", "--rerun")
    assert done.exit_code == 1
    assert "3 values other than recorded" in done.stdout
    assert "0 of 1 have the recorded bytes" in done.stdout
    assert "calculate: result.value, 1 value in 1 sample" in done.stdout
    assert "tiny-1, step 0, result.value: 5.4054 -> 5.4" in done.stdout
    rerun = json.loads(run(tmp_path / "made", "--rerun", "--json").stdout)["rerun"]
    assert (rerun["calls"], rerun["artifacts"], rerun["artifacts_same_bytes"]) == (5, 1, 0)
    told = [(each["sample"], each["step"], each["tool"], each["where"]) for each in rerun["differences"]]
    assert told == [
        ("tiny-1", 0, "calculate", "result.value"),
        ("tiny-2", 1, "plot", "result.spec.title"),
        ("tiny-3", 1, "extract_marked_region", "error.kind"),
    ]
    assert rerun["differences"][1]["recorded"] == "Harvest"
    assert rerun["differences"][1]["now"] != "Harvest"


def test_a_benchmark_that_cannot_be_loaded_is_not_run(run, tmp_path):
    done = run(write_folder(tmp_path / "made", ["{"]), "--rerun")
    assert done.exit_code == 1
    assert "broken_json" in done.stdout
    assert "fix the errors above first" in done.stderr
    assert "rerun:" not in done.stdout


def test_values_are_compared_one_by_one():
    before = {"a": 1.0, "b": [{"c": 2}, {"c": "x"}], "d": True, "e": [1, 2], "f": None, "g": 0.0}
    assert list(differing(before, {**before, "a": 1.00009, "g": 9e-7})) == []
    now = {"a": 1.0002, "b": [{"c": 2}, {"c": "y"}], "d": 1, "e": [1], "g": 2e-6, "h": 3}
    assert list(differing(before, now)) == [
        ("a", 1.0, 1.0002),
        ("b[1].c", "x", "y"),
        ("d", True, 1),
        ("e", [1, 2], [1]),
        ("g", 0.0, 2e-6),
        ("h", None, 3),
    ]
    assert kind_of_place("b[1].c[20]") == "b[].c[]"
