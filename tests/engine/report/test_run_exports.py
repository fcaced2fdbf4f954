"""Exports of runs as tables."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import agrotools as at
from agrotools.cli.main import app
from agrotools.core import RunStoreError
from agrotools.report.exports import write_scores, write_tables

pytestmark = pytest.mark.process
GOLDEN = Path(__file__).resolve().parents[2] / "golden"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in all modes, with tool calls, errors, artifacts and prompts."""
    script = GOLDEN / "scripts" / "drawn-react.json"
    out = tmp_path_factory.mktemp("runs") / "run"
    return at.evaluate(GOLDEN / "benchmarks" / "drawn", f"scripted:{script}", limit=3, out=out)


def test_parquet_has_a_row_per_sample_and_per_step(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="extra build")
    first, second = (
        parquet.read_table(path).to_pylist() for path in write_tables(run.path, tmp_path)
    )
    assert len(first) == len(run)
    frame = {(row["mode"], row["sample"]): row for row in run.rows()}
    for row in first:
        expected = frame[row["mode"], row["sample"]]
        assert {name: row[name] for name in expected if name != "answer"} == {
            name: value for name, value in expected.items() if name != "answer"
        }
    n_steps = sum(len(r.trajectory.steps if r.trajectory else r.actions) for r in run.samples())
    assert len(second) == n_steps
    assert any(json.loads(row["arguments"]) for row in second if row["arguments"])


def test_scores_are_one_flat_table(run, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    lines, table = write_scores(run.path, tmp_path)
    rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    assert parquet.read_table(table).to_pylist() == rows
    for mode in ("no-tool", "step-by-step", "end-to-end"):
        for metric, score in run.mode_scores(mode).items():
            values = [
                row["value"] for row in rows if (row["mode"], row["metric"]) == (mode, metric)
            ]
            assert sum(values) / len(values) == pytest.approx(score.value), metric
    whole = [row for row in rows if row["metric"] == "fas"]
    slots = [row for row in rows if row["metric"] == "slot"]
    assert sum(row["n"] for row in whole) == len(slots)
    assert all(row["slot"] and json.loads(row["how"])["version"] for row in slots)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert write_scores(run.path, tmp_path / "plain") == [tmp_path / "plain" / "scores.jsonl"]


def exported(*arguments):
    result = CliRunner().invoke(app, ["export", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_the_command_names_what_it_wrote(run, tmp_path):
    assert "samples.parquet" in exported(run.path, "--format", "parquet", "--out", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        exported(run.path, "--format", "scores", "--out", tmp_path / "file" / "tables")
    with pytest.raises(RunStoreError, match="not a run folder"):
        exported(tmp_path, "--format", "scores")
