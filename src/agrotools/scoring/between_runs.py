"""Results of runs that are scored together: differences of all pairs, correlations over them, gains adjusted."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from agrotools.core import MODES, Mode
from agrotools.scoring.correlations import benchmark_key, with_correlations
from agrotools.scoring.differences import with_gains_adjusted
from agrotools.scoring.metrics import compared_metrics
from agrotools.scoring.sample_units import SampleTable, Units, overall_difference
from agrotools.scoring.statistics import adjusted
from agrotools.scoring.summary import RunDifference, Summary
from agrotools.scoring.tally import Tally


def side_by_side(summaries: Sequence[Summary], tallies: Sequence[Tally]) -> list[Summary]:
    """The summaries of runs that are shown together, with what needs them all. ``tallies``: one for each, or none where
    their records were not scored just now; then no differences between the runs are added.

    Raises:
        ScoringVersionError: they are of different scoring versions.
    """
    together = with_gains_adjusted(with_correlations(summaries))
    if not tallies:
        return together
    between = tuple(differences_between(summaries, tallies))
    return [each.model_copy(update={"between_runs": between}) for each in together]


def differences_between(summaries: Sequence[Summary], tallies: Sequence[Tally]) -> list[RunDifference]:
    """Differences of all pairs of runs on one benchmark in the headline of each mode, adjusted together.

    Runs whose policy saw the gold are in no pair, nor are modes without a headline.
    """
    found = list(_between(summaries, tallies))
    estimates = adjusted([each.difference for each in found])
    return [each.model_copy(update={"difference": own}) for each, own in zip(found, estimates, strict=True)]


_Headline = dict[tuple[Mode, str], Units]


def _between(summaries: Sequence[Summary], tallies: Sequence[Tally]) -> Iterator[RunDifference]:
    units = [_headline(*each) for each in zip(summaries, tallies, strict=True)]
    for first, second in combinations(range(len(summaries)), 2):
        if benchmark_key(summaries[first]) != benchmark_key(summaries[second]):
            continue
        shared = [key for key in units[first] if key in units[second]]
        own, other = tallies[first].table, tallies[second].table
        for mode, metric in shared:
            theirs = _renumbered(units[second][mode, metric], other, own)
            estimate = overall_difference(units[first][mode, metric], theirs, own)
            if estimate is not None:
                yield RunDifference(first=first, second=second, mode=mode, metric=metric, difference=estimate)


def _headline(summary: Summary, tally: Tally) -> _Headline:
    """The units of each metric of the table; none where the policy saw the gold."""
    return {
        (mode, metric): units
        for mode in MODES
        if mode in tally.modes and summary.modes[mode].headline and not summary.privileged
        for metric in compared_metrics(mode)
        if (units := tally.modes[mode].headline_units(metric)) is not None
    }


def _renumbered(units: Units, table: SampleTable, other: SampleTable) -> Units:
    """The units of samples that the other table has, by their numbers there."""
    import numpy as np

    samples = np.asarray(table.numbers_in(other), dtype=np.int64)[units.samples]
    return units._replace(samples=samples).where(samples >= 0)
