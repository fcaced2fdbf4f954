"""Answers that are written out, ``12±1 trees; 14.2±0.5 m``: numbers with tolerances, names, lists, charts, yes and no.

A text becomes the value, the object or the list of parts that :func:`~.answers.plain_answer` reads. What the text does
not say in one of these forms stays as it is.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from agrotools.calling.declared import chart_of
from agrotools.knowledge.same_thing import plain_yes
from agrotools.loading.values import number_in
from agrotools.text.normalise import CJK, normalise
from agrotools.text.quantities import read_quantity
from agrotools.text.units import unit_at
from agrotools_benchmarks.released.names import in_english, words
from agrotools_benchmarks.released.pictures import PLACE
from agrotools_build.export.gta_entries import AnswerKind


class Beside(NamedTuple):
    """What stands beside an answer: its type, names of its parts, tolerances in words, files, and what it is about."""

    kind: AnswerKind | None
    items: tuple[str, ...] = ()
    """Names of the parts, ``tree count; mean height``."""
    files: Mapping[str, str] = MappingProxyType({})
    """Paths of the files of the question, by name."""
    words: str = ""
    """Question, and answer in words."""
    said: Callable[[str, str], None] = lambda _, __: None
    """Takes what a text was read as, and the text, where it could be taken as it is."""


_LIST = re.compile(r"\s*[;；]\s*")
_PART = re.compile(r"\s*(?P<name>[^\W\d][^:：=±]{0,59}?)\s*[:：=]\s*(?P<value>.*\S)\s*", re.DOTALL)
_MARGIN = re.compile(
    r"\s*(?P<number>[-+−]?\d[\d,]*(?:\.\d+)?)\s*(?P<unit>[^\d±+\s][^\d±+]*?)?\s*(?:±|\+\s*/?\s*-)\s*"
    r"(?P<margin>\d+(?:\.\d+)?)\s*(?P<last>[^\d\s].*?)?\s*"
)
"""Number with a tolerance: ``12±1 trees``, ``40 trees ± 10 %``."""
_ON_SHARE = re.compile(
    r"%|per ?cent|\bshare\b|\bfraction\b|\bproportion\b|\bcover(?:age)?\b|比例|百分|率",
    re.IGNORECASE,
)
"""Words of a question whose answer may be in percent."""
_ON_NUMBER = re.compile(r"\bhow many\b(?! per ?cent)|多少(?:棵|个|株|穗|只|片)", re.IGNORECASE)
"""Words of a question whose answer is a number of things."""
_LONG = 6
"""Longest name in a list of names, in words."""


def in_words(value: Any, beside: Beside) -> Any:
    """Return an answer, or what its text says in one of the forms above."""
    if isinstance(value, list) and len(value) == 1:  # of the answers that count
        (only,) = value
        is_chart = beside.kind == "plot" and isinstance(only, dict) and chart_of(only) is not None
        if isinstance(only, str | int | float) or is_chart:
            return in_words(only, beside)
    if not isinstance(value, str) or not value.strip():
        return value
    text = value.strip()
    english = in_english(text, "answers")
    if english.casefold() == "unanswerable":
        return {"type": "abstain"}
    if english != text:
        beside.said(english, text)
        return english
    if beside.kind == "plot":
        return chart_in_words(text) or value
    if beside.kind in (None, "tolerance"):
        return _numbers(text, beside) or value
    if beside.kind == "exact":
        return _names(text, beside)
    return value


def named_parts(text: Any) -> dict[str, str]:
    """Return the parts of ``mean: 0.5; highest: 1`` by name; empty if it is not in that form."""
    if not isinstance(text, str):
        return {}
    parts = [_PART.fullmatch(piece) for piece in _LIST.split(text.strip()) if piece]
    found = {part["name"]: part["value"] for part in parts if part}
    return found if len(found) == len(parts) else {}


def items_in(text: Any) -> tuple[str, ...]:
    """Return the names in a cell, ``tree count; mean height``, or of a list."""
    listed = text if isinstance(text, list) else _LIST.split(text) if isinstance(text, str) else []
    return tuple(each.strip() for each in listed if isinstance(each, str) and each.strip())


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(text: str, beside: Beside) -> Any:
    """Return the numbers of a text as parts with names, units and tolerances; None if it is no list of numbers."""
    pieces = [piece for piece in _LIST.split(text) if piece]
    named = [_PART.fullmatch(piece) for piece in pieces]
    if not all(named):
        named = [None for _ in pieces]
    are_told = all(named) or len(beside.items) == len(pieces)
    if len(pieces) > 1 and not are_told and beside.kind != "tolerance":
        return None
    parts: list[dict[str, Any]] = []
    for at, (piece, part) in enumerate(zip(pieces, named, strict=True)):
        number = _number(part["value"] if part else piece, beside)
        if number is None:
            return None
        name = part["name"] if part else beside.items[at] if are_told else f"answer_{at + 1}"
        parts.append({"name": name, "type": "tolerance", **number})
    if len(parts) > 1 or any(named):
        return parts
    if len(parts[0]) <= len(("name", "type", "value")):
        return None  # a plain number, which is read as it is
    return parts[0] if are_told else {**parts[0], "name": "answer"}


def _number(text: str, beside: Beside) -> dict[str, Any] | None:
    """Return value, unit and tolerance of ``12±1 trees``, or the value of ``12 trees``; None if it is no number."""
    stated = _MARGIN.fullmatch(_BRACKETED.sub(r" \1 ", text))
    if stated is None:
        return {"value": text} if read_quantity(normalise(text)) is not None else None
    own, last = (stated["unit"] or "").strip(), (stated["last"] or "").strip()
    number, margin = stated["number"], stated["margin"]
    if last == "%" and own == "" and _ON_NUMBER.search(beside.words):
        return {"value": number, "tolerance": f"{margin} %"}
    if last == "%" and own == "" and _ON_SHARE.search(beside.words):
        return {"value": number, "abs_tol": float(margin), "unit": "%"}
    if last == "%":
        # Of an answer in percent, as 40 % ± 5 % and perhaps 40 ± 5 %, these may be points: it is asked about.
        value = {"value": number, "unit": own} if own else {"value": f"{number} %"}
        return {**value, "tolerance": f"{margin} %"}
    size = _in_unit(float(margin), last, own)
    if size is None:
        return None
    unit = own or last
    return {"value": number, "abs_tol": size, **({"unit": unit} if unit else {})}


_BRACKETED = re.compile(r"[(（]\s*((?:±|\+\s*/?\s*-)[^()（）]*)[)）]")
"""Tolerance in brackets, ``12 (±1)``."""


def _in_unit(size: float, unit: str, wanted: str) -> float | None:
    """Return a size in another unit, of ``1.2 m ± 5 cm``; None if one cannot be the other."""
    found, other = unit_at(normalise(unit), 0), unit_at(normalise(wanted), 0)
    if unit == wanted or found is None or other is None:
        return size  # nouns, or only one unit, which is that of both
    if found[0].exponents != other[0].exponents:
        return None
    return size * found[0].factor / other[0].factor


# --- names ------------------------------------------------------------------------------------------------------------


def _names(text: str, beside: Beside) -> Any:
    """Return a file, the list, or the synonyms that an exact answer names; the text if it is one name."""
    if file := _file_in(text, beside):
        return file
    pieces = [piece for piece in _LIST.split(text) if piece]
    names = [name.strip() for name in _SLASH.split(text)]
    if not all(_LETTERS.search(name) for name in names):
        names = [text]  # 1 / 2
    is_list = len(names) > 1 and asks_for_several(beside.words.partition("\n")[0])
    pieces = names if is_list else pieces
    is_explained = any(plain_yes(piece) is not None for piece in pieces)  # yes; the pond grew
    if len(pieces) > 1 and not is_explained and all(_size(piece) <= _LONG for piece in pieces):
        beside.said("a list, every item required", text)
        are_named = len(beside.items) == len(pieces)
        items = beside.items if are_named else [f"answer_{at + 1}" for at in range(len(pieces))]
        return [
            {"name": name, "type": "exact", "value": piece}
            for name, piece in zip(items, pieces, strict=True)
        ]
    if len(names) > 1 and all(_size(name) <= _LONG for name in names):
        beside.said("names of one thing", text)
        return {"value": names[0], "type": "exact", "aliases": [*names[1:], text]}
    return text


_SLASH = re.compile(r"\s+/\s+")
_LETTERS = re.compile(rf"[^\W\d_{CJK}]{{3}}|[{CJK}]")
"""What a name has between slashes, which options and fractions lack."""


def _file_in(text: str, beside: Beside) -> str:
    """Return the path of the file that an answer names: by its name, or its place; empty if it names none."""
    place = PLACE.fullmatch(text)
    if place and text not in beside.words and 0 < int(place[1]) <= len(beside.files):
        beside.said("the picture at that place, the first is 1", text)
        return [*beside.files.values()][int(place[1]) - 1]
    named = [name for name in beside.files if name in text]
    is_only = len(named) == 1 and _size(text.replace(named[0], "")) <= _LONG
    return beside.files[named[0]] if is_only else ""


def with_files_named(answer: Any, beside: Beside) -> Any:
    """Return an answer whose parts name files by their paths."""
    if isinstance(answer, list):
        return [with_files_named(part, beside) for part in answer]
    value = answer.get("value") if isinstance(answer, dict) else None
    is_name = isinstance(value, str) and answer.get("type") in (None, "exact")
    file = _file_in(value, beside) if isinstance(value, str) and is_name else ""
    return {**answer, "value": file} if file else answer


def asks_for_several(question: str) -> bool:
    """True if a question asks for more than one thing."""
    return bool(_SEVERAL.search(question))


_SEVERAL = re.compile(
    r"\b(?:two|three|four|five|six|all|list|both|each|in order)\b"
    r"|\b(?:which|what)\b[^.?]*\b(?:are|were|show|have)\b|哪些|哪两|哪几|分别|各",
    re.IGNORECASE,
)


def _size(text: str) -> int:
    """Return the number of words of a text; two characters of a script without spaces are one."""
    others = re.findall(f"[{CJK}]", text)
    return len(re.findall(rf"[^\W{CJK}]+", text)) + len(others) // 2


def is_sentence(text: str) -> bool:
    """True for a text that ends as a sentence does, and is more than a number or a name."""
    return text.rstrip().endswith(("。", "！")) or (text.rstrip().endswith(".") and _size(text) > 2)


# --- charts -----------------------------------------------------------------------------------------------------------

_CHART = re.compile(
    r"\s*(?P<kind>[^\W\d]+)(?:[ _-](?:chart|plot|graph))?\s*[:：]\s*(?P<items>.+)", re.DOTALL
)
_POINT = re.compile(
    r"\s*(?P<x>.*?\S)\s*(?:[=:：]|\s)\s*(?P<y>-?\d+(?:\.\d+)?)\s*(?P<unit>[^\d\s]*)\s*"
)
_KINDS = ("bar", "line", "scatter", "hist", "pie", "box", "histogram")


def chart_in_words(text: str) -> dict[str, Any] | None:
    """Return the chart of ``bar chart: leaf 1 = 8.4 %, leaf 2 = 19.7 %``; None if a text describes none."""
    stated = _CHART.fullmatch(text)
    kind = words("charts").get(stated["kind"], stated["kind"].lower()) if stated else ""
    if stated is None or kind not in _KINDS:
        return None
    points = [_POINT.fullmatch(item) for item in re.split(r"[,;，；、]\s*(?=\D)", stated["items"])]
    found = [(point["x"], number_in(point["y"]), point["unit"]) for point in points if point]
    if len(found) < len(points) or not found:
        return None
    return {"kind": kind, "x": [x for x, _, _ in found], "y": [y for _, y, _ in found]}
