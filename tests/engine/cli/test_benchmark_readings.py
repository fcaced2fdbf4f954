"""Commands on a benchmark whose files may be read in two ways: a terminal is asked, a script stops."""

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from agrotools.cli import reading
from agrotools.runner.store import read_manifest
from support.command import run_command
from support.made_agrotools import agrotools_entries, write_agrotools


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A question with a tolerance of 5 that may be of two kinds: ``abs``, which is proposed, and ``percent``."""
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    entry = {**agrotools_entries()["12"], "tolerance": 5, "id": "a"}
    del entry["abs_tol"]
    write_agrotools(tmp_path / "agrotools", {"a": entry})
    (tmp_path / "answers.csv").write_text("id,answer,model\na,14,one\na,15,two\n")
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A terminal whose user answers ``percent``, and what was asked."""
    questions: list[str] = []

    def answer(text: str, **_: object) -> str:
        questions.append(text)
        return "percent"

    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(reading, "sys", SimpleNamespace(stdin=terminal, stderr=terminal, argv=[]))
    monkeypatch.setattr(typer, "prompt", answer)
    return questions


def _eval(root: Path, *more: str) -> tuple[str, ...]:
    return ("eval", "agrotools", "--data-root", str(root), "-m", "baseline:oracle", *more)


def _margin(run: Path) -> tuple[object, object]:
    """Return the absolute and the relative tolerance of the only sample."""
    record = json.loads((run / "records.jsonl").read_text().splitlines()[0])
    slot = record["sample"]["answer"][0]
    return slot.get("abs_tol"), slot.get("rel_tol")


def test_eval_asks_a_terminal_and_the_run_keeps_the_answer(root: Path, asked: list[str]) -> None:
    ended = run_command(*_eval(root, "--out", "run"))
    assert ended.returncode == 0, ended.stderr
    assert len(asked) == 1
    assert "± 5 in the unit of the answer" in asked[0]
    assert read_manifest(Path("run")).benchmark_options == {"tolerance": "percent"}
    assert _margin(Path("run"))[1] == 0.05


def test_a_dry_run_asks_too(root: Path, asked: list[str]) -> None:
    assert run_command(*_eval(root, "--dry-run")).returncode == 0
    assert len(asked) == 1


def test_eval_in_a_script_stops_and_its_command_and_yes_give_the_proposed_reading(
    root: Path,
) -> None:
    ended = run_command(*_eval(root, "--out", "run"))
    assert ended.returncode == 4
    assert not Path("run").exists()
    offered = re.search(r"agrotools (eval .*--option=tolerance=abs)", ended.stderr)
    assert offered is not None
    for command in (shlex.split(offered[1]), [*_eval(root, "--out", "other"), "--yes"]):
        assert run_command(*command).returncode == 0
    for run in map(Path, ("run", "other")):
        assert read_manifest(run).benchmark_options == {"tolerance": "abs"}
        assert _margin(run)[0] == 5


def test_score_asks_a_terminal_about_the_benchmark_and_scores_with_the_answer(
    root: Path, asked: list[str]
) -> None:
    given = ("--only", "model=two", "--out", "run")
    predictions = ("--predictions", "answers.csv", *given)
    ended = run_command("score", "--benchmark", "agrotools", "--data", root, *predictions)
    assert ended.returncode == 0, ended.stderr
    assert len(asked) == 1
    assert read_manifest(Path("run")).benchmark_options == {"tolerance": "percent"}


def test_score_in_a_script_has_the_questions_on_benchmark_and_predictions_in_one_command(
    root: Path,
) -> None:
    of_file = ("--predictions", "answers.csv", "--out", "run")
    ended = run_command("score", "--benchmark", "agrotools", "--data", root, *of_file)
    assert ended.returncode == 4
    assert "--option=tolerance=abs" in ended.stderr
    assert "--only=model=one" in ended.stderr
    assert not Path("run").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("benchmarks", "describe", "agrotools", "--data-root", "."),
        ("explain", "agrotools", "a", "--prompt", "--data-root", "."),
    ],
)
def test_commands_that_look_at_a_benchmark_ask_a_terminal(
    root: Path, asked: list[str], command: tuple[str, ...]
) -> None:
    assert run_command(*command).returncode == 0
    assert len(asked) == 1


def test_a_command_is_never_told_of_an_option_that_it_lacks(root: Path) -> None:
    described = run_command("benchmarks", "describe", "agrotools", "--data-root", root)
    assert described.returncode == 4
    assert "--option=tolerance=abs" in described.stderr
    assert "--yes" not in described.stderr
    explained = run_command("explain", "agrotools", "a", "--prompt", "--data-root", root)
    assert explained.returncode == 4
    assert "--option" not in explained.stderr
    # Its hint names a command that answers the question for all commands.
    offered = re.search(r"agrotools (benchmarks check .*--propose-map)", explained.stderr)
    assert offered is not None
    assert run_command(*shlex.split(offered[1])).returncode == 0
    again = run_command("explain", "agrotools", "a", "--prompt", "--data-root", root)
    assert again.returncode == 0, again.stderr


def test_an_option_of_the_command_adds_to_those_of_the_configuration(root: Path) -> None:
    (root / "eval.toml").write_text('benchmark = "agrotools"\n[options]\nlists = "any"\n')
    given = ("--config", "eval.toml", "--data-root", ".", "-m", "baseline:oracle", "--out", "run")
    ended = run_command("eval", *given, "--option=tolerance=percent")
    assert ended.returncode == 0, ended.stderr
    assert read_manifest(Path("run")).benchmark_options == {
        "lists": "any",
        "tolerance": "percent",
    }
