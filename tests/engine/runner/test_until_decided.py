"""Missing scores in runs that are made in turn: decided only if all of them set against the verdict do not undo it."""

from types import SimpleNamespace

import pytest

from agrotools.runner.rescore import EARLY_FILE, warnings_of_looks
from agrotools.runner.store import read_manifest
from agrotools.runner.until_decided import _compare_sides
from support.made_runs import call, end_to_end, made_sample, right, write_run
from support.runs import invalid

N = 100


def side(folder, values):
    """A prepared run with a record for each value: right, wrong, or without a reply (None)."""
    made = []
    for number, value in enumerate(values):
        sample = made_sample(f"s{number:03}")
        wrong = end_to_end(sample, call("2*4"), answer="rows: 8")
        none = invalid(sample.id, sample=sample, mode="end-to-end")
        made.append(none if value is None else right(sample) if value else wrong)
    return SimpleNamespace(folder=write_run(folder, made), manifest=read_manifest(folder))


def compared(tmp_path, first, second):
    sides = [side(tmp_path / "first", first), side(tmp_path / "second", second)]
    block_of = {f"s{number:03}": number // 5 for number in range(N)}
    return _compare_sides(sides, "end-to-end", block_of, N // 5 - 1, (1, 1.0))


@pytest.mark.parametrize(("n_missing", "is_decided"), [(0, True), (5, True), (60, False)])
@pytest.mark.parametrize("second_is_better", [True, False])
def test_missing_scores_are_set_against_the_verdict(
    tmp_path, n_missing, is_decided, second_is_better
):
    better = [None if number < n_missing else True for number in range(N)]
    worse = [number % 5 == 0 for number in range(N)]
    pair = (worse, better) if second_is_better else (better, worse)
    found = compared(tmp_path, *pair)
    assert (found.difference.value > 0) == second_is_better
    assert found.decided == is_decided
    if n_missing:
        lacking = (0, n_missing) if second_is_better else (n_missing, 0)
        assert found.missing.samples == lacking
        assert found.missing.lowest.value <= found.difference.value <= found.missing.highest.value
    else:
        assert found.missing is None


def test_a_second_test_of_runs_that_were_tested_while_they_were_made_says_so(tmp_path):
    """Not for a run of another pair, whose samples no look has compared with those of this one."""
    runs = [side(tmp_path / name, [True] * 12).folder for name in ("one", "two", "other")]
    for run, command in zip(
        runs, ("compare one two", "compare one two", "compare other x"), strict=True
    ):
        (run / EARLY_FILE).write_text(command)
    (text,) = warnings_of_looks(runs)
    assert "second test" in text
    assert text.endswith("compare one two")
    assert warnings_of_looks(runs[1:]) == []
