"""The same ``agrotools eval`` again shows the same screen at once, but never an outdated one."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agrotools.cli import finished
from agrotools.cli.output import WARNED, allow_closed_pipe
from support.command import run_command
from support.eval_process import evaluate, running
from support.text_benchmark import write_text_benchmark

pytestmark = pytest.mark.process
COMMAND = ("eval", "bench", "-m", "baseline:prior", "--mode", "no-tool", "--out", "run")


def run_eval(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = run_command(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


def was_shown_again(done: subprocess.CompletedProcess[str]) -> bool:
    """True if nothing was scored: the progress of scoring is absent."""
    return "already done" in done.stderr and "scores:" not in done.stderr


@pytest.fixture
def place(small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    shutil.copytree(small_benchmark, tmp_path / "work" / "bench")
    return tmp_path / "work"


def test_a_finished_evaluation_shows_the_same_screen_without_scoring(place: Path):
    first = run_eval(place, *COMMAND)
    again = run_eval(place, *COMMAND)
    assert was_shown_again(again)
    assert again.stdout == first.stdout
    assert "page    run/report.html" in again.stdout
    assert not was_shown_again(run_eval(place, *COMMAND, "--details"))  # another screen of the same run


def other_answer(place: Path) -> None:
    """Another answer of the same length in a record, and the old time of the file."""
    path = place / "run" / "records.jsonl"
    before, content = path.stat(), path.read_bytes()
    at = content.index(b'"text":"', content.index(b'"trajectory":')) + len(b'"text":"')
    path.write_bytes(content[:at] + b"~" + content[at + 1 :])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def lost_end(place: Path) -> None:
    path = place / "run" / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-40])


def other_scores(place: Path) -> None:
    path = place / "run" / "scores.json"
    path.write_bytes(path.read_bytes().replace(b"prior", b"PRIOR"))


def no_report(place: Path) -> None:
    (place / "run" / "report.html").unlink()


def other_reference_run(place: Path) -> None:
    shutil.copytree(place / "run", place / "guess-run")


def other_file_of_the_benchmark(place: Path) -> None:
    next((place / "bench" / "files").iterdir()).touch()


@pytest.mark.parametrize(
    "change", [other_answer, other_scores, no_report, other_reference_run, other_file_of_the_benchmark]
)
def test_any_change_of_what_a_screen_is_computed_from_is_noticed(place: Path, change: Callable[[Path], None]):
    run_eval(place, *COMMAND)
    change(place)
    assert not was_shown_again(run_eval(place, *COMMAND))
    assert (place / "run" / "report.html").is_file()
    assert b"PRIOR" not in (place / "run" / "scores.json").read_bytes()
    assert was_shown_again(run_eval(place, *COMMAND))


def test_a_lost_record_is_run_again(place: Path):
    run_eval(place, *COMMAND)
    lost_end(place)
    again = run_eval(place, *COMMAND)
    assert "1/1 done" in again.stderr


def test_knowledge_that_changes_the_run_is_noticed(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGROTOOLS_KB", str(place / "kb"))
    run_eval(place, *COMMAND)
    (place / "kb").mkdir()
    (place / "kb" / "notes.toml").write_text("")
    refused = run_command(*COMMAND, cwd=place)
    assert refused.returncode == 3
    assert "another configuration: data of tools, " in refused.stderr


def test_edited_replies_and_options_are_noticed(place: Path):
    replies = place / "replies.json"
    replies.write_text('["answer: 1"]')
    (place / "run.toml").write_text("limit = 4")
    command = ("eval", "bench", "-m", "scripted:replies.json", "--mode", "no-tool", "--config", "run.toml")
    run_eval(place, *command)
    assert was_shown_again(run_eval(place, *command))
    (place / "run.toml").write_text("limit = 5")
    assert not was_shown_again(run_eval(place, *command))
    replies.write_text('["answer: 2"]')
    assert "already done" not in run_eval(place, *command).stderr


def test_a_run_with_invalid_samples_is_tried_again(place: Path, monkeypatch: pytest.MonkeyPatch):
    (place / "replies.json").write_text("[]")  # no reply to any sample
    command = ("eval", "bench", "-m", "scripted:replies.json", "--mode", "no-tool", "--out", "run")
    codes = [run_command(*command, cwd=place).returncode for _ in range(2)]
    assert codes[0] == codes[1] != 0


def test_a_finished_run_of_a_model_is_shown_without_its_endpoint_but_not_without_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SOME_KEY", "secret")
    bench = write_text_benchmark(tmp_path / "bench", 3)
    with running(latency_s=0.0) as endpoint:
        command = (bench, tmp_path / "run", endpoint, "--api-key-env", "SOME_KEY")
        first = evaluate(*command)
        endpoint.broken = True
        again = evaluate(*command)
    assert first.returncode == 0, first.stderr
    assert was_shown_again(again)
    assert again.stdout == first.stdout
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "cache" / "finished").iterdir())
    monkeypatch.delenv("SOME_KEY")
    refused = evaluate(*command)
    assert refused.returncode == 2
    assert "SOME_KEY" in refused.stderr


def test_a_run_with_a_budget_is_evaluated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    bench = write_text_benchmark(tmp_path / "bench", 3)
    with running(latency_s=0.0) as endpoint:
        command = (bench, tmp_path / "run", endpoint, "--price", "1/1", "--budget", "1")
        assert [was_shown_again(evaluate(*command)) for _ in range(2)] == [False, False]


def test_output_that_was_cut_off_is_noted_so_that_its_screen_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(finished, "_depends_on_files_alone", lambda config: pytest.fail("not reached"))
    with allow_closed_pipe():
        raise BrokenPipeError
    try:
        finished.keep_screen("half a scre", (), [], None, [None], None, loaded_ns=0, scored_ns=0)  # pyright: ignore
    finally:
        WARNED.clear()
