"""Kill evaluations with ``kill -9`` at random moments, go on with the same command, and see what was lost: nothing.

Tool of developers; ``tests/engine/runner/test_kill_resume.py`` runs it with few kills.

    python performance/kill_resume.py --kills 200 --samples 60 --seed 1

Runs ``agrotools eval`` as a user does, against an endpoint on this machine that answers by the reference trajectories
of a benchmark of calculations. The process group is killed while it starts, runs, goes on after an earlier kill,
scores, or looks at a finished run; now and then the end of ``records.jsonl`` is then cut off or filled with zero bytes,
as a power cut does. After each kill the finished records are read without the package and compared with those before:
none may be missing, none may be different, none may be there twice. When a run is done, its scores must equal those of
a run that nobody disturbed, byte for byte apart from the seconds that were spent; then the next run begins.

Prints a table, or with ``--json`` the same as data; exits with 1 where anything was lost, doubled or different.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.openai_server import Endpoint, ReferenceFollower, serve  # noqa: E402
from support.sums_benchmark import write_sums  # noqa: E402

COMMAND = [sys.executable, "-m", "agrotools", "eval"]
LATENCY_S = 0.03
PHASES = ("starting", "running", "resuming", "scoring", "finished", "power cut", "at the end")
Key = tuple[str, str, int]


@dataclass
class Found:
    """What is wrong; every number should be 0."""

    lost: int = 0
    different: int = 0
    doubled: int = 0
    scores: int = 0
    """Runs whose scores are not those of the undisturbed run."""
    failed: int = 0
    """Commands that ended with an error by themselves."""
    left_over: int = 0
    """Files of killed processes that a finished run still holds."""
    messages: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return (
            self.lost + self.different + self.doubled + self.scores + self.failed + self.left_over
        )


@dataclass
class Tally:
    kills: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    """Finished records that were there when the command was given, and still after the kill."""
    found: dict[str, Found] = field(default_factory=lambda: defaultdict(Found))
    runs: int = 0
    commands: int = 0
    requests: int = 0
    requests_undisturbed: int = 0
    power_cuts: int = 0


def finished_records(run: Path) -> list[tuple[Key, str]]:
    """Key and line of every finished record that stands whole in the file, read without the package."""
    try:
        text = (run / "records.jsonl").read_bytes()
    except FileNotFoundError:
        return []
    return list(_whole(text))


def _whole(content: bytes) -> Iterator[tuple[Key, str]]:
    for line in content.split(b"\n")[:-1]:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["invalid"] is None:
            yield (record["mode"], record["sample"]["id"], record["epoch"]), line.decode()


def scores_but_seconds(run: Path) -> bytes:
    """``scores.json`` without the seconds that were spent, in all and by part: the only figures that are times."""
    scores = json.loads((run / "scores.json").read_bytes())
    for mode in scores["summary"]["modes"].values():
        mode.pop("seconds")
        for name in ("seconds", "tool_seconds"):
            mode["counts"]["spent"].pop(name, None)
    return json.dumps(scores).encode()


class Killing:
    """One series of kills; each run lies in a folder of its own until it is done."""

    def __init__(self, folder: Path, endpoint: Endpoint, samples: int, seed: int) -> None:
        self.folder = folder
        self.endpoint = endpoint
        self.luck = random.Random(seed)
        self.tally = Tally()
        self.records = 3 * samples
        self.start_s = 2.0
        """How long a command takes to its first record; measured anew with each one."""
        self.work_s = 1.0
        """How long it takes from its first record to its last one."""
        self.undisturbed = b""

    async def series(self, kills: int) -> None:
        process = await self._command("undisturbed")
        await self._while(process, lambda: not self._count(self.folder / "undisturbed"))
        first = time.monotonic()
        await self._while(process, lambda: self._count(self.folder / "undisturbed") < self.records)
        self.work_s = time.monotonic() - first
        await self._ended(process, "undisturbed")
        self.tally.requests_undisturbed = len(self.endpoint.requests)
        self.undisturbed = scores_but_seconds(self.folder / "undisturbed")
        self.endpoint.requests.clear()
        while self.tally.kills.total() < kills:
            self.tally.runs += 1
            name = f"run-{self.tally.runs}"
            await self._disturbed(name, kills)
            shutil.rmtree(self.folder / name)
        self.tally.requests = len(self.endpoint.requests)

    async def _disturbed(self, name: str, kills: int) -> None:
        """One run, killed until it is done or enough were killed."""
        run = self.folder / name
        known: dict[Key, str] = {}
        while self.tally.kills.total() < kills:
            process = await self._command(name)
            if not await self._kill_sometime(process, run, known):
                break
        else:
            await self._ended(await self._command(name), name)
        self._compared(run, known, "at the end")
        if len(known) != self.records:
            self._wrong(
                "at the end", "lost", f"{name} ended with {len(known)} of {self.records} records"
            )
        if scores_but_seconds(run) != self.undisturbed:
            self._wrong("at the end", "scores", f"{name} has other scores")
        left = [
            path.name
            for path in run.rglob(".*")
            if path.name not in (".lock", ".manifest.copy.json")
        ]
        if left:
            self._wrong("at the end", "left_over", f"{name} still holds {left}")

    async def _kill_sometime(
        self, process: asyncio.subprocess.Process, run: Path, known: dict[Key, str]
    ) -> bool:
        """Kill a command at a random moment; False where it ended before."""
        begun, had = time.monotonic(), len(known)
        if had == self.records and self.luck.random() < 0.6:
            await self._ended(process, run.name)
            return False
        kind = self.luck.choices(
            ("early", "middle", "late"), (2, 6, 1 if had < self.records else 6)
        )[0]
        delay = self.luck.uniform(0, self.start_s)
        if kind != "early":
            await self._while(process, lambda: self._count(run) <= had < self.records)
            if had < self.records:
                self.start_s = 0.7 * self.start_s + 0.3 * (time.monotonic() - begun)
            delay = self.luck.uniform(0, 0.5 * self.work_s)
        if kind == "late":
            await self._while(process, lambda: self._count(run) < self.records)
            delay = self.luck.uniform(0, 0.8 if had < self.records else 1.2 * self.start_s)
        try:
            await asyncio.wait_for(process.wait(), delay)
        except TimeoutError:
            pass
        else:
            await self._ended(process, run.name)
            return False
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it came to its end in the last moment
            await self._ended(process, run.name)
            return False
        await process.wait()
        now = self._count(run)
        if had == self.records:
            phase = "finished"
        elif now == self.records:
            phase = "scoring"
        elif now == had:
            phase = "starting"
        else:
            phase = "resuming" if had else "running"
        self.tally.kills[phase] += 1
        self._compared(run, known, phase)
        if known and self.luck.random() < 0.12:
            self._power_cut(run, known)
        return True

    @staticmethod
    async def _while(process: asyncio.subprocess.Process, condition: Callable[[], bool]) -> None:
        while process.returncode is None and condition():  # noqa: ASYNC110 - only the file tells how far a process is
            await asyncio.sleep(0.005)

    def _power_cut(self, run: Path, known: dict[Key, str]) -> None:
        """Take away some of the last bytes, or put zero bytes there; what stood before them must stay."""
        path = run / "records.jsonl"
        content = path.read_bytes()
        cut = self.luck.randint(max(0, len(content) - 5000), len(content) - 1)
        path.write_bytes(
            content[:cut] + b"\0" * self.luck.choice((0, 0, 100, len(content) - cut, 4096))
        )
        known.clear()
        known.update(_whole(content[:cut]))
        self.tally.power_cuts += 1
        self.tally.kept["power cut"] += len(known)

    def _compared(self, run: Path, known: dict[Key, str], phase: str) -> None:
        """Compare the finished records with those known before, which are then brought up to date."""
        lines = finished_records(run)
        now = dict(lines)
        for key in known.keys() - now.keys():
            self._wrong(phase, "lost", f"{run.name} lost {key}")
        for key in known.keys() & now.keys():
            if known[key] != now[key]:
                self._wrong(phase, "different", f"{run.name} has another record of {key}")
        for key, count in Counter(key for key, _ in lines).items():
            if count > 1:
                self._wrong(phase, "doubled", f"{run.name} has {count} records of {key}")
        self.tally.kept[phase] += len(known.keys() & now.keys())
        known.clear()
        known.update(now)

    def _wrong(self, phase: str, what: str, message: str) -> None:
        found = self.tally.found[phase]
        setattr(found, what, getattr(found, what) + 1)
        found.messages.append(message)

    @staticmethod
    def _count(run: Path) -> int:
        try:
            return (run / "records.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    async def _command(self, name: str) -> asyncio.subprocess.Process:
        self.tally.commands += 1
        options = [
            "-m",
            "follower",
            "--base-url",
            self.endpoint.base_url,
            "--out",
            name,
            "--concurrency",
            "8",
        ]
        environment = {**os.environ, "AGROTOOLS_CACHE": str(self.folder / f"cache-{name}")}
        with (self.folder / "stderr").open("wb") as log:
            return await asyncio.create_subprocess_exec(
                *COMMAND, "benchmark", *options, cwd=self.folder, env=environment, stdout=asyncio.subprocess.DEVNULL,
                stderr=log, stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    async def _ended(self, process: asyncio.subprocess.Process, name: str) -> None:
        if await process.wait():
            said = (self.folder / "stderr").read_text(errors="replace")[-2000:]
            self._wrong("at the end", "failed", f"{name} ended with {process.returncode}: {said}")
            if not (self.folder / name / "scores.json").exists():
                raise SystemExit(f"{name} ended with {process.returncode}:\n{said}")


async def measured(folder: Path, kills: int, samples: int, seed: int) -> dict[str, Any]:
    """Run a series of kills in an empty folder; what came of it, as data."""
    started = time.monotonic()
    write_sums(folder / "benchmark", samples)
    follower = ReferenceFollower.of_folder(folder / "benchmark")
    async with serve(follower, latency_s=LATENCY_S) as endpoint:
        killing = Killing(folder, endpoint, samples, seed)
        await killing.series(kills)
    tally = killing.tally
    return {
        "rows": [
            {
                "phase": phase,
                "kills": tally.power_cuts if phase == "power cut" else tally.kills[phase],
                "records_kept": tally.kept[phase],
                **{
                    name: getattr(tally.found[phase], name)
                    for name in ("lost", "different", "doubled")
                },
            }
            for phase in PHASES
        ],
        "runs": tally.runs,
        "commands": tally.commands,
        "records_per_run": killing.records,
        "runs_with_other_scores": sum(found.scores for found in tally.found.values()),
        "commands_that_failed": sum(found.failed for found in tally.found.values()),
        "runs_with_files_left_over": sum(found.left_over for found in tally.found.values()),
        "requests_per_run": round(tally.requests / tally.runs, 1),
        "requests_of_the_undisturbed_run": tally.requests_undisturbed,
        "wrong": sum(found.total for found in tally.found.values()),
        "messages": [message for found in tally.found.values() for message in found.messages],
        "seconds": round(time.monotonic() - started, 1),
    }


def as_table(result: dict[str, Any]) -> str:
    columns = ("phase", "kills", "records_kept", "lost", "different", "doubled")
    rows = [columns, *([str(row[name]) for name in columns] for row in result["rows"])]
    lines = [
        "  ".join(f"{cell:>12}" if at else f"{cell:<12}" for at, cell in enumerate(row))
        for row in rows
    ]
    lines += [
        f"{name.replace('_', ' ')}: {value}"
        for name, value in result.items()
        if name not in ("rows", "messages")
    ]
    return "\n".join([*lines, *result["messages"]])


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Kill evaluations at random moments and count what is lost."
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        result = asyncio.run(measured(Path(folder), options.kills, options.samples, options.seed))
    print(json.dumps(result, indent=2) if options.json else as_table(result))
    raise SystemExit(1 if result["wrong"] else 0)


if __name__ == "__main__":
    main()
