"""Damage to a run as a user meets it: ``agrotools eval`` says what happened, goes on, and ends with the same scores."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import run_command
from support.sums_benchmark import write_sums

resource = pytest.importorskip("resource")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a benchmark and ``whole``, a run of it that nothing disturbed."""
    folder = tmp_path_factory.mktemp("damaged")
    write_sums(folder / "benchmark", 20)
    assert evaluated(folder, "whole").returncode == 0
    return folder


def evaluated(folder: Path, run: str) -> subprocess.CompletedProcess[str]:
    return run_command("eval", "benchmark", "-m", "baseline:constant", "--out", run, cwd=folder)


def evaluated_beside(
    folder: Path, run: str, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """The same command as a process of its own, in which ``before`` is called first."""
    command = [
        sys.executable,
        "-m",
        "agrotools",
        "eval",
        "benchmark",
        "-m",
        "baseline:constant",
        "--out",
        run,
    ]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=before,
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "hint: " in done.stderr
    return done.stderr


def scores(run: Path) -> dict:
    content = json.loads((run / "scores.json").read_text())
    for mode in content["summary"]["modes"].values():
        mode.pop("seconds")
        for name in ("seconds", "tool_seconds"):
            mode["counts"]["spent"].pop(name, None)
    return content


def test_a_disk_that_is_full_stops_the_run_and_the_same_command_goes_on(folder: Path):
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    stopped = refused(evaluated_beside(folder, "full", small_files))
    assert "cannot write to the run folder full: File too large" in stopped
    content = (folder / "full" / "records.jsonl").read_bytes()
    assert content.endswith(b"\n")
    assert 0 < content.count(b"\n") < 60
    assert evaluated(folder, "full").returncode == 0
    assert (folder / "full" / "records.jsonl").read_bytes().startswith(content)
    assert scores(folder / "full") == scores(folder / "whole")


def test_damage_in_the_middle_and_at_the_end_is_told_and_mended_by_the_same_command(folder: Path):
    assert evaluated(folder, "hurt").returncode == 0
    path = folder / "hurt" / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[7] = lines[7][:100] + b"\xff\0" * 30 + lines[7][160:]
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:-40] + b"\0" * 300)
    (folder / "hurt" / "manifest.json").write_bytes(b"")
    mended = evaluated(folder, "hurt")
    assert mended.returncode == 0
    assert (
        "moved 1 line of records.jsonl that cannot be read to records.rejected.jsonl (line 8"
        in mended.stderr
    )
    assert "off the end of records.jsonl" in mended.stderr
    assert "manifest.json was damaged" in mended.stderr
    assert "58 of 60 answers (20 samples in 3 modes) were recorded earlier and are reused" in (
        mended.stderr
    )
    assert len(path.read_bytes().splitlines()) == 60
    assert scores(folder / "hurt") == scores(folder / "whole")


def test_scoring_a_damaged_run_names_the_line_instead_of_leaving_it_out_in_silence(folder: Path):
    assert evaluated(folder, "scored").returncode == 0
    path = folder / "scored" / "records.jsonl"
    path.write_bytes(b"\0" * 512 + b"\n" + path.read_bytes())
    done = run_command("score", "scored", cwd=folder)
    assert "1 line cannot be read" in done.stderr
    assert "line 1: zero bytes" in done.stderr
    assert "Traceback" not in done.stderr
