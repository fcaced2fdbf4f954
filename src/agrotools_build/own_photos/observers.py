"""Columns of one stem: of two observers of one thing, or of two things. The headers and the values tell which."""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Literal, NamedTuple

from agrotools.knowledge.countables import countables
from agrotools.knowledge.foreign import english_crop
from agrotools.knowledge.kb_names import kb_names
from agrotools.text import cells
from agrotools.text.decimal_marks import detect_decimal
from agrotools.text.tables import SheetTable
from agrotools.text.units import canonical_unit
from agrotools_build.own_photos.headers import read_header, words_in, words_of
from agrotools_build.own_photos.plan import Column, Kind, measures
from agrotools_build.own_photos.questions import ColumnNames
from agrotools_build.own_photos.table import DetectedTable
from agrotools_build.review.agreement import cohens_kappa, weighted_kappa

APART = "apart"
"""Answer to the question for a second observer: the columns hold different things."""
ONLY = "only "
"""Start of the answer that one of the columns is used: ``only apples_1``."""

Tail = Literal["number", "person", "word", "none"]
"""What tells a column from others of its stem: a number or letter, the name of a person, another word, or nothing."""

_LONGEST_TAIL = 3
"""Words of a header that may tell columns apart, as ``Dr Ana Lima``."""
_FEWEST_PHOTOS = 5
"""Fewest photos with both values that say whether two columns agree; below, the headers decide."""
_ALIKE = 0.75
"""Least concordance of two observers. Fruits of two sides of a tree have about 0.5."""
_ALIKE_NAMES = 0.4
"""Least kappa of names and of yes and no, "moderate" by Landis and Koch (1977)."""
_WORD = re.compile(r"[^\W\d_]+|\d+")


class Alike(NamedTuple):
    """Columns whose headers differ in a few words. ``tails``: what tells them apart, by header, in their order."""

    stem: str
    tails: dict[str, Tail]

    @property
    def headers(self) -> list[str]:
        return [*self.tails]


def alike_columns(table: SheetTable) -> tuple[Alike, ...]:
    """Return the columns of a table that may be of several observers of one thing, each in one group."""
    return _alike(tuple(each for each in table.columns if each not in table.counted))


def alike_with(header: str, table: SheetTable) -> Alike | None:
    """Return the group of a column, or None."""
    return next((each for each in alike_columns(table) if header in each.tails), None)


@cache
def _alike(headers: tuple[str, ...]) -> tuple[Alike, ...]:
    by_stem: dict[tuple[str, str], dict[str, str]] = {}
    for header in headers:
        for before, tail, after in _cuts(header):
            by_stem.setdefault((before.casefold(), after.casefold()), {})[header] = tail
    groups: list[Alike] = []
    taken: set[str] = set()
    # The more words two headers share, the less is left that may mean something else.
    shared = [stem for stem, tails in by_stem.items() if len(tails) > 1]
    for stem in sorted(shared, key=lambda each: -len(" ".join(each))):
        words = " ".join(filter(None, stem))
        if not words or not _says_all(words):
            continue
        free = {header: tail for header, tail in by_stem[stem].items() if header not in taken}
        found: dict[str, Tail] = {
            header: told for header, tail in free.items() if (told := _tail(tail))
        }
        is_told = {"number", "person"}.issuperset({*found.values()} - {"none"})
        if not is_told:
            found = {header: tail for header, tail in found.items() if tail != "none"}
        if len(found) > 1:
            groups.append(Alike(words, found))
            taken |= {*found}
    return tuple(groups)


def _cuts(header: str) -> list[tuple[str, str, str]]:
    """Return a header as what stands before some of its words, these words, and what stands behind them."""
    words = [*_WORD.finditer(header)]
    cuts = [(header, "", "")]
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + _LONGEST_TAIL) + 1):
            if end - start == len(words):
                continue
            before, after = words[:start], words[end:]
            tail = header[words[start].start() : words[end - 1].end()]
            cuts.append((_joined(before), tail, _joined(after)))
    cuts[0] = (_joined(words), "", "")
    return cuts


def _joined(words: Sequence[re.Match[str]]) -> str:
    return " ".join(word[0] for word in words)


@cache
def _says_all(stem: str) -> bool:
    """Return True if a stem says what its columns hold, without further words."""
    kinds: tuple[Kind, ...] = ("number", "name", "yes")
    said = [read_header(stem, kind) for kind in kinds]
    return any((each.measures or each.target) and not each.further for each in said)


@cache
def _tail(text: str) -> Tail | None:
    """Return what words of a header are; None: they change what the column holds, as in ``apples (kg)``."""
    if not text:
        return "none"
    words = _WORD.findall(text)
    observers = [word for word in words if words_in(word, words_of("observer"))]
    rest = [word for word in words if word not in observers]
    if len(rest) == 1 and re.fullmatch(r"[1-9a-b]", rest[0].casefold()):
        return "number"
    if not rest:
        return "person" if observers else None
    if any(_changes_the_meaning(word) for word in rest) or _changes_the_meaning(" ".join(rest)):
        return None
    if words_in(" ".join(rest), words_of("place_or_state")):
        return "word"
    are_names = all(word[0].isupper() and len(word) > 1 for word in rest)
    return "person" if are_names or observers else "word"


def _changes_the_meaning(word: str) -> bool:
    """Return True for a word of measures, things, units or names, which no observer has."""
    kinds = ("plain", "percent", "names_it", "may_name_it", "rating", "quantity", "crop")
    named = [of for kind in kinds for of in words_of(kind)]
    for thing in countables().values():
        named += [*thing.words, *thing.plurals]
    for measure in measures().values():
        named += [*measure.words, *measure.also]
    if words_in(word, named) or canonical_unit(word) or english_crop(word):
        return True
    return bool(kb_names().meant_by(word))


