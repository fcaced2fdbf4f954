"""Values in entries of data files: by path, texts that are JSON or Python, numbers, names, and options by letter."""

import math
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from string import ascii_uppercase
from typing import Any

from agrotools.text.loose_json import parsed

NOTHING = object()
"""Default of a value that is absent, where null is a value."""


def value_at(value: Any, path: str | None, default: Any = None) -> Any:
    """Return the value at ``path`` in ``value``, or ``default`` if it is absent; an empty path is ``value`` itself.

    Of several paths, joined by ``|``, the first with a value that is not null counts.
    """
    if path is None:
        return default
    there = [found for each in path.split("|") for found in [*values_at(value, each.strip()).values()][:1]]
    return next((found for found in there if found is not None), None if there else default)


def values_at(value: Any, path: str) -> dict[str, Any]:
    """Return the values at a path (keys and positions joined by dots), by what a ``*`` in it stands for.

    In a list, a part that is no position selects the first message with that role. Texts that are JSON are parsed.
    """
    values: dict[str, Any] = {"": value}
    for part in path.split(".") if path else ():
        inner: dict[str, Any] = {}
        for key, outer in values.items():
            value = parsed(outer)
            if isinstance(value, Mapping):
                if "*" not in part:
                    inner |= {key: value[part]} if part in value else {}
                else:
                    head, _, tail = part.partition("*")
                    names = [name for name in value if fnmatchcase(str(name), part)]
                    inner |= {str(name)[len(head) : len(str(name)) - len(tail)]: value[name] for name in names}
            elif isinstance(value, list) and part.lstrip("-").isdecimal():
                inner |= {key: value[int(part)]} if -len(value) <= int(part) < len(value) else {}
            elif isinstance(value, list):
                of_role = (
                    each for each in value if isinstance(each, Mapping) and part in (each.get("role"), each.get("from"))
                )
                inner.update((key, each) for each in [*of_role][:1])
        values = inner
    return values


def number_in(value: Any) -> float | None:
    """Return a finite number, also one written as text; None for anything else."""
    try:
        number = float(str(value).replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def lettered(value: Any) -> dict[str, str]:
    """Return options by letter: of a list, an object, or a text with the marks of options; empty if it has none."""
    if isinstance(value, str):
        value = parsed(value)
    if isinstance(value, str):
        marks = option_marks(value)
        ends = [*(mark.start() for mark in marks[1:]), len(value)]
        return {mark[1].upper(): value[mark.end() : end].strip(" \n;,") for mark, end in zip(marks, ends, strict=False)}
    if isinstance(value, Mapping):
        items = {str(key).strip().upper(): str(text) for key, text in value.items() if text is not None}
        if all(len(key) == 1 and key in ascii_uppercase for key in items):
            return items
        value = list(items.values())
    if isinstance(value, list):
        texts = {letter: str(text) for letter, text in zip(ascii_uppercase, value, strict=False) if text is not None}
        marked = all((mark := _LETTER.match(text)) and mark[1] == letter for letter, text in texts.items())
        return {letter: without_letter(text) if marked else text for letter, text in texts.items()}
    return {}


_LETTER = re.compile(r"^\s*\(?([A-Z])\s*[).:、．]\s*")
_MARK = re.compile(r"(?:^|(?<=[\s;,]))\(?([A-Za-z])[).:、．]\s*")


def without_letter(text: str) -> str:
    """Return an option without its letter."""
    return _LETTER.sub("", text) or text


def option_marks(text: str) -> list[re.Match[str]]:
    """Return the marks of options in a text, ``A.`` or ``(a)``, as long as their letters follow each other."""
    marks: list[re.Match[str]] = []
    for mark in _MARK.finditer(text):
        if mark[1].upper() == ascii_uppercase[len(marks) : len(marks) + 1]:
            marks.append(mark)
    return marks if len(marks) > 1 else []


def translated(word: str, table: Mapping[str, str]) -> str:
    """Return the entry of ``table`` whose name has the words of ``word``, or alone has all of them, else ``word``."""
    given, names = _words(word), [(own, _words(name)) for name, own in table.items()]
    same = {own for own, name in names if own == word or name == given}
    near = same or {own for own, name in names if given and {*given} <= {*name}}
    return near.pop() if len(near) == 1 else word


def _words(text: str) -> list[str]:
    """Return the words of a name, ``TreeCounting`` and ``tree_counting`` too."""
    return [each.lower() for each in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", text) if each.lower() != "and"]
