"""Tables of scores of other programs: reading, comparison and gate."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import UndecidedError, UsageError
from agrotools.exit_codes import UNDECIDED, code_of
from agrotools.scoring.gate import compare_tables, gate_tables
from agrotools.scoring.statistics import estimate_difference
from agrotools.scoring.table_scores import read_scores


def table(path, rows, columns="model,sample,score,cluster"):
    path.write_text("\n".join([columns, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def scores():
    chance = random.Random(5)
    return [
        (model, f"q{n}", int(chance.random() < share), f"c{n // 2}")
        for model, share in (("A", 0.8), ("B", 0.3))
        for n in range(40)
    ]


def test_a_table_is_compared_with_the_statistics_of_runs(tmp_path, scores):
    file = table(tmp_path / "scores.csv", scores)
    first, second = ([row[2] for row in scores if row[0] == model] for model in "AB")
    expected = estimate_difference(second, first, [n // 2 for n in range(40)])
    overall = compare_tables(file)[0].modes["table"]["score"].overall
    assert (overall.value, overall.interval, overall.p_adjusted) == (
        expected.value,
        expected.interval,
        expected.p,
    )
    assert (overall.n, overall.n_clusters) == (40, 20)
    shown = CliRunner().invoke(app, ["compare", str(file)]).stdout
    assert shown.startswith("A is better: 40.0 points")
    assert "40 samples in 20 clusters" in shown
    assert (
        json.loads(CliRunner().invoke(app, ["compare", str(file), "--json"]).stdout)[0]["benchmark"]
        == "scores.csv"
    )


def test_a_table_with_weights_is_compared_and_gated_with_them(tmp_path, scores):
    weights = [4.5 if n < 4 else 1 for n in range(40)]
    weighted = [(*row, weights[int(row[1][1:])]) for row in scores]
    file = table(tmp_path / "scores.csv", weighted, "model,sample,score,cluster,weight")
    first, second = ([row[2] for row in scores if row[0] == model] for model in "AB")
    expected = np.average(second, weights=weights) - np.average(first, weights=weights)
    (found,) = compare_tables(file)
    assert found.modes["table"]["score"].overall.value == pytest.approx(expected)
    gate, _, _ = gate_tables(file, Path("A"), 0.0, allow_invalid=False)
    assert gate.bound.drop == pytest.approx(-expected)
    assert (gate.new, gate.old) == pytest.approx(
        (np.average(second, weights=weights), np.average(first, weights=weights))
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("A", "q", 1, "heavy")], "weight heavy is no number of 1e-06"),
        ([("A", "q", 1, 0)], "weight 0 is no number of 1e-06"),
        ([("A", "q", 1, 2), ("B", "q", 1, 3)], "sample q has the weight 3, elsewhere 2"),
    ],
)
def test_weights_that_cannot_be_used_are_named(tmp_path, rows, message):
    file = table(tmp_path / "scores.csv", rows, "model,sample,score,weight")
    with pytest.raises(UsageError, match=message):
        read_scores(file)


def test_several_tables_are_one_epochs_are_averaged_and_empty_scores_are_not_compared(tmp_path):
    rows = (
        [("A", n, 1, 0) for n in range(12)]
        + [("A", n, 0, 1) for n in range(11)]
        + [("A", 11, "", 1), ("A", 12, "NaN", 0)]
    )
    one = table(tmp_path / "a.csv", rows, "Model,sample,score,epoch")
    two = tmp_path / "b.csv"
    two.write_text(
        "model;sample;score\n"
        + "".join(f"B;{n}.0;{score}\n" for n, score in enumerate(["0,5", "TRUE", "false"] * 4))
    )
    read = read_scores(one)["A"]
    assert read.scores == {(str(n), str(n), 1): 1 if n == 11 else 0.5 for n in range(12)}
    assert read.gaps == {("11", "11", 1): 0.5, ("12", "12", 1): 1}
    compared = compare_tables(one, two)[0]
    assert compared.means["table"] == pytest.approx((6.5 / 12, 0.5))
    table(two, [("B", f"{n}.0", 1) for n in range(14)], "model,sample,score")
    assert compare_tables(one, two)[0].unpaired["table"] == (0, 2)


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        ("model,id,score", [("A", "q", 1)], "has no column sample; it has model, id, score"),
        (
            "model,sample,score",
            [("A", "q", 85)],
            "row 2 of s.csv: score 85 is no number from 0 to 1",
        ),
        ("model,sample,score", [("A", "q", "C")], "score C is no number"),
        ("model,sample,score", [("A", "q", -0.1)], "score -0.1 is no number"),
        (
            "model,sample,score",
            [("A", "q", 1), ("A", "q", 0)],
            "row 3 of s.csv repeats model A, sample q",
        ),
        (
            "model,sample,score,epoch",
            [("A", "q", 1, 1), ("A", "q", 0, 1)],
            "row 3 of s.csv repeats",
        ),
        ("model,sample,score", [("A", "q", 1)], "a comparison needs two models, not A"),
        (
            "model,sample,score",
            [("A", "q", 1), ("B", "r", 1)],
            "A and B have no scored sample in common",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_a_hint(tmp_path, columns, rows, message):
    with pytest.raises(UsageError, match=message) as raised:
        compare_tables(table(tmp_path / "s.csv", rows, columns))
    assert raised.value.hint


def test_a_sample_has_one_cluster_and_every_row_a_model(tmp_path):
    with pytest.raises(
        UsageError, match=r"row 3 .* sample q1 is in the cluster c2, elsewhere in c1"
    ):
        read_scores(table(tmp_path / "a.csv", [("A", "q1", 1, "c1"), ("B", "q1", 0, "c2")]))
    old, new = (table(tmp_path / f"{name}.csv", [(name, "q1", 1, name)]) for name in ("old", "new"))
    with pytest.raises(
        UsageError, match=r"row 2 of old\.csv: sample q1 is in the cluster old, elsewhere in new"
    ):
        gate_tables(new, old, 0.0, allow_invalid=False)
    with pytest.raises(UsageError, match=r"row 2 .* has no model"):
        read_scores(table(tmp_path / "b.csv", [("", "q1", 1, "c1")]))


def test_a_gate_takes_two_tables_or_two_models_of_one(tmp_path, scores):
    both = table(tmp_path / "both.csv", scores)
    sides = [
        table(tmp_path / f"{name}.csv", [("mine", *row[1:]) for row in scores if row[0] == name])
        for name in "AB"
    ]
    for new, old, code in (
        (both, "A", 1),
        (both, "B", 0),
        (sides[1], sides[0], 1),
        (sides[0], sides[1], 0),
    ):
        done = CliRunner().invoke(app, ["gate", str(new), "--against", str(old)])
        assert done.exit_code == code, done.output
        assert "column score of the table: " in done.stdout
    result, newer, older = gate_tables(
        both, both.with_name("B").relative_to(tmp_path), 0, allow_invalid=False
    )
    assert (newer, older, result.new - result.old) == ("A", "B", pytest.approx(-result.bound.drop))
    done = CliRunner().invoke(app, ["gate", str(both), "--against", str(sides[0])])
    assert isinstance(done.exception, UsageError)
    assert "both.csv has the scores of A, B" in str(done.exception)
    run = tmp_path / "run"
    run.mkdir()
    for arguments, says in (
        (["compare", run, both], "samples.parquet"), (["gate", run, "--against", both], "samples.parquet"),
        (["gate", both, "--against", run], "samples.parquet"), (["gate", both, "--against", "C"], "neither a table"),
        (["gate", both, "--against", "A", "--mode", "no-tool"], "has no modes"),
    ):  # fmt: skip
        done = CliRunner().invoke(app, [*map(str, arguments)])
        assert isinstance(done.exception, UsageError), arguments
        assert says in str(done.exception)


def test_a_gate_fails_if_the_new_table_lacks_scores(tmp_path, scores):
    old = table(tmp_path / "old.csv", [row for row in scores if row[0] == "A"])
    new = table(
        tmp_path / "new.csv",
        [(*row[:2], "" if row[1] == "q3" else 1, row[3]) for row in scores if row[0] == "A"],
    )
    result = gate_tables(new, old, 0, allow_invalid=False)[0]
    assert (result.lost, result.lacking, result.passed) == (1, (0, 1), True), "one cannot undo it"
    table(
        new, [(*row[:2], "" if at < 20 else row[2], row[3]) for at, row in enumerate(scores[:40])]
    )
    result = gate_tables(new, old, 0, allow_invalid=False)[0]
    assert (result.passed, result.fault) == (
        False,
        "no verdict, because 20 samples of the new version have no score",
    )
    assert result.drops.lower < 0 < result.drops.upper
    assert gate_tables(new, old, 0, allow_invalid=True)[0].passed


@pytest.mark.parametrize("header", ["model,sample,score,score", "model,sample,score,Score"])
def test_two_columns_of_scores_are_refused(tmp_path, header):
    """Before, the last one of ``score`` and ``Score`` counted, and the first one of two ``score``."""
    file = table(tmp_path / "a.csv", [("A", 1, 0, 1), ("B", 1, 1, 0)], header)
    with pytest.raises(UsageError, match=r"several columns of one name: 'score' \(column 3\), "):
        read_scores(file)


# --- which columns are read, and which samples depend on each other ---------------------------------------------------


def clustered(path, column):
    """100 samples of 10 groups, which hold all the difference of the models."""
    rows = [
        (model, f"q{n}", int((n // 10 * 7 + (model == "b")) % 3 > 0), f"g{n // 10}")
        for model in "ab"
        for n in range(100)
    ]
    return table(path, rows, f"model,sample,score,{column}")


def asked(*arguments):
    """The words that answer the question of a command."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert isinstance(done.exception, UndecidedError), done.output
    assert code_of(done.exception) == UNDECIDED
    return done.exception.answers


