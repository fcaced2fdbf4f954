"""What a column holds: its cells tell names, its header and its cells together tell numbers, and else it is asked."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agrotools.core.texts import difference_text
from agrotools.formats.picture_folder import PLACE_HEADERS
from agrotools.knowledge.countables import countables
from agrotools.knowledge.foreign import english_crop
from agrotools.knowledge.kb_names import healthy_crop, kb_names
from agrotools.text import cells
from agrotools.text.decimal_marks import Decimal, detect_decimal
from agrotools.text.tables import UNNAMED, SheetTable
from agrotools.text.units import compatible, convert
from agrotools_build.own_photos.headers import (
    Header,
    holds,
    is_loose,
    measures_for,
    own_words,
    read_header,
    thing_named,
    words_in,
    words_of,
)
from agrotools_build.own_photos.observers import alike_with
from agrotools_build.own_photos.plan import (
    NOTHING,
    RATING,
    UNDECIDED,
    Column,
    Kind,
    Measure,
    measures,
)
from agrotools_build.own_photos.questions import ColumnNames, tolerance_of
from agrotools_build.own_photos.table import DetectedTable
from agrotools_tools.counting.tool import singular
from agrotools_tools.recognition.packs import list_packs


class ColumnReading(NamedTuple):
    """A column as it was read, and a note that says why.

    ``doubt``: why it may hold something else; its ``ask`` is then open, and ``proposed`` is what is proposed.
    ``is_unknown``: neither the header nor the cells say what it holds. ``is_loose``: its header may also stand above
    something else, although nothing in the cells speaks for that.
    """

    column: Column
    note: str
    doubt: str = ""
    proposed: str = NOTHING
    is_unknown: bool = False
    is_loose: bool = False


CLASS = "class"
"""Measure of a column of names whose header does not say what they are of."""
EMPTY = "empty in all rows with a photo"
"""Note on a column without any answer."""
_MOST_NAMES, _MOST_LISTED = 60, 12
_ENOUGH = 0.8
"""Share of cells that tells the kind of all."""
_KNOWN, _SOME_KNOWN = 0.5, 0.25
"""Shares of the names that the knowledge base has: labels from the first, perhaps labels from the second."""
_LARGEST_RATING = 10
"""Largest number of the usual scales: 0 to 5, 1 to 9, 0 to 10."""
_SCALE = re.compile(r"(?<!\d)[01]\s*(?:-|–|to|a|bis|à)\s*(?:[3-9]|10)(?!\d)")
"""A scale in a header: ``0-9``, ``1 to 5``."""
_FEWEST_NUMBERED = 3
"""Fewest rows whose numbers 1, 2, 3... are taken for those of things."""
_FEWEST_GROUPS = 5
"""Fewest values, each that of one photo, that say that a column groups none: two days may have a photo each."""
_ENOUGH_NUMBERS = 5
"""Fewest numbers that say that nearly all are 0."""
_RARE = 0.05
"""Share of photos with more than 0 up to which a column has no questions: they would all be about these few."""
_ALSO_DATES = ("data", "jour", "giorno", "dia", "día", "tag")
"""Headers of dates in other languages, which may stand above something else, too."""
_DATE_IN_CELL = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?!\d)")
_OF_PANDAS = re.compile(r"Unnamed: \d+")
_HEALTHY = re.compile(
    r"health|健康|gesund|\bsan[oa]s?\b|\bsadi[oa]|saud[aá]ve|\bsaine?s?\b", re.IGNORECASE
)
"""Header of yes or no whose yes means a healthy plant."""


def read_column(header: str, seen: DetectedTable, second: str | None = None) -> ColumnReading:
    """Return what a column holds, with the cells of its ``second`` observer."""
    texts = texts_of(header, seen, second)
    if not texts:
        return ColumnReading(Column(column=header, ask=NOTHING), EMPTY)
    if header in seen.table.counted:
        # Its own words are what is counted: a ripe apple is not any apple.
        label = re.sub(r"[\W_]+", " ", header).strip().casefold()[:80]
        target = thing_named(label) or singular(label)
        thing = countables().get(target)
        counted = Column(column=header, ask="count", target=target, objects=thing and thing.objects)
        return ColumnReading(counted, "numbers of annotated objects")
    is_unnamed = UNNAMED.fullmatch(header) or _OF_PANDAS.fullmatch(header)
    if is_unnamed and [*map(int, filter(str.isdecimal, texts))] == sorted(
        {int(text) if text.isdecimal() else -1 for text in texts}
    ):
        note = "numbers of the rows, as pandas and R write them without a name"
        return ColumnReading(Column(column=header, ask=NOTHING), note)
    is_date = header.casefold() in _ALSO_DATES and all(map(_DATE_IN_CELL.match, texts))
    if header.casefold() in Column.SLICES or is_date or _names_place(header):
        note = f"groups of photos, {len(set(texts))} different"
        if _groups_none(header, seen):
            # Photos of different groups are never compared, and a score of one photo says nothing.
            left = Column(column=header, ask=NOTHING)
            return ColumnReading(left, f"{note}, each of one photo")
        return ColumnReading(Column(column=header, ask="slice"), f"{note}; scores by its values")
    kind = kind_of(texts, header)
    if kind == "number":
        return _read_numbers(header, texts, seen)
    if kind == "name":
        return _read_names(header, texts, seen)
    if kind == "yes":
        return _read_yes(header, texts, seen)
    return ColumnReading(
        Column(column=header, ask=NOTHING), f"{_KINDS[None]}, no matching question type"
    )


def _names_place(header: str) -> bool:
    """Return True for a header that names a place, such as ``Field``, ``Plot No.`` or ``talhão``."""
    named = {*words_of("names_it"), *words_of("may_name_it")}
    words = [
        word for word in re.sub(r"[\W_]+", " ", header.casefold()).split() if word not in named
    ]
    return " ".join(words) in PLACE_HEADERS


def _groups_none(header: str, seen: DetectedTable) -> bool:
    """Return True if each value of a column is that of one photo, as the time at which it was taken."""
    photos_of: dict[str, set[Path]] = {}
    for _, image, text in seen.cells_of(header):
        if not cells.is_empty(text):
            photos_of.setdefault(text, set()).add(image)
    return len(photos_of) >= _FEWEST_GROUPS and all(len(each) == 1 for each in photos_of.values())


def column_as(header: str, ask: str, seen: DetectedTable, second: str | None = None) -> Column:
    """Return a column that its owner says holds ``ask``, with what the header and the cells tell of it."""
    column = Column(column=header, ask=ask, second=second)
    if not column.is_asked:
        return column
    texts, measure = texts_of(header, seen, second), measures()[ask]
    if measure.kind != "number":
        return column.model_copy(update=_details(header, measure, texts, seen))
    said = _numbers_header(header, seen.table)
    numbers = _numbers(texts)
    if not numbers.values:
        return column
    changes = _number_details(measure, said, numbers)
    if ask == "count" and said.further:
        words = own_words(header)
        is_english = said.target is not None and holds(header, said.target)
        if not is_english or not _are_known(said.further):
            # The tool knows English words only, and the further ones may change what is counted, or mean anything.
            return column.model_copy(update={**changes, "target": None, "objects": None})
        target = (
            singular(words) if re.fullmatch(r"[^\W\d_]+(?: [^\W\d_]+){0,2}", words) else said.target
        )
        changes |= {
            "target": target,
            "objects": words if target == singular(words) != words else None,
        }
    return column.model_copy(update=changes)


def nearly_all_zero(column: Column, seen: DetectedTable) -> str:
    """Return that the numbers of a column are 0 on nearly all photos, so that no question tells them; else empty."""
    if not column.is_asked or measures()[column.ask].kind != "number":
        return ""
    measure = measures()[column.ask]
    tolerance, _ = tolerance_of(column, measure)
    values = _values_in_unit(texts_of(column.column, seen), column, measure)
    n_larger = sum(abs(value) > tolerance for value in values)
    if len(values) < _ENOUGH_NUMBERS or n_larger > max(1, _RARE * len(values)):
        return ""
    near = difference_text(f"{tolerance:g}", measure.unit)
    return f"within {near} of 0 on {len(values) - n_larger} of {len(values)} photos"


def are_percentages(header: str, seen: DetectedTable) -> bool:
    """Return True for numbers with a percent sign, in the header or in each cell."""
    texts = texts_of(header, seen)
    if kind_of(texts, header) != "number":
        return False
    units = _numbers(texts).units
    return _numbers_header(header, seen.table).unit == "%" or set(units) == {"%"}


def _values_in_unit(texts: Sequence[str], column: Column, measure: Measure) -> list[float]:
    """Return the numbers of a column in the unit of its measure, without those whose unit is open or another kind."""
    values: list[float] = []
    for number in _numbers(texts).values:
        unit = number.unit or column.unit
        if measure.unit is None:
            values.append(number.value)
        elif unit is not None and compatible(unit, measure.unit):
            # 0.35 of a leaf is 35 %, and not nearly 0.
            values.append(convert(number.value, unit, measure.unit))
    return values


def _are_known(further: Sequence[str]) -> bool:
    """Return True if further words only tell things of a kind apart: those of ``ripe apples``, not ``obs apples``."""
    return {*further} <= {*words_of("place_or_state")}


def target_in(header: str, seen: DetectedTable) -> tuple[str | None, bool]:
    """Return the thing that a header names, in any known language, or None; True if its other words are known."""
    said = _numbers_header(header, seen.table)
    return said.target, _are_known(said.further)


def texts_of(header: str, seen: DetectedTable, second: str | None = None) -> list[str]:
    """Return the cells of a column, and of that of its second observer, without empty ones."""
    return [text for _, _, text in seen.cells_of(header, second) if not cells.is_empty(text)]


_KINDS: dict[Kind | None, str] = {
    "number": "numbers",
    "name": "names",
    "yes": "yes or no",
    None: "free text",
}


def kind_of(texts: Sequence[str], header: str = "") -> Kind | None:
    """Return the kind of cells: yes or no (all), numbers (most), names (short texts that recur); None: free text."""
    are_yes_words = {text.casefold() for text in texts} <= {*cells.YES, *cells.NO}
    if are_yes_words and (not all(text in "01" for text in texts) or measures_for(header, "yes")):
        return "yes"
    numbers = sum(re.match(r"[<>≤≥~≈]?\s*[-+]?\d", text) is not None for text in texts)
    if numbers >= _ENOUGH * len(texts):
        return "number"
    short = sum(len(text) <= 40 for text in texts)
    return (
        "name"
        if short >= _ENOUGH * len(texts) and len(set(texts)) <= max(_MOST_NAMES, len(texts) // 2)
        else None
    )


def _stem(header: str, table: SheetTable) -> str:
    """Return a header without the words that alone tell it from others of its stem."""
    group = alike_with(header, table)
    return group.stem if group else header


def _numbers_header(header: str, table: SheetTable) -> Header:
    """Return what the header of a column of numbers says, with the unit of the whole header: a stem has only words."""
    said = read_header(_stem(header, table), "number")
    return said._replace(unit=said.unit or read_header(header, "number").unit)


# Numbers: the header says what is measured, and the cells must fit it.


class _Numbers(NamedTuple):
    """Numbers of a column. ``decimal``: its decimal mark, "" if it is open; ``cell``: one that may be two numbers."""

    values: list[cells.CellQuantity]
    units: Counter[str | None]
    decimal: Decimal | Literal[""]
    cell: str
    is_sure: bool

    def share(self, is_so: Sequence[bool]) -> float:
        return sum(is_so) / len(self.values)


def _numbers(texts: Sequence[str]) -> _Numbers:
    decimal, is_sure, cell = detect_decimal(texts)
    values: list[cells.CellQuantity] = []
    for text in texts:
        with suppress(cells.CellFault):
            values.append(cells.quantity(text, decimal))
    units = Counter(number.unit for number in values)
    return _Numbers(values, units, decimal if is_sure else "", cell, is_sure)


def _read_numbers(header: str, texts: Sequence[str], seen: DetectedTable) -> ColumnReading:
    numbers = _numbers(texts)
    if not numbers.values:
        note = "no numbers that can be read (dates, times, ranges?)"
        return ColumnReading(Column(column=header, ask=NOTHING), note)
    said = _numbers_header(header, seen.table)
    measure = _measure_in_photos(said, seen)
    note = _number_note(numbers, said.unit)
    left = Column(column=header, ask=NOTHING)
    if are_ids := _ids(said, texts):
        return ColumnReading(left, f"{note}; {are_ids}")
    if measure is None and _is_rating(header, numbers):
        rating = Column(column=header, ask=RATING)
        return ColumnReading(rating, f"{note}; a rating", proposed=RATING, is_unknown=True)
    if measure is None:
        note += "; the header does not say what they measure"
        if near := _near_measure(header, said):
            doubt = f"its header has words of {near.name!r}, and others"
            return ColumnReading(Column(column=header), note, doubt)
        return ColumnReading(left, note, is_unknown=True)
    if measure.unit is None and _is_other_quantity(said, numbers):
        return ColumnReading(left, f"{note}; a number of things is no such quantity")
    if _names_one(said, measure) and (counting := _counting_column(header, seen.table)):
        return ColumnReading(left, f"{note}; they name each {said.target}, beside {counting!r}")
    if doubt := _doubt(header, said, measure, numbers):
        is_rating = _may_be_rating(said, measure, numbers) or words_in(
            " ".join(said.further), words_of("rating")
        )
        proposed = RATING if is_rating and measure.unit == "%" else NOTHING
        open_column = Column(column=header, decimal=numbers.decimal)
        return ColumnReading(open_column, f"{note}; {doubt}", doubt, proposed)
    details = _number_details(measure, said, numbers)
    column = Column(column=header, ask=measure.name, **details)
    return ColumnReading(column, note, is_loose=is_loose(_stem(header, seen.table), measure))


def _is_rating(header: str, numbers: _Numbers) -> bool:
    """Return True for small steps below a header with a word of ratings, or with a scale: ``Vigour (0-9)``."""
    values = [number.value for number in numbers.values]
    are_steps = all(2 * each == round(2 * each) for each in values)
    has_word = bool(words_in(header, words_of("rating")) or _SCALE.search(header))
    is_small = min(values) >= 0 and max(values) <= _LARGEST_RATING
    return has_word and are_steps and is_small and set(numbers.units) == {None}


def _near_measure(header: str, said: Header) -> Measure | None:
    """Return a measure of the header's unit of which it has a further word: ``Damage (%)``."""
    return next(
        (
            measure
            for measure in measures().values()
            if measure.kind == "number" and said.unit and measure.unit == said.unit
            if words_in(header, measure.also)
        ),
        None,
    )


