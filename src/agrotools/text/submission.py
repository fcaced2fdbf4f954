"""Submitted answers: the last complete form in a text, and whether its lines hold values of their types.

An answer is submitted in the answer form: one line ``name: value unit`` for each item, or one JSON object with the
names as keys. Nothing else in a text is an answer.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from agrotools.core import Answer, Step
from agrotools.core.form_item import FormItem
from agrotools.text.form_values import (
    UNKNOWN,
    expected_value,
    is_unknown,
    names_values,
    read_values,
    without_tex,
)
from agrotools.text.json_kinds import is_list, is_object
from agrotools.text.loose_json import NotJson, loads, values_in
from agrotools.text.normalise import late_pattern, normalise

_SPECIAL = late_pattern(
    r"<\|[^<>|\n]{1,40}\|>|</?s>|<\|?\w+_of_box\|?>|[\0-\x08\x0e-\x1b\x7f\ud800-\udfff\ufffd]"
)
"""Tokens of chat templates, control characters and halves of characters, which some servers leave in the text."""
_COLON = late_pattern(r"->|=>|[:：=|→]")
"""End of a name; in a table, the border of its cell."""
_ANSWER_LEAD = late_pattern(
    r"[*_# ]{0,8}(?:final )?answer[*_]*[ \t]*[:：][*_ \t]*(?=\S)", re.IGNORECASE
)
"""What models put before the line of a form: ``Answer: rows: 7``."""
_DASH = late_pattern(r"\s[-–—]\s")
"""End of a name in place of a colon."""
_LONGEST_NAME = 250
_NUMBERED = late_pattern(r"\(?\d{1,2}[.)]\s")
_PLACEHOLDER = late_pattern(r"<(?:number|yes or no|name|one of:|those that apply of:|a short text)")
"""Beginning of what the form has in place of a value."""
_QUOTES = " \t*`_\"'|,;。.!"
_MARKS = _QUOTES + ">#•+~-"
"""Marks that may stand before a name."""
_REMARK = late_pattern(r"\s*[(（][^()（）]*[)）]\s*$")
_DECIMAL_COMMA = late_pattern(r"(?<!\d,\d)(?<!\d,\d\d)\d,(?!\d{3}(?!\d))\d|\.\d{3},\d")
_EITHER = late_pattern(r"(?<![\d.,])(\d{1,3}),(?=\d{3}(?![\d.,]*\d))")
_MOST_CHARACTERS = 100_000


Submission = dict[str, tuple[str, ...]]
"""Values of a form by name of the item, as they were written: usually one, several if they differ."""


def as_form(reply: str, items: Sequence[FormItem]) -> str:
    """Return the reply to a closing message; as a form, if it is the value of the only item without its name.

    A name without options needs its line: any sentence might be one.
    """
    line = reply.strip()
    if len(items) != 1 or "\n" in line or _COLON.search(line):
        return reply
    item = items[0]
    is_closed = item.is_number or item.type == "boolean" or bool(item.choices)
    return f"{item.name}: {line}" if is_closed and line.strip(_QUOTES) else reply


class _Form(NamedTuple):
    """A form, and what is written behind it."""

    values: Submission
    behind: str = ""


def read_submission(text: str, items: tuple[FormItem, ...]) -> Submission | None:
    """Return the last complete form in ``text``; None if each lacks an item, or there is none."""
    form = _last_form(text, items)
    return form.values if form else None


@lru_cache(maxsize=256)  # it is read for each slot
def _last_form(text: str, items: tuple[FormItem, ...]) -> _Form | None:
    if not items:
        return None
    text = _SPECIAL.sub(" ", text[-_MOST_CHARACTERS:])
    names = item_names(items)
    found = _last_object(text, items, names)
    after = _last_lines(found.behind if found else text, items, names)
    form = after or found
    if form is None:
        return None
    numbers = [item.name for item in items if item.is_number]
    if any(_DECIMAL_COMMA.search(value) for name in numbers for value in form.values[name]):
        for name in numbers:  # where 3,755 is 3.755 beside 12,5
            form.values[name] = tuple(_EITHER.sub(r"\1.", each) for each in form.values[name])
    return form


@lru_cache(maxsize=1_000)
def item_names(items: tuple[FormItem, ...]) -> dict[str, str]:
    """Return the names of the items by what may stand before a value: name or label."""
    names: dict[str, str] = {}
    for item in items:
        names.setdefault(name_key(item.label), item.name)
    return names | {name_key(item.name): item.name for item in items}


def name_key(name: str) -> str:
    """Return a name or label without case, widths and the marks around it."""
    return normalise(name).strip(_MARKS).replace("_", " ")


def _last_object(text: str, items: Sequence[FormItem], names: Mapping[str, str]) -> _Form | None:
    """Return the last JSON object with all items; its further keys stand behind the form."""
    if "{" not in text:
        return None
    for start, end in reversed([*values_in(text)]):
        try:
            value = _with_repeated_names(text[start:end]) or loads(text[start:end])
        except NotJson:
            continue
        for fields in (*_objects(value), *_listed_items(value)):
            values: Submission = {}
            more: list[str] = []
            for key, written in fields.items():
                if name := names.get(name_key(key)):
                    values[name] = (*values.get(name, ()), _as_text(written))
                else:
                    more.append(_as_text(written))
            if values.keys() >= {each.name for each in items}:
                return _Form(values, "\n".join((*more, text[end:])))
    return None


def _with_repeated_names(text: str) -> Any:
    """Return an object in which a name stands twice, its values as a list; None if none does.

    A reader of JSON keeps the last value alone, and two values are no answer.
    """
    is_repeated = False

    def joined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_repeated
        values: dict[str, list[Any]] = {}
        for name, value in pairs:
            values.setdefault(name, []).append(value)
        is_repeated = is_repeated or any(len(each) > 1 for each in values.values())
        return {name: each[0] if len(each) == 1 else each for name, each in values.items()}

    try:
        value = json.loads(text, object_pairs_hook=joined)
    except (ValueError, RecursionError):
        return None
    return value if is_repeated else None


def _listed_items(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a list of objects with ``name`` and ``value`` as one object."""
    listed: list[Any] = value if is_list(value) else []
    items = [each for each in listed if is_object(each)]
    if items and all(isinstance(each.get("name"), str) and "value" in each for each in items):
        yield {str(each["name"]): each["value"] for each in items}


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a JSON value, the last ones first and each before those in it."""
    if is_object(value):
        yield value
    inner = value.values() if is_object(value) else value if is_list(value) else ()
    for each in reversed([*inner]):
        yield from _objects(each)


def _as_text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_list(value):
        return ", ".join(map(_as_text, value))
    if is_object(value):
        return " ".join(map(_as_text, value.values()))
    return value if isinstance(value, str) else json.dumps(value)


def _last_lines(text: str, items: Sequence[FormItem], names: Mapping[str, str]) -> _Form | None:
    """Return the last lines with all items.

    A name that repeats in a later paragraph begins the next form there; in the same one it has two values.
    """
    last: Submission | None = None
    end = 0
    values: Submission = {}
    paragraphs: dict[str, int] = {}
    paragraph = 0
    free = {item.name for item in items if item.free_text}
    lines = [*_with_table_rows(_joined_lines(text.splitlines(), names), names)]
    for at, line in enumerate(lines, start=1):
        if not line.strip():
            paragraph += 1
        elif is_unknown(line):
            last, values, end = {item.name: (UNKNOWN,) for item in items}, {}, at
        for part in _parts_of(line, names, free):
            if (found := _value_in(part, names)) is None:
                continue
            name, value = found
            if name in values and (before := paragraphs[name]) < paragraph:
                values = {
                    each: given for each, given in values.items() if paragraphs[each] > before
                }
            values[name] = (*(each for each in values.get(name, ()) if each != value), value)
            paragraphs[name] = paragraph
            if len(values) == len(items):
                last, end = dict(values), at
    return _Form(last, "\n".join(lines[end:])) if last else None


def _joined_lines(lines: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Return the lines, a name with nothing behind its colon together with the next line, which has no name."""
    joined: list[str] = []
    is_open = False
    for line in lines:
        if is_open and line.strip() and not _COLON.search(line):
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
        written = line.strip(_MARKS)
        is_open = written.endswith((":", "：")) and name_key(written[:-1]) in names
    return joined


