"""Does a benchmark separate models? Scripted agents of planted ability answer it, and their ranking must come back.

    python performance/planted_agents.py [BENCHMARK] [--out runs/planted] [--limit N]

Runs a study of ten agents (``baseline:planted``, abilities 0.05 to 0.95) and two twins, which have the ability of one
of them and another seed, so that they are equally good and make other mistakes. Printed: the score of each, Kendall's
tau of abilities and scores, the adjusted differences of the twins (they must not be separated), the neighbours that are
separated, and scores by third of difficulty, of the agents (they must fall) and of ``baseline:planner``. Exits with 1
where a check fails.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from scipy.stats import kendalltau

import agrotools as at
from agrotools.agents.baselines.planted import difficulty_level
from agrotools.analysis.study import StudyResult

FAS = "agrotools.fas"
LEAST_TAU = 0.95
ABILITIES = [round(0.05 + 0.1 * step, 2) for step in range(10)]
TWINS = [0.45, 0.75]
THIRDS = ("easy", "medium", "hard")


def study_file(benchmark: str, folder: Path, limit: int | None) -> Path:
    """Write the study of all agents: the twins follow the others."""
    names = [f"{ability}:{seed}" for seed, some in enumerate((ABILITIES, TWINS), 1) for ability in some]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "planted.toml"
    file.write_text(
        f'benchmark = "{benchmark}"\nmode = "end-to-end"\nout = "{folder}"\n'
        + (f"limit = {limit}\n" if limit else "")
        + "".join(f'[[model]]\nname = "baseline:planted:{name}"\nlabel = "planted {name}"\n' for name in names)
        + '[[model]]\nname = "baseline:planner"\nlabel = "planner"\n'
    )
    return file


def by_third(folders: Sequence[Path]) -> dict[str, float]:
    """Return the mean score of all agents on the easy, medium and hard samples, thirds of them by ``level``."""
    scores: dict[str, list[float]] = defaultdict(list)
    levels: dict[str, float] = {}
    for folder in folders:
        run = at.read_run(folder)
        for record in run.samples():
            levels[record.sample.id] = difficulty_level(record.sample)
            scores[record.sample.id] += [row.value for row in run.score_record(record) if row.metric == FAS]
    ordered = sorted(levels, key=lambda name: (levels[name], name))
    at_ = [round(len(ordered) * part / 3) for part in range(4)]
    thirds = zip(THIRDS, at_, at_[1:], strict=False)
    return {name: mean(value for each in ordered[first:last] for value in scores[each]) for name, first, last in thirds}


def report(result: StudyResult) -> bool:
    """Print the checks; return True if all hold."""
    estimates = [summary.modes["end-to-end"].metrics[FAS].overall for _, summary in result.scored]
    for (run, _), each in zip(result.scored, estimates, strict=True):
        interval = f"{100 * each.interval.lower:.1f} to {100 * each.interval.upper:.1f}" if each.interval else "none"
        print(f"{run.label:16} FAS {100 * each.value:5.1f}  95 % {interval}  n {each.n} ({each.n_clusters} clusters)")
    values = [each.value for each in estimates]
    tau = float(kendalltau(ABILITIES, values[: len(ABILITIES)])[0])  # pyright: ignore[reportArgumentType]
    print(f"Kendall's tau of {len(ABILITIES)} abilities and scores: {tau:.3f} (at least {LEAST_TAU})")
    found = {(each.first, each.second): each.difference for each in result.differences}
    twins = {(ABILITIES.index(ability), len(ABILITIES) + at_): ability for at_, ability in enumerate(TWINS)}
    for pair, ability in twins.items():
        each = found[pair]
        verdict = "separated" if each.differs() else "not separated"
        p = f", adjusted p {each.p_adjusted:.3f}" if each.p_adjusted is not None else ""
        print(f"twins of ability {ability}: difference {100 * each.value:+.1f}{p}: {verdict}")
    pairs = [(at_, at_ + 1) for at_ in range(len(ABILITIES) - 1)]
    apart = sum(found[pair].differs() for pair in pairs)
    others = [each.differs() for pair, each in found.items() if pair not in twins and max(pair) < len(ABILITIES)]
    print(f"separated: {apart} of {len(pairs)} neighbours, {sum(others)} of {len(others)} pairs of different ability")
    *agents, planner = [run.folder for run, _ in result.scored]
    parts = by_third(agents)
    for name, each in (("all agents", parts), ("planner", by_third([planner]))):
        print(f"mean FAS of {name} by difficulty:", ", ".join(f"{third} {100 * each[third]:.1f}" for third in THIRDS))
    falls = parts["easy"] > parts["medium"] > parts["hard"]
    return tau >= LEAST_TAU and not any(found[pair].differs() for pair in twins) and falls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