def _measure_in_photos(said: Header, seen: DetectedTable) -> Measure | None:
    """Return the measure of a header that has a meaning for the pictures of the table."""
    n_rasters = sum(matched.image.suffix.lower() in (".tif", ".tiff") for matched in seen.matched)
    for measure in said.measures:
        # Canopy heights are values of a raster, which photos do not have.
        if measure.name != "canopy_height" or n_rasters * 2 >= len(seen.matched):
            return measure
    return measures()["count"] if said.target else None


def _is_other_quantity(said: Header, numbers: _Numbers) -> bool:
    """Return True for numbers with a unit, or a weight of apples, where numbers of things are expected."""
    units = {said.unit, numbers.units.most_common(1)[0][0]}
    has_quantity = words_in(" ".join(said.further), words_of("quantity"))
    return bool(units - {None}) or (not said.measures and bool(has_quantity))


def _ids(said: Header, texts: Sequence[str]) -> str:
    """Return why numbers name things, as those of trees or rows; empty if they do not."""
    further = " ".join(said.further)
    if words_in(further, words_of("names_it")):
        return "they name things, as the header says"
    if words_in(further, words_of("rating")):
        return ""
    counts_things = said.measures or said.is_plural
    may_be = words_in(further, words_of("may_name_it")) or not counts_things
    if may_be and _count_up(texts):
        return "they count up and none is missing: they name things"
    return ""


