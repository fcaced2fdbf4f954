"""One-sided test of whether a new run is worse than an old one by more than an allowed drop, paired by sample.

The bound is ``drop - t * error`` with the CR2 cluster-robust standard error of the paired differences and
Satterthwaite's degrees of freedom (:func:`agrotools.scoring.statistics.ratio_spread`). ``performance/gate_power.py``
simulates its false alarms and its power. Scores that other programs gave, in tables with a row for each model and
sample, are compared and tested like runs.
"""

from collections.abc import Hashable, Sequence, Set
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from agrotools.core import FrozenModel, Mode, UsageError
from agrotools.core.lazy import FloatArray, IntArray, np, special
from agrotools.core.texts import count_text
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import HeadlinePair, check_same_samples, headline_pair
from agrotools.scoring.missing import (
    LimitPairs,
    ScoredUnit,
    ScoreLimits,
    limit_pairs,
    missing_of,
    paired_limits,
)
from agrotools.scoring.statistics import (
    LEVEL,
    MIN_CLUSTERS,
    ROUNDING,
    Interval,
    cluster_sums,
    estimate_difference,
    rare_deviations,
    ratio_spread,
)
from agrotools.scoring.summary import Metric, RunComparison, with_comparisons_adjusted
from agrotools.scoring.unit_estimates import shown_mean
from agrotools.text.tables import open_table

BEYOND = (0.05, 0.10)
"""Drops beyond the allowed one for which the power is given."""


class DropBound(FrozenModel):
    """Drop of a mean score with its one-sided 95 % lower bound, over ``n`` units in ``n_clusters`` clusters.

    ``error`` is the standard error, ``degrees`` its degrees of freedom; both are 0 if all units drop alike.
    """

    drop: float
    lower: float
    error: float
    degrees: float
    n: int
    n_clusters: int

    def power(self, beyond: float) -> float | None:
        """Return the probability that a true drop of ``beyond`` more than the allowed one is found; None if unknown."""
        if not self.error:
            return None
        margin = (self.drop - self.lower) / self.error
        power = 1 - float(special.nctdtr(self.degrees, beyond / self.error, margin))
        if power != power:  # nctdtr gives NaN for drops of many standard errors
            return float(beyond / self.error > margin)
        return power


def drop_bound(
    new: Sequence[float] | FloatArray,
    old: Sequence[float] | FloatArray,
    clusters: Sequence[Hashable] | IntArray,
) -> DropBound:
    """Return the mean of ``old - new``, paired unit by unit, with its lower bound.

    The bound is at least as low as what k clusters cannot exclude of large deviations, of which few or none were seen
    (:func:`agrotools.scoring.statistics.rare_deviations`).

    Raises:
        UsageError: fewer than ten clusters.
    """
    sizes, sums, squares = cluster_sums(
        np.asarray(old, dtype=np.float64) - np.asarray(new, dtype=np.float64), clusters
    )
    k, n = len(sizes), int(sizes.sum())
    if k < MIN_CLUSTERS:
        raise UsageError(
            f"the runs have {n} samples in {k} clusters in common, too few for a test",
            hint=f"{MIN_CLUSTERS} clusters are needed",
        )
    spread = ratio_spread(sizes, sums, squares)
    drop, error, degrees = float(spread.mean), float(spread.error), float(spread.degrees)
    # As old - new: a rare gain of the new run that was not seen lowers the drop.
    lower = rare_deviations(old, new, sums / sizes, drop).lower(LEVEL)
    if error < ROUNDING:
        error, degrees = 0.0, 0.0
    else:
        lower = min(lower, drop - float(special.stdtrit(degrees, LEVEL)) * error)
    return DropBound(drop=drop, lower=lower, error=error, degrees=degrees, n=n, n_clusters=k)


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
    """Reason for failing that is no drop: missing scores on which the verdict depends."""
    lacking: tuple[int, int] = (0, 0)
    """Numbers of samples of which the old version, and the new one, lacks a score."""
    drops: Interval | None = None
    """Drop with all missing scores set for the new version, and against it; None if nothing is missing."""
    difference: float = 0.0
    """The new version minus the old one: the drop with the other sign."""
    power: tuple[float | None, ...] = ()

    @property
    def passed(self) -> bool:
        """True if a drop of more than ``max_drop`` is not shown, whatever the missing scores would be."""
        return not self.fault and self.bound.lower <= self.max_drop


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
    limits = None if allow_invalid else limit_pairs(old, new, mode, pair.metric)
    return gate_of(mode, pair, valid, max_drop, limits)


