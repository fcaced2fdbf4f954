"""Every fault of endpoint, proxy and settings against ``agrotools eval``: what does each become?

Tool of developers; ``tests/performance/test_faults.py`` runs a few rows.

    python performance/faults.py
    python performance/faults.py --only queue --only 'key_*' --json faults.json

For each row of ``fault_table.py`` an endpoint on this machine, which answers rightly but for the fault, is evaluated on
a dozen samples. *wrong*: the fault was scored against the model, or nobody was told of it; *slow*: it took longer than
the row allows; else *ok*. Exits 1 if anything is wrong. A few rows run at a time, each in a process of its own.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import tomli_w
from fault_endpoint import serving
from fault_table import FAULTS, SAMPLES, Fault
from PIL import Image

from support.sums_benchmark import write_sums

_KILLED_AFTER_S = 150.0
_WIRE = {"timeout_s": 3.0, "stall_s": 1.0, "attempts": 3, "retry_wall_s": 20.0}


@dataclass
class Outcome:
    """What a run became."""

    name: str
    exit: int | None = None
    """None: it did not end by itself."""
    samples: list[str] = field(default_factory=list)
    """By sample: ``right``, ``wrong``, ``invalid``, ``missing``, ``read`` (steps), or how it was terminated."""
    ends: dict[str, int] = field(default_factory=dict)
    score: float | None = None
    """Percent that a table shows: of the samples that count."""
    invalid: int = 0
    requests: int = 0
    seconds: float = 0.0
    said: str = ""
    """The first line of stderr that tells of trouble."""
    reasons: list[str] = field(default_factory=list)
    tables: bool = False
    told: bool = False
    """Whether a line tells of trouble, above the tables or in them too."""
    verdict: str = ""
    why: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", help="name of a fault, or a pattern; several times"
    )
    parser.add_argument("--json", type=Path, help="write the outcomes there")
    parser.add_argument("--jobs", type=int, default=6, help="runs at a time")
    options = parser.parse_args()
    names = [
        name
        for name in FAULTS
        if not options.only or any(fnmatchcase(name, given) for given in options.only)
    ]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        outcomes = run_all(names, Path(scratch), options.jobs)
    print_table(outcomes)
    counts = Counter(outcome.verdict for outcome in outcomes)
    print(
        f"\n{len(outcomes)} faults in {time.monotonic() - started:.0f} s: "
        + ", ".join(f"{n} {v}" for v, n in counts.items())
    )
    if options.json:
        options.json.write_text(
            json.dumps([asdict(outcome) for outcome in outcomes], indent=1, ensure_ascii=False)
        )
    sys.exit(bool(counts["wrong"]))


def run_all(names: list[str], scratch: Path, jobs: int) -> list[Outcome]:
    """The outcomes of these faults, in their order."""
    os.environ |= {
        "AGROTOOLS_CACHE": str(scratch / "cache"),
        "OPENAI_API_KEY": "sk-faults",
        "COLUMNS": "120",
    }
    os.environ.pop("OPENAI_BASE_URL", None)
    write_sums(scratch / "sums", SAMPLES)
    with_pictures(write_sums(scratch / "sums-pictures", SAMPLES))
    _import_all(scratch)
    waiting, running = list(reversed(names)), dict[int, tuple[BaseProcess, float]]()
    fork = get_context("fork")
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop()
            process = fork.Process(target=_run, args=(FAULTS[name], scratch))
            process.start()
            running[process.sentinel] = process, time.monotonic()
        ended = connection.wait(list(running), timeout=1.0)
        for sentinel, (process, began) in list(running.items()):
            if sentinel not in ended and time.monotonic() - began > _KILLED_AFTER_S:
                process.kill()
            if not process.is_alive():
                process.join()
                del running[sentinel]
    return [judge(FAULTS[name], read_outcome(name, scratch / name)) for name in names]


def with_pictures(folder: Path) -> None:
    """Give every sample of a benchmark a picture."""
    Image.new("RGB", (32, 32), "green").save(folder / "plot.png")
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    file = {"name": "plot.png", "path": "plot.png", "kind": "image"}
    (folder / "samples.jsonl").write_text(
        "".join(json.dumps({**line, "files": [file]}) + "\n" for line in lines)
    )


def _import_all(scratch: Path) -> None:
    """Bring in whatever an evaluation needs, so that the processes made of this one need not."""
    import agrotools.runner.judging
    from agrotools.models import openai_compatible

    assert agrotools.runner.judging
    assert openai_compatible
    Command(
        scratch / "warm",
        ["eval", str(scratch / "sums"), "-m", "baseline:constant", "--mode", "no-tool"],
    ).run()


@dataclass
class Command:
    """The ``agrotools`` command in this process; what it prints goes to files in ``folder``."""

    folder: Path
    words: list[str]

    def run(self) -> int:
        """Its exit code."""
        from agrotools.cli.main import main as command

        self.folder.mkdir(parents=True)
        words, sys.argv = sys.argv, ["agrotools", *self.words, "--out", str(self.folder / "run")]
        out, err = ((self.folder / name).open("w", buffering=1) for name in ("stdout", "stderr"))
        with out, err, redirect_stdout(out), redirect_stderr(err):
            try:
                command()
            except SystemExit as ended:
                return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
            finally:
                sys.argv = words
        return 0


def _run(fault: Fault, scratch: Path) -> None:
    """Evaluate against the fault's endpoint and write down how that went (in a process of its own)."""
    folder = scratch / fault.name
    config = scratch / f"{fault.name}.toml"
    config.write_text(
        tomli_w.dumps({**_WIRE, **fault.options, "mode": fault.mode, "protocol": fault.protocol})
    )
    with serving(fault.act, fault.meets) as endpoint:
        words = [
            "eval",
            str(scratch / ("sums-pictures" if fault.pictures else "sums")),
            "--model",
            "m",
        ]
        words += [
            "--base-url",
            fault.address(endpoint.base_url),
            "--config",
            str(config),
            "--backend",
            "recorded",
        ]
        started = time.monotonic()
        code = Command(folder, words).run()
        seconds = time.monotonic() - started
        ended = {"exit": code, "seconds": round(seconds, 2), "requests": endpoint.requests}
    (folder / "ended.json").write_text(json.dumps(ended))


