"""``agrotools eval``, ``score`` and ``explain`` as a user runs them."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agrotools.report.layout import run_names
from agrotools.report.run_list import run_folders
from agrotools.runner.store import read_manifest
from agrotools.scoring.summary import Summary
from support.command import run_command
from support.eval_process import wait_for
from support.report_page import read_report

pytestmark = pytest.mark.process

AGROTOOLS = [sys.executable, "-m", "agrotools"]


def agrotools(
    *arguments: object, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, cwd=cwd, **(env or {}))


def metric(scores: dict, mode: str, name: str) -> float:
    return scores["modes"][mode]["metrics"][name]["overall"]["value"]


def evaluated(
    benchmark: Path, cwd: Path, *models: str, extra: tuple[object, ...] = ()
) -> list[dict]:
    options = [part for model in models for part in ("--model", model)]
    done = agrotools("eval", benchmark, *options, "--json", *extra, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def runs(small_benchmark: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of runs named like their baselines, not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("perfect-tools", "random", "echo", "oracle"):
        evaluated(small_benchmark, folder, f"baseline:{name}", extra=("--out", name))
    return folder


def scores_of(run: Path) -> dict:
    return json.loads((run / "scores.json").read_text())


def test_perfect_tools_score_everything_and_chance_does_not(runs: Path):
    perfect, chance, echo = (
        scores_of(runs / name)["summary"] for name in ("perfect-tools", "random", "echo")
    )
    assert metric(perfect, "end-to-end", "fas") == 1
    for name in ("st_acc", "tool_acc", "arg_acc", "summ_acc", "summ_acc_truth"):
        assert metric(perfect, "step-by-step", name) == 1, name
    assert metric(perfect, "step-by-step", "ear") == 0
    assert perfect["privileged"]
    assert "no-tool" not in perfect["modes"]
    assert metric(chance, "end-to-end", "fas") < 0.6
    assert metric(echo, "step-by-step", "ear") == 1
    assert metric(echo, "no-tool", "fas") < 0.5
    oracle = scores_of(runs / "oracle")["summary"]
    for name in ("st_acc", "tool_acc", "arg_acc", "summ_acc"):
        assert metric(oracle, "step-by-step", name) == 1, name
    counts = oracle["modes"]["end-to-end"]["counts"]
    assert counts["terminations"] == {"answered": 8}
    assert 0 < metric(oracle, "end-to-end", "fas") <= 1


def test_the_same_command_again_does_nothing_and_a_larger_one_only_the_rest(
    small_benchmark: Path, tmp_path: Path
):
    first = agrotools(
        "eval", small_benchmark, "-m", "baseline:constant", "--limit", 3, cwd=tmp_path
    )
    assert "FAS" in first.stdout
    run, *_ = run_folders(tmp_path / "runs")
    lines = (run / "records.jsonl").read_bytes()
    again = agrotools(
        "eval", small_benchmark, "-m", "baseline:constant", "--limit", 3, cwd=tmp_path
    )
    assert (run / "records.jsonl").read_bytes() == lines
    assert "were recorded earlier and are reused" in again.stderr
    grown_run = agrotools(
        "eval", small_benchmark, "-m", "baseline:constant", "--json", cwd=tmp_path
    )
    assert [each["reused_answers"] for each in json.loads(grown_run.stdout)] == [lines.count(b"\n")]
    grown = (run / "records.jsonl").read_bytes()
    assert grown.startswith(lines)
    keys = [
        (record["mode"], record["sample"]["id"], record["epoch"])
        for record in map(json.loads, grown.splitlines())
    ]
    assert len(keys) == len(set(keys))


@pytest.mark.slow
def test_kill_9_at_any_moment_then_resume_gives_the_scores_of_an_unbroken_run(
    small_benchmark: Path, runs: Path, tmp_path: Path
):
    command = [*AGROTOOLS, "eval", str(small_benchmark), "-m", "baseline:random", "--out", "broken"]
    records = tmp_path / "broken" / "records.jsonl"
    for least in (1, 8):
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(
            lambda least=least: records.exists() and records.read_bytes().count(b"\n") >= least
        )
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert records.read_bytes().count(b"\n") >= least
    resumed = evaluated(small_benchmark, tmp_path, "baseline:random", extra=("--out", "broken"))
    whole = scores_of(runs / "random")["summary"]
    for mode in ("no-tool", "step-by-step", "end-to-end"):
        assert resumed[0]["modes"][mode]["metrics"] == whole["modes"][mode]["metrics"]
    keys = [
        (record["mode"], record["sample"]["id"])
        for record in map(json.loads, records.read_bytes().splitlines())
    ]
    assert len(keys) == len(set(keys))


def test_explain_shows_the_way_from_question_to_score(small_benchmark: Path, runs: Path):
    sample = json.loads((small_benchmark / "samples.jsonl").read_text().splitlines()[0])
    shown = agrotools("explain", "perfect-tools", sample["id"], "--mode", "end-to-end", cwd=runs)
    assert shown.returncode == 0, shown.stderr
    assert sample["query"][:40] in " ".join(shown.stdout.split())
    assert sample["reference"]["steps"][0]["tool"] in shown.stdout
    wrong = agrotools("explain", "perfect-tools", sample["id"] + "x", cwd=runs)
    assert wrong.returncode == 2
    assert sample["id"] in wrong.stderr
    as_json = json.loads(
        agrotools("explain", "perfect-tools", sample["id"], "--json", cwd=runs).stdout
    )
    assert {entry["record"]["mode"] for entry in as_json} == {"step-by-step", "end-to-end"}
    assert [entry["shown"]["query"] for entry in as_json] == [sample["query"]] * 2
    listed = json.loads(
        agrotools("explain", "random", "--mode", "end-to-end", "--json", cwd=runs).stdout
    )
    assert len(listed) == len((small_benchmark / "samples.jsonl").read_text().splitlines())
    assert all(bool(each["error"]) == (each["score"] != 1) for each in listed)
    assert "first error" in agrotools("explain", "random", cwd=runs).stdout


def test_a_name_stands_in_tables_and_can_be_given_later(small_benchmark: Path, tmp_path: Path):
    command = ("eval", small_benchmark, "-m", "baseline:constant", "--limit", 2)
    named = ("--name", "Field agent")
    folders: list[list[Path]] = []
    for extra, shown in (((), "baseline:constant"), (named, "Field agent"), ((), "Field agent")):
        ran = agrotools(*command, *extra, cwd=tmp_path)
        assert ("get the name 'Field agent'" in ran.stderr) == bool(extra)
        folders.append(run_folders(tmp_path / "runs"))
        summary = scores_of(folders[-1][0])["summary"]
        assert (summary["model"], run_names([Summary(**summary)])) == ("baseline:constant", [shown])
        assert read_manifest(folders[-1][0]).shown_model == shown
    assert len({*map(tuple, folders)}) == 1
    two = agrotools(*command, "-m", "baseline:guess", *named, cwd=tmp_path)
    assert (two.returncode, "--name names one model" in two.stderr) == (2, True)
    renamed = agrotools(*command, "--name", "Field agent 2", cwd=tmp_path)
    assert renamed.returncode != 0
    assert "--out DIR starts another run" in renamed.stderr
    as_baseline = agrotools(*command, "--name", "baseline:oracle", cwd=tmp_path)
    assert (as_baseline.returncode, "should not begin with" in as_baseline.stderr) == (2, True)


def test_the_page_of_several_runs_is_not_replaced_by_that_of_one(
    small_benchmark: Path, tmp_path: Path
):
    several = (
        "eval",
        small_benchmark,
        "-m",
        "baseline:constant",
        "-m",
        "baseline:guess",
        "--limit",
        2,
    )
    agrotools(*several, cwd=tmp_path)
    (joint,) = tmp_path.glob("runs/*/report-2-runs-*.html")
    assert 'id="compare"' in joint.read_text(encoding="utf-8")
    before = joint.read_bytes()
    agrotools("eval", small_benchmark, "-m", "baseline:constant", "--limit", 2, cwd=tmp_path)
    assert joint.read_bytes() == before
    one = joint.parent / "report.html"
    assert 'id="compare"' not in one.read_text(encoding="utf-8")


def test_a_later_command_in_another_mode_leaves_floor_and_ceiling_on_the_page(
    small_benchmark: Path, tmp_path: Path
):
    command = ("eval", small_benchmark, "-m", "baseline:constant", "--limit", 3, "--out", "run")
    heads: list[dict] = []
    for modes in ("end-to-end,no-tool", "no-tool"):
        done = agrotools(*command, "--mode", modes, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        heads.append(read_report(tmp_path / "run/report.html").head)
    assert "No tools, FAS" in done.stdout
    assert re.search(r"agrotools explain run \S+ --mode no-tool$", done.stdout, re.MULTILINE)
    assert done.stdout.count("ceiling") == 0, "without tools there is none"
    before, after = heads
    assert before["measure"]["mode"] == "end-to-end"
    assert {each["role"] for each in before["references"]} >= {"floor", "ceiling"}
    assert (after["measure"], after["references"]) == (before["measure"], before["references"])
    assert agrotools("report", "run", cwd=tmp_path).returncode == 0
    written = read_report(tmp_path / "run/report.html").head
    assert written["references"] == before["references"]


def test_a_config_file_says_the_same_as_options(small_benchmark: Path, tmp_path: Path):
    (tmp_path / "run.toml").write_text(
        f'benchmark = "{small_benchmark}"\nmodel = "baseline:constant"\nmode = "end-to-end"\nlimit = 2\n'
    )
    done = agrotools("eval", "--config", "run.toml", "--out", "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (scores,) = json.loads(done.stdout)
    assert list(scores["modes"]) == ["end-to-end"]
    assert scores["modes"]["end-to-end"]["n_records"] == 2
