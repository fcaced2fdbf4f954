"""The scripts that measure speed still import: nothing else would tell that a name they use has moved."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "performance"
SCRIPTS = sorted([*FOLDER.glob("*.py"), *(FOLDER / "throughput_clients").glob("*.py")])

IMPORT_ALL = """
import runpy, sys
from pathlib import Path

for script in map(Path, sys.argv[1:]):
    sys.path.insert(0, str(script.parent))
    try:
        runpy.run_path(str(script), run_name="imported")
    except ModuleNotFoundError as error:
        if str(error.name).startswith("agrotools"):
            raise
"""


@pytest.mark.process
def test_every_script_imports() -> None:
    """Packages of peers that are not installed are no fault of a script."""
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *map(str, SCRIPTS)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
