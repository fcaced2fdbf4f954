"""How fast a run goes and what it costs: agrotools beside its peers, one machine, one local mock server.

    python benchmarks/throughput.py --setup DIR        # once: a virtual environment for each peer
    python benchmarks/throughput.py --peers DIR [--repeat K] [--json] [--quick]

Every client asks the same questions in the same words and gets the same replies; the server checks that each sample was
asked as often as it had to be, the client that each answer arrived. Clients take turns, ``--repeat`` times; the table
holds medians.

* ``samples_per_s``: over the request phase, from the first byte of the first request to the last byte of the last
  reply, as the server saw it; the same clock for all.
* ``process_s``, ``cpu_s``: the client's whole process and its children, start and end included.
* ``peak_mb``: resident memory of the client and its children together.

agrotools writes records, scores and report, and runs tools in worker processes; a new expression for each call keeps
its cache of results out of it. lm-eval and Inspect write their logs, tuned as their manuals say; the bare loop and the
SDK write nothing, and both evaluate the tool in place. lm-eval has no agents.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
CLIENTS = HERE / "throughput_clients"
CONCURRENCY = 64
TURNS = 5
LONGEST_RUN_S = 1800


class Client(NamedTuple):
    """A script, and the packages its environment needs; none for those that run where agrotools is installed."""

    name: str
    script: str
    needs: tuple[str, ...] = ()
    agents: bool = True


ALL_CLIENTS = (
    Client("bare aiohttp", "bare_aiohttp.py"),
    Client("agrotools", "agrotools_client.py"),
    Client("openai SDK", "openai_sdk.py", ("openai[aiohttp]==3.51.0",)),
    Client("lm-eval", "lm_eval_client.py", ("lm_eval[api]==0.4.13",), agents=False),
    Client("Inspect", "inspect_client.py", ("inspect_ai==0.3.285", "openai[aiohttp]==3.51.0")),
)


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
        return TURNS + 1 if self.kind == "agents" else 1


WORKLOADS = (
    Workload("questions", 0, 20_000),
    Workload("questions", 50, 2_000),
    Workload("questions", 200, 2_000),
    Workload("agents", 0, 500),
)
QUICK = (
    Workload("questions", 0, 2_000),
    Workload("questions", 50, 640),
    Workload("questions", 200, 640),
    Workload("agents", 0, 128),
)

FIGURES = ("samples_per_s", "process_s", "cpu_s", "peak_mb")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--setup", type=Path, metavar="DIR", help="make the peers' virtual environments there")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="where --setup made them")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each client on each workload")
    parser.add_argument("--only", default="", help="clients, by parts of their names, comma-separated")
    parser.add_argument("--workload", default="", help="workloads, by parts of their names, comma-separated")
    parser.add_argument("--quick", action="store_true", help="about a tenth of the samples")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    if options.setup:
        set_up(options.setup)
        return
    workloads = named(QUICK if options.quick else WORKLOADS, options.workload)
    clients = [(client, python) for client in named(ALL_CLIENTS, options.only) if (python := found(client, options))]
    if not workloads or not clients:
        parser.error("no such client or workload")
    rows = measured(workloads, clients, options.repeat)
    print(json.dumps(rows) if options.json else "\n".join([*as_table(rows), "", *comparisons(rows)]))


def named(things: Sequence[Any], wanted: str) -> list[Any]:
    parts = [part.strip().lower() for part in wanted.split(",") if part.strip()]
    return [thing for thing in things if not parts or any(part in thing.name.lower() for part in parts)]


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def environment_of(client: Client, folder: Path) -> Path:
    return folder / Path(client.script).stem


def found(client: Client, options: argparse.Namespace) -> str | None:
    """The interpreter that runs ``client``; None, and a line that says so, where it is not installed."""
    if not client.needs:
        return sys.executable
    python = environment_of(client, options.peers) / "bin" / "python" if options.peers else None
    if python is not None and python.is_file():
        return str(python)
    note(f"left out: {client.name} is not installed (--setup DIR, then --peers DIR)")
    return None


def set_up(folder: Path) -> None:
    """A virtual environment for each peer, with uv where there is one."""
    uv = shutil.which("uv")
    for client in ALL_CLIENTS:
        if not client.needs:
            continue
        target = environment_of(client, folder)
        note(f"installing {', '.join(client.needs)} into {target}")
        python = str(target / "bin" / "python")
        if uv:
            subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(target)], check=True)
            subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *client.needs], check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *client.needs], check=True)


def measured(workloads: Sequence[Workload], clients: Sequence[tuple[Client, str]], repeat: int) -> list[dict[str, Any]]:
    """A row for each client and workload: medians over the repeats."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="throughput-") as scratch:
        folders = made_folders(workloads, Path(scratch))
        for workload in workloads:
            taking_part = [pair for pair in clients if workload.kind != "agents" or pair[0].agents]
            runs: dict[str, list[dict[str, float]]] = defaultdict(list)
            for turn in range(repeat):
                for client, python in taking_part:
                    own = Path(scratch) / f"{Path(client.script).stem}-{turn}"
                    own.mkdir()
                    figures = run_once(client, python, workload, folders[workload], own)
                    shutil.rmtree(own)
                    runs[client.name].append(figures)
                    shown = ", ".join(f"{key} {value:.1f}" for key, value in figures.items())
                    note(f"{workload.name}, {client.name}: {shown}")
            for client, _ in taking_part:
                medians = {key: statistics.median(run[key] for run in runs[client.name]) for key in FIGURES}
                row = {"client": client.name, "workload": workload.kind, "latency_ms": workload.latency_ms}
                rows.append(row | {"samples": workload.samples} | {key: round(medians[key], 2) for key in FIGURES})
    return rows


