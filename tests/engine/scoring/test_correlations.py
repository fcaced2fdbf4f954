"""Correlations of steps with answers: over models, over the samples of a run, and their intervals."""

import numpy as np
import pytest

from agrotools.core import Record, Sample, Score, Trajectory
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.correlations import (
    CorrelatedRun,
    correlations,
    exact_interval,
    model_of_run,
    over_models,
    pearson,
)
from support.plain_sample import plain_sample


def tally(steps: list[list[float]], answers: list[float], **changes: str) -> RunAggregator:
    """A run with these scores of the steps of each sample in ArgAcc, and these of the answers in FAS."""
    made = RunAggregator()
    for number, (of_steps, answer) in enumerate(zip(steps, answers, strict=True)):
        sample = plain_sample(f"s{number:02}", **changes)
        made.add(Record(sample=sample, mode="step-by-step"), step_rows(sample, of_steps))
        ended = Record(
            sample=sample, mode="end-to-end", trajectory=Trajectory(termination="answered")
        )
        made.add(ended, [Score(metric="fas", version="1", sample_id=sample.id, value=answer)])
    return made


def step_rows(sample: Sample, values: list[float]) -> list[Score]:
    return [
        Score(metric="arg_acc", version="1", sample_id=sample.id, step=step, value=value)
        for step, value in enumerate(values)
    ]


STEPS = [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]] * 5
ANSWERS = [1.0, 0.5, 0.0, 0.5] * 5


def test_a_coefficient_is_pearsons_and_weights_count():
    first, second = np.array([0.1, 0.5, 0.9, 0.3]), np.array([0.2, 0.4, 1.0, 0.1])
    even = np.ones(4)
    assert pearson(first, second, even) == pytest.approx(np.corrcoef(first, second)[0, 1])
    doubled = np.append(first, first[0]), np.append(second, second[0])
    assert pearson(first, second, np.array([2.0, 1, 1, 1])) == pytest.approx(
        np.corrcoef(*doubled)[0, 1]
    )
    assert pearson(first, np.full(4, 0.3), even) is None


@pytest.mark.parametrize(("r", "n"), [(0.9, 3), (0.5, 5), (-0.3, 8)])
def test_the_interval_over_models_is_exact(r: float, n: int):
    """If the true coefficient is a limit, 2.5 % of the samples have a coefficient beyond the one that was seen."""
    limits = exact_interval(r, n)
    assert limits is not None
    generator = np.random.default_rng(1)
    first = generator.standard_normal((200_000, n))
    noise = generator.standard_normal((200_000, n))

    def coefficients(true: float):
        second = true * first + np.sqrt(1 - true**2) * noise
        x, y = (each - each.mean(axis=1, keepdims=True) for each in (first, second))
        return (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))

    assert np.mean(coefficients(limits.lower) >= r) == pytest.approx(0.025, abs=0.002)
    assert np.mean(coefficients(limits.upper) <= r) == pytest.approx(0.025, abs=0.002)


def test_models_on_a_line_and_several_runs_of_a_model_have_no_interval():
    names = ("arg_acc", "fas")
    assert exact_interval(1.0, 4) is None
    twice = over_models(["a", "a", "b", "c"], [0.1, 0.2, 0.5, 0.9], [0.2, 0.1, 0.4, 0.9], names)
    assert (twice.n, twice.n_clusters, twice.interval) == (4, 3, None)
    once = over_models(["a", "b", "c", "d"], [0.1, 0.2, 0.5, 0.9], [0.2, 0.1, 0.4, 0.9], names)
    assert once.r == twice.r
    assert once.interval is not None
    assert over_models(["a", "b", "c"], [0.5] * 3, [0.2, 0.1, 0.4], names).r is None


def test_over_samples_the_mean_of_the_steps_meets_the_answer():
    (found,) = correlations([CorrelatedRun("a", tally(STEPS, ANSWERS))])
    means = [sum(each) / 2 for each in STEPS]
    assert (found.over, found.run, found.step, found.answer) == ("samples", 0, "arg_acc", "fas")
    assert found.r == pytest.approx(np.corrcoef(means, ANSWERS)[0, 1])
    assert (found.n, found.n_clusters) == (20, 20)
    assert found.interval is not None
    assert -1 < found.interval.lower < found.r < found.interval.upper <= 1


def test_few_clusters_leave_no_interval_and_equal_answers_no_coefficient():
    (few,) = correlations([CorrelatedRun("a", tally(STEPS, ANSWERS, cluster="one field"))])
    assert (few.n, few.n_clusters, few.interval) == (20, 1, None)
    (equal,) = correlations([CorrelatedRun("a", tally(STEPS, [1.0] * 20))])
    assert (equal.r, equal.interval) == (None, None)


def test_over_models_three_are_needed_and_a_baseline_is_none():
    shares = {"a": 0.2, "b": 0.5, "c": 0.9, "baseline:guess": 0.1}
    runs = [
        CorrelatedRun(model_of_run(name), tally([[share], [0.0]] * 10, [share, 0.1] * 10))
        for name, share in shares.items()
    ]
    over = [each for each in correlations(runs) if each.over == "models"]
    assert [(each.n, each.step, each.answer) for each in over] == [(3, "arg_acc", "fas")]
    assert over[0].r == pytest.approx(1)
    two_models = [runs[0], runs[1], runs[3]]
    assert {each.over for each in correlations(two_models)} == {"samples"}
