"""Samples that rows of a file of predictions belong to: by an id, a question, a prompt with it, or a position."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agrotools.core import Sample, UsageError
from agrotools.foreign.prediction_forms import PredictionRows, Row
from agrotools.foreign.prediction_names import IDS, QUESTIONS, column_kind
from agrotools.foreign.reply_objects import fields_of
from agrotools.loading import Benchmark
from agrotools.loading.photos import photos_of
from agrotools.text.json_kinds import is_list, is_object

_SHORTEST_QUERY = 20
"""Characters from which on a question within a prompt identifies its sample; a shorter one may occur in any prompt."""
_LABEL = 60
"""Characters of an id that a message shows."""

_OTHER_SAMPLES = frozenset(("cluster", "twin"))
"""Columns that agrotools itself writes with ids of other samples: a cluster has the name of its first sample."""


class MatchedRow(NamedTuple):
    """Row of a file that belongs to a sample. ``by``: the column that identifies the sample, or ``position``."""

    number: int
    row: Row
    sample: Sample
    by: str

    @property
    def label(self) -> str:
        """Name of the row: ``row 3 (id 7)``."""
        return name_of_row(self.number, self.row, self.by)


class RowSamples:
    """Samples of a benchmark by what may identify them in a row."""

    def __init__(self, table: PredictionRows, benchmark: Benchmark) -> None:
        self.table = table
        self.benchmark = benchmark
        self.by_id = {sample.id: sample for sample in benchmark.samples}
        queries = {sample.id: " ".join(sample.query.split()) for sample in benchmark.samples}
        times = Counter(queries.values())
        self.by_query = {query: name for name, query in queries.items() if times[query] == 1}

    def match(
        self, file: str, by_photo: Callable[[], Sequence[tuple[str, str] | None]]
    ) -> tuple[list[MatchedRow], list[str]]:
        """Return the rows that belong to a sample, and the names of the other rows.

        ``by_photo``: returns the samples of the rows by their photos, where nothing else identifies a sample.

        Raises:
            UsageError: columns of a row identify different samples, or no row belongs to a sample.
        """
        found = self._found(file)
        if not any(found):
            found = [*by_photo()]
        if not any(found):
            found = _by_position(self.table.rows, [*self.by_id])
        if not any(found):
            raise _no_sample(self.table, self.benchmark, file)
        matches: list[MatchedRow] = []
        others: list[str] = []
        for number, row, told in zip(self.table.numbers, self.table.rows, found, strict=True):
            if told is None:
                others.append(name_of_row(number, row))
            else:
                matches.append(MatchedRow(number, row, self.by_id[told[0]], told[1]))
        return matches, others

    def _found(self, file: str) -> list[tuple[str, str] | None]:
        """Return the id of the sample of each row, and the column that identifies it."""
        rows = self.table.rows
        columns = self._columns()
        found = [
            self._of_row(row, columns, number, file)
            for number, row in zip(self.table.numbers, rows, strict=True)
        ]
        return found if any(found) else self._by_prompt()

    def _columns(self) -> list[str]:
        """Return the columns that may identify samples: by their names, or because they hold nothing but ids."""
        by_kind = {plain: name for name, plain in self.table.names.items()}
        named = [by_kind[name] for name in IDS if name in by_kind]
        columns = [*self.table.names]
        nested = {
            f"{name}.{key}"
            for name in columns
            for row in self.table.rows
            if is_object(row.get(name))
            for key in row[name]
        }
        others = [name for name in (*columns, *sorted(nested)) if name not in named]
        return [*named, *(name for name in others if self._holds_ids(name))]

    def _holds_ids(self, column: str) -> bool:
        """Return True if each text in a column is the id of a sample, which no number is."""
        if column.rpartition(".")[2] in _OTHER_SAMPLES:
            return False
        values = [value for row in self.table.rows if (value := _value_at(row, column)) is not None]
        return bool(values) and all(
            isinstance(value, str) and value in self.by_id and not value.isdecimal()
            for value in values
        )

    def _of_row(
        self, row: Row, columns: Sequence[str], number: int, file: str
    ) -> tuple[str, str] | None:
        found: list[tuple[str, str]] = []
        for column in columns:
            plain = self.table.names.get(column, column)
            name = self._named(_value_at(row, column), plain)
            if name is not None and not (plain == "index" and found):
                found.append((name, column))
        told = {name for name, _ in found}
        if len(told) > 1:
            (one, first), (other, second) = found[0], next(x for x in found if x[0] != found[0][0])
            raise UsageError(
                f"row {number} of {file} belongs to sample {one} by {first}, but to {other} by {second}",
                hint=f"remove the column that is wrong: {first} or {second}",
            )
        return found[0] if found else None

    def _named(self, value: Any, column: str) -> str | None:
        text = plain_text(value)
        if column in QUESTIONS:
            return self.by_query.get(" ".join(text.split()))
        whole = text.removesuffix(".0")  # of pandas, in a column with gaps
        return text if text in self.by_id else whole if whole in self.by_id else None

    def _by_prompt(self) -> list[tuple[str, str] | None]:
        """Return the sample whose question alone is in a prompt of the row."""
        rows = self.table.rows
        columns = [
            name
            for name, plain in self.table.names.items()
            if column_kind(plain) == "prompt" or plain in ("messages", "instance", "doc")
        ]
        if not columns:
            return [None] * len(rows)
        by_start = defaultdict[str, list[str]](list)
        for query in self.by_query:
            if len(query) >= _SHORTEST_QUERY:
                by_start[query[:_SHORTEST_QUERY]].append(query)
        return [self._in_prompt(row, columns, by_start) for row in rows]

    def _in_prompt(
        self, row: Row, columns: Sequence[str], by_start: Mapping[str, Sequence[str]]
    ) -> tuple[str, str] | None:
        """Return the sample whose question is in a prompt. ``by_start``: questions by their first characters."""
        for column in columns:
            text = " ".join(" ".join(_texts_in(row.get(column))).split())
            there = {
                query
                for at in range(len(text) - _SHORTEST_QUERY + 1)
                for query in by_start.get(text[at : at + _SHORTEST_QUERY], ())
                if text.startswith(query, at)
            }
            whole = [query for query in there if not any(query in each for each in there - {query})]
            if len(whole) == 1:
                return self.by_query[whole[0]], column
        return None


def _value_at(row: Row, column: str) -> Any:
    """Return the value of a column, or of a field of its objects: ``metadata.sample_id``."""
    if column in row:
        return row[column]
    name, _, key = column.partition(".")
    return fields_of(row.get(name)).get(key)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a value, which may hold messages or parts of them."""
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, str):
            yield each
        elif is_list(each):
            waiting[:0] = each
        elif is_object(each):
            waiting[:0] = each.values()


