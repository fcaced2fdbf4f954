"""Errors and samples of ``--until-decided``, by simulation: of equal models, and of models with known gaps.

Table of docs/statistics.md, "Stopping when it is decided".

    python performance/until_decided.py [--pairs 10000] [--benchmark embedded] [--only TEXT]

Each pair of runs has scores on the samples of the benchmark, in its clusters and in the order and blocks of the
command. Printed: the share of pairs that are decided, for which run, and the mean number of samples until then (all
samples if it is not decided). Of equal models at most 5 % may be decided.

* ``gap``: scores of 0, 1/2 and 1. One fifth of the scores of a run are 1/2, and the better run has a mean of 0.65.
  Scores of a cluster resemble each other (correlation 0.3 of the latent ability), and both runs share a part of it
  (``pairing``; 0: independent runs).
* ``other scores``: equal means, but the first run has no halves and the second twice as many.
* ``constant``: the first run is right on a share of the samples, the second always has this share as its score.
* ``rare points``, ``rare losses``: one run has the score of the other but for a few samples; the means are equal.
* ``skewed``: the pairs of ``skewed_pairs.py``.
* ``unequal clusters``: the same samples in clusters of 1 to 40. ``charts``: only the samples that ask for a chart.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import skewed_pairs
from scipy.special import ndtri

from agrotools.loading import load_benchmark
from agrotools.runner.plan import work_items
from agrotools.runner.until_decided import reach_of_clusters, sample_blocks
from agrotools.scoring.sequential import sequential_look

MEAN, HALVES, WITHIN = 0.65, 0.2, 0.3
Random = np.random.Generator
Pair = tuple[np.ndarray, np.ndarray]


class Layout(NamedTuple):
    """Cluster and block of each sample, in the order in which samples are run."""

    clusters: np.ndarray
    blocks: np.ndarray

    def of_samples(self, kept: np.ndarray) -> "Layout":
        """The layout of a part of the samples, with clusters numbered anew."""
        _, clusters = np.unique(self.clusters[kept], return_inverse=True)
        return Layout(clusters, self.blocks[kept])


def graded(
    layout: Layout,
    random: Random,
    pairing: float,
    gap: float = 0.0,
    halves: Pair = (HALVES, HALVES),
) -> Pair:
    """Scores of 0, 1/2 and 1 of two runs."""
    clusters = layout.clusters

    def noise() -> np.ndarray:
        of_cluster = random.normal(size=clusters.max() + 1)[clusters]
        return np.sqrt(WITHIN) * of_cluster + np.sqrt(1 - WITHIN) * random.normal(
            size=len(clusters)
        )

    shared = noise()
    scores: list[np.ndarray] = []
    for mean, half in zip((MEAN, MEAN - gap), halves, strict=True):
        latent = np.sqrt(pairing) * shared + np.sqrt(1 - pairing) * noise()
        right = latent < ndtri(mean - half / 2)
        at_least_half = latent < ndtri(mean + half / 2)
        scores.append((1.0 * right + at_least_half) / 2)
    return scores[0], scores[1]


def constant(layout: Layout, random: Random, share: float) -> Pair:
    """A run that is right on a share of the samples, and one that always has this share as its score."""
    n = len(layout.clusters)
    return 1.0 * (random.random(n) < share), np.full(n, share)


def constant_in_clusters(layout: Layout, random: Random, share: float) -> Pair:
    """The same, but a cluster is right or wrong as a whole."""
    of_cluster = random.random(layout.clusters.max() + 1) < share
    return 1.0 * of_cluster[layout.clusters], np.full(len(layout.clusters), share)


def rare_points(layout: Layout, random: Random, share: float) -> Pair:
    """A run that gains a whole point on a few samples and loses a little on all others."""
    n = len(layout.clusters)
    base = np.full(n, 0.5)
    gains = random.random(n) < share
    lost = 0.5 * share / (1 - share)
    return np.where(gains, 1.0, base - lost), base


def cases(
    layout: Layout, charts: Layout, unequal: Layout
) -> dict[str, tuple[Layout, Callable[[Random], Pair]]]:
    """Layout of the samples and scores of the two runs, by name; the names of equal models begin with ``equal``."""
    found: dict[str, tuple[Layout, Callable[[Random], Pair]]] = {}
    for pairing in (0.0, 0.5, 0.8):
        for gap in (0.0, 0.05, 0.09, 0.20):
            kind = f"gap {100 * gap:.0f} points" if gap else "equal"
            found[f"{kind}, pairing {pairing}"] = (
                layout,
                lambda rng, p=pairing, g=gap: graded(layout, rng, p, g),
            )
    found["equal, other scores"] = layout, lambda rng: graded(layout, rng, 0.5, halves=(0.0, 0.4))
    found["equal, unequal clusters"] = unequal, lambda rng: graded(unequal, rng, 0.5)
    found["equal, charts"] = charts, lambda rng: graded(charts, rng, 0.5)
    for share in (0.01, 0.05, 0.1, 0.2, 0.9, 0.97):
        found[f"equal, constant {share}"] = layout, lambda rng, s=share: constant(layout, rng, s)
        found[f"equal, constant {share}, charts"] = (
            charts,
            lambda rng, s=share: constant(charts, rng, s),
        )
    for share in (0.05, 0.9):
        name = f"equal, constant {share} by cluster, unequal clusters"
        found[name] = unequal, lambda rng, s=share: constant_in_clusters(unequal, rng, s)
    for share in (0.02, 0.1):
        found[f"equal, rare points {share}"] = (
            layout,
            lambda rng, s=share: rare_points(layout, rng, s),
        )
        found[f"equal, rare losses {share}"] = (
            layout,
            lambda rng, s=share: rare_points(layout, rng, s)[::-1],
        )
    for name, made in skewed_pairs.CASES.items():
        for where, of_case in (("", layout), (", unequal clusters", unequal)):
            found[f"equal, skewed: {name}{where}"] = (
                of_case,
                lambda rng, m=made, c=of_case.clusters: m(c, rng),
            )
    return found


def simulate(
    layout: Layout, made: Callable[[Random], Pair], reach: float, pairs: int, seed: int
) -> str:
    """Shares of decided pairs and mean number of samples, as text."""
    random = np.random.default_rng(seed)
    largest = int(np.bincount(layout.clusters).max())
    n_decided = n_samples = n_first = 0
    for _ in range(pairs):
        first, second = made(random)
        look = sequential_look(
            second - first, layout.clusters, layout.blocks, largest=largest, reach=reach
        )
        n_decided += look.decided
        n_first += look.decided and look.difference.value < 0
        n_samples += look.difference.n if look.decided else len(layout.clusters)
    shares = f"decided {n_decided / pairs:6.2%}, for the first {n_first / pairs:6.2%}"
    return f"{shares}, samples {n_samples / pairs:5.0f} of {len(layout.clusters)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--benchmark", default="embedded")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only the cases with this text in their name")
    arguments = parser.parse_args()
    benchmark = load_benchmark(arguments.benchmark)
    block_of = sample_blocks(work_items(benchmark.samples, ("end-to-end",), 1), "end-to-end")
    cluster_of = {each.id: each.cluster or each.id for each in benchmark.samples}
    numbers: dict[str, int] = {}
    clusters = np.array([numbers.setdefault(cluster_of[name], len(numbers)) for name in block_of])
    layout = Layout(clusters, np.array([*block_of.values()]))
    with_chart = {each.id for each in benchmark.samples if each.answer_type == "plot"}
    charts = layout.of_samples(np.array([name in with_chart for name in block_of]))
    sizes = np.minimum(np.random.default_rng(0).geometric(0.1, size=len(clusters)), 40)
    unequal_clusters = np.repeat(np.arange(len(sizes)), sizes)[: len(clusters)]
    first_of_cluster = np.searchsorted(unequal_clusters, unequal_clusters)
    unequal = Layout(unequal_clusters, layout.blocks[first_of_cluster])  # a cluster is in one block
    # A pair of a question and its unanswerable twin differs by at most 3 / 2 a sample.
    reach = reach_of_clusters(has_pairs=not all(each.answerable for each in benchmark.samples))
    size = f"{len(clusters)} samples in {len(numbers)} clusters"
    print(f"{benchmark.name} {benchmark.version}: {size}, {arguments.pairs} pairs")
    for name, (of_case, made) in cases(layout, charts, unequal).items():
        if arguments.only in name:
            print(
                f"{name:<58} {simulate(of_case, made, reach, arguments.pairs, arguments.seed)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