def held_by(mode: str) -> str:
    """Return what a sample that is compared has, in words: a table has scores, a run has records."""
    return "score" if mode == "table" else "valid record"


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
    limits: LimitPairs | None,
) -> Gate:
    """Test pairs of scores; ``valid``: the samples with a valid record of each run.

    ``limits``: the limits of the scores of the old and the new version; None: missing scores are left out.
    """
    lost, added = len(valid[1] - valid[0]), len(valid[0] - valid[1])
    bound = drop_bound(pair.first, pair.second, pair.clusters)
    lacking, drops, fault = (0, 0), None, ""
    if limits is not None and any(limits.lacking):
        lacking = limits.lacking
        bounds = [bound]
        for for_new in (True, False):
            older, newer = limits.scores(for_second=for_new)
            bounds.append(drop_bound(newer, older, limits.clusters))
        drops = Interval(lower=bounds[1].drop, upper=bounds[2].drop)
        # There is a verdict if it is the same without the missing scores, with all for the new version, and against it.
        if len({each.lower <= max_drop for each in bounds}) > 1:
            fault = f"no verdict, because {_lacking_text(lacking, mode)}"
    return Gate(
        mode=mode,
        metric=pair.metric,
        new=shown_mean(pair.first),
        old=shown_mean(pair.second),
        max_drop=max_drop,
        bound=bound,
        lost=lost,
        added=added,
        fault=fault,
        lacking=lacking,
        drops=drops,
        difference=-bound.drop,
        power=tuple(bound.power(beyond) for beyond in BEYOND),
    )


# --- scores that other programs gave, in tables with a row for each model and sample ----------------------------------

_NEEDED = ("model", "score", "sample")
_OPTIONAL = ("cluster", "epoch")
_ACCEPTED = "columns: model, sample, score (0 to 1, true or false; empty: none), and cluster and epoch if there are any"
_OF_A_RUN = "agrotools export RUN --format parquet; name fas score in samples.parquet, save one mode of it as .csv"
Scores = dict[tuple[str, str], float]  # means over epochs, by sample and its cluster


class ModelScores(NamedTuple):
    """Scores of a model in tables. ``gaps``: the share of the epochs of a sample that have no score, if there are any.

    A sample without any score is only in ``gaps``."""

    scores: Scores
    gaps: Scores

    def limits(self) -> dict[ScoredUnit, ScoreLimits]:
        """Return the lowest and highest score of each sample."""
        limits: dict[ScoredUnit, ScoreLimits] = {}
        for sample, cluster in {**self.scores, **self.gaps}:
            gap = self.gaps.get((sample, cluster), 0.0)
            low = self.scores.get((sample, cluster), 0.0) * (1 - gap)
            limits[ScoredUnit(sample)] = ScoreLimits(low, low + gap, cluster)
        return limits


def is_table(path: Path) -> bool:
    """Return True for a file, and for the name of a table that is missing; False for a run folder."""
    return path.is_file() or (
        path.suffix.lower() in (".csv", ".tsv", ".xlsx") and not path.is_dir()
    )


def read_scores(*files: Path, clusters: dict[str, str] | None = None) -> dict[str, ModelScores]:
    """Return the scores of each model, in ``clusters`` (by sample; filled); UsageError for a table with a fault."""
    rows, clusters = dict[tuple[str, ...], list[float]](), {} if clusters is None else clusters
    for file in files:
        if file.is_dir():
            raise UsageError(
                f"{file} is a folder, and tables cannot be compared with runs", hint=_OF_A_RUN
            )
        table = open_table(file)
        if lacking := {*_NEEDED}.difference(map(str.lower, table.columns)):
            fault = f"{file.name} has no column {', '.join(sorted(lacking))}; it has {', '.join(table.columns)}"
            raise UsageError(fault, hint=_ACCEPTED)
        table.check_names(*_NEEDED, *_OPTIONAL)
        for number, cells in table.named_rows():
            given = {
                name.lower(): cell.strip()
                for name, cell in cells.items()
                if cell.lower() not in ("nan", "null")
            }
            model, score, *ids = (given.get(name, "") for name in (*_NEEDED, *_OPTIONAL))
            sample, cluster, epoch = (
                text.removesuffix(".0") for text in ids
            )  # of pandas, in a column with gaps
            key, row = (model, sample, cluster or sample, epoch), f"row {number} of {file.name}"
            if not (model and sample):
                raise UsageError(f"{row} has no {'sample' if model else 'model'}", hint=_ACCEPTED)
            if clusters.setdefault(sample, key[2]) != key[2]:
                why = f"{row}: sample {sample} is in the cluster {key[2]}, elsewhere in {clusters[sample]}"
                raise UsageError(why, hint="give a sample the same cluster in every row")
            if key in rows:
                hint = (
                    "give the model of each table another name, or number repeats in a column epoch"
                )
                raise UsageError(f"{row} repeats model {model}, sample {sample}", hint=hint)
            rows[key] = [_number(score, row)] if score else []
    models: dict[str, dict[tuple[str, str], list[float]]] = {}
    epochs: dict[str, set[str]] = {}
    for (model, sample, cluster, epoch), score in rows.items():
        models.setdefault(model, {}).setdefault((sample, cluster), []).extend(score)
        epochs.setdefault(model, set()).add(epoch)
    return {model: _model_scores(units, len(epochs[model])) for model, units in models.items()}


