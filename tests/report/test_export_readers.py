"""Exports of runs in the programs that read them, where they are installed (environment ``viewers``)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import agrotools as at
from agrotools.report.exports import write_every_eval_ever, write_inspect_logs

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
MODELS = ["scripted:" + str(GOLDEN / "scripts" / "drawn-react.json"), "baseline:oracle"]


@pytest.fixture(scope="module", params=MODELS, ids=["model", "baseline"])
def run(request, tmp_path_factory):
    return at.evaluate(GOLDEN / "benchmarks" / "drawn", request.param, out=tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.parametrize("images", [False, True])
def test_inspect_reads_the_logs(run, tmp_path, images):
    log = pytest.importorskip("inspect_ai.log", reason="Inspect AI")
    write_inspect_logs(run.path, tmp_path, images=images)
    listed = log.list_eval_logs(str(tmp_path))
    assert len(listed) == len(run.summary.modes)
    for info in listed:
        header = log.read_eval_log(info, header_only=True)
        whole = log.read_eval_log(info, resolve_attachments=True)
        mode = whole.eval.task.rsplit("/", 1)[1]
        assert header.status == whole.status == "success"
        assert len(whole.samples) == len(run.samples(mode)) == len(log.read_eval_log_sample_summaries(info))
        means = {score.name: score.metrics["mean"].value for score in header.results.scores}
        assert means == {name: score.value for name, score in run.mode_scores(mode).items()}
        parts = [p for s in whole.samples for m in s.messages if not isinstance(m.content, str) for p in m.content]
        pictures = [part.image for part in parts if part.type == "image"]
        assert all(picture.startswith("data:image/") for picture in pictures)
        assert bool(pictures) == images
        events = [event for sample in whole.samples for event in sample.events]
        replies = [message for sample in whole.samples for message in sample.messages if message.role == "assistant"]
        assert [event.output.message.text for event in events if event.event == "model"] == [m.text for m in replies]
        assert len([event for event in events if event.event == "tool"]) == sum(
            len(m.tool_calls or ()) for m in replies
        )
        if mode == "end-to-end":
            called = [c.function for s in whole.samples for m in s.messages for c in getattr(m, "tool_calls", 0) or ()]
            assert called == [s.call.tool for r in run.samples(mode) for s in r.trajectory.calls]


def test_every_eval_ever_validates_its_files(run, tmp_path):
    pytest.importorskip("every_eval_ever", reason="Every Eval Ever")
    write_every_eval_ever(run.path, tmp_path, model_id="farm/model", organization="farm", relationship="first_party")
    command = [Path(sys.executable).with_name("every_eval_ever"), "validate", "data/*/*/*/*"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert "2 passed, 0 warning-only, 0 failed" in ended.stdout


def test_mlflow_logs_a_run_to_a_folder(run, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="MLflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tmp_path.as_uri())
    command = [sys.executable, ROOT / "examples" / "log_to_mlflow.py", run.path]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    client = mlflow.MlflowClient(tmp_path.as_uri())
    (logged,) = client.search_runs([client.get_experiment_by_name(run.manifest.benchmark).experiment_id])
    scores = {f"{m}/{name}": s.value for m in run.manifest.modes for name, s in run.mode_scores(m).items()}
    assert {name: logged.data.metrics[name] for name in scores} == scores


def test_wandb_logs_a_run_offline(run, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="Weights & Biases")
    monkeypatch.setenv("WANDB_MODE", "offline")
    command = [sys.executable, ROOT / "examples" / "log_to_wandb.py", run.path]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    scores = {f"{m}/{name}": s.value for m in run.manifest.modes for name, s in run.mode_scores(m).items()}
    shown = dict(re.findall(r"^wandb: +(\S+/agrotools\.\w+) +([\d.]+)$", ended.stderr, re.MULTILINE))
    assert len(shown) >= 5  # long summaries are cut short
    assert {name: float(value) for name, value in shown.items()} == pytest.approx(
        {name: scores[name] for name in shown}, abs=1e-4
    )
    (path,) = tmp_path.glob("wandb/offline-run-*/files/media/table/samples_*.table.json")
    table, frame = json.loads(path.read_text()), run.to_pandas()
    assert table["columns"] == list(frame.columns)
    assert [row[0] for row in table["data"]] == list(frame[frame.columns[0]])
