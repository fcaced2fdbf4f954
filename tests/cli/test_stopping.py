"""How a run ends before it is done: by Ctrl-C, by a second one, by an endpoint that is gone."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from aiohttp import web

from support.openai_server import Body, completion, error, serve
from support.text_benchmark import write_text_benchmark

AGROTOOLS = [sys.executable, "-c", "from agrotools.cli.main import main; main()"]
SAMPLES = 40

pytestmark = pytest.mark.slow


class Endpoint:
    """A server in a thread that answers every question rightly, or not at all once ``broken`` is set."""

    def __init__(self) -> None:
        self.answered = 0
        self.broken = False
        self.base_url = ""

    def __call__(self, body: Body) -> web.Response:
        if self.broken:
            return error(503, "down for maintenance")
        self.answered += 1
        question = next(message["content"] for message in body["messages"] if message["role"] == "user")
        number = question.split("plot ")[1].split("?")[0]
        return completion(f"value: {number}")


@contextmanager
def running(latency_s: float) -> Iterator[Endpoint]:
    endpoint = Endpoint()
    end: list[Callable[[], object]] = []

    async def main() -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        end.append(lambda: loop.call_soon_threadsafe(done.set))
        async with serve(endpoint, latency_s=latency_s) as server:
            endpoint.base_url = server.base_url
            await done.wait()

    thread = Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        wait_for(lambda: endpoint.base_url)
        yield endpoint
    finally:
        end[0]()
        thread.join()


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def start(benchmark: Path, run: Path, endpoint: Endpoint, *options: object) -> subprocess.Popen[str]:
    command = [*AGROTOOLS, "eval", benchmark, "-m", "m", "--base-url", endpoint.base_url, "--mode", "no-tool"]
    command += ["--concurrency", 4, "--out", run, *options]
    environment = {**os.environ, "COLUMNS": "120"}
    return subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def finished(run: Path) -> list[str]:
    """Ids of the samples that have a finished record."""
    if not (run / "records.jsonl").exists():
        return []
    lines = (run / "records.jsonl").read_bytes().split(b"\n")[:-1]
    return [record["sample"]["id"] for record in map(json.loads, lines) if record["invalid"] is None]


@pytest.fixture(scope="module")
def benchmark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text_benchmark(tmp_path_factory.mktemp("stopping") / "benchmark", SAMPLES)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_samples_in_flight_finish(benchmark_folder: Path, tmp_path: Path, number: int) -> None:
    with running(latency_s=0.3) as endpoint:
        process = start(benchmark_folder, tmp_path / "run", endpoint)
        wait_for(lambda: len(finished(tmp_path / "run")) >= 4)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        kept = finished(tmp_path / "run")
        assert process.returncode == 130
        assert "Traceback" not in err
        assert "4 samples in flight have finished; Ctrl-C again stops at once" in err
        assert "the same command goes on from here" in err
        assert len(kept) == endpoint.answered < SAMPLES, "what was asked was waited for, and nothing else was asked"
        process = start(benchmark_folder, tmp_path / "run", endpoint, "--json")
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert endpoint.answered == SAMPLES
    assert sorted(finished(tmp_path / "run")) == sorted(f"q{index}" for index in range(SAMPLES))
    assert json.loads(out)[0]["modes"]["no-tool"]["metrics"]["agrotools.fas"]["overall"]["value"] == 1


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
    assert "the same command goes on from here" in err
    assert not (tmp_path / "run" / ".scratch").exists()


def test_an_endpoint_that_is_gone_stops_the_run_and_nothing_is_lost(benchmark_folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "quick.toml"
    config.write_text("attempts = 2\n", encoding="utf-8")
    with running(latency_s=0.0) as endpoint:
        process = start(benchmark_folder, tmp_path / "run", endpoint, "--config", config, "--limit", 8)
        process.communicate(timeout=60)
        assert len(finished(tmp_path / "run")) == 8
        endpoint.broken = True
        process = start(benchmark_folder, tmp_path / "run", endpoint, "--config", config)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 3
        assert "samples in a row got no reply" in err
        assert "down for maintenance" in err
        assert "Traceback" not in err
        assert len(finished(tmp_path / "run")) == 8
        endpoint.broken = False
        process = start(benchmark_folder, tmp_path / "run", endpoint, "--config", config)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert sorted(finished(tmp_path / "run")) == sorted(f"q{index}" for index in range(SAMPLES))