def read_outcome(name: str, folder: Path) -> Outcome:
    """What the folder of a :class:`Command` shows."""
    from agrotools.core import Halt, Record, Unparseable
    from agrotools.scoring.slots import outcome_scores

    outcome = Outcome(name)
    if (folder / "ended.json").exists():
        for key, value in json.loads((folder / "ended.json").read_text()).items():
            setattr(outcome, key, value)
    records = folder / "run" / "records.jsonl"
    lines = records.read_bytes().splitlines() if records.exists() else []
    ends = dict.fromkeys((f"sum-{number:04d}" for number in range(SAMPLES)), "missing")
    for record in map(Record.model_validate_json, lines):
        if record.invalid is not None:
            ends[record.sample.id] = "invalid"
            outcome.reasons.append(record.invalid)
        elif record.trajectory is None:
            faults = [
                action for action in record.actions or () if isinstance(action, Halt | Unparseable)
            ]
            ends[record.sample.id] = (
                getattr(faults[0], "termination", "unparseable") if faults else "read"
            )
            outcome.reasons += [action.reason for action in faults]
        elif record.trajectory.termination != "answered":
            ends[record.sample.id] = record.trajectory.termination
            outcome.reasons.append(f"{record.trajectory.termination}: {record.trajectory.reason}")
        else:
            (fas,) = (score.value for score in outcome_scores(record) if score.metric == "fas")
            ends[record.sample.id] = "right" if fas == 1 else "wrong"
    outcome.samples = list(ends.values())
    outcome.ends = dict(Counter(outcome.samples))
    outcome.invalid = outcome.ends.get("invalid", 0)
    counted = sum(
        count for end, count in outcome.ends.items() if end not in ("invalid", "missing", "read")
    )
    outcome.score = round(100 * outcome.ends.get("right", 0) / counted, 1) if counted else None
    outcome.reasons = list(dict.fromkeys(outcome.reasons))[:3]
    printed, said = (_text(folder / file) for file in ("stdout", "stderr"))
    outcome.tables = "──" in printed
    outcome.said = next(
        (
            line
            for line in said.splitlines()
            if re.search(r"\b(?:error|warning)\b", line, re.IGNORECASE)
        ),
        "",
    )
    outcome.told = bool(outcome.said) or bool(
        re.search(r"\binvalid\b|samples? \(.*\) ended\b", printed, re.IGNORECASE)
    )
    return outcome


def _text(file: Path) -> str:
    return file.read_text(errors="replace").replace("\r", "\n") if file.exists() else ""


def judge(fault: Fault, outcome: Outcome) -> Outcome:
    """Fill in the verdict and why."""
    why = _fault_of(fault, outcome)
    slow = outcome.seconds > fault.limit_s
    outcome.verdict = "wrong" if why else "slow" if slow else "ok"
    outcome.why = why or (f"more than {fault.limit_s:g} s" if slow else "")
    return outcome


def _fault_of(fault: Fault, outcome: Outcome) -> str:
    """What is wrong; empty if nothing is."""
    expected = fault.expected
    if outcome.exit is None:
        return "did not end"
    bad = [
        f"sample {n} became {end}"
        for n, end in enumerate(outcome.samples)
        if n in fault.met and end not in expected.outcomes
    ]
    gave_up = outcome.exit != 0 and "missing" in expected.outcomes
    harmed = [
        f"sample {n}, which met no fault, became {end}"
        for n, end in enumerate(outcome.samples)
        if n not in fault.met and end != "right"
    ]
    alone = fault.met != frozenset(range(SAMPLES))
    if bad or (harmed and (alone or not gave_up)):
        return (bad or harmed)[0] + (
            f" (and {len(bad or harmed) - 1} more)" if len(bad or harmed) > 1 else ""
        )
    if outcome.exit not in expected.exits:
        return f"exit {outcome.exit}" + ("" if outcome.said else ", and not a word")
    if expected.at_once and (outcome.tables or outcome.requests > SAMPLES):
        return "not told at once: " + (
            "a table" if outcome.tables else f"{outcome.requests} requests"
        )
    if expected.warns and not outcome.told:
        return "nobody was told"
    if outcome.exit == 0 and {"invalid", "missing"} & set(outcome.samples):
        return "exit 0 with samples invalid or missing"
    return ""


def print_table(outcomes: list[Outcome]) -> None:
    """One line for each fault."""
    print(
        f"{'fault':34} {'verdict':7} {'score':>5} {'inv':>3} {'exit':>4} {'req':>4} {'s':>5}  ends; why; what was said"
    )
    for outcome in outcomes:
        ends = " ".join(f"{count} {end}" for end, count in outcome.ends.items())
        score = "-" if outcome.score is None else f"{outcome.score:.0f}"
        words = "; ".join(part for part in (ends, outcome.why, outcome.said) if part)
        print(
            f"{outcome.name:34} {outcome.verdict:7} {score:>5} {outcome.invalid:3} {outcome.exit!s:>4}"
            f" {outcome.requests:4} {outcome.seconds:5.1f}  {words[:180]}"
        )


if __name__ == "__main__":
    main()
