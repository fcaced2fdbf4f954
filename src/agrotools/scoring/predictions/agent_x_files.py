"""Agent-X's files: predictions, the data set, and what its judge said (as JSON or as a table).

Predictions are a list of objects with one key each, the id of the sample. A sample for which nothing came out has
empty texts in the place of its steps and its answer; others are absent.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError
from agrotools.scoring.loose import is_list, is_object
from agrotools.scoring.predictions.json_files import read_json, read_text
from agrotools.scoring.predictions.judge_replies import JudgeScore, read_judge_score
from agrotools.scoring.reference.agent_x import COLUMNS

_FORM = 'predictions look like [{"0": {"query": ..., "reasoning_steps": [...], "final_answer": {...}}}, ...]'
_ID_COLUMNS = ("id", "sample_id", "sample", "key", "index", "idx", "unnamed: 0", "")


@dataclass(frozen=True)
class JudgeTable:
    """What a judge said: one row for each prediction, in the order of the file. ``ids``: None where it names none."""

    rows: tuple[Mapping[str, Any], ...]
    ids: tuple[str, ...] | None
    raw: bool
    """Whether cells are whole replies, not numbers."""

    @cached_property
    def columns(self) -> frozenset[str]:
        """All names that some row has."""
        return frozenset(column for row in self.rows for column in row)

    @cached_property
    def scores(self) -> tuple[Mapping[str, JudgeScore], ...]:
        """Each row by column, read once for both scorers."""
        wanted = self.columns & COLUMNS.keys()
        return tuple({column: read_judge_score(row.get(column)) for column in wanted} for row in self.rows)


def read_predictions(path: Path) -> list[dict[str, Any]]:
    """Raises :class:`BenchmarkError` where the file cannot be read or is of another form."""
    return parse_predictions(read_json(path), path.name)


def parse_predictions(found: Any, name: str) -> list[dict[str, Any]]:
    """The items of a list of one-key objects, as they stand.

    Raises:
        BenchmarkError: an item is something else, or two have the same id.
    """
    if not is_list(found):
        raise BenchmarkError(f"{name} is no list", hint=_FORM)
    seen: set[str] = set()
    for position, item in enumerate(found):
        if not is_object(item) or len(item) != 1:
            raise BenchmarkError(f"{name}, item {position} is no object with one key", hint=_FORM)
        ((key, value),) = item.items()
        if not is_object(value):
            raise BenchmarkError(f'{name}, key "{key}" is no prediction', hint=_FORM)
        if key in seen:
            raise BenchmarkError(f'{name}, key "{key}" stands there twice', hint="keep one of them")
        seen.add(key)
    return found


def read_data(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The data set by id, each sample out of its list of one.

    Raises:
        BenchmarkError: it cannot be read or is of another form.
    """
    found = read_json(path)
    if not is_object(found) or not found:
        raise BenchmarkError(f"{path.name} is no object of samples", hint="give data.json of Agent-X")
    samples: dict[str, Mapping[str, Any]] = {}
    for key, entry in found.items():
        sample: Any = entry[0] if is_list(entry) and entry else entry
        if not is_object(sample):
            raise BenchmarkError(f'{path.name}, key "{key}" is no sample', hint="a sample is a list of one object")
        samples[key] = sample
    return samples


def read_judgements(path: Path) -> JudgeTable:
    """Saved replies (``{id: {metric: reply}}``) or a table of numbers (CSV).

    Raises:
        BenchmarkError: it cannot be read, or names none of the metrics.
    """
    table = _read_csv(path) if path.suffix.lower() == ".csv" else parse_judgements(read_json(path), path.name)
    if table.rows and not table.columns & COLUMNS.keys():
        raise BenchmarkError(
            f"{path.name} names none of the metrics of Agent-X", hint=f"they are {', '.join(list(COLUMNS)[:4])}..."
        )
    return table


def parse_judgements(found: Any, name: str) -> JudgeTable:
    """Saved replies by id; a sample for which the judge failed has null.

    Raises:
        BenchmarkError: it is of another form.
    """
    if not is_object(found):
        raise BenchmarkError(f"{name} is no object", hint='judgements look like {"0": {"goal_accuray": "..."}}')
    rows: list[Mapping[str, Any]] = []
    for key, row in found.items():
        if row is not None and not is_object(row):
            raise BenchmarkError(f'{name}, key "{key}" is no object of replies')
        rows.append(row or {})
    return JudgeTable(tuple(rows), tuple(map(str, found)), raw=True)


def _read_csv(path: Path) -> JudgeTable:
    text = read_text(path)
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise BenchmarkError(f"{path.name} is no table: {error}") from error
    names = list(rows[0]) if rows else []
    column = next((name for name in names if str(name).strip().lower() in _ID_COLUMNS), None)
    ids = None if column is None else tuple(str(row[column]).strip() for row in rows)
    if ids is not None and len(set(ids)) != len(ids):
        raise BenchmarkError(f"{path.name} has two rows with the same {column or 'first column'}")
    return JudgeTable(tuple(rows), ids, raw=False)