def _count_up(texts: Sequence[str]) -> bool:
    """Return True for whole numbers of which none is left out, each once or in the order of the rows: 1, 1, 2, 3, 3."""
    numbers = [int(text) for text in texts if text.isdecimal()]
    if len(numbers) < len(texts) or len(set(numbers)) < _FEWEST_NUMBERED:
        return False
    none_is_missing = max(numbers) - min(numbers) + 1 == len(set(numbers))
    each_once = len(set(numbers)) == len(numbers)
    return none_is_missing and (each_once or numbers == sorted(numbers))


def _names_one(said: Header, measure: Measure) -> bool:
    """Return True for a header ``Tree``, which may stand above numbers of trees, or above the number of each tree."""
    is_one = measure.name == "count" and not said.measures and not said.is_plural
    return is_one and said.target in ("tree", "plant")


def _counting_column(header: str, table: SheetTable) -> str:
    """Return another column whose header counts things in the plural, as ``Number of apples``; empty if none does."""
    others = (column for column in table.columns if column != header)
    return next((column for column in others if read_header(column, "number").is_plural), "")


def _doubt(header: str, said: Header, measure: Measure, numbers: _Numbers) -> str:
    """Return why numbers may be something else than the measure of their header; empty if nothing speaks for it."""
    values = [number.value for number in numbers.values]
    others = [
        each.name for each in said.measures[1:] if words_in(" ".join(said.further), each.words)
    ]
    if others:
        return f"its header has words of {measure.name!r} and of {others[0]!r}"
    if said.further:
        return f"its header has more than {measure.name!r}: {' '.join(said.further)!r}"
    if said.unit and (measure.unit is None or not compatible(said.unit, measure.unit)):
        return f"its header gives the unit {said.unit}"
    if _names_one(said, measure):
        return f"it may hold the number of one {said.target}"
    if (
        measure.unit is None
        and numbers.share([each != round(each) for each in values]) > 1 - _ENOUGH
    ):
        return "its numbers are not whole"
    is_bare = said.unit is None and set(numbers.units) == {None}
    counted = words_in(header, measure.plurals)
    if counted and is_bare and all(value == round(value) for value in values):
        return f"its whole numbers may be numbers of {counted[0]}"
    if _may_be_rating(said, measure, numbers):
        return f"its numbers up to {max(values):g} may be a rating or percent"
    if said.unit == "fraction" and max(values) > 1:
        return f"its header says 0 to 1, and its numbers go up to {max(values):g}"
    if (
        measure.unit == "%"
        and numbers.share([not 0 <= each <= 100 for each in values]) > 1 - _ENOUGH
    ):
        return "its numbers are above 100 or below 0"
    return ""


