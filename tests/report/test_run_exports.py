"""Exports of runs, checked without the programs that read them: for those, see test_export_readers.py."""

import json
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import agrotools as at
from agrotools.cli.main import app
from agrotools.core import RunStoreError, UsageError
from agrotools.report.exports import write_every_eval_ever, write_inspect_logs
from agrotools.report.transcript import write_scores, write_tables

pytestmark = pytest.mark.process
GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in all modes, with tool calls, errors, artifacts and prompts."""
    script = GOLDEN / "scripts" / "drawn-react.json"
    out = tmp_path_factory.mktemp("runs") / "run"
    return at.evaluate(GOLDEN / "benchmarks" / "drawn", f"scripted:{script}", limit=3, out=out)


@pytest.fixture(scope="module")
def logs(run, tmp_path_factory):
    paths = write_inspect_logs(run.path, tmp_path_factory.mktemp("logs"), images=True)
    return {path.stem.rsplit("_", 1)[1]: zipfile.ZipFile(path) for path in paths}


def part(log, name):
    return json.loads(log.read(name))


def samples(log):
    return [part(log, name) for name in log.namelist() if name.startswith("samples/")]


def test_each_mode_is_a_log_with_scores_and_calls_that_are_answered_in_order(run, logs, tmp_path):
    assert set(logs) == {"no-tool", "step-by-step", "end-to-end"}
    for mode, log in logs.items():
        means = {s["name"]: s["metrics"]["mean"]["value"] for s in part(log, "header.json")["results"]["scores"]}
        assert means == {name: score.value for name, score in run.mode_scores(mode).items()}
        assert len(samples(log)) == len(part(log, "summaries.json")) == len(run.samples(mode))
    for sample in samples(logs["end-to-end"]):
        calls = [call["id"] for message in sample["messages"] for call in message.get("tool_calls", ())]
        answers = [message["tool_call_id"] for message in sample["messages"] if message["role"] == "tool"]
        assert calls == answers
        assert len(set(calls)) == len(calls)
        record = next(each for each in run[sample["id"]].records if each.mode == "end-to-end")
        assert len(calls) == len(record.trajectory.calls)
        assert sample["messages"][0]["role"] == "system"
    shown = [sample["attachments"] for sample in samples(logs["end-to-end"])]
    assert all(url.startswith("data:image/") for attachments in shown for url in attachments.values())
    assert all(shown)
    for path in write_inspect_logs(run.path, tmp_path):
        assert not any(sample["attachments"] for sample in samples(zipfile.ZipFile(path)))


def test_a_run_without_stored_prompts_shows_questions_and_pictures_of_the_benchmark(tmp_path):
    made = at.evaluate(
        GOLDEN / "benchmarks" / "drawn", "baseline:oracle", mode="end-to-end", limit=1, out=tmp_path / "r"
    )
    (path,) = write_inspect_logs(made.path, tmp_path / "logs", images=True)
    (sample,) = samples(zipfile.ZipFile(path))
    assert sample["metadata"]["termination"] == "answered"
    content = sample["input"][0]["content"]
    assert content[0]["text"].startswith(made.samples()[0].sample.query)
    assert content[1]["type"] == "image"


def test_invalid_samples_are_errors_of_a_log_and_no_lines_of_every_eval_ever(tmp_path):
    class Broken:
        async def act(self, view, history):
            raise ZeroDivisionError("division by zero")

    with pytest.raises(at.InvalidRunError):
        at.evaluate(GOLDEN / "benchmarks" / "drawn", Broken(), mode="no-tool", limit=2, out=tmp_path / "run")
    (path,) = write_inspect_logs(tmp_path / "run", tmp_path / "logs")
    log = zipfile.ZipFile(path)
    assert part(log, "header.json")["results"]["completed_samples"] == 0
    assert all("division by zero" in sample["error"]["message"] for sample in samples(log))
    (aggregate,) = write_every_eval_ever(tmp_path / "run", tmp_path, model_id="a/b")
    assert "detailed_evaluation_results" not in json.loads(aggregate.read_text())


def test_every_eval_ever_has_metrics_with_intervals_and_a_line_per_sample_and_mode(run, tmp_path):
    access = {"deployment_type": "self_deployed", "model_availability": "open_weights"}
    aggregate, lines = write_every_eval_ever(
        run.path, tmp_path, model_id="farm/model", organization="farm", relationship="first_party", **access
    )
    assert aggregate.parent == tmp_path / "data" / run.manifest.benchmark / "farm" / "model"
    data = json.loads(aggregate.read_text())
    scores = {result["evaluation_result_id"]: result["score_details"]["score"] for result in data["evaluation_results"]}
    assert scores == {f"{m}/{name}": s.value for m in run.manifest.modes for name, s in run.mode_scores(m).items()}
    assert data["model_info"]["additional_details"] == access
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(rows) == data["detailed_evaluation_results"]["total_rows"] == run.valid
    assert {row["interaction_type"] for row in rows} == {"single_turn", "agentic"}
    calls = [c for row in rows for m in row["messages"] or () for c in m.get("tool_calls", ())]
    assert calls
    assert all(isinstance(value, str) for call in calls for value in call["arguments"].values())
    with pytest.raises(UsageError, match="does not name a developer and a model"):
        write_every_eval_ever(run.path, tmp_path, model_id="model")


def test_parquet_has_a_row_per_sample_and_per_step(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="extra build")
    first, second = (parquet.read_table(path).to_pylist() for path in write_tables(run.path, tmp_path))
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
            values = [row["value"] for row in rows if (row["mode"], row["metric"]) == (mode, metric)]
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


def test_the_command_names_what_it_wrote_and_what_opens_it(run, tmp_path):
    assert "inspect view --log-dir" in exported(run.path, "--format", "inspect", "--out", tmp_path)
    shown = exported(run.path, "--format", "eee", "--model-id", "a/b", "--out", tmp_path)
    assert "every_eval_ever validate" in shown
    assert "samples.parquet" in exported(run.path, "--format", "parquet", "--out", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        exported(run.path, "--format", "inspect", "--out", tmp_path / "file" / "logs")
    with pytest.raises(RunStoreError, match="not a run folder"):
        exported(tmp_path, "--format", "inspect")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "parquet", "--images"], "--images is not for parquet"),
        (["--format", "inspect", "--model-id", "a/b"], "options of Every Eval Ever are not for inspect"),
    ],
)
def test_options_of_another_format_are_refused(run, arguments, message):
    with pytest.raises(UsageError, match=message):
        exported(run.path, *arguments)
