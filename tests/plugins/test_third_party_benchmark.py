"""A benchmark of somebody else's package: installed into an environment of its own, run, scored and shown."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

import agrotools
from support.command import run_command

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that sees agrotools, into which pip installed the package ``ripeness``."""
    root = tmp_path_factory.mktemp("plug-in")
    venv.create(root / "environment", with_pip=False, symlinks=True)
    python = root / "environment" / "bin" / "python"
    call = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip())
    # What agrotools needs is installed once, for the interpreter of the tests.
    found = [Path(agrotools.__file__).parents[1], sysconfig.get_path("purelib"), *filter(None, map(_site, sys.path))]
    (packages / "tests.pth").write_text("\n".join(dict.fromkeys(map(str, found))), encoding="utf-8")
    shutil.copytree(HERE / "ripeness", root / "ripeness")
    # Without the back-end at hand, pip gets it from the package index.
    isolation = ["--no-build-isolation"] if find_spec("hatchling") else []
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", *isolation]
    done = subprocess.run([*pip, str(root / "ripeness")], capture_output=True, text=True, check=False)
    if done.returncode and not isolation and "ConnectionError" in done.stderr:
        pytest.skip("no package index within reach, and hatchling is not installed")
    assert done.returncode == 0, done.stderr
    return python


def _site(path: str) -> str:
    return path if path.endswith("site-packages") else ""


def ran(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "AGROTOOLS_CACHE": str(folder / "cache"), "COLUMNS": "120"}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [str(python), "-m", "agrotools", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_listed_and_its_counts_are_checked(python: Path, tmp_path: Path) -> None:
    listed = ran(python, tmp_path, "benchmarks", "list", "--json")
    assert "ripeness" in [each["name"] for each in json.loads(listed.stdout)], listed.stderr
    checked = ran(python, tmp_path, "benchmarks", "check", "ripeness", "--json")
    assert json.loads(checked.stdout)["counts"][0]["here"] == 3, checked.stderr


def test_its_slot_scorer_metric_tool_and_report_are_used_and_without_it_its_run_is_refused(python, tmp_path):
    done = ran(python, tmp_path, "eval", "ripeness", "-m", "baseline:oracle", "--details", "--out", "run")
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "Ripeness of tomatoes, end-to-end" in shown
    assert "3 tomatoes graded" in shown
    scores = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))
    metrics = scores["summary"]["modes"]["end-to-end"]["metrics"]
    assert metrics["ripeness.grade"]["overall"]["value"] == 1
    assert "fas" not in metrics
    assert "Ripeness of tomatoes" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")

    alone = run_command("score", tmp_path / "run")  # in this process, where the package is not installed
    assert alone.returncode != 0
    assert "ripeness_grade" in alone.stderr
    assert "plug-in" in alone.stderr


def test_its_protocol_asks_a_model(python: Path, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps(["3"]), encoding="utf-8")
    words = ("eval", "ripeness", "-m", "scripted:script.json", "--protocol", "one-word", "--mode", "no-tool")
    done = ran(python, tmp_path, *words, "--out", "run", "--json")
    assert done.returncode == 0, done.stderr
    (summary,) = json.loads(done.stdout)
    assert summary["modes"]["no-tool"]["metrics"]["ripeness.grade"]["overall"]["value"] == pytest.approx(1 / 3)
    assert summary["protocol"] == "one-word"
