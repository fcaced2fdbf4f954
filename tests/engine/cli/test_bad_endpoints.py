"""``agrotools eval`` against endpoints that fail in every way: the right outcome, in words and in time."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agrotools.cli import main
from support.fault_server import (
    closed_port,
    completion,
    fault_server_beside,
    marked,
    marker_of,
    self_signed,
)
from support.plain_sample import plain_sample
from support.quick import shorten_waits

pytestmark = pytest.mark.process

KEY = "sk-test-THISMUSTNOTBESEEN-1234567890"
AGROTOOLS = [sys.executable, "-m", "agrotools"]
SAMPLES = 2
QUICK = {"timeout_s": 0.8, "stall_s": 0.2, "attempts": 3, "retry_wall_s": 20.0}


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str
    seconds: float
    records: list[dict]


Eval = Callable[..., Done]


def write_benchmark(folder: Path, fault: str) -> Path:
    """A benchmark of yes/no questions that meet ``fault``."""
    folder.mkdir()
    (folder / "benchmark.toml").write_text(
        'name = "questions"\nversion = "1"\nlicence = "CC0-1.0"\ntoolset = ["calculate"]\nmodes = ["no-tool"]\n'
    )
    samples = [
        plain_sample(
            f"s{n}", query=marked("Are there weeds?", fault, f"s{n}"), toolset=("calculate",)
        )
        for n in range(SAMPLES)
    ]
    lines = [sample.model_dump_json(by_alias=True, exclude_none=True) + "\n" for sample in samples]
    (folder / "samples.jsonl").write_text("".join(lines))
    return folder


def read_records(run: Path) -> list[dict]:
    path = run / "records.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Eval]:
    """Runs ``agrotools eval`` in this process, as from the command line, and checks what holds for every outcome."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    shorten_waits(monkeypatch)

    def run(fault: str, base_url: str, **settings: float) -> Done:
        if not (tmp_path / "benchmark").exists():
            write_benchmark(tmp_path / "benchmark", fault)
        (tmp_path / "run.toml").write_text(
            "".join(f"{k} = {v}\n" for k, v in {**QUICK, **settings}.items())
        )
        command = [
            "eval",
            "benchmark",
            "--model",
            "m",
            "--base-url",
            base_url,
            "--out",
            "run",
            "--config",
            "run.toml",
        ]
        monkeypatch.setattr("sys.argv", ["agrotools", *command])
        started = time.monotonic()
        with pytest.raises(SystemExit) as ended:
            main.main()
        seconds = time.monotonic() - started
        captured = capfd.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        written = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
        for text in (
            captured.out,
            captured.err,
            *(path.read_text(errors="replace") for path in written),
        ):
            assert KEY not in text
            assert "Traceback" not in text
        return Done(code, captured.out, captured.err, seconds, read_records(tmp_path / "run"))

    yield run
    shutil.rmtree(tmp_path / "run", ignore_errors=True)


def check_invalid(done: Done, says: str) -> None:
    """No sample got a reply: one line, no table, and records that say why."""
    assert sorted(record["sample"]["id"] for record in done.records) == [
        f"s{n}" for n in range(SAMPLES)
    ]
    assert done.code == 3
    assert done.out == ""
    assert says in " ".join(done.err.split())
    for record in done.records:
        assert says in record["invalid"]
        assert record["trajectory"] is None


@pytest.mark.process
def test_a_port_where_nobody_listens(evaluated: Eval):
    done = evaluated("none", f"http://127.0.0.1:{closed_port()}/v1")
    assert done.code == 3
    assert "error: no server at http://127.0.0.1:" in done.err
    assert "--base-url" in done.err
    assert (done.out, done.records) == ("", [])
    assert done.seconds < 60


def test_a_name_that_does_not_exist(evaluated: Eval):
    done = evaluated("none", "http://no-such-host.invalid/v1", attempts=2)
    assert done.code == 3
    assert "error: no server at http://no-such-host.invalid/v1" in done.err
    assert (done.out, done.records) == ("", [])


def test_connections_that_break_behind_a_proxy_are_left_to_retries(
    evaluated: Eval, monkeypatch: pytest.MonkeyPatch
):
    with fault_server_beside(fault="reset_always") as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "")
        done = evaluated("reset_always", "http://no-such-host.invalid/v1", attempts=2)
    check_invalid(done, "no reply from http://no-such-host.invalid/v1")


def test_a_certificate_of_a_private_authority_that_is_named(tmp_path: Path):
    try:
        tls = self_signed(tmp_path)
    except FileNotFoundError:
        pytest.skip("no openssl command to make a certificate with")
    write_benchmark(tmp_path / "benchmark", "none")
    with fault_server_beside(tls=tls) as server:
        # A process of its own: who is trusted is read once.
        done = subprocess.run(
            [
                *AGROTOOLS,
                "eval",
                "benchmark",
                "--model",
                "m",
                "--base-url",
                server.base_url,
                "--out",
                "run",
            ],
            cwd=tmp_path,
            env={**os.environ, "SSL_CERT_FILE": str(tmp_path / "certificate.pem")},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert {record["trajectory"]["termination"] for record in read_records(tmp_path / "run")} == {
        "answered"
    }


def test_samples_that_got_no_reply_are_tried_again_by_the_same_command_and_the_others_are_not(
    evaluated: Eval,
):
    with fault_server_beside() as server:
        first = evaluated("reset_mid_body_twice", server.base_url, attempts=1)
        check_invalid(first, "no reply from")
        evaluated("reset_mid_body_twice", server.base_url, attempts=1)
        third = evaluated("reset_mid_body_twice", server.base_url, attempts=1)
        assert third.code == 0
        valid = [record["sample"]["id"] for record in third.records if record["invalid"] is None]
        assert sorted(valid) == [f"s{n}" for n in range(SAMPLES)]
        requests = server.requests
        assert evaluated("reset_mid_body_twice", server.base_url, attempts=1).code == 0
        assert server.requests == requests


def test_a_run_with_a_few_dead_samples_says_so_and_prints_no_headline(
    evaluated: Eval, tmp_path: Path
):
    write_benchmark(tmp_path / "benchmark", "none")
    samples = (tmp_path / "benchmark" / "samples.jsonl").read_text().splitlines()
    dead = samples[0].replace("fault none", "fault error_500_always")
    (tmp_path / "benchmark" / "samples.jsonl").write_text("\n".join([dead, *samples[1:]]) + "\n")
    with fault_server_beside() as server:
        done = evaluated("", server.base_url)
    assert done.code == 1
    assert "database gone" in " ".join((done.out + done.err).split())
    assert [
        record["invalid"] is None
        for record in sorted(done.records, key=lambda r: r["sample"]["id"])
    ] == [
        False,
        True,
    ]


def test_a_reply_is_never_taken_for_another_ones(evaluated: Eval, tmp_path: Path):
    """The server sends a second reply unasked after every first one, over connections that are used again."""

    def respond(body: dict) -> dict:
        marker = marker_of(body)
        assert marker
        return completion(f"Final Answer: weeds: {marker.sample}")

    with fault_server_beside(respond) as server:
        done = evaluated("said_twice", server.base_url)
    for record in done.records:
        said = f"weeds: {record['sample']['id']}"
        assert record["trajectory"]["steps"][-1]["text"] == f"{said}\n\n{said}"
