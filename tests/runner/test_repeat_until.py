"""Runs that are repeated until the re-run interval is narrow."""

import io
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.rescore import rerun_width, rescore
from agrotools.runner.store import read_manifest
from support.sums_benchmark import write_sums

pytestmark = pytest.mark.process


@pytest.fixture
def sums(tmp_path: Path) -> str:
    return str(write_sums(tmp_path / "sums", 30))


def run(sums: str, out: Path, model: str, **options) -> tuple[Path, str]:
    progress = io.StringIO()
    config = EvalConfig(benchmark=sums, model=model, mode="end-to-end", out=out, **options)
    return evaluate(config, progress).run, progress.getvalue()


def test_a_run_without_noise_stops_after_two_epochs(sums, tmp_path):
    made, text = run(sums, tmp_path / "run", "baseline:oracle", repeat_until=20)
    manifest = read_manifest(made)
    assert (manifest.epochs, manifest.looks) == (2, 9)
    assert "2 epochs: the re-run interval is" in text
    assert rescore(made).summary.modes["end-to-end"].repeats.flips.value == 0


def test_epochs_are_added_until_the_interval_is_narrow(sums, tmp_path):
    made, text = run(sums, tmp_path / "run", "baseline:planted:0.7", repeat_until=22, max_epochs=12)
    epochs = read_manifest(made).epochs
    assert 2 < epochs < 12
    assert text.count("the re-run interval is") == epochs - 1
    assert 100 * rerun_width(made, 11) < 22
    repeats = rescore(made).summary.modes["end-to-end"].repeats
    assert repeats.rerun.upper - repeats.rerun.lower == pytest.approx(rerun_width(made, 11))
    assert 0 < repeats.flips.value <= 1
    assert read_manifest(run(sums, made, "baseline:planted:0.7", repeat_until=22, max_epochs=12)[0]).epochs == epochs


def test_a_run_ends_after_max_epochs(sums, tmp_path):
    made, text = run(sums, tmp_path / "run", "baseline:planted:0.7", repeat_until=1, max_epochs=3)
    assert "1 were not reached with --max-epochs 3" in text
    assert read_manifest(made).epochs == 3
    with pytest.raises(UsageError, match="--epochs is larger"):
        run(sums, tmp_path / "other", "baseline:oracle", repeat_until=1, epochs=5, max_epochs=3)
