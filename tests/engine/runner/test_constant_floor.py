"""The floor of constants beside a run: on the ladder, in a run of the baseline, and in runs of its predecessor."""

import io
import json
from pathlib import Path

import pytest

import agrotools as at
from agrotools.loading.describing import describe
from agrotools.report.description import description_tables
from agrotools.report.layout import NO_CONSTANT
from agrotools.report.parts import higher_parts
from agrotools.runner.rescore import rescore
from agrotools.runner.yardsticks import CONSTANT, GUESS, Yardsticks, roles_of, with_constant
from agrotools.scoring.metrics import GUESS_METRIC
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import Metric, ModeSummary
from support.benchmark_folders import number_sample, write_folder
from support.shown import rendered

QUIET = {"mode": "no-tool", "progress": io.StringIO()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "yields"
    samples = [number_sample(root, f"tiny-{place}", place) for place in range(1, 11)]
    return write_folder(root, samples)


def test_a_run_of_the_baseline_scores_what_every_run_has_as_its_floor(folder: Path, tmp_path: Path):
    run = at.evaluate(folder, "baseline:echo", out=tmp_path / "echo", **QUIET)
    part = run.summary.modes["no-tool"]
    constant = at.evaluate(folder, CONSTANT, out=tmp_path / "constant", **QUIET).summary
    assert part.floor == "constant"
    assert part.metrics["constant"].overall == constant.modes["no-tool"].metrics["fas"].overall
    assert constant.privileged


def test_the_ladder_has_the_higher_floor_alone(folder: Path, tmp_path: Path):
    run = at.evaluate(folder, "baseline:echo", out=tmp_path / "echo", **QUIET)
    guess = at.evaluate(folder, GUESS, out=tmp_path / "guess", **QUIET)
    scored, of_guess = rescore(run.path), rescore(guess.path)
    yardsticks = with_constant(Yardsticks({GUESS: of_guess}), scored, "no-tool")
    assert [*yardsticks.scored] == [CONSTANT]
    shown = [each.summary for each in (scored, of_guess, yardsticks.scored[CONSTANT])]
    assert roles_of(shown, "no-tool") == ["baseline", "baseline", "floor"]


def test_a_run_of_the_former_baseline_prior_is_still_scored(folder: Path, tmp_path: Path):
    run = at.evaluate(folder, "baseline:echo", out=tmp_path / "echo", **QUIET)
    manifest = run.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace("baseline:echo", "baseline:prior"))
    (run.path / ".manifest.copy.json").unlink()
    assert rescore(run.path).summary.model == "baseline:prior"


def test_a_description_has_the_floors_and_names_what_a_constant_answers(folder: Path):
    described = describe(at.load_benchmark(folder))
    assert described.floor == "constant"
    assert described.floors["constant"] == 1
    (warning,) = described.easy
    assert "constant answer 5.4 t/ha" in warning
    assert "the reference calls in 100 %" in warning


def test_a_description_of_few_places_says_that_there_is_no_constant(tmp_path: Path):
    root = tmp_path / "few"
    described = describe(at.load_benchmark(write_folder(root, [number_sample(root)])))
    assert [*described.floors] == ["guess"]
    assert NO_CONSTANT in rendered(description_tables(described), 100)


def test_the_other_floor_stands_beside_the_rows_in_which_it_is_higher():
    def metric(apples: float, weeds: float) -> Metric:
        def estimate(value: float) -> Estimate:
            return Estimate(value=value, n=10, n_clusters=10)

        tasks = {"apple_size": estimate(apples), "weed_identification": estimate(weeds)}
        return Metric(overall=estimate((apples + weeds) / 2), by_task_type=tasks)

    metrics = {"constant": metric(0.9, 0.1), GUESS_METRIC: metric(0.2, 0.3)}
    part = ModeSummary(
        n_records=20, n_samples=20, n_clusters=20, epochs=1, metrics=metrics, floor="constant"
    )
    higher = higher_parts(part, GUESS_METRIC)
    assert higher is not None
    assert [*higher.by_task_type] == ["weed_identification"]


def test_scores_name_the_printed_floor(folder: Path, tmp_path: Path):
    run = at.evaluate(folder, "baseline:echo", out=tmp_path / "echo", **QUIET)
    rescore(run.path)
    stored = json.loads((run.path / "scores.json").read_text())
    assert stored["summary"]["modes"]["no-tool"]["floor"] == "constant"
