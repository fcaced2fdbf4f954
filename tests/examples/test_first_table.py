"""``examples/first_table.toml``, rehearsed: three vendors as they document themselves, and a local model."""

import json
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agrotools.analysis.study import read_study
from agrotools.report.results import read_results
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from support.benchmark_folders import HEADER, number_sample, write_folder
from support.command import run_command
from support.vendor_server import EMPTY, FILTERED, KEYS, REFUSED, Vendors, serving_vendors

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "examples" / "first_table.toml"
FAKE = ROOT / "tests" / "support" / "fake_model_server.py"
VARIABLES = {"openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}  # fmt: skip
N = 12


@pytest.fixture
def vendors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendors]:
    """The vendors, whose keys are not set yet."""
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    with serving_vendors() as vendors:
        yield vendors


@pytest.fixture
def study(tmp_path: Path, vendors: Vendors, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study with the addresses of the vendors on this machine, and a small benchmark for `embedded` and `field`."""
    folder = tmp_path / "plots"
    samples = [_sample(folder, number) for number in range(1, N + 1)]
    quick = json.dumps([sample["id"] for sample in samples])
    header = HEADER.replace('licence = "Apache-2.0"', f'licence = "Apache-2.0"\nquick = {quick}', 1)
    write_folder(folder, samples, header)

    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "llama-server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{FAKE}" "$@"\n')
    program.chmod(0o755)
    (tmp_path / "model.gguf").write_bytes(b"GGUF-weights")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")

    lines: list[str] = []
    for line in STUDY.read_text().splitlines():
        if line.startswith("benchmark = "):
            line = f'benchmark = "{folder}"\nattempts = 3\nconcurrency = 1'
        elif line.startswith("base_url = "):
            continue
        elif line.startswith('name = "ggml-org/'):
            line = 'name = "model.gguf"'
        elif line.startswith("serve_args = "):
            line = 'serve_args = "-np 4"'
        lines.append(line)
        for name, vendor in (("openai:", "openai"), ("gemini:", "gemini"), ("claude", "anthropic")):
            if line.startswith(f'name = "{name}'):
                lines.append(f'base_url = "{vendors.base_url}/{vendor}/v1"\nprice = "1/5"')
                if vendor != "anthropic":  # the file names its variable
                    lines.append(f'api_key_env = "{VARIABLES[vendor]}"')
    (tmp_path / "first_table.toml").write_text("\n".join(lines))
    return tmp_path / "first_table.toml"


def _sample(folder: Path, number: int) -> dict[str, object]:
    """A question whose answer is the number of its plot."""
    sample = number_sample(folder, f"plot-{number:02}", number)
    sample["query"] = (
        f"Two cuts gave {number} and {number} t/ha. What is the mean yield of plot {number}?"
    )
    (step,) = sample["reference"]["steps"]
    step["arguments"]["variables"] = {"a": number, "b": number}
    step["observation"]["result"]["value"] = step["truth"]["value"] = number
    sample["answer"][0] |= {"name": "value", "value": number}
    return sample


def test_the_file_names_three_vendors_and_a_local_model_on_both_quick_parts():
    runs = read_study(STUDY).runs
    assert {run.benchmark for run in runs} == {"embedded", "field"}
    assert all(run.config.benchmark.quick for run in runs)
    assert {run.config.run.modes for run in runs} == {("no-tool", "end-to-end")}
    assert len({run.label for run in runs}) == 4
    assert [run.config.model.serve for run in runs[::2]] == [None, None, None, "llama"]
    keys = tomllib.loads(STUDY.read_text())
    assert "price" not in str(keys), "the package knows the prices of the vendors"


def test_without_photographs_the_command_that_gets_them_is_said_before_anything_is_asked(
    tmp_path: Path, study: Path, vendors: Vendors, monkeypatch: pytest.MonkeyPatch
):
    for vendor, variable in VARIABLES.items():
        monkeypatch.setenv(variable, KEYS[vendor])
    text = study.read_text()
    (benchmark,) = [line for line in text.splitlines() if line.startswith("benchmark = ")]
    both = f'benchmark = [{benchmark.partition(" = ")[2]}, "field"]'
    study.write_text(text.replace(benchmark, both))
    done = run_command("study", study, "--budget", 20, cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 2
    assert "agrotools benchmarks get field" in done.stderr
    assert not vendors.asked
    assert not (tmp_path / "runs").exists()


def test_the_whole_table_is_made_from_vendors_as_they_document_themselves(
    tmp_path: Path, study: Path, vendors: Vendors, monkeypatch: pytest.MonkeyPatch
):
    before = run_command("study", study, "--budget", 20, "--dry-run", cwd=tmp_path)
    assert before.returncode == 1, "a key is missing"
    assert "not run: the environment variable OPENAI_API_KEY is not set; 24 of 24" in before.stdout
    assert before.stdout.count(" USD (") == 3, "each vendor has an estimate without its key"
    assert not vendors.asked

    monkeypatch.setenv(VARIABLES["openai"], KEYS["openai"])
    first = run_command("study", study, "--budget", 20, cwd=tmp_path)
    assert first.returncode == 1
    said, _, later = first.stderr.partition("study: run 1 of 4")
    assert "the environment variable GEMINI_API_KEY is not set" in said
    assert "the environment variable ANTHROPIC_API_KEY is not set" in said
    assert "2 runs incomplete" in later
    assert vendors.asked.keys() == {"openai"}
    assert len(read_results(tmp_path / "results")) == 2

    asked = vendors.asked["openai"]
    for vendor, variable in VARIABLES.items():
        monkeypatch.setenv(variable, KEYS[vendor])
    done = run_command("study", study, "--budget", 20, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert vendors.asked["openai"] == asked, "what was run is kept"

    assert {status for vendor, status in vendors.errors if vendor == "openai"} == {400, 429}
    assert {status for vendor, status in vendors.errors if vendor == "gemini"} == {429, 503}
    assert {status for vendor, status in vendors.errors if vendor == "anthropic"} == {400, 429, 529}
    for run in read_study(study).runs:
        folder = tmp_path / run.folder
        records = [*iter_records(folder)]
        assert len(records) == 2 * N
        assert not any(record.invalid for record in records)
        manifest = read_manifest(folder)
        if run.label.startswith(("openai", "claude")):
            assert "temperature" in manifest.endpoint["adapted"]
    ends = _endings(tmp_path / "runs/first-table/plots-openai-gpt-6.1-terra-tool-calling")
    assert ends[EMPTY] == "length"
    assert ends[REFUSED] == "no_form"
    ends = _endings(tmp_path / "runs/first-table/plots-claude-haiku-5-5-tool-calling")
    assert ends[FILTERED] == "filtered"

    results = {result.model: result for result in read_results(tmp_path / "results")}
    assert len(results) == 4
    scores = {model: result.scores["end-to-end"] for model, result in results.items()}
    assert scores["openai:gpt-6.1-terra"].score == pytest.approx((N - 2) / N)
    assert scores["gemini:gemini-3.8-flash"].score == pytest.approx((N - 1) / N)
    assert scores["claude-haiku-5-5"].score == pytest.approx((N - 1) / N)
    assert all(score.ceiling == 1.0 and score.floor is not None for score in scores.values())
    assert all(score.n == score.clusters == N for score in scores.values())

    table = (tmp_path / "results" / "first_table.md").read_text()
    for model in results:
        assert f"| {model} " in table
    assert table in done.stdout
    page = run_command("report", "results", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    assert "gemini-3.8-flash" in (tmp_path / "results" / "index.html").read_text()
    written = "".join(path.read_text() for path in (tmp_path / "results").iterdir())
    assert "127.0.0.1" not in written
    assert str(tmp_path) not in written


def _endings(run: Path) -> dict[int, str]:
    """How the end-to-end records of a run ended, by the number of the plot."""
    return {
        int(record.sample.id.rpartition("-")[2]): record.trajectory.termination
        for record in iter_records(run)
        if record.mode == "end-to-end" and record.trajectory
    }
