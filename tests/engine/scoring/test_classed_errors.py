"""Errors that a person classed: shares by class, and what is said of rows that do not count as they are written."""

from pathlib import Path

import pytest

from agrotools.core import AgrotoolsError, Record, Trajectory, UsageError
from agrotools.report.classed_errors import classed_error_tables
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.classed_errors import ClassedRun, read_classed_errors
from support.plain_sample import plain_sample
from support.shown import cells_of


def run(name: str = "a", n: int = 24, **changes: object) -> ClassedRun:
    tally = RunAggregator()
    for number in range(n):
        sample = plain_sample(
            f"s{number:02}", task_type="plotting" if number % 2 else "apple_size", **changes
        )
        ended = Trajectory(termination="answered")
        tally.add(Record(sample=sample, mode="no-tool", trajectory=ended), [])
    return ClassedRun(name, frozenset({name}), tally)


def table(folder: Path, *rows: str, header: str = "sample,error") -> Path:
    path = folder / "errors.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_shares_have_intervals_over_clusters_and_stand_by_task_type(tmp_path: Path):
    rows = [f"s{at:02},{'knowledge' if at % 4 else 'reasoning'}" for at in range(20)]
    read = read_classed_errors(table(tmp_path, *rows), [run()])
    assert read.notes == []
    (errors,) = read.of_runs
    assert (errors.n, [*errors.shares]) == (20, ["knowledge", "reasoning"])
    share = errors.shares["knowledge"]
    assert (share.overall.value, share.overall.n, share.overall.n_clusters) == (0.75, 20, 20)
    assert share.overall.interval is not None
    assert share.overall.interval.lower < 0.75 < share.overall.interval.upper
    assert share.by_task_type["plotting"].value == 1
    assert share.by_task_type["apple_size"].value == 0.5
    one_field = read_classed_errors(table(tmp_path, *rows), [run(cluster="one field")])
    assert one_field.of_runs[0].shares["knowledge"].overall.interval is None


def test_unknown_ids_repeats_and_empty_classes_are_said(tmp_path: Path):
    rows = (
        "s00,Knowledge",
        "s00,knowledge ",
        "s01,reasoning",
        "s01,understanding",
        "s02,",
        "stranger,reasoning",
        ",reasoning",
    )
    read = read_classed_errors(table(tmp_path, *rows), [run()])
    (errors,) = read.of_runs
    assert {error: share.overall.value for error, share in errors.shares.items()} == {
        "Knowledge": 0.5,
        "reasoning": 0.5,
    }
    assert read.notes == [
        "samples that are not in the run (2): (empty), stranger",
        "samples without a class of error (1): s02",
        "samples in several rows of one class, counted once (1): s00",
        "samples with several classes, of which the first counts (1): s01 (reasoning; understanding)",
        "'Knowledge', 'knowledge' are one class",
    ]


def test_several_runs_need_the_column_model_and_other_models_are_said(tmp_path: Path):
    runs = [run("a"), run("b")]
    with pytest.raises(UsageError, match="has no column model; it has sample, error"):
        read_classed_errors(table(tmp_path, "s00,reasoning"), runs)
    rows = ("a,s00,reasoning", "b,s00,knowledge", "b,s01,knowledge", "c,s00,reasoning")
    read = read_classed_errors(table(tmp_path, *rows, header="Model,Sample,Error"), runs)
    assert [each.n for each in read.of_runs] == [1, 2]
    assert read.notes == ["models that are not among the runs (1): c"]
    shown = cells_of(classed_error_tables(read.of_runs, ["a", "b"])[0])
    assert shown["reasoning"]["b"].lines == ("0.0", "0 of 2")
    assert shown["knowledge"]["b"].lines[-1] == "2 of 2"


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("sample,class", "s00,reasoning", "no column error; it has sample, class"),
        ("sample,error", "stranger,reasoning", "gives a class of error to a sample of a"),
        ("sample,error,Error", "s00,reasoning,knowledge", "several columns of one name"),
    ],
)
def test_a_table_that_says_nothing_of_the_run_is_refused(
    tmp_path: Path, header: str, row: str, message: str
):
    with pytest.raises(AgrotoolsError, match=message):
        read_classed_errors(table(tmp_path, row, header=header), [run()])
