"""Scores that other programs gave, in tables with a row for each model and sample.

In: the columns ``model``, ``sample`` and ``score``, and ``cluster``, ``weight`` and ``epoch`` where there are any. Out:
the scores of each model by sample. Samples that depend on each other (questions about one picture, repeats of one
question) must share a cluster: taken for independent, they make intervals too narrow. No table says for sure that its
samples are independent, so that a table is asked about once if a column that is not read, or the ids, could be the
cluster.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from agrotools.core import UsageError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.texts import count_text
from agrotools.scoring.missing import ScoredUnit, ScoreLimits
from agrotools.text.tables import SheetTable, open_table

_NEEDED = ("model", "sample", "score")
_OPTIONAL = ("cluster", "weight", "epoch")
ACCEPTED = (
    "one row for each model and sample, with the columns model, sample, score (0 to 1, true or false; empty: none); "
    "optional: cluster, weight, epoch"
)
_OF_A_RUN = "agrotools export RUN --format parquet; name fas score in samples.parquet, save one mode of it as .csv"
CLUSTER = "--cluster"
INDEPENDENT = "none"
"""Answer to the question about the cluster: every sample is independent of the others."""
_BY_ID = "id-beginning"
"""Answer to it: the ids without their endings."""
_ENDING = re.compile(r"[\W_]*(?:\d+|[^\W\d_]+)[\W_]*$")
"""Last part of an id: digits or letters, with the marks around them."""
_EMPTY = ("", "nan", "null")


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


class TableReading(NamedTuple):
    """Settings for reading tables: the column of the cluster, if the user named one, and what is said and asked."""

    cluster: str
    readings: Readings


def plain_reading() -> TableReading:
    """Return a reading of tables about which nobody is asked: only a column ``cluster`` is one."""
    return TableReading("", Readings(accept=True))


def is_table(path: Path) -> bool:
    """Return True for a file, and for the name of a table that is missing; False for a run folder."""
    return path.is_file() or (
        path.suffix.lower() in (".csv", ".tsv", ".xlsx") and not path.is_dir()
    )


def read_scores(*files: Path, how: TableReading | None = None) -> dict[str, ModelScores]:
    """Return the scores of each model in tables that count as one; UsageError for a table with a fault."""
    (models,) = read_tables([files], how or plain_reading())
    return models


def read_tables(
    groups: Sequence[Sequence[Path]], how: TableReading
) -> list[dict[str, ModelScores]]:
    """Return the scores of each model in each group of tables, the clusters and weights being those of all groups.

    Raises:
        UsageError: a table cannot be read, or has a fault.
        UndecidedError: a column or the ids could be the cluster, and nobody says so.
    """
    rows_of_groups: list[list[_Row]] = []
    rows_of_files: dict[Path, list[_Row]] = {}
    for files in groups:
        for file in files:
            table = _open_scores(file)
            table.check_names(how.cluster.strip().casefold())
            rows_of_files[file] = [*_rows_of(table)]
        rows_of_groups.append([row for file in files for row in rows_of_files[file]])
    all_rows = [row for rows in rows_of_groups for row in rows]
    # In a gate, the last group is the old version: the new one cannot bring the clusters.
    reference = {file: rows_of_files[file] for file in groups[-1]}
    clusters = _clusters(all_rows, reference, how)
    weights = _weights(all_rows)
    _say_epochs(rows_of_groups, how.readings)
    return [_by_model(rows, clusters, weights) for rows in rows_of_groups]


def _say_epochs(groups: Iterable[Iterable["_Row"]], readings: Readings) -> None:
    """Say how many epochs each model has, unless all have as many: more of them make a steadier mean."""
    numbers: list[tuple[str, int]] = []
    for rows in groups:
        epochs: defaultdict[str, set[str]] = defaultdict(set)
        for row in rows:
            epochs[row.model].add(row.epoch)
        numbers += [(model, len(of_model)) for model, of_model in epochs.items()]
    if len({n for _, n in numbers}) > 1:
        listed = ", ".join(f"{model} {n}" for model, n in numbers)
        readings.take(f"unequal epochs ({listed}), each model's mean of them by sample")


class _Row(NamedTuple):
    """Row of a table: its place for messages, its cells by column in lower case, empty ones without a text."""

    place: str
    model: str
    sample: str
    epoch: str
    cells: Mapping[str, str]


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
        raise UsageError(fault, hint=ACCEPTED)
    table.check_names(*_NEEDED, *_OPTIONAL)
    return table


def _rows_of(table: SheetTable) -> list[_Row]:
    """Return the rows of a table, each with a model and a sample."""
    rows: list[_Row] = []
    for number, named in table.named_rows():
        place = f"row {number} of {table.path.name}"
        # A row may end before the last columns.
        cells = {column.lower(): _plain(named.get(column, "")) for column in table.columns}
        model, sample = cells["model"], _name(cells["sample"])
        for what, value in (("model", model), ("sample", sample)):
            if not value:
                raise UsageError(f"{place} has no {what}", hint=ACCEPTED)
        rows.append(_Row(place, model, sample, _name(cells.get("epoch", "")), cells))
    return rows


def _plain(cell: str) -> str:
    """Return the text of a cell; nothing for what programs write in an empty one."""
    text = cell.strip()
    return "" if text.lower() in _EMPTY else text


def _name(text: str) -> str:
    """Return a name: pandas writes whole numbers as 3.0 in a column with gaps."""
    return text.removesuffix(".0")


# --- clusters and weights --------------------------------------------------------------------------------------------


def _clusters(
    rows: Sequence[_Row], reference: Mapping[Path, Sequence[_Row]], how: TableReading
) -> dict[str, str]:
    """Return the cluster of each sample, its own id where none is given, and say which columns are read.

    Raises:
        UsageError: a file of ``reference`` names no clusters, and another file does. Whoever makes that one could
            otherwise choose how sure the comparison is.
    """
    columns = dict.fromkeys(column for row in rows for column in row.cells)
    chosen = _chosen_cluster(rows, list(columns), how)
    read = [*_NEEDED, *(each for each in _OPTIONAL[1:] if each in columns)]
    own = {row.sample: row.sample for row in rows}
    if chosen == INDEPENDENT:
        clusters: dict[str, str] = {}
        means = "each sample is a cluster of its own"
    elif chosen == _BY_ID:
        clusters = _ids_without_endings(rows)
        means = "clusters by the ids without their endings"
    else:
        without = [
            file.name
            for file, of_file in reference.items()
            if not any(row.cells.get(chosen) for row in of_file)
        ]
        if without:
            raise UsageError(
                f"{', '.join(without)} names no clusters in a column {chosen}, as another table does",
                hint=f"add the column to all tables, or treat all samples as independent: {CLUSTER} {INDEPENDENT}",
            )
        clusters = _values_by_sample(rows, chosen)
        means = f"clusters by {chosen}"
        read.append(chosen)
    if "weight" in read:
        means += ", means are weighted"
    how.readings.take(f"columns {', '.join(dict.fromkeys(read))} ({means})")
    for column in columns:
        if column not in read:
            how.readings.leave(f"column {column}")
    return own | clusters


def _chosen_cluster(rows: Sequence[_Row], columns: Sequence[str], how: TableReading) -> str:
    """Return the column that is the cluster, :data:`INDEPENDENT` or :data:`_BY_ID`, asked for if it is not clear.

    A table without such a column has only independent samples, unless its ids show repeats.
    """
    given = how.cluster.strip().lower()
    if given:
        known = [each for each in columns if each not in (*_NEEDED, "weight", "epoch")]
        if _ids_without_endings(rows):
            known.append(_BY_ID)
        choices = [Choice(each) for each in (*known, INDEPENDENT)]
        question = ReadingQuestion("Which column is the cluster?", CLUSTER, tuple(choices))
        return how.readings.choose(question, given)
    if "cluster" in columns:
        return "cluster"
    choices = _possible_clusters(rows, columns)
    if not choices:
        return INDEPENDENT
    choices.append(Choice(INDEPENDENT, f"{len({row.sample for row in rows})} independent samples"))
    question = ReadingQuestion(
        "Which samples depend on each other, as questions about one picture do? Their values repeat over samples:",
        CLUSTER,
        tuple(choices),
    )
    chosen = how.readings.choose(question)
    how.readings.settle()
    return chosen


def _possible_clusters(rows: Sequence[_Row], columns: Sequence[str]) -> list[Choice]:
    """Return what could be the cluster, the most clusters first: a picture has fewer questions than a task."""
    n_samples = len({row.sample for row in rows})
    groups: dict[str, int] = {}
    for column in columns:
        if column not in (*_NEEDED, *_OPTIONAL) and _describes_samples(rows, column):
            n_values = len({row.cells[column] for row in rows if row.cells.get(column)})
            if 1 < n_values < n_samples:
                groups[column] = n_values
    if by_id := _ids_without_endings(rows):
        groups[_BY_ID] = len({*by_id.values()})
    choices: list[Choice] = []
    for name in sorted(groups, key=lambda name: -groups[name]):
        gives = count_text(groups[name], "cluster")
        if name == _BY_ID:
            gives += ", the ids without their endings: all models score alike in each"
        choices.append(Choice(name, gives))
    return choices


def _describes_samples(rows: Sequence[_Row], column: str) -> bool:
    """Return True if a column has one value in all rows of a sample, and no fractions, which are measurements."""
    first: dict[str, str] = {}
    for row in rows:
        value = row.cells.get(column, "")
        if not value:
            continue
        if first.setdefault(row.sample, value) != value or _is_fraction(value):
            return False
    return bool(first)


def _is_fraction(text: str) -> bool:
    try:
        return not float(text.replace(",", ".")).is_integer()
    except (ValueError, OverflowError):
        return False


def _values_by_sample(rows: Sequence[_Row], column: str) -> dict[str, str]:
    """Return the cluster of each sample in a column, which is the same in every row that has one."""
    found: dict[str, str] = {}
    for row in rows:
        value = _name(row.cells.get(column, ""))
        if value and found.setdefault(row.sample, value) != value:
            raise UsageError(
                f"{row.place}: sample {row.sample} is in the cluster {value}, elsewhere in {found[row.sample]}",
                hint=f"give a sample the same {column} in every row",
            )
    return found


def _ids_without_endings(rows: Sequence[_Row]) -> dict[str, str]:
    """Return the ids without their last parts, if these number repeats of the same question; else nothing.

    They do if each beginning has several ids, and every model scores all of them alike, but not all beginnings.
    """
    results: defaultdict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for row in rows:
        results[row.sample].add((row.model, row.epoch, row.cells["score"]))
    repeats: dict[str, str] = {}
    beginnings = {sample: sample for sample in results}
    while True:
        shorter = {sample: _ENDING.sub("", text) for sample, text in beginnings.items()}
        if shorter == beginnings or len({*shorter.values()}) < 2:
            return repeats
        beginnings = shorter
        if _are_repeats(beginnings, results):
            repeats = beginnings


def _are_repeats(
    beginnings: Mapping[str, str], results: Mapping[str, set[tuple[str, str, str]]]
) -> bool:
    """Return True if every beginning of ids has several samples, all with the same results."""
    groups: defaultdict[str, list[frozenset[tuple[str, str, str]]]] = defaultdict(list)
    for sample, beginning in beginnings.items():
        groups[beginning].append(frozenset(results[sample]))
    are_several = all(len(group) > 1 for group in groups.values())
    are_alike = all(len({*group}) == 1 for group in groups.values())
    differ = len({group[0] for group in groups.values()}) > 1
    return are_several and are_alike and differ


def _weights(rows: Iterable[_Row]) -> dict[str, float]:
    """Return the weight of each sample, which is the same in every row; 1 without one."""
    weights: dict[str, float] = {}
    for row in rows:
        text = row.cells.get("weight", "")
        weight = _weight(text, row.place) if text else 1.0
        first = weights.setdefault(row.sample, weight)
        if first != weight:
            raise UsageError(
                f"{row.place}: sample {row.sample} has the weight {weight:g}, elsewhere {first:g}",
                hint="give a sample the same weight in every row",
            )
    return weights


_LEAST_WEIGHT = 1e-6
"""Least weight of a sample: the sample counts for nothing below it, and its square is no number any more."""


def _weight(text: str, place: str) -> float:
    """Return the weight of a cell."""
    try:
        weight = float(text.replace(",", "."))
    except ValueError:
        weight = 0.0
    if not _LEAST_WEIGHT <= weight < inf:
        raise UsageError(
            f"{place}: weight {text} is no number of {_LEAST_WEIGHT:g} or more", hint=ACCEPTED
        )
    return weight


# --- scores ----------------------------------------------------------------------------------------------------------


class _ScoredEpoch(NamedTuple):
    """Model, sample and epoch that a row of a table has a score of; ``epoch`` is empty in a table without repeats."""

    model: str
    of: TableSample
    epoch: str


def _by_model(
    rows: Iterable[_Row], clusters: Mapping[str, str], weights: Mapping[str, float]
) -> dict[str, ModelScores]:
    """Return the scores of each model. All its samples should have as many epochs as the table has of the model."""
    known = set[_ScoredEpoch]()
    units: dict[str, dict[TableSample, list[float]]] = {}
    epochs: dict[str, set[str]] = {}
    for row in rows:
        sample = TableSample(row.sample, clusters[row.sample], weights[row.sample])
        scored = _ScoredEpoch(row.model, sample, row.epoch)
        if scored in known:
            raise UsageError(
                f"{row.place} repeats model {row.model}, sample {row.sample}",
                hint="give the model of each table another name, or number repeats in a column epoch",
            )
        known.add(scored)
        of_sample = units.setdefault(row.model, {}).setdefault(sample, [])
        epochs.setdefault(row.model, set()).add(row.epoch)
        if text := row.cells["score"]:
            of_sample.append(_number(text, row.place))
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


def _number(text: str, place: str) -> float:
    """Return the score of a cell: a number with a decimal point or comma, or true or false."""
    plain = {"true": "1", "false": "0"}.get(text.lower(), text.replace(",", "."))
    try:
        score = float(plain)
    except ValueError:
        score = -1.0
    if not 0 <= score <= 1:
        raise UsageError(
            f"{place}: score {text} is no number from 0 to 1",
            hint=f"divide percentages by 100; write right and wrong as 1 and 0. {ACCEPTED}",
        )
    return score
