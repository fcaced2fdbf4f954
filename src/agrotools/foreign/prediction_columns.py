"""Columns of a file of predictions: the one that is scored, and those that must not be taken, such as the reference."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isclose
from typing import Any, NamedTuple, cast

from agrotools.agents.parsing import spoken_answer
from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    Sample,
    Slot,
    ToleranceSlot,
    UsageError,
)
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.slot import asked_slots
from agrotools.foreign.prediction_forms import PredictionRows, Row
from agrotools.foreign.prediction_names import (
    FORM_HINT,
    IDS,
    MODE,
    PREDICTION,
    READ_BESIDE,
    is_filled,
    snake_case,
)
from agrotools.foreign.prediction_samples import MatchedRow
from agrotools.foreign.transcripts import MODES_OF_KEYS
from agrotools.text.labels import label_key, name_key

FEW_ROWS = 5
"""Rows from which on a column that is right in all of them, to the last digit, is taken for the reference. Fewer right
answers are no sign."""
NUMBER_CELL = re.compile(r"(?P<number>[-+]?\d[\d.,]*)(?P<rest>\s*[^\d.,\s]\D{0,20})?")
"""Cell that holds one number, and perhaps its unit."""
_RESERVED = frozenset((*IDS, PREDICTION))
"""Names of columns that mean no value of an answer, also if one has this name."""
_SHOWN = 40
"""Characters of a cell that a question shows."""


class ColumnAnswers(NamedTuple):
    """Answers of the user to questions on a file of predictions; empty for those that are not given.

    ``column``: column of the predictions. ``only``: value that a row must have, by column. ``repeated``: what several
    rows of a sample are: ``epochs``, or one counts, the ``first`` or ``last``. ``decimal``: ``point`` or ``comma``.
    """

    column: str = ""
    only: Mapping[str, str] = {}
    repeated: str = ""
    decimal: str = ""


class Choosing:
    """Questions on one file of predictions.

    ``decided``: the answers, by option, of questions that had more than one; a run of the same file with other answers
    is another run.
    """

    def __init__(self, readings: Readings, chosen: ColumnAnswers) -> None:
        self.readings = readings
        self.chosen = chosen
        self.decided: dict[str, str] = {}

    def choose(self, question: ReadingQuestion, given: str = "") -> str:
        """Return the answer to a question, as :meth:`Readings.choose` does."""
        value = self.readings.choose(question, given or None)
        if len(question.choices) > 1:
            self.decided[question.option] = value
        return value


class PredictionCell(NamedTuple):
    """Text of a row in a column that is read as predictions."""

    row: int
    text: str
    slot: Slot | None
    """The slot that the text answers; None if that is not known."""
    sample: Sample


class ReadColumn(NamedTuple):
    """Column that is read as predictions, or a field of the objects in it (``item``), with the cells that hold text."""

    name: str
    item: str
    cells: list[PredictionCell]

    @property
    def title(self) -> str:
        """Name of the column, and of the field: ``prediction.mean``."""
        return f"{self.name}.{self.item}" if self.item else self.name


def with_cell(row: Row, column: ReadColumn, text: str) -> Row:
    """Return a row with another text in a column, or in the field of the object in it."""
    value = {**row[column.name], column.item: text} if column.item else text
    return {**row, column.name: value}


class TakenColumns(NamedTuple):
    """Columns that are scored: ``whole`` has whole predictions, each of ``items`` one value of an answer.

    Both are empty if all rows are transcripts. ``others``: columns that nothing reads, unless they tell rows of a
    sample apart.
    """

    whole: str = ""
    items: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def read_columns(
    matches: Sequence[MatchedRow], names: Sequence[str], whole: str
) -> list[ReadColumn]:
    """Return the columns ``names``. ``whole``: the column of whole predictions; the others are named by an item."""
    columns: dict[tuple[str, str], ReadColumn] = {}
    for name in names:
        for at, match in enumerate(matches):
            value: Any = match.row.get(name)
            fields = cast("Row", value) if isinstance(value, Mapping) else {"": value}
            for item, each in fields.items():
                if isinstance(each, bool) or not isinstance(each, str | int | float):
                    continue
                text = spoken_answer(each) if isinstance(each, str) and each.strip() else str(each)
                column = columns.setdefault((name, item), ReadColumn(name, item, []))
                asked = item or (name if name != whole else "")
                if text.strip() and each == each:
                    slot = _slot_of(match.sample, asked)
                    column.cells.append(PredictionCell(at, text.strip(), slot, match.sample))
    return [*columns.values()]


def _slot_of(sample: Sample, item: str) -> Slot | None:
    """Return the slot that a cell answers: of the item, or the only one; None if that is not known."""
    slots = _slots(sample)
    if item:
        slots = [slot for slot in slots if name_key(item) in map(name_key, (slot.name, slot.label))]
    return slots[0] if len(slots) == 1 else None


def _slots(sample: Sample) -> list[Slot]:
    return [slot for slot in asked_slots(sample.answer) if not slot.made_by_tools]


# --- the column that is scored ----------------------------------------------------------------------------------------


def take_columns(
    table: PredictionRows,
    matches: Sequence[MatchedRow],
    items: Collection[str],
    file: str,
    choosing: Choosing,
) -> TakenColumns:
    """Return the columns that are scored, and say which they are.

    Args:
        table: the rows.
        matches: the rows that belong to a sample.
        items: names of the values that samples ask for.
        file: name of the file.
        choosing: asks whether predictions or transcripts are scored where rows have both.

    Raises:
        UsageError: there is no column of predictions, none of the name that the user gave, or it is the reference.
    """
    filled = _filled(table.names, table.rows)
    named = [name for name in filled if name_key(name) in items and name not in _RESERVED]
    transcripts = [name for name in MODES_OF_KEYS if name in filled]
    others = [row for row in table.rows if not _filled(transcripts, [row])]
    if choosing.chosen.column:
        taken = _named_by_user(table, named, file, choosing)
    elif table.column:
        taken = TakenColumns(table.column)
    elif table.own:
        _check_no_reference(matches, [table.own], table.own, file)
        taken = TakenColumns(table.own)
    elif PREDICTION in table.names:
        taken = _predictions_or_transcripts(table, transcripts, choosing)
    elif _filled(named, others):
        _check_no_reference(matches, named, "", file)
        taken = TakenColumns(items=tuple(named))
    elif transcripts:
        taken = TakenColumns()
    else:
        listed = ", ".join(table.names)
        raise UsageError(
            f"{file} has no column {PREDICTION}, and none that is named by a value that is asked for; it has {listed}",
            hint=f"name the column of the predictions with --column NAME; or write {FORM_HINT}",
        )
    scored = [taken.whole] if taken.whole else [*taken.items]
    without = [row for row in table.rows if not taken.whole or row.get(taken.whole) is None]
    scored += _filled(transcripts, without)
    choosing.readings.take(f"column{'s' if len(scored) > 1 else ''} {', '.join(scored)}")
    for each in table.left:
        choosing.readings.leave(each)
    read = {*scored, *IDS, *READ_BESIDE, MODE, *(match.by for match in matches)}
    return taken._replace(others=tuple(name for name in filled if name not in read))


def _filled(names: Iterable[str], rows: Sequence[Row]) -> list[str]:
    """Return the columns that hold something in one of the rows."""
    return [name for name in names if any(is_filled(row.get(name)) for row in rows)]


def _named_by_user(
    table: PredictionRows, named: Sequence[str], file: str, choosing: Choosing
) -> TakenColumns:
    given = choosing.chosen.column
    found = [
        name
        for name, plain in table.names.items()
        if name == given.strip().lower() or plain == snake_case(given)
    ]
    if not found:
        raise UsageError(
            f"{file} has no column {given}", hint=f"its columns: {', '.join(table.names)}"
        )
    choosing.decided["--column"] = found[0]
    if found[0] in MODES_OF_KEYS:
        return TakenColumns()
    if found[0] in named and not table.column:
        return TakenColumns(items=tuple(named))
    return TakenColumns(found[0])


def _predictions_or_transcripts(
    table: PredictionRows, transcripts: Sequence[str], choosing: Choosing
) -> TakenColumns:
    """Return the column of predictions; where a row has a transcript, too, the user chooses."""
    both = _filled(transcripts, [row for row in table.rows if is_filled(row.get(PREDICTION))])
    choices = [Choice(name, _first_value(table, name)) for name in (PREDICTION, *both)]
    question = ReadingQuestion("Which column is scored?", "--column", tuple(choices))
    chosen = choosing.choose(question)
    return TakenColumns() if chosen in both else TakenColumns(PREDICTION)


def _first_value(table: PredictionRows, name: str) -> str:
    """Return the first value of a column, to tell it from others."""
    first = next((value for row in table.rows if is_filled(value := row.get(name))), "")
    text = " ".join(str(first).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


# --- the reference ----------------------------------------------------------------------------------------------------


_NEARLY_ALL = 0.9
"""Share of measurements from which a column is taken for the reference: that of another version differs in some rows,
and a system has the very digits of so many only if it was shown them. Of labels a good system has as many right."""


def _check_no_reference(
    matches: Sequence[MatchedRow], names: Sequence[str], whole: str, file: str
) -> None:
    """Raise UsageError if a column named by a value, or by the user's own table, equals the right answers."""
    for column in read_columns(matches, names, whole):
        if len(column.cells) >= FEW_ROWS and equals_gold(column):
            raise UsageError(
                f"column {column.title} of {file} equals the right answer in (nearly) all {len(matches)} rows, so it "
                "is taken for the reference, and is not scored",
                hint=f"name the column with the answers of your system: --column NAME; if these are its answers, too, "
                f"--column {column.name!r}",
            )