def _may_be_rating(said: Header, measure: Measure, numbers: _Numbers) -> bool:
    """Return True for small whole numbers or halves without a unit where shares are expected."""
    if measure.unit != "%" or said.unit or set(numbers.units) != {None}:
        return False
    values = [number.value for number in numbers.values]
    are_steps = all(2 * each == round(2 * each) for each in values)
    return are_steps and 1 < max(values) <= _LARGEST_RATING


def _number_details(measure: Measure, said: Header, numbers: _Numbers) -> dict[str, Any]:
    """Return the keys of a column of numbers: decimal mark, unit, and what is counted or measured."""
    name = said.target or ("fruit" if measure.name == "diameter" else "")
    details: dict[str, Any] = {}
    if measure.name in ("count", "diameter") and (thing := countables().get(name)):
        details = {"target": name, "objects": thing.objects, "objects_zh": thing.objects_zh}
    return {"decimal": numbers.decimal, "unit": _unit_of(measure, said, numbers), **details}


def _unit_of(measure: Measure, said: Header, numbers: _Numbers) -> str | None:
    """Return the unit of numbers without one: from the header, all other cells, or (shares) from their size."""
    if measure.unit is None:
        return None
    largest = max(abs(number.value) for number in numbers.values)
    is_share = measure.unit == "%" and set(numbers.units) == {None}
    if is_share and said.unit in (None, "%"):
        return None if 0 < largest <= 1 else "%"  # spreadsheets store percentages as fractions
    if said.unit:
        return said.unit
    if numbers.units[None]:
        return None
    return next(iter(numbers.units)) if len(numbers.units) == 1 else measure.unit


