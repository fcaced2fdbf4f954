"""Proposal of a plan for a table, and the questions that only the owner of the photos can answer."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from agrotools.build.own_photos import cells
from agrotools.build.own_photos.nearest import nearest_names
from agrotools.build.own_photos.plan import (
    NOTHING,
    UNDECIDED,
    Column,
    Kind,
    Measure,
    Plan,
    countables,
    measures,
)
from agrotools.build.own_photos.questions import ColumnNames
from agrotools.build.own_photos.table import DetectedTable
from agrotools.core import BenchmarkError
from agrotools.knowledge.kb_names import healthy_crop, kb_names
from agrotools.text.decimal_marks import detect_decimal
from agrotools.text.normalise import CJK, WORD_END, WORD_START
from agrotools.text.tables import Table
from agrotools.text.units import canonical_unit
from agrotools.tools.counting.tool import singular
from agrotools.tools.recognition.packs import list_packs


class OpenQuestion(NamedTuple):
    """A key that must be filled in before a column can be used; ``question`` is the text shown to the user."""

    column: str
    key: str
    question: str
    choices: tuple[str, ...] = ()
    or_key: str | None = None
    """Alternative key that would also do."""
    part: str | None = None
    """Name in the table that the question is about, if the key maps names."""


def open_questions(plan: Plan, seen: DetectedTable) -> list[OpenQuestion]:
    """Return all open questions of a plan, in the order of its columns."""
    return [need for column in plan.columns for need in open_questions_of_column(column, seen)]


def open_questions_of_column(column: Column, seen: DetectedTable) -> list[OpenQuestion]:
    """Return the open questions about one column."""
    if column.ask in column.UNASKED:
        return []
    name = column.column
    if column.ask == UNDECIDED:
        choices = (*measures(), *column.UNASKED)
        alike = next((group for group in seen.table.alike if name in group), ())
        listed = seen.table.placed(alike)
        more = f" {_NAMESAKES.capitalize()}, {listed}: use one, or rename them." if alike else ""
        return [OpenQuestion(name, "ask", f"What does column {name!r} contain?{more}", choices)]
    measure = measures()[column.ask]
    lacking: list[OpenQuestion] = []

    def ask(
        key: str,
        question: str,
        *choices: str,
        or_key: str | None = None,
        part: str | None = None,
    ) -> None:
        lacking.append(OpenQuestion(name, key, question, choices, or_key, part))

    if measure.kind == "number" and measure.unit and not column.unit:
        ask("unit", f"Which unit do numbers without a unit have in {name!r}?")
    if measure.kind == "number" and not column.decimal:
        *_, cell = detect_decimal(text for _, _, text in seen.cells_of(name, column.second))
        ask("decimal", f"Is {cell or '1,234'} in {name!r} {_both_ways(cell or '1,234')}?")
    if column.ask == "count" and not column.target:
        ask(
            "target",
            f"What is counted in {name!r}, as a singular noun ({', '.join(countables())}...)?",
        )
    if column.ask == "diameter" and not column.distance_mm:
        ask("distance_mm", f"How far were the fruits of {name!r} from the camera, in millimetres?")
    if column.ask == "diameter" and not column.fx_px:
        pixels = "focal length / sensor width x image width"
        ask("fx_px", f"What is the focal length of the camera in pixels ({pixels})?")
    if column.ask == "plant_height" and not (column.px_per_cm or column.marker_cm):
        ask(
            "px_per_cm",
            f"How many pixels are one centimetre at the plants of {name!r}?",
            or_key="marker_cm",
        )
    if measure.kind == "name" and column.ask != CLASS:  # names of a class stand for themselves
        names = names_of(seen, column)
        unknown = unknown_names(seen, column)
        if unclear := names.labels.unclear:
            ask("crop", _which_crop(column, unclear))
        if unknown and not _known_problems(names):
            ask("ask", _which_names(column, unknown), CLASS, NOTHING, or_key=NAMES)
        else:
            for text, rows in unknown.items():
                ask(NAMES, _what_is_meant(column, text, rows), part=text)
    if measure.kind == "yes" and not column.yes_means:
        ask("yes_means", f"What does a yes in {name!r} mean, as a sentence about the photo?")
    return lacking


def _which_crop(column: Column, unclear: Mapping[str, Sequence[str]]) -> str:
    """Return the question for the crop of names that the knowledge base has for other crops, or for several."""
    known = "; ".join(
        f"{name!r} is known on {', '.join(crops[:_CROPS_NAMED])}{', ...' * (len(crops) > _CROPS_NAMED)}"
        for name, crops in unclear.items()
    )
    if column.crop:
        instead = "correct the crop, or write these names with their crop, as in 'bean rust'"
        return f"Is {column.crop!r} the crop of all photos of {column.column!r}? {known}: {instead}"
    return (
        f"Which crop do the photos of {column.column!r} show? {known}. Names with their crop need none: 'bean rust'. "
        f'For photos of several crops: ask = "class", quantity = "{column.ask}"'
    )


def _both_ways(cell: str) -> str:
    """Return the numbers that a cell may be, as ``1.2 (decimal mark ".") or 1200 (decimal mark ",")``."""
    read = {mark: cells.quantity(cell, mark).value for mark in (".", ",")}
    return " or ".join(f'{value:.12g} (decimal mark "{mark}")' for mark, value in read.items())


def _known_problems(names: ColumnNames) -> list[str]:
    """Return the names of a column that a tool may return, without those of healthy plants."""
    problems = [name for name in names.labels.entries if not names.is_healthy(name)]
    return [name for name in problems if _can_be_returned(name, names)]


def _can_be_returned(name: str, names: ColumnNames) -> bool:
    """Return True if the knowledge base has a name, or a pack has it as a label."""
    return names.is_known(name) or any(name in info.classes for info in list_packs()[0])


def _which_names(column: Column, unknown: Mapping[str, int]) -> str:
    some = list(unknown)[:_MOST_LISTED]
    listed = "; ".join(f"{name!r}{_near(name, column)}" for name in some)
    more = f"; {len(unknown) - len(some)} more" if len(unknown) > len(some) else ""
    return (
        f"The knowledge base has none of the names of {column.column!r}, so that no tool result can match one: "
        f"{listed}{more}. Write names that agrotools tools kb search finds, or choose {CLASS!r} and train a pack on "
        "your photos"
    )


def _what_is_meant(column: Column, name: str, n_cells: int) -> str:
    counted = f"{n_cells} cell{'s' if n_cells > 1 else ''}"
    written = column.names.get(name, name)
    given = f"{name!r} ({counted})" if written == name else f"{written!r}, given for {name!r},"
    return (
        f"{given} is not in the knowledge base{_near(written, column)}. Which known name does it mean? "
        f"{NOTHING!r} leaves its rows out"
    )


def _near(name: str, column: Column) -> str:
    near = nearest_names(name, column.ask, column.crop)
    return f" (nearest: {', '.join(near)})" if near else " (no known name is near)"


def unknown_reason(name: str, column: Column) -> str:
    """Return why the cells with a name are not used, as the continuation of "the cell ..."."""
    if column.names.get(name) == NOTHING:
        return "is left out by names in the plan"
    return f"is not in the knowledge base{_near(column.names.get(name, name), column)}"


def names_of(seen: DetectedTable, column: Column) -> ColumnNames:
    """Return what the names in the cells of a column mean, resolved together; unusable cells are left out."""
    meant = {column.meaning_of(name) for name in _names_in_cells(seen, column)}
    return ColumnNames.of(column, filter(None, meant))


def unknown_names(seen: DetectedTable, column: Column) -> dict[str, int]:
    """Return the names in the cells of a column that no tool result can match, with the number of their cells.

    Rows that the plan leaves out are not counted.
    """
    names = names_of(seen, column)
    unknown = Counter[str]()
    for name, n_cells in Counter(_names_in_cells(seen, column)).items():
        meant = column.meaning_of(name)
        if meant is not None and not _can_be_returned(meant, names):
            unknown[name] = n_cells
    return dict(unknown.most_common())


def _names_in_cells(seen: DetectedTable, column: Column) -> Iterator[str]:
    """Yield the name in each cell of a column and of its second observer; cells without a usable one are left out."""
    for _, _, text in seen.cells_of(column.column, column.second):
        with suppress(cells.CellFault):
            if not cells.is_empty(text):
                yield cells.name(text)


_CROPS_NAMED = 4
_MOST_NAMES, _MOST_LISTED = 60, 12
_ENOUGH = 0.8
NAMES = "names"
"""Key of a plan for what unknown names in the table mean."""
CLASS = "class"
"""Measure of a column of names whose header does not say what they are of."""
_UNIT_IN_HEADER = re.compile(
    r"[\[(（【]\s*([^\])）】]+)\s*[\])）】]|[_ ](mm|cm|m|pct|percent|%)$|(%)", re.IGNORECASE
)
_UNNAMED = re.compile(r"(?:column|Unnamed:) \d+")
_NAMESAKES = "the table has several columns of this name"
EMPTY = "empty in all rows with a photo"
"""Note on a column without any answer."""


class Proposal(NamedTuple):
    """A plan, and notes on how each column was interpreted and why."""

    plan: Plan
    notes: dict[str, str]


QUESTIONS_A_PHOTO = 2
"""Questions of a new plan per photo with a row; the owner may ask for more."""
MOST_QUESTIONS = 100
"""Largest number of questions of a new plan."""


def propose_plan(seen: DetectedTable, name: str) -> Proposal:
    """Propose a plan, with gaps (:func:`open_questions`); BenchmarkError if no column contains an answer."""
    table, notes = seen.table, dict[str, str]()
    columns = list(_proposed_columns(seen, notes))
    if all(column.ask == "slice" or notes[column.column] == EMPTY for column in columns):
        empty = [header for header, note in notes.items() if note == EMPTY]
        what = (
            ", ".join(f"column {header!r} is {EMPTY}" for header in empty)
            or "its columns name photos and groups"
        )
        why = (
            f"{table.path.name} contains no answers: {'; '.join([what, *seen.skipped.lines()[:2]])}"
        )
        raise BenchmarkError(why, hint="write the answers into the table, one row for each photo")
    is_chinese = 2 * sum(bool(re.search(f"[{CJK}]", header)) for header in table.columns) > len(
        table.columns
    )
    unused = {} if is_chinese else {"objects_zh": None, "yes_means_zh": None}
    plan = Plan(
        name=re.sub(r"[^a-z0-9_.-]+", "-", name.casefold()).strip("-._")[:60] or "my-farm",
        images_column=seen.images_column,
        languages=("zh",) if is_chinese else ("en",),
        samples=min(
            MOST_QUESTIONS, QUESTIONS_A_PHOTO * len({matched.image for matched in seen.matched})
        ),
        encoding=table.encoding,
        delimiter=table.delimiter,
        sheet=table.sheet,
        columns=tuple(column.model_copy(update=unused) for column in columns),
    )
    return Proposal(plan, notes)


def _proposed_columns(seen: DetectedTable, notes: dict[str, str]) -> Iterator[Column]:
    """Yield the columns of a plan, and write how each was interpreted into ``notes``."""
    seconds = _second_observers(seen.table)
    for header in seen.table.columns:
        if header == seen.images_column or header in seconds.values():
            continue
        texts = [
            text
            for _, _, text in seen.cells_of(header, seconds.get(header))
            if not cells.is_empty(text)
        ]
        column, notes[header] = _proposed(header, texts, seen)
        notes[header] += f"; {seconds[header]} is of a second observer" if header in seconds else ""
        if column.is_asked and header in seen.table.namesakes:
            column = column.model_copy(update={"ask": UNDECIDED})
            notes[header] += f"; {_NAMESAKES}"
        yield column.model_copy(update={"second": seconds.get(header)})


def _second_observers(table: Table) -> dict[str, str]:
    """Return pairs of columns of one stem, as ``rust_1`` and ``rust_2`` or ``name A`` and ``name B``."""
    stems: dict[str, dict[str, str]] = {}
    for header in () if table.is_counts else table.columns:
        if match := re.fullmatch(r"(.*\w)[\W_]+([1-9a-z])[\W_]*", header.casefold()):
            stems.setdefault(match[1], {})[match[2]] = header
    return {
        of[min(of)]: of[max(of)] for of in stems.values() if "".join(sorted(of)) in ("12", "ab")
    }


def _proposed(header: str, texts: Sequence[str], seen: DetectedTable) -> tuple[Column, str]:
    if not texts:
        return Column(column=header, ask=NOTHING), EMPTY
    if seen.table.is_counts:
        # Its own words are what is counted: a ripe apple is not any apple.
        target = singular(re.sub(r"[\W_]+", " ", header).strip().casefold()[:80])
        thing = countables().get(target)
        return Column(
            column=header, ask="count", target=target, objects=thing and thing.objects
        ), seen.table.described
    numbers = (
        [int(text) for text in texts if text.isdecimal()] if _UNNAMED.fullmatch(header) else []
    )
    if len(numbers) == len(texts) and numbers == sorted({*numbers}):
        return Column(
            column=header, ask=NOTHING
        ), "numbers of the rows, as pandas and R write them without a name"
    if header.casefold() in Column.SLICES:
        return Column(column=header, ask="slice"), f"groups of photos, {len(set(texts))} different"
    kind = kind_of(texts, header)
    fitting = measures_for(header, kind)
    rasters = sum(matched.image.suffix.lower() in (".tif", ".tiff") for matched in seen.matched)
    if rasters * 2 < len(
        seen.matched
    ):  # Canopy heights are values of a raster, which photos do not have.
        fitting = [measure for measure in fitting if measure.name != "canopy_height"]
    if kind == "number":
        return _number_column(header, texts, fitting[0] if fitting else None)
    if not fitting:
        return Column(column=header, ask=NOTHING), f"{_KINDS[kind]}, no matching question type"
    measure, reason = _specific(fitting[0], texts, seen)
    changes: dict[str, Any] = {}
    if measure.kind == "yes":
        changes |= {"yes_means": measure.quantity, "yes_means_zh": measure.quantity_zh}
    if measure.name == "diseased" and re.search(r"health|健康", header, re.IGNORECASE):
        changes |= {"yes": cells.NO, "no": cells.YES}
    # Pests live on more crops than the knowledge base lists, so a crop would exclude some of them.
    if measure.name in ("disease", "diseased") and (
        crop := _crop_in(f"{header} {seen.images.folder.name}")
    ):
        changes["crop"] = crop
    column = Column(column=header, ask=measure.name, **changes)
    if kind != "name":
        return column, f"{_KINDS[kind]}, {len(set(texts))} different{reason}"
    names = ColumnNames.of(column, texts)
    if measure.name == CLASS and not all(
        _can_be_returned(name, names) for name in names.labels.entries
    ):
        # Names of a class need a pack that has them as labels. Without one, the owner has to say what they are.
        column = column.model_copy(update={"ask": UNDECIDED})
        reason += "; no pack on this machine has all these labels"
    on = f"; names of {crop}" if (crop := names.labels.crop) and not column.crop else ""
    return (
        column,
        f"{_KINDS[kind]}, {len(set(texts))} different: {names_text(texts, names)}{reason}{on}",
    )


def _specific(measure: Measure, texts: Sequence[str], seen: DetectedTable) -> tuple[Measure, str]:
    """Return disease, pest or weed for ``class`` if the files' names say so, or most of the names that are known."""
    if measure.name != CLASS:
        return measure, ""
    files = f"{seen.images.folder.name} {seen.table.path.stem}"
    if len(named := [each for each in measures_for(files, "name") if each.name != CLASS]) == 1:
        return named[0], f"; {named[0].name} as the name of the table or folder says"
    meant = [kb_names().meant_by(text) for text in set(texts) if healthy_crop(text) is None]
    known = [{entry.kind for entry in entries} for entries in meant if entries]
    for name in ("disease", "pest", "weed"):
        if 2 * (votes := sum(name in kinds for kinds in known)) > len(known):
            return measures()[
                name
            ], f"; {name} in the knowledge base: {votes} of {len(known)} known names"
    return measure, ""


