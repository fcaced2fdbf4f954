"""A benchmark of somebody else's package: listed, run, scored and shown as if pip had installed it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import run_command
from support.installed import installed

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the package ``ripeness`` is installed."""
    root = tmp_path_factory.mktemp("plug-in")
    shutil.copytree(EXAMPLES / "ripeness", root / "ripeness")
    return installed(root / "ripeness", root / "ripeness" / "src", root / "cache")


def ran(environment: dict[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agrotools", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_it_is_listed_and_its_counts_are_checked(
    environment: dict[str, str], tmp_path: Path
) -> None:
    listed = ran(environment, tmp_path, "benchmarks", "list", "--json")
    assert "ripeness" in [each["name"] for each in json.loads(listed.stdout)], listed.stderr
    checked = ran(environment, tmp_path, "benchmarks", "check", "ripeness", "--json")
    assert json.loads(checked.stdout)["counts"][0]["here"] == 3, checked.stderr


def test_its_slot_scorer_metric_tool_and_report_are_used_and_without_it_its_run_is_refused(
    environment, tmp_path
):
    done = ran(
        environment,
        tmp_path,
        "eval",
        "ripeness",
        "-m",
        "baseline:oracle",
        "--details",
        "--out",
        "run",
    )
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "ripeness, end-to-end" in shown
    assert "3 tomatoes graded" in shown
    scores = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))
    metrics = scores["summary"]["modes"]["end-to-end"]["metrics"]
    assert metrics["ripeness.grade"]["overall"]["value"] == 1
    assert "fas" not in metrics
    assert "ripeness, end-to-end" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")

    alone = run_command(
        "score", tmp_path / "run"
    )  # in this process, where the package is not installed
    assert alone.returncode != 0
    assert "ripeness_grade" in alone.stderr
    assert "plug-in" in alone.stderr


def test_its_protocol_asks_a_model(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps(["3"]), encoding="utf-8")
    words = (
        "eval",
        "ripeness",
        "-m",
        "scripted:script.json",
        "--protocol",
        "one-word",
        "--mode",
        "no-tool",
    )
    done = ran(environment, tmp_path, *words, "--out", "run", "--json")
    assert done.returncode == 0, done.stderr
    (summary,) = json.loads(done.stdout)
    assert summary["modes"]["no-tool"]["metrics"]["ripeness.grade"]["overall"][
        "value"
    ] == pytest.approx(1 / 3)
    assert summary["protocol"] == "one-word"
