"""False alarms and power of ``agrotools gate``, by simulation: at the allowed drop, and beyond it.

Table of docs/statistics.md, "Power of the gate".

    python performance/gate_power.py [--pairs 1000] [--benchmark embedded]

Each pair of runs has binary scores on the samples of the benchmark, in its clusters. Scores of a cluster resemble
each other (correlation 0.3 of the latent ability), and both runs share a part of it (``pairing``). The true drop is
known. Printed for each pairing: the share of pairs that fail at a true drop of exactly D, for the gate, and at a true
drop of 0 for the usual rule "fail if the mean fell by 2 points"; and the share that fails at D + 5 and D + 10 points,
beside the power that the command prints. ``--quick`` takes the samples of the quick part.
"""

import argparse
from collections import Counter

import numpy as np
from scipy.special import ndtri

from agrotools.loading import load_benchmark
from agrotools.scoring.gate import BEYOND, drop_bound

RIGHT = 0.7
WITHIN = 0.3
PAIRINGS = (0.5, 0.8, 0.95)
USUAL = 0.02


def runs(
    random: np.random.Generator, clusters: np.ndarray, pairing: float, drop: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the new and the old run; the expected score of the new one is lower by ``drop``."""

    def noise() -> np.ndarray:
        return np.sqrt(WITHIN) * random.normal(size=clusters.max() + 1)[clusters] + np.sqrt(
            1 - WITHIN
        ) * random.normal(size=len(clusters))

    shared = noise()
    new, old = (np.sqrt(pairing) * shared + np.sqrt(1 - pairing) * noise() for _ in range(2))
    return (new < ndtri(RIGHT - drop)).astype(float), (old < ndtri(RIGHT)).astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--benchmark", default="embedded")
    parser.add_argument("--quick", action="store_true", help="the samples of the quick part")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    benchmark = load_benchmark(arguments.benchmark, quick=arguments.quick)
    samples = [
        each
        for each in benchmark.samples
        if not arguments.quick or each.id in benchmark.header.quick
    ]
    names = [each.cluster or each.id for each in samples]
    clusters = np.unique(names, return_inverse=True)[1]
    sizes = Counter(Counter(names).values())
    print(
        f"{arguments.benchmark}: {len(names)} samples in {len(set(names))} clusters; clusters by size {dict(sizes)}"
    )
    random = np.random.default_rng(arguments.seed)
    for pairing in PAIRINGS:
        usual = np.mean(
            [
                np.subtract(*runs(random, clusters, pairing, 0.0)).mean() < -USUAL
                for _ in range(arguments.pairs)
            ]
        )
        print(
            f"pairing {pairing}: the mean fell by 2 points at a true drop of 0: {usual:.1%} of pairs"
        )
        for allowed in (0.0, 0.02):
            failed: list[float] = []
            printed: list[list[float]] = []
            for beyond in (0.0, *BEYOND):
                bounds = [
                    drop_bound(
                        *runs(random, clusters, pairing, allowed + beyond),
                        clusters,
                        allowed=allowed,
                    )
                    for _ in range(arguments.pairs)
                ]
                failed.append(float(np.mean([bound.lower > allowed for bound in bounds])))
                printed.append([bound.power(beyond) or 0.0 for bound in bounds])
            told = ", ".join(
                f"{share:.1%} at {100 * (allowed + beyond):g} (printed {np.mean(powers):.1%})"
                for share, powers, beyond in zip(failed[1:], printed[1:], BEYOND, strict=True)
            )
            print(
                f"  gate, D = {100 * allowed:g}: {failed[0]:.1%} false alarms at D; fails: {told}"
            )


if __name__ == "__main__":
    main()
