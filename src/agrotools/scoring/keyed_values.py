"""Values that an answer gives by key: in a JSON object, in a line ``name: value`` or in a table."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any, NamedTuple

from agrotools.core.form_item import FormItem
from agrotools.scoring.answer_text import (
    TABLE_RULE,
    AnswerText,
    Scope,
    after_correction,
    cells_of,
    json_text,
    without_markup,
)
from agrotools.text.normalise import NUMBER_WORDS, late_pattern, normalise
from agrotools.text.units import canonical_unit

Names = tuple[tuple[str, str], ...]

_MOST_LINES = 200
_SHORT = 60


class _Line(NamedTuple):
    """One ``name: value`` of a item. ``prose``: the key is an everyday word in the middle of a sentence."""

    key: str
    start: int
    value_start: int
    value: str
    unit: str | None
    prose: bool
    header: bool
    by_name: bool
    """True if the key is the slot's name as in the form, with an underscore, so that it is not an everyday word."""
    leads: bool
    """True if the key begins its line."""


def keyed_scopes(
    item: FormItem,
    items: Sequence[FormItem],
    answer: AnswerText,
    holds: Callable[[str], bool],
    is_value: Callable[[str], bool] | None = None,
) -> list[Scope]:
    """Return the values given for ``item`` by its name or label in JSON objects and in lines ``name: value``.

    ``holds`` returns True if a text holds a value of the slot's kind. A key that is an everyday word inside a sentence
    ("I count trees: ...") counts only if there is no proper line and a value follows it. In a JSON document only the
    outermost objects with the key count. Values before a correction ("wait, ...") are ignored. Lines below the key that
    hold a value and nothing else (``is_value``) belong to it, unless another slot of its kind has no key.
    """
    names = _names_of(item)
    scopes: list[Scope] = []
    depths: dict[int, int] = {}
    for document, depth, fields in answer.objects:
        for written, value in fields.items():
            key, unit = _key_and_unit(written, names)
            if key in names and depths.setdefault(document, depth) == depth:
                scopes.append(
                    Scope("json", without_markup(normalise(json_text(value))), unit or _unit_beside(written, fields))
                )
    return scopes + _line_scopes(item, items, answer.outside if scopes else answer.plain, holds, is_value)


def _unit_beside(key: str, fields: Mapping[str, Any]) -> str | None:
    """Return the unit that an object gives in a separate field: ``{"gap": 0.75, "unit": "m"}``."""
    numbers = sum(isinstance(value, int | float) for value in fields.values())
    unit = fields.get(f"{key}_unit", fields.get("unit", fields.get("units")) if numbers == 1 else None)
    return canonical_unit(unit) if isinstance(unit, str) else None


def _line_scopes(
    item: FormItem,
    items: Sequence[FormItem],
    text: str,
    holds: Callable[[str], bool],
    is_value: Callable[[str], bool] | None,
) -> list[Scope]:
    names = _names_of(item)
    lines = [line for line in _lines(_names(items), text, item.free_text) if line.key in names]
    proper = [line for line in lines if not line.prose and not line.header]
    if not proper:
        for cell, unit in _cells_below(names, text):
            if holds(cell):
                return [Scope("form line", cell, unit)]
        proper = [line for line in lines if not line.prose and (not line.header or holds(line.value))]
    if not proper:
        # "The field is healthier: both ..." and "Running total: 3, 5" explain and contain the slot's name by chance.
        proper = (
            [] if item.is_number else [line for line in lines if holds(line.value) and len(line.value) < _SHORT][-1:]
        )
    if not proper:
        return []
    proper = [line for line in proper if line.by_name] or proper
    if proper[-1].leads:  # the form below overrides "Second: ..." in the working above
        at = next(index for index, line in enumerate(proper) if line.leads)
        proper = [line for line in proper[:at] if line.leads] + proper[at:]
    proper = [line for line in proper if not _FORMULA.search(line.value)] or proper
    last = proper[-1]
    taken_back = after_correction(text[last.value_start :], weak=False)
    if taken_back and mentions(text[last.value_start + taken_back :], item, items):
        return []
    begin = after_correction(text, proper[-1].start)
    stated = [line for line in proper if line.start >= begin]
    # A key with a value overrides one without ("trees:" above a working).
    last_held = list(islice((line for line in reversed(stated) if holds(line.value)), _MOST_LINES))
    counted = [*reversed(last_held or stated[-1:])]
    scopes = [Scope("form line", line.value, line.unit) for line in counted]
    if is_value is None:
        return scopes
    keys = {line.key for line in _lines(_names(items), text, item.free_text)}
    if any(_kind(other) == _kind(item) and not _names_of(other) & keys for other in items):
        return scopes
    return scopes + [Scope("form line", value) for line in counted for value in _values_below(line, text, is_value)]