def _model_scores(units: dict[tuple[str, str], list[float]], n_epochs: int) -> ModelScores:
    """Return means over epochs, and the share of the epochs that the table lacks a score of."""
    return ModelScores(
        scores={unit: fmean(each) for unit, each in units.items() if each},
        gaps={
            unit: 1 - len(each) / n_epochs for unit, each in units.items() if len(each) < n_epochs
        },
    )


def _number(text: str, row: str) -> float:
    try:
        score = float({"true": "1", "false": "0"}.get(text.lower(), text.replace(",", ".")))
    except ValueError:
        score = -1.0
    if not 0 <= score <= 1:
        raise UsageError(
            f"{row}: score {text} is no number from 0 to 1",
            hint=f"divide percentages by 100; {_ACCEPTED}",
        )
    return score


def _pair(first: Scores, second: Scores, names: str) -> HeadlinePair:
    units = sorted(unit for unit in first if unit in second)
    if not units:
        raise UsageError(
            f"{names} have no scored sample in common", hint="give a sample one id and one cluster"
        )
    mine, other = (np.array([each[unit] for unit in units]) for each in (first, second))
    return HeadlinePair(
        "score", mine, other, np.unique([cluster for _, cluster in units], return_inverse=True)[1]
    )


def compare_tables(*files: Path) -> list[RunComparison]:
    """Return the comparisons of all pairs of models, second minus first, adjusted together."""
    models, compared = read_scores(*files), list[RunComparison]()
    if len(models) < 2:
        raise UsageError(
            f"a comparison needs two models, not {', '.join(models) or 'none'}", hint=_ACCEPTED
        )
    for (first, one), (second, another) in combinations(models.items(), 2):
        mine, other = one.scores, another.scores
        missing = missing_of(paired_limits(one.limits(), another.limits()))
        pair = _pair(mine, other, f"{first} and {second}")
        overall = estimate_difference(pair.second, pair.first, pair.clusters)
        compared.append(
            RunComparison(
                first=first,
                second=second,
                benchmark=", ".join(file.name for file in files),
                modes={"table": {"score": Metric(overall=overall)}},
                headline={"table": "score"},
                means={"table": (float(pair.first.mean()), float(pair.second.mean()))},
                unpaired={"table": (len(mine) - overall.n, len(other) - overall.n)},
                missing={"table": missing} if missing else {},
            )
        )
    return with_comparisons_adjusted(compared)


def gate_tables(
    new: Path, old: Path, max_drop: float, *, allow_invalid: bool
) -> tuple[Gate, str, str]:
    """Test a table of one model against another, or a table of two models against the model ``old``; name both."""
    models = read_scores(new, clusters=(clusters := dict[str, str]()))
    if str(old) in models and not old.is_file():
        others = {str(old): models.pop(str(old))}
    elif old.exists() or is_table(old):
        others = read_scores(old, clusters=clusters)
    else:
        raise UsageError(
            f"{old} is neither a table nor a model of {new}",
            hint=f"its models: {', '.join(models)}",
        )
    for file, each in ((old, others), (new, models)):
        if len(each) != 1:
            fault = f"{file} has the scores of {', '.join(each) or 'no other model'}, but one model is tested"
            raise UsageError(
                fault, hint="two tables of one model each, or a table of two and --against MODEL"
            )
    (newer, first), (older, second) = *models.items(), *others.items()
    pair = _pair(first.scores, second.scores, f"{newer} and {older}")
    valid = ({*first.scores}, {*second.scores})
    limits = None if allow_invalid else paired_limits(second.limits(), first.limits())
    return gate_of("table", pair, valid, max_drop, limits), newer, older
