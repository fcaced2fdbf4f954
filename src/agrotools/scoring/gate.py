"""One-sided test of whether a new run is worse than an old one by more than an allowed drop, paired by sample.

The bound is ``drop - t * error`` with the CR2 cluster-robust standard error of the paired differences and
Satterthwaite's degrees of freedom (:func:`agrotools.scoring.statistics.ratio_spread`), or lower where few clusters
cannot exclude rare large deviations, as in the interval of ``compare``. ``performance/gate_power.py``
simulates its false alarms and its power. Scores that other programs gave, in tables with a row for each model and
sample, are compared and tested like runs.
"""

from collections.abc import Hashable, Mapping, Sequence, Set
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from agrotools.core import FrozenModel, Mode, UsageError
from agrotools.core.errors import NoFileError
from agrotools.core.lazy import FloatArray, IntArray, np, special
from agrotools.core.texts import count_text
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import HeadlinePair, check_same_samples, headline_pair
from agrotools.scoring.missing import (
    LimitPairs,
    limit_pairs,
    missing_of,
    paired_limits,
)
from agrotools.scoring.statistics import (
    LEVEL,
    MIN_CLUSTERS,
    POWER,
    ROUNDING,
    Interval,
    cluster_sums,
    estimate_difference,
    rare_deviations,
    ratio_spread,
)
from agrotools.scoring.summary import (
    TABLE_MODE,
    Metric,
    RunComparison,
    too_unread,
    with_comparisons_adjusted,
)
from agrotools.scoring.table_scores import (
    ACCEPTED,
    ModelScores,
    Scores,
    TableReading,
    is_table,
    plain_reading,
    read_scores,
    read_tables,
)

BEYOND = (0.05, 0.10)
"""Drops beyond the allowed one for which the power is given."""


_LARGEST_DROP = 1.0
_DROP_STEP = 1e-4
"""To a hundredth of a point: a screen shows tenths."""


class DropBound(FrozenModel):
    """Drop of a mean score with its one-sided 95 % lower bound, over ``n`` units in ``n_clusters`` clusters.

    ``error`` is the standard error, ``degrees`` its degrees of freedom; both are 0 if all units drop alike.
    ``unseen`` is how far a drop must be beyond the allowed one to be more than what the clusters cannot exclude of rare
    large gains; no file holds it.
    """

    drop: float
    lower: float
    error: float
    degrees: float
    n: int
    n_clusters: int
    unseen: Annotated[float, Field(exclude=True)] = 0.0

    @property
    def detectable(self) -> float | None:
        """Smallest drop beyond the allowed one that is found with 80 % power; None if that is more than 100 points.

        If all units drop alike, every drop is found that the clusters cannot explain by rare gains.
        """
        if not self.error:
            return self.unseen
        low, high = 0.0, _LARGEST_DROP
        if (self.power(high) or 0.0) < POWER:
            return None
        while high - low > _DROP_STEP:
            middle = (low + high) / 2
            is_found = (self.power(middle) or 0.0) >= POWER
            low, high = (low, middle) if is_found else (middle, high)
        return high

    def power(self, beyond: float) -> float | None:
        """Return the probability that a true drop of ``beyond`` more than the allowed one is found; None if unknown.

        The drop has to exceed t standard errors, and ``unseen``: the less probable of the two counts.
        """
        if not self.error:
            return None
        quantile = float(special.stdtrit(self.degrees, LEVEL))
        by_error = 1 - float(special.nctdtr(self.degrees, beyond / self.error, quantile))
        if by_error != by_error:  # nctdtr gives NaN for drops of many standard errors
            by_error = float(beyond / self.error > quantile)
        by_clusters = float(special.stdtr(self.degrees, (beyond - self.unseen) / self.error))
        return min(by_error, by_clusters)


def drop_bound(
    new: Sequence[float] | FloatArray,
    old: Sequence[float] | FloatArray,
    clusters: Sequence[Hashable] | IntArray,
    weights: FloatArray | None = None,
    *,
    allowed: float = 0.0,
) -> DropBound:
    """Return the mean of ``old - new``, paired unit by unit, with its lower bound.

    ``weights``: the weight of each unit; None: all weigh the same. ``allowed``: the allowed drop, for the power.

    The bound is at least as low as what k clusters cannot exclude of large deviations, of which few or none were seen
    (:func:`agrotools.scoring.statistics.rare_deviations`).

    Raises:
        UsageError: fewer than ten clusters.
    """
    drops = np.asarray(old, dtype=np.float64) - np.asarray(new, dtype=np.float64)
    data = cluster_sums(drops, clusters, weights)
    k, n = len(data.sizes), len(drops)
    if k < MIN_CLUSTERS:
        raise UsageError(
            f"the runs have {n} samples in {k} clusters in common, too few for a test",
            hint=f"{MIN_CLUSTERS} clusters are needed",
        )
    spread = ratio_spread(data)
    drop, error, degrees = float(spread.mean), float(spread.error), float(spread.degrees)
    # As old - new: a rare gain of the new run that was not seen lowers the drop.
    rare = rare_deviations(old, new, data, drop)
    lower = rare.lower(LEVEL)
    unseen = rare.shown_above(LEVEL, allowed) - allowed
    if error < ROUNDING:
        error, degrees = 0.0, 0.0
    else:
        lower = min(lower, drop - float(special.stdtrit(degrees, LEVEL)) * error)
    return DropBound(
        drop=drop,
        lower=lower,
        error=error,
        degrees=degrees,
        n=n,
        n_clusters=k,
        unseen=unseen,
    )


