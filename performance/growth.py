"""What a run costs as work grows: whole ``agrotools eval`` processes on 1k, 10k and 100k short questions.

    python performance/growth.py [--sizes 1000,10000,100000] [--models mock,baseline:prior] [--json]

Each question has one exact slot and no file, so nothing but the engine costs. ``mock`` is a model on a local server
that answers at once, 64 samples in flight; a baseline asks nobody. Records, scores and report are written.

* ``process_s``, ``cpu_s``, ``peak_mb``: the whole process, start and end included; its own resident memory at its most.
* ``load_s``: from the start of the process to the first request; ``request_s``: from there to the last reply, as the
  server saw them; ``score_s``: from there to the end of the process.
* ``again_s``: the same command on the finished run.

Growth is linear where the *next* sample costs the same at every size: the figure compared is the CPU time that the
samples beyond the smaller size took, for each of them. The exit status is 1 where it rises by more than a fifth, or
where memory at the largest size is more than 1.5 times that at the smallest.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

SERVER = Path(__file__).resolve().with_name("mock_server.py")
CONCURRENCY = 64
MOST_TIME, MOST_MEMORY = 1.2, 1.5
COLUMNS = ("process_s", "load_s", "request_s", "score_s", "again_s", "cpu_s", "cpu_ms_per_sample", "peak_mb")
HEADER = """name = "growth"
version = "1"
licence = "CC0-1.0"
description = "Short questions with one exact answer, to measure what the next one costs."
synthetic = true
toolset = ["calculate"]
modes = ["no-tool"]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of questions, comma-separated")
    parser.add_argument("--models", default="mock,baseline:prior", help="what answers, comma-separated")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    sizes = sorted(int(size) for size in options.sizes.split(","))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for size in sizes:
            write_benchmark(Path(scratch, f"questions-{size}"), size)
        for model in options.models.split(","):
            rows += [measured(model, size, Path(scratch)) for size in sizes]
    verdicts = [verdict for model in options.models.split(",") for verdict in judged(model, rows)]
    print(json.dumps(rows) if options.json else "\n".join([*as_table(rows), "", *(text for _, text in verdicts)]))
    return int(not all(good for good, _ in verdicts))


def write_benchmark(folder: Path, size: int) -> None:
    folder.mkdir()
    (folder / "benchmark.toml").write_text(HEADER)
    with (folder / "samples.jsonl").open("w") as lines:
        for number in range(size):
            lines.write(json.dumps(sample(number)) + "\n")


def sample(number: int) -> dict[str, Any]:
    """A question whose answer is what the mock server says; the mark lets it count how often each was asked."""
    slot = {"type": "exact", "name": "answer", "label": "plants with rust", "value": "14", "distractors": ["5", "9"]}
    return {
        "id": f"s{number}",
        "query": f"[plot {number:06d}] In the first row 9 plants have rust, in the second 5. How many have rust?",
        "files": [],
        "family": "CM",
        "task_type": "organ_counting",
        "answer_type": "exact",
        "template": "growth",
        "source": "made",
        "toolset": ["calculate"],
        "answer": [slot],
    }


def measured(model: str, size: int, scratch: Path) -> dict[str, Any]:
    """One run of ``size`` questions, and the same command again."""
    run = scratch / f"run-{model.replace(':', '-')}-{size}"
    command = [
        sys.executable,
        str(Path(sys.executable).with_name("agrotools")),
        "eval",
        str(scratch / f"questions-{size}"),
    ]
    command += ["--mode", "no-tool", "--model", model, "--concurrency", str(CONCURRENCY), "--out", str(run)]
    with server() as url:
        if not model.startswith("baseline:"):
            command += ["--base-url", f"{url}/v1"]
        started, ended, used = finished(command, scratch)
        with urllib.request.urlopen(f"{url}/stats") as response:
            seen = json.load(response)
        again_started, again_ended, _ = finished(command, scratch)
    check(model, size, run, seen)
    first, last = (seen["first"], seen["last"]) if seen["requests"] else (None, None)
    cpu_s = used.ru_utime + used.ru_stime
    row = {
        "model": model,
        "samples": size,
        "process_s": ended - started,
        "load_s": first and first - started,
        "request_s": first and last - first,
        "score_s": last and ended - last,
        "again_s": again_ended - again_started,
        "cpu_s": cpu_s,
        "cpu_ms_per_sample": 1000 * cpu_s / size,
        "peak_mb": used.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024),
    }
    shown = {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}
    line = f"{model}, {size}: {', '.join(f'{key} {shown[key]}' for key in COLUMNS)}"
    print(line, file=sys.stderr, flush=True)
    return shown