def _number_note(numbers: _Numbers, of_header: str | None) -> str:
    bare = f"in {of_header} as the header says" if of_header else "without a unit"
    parts = [
        f"{count} in {unit}" if unit else f"{count} {bare}"
        for unit, count in numbers.units.most_common()
    ]
    note = f"numbers: {', '.join(parts)}"
    if numbers.cell:
        taken = "taken as a decimal" if numbers.is_sure else "and no other cell tells"
        note += f"; {numbers.cell} is {both_ways(numbers.cell)}, {taken}"
    return note


def both_ways(cell: str) -> str:
    """Return the numbers that a cell may be, as ``1.2 (decimal mark ".") or 1200 (decimal mark ",")``."""
    read = {mark: cells.quantity(cell, mark).value for mark in (".", ",")}
    return " or ".join(f'{value:.12g} (decimal mark "{mark}")' for mark, value in read.items())


# Names: the knowledge base tells them, whatever the header says.


def _read_names(header: str, texts: Sequence[str], seen: DetectedTable) -> ColumnReading:
    said = read_header(_stem(header, seen.table), "name")
    measure = said.measures[0] if said.measures and not said.further else None
    share = _share_known(texts)
    note = f"{_KINDS['name']}, {len(set(texts))} different"
    reason = ""
    if measure is None and share >= _KNOWN:
        measure, reason = _by_cells(texts)
    if measure is None:
        left = Column(column=header, ask=NOTHING)
        if 0 < share < _SOME_KNOWN and said.measures and said.measures[0].name != CLASS:
            doubt = (
                f"its header has more than {said.measures[0].name!r}: {' '.join(said.further)!r}"
            )
            return ColumnReading(Column(column=header), f"{note}; {doubt}", doubt)
        if share < _SOME_KNOWN:
            return ColumnReading(left, f"{note}, no matching question type", is_unknown=True)
        doubt = "some of its names are diseases, pests or weeds that the knowledge base has"
        return ColumnReading(Column(column=header), f"{note}; {doubt}", doubt)
    if measure.name == CLASS:
        measure, reason = _specific(measure, texts, seen)
    if measure.name == CLASS and share >= _ENOUGH:
        measure, reason = _by_cells(texts)
    column = Column(column=header, ask=measure.name, **_details(header, measure, texts, seen))
    names = ColumnNames.of(column, texts)
    doubt = ""
    if measure.name == CLASS and not all(
        can_be_returned(name, names, seen) for name in names.labels.entries
    ):
        # Names of a class need a pack that has them as labels. Without one, the owner has to say what they are.
        column = column.model_copy(update={"ask": UNDECIDED})
        doubt = "no pack on this machine has all these labels"
        reason += f"; {doubt}"
    on = f"; names of {column.crop}" if column.crop else ""
    note = f"{_KINDS['name']}, {len(names.spelt)} different"
    return ColumnReading(column, f"{note}: {names_text(texts, names)}{reason}{on}", doubt)


