"""The scripts that measure speed still import: nothing else would tell that a name they use has moved."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "performance"
SCRIPTS = sorted([*FOLDER.glob("*.py"), *(FOLDER / "throughput_clients").glob("*.py")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(script.parent))
    try:
        runpy.run_path(str(script), run_name="imported")
    except ModuleNotFoundError as error:
        if str(error.name).startswith("agrotools"):
            raise
        pytest.skip(f"{error.name} is not installed")