class Gate(FrozenModel):
    """Result of comparing a new run with an old one in the headline metric of a mode; scores are in [0, 1].

    ``lost`` and ``added`` are the numbers of samples that only the old and only the new run has a valid record of; they
    are not in the means. ``power`` holds the probability of failing at a true drop of 5 and 10 points beyond the
    allowed one.
    """

    mode: str
    metric: str
    new: float
    old: float
    max_drop: float
    bound: DropBound
    lost: int
    added: int
    fault: str = ""
    """Reason for failing that is no drop: missing scores or unread values on which the verdict depends."""
    lacking: tuple[int, int] = (0, 0)
    """Numbers of samples of which the old version, and the new one, lacks a score."""
    unread: tuple[int, int] = (0, 0)
    """Numbers of values of the old version, and of the new one, that were not read."""
    drops: Interval | None = None
    """Drop with all that is open set for the new version, and against it; None if nothing is open."""
    tested_lower: float
    """Lower bound of the drop that is tested: with unread values set for the new version."""
    rests_on_unread: bool = False
    """True if the gate would fail with the unread values counted as wrong, or set against the new version."""
    detectable: float | None = None
    """Smallest drop that is found with 80 % power; None if no possible drop is."""
    difference: float = 0.0
    """The new version minus the old one: the drop with the other sign."""
    power: tuple[float | None, ...] = ()

    @property
    def passed(self) -> bool:
        """True if a drop of more than ``max_drop`` is not shown, whatever the missing scores would be."""
        return not self.fault and self.tested_lower <= self.max_drop


def gate(
    new: RunAggregator,
    old: RunAggregator,
    mode: Mode,
    max_drop: float,
    *,
    allow_invalid: bool = False,
) -> Gate:
    """Test whether the new run is worse than the old one by more than ``max_drop`` (a fraction).

    Raises:
        UsageError: the runs share no scored sample in ``mode``, or fewer than ten clusters.
    """
    check_same_samples(new, old)
    pair = headline_pair(new, old, mode)
    if pair is None:
        raise UsageError(
            f"the runs have no scored sample in common in mode {mode}", hint="see agrotools compare"
        )
    valid = [run.valid_ids(mode) for run in (new, old)]
    limits = limit_pairs(old, new, mode, pair.metric)
    return gate_of(mode, pair, valid, max_drop, limits.scored if allow_invalid else limits)


def held_by(mode: str) -> str:
    """Return what a sample that is compared has, in words: a table has scores, a run has records."""
    return "score" if mode == TABLE_MODE else "valid record"


def _lacking_text(lacking: tuple[int, int], mode: str) -> str:
    """Return how many samples of the old and the new version lack a score."""
    counts = [
        f"{count_text(n, 'sample')} of the {version} version"
        for n, version in zip(lacking, ("old", "new"), strict=True)
        if n
    ]
    have = "has" if sum(lacking) == 1 else "have"
    return f"{' and '.join(counts)} {have} no {held_by(mode)}"


def gate_of(
    mode: str,
    pair: HeadlinePair,
    valid: Sequence[Set[Any]],
    max_drop: float,
    limits: LimitPairs,
) -> Gate:
    """Test pairs of scores; ``valid``: the samples with a valid record of the new and of the old run.

    ``limits``: the limits of the scores of the old and the new version.
    """
    of_new, of_old = valid
    new_mean, old_mean = pair.means
    bound = drop_bound(pair.first, pair.second, pair.clusters, pair.weights, allowed=max_drop)
    drops, fault = None, ""
    tested_lower, rests_on_unread = bound.lower, False
    if limits.is_open:
        for_new = _bound_at_limit(limits, for_new=True)
        against_new = _bound_at_limit(limits, for_new=False)
        drops = Interval(lower=for_new.drop, upper=against_new.drop)
        fault = _fault_of_limits(limits, mode, max_drop, (bound, for_new, against_new))
        if any(limits.unread):
            tested_lower = for_new.lower
            rests_on_unread = max(bound.lower, against_new.lower) > max_drop >= tested_lower
    detectable = bound.detectable
    if detectable is not None and detectable + max_drop > old_mean:
        detectable = None
    return Gate(
        mode=mode,
        metric=pair.metric,
        new=new_mean,
        old=old_mean,
        max_drop=max_drop,
        bound=bound,
        lost=len(of_old - of_new),
        added=len(of_new - of_old),
        fault=fault,
        lacking=limits.lacking,
        unread=limits.unread,
        drops=drops,
        tested_lower=tested_lower,
        rests_on_unread=rests_on_unread,
        detectable=None if detectable is None else detectable + max_drop,
        difference=-bound.drop,
        power=tuple(bound.power(beyond) for beyond in BEYOND),
    )