def are_numbered(group: Alike) -> bool:
    """Return True if numbers or letters in their order tell the columns apart: ``rust_1`` and ``rust_2``."""
    return {*group.tails.values()} <= {"number", "none"} and "number" in group.tails.values()


def are_observers(group: Alike, seen: DetectedTable, first: Column) -> bool:
    """Return True if columns are of two observers: their headers say it, and their values do not contradict it."""
    if len(group.headers) > 2 or not {*group.tails.values()} <= {"number", "person"}:
        return False
    second = first.model_copy(update={"column": group.headers[1]})
    agree = agreement(first, second, seen)
    return are_numbered(group) if agree is None else agree


def agreement(first: Column, second: Column, seen: DetectedTable) -> bool | None:
    """Return True if two columns agree as two observers of one thing do, None if too few photos have both."""
    if measures()[first.ask].kind == "number":
        numbers = [(float(a), float(b)) for a, b in _pairs(first, second, seen)]
        if len(numbers) < _FEWEST_PHOTOS:
            return None
        concordance = weighted_kappa(numbers)
        return concordance is not None and concordance >= _ALIKE
    names = _pairs(first, second, seen)
    if len(names) < _FEWEST_PHOTOS:
        return None
    kappa, _ = cohens_kappa(names)
    return all(a == b for a, b in names) if kappa is None else kappa >= _ALIKE_NAMES


def _pairs(first: Column, second: Column, seen: DetectedTable) -> list[tuple[str, str]]:
    """Return the values of the rows with a usable cell in both columns, as text; of names, the things they name."""
    kind = measures()[first.ask].kind
    texts = [[text for _, _, text in seen.cells_of(each.column)] for each in (first, second)]
    decimal, _, _ = detect_decimal([*texts[0], *texts[1]])
    meant = [_named_things(each, of) for each, of in zip((first, second), texts, strict=True)]
    names = ColumnNames.of(first, [name for of in meant for name in of.values()])
    pairs: list[tuple[str, str]] = []
    for a, b in zip(*texts, strict=True):
        if cells.is_empty(a) or cells.is_empty(b):
            continue
        with suppress(cells.CellFault):
            if kind == "number":
                numbers = [cells.quantity(text, decimal).value for text in (a, b)]
                pairs.append((str(numbers[0]), str(numbers[1])))
            elif kind == "yes":
                pairs.append((str(cells.yes_or_no(a)), str(cells.yes_or_no(b))))
            elif a in meant[0] and b in meant[1]:
                pairs.append((names.key_of(meant[0][a]), names.key_of(meant[1][b])))
    return pairs


def _named_things(column: Column, texts: Sequence[str]) -> dict[str, str]:
    """Return the name that each cell of a column of names means; empty for a column of others."""
    if measures()[column.ask].kind != "name":
        return {}
    meant: dict[str, str] = {}
    for text in texts:
        with suppress(cells.CellFault):
            name = cells.name(text)
            meant[text] = column.meaning_of(name) or name
    return meant


def partners_of(column: Column, columns: Sequence[Column], table: SheetTable) -> list[Column]:
    """Return the other columns of a plan that have the stem of a column, and hold the same."""
    group = alike_with(column.column, table)
    if group is None or not column.is_asked:
        return []
    return [
        each
        for each in columns
        if each.column in group.tails and each.column != column.column
        if (each.ask, each.target) == (column.ask, column.target)
    ]


def asked_alike(column: Column, columns: Sequence[Column], seen: DetectedTable) -> list[Column]:
    """Return the other columns with the questions of a column and other answers, of which only one can be right.

    The words of a question are those of its measure, unless the plan has others.
    """
    if not column.is_asked:
        return []
    found: list[Column] = []
    for each in columns:
        if each.column == column.column or _words_asked(each) != _words_asked(column):
            continue
        if any(a != b for a, b in _pairs(column, each, seen)):
            found.append(each)
    return found


def are_same_in_other_words(first: Column, second: Column, seen: DetectedTable) -> bool:
    """Return True if two columns name the same things, each in its own words: Latin and English names.

    Two observers use the same words, and so few photos that no name repeats tell nothing.
    """
    both = [
        [text.strip().casefold() for _, _, text in seen.cells_of(each.column)]
        for each in (first, second)
    ]
    filled = [pair for pair in zip(*both, strict=True) if not any(map(cells.is_empty, pair))]
    pairs = {*filled}
    is_one_to_one = len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    repeats = 1 < len(pairs) <= len(filled) / 2
    return is_one_to_one and repeats and any(a != b for a, b in pairs)


def _words_asked(column: Column) -> tuple[str | None, ...]:
    """Return what tells the questions of a column from those of another."""
    return (column.ask, column.target, column.objects, column.quantity, column.yes_means)


def own_quantity(column: Column, table: SheetTable) -> str:
    """Return words for what a column holds that tell it from others of its stem: ``the number of {objects} (Ana)``."""
    group = alike_with(column.column, table)
    measure = measures()[column.ask]
    own = _WORD.findall(column.column)
    stem = {word.casefold() for word in _WORD.findall(group.stem)} if group else set[str]()
    tail = " ".join(word for word in own if word.casefold() not in stem)
    objects = column.objects or column.target or "objects"
    quantity = measure.quantity.format(objects=objects, objects_zh=objects)
    return f"{quantity} ({tail})" if tail else quantity
