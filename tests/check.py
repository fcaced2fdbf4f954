"""The whole check: style, types, import direction, tests. Runs every part, then fails if one failed.

python tests/check.py [pytest arguments]
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def main() -> int:
    pytest = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", *sys.argv[1:]]
    parts = [
        ("style", [sys.executable, "-m", "ruff", "check", "."]),
        ("format", [sys.executable, "-m", "ruff", "format", "--check", "."]),
        ("types", [str(BIN / "basedpyright"), "--pythonpath", sys.executable]),
        ("import direction", [str(BIN / "lint-imports")]),
        ("structure", [sys.executable, "performance/structure.py", "--check"]),
        ("tests", pytest),
    ]
    failed: list[str] = []
    for name, command in parts:
        started = time.monotonic()
        print(f"== {name}: {' '.join(command[1:] if command[0] == sys.executable else command)}", flush=True)
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            failed.append(name)
        print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)
    # The outcome of pytest stays the last thing that a reader of the log looks for.
    print(f"failed: {', '.join(failed)}" if failed else "everything passed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