def equals_gold(column: ReadColumn) -> bool:
    """Return True if every cell of a column is the right answer, or nearly every cell of many measurements."""
    right = [cell.slot is not None and is_gold(cell.slot, cell.text) for cell in column.cells]
    measured = [
        is_right
        for cell, is_right in zip(column.cells, right, strict=True)
        if isinstance(cell.slot, ToleranceSlot)
    ]
    if len(measured) >= FEW_ROWS and sum(measured) >= _NEARLY_ALL * len(measured):
        return sum(right) >= _NEARLY_ALL * len(right)
    return bool(right) and all(right)


def _is_rounded(written: str, gold: float) -> bool:
    """Return True for the right number as it is written with some digits: ``13.6`` for 13.6009."""
    try:
        value = float(written)
    except ValueError:
        return False
    digits = len(written.partition(".")[2])
    return isclose(value, gold) or isclose(value, round(gold, digits))


def is_gold(slot: Slot, text: str) -> bool:
    """Return True if a cell is the right answer itself, perhaps rounded, not only within its tolerance."""
    plain = text.strip().casefold()
    match slot:
        case BooleanSlot():
            return plain in (("yes", "true", "1") if slot.value else ("no", "false", "0"))
        case ChoiceSetSlot():
            given = {each.strip() for each in re.split(r"[,;|]", plain.strip("[]()"))}
            return {each.strip("'\"") for each in given} == {each.casefold() for each in slot.value}
        case ToleranceSlot() | ExactSlot() if not isinstance(slot.value, str):
            number = NUMBER_CELL.fullmatch(plain)
            return number is not None and _is_rounded(number["number"], slot.value)
        case ExactSlot():
            return label_key(plain) in map(label_key, slot.names)
        case FileSlot():
            return plain == slot.value.casefold()
        case _:
            return False
