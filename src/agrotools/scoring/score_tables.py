"""Scores that other programs gave, in tables with a row for each model and sample: compared and tested like runs."""

from itertools import combinations
from pathlib import Path
from statistics import fmean

from agrotools.core import UsageError
from agrotools.scoring.comparisons import HeadlinePair
from agrotools.scoring.gate import Gate, gate_of
from agrotools.scoring.statistics import estimate_difference
from agrotools.scoring.summary import Comparison, Metric, with_comparisons_adjusted
from agrotools.text.tables import open_table

_NEEDED = ("model", "score", "sample")
_ACCEPTED = "columns: model, sample, score (0 to 1, true or false; empty: none), and cluster and epoch if there are any"
_OF_A_RUN = "agrotools export RUN --format parquet; name fas score in samples.parquet, save one mode of it as .csv"
Scores = dict[tuple[str, str], float]  # means over epochs, by sample and its cluster


def is_table(path: Path) -> bool:
    """Return True for a file, and for the name of a table that is missing; False for a run folder."""
    return path.is_file() or (path.suffix.lower() in (".csv", ".tsv", ".xlsx") and not path.is_dir())


def read_scores(*files: Path, clusters: dict[str, str] | None = None) -> dict[str, Scores]:
    """Return the scores of each model, in ``clusters`` (by sample; filled); UsageError for a table with a fault."""
    rows, clusters = dict[tuple[str, ...], list[float]](), {} if clusters is None else clusters
    for file in files:
        if file.is_dir():
            raise UsageError(f"{file} is a folder, and tables cannot be compared with runs", hint=_OF_A_RUN)
        table = open_table(file)
        if lacking := {*_NEEDED}.difference(map(str.lower, table.columns)):
            fault = f"{file.name} has no column {', '.join(sorted(lacking))}; it has {', '.join(table.columns)}"
            raise UsageError(fault, hint=_ACCEPTED)
        for number, cells in table.named_rows():
            given = {name.lower(): cell.strip() for name, cell in cells.items() if cell.lower() not in ("nan", "null")}
            model, score, *ids = (given.get(name, "") for name in (*_NEEDED, "cluster", "epoch"))
            sample, cluster, epoch = (text.removesuffix(".0") for text in ids)  # of pandas, in a column with gaps
            key, row = (model, sample, cluster or sample, epoch), f"row {number} of {file.name}"
            if not (model and sample):
                raise UsageError(f"{row} has no {'sample' if model else 'model'}", hint=_ACCEPTED)
            if clusters.setdefault(sample, key[2]) != key[2]:
                why = f"{row}: sample {sample} is in the cluster {key[2]}, elsewhere in {clusters[sample]}"
                raise UsageError(why, hint="give a sample the same cluster in every row")
            if key in rows:
                hint = "give the model of each table another name, or number repeats in a column epoch"
                raise UsageError(f"{row} repeats model {model}, sample {sample}", hint=hint)
            rows[key] = [_number(score, row)] if score else []
    models: dict[str, dict[tuple[str, str], list[float]]] = {}
    for (model, sample, cluster, _), score in rows.items():
        models.setdefault(model, {}).setdefault((sample, cluster), []).extend(score)
    return {model: {unit: fmean(each) for unit, each in units.items() if each} for model, units in models.items()}


def _number(text: str, row: str) -> float:
    try:
        score = float({"true": "1", "false": "0"}.get(text.lower(), text.replace(",", ".")))
    except ValueError:
        score = -1.0
    if not 0 <= score <= 1:
        raise UsageError(
            f"{row}: score {text} is no number from 0 to 1", hint=f"divide percentages by 100; {_ACCEPTED}"
        )
    return score


def _pair(first: Scores, second: Scores, names: str) -> HeadlinePair:
    import numpy as np

    units = [unit for unit in first if unit in second]
    if not units:
        raise UsageError(f"{names} have no scored sample in common", hint="give a sample one id and one cluster")
    mine, other = (np.array([each[unit] for unit in units]) for each in (first, second))
    return HeadlinePair("score", mine, other, np.unique([cluster for _, cluster in units], return_inverse=True)[1])


def compare_tables(*files: Path) -> list[Comparison]:
    """Return the comparisons of all pairs of models, first minus second, adjusted together."""
    models, compared = read_scores(*files), list[Comparison]()
    if len(models) < 2:
        raise UsageError(f"a comparison needs two models, not {', '.join(models) or 'none'}", hint=_ACCEPTED)
    for (first, mine), (second, other) in combinations(models.items(), 2):
        pair = _pair(mine, other, f"{first} and {second}")
        overall = estimate_difference(pair.first, pair.second, pair.clusters)
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


def gate_tables(new: Path, old: Path, max_drop: float, *, allow_invalid: bool) -> tuple[Gate, str, str]:
    """Test a table of one model against another, or a table of two models against the model ``old``; name both."""
    models = read_scores(new, clusters=(clusters := dict[str, str]()))
    if str(old) in models and not old.is_file():
        others = {str(old): models.pop(str(old))}
    elif old.exists() or is_table(old):
        others = read_scores(old, clusters=clusters)
    else:
        raise UsageError(f"{old} is neither a table nor a model of {new}", hint=f"its models: {', '.join(models)}")
    for file, each in ((old, others), (new, models)):
        if len(each) != 1:
            fault = f"{file} has the scores of {', '.join(each) or 'no other model'}, but one model is tested"
            raise UsageError(fault, hint="two tables of one model each, or a table of two and --against MODEL")
    (newer, first), (older, second) = *models.items(), *others.items()
    pair = _pair(first, second, f"{newer} and {older}")
    return gate_of("table", pair, ({*first}, {*second}), max_drop, allow_invalid=allow_invalid), newer, older
