"""Run tests on other versions than those of your environment. Needs nothing but ``python3.X`` on PATH and an index.

python tests/versions.py 3.11 3.13 lowest [-- pytest arguments]

``3.X`` installs the newest dependencies for that Python. ``lowest`` installs the lowest versions that pyproject.toml
declares, for the oldest Python. Each gets an environment of its own below ``.versions``, which stays for the next
time. The unit tests run (``-m unit``) where no pytest arguments are given.
"""

import re
import shutil
import subprocess
import sys
import tomllib
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
    name = f"python{OLDEST if version == 'lowest' else version}"
    interpreter = shutil.which(name)
    if interpreter is None:
        print(f"there is no {name} on PATH")
        return False
    folder = ENVIRONMENTS / version
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[test]"]
    if version == "lowest":
        constraints = folder / "lowest.txt"
        constraints.write_text("".join(f"{each}\n" for each in lowest_versions()))
        install += ["--constraint", constraints]
    tests = [python, "-m", "pytest", "-q", "-n", "2", *arguments]
    return all(subprocess.run(command, cwd=ROOT, check=False).returncode == 0 for command in (install, tests))


def lowest_versions() -> list[str]:
    """The dependencies of the package itself as pip constraints, each at its lowest declared version."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [re.sub(r"^([\w.-]+)>=([\w.]+).*$", r"\1==\2", each) for each in declared]


if __name__ == "__main__":
    sys.exit(main())