def names_text(texts: Sequence[str], names: ColumnNames) -> str:
    """Return the names in a column with their counts, and a mark on those that the knowledge base does not have."""
    counts = sorted(Counter(texts).items(), key=lambda item: (names.is_known(item[0]), -item[1]))
    some = [
        f"{name} ({n}{'' if names.is_known(name) else ', unknown to the knowledge base'})"
        for name, n in counts
    ]
    more = [f"{len(some) - _MOST_LISTED} more"] if len(some) > _MOST_LISTED else []
    return ", ".join([*some[:_MOST_LISTED], *more])


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


def measures_for(header: str, kind: Kind | None) -> list[Measure]:
    """Return the measures of that kind whose words occur in the header, the longest matching word first."""
    of_kind = (measure for measure in measures().values() if measure.kind == kind)
    longest = [
        (max((len(w) for w in each.words if _holds(header, w)), default=0), each)
        for each in of_kind
    ]
    return [measure for length, measure in sorted(longest, key=lambda item: -item[0]) if length]


def _holds(header: str, word: str) -> bool:
    plain = re.sub(r"[_\s]+", " ", header.casefold())
    if re.search(f"[{CJK}]", word):
        return word in plain
    return (
        re.search(
            rf"{WORD_START}{re.escape(word.replace('_', ' ').strip())}(?:s|es)?{WORD_END}", plain
        )
        is not None
    )


