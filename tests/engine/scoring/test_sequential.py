"""The test after each block of clusters (``--until-decided``)."""

import numpy as np
import pytest

from agrotools.scoring.sequential import InterimLook, sequential_look

BLOCKS = 10


def differences(
    seed: int, gap: float, n_clusters: int = 120
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences of scores of 0, 1/2 and 1 in clusters of 1 or 2 samples that agree, with the block of each."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 3, size=n_clusters)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    first, second = (
        np.clip(
            np.floor(
                3
                * (
                    random.random(n_clusters)[clusters] * 0.5
                    + random.random(len(clusters)) * 0.5
                    + up
                )
            ),
            0,
            2,
        )
        for up in (gap, 0.0)
    )
    return (first - second) / 2, clusters, clusters * BLOCKS // n_clusters


def look(deltas: np.ndarray, clusters: np.ndarray, blocks: np.ndarray) -> InterimLook:
    return sequential_look(deltas, clusters, blocks, largest=2)


def test_at_most_a_twentieth_of_equal_pairs_is_decided():
    decided = [look(*differences(seed, 0.0)).decided for seed in range(300)]
    assert np.mean(decided) < 0.05


@pytest.mark.parametrize("share", [0.05, 0.2, 0.9])
def test_nor_where_one_run_is_seldom_right_and_the_other_has_a_constant_score(share: float):
    """Differences are skewed: most are small and of one sign, a few are large. The means are equal."""
    random = np.random.default_rng(0)
    clusters = np.arange(400)
    pairs = [(random.random(400) < share) - share for _ in range(300)]
    decided = [sequential_look(each, clusters, clusters // 40, largest=1).decided for each in pairs]
    assert np.mean(decided) < 0.05


def test_a_large_gap_is_decided_early_and_the_interval_holds_it():
    looks = [look(*differences(seed, 0.25)) for seed in range(40)]
    assert all(each.decided and each.difference.value > 0 for each in looks)
    assert np.mean([each.number for each in looks]) < BLOCKS * 0.6
    true = np.mean(np.concatenate([differences(seed, 0.25)[0] for seed in range(500, 700)]))
    intervals = [each.difference.interval for each in looks]
    assert (
        np.mean([each is not None and each.lower <= true <= each.upper for each in intervals])
        > 0.94
    )


@pytest.mark.parametrize("gap", [0.0, 0.25])
def test_looks_do_not_depend_on_later_blocks(gap: float):
    deltas, clusters, blocks = differences(1, gap)
    whole = look(deltas, clusters, blocks)
    n = int(np.sum(blocks < whole.number))
    assert look(deltas[:n], clusters[:n], blocks[:n]) == whole
    mirrored = look(-deltas, clusters, blocks)
    assert (mirrored.number, mirrored.difference.value) == (whole.number, -whole.difference.value)
    assert mirrored.difference.interval is not None
    assert whole.difference.interval is not None
    assert mirrored.difference.interval.lower == pytest.approx(-whole.difference.interval.upper)


def test_the_interval_holds_the_differences_that_the_bets_do_not_reject():
    random = np.random.default_rng(2)
    deltas, clusters = random.choice([-1.0, 0.0, 1.0], size=200, p=[0.2, 0.4, 0.4]), np.arange(200)
    found = sequential_look(deltas, clusters, np.zeros(200, dtype=np.int64), largest=1).difference
    assert found.interval is not None
    for mean, inside in ((found.interval.lower - 0.01, False), (found.interval.lower + 0.01, True)):
        # the same bets on each sample by hand: 1 + f (d - mean) / (1 + mean), for ten fractions f
        capital = np.mean(
            [np.prod(1 + f * (deltas - mean) / (1 + mean)) for f in np.linspace(0.05, 0.95, 10)]
        )
        assert bool(capital < 40) is inside


def test_equal_scores_few_clusters_and_large_ones_decide_nothing():
    def look_at(difference: float, n: int, largest: int = 1) -> InterimLook:
        return sequential_look(
            np.full(n, difference), np.arange(n), np.zeros(n, dtype=np.int64), largest=largest
        )

    assert look_at(0.0, 50).decided is False
    assert [look_at(1.0, n).decided for n in (9, 40)] == [False, True]
    assert look_at(1.0, 9).difference.interval is None
    assert (
        look_at(1.0, 40, largest=40).decided is False
    )  # a cluster that is still to come may undo it all


def test_a_difference_beyond_what_was_said_is_no_result():
    with pytest.raises(ValueError, match="larger difference"):
        sequential_look(np.array([2.0]), np.array([0]), np.array([0]), largest=1)
