"""The Space of results and the cards of questions that ``.ci/space`` writes."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from agrotools.report.results import write_result
from support.made_runs import made_sample, right, write_run

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "space"


@pytest.fixture(scope="module")
def space() -> dict[str, Any]:
    if not SCRIPT.exists():
        pytest.skip("no .ci/space: this is not a checkout")
    return runpy.run_path(str(SCRIPT))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    records = [right(made_sample(f"s{at:02}")) for at in range(12)]
    run = write_run(tmp_path / "run", records, benchmark_hash="aa" * 32, model="m-1")
    return write_result(run, tmp_path / "results").parent


def test_a_space_has_its_page_and_the_results_that_it_shows(
    space: dict[str, Any], results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out = tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["space", str(results), str(out)])
    space["main"]()
    space["main"]()  # replaces what an earlier call wrote
    page = (out / "space" / "index.html").read_text(encoding="utf-8")
    assert "m-1" in page
    assert "100.0" in page
    card = (out / "space" / "README.md").read_text(encoding="utf-8")
    assert "sdk: static" in card
    assert "app_file: index.html" in card
    (copied,) = (out / "space" / "results").iterdir()
    assert json.loads(copied.read_text(encoding="utf-8"))["model"] == "m-1"
    assert not (out / "cards").exists()


def test_a_card_of_questions_needs_no_photograph_and_names_no_rows(
    space: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    space["write_question_card"]("field", tmp_path / "card")
    card = (tmp_path / "card" / "README.md").read_text(encoding="utf-8")
    assert "license: other" in card
    assert "parquet" not in card
    assert "agrotools benchmarks get field" in card


def test_without_results_nothing_is_written(
    space: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "none").mkdir()
    monkeypatch.setattr("sys.argv", ["space", str(tmp_path / "none"), str(tmp_path / "out")])
    with pytest.raises(SystemExit, match=r"is not a folder of results .*--format result"):
        space["main"]()
    assert not (tmp_path / "out").exists()
