"""``agrotools init``: the benchmark that it writes passes its own test and is scored as it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import run_command
from support.installed import installed


@pytest.mark.process
def test_a_new_benchmark_passes_its_test_and_gets_scores(tmp_path: Path) -> None:
    assert run_command("init", "orchard", cwd=tmp_path).returncode == 0
    folder = tmp_path / "orchard"
    environment = installed(folder, folder, tmp_path / "cache")
    for words in (
        ["pytest", "-q", "-p", "no:cacheprovider"],
        ["agrotools", "eval", "orchard", "--json"],
    ):
        command = [sys.executable, "-m", *words]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    metrics = {
        run["model"]: run["modes"]["end-to-end"]["metrics"]["fas"]
        for run in json.loads(done.stdout)
    }
    assert (
        metrics["baseline:oracle"]["overall"]["value"]
        == 1
        > metrics["baseline:guess"]["overall"]["value"]
    )
    for name, why in (
        ("orchard", "exists already"),
        ("gta", "there is a benchmark gta already"),
        ("a-b", "no name"),
        ("class", "is a keyword of Python"),
        ("os", "a Python module os already"),
        ("numpy", "a Python module numpy already"),
    ):
        refused = run_command("init", name, cwd=tmp_path)
        assert (refused.returncode, why in refused.stderr) == (2, True)
