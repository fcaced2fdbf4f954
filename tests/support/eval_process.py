"""``agrotools eval`` as a process of its own, and an endpoint in this one that answers its questions."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from support.openai_server import Body, completion, error, serving

AGROTOOLS = [sys.executable, "-m", "agrotools"]


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
    with serving(endpoint, latency_s=latency_s) as server:
        endpoint.base_url = server.base_url
        yield endpoint


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
