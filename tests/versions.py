"""Run tests on other versions than those of your environment. Needs an index of packages; uv downloads missing Pythons.

python tests/versions.py 3.11 3.13 lowest [-- pytest arguments]

``3.X`` installs the newest dependencies for that Python. ``lowest`` installs the lowest versions that pyproject.toml
declares, for the oldest Python. Each gets an environment of its own below ``.versions``, which stays for the next
time; uv, which finds the lowest versions in seconds and pip in no sensible time, gets one, too. The unit tests run
(``-m unit``) where no pytest arguments are given.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".versions"
OLDEST = "3.11"


def main() -> int:
    versions, pytest = sys.argv[1:], ["-m", "unit"]
    if "--" in versions:
        at = versions.index("--")
        versions, pytest = versions[:at], versions[at + 1 :]
    if not versions or any(not re.fullmatch(r"3\.\d+|lowest", each) for each in versions):
        print(__doc__, file=sys.stderr)
        return 2
    failed = [version for version in versions if not run_tests(version, pytest)]
    print(f"failed: {', '.join(failed)}" if failed else "everything passed")
    return bool(failed)


def run_tests(version: str, arguments: list[str]) -> bool:
    """Install the package for a version and run the tests; False where one of these fails."""
    print(f"== {version}", flush=True)
    uv, folder = installed_uv(), ENVIRONMENTS / version
    python = folder / "bin" / "python"
    steps = [] if python.exists() else [[uv, "venv", "--python", OLDEST if version == "lowest" else version, folder]]
    which = ["--resolution", "lowest-direct"] if version == "lowest" else ["--upgrade"]
    steps += [
        [uv, "pip", "install", "--quiet", "--python", python, *which, "--editable", f"{ROOT}[test]"],
        [python, "-m", "pytest", "-q", "-n", "2", *arguments],
    ]
    return all(subprocess.run(step, cwd=ROOT, check=False).returncode == 0 for step in steps)


def installed_uv() -> Path:
    """The uv of ``.versions``, installed if need be."""
    folder = ENVIRONMENTS / "uv"
    if not (folder / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    return folder / "bin" / "uv"


if __name__ == "__main__":
    sys.exit(main())
