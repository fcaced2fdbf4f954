"""A metric of a plug-in that runs are compared by has a place on every surface, without code for it."""

from collections.abc import Iterator

import pytest

from agrotools.core import BENCHMARKS, Record, Score, Slot, Trajectory
from agrotools.plugin import Benchmark, BenchmarkPlugin, Loading, MetricInfo
from agrotools.report.comparison import comparison_tables
from agrotools.report.screen import Screen, screen
from agrotools.report.tables import page_tables, tables
from agrotools.runner.rescore import Rescored
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import comparisons, side_by_side
from agrotools.scoring.summary import Summary
from support.plain_sample import plain_sample
from support.shown import cells_of, table_of, tables_text


def _is_exact(slot: Slot) -> bool:
    return slot.type == "exact"


def _no_benchmark(_: Loading) -> Benchmark:
    raise NotImplementedError


MINE = MetricInfo("Mine", "a metric of a plug-in", slots=_is_exact, compared_in=("end-to-end",))
JUDGED = MetricInfo("Graded", "by a judge", slots=_is_exact, by_judge=True)


@pytest.fixture(autouse=True)
def _plugin() -> Iterator[None]:
    BENCHMARKS.add(
        "mine", BenchmarkPlugin("mine", _no_benchmark, metrics={"mine.a": MINE, "mine.b": JUDGED})
    )
    yield
    BENCHMARKS.remove("mine")


def rescored(model: str, mine: float | None = 0.5, graded: float | None = None) -> Rescored:
    """A run of 20 samples that scores 1 in FAS, and these values in the metrics of the plug-in."""
    tally = RunAggregator()
    values = {"fas": 1.0, "mine.a": mine, "mine.b": graded}
    for number in range(20):
        sample = plain_sample(f"s{number}")
        record = Record(
            sample=sample, mode="end-to-end", trajectory=Trajectory(termination="answered")
        )
        rows = [
            Score(metric=metric, version="1", sample_id=sample.id, value=value)
            for metric, value in values.items()
            if value is not None
        ]
        tally.add(record, rows)
    summary = tally.summary().model_copy(update={"model": model, "benchmark": "b"})
    return Rescored(summary, tally=tally)


def together(*runs: Rescored) -> list[Summary]:
    return side_by_side(
        [run.summary for run in runs], [run.tally for run in runs if run.tally is not None]
    )


def test_scores_and_page_have_its_column_and_its_difference():
    summaries = together(rescored("a", 0.25), rescored("b", 0.75))
    for parts in (tables(summaries), page_tables(summaries).main):
        rows = cells_of(table_of(parts, "mine, end-to-end"))
        assert [row["Mine"].lines[0] for row in rows.values()] == ["25.0", "75.0"]
        between = table_of(
            parts, "Differences between runs: the later minus the earlier, paired by sample, points"
        )
        assert [column.heading[0] for column in between.columns[1:]] == ["FAS", "Mine"]


def test_the_screen_has_its_score_below_that_of_the_headline():
    lines = [line.plain for line in screen(Screen([rescored("a", 0.25), rescored("b", 0.75)]))]
    (line,) = (line for line in lines if line.startswith("Mine (a metric of a plug-in): a 25.0 ("))
    assert "b 75.0 (" in line


def test_a_comparison_shows_its_difference_without_details():
    runs = [rescored("a", 0.25), rescored("b", 0.75)]
    (compared,) = comparisons([run.tally for run in runs if run.tally is not None], ["a", "b"])
    assert compared.headline == {"end-to-end": "fas"}
    rows = cells_of(table_of(comparison_tables(compared), ""))
    assert rows["Mine"]["difference"].text.startswith("+50.0")


def test_a_run_whose_answers_no_judge_graded_has_a_dash_that_says_so():
    text = tables_text([rescored("a", None, 0.5).summary, rescored("b", None).summary])
    assert "no judge graded an answer of this run: agrotools score RUN --judge MODEL" in text
    assert "not run in this mode" not in text
