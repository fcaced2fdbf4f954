"""Answers near an agent's own files stay hidden from it, and what it writes costs little."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from test_external_agents import agent_module, evaluated, folder

import agrotools as at
from agrotools.agents.process_agents import PythonAgents
from agrotools.core import UsageError
from agrotools.sandbox.agents import Isolation, answer_folders, code_hash, is_available

__all__ = ["agent_module", "folder"]
pytestmark = pytest.mark.process

AGENT = """
import glob, os, pathlib, sys

def reads_records(task):
    here = pathlib.Path(__file__).parent
    found = [path for path in here.rglob("*") if path.name in ("records.jsonl", "samples.jsonl", "gold.txt")]
    prompt = (here / "prompt.txt").read_text()
    return "mean_yield: found " + " ".join(map(str, found)) if found else f"mean_yield: 1 {prompt}"

def lists_opt(task):
    return f"mean_yield: 1 {[path for path in ('/opt', '/usr/src', sys.prefix + '/project') if os.path.exists(path)]}"

def draws_again(task):
    try:
        import agrotools_build.sources.drawn.drawing
    except ImportError as error:
        return f"mean_yield: 1 {error.name}"
    return "mean_yield: drawn"

def floods(task):
    for _ in range(300):
        sys.stderr.write("A" * 1_000_000)
    sys.stderr.write("\\nlast words\\n")
    sys.stderr.flush()
    os._exit(3)

def writes(line):
    def solve(task):
        for number in range(1, 20):
            try:
                os.write(number, line.encode() + b"\\n")
            except OSError:
                pass
        return "mean_yield: 1"
    return solve

deep = writes("[" * 100_000)
listed = writes('{"tool": "calculate", "arguments": [1], "id": 1}')
"""


@pytest.fixture
def project(tmp_path: Path, folder: Path, agent_module: Callable[[str], str]) -> Path:
    """The agent's folder, with a prompt, a run with answers in ``runs``, one beside it, and a benchmark."""
    code = tmp_path / "code"
    agent_module(AGENT)
    (code / "prompt.txt").write_text("prompt")
    for out in (code / "runs" / "oracle", code / "beside"):
        evaluated(folder, "baseline:perfect-tools", out, limit=1)
    (code / "bench").mkdir()
    for path in folder.iterdir():
        os.link(path, code / "bench" / path.name) if path.is_file() else None
    (code / "more").symlink_to(code / "runs")
    return code


@pytest.mark.skipif(not is_available(), reason="needs bubblewrap")
def test_runs_and_benchmarks_beside_the_code_are_hidden(
    project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(project / "cache"))
    run = evaluated(
        folder,
        "python:my_agent:reads_records",
        project / "runs" / "mine",
        agent_path=[str(project)],
    )
    assert run.manifest.sealed is True
    assert {record.trajectory and record.trajectory.steps[-1].text for record in run.samples()} == {
        "mean_yield: 1 prompt"
    }


@pytest.mark.skipif(not is_available(), reason="needs bubblewrap")
def test_projects_beside_the_systems_programs_are_hidden(
    project: Path, folder: Path, tmp_path: Path
):
    run = evaluated(folder, "python:my_agent:lists_opt", tmp_path / "run", limit=1)
    (record,) = run.samples()
    assert record.trajectory.steps[-1].text == "mean_yield: 1 []"


@pytest.mark.skipif(not is_available(), reason="needs bubblewrap")
def test_scenes_cannot_be_drawn_again_with_their_truth(project: Path, folder: Path, tmp_path: Path):
    run = evaluated(folder, "python:my_agent:draws_again", tmp_path / "run", limit=1)
    (record,) = run.samples()
    assert record.trajectory.steps[-1].text == "mean_yield: 1 agrotools_build.sources.drawn.drawing"


def test_paths_in_answers_are_refused(project: Path, folder: Path):
    assert answer_folders([project / "my_agent.py"], [folder]) == []
    assert answer_folders([project], [folder]) == [
        project / "bench",
        project / "beside",
        project / "runs",
    ]
    for path in (
        project / "beside",
        project / "runs" / "oracle" / "records.jsonl",
        project / "bench",
    ):
        with pytest.raises(UsageError, match="an agent may not read"):
            answer_folders([path])
    with pytest.raises(UsageError, match="an agent may not read"):
        answer_folders([folder / "files"], [folder])


@pytest.mark.parametrize("function", ["deep", "listed"])
def test_lines_that_are_not_of_the_protocol_are_the_agents_fault(
    project, folder, tmp_path, function
):
    with pytest.raises(at.InvalidRunError) as raised:
        evaluated(folder, f"python:my_agent:{function}", tmp_path / "run", limit=1)
    (record,) = raised.value.run.samples()  # pyright: ignore
    assert "the agent wrote a line that is not of the protocol" in (record.invalid or "")


def test_what_an_agent_writes_to_standard_error_is_not_kept(
    project: Path, folder: Path, tmp_path: Path
):
    with pytest.raises(at.InvalidRunError) as raised:
        evaluated(folder, "python:my_agent:floods", tmp_path / "run", limit=1)
    (record,) = raised.value.run.samples()  # pyright: ignore
    assert record.invalid == "the agent's process ended: last words"


def test_changed_files_of_an_agent_change_its_hash(project: Path):
    def hashes() -> tuple[str, str]:
        agents = PythonAgents("my_agent:floods", Isolation(sealed=False, readable=[project]))
        return agents.code_hash, code_hash("program", [project / "prompt.txt"])

    before = hashes()
    (project / "runs" / "later").mkdir()
    (project / "__pycache__").mkdir(exist_ok=True)
    (project / "__pycache__" / "x.pyc").write_text("x")
    assert hashes() == before
    (project / "prompt.txt").write_text("another prompt")
    assert not {*hashes()} & {*before}
