"""Columns of a file of predictions: the one that is scored, and those that must not be taken, such as the reference."""

import re
from collections.abc import Collection, Mapping, Sequence
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
from agrotools.core.form_item import asked_items
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.slot import asked_slots
from agrotools.foreign.prediction_forms import PredictionRows, Row
from agrotools.foreign.prediction_names import (
    ANSWER,
    IDS,
    PREDICTIONS,
    ColumnKind,
    column_kind,
    snake_case,
)
from agrotools.foreign.prediction_samples import MatchedRow
from agrotools.foreign.reply_objects import fields_of, is_reply_object, replies_in, stored_replies
from agrotools.foreign.transcripts import MODES_OF_KEYS, in_form
from agrotools.text.answer_reader import is_complete, read_answer
from agrotools.text.json_kinds import is_list, is_object
from agrotools.text.labels import label_key, name_key

FEW_ROWS = 5
"""Rows from which on a column that is right in all of them, to the last digit, is taken for the reference. Fewer right
answers are no sign, unless the file has another column of text."""
NUMBER_CELL = re.compile(r"(?P<number>[-+]?\d[\d.,]*)(?P<rest>\s*[^\d.,\s]\D{0,20})?")
"""Cell that holds one number, and perhaps its unit."""
_RESERVED = frozenset((*IDS, *PREDICTIONS, ANSWER))
"""Names of columns that mean no value of an answer, also if one has this name."""
_READ_BESIDE = ("error", "usage")
"""Columns that are read beside a prediction or a transcript."""
_LETTERS = re.compile(r"[^\W\d_]{2}")
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

    Both are empty if all rows are transcripts. ``over_transcripts``: a row with a transcript is read as its prediction.
    ``others``: columns that nothing reads, unless they tell rows of a sample apart.
    """

    whole: str = ""
    items: tuple[str, ...] = ()
    over_transcripts: bool = False
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
    """Return the columns that are scored, and say which they are and which are left.

    Args:
        table: the rows.
        matches: the rows that belong to a sample.
        items: names of the values that samples ask for.
        file: name of the file.
        choosing: asks which of several columns holds the predictions.

    Raises:
        UsageError: there is no column of predictions, none of the name that the user gave, or it is the reference.
    """
    columns = _Columns(table, matches, items)
    taken = _named_by_user(columns, file, choosing) if choosing.chosen.column else None
    if taken is None and table.column:
        taken = TakenColumns(table.column)
    if taken is None:
        taken = _found(columns, file, choosing)
    _say(columns, taken, choosing.readings)
    read = (taken.whole, *taken.items)
    return taken._replace(others=tuple(name for name in columns.unused if name not in read))


class _Columns:
    """Columns of a file by what they may hold.

    ``items`` are named by a value, the other lists by the kinds of their names. ``nameless``: columns whose names do
    not tell what they hold; ``unknown``: those of them that may hold predictions; ``unused``: columns that
    nothing reads unless they hold the predictions.
    """

    def __init__(
        self, table: PredictionRows, matches: Sequence[MatchedRow], items: Collection[str]
    ) -> None:
        self.table = table
        self.rows = table.rows
        self.matches = matches
        filled = [
            name for name in table.names if any(_is_filled(row.get(name)) for row in self.rows)
        ]
        self.items = [name for name in filled if name_key(name) in items and name not in _RESERVED]
        kinds: dict[str, ColumnKind] = {
            name: column_kind(plain) for name, plain in table.names.items()
        }
        self.kinds = {name: kinds[name] for name in filled if name not in self.items}
        self.answers = self._of_kind("answer")
        self.references = self._of_kind("reference")
        self.transcripts = self._of_kind("transcript")
        self.predictions = self._of_kind("prediction") or self._with_replies()
        if not self.predictions and not self.transcripts:
            # An empty column of predictions: all requests failed, and what is filled may be the reference.
            empty = [name for name, kind in kinds.items() if kind == "prediction"]
            self.predictions = empty[:1]
        self.predictions.sort(key=_precedence)
        matched_by = {match.by for match in matches}
        self.nameless = [name for name in self._of_kind("") if name not in matched_by]
        facts = self._of_kind("fact")
        self.unused = [
            name
            for name in (*self.nameless, *facts)
            if name not in matched_by and name not in _READ_BESIDE
        ]
        self.unknown = [name for name in self.nameless if self._may_be_predictions(name)]
        named = (self.predictions, self.answers, self.items, self.transcripts)
        if (
            not any(named) and not self.unknown
        ):  # columns that are named by a system: model_a, model_b
            settings = self._of_kind("setting")
            self.unknown = [name for name in settings if self.reads_as_answer(name)]

    def _may_be_predictions(self, name: str) -> bool:
        return self._has_text(name) and not self._describes_sample(name)

    def _of_kind(self, kind: ColumnKind) -> list[str]:
        return [name for name, each in self.kinds.items() if each == kind]

    def _with_replies(self) -> list[str]:
        may_hold = [*self._of_kind(""), *self._of_kind("fact")]
        return [name for name in may_hold if self._holds_replies(name)]

    def _has_text(self, name: str) -> bool:
        values = (row.get(name) for row in self.rows)
        return any(is_text_cell(value) or is_object(value) or is_list(value) for value in values)

    def _describes_sample(self, name: str) -> bool:
        """Return True for the id or the question of each sample, under any name."""
        pairs = [
            (" ".join(str(match.row[name]).split()), match.sample)
            for match in self.matches
            if _is_filled(match.row.get(name))
        ]
        return bool(pairs) and all(
            text in (sample.id, " ".join(sample.query.split())) for text, sample in pairs
        )

    def _holds_replies(self, name: str) -> bool:
        return any(
            is_reply_object(value) or (isinstance(value, str) and stored_replies(value) is not None)
            for row in self.rows
            if (value := row.get(name)) is not None
        )

    def equals_gold(self, name: str, *, in_form: bool = True) -> bool:
        """Return True if a column of whole predictions is the right answer in (nearly) every row.

        ``in_form``: also as lines of the form, as only some references are written.
        """
        read = read_columns(self.matches, [name], name)
        return bool(read) and all(equals_gold(column, in_form=in_form) for column in read)

    def reads_as_answer(self, name: str) -> bool:
        """Return True if a value of a column can be read as an answer to the question of its row."""
        for match in self.matches:
            value = match.row.get(name)
            if not _is_filled(value):
                continue
            if not isinstance(value, str):
                return True
            text = in_form(match.sample, spoken_answer(value))
            items = asked_items(match.sample.answer)
            if is_complete(text, items) or any(item.free_text for item in items):
                return True
        return False

    def gives(self, name: str) -> str:
        """Return the first value of a column, to tell it from others."""
        first = next((value for row in self.rows if _is_filled(value := row.get(name))), "")
        text = " ".join(str(first).split())
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _precedence(name: str) -> int:
    """Return the place of a column of predictions among several: its name among the usual ones, or behind them."""
    return PREDICTIONS.index(name) if name in PREDICTIONS else len(PREDICTIONS)


def _is_filled(value: Any) -> bool:
    return value is not None and value == value and str(value).strip() != ""


def _named_by_user(columns: _Columns, file: str, choosing: Choosing) -> TakenColumns:
    given = choosing.chosen.column
    found = [
        name
        for name in columns.table.names
        if name == given.strip().lower() or columns.table.names[name] == snake_case(given)
    ]
    if not found:
        raise UsageError(
            f"{file} has no column {given}", hint=f"its columns: {', '.join(columns.table.names)}"
        )
    choosing.decided["--column"] = found[0]
    if found[0] in MODES_OF_KEYS:
        return TakenColumns()
    if found[0] in columns.items and not columns.table.column:
        return TakenColumns(items=tuple(columns.items))
    return TakenColumns(found[0], over_transcripts=True)


def _found(columns: _Columns, file: str, choosing: Choosing) -> TakenColumns:
    """Return the columns that names and values tell, or that the user chooses."""
    if own := columns.table.own:
        if columns.kinds.get(own) != "prediction" and _is_surely_gold(columns, own):
            raise _is_reference(columns, own, file)
        return TakenColumns(own)
    named = _distinct(columns, columns.predictions)
    if named:
        return _of_named(columns, named, choosing)
    if columns.items:
        _check_items(columns, file)
        return TakenColumns(items=tuple(columns.items))
    if columns.answers or columns.unknown:
        if columns.transcripts:
            return TakenColumns()
        return TakenColumns(_of_unsure(columns, file, choosing))
    if columns.transcripts:
        return TakenColumns()
    listed = ", ".join(columns.table.names)
    raise UsageError(
        f"{file} has no column of predictions; it has {listed}",
        hint=f"name it with --column NAME, or call it {', '.join(PREDICTIONS)} or {ANSWER}",
    )


def _of_named(columns: _Columns, named: Sequence[str], choosing: Choosing) -> TakenColumns:
    """Return the column of predictions if names tell which columns hold some; of several the user chooses."""
    sure = [name for name in named if not _is_surely_gold(columns, name)]
    named = sorted(sure or named, key=columns.equals_gold)  # the reference is never proposed
    both = _spoken_transcripts(columns, named[0])
    choices = [Choice(name, columns.gives(name)) for name in named]
    choices += [Choice(name, "conversations with calls of tools") for name in both]
    question = ReadingQuestion("Which column holds the predictions?", "--column", tuple(choices))
    value = choosing.choose(question)
    return TakenColumns() if value in both else TakenColumns(value, over_transcripts=True)


def _is_surely_gold(columns: _Columns, name: str) -> bool:
    return len(columns.rows) >= FEW_ROWS and columns.equals_gold(name, in_form=False)


def _spoken_transcripts(columns: _Columns, column: str) -> list[str]:
    """Return the columns of transcripts that say something else than the predictions of the same rows."""
    return [
        name
        for name in columns.transcripts
        if any(_says_more(row.get(name), row[column]) for row in columns.rows if row.get(column))
    ]


def _says_more(messages: Any, prediction: Any) -> bool:
    """Return True if a conversation has calls, or ends otherwise than with the prediction."""
    spoken = [fields_of(each) for each in messages] if is_list(messages) else []
    spoken = [each for each in spoken if each.get("role") == "assistant"]
    if not spoken:  # the prompt
        return False
    has_calls = any(each.get("tool_calls") for each in spoken)
    return has_calls or replies_in(spoken[-1]) != replies_in(prediction)


def _of_unsure(columns: _Columns, file: str, choosing: Choosing) -> str:
    """Return the column of predictions where it may be ``answer``, or one whose name tells nothing."""
    others = _distinct(columns, columns.unknown)
    likely = [name for name in others if columns.reads_as_answer(name)]
    answers = columns.answers[:1]
    if answers and others and columns.equals_gold(answers[0]):
        if not likely:
            raise _is_reference(columns, answers[0], file)
        candidates = likely
    else:
        # Beside another column that may hold predictions, ``answer`` is more often the reference.
        candidates = [*likely, *answers] or others
    if len(candidates) == 1 and _is_surely_gold(columns, candidates[0]):
        raise _is_reference(columns, candidates[0], file)
    choices = tuple(Choice(name, columns.gives(name)) for name in candidates)
    return choosing.choose(
        ReadingQuestion("Which column holds the predictions?", "--column", choices)
    )


def _distinct(columns: _Columns, names: Sequence[str]) -> list[str]:
    """Return the first of the columns that have the same values in all rows."""
    kept: list[str] = []
    for name in names:
        if not any(all(row.get(name) == row.get(each) for row in columns.rows) for each in kept):
            kept.append(name)
    return kept


def _check_items(columns: _Columns, file: str) -> None:
    """Raise an error if a column named by a value may be the reference instead of predictions."""
    for column in read_columns(columns.matches, columns.items, ""):
        if equals_gold(column, in_form=False) and (
            columns.unknown or len(column.cells) >= FEW_ROWS
        ):
            raise _is_reference(columns, column.title, file)


def _is_reference(columns: _Columns, title: str, file: str) -> UsageError:
    others = [name for name in columns.unknown if name != title]
    unread = f" (not read: {', '.join(others)})" if others else ""
    number = len(columns.matches)
    return UsageError(
        f"column {title} of {file} equals the right answer in (nearly) all {number} rows, so it is taken for "
        f"the reference, and is not scored{unread}",
        hint=f"name the column with the answers of your system: --column NAME; if these are its answers, too, --column "
        f"{title.partition('.')[0]!r}",
    )


def _say(columns: _Columns, taken: TakenColumns, readings: Readings) -> None:
    read = [taken.whole] if taken.whole else [*taken.items]
    read += [name for name in columns.transcripts if _is_read_beside(columns, name, taken)]
    readings.take(f"column{'s' if len(read) > 1 else ''} {', '.join(read)}")
    if not taken.whole and not taken.items:
        left = [*columns.answers, *columns.items]
    else:
        left = [*columns.items, *columns.predictions, *columns.answers, *columns.unknown]
        left += columns.nameless if taken.items else []
    if taken.whole:
        left += _spoken_transcripts(columns, taken.whole)
    candidates = [*left, *columns.references]
    for name in dict.fromkeys(candidates):
        if name not in read:
            may_be_gold = name in (*columns.answers, *columns.predictions)
            is_gold = may_be_gold and columns.equals_gold(name)
            why = " (it equals the right answer in nearly every row)" if is_gold else ""
            readings.leave(f"column {name}{why}")
    for each in columns.table.left:
        readings.leave(each)


def _is_read_beside(columns: _Columns, name: str, taken: TakenColumns) -> bool:
    """Return True if a row has a transcript, and no prediction that is read instead of it."""
    return not taken.whole or any(
        row.get(name) is not None and row.get(taken.whole) is None for row in columns.rows
    )


# --- the reference ----------------------------------------------------------------------------------------------------


_NEARLY_ALL = 0.9
"""Share of measurements from which a column is taken for the reference: that of another version differs in some rows,
and a system has the very digits of so many only if it was shown them. Of labels a good system has as many right."""


def equals_gold(column: ReadColumn, *, in_form: bool) -> bool:
    """Return True if every cell of a column is the right answer itself, or nearly every cell of many measurements.

    ``in_form``: or nothing but its form lines.
    """
    right = [_is_right(cell, in_form=in_form) for cell in column.cells]
    measured = [
        is_right
        for cell, is_right in zip(column.cells, right, strict=True)
        if isinstance(cell.slot, ToleranceSlot)
    ]
    if len(measured) >= FEW_ROWS and sum(measured) >= _NEARLY_ALL * len(measured):
        return sum(right) >= _NEARLY_ALL * len(right)
    return bool(right) and all(right)


def is_text_cell(value: Any) -> bool:
    """Return True for a text with a word in it."""
    return isinstance(value, str) and bool(_LETTERS.search(value))


def _is_right(cell: PredictionCell, *, in_form: bool) -> bool:
    if cell.slot is not None and is_gold(cell.slot, cell.text):
        return True
    slots = [cell.slot] if cell.slot else _slots(cell.sample)
    has_prose = len(cell.text.splitlines()) > len(slots)
    if not in_form or has_prose:
        return False
    values = read_answer(cell.text, asked_items(cell.sample.answer))
    return all(slot.name in values and is_gold(slot, values[slot.name].text) for slot in slots)


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
