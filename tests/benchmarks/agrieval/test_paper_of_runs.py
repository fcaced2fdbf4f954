"""From run folders to the tables of AgriEval's paper."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agrotools.benchmarks.agrieval.paper_tables import agrieval_tables
from agrotools.report.settings import papers_of_runs
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.rescore import rescore
from support.made_agrieval import write_agrieval


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_agrieval(tmp_path_factory.mktemp("made") / "agrieval", 60, 20)


def run(data: Path, out: Path, **options: Any) -> Path:
    config = EvalConfig(benchmark="agrieval", data_root=data, model="baseline:random", out=out, options=options)
    return evaluate(config, io.StringIO()).run


def test_runs_become_results_by_setting_and_those_alike_are_told_apart(made: Path, tmp_path: Path):
    settings: list[dict[str, Any]] = [{}, {"cot": True}, {"shots": 1}, {"shots": 2}, {"order": "rotated"}]
    runs = [run(made, tmp_path / str(at), part="choice", **options) for at, options in enumerate(settings)]
    (tables,) = papers_of_runs(runs).filled()
    results = tables.results()
    assert [(each.setting, each.apart) for each in results] == [
        ("zero-shot", ""),
        ("cot", ""),
        ("few-shot", "part=choice, shots=1"),
        ("few-shot", "part=choice, shots=2"),
        ("rotated", ""),
    ]
    zero, *_, rotated = results
    assert set(rotated.items.item) == set(zero.items.item), "the rotations of a question are one item"
    assert len(rotated.items.item) > len(zero.items.item) == 60
    (table,) = agrieval_tables(results, numbers=["7"])
    accuracy = rescore(runs[0]).summary.modes["no-tool"].metrics["agrieval.accuracy"].overall
    assert table.rows[0].cells[-1].estimate.value == pytest.approx(accuracy.value)
    (few,) = agrieval_tables(results, numbers=["9"])
    assert [row.apart for row in few.rows] == ["part=choice, shots=1", "part=choice, shots=2"]
    assert all(row.cells[-1].change.n == 60 for row in few.rows)


def test_the_command_says_where_no_run_has_tables_of_a_paper(made: Path, small_benchmark: Path, tmp_path: Path):
    of_paper = run(made, tmp_path / "of-paper")
    config = EvalConfig(benchmark=str(small_benchmark), model="baseline:random", out=tmp_path / "other")
    other = evaluate(config, io.StringIO()).run
    for folder, told in ((of_paper, False), (other, True)):
        done = subprocess.run(
            [sys.executable, "-m", "agrotools", "score", str(folder), "--paper"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert ("none of these runs" in done.stderr) == told
        assert ("AgriEval, Table 7." in done.stdout) == (not told)
