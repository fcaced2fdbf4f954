"""Reader of answers in the answer form: whole values by the type of their item, without the gold.

An answer has one line ``name: value`` for each item, or one JSON object with the names as keys. The last value of a
name counts. Each value must be what the form asks for and nothing else:

- no value: ``unknown`` (未知), also in the marks of a placeholder or with the unit of the form, and null in JSON;
- yes or no: one of the two words (是, 否, true, false);
- a number: digits with a point or comma before decimals, commas between thousands and an exponent, ``~`` before it,
  and behind it its unit or one that converts to it;
- one of the options, or several of them with commas, semicolons or on lines of their own, letters also as ABD;
- open text: all up to the next item.

Anything else is not read, so that it is asked for again: see :func:`form_faults`. A value that cannot be read scores 0,
and is counted as unread; it is never taken for another value.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple, cast

from agrotools.core import Answer, Step
from agrotools.core.form_item import FormItem
from agrotools.text.answer_form import UNKNOWN
from agrotools.text.json_kinds import is_object
from agrotools.text.labels import label_key, name_key, option_names
from agrotools.text.normalise import late_pattern, normalise
from agrotools.text.turns import own_turn
from agrotools.text.units import convert, fold_case


class FormValue(NamedTuple):
    """Value of an item. ``text``: the value as it was written.

    ``number``: in the unit of the item. ``names``: options of a closed item, else the text of a name or of open text.
    All of them are empty, and ``unknown`` is False, if the text is not read.
    """

    text: str = ""
    unknown: bool = False
    yes: bool | None = None
    number: float | None = None
    names: tuple[str, ...] = ()

    @property
    def is_read(self) -> bool:
        """False if the text is not what the form asks for."""
        return self.unknown or self.yes is not None or self.number is not None or bool(self.names)


_MOST_CHARACTERS = 100_000
"""Characters at the end of an answer that are read."""
_LONGEST_VALUE = 1_000
"""Characters of a value, except of open text; a longer one is no single value."""
_LONGEST_TOLD = 120
"""Characters of a value that a message repeats: a line."""
_THOUSANDS = late_pattern(r"^[+-]?[1-9]\d{0,2}(?:,\d{3})+(?!\d)")
"""Commas between thousands: ``6,800``, not ``0,412``."""
_MOST_WORDS_OF_NAME = 3
"""Words of a name without options that may stand alone on a line: angular leaf spot."""
_OPTION_MARKS = " \t-*_#>`"
"""Marks of lists, headings, quotations and emphasis, which may stand around each of several options."""
_VALUE_MARKS = " \t*_`"
"""Marks of emphasis, which may stand around a value."""
_COLON = late_pattern(r"[:：=]")
_OBJECT = late_pattern(r"\{\s*\"")
"""Beginning of a JSON object with a key."""
_MOST_OBJECTS = 100
"""Beginnings of objects that are tried; an answer has one."""
_THOUGHT = late_pattern(
    r"\s*(?:<(?P<tag>[^<>/]+)>.*</(?P=tag)>|\[(?P<word>\w+)\].*\[/(?P=word)\]|◁(?P<name>\w+)▷.*◁/(?P=name)▷)",
    re.DOTALL,
)
"""A thought before a value, by its shape: ``<x>...</x>``, ``[X]...[/X]`` (Magistral), ``◁x▷...◁/x▷`` (Kimi-VL)."""
_PLACEHOLDER = late_pattern(r"<[^<>]*>")
"""What the form has in place of a value."""
_UNKNOWN_WORDS = frozenset((UNKNOWN, "未知"))
_YES_OR_NO = {"yes": True, "true": True, "是": True, "no": False, "false": False, "否": False}
_NUMBER = late_pattern(
    r"~?\s?(?P<digits>[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)(?:e[+-]?\d{1,3})?)(?![\d.,])(?P<unit>.*)"
)
_BETWEEN_OPTIONS = late_pattern(r"[;\n、]")
_BETWEEN_OPTIONS_OR_COMMA = late_pattern(r"[;\n、,]")


# --- the values of an answer -----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)  # an answer is read for each of its slots
def read_answer(text: str, items: tuple[FormItem, ...]) -> Mapping[str, FormValue]:
    """Return the values that ``text`` gives, read or not, by the names of the items; missing items are left out.

    The one word ``unknown`` gives no value in all items.
    """
    text = own_turn(text[-_MOST_CHARACTERS:])
    if _is_unknown(text):
        return {item.name: FormValue(text=text.strip(), unknown=True) for item in items}
    written = _written_values(text, items)
    return {
        item.name: read_value(item, written[item.name]) for item in items if item.name in written
    }


def read_form(text: str, items: Sequence[FormItem]) -> Mapping[str, FormValue] | None:
    """Return the values of a text that names all items, read or not; None if it lacks one."""
    values = read_answer(text, tuple(items))
    return values if len(values) == len(items) else None


def as_form(reply: str, items: Sequence[FormItem]) -> str:
    """Return the reply to a closing message as a form.

    A value alone becomes the line of the only item, and the one word ``unknown`` the lines of all items. A long
    name without options needs its line: any sentence might be one.
    """
    reply = _without_thought(reply)
    if _is_unknown(reply):
        return "\n".join(f"{item.name}: {UNKNOWN}" for item in items)
    line = reply.strip()
    if len(items) != 1 or "\n" in line or not line:
        return reply
    item = items[0]
    is_open_name = not (item.is_number or item.type == "boolean" or item.choices or item.free_text)
    names_something = _split_at_colon(line)[1] and any(map(str.isalpha, line))  # 11:18 does not
    if names_something or (is_open_name and len(line.split()) > _MOST_WORDS_OF_NAME):
        return reply
    return f"{item.name}: {line}"


def _without_thought(reply: str) -> str:
    thought = _THOUGHT.match(reply)
    rest = reply[thought.end() :] if thought else ""
    return rest.strip() or reply


def _written_values(text: str, items: Sequence[FormItem]) -> dict[str, str]:
    """Return what is written for each item, the last time that it is named."""
    by_name = {name_key(item.name): item for item in items}
    written = dict[str, str]()
    current: FormItem | None = None
    for line in _objects_as_lines(text, by_name).splitlines():
        name, colon, value = _split_at_colon(line)
        named = by_name.get(name_key(name)) if colon else None
        if named is not None:
            current = named
            written[named.name] = value.strip()
        elif current is not None and (current.free_text or current.takes_several):
            written[current.name] = f"{written[current.name]}\n{line}".strip()
    return {name: value for name, value in written.items() if value}


def _split_at_colon(line: str) -> tuple[str, str, str]:
    """Return what stands before the first colon or equals sign, the sign, and what stands behind."""
    sign = _COLON.search(line)
    return (line[: sign.start()], sign[0], line[sign.end() :]) if sign else (line, "", "")


def _objects_as_lines(text: str, names: Iterable[str]) -> str:
    """Return ``text`` with each JSON object that has items of the form as lines of the form."""
    decoder, known = json.JSONDecoder(), frozenset(names)
    parts, done = list[str](), 0
    for begin in islice(_OBJECT.finditer(text), _MOST_OBJECTS):
        if begin.start() < done:  # in an object that is read
            continue
        try:
            value, end = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        lines = [*_lines_of(value, known)]
        if lines:
            parts += [text[done : begin.start()], *lines]
            done = end
    return "\n".join([*parts, text[done:]])


def _lines_of(value: Any, names: frozenset[str]) -> Iterator[str]:
    """Yield the items of a JSON object as lines of the form, also those of objects in it."""
    if not is_object(value):
        return
    for key, inner in value.items():
        if name_key(key) in names:
            yield f"{key}: {value_text(inner)}"
        else:
            yield from _lines_of(inner, names)


def value_text(value: object) -> str:
    """Return a value of JSON or Python as the form writes it: ``unknown`` for null, ``yes``, ``3.9 t/ha``."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | set | frozenset):
        return "; ".join(map(value_text, cast("Iterable[object]", value)))
    if isinstance(value, Mapping):
        measured = cast("Mapping[str, object]", value)
        parts = [measured[key] for key in ("value", "unit") if measured.get(key) is not None]
        return " ".join(map(value_text, parts))
    return str(value)


