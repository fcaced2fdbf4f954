"""Floor and ceiling of a run."""

import io
import json
import shutil
from pathlib import Path

import pytest

import agrotools as at
from agrotools.report.run_list import list_runs
from agrotools.runner.yardsticks import (
    CEILING,
    GUESS,
    PLANNER,
    YARDSTICKS_FOLDER,
    yardsticks_of,
)

DRAWN = Path(__file__).parents[2] / "golden" / "benchmarks" / "drawn"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DRAWN, tmp_path / "drawn")
    return tmp_path / "drawn"


def fas(summary, mode="end-to-end"):
    estimate = summary.modes[mode].metrics["fas"].overall
    return round(estimate.value, 4), estimate.n


@pytest.mark.process
def test_recorded_results_give_the_ceiling_of_the_real_tools_and_a_finished_run_is_used_instead(
    folder: Path,
):
    """Recorded results are those of the same tools, so both oracles have the same score."""
    options = {"mode": "end-to-end", "limit": 4, "progress": io.StringIO()}
    run = at.evaluate(folder, "baseline:echo", **options)
    benchmark = at.load_benchmark(folder)
    told: list[tuple[str, int, int]] = []
    found = yardsticks_of(run.path, benchmark, progress=lambda *each: told.append(each))
    assert {*found.scored} == {GUESS, CEILING} == {*found.recorded}
    assert told[-1][1:] == (2, 2)
    kept = run.path.parent / YARDSTICKS_FOLDER
    assert {path.name for path in run.path.parent.iterdir()} == {run.path.name, kept.name}
    records = {path: path.stat().st_mtime_ns for path in kept.glob("*/records.jsonl")}
    assert len(records) == 2
    other = at.evaluate(folder, "baseline:random", **options)
    again = yardsticks_of(other.path, benchmark)
    assert fas(again.scored[CEILING].summary) == fas(found.scored[CEILING].summary)
    assert records == {path: path.stat().st_mtime_ns for path in kept.glob("*/records.jsonl")}, (
        "another model on the same samples takes the kept runs"
    )
    assert not [each for each in list_runs(run.path.parent) if YARDSTICKS_FOLDER in str(each.path)]
    oracle = at.evaluate(folder, CEILING, **options)
    planner = at.evaluate(folder, PLANNER, **options)
    beside = yardsticks_of(run.path, benchmark)
    assert {*beside.recorded} == {GUESS}
    assert (
        fas(beside.scored[CEILING].summary)
        == fas(oracle.summary)
        == fas(found.scored[CEILING].summary)
    )
    assert fas(beside.scored[PLANNER].summary) == fas(planner.summary)
    larger = at.evaluate(folder, "baseline:echo", mode="end-to-end", progress=io.StringIO())
    assert {*yardsticks_of(larger.path, benchmark).recorded} == {
        GUESS,
        CEILING,
    }  # the others have fewer samples


@pytest.mark.process
def test_where_nothing_may_be_written_the_baselines_are_run_for_this_time(folder: Path):
    run = at.evaluate(folder, "baseline:echo", mode="end-to-end", limit=4, progress=io.StringIO())
    (run.path.parent / YARDSTICKS_FOLDER).write_text("in the way")
    assert {*yardsticks_of(run.path, at.load_benchmark(folder)).recorded} == {GUESS, CEILING}


def test_without_tools_there_is_no_ceiling(folder: Path):
    run = at.evaluate(folder, "baseline:echo", mode="no-tool", progress=io.StringIO())
    found = yardsticks_of(run.path, at.load_benchmark(folder))
    assert {*found.scored} == {GUESS}
    assert fas(found.scored[GUESS].summary, "no-tool")[1] == fas(run.summary, "no-tool")[1]


@pytest.mark.process
def test_the_floor_is_the_score_of_a_run_of_guess(folder: Path):
    """Its charts are drawn: no result is recorded for a chart of the usual values."""
    options = {"mode": "end-to-end", "progress": io.StringIO()}
    run = at.evaluate(folder, "baseline:echo", **options)
    floor = yardsticks_of(run.path, at.load_benchmark(folder)).scored[GUESS].summary
    guess = at.evaluate(folder, GUESS, **options).summary
    assert floor.modes["end-to-end"].metrics["plot"] == guess.modes["end-to-end"].metrics["plot"]
    assert fas(floor) == fas(guess)


@pytest.mark.process
@pytest.mark.parametrize("derivable", [0, 3])
def test_the_ceiling_is_of_the_samples_whose_answer_follows_from_the_calls(
    folder: Path, derivable: int
):
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    texts = [
        line
        for line in lines
        if all(slot["type"] not in ("plot", "open_text") for slot in line["answer"])
    ]
    for line in texts[derivable:]:
        line["answer"] = [slot | {"from": None} for slot in line["answer"]]
    (folder / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in texts))
    options = {"mode": "end-to-end", "progress": io.StringIO()}
    benchmark = at.load_benchmark(folder)
    known = at.evaluate(folder, "baseline:perfect-tools", **options).summary
    assert fas(known) == (1, len(texts))
    assert known.modes["end-to-end"].n_underivable == len(texts) - derivable
    oracle = at.evaluate(folder, CEILING, **options)
    for run in (oracle.path, at.evaluate(folder, "baseline:echo", **options).path):
        found = yardsticks_of(run, benchmark)
        assert {*found.scored} == ({GUESS, CEILING} if derivable else {GUESS})
        if derivable:
            assert fas(found.scored[CEILING].summary)[1] == derivable