@pytest.mark.parametrize("column", ["image", "group_id", "anything"])
def test_a_column_that_could_be_the_cluster_is_asked_about_whatever_its_name(tmp_path, column):
    file = clustered(tmp_path / "s.csv", column)
    assert asked("compare", file) == (f"--cluster={column}",)
    assert asked("gate", file, "--against", "a") == (f"--cluster={column}",)
    for answer, n_clusters in ((column, 10), ("none", 100)):
        done = CliRunner().invoke(app, ["compare", str(file), "--cluster", answer, "--json"])
        (found,) = json.loads(done.stdout)
        assert found["modes"]["table"]["score"]["overall"]["n_clusters"] == n_clusters
        assert (f"column {column}" in found["not_read"]) == (answer == "none")
    known = compare_tables(clustered(tmp_path / "known.csv", "cluster"))[0]
    assert known.modes["table"]["score"].overall.n_clusters == 10


def test_one_question_names_all_columns_that_repeat_and_none_that_measure(tmp_path):
    chance = random.Random(2)
    rows = [
        (model, f"q{n}", chance.randint(0, 1), n // 5, n % 4, "test", chance.random(), chance.randint(1, 9), n)
        for model in "ab"
        for n in range(60)
    ]  # fmt: skip
    header = "model,sample,score,photo,task,split,seconds,calls,row"
    file = table(tmp_path / "s.csv", rows, header)
    done = CliRunner().invoke(app, ["compare", str(file)])
    text = str(done.exception)
    assert "1 question" in text
    assert "photo (12 clusters), task (4 clusters), none (60 independent samples)" in text
    done = CliRunner().invoke(app, ["compare", str(file), "--cluster", "photo"])
    assert "read: columns model, sample, score, photo (clusters by photo)" in done.stderr
    left = ", ".join(f"column {name}" for name in ("task", "split", "seconds", "calls", "row"))
    assert f"not read: {left}" in done.stderr


def test_a_plain_table_is_compared_and_gated_without_a_question(tmp_path, scores):
    plain = [row[:3] for row in scores]
    file = table(tmp_path / "s.csv", plain, "model,sample,score")
    for command in (["compare", file], ["gate", file, "--against", "B"]):
        done = CliRunner().invoke(app, [*map(str, command)])
        assert done.exit_code == 0
        assert "read: columns model, sample, score (each sample is a cluster" in done.stderr


@pytest.mark.parametrize("ending", ["-{}", "_r{}", " (try {})"])
def test_questions_asked_several_times_are_no_independent_samples(tmp_path, ending):
    chance = random.Random(4)
    scores = {(model, n): chance.randint(0, 1) for model in "ab" for n in range(20)}
    rows = [
        (model, f"q{n}{ending.format(again)}", score)
        for (model, n), score in scores.items()
        for again in range(10)
    ]
    file = table(tmp_path / "s.csv", rows, "model,sample,score")
    assert asked("compare", file) == ("--cluster=id-beginning",)
    done = CliRunner().invoke(app, ["compare", str(file), "--cluster=id-beginning", "--json"])
    overall = json.loads(done.stdout)[0]["modes"]["table"]["score"]["overall"]
    assert (overall["n"], overall["n_clusters"]) == (200, 20)
    rows[0] = (*rows[0][:2], 1 - rows[0][2])
    different = table(tmp_path / "d.csv", rows, "model,sample,score")
    assert compare_tables(different)[0].modes["table"]["score"].overall.n_clusters == 200


def test_the_cluster_of_a_sample_counts_in_tables_that_do_not_give_it(tmp_path, scores):
    old = table(tmp_path / "old.csv", [row for row in scores if row[0] == "A"])
    plain = [row[:3] for row in scores if row[0] == "B"]
    new = table(tmp_path / "new.csv", plain, "model,sample,score")
    result, _, _ = gate_tables(new, old, 0.0, allow_invalid=False)
    assert (result.bound.n, result.bound.n_clusters) == (40, 20)


def test_clusters_that_only_the_new_version_names_are_refused(tmp_path):
    samples = [f"q{number}" for number in range(40)]
    old = table(tmp_path / "old.csv", [("A", each, "1") for each in samples], "model,sample,score")
    worse = [("B", each, "0", "x") for each in samples[:8]]
    alike = [("B", each, "1", each) for each in samples[8:]]
    new = table(tmp_path / "new.csv", [*worse, *alike])
    with pytest.raises(UsageError, match=r"old\.csv names no clusters"):
        gate_tables(new, old, 0.0, allow_invalid=False)
    with pytest.raises(UsageError, match=r"old\.csv names no clusters"):
        compare_tables(old, new)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare", "s.csv", "--cluster", "field"], "there is no field"),
        (["compare", "s.csv", "--cluster", "id-beginning"], "there is no id-beginning"),
        (["compare", "s.csv", "--cluster", "score"], "there is no score"),
        (["gate", "s.csv", "--against", "missing.csv"], "there is no table missing.csv"),
        (["gate", "run", "--against", "missing.csv"], "there is no table missing.csv"),
        (["compare", "run", "run2", "--cluster", "image"], "--cluster names a column"),
    ],
)
def test_a_cluster_or_a_table_that_is_not_there_is_named(tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    clustered(Path("s.csv"), "image")
    Path("run").mkdir()
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)


def test_a_gate_that_passes_says_which_drops_it_could_have_found(tmp_path):
    old = [(n, int(n % 4 > 0)) for n in range(40)]
    new = [(n, score * (n not in (5, 6, 7))) for n, score in old]
    rows = [("old", *row) for row in old] + [("new", *row) for row in new]
    file = table(tmp_path / "s.csv", rows, "model,sample,score")
    result, _, _ = gate_tables(file, Path("old"), 0.02, allow_invalid=False)
    assert result.passed
    assert result.bound.drop == pytest.approx(0.075)
    assert result.detectable is not None
    power = result.bound.power(result.detectable - 0.02)
    assert power == pytest.approx(0.8, abs=0.01)
    done = CliRunner().invoke(app, ["gate", str(file), "--against", "old", "--max-drop", "2"])
    first = done.stdout.splitlines()[0]
    least = f"{100 * result.detectable:.1f}"
    assert (
        first == f"PASS, but these 40 samples would have found only drops of {least} points or more"
    )
    poor = [(model, n, int(n == 0)) for model in ("old", "new") for n in range(40)]
    table(file, poor, "model,sample,score")
    result, _, _ = gate_tables(file, Path("old"), 0.0, allow_invalid=False)
    assert result.passed
    assert result.detectable is None
