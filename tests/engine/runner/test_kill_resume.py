"""``kill -9`` at random moments, with the same command again each time: nothing is lost, doubled or different."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import run_command
from support.sums_benchmark import write_sums

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_three_kills_lose_and_double_nothing_and_change_no_score():
    command = [sys.executable, str(ROOT / "performance" / "kill_resume.py")]
    done = subprocess.run(
        [*command, "--kills", "3", "--samples", "10", "--seed", "7", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["messages"] == []
    assert result["wrong"] == 0
    assert done.returncode == 0
    assert sum(row["kills"] for row in result["rows"] if row["phase"] != "power cut") == 3
    assert result["records_per_run"] == 30


@pytest.mark.slow
def test_a_run_scores_the_same_on_a_machine_without_its_benchmark(tmp_path: Path):
    write_sums(tmp_path / "benchmark", 6)

    def agrotools(*arguments: str, cwd: Path) -> str:
        done = run_command(*arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    agrotools("eval", "benchmark", "-m", "baseline:oracle", "--out", "run", cwd=tmp_path)
    scores = (tmp_path / "run" / "scores.json").read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(tmp_path / "benchmark")
    (tmp_path / "run").rename(elsewhere / "copied")
    (elsewhere / "copied" / "scores.json").unlink()
    agrotools("score", "copied", cwd=elsewhere)
    assert (elsewhere / "copied" / "scores.json").read_bytes() == scores
    assert "sum-0000" in agrotools("explain", "copied", "sum-0000", cwd=elsewhere)