# --- one value --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4_000)
def read_value(item: FormItem, text: str) -> FormValue:
    """Return the value of an item from what stands behind its name."""
    value = text.strip(_VALUE_MARKS + "\n")
    plain = value.removesuffix(".").removesuffix("。").strip(_VALUE_MARKS)
    unread = FormValue(text=value)
    if item.choices and not item.takes_several:
        option = option_names(item).get(label_key(plain))
        if option:
            return unread._replace(names=(option,))  # also an option that is called unknown
    if _is_unknown(plain) or _is_unknown_amount(item, plain):
        return unread._replace(unknown=True)
    if not plain or _PLACEHOLDER.fullmatch(plain):
        return unread
    if item.free_text:
        return unread._replace(names=(value,))
    if len(plain) > _LONGEST_VALUE:
        return unread
    if item.is_number:
        return unread._replace(number=_number(item, plain))
    if item.type == "boolean":
        return unread._replace(yes=_YES_OR_NO.get(normalise(plain)))
    if item.takes_several:
        return unread._replace(names=_options(item, plain))
    key = "" if item.choices else label_key(plain)
    return unread._replace(names=(key,) if key else ())


def _is_unknown(text: str) -> bool:
    return normalise(text).strip(_VALUE_MARKS + "<>.。\n") in _UNKNOWN_WORDS


