"""Cells of predictions as people write them: ``31,7 %``, ``7 maçãs``, ``sim``; and values that are not read.

What the answer form reads stays as it is. Other cells are read as those of a table of own photos.
"""

from collections.abc import Iterable, Sequence

from agrotools.core import ExactSlot, Sample
from agrotools.core.form_item import FormItem, asked_items, form_item
from agrotools.core.installed import plugins_of_slots
from agrotools.core.readings import Readings
from agrotools.core.texts import count_text
from agrotools.foreign.prediction_columns import PredictionCell, ReadColumn, with_cell
from agrotools.foreign.prediction_forms import Row
from agrotools.knowledge.countables import countable_named, is_counter
from agrotools.knowledge.words import folded
from agrotools.text import cells
from agrotools.text.answer_reader import read_answer, read_form, read_value, value_text
from agrotools.text.labels import label_key
from agrotools.text.tables import CellFault
from agrotools.text.yes_no import YES_INITIALS

_YES, _NO = (*cells.YES, *YES_INITIALS, "1.0"), (*cells.NO, "0.0")
"""Words for yes and no; pandas writes a column of both and of empty cells as 1.0 and 0.0."""
_STRANGE_LABELS = "labels that are none of the choices (they score 0)"
_UNREAD_ANSWERS = "answers that are not read (they score 0)"
_SHOWN = 40
"""Characters of an answer that a message shows."""


def with_plain_values(
    rows: Sequence[Row], columns: Iterable[ReadColumn], readings: Readings
) -> list[Row]:
    """Return the rows with plain numbers, and with yes and no, in ``columns``, and say what was read so."""
    changed: list[Row] = [*rows]
    for column in columns:
        read: dict[str, str] = {}
        for cell in column.cells:
            plain = _plain_value(cell)
            if plain != cell.text:
                read[cell.text] = plain
                changed[cell.row] = with_cell(changed[cell.row], column, plain)
        if read:
            written, plain = next(iter(read.items()))
            number = count_text(len(read), "value")
            readings.take(f"{number} of {column.title} such as {written!r} as {plain}")
    return changed


def _plain_value(cell: PredictionCell) -> str:
    """Return the value of a cell as the answer form writes it, or the text of the cell."""
    if cell.slot is None:
        return cell.text
    item = form_item(cell.slot)
    try:
        if item.type == "boolean":
            return value_text(cells.yes_or_no(cell.text, _YES, _NO))
        if item.is_number and not read_value(item, cell.text).is_read:
            return _plain_number(item, cell.text)
    except CellFault:
        pass
    return cell.text


def _plain_number(item: FormItem, text: str) -> str:
    """Return a number with its unit, or the text if it counts something else than the item.

    Its digits stay as they are written: which mark is the decimal one is told by the whole column.

    Raises:
        CellFault: the text is not one number.
    """
    counted = cells.quantity(text).counted
    if counted is None:
        return text.strip()
    number = cells.NUMBER.fullmatch(text.strip())
    return number["number"] if number and _says_nothing_else(item, counted) else text


def _says_nothing_else(item: FormItem, word: str) -> bool:
    """Return True for a word behind a number that only says what the item counts: that of its label, or ``pcs``."""
    if item.unit is not None:
        return False
    noun = folded(word)
    label = f" {folded(item.label)} "
    thing = countable_named(noun)
    names_thing = thing is not None and f" {folded(thing.objects)} " in label
    return is_counter(noun) or names_thing or f" {noun} " in label


# --- what is not read -------------------------------------------------------------------------------------------------


def unread_values(sample: Sample, text: str, single: str) -> tuple[str, str] | None:
    """Return what cannot be read of an answer: the kind of problem, and its values; None for nothing.

    ``single``: what other samples ask for that want one value; empty if there are none.
    A text is no label if it is long.
    """
    items = asked_items(sample.answer)
    if plugins_of_slots(sample.answer) or all(item.free_text for item in items):
        return None
    values = read_form(text, items)
    if values is None:
        return _without_form(items, text, single, sample)
    by_name = {item.name: item for item in items}
    unread = {name: value.text for name, value in values.items() if not value.is_read}
    strange = [
        name
        for name, written in unread.items()
        if _is_strange_label(by_name[name], written, sample)
    ]
    kind = "values that are not read (they score 0)"
    if strange:
        kind, unread = _STRANGE_LABELS, {name: unread[name] for name in strange}
    shown = [f"{name} {_shown(written)}" for name, written in unread.items()]
    return (kind, ", ".join(shown)) if shown else None


def _is_strange_label(item: FormItem, text: str, sample: Sample) -> bool:
    """Return True if choices are asked for, and a text is no name of any, also of those that no form shows."""
    if not item.choices:
        return False
    slots = [slot for slot in sample.answer if isinstance(slot, ExactSlot)]
    names = [name for slot in slots for each in slot.aliases.values() for name in each]
    names += [choice for slot in slots for choice in slot.choices]
    return label_key(text) not in map(label_key, names)


def _without_form(
    items: Sequence[FormItem], text: str, single: str, sample: Sample
) -> tuple[str, str] | None:
    if len(items) == 1:
        if not items[0].choices or len(text.strip()) > _SHOWN:
            return _UNREAD_ANSWERS, _shown(text)
        is_strange = _is_strange_label(items[0], text, sample)
        return (_STRANGE_LABELS, _shown(text)) if is_strange else None
    names = ", ".join(item.name for item in items)
    values = read_answer(text, tuple(items))
    lacking = [item.name for item in items if item.name not in values]
    if len(lacking) < len(items):
        kind = f"answers that lack a value where the question asks for {names} (they score 0)"
        return kind, ", ".join(lacking)
    alone = f"; --only asks={single} scores the samples of one value alone" if single else ""
    kind = (
        f"answers that do not name their values where the question asks for {names} (they score 0; "
        f"give a column for each value, or lines `name: value`{alone})"
    )
    return kind, _shown(text)


def _shown(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= _SHOWN else plain[: _SHOWN - 1] + "…")