def _share_known(texts: Sequence[str]) -> float:
    """Return the share of different names that are diseases, pests, weeds or healthy; 0 if all are healthy."""
    names = set(texts)
    problems = [name for name in names if _problem_kinds(name)]
    healthy = [name for name in names if healthy_crop(name) is not None]
    return len({*problems, *healthy}) / len(names) if problems else 0.0


def _problem_kinds(name: str) -> set[str]:
    if healthy_crop(name) is not None:
        return set()
    return {entry.kind for entry in kb_names().meant_by(name)} & {"disease", "pest", "weed"}


def _by_cells(texts: Sequence[str]) -> tuple[Measure, str]:
    """Return disease, pest or weed: what most of the names in a column are."""
    known = [kinds for name in set(texts) if (kinds := _problem_kinds(name))]
    n_weeds = sum(kinds == {"weed"} for kinds in known)
    are_pests = all("pest" in kinds for kinds in known)
    # A column of diseases may hold pests, too.
    name = "weed" if 2 * n_weeds > len(known) else "pest" if are_pests else "disease"
    return measures()[name], f"; {name} as the knowledge base says"


def _specific(measure: Measure, texts: Sequence[str], seen: DetectedTable) -> tuple[Measure, str]:
    """Return disease, pest or weed for ``class`` if the files' names say so, or most of the names that are known."""
    files = f"{seen.images.folder.name} {seen.table.path.stem}"
    if len(named := [each for each in measures_for(files, "name") if each.name != CLASS]) == 1:
        return named[0], f"; {named[0].name} as the name of the table or folder says"
    meant = [kb_names().meant_by(text) for text in set(texts) if healthy_crop(text) is None]
    known = [{entry.kind for entry in entries} for entries in meant if entries]
    for name in ("disease", "pest", "weed"):
        if 2 * (votes := sum(name in kinds for kinds in known)) > len(known):
            said = f"; {name} in the knowledge base: {votes} of {len(known)} known names"
            return measures()[name], said
    return measure, ""


def _details(
    header: str, measure: Measure, texts: Sequence[str], seen: DetectedTable
) -> dict[str, Any]:
    """Return the keys of a column of names, or of yes and no: the crop, and what a yes means."""
    details: dict[str, Any] = {}
    if measure.kind == "yes":
        details |= {"yes_means": measure.quantity, "yes_means_zh": measure.quantity_zh}
    if measure.name == "diseased" and _HEALTHY.search(header):
        details |= {"yes": cells.NO, "no": cells.YES}
    # Pests live on more crops than the knowledge base lists, so a crop would exclude some of them.
    if measure.name in ("disease", "diseased"):
        details["crop"] = (
            crop_in(header) or _crop_of_table(header, seen) or crop_in(seen.images.folder.name)
        )
    if measure.name == "disease" and details["crop"] is None:
        details["crop"] = _crop_of_names(header, texts)
    return details


