"""Ends of a run before it is done: Ctrl-C once, twice or during the imports, and an endpoint that is gone."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.eval_process import evaluate, finished, running, start, wait_for
from support.text_benchmark import write_text_benchmark

SAMPLES = 16

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def benchmark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text_benchmark(tmp_path_factory.mktemp("stopping") / "benchmark", SAMPLES, bare=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_lets_samples_in_flight_finish(benchmark_folder: Path, tmp_path: Path, number: int) -> None:
    with running(latency_s=0.3) as endpoint:
        process = start(benchmark_folder, tmp_path / "run", endpoint)
        wait_for(lambda: len(finished(tmp_path / "run")) >= 4)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
        kept = finished(tmp_path / "run")
        assert process.returncode == 130
        assert "Traceback" not in err
        assert "stopping after the 4 samples being run; Ctrl-C again stops at once" in err
        assert "run the same command again to resume" in err
        assert len(kept) == endpoint.answered < SAMPLES, "what was asked was waited for, and nothing else was asked"
        resumed = evaluate(benchmark_folder, tmp_path / "run", endpoint, "--json")
        assert resumed.returncode == 0, resumed.stderr
        assert endpoint.answered == SAMPLES
    assert sorted(finished(tmp_path / "run")) == sorted(f"q{index}" for index in range(SAMPLES))
    assert json.loads(resumed.stdout)[0]["modes"]["no-tool"]["metrics"]["fas"]["overall"]["value"] == 1


def test_the_second_signal_stops_at_once(benchmark_folder: Path, tmp_path: Path) -> None:
    with running(latency_s=6.0) as endpoint:
        process = start(benchmark_folder, tmp_path / "run", endpoint)
        wait_for((tmp_path / "run" / "records.jsonl").exists)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None, "the first waits for the samples in flight"
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
        took_s = time.monotonic() - asked
    assert took_s < 5
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "run the same command again to resume" in err
    assert not (tmp_path / "run" / ".scratch").exists()


def test_an_endpoint_that_is_gone_stops_the_run_and_nothing_is_lost(benchmark_folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "quick.toml"
    config.write_text("attempts = 2\n", encoding="utf-8")
    with running(latency_s=0.0) as endpoint:
        evaluate(benchmark_folder, tmp_path / "run", endpoint, "--config", config, "--limit", 4)
        assert len(finished(tmp_path / "run")) == 4
        endpoint.broken = True
        broken = evaluate(benchmark_folder, tmp_path / "run", endpoint, "--config", config)
        assert broken.returncode == 3
        assert "samples in a row got no reply" in broken.stderr
        assert "down for maintenance" in broken.stderr
        assert len(finished(tmp_path / "run")) == 4
        endpoint.broken = False
        assert evaluate(benchmark_folder, tmp_path / "run", endpoint, "--config", config).returncode == 0
    assert sorted(finished(tmp_path / "run")) == sorted(f"q{index}" for index in range(SAMPLES))


def test_nohup_lets_a_command_run_on(benchmark_folder: Path, tmp_path: Path) -> None:
    with running(latency_s=0.1) as endpoint:
        ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            process = start(benchmark_folder, tmp_path / "run", endpoint)
        finally:
            signal.signal(signal.SIGHUP, ignored)
        wait_for(lambda: finished(tmp_path / "run"))
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(finished(tmp_path / "run")) == SAMPLES


@pytest.mark.parametrize(
    ("moment", "name", "expected"),
    [
        ("sys.meta_path.insert(0, SimpleNamespace(find_spec=interrupt))", "SIGTERM", 130),
        ("sys.meta_path.insert(0, SimpleNamespace(find_spec=wrapped))", "SIGINT", 130),
        ("threading._register_atexit(interrupt)", "SIGHUP", 130),
        ("atexit.register(interrupt)", "SIGTERM", 0),
    ],
    ids=["imports", "classes", "shutdown", "last moments"],
)
def test_signals_end_imports_and_shutdown_and_are_ignored_in_the_last_moments(
    moment: str, name: str, expected: int
) -> None:
    code = f"""
import atexit, os, signal, sys, threading
from types import SimpleNamespace
from agrotools.__main__ import main
def interrupt(*_):
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, SimpleNamespace)]
    os.kill(os.getpid(), signal.{name})
def wrapped(*_):
    try:
        interrupt()
    except KeyboardInterrupt as error:
        raise RuntimeError("Error calling __set_name__") from error
sys.argv = ["agrotools", "--version"]
{moment}
main()
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == expected
    said = "stopped before it was done; run the same command again"
    assert process.stderr.strip() == (said if "meta_path" in moment else "")
