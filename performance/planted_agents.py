"""Does a benchmark separate models? Scripted agents of planted ability answer it, and their ranking must come back.

Table of docs/extending.md, "Baselines for developers".

    python performance/planted_agents.py [BENCHMARK] [--out runs/planted] [--limit N]

Runs a study of ten agents (``baseline:planted``, abilities 0.05 to 0.95), two twins, which have the ability of one of
them and another seed, so that they are equally good and make other mistakes, ``planner`` and ``guess``. Printed for
each: its score, the score in each third of the samples by measured difficulty (``level``), and Kendall's tau of score
and level, on all samples and on those that guess fails; then tau of abilities and scores, the adjusted differences of
the twins, and the number of separated pairs. Exits with 1 unless tau is at least 0.95, no twins are separated, and
level orders planner and the mean of the agents, on the samples that guess fails, too.
"""

import argparse
import sys
from collections.abc import Mapping
from itertools import pairwise
from math import isnan
from pathlib import Path
from statistics import mean, stdev

from scipy.stats import kendalltau

import agrotools as at
from agrotools.analysis.study import StudyResult

FAS = "fas"
LEAST_TAU = 0.95
ABILITIES = [round(0.05 + 0.1 * step, 2) for step in range(10)]
TWINS = [0.45, 0.75]
SIGNIFICANT = 0.05


def study_file(benchmark: str, folder: Path, limit: int | None) -> Path:
    """Write the study of all agents: the twins follow the others, then planner and guess."""
    names = [
        f"planted:{ability}:{seed}"
        for seed, some in enumerate((ABILITIES, TWINS), 1)
        for ability in some
    ]
    models = [
        f'{{name = "baseline:{name}", label = "{name}"}}' for name in (*names, "planner", "guess")
    ]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "planted.toml"
    file.write_text(
        f'benchmark = "{benchmark}"\nmode = "end-to-end"\nout = "{folder}"\nmodel = [{", ".join(models)}]\n'
        + (f"limit = {limit}\n" if limit else "")
    )
    return file


def order(
    scores: Mapping[str, float], levels: Mapping[str, float], guessed: Mapping[str, float]
) -> tuple[bool, str]:
    """Return if scores fall with the level, and in words the means of the thirds of the samples and both tau."""
    names = sorted(scores, key=lambda name: (levels[name], name))
    ends = [round(len(names) * part / 3) for part in range(4)]
    thirds = [mean(scores[name] for name in names[first:last]) for first, last in pairwise(ends)]
    text, falls = (
        f"thirds {' '.join(f'{100 * each:5.1f}' for each in thirds)}  tau",
        thirds[0] > thirds[2],
    )
    for some in (names, [name for name in names if not guessed[name]]):
        tau, p = map(
            float, kendalltau([levels[name] for name in some], [scores[name] for name in some])
        )  # pyright: ignore[reportArgumentType]
        falls = falls and tau < 0 and p < SIGNIFICANT
        text += "  -" if isnan(tau) else f"  {tau:+.2f} (p {p:.0g})"
    return falls, text


def report(result: StudyResult) -> bool:
    """Print the checks; return True if all hold."""
    runs = [at.read_run(run.folder) for run, _ in result.scored]
    levels = {
        each.sample.id: each.sample.difficulty.get("level", 0.0) for each in runs[0].samples()
    }
    scores = [{str(row["sample"]): float(row[FAS]) for row in run.rows()} for run in runs]
    estimates = [summary.modes["end-to-end"].metrics[FAS].overall for _, summary in result.scored]
    for (run, _), each, some in zip(result.scored, estimates, scores, strict=True):
        interval = (
            f"{100 * each.interval.lower:.1f} to {100 * each.interval.upper:.1f}"
            if each.interval
            else "none"
        )
        print(
            f"{run.label:15} FAS {100 * each.value:4.1f} (95 % {interval})  {order(some, levels, scores[-1])[1]}"
        )
    agents = {name: mean(some[name] for some in scores[: len(ABILITIES)]) for name in levels}
    ordered = [order(some, levels, scores[-1]) for some in (agents, scores[-2])]
    print(f"{'mean of agents':36}  {ordered[0][1]}")
    values = [each.value for each in estimates[: len(ABILITIES)]]
    tau = float(kendalltau(ABILITIES, values)[0])  # pyright: ignore[reportArgumentType]
    print(
        f"tau of {len(ABILITIES)} abilities (standard deviation {stdev(ABILITIES):.2f}) and scores: {tau:.3f}"
    )
    differences = {(each.first, each.second): each.difference for each in result.differences}
    twins = {
        (ABILITIES.index(each), len(ABILITIES) + place): each for place, each in enumerate(TWINS)
    }
    for pair, ability in twins.items():
        each = differences[pair]
        verdict = "separated" if each.differs() else "not separated"
        p = f", adjusted p {each.p_adjusted:.3f}" if each.p_adjusted is not None else ""
        print(f"twins of ability {ability}: difference {100 * each.value:+.1f}{p}: {verdict}")
    others = {
        pair: each.differs() for pair, each in differences.items() if max(pair) < len(ABILITIES)
    }
    neighbours = [apart for (first, second), apart in others.items() if abs(first - second) == 1]
    print(
        f"separated: {sum(neighbours)} of {len(neighbours)} neighbours, {sum(others.values())} of {len(others)} pairs"
    )
    alike = not any(differences[pair].differs() for pair in twins)
    return tau >= LEAST_TAU and alike and all(falls for falls, _ in ordered)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("benchmark", nargs="?", default="embedded")
    parser.add_argument("--out", type=Path, default=Path("runs/planted"))
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    result = at.study(study_file(options.benchmark, options.out, options.limit))
    if not all(state.complete for state in result.states):
        print("incomplete: run the same command again", file=sys.stderr)
        return 1
    return 0 if report(result) else 1


if __name__ == "__main__":
    sys.exit(main())
