"""The scripts of ``examples`` run as they are."""

import importlib
import json
import os
import re
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
}

pytestmark = pytest.mark.process


def run(tmp_path: Path, *command: str) -> str:
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout


def test_every_example_is_tested():
    """MLflow, W&B, the SDKs of agents and TRL are in environments of their own (tests/engine/report/test_trackers.py,
    tests/engine/agents/test_agent_sdks.py, tests/authoring/test_env_trl.py)."""
    assert {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".sh", ".ipynb"}} == {
        "agent.py", "evaluate.py", "first_run.sh", "grpo.py", "http_agent.py", "langgraph_agent.py", "log_to_mlflow.py",
        "log_to_wandb.py", "mcp_agent.py", "openai_agents_agent.py", "pydantic_ai_agent.py", "quickstart.ipynb",
        "search_corpus.py", "smolagents_agent.py", "use_tools.py",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["mcp_agent.py", "http_agent.py"])
def test_an_agent_is_printed_whole_on_its_page(name: str):
    page = (EXAMPLES.parent / "docs" / "agents.md").read_text(encoding="utf-8")
    assert f"```py\n{(EXAMPLES / name).read_text(encoding='utf-8')}```" in page


def test_tools_are_used_from_python(tmp_path: Path):
    shown = run(tmp_path, sys.executable, str(EXAMPLES / "use_tools.py"))
    assert "vegetation: 3" in shown
    assert "mean: 12" in shown
    assert "file_not_found" in shown
    assert run(tmp_path, sys.executable, str(EXAMPLES / "search_corpus.py")).startswith(
        "wheat.txt ("
    )


def evaluated(tmp_path: Path, *options: str) -> dict[str, Any]:
    command = (
        "agrotools",
        "eval",
        "embedded",
        "--quick",
        "--limit",
        "2",
        "--mode",
        "end-to-end",
        "--json",
    )
    (summary,) = json.loads(run(tmp_path, *command, *options))
    return summary["modes"]["end-to-end"]


@pytest.mark.parametrize(
    "model", ["python:agent:solve", f"mcp:{sys.executable} {EXAMPLES / 'mcp_agent.py'}"]
)
def test_an_agent_is_evaluated(tmp_path: Path, model: str):
    scores = evaluated(tmp_path, "--model", model, "--agent-path", str(EXAMPLES))
    assert (scores["invalid"]["n"], scores["n_records"]) == (0, 2)


@pytest.mark.slow
def test_the_agent_of_the_page_answers_the_questions_that_it_is_for(tmp_path: Path):
    page = (EXAMPLES.parent / "docs" / "agents.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(# my_agent\.py\n.*?)```", page, re.DOTALL)
    (tmp_path / "my_agent.py").write_text(block)
    command = "agrotools eval embedded --quick --limit 20 --mode end-to-end --json --model python:my_agent:solve"
    (summary,) = json.loads(run(tmp_path, *command.split()))
    scores = summary["modes"]["end-to-end"]
    assert scores["invalid"]["n"] == 0
    assert scores["metrics"]["fas"]["overall"]["value"] > 0
    assert scores["counts"]["terminations"].keys() == {"answered"}


def test_an_agent_behind_a_server_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), importlib.import_module("http_agent").Handler
    ) as server:
        threading.Thread(target=server.serve_forever).start()
        scores = evaluated(tmp_path, "--model", f"http://127.0.0.1:{server.server_port}/agent")
        server.shutdown()
    assert (scores["invalid"]["n"], scores["n_records"]) == (0, 2)


@pytest.mark.slow
def test_baselines_are_evaluated_from_python(tmp_path: Path):
    shown = run(tmp_path, sys.executable, str(EXAMPLES / "evaluate.py"), "runs")
    assert "baseline:guess: FAS " in shown
    assert "fas" in shown


@pytest.mark.slow
def test_the_notebook_measures_evaluates_and_explains(tmp_path: Path):
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient (extra dev)")
    notebook = nbformat.read(EXAMPLES / "quickstart.ipynb", as_version=4)
    client = pytest.importorskip("nbclient", reason="needs nbclient (extra dev)").NotebookClient
    client(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    html = [output.get("data", {}).get("text/html", "") for output in outputs]
    assert any("<img" in each and "veg_pct" in each and "area_m2" in each for each in html)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    explained = next(
        each for each in html if "<img" in each and "Question" in each and "Scores" in each
    )
    assert re.search(r"FAS [01]\.\d", explained)
    assert "\x1b" not in explained
    assert "fas" in outputs[-1].data["text/plain"]
    assert {path.name for path in tmp_path.iterdir()} == {"example-runs"}


@pytest.mark.slow
def test_two_baselines_are_compared(tmp_path: Path):
    assert "ceiling  oracle" in run(tmp_path, "sh", str(EXAMPLES / "first_run.sh"), "example")
    assert (tmp_path / "example" / "report.html").stat().st_size > 10_000
