"""What a sandbox costs: start of a worker beside plain Python, a plot from a warm worker, sixteen plots at once.

python performance/sandbox_speed.py [--json] [--times 9]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agrotools.sandbox.pool import SandboxWorker, close_pools, pool_size
from agrotools.sandbox.runners import RUNNERS, interpreter
from agrotools.sandbox.running import probe, run_code

PLOT = """
import matplotlib.pyplot as plt

def solution():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6, 3.6))
    left.plot([1, 2, 3, 4], [3, 1, 4, 1], marker="o", label="yield")
    left.legend()
    right.bar(["wheat", "maize", "rice"], [3.1, 5.4, 4.2])
    right.set_ylabel("t/ha")
    return figure
"""
SUM = "def solution():\n    return 6 * 7"
PLAIN = f"import os\n{PLOT}\nsolution().savefig('plot.png')"
AT_ONCE = 16


def summary(seen_ms: list[float]) -> dict[str, float]:
    return {"median_ms": round(statistics.median(seen_ms), 1), "max_ms": round(max(seen_ms), 1)}


def elapsed_ms(runner: str) -> float:
    """Until a worker that imports nothing is ready. ``none`` runs the same script without anything around it."""
    started = time.perf_counter()
    worker = SandboxWorker(runner, warm=())
    assert worker.wait_ready(), worker.read_stderr()
    elapsed = time.perf_counter() - started
    worker.end()
    return 1000 * elapsed


def run_plain(code: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env={"MPLBACKEND": "Agg", **os.environ},
            check=True,
        )


def checked(code: str, runner: str) -> None:
    result = run_code(code, runner=runner)
    assert result.ok, result


def measure(times: int) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}

    def add(name: str, run: Callable[[], object], pause_s: float = 0.0) -> None:
        seen: list[float] = []
        for _ in range(times):
            started = time.perf_counter()
            run()
            seen.append(1000 * (time.perf_counter() - started))
            time.sleep(pause_s)
        rows[name] = summary(seen)

    add(
        "plain: start of the interpreter",
        lambda: subprocess.run([interpreter(), "-S", "-c", ""], check=True),
    )
    run_plain(PLAIN)
    add("plain: python plot.py", lambda: run_plain(PLAIN))
    for runner in [each for each in RUNNERS if probe(each).holds]:
        # In turns: whatever else the machine does befalls both alike.
        starts = [(elapsed_ms("none"), elapsed_ms(runner)) for _ in range(4 * times)]
        rows["plain: start of a worker"] = summary([plain for plain, _ in starts])
        rows[f"{runner}: start of a worker"] = summary([confined for _, confined in starts])
        rows[f"{runner}: more than plain"] = summary(
            [confined - plain for plain, confined in starts]
        )
        # With a pause as a model makes one, so that the next worker is warm.
        pause_s = 2.5
        checked(SUM, runner)
        time.sleep(5)
        add(f"{runner}: sum, warm", lambda runner=runner: checked(SUM, runner), pause_s)
        add(f"{runner}: plot, warm", lambda runner=runner: checked(PLOT, runner), pause_s)
        rows[f"{runner}: {AT_ONCE} plots at once"] = at_once(runner)
        close_pools()
    return rows


def at_once(runner: str) -> dict[str, float]:
    lock, latencies = threading.Lock(), list[float]()

    def one(_: int) -> None:
        result = run_code(PLOT, runner=runner)
        assert result.ok, result
        with lock:
            latencies.append(1000 * result.seconds)

    started = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(one, range(AT_ONCE)))
    total_ms = round(1000 * (time.perf_counter() - started))
    return {**summary(latencies), "total_ms": total_ms}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", dest="as_json")
    parser.add_argument("--times", type=int, default=9)
    arguments = parser.parse_args()
    rows = measure(arguments.times)
    load = Path("/proc/loadavg")
    about = {"cores": pool_size(), "load": load.read_text().split()[0] if load.exists() else None}
    if arguments.as_json:
        print(json.dumps({**about, "rows": rows}, indent=2))
        return
    print(f"{about['cores']} cores, load at the end {about['load']}, {arguments.times} times each")
    print(f"{'':36}{'median ms':>12}{'max ms':>12}")
    for name, row in rows.items():
        total = f"   in all {row['total_ms']:.0f} ms" if "total_ms" in row else ""
        print(f"{name:36}{row['median_ms']:12.1f}{row['max_ms']:12.1f}{total}")


if __name__ == "__main__":
    main()
