"""The table of score rows: units of a metric, with the order and the bounds that summaries and comparisons need."""

import numpy as np
import pytest

from agrotools.core import ReferenceStep, ReferenceTrajectory, Score, ToleranceSlot
from agrotools.report.tables import source_sentence
from agrotools.scoring.sample_traits import WHOLE
from agrotools.scoring.score_table import ScoreTable
from agrotools.scoring.unit_estimates import difference_of, metric_of, paired_units
from support.plain_sample import plain_sample
from support.runs import invalid, record, summarise

AREA = ToleranceSlot(name="area", label="area", value=7, unit="%", abs_tol=0.5)
CALL = ReferenceStep(tool="calculate", arguments={"expression": "1"})


def sample(name, **changes):
    reference = ReferenceTrajectory(steps=(CALL, CALL))
    return plain_sample(name, answer=(AREA,), reference=reference, **changes)


def table_of(*records, cluster="a"):
    """A table of (sample, epoch, FAS or None for an invalid record)."""
    table = ScoreTable()
    for name, epoch, value in records:
        make = invalid if value is None else record
        number = table.add_record(make(name, sample=sample(name, cluster=cluster), epoch=epoch))
        if value is not None:
            table.add_score("no-tool", "fas", number, value)
    return table


def test_epochs_are_averaged_and_invalid_ones_widen_the_bounds():
    table = table_of(("b", 0, 1.0), ("a", 0, 0.5), ("b", 1, 0.0), ("c", 0, None), ("b", 2, None))
    units = table.units("no-tool", "fas")
    assert table.ids(units.samples) == ["a", "b", "c"], "in the order of their ids"
    assert table.ids(units.clusters) == ["a", "a", "a"]
    assert units.steps.tolist() == [WHOLE] * 3
    assert units.epochs.tolist() == [1, 3, 1]
    assert units.values[:2].tolist() == [0.5, 0.5]
    assert units.valued.tolist() == [True, True, False]
    assert units.low.tolist() == [0.5, pytest.approx(1 / 3), 0.0]
    assert units.high.tolist() == [0.5, pytest.approx(2 / 3), 1.0]


def test_a_metric_and_a_mode_have_rows_of_their_own():
    table = table_of(("a", 0, 1.0))
    table.add_score("no-tool", "css", 0, 0.25)
    table.add_score("end-to-end", "fas", 0, 0.0)
    assert table.metrics("no-tool") == ["fas", "css"]
    assert table.units("no-tool", "css").values.tolist() == [0.25]
    assert table.units("no-tool", "fas").values.tolist() == [1.0]
    assert len(table.units("no-tool", "plot").values) == 0


def test_steps_are_units_and_a_sample_without_a_valid_record_has_all_of_its_steps():
    table = ScoreTable()
    lost = table.add_record(invalid("a", sample=sample("a"), mode="step-by-step"))
    number = table.add_record(record("b", sample=sample("b"), mode="step-by-step"))
    for step, value in ((1, 1.0), (0, 0.5), (1, 0.0)):
        table.add_score("step-by-step", "tool_acc", number, value, step)
    units = table.units("step-by-step", "tool_acc")
    assert units.samples.tolist() == [lost, lost, number, number]
    assert units.steps.tolist() == [0, 1, 0, 1]
    assert units.values[2:].tolist() == [0.5, 0.5]
    assert np.isnan(units.values[:2]).all()


def test_a_table_grows_after_its_rows_were_grouped():
    table = table_of(("a", 0, 1.0))
    before = table.units("no-tool", "fas")
    number = table.add_record(record("b", sample=sample("b", cluster="c")))
    table.add_score("no-tool", "fas", number, 0.0)
    assert before.values.tolist() == [1.0]
    assert table.units("no-tool", "fas").values.tolist() == [1.0, 0.0]


def test_units_of_another_table_get_the_numbers_of_this_one():
    mine = table_of(("a", 0, 1.0), ("b", 0, 0.0))
    other = table_of(("c", 0, 0.25), ("b", 0, 0.5), ("a", 0, 0.75))
    units = mine.renumbered(other.units("no-tool", "fas"), other)
    assert mine.ids(units.samples) == ["a", "b"], "without the sample that this table lacks"
    assert units.values.tolist() == [0.75, 0.5]
    assert mine.ids(units.clusters) == ["a", "a"]


def test_the_order_of_records_changes_no_digit():
    values = np.random.default_rng(1)
    thirds = (None, 0.0, 1 / 3, 2 / 3, 1.0)
    records = [
        (f"s{number}", epoch, thirds[values.integers(len(thirds))])
        for number in range(200)
        for epoch in range(3)
    ]
    results = []
    for order in (records, records[::-1], sorted(records, key=lambda each: each[1])):
        table = table_of(*order, cluster=None)
        units = table.units("no-tool", "fas")
        other = table.renumbered(units._replace(values=units.values[::-1]), table)
        pair = paired_units(units, other)
        results.append((metric_of(units, table), difference_of(pair, table), pair.means))
    assert results[0] == results[1] == results[2]


def by_source(n_sources, share_right):
    """The summary of a run with four samples of each source; in a source all are right or all are wrong."""
    records, scores = [], []
    for source in range(n_sources):
        value = float(source < share_right * n_sources)
        for number in range(4):
            name = f"s{source}-{number}"
            records.append(record(name, sample=sample(name, cluster=name, source=f"farm {source}")))
            scores.append([Score(metric="fas", version="1", sample_id=name, value=value)])
    return summarise(records, scores).modes["no-tool"]


def test_the_interval_on_a_new_source_is_over_sources_and_wider_than_that_on_these_places():
    part = by_source(12, 0.5)
    places = part.metrics["fas"].overall
    assert part.by_source.value == places.value == 0.5
    assert (part.by_source.n_clusters, places.n_clusters) == (12, 48)
    width = part.by_source.interval.upper - part.by_source.interval.lower
    assert width > 1.8 * (places.interval.upper - places.interval.lower)
    assert part.by_source.detectable > places.detectable
    sentence = source_sentence(places, part.by_source)
    assert "48 clusters" in sentence
    assert "12 sources" in sentence


def test_few_sources_give_no_interval_on_a_new_one():
    assert by_source(9, 0.5).by_source is None
