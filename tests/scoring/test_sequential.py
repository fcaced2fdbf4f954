"""The test after each block of clusters (``--until-decided``)."""

import numpy as np
import pytest

from agrotools.scoring.sequential import sequential_look

BLOCKS = 10
SHARES = (np.arange(BLOCKS) + 1) / BLOCKS


def differences(seed: int, gap: float, n_clusters: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences of scores of 0, 1/2 and 1 in clusters of 1 to 6 samples that agree, with the block of each."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 7, size=n_clusters)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    first, second = (
        np.clip(
            np.floor(3 * (random.random(n_clusters)[clusters] * 0.5 + random.random(len(clusters)) * 0.5 + up)), 0, 2
        )
        for up in (gap, 0.0)
    )
    return (first - second) / 2, clusters, clusters * BLOCKS // n_clusters


def test_at_most_a_twentieth_of_equal_pairs_is_decided_whatever_the_clusters():
    decided = [sequential_look(*differences(seed, 0.0), SHARES).decided for seed in range(300)]
    assert 0.01 < np.mean(decided) < 0.08


def test_a_large_gap_is_decided_early_and_the_interval_holds_it():
    looks = [sequential_look(*differences(seed, 0.25), SHARES) for seed in range(40)]
    assert all(look.decided and look.difference.value > 0 for look in looks)
    assert np.mean([look.number for look in looks]) < BLOCKS / 2
    true = np.mean(np.concatenate([differences(seed, 0.25)[0] for seed in range(500, 700)]))
    intervals = [look.difference.interval for look in looks]
    assert np.mean([each is not None and each.lower <= true <= each.upper for each in intervals]) > 0.85


@pytest.mark.parametrize("gap", [0.0, 0.25])
def test_looks_do_not_depend_on_later_blocks(gap):
    deltas, clusters, blocks = differences(1, gap)
    whole = sequential_look(deltas, clusters, blocks, SHARES)
    n = int(np.sum(blocks < whole.number))
    assert sequential_look(deltas[:n], clusters[:n], blocks[:n], SHARES) == whole
    mirrored = sequential_look(-deltas, clusters, blocks, SHARES)
    assert (mirrored.number, mirrored.difference.value) == (whole.number, -whole.difference.value)


def test_equal_scores_and_few_clusters_decide_nothing():
    def look(difference: float, n: int):
        return sequential_look(np.full(n, difference), np.arange(n), np.zeros(n, dtype=np.int64), np.ones(1))

    assert look(0.0, 50).difference.interval is None
    assert [look(1.0, n).decided for n in (9, 40)] == [False, True]
