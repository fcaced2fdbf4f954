"""Temperature, abstention and figures of the nets: against values worked out by hand and by other libraries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nets.calibration import (
    SCORES,
    abstention_by,
    calibration_error,
    choose_abstention,
    figures,
    fit_temperature,
    log_sum_exp,
    negative_log_likelihood,
    scores_of,
    softmax,
    uncalibrated,
    wilson,
)


def made(
    temperature: float, count: int = 20_000, classes: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """Logits whose softmax at ``temperature`` is right by construction, and classes drawn from it."""
    draw = np.random.default_rng(1)
    logits = draw.normal(0, 3, (count, classes))
    chance = softmax(logits / temperature)
    drawn = (chance.cumsum(axis=1) < draw.random(count)[:, None]).sum(axis=1)
    return logits, drawn.astype(np.int64)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_that_made_the_classes_is_found(temperature: float) -> None:
    assert fit_temperature(*made(temperature)) == pytest.approx(temperature, rel=0.05)


def test_calibration_error_and_likelihood_are_those_by_hand() -> None:
    logits, classes = made(2.0)
    right = logits.argmax(axis=1) == classes
    before = calibration_error(softmax(logits).max(axis=1), right)
    after = calibration_error(softmax(logits / fit_temperature(logits, classes)).max(axis=1), right)
    assert before > 0.1
    assert after < 0.015
    logits = np.log(np.array([[0.7, 0.2, 0.1]]))
    assert negative_log_likelihood(logits, np.array([1]), 1.0) == pytest.approx(-math.log(0.2))


@given(st.lists(st.lists(st.floats(-500, 500), min_size=3, max_size=3), min_size=1, max_size=6))
def test_softmax_sums_to_one_however_large_logits_are(rows: list[list[float]]) -> None:
    logits = np.array(rows)
    assert softmax(logits).sum(axis=1) == pytest.approx(1)
    assert np.isfinite(log_sum_exp(logits)).all()


def test_a_threshold_keeps_the_share_of_the_known_that_was_asked_for() -> None:
    draw = np.random.default_rng(2)
    known, unknown = (
        draw.normal(0, 1, (1000, 5)) + 4 * np.eye(5)[draw.integers(0, 5, 1000)],
        draw.normal(0, 1, (500, 5)),
    )
    of_known, of_unknown = scores_of(known, 1.0), scores_of(unknown, 1.0)
    for score in SCORES:
        found = abstention_by(score, of_known[score], of_unknown[score], keep=0.9)
        assert 0.9 <= found.kept_of_known < 0.903
        assert found.refused_of_unknown > 0.5
    best = choose_abstention(of_known, of_unknown)
    assert best.refused_of_unknown == max(
        abstention_by(score, of_known[score], of_unknown[score]).refused_of_unknown
        for score in SCORES
    )
    told = scores_of(known, 1.0, np.ones(1000)), scores_of(unknown, 1.0, np.zeros(500))
    assert choose_abstention(*told).score == "likeness"
    assert choose_abstention(*told).refused_of_unknown == 1


def test_probabilities_of_few_subjects_or_beyond_chance_are_withheld() -> None:
    logits, classes = made(2.0, count=2000)
    honest, sure = (
        figures(logits, classes, ("a", "b", "c", "d"), temperature) for temperature in (2.0, 1.0)
    )
    assert honest["ece_chance"] > 0.01 > sure["ece_chance"] == 0
    rows = {
        "bean": honest,
        "bean, crop known": honest,
        "chilli": honest,
        "chilli, crop known": sure,
    }
    assert uncalibrated(rows, {"bean": 40, "chilli": 40}).keys() == {"chilli"}
    assert uncalibrated(rows, {"bean": 39, "chilli": 39}).keys() == {"bean", "chilli"}


def test_intervals_are_those_of_scipy_and_figures_those_by_hand() -> None:
    from scipy.stats import binomtest

    for right, count in ((0, 10), (9, 10), (37, 80), (80, 80)):
        interval = binomtest(right, count).proportion_ci(method="wilson")
        assert wilson(right, count) == pytest.approx((interval.low, interval.high), abs=2e-4)
    assert wilson(0, 0) == (0.0, 1.0)
    logits = np.array([[3.0, 0, 0], [3, 0, 0], [0, 3, 0], [0, 0, 3]])
    told = figures(logits, np.array([0, 1, 1, 1]), ("a", "b", "c"), 1.0)
    assert told["top1"] == 0.5
    table = told["by_class"]
    assert isinstance(table, dict)
    assert set(table) == {"a", "b"}  # a class without a picture has no figures
    assert table["a"] == {"n": 1, "precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3)}
    assert table["b"]["recall"] == pytest.approx(1 / 3)
