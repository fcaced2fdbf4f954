"""``agrotools eval --serve llama``: a program with the command line of llama-server is started, watched and ended."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.models.local_server import LocalServer
from agrotools.runner.config import EvalConfig
from support.command import run_command
from support.eval_process import AGROTOOLS, finished, wait_for
from support.text_benchmark import write_text_benchmark

pytestmark = pytest.mark.process

FAKE = Path(__file__).parents[2] / "support" / "fake_model_server.py"
SAMPLES = 8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a benchmark, a model file whose name has a space, and the program first in PATH."""
    write_text_benchmark(tmp_path / "questions", SAMPLES, bare=True)
    (tmp_path / "my model.gguf").write_bytes(b"GGUF-weights")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "llama-server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{FAKE}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(arguments: str = "", *options: object) -> list[object]:
    command = [
        "eval",
        "questions",
        "-m",
        "my model.gguf",
        "--serve",
        "llama",
        "--mode",
        "no-tool",
        "--out",
        "run",
    ]
    return [*command, *(["--serve-args", arguments] if arguments else []), *options]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(run: Path) -> list[int]:
    log = run / "server.log"
    return (
        [int(pid) for pid in re.findall(r"^pid (\d+)", log.read_text(), re.M)]
        if log.exists()
        else []
    )


def started(arguments: str) -> "subprocess.Popen[str]":
    command = [*AGROTOOLS, *map(str, words(arguments, "--concurrency", 2))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_server_answers_and_ends_with_the_run(folder: Path):
    done = run_command(*words("--slow 0.3 --fork"))
    assert done.returncode == 0, done.stderr
    assert len(finished(folder / "run")) == SAMPLES
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert manifest["server"] == ["llama", "--slow", "0.3", "--fork"]
    assert manifest["server_version"] == "version: 1234 (fake)"
    assert manifest["base_url"] == "http://127.0.0.1/v1", "the port is another one each time"
    assert len(pids(folder / "run")) == 2
    assert not any(map(is_alive, pids(folder / "run"))), "nor what it forked"


@pytest.mark.parametrize(
    ("arguments", "options", "concurrency"),
    [("--parallel=3 -c 9", {}, 3), ("-np 3", {"concurrency": 2}, 2), ("-np 3", {"concurrency": 9}, 3),
     ("-c 9", {}, 1), ("", {"concurrency": 9}, 1)],
)  # fmt: skip
def test_slots_bound_the_requests_in_flight(folder: Path, arguments, options, concurrency) -> None:
    config = EvalConfig.of(
        benchmark="questions", model="my model.gguf", serve="llama", serve_args=arguments, **options
    )
    assert config.endpoint.wire.concurrency == concurrency


def test_a_slow_server_gets_the_time_to_read_long_prompts(folder: Path) -> None:
    slow = "-np 2 --latency 0.5 --tokens 15"
    done = run_command(*words(slow, "--limit", 1))
    # 15 tokens take at least half a second: 16,000 in each of two slots take 1,067 s or more.
    assert re.search(r"a request times out after \d,\d{3} s", done.stderr), done.stderr
    assert (
        "times out"
        not in run_command(*words(slow, "--limit", 1, "--timeout", 600, "--out", "other")).stderr
    )
    assert (
        "times out"
        not in run_command(*words("-np 2 --tokens 1500", "--limit", 1, "--out", "fast")).stderr
    )


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("--die 'unknown architecture: potato'", "check the name or path of the model"),
        ("--die 'CUDA error: out of memory'", "it ran out of memory: a smaller model"),
        ("--no-such-option", "refused one of its arguments: check --serve-args"),
        ("--no-such-option", "its whole output is in run/server.log"),
    ],
)
def test_a_failed_start_shows_what_the_server_wrote(folder: Path, arguments: str, hint: str):
    done = run_command(*words(arguments))
    assert done.returncode == 3
    assert "llama does not start (exit code" in done.stderr
    assert arguments.partition("'")[2].rstrip("'") in done.stderr
    assert hint in re.sub(r"\s+", " ", done.stderr)
    assert (folder / "run" / "server.log").exists()
    corrected = run_command(*words())
    assert corrected.returncode == 0, corrected.stderr


