"""``agrotools eval``, ``score`` and ``explain`` as a user runs them."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agrotools.cli import main
from support.command import run_command

AGROTOOLS = [sys.executable, "-m", "agrotools"]


def agrotools(*arguments: object, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, cwd=cwd, **(env or {}))


def metric(scores: dict, mode: str, name: str) -> float:
    return scores["modes"][mode]["metrics"][f"agrotools.{name}"]["overall"]["value"]


def evaluated(benchmark: Path, cwd: Path, *models: str, extra: tuple[object, ...] = ()) -> list[dict]:
    options = [part for model in models for part in ("--model", model)]
    done = agrotools("eval", benchmark, *options, "--json", *extra, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_perfect_tools_score_everything_and_chance_does_not(small_benchmark: Path, tmp_path: Path):
    perfect, chance, echo = evaluated(
        small_benchmark, tmp_path, "baseline:perfect-tools", "baseline:random", "baseline:echo"
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


def test_the_oracle_repeats_the_recorded_chain_with_the_real_tools(small_benchmark: Path, tmp_path: Path):
    (oracle,) = evaluated(small_benchmark, tmp_path, "baseline:oracle")
    for name in ("st_acc", "tool_acc", "arg_acc", "summ_acc"):
        assert metric(oracle, "step-by-step", name) == 1, name
    counts = oracle["modes"]["end-to-end"]["counts"]
    assert counts["terminations"] == {"answered": 8}
    assert 0 < metric(oracle, "end-to-end", "fas") <= 1


def test_the_same_command_again_does_nothing_and_a_larger_one_only_the_rest(small_benchmark: Path, tmp_path: Path):
    first = agrotools("eval", small_benchmark, "-m", "baseline:prior", "--limit", 3, cwd=tmp_path)
    assert "FAS" in first.stdout
    (run,) = (tmp_path / "runs").iterdir()
    lines = (run / "records.jsonl").read_bytes()
    again = agrotools("eval", small_benchmark, "-m", "baseline:prior", "--limit", 3, cwd=tmp_path)
    assert (run / "records.jsonl").read_bytes() == lines
    assert "already done" in again.stderr
    agrotools("eval", small_benchmark, "-m", "baseline:prior", cwd=tmp_path)
    grown = (run / "records.jsonl").read_bytes()
    assert grown.startswith(lines)
    keys = [(record["mode"], record["sample"]["id"], record["epoch"]) for record in map(json.loads, grown.splitlines())]
    assert len(keys) == len(set(keys))


def test_replaying_a_run_scores_the_same(small_benchmark: Path, tmp_path: Path):
    evaluated(small_benchmark, tmp_path, "baseline:oracle", extra=("--out", "first"))
    evaluated(small_benchmark, tmp_path, "replay:first", extra=("--out", "second"))
    scores = [json.loads((tmp_path / run / "scores.json").read_text())["scores"] for run in ("first", "second")]
    key = lambda row: (row["mode"], row["sample_id"], row["metric"], row["slot"] or "", row["step"] or 0)  # noqa: E731
    values = [{key(row): row["value"] for row in rows} for rows in scores]
    assert values[0] == values[1]


@pytest.mark.slow
def test_kill_9_at_any_moment_then_resume_gives_the_scores_of_an_unbroken_run(small_benchmark: Path, tmp_path: Path):
    whole = evaluated(small_benchmark, tmp_path, "baseline:random", extra=("--out", "whole", "--epochs", 3))
    command = [*AGROTOOLS, "eval", str(small_benchmark), "-m", "baseline:random", "--out", "broken", "--epochs", "3"]
    seen = 0
    for delay in (1.0, 1.6):
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        records = tmp_path / "broken" / "records.jsonl"
        complete = records.read_bytes().count(b"\n") if records.exists() else 0
        assert complete >= seen
        seen = complete
    resumed = evaluated(small_benchmark, tmp_path, "baseline:random", extra=("--out", "broken", "--epochs", 3))
    for mode in ("no-tool", "step-by-step", "end-to-end"):
        assert resumed[0]["modes"][mode]["metrics"] == whole[0]["modes"][mode]["metrics"]
    lines = (tmp_path / "broken" / "records.jsonl").read_bytes().splitlines()
    keys = [(record["mode"], record["sample"]["id"], record["epoch"]) for record in map(json.loads, lines)]
    assert len(keys) == len(set(keys))


def test_explain_shows_the_way_from_question_to_score(small_benchmark: Path, tmp_path: Path):
    evaluated(small_benchmark, tmp_path, "baseline:perfect-tools", extra=("--out", "run"))
    sample = json.loads((small_benchmark / "samples.jsonl").read_text().splitlines()[0])
    shown = agrotools("explain", "run", sample["id"], "--mode", "end-to-end", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert sample["query"][:40] in " ".join(shown.stdout.split())
    assert sample["reference"]["steps"][0]["tool"] in shown.stdout
    wrong = agrotools("explain", "run", sample["id"] + "x", cwd=tmp_path)
    assert wrong.returncode == 2
    assert sample["id"] in wrong.stderr
    as_json = json.loads(agrotools("explain", "run", sample["id"], "--json", cwd=tmp_path).stdout)
    assert {entry["record"]["mode"] for entry in as_json} == {"step-by-step", "end-to-end"}


def test_scoring_again_needs_neither_benchmark_nor_images(small_benchmark: Path, tmp_path: Path):
    (first,) = evaluated(small_benchmark, tmp_path, "baseline:prior", extra=("--out", "run"))
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere" / "run")
    again = agrotools("score", moved, "--json", cwd=tmp_path)
    assert json.loads(again.stdout)[0]["modes"] == first["modes"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["eval", "no-such-benchmark"], 2, "unknown benchmark"),
        (["eval", "{benchmark}", "-m", "baseline:orcale"], 2, "unknown baseline"),
        (["eval", "{benchmark}", "-m", "baseline:oracle", "--mode", "no-tool"], 2, "cannot be run in mode"),
        (["eval", "{benchmark}", "-m", "baseline:oracle", "--mode", "quick"], 2, "unknown mode"),
        (["eval", "{benchmark}", "-m", "baseline:oracle", "--protocol", "xml"], 2, "protocol"),
        (["eval", "{benchmark}", "-m", "baseline:oracle", "--limit", "0"], 2, "limit"),
        (["eval", "{benchmark}", "-m", "replay:nowhere"], 2, "not a run folder"),
        (["eval", "{benchmark}", "-m", "scripted:nowhere.toml"], 2, "nowhere.toml"),
        (["eval", "{benchmark}", "-m", "a", "-m", "b", "--out", "one"], 2, "--out names one run"),
        (["eval", "{benchmark}", "--config", "nowhere.toml"], 2, "there is no configuration file"),
        (["eval", "{benchmark}", "--config", "typo.toml"], 2, "did you mean 'epochs'"),
        (["eval", "{benchmark}", "--config", "number.toml"], 2, "model: should be a name or a list of names"),
        (["eval", "{benchmark}", "--config", "two.toml"], 2, "--out names one run"),
        (["eval", "{benchmark}", "-m", "baseline:echo", "--out", "."], 3, "it is left as it is"),
        (["score", "nowhere"], 2, "not a run folder"),
        (["explain", "nowhere", "s"], 2, "not a run folder"),
    ],
)
def test_mistakes_are_said_in_words(small_benchmark: Path, tmp_path: Path, arguments, code, says):
    (tmp_path / "typo.toml").write_text("epoch = 3\n")
    (tmp_path / "number.toml").write_text("model = 3\n")
    (tmp_path / "two.toml").write_text('model = ["baseline:prior", "baseline:echo"]\nout = "run"\n')
    done = agrotools(*(str(part).format(benchmark=small_benchmark) for part in arguments), cwd=tmp_path)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_of_another_configuration_is_not_mixed_in(small_benchmark: Path, tmp_path: Path):
    agrotools("eval", small_benchmark, "-m", "baseline:prior", "--out", "run", cwd=tmp_path)
    other = agrotools("eval", small_benchmark, "-m", "baseline:echo", "--out", "run", cwd=tmp_path)
    assert other.returncode == 3
    assert "baseline:prior" in other.stderr


def test_a_config_file_says_the_same_as_options(small_benchmark: Path, tmp_path: Path):
    (tmp_path / "run.toml").write_text(
        f'benchmark = "{small_benchmark}"\nmodel = "baseline:prior"\nmode = "end-to-end"\nlimit = 2\n'
    )
    done = agrotools("eval", "--config", "run.toml", "--out", "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (scores,) = json.loads(done.stdout)
    assert list(scores["modes"]) == ["end-to-end"]
    assert scores["modes"]["end-to-end"]["n_records"] == 2


def test_a_dead_endpoint_is_said_at_once_and_leaves_no_records(small_benchmark: Path, tmp_path: Path):
    done = agrotools(
        "eval", small_benchmark, "-m", "gone", "--base-url", "http://127.0.0.1:9/v1", "--limit", 1,
        "--mode", "end-to-end", "--out", "run", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3
    assert "no server at http://127.0.0.1:9/v1" in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.stdout, (tmp_path / "run").exists()) == ("", False)


def test_what_the_operating_system_refuses_is_said_in_words(monkeypatch: pytest.MonkeyPatch, capsys):
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "some/file")

    monkeypatch.setattr(main, "app", full)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 3
    assert capsys.readouterr().err.startswith("error: some/file: No space left on device\nhint: ")
