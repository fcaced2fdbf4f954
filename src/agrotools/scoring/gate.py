"""One-sided test of whether a new run is worse than an old one by more than an allowed drop, paired by sample.

The bound is ``drop - t * error`` with the CR2 cluster-robust standard error of the paired differences and
Satterthwaite's degrees of freedom (:func:`agrotools.scoring.statistics.ratio_spread`), or lower where few clusters
cannot exclude rare large deviations, as in the interval of ``compare``. ``performance/gate_power.py``
simulates its false alarms and its power. Scores that other programs gave, in tables with a row for each model and
sample, are compared and tested like runs.
"""

from collections.abc import Hashable, Mapping, Sequence, Set
from itertools import combinations
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, NamedTuple

from pydantic import Field

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
from agrotools.scoring.summary import (
    TABLE_MODE,
    Metric,
    RunComparison,
    with_comparisons_adjusted,
)
from agrotools.text.tables import SheetTable, open_table

BEYOND = (0.05, 0.10)
"""Drops beyond the allowed one for which the power is given."""


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
    limits: LimitPairs | None,
) -> Gate:
    """Test pairs of scores; ``valid``: the samples with a valid record of the new and of the old run.

    ``limits``: the limits of the scores of the old and the new version; None: missing scores are left out.
    """
    of_new, of_old = valid
    new_mean, old_mean = pair.means
    bound = drop_bound(pair.first, pair.second, pair.clusters, pair.weights, allowed=max_drop)
    lacking, drops, fault = (0, 0), None, ""
    if limits is not None and any(limits.lacking):
        lacking = limits.lacking
        for_new = _bound_at_limit(limits, for_new=True)
        against_new = _bound_at_limit(limits, for_new=False)
        drops = Interval(lower=for_new.drop, upper=against_new.drop)
        # There is a verdict if it is the same without the missing scores, with all for the new version, and against it.
        verdicts = {each.lower <= max_drop for each in (bound, for_new, against_new)}
        if len(verdicts) > 1:
            fault = f"no verdict, because {_lacking_text(lacking, mode)}"
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
        lacking=lacking,
        drops=drops,
        difference=-bound.drop,
        power=tuple(bound.power(beyond) for beyond in BEYOND),
    )


def _bound_at_limit(limits: LimitPairs, *, for_new: bool) -> DropBound:
    """Return the drop with all missing scores set for the new version, or against it."""
    older, newer = limits.scores(for_second=for_new)
    return drop_bound(newer, older, limits.clusters, limits.weights)


# --- scores that other programs gave, in tables with a row for each model and sample ----------------------------------

_NEEDED = ("model", "score", "sample")
_OPTIONAL = ("cluster", "weight", "epoch")
_ACCEPTED = "columns: model, sample, score (0 to 1, true or false; empty: none); optional: cluster, weight, epoch"
_OF_A_RUN = "agrotools export RUN --format parquet; name fas score in samples.parquet, save one mode of it as .csv"


class TableSample(NamedTuple):
    """Sample of a table of scores, with its cluster and its weight in means."""

    sample: str
    cluster: str
    weight: float


Scores = dict[TableSample, float]
"""Means over epochs, by sample."""


class ModelScores(NamedTuple):
    """Scores of a model in tables. ``gaps``: the share of the epochs of a sample that have no score, if there are any.

    A sample without any score is only in ``gaps``."""

    scores: Scores
    gaps: Scores

    def limits(self) -> dict[ScoredUnit, ScoreLimits]:
        """Return the lowest and highest score of each sample."""
        limits: dict[ScoredUnit, ScoreLimits] = {}
        for each in {**self.scores, **self.gaps}:
            gap = self.gaps.get(each, 0.0)
            low = self.scores.get(each, 0.0) * (1 - gap)
            limits[ScoredUnit(each.sample)] = ScoreLimits(low, low + gap, each.cluster, each.weight)
        return limits


def is_table(path: Path) -> bool:
    """Return True for a file, and for the name of a table that is missing; False for a run folder."""
    return path.is_file() or (
        path.suffix.lower() in (".csv", ".tsv", ".xlsx") and not path.is_dir()
    )


def read_scores(
    *files: Path, samples: dict[str, TableSample] | None = None
) -> dict[str, ModelScores]:
    """Return the scores of each model; UsageError for a table with a fault.

    ``samples``: the samples of other tables, by id, whose clusters and weights must be the same; filled.
    """
    samples = {} if samples is None else samples
    scores: dict[_ScoredEpoch, float | None] = {}
    for file in files:
        table = _open_scores(file)
        for number, cells in table.named_rows():
            row = f"row {number} of {file.name}"
            given = _given_cells(cells)
            scored = _scored_epoch(given, row)
            _check_sample(scored.of, samples, row)
            if scored in scores:
                raise UsageError(
                    f"{row} repeats model {scored.model}, sample {scored.of.sample}",
                    hint="give the model of each table another name, or number repeats in a column epoch",
                )
            score = given.get("score")
            scores[scored] = _number(score, row) if score else None
    return _by_model(scores)


class _ScoredEpoch(NamedTuple):
    """What a row of a table has a score of; ``epoch`` is empty in a table without repeats."""

    model: str
    of: TableSample
    epoch: str