def _by_position(rows: Sequence[Row], names: Sequence[str]) -> list[tuple[str, str] | None]:
    """Match whole numbers in ``index`` with positions, from 0 or from 1; nothing if both are possible."""
    texts = [plain_text(row.get("index")).removesuffix(".0") for row in rows]
    numbers = [int(text) if text.isdecimal() else -1 for text in texts]
    first = 0 if 0 in numbers else 1
    if max(numbers) - first >= len(names) or (first and len(names) not in numbers):
        return [None] * len(rows)
    return [(names[number - first], "position") if number >= first else None for number in numbers]


def plain_text(value: Any) -> str:
    """Return an id as text; Excel stores whole numbers as floats."""
    return (
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    )


def name_of_row(number: int, row: Row, column: str = "") -> str:
    """Return a name of a row, with its value in a column, by default that of an id: ``row 3 (id 7)``."""
    columns = (column, *IDS) if isinstance(row.get(column), str | int | float) else IDS
    named = next((name for name in columns if row.get(name)), "")
    return f"row {number}" + (f" ({named} {str(row[named])[:_LABEL]})" if named else "")


def _no_sample(table: PredictionRows, benchmark: Benchmark, file: str) -> UsageError:
    first = f"first: {name_of_row(table.numbers[0], table.rows[0])}"
    ids = [sample.id for sample in benchmark.samples]
    photo = next(iter(photos_of(benchmark.samples[0])), "")
    or_photo = f" or the photo, such as {photo}" if photo else ""
    if any("index" in row for row in table.rows):
        last = f"from 1 and has {len(ids)}, the last sample"
        first += f"; an index is a position if it counts from 0 and has 0, or {last}"
    return UsageError(
        f"no row of {file} belongs to a sample of {benchmark.name}; {first}",
        hint=f"ids of samples are such as {ids[0]}; name the column {IDS[0]} or {IDS[2]}, or give the question"
        f"{or_photo}",
    )
