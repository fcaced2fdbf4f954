"""A verdict is given only if it holds with all missing scores set against it."""

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import Record
from agrotools.report.comparison import comparison_data
from agrotools.runner.rescore import compare_runs
from agrotools.scoring.aggregate import tallied
from agrotools.scoring.comparisons import compare, side_by_side
from agrotools.scoring.gate import compare_tables
from agrotools.scoring.missing import ScoredUnit, ScoreLimits, missing_of, paired_limits
from support.made_runs import call, end_to_end, made_sample, right, write_run
from support.runs import invalid

N = 100


def made(number: int, value: bool | None) -> Record:
    """A record that is right, wrong, or without a reply (None)."""
    sample = made_sample(f"s{number:03}")
    if value is None:
        return invalid(sample.id, sample=sample, mode="end-to-end")
    return right(sample) if value else end_to_end(sample, call("2*4"), answer="rows: 8")


def records(values) -> list[Record]:
    return [made(number, value) for number, value in enumerate(values)]


def shared(share: float, seed: int) -> list[bool]:
    chance = random.Random(seed)
    return [chance.random() < share for _ in range(N)]


def verdict(first, second) -> str:
    found = compare(records(first), records(second), names=("A", "B"))
    return comparison_data(found)["verdicts"]["end-to-end"]


def test_a_small_gain_with_many_invalid_samples_has_no_verdict():
    poor = [number % 3 == 0 for number in range(N)]
    better = [number % 3 < 2 for number in range(N)]
    assert verdict(poor, better).startswith("B is better: 33.0 points")
    many = [None if number % 5 < 2 else value for number, value in enumerate(better)]
    assert verdict(poor, many).startswith(
        "no verdict, because 40 scores of B are missing: B minus A ="
    )
    assert verdict(many, poor).startswith("no verdict, because 40 scores of A are missing")
    few = [None if number in (0, 1) else value for number, value in enumerate(better)]
    assert verdict(poor, few).startswith("B is better: ")
    assert verdict(few, poor).startswith("A is better: ")


def test_equal_runs_with_missing_samples_are_not_said_to_be_equal():
    values = shared(0.5, 3)
    lacking = [None if number < 30 else value for number, value in enumerate(values)]
    found = compare(records(values), records(lacking), names=("A", "B"))
    missing = found.missing["end-to-end"]
    assert missing.samples == (0, 30)
    assert (missing.lowest.n, missing.highest.n) == (N, N)
    rights = sum(values[:30])
    assert missing.lowest.value == pytest.approx(-rights / N)
    assert missing.highest.value == pytest.approx((30 - rights) / N)
    assert verdict(values, lacking).startswith("no verdict")


def test_samples_without_a_record_are_missing_if_the_run_was_to_answer_them(tmp_path: Path):
    poor, good = shared(0.6, 1), [True] * N
    whole = write_run(tmp_path / "whole", records(poor))
    listed = tuple(f"s{number:03}" for number in range(N))
    cut = write_run(tmp_path / "cut", records(good)[:55], sample_ids=listed)
    (found,) = compare_runs([whole, cut])
    assert found.missing["end-to-end"].samples == (0, 45)
    assert comparison_data(found)["verdicts"]["end-to-end"].startswith("no verdict")
    limited = write_run(tmp_path / "limited", records(good)[:55])
    (found,) = compare_runs([whole, limited])
    assert not found.missing
    assert "limited is better" in comparison_data(found)["verdicts"]["end-to-end"]


def test_differences_of_several_runs_follow_the_rule():
    better = [None if number % 5 < 2 else True for number in range(N)]
    tallies = [tallied(records(each)) for each in (shared(0.6, 2), better)]
    summaries = [each.summary(allow_invalid=True) for each in tallies]
    (difference,) = side_by_side(summaries, tallies)[0].between_runs
    assert difference.difference.differs()
    assert not difference.differs()


def table(path: Path, rows) -> Path:
    lines = ["model,sample,score", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("gap", ["", "NaN", None])
def test_missing_rows_and_empty_scores_of_a_table_are_missing(tmp_path: Path, gap: str | None):
    rows = [("A", number, int(number % 2)) for number in range(N)]
    for number in range(N):
        score = int(number % 4 != 0)
        if number % 25 < 9:
            rows += [("B", number, gap)] if gap is not None else []
        else:
            rows.append(("B", number, score))
    file = table(tmp_path / "scores.csv", rows)
    (found,) = compare_tables(file)
    assert found.modes["table"]["score"].overall.differs()
    assert found.missing["table"].samples == (0, 36)
    shown = CliRunner().invoke(app, ["compare", str(file)]).stdout
    assert shown.startswith("no verdict, because 36 scores of B are missing: B minus A =")
    (data,) = json.loads(CliRunner().invoke(app, ["compare", str(file), "--json"]).stdout)
    assert data["verdicts"]["table"].startswith("no verdict")
    bounds = data["missing"]["table"]
    assert bounds["lowest"]["value"] < 0 < bounds["highest"]["value"]


def test_no_filling_of_the_missing_scores_undoes_a_verdict():
    """Whatever the missing scores are, the run that a verdict names has the higher mean."""
    chance = random.Random(7)
    verdicts = 0
    for _ in range(60):
        gain, gaps = chance.uniform(-0.6, 0.6), chance.choice([0.02, 0.1, 0.3])
        sides: list[dict[ScoredUnit, ScoreLimits]] = [{}, {}]
        for number in range(60):
            for at, share in enumerate((0.5 - gain / 2, 0.5 + gain / 2)):
                score = float(chance.random() < share)
                low, high = (0.0, 1.0) if chance.random() < gaps else (score, score)
                sides[at][ScoredUnit(str(number))] = ScoreLimits(low, high, str(number))
        missing = missing_of(paired_limits(sides[0], sides[1]))
        if missing is None:
            continue
        for value, bound in ((1.0, missing.lowest), (-1.0, missing.highest)):
            shown = bound.model_copy(update={"p_adjusted": bound.p})
            if not missing.with_against(value, shown).allows(value):
                continue
            verdicts += 1
            for _ in range(20):
                means = [
                    sum(chance.choice((each.low, each.high)) for each in side.values())
                    for side in sides
                ]
                assert (means[1] - means[0]) * value > 0
    assert verdicts > 10
