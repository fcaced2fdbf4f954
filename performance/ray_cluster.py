"""Tool calls on a Ray cluster of two nodes on this machine: speed beside local workers, and what kills cost.

    python performance/ray_cluster.py --repeat 3
    python performance/ray_cluster.py --worker-kills 30 --node-kills 10 --driver-kills 3

Needs the extra ``ray``. Without kills, prints how many samples ``agrotools eval`` finishes per minute, with as many
local workers as the cluster has CPUs. With kills, it runs until all have happened, at random moments; a run that was
left incomplete gets the same command again. Its finished records are compared with those of a local run: none may be
missing, there twice or different but for times. Exits with 1 if one is.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "agrotools", "eval"]
CPUS_OF_NODES = 1
MOST_COMMANDS = 200
TIMES = ("seconds", "cached")


def run(arguments: list[str], folder: Path, *, address: str = "") -> subprocess.Popen[str]:
    if not folder.exists():  # no call of a new run is answered from an earlier one
        shutil.rmtree(Path(os.environ["AGROTOOLS_CACHE"], "tool-results"), ignore_errors=True)
    environment = {**os.environ, "RAY_ADDRESS": address}
    command = [*COMMAND, *arguments, "--mode", "end-to-end", "--out", str(folder)]
    command += ["--executor", "ray"] if address else []
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finished(folder: Path) -> list[dict[str, Any]]:
    file = folder / "records.jsonl"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [record for record in map(json.loads, lines) if record["invalid"] is None]


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def ray_workers() -> list[int]:
    """Processes of Ray that run calls and were started, directly or not, by this one."""
    parents, names = dict[int, int](), dict[int, bytes]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(entry.name)] = (entry / "cmdline").read_bytes()
        except OSError:
            continue

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return [pid for pid, name in names.items() if name.startswith(b"ray::run_call") and is_ours(pid)]


def measure_kills(cluster: Any, arguments: list[str], waiting: Counter[str], pause_s: float, folder: Path) -> int:
    """Run with kills until none is waiting, and return the number of faults found."""
    truth = {record["sample"]["id"]: without_times(record) for record in finished(folder / "local")}
    node, found, done = cluster.add_node(num_cpus=CPUS_OF_NODES), Counter[str](), Counter[str]()
    while waiting.total():
        out = folder / f"run-{found['runs']}"
        while len(finished(out)) < len(truth) and found["commands"] < MOST_COMMANDS:
            found["commands"] += 1
            process = run(arguments, out, address=cluster.address)
            while process.poll() is None:
                time.sleep(random.uniform(0.5, 1.5) * pause_s)
                workers = ray_workers()
                if process.poll() is not None or not workers or not waiting.total():
                    continue
                kind = random.choice(list(waiting.elements()))
                if kind == "worker":
                    os.kill(random.choice(workers), signal.SIGKILL)
                elif kind == "node":
                    cluster.remove_node(node, allow_graceful=False)
                    node = cluster.add_node(num_cpus=CPUS_OF_NODES)
                else:
                    process.kill()
                waiting[kind] -= 1
                done[kind] += 1
            _, output = process.communicate()
            found["invalid, run again"] += output.count(" is invalid: ")
        records = finished(out)
        found["runs"] += 1
        found["records"] += len(records)
        found["doubled"] += len(records) - len({record["sample"]["id"] for record in records})
        found["lost"] += len(truth.keys() - {record["sample"]["id"] for record in records})
        found["different"] += sum(truth[record["sample"]["id"]] != without_times(record) for record in records)
    print(json.dumps({"kills": done, "doubled": 0, "lost": 0, "different": 0, **found}))
    return found["doubled"] + found["lost"] + found["different"]


def measure_speed(cluster: Any, arguments: list[str], repeat: int, folder: Path) -> None:
    rates: dict[str, list[float]] = {"local": [], "ray": []}
    for number in range(repeat):
        for name, address in (("local", ""), ("ray", cluster.address)):
            _, output = run(arguments, folder / f"{name}-{number}", address=address).communicate()
            rates[name].append(float(re.findall(r"([\d,]+)/min", output)[-1].replace(",", "")))
    print(json.dumps({name: {"median": statistics.median(of), "per_minute": of} for name, of in rates.items()}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", default="embedded --quick", help="benchmark and options of eval")
    parser.add_argument("--repeat", type=int, default=3)
    for kind in ("worker", "node", "driver"):
        parser.add_argument(f"--{kind}-kills", type=int, default=0)
    parser.add_argument("--pause", type=float, default=6.0, help="mean seconds between kills")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    arguments = [*options.benchmark.split(), "--model", "baseline:oracle"]
    waiting = Counter({kind: getattr(options, f"{kind}_kills") for kind in ("worker", "node", "driver")})
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "AGROTOOLS_CACHE": f"{folder}/cache"}  # of the nodes, too
        from ray.cluster_utils import Cluster

        run(arguments, Path(folder, "local")).communicate()  # draws the benchmark, too
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": CPUS_OF_NODES, "include_dashboard": False})
        try:
            if waiting.total():
                return bool(measure_kills(cluster, arguments, waiting, options.pause, Path(folder)))
            cluster.add_node(num_cpus=CPUS_OF_NODES)
            measure_speed(cluster, arguments, options.repeat, Path(folder))
        finally:
            cluster.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
