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
from typing import Any

from agrotools.core import FrozenModel, Mode, UsageError
from agrotools.core.base import FloatArray, IntArray, np, special
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import HeadlinePair, check_same_samples, headline_pair
from agrotools.scoring.statistics import (
    LEVEL,
    MIN_CLUSTERS,
    cluster_sums,
    estimate_difference,
    ratio_spread,
)
from agrotools.scoring.summary import (
    MAX_INVALID_SHARE,
    Comparison,
    Metric,
    with_comparisons_adjusted,
)
from agrotools.scoring.units import shown_mean
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
        return 1 - float(
            special.nctdtr(self.degrees, beyond / self.error, special.stdtrit(self.degrees, LEVEL))
        )


def drop_bound(
    new: Sequence[float] | FloatArray,
    old: Sequence[float] | FloatArray,
    clusters: Sequence[Hashable] | IntArray,
) -> DropBound:
    """Return the mean of ``old - new``, paired unit by unit, with its lower bound.

    If all differences are equal, the bound is the lowest mean that k clusters cannot exclude: with 95 % confidence
    the share of clusters that would deviate is below ``1 - 0.05 ** (1/k)``, and none can deviate beyond -1, or -2 if
    there are scores below 0.

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
    if error < 1e-9:
        most = 2.0 if min(np.min(new), np.min(old)) < 0 else 1.0
        lower, error, degrees = drop - (1 - (1 - LEVEL) ** (1 / k)) * (most + drop), 0.0, 0.0
    else:
        lower = drop - float(special.stdtrit(degrees, LEVEL)) * error
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
    """Reason for failing that is no drop: too many samples without a valid record."""
    power: tuple[float | None, ...] = ()

    @property
    def passed(self) -> bool:
        """True if a drop of more than ``max_drop`` is not shown and enough samples were compared."""
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
    valid = [{*run.table.ids(run.modes[mode].valid_samples())} for run in (new, old)]
    return gate_of(mode, pair, valid, max_drop, allow_invalid=allow_invalid)


def held_by(mode: str) -> str:
    """Return what a sample that is compared has, in words: a table has scores, a run has records."""
    return "score" if mode == "table" else "valid record"


def gate_of(
    mode: str,
    pair: HeadlinePair,
    valid: Sequence[Set[Any]],
    max_drop: float,
    *,
    allow_invalid: bool,
) -> Gate:
    """Test pairs of scores; ``valid``: the samples with a valid record of each run."""
    lost, added = len(valid[1] - valid[0]), len(valid[0] - valid[1])
    fails = lost > MAX_INVALID_SHARE * len(valid[1]) and not allow_invalid
    fault = (
        f"{lost} of {len(valid[1])} samples have no {held_by(mode)} in the new version"
        if fails
        else ""
    )
    bound = drop_bound(pair.first, pair.second, pair.clusters)
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
        power=tuple(bound.power(beyond) for beyond in BEYOND),
    )


# --- scores that other programs gave, in tables with a row for each model and sample ----------------------------------

_NEEDED = ("model", "score", "sample")
_ACCEPTED = "columns: model, sample, score (0 to 1, true or false; empty: none), and cluster and epoch if there are any"
_OF_A_RUN = "agrotools export RUN --format parquet; name fas score in samples.parquet, save one mode of it as .csv"
Scores = dict[tuple[str, str], float]  # means over epochs, by sample and its cluster


def is_table(path: Path) -> bool:
    """Return True for a file, and for the name of a table that is missing; False for a run folder."""
    return path.is_file() or (
        path.suffix.lower() in (".csv", ".tsv", ".xlsx") and not path.is_dir()
    )


def read_scores(*files: Path, clusters: dict[str, str] | None = None) -> dict[str, Scores]:
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
        for number, cells in table.named_rows():
            given = {
                name.lower(): cell.strip()
                for name, cell in cells.items()
                if cell.lower() not in ("nan", "null")
            }
            model, score, *ids = (given.get(name, "") for name in (*_NEEDED, "cluster", "epoch"))
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
    for (model, sample, cluster, _), score in rows.items():
        models.setdefault(model, {}).setdefault((sample, cluster), []).extend(score)
    return {
        model: {unit: fmean(each) for unit, each in units.items() if each}
        for model, units in models.items()
    }


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
    units = [unit for unit in first if unit in second]
    if not units:
        raise UsageError(
            f"{names} have no scored sample in common", hint="give a sample one id and one cluster"
        )
    mine, other = (np.array([each[unit] for unit in units]) for each in (first, second))
    return HeadlinePair(
        "score", mine, other, np.unique([cluster for _, cluster in units], return_inverse=True)[1]
    )


def compare_tables(*files: Path) -> list[Comparison]:
    """Return the comparisons of all pairs of models, second minus first, adjusted together."""
    models, compared = read_scores(*files), list[Comparison]()
    if len(models) < 2:
        raise UsageError(
            f"a comparison needs two models, not {', '.join(models) or 'none'}", hint=_ACCEPTED
        )
    for (first, mine), (second, other) in combinations(models.items(), 2):
        pair = _pair(mine, other, f"{first} and {second}")
        overall = estimate_difference(pair.second, pair.first, pair.clusters)
        compared.append(
            Comparison(
                first=first,
                second=second,
                benchmark=", ".join(file.name for file in files),
                modes={"table": {"score": Metric(overall=overall)}},
                headline={"table": "score"},
                means={"table": (float(pair.first.mean()), float(pair.second.mean()))},
                unpaired={"table": (len(mine) - overall.n, len(other) - overall.n)},
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
    pair = _pair(first, second, f"{newer} and {older}")
    return (
        gate_of("table", pair, ({*first}, {*second}), max_drop, allow_invalid=allow_invalid),
        newer,
        older,
    )
