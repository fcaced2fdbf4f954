"""One exit code for one kind of fault, whichever command meets it."""

import errno
import shlex
import sqlite3
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from pydantic import JsonValue
from typer.testing import CliRunner

from agrotools import exit_codes
from agrotools.calling import get_tool
from agrotools.calling.workspace import save_artifact
from agrotools.cli.main import app
from agrotools.report.terminal import print_parts
from agrotools_tools.cli.tool_text import result_table
from support.command import run_command

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]


def test_users_are_told_every_code() -> None:
    told = (
        (ROOT / "docs" / "guarantees.md")
        .read_text(encoding="utf-8")
        .split("## Exit codes")[1]
        .split("\n## ")[0]
    )
    codes = {
        value
        for name, value in vars(exit_codes).items()
        if name.isupper() and isinstance(value, int)
    }
    assert {
        int(line.split("|")[1])
        for line in told.splitlines()
        if line.startswith("| ") and "code" not in line
    } == codes


@pytest.mark.process
@pytest.mark.parametrize("options", ["", "--json"])
def test_a_reader_that_goes_away_leaves_the_exit_code_as_it_is(
    tmp_path: Path, options: str
) -> None:
    check = f"{sys.executable} -m agrotools benchmarks check {tmp_path} {options}"
    command = f"{check} | true; echo codes ${{PIPESTATUS[@]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "codes 1 0"


def test_the_options_of_an_evaluation_are_grouped() -> None:
    text = CliRunner().invoke(app, ["eval", "--help"]).stdout
    panels = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert panels[:2] == ["Arguments:", "Options:"]
    assert {"Model and endpoint:", "Samples:", "Speed and cost:"} <= set(panels)


def _run_calculate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: OSError, *, in_keeping: bool
) -> str:
    def fails(**_: object) -> None:
        if in_keeping:
            save_artifact("table.csv", "table", b"1")
        raise error

    monkeypatch.setattr(type(get_tool("calculate")), "__call__", lambda _self, **_: fails())
    (tmp_path / "out").write_text("a file where the folder should be")
    done = CliRunner().invoke(
        app, ["tools", "run", "calculate", "--expression", "1+1", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 3
    return done.output


def test_an_error_of_the_system_in_a_tool_is_the_tools_and_not_the_output_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = FileNotFoundError(2, "No such file or directory", "/opt/plug-in/weights.bin")
    said = _run_calculate(monkeypatch, tmp_path, own, in_keeping=False)
    assert "calculate failed on this input (FileNotFoundError" in said
    assert "--out" not in said
    assert "--out says where made files go" in _run_calculate(
        monkeypatch, tmp_path, own, in_keeping=True
    )


@pytest.mark.parametrize(
    "command",
    [
        ["eval", ""],
        ["eval", "--base-url", ""],
        ["eval", "--out="],
        ["score", "run", ""],
        ["study", ""],
    ],
)
def test_an_empty_argument_is_refused(command: list[str]) -> None:
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "An argument is empty" in done.output


@pytest.mark.process
def test_an_argument_of_blanks_and_empty_arguments_of_a_server_are_not_empty() -> None:
    assert "An argument is empty" not in CliRunner().invoke(app, ["score", "no run "]).output
    for words in (["--serve-args", ""], ["--serve-args="]):
        done = CliRunner().invoke(
            app, ["eval", "embedded", "-m", "baseline:echo", "--quick", "--dry-run", *words]
        )
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("name", ["a b", "-dash", "$(x)", "it's"])
def test_commands_to_go_on_with_can_be_pasted_into_a_shell(name: str, tmp_path: Path) -> None:
    command = (
        "eval",
        "embedded",
        "-m",
        "baseline:echo",
        "--quick",
        "--limit",
        2,
        "--mode",
        "no-tool",
    )
    assert run_command(*command, f"--out={name}", cwd=tmp_path).returncode == 0
    scored = run_command("score", "--", name, cwd=tmp_path).stdout.splitlines()
    words = shlex.split(scored[-1].rpartition(": ")[2])
    explained = run_command(*words[1:], cwd=tmp_path)
    assert explained.returncode == 0, explained.stderr


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EACCES, "check that it can be read"),
    ],
)
def test_what_helps_against_an_error_of_the_system(
    number: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, "as the system says", "a/file")

    monkeypatch.setattr("agrotools.runner.rescore.check_distinct", fails)
    done = run_command("score", "run")
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == "error: a/file: as the system says"
    assert said in done.stderr.splitlines()[1]