@contextmanager
def server() -> Iterator[str]:
    """A fresh mock server."""
    command = [sys.executable, str(SERVER), "--replies", "answer", "--latency-ms", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        finally:
            process.terminate()


def finished(command: Sequence[str], scratch: Path) -> tuple[float, float, Any]:
    """Start and end of a process, and what it used.

    Raises:
        SystemExit: it failed.
    """
    keep = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")
    environment = {key: os.environ[key] for key in keep if key in os.environ}
    environment |= {"AGROTOOLS_CACHE": str(scratch / "cache"), "OPENAI_API_KEY": "none-needed"}
    with (scratch / "stdout").open("wb") as out, (scratch / "stderr").open("w+") as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, cwd=scratch)
        _, status, used = os.wait4(process.pid, 0)
        ended = time.perf_counter()
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            err.seek(0)
            sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{err.read()[-3000:]}")
    return started, ended, used


def check(model: str, size: int, run: Path, seen: dict[str, Any]) -> None:
    """Every question was asked once and recorded once; the server was asked nothing again by the second command."""
    with (run / "records.jsonl").open("rb") as lines:
        ids = {json.loads(line)["sample"]["id"] for line in lines}
    asked = 0 if model.startswith("baseline:") else size
    if len(ids) != size or seen["requests"] != asked:
        sys.exit(f"{model}: {len(ids)} records and {seen['requests']} requests of {size} questions")
    with (run / "scores.json").open("rb") as file:
        start = file.read(4096).decode(errors="replace")
    if f'"n_records": {size}' not in start:
        sys.exit(f"{model}: the scores do not count {size} records:\n{start[:600]}")


def judged(model: str, rows: Sequence[dict[str, Any]]) -> list[tuple[bool, str]]:
    """Whether the next sample costs the same at every size, in time and in memory."""
    own = [row for row in rows if row["model"] == model]
    steps = [
        (larger["samples"], 1000 * (larger["cpu_s"] - smaller["cpu_s"]) / (larger["samples"] - smaller["samples"]))
        for smaller, larger in pairwise(own)
    ]
    verdicts: list[tuple[bool, str]] = []
    for (size, before), (larger, after) in pairwise(steps):
        ratio = after / before
        text = (
            f"{model}: CPU ms for the next sample {before:.3f} up to {size}, {after:.3f} up to {larger}: x {ratio:.2f}"
        )
        verdicts.append((ratio <= MOST_TIME, text))
    if len(own) > 1:
        small, large = own[0], own[-1]
        ratio = large["peak_mb"] / small["peak_mb"]
        each = 2**20 * (large["peak_mb"] - small["peak_mb"]) / (large["samples"] - small["samples"])
        verdicts.append((ratio <= MOST_MEMORY, f"{model}: memory x {ratio:.2f}, {each:.0f} bytes for the next sample"))
    return verdicts


def as_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [f"{'model':16}{'samples':>8}" + "".join(f"{name:>{len(name) + 2}}" for name in COLUMNS)]
    for row in rows:
        cells = [f"{'-' if row[name] is None else f'{row[name]:.2f}':>{len(name) + 2}}" for name in COLUMNS]
        lines.append(f"{row['model']:16}{row['samples']:8}" + "".join(cells))
    return lines


if __name__ == "__main__":
    sys.exit(main())
