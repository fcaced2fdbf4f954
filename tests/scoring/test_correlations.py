"""Correlations of step metrics with outcomes: numpy's r, intervals by cluster, and silence where nothing varies."""

import random
from array import array

import numpy as np
import pytest

from agrotools.scoring.correlations import correlations
from agrotools.scoring.sample_units import Rows, SampleTable, Units, units_of
from support.plain_sample import plain_sample


def table_of(count: int, files: int = 0) -> SampleTable:
    table = SampleTable()
    for number in range(count):
        cluster = f"s{number % files}" if files else f"s{number}"
        table.number(plain_sample(f"s{number}", cluster=cluster))
    return table


def units(metric: str, values: dict[int, list[float]], table: SampleTable) -> Units:
    rows = Rows()
    for place, own in enumerate(values.values()):
        for step, value in enumerate(own):
            rows.add(place, None if len(own) == 1 else step, value)
    numbers = [table.number(plain_sample(f"s{sample}")) for sample in values]
    n = len(values)
    return units_of(metric, rows, array("I", numbers), array("I", [1] * n), array("I", [0] * n), table)


def test_r_is_that_of_the_samples_means_and_its_interval_holds_it():
    lots = random.Random(3)
    table = table_of(60)
    steps = {n: [float(lots.random() < 0.7) for _ in range(lots.choice((2, 3, 5)))] for n in range(60)}
    outcome = {n: [min(1.0, max(0.0, np.mean(own) + lots.gauss(0, 0.2)))] for n, own in steps.items()}
    (found,) = correlations(
        {"agrotools.arg_acc": units("agrotools.arg_acc", steps, table)},
        {"agrotools.fas": units("agrotools.fas", outcome, table)},
        table,
    )
    expected = np.corrcoef([np.mean(own) for own in steps.values()], [own[0] for own in outcome.values()])[0, 1]
    assert found.r == pytest.approx(expected)
    assert found.n == 60
    assert found.interval is not None
    assert found.interval.lower < found.r < found.interval.upper
    assert found.interval.upper - found.interval.lower < 0.5


def test_samples_that_one_mode_lacks_do_not_count():
    table = table_of(12)
    steps = {n: [float(n % 2), float(n % 3 == 0)] for n in range(10)}
    outcome = {n: [float(n % 2)] for n in range(2, 12)}
    (found,) = correlations(
        {"agrotools.tool_acc": units("agrotools.tool_acc", steps, table)},
        {"agrotools.fas": units("agrotools.fas", outcome, table)},
        table,
    )
    assert found.n == 8
    assert found.interval is None, "fewer than ten clusters"


def test_there_is_no_r_where_nothing_varies():
    table = table_of(20)
    same = {n: [1.0, 1.0] for n in range(20)}
    outcome = {n: [n / 20] for n in range(20)}
    (found,) = correlations(
        {"agrotools.st_acc": units("agrotools.st_acc", same, table)},
        {"agrotools.fas": units("agrotools.fas", outcome, table)},
        table,
    )
    assert found.r is None


def test_samples_of_one_file_count_as_one_draw():
    lots = random.Random(5)
    values = [lots.random() for _ in range(12)]
    apart, shared = table_of(240), table_of(240, files=12)
    steps = {n: [values[n % 12], values[n % 12]] for n in range(240)}
    outcome = {n: [min(1.0, values[n % 12] / 2 + 0.4 * ((n % 12) % 2))] for n in range(240)}
    widths = []
    for table in (apart, shared):
        (found,) = correlations(
            {"agrotools.arg_acc": units("agrotools.arg_acc", steps, table)},
            {"agrotools.fas": units("agrotools.fas", outcome, table)},
            table,
        )
        assert found.interval is not None
        widths.append(found.interval.upper - found.interval.lower)
    assert widths[1] > 2 * widths[0]
