"""Options that a command refuses: keys of the configuration file, and options that no longer exist."""

from pathlib import Path

import pytest
import typer

from agrotools.cli.main import app, keys_of_file
from support.command import run_command

ROOT = Path(__file__).parents[3]
TOP = typer.main.get_command(app)
KEYS = [
    (name, key)
    for name in ("eval", "score")
    for key in keys_of_file(TOP.get_command(None, name))  # type: ignore[attr-defined]
]


@pytest.mark.parametrize(
    ("command", "key"), [("eval", "rpm"), ("eval", "judge_votes"), ("score", "judge_votes")]
)
def test_a_key_as_an_option_is_refused_with_the_place_where_it_belongs(command: str, key: str):
    assert (command, key) in KEYS
    done = run_command(command, f"--{key.replace('_', '-')}", "1")
    assert done.returncode == 2
    assert "is a key of the configuration file" in done.stderr
    assert f"write the line {key} = 1 in" in done.stderr


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("eval", "--degrade", "blur=1"), "agrotools build"),
        (("report", "run", "--share"), "agrotools report RUN"),
        (("eval", "--with", "similarity"), "--embedder all-MiniLM-L6-v2"),
        (("score", "run", "--with", "similarity"), "--embedder all-MiniLM-L6-v2"),
    ],
)
def test_an_option_that_no_longer_exists_is_refused_with_what_to_do_instead(words, instead: str):
    done = run_command(*words)
    assert done.returncode == 2
    assert "no longer exists" in done.stderr
    assert instead in done.stderr


def test_what_is_neither_an_option_nor_a_key_is_unknown():
    done = run_command("eval", "--rmp", "1")
    assert done.returncode == 2
    assert "No such option: --rmp" in done.stderr


def test_help_names_the_page_of_the_keys():
    assert "agrotools docs running" in run_command("eval", "-h").stdout
    assert "agrotools docs judges" in run_command("score", "-h").stdout
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    of_run = [key for command, key in KEYS if command == "eval" and not key.startswith("judge_")]
    assert not [key for key in of_run if f"`{key}`" not in page]


def test_an_option_with_one_value_is_not_given_twice():
    done = run_command("eval", "embedded", "--mode", "step-by-step", "--mode=end-to-end")
    assert done.returncode == 2
    assert "--mode is given twice" in done.stderr
    assert "--mode A,B" in done.stderr


def test_the_line_for_the_file_has_the_value_that_was_typed():
    numbers = run_command("eval", "--rpm", "300")
    assert "write the line rpm = 300 in" in numbers.stderr
    texts = run_command("eval", "--executor=ray")
    assert 'write the line executor = "ray" in' in texts.stderr
