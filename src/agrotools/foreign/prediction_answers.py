"""Answers that rows of a file of predictions hold: texts, objects of programs, values in columns, and transcripts."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import orjson

from agrotools.agents.parsing import spoken_answer
from agrotools.core import Mode, Sample, UsageError
from agrotools.core.form_item import asked_items
from agrotools.core.texts import first_names
from agrotools.foreign.batch_output import NoReply, error_text
from agrotools.foreign.prediction_columns import TakenColumns
from agrotools.foreign.prediction_forms import Row
from agrotools.foreign.prediction_names import ERROR, FORM_HINT, MODE, snake_case
from agrotools.foreign.prediction_samples import MatchedRow, plain_text
from agrotools.foreign.transcripts import MODES_OF_KEYS
from agrotools.models.refusals import failed_request
from agrotools.text.answer_form import UNKNOWN
from agrotools.text.json_kinds import fields_of, is_list, is_object, is_text
from agrotools.text.labels import item_names, name_key

GivenAnswer = str | Row | NoReply | None
"""Answer of a row: a text, the row itself if it is a transcript, an error, or None."""
_NO_VALUES = frozenset("nan null #n/a #ref! #value! #div/0! #name? #null! #num!".split())
"""Cells that programs write where there is no value, in lower case; ``N/A`` can be an answer."""
_NONE = "none"
"""Text that Python writes where there is no value. It is an answer where a choice has this name."""
_KEYS_NAMED = 5
"""Keys of objects that a message names."""
_LONGEST_KEY = 40
"""Characters of a key that a message shows: models write whole sentences as keys."""


class PredictionColumn:
    """The columns that are scored.

    ``are_replies``: a list holds a reply in each of its entries, as in a form of a program. ``name_items``: an object
    names a value of an answer, so that the model wrote the others, too. ``of_table``: an empty cell is no prediction.
    """

    def __init__(
        self,
        matches: Sequence[MatchedRow],
        taken: TakenColumns,
        items: Collection[str],
        file: str,
        *,
        are_replies: bool,
        of_table: bool,
    ) -> None:
        self.taken = taken
        self.are_replies = are_replies
        self.file = file
        self.of_table = of_table
        values = [match.row.get(taken.whole) for match in matches] if taken.whole else []
        self.name_items = any(_names_item(fields_of(value), items) for value in values)
        self.items = items
        self.other_keys: dict[str, None] = {}
        """Keys that objects have beside values of an answer, and that are not read."""

    def named_keys(self) -> str:
        """Return the first of the other keys in words: ``keys note, explanation``."""
        names = [" ".join(key.split())[:_LONGEST_KEY] for key in self.other_keys]
        word = "key" if len(names) == 1 else "keys"
        return f"{word} {first_names(names, _KEYS_NAMED)}"

    def refuse(self, value: Any, label: str) -> UsageError:
        """Return the error for an object that holds no reply."""
        what = (
            f"an object with {', '.join([*value][:_KEYS_NAMED])}"
            if is_object(value)
            else "a list of objects"
        )
        return UsageError(
            f"column {self.taken.whole} of {self.file} holds {what} in {label}, which is no reply and no answer",
            hint=FORM_HINT,
        )


def _json_of(text: str) -> Any:
    """Return what a text is in JSON; None if it is anything else than one object."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _names_item(fields: Row, items: Collection[str]) -> bool:
    return any(name_key(str(name)) in items for name in fields)


def stated_mode(row: Row) -> Mode:
    """Return the mode of the answer of a row: end-to-end if its column ``mode`` says so, else no-tool."""
    return "end-to-end" if snake_case(plain_text(row.get(MODE))) == "end_to_end" else "no-tool"


