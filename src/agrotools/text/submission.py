"""Submitted answers: the last complete form in a text, and the values of its lines, read by type without the gold.

An answer is submitted in the answer form: one line ``name: value unit`` for each item, or one JSON object with the
names as keys. Nothing else in a text is an answer.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from agrotools.core import Answer, Step
from agrotools.core.form_item import FormItem
from agrotools.text.loose_json import NotJson, is_list, is_object, loads, values_in
from agrotools.text.normalise import late_pattern, normalise
from agrotools.text.quantities import read_quantity
from agrotools.text.units import fold_case, unit_at

UNKNOWN = "unknown"
"""Value by which an answer abstains in an item; alone on a line, in all items."""
_UNKNOWN = (UNKNOWN, "未知")
_ABSTAINS = late_pattern(rf"(?:{'|'.join(_UNKNOWN)})(?![^\W\d_])\D{{0,200}}")
"""``unknown``, also with a remark or the unit of the form behind it, but with no value."""
_YES = frozenset(("yes", "true", "是", "是的", "对"))
_NO = frozenset(("no", "false", "否", "不是", "不对"))
_SPECIAL = late_pattern(
    r"<\|[^<>|\n]{1,40}\|>|</?s>|<\|?\w+_of_box\|?>|[\0-\x08\x0e-\x1b\x7f\ud800-\udfff\ufffd]"
)
"""Tokens of chat templates, control characters and halves of characters, which some servers leave in the text."""
_COLON = late_pattern(r"[:：=|]")
"""End of a name; in a table, the border of its cell."""
_LONGEST_NAME = 250
_NUMBERED = late_pattern(r"\(?\d{1,2}[.)]\s")
_PLACEHOLDER = late_pattern(r"<(?:number|yes or no|name|one of:|those that apply of:|a short text)")
"""Beginning of what the form has in place of a value."""
_QUOTES = " \t*`_\"'|,;。.!"
_MARKS = _QUOTES + ">#•+~-"
"""Marks that may stand before a name."""
_BETWEEN = late_pattern(r"[,;、，；\n]|\s(?:and|和)\s")
_REMARK = late_pattern(r"\s*[(（][^()（）]*[)）]\s*$")
_DECIMAL_COMMA = late_pattern(r"(?<!\d,\d)(?<!\d,\d\d)\d,(?!\d{3}(?!\d))\d|\.\d{3},\d")
_EITHER = late_pattern(r"(?<![\d.,])(\d{1,3}),(?=\d{3}(?![\d.,]*\d))")
_MOST_CHARACTERS = 100_000


Submission = dict[str, tuple[str, ...]]
"""Values of a form by name of the item, as they were written: usually one, several if they differ."""


@lru_cache(maxsize=256)
def read_submission(text: str, items: tuple[FormItem, ...]) -> Submission | None:
    """Return the last complete form in ``text``; None if each lacks an item, or there is none.

    It is cached, because it is read for each slot."""
    if not items:
        return None
    text = _SPECIAL.sub(" ", text[-_MOST_CHARACTERS:])
    names = item_names(items)
    found = _last_object(text, items, names)
    after = _last_lines(text[found[0] :] if found else text, items, names)
    form = after or (found[1] if found else None)
    numbers = [item.name for item in items if item.is_number]
    if form and any(_DECIMAL_COMMA.search(value) for name in numbers for value in form[name]):
        form |= {
            name: tuple(_EITHER.sub(r"\1.", value) for value in form[name]) for name in numbers
        }
    return form  # where 3,755 is 3.755 beside 12,5


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


def _last_object(
    text: str, items: Sequence[FormItem], names: Mapping[str, str]
) -> tuple[int, Submission] | None:
    """Return the last JSON object with all items, and the position of its end."""
    if "{" not in text:
        return None
    for start, end in reversed([*values_in(text)]):
        try:
            value = loads(text[start:end])
        except NotJson:
            continue
        for fields in _objects(value):
            values: Submission = {}
            for key, written in fields.items():
                if (name := names.get(name_key(key))) and written is not None:
                    values[name] = (*values.get(name, ()), _as_text(written))
            if values.keys() >= {each.name for each in items}:
                return end, values
    return None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a JSON value, the last ones first and each before those in it."""
    if is_object(value):
        yield value
    inner = value.values() if is_object(value) else value if is_list(value) else ()
    for each in reversed([*inner]):
        yield from _objects(each)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_list(value):
        return ", ".join(map(_as_text, value))
    if is_object(value):
        return " ".join(map(_as_text, value.values()))
    return value if isinstance(value, str) else json.dumps(value)


