"""Growth of time and memory of a run with its samples. Replies are scripted, so that agrotools alone is measured.

    python performance/growth.py [--texts 10000,100000] [--agents 1000,10000] [--json]

Each size is run once, resumed after a tenth of its records was cut off, and repeated when all is done.

* ``start_s``: from the start of the process to its first record; ``resume_s``: the same with nine tenths finished.
* ``run_s``, ``score_s``, ``report_s``: from the first record to the last, from there to the end of scoring, and to the
  end of the process.
* ``repeat_s``: the same command when everything is done.
* ``start_mb``, ``run_mb``, ``score_mb``, ``report_mb``: most resident memory of the process in each phase.

Agents make one call of ``calculate`` and answer; its workers are not counted in the memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from throughput_clients.workload import HEADER, sample

ANSWER = "9 plants and 5 plants are 14 plants.\nanswer: 14"
CALL = 'Thought: I add both rows.\nAction: calculate\nAction Input: {"expression": "9 + 5"}'
PHASES = ("start", "run", "score", "report")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--texts", default="10000,100000,1000000", help="sizes of the runs of questions")
    parser.add_argument("--agents", default="1000,10000,50000", help="sizes of the runs of agents")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    sizes = [("texts", each) for each in options.texts.split(",") if each]
    sizes += [("agents", each) for each in options.agents.split(",") if each]
    rows = [measured(kind, int(size)) for kind, size in sizes]
    if options.json:
        print(json.dumps(rows))
        return
    print("".join(f"{name:>11}" for name in rows[0]))
    for row in rows:
        print("".join(f"{value:>11}" for value in row.values()))


def measured(kind: str, size: int) -> dict[str, Any]:
    """Run, resume and repeat a benchmark of ``size`` samples."""
    with tempfile.TemporaryDirectory(prefix="growth-") as scratch:
        folder = Path(scratch)
        write_benchmark(folder / "bench", size)
        replies = [ANSWER] if kind == "texts" else [CALL, ANSWER]
        (folder / "replies.json").write_text(json.dumps(replies))
        mode = ["--mode", "no-tool" if kind == "texts" else "end-to-end"]
        script = Path(sys.executable).with_name("agrotools")
        command = [str(script), "eval", "bench", "-m", "scripted:replies.json", *mode, "--out", "run"]
        first = watched(command, folder, size)
        records = folder / "run" / "records.jsonl"
        cut(records, size - size // 10)
        again = watched(command, folder, size)
        repeat = watched(command, folder, size)
        peaks = {f"{phase}_mb": round(max(each["mb"][phase] for each in (first, again))) for phase in PHASES}
        times = {f"{phase}_s": first[phase] for phase in PHASES}
        return {"kind": kind, "samples": size} | times | {"resume_s": again["start"], "repeat_s": repeat["all"]} | peaks


def write_benchmark(folder: Path, size: int) -> None:
    folder.mkdir()
    (folder / "benchmark.toml").write_text(HEADER)
    with (folder / "samples.jsonl").open("w") as lines:
        for number in range(size):
            lines.write(json.dumps(sample(number, agents=False)) + "\n")


def cut(records: Path, lines: int) -> None:
    """Keep the first ``lines`` lines of a file."""
    with records.open("rb+") as file:
        for _ in range(lines):
            file.readline()
        file.truncate(file.tell())


def watched(command: list[str], folder: Path, size: int) -> dict[str, Any]:
    """Run a command; return the seconds of its phases and the most memory in each, looked at ten times a second."""
    records, began = folder / "run" / "records.jsonl", time.monotonic()
    old = records.stat().st_size if records.exists() else 0
    ends: dict[str, float] = {}
    peaks = dict.fromkeys(PHASES, 0.0)
    with (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=err)
        phase = "start"
        while process.poll() is None:
            time.sleep(0.1)
            peaks[phase] = max(peaks[phase], resident_mb(process.pid))
            shown = (folder / "stderr").read_text()
            ended = {
                "start": records.exists() and records.stat().st_size > old,
                "run": f"{size}/{size} done" in shown,
                "score": f"scores: {size}/{size}" in shown,
            }
            while phase != "report" and ended[phase]:
                ends[phase] = time.monotonic()
                phase = PHASES[PHASES.index(phase) + 1]
    if process.returncode:
        sys.exit(f"the run failed:\n{(folder / 'stderr').read_text()[-3000:]}")
    ends["report"] = time.monotonic()
    seconds: dict[str, Any] = {"mb": peaks, "all": round(ends["report"] - began, 1)}
    for each in PHASES:
        seconds[each] = round(max(ends.get(each, began) - began, 0.0), 1)
        began = ends.get(each, began)
    return seconds


def resident_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS")), 0.0)


if __name__ == "__main__":
    main()