class RowAnswers:
    """Answers of one row."""

    def __init__(self, match: MatchedRow, column: PredictionColumn) -> None:
        self.row = match.row
        self.label = match.label
        self.column = column
        self.items = item_names(asked_items(match.sample.answer))
        self.may_be_none = _may_be_none(match.sample)

    def by_mode(self) -> Iterator[tuple[Mode, list[GivenAnswer]]]:
        """Yield the answers in each mode: the row itself for a transcript, else of its column, or of its items."""
        taken = self.column.taken
        transcripts: list[Mode] = [
            mode for key, mode in MODES_OF_KEYS.items() if self.row.get(key) is not None
        ]
        value = self.row.get(taken.whole) if taken.whole else None
        if transcripts and value is None:
            for mode in transcripts:
                yield mode, [self.row]
        elif taken.whole:
            yield stated_mode(self.row), self._of_column(value)
        else:
            yield stated_mode(self.row), [self._of_items()]

    def _of_column(self, value: Any) -> list[GivenAnswer]:
        if value in (None, "") and (error := self.row.get(ERROR)):
            return [NoReply(error_text(error))]
        read: list[GivenAnswer] = [self._prediction(reply) for reply in self._replies(value)]
        return read or [None]

    def _replies(self, value: Any) -> Sequence[Any]:
        """Return the replies in a value: one, or each entry of a list where a program stores several."""
        if is_list(value) and self.column.are_replies:
            return value
        names_items = _names_item(fields_of(value), self.items) or self.column.name_items
        if is_object(value) and not names_items:
            raise self.column.refuse(value, self.label)
        if is_list(value) and any(is_object(each) or is_list(each) for each in value):
            raise self.column.refuse(value, self.label)
        return (self._asked_fields(value),)

    def _asked_fields(self, value: Any) -> Any:
        """Return an object without what models write beside the values that are asked for, as an explanation.

        An object without any of these values stays whole: it is a wrong answer, not an empty one.
        """
        fields = fields_of(_json_of(value) if is_text(value) else value)
        if not _names_item(fields, self.items):
            return value
        others = [str(name) for name in fields if name_key(str(name)) not in self.column.items]
        self.column.other_keys.update(dict.fromkeys(others))
        if is_text(value):
            return value  # the reader of the form takes the values out of it
        return {name: each for name, each in fields.items() if name_key(str(name)) in self.items}

    def _of_items(self) -> GivenAnswer:
        """Return the values of the columns that are named by an item, as lines of the form."""
        given = {
            name: self._prediction(self.row[name], is_value=True)
            for name in self.row
            if name_key(name) in self.items
        }
        failed = next((each for each in given.values() if isinstance(each, NoReply)), None)
        values = {
            name: _without_name(text, name)
            for name, text in given.items()
            if isinstance(text, str) and text
        }
        return failed or _answer_text(values, self.items) or None

    def _prediction(self, value: Any, *, is_value: bool = False) -> str | NoReply | None:
        """Return a prediction as text, or None if there is none: an empty text is an answer only where null exists.

        ``is_value``: it is a value of an answer, which has no names in it.
        """
        if isinstance(value, NoReply):
            return value
        items = {} if is_value else self.items
        text = _answer_text(value, items)
        if name_key(text.partition(":")[0]) not in items and (error := failed_request(str(value))):
            return NoReply(error)
        if isinstance(value, str) and text.strip():
            text = spoken_answer(text)
        plain = text.strip().casefold()
        no_value = value is None or value != value or plain in _NO_VALUES
        if plain == _NONE and not self.may_be_none:
            no_value = True
        return None if no_value or (self.column.of_table and not plain) else text


def _may_be_none(sample: Sample) -> bool:
    """Return True if ``None`` can be an answer: a choice has this name, several or no choices may be right, or words.

    The form offers another word for a refusal."""
    for item in asked_items(sample.answer):
        names = [*item.choices, *(name for each in item.aliases.values() for name in each)]
        is_open = item.free_text or (not item.is_number and item.type != "boolean" and not names)
        if is_open or item.takes_several or any(name.casefold() == _NONE for name in names):
            return True
    return False


def _without_name(text: str, name: str) -> str:
    """Return a value without its own name before it: ``answer: 6.4 m`` in a column ``answer``."""
    before, colon, value = text.partition(":")
    return value.strip() if colon and name_key(before) == name_key(name) else text


def _answer_text(value: Any, items: Mapping[str, str]) -> str:
    """Return a prediction as text; an object becomes lines ``name: value``, as in the answer form: null is unknown."""
    if is_object(value):
        fields = cast("Row", value)
        values = {
            items.get(name_key(name), name): (
                UNKNOWN if each is None else " ".join(_value_text(each).split())
            )
            for name, each in fields.items()
        }
        return "\n".join(f"{name}: {text}" for name, text in values.items())
    return _value_text(value)


def _value_text(value: Any) -> str:
    if is_object(value):
        return " ".join(map(_value_text, cast("Row", value).values()))
    if is_list(value):
        return ", ".join(map(_value_text, cast("list[Any]", value)))
    return "" if value is None or value != value else plain_text(value)
