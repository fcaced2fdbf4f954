"""The whole check: style, types, import direction, tests. Runs every part, then fails if one failed.

It needs the extra ``dev``: pip install -e ".[dev]"

python tests/check.py [--coverage] [--update-snapshots] [pytest arguments]

--coverage           print the share of executed lines by file, the least executed ones first
--update-snapshots   write tests/engine/cli/snapshots anew instead of comparing with it
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
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
}
PYTEST = [
    "pytest",
    "-n",
    "4",
    "--dist",
    "worksteal",
]  # on two cores: half of the time tests wait, for servers, browsers and processes that they start


@dataclass
class Check:
    """A part that runs beside the others. Its output is kept until its turn comes."""

    name: str
    command: list[str]
    output: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, stdout=self.output, stderr=subprocess.STDOUT
        )

    def finish(self) -> bool:
        """Wait, print the output, and say whether it passed."""
        failed = self.process.wait() != 0
        self.output.seek(0)
        print(
            f"== {self.name}",
            self.output.read().decode(errors="replace").strip(),
            sep="\n",
            flush=True,
        )
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
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, processor = time.monotonic() - started, used.ru_utime + used.ru_stime
    print(f"== tests: {seconds:.0f} s, {processor:.0f} s of processor time", flush=True)
    for step in (
        (["combine", "-q"], ["report", "--sort=cover", "--skip-covered"]) if coverage else ()
    ):
        subprocess.run([*PYTHON, "coverage", *step], cwd=ROOT, check=True)
    failed = [check.name for check in beside if not check.finish()] + ["tests"] * (tests != 0)
    print(f"failed: {', '.join(failed)}" if failed else "everything passed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
