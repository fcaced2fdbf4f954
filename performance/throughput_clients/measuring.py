"""One run of a client against a mock server of its own: what it took, and whether it did the work."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

CLIENTS = Path(__file__).resolve().parent
SERVER = CLIENTS.parent / "mock_server.py"
CONCURRENCY = 64
TURNS = 5
LONGEST_RUN_S = 1800


class Client(NamedTuple):
    """A script, and the packages its environment needs; none for those that run where agrotools is installed."""

    name: str
    script: str
    needs: tuple[str, ...] = ()
    agents: bool = True


@dataclass(frozen=True)
class Workload:
    """``samples`` of a kind, each reply after ``latency_ms``."""

    kind: str
    latency_ms: int
    samples: int

    @property
    def name(self) -> str:
        return f"{self.kind} at {self.latency_ms} ms"

    @property
    def requests_per_sample(self) -> int:
        return TURNS + 2 if self.kind == "agents" else 1


def run_once(
    client: Client, python: str, workload: Workload, folder: Path, own: Path
) -> dict[str, float]:
    """One run of a client against a server of its own.

    Raises:
        SystemExit: it failed, asked something else than it should have, or did not read every answer.
    """
    with server(workload) as url:
        script = str(CLIENTS / client.script)
        command = [
            python,
            script,
            workload.kind,
            str(folder),
            f"{url}/v1",
            str(CONCURRENCY),
            str(own),
        ]
        environment = quiet_environment(client, own, f"{url}/v1")
        with (own / "stdout").open("w+") as out, (own / "stderr").open("w+") as err:
            started = time.perf_counter()
            process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, cwd=own)
            with tree_memory(process.pid) as peak:
                limit = threading.Timer(LONGEST_RUN_S, process.kill)
                limit.start()
                _, status, used = os.wait4(process.pid, 0)
                limit.cancel()
            process_s = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            printed = out.read()
            if status:
                sys.exit(
                    f"{client.name} failed on {workload.name} with {process.returncode}:\n{err.read()[-3000:]}"
                )
        with urllib.request.urlopen(f"{url}/stats") as response:
            seen = json.load(response)
    check(client, workload, seen, answered(python, script, printed, own))
    own_peak = used.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    return {
        "samples_per_s": workload.samples / seen["seconds"],
        "process_s": process_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": max(own_peak, peak[0]),
        "server_cpu_s": seen["cpu_s"],
        "request_kb": seen["bytes_in"] / seen["requests"] / 1000,
        "connections": seen["connections"] - 1,
    }


def quiet_environment(client: Client, own: Path, url: str) -> dict[str, str]:
    """No downloads, no caches of earlier runs, no settings of the user."""
    names = ("PATH", "HOME", "LANG", "TMPDIR", *(() if client.needs else ("PYTHONPATH",)))
    kept = {key: os.environ[key] for key in names if key in os.environ}
    return kept | {
        "OPENAI_API_KEY": "none-needed",
        "OPENAI_BASE_URL": url,
        "AGROTOOLS_CACHE": str(own / "cache"),
        "XDG_CACHE_HOME": str(own / "cache"),
        "HF_HOME": str(own / "cache"),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_DATASETS_TRUST_REMOTE_CODE": "0",
        "PYTHONWARNINGS": "ignore",
    }


@contextmanager
def server(workload: Workload) -> Iterator[str]:
    """A fresh mock server."""
    replies = {"agents": "agent", "exam": "option"}.get(workload.kind, "answer")
    command = [sys.executable, str(SERVER), "--replies", replies]
    command += ["--latency-ms", str(workload.latency_ms)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def tree_memory(root: int) -> Iterator[list[float]]:
    """The most that a process and its descendants held together, MB, looked at five times a second (Linux)."""
    peak = [0.0]
    ended = threading.Event()
    page_mb = os.sysconf("SC_PAGE_SIZE") / 2**20

    def held(pid: int) -> float:
        try:
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page_mb
            lists = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
        except OSError:
            return 0.0  # it has ended, or there is no /proc
        return resident + sum(held(int(child)) for child in " ".join(lists).split())

    def watch() -> None:
        while not ended.wait(0.2):
            peak[0] = max(peak[0], held(root))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def answered(python: str, script: str, printed: str, own: Path) -> int:
    """How many right answers the client holds in the end; agrotools' records are counted after its time is taken."""
    if not printed.rstrip().endswith("}") or '"right"' not in printed:
        command = [python, script, "count", str(own)]
        counting = subprocess.run(command, check=False, capture_output=True, text=True)
        if counting.returncode:
            sys.exit(counting.stderr)
        printed = counting.stdout
    return json.loads(printed.strip().splitlines()[-1])["right"]


def check(client: Client, workload: Workload, seen: dict[str, Any], right: int) -> None:
    wanted = {
        "requests": workload.samples * workload.requests_per_sample,
        "replies": workload.samples * workload.requests_per_sample,
        "plots": workload.samples,
        "fewest_per_plot": workload.requests_per_sample,
        "most_per_plot": workload.requests_per_sample,
    }
    wrong = [
        f"{key} {seen[key]} instead of {value}"
        for key, value in wanted.items()
        if seen[key] != value
    ]
    if right != workload.samples:
        wrong.append(f"{right} right answers instead of {workload.samples}")
    if seen["most_in_flight"] > CONCURRENCY:
        wrong.append(f"{seen['most_in_flight']} requests at once instead of {CONCURRENCY}")
    if wrong:
        sys.exit(f"{client.name} on {workload.name} did not do the work: {'; '.join(wrong)}")