def _last_lines(
    text: str, items: Sequence[FormItem], names: Mapping[str, str]
) -> Submission | None:
    """Return the last lines with all items.

    A name that repeats in a later paragraph begins the next form there; in the same one it has two values.
    """
    last: Submission | None = None
    values: Submission = {}
    paragraphs: dict[str, int] = {}
    paragraph = 0
    for line in text.splitlines():
        if not line.strip():
            paragraph += 1
        elif normalise(line).strip(_MARKS) in _UNKNOWN:
            last, values = {item.name: (line,) for item in items}, {}
        elif found := _value_in(line, names):
            name, value = found
            if name in values and (before := paragraphs[name]) < paragraph:
                values = {
                    each: given for each, given in values.items() if paragraphs[each] > before
                }
            values[name] = (*(each for each in values.get(name, ()) if each != value), value)
            paragraphs[name] = paragraph
            if len(values) == len(items):
                last = dict(values)
    return last


def _value_in(line: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the name of the item that a line gives, and its value; None if it gives none."""
    line = line.strip(" \t|")
    colon = _COLON.search(line, 0, _LONGEST_NAME)
    if colon is None:
        return None
    written = _NUMBERED.sub("", line[: colon.start()].lstrip(_MARKS), 1)
    name = names.get(name_key(written)) or names.get(name_key(_REMARK.sub("", written)))
    value = line[colon.end() :].strip(" \t*`")
    return (
        (name, value) if name and value.strip(_QUOTES) and not _PLACEHOLDER.match(value) else None
    )


def is_complete(text: str, items: Sequence[FormItem], *, listed: bool = False) -> bool:
    """True if ``text`` submits a value of its type for each of ``items``, right or wrong.

    ``listed``: labels must be among the options, which the form is asked for once more otherwise.
    """
    if (form := read_submission(text, tuple(items))) is None:
        return False
    values = [read_value(item, form[item.name]) for item in items]
    return all(value.readable and (value.listed or not listed) for value in values)


def lacks_form(answer: Answer | Step, items: Sequence[FormItem]) -> bool:
    """True if the form of ``answer`` was asked for, and its values are not all given."""
    return bool(answer.form_replies) and not is_complete(answer.text, items)


class FormValue(NamedTuple):
    """Value of an item, by its type; ``unknown``: the answer abstains.

    ``readable`` is False if the text is no value of the type, e.g. words for a number. ``listed`` is False for a label
    that is none of the options, which may be a name of one that only its slot knows. ``number``: low and high end in
    the unit of the item, None for another unit. ``names``: options of a closed item, else the text.
    """

    readable: bool = True
    listed: bool = True
    unknown: bool = False
    yes: bool | None = None
    number: tuple[float, float] | None = None
    names: tuple[str, ...] = ()


_UNREADABLE = FormValue(readable=False)


def read_value(item: FormItem, written: Sequence[str]) -> FormValue:
    """Return the value of ``item`` that was written; several that differ are no value."""
    first, *others = (_read_value(item, text) for text in written)
    return first if all(other == first for other in others) else FormValue()


@lru_cache(maxsize=4_000)
def _read_value(item: FormItem, text: str) -> FormValue:
    if _ABSTAINS.fullmatch(normalise(text).strip(_MARKS)):
        named = (name for name in option_names(item) if name.startswith(_UNKNOWN))
        if not any(label_key(text).startswith(name) for name in named):
            return FormValue(unknown=True)
    if item.free_text:
        return FormValue(names=(text,)) if text.strip(_QUOTES) else _UNREADABLE
    if item.is_number:
        return _number(item, text)
    plain = label_key(text)
    bare = _REMARK.sub("", plain).strip(_QUOTES)
    remark = label_key(plain.removeprefix(bare).strip(" ()（）"))
    if item.type == "boolean":
        if bare not in _YES | _NO:
            return _UNREADABLE
        return FormValue() if remark in _YES | _NO else FormValue(yes=bare in _YES)
    known = option_names(item)
    if not item.takes_several:
        name = known.get(plain) or known.get(bare)
        if name is None:
            return FormValue(names=(bare,), listed=not known) if bare else _UNREADABLE
        return (
            FormValue()
            if known.get(remark, name) != name and plain not in known
            else FormValue(names=(name,))
        )
    parts = [_REMARK.sub("", each).strip(_QUOTES) for each in _BETWEEN.split(plain)]
    chosen = tuple(dict.fromkeys(known.get(part, part) for part in parts if part))
    return FormValue(names=chosen, listed={*chosen} <= {*known.values()}) if chosen else _UNREADABLE


def _number(item: FormItem, text: str) -> FormValue:
    plain = normalise(fold_case(_without_tex(text))).strip(" \t*`\"'|,;。")
    quantity = read_quantity(_BRACKETED.sub(r"\1", plain))
    if quantity is None:
        return _UNREADABLE
    if item.unit is not None:
        return FormValue(number=None if quantity.noun is not None else quantity.ends_in(item.unit))
    if quantity.is_share:
        return FormValue(number=quantity.ends_in("fraction"))
    named = quantity.unit is None or quantity.unit.symbol in _units_in(item.label)
    return FormValue(number=(quantity.low, quantity.high) if named else None)


@lru_cache(maxsize=1_000)
def _units_in(label: str) -> frozenset[str]:
    """Return the symbols of the units that a label names: ``litres of water``."""
    plain = normalise(fold_case(label))
    found = (unit_at(plain, word.start()) for word in _WORD.finditer(plain))
    return frozenset(unit.symbol for unit, _ in filter(None, found))


_WORD = late_pattern(r"[^\W\d_]+|%")
_BRACKETED = late_pattern(r"<([^<>]*\d[^<>]*)>")
_TEX_SPACE = late_pattern(r"\\[,;: ]|(?<=\{)~")
_BOLD = late_pattern(r"\*\*(?![-+]?\d)|`")
_RAISED = late_pattern(r"<sup>([-−+]?\d+)</sup>")
_TEX_TEXT = late_pattern(r"\\(?:text|mathrm)\s?\{([^{}]*)\}")
_FRACTION = late_pattern(r"\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_TEX = late_pattern(r"\$|\\(?:text|mathrm|left|right|boxed)|[{}]")


def _without_tex(text: str) -> str:
    """Return ``text`` without the signs of TeX and HTML: ``24,000 m^{2}``, ``$3.2\\text{ ha}$``, ``m<sup>2</sup>``."""
    text = (
        _BOLD.sub("", _RAISED.sub(r"^\1", text))
        .replace("\\times", "x")
        .replace("\\cdot", "·")
        .replace("\\%", "%")
    )
    return _TEX.sub("", _FRACTION.sub(r"\1/\2", _TEX_TEXT.sub(r"\1", _TEX_SPACE.sub(" ", text))))


@lru_cache(maxsize=1_000)
def option_names(item: FormItem) -> dict[str, str]:
    """Return the options of ``item`` by their names as :func:`label_key` writes them."""
    known = {label_key(alias): choice for choice, names in item.aliases.items() for alias in names}
    return known | {label_key(choice): choice for choice in item.choices}


_JOINED = late_pattern(r"(?<=[^\W\d_])[-_](?=[^\W\d_])")


def label_key(text: str) -> str:
    """Return a label without case, widths, marks around it and hyphens between its words."""
    return _JOINED.sub(" ", normalise(text).strip("<>[]{}" + _QUOTES))