def made_folders(workloads: Sequence[Workload], scratch: Path) -> dict[Workload, Path]:
    folders: dict[Workload, Path] = {}
    made: dict[tuple[str, int], Path] = {}
    for workload in workloads:
        what = workload.kind, workload.samples
        if what not in made:
            made[what] = scratch / f"{workload.kind}-{workload.samples}"
            script = str(CLIENTS / "workload.py")
            # In a process of its own: a child's peak memory starts at what its parent holds.
            subprocess.run([sys.executable, script, workload.kind, str(workload.samples), str(made[what])], check=True)
        folders[workload] = made[what]
    return folders


def run_once(client: Client, python: str, workload: Workload, folder: Path, own: Path) -> dict[str, float]:
    """One run of a client against a server of its own.

    Raises:
        SystemExit: it failed, asked something else than it should have, or did not read every answer.
    """
    with server(workload) as url:
        script = str(CLIENTS / client.script)
        command = [python, script, workload.kind, str(folder), f"{url}/v1", str(CONCURRENCY), str(own)]
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
                sys.exit(f"{client.name} failed on {workload.name} with {process.returncode}:\n{err.read()[-3000:]}")
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
    replies = "agent" if workload.kind == "agents" else "answer"
    command = [sys.executable, str(HERE / "mock_server.py"), "--replies", replies]
    command += ["--latency-ms", str(workload.latency_ms)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
    finally:
        process.send_signal(signal.SIGINT)
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
    wrong = [f"{key} {seen[key]} instead of {value}" for key, value in wanted.items() if seen[key] != value]
    if right != workload.samples:
        wrong.append(f"{right} right answers instead of {workload.samples}")
    if seen["most_in_flight"] > CONCURRENCY:
        wrong.append(f"{seen['most_in_flight']} requests at once instead of {CONCURRENCY}")
    if wrong:
        sys.exit(f"{client.name} on {workload.name} did not do the work: {'; '.join(wrong)}")


def as_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [f"{'workload':20}{'client':14}{'samples':>8}{'samples/s':>11}{'process s':>11}{'CPU s':>8}{'peak MB':>9}"]
    for row in rows:
        workload = f"{row['workload']} at {row['latency_ms']} ms"
        lines.append(
            f"{workload:20}{row['client']:14}{row['samples']:8}{row['samples_per_s']:11.1f}"
            f"{row['process_s']:11.2f}{row['cpu_s']:8.2f}{row['peak_mb']:9.0f}"
        )
    return lines


def comparisons(rows: Sequence[dict[str, Any]]) -> list[str]:
    """agrotools against the bare loop, Inspect and the latency bound, where both were measured."""
    speed = {(row["client"], row["workload"], row["latency_ms"]): row["samples_per_s"] for row in rows}
    found: list[tuple[str, float, float]] = []

    def compare(what: str, kind: str, latency_ms: int, other: str, at_least: float) -> None:
        ours, theirs = speed.get(("agrotools", kind, latency_ms)), speed.get((other, kind, latency_ms))
        if ours and theirs:
            found.append((what, ours / theirs, at_least))

    compare("questions at 0 ms, of the bare loop's speed", "questions", 0, "bare aiohttp", 0.5)
    compare("questions at 0 ms, times Inspect's speed", "questions", 0, "Inspect", 20)
    for latency_ms in (50, 200):
        if ours := speed.get(("agrotools", "questions", latency_ms)):
            bound = CONCURRENCY / (latency_ms / 1000)
            found.append((f"questions at {latency_ms} ms, of concurrency / latency", ours / bound, 0.9))
    compare("agents at 0 ms, of the bare loop's speed", "agents", 0, "bare aiohttp", 0.5)
    return [
        f"{what:48}{ratio:8.2f}  wanted {at_least:g}  {'reached' if ratio >= at_least else 'MISSED'}"
        for what, ratio, at_least in found
    ]


if __name__ == "__main__":
    main()