def _is_unknown_amount(item: FormItem, text: str) -> bool:
    """Return True for ``unknown kg`` where kg is asked for: small models keep the unit of the form."""
    word, _, unit = text.partition(" ")
    return item.unit is not None and _is_unknown(word) and unit.strip() == item.unit


def _number(item: FormItem, text: str) -> float | None:
    """Return a number in the unit of the item; None if the text is another one, or in a unit that does not convert."""
    text = normalise(fold_case(text))
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    digits = found["digits"]
    value = float(digits.replace(",", "" if _THOUSANDS.search(digits) else "."))
    unit = found["unit"].strip()
    if not isfinite(value):
        return None
    if not unit:
        return value
    if item.unit is None:
        return None
    try:
        return convert(value, unit, item.unit)
    except ValueError:
        return None


def _options(item: FormItem, text: str) -> tuple[str, ...]:
    """Return the options that a text lists, none of them if it lists anything else."""
    names = option_names(item)
    has_comma = any("," in name for name in names)
    between = _BETWEEN_OPTIONS if has_comma else _BETWEEN_OPTIONS_OR_COMMA
    listed = [part.strip(_OPTION_MARKS) for part in between.split(normalise(text))]
    are_letters = all(letter.isalpha() and letter in item.choices for letter in text)
    if are_letters and label_key(text) not in names:
        listed = [*text]  # ABD, as answers to Chinese questions are written
    chosen = [names.get(label_key(part)) for part in listed if part]
    known = [option for option in chosen if option]
    return tuple(dict.fromkeys(known)) if len(known) == len(chosen) else ()


# --- what an answer lacks ---------------------------------------------------------------------------------------------


def is_complete(text: str, items: Sequence[FormItem]) -> bool:
    """Return True if ``text`` gives a value of its type for each of ``items``, right or wrong."""
    form = read_form(text, items)
    return form is not None and all(value.is_read for value in form.values())


def lacks_form(answer: Answer | Step, items: Sequence[FormItem]) -> bool:
    """Return True if the form of ``answer`` was asked for, and its values are not all given."""
    return bool(answer.form_replies) and not is_complete(answer.text, items)


def form_gaps(text: str, items: Sequence[FormItem]) -> dict[str, str]:
    """Return the items without a value that is read, and why: ``is missing`` or ``cannot be read (...)``."""
    gaps = dict[str, str]()
    values = read_answer(text, tuple(items))
    for item in items:
        value = values.get(item.name)
        if value is None:
            gaps[item.name] = IS_MISSING
        elif not value.is_read:
            gaps[item.name] = f"cannot be read ({value.text[:_LONGEST_TOLD]})"
    return gaps


IS_MISSING = "is missing"


def form_faults(text: str, items: Sequence[FormItem]) -> dict[str, str]:
    """Return the items whose value is missing or not read, what their line holds, and what it must hold.

    It tells types, units and options, and nothing that depends on the gold.
    """
    by_name = {item.name: item for item in items}
    return {
        name: f"{fault}: write {expected_value(by_name[name])}, and nothing else"
        for name, fault in form_gaps(text, items).items()
    }


def expected_value(item: FormItem) -> str:
    """Return what is asked for in words: ``a number in mm``, ``one of: left, right``."""
    if item.free_text:
        return "a short text"
    if item.type == "boolean":
        return "yes or no"
    if item.is_number:
        return f"one number in {item.unit}" if item.unit else "one number"
    if item.choices:
        which = "those that apply of" if item.takes_several else "one of"
        return f"{which}: {', '.join(item.choices)}"
    return "one name"
