"""Run and benchmark folders that 0.1 wrote: they load, and give the scores that were stored with them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from golden_values import HERE, agrotools, differences

from support.report_page import read_report

RUNS = {"drawn-react": "leaf_lesions-002", "gta-lagent": "gta-004", "agrieval": "choice-00000"}
"""Stored runs, and a sample of each."""
FORMER = (
    ".summary.not_as_new: is gone, was []",
    ".summary.no_tool_part.n_schematic: is gone, was 0",
    ".summary.scoring: ",
    ".summary.modes.no-tool.option_places.constant: is new",
    ".summary.modes.end-to-end.n_underivable: is new",
)
"""Empty entries of ``scores.json`` that are no longer written, added ones, and the scoring version, which rose."""

REWORDED = (
    "told of runs step by step alone",
    "what a heap of keywords leaves",
    "calls are made one by one",
    "English text to",
    "unknown argument",
    'is "the only number"',
    ".reading.stance: ",
    ".reading.read_as_denial_by[",
)
"""Parts of explanations in ``scores.json`` that were reworded, or follow the stance model that ships."""


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a stored run."""
    return Path(shutil.copytree(HERE / "runs_0_1" / request.param, tmp_path / request.param))


def without_floors(stored: Any) -> Any:
    """Return scores without those of guesses, which follow the model of guesses that ships."""
    if isinstance(stored, list):
        kept = (each for each in stored if not (isinstance(each, dict) and str(each.get("metric")).endswith("guess")))
        return [without_floors(each) for each in kept]
    if isinstance(stored, dict):
        return {key: without_floors(value) for key, value in stored.items() if not key.endswith("guess")}
    return stored


@pytest.mark.parametrize("run", RUNS, indirect=True)
def test_it_is_scored_as_it_was(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    stored = json.loads((run / "scores.json").read_bytes())
    (run / "scores.json").unlink()
    assert agrotools(monkeypatch, "score", run, "--rescore", "--json") == 0
    assert json.loads(capsys.readouterr().out)
    found = differences(without_floors(stored), without_floors(json.loads((run / "scores.json").read_bytes())))
    assert [
        line for line in found if not line.startswith(FORMER) and not any(words in line for words in REWORDED)
    ] == []


@pytest.mark.parametrize("run", RUNS, indirect=True)
def test_it_is_reported_and_explained(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert agrotools(monkeypatch, "report", run) == 0
    sample = RUNS[run.name]
    assert sample in {row["sample"] for row in read_report(run / "report.html").records}
    assert agrotools(monkeypatch, "explain", run, sample, "--json") == 0
    assert sample in capsys.readouterr().out


def test_its_benchmark_folder_is_valid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert agrotools(monkeypatch, "validate", "benchmarks/drawn") == 0
    assert "no errors" in capsys.readouterr().out
