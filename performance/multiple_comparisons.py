"""How often equal models look different on one page, and how often a better one is found: by simulation.

Figures of docs/statistics.md, "Multiple comparisons".

    python performance/multiple_comparisons.py [--trials 2000]

In each trial the answers of eight models to the same samples are drawn, and all 28 pairs are compared as ``agrotools
score`` compares runs. Printed: the share of trials in which any pair of equal models is marked (by the p-value of each
pair alone, and adjusted), and of the pairs with a model that is better by so many points, how many are marked.
"""

import argparse
import time

import numpy as np
from scipy.special import ndtri

from agrotools.scoring.statistics import Estimate, adjusted, estimate_difference

MODELS = 8
DESIGNS = {
    "30 clusters of 4": (30, 4, 0.5, 0.5),
    "200 clusters of 3": (200, 3, 0.6, 0.5),
    "200 clusters of 3, models much alike": (200, 3, 0.6, 0.95),
    "100 clusters of 1, nearly all right": (100, 1, 0.9, 0.9),
}
"""Clusters, samples of each, share of right answers, and how much of an answer the models have in common."""


def answers(
    random: np.random.Generator,
    clusters: int,
    size: int,
    right: float,
    alike: float,
    better: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores 0 and 1 of shape (models, samples), and the cluster of each sample; the first model is ``better`` by so
    much. Samples of a cluster resemble each other (intra-cluster correlation 0.3)."""
    of = np.repeat(np.arange(clusters), size)

    def noise() -> np.ndarray:
        return np.sqrt(0.3) * random.normal(size=clusters)[of] + np.sqrt(0.7) * random.normal(
            size=len(of)
        )

    shared = noise()
    needed = ndtri(np.array([right + better] + [right] * (MODELS - 1)))
    drawn = np.array(
        [np.sqrt(alike) * shared + np.sqrt(1 - alike) * noise() for _ in range(MODELS)]
    )
    return (drawn < needed[:, None]).astype(float), of


def pairs(scores: np.ndarray, clusters: np.ndarray) -> list[Estimate]:
    """All pairs, adjusted together; those of the first model stand first."""
    found = [
        estimate_difference(scores[first], scores[second], clusters)
        for first in range(MODELS)
        for second in range(first + 1, MODELS)
    ]
    return adjusted(found)


def differs_alone(difference: Estimate) -> bool:
    """True if a difference is significant at the 5 % level without the adjustment for the other pairs."""
    return difference.p is not None and difference.p < 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name, design in DESIGNS.items():
        random = np.random.default_rng(arguments.seed)
        start = time.perf_counter()
        trials = [pairs(*answers(random, *design)) for _ in range(arguments.trials)]
        alone = np.mean([any(differs_alone(each) for each in trial) for trial in trials])
        together = np.mean([any(each.differs() for each in trial) for trial in trials])
        error = 1.96 * np.sqrt(together * (1 - together) / len(trials))
        print(
            f"{name}: equal models, any of 28 pairs marked: {alone:.3f} alone, {together:.3f} ± {error:.3f} adjusted"
        )
        for better in (0.05, 0.08):
            few = [
                pairs(*answers(random, *design, better=better))[: MODELS - 1]
                for _ in range(max(1, arguments.trials // 10))
            ]
            alone = np.mean([differs_alone(each) for trial in few for each in trial])
            together = np.mean([each.differs() for trial in few for each in trial])
            print(
                f"  one model {100 * better:.0f} points better, its pairs marked: {alone:.3f} alone, {together:.3f}"
            )
        print(f"  {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
