"""``agrotools build`` with the help of a model: the benchmark is there whatever the model does."""

import shutil
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agrotools.benchmarks import load_folder
from agrotools.cli.main import app
from agrotools.core import UsageError
from agrotools.formats.benchmark import BenchmarkHeader, read_header
from agrotools.formats.writing import replace_folder
from agrotools.models import WireSettings
from support.building_models import rewording
from support.caches import separate_cache
from support.openai_server import serving


@pytest.fixture
def build(small_benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``build(...)`` runs the command on a source that is ready at once: eight questions on four scenes."""
    separate_cache(monkeypatch, tmp_path / "cache")

    quick = partial(WireSettings, attempts=2, first_wait_s=0.01, longest_wait_s=0.02)
    monkeypatch.setattr("agrotools.models.WireSettings", quick)

    def ready_at_once(_source: list[str], out: Path, *_: object) -> BenchmarkHeader:
        with replace_folder(out) as made:
            shutil.copytree(small_benchmark, made, dirs_exist_ok=True)
        return read_header(out)

    monkeypatch.setattr("agrotools.build.sources.build_sources", ready_at_once)

    def run(*options: object) -> Result:
        command = ["build", "--source", "deepweeds=x", "--out", str(tmp_path / "out"), *map(str, options)]
        return CliRunner().invoke(app, command)

    return run


def test_paraphrases(build, tmp_path: Path):
    with serving(rewording) as endpoint:
        done = build("--paraphrase", "m", "--base-url", endpoint.base_url)
        asked = len(endpoint.requests)
        assert done.exit_code == 0, done.output
        assert "paraphrases by m: 8 of 8 questions reworded" in done.output
        assert "16 wordings refused" in done.output
        assert "8 samples (" in done.output
        assert all(sample.query.startswith("For my records, ") for sample in load_folder(tmp_path / "out").samples)
        again = build("--paraphrase", "m", "--base-url", endpoint.base_url)
        assert again.exit_code == 0
        assert len(endpoint.requests) == asked, "a benchmark that is built again asks nothing twice"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "out"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", 1], "--budget was given without --paraphrase"),
        (["--paraphrase", "m", "--base-url", "nowhere"], "not a base URL"),
        (["--paraphrase", "scripted:/nowhere.json"], "cannot read the script"),
        (["--paraphrase", "x", "--base-url", "https://example.org/v1", "--budget", 1], "price of x is not known"),
    ],
)
def test_what_is_wrong_with_the_model_is_said_before_the_build(build, tmp_path: Path, options, message):
    done = build(*options)
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_ctrl_c_while_a_model_helps_leaves_the_benchmark(build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agrotools.build.assist.paraphrase.paraphrase_folder", stopped)
    done = build("--paraphrase", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert done.exit_code == 130
    assert "run the same command again to resume" in done.output
    assert len(load_folder(tmp_path / "out").samples) == 8