def _crop_of_names(header: str, texts: Sequence[str]) -> str | None:
    """Return the crop that the names tell together, or the only one on which each of them is known."""
    labels = ColumnNames.of(Column(column=header, ask="disease"), texts).labels
    only = set(labels.unclear.values())
    if labels.crop is None and len(only) == 1 and len(crops := only.pop()) == 1:
        return crops[0]
    return labels.crop


def _crop_of_table(header: str, seen: DetectedTable) -> str | None:
    """Return the crop in a column of crops, if all rows with a cell in the column ``header`` have the same."""
    for column in seen.table.columns:
        words = re.sub(r"[\W_]+", " ", column.casefold()).strip()
        if column == header or words not in words_of("crop"):
            continue
        places = [seen.table.place_of(name) for name in (header, column)]
        rows = [[matched.cells[place] for place in places] for matched in seen.matched]
        crops = {crop_in(crop) for cell, crop in rows if not cells.is_empty(cell)}
        if len(crops) == 1:
            return crops.pop()
    return None


@cache
def crop_in(text: str) -> str | None:
    """Return the English name of a crop that a text names, in any of the known languages; None if it names none."""
    words = re.sub(r"[\W_]+", " ", text.casefold())
    crops = [entry.names.en for entry in kb_names().entries if entry.kind == "crop"]
    if named := next((crop for crop in crops if holds(words, crop.casefold())), None):
        return named
    return next((crop for word in words.split() if (crop := english_crop(word))), None)


def is_in_doubt(name: str) -> bool:
    """Return True for a name that the table itself doubts: ``rust?``."""
    return name.endswith(("?", "？"))


def can_be_returned(name: str, names: ColumnNames, seen: DetectedTable) -> bool:
    """Return True if the knowledge base has a name, or a pack has it as a label, and it is not in doubt."""
    if is_in_doubt(name):
        return False
    if names.is_known(name) or name in seen.pack_labels:
        return True
    return any(name in info.classes for info in list_packs()[0])


def names_text(texts: Sequence[str], names: ColumnNames) -> str:
    """Return the things that a column names with their counts, a mark on those that the knowledge base does not have,
    and their other spellings."""
    counted = Counter(map(names.label_of, texts))
    counts = sorted(counted.items(), key=lambda item: (names.is_known(item[0]), -item[1]))
    some: list[str] = []
    for name, n in counts:
        unknown = "" if names.is_known(name) else ", unknown to the knowledge base"
        others = [each for each in names.spellings_of(name) if each != name]
        also = f"; also written {', '.join(others)}" if others else ""
        some.append(f"{name} ({n}{unknown}{also})")
    more = [f"{len(some) - _MOST_LISTED} more"] if len(some) > _MOST_LISTED else []
    return ", ".join([*some[:_MOST_LISTED], *more])


def _read_yes(header: str, texts: Sequence[str], seen: DetectedTable) -> ColumnReading:
    said = read_header(_stem(header, seen.table), "yes")
    note = f"{_KINDS['yes']}, {len(set(texts))} different"
    of_names = read_header(_stem(header, seen.table), "name")
    if not said.measures and of_names.measures and not of_names.further:
        doubt = "its header is one of names, its cells are yes and no"
        return ColumnReading(Column(column=header), f"{note}; {doubt}", doubt)
    if not said.measures:
        left = Column(column=header, ask=NOTHING)
        return ColumnReading(left, f"{note}, no matching question type", is_unknown=True)
    measure = said.measures[0]
    if said.further:
        doubt = f"its header has more than {measure.name!r}: {' '.join(said.further)!r}"
        return ColumnReading(Column(column=header), f"{note}; {doubt}", doubt)
    return ColumnReading(
        Column(column=header, ask=measure.name, **_details(header, measure, texts, seen)), note
    )


def choices_of(kind: Kind | None, proposed: str) -> tuple[str, ...]:
    """Return what a column of cells of one kind may hold, the proposed one first."""
    kinds: Mapping[Kind | None, tuple[Kind, ...]] = {"number": ("number",), "yes": ("yes", "name")}
    fitting = [
        name for name, measure in measures().items() if measure.kind in kinds.get(kind, ("name",))
    ]
    others = [RATING] if kind == "number" else []
    return tuple(dict.fromkeys((proposed, NOTHING, *fitting, *others, "slice")))