def _values_below(line: _Line, text: str, is_value: Callable[[str], bool]) -> list[str]:
    """Return the lines directly below a value of the form that hold another value and nothing else."""
    _, _, rest = text[text.find(line.value, line.value_start) + len(line.value) :].partition("\n")
    lines = (each.strip(_EDGES).strip() for each in islice(rest.split("\n"), _MOST_LINES) if each.strip())
    return list(takewhile(is_value, lines))


def without_other_values(item: FormItem, items: Sequence[FormItem], text: str) -> str:
    """Remove the values that ``text`` states by key for other slots of the same kind."""
    rivals = [other for other in items if other.name != item.name and _kind(other) == _kind(item)]
    if not rivals:
        return text
    keys = set[str]().union(*map(_names_of, rivals)) - _names_of(item)
    remaining: list[str] = []
    at = 0
    lines = _lines(_names(items), text, item.free_text)
    limits = [line.start for line in lines[1:]] + [len(text)]
    for line, limit in zip(lines, limits, strict=False):
        if line.key in keys and not line.prose and not line.header:
            begins = limit - len(text[line.value_start : limit].lstrip())
            end = _STATEMENT_END.search(text, begins, limit)
            remaining.append(text[at : line.start])
            at = end.start() if end else limit
    return "".join(remaining) + text[at:]


def mentions(sentence: str, item: FormItem, items: Sequence[FormItem]) -> bool:
    """Return True if ``sentence`` names ``item``; a label inside the longer label of another item does not count."""
    names = _names_of(item)
    return any(_key(match[0]) in names for match in _any_name(_names(items)).finditer(sentence))


def _kind(item: FormItem) -> str:
    if item.is_number:
        return "number"
    return item.type if item.free_text or item.type in ("boolean", "plot") else "label"


@lru_cache(maxsize=4_000)
def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", normalise(text)).strip()


def _names_of(item: FormItem) -> set[str]:
    return {_key(item.name), _key(item.label)}


def _names(items: Sequence[FormItem]) -> Names:
    return tuple((item.name, item.label) for item in items)


_BRACKET = late_pattern(r"\s?[(\[](?:in )?([^()\[\]\n|]{1,24})[)\]]$")


def _key_and_unit(written: str, names: set[str]) -> tuple[str, str | None]:
    """Return a key and the unit in brackets after it."""
    key = _key(written)
    bracket = None if key in names else _BRACKET.search(written)
    if bracket is None:
        return key, None
    return _key(written[: bracket.start()]), canonical_unit(bracket[1])


_FORMULA = late_pattern(r"\\(?:sum|int|prod|sqrt)|_\{|\^\{")
_STATEMENT_END = late_pattern(r"[!?。\n]|\.(?!\d)|[,;](?!\s?\d)")
_COUNTED = late_pattern(rf"(?:\d|(?<![a-z])(?:{'|'.join(NUMBER_WORDS)}))(?: [a-z]+){{1,3}} ?[:=]$")
_IN_CELL = late_pattern(r"[^\W\d_][^\w|\n]{1,3}\Z")
_SENTENCE_BEFORE = late_pattern(r"\w[ \"']{1,2}\Z")
_LISTED = late_pattern(r"\s*((?:(?:[-*•+]|\d{1,2}[.)]) [^\n]*(?:\n\s*)?)+|[^\n]+)")
_EDGES = " \t|\"',;{}"


