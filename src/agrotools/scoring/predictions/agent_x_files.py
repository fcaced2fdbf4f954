"""Agent-X's files: predictions, the data set, and what its judge said (as JSON or as a table).

Predictions are a list of objects with one key each, the id of the sample. A sample for which nothing came out has
empty texts in the place of its steps and its answer; others are absent.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError
from agrotools.scoring.predictions.compared import read_json, read_text
from agrotools.scoring.predictions.judge_replies import JudgeScore, read_judge_score
from agrotools.scoring.reference.agent_x import COLUMNS
from agrotools.text.loose_json import is_list, is_object, is_text

_FORM = 'predictions look like [{"0": {"query": ..., "reasoning_steps": [...], "final_answer": {...}}}, ...]'
_ID_COLUMNS = ("id", "sample_id", "sample", "key", "index", "idx", "unnamed: 0", "")


@dataclass(frozen=True)
class JudgeTable:
    """What a judge said: one row for each prediction, in the order of the file. ``ids``: None where it names none."""

    rows: tuple[Mapping[str, Any], ...]
    ids: tuple[str, ...] | None
    raw: bool
    """Whether cells are whole replies, not numbers."""
    malformed: tuple[str, ...] = ()
    """Rows that are no objects of replies, by their place in the file: they say nothing."""

    @cached_property
    def columns(self) -> frozenset[str]:
        """All names that some row has."""
        return frozenset(column for row in self.rows for column in row)

    @cached_property
    def scores(self) -> tuple[Mapping[str, JudgeScore], ...]:
        """Each row by column, read once for both scorers."""
        wanted = self.columns & COLUMNS.keys()
        return tuple({column: read_judge_score(row.get(column)) for column in wanted} for row in self.rows)


def read_predictions(path: Path) -> tuple[list[Any], list[str]]:
    """Raises :class:`BenchmarkError` where the file cannot be read or is no list of predictions."""
    return parse_predictions(read_json(path), path.name)


def parse_predictions(found: Any, name: str) -> tuple[list[Any], list[str]]:
    """The items of a list of one-key objects as they stand, and what is malformed in them, by its place in the file.

    Raises:
        BenchmarkError: it is no list, or holds no prediction at all.
    """
    if not is_list(found):
        raise BenchmarkError(f"{name} is no list", hint=_FORM)
    seen: set[str] = set()
    malformed: list[str] = []
    for position, item in enumerate(found):
        pairs: list[tuple[str, Any]] = list(item.items()) if is_object(item) else []
        if len(pairs) != 1:
            malformed.append(f"{name}, item {position} is no object with one key")
        for key, value in pairs:
            where = f'{name}, key "{key}"'
            malformed += [f"{where} stands there twice"] if key in seen else _faults(value, where)
            seen.add(key)
    if found and not seen:
        raise BenchmarkError(malformed[0], hint=_FORM)
    return found, malformed


def _faults(entry: Any, where: str) -> Iterator[str]:
    """What in a prediction is of another form than it should be; keys that are missing are counted elsewhere."""
    if not is_object(entry):
        yield f"{where} is no prediction"
        return
    steps: Any = entry.get("reasoning_steps", [])
    listed: list[Any] = steps if is_list(steps) else []
    if not is_list(steps) and steps != "":
        yield f"{where}: reasoning_steps is no list"
    for place, step in enumerate(listed):
        if not is_object(step):
            yield f"{where}: reasoning_steps[{place}] is no object"
        else:
            yield from (
                f"{where}: reasoning_steps[{place}].{name} is no text"
                for name in ("task", "tool", "tool_used", "thought")
                if (value := step.get(name, "")) is not None or name in ("task", "thought")
                if not is_text(value)
            )
    if not is_object(entry.get("final_answer", {})):
        yield f"{where}: final_answer is no object"


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
    rows: list[Mapping[str, Any]] = [row if is_object(row) else {} for row in found.values()]
    malformed = [
        f'{name}, key "{key}" is no object of replies'
        for key, row in found.items()
        if row is not None and not is_object(row)
    ]
    return JudgeTable(tuple(rows), tuple(map(str, found)), raw=True, malformed=tuple(malformed))


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
