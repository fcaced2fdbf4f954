"""Samples that rows of a file of predictions belong to: by an id, the question, or a position."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agrotools.core import Sample, UsageError
from agrotools.foreign.prediction_forms import PredictionRows, Row
from agrotools.foreign.prediction_names import FORM_HINT, IDS, QUESTIONS, is_filled
from agrotools.loading import Benchmark
from agrotools.loading.photos import photos_of

POSITION = "position"
"""What identifies the sample of a row if no column does."""
_LABEL = 60
"""Characters of an id that a message shows."""


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


FoundSample = tuple[str, str]
"""Id of the sample of a row, and the column that identifies it."""


class RowSamples:
    """Samples of a benchmark by what may identify them in a row."""

    def __init__(self, table: PredictionRows, benchmark: Benchmark) -> None:
        self.table = table
        self.benchmark = benchmark
        self.by_id = {sample.id: sample for sample in benchmark.samples}
        queries = {sample.id: " ".join(sample.query.split()) for sample in benchmark.samples}
        self.times = Counter(queries.values())
        self.by_query = {query: name for name, query in queries.items() if self.times[query] == 1}

    def match(
        self, file: str, by_photo: Callable[[], Sequence[FoundSample | None]]
    ) -> tuple[list[MatchedRow], list[str]]:
        """Return the rows that belong to a sample, and the names of the other rows.

        ``by_photo``: returns the samples of the rows by their photos, where nothing else identifies a sample.

        Raises:
            UsageError: columns of a row identify different samples, or no row belongs to a sample.
        """
        found = self._found(file)
        columns = {sample[1] for sample in found if sample}
        if columns == {self.table.prompt}:
            found = self._with_positions(found)
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

    def _found(self, file: str) -> list[FoundSample | None]:
        """Return the id of the sample of each row, and the column that identifies it."""
        by_kind = {plain: name for name, plain in self.table.names.items()}
        columns = [by_kind[name] for name in IDS if name in by_kind]
        if self.table.prompt:
            columns.append(self.table.prompt)
        return [
            self._of_row(row, columns, number, file)
            for number, row in zip(self.table.numbers, self.table.rows, strict=True)
        ]

    def _of_row(
        self, row: Row, columns: Sequence[str], number: int, file: str
    ) -> FoundSample | None:
        found: list[FoundSample] = []
        for column in columns:
            plain = self.table.names[column]
            name = self._named(row.get(column), plain)
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

    def _with_positions(self, found: Sequence[FoundSample | None]) -> list[FoundSample | None]:
        """Return the samples by their prompts, the others by position, if no prompt contradicts a position.

        The data set of a task may have other questions than the benchmark, or another order.
        """
        positions = _by_position(self.table.rows, [*self.by_id])
        for by_prompt, by_position in zip(found, positions, strict=True):
            if by_prompt and by_position and by_prompt[0] != by_position[0]:
                return [*found]
        return [
            by_prompt or by_position
            for by_prompt, by_position in zip(found, positions, strict=True)
        ]

    def _named(self, value: Any, column: str) -> str | None:
        text = plain_text(value)
        if column == self.table.prompt:
            return self._of_prompt(text)
        if column in QUESTIONS:
            return self.by_query.get(" ".join(text.split()))
        whole = text.removesuffix(".0")  # of pandas, in a column with gaps
        return text if text in self.by_id else whole if whole in self.by_id else None

    def _of_prompt(self, text: str) -> str | None:
        """Return the sample whose question a prompt is, or has in a line of its own as its only question."""
        lines = [" ".join(line.split()) for line in (text.replace("\n", " "), *text.splitlines())]
        questions = {line for line in lines if line in self.times}
        return self.by_query.get(questions.pop()) if len(questions) == 1 else None


def _by_position(rows: Sequence[Row], names: Sequence[str]) -> list[FoundSample | None]:
    """Match whole numbers in ``index`` with positions, from 0 or from 1; nothing if both are possible."""
    texts = [plain_text(row.get("index")).removesuffix(".0") for row in rows]
    numbers = [int(text) if text.isdecimal() else -1 for text in texts]
    first = 0 if 0 in numbers else 1
    if max(numbers) - first >= len(names) or (first and len(names) not in numbers):
        return [None] * len(rows)
    return [(names[number - first], POSITION) if number >= first else None for number in numbers]


def plain_text(value: Any) -> str:
    """Return an id as text; Excel stores whole numbers as floats."""
    return (
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    )


def name_of_row(number: int, row: Row, column: str = "") -> str:
    """Return a name of a row, with its value in a column, by default that of an id: ``row 3 (id 7)``."""
    columns = (column, *IDS) if isinstance(row.get(column), str | int | float) else IDS
    named = next((name for name in columns if is_filled(row.get(name))), "")
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
        hint=f"ids of samples are such as {ids[0]}, in a column {IDS[0]}; a row may also give the question{or_photo}; "
        f"write {FORM_HINT}",
    )