@lru_cache(maxsize=64)
def _lines(names: Names, text: str, is_open: bool) -> tuple[_Line, ...]:
    """Return all ``name: value`` of ``text``: names anywhere, labels at line starts, values up to the next key."""
    # "8 trees + 6 trees = 14", "14 trees: 8 and 6", "| upper half |": a counted noun and the end of a cell are no keys.
    matches = [
        match
        for match in _form_keys(names).finditer(text)
        if not _COUNTED.search(text, max(0, match.start() - 40), match.end())
        and not (match[0].endswith("|") and _IN_CELL.search(text, max(0, match.start() - 80), match.start()))
    ]
    if not matches:
        return ()
    headers = {start for start, _, _ in _tables(text)}
    lines: list[_Line] = []
    limits = [match.start() for match in matches[1:]] + [len(text)]
    for match, limit in zip(matches, limits, strict=True):
        stop = text.find("\n", match.end(), limit)
        if is_open or stop < 0:
            stop = limit
        value = text[match.end() : stop].strip(_EDGES).strip()
        if not value and stop < limit and (below := _LISTED.match(text, stop, limit)):
            value = below[1].strip(_EDGES).strip()
        header = text.rfind("\n", 0, match.start()) + 1 in headers if headers else False
        key = _key(match["name"] or match["label"])
        unit = canonical_unit(match["unit_1"] or match["unit_2"])
        lines.append(
            _Line(
                key,
                match.start(),
                match.end(),
                value,
                unit,
                _in_prose(text, match),
                header,
                "_" in (match["name"] or ""),
                (_LINE_START.search(text, max(0, match.start() - 16), match.start()) is not None),
            )
        )
    return tuple(lines)


_LINE_START = late_pattern(r"(?:^|\n)[^\w\n]{0,12}(?:\d{1,2}[.)]\s?)?$")


def _in_prose(text: str, key: re.Match[str]) -> bool:
    """Return True if a key is an everyday word with another word before it: "I count trees: ..."."""
    name = key["name"]
    return (
        bool(name)
        and "_" not in name
        and _SENTENCE_BEFORE.search(text, max(0, key.start() - 4), key.start()) is not None
    )


@lru_cache(maxsize=2_000)
def _form_keys(names: Names) -> re.Pattern[str]:
    """Return the pattern of slot keys: names as identifiers anywhere, labels at the start of a line."""
    by_name = "|".join(_spelled(name) for name, _ in sorted(names, key=lambda pair: -len(pair[0])))
    by_label = "|".join(_spelled(label) for _, label in sorted(names, key=lambda pair: -len(pair[1])))
    unit = r"(?:\s?[(\[](?:in )?(?P<unit_{}>(?!\d)[^()\[\]\n|]{{1,24}})[)\]])?"
    return re.compile(
        rf"(?<![\w.])(?P<name>{by_name}){unit.format(1)}[\"']?\s?[:=|]"
        rf"|^[^\w\n]{{0,12}}(?:\d{{1,2}}[.)]\s?)?(?P<label>{by_label}){unit.format(2)}[\"']?\s?[:=|]",
        re.MULTILINE,
    )


@lru_cache(maxsize=2_000)
def _any_name(names: Names) -> re.Pattern[str]:
    spelled = sorted({_spelled(name) for pair in names for name in pair if name.strip()}, key=len, reverse=True)
    return re.compile(rf"(?<![a-z\d_])(?:{'|'.join(spelled)})(?![a-z\d_])")


def _spelled(key: str) -> str:
    return re.sub(r"(?:\\?[ _-])+", r"[\\s_-]", re.escape(normalise(key).strip()))


Table = tuple[int, list[str], list[list[str]]]


@lru_cache(maxsize=64)
def _tables(text: str) -> list[Table]:
    """Return the Markdown tables of a text: position, header cells, and at most two rows."""
    lines = text.split("\n") if "|" in text else []
    tables: list[Table] = []
    start = 0
    for index, line in enumerate(lines):
        if (
            "|" in line
            and index + 1 < len(lines)
            and TABLE_RULE.fullmatch(lines[index + 1])
            and not TABLE_RULE.fullmatch(line)
        ):
            rows: list[list[str]] = []
            for row in lines[index + 2 :]:
                if "|" not in row:
                    break
                rows.append(cells_of(row))
                if len(rows) > 1:
                    break
            tables.append((start, cells_of(line), rows))
        start += len(line) + 1
    return tables


def _cells_below(names: set[str], text: str) -> list[tuple[str, str | None]]:
    """Return the cells below a slot's key in tables with one row of values, with their units, the last table first."""
    cells: list[tuple[str, str | None]] = []
    for _, header, rows in reversed(_tables(text)):
        if len(rows) != 1:
            continue
        for cell, value in zip(header, rows[0], strict=False):
            key, unit = _key_and_unit(cell, names)
            if key in names:
                cells.append((value, unit))
    return cells
