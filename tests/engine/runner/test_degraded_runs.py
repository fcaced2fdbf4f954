"""Runs whose pictures version 0.2.0 degraded: they load, score and compare as that version printed it.

``degraded_runs`` holds them as version 0.2.0 wrote them: two baselines on three made-up questions with
``--degrade blur=1.5,jpeg=30``, which left one question out, and one of them on the original pictures.
"""

import shutil
from pathlib import Path

import pytest

import agrotools as at
from agrotools.analysis.attribution import open_run
from agrotools.core import UsageError
from agrotools.runner.until_decided import config_of_run
from support.command import run_command

DOSES = "blur=1.5,jpeg=30"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return Path(shutil.copytree(Path(__file__).parent / "degraded_runs", tmp_path / "runs"))


def test_the_score_and_the_condition_are_those_of_the_version_that_made_the_run(runs: Path):
    oracle, planner = at.score(runs / "degraded-oracle"), at.score(runs / "degraded-planner")
    assert oracle.summary.benchmark_options == {"degrade": DOSES}
    assert oracle.manifest.labelled_model == f"baseline:oracle ({DOSES})"
    scores = [each.summary.modes["end-to-end"].metrics["fas"].overall for each in (oracle, planner)]
    assert [(score.value, score.n) for score in scores] == [(1.0, 2), (0.0, 2)]


def test_runs_at_the_same_doses_are_compared(runs: Path):
    compared = at.compare(runs / "degraded-oracle", runs / "degraded-planner")
    assert compared[0].value == -1.0


def test_a_comparison_with_the_original_pictures_names_the_difference(runs: Path):
    done = run_command("compare", runs / "oracle", runs / "degraded-oracle")
    assert done.returncode == 0
    assert "different degradation: none / blur=1.5" in done.stderr


def test_what_would_need_degraded_pictures_again_is_refused(runs: Path):
    with pytest.raises(UsageError, match="its pictures were degraded"):
        config_of_run(runs / "degraded-oracle")
    attributed = open_run(runs / "degraded-planner")
    assert attributed.benchmark is None
    assert DOSES in attributed.notes[0]
