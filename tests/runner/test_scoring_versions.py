"""Runs and scores of another scoring version: readable, marked, never overwritten unasked, never mixed.

``scoring_version_1`` was written by the last program of version 1: a benchmark with a slot of every type, and a run of
a script on it.
"""

import io
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agrotools.benchmarks import load_folder
from agrotools.cli.main import app
from agrotools.core import ExactSlot, ScoringVersionError
from agrotools.report.html import build_report
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.records import iter_records
from agrotools.runner.rescore import stored_version
from agrotools.runner.store import RunStore, read_manifest
from agrotools.scoring import Summary, score_record
from agrotools.scoring.correlations import with_correlations
from agrotools.scoring.metrics import SCORING_VERSION
from support.made_runs import made_sample, right, write_run

OLD = Path(__file__).parent / "scoring_version_1"
OLD_SCORES = (OLD / "run" / "scores.json").read_bytes()


@pytest.fixture
def old_run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD / "run", tmp_path / "old"))


@pytest.fixture
def new_run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "new", [right(made_sample(f"s{number}")) for number in range(3)])


def agrotools(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def error_of(done: Result) -> BaseException:
    assert done.exception is not None
    return done.exception


def test_records_of_an_old_run_load_and_score_with_slots_of_every_type(old_run: Path):
    records = list(iter_records(old_run))
    types = {slot.type for record in records for slot in record.sample.answer}
    assert types == {
        "exact", "boolean", "choice_set", "file", "tolerance", "open_text", "plot", "options", "reference_text",
        "keywords", "reference_texts", "image_calls", "sub_tasks",
    }  # fmt: skip
    (exact,) = (record.sample.answer[0] for record in records if record.sample.id == "exact")
    assert isinstance(exact, ExactSlot)
    assert set(exact.choices) == {"fall armyworm", "cotton bollworm", "beet armyworm"}
    assert exact.names == ("fall armyworm", "Spodoptera frugiperda", "FAW")
    scored = [record.sample.id for record in records if score_record(record)]
    assert {"exact", "number", "boolean", "choice_set", "file", "tolerance", "open_text", "plot"} <= {*scored}
    assert load_folder(OLD / "benchmark").sample("exact").answer == (exact,)


def test_stored_scores_of_an_old_run_are_shown_marked_and_left_alone(old_run: Path):
    done = agrotools("score", old_run)
    assert done.exit_code == 0, done.output
    assert "scored by scoring version 1;" in done.stdout
    assert "--rescore" in done.stdout
    assert (old_run / "scores.json").read_bytes() == OLD_SCORES
    (shown,) = json.loads(agrotools("score", old_run, "--json").stdout)
    stored = json.loads(OLD_SCORES)["summary"]
    assert shown["scoring"] == "1"
    value = shown["modes"]["end-to-end"]["metrics"]["agrotools.fas"]["overall"]["value"]
    assert value == stored["modes"]["end-to-end"]["metrics"]["agrotools.fas"]["overall"]["value"]


def test_stored_scores_are_shown_whatever_the_present_scorers_say(old_run: Path):
    changed = OLD_SCORES.replace(b'"value":0.8181818181818182', b'"value":0.1234', 1)
    assert changed != OLD_SCORES
    (old_run / "scores.json").write_bytes(changed)
    assert "12.3" in agrotools("score", old_run).stdout
    assert "12.3" not in agrotools("score", old_run, "--rescore").stdout


def test_the_report_of_an_old_run_is_marked(old_run: Path):
    build_report([old_run], old_run / "report.html")
    page = (old_run / "report.html").read_text(encoding="utf-8")
    assert "scored by scoring version 1;" in page
    assert f"The samples below are scored by version {SCORING_VERSION}." in page
    assert (old_run / "scores.json").read_bytes() == OLD_SCORES


def test_a_sample_of_an_old_run_is_explained_by_the_present_version_and_says_so(old_run: Path):
    said = f"scored by version {SCORING_VERSION}; the scores stored with the run are of version 1"
    assert said in agrotools("explain", old_run, "exact").stdout
    agrotools("score", old_run, "--rescore")
    assert said not in agrotools("explain", old_run, "exact").stdout


def test_rescoring_keeps_the_old_scores(old_run: Path):
    done = agrotools("score", old_run, "--rescore")
    assert done.exit_code == 0, done.output
    assert (old_run / "scores-v1.json").read_bytes() == OLD_SCORES
    assert stored_version(old_run) == SCORING_VERSION
    again = agrotools("score", old_run)
    assert "scored by scoring version 1" not in again.stdout
    assert "scores it again" not in again.stdout
    assert (old_run / "scores-v1.json").read_bytes() == OLD_SCORES
    assert read_manifest(old_run).scoring == "1"


def test_a_run_of_now_names_its_version(new_run: Path):
    done = agrotools("score", new_run)
    assert "scoring version" not in done.stdout
    assert stored_version(new_run) == SCORING_VERSION


@pytest.mark.parametrize("command", ["score", "report"])
def test_scores_of_different_versions_are_not_set_side_by_side(
    old_run: Path, new_run: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    error = error_of(agrotools(command, new_run, old_run))
    assert isinstance(error, ScoringVersionError)
    assert f"1 and {SCORING_VERSION}" in error.message
    assert "--rescore" in (error.hint or "")
    assert not (tmp_path / "report.html").exists()
    assert agrotools("score", old_run, "--rescore").exit_code == 0
    assert agrotools(command, new_run, old_run).exit_code == 0


def test_correlations_over_runs_refuse_different_versions():
    with pytest.raises(ScoringVersionError):
        with_correlations([Summary(scoring="1"), Summary(scoring="2"), Summary(scoring="1")])


@pytest.mark.parametrize("option", [["--judge", "m"], ["--paper"], ["--allow-invalid"], ["--with", "rouge-l-lexeval"]])
def test_what_needs_scoring_anew_is_refused_of_stored_scores(old_run: Path, option: list[str]):
    assert "holds scores of scoring version 1" in str(error_of(agrotools("score", old_run, *option)))
    assert (old_run / "scores.json").read_bytes() == OLD_SCORES


def test_a_run_of_an_old_version_is_not_continued(old_run: Path):
    before = (old_run / "records.jsonl").read_bytes()
    old = read_manifest(old_run)
    with pytest.raises(ScoringVersionError, match=f"begun under scoring version 1.*version {SCORING_VERSION}"):
        RunStore(old_run, old.model_copy(update={"scoring": SCORING_VERSION}))
    assert (old_run / "records.jsonl").read_bytes() == before
    with RunStore(old_run, old) as store:
        assert len(store.finished) == 14


def test_a_new_run_stores_the_version_it_was_begun_under(tmp_path: Path):
    benchmark = Path(shutil.copytree(OLD / "benchmark", tmp_path / "benchmark"))
    lines = (benchmark / "samples.jsonl").read_text().splitlines(keepends=True)
    with_files = [line for line in lines if '"type": "file"' not in line]  # it has none that its answer could name
    (benchmark / "samples.jsonl").write_text("".join(with_files))
    config = EvalConfig(benchmark=str(benchmark), model="baseline:echo", mode="no-tool", out=tmp_path / "run")
    evaluate(config, io.StringIO())
    assert read_manifest(tmp_path / "run").scoring == SCORING_VERSION


def test_a_benchmark_of_the_first_form_validates_with_a_remark(tmp_path: Path):
    said = json.loads(agrotools("validate", OLD / "benchmark", "--json").stdout)
    assert any("no canary" in remark for remark in said["remarks"])
    assert not any(fault["code"] == "schema" for fault in said["faults"])
