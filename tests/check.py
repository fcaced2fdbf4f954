"""The whole check: style, types, import direction, tests. Runs every part, then fails if one failed.

python tests/check.py [--coverage] [--update-snapshots] [pytest arguments]

--coverage           print the share of executed lines by package, and write the functions that nothing executes
--update-snapshots   write tests/cli/snapshots anew instead of comparing with it
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PYTHON = [sys.executable, "-m"]
PARTS = {
    "style": [*PYTHON, "ruff", "check", "."],
    "format": [*PYTHON, "ruff", "format", "--check", "."],
    "types": [str(BIN / "basedpyright"), "--pythonpath", sys.executable],
    "import direction": [str(BIN / "lint-imports")],
    "structure": [sys.executable, "performance/structure.py", "--check"],
}
PYTEST = ["pytest", "-n", "3", "--dist", "worksteal"]  # on two cores: a third of the time tests wait


@dataclass
class Check:
    """A part that runs beside the others. Its output is kept until its turn comes."""

    name: str
    command: list[str]
    output: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(self.command, cwd=ROOT, stdout=self.output, stderr=subprocess.STDOUT)

    def finish(self) -> bool:
        """Wait, print the output, and say whether it passed."""
        failed = self.process.wait() != 0
        self.output.seek(0)
        print(f"== {self.name}", self.output.read().decode(errors="replace").strip(), sep="\n", flush=True)
        return not failed


def main() -> int:
    arguments = sys.argv[1:]
    coverage = "--coverage" in arguments
    if "--update-snapshots" in arguments:
        os.environ["AGROTOOLS_UPDATE_SNAPSHOTS"] = "1"
    # Hundreds of tests start an interpreter, which would compile the package anew each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    arguments = [each for each in arguments if each not in ("--coverage", "--update-snapshots")]
    # Types take two minutes of one processor, and many tests wait for servers: they run beside each other.
    beside = [Check(name, command) for name, command in PARTS.items()]
    command = [*PYTHON, *(["coverage", "run", "-m"] if coverage else []), *PYTEST, *arguments]
    print(f"== tests: {' '.join(command[1:])}", flush=True)
    started = time.monotonic()
    tests = subprocess.run(command, cwd=ROOT, check=False).returncode
    print(f"== tests: {time.monotonic() - started:.0f} s", flush=True)
    if coverage:
        print_coverage()
    failed = [check.name for check in beside if not check.finish()] + ["tests"] * (tests != 0)
    print(f"failed: {', '.join(failed)}" if failed else "everything passed", flush=True)
    return bool(failed)


def print_coverage() -> None:
    """Print the share of executed lines by package; write the functions without one to ``coverage.txt``."""
    for step in (["combine", "-q"], ["json", "-q", "-o", "coverage.json"]):
        subprocess.run([*PYTHON, "coverage", *step], cwd=ROOT, check=True)
    files = json.loads((ROOT / "coverage.json").read_text())["files"]
    executed, lines = Counter[str](), Counter[str]()
    idle: list[str] = []
    for path, report in sorted(files.items()):
        package = "/".join(Path(path).parts[2:3])
        executed[package] += report["summary"]["covered_lines"]
        lines[package] += report["summary"]["num_statements"]
        for name, function in report["functions"].items():
            if name and function["summary"]["num_statements"] and not function["summary"]["covered_lines"]:
                idle.append(f"{path}: {name}")
    print(f"{'package':20} {'lines':>7} {'executed':>9}")
    for package in sorted(lines, key=lambda name: executed[name] / max(1, lines[name])):
        print(f"{package:20} {lines[package]:7} {executed[package] / max(1, lines[package]):9.1%}")
    (ROOT / "coverage.txt").write_text("".join(f"{each}\n" for each in idle))
    print(f"{len(idle)} functions that nothing executes: coverage.txt", flush=True)


if __name__ == "__main__":
    sys.exit(main())
