"""Signs of differences: the second run minus the first, wherever a comparison is shown."""

import csv
import json
import re
from pathlib import Path

import pytest

import agrotools as at
from agrotools.report.html.page import build_report
from agrotools.scoring.attribution import CAUSES
from support.command import run_command
from support.made_runs import call, end_to_end, made_sample, right, write_run
from support.report_page import read_report

pytestmark = pytest.mark.process


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """An old run with a quarter of its 40 samples right, and a new one with all of them."""
    samples = [made_sample(f"s{number:02}") for number in range(40)]
    old = [
        end_to_end(each, call("2*4"), answer="rows: 8") if number % 4 else right(each)
        for number, each in enumerate(samples)
    ]
    return write_run(tmp_path / "old", old), write_run(tmp_path / "new", map(right, samples))


def signs(text: str) -> list[float]:
    """All numbers with a sign in a text, in the order of their size."""
    return sorted((float(each) for each in re.findall(r"[+-]\d+\.\d", text)), key=abs)


def negated(numbers: list[float]) -> list[float]:
    return [-each for each in numbers]


def test_every_difference_is_the_second_run_minus_the_first(runs):
    old, new = map(str, runs)
    for first, second, sign in ((old, new, 1), (new, old, -1)):
        shown = run_command("compare", first, second).stdout
        assert shown.startswith(f"{new} is better: 75.0 points (")
        meaning = f"+ is in favour of {second}, - in favour of {first}."
        words = f"Every difference is {second} minus {first}: {meaning}"
        assert words.replace("Every", "Every other") in " ".join(shown.split())
        labels = ("task", *(cause.label for cause in CAUSES.values()))
        rows = [line for line in shown.splitlines() if line.strip().startswith(labels)]
        assert rows
        assert all(number * sign > 0 for row in rows for number in signs(row)[:1])

        (data,) = json.loads(run_command("compare", first, second, "--json").stdout)
        difference = data["modes"]["end-to-end"]["fas"]["overall"]
        assert difference["value"] == pytest.approx(0.75 * sign)
        causes = [each["value"] for each in data["by_cause"]["end-to-end"].values()]
        assert sum(causes) == pytest.approx(difference["value"])
        assert data["verdicts"]["end-to-end"].startswith(f"{new} is better: 75.0 points")
        better, worse = ("up", "down") if sign > 0 else ("down", "up")
        flips = data["flips"]["end-to-end"]
        assert (len(flips[better]), len(flips[worse])) == (30, 0)

        (difference,) = at.compare(first, second)
        assert difference.value == pytest.approx(0.75 * sign)


def test_the_numbers_of_a_comparison_change_their_signs_if_the_runs_are_swapped(runs):
    old, new = map(str, runs)
    one, other = (
        run_command("compare", *pair, "--details").stdout for pair in ((old, new), (new, old))
    )
    assert signs(one) == negated(signs(other))
    one, other = (
        json.loads(run_command("compare", *pair, "--json").stdout)[0]["modes"]["end-to-end"]
        for pair in ((old, new), (new, old))
    )
    for metric, each in one.items():
        mine, theirs = each["overall"], other[metric]["overall"]
        assert mine["value"] == -theirs["value"]
        assert mine["interval"]["lower"] == pytest.approx(-theirs["interval"]["upper"])
        assert mine["p"] == theirs["p"]


def test_the_page_has_the_signs_of_the_command(runs, tmp_path):
    pairs = []
    for at_, order in enumerate((runs, runs[::-1])):
        page = read_report(build_report(list(order), tmp_path / f"{at_}.html").path)
        (pair,) = page.head["pairs"]
        value, rows = pair["difference"][0], pair["rows"]
        assert pair["verdict"].startswith(f"{page.head['runs'][1 - at_]['label']} is better: 75.0")
        causes = [estimate[0] for kind, _, estimate, _ in rows if kind == "cause"]
        assert sum(causes) == pytest.approx(value)
        pairs.append([value, *(estimate[0] for _, _, estimate, _ in rows)])
    assert pairs[0] == pytest.approx(negated(pairs[1]))
    assert pairs[0][0] == pytest.approx(0.75)


def test_a_table_of_scores_has_the_signs_of_runs(tmp_path):
    for at_, order in enumerate(("AB", "BA")):
        file = tmp_path / f"{order}.csv"
        with file.open("w", newline="") as lines:
            rows = csv.writer(lines)
            rows.writerow(["model", "sample", "score"])
            for model in order:
                scores = [int(model == "B" or number % 2) for number in range(40)]
                rows.writerows((model, number, score) for number, score in enumerate(scores))
        (data,) = json.loads(run_command("compare", file, "--json").stdout)
        value = data["modes"]["table"]["score"]["overall"]["value"]
        assert value == pytest.approx(-0.5 if at_ else 0.5)
        shown = run_command("compare", file).stdout
        assert shown.startswith("B is better: 50.0 points (")
        assert (
            f"Every other difference is {order[1]} minus {order[0]}: + is in favour of {order[1]}"
            in shown
        )


def test_the_order_of_records_changes_no_digit(tmp_path):
    """Records come in the order in which samples finished, so that two runs of one model may differ in it."""
    samples = [made_sample(f"s{number:03}") for number in range(200)]
    poor = [
        end_to_end(each, call("2*4"), answer="rows: 8") if number % 3 else right(each)
        for number, each in enumerate(samples)
    ]
    fair = [
        right(each) if number % 5 else end_to_end(each, call("2*4"), answer="rows: 8")
        for number, each in enumerate(samples)
    ]
    runs = [
        (write_run(tmp_path / "a", poor), write_run(tmp_path / "b", fair)),
        (write_run(tmp_path / "c", poor[::-1]), write_run(tmp_path / "d", fair[50:] + fair[:50])),
    ]
    summaries = [[at.score(run).summary.modes for run in pair] for pair in runs]
    assert summaries[0] == summaries[1]
    comparisons = [at.compare(*pair) for pair in runs]
    assert comparisons[0][0].interval == comparisons[1][0].interval
    assert comparisons[0][0].p_adjusted == comparisons[1][0].p_adjusted
    (back,) = at.compare(*runs[1][::-1])
    assert back.interval == tuple(-end for end in reversed(comparisons[0][0].interval))
    assert back.p_adjusted == comparisons[0][0].p_adjusted