def _with_table_rows(lines: Sequence[str], names: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines, and those of a table with the names in its head as ``name: value``."""
    head: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if head and len(cells) == len(head) and "|" in line:
            if not _RULE.fullmatch(line.strip()):
                yield from (f"{name}: {cell}" for name, cell in zip(head, cells, strict=True))
                head = []
            continue
        is_head = len(cells) > 1 and all(name_key(cell) in names for cell in cells)
        head = cells if is_head else []
        if not is_head:
            yield line


_RULE = late_pattern(r"[|:\s-]+")


def _parts_of(line: str, names: Mapping[str, str], free: frozenset[str] | set[str]) -> list[str]:
    """Return the parts of a line with several items: ``more: yes, trees: 61``. Free text goes on to the end."""
    places = [
        (found.start("name"), name)
        for found in _names_in_line(tuple(sorted({*names.values()}))).finditer(line)
        if (name := names.get(name_key(found["name"]))) and not _is_in_brackets(line, found.start())
    ]
    places = [place for at, place in enumerate(places) if not at or place[1] != places[at - 1][1]]
    last = next((at for at, (_, name) in enumerate(places) if name in free), len(places))
    begins = [begin for begin, _ in places[: last + 1]]
    if len(begins) < 2 or line[: begins[0]].strip(_MARKS + "0123456789()"):
        return [line]
    parts = [line[begin:end] for begin, end in pairwise([*begins, len(line)])]
    return [_JOINED_BY.sub("", part) for part in parts]


def _is_in_brackets(line: str, at: int) -> bool:
    """True for the half of ``9 (upper half: 5)``."""
    before = line[:at].translate(_ROUND)
    return before.count("(") > before.count(")")


_ROUND = str.maketrans("（）", "()")
_JOINED_BY = late_pattern(r"(?:[\s,;|/]|\s(?:and|和))+$")


@lru_cache(maxsize=1_000)
def _names_in_line(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of a name with its colon, at the beginning of a line or behind a value."""
    any_of = "|".join(re.escape(name).replace("_", "[_ ]") for name in names)
    return re.compile(
        rf"(?:^|(?<=[\s,;|*`]))(?P<name>{any_of})(?=[*`\"']{{0,4}}\s?[:：=])", re.IGNORECASE
    )


def _value_in(line: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the name of the item that a line gives, and its value; None if it gives none."""
    line = line.strip(" \t|")
    lead = _ANSWER_LEAD.match(line)
    value = _named_value(line, names)  # first, because an item may be called answer
    return _named_value(line[lead.end() :], names) if value is None and lead else value


def _named_value(line: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    for mark in (_COLON, _DASH):
        end = mark.search(line, 0, _LONGEST_NAME)
        if end is None:
            continue
        written = _NUMBERED.sub("", without_tex(line[: end.start()]).lstrip(_MARKS), 1)
        name = names.get(name_key(written)) or names.get(name_key(_REMARK.sub("", written)))
        value = line[end.end() :].strip(" \t*`")
        if name and value.strip(_QUOTES) and not _PLACEHOLDER.match(value):
            return name, value
    return None


def is_complete(text: str, items: Sequence[FormItem], *, listed: bool = False) -> bool:
    """True if ``text`` submits a value of its type for each of ``items``, right or wrong.

    ``listed``: labels must be among the options, and nothing behind the form may name other values; the form is asked
    for once more otherwise.
    """
    if (form := _last_form(text, tuple(items))) is None:
        return False
    if listed and names_values(items, form.behind):
        return False
    values = read_values(items, form.values).values()
    return all(value.readable and (value.listed or not listed) for value in values)


BELOW = "text below the form"
"""Name of the fault that something behind a form names values."""


def form_faults(text: str, items: Sequence[FormItem]) -> dict[str, str]:
    """Return the items whose value is missing or cannot be read, and what is asked for instead, by their names.

    It tells types, units and options, and nothing that depends on the gold.
    """
    by_name = {item.name: item for item in items}
    faults: dict[str, str] = {}
    for name, fault in form_gaps(text, items, listed=True).items():
        asked = f"write {expected_value(by_name[name])}"
        only = ", and nothing else" if fault != IS_MISSING else ""
        faults[name] = f"{fault}: {asked}{only}"
    form = _last_form(text, tuple(items))
    if form and names_values(items, form.behind):
        faults[BELOW] = "holds values, too: write the form alone"
    return faults


IS_MISSING = "is missing"


def form_gaps(text: str, items: Sequence[FormItem], *, listed: bool = False) -> dict[str, str]:
    """Return the items without a value that can be read, and why: ``is missing`` or ``cannot be read (...)``.

    ``listed``: labels must be among the options.
    """
    gaps: dict[str, str] = {}
    form = _last_form(text, tuple(items))
    found = form.values if form else _partial(text, items)
    values = read_values([item for item in items if item.name in found], found)
    for item in items:
        value = values.get(item.name)
        if value is None:
            gaps[item.name] = IS_MISSING
        elif not value.readable or (listed and not value.listed):
            told = " | ".join(found[item.name])[:_LONGEST_TOLD]
            gaps[item.name] = f"cannot be read ({told})"
    return gaps


_LONGEST_TOLD = 120


def _partial(text: str, items: Sequence[FormItem]) -> Submission:
    """Return the last value of each item that a text gives alone."""
    found: Submission = {}
    for item in items:
        found |= read_submission(text, (item,)) or {}
    return found


def lacks_form(answer: Answer | Step, items: Sequence[FormItem]) -> bool:
    """True if the form of ``answer`` was asked for, and its values are not all given."""
    return bool(answer.form_replies) and not is_complete(answer.text, items)
