"""A tool server over HTTP in a process of its own: ``http_tool_server.py``."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = Path(__file__).with_name("http_tool_server.py")


@dataclass
class HttpServer:
    """A running server with its address, and the log of its requests."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def requests(self, method: str) -> list[tuple[str, int]]:
        """Session and status of every request of a method."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [(session, int(status)) for made, session, status in lines if made == method]


@contextmanager
def serving(folder: Path, **environment: str) -> Iterator[HttpServer]:
    """Run a server while the block runs; its log is in ``folder``."""
    log = folder / "requests.log"
    log.touch()
    process = subprocess.Popen(
        [sys.executable, str(_SCRIPT), str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    try:
        yield HttpServer(process.stdout.readline().strip(), process, log)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