def _number_column(
    header: str, texts: Sequence[str], measure: Measure | None
) -> tuple[Column, str]:
    decimal, sure, cell = detect_decimal(texts)
    known = decimal if sure else ""
    numbers: list[cells.Quantity] = []
    for text in texts:
        with suppress(cells.CellFault):
            numbers.append(cells.quantity(text, decimal))
    if not numbers:
        return Column(
            column=header, ask=NOTHING
        ), "no numbers that can be read (dates, times, ranges?)"
    units = Counter(number.unit for number in numbers)
    target = next(
        (
            name
            for name, thing in countables().items()
            if any(_holds(header, w) for w in thing.words)
        ),
        None,
    )
    if measure is None and target and not (units.keys() - {None}) and _unit_in(header) is None:
        measure = measures()["count"]
    if measure is None:
        measure = {"mm": measures()["diameter"], "cm": measures()["plant_height"]}.get(
            units.most_common(1)[0][0] or ""
        )
    parts = [
        f"{count} in {unit}" if unit else f"{count} without a unit"
        for unit, count in units.most_common()
    ]
    note = f"numbers: {', '.join(parts)}"
    if cell:
        note += f"; {cell} is {_both_ways(cell)}{', and no other cell tells' if not sure else ', taken as a decimal'}"
    if measure is None:
        return Column(
            column=header, decimal=known
        ), f"{note}; the header does not say what they measure"
    details: dict[str, Any] = {}
    name = target or ("fruit" if measure.name == "diameter" else "")
    if measure.name in ("count", "diameter") and (thing := countables().get(name)):
        details = {"target": name, "objects": thing.objects, "objects_zh": thing.objects_zh}
    largest = max(abs(number.value) for number in numbers)
    unit = _unit_of(header, units, measure, largest)
    return Column(column=header, ask=measure.name, decimal=known, unit=unit, **details), note


def _unit_of(
    header: str, units: Counter[str | None], measure: Measure, largest: float
) -> str | None:
    """Return the unit of numbers without one: from the header, all other cells, or (shares) from their size."""
    if measure.unit is None:
        return None
    unit, is_share = _unit_in(header), measure.unit == "%" and set(units) == {None}
    if is_share and unit in (None, "%"):
        return None if 0 < largest <= 1 else "%"  # spreadsheets store percentages as fractions
    if unit or (not units[None] and len(units) == 1):
        return unit or next(iter(units))
    return None if units[None] else measure.unit


def _unit_in(header: str) -> str | None:
    match = _UNIT_IN_HEADER.search(header)
    return match and canonical_unit(next(filter(None, match.groups())))


def _crop_in(text: str) -> str | None:
    words = re.sub(r"[\W_]+", " ", text.casefold())
    crops = [entry for entry in kb_names().entries if entry.kind == "crop"]
    return next(
        (entry.names.en for entry in crops if _holds(words, entry.names.en.casefold())), None
    )
