"""Reading the score out of what a judge of Agent-X replied.

The judge is told to write a Python dict, ``{'Score': ..., 'Justification': ...}``; how the published tables read that
is not known. Here: the last object in the reply that has a score, in either kind of quotes, in a fence or among prose;
else the last ``Score: ...``; else a reply that is nothing but a number. ``0.5/1`` and ``80%`` are shares. What is no
number between 0 and 1 is unreadable.
"""

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.benchmarks.agent_x.published_scorer import COLUMNS
from agrotools.core import BenchmarkError
from agrotools.scoring.predictions import read_json, read_text
from agrotools.text.loose_json import NotJson, is_list, is_object, is_text, loads, values_in

_THINKING = re.compile(r"^.*</think>", re.DOTALL)
_SHARE = re.compile(
    r"\s*+(?P<number>[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d{1,3})?)\s*+"
    r"(?:(?P<percent>%)|/\s*+(?P<whole>\d++(?:\.\d++)?))?\s*+",
    re.ASCII | re.IGNORECASE,
)
_NAMED = re.compile(rf"\bscore\b['\"*`]*+\s*+[:=]\s*+['\"*`]*+(?P<share>{_SHARE.pattern})", re.ASCII | re.IGNORECASE)
_LONGEST = 200_000


class JudgeScore(NamedTuple):
    """``value`` between 0 and 1; None where the reply is missing or says no score, which ``rule`` tells apart."""

    value: float | None
    rule: str


MISSING, UNREADABLE, BEYOND = "missing", "unreadable", "not between 0 and 1"


def read_judge_score(reply: Any) -> JudgeScore:
    """The score in a saved reply: a text, an object, a number, or null. Never raises."""
    if reply is None or (is_text(reply) and not reply.strip()):
        return JudgeScore(None, MISSING)
    if not is_text(reply):
        value: Any = _scored(reply) if is_object(reply) else reply
        return _share(value, "value")
    text: str = _THINKING.sub("", reply[:_LONGEST])
    for start, end in reversed(values_in(text)):
        try:
            value = _scored(loads(text[start:end]))
        except NotJson:
            continue
        if value is not None:
            return _share(value, "object")
    named = [match["share"] for match in _NAMED.finditer(text)]
    if named:
        return _share(named[-1], "score:")
    return _share(text.strip().strip("`'\"* "), "number")


def _scored(value: Any) -> Any:
    """What stands under the key score, in any case; None where there is none."""
    if is_list(value) and len(value) == 1:
        value = value[0]
    if not is_object(value):
        return None
    return next((item for key, item in value.items() if str(key).strip().lower() == "score"), None)


def _share(value: Any, rule: str) -> JudgeScore:
    if isinstance(value, bool):
        return JudgeScore(None, UNREADABLE)
    number = float("nan")
    if isinstance(value, int | float):
        number = math.inf if abs(value) > 1e9 else float(value)
    elif is_text(value) and (match := _SHARE.fullmatch(value)):
        number = float(match["number"])
        whole = 100.0 if match["percent"] else float(match["whole"] or 1)
        number = number / whole if whole else math.nan
    if math.isnan(number):
        return JudgeScore(None, UNREADABLE)
    return JudgeScore(number, rule) if 0 <= number <= 1 else JudgeScore(None, BEYOND)


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