def test_a_server_that_never_answers_is_given_up(folder: Path):
    (folder / "eval.toml").write_text("serve_timeout = 1\n")
    done = run_command(*words("--slow 60", "--config", "eval.toml"))
    assert done.returncode == 3
    assert "llama does not answer after 1 s" in done.stderr
    assert "serve_timeout" in done.stderr
    assert not any(map(is_alive, pids(folder / "run")))


def test_a_server_that_dies_ends_the_run_which_can_be_resumed(folder: Path):
    done = run_command(*words("--die-after 5", "--concurrency", 1))
    assert done.returncode == 3
    assert "llama ended during the run (exit code 3)" in done.stderr
    assert "segmentation fault in layer 7" in done.stderr
    assert "run/server.log" in done.stderr
    assert len(finished(folder / "run")) == 5
    (folder / "spare").touch()
    again = run_command(*words("--die-after 5", "--concurrency", 1))
    assert again.returncode == 0, again.stderr
    assert len(finished(folder / "run")) == SAMPLES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("--slow 60 --fork", "SIGINT"),
        ("--slow 60 --fork", "SIGKILL"),
        ("--latency 2 --fork --stubborn", "SIGTERM"),
        ("--latency 2 --fork --stubborn", "SIGKILL"),
    ],
)
def test_no_server_outlives_the_command(folder: Path, name: str, arguments: str):
    process = started(arguments)
    wait_for(lambda: len(pids(folder / "run")) == 2)
    if "latency" in arguments:
        wait_for(lambda: "answered" in (folder / "run" / "server.log").read_text())
    assert all(map(is_alive, pids(folder / "run")))
    process.send_signal(signal.Signals[name])
    _, errors = process.communicate(timeout=30)
    assert process.returncode == (-9 if name == "SIGKILL" else 130), errors
    assert "Traceback" not in errors
    wait_for(lambda: not any(map(is_alive, pids(folder / "run"))), 20)


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("none.gguf", "", "there is no model file none.gguf"),
        ("notes.gguf", "", "notes.gguf is not a GGUF file"),
        ("my model.gguf", "--port 80", "agrotools sets --port itself"),
        ("my model.gguf", "--api-key=secret", "what follows --api-key would be stored"),
        ("my model.gguf", "'open", "No closing quotation"),
    ],
)
def test_what_cannot_be_served_is_refused_before_the_run(
    folder: Path, model: str, arguments: str, message: str
):
    (folder / "notes.gguf").write_text("just notes")
    with pytest.raises(UsageError, match=re.escape(message)):
        LocalServer(model, arguments)


def test_a_program_that_is_not_installed_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "bin" / "llama-server").unlink()
    monkeypatch.setattr(
        "agrotools.models.local_server.sys.executable", str(folder / "bin" / "python")
    )
    monkeypatch.setattr("agrotools.models.local_server.find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    with pytest.raises(
        UsageError, match="--serve llama: there is no program llama-server"
    ) as caught:
        LocalServer("my model.gguf")
    assert "agrotools[local]" in (caught.value.hint or "")


def test_the_command_line_of_the_program(folder: Path):
    def command(model: str, arguments: str = "") -> list[str]:
        program, *rest = LocalServer(model, arguments).command(8123)
        return [Path(program).name, *rest]

    at = ["--host", "127.0.0.1", "--port", "8123"]
    assert command("org/Q-GGUF:Q4_K_M") == [
        "llama-server",
        "-hf",
        "org/Q-GGUF:Q4_K_M",
        "-np",
        "1",
        *at,
    ]
    file = str(folder / "my model.gguf")
    seeing = command("my model.gguf", "--mmproj p.gguf")
    assert seeing == ["llama-server", "-m", file, "-np", "1", *at, "--mmproj", "p.gguf"]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            ("--base-url", "http://localhost:1/v1"),
            "--serve starts a server, and --base-url names one",
        ),
        (("--serve", "ollama"), "should be 'llama'"),
        (("-m", "baseline:oracle"), "--serve is for models, and baseline:oracle is not a model"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder: Path, extra: tuple[str, ...], message: str):
    serve = () if "--serve" in extra else ("--serve", "llama")
    done = run_command("eval", "questions", "-m", "my model.gguf", *serve, *extra)
    assert done.returncode == 2
    assert message in re.sub(r"\s+", " ", done.stderr)


def test_replaced_weights_are_another_model(folder: Path):
    before = LocalServer("my model.gguf").model_hash
    (folder / "my model.gguf").write_bytes(b"GGUF-others!")
    assert LocalServer("my model.gguf").model_hash != before
