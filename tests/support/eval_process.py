"""``agrotools eval`` as a process of its own or in this one, and an endpoint in this one that answers its questions."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from support.command import run_command
from support.openai_server import Body, completion, error, serving

AGROTOOLS = [sys.executable, "-m", "agrotools"]


class Endpoint:
    """A server in a thread that answers every question rightly, or not at all once ``broken`` is set."""

    def __init__(self) -> None:
        self.answered = 0
        self.broken = False
        self.base_url = ""
        self.requests: list[Body] = []
        """All requests that arrived, those without a reply as well."""

    def __call__(self, body: Body) -> web.Response:
        if self.broken:
            return error(503, "down for maintenance")
        self.answered += 1
        question = next(
            message["content"] for message in body["messages"] if message["role"] == "user"
        )
        number = question.split("plot ")[1].split("?")[0]
        return completion(f"value: {number}")


@contextmanager
def running(latency_s: float) -> Iterator[Endpoint]:
    endpoint = Endpoint()
    with serving(endpoint, latency_s=latency_s) as server:
        endpoint.base_url = server.base_url
        endpoint.requests = server.requests
        yield endpoint


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _command(benchmark: Path, run: Path, endpoint: Endpoint, *options: object) -> list[object]:
    command = ["eval", benchmark, "-m", "m", "--base-url", endpoint.base_url, "--mode", "no-tool"]
    return [*command, "--concurrency", 4, "--out", run, *options]


def start(
    benchmark: Path, run: Path, endpoint: Endpoint, *options: object
) -> subprocess.Popen[str]:
    """Start a process, for tests that send it a signal; see :func:`evaluate` for others."""
    command = [*AGROTOOLS, *_command(benchmark, run, endpoint, *options)]
    environment = {**os.environ, "COLUMNS": "120"}
    return subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def evaluate(
    benchmark: Path, run: Path, endpoint: Endpoint, *options: object
) -> subprocess.CompletedProcess[str]:
    """Run the same command in this process, to its end."""
    return run_command(*_command(benchmark, run, endpoint, *options))


def finished(run: Path) -> list[str]:
    """Ids of the samples that have a finished record."""
    if not (run / "records.jsonl").exists():
        return []
    lines = (run / "records.jsonl").read_bytes().split(b"\n")[:-1]
    return [
        record["sample"]["id"] for record in map(json.loads, lines) if record["invalid"] is None
    ]
