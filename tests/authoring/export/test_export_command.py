import hashlib
from pathlib import Path

import pytest
from every_slot import write_every_slot
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import (
    Artifact,
    BenchmarkError,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    UsageError,
)
from agrotools.core.texts import install_command
from agrotools.loading import load_folder
from agrotools_build.export.folder import copy_artifacts
from support.sums_benchmark import write_sums

parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra build)")


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_every_slot(tmp_path_factory.mktemp("export") / "benchmark")


def test_a_benchmark_is_written(run, folder, tmp_path):
    result = run("export", folder, "--format", "hf", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "every-slot, version 3: 7 samples" in result.stdout
    assert "Terms of use: CC BY 4.0" in result.stdout


def test_a_folder_is_described_in_place_or_copied(run, folder, tmp_path):
    (folder / "croissant.json").unlink()
    result = run("export", folder, "--format", "croissant")
    assert result.exit_code == 0, result.output
    assert (folder / "croissant.json").is_file()
    result = run("export", folder, "--format", "croissant", "--out", tmp_path / "copy")
    assert result.exit_code == 0, result.output
    assert load_folder(tmp_path / "copy").content_hash == load_folder(folder).content_hash


def test_runs_and_places_that_cannot_be_written_are_refused(run, folder, tmp_path):
    assert isinstance(run("export", folder, "--format", "hf").exception, UsageError)
    assert isinstance(
        run("export", folder, "--format", "hf", "--out", folder).exception, UsageError
    )
    (tmp_path / "file").write_text("x")
    assert isinstance(
        run("export", folder, "--format", "hf", "--out", tmp_path / "file" / "x").exception,
        BenchmarkError,
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    error = run("export", folder, "--format", "hf", "--out", tmp_path / "mine").exception
    assert "an agrotools export in hf format" in error.message
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "records.jsonl").write_text("")
    error = run("export", tmp_path / "run", "--format", "hf", "--out", tmp_path / "out").exception
    assert "is a run" in error.message


def test_without_pyarrow_it_says_what_to_install(run, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    error = run("export", folder, "--format", "hf", "--out", tmp_path / "out").exception
    assert error.hint == install_command("build")
    assert not (tmp_path / "out").exists()


def test_artifacts_of_the_samples_that_stay_are_copied_and_no_others(tmp_path: Path):
    root, out = write_sums(tmp_path / "sums", 3), tmp_path / "out"
    out.mkdir()
    (root / "artifacts").mkdir()
    content = [b"one", b"two"]
    hashes = [hashlib.sha256(each).hexdigest() for each in content]
    for each, name in zip(content, hashes, strict=True):
        (root / "artifacts" / f"{name}.png").write_bytes(each)
    (tmp_path / "secret.png").write_bytes(b"secret")

    def making(sha256: str | None):
        made = Artifact(name="step_1.png", kind="mask", media_type="image/png", sha256=sha256)
        step = ReferenceStep(
            tool="calculate", arguments={}, observation=Observation(result={}, artifacts=(made,))
        )
        return (
            load_folder(root)
            .samples[0]
            .model_copy(update={"reference": ReferenceTrajectory(steps=(step,))})
        )

    copy_artifacts(
        root, [making(hashes[0]), making("../../secret"), making("0" * 64), making(None)], out
    )
    assert [path.name for path in (out / "artifacts").iterdir()] == [f"{hashes[0]}.png"]
    assert (out / "artifacts" / f"{hashes[0]}.png").read_bytes() == b"one"
