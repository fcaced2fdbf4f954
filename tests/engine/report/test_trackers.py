"""Runs logged to MLflow and Weights & Biases by the examples, where they are installed (environment ``trackers``)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import agrotools as at

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
MODELS = ["scripted:" + str(GOLDEN / "scripts" / "drawn-react.json"), "baseline:oracle"]


@pytest.fixture(scope="module", params=MODELS, ids=["model", "baseline"])
def run(request, tmp_path_factory):
    return at.evaluate(
        GOLDEN / "benchmarks" / "drawn", request.param, out=tmp_path_factory.mktemp("runs") / "run"
    )


def test_mlflow_logs_a_run_to_a_folder(run, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="MLflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tmp_path.as_uri())
    command = [sys.executable, ROOT / "examples" / "log_to_mlflow.py", run.path]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    client = mlflow.MlflowClient(tmp_path.as_uri())
    (logged,) = client.search_runs(
        [client.get_experiment_by_name(run.manifest.benchmark).experiment_id]
    )
    scores = {
        f"{m}/{name}": s.value for m in run.manifest.modes for name, s in run.mode_scores(m).items()
    }
    assert {name: logged.data.metrics[name] for name in scores} == scores


def test_wandb_logs_a_run_offline(run, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="Weights & Biases")
    monkeypatch.setenv("WANDB_MODE", "offline")
    command = [sys.executable, ROOT / "examples" / "log_to_wandb.py", run.path]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    scores = {
        f"{m}/{name}": s.value for m in run.manifest.modes for name, s in run.mode_scores(m).items()
    }
    shown = dict(re.findall(r"^wandb: +(\S+/\w+) +([\d.]+)$", ended.stderr, re.MULTILINE))
    assert len(shown) >= 5  # long summaries are cut short
    assert {name: float(value) for name, value in shown.items()} == pytest.approx(
        {name: scores[name] for name in shown}, abs=1e-4
    )
    (path,) = tmp_path.glob("wandb/offline-run-*/files/media/table/samples_*.table.json")
    table, frame = json.loads(path.read_text()), run.to_pandas()
    assert table["columns"] == list(frame.columns)
    assert [row[0] for row in table["data"]] == list(frame[frame.columns[0]])
