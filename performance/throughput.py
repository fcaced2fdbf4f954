"""How fast a run goes and what it costs: agrotools beside its peers, one machine, one local mock server.

Table of docs/appendix.md, "Speed".

    python performance/throughput.py --setup DIR        # once: a virtual environment for each peer
    python performance/throughput.py --peers DIR [--repeat K] [--json] [--quick]

Every client asks the same questions in the same words and gets the same replies; the server checks that each sample was
asked as often as it had to be, the client that each answer arrived. Clients take turns, ``--repeat`` times; the table
holds medians.

* ``samples_per_s``: over the request phase, from the first byte of the first request to the last byte of the last
  reply, as the server saw it; the same clock for all.
* ``process_s``, ``cpu_s``: the client's whole process and its children, start and end included.
* ``peak_mb``: resident memory of the client and its children together.

agrotools writes records, scores and report, and runs tools in worker processes; a new expression for each call keeps
its cache of results out of it. lm-eval and Inspect write their logs, tuned as their manuals say; the bare loop and the
SDK write nothing. All peers evaluate the tool in place, in the process itself; lm-eval has no agents.

Runs are written to the folder of temporary files. On ext4, let five minutes pass after many files were deleted there:
their places are skipped one by one, which makes a new file thirty times as slow (TMPDIR names another folder).
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from throughput_clients.measuring import CLIENTS, Client, Workload, run_once

ALL_CLIENTS = (
    Client("bare aiohttp", "bare_aiohttp.py"),
    Client("agrotools", "agrotools_client.py"),
    Client("openai SDK", "openai_sdk.py", ("openai[aiohttp]==3.51.0",)),
    Client("lm-eval", "lm_eval_client.py", ("lm_eval[api]==0.4.13",), agents=False),
    Client("Inspect", "inspect_client.py", ("inspect_ai==0.3.285", "openai[aiohttp]==3.51.0")),
)


WORKLOADS = (
    Workload("questions", 0, 20_000),
    Workload("questions", 50, 2_000),
    Workload("questions", 200, 2_000),
    Workload("agents", 0, 500),
    Workload("agents", 50, 500),
    Workload("agents", 200, 500),
    Workload("exam", 0, 14_697),
    Workload("exam", 50, 14_697),
    Workload("exam", 200, 14_697),
)
FIGURES = ("samples_per_s", "process_s", "cpu_s", "peak_mb")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--setup", type=Path, metavar="DIR", help="make the peers' virtual environments there"
    )
    parser.add_argument("--peers", type=Path, metavar="DIR", help="where --setup made them")
    parser.add_argument(
        "--repeat", type=int, default=1, help="runs of each client on each workload"
    )
    parser.add_argument(
        "--only", default="", help="clients, by parts of their names, comma-separated"
    )
    parser.add_argument(
        "--workload", default="", help="workloads, by parts of their names, comma-separated"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    if options.setup:
        set_up(options.setup)
        return
    sizes = (
        [replace(each, samples=each.samples // 10) for each in WORKLOADS]
        if options.quick
        else WORKLOADS
    )
    workloads = named(sizes, options.workload)
    clients = [
        (client, python)
        for client in named(ALL_CLIENTS, options.only)
        if (python := found(client, options))
    ]
    if not workloads or not clients:
        parser.error("nothing to measure: no client or workload of that name is here")
    rows = measured(workloads, clients, options.repeat)
    print(json.dumps(rows) if options.json else "\n".join(as_table(rows)))


def named(things: Sequence[Any], wanted: str) -> list[Any]:
    parts = [part.strip().lower() for part in wanted.split(",") if part.strip()]
    return [
        thing for thing in things if not parts or any(part in thing.name.lower() for part in parts)
    ]


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
            subprocess.run(
                [uv, "venv", "--quiet", "--python", sys.executable, str(target)], check=True
            )
            subprocess.run(
                [uv, "pip", "install", "--quiet", "--python", python, *client.needs], check=True
            )
        else:
            subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *client.needs], check=True)


def measured(
    workloads: Sequence[Workload], clients: Sequence[tuple[Client, str]], repeat: int
) -> list[dict[str, Any]]:
    """A row for each client and workload: medians over the repeats."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="throughput-") as scratch:
        folders = made_folders(workloads, Path(scratch))
        for workload in workloads:
            taking_part = [pair for pair in clients if workload.kind != "agents" or pair[0].agents]
            runs: dict[str, list[dict[str, float]]] = defaultdict(list)
            for turn in range(repeat):
                for client, python in taking_part:
                    # Deleted at the end only: some file systems take long to make files just after others were deleted.
                    own = Path(
                        tempfile.mkdtemp(prefix=f"{Path(client.script).stem}-{turn}-", dir=scratch)
                    )
                    figures = run_once(client, python, workload, folders[workload], own)
                    runs[client.name].append(figures)
                    shown = ", ".join(f"{key} {value:.1f}" for key, value in figures.items())
                    note(f"{workload.name}, {client.name}: {shown}")
            for client, _ in taking_part:
                medians = {
                    key: statistics.median(run[key] for run in runs[client.name]) for key in FIGURES
                }
                row = {
                    "client": client.name,
                    "workload": workload.kind,
                    "latency_ms": workload.latency_ms,
                }
                rows.append(
                    row
                    | {"samples": workload.samples}
                    | {key: round(medians[key], 2) for key in FIGURES}
                )
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
            subprocess.run(
                [sys.executable, script, workload.kind, str(workload.samples), str(made[what])],
                check=True,
            )
        folders[workload] = made[what]
    return folders


def as_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        f"{'workload':20}{'client':14}{'samples':>8}{'samples/s':>11}{'process s':>11}{'CPU s':>8}{'peak MB':>9}"
    ]
    for row in rows:
        workload = f"{row['workload']} at {row['latency_ms']} ms"
        lines.append(
            f"{workload:20}{row['client']:14}{row['samples']:8}{row['samples_per_s']:11.1f}"
            f"{row['process_s']:11.2f}{row['cpu_s']:8.2f}{row['peak_mb']:9.0f}"
        )
    return lines


if __name__ == "__main__":
    main()
