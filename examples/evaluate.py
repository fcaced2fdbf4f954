"""Two baselines evaluated from Python on a few samples: ``python examples/evaluate.py [DIR]``."""

import sys
from pathlib import Path

import agrotools as at


def main(folder: Path) -> None:
    limits = {"mode": "end-to-end", "quick": True, "limit": 6}
    guess = at.evaluate("embedded", "baseline:guess", out=folder / "guess", **limits)
    planner = at.evaluate("embedded", "baseline:planner", out=folder / "planner", **limits)
    for run in (guess, planner):
        score = run.scores["fas"]
        print(f"{run.manifest.model}: FAS {100 * score.value:.1f}, {score.n} samples")
        print(run.scores)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example-runs"))
