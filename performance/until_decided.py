"""Errors and samples of ``--until-decided``, by simulation, at known gaps of two models.

    python performance/until_decided.py [--pairs 1000] [--benchmark embedded]

Each pair of runs has scores of 0, 1/2 and 1 on the samples of the benchmark, in its clusters and in the order and
blocks of the command. One fifth of the scores of a run are 1/2, and the better run has a mean of 0.65. Scores of a
cluster resemble each other (correlation 0.3 of the latent ability), and both runs share a part of it (``pairing``; 0:
independent runs). Printed: the share of pairs that are decided, and the mean number of samples until then, all samples
if it is not decided. ``other scores``: equal means, but the first run has no halves and the second twice as many.
``unequal clusters``: the same samples in clusters of 1 to 40.
"""

import argparse

import numpy as np
from scipy.special import ndtri

from agrotools.benchmarks import load_benchmark
from agrotools.runner.plan import work_items
from agrotools.runner.until_decided import sample_blocks
from agrotools.scoring.sequential import sequential_look

MEAN, HALVES, WITHIN = 0.65, 0.2, 0.3
GAPS = (0.0, 0.05, 0.09, 0.20)


def scores(
    random: np.random.Generator,
    clusters: np.ndarray,
    pairing: float,
    means: tuple[float, ...],
    halves: tuple[float, ...],
) -> list[np.ndarray]:
    """Scores of two runs."""

    def noise() -> np.ndarray:
        of_cluster = random.normal(size=clusters.max() + 1)[clusters]
        return np.sqrt(WITHIN) * of_cluster + np.sqrt(1 - WITHIN) * random.normal(size=len(clusters))

    shared = noise()
    latent = (np.sqrt(pairing) * shared + np.sqrt(1 - pairing) * noise() for _ in range(2))
    return [
        ((each < ndtri(mean - half / 2)) + 1.0 * (each < ndtri(mean + half / 2))) / 2
        for each, mean, half in zip(latent, means, halves, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--benchmark", default="embedded")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    benchmark = load_benchmark(arguments.benchmark)
    block_of = sample_blocks(work_items(benchmark.samples, ("end-to-end",), 1), "end-to-end")
    block = np.array([*block_of.values()])  # in the order of the clusters
    cluster_of = {each.id: each.cluster or each.id for each in benchmark.samples}
    numbers: dict[str, int] = {}
    clusters = np.array([numbers.setdefault(cluster_of[name], len(numbers)) for name in block_of])
    shares = np.cumsum(np.bincount(block)) / len(block)
    print(f"{benchmark.name} {benchmark.version}: {len(block)} samples, {len(numbers)} clusters, {len(shares)} looks")

    def simulate(
        pairing: float, gap: float, *, halves: tuple[float, ...] = (HALVES, HALVES), long: bool = False
    ) -> str:
        random = np.random.default_rng(arguments.seed)
        n_decided = n_samples = n_right = 0
        for _ in range(arguments.pairs):
            of_sample, at = clusters, block
            if long:  # clusters of 1 to 40, in an order of their own
                drawn = np.minimum(random.geometric(0.1, size=len(clusters)), 40)
                of_sample = np.repeat(np.arange(len(drawn)), drawn)[: len(clusters)]
                at = block[np.searchsorted(of_sample, of_sample)]  # a cluster is in the block of its first sample
            first, second = scores(random, of_sample, pairing, (MEAN, MEAN - gap), halves)
            look = sequential_look(first - second, of_sample, at, shares)
            n_decided += look.decided
            n_right += look.decided and look.difference.value > 0
            n_samples += look.difference.n if look.decided else len(clusters)
        n = arguments.pairs
        return f"decided {n_decided / n:6.1%}, for the first {n_right / n:6.1%}, samples {n_samples / n:5.0f}"

    for pairing in (0.0, 0.5, 0.8):
        for gap in GAPS:
            print(f"pairing {pairing}, gap {100 * gap:2.0f} points: {simulate(pairing, gap)}", flush=True)
    print(f"pairing 0.5, no gap, other scores: {simulate(0.5, 0.0, halves=(0.0, 0.4))}")
    print(f"pairing 0.5, no gap, unequal clusters: {simulate(0.5, 0.0, long=True)}")


if __name__ == "__main__":
    main()
