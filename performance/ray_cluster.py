"""Tool calls on a Ray cluster of two nodes on this machine: speed beside local workers, and what kills cost.

Figures of docs/appendix.md, "Speed": samples a minute on two Ray nodes.

    python performance/ray_cluster.py --repeat 3
    python performance/ray_cluster.py --worker-kills 30 --node-kills 10 --driver-kills 3

Needs the extra ``ray``. Without kills, prints how many samples ``agrotools eval`` finishes per minute. With kills, it
runs until all have happened, at random moments, and gives an incomplete run the same command again. Its records are
compared with those of a local run. Exits with 1 if one is missing, there twice, or has other steps.
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
from contextlib import suppress
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "agrotools", "eval"]
CPUS_OF_NODES = 1
MOST_COMMANDS = 200


def run(arguments: list[str], folder: Path, *, address: str = "") -> subprocess.Popen[str]:
    if not folder.exists():  # no call of a new run is answered from an earlier one
        shutil.rmtree(Path(os.environ["AGROTOOLS_CACHE"], "tool-results"), ignore_errors=True)
    environment = {**os.environ, "RAY_ADDRESS": address}
    command = [*COMMAND, *arguments, "--mode", "end-to-end", "--out", str(folder)]
    if address:
        file = folder.with_suffix(".toml")
        file.write_text('executor = "ray"\n')
        command += ["--config", str(file)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def finished(folder: Path) -> list[dict[str, Any]]:
    file = folder / "records.jsonl"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [record for record in map(json.loads, lines) if record["invalid"] is None]


def outcome(record: dict[str, Any]) -> list[Any]:
    return [
        (step["call"], step["observation"], step["text"]) for step in record["trajectory"]["steps"]
    ]


def ray_workers() -> list[int]:
    """Processes of Ray that run calls on nodes that were started by this process."""
    pids: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cmdline").read_bytes().startswith(b"ray::run_call"):
                pids += [int(entry.name)] * (parent(parent(int(entry.name))) == os.getpid())
    return pids


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def measure_kills(
    cluster: Any, arguments: list[str], waiting: Counter[str], pause_s: float, folder: Path
) -> int:
    """Run with kills until none is waiting, and return the number of faults found."""
    truth = {record["sample"]["id"]: outcome(record) for record in finished(folder / "local")}
    node, found, done = cluster.add_node(num_cpus=CPUS_OF_NODES), Counter[str](), Counter[str]()
    while waiting.total() and found["commands"] < MOST_COMMANDS:
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
        ids = {record["sample"]["id"] for record in records}
        found += Counter(
            runs=1,
            records=len(records),
            doubled=len(records) - len(ids),
            lost=len(truth.keys() - ids),
        )
        found["different"] += sum(
            truth[record["sample"]["id"]] != outcome(record) for record in records
        )
    print(json.dumps({"kills": done, "doubled": 0, "lost": 0, "different": 0, **found}))
    return found["doubled"] + found["lost"] + found["different"]


def measure_speed(cluster: Any, arguments: list[str], repeat: int, folder: Path) -> None:
    rates: dict[str, list[float]] = {"local": [], "ray": []}
    for number in range(repeat):
        for name, address in (("local", ""), ("ray", cluster.address)):
            _, output = run(arguments, folder / f"{name}-{number}", address=address).communicate()
            rates[name].append(float(re.findall(r"([\d,]+)/min", output)[-1].replace(",", "")))
    print(
        json.dumps(
            {
                name: {"median": statistics.median(of), "per_minute": of}
                for name, of in rates.items()
            }
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--benchmark", default="embedded --quick", help="benchmark and options of eval"
    )
    parser.add_argument("--repeat", type=int, default=3)
    for kind in ("worker", "node", "driver"):
        parser.add_argument(f"--{kind}-kills", type=int, default=0)
    parser.add_argument("--pause", type=float, default=6.0, help="mean seconds between kills")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    arguments = [*options.benchmark.split(), "--model", "baseline:oracle"]
    waiting = Counter(
        worker=options.worker_kills, node=options.node_kills, driver=options.driver_kills
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "RAY_USAGE_STATS_ENABLED": "0",
            "AGROTOOLS_CACHE": f"{folder}/cache",
        }  # of the nodes, too
        from ray.cluster_utils import Cluster

        run(arguments, Path(folder, "local")).communicate()  # draws the benchmark, too
        cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": CPUS_OF_NODES, "include_dashboard": False},
        )
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
