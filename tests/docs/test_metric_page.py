"""The page on metrics: its plug-ins run as they are printed, up to a row in a comparison."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agrotools.core import BENCHMARKS, Sample
from agrotools.plugin import BenchmarkPlugin, MetricInfo, Targets
from agrotools.report.comparison import comparison_tables
from agrotools.report.tables import tables
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import comparisons
from support.made_runs import end_to_end, made_sample
from support.shown import cells_of, table_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "metric.md").read_text(encoding="utf-8")
MODULE = "numbers_metric"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The code of the page as one module, which can be imported by the name that the page gives it."""
    module = ModuleType(MODULE)
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "metric.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, MODULE, module)
    return module


@pytest.fixture
def numbers(page: ModuleType) -> Iterator[BenchmarkPlugin]:
    BENCHMARKS.add("numbers", page.PLUGIN)
    yield page.PLUGIN
    BENCHMARKS.remove("numbers")


def run(*answers: str, sample: Sample | None = None) -> RunAggregator:
    tally = RunAggregator()
    for number, answer in enumerate(answers):
        of = (sample or made_sample()).model_copy(update={"id": f"s{number:02}"})
        record = end_to_end(of, answer=answer)
        tally.add(record, score_record(record))
    return tally


def test_the_metric_has_a_column_and_a_row_in_a_comparison(numbers: BenchmarkPlugin):
    runs = [run(*["rows: 7"] * 6, *["rows: 9"] * 6), run(*["rows: 7"] * 12)]
    shown = table_of(tables([runs[0].summary()]), "numbers, end-to-end")
    assert cells_of(shown)["run"]["Numbers"].lines[0] == "50.0"
    (compared,) = comparisons(runs, ["a", "b"])
    rows = cells_of(table_of(comparison_tables(compared), ""))
    assert rows["Numbers"]["difference"].text.startswith("+50.0")
    assert compared.headline == {"end-to-end": "fas"}


def test_the_entry_point_names_the_plugin(numbers: BenchmarkPlugin):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    declared = tomllib.loads(text)["project"]["entry-points"]["agrotools.benchmarks"]
    assert declared == {numbers.name: f"{MODULE}:PLUGIN"}
    assert f"`{MODULE}.py`" in PAGE


def test_two_metrics_of_one_slot_come_from_one_rule(page: ModuleType):
    def is_grade(slot: Any) -> bool:
        return isinstance(slot, page.GradeSlot)

    metrics = {
        f"grades.{name}": MetricInfo(name, name, slots=is_grade, compared_in=("end-to-end",))
        for name in ("exact", "near")
    }
    plugin = BenchmarkPlugin(
        "grades",
        page.load_nothing,
        slots=(page.GradeSlot,),
        metrics=metrics,
        targets=Targets(scoring=f"{MODULE}:SCORING"),
    )
    BENCHMARKS.add("grades", plugin)
    try:
        slot = page.GradeSlot(name="grade", label="grade", value=3, from_="steps[0].observation")
        sample = made_sample(answer=(slot,))
        summary = run("3", "4", "5", "none", sample=sample).summary()
        found = summary.modes["end-to-end"].metrics
        assert {name: found[name].overall.value for name in metrics} == {
            "grades.exact": 0.25,
            "grades.near": 0.5,
        }
    finally:
        BENCHMARKS.remove("grades")
