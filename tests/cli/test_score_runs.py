"""``agrotools score`` on several runs: errors, seconds, and correlations over the runs."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from support.made_runs import call, end_to_end, made_sample, predicted, write_run

HITS = ((12, 10, 11), (4, 5, 2), (8, 9, 6))
"""Of each run: right first calls, right second calls, right answers, of twelve."""


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    samples = [made_sample(f"s{number:02d}", cluster=f"c{number}") for number in range(12)]
    made: list[Path] = []
    for name, (first, second, answers) in zip("abc", HITS, strict=True):
        records = [
            record
            for at, sample in enumerate(samples)
            for record in (
                predicted(sample, "2*3" if at < first else "9", "6 + 1" if at < second else "9"),
                end_to_end(sample, call("2*3"), answer="rows: 7" if at < answers else "rows: 9", seconds=at),
            )
        ]
        made.append(write_run(tmp_path / name, records, model=name))
    return made


def score(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["score", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_three_runs_have_correlations_over_runs_in_json_and_in_tables(runs: list[Path]):
    data = json.loads(score(*runs, "--json"))
    (across,) = {json.dumps(each["across_runs"]) for each in data}
    found = json.loads(across)
    assert found["runs"] == ["a", "b", "c"]
    r = {(each["step"], each["outcome"]): each for each in found["correlations"]}
    # By hand: numpy.corrcoef of (22, 9, 17) / 24 with (11, 2, 6) / 12.
    arguments = r[("arg_acc", "fas")]
    assert arguments["pearson"] == pytest.approx(0.9807, abs=1e-4)
    assert (arguments["spearman"], arguments["n"], arguments["interval"]) == (pytest.approx(1.0), 3, None)
    text = score(*runs, "--details")
    assert "r +0.98" in text
    assert "rho +1.00" in text
    assert "r +0.98" not in score(*runs)


def test_one_run_tells_errors_and_seconds(runs: list[Path]):
    (data,) = json.loads(score(runs[0], "--json"))
    part = data["modes"]["end-to-end"]
    assert part["seconds"]["overall"] == {"mean": 5.5, "n": 12}
    assert {row["error"]: row["count"] for row in part["errors"]}["redundant_call"] == 0
    text = score(runs[0], "--details")
    assert "Errors by class" in text
    assert "Seconds per query" in text
