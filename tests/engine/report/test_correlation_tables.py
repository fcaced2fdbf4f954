"""Tables of the correlations of steps with answers: beside scores, comparisons and studies of three models."""

from pathlib import Path

import pytest

from agrotools.analysis.study import study_of_runs, study_result
from agrotools.analysis.study_tables import study_tables
from agrotools.report.comparison import comparison_data
from agrotools.report.correlations import TITLE, correlations_of_pairs
from agrotools.report.tables import page_tables, tables
from agrotools.runner.rescore import compare_runs, score_runs
from support.made_runs import call, end_to_end, made_sample, predicted, write_run
from support.shown import cells_of, table_of

SHARES = {"small": 0.3, "middle": 0.5, "large": 0.9}
N = 12


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Runs of three models: the first call is right in a share of the samples, and the answer in about as many."""
    return [_run(tmp_path / model, model, share) for model, share in SHARES.items()]


def _run(folder: Path, model: str, share: float) -> Path:
    samples = [made_sample(f"s{number:02}") for number in range(N)]
    steps, answers = [], []
    for number, sample in enumerate(samples):
        steps.append(predicted(sample, "2*3" if number < share * N else "2*4", "6 + 1"))
        answer = "rows: 7" if number < share * N + number % 2 else "rows: 9"
        answers.append(end_to_end(sample, call("2*3"), answer=answer))
    ids = tuple(sample.id for sample in samples)
    return write_run(folder, [*steps, *answers], model=model, sample_ids=ids)


def test_scores_and_page_of_three_models_have_the_table(runs: list[Path]):
    summaries = [each.summary for each in score_runs(runs)]
    for parts in (tables(summaries), page_tables(summaries).main):
        rows = cells_of(table_of(parts, TITLE))
        assert [*rows] == ["3 models", *(f"samples of {model}" for model in SHARES)]
        of_small = rows["samples of small"]["with FAS: ArgAcc"]
        assert of_small.lines[-1] == "n 12 (12)"
        assert rows["3 models"]["with FAS: ToolAcc"].lines == ("—",)
    assert {each.over for each in summaries[0].correlations} == {"models", "samples"}


def test_two_models_have_no_table(runs: list[Path]):
    summaries = [each.summary for each in score_runs(runs[:2])]
    assert summaries[0].correlations == ()
    assert correlations_of_pairs(compare_runs(runs[:2])) == []


def test_a_comparison_has_the_same_table_and_each_pair_its_own_runs(runs: list[Path]):
    pairs = compare_runs(runs)
    (table,) = correlations_of_pairs(pairs)
    summaries = [each.summary for each in score_runs(runs)]
    assert cells_of(table) == cells_of(table_of(tables(summaries), TITLE))
    last = comparison_data(pairs[-1])["correlations"]
    assert {each["run"] for each in last} == {None, 0, 1}
    of_all = {(each.run, each.step): each.r for each in summaries[0].correlations}
    for each in last:
        number = None if each["run"] is None else each["run"] + 1  # the pair of middle and large
        assert each["r"] == of_all[number, each["step"]]


def test_a_study_has_the_table_for_each_benchmark(runs: list[Path]):
    study, states = study_of_runs(runs)
    shown = study_tables(study_result(study, states))
    assert "3 models" in cells_of(table_of(shown, f"{TITLE}: b"))
