"""Growth of CPU time and memory of a run with its samples. Replies are scripted, so that agrotools alone is measured.

Figures of docs/appendix.md, "Speed": a run of 1,000,000 texts.

    python performance/growth.py [--texts 10000,100000,1000000] [--agents 1000,10000,50000] [--json]

Each size is run, killed when a thousandth of its records is missing, resumed, and repeated when all is done. Seconds
are those of the CPU that the process itself used; workers of tools are not counted, in seconds or memory.

* ``start_s``: from the start of the process to its first record; ``resume_s``: the same when the run is resumed;
  ``repeat_s``: the same command when everything is done.
* ``run_ms``, ``score_ms``, ``report_ms``: for each further sample than those of the size before, from the first record
  to the last, from there to the end of scoring, and to the end of the process.
* ``start_mb``... ``report_mb``: most memory held by the process in each phase: resident pages that belong to no file.
  Pages of libraries and of temporary files are left out, because the system takes them back when it needs them.
* ``start_b``... ``report_b``: bytes of it for each further sample than those of the size before.

Agents make one call of ``calculate`` and answer.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from throughput_clients.workload import HEADER, sample

ANSWER = "9 plants and 5 plants are 14 plants.\nanswer: 14"
CALL = 'Thought: I add both rows.\nAction: calculate\nAction Input: {"expression": "9 + 5"}'
PHASES = ("start", "run", "resume", "score", "report")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--texts", default="10000,100000,1000000", help="sizes of the runs of questions"
    )
    parser.add_argument("--agents", default="1000,10000,50000", help="sizes of the runs of agents")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    for kind, sizes in (("texts", options.texts), ("agents", options.agents)):
        before: dict[str, Any] = {}
        for size in filter(None, sizes.split(",")):
            figures = measured(kind, int(size))
            row = {"kind": kind, "samples": int(size)} | in_columns(figures, before)
            if options.json:
                print(json.dumps(row), flush=True)
            else:
                if not before:
                    print("".join(f"{name:>11}" for name in row))
                print("".join(f"{value:>11}" for value in row.values()), flush=True)
            before = figures


def measured(kind: str, size: int) -> dict[str, Any]:
    """Run, resume and repeat a benchmark of ``size`` samples; return CPU seconds (``s``) and memory (``mb``)."""
    with tempfile.TemporaryDirectory(prefix="growth-") as scratch:
        folder = Path(scratch)
        write_benchmark(folder / "bench", size)
        replies = [ANSWER] if kind == "texts" else [CALL, ANSWER]
        (folder / "replies.json").write_text(json.dumps(replies))
        mode = ["--mode", "no-tool" if kind == "texts" else "end-to-end"]
        script = Path(sys.executable).with_name("agrotools")
        command = [
            str(script),
            "eval",
            "bench",
            "-m",
            "scripted:replies.json",
            *mode,
            "--out",
            "run",
        ]
        records, most = folder / "run" / "records.jsonl", size - max(1, size // 1000)
        first = watched(command, folder, size, kill_at=most)
        with records.open("rb+") as file:
            for _ in range(most):
                file.readline()
            file.truncate()
        again, repeat = watched(command, folder, size), watched(command, folder, size)
        figures = {
            unit: {name: first[unit][name] for name in ("start", "run")}
            | {"resume": again[unit]["start"]}
            | {name: again[unit][name] for name in ("score", "report")}
            for unit in ("s", "mb")
        }
        figures["s"]["repeat"] = sum(repeat["s"].values())
        return figures | {"samples": size}


def in_columns(figures: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a row; figures per further sample need those of the size ``before``."""
    further = figures["samples"] - before["samples"] if before else 0

    def slopes(
        unit: str, suffix: str, factor: float, names: tuple[str, ...], digits: int
    ) -> dict[str, Any]:
        rises = {name: figures[unit][name] - before[unit][name] if before else 0 for name in names}
        return {
            f"{n}_{suffix}": round(rise * factor / further, digits) if further else ""
            for n, rise in rises.items()
        }

    seconds, memory = figures["s"], figures["mb"]
    return (
        {f"{name}_s": round(seconds[name], 1) for name in ("start", "resume", "repeat")}
        | slopes("s", "ms", 1e3, ("run", "score", "report"), 3)
        | {f"{name}_mb": round(mb) for name, mb in memory.items()}
        | slopes("mb", "b", 1e6, tuple(memory), 0)
    )


def write_benchmark(folder: Path, size: int) -> None:
    folder.mkdir()
    (folder / "benchmark.toml").write_text(HEADER)
    with (folder / "samples.jsonl").open("w") as lines:
        for number in range(size):
            lines.write(json.dumps(sample(number, agents=False)) + "\n")


def watched(command: list[str], folder: Path, size: int, kill_at: int = 0) -> dict[str, Any]:
    """Run a command; return the CPU seconds of its phases and the most memory in each, looked at every 20 ms.

    ``kill_at``: number of records at which the process is killed; 0: it is not.
    """
    records = folder / "run" / "records.jsonl"
    seen = old = records.stat().st_size if records.exists() else 0
    n_records = 0
    phases = ("start", "run", "score", "report")
    seconds, peaks = dict.fromkeys(phases, 0.0), dict.fromkeys(phases, 0.0)
    with (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=err)
        phase, used = "start", 0.0
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            time.sleep(0.02)
            seconds[phase], peaks[phase] = (
                cpu_s(process.pid) - used,
                max(peaks[phase], held_mb(process.pid)),
            )
            if kill_at and records.exists():
                with records.open("rb") as file:
                    file.seek(seen)
                    content = file.read()
                seen, n_records = seen + len(content), n_records + content.count(b"\n")
                if n_records >= kill_at:
                    os.kill(process.pid, signal.SIGKILL)
                    break
            shown = (folder / "stderr").read_text()
            ended = {
                "start": records.exists() and records.stat().st_size > old,
                "run": f"{size}/{size} done" in shown,
                "score": f"scores: {size}/{size}" in shown,
            }
            while phase != "report" and ended[phase]:
                phase, used = phases[phases.index(phase) + 1], sum(seconds.values())
    seconds[phase] = cpu_s(process.pid) - used
    if process.wait() and not kill_at:
        sys.exit(f"the run failed:\n{(folder / 'stderr').read_text()[-3000:]}")
    return {"s": seconds, "mb": peaks}


def cpu_s(pid: int) -> float:
    """CPU seconds of a process that has not been waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def held_mb(pid: int) -> float:
    """Resident memory of a process without pages of files; 0 if it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(
        (int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("RssAnon")), 0.0
    )


if __name__ == "__main__":
    main()