@pytest.mark.parametrize(
    "cause",
    [MemoryError(), RuntimeError("can't start new thread"), ImportError("failed to map segment")],
)
def test_a_lack_of_memory_is_an_error_that_a_user_can_mend(
    cause: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ImportError("the install seems to be broken") from cause

    monkeypatch.setattr("agrotools.runner.rescore.check_distinct", fails)
    done = run_command("score", "run")
    assert done.returncode == 3
    assert done.stderr.startswith("error: not enough memory or threads")


def test_a_lack_of_space_for_temporary_files_is_an_error_that_a_user_can_mend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        table = sqlite3.connect(":memory:")
        try:
            table.execute("PRAGMA max_page_count = 1")
            table.execute("CREATE TABLE records (id)")
        finally:
            table.close()

    monkeypatch.setattr("agrotools.runner.rescore.check_distinct", fails)
    done = run_command("score", "run")
    assert done.returncode == 3
    assert done.stderr.startswith(
        "error: temporary files: database or disk is full\nhint: free some space"
    )


@pytest.mark.process
def test_a_full_disk_a_plain_terminal_and_a_reader_that_goes_away() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "agrotools", "tools", "kb", "search", "rust"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("error: standard output or a file: No space left on device\n")
    code = "from agrotools.cli.output import make_streams_safe; make_streams_safe(); print('a \\xb7 b')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"a ? b\n"
    command = f"{sys.executable} -m agrotools tools kb search rust | head -1; echo codes ${{PIPESTATUS[@]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "codes 0 0"


@pytest.mark.parametrize("command", ["score", "report"])
def test_a_run_is_given_once(command: str) -> None:
    done = run_command(command, "runs/a", "runs/../runs/a")
    assert done.returncode == 2
    assert "are one run" in done.stderr


@pytest.mark.parametrize("columns", ["0", "00", "60"])
def test_tables_are_printed_whatever_the_terminal_says(
    columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    written = StringIO()
    print_parts(["a table"], written)
    assert written.getvalue() == "a table\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "--max-output-tokens 99999999999999999999999",
            "max_output_tokens: should be a number below 2^63",
        ),
        ("--budget nan", "budget: should be a number below 2^63 (got nan)"),
        ("--temperature inf", "temperature: should be a finite number"),
        ("--shard 1/99999999999", "99999999999 shards of"),
    ],
)
def test_numbers_beyond_what_can_be_stored_are_refused_before_the_run(
    command: str, said: str
) -> None:
    done = run_command(
        "eval", "embedded", "-m", "baseline:echo", "--quick", "--dry-run", *command.split()
    )
    assert done.returncode == 2
    assert said in done.stderr


def test_a_name_that_is_not_utf8_is_kept_or_refused(tmp_path: Path) -> None:
    run = tmp_path / "run\udcff"
    done = run_command(
        "eval", "embedded", "-m", "baseline:echo", "--quick", "--limit", 2, "--out", run
    )
    assert done.returncode == 0, done.stderr
    refused = run_command("export", "--format", "parquet", "--out", run, run)
    assert refused.returncode == 2
    assert "is not a name in UTF-8" in refused.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("stage", "command", "said"),
    [
        (
            "agrotools.runner.build.load_for_run",
            "eval embedded -m baseline:echo",
            ": no sample was run; run the same command again",
        ),
        (
            "agrotools.loading.benchmarks.load_as",
            "eval embedded -m baseline:echo --fresh-seed 5",
            ": no sample was run, drawn scenes are kept; run the same command again to resume",
        ),
        (
            "agrotools_build.sources.drawn.fresh.write_fresh",
            "build --scenes 1 --out drawn",
            ": no benchmark is written, drawn scenes are kept; run the same command again to resume",
        ),
        (
            "agrotools_build.sources.build_sources",
            "build --source cwfid=none --out built",
            ": no benchmark is written, finished measurements are kept; run the same command again to resume",
        ),
        (
            "agrotools.runner.rescore.check_distinct",
            "score run",
            " before it was done; run the same command again",
        ),
    ],
)
def test_ctrl_c_says_what_is_kept(
    stage: str, command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, interrupt)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 130
    assert f"stopped{said}" in done.output


def test_results_of_tools_have_units_and_whole_counts() -> None:
    result: dict[str, JsonValue] = {
        "density_per_ha": 487.85,
        "area_ha": 1.394,
        "count_interval": [250.2, 926.4],
    }
    shown = {row.cells[0].text: row.cells[1].text for row in result_table(result, []).rows}
    assert shown == {
        "density_per_ha": "487.9 per ha",
        "area_ha": "1.394 ha",
        "count_interval": "[251, 926]",
    }
    assert result_table(result, [], exact=True).rows[2].cells[1].text == "[250.2, 926.4]"
