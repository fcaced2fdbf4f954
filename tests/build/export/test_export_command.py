import pytest
from every_slot import write_every_slot
from typer.testing import CliRunner

from agrotools.benchmarks import load_folder
from agrotools.cli.main import app
from agrotools.core import BenchmarkError, UsageError
from agrotools.core.base import install_command

pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra build)")


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_every_slot(tmp_path_factory.mktemp("export") / "benchmark")


@pytest.mark.parametrize("format", ["hf", "gta"])
def test_a_benchmark_is_written(run, folder, tmp_path, format):
    result = run("export", folder, "--format", format, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "every-slot, version 3: 7 samples" in result.stdout
    assert "Terms of use: CC BY 4.0" in result.stdout


def test_a_folder_is_described_in_place_or_copied(run, folder, tmp_path):
    pytest.importorskip("mlcroissant", reason="mlcroissant is not installed (extra croissant)")
    (folder / "croissant.json").unlink()
    result = run("export", folder, "--format", "croissant")
    assert result.exit_code == 0, result.output
    assert "croissant.json: 0 issues found by mlcroissant" in result.stdout
    assert (folder / "croissant.json").is_file()
    result = run("export", folder, "--format", "croissant", "--out", tmp_path / "copy")
    assert result.exit_code == 0, result.output
    assert load_folder(tmp_path / "copy").content_hash == load_folder(folder).content_hash


def test_runs_and_places_that_cannot_be_written_are_refused(run, folder, tmp_path):
    for format in ("hf", "gta"):
        assert isinstance(run("export", folder, "--format", format).exception, UsageError)
        assert isinstance(run("export", folder, "--format", format, "--out", folder).exception, UsageError)
        (tmp_path / "file").write_text("x")
        assert isinstance(
            run("export", folder, "--format", format, "--out", tmp_path / "file" / "x").exception, BenchmarkError
        )
    run("export", folder, "--format", "gta", "--out", tmp_path / "gta")
    error = run("export", folder, "--format", "hf", "--out", tmp_path / "gta").exception
    assert "export of another format" in error.message
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "records.jsonl").write_text("")
    error = run("export", tmp_path / "run", "--format", "hf", "--out", tmp_path / "out").exception
    assert "is a run" in error.message


def test_without_pyarrow_it_says_what_to_install(run, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    error = run("export", folder, "--format", "hf", "--out", tmp_path / "out").exception
    assert error.hint == install_command("build")
    assert not (tmp_path / "out").exists()
