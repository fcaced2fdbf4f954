"""The one-sided test of a drop, on simulated pairs with a known true drop."""

import numpy as np
import pytest
from scipy.special import ndtri

from agrotools.core import UsageError
from agrotools.scoring.gate import drop_bound

CLUSTERS = np.repeat(np.arange(120), [1, 2, 3] * 40)
PAIRS = 1500


def pairs(drop: float, seed: int):
    """Pairs of runs with binary scores: 60 % of the old ones are right, and of the new ones ``drop`` fewer."""
    random = np.random.default_rng(seed)
    for _ in range(PAIRS):
        shared = 0.5 * random.normal(size=120)[CLUSTERS] + 0.5 * random.normal(size=len(CLUSTERS))
        new, old = (shared + 0.5**0.5 * random.normal(size=len(CLUSTERS)) for _ in range(2))
        yield (new < ndtri(0.6 - drop)).astype(float), (old < ndtri(0.6)).astype(float)


@pytest.mark.parametrize("allowed", [0.0, 0.05])
def test_five_percent_of_pairs_fail_at_a_true_drop_of_the_allowed_one(allowed):
    failed = np.mean([drop_bound(*pair, CLUSTERS).lower > allowed for pair in pairs(allowed, 1)])
    assert failed == pytest.approx(0.05, abs=0.015)


def test_the_power_is_the_share_that_fails_beyond_a_drop_of_old_minus_new():
    bounds = [drop_bound(*pair, CLUSTERS) for pair in pairs(0.10, 2)]
    power = np.mean([bound.power(0.10) for bound in bounds])
    assert np.mean([bound.lower > 0 for bound in bounds]) == pytest.approx(power, abs=0.03)
    assert 0.3 < power < 0.95
    new, old = np.zeros(40), np.ones(40)
    new[:10] = 1
    bound = drop_bound(new, old, np.arange(40))
    assert bound.drop == 0.75
    assert 0.6 < bound.lower < 0.75
    assert (bound.n, bound.n_clusters) == (40, 40)


@pytest.mark.parametrize(("new", "fails"), [(1.0, False), (0.0, True)])
def test_runs_that_differ_alike_everywhere_have_a_bound_and_no_power(new, fails):
    bound = drop_bound([new] * 40, [1.0] * 40, range(40))
    assert (bound.lower > 0.05) is fails
    assert bound.lower < bound.drop
    assert bound.power(0.05) is None


def test_few_clusters_are_refused():
    with pytest.raises(UsageError, match="9 clusters"):
        drop_bound([0.0] * 9, [1.0] * 9, range(9))


def test_a_rare_gain_that_was_not_seen_is_no_drop():
    """The old run scores 1, but for one sample in twenty; the new one about 0.95 everywhere: none has dropped."""
    random = np.random.default_rng(0)
    failed = 0
    for _ in range(100):
        old, new = 1.0 * (random.random(20) < 0.95), random.uniform(0.93, 0.97, 20)
        failed += drop_bound(new, old, range(20)).lower > 0
    assert failed <= 10  # of 100; at 5 % more are seen in 1 of 100 such tests


def test_the_power_of_a_small_error_is_no_missing_number():
    bound = drop_bound(np.linspace(0.93, 0.97, 40), np.ones(40), range(40))
    assert bound.power(0.05) < 0.01  # less than what the clusters cannot exclude
    assert bound.power(0.5) == 1.0


def test_a_drop_has_no_power_while_its_own_bound_would_pass():
    """40 clusters cannot exclude that 7.2 % of them gain all there is; a drop leaves them more room to gain."""
    shared = np.tile([0.5, 0.502], 20)
    new = shared + np.tile([0.001, 0.001, -0.001, -0.001], 10)
    share = 1 - 0.05 ** (1 / 40)
    for allowed in (0.0, 0.05):
        power = drop_bound(new, shared, range(40), allowed=allowed).power
        least = (allowed + share) / (1 - share) - allowed
        assert power(least - 0.002) < 0.01
        assert power(least + 0.002) > 0.99
        # A drop of this size that is seen is not shown, as its lower bound says.
        seen = drop_bound(new - allowed - least + 0.002, shared, range(40))
        assert seen.lower < allowed