def _fault_of_limits(
    limits: LimitPairs, mode: str, max_drop: float, bounds: Sequence[DropBound]
) -> str:
    """Return why there is no verdict; empty if there is one.

    ``bounds``: the drop without what is open, and with all of it for the new version and against it. Missing scores
    must not change the verdict. Unread values alone leave it to the bound for the new version.
    """
    if too_unread(limits.unread, limits.asked):
        return f"no verdict: {_unread_text(limits)}"
    verdicts = {each.lower <= max_drop for each in bounds}
    if any(limits.lacking) and len(verdicts) > 1:
        also = f", and {_unread_text(limits)}" if any(limits.unread) else ""
        return f"no verdict, because {_lacking_text(limits.lacking, mode)}{also}"
    return ""


def _unread_text(limits: LimitPairs) -> str:
    """Return how many values of the old and the new version were not read, of how many."""
    counts = [
        f"{n} of {count_text(asked, 'value')} of the {version} version"
        for n, asked, version in zip(limits.unread, limits.asked, ("old", "new"), strict=True)
        if n
    ]
    were = "was" if sum(limits.unread) == 1 else "were"
    return f"{' and '.join(counts)} {were} not read"


def _bound_at_limit(limits: LimitPairs, *, for_new: bool) -> DropBound:
    """Return the drop with all missing scores set for the new version, or against it."""
    older, newer = limits.scores(for_second=for_new)
    return drop_bound(newer, older, limits.clusters, limits.weights)


# --- scores that other programs gave, in tables with a row for each model and sample ----------------------------------


def _pair(first: Scores, second: Scores, names: str) -> HeadlinePair:
    """Return the scores of the samples that both have, in one order; ``names``: of both models, for the message."""
    units = sorted(unit for unit in first if unit in second)
    if not units:
        raise UsageError(
            f"{names} have no scored sample in common", hint="give a sample one id and one cluster"
        )
    clusters = [unit.cluster for unit in units]
    return HeadlinePair(
        metric="score",
        first=np.array([first[unit] for unit in units]),
        second=np.array([second[unit] for unit in units]),
        clusters=np.unique(clusters, return_inverse=True)[1],
        weights=np.array([unit.weight for unit in units]),
    )


def compare_tables(*files: Path, how: TableReading | None = None) -> list[RunComparison]:
    """Return the comparisons of all pairs of models, second minus first, adjusted together."""
    models, compared = read_scores(*files, how=how), list[RunComparison]()
    if len(models) < 2:
        raise UsageError(
            f"a comparison needs two models, not {', '.join(models) or 'none'}", hint=ACCEPTED
        )
    for (first, one), (second, another) in combinations(models.items(), 2):
        mine, other = one.scores, another.scores
        missing = missing_of(paired_limits(one.limits(), another.limits()))
        pair = _pair(mine, other, f"{first} and {second}")
        overall = estimate_difference(pair.second, pair.first, pair.clusters, pair.weights)
        compared.append(
            RunComparison(
                first=first,
                second=second,
                benchmark=", ".join(file.name for file in files),
                modes={TABLE_MODE: {"score": Metric(overall=overall)}},
                headline={TABLE_MODE: "score"},
                means={TABLE_MODE: pair.means},
                unpaired={TABLE_MODE: (len(mine) - overall.n, len(other) - overall.n)},
                missing={TABLE_MODE: missing} if missing else {},
            )
        )
    return with_comparisons_adjusted(compared)


def gate_tables(
    new: Path,
    old: Path,
    max_drop: float,
    *,
    allow_invalid: bool,
    how: TableReading | None = None,
) -> tuple[Gate, str, str]:
    """Test a table of one model against another, or a table of two models against the model ``old``; name both."""
    how = how or plain_reading()
    for file in (new, old):
        if is_table(file) and not file.exists():
            raise NoFileError(f"there is no table {file}", hint="give a .csv or .xlsx file")
    if old.is_file():
        models, others = read_tables([[new], [old]], how)
    else:
        (models,) = read_tables([[new]], how)
        if str(old) not in models:
            if old.is_dir():
                read_scores(old)  # says that it is a folder
            raise UsageError(
                f"{old} is neither a table nor a model of {new}",
                hint=f"its models: {', '.join(models)}",
            )
        others = {str(old): models.pop(str(old))}
    older, second = _only_model(others, old)
    newer, first = _only_model(models, new)
    pair = _pair(first.scores, second.scores, f"{newer} and {older}")
    valid = (set(first.scores), set(second.scores))
    limits = paired_limits(second.limits(), first.limits())
    if allow_invalid:
        limits = limits.scored
    return gate_of(TABLE_MODE, pair, valid, max_drop, limits), newer, older


def _only_model(models: Mapping[str, ModelScores], file: Path) -> tuple[str, ModelScores]:
    """Return the name and the scores of the one model of a table."""
    if len(models) != 1:
        raise UsageError(
            f"{file} has the scores of {', '.join(models) or 'no other model'}, but one model is tested",
            hint="two tables of one model each, or a table of two and --against MODEL",
        )
    (model,) = models.items()
    return model