def _open_scores(file: Path) -> SheetTable:
    """Open a table that has the columns of scores, each once."""
    if file.is_dir():
        raise UsageError(
            f"{file} is a folder, and tables cannot be compared with runs", hint=_OF_A_RUN
        )
    if file.suffix.lower() == ".eval":
        raise UsageError(
            f"{file.name} is a log of Inspect, neither a run nor a table of scores",
            hint=f"agrotools score --benchmark NAME --predictions {file} --out RUN makes a run of it",
        )
    table = open_table(file)
    columns = {column.lower() for column in table.columns}
    lacking = sorted(set(_NEEDED) - columns)
    if lacking:
        fault = f"{file.name} has no column {', '.join(lacking)}; it has {', '.join(table.columns)}"
        raise UsageError(fault, hint=_ACCEPTED)
    table.check_names(*_NEEDED, *_OPTIONAL)
    return table


def _given_cells(cells: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a row that hold a value, by the names of their columns in lower case."""
    given: dict[str, str] = {}
    for column, cell in cells.items():
        if cell.lower() not in ("nan", "null"):
            given[column.lower()] = cell.strip()
    return given


def _scored_epoch(given: Mapping[str, str], row: str) -> _ScoredEpoch:
    """Return what a row has a score of; a sample without a cluster is a cluster of its own, and weighs 1."""
    model = given.get("model", "")
    # pandas writes whole numbers as 3.0 in a column with gaps.
    sample = given.get("sample", "").removesuffix(".0")
    cluster = given.get("cluster", "").removesuffix(".0")
    epoch = given.get("epoch", "").removesuffix(".0")
    if not model:
        raise UsageError(f"{row} has no model", hint=_ACCEPTED)
    if not sample:
        raise UsageError(f"{row} has no sample", hint=_ACCEPTED)
    weight = _weight(given["weight"], row) if given.get("weight") else 1.0
    return _ScoredEpoch(model, TableSample(sample, cluster or sample, weight), epoch)


def _check_sample(here: TableSample, samples: dict[str, TableSample], row: str) -> None:
    """Check that a sample has one cluster and one weight in all rows; ``samples``: of the rows before (filled)."""
    first = samples.setdefault(here.sample, here)
    if first.cluster != here.cluster:
        raise UsageError(
            f"{row}: sample {here.sample} is in the cluster {here.cluster}, elsewhere in {first.cluster}",
            hint="give a sample the same cluster in every row",
        )
    if first.weight != here.weight:
        raise UsageError(
            f"{row}: sample {here.sample} has the weight {here.weight:g}, elsewhere {first.weight:g}",
            hint="give a sample the same weight in every row",
        )


def _weight(text: str, row: str) -> float:
    """Return the weight of a cell."""
    try:
        weight = float(text.replace(",", "."))
    except ValueError:
        weight = 0.0
    if not 0 < weight < inf:
        raise UsageError(f"{row}: weight {text} is no number above 0", hint=_ACCEPTED)
    return weight


def _by_model(scores: Mapping[_ScoredEpoch, float | None]) -> dict[str, ModelScores]:
    """Return the scores of each model. All its samples should have as many epochs as the table has of the model."""
    units: dict[str, dict[TableSample, list[float]]] = {}
    epochs: dict[str, set[str]] = {}
    for scored, score in scores.items():
        of_model = units.setdefault(scored.model, {})
        of_unit = of_model.setdefault(scored.of, [])
        if score is not None:
            of_unit.append(score)
        epochs.setdefault(scored.model, set()).add(scored.epoch)
    return {model: _model_scores(units[model], len(epochs[model])) for model in units}


def _model_scores(units: dict[TableSample, list[float]], n_epochs: int) -> ModelScores:
    """Return means over epochs, and the share of the epochs that the table lacks a score of."""
    scores: Scores = {}
    gaps: Scores = {}
    for unit, of_unit in units.items():
        if of_unit:
            scores[unit] = fmean(of_unit)
        if len(of_unit) < n_epochs:
            gaps[unit] = 1 - len(of_unit) / n_epochs
    return ModelScores(scores, gaps)


def _number(text: str, row: str) -> float:
    """Return the score of a cell: a number with a decimal point or comma, or true or false."""
    plain = {"true": "1", "false": "0"}.get(text.lower(), text.replace(",", "."))
    try:
        score = float(plain)
    except ValueError:
        score = -1.0
    if not 0 <= score <= 1:
        raise UsageError(
            f"{row}: score {text} is no number from 0 to 1",
            hint=f"divide percentages by 100; {_ACCEPTED}",
        )
    return score


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
    new: Path, old: Path, max_drop: float, *, allow_invalid: bool
) -> tuple[Gate, str, str]:
    """Test a table of one model against another, or a table of two models against the model ``old``; name both."""
    samples: dict[str, TableSample] = {}
    models = read_scores(new, samples=samples)
    if str(old) in models and not old.is_file():
        others = {str(old): models.pop(str(old))}
    elif old.exists() or is_table(old):
        others = read_scores(old, samples=samples)
    else:
        raise UsageError(
            f"{old} is neither a table nor a model of {new}",
            hint=f"its models: {', '.join(models)}",
        )
    older, second = _only_model(others, old)
    newer, first = _only_model(models, new)
    pair = _pair(first.scores, second.scores, f"{newer} and {older}")
    valid = (set(first.scores), set(second.scores))
    limits = None if allow_invalid else paired_limits(second.limits(), first.limits())
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
