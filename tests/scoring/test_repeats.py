"""Agreement between epochs: known answers, and the coverage of the re-run interval when a run stops."""

import numpy as np
import pytest

from agrotools.report.tables import repeats_table
from agrotools.scoring.statistics import repeats_of, rerun_interval
from support.made_runs import call, end_to_end, made_sample
from support.runs import summarise


def of_samples(*rights: tuple[int, ...]):
    """Repeats of samples with these scores by epoch, each in a cluster of its own."""
    places = np.repeat(np.arange(len(rights)), [len(each) for each in rights])
    return repeats_of(places, np.array([value for each in rights for value in each], float), np.arange(len(rights)))


def test_pass_k_counts_all_and_any_of_k_runs():
    found = of_samples((1, 1, 1, 1), (1, 1, 0, 0), (0, 0, 0, 0), (1, 0, 0, 0))
    assert found.epochs == 4
    assert found.pass_hat[1].value == found.pass_at[1].value == pytest.approx(7 / 16)
    # Of the six pairs of epochs, both are right in 6, 1, 0 and 0, and any is in 6, 5, 0 and 3.
    assert (found.pass_hat[2].value, found.pass_at[2].value) == (pytest.approx(7 / 24), pytest.approx(14 / 24))
    assert (found.pass_hat[4].value, found.pass_at[4].value) == (0.25, 0.75)
    assert found.flips.value == 0.5


def test_summaries_of_several_epochs_have_repeats():
    records = [
        end_to_end(made_sample(f"s{at}"), call("2*3"), answer=f"rows: {7 if epoch <= at % 2 else 9}", epoch=epoch)
        for at in range(20)
        for epoch in range(2)
    ]
    found = summarise(records).modes["end-to-end"].repeats
    assert (found.flips.value, found.pass_hat[2].value, found.pass_at[2].value) == (0.5, 0.5, 1.0)
    assert found.rerun.lower < 0.75 < found.rerun.upper
    assert len(repeats_table([summarise(records)])) == 1
    assert "repeats" not in summarise(records[::2]).modes["end-to-end"].model_dump()


def test_the_interval_narrows_with_more_epochs():
    random = np.random.default_rng(0)
    values = (random.random((8, 60)) < 0.5).astype(float)

    def width(epochs):
        interval = rerun_interval(np.tile(np.arange(60), epochs), values[:epochs].ravel())
        return interval.upper - interval.lower

    assert width(8) == pytest.approx(2 * 1.96 * (0.25 / 480) ** 0.5, rel=0.1)
    assert width(2) > 1.7 * width(8)


@pytest.mark.parametrize("unsure", [0.05, 0.6])
def test_the_interval_covers_the_mean_over_all_runs(unsure):
    random = np.random.default_rng(2)
    covered = []
    for _ in range(600):
        chances = np.where(random.random(40) < unsure, random.random(40), 1.0)
        values = (random.random((3, 40)) < chances).astype(float)
        interval = rerun_interval(np.tile(np.arange(40), 3), values.ravel())
        covered.append(interval.lower <= chances.mean() <= interval.upper)
    assert np.mean(covered) >= 0.95
