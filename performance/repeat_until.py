"""Coverage of the re-run interval of ``agrotools eval --repeat-until WIDTH``, by simulation.

    python performance/repeat_until.py [--runs 2000]

Each run has samples with a known probability of a right answer. It is repeated until the interval of its mean, given
these samples, is narrower than WIDTH points, or ten epochs are reached. Printed: the share of runs whose interval
contains the true mean when they stop, with the level spent over the looks as the command does it, and without; and the
mean number of epochs.
"""

import argparse

import numpy as np

from agrotools.scoring.repeats import rerun_interval

MOST = 10
DESIGNS = {
    "20 samples, half unsure": (20, 0.5),
    "60 samples, half unsure": (60, 0.5),
    "60 samples, nearly all certain": (60, 0.05),
    "524 samples, a quarter unsure": (524, 0.25),
}
"""Number of samples, and the share whose probability is drawn evenly from [0, 1]; others are always right or wrong."""


def stop(random: np.random.Generator, chances: np.ndarray, width: float, looks: int) -> tuple[int, bool]:
    """Return the epochs of one run, and True if its last interval contains the mean of ``chances``."""
    values = (random.random((MOST, len(chances))) < chances).astype(float)
    for epochs in range(2, MOST + 1):
        places = np.tile(np.arange(len(chances)), epochs)
        interval = rerun_interval(places, values[:epochs].ravel(), looks=looks)
        if interval.upper - interval.lower < width:
            break
    return epochs, interval.lower <= chances.mean() <= interval.upper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name, (n, unsure) in DESIGNS.items():
        for width in (0.04, 0.10):
            lines: list[str] = []
            for word, looks in (("spent", MOST - 1), ("not spent", 1)):
                random = np.random.default_rng(arguments.seed)
                results: list[tuple[int, bool]] = []
                for _ in range(arguments.runs):
                    certain = (random.random(n) < 0.7).astype(float)
                    chances = np.where(random.random(n) < unsure, random.random(n), certain)
                    results.append(stop(random, chances, width, looks))
                epochs, covered = (float(np.mean(each)) for each in zip(*results, strict=True))
                lines.append(f"{word}: {covered:.1%} covered, {epochs:.1f} epochs")
            print(f"{name}, width {100 * width:.0f}: {'; '.join(lines)}")


if __name__ == "__main__":
    main()
