"""Selection of the tools that a run offers (``--tools``)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agrotools.cli.main import main
from agrotools.core import Sample, UsageError
from agrotools.formats.manifest import identity_hash
from agrotools.loading import load_benchmark
from agrotools.report.run_list import run_folders
from agrotools.runner.config import EvalConfig
from agrotools.runner.config_file import read_config
from agrotools.runner.plan import offered_tools, with_offered_tools
from agrotools.runner.store import read_manifest
from support.runs import manifest

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def sample(small_benchmark: Path) -> Sample:
    return load_benchmark(small_benchmark).samples[0]


def test_needed_tools_come_with_the_same_others_for_everybody(sample: Sample):
    assert sample.reference is not None
    needed = offered_tools(sample, "needed")
    assert set(needed) == set(sample.reference.tools)
    lists = [offered_tools(sample, f"+{number}") for number in (2, 4, 999)]
    for smaller, larger in zip([needed, *lists], lists, strict=False):
        assert set(smaller) < set(larger)
    assert [len(tools) for tools in lists[:2]] == [len(needed) + 2, len(needed) + 4]
    assert lists[2] == sample.toolset == offered_tools(sample, "all")
    assert list(lists[0]) == [tool for tool in sample.toolset if tool in lists[0]]
    other = sample.model_copy(update={"id": "another"})
    assert len({offered_tools(each, "+4") for each in (sample, other)}) == 2


@pytest.mark.parametrize("wrong", ["some", "+", "+-1", "4", "+01", "+12345"])
def test_other_selections_are_refused(wrong: str):
    with pytest.raises(UsageError, match=r"tools: .*all, needed or"):
        read_config(None, {"tools": wrong}, ["baseline:oracle"])
    assert EvalConfig.of(tools="+0").tools.offered == "needed"


def test_published_protocols_and_samples_without_reference_keep_their_tools(
    small_benchmark: Path, tmp_path: Path
):
    benchmark = load_benchmark(small_benchmark)
    assert with_offered_tools(benchmark, "all", "lagent") is benchmark
    with pytest.raises(UsageError, match="published protocol lagent") as failure:
        with_offered_tools(benchmark, "needed", "lagent")
    assert "--protocol react" in str(failure.value.hint)
    bare = benchmark.samples[0].model_copy(update={"reference": None})
    with pytest.raises(UsageError, match=f"not all samples of .* have any, e.g. {bare.id}"):
        with_offered_tools(replace(benchmark, samples=(bare,)), "+2", "react")


def test_the_selection_is_part_of_a_runs_identity_and_its_tables(
    small_benchmark: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    assert identity_hash(manifest()) != identity_hash(manifest(tools="needed"))
    monkeypatch.chdir(tmp_path)

    def agrotools(*arguments: Any) -> int | str | None:
        monkeypatch.setattr("sys.argv", ["agrotools", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    command = (
        "eval",
        small_benchmark,
        "-m",
        "baseline:oracle",
        "--mode",
        "step-by-step",
        "--limit",
        3,
        "--details",
    )
    assert agrotools(*command, "--tools", "needed") == 0
    shown = capsys.readouterr().out
    assert "baseline:oracle, tools" in shown
    assert "only the tools of the reference calls were offered" in " ".join(shown.split())
    assert agrotools(*command) == 0
    runs = {read_manifest(run).tools: run for run in run_folders(tmp_path / "runs")}
    assert set(runs) == {"needed", "all"}
    for record in map(json.loads, (runs["needed"] / "records.jsonl").read_text().splitlines()):
        assert {step["tool"] for step in record["sample"]["reference"]["steps"]} == set(
            record["sample"]["toolset"]
        )
    summaries = {
        tools: json.loads((run / "scores.json").read_bytes())["summary"]
        for tools, run in runs.items()
    }
    assert (summaries["needed"]["tools"], "tools" in summaries["all"]) == ("needed", False)
    assert agrotools(*command, "--tools", "+2", "--out", runs["needed"]) == 3
    assert "tools: needed there, +2 in this command" in capsys.readouterr().err
