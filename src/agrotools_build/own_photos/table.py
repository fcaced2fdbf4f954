"""Tables of ground truth, and the pictures that their rows name."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from agrotools.core import BenchmarkError
from agrotools.core.errors import NoFileError
from agrotools.core.files import sha256_of_file
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.formats.picture_folder import (
    IMAGE_HEADER,
    IMAGE_NAME,
    IMAGES_OPTION,
    SUFFIXES,
    Images,
    image_column,
    named_picture,
    require_header,
    rows_of,
)
from agrotools.text.cells import is_empty
from agrotools.text.tables import (
    UNNAMED,
    UNTOLD,
    CellFault,
    HeaderRows,
    Row,
    SheetTable,
    columns_alike,
    encodings_beside_latin,
    encodings_in_doubt,
    formulas_without_value,
    open_table,
    unique_names,
)
from agrotools_build.annotation_formats import Marked
from agrotools_build.boxes import (
    FITTED,
    FORMATS,
    GROUPS,
    LEFT_OUT,
    SIZES,
    Fit,
    Size,
    choose_sizes,
    count_marks,
    find_photos,
    fit_of,
    marks_outside,
    photo_sizes,
    read_marks,
    size_fault,
)
from agrotools_build.own_photos.copies import name_before_export
from agrotools_build.own_photos.form_groups import without_groups
from agrotools_build.own_photos.missing import (
    is_note,
    photos_by_number,
    refuse_if_most_are_missing,
    say_which_are_missing,
    skip_missing,
)
from agrotools_build.own_photos.plan import Plan, SkippedRows, listed
from agrotools_build.own_photos.together import NamedSheet, joined

MOST_MATCHED = 200_000
"""Maximum number of rows with a picture that are kept; larger benchmarks are not needed."""


class Matched(NamedTuple):
    """A row with its picture."""

    row: int
    image: Path
    cells: tuple[str, ...]


@dataclass(frozen=True)
class DetectedTable:
    """Rows matched to pictures. ``rows``: number of rows in the table; ``skipped``: rows that were not kept.

    ``copies``: matched pictures with the same bytes as another one, each with the first of them. ``beside``: columns
    that stand behind another column of photos, each with that one: what they hold is of other photos. ``n_elsewhere``:
    rows with a picture that belong to another table below the first.
    """

    images: Images
    table: SheetTable
    images_column: str
    matched: tuple[Matched, ...]
    rows: int
    skipped: SkippedRows
    copies: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    beside: Mapping[str, str] = field(default_factory=dict[str, str])
    n_elsewhere: int = 0
    sources: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """Name of the photo that a picture is a copy of, where annotations give it."""
    pack_labels: frozenset[str] = frozenset()
    """Labels of the packs that the build is given."""

    def cells_of(self, *columns: str | None) -> list[tuple[int, Path, str]]:
        """Return row number, picture and text of each cell of columns; BenchmarkError if there is no such column."""
        places = [self.table.place_of(column) for column in columns if column]
        return [
            (matched.row, matched.image, matched.cells[place])
            for place in places
            for matched in self.matched
        ]


_OF_ANNOTATIONS = ("attribute", GROUPS, SIZES)
"""Keys of a plan that say how annotations are read."""
ENCODING = "--set=encoding"
"""Option that names the encoding of a CSV file."""
HEADER = "header"
UNNAMED_ROWS = "unnamed_rows"
PHOTO_NUMBERS = "photo_numbers"
SETTINGS = (
    "encoding",
    "delimiter",
    "sheet",
    HEADER,
    "images_column",
    UNNAMED_ROWS,
    PHOTO_NUMBERS,
    *_OF_ANNOTATIONS,
)
"""Keys of a plan that say how the table is read; its columns depend on them."""


def match_rows(
    images: Path,
    answers: Path,
    plan: Plan | None = None,
    readings: Readings | None = None,
    given: Mapping[str, str] | None = None,
    together: Sequence[str] = (),
) -> DetectedTable:
    """Read the table and keep the rows whose picture is in the folder.

    Args:
        images: the folder of the pictures.
        answers: the table, or annotations.
        plan: says how the table is read; None to detect it.
        readings: what is said about the files.
        given: values of :data:`SETTINGS` that count instead of those of the plan.
        together: sheets of a workbook that are read as one table.

    Raises:
        BenchmarkError: the table cannot be read, or no row belongs to a picture.
        UsageError: a given value is none of those that are possible.
    """
    readings = Readings() if readings is None else readings
    pictures = Images(images)
    skipped = SkippedRows()
    settings = _Settings.of(plan, given)
    sources: dict[Path, str] = {}
    table = _table_of(answers, settings, pictures, together, skipped, readings, sources)
    of_plan = [each.column for each in plan.columns] if plan else []
    table = without_groups(table, {settings.images_column, *of_plan}, readings)
    require_header(table)
    _skip_formulas(answers, table, together, skipped, readings)
    wanted = table.columns[0] if together else settings.images_column
    column = wanted or _photos_column(pictures, table, readings)
    for asked in plan.columns if plan else ():
        table.require_columns(asked.column, asked.second or column)
    found = _matching(table, column, pictures, skipped, readings)
    _leave_rows_of_other_column(found, column, skipped, readings)
    _take_rows_below(found, table, settings.unnamed_rows, readings)
    _take_numbers(found, table, column, pictures, settings.photo_numbers, readings)
    doubtful = _skip_doubtful(found, column, table.place_of(column), skipped)
    matched = [each for each in found.matched if each.image not in doubtful]
    without_row = without_a_row(pictures, (each.image for each in matched))
    missing = skip_missing(column, found.missing, without_row, skipped)
    if not matched:
        reasons = "; ".join(skipped.lines()[:3]) or "no rows"
        why = f"no row of {answers.name} belongs to a picture in {images}: {reasons}"
        hint = f"the folder contains {', '.join(pictures.some_names())}...; write such names into column {column!r}"
        raise BenchmarkError(why, hint=hint)
    refuse_if_most_are_missing(
        answers, pictures.folder, column, missing, len(matched), without_row, len(pictures)
    )
    _say_what_was_read(table, column, found.by_name_alone(doubtful), together, readings)
    say_which_are_missing(missing, readings)
    _say_what_was_left(pictures, without_row, matched, readings)
    copies = _copies(each.image for each in matched)
    beside = _beside_other_photos(table, column, pictures, matched)
    return DetectedTable(
        pictures,
        table,
        column,
        tuple(matched),
        found.rows,
        skipped,
        copies,
        beside,
        n_elsewhere=sum(named_picture(pictures, cell) is not None for cell in found.elsewhere),
        sources=sources,
    )


def _photos_column(images: Images, table: SheetTable, readings: Readings) -> str:
    """Return the column that names the photos, or else one with the numbers at the end of their names.

    Raises:
        BenchmarkError: there is none.
    """
    try:
        return image_column(images, table, readings)
    except NoFileError:
        numbered = _columns_of_numbers(images, table)
        if not numbered:
            raise
    names_files = any(named_picture(images, cell) for _, cell in numbered[0].cells)
    question = ReadingQuestion(
        f"No column of {table.described_file} has names of photos. Which one has their numbers?",
        IMAGES_OPTION,
        tuple(Choice(each.name, each.example) for each in numbered),
        # 1.jpg is found by its name: nothing else asks whether 1 means it. Of IMG_1.jpg, _take_numbers asks.
        is_open=names_files,
    )
    return readings.choose(question)


class _NumberedColumn(NamedTuple):
    """A column with numbers of photos. ``cells``: with their rows; ``example``: ``14 rows, 1 is IMG_0001.jpg``."""

    name: str
    cells: list[tuple[int, str]]
    example: str


def _columns_of_numbers(images: Images, table: SheetTable) -> list[_NumberedColumn]:
    """Return the columns in which most cells are the number of a photo, each of another one; the best first."""
    rows = [*islice(rows_of(table), MOST_MATCHED)]
    found: list[tuple[int, _NumberedColumn]] = []
    for place, name in enumerate(table.columns):
        cells = [(row, row_cells[place]) for row, row_cells in rows if row_cells[place]]
        photos = photos_by_number(cells, images.paths)
        if len(photos) < _FEWEST_NUMBERS or len(photos) <= len(rows) / 2:
            continue
        row, photo = next(iter(photos.items()))
        example = f"{len(photos)} rows, {dict(cells)[row]} is {photo.name}"
        found.append((len(photos), _NumberedColumn(name, cells, example)))
    found.sort(key=lambda each: -each[0])
    return [column for _, column in found]


@dataclass(frozen=True)
class _Settings:
    """How the table is read. ``opening``: values for :func:`open_table`; ``annotations``: for those of annotations."""

    images_column: str | None
    unnamed_rows: str | None
    photo_numbers: str | None
    annotations: Mapping[str, str]
    opening: Mapping[str, Any]

    @classmethod
    def of(cls, plan: Plan | None, given: Mapping[str, str] | None) -> "_Settings":
        """Return the settings of a plan, with the given values in place of its own."""
        values: dict[str, Any] = plan.model_dump(include={*SETTINGS}) if plan else {}
        values.update(given or {})
        images_column = values.pop("images_column", None)
        unnamed_rows = values.pop(UNNAMED_ROWS, None)
        photo_numbers = values.pop(PHOTO_NUMBERS, None)
        annotations: dict[str, str] = {}
        for key in _OF_ANNOTATIONS:
            value = values.pop(key, None)
            if value:
                annotations[key] = value
        return cls(images_column, unnamed_rows, photo_numbers, annotations, opening=values)


def _table_of(
    answers: Path,
    settings: _Settings,
    images: Images,
    together: Sequence[str],
    skipped: SkippedRows,
    readings: Readings,
    sources: dict[Path, str],
) -> SheetTable:
    """Return the table in a file, or one that is counted from annotations, which then fill ``sources``."""
    annotated = read_marks(answers, hint=FORMATS, readings=readings, given=settings.annotations)
    if annotated is None:
        return _opened(
            images, answers, settings.opening, together, readings, settings.images_column
        )
    return _counts(
        answers,
        annotated,
        images,
        skipped,
        readings,
        wanted=settings.images_column,
        sizes_as=settings.annotations.get(SIZES),
        sources=sources,
    )


def _skip_formulas(
    answers: Path,
    table: SheetTable,
    together: Sequence[str],
    skipped: SkippedRows,
    readings: Readings,
) -> None:
    """Note the cells with a formula whose value the workbook does not hold."""
    sheets = together or ([table.sheet] if table.sheet is not None else [])
    for sheet in sheets:
        formulas = formulas_without_value(answers, sheet)
        for cell in formulas:
            what = f'sheet "{sheet}"'
            reason = "has a formula without its value, and is taken as empty"
            skipped.add(what, reason, "open and save the file in Excel or LibreOffice", None, cell)
        if formulas:
            readings.leave(
                f'{len(formulas)} formulas without their values in sheet "{sheet}" ({listed(formulas)}; open and save '
                "the file in Excel or LibreOffice)"
            )


@dataclass
class _Matching:
    """What the cells of the photos name. ``missing``: rows whose picture is not there, with their cells.

    ``by_stem``: pictures that were found by their name without the suffix, as they are told to the user; ``by_end``:
    pictures that were found by the end of a path, with the paths that were written.
    """

    rows: int = 0
    matched: list[Matched] = field(default_factory=list[Matched])
    missing: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    by_stem: list[str] = field(default_factory=list[str])
    by_end: dict[Path, set[str]] = field(default_factory=dict[Path, set[str]])
    below: list[Matched] = field(default_factory=list[Matched])
    """Rows without a name of a photo, each with the photo of the nearest row above that has one."""
    elsewhere: list[str] = field(default_factory=list[str])
    """Cells that name the photos in rows of another table below the first."""
    in_other_column: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Rows that name no photo in the column of the photos but one in another column, by that column."""

    def doubtful(self) -> set[Path]:
        """Return the pictures that several paths end like: 2024/IMG_1.jpg and 2025/IMG_1.jpg are two photos."""
        return {image for image, written in self.by_end.items() if len(written) > 1}

    def by_name_alone(self, doubtful: Collection[Path]) -> list[str]:
        """Return the pictures that were found by a part of what is written, with what is written."""
        by_end = [
            f"{image.name} for {min(written)}"
            for image, written in self.by_end.items()
            if image not in doubtful
        ]
        return [*self.by_stem, *by_end]


def _matching(
    table: SheetTable, column: str, images: Images, skipped: SkippedRows, readings: Readings
) -> _Matching:
    """Look for the picture of each row: by what is written, by the name without suffix, by the end of a path."""
    found = _Matching()
    place = table.place_of(column)
    above: Path | None = None
    for row, cells in _rows_of_first_table(table, column, images, found, skipped, readings):
        found.rows += 1
        cell = cells[place]
        try:
            image = images.find(cell)
        except CellFault as fault:
            skipped.add(column, fault.reason, fault.hint, row, cell[:60])
            continue
        # Photos of annotations have been looked for already, with the folders in their names.
        if image is None and not table.is_of_annotations:
            image = _found_by_part(images, cell, found)
        other = "" if cell else _column_with_other_photo(table, cells, images, above)
        if other:
            # The rows below it may be of that photo, and are not of the one above.
            above = None
            found.in_other_column.setdefault(other, []).append(row)
            continue
        if image is None and not cell and above is not None and not any(map(is_note, cells)):
            found.below.append(Matched(row, above, cells))
            continue
        above = image
        if image is None:
            found.missing.append((row, cell))
        elif len(found.matched) == MOST_MATCHED:
            what = f"comes after the first {MOST_MATCHED} rows with a picture"
            skipped.add(column, what, "further rows are ignored", row)
        else:
            found.matched.append(Matched(row, image, cells))
    return found


def _column_with_other_photo(
    table: SheetTable, cells: Sequence[str], images: Images, above: Path | None
) -> str:
    """Return the first column in which a row names a photo that is not the one above; empty if none does."""
    for name, cell in zip(table.columns, cells, strict=False):
        if _names_photo(images, cell) and named_picture(images, cell) not in (None, above):
            return name
    return ""


def _leave_rows_of_other_column(
    found: _Matching, column: str, skipped: SkippedRows, readings: Readings
) -> None:
    """Say which rows name their photo in another column, as a form with a question for each kind of photo has them."""
    for other, rows in found.in_other_column.items():
        reads_them = f"{IMAGES_OPTION}={other}"
        for row in rows:
            what = f"is empty, and {other!r} names a photo"
            skipped.add(column, what, f"'{reads_them}' reads these rows", row)
        number = (
            "1 row that names its photo" if len(rows) == 1 else f"{len(rows)} rows that name photos"
        )
        readings.leave(f"{number} in column {other!r} ('{reads_them}' reads them instead)")


ABOVE = "above"
"""Value of :data:`UNNAMED_ROWS`: a row without a name belongs to the photo of the row above it."""
_FEWEST_BELOW = 0.5
"""Rows without a name for each row with a photo from which they may be of the photo above: half of them have two."""


def _take_rows_below(
    found: _Matching, table: SheetTable, wanted: str | None, readings: Readings
) -> None:
    """Add the rows without a name of a photo to those of the photo above, if the user says that they are of it.

    A CSV file of a table whose photos were merged cells has the name once, and empty cells below it.
    """
    rows = len(found.below)
    takes = False
    if rows and (wanted is not None or rows >= _FEWEST_BELOW * len(found.matched)):
        numbers = listed([str(each.row) for each in found.below])
        question = ReadingQuestion(
            f"{rows} rows of {table.described_file} name no photo (row {numbers}). Are they of the photo above them?",
            f"--set={UNNAMED_ROWS}",
            (Choice(ABOVE, "further rows of that photo"), Choice(LEFT_OUT, "not read")),
        )
        takes = readings.choose(question, wanted) == ABOVE
    if takes:
        found.matched = sorted([*found.matched, *found.below], key=lambda each: each.row)
    else:
        found.missing += [(each.row, "") for each in found.below]


IN_NAMES = "in-names"
"""Value of :data:`PHOTO_NUMBERS`: a number stands for the photo whose name ends in it."""


def _take_numbers(
    found: _Matching,
    table: SheetTable,
    column: str,
    images: Images,
    wanted: str | None,
    readings: Readings,
) -> None:
    """Add the rows with the number of a photo instead of its name, if the user says that the numbers are those.

    It is a question where most rows have one: a few may be slips.
    """
    by_number = photos_by_number(
        found.missing, without_a_row(images, (each.image for each in found.matched))
    )
    if wanted is None and len(by_number) <= (len(found.matched) + len(found.missing)) / 2:
        return
    row, photo = next(iter(by_number.items()), (0, images.paths[0]))
    example = f"{dict(found.missing).get(row, '17')} is {photo.name}"
    question = ReadingQuestion(
        f"Column {column!r} of {table.described_file} has numbers instead of names of photos. Are they the numbers at "
        f"the end of the names ({example})?",
        f"--set={PHOTO_NUMBERS}",
        (
            Choice(IN_NAMES, f"{len(by_number)} rows with a photo"),
            Choice(LEFT_OUT, "these rows are not read"),
        ),
    )
    if readings.choose(question, wanted) != IN_NAMES:
        return
    readings.take(f"{len(by_number)} photos by the number at the end of their names ({example})")
    cells_of = {row: cells for row, cells in rows_of(table) if row in by_number}
    added = [Matched(row, photo, cells_of[row]) for row, photo in by_number.items()]
    found.matched = sorted([*found.matched, *added], key=lambda each: each.row)
    found.missing = [(row, cell) for row, cell in found.missing if row not in by_number]


def _rows_of_first_table(
    table: SheetTable,
    column: str,
    images: Images,
    found: _Matching,
    skipped: SkippedRows,
    readings: Readings,
) -> Iterator[Row]:
    """Yield the rows of a table without repeated headers, and note those of another table below it in ``found``."""
    place = table.place_of(column)
    other = ""
    sheet = None
    numbers: Counter[int] = Counter()
    """Numbers that each column has had so far, by its place."""
    for row, cells in rows_of(table):
        if (of := getattr(row, "sheet", None)) != sheet:
            sheet, other = of, ""
        if _is_header(cells, place, column, numbers, images):
            is_same = all(
                cell.casefold() in name.casefold()
                for name, cell in zip(table.columns, cells, strict=False)
            )
            other = "" if is_same else ", ".join(filter(None, cells))
            if is_same:
                skipped.add(column, "repeats the header", "it is no photo", row, cells[place])
            else:
                readings.leave(f"the rows below row {row}, which have another header ({other})")
        elif other:
            hint = "give that table a sheet or a file of its own"
            what = f"stands below another header ({other})"
            found.elsewhere.append(cells[place])
            skipped.add(column, what, hint, row, cells[place][:60])
        else:
            numbers.update(at for at, cell in enumerate(cells) if _NUMBER.fullmatch(cell))
            yield row, cells


_FEWEST_NUMBERS = 3
"""Numbers after which a column is one of numbers, so that a word in it may be the header of another table."""


def _is_header(
    cells: Sequence[str], place: int, column: str, numbers: Mapping[int, int], images: Images
) -> bool:
    """Return True for a row that is a header again: it has names of columns, and neither photo nor number."""
    cell = cells[place]
    others = {at: text for at, text in enumerate(cells) if at != place and not is_empty(text)}
    if not cell or re.search(r"\d", cell) or is_note(cell) or _names_photo(images, cell):
        return False
    if not {*others.values()} - {cell} or any(map(_NUMBER.fullmatch, others.values())):
        return False  # One text over all columns is the title of a section.
    names_photos = cell.casefold() == column.casefold() or IMAGE_HEADER.search(cell) is not None
    return names_photos or any(numbers.get(at, 0) >= _FEWEST_NUMBERS for at in others)


_ROWS_COMPARED = 200
"""Rows that tell whether a column names other photos."""
_FEWEST_OTHERS = 3
"""Other photos from which a column names photos of its own; a remark may name one or two."""


def _beside_other_photos(
    table: SheetTable, column: str, images: Images, matched: Sequence[Matched]
) -> dict[str, str]:
    """Return the columns that stand behind a column of other photos, each with that column.

    Two tables side by side have rows together that have nothing to do with each other.
    """
    if table.is_of_annotations:
        return {}
    own = table.place_of(column)
    others = [
        place
        for place in range(len(table.columns))
        if place != own and _names_others(images, [(each, each.cells[place]) for each in matched])
    ]
    photos = {own, *others}
    beside: dict[str, str] = {}
    nearest: list[int] = []
    """Columns of photos next to each other, to the left: they are of one row, as photos of two dates."""
    for place, name in enumerate(table.columns):
        if place in photos:
            nearest = [*nearest, place] if place - 1 in photos else [place]
        elif nearest and own not in nearest:
            beside[name] = table.columns[nearest[-1]]
    return beside


def _names_others(images: Images, cells: Sequence[tuple[Matched, str]]) -> bool:
    """Return True if most cells of a column name photos that are not those of their rows."""
    written = [(each, cell) for each, cell in cells[:_ROWS_COMPARED] if cell]
    others = 0
    for each, cell in written:
        named = None if cell.isdigit() else named_picture(images, cell)
        others += named is not None and named != each.image
    return others >= _FEWEST_OTHERS and 2 * others >= len(written)


def _found_by_part(images: Images, cell: str, found: _Matching) -> Path | None:
    """Return the picture that a part of a cell names, and note in ``found`` by which part."""
    if image := images.find_by_stem(cell):
        found.by_stem.append(f"{image.name} for {cell}")
        return image
    image = images.find_by_end(cell)
    if image is not None:
        found.by_end.setdefault(image, set()).add(cell)
    return image


def _skip_doubtful(found: _Matching, column: str, place: int, skipped: SkippedRows) -> set[Path]:
    """Note the rows whose paths end alike, and return their pictures."""
    doubtful = found.doubtful()
    for each in found.matched:
        if each.image in doubtful:
            what = "ends like another path of the table"
            hint = "put the pictures into these folders"
            skipped.add(column, what, hint, each.row, each.cells[place][:60])
    return doubtful


def _say_what_was_left(
    images: Images, without_row: Sequence[Path], matched: Iterable[Matched], readings: Readings
) -> None:
    """Name the photos without a row, and the further pages of the photos that are used."""
    if without_row:
        names = listed([images.shown_name(image) for image in without_row])
        what = "photo" if len(without_row) == 1 else "photos"
        readings.leave(f"{len(without_row)} {what} without a row ({names})")
    for image in dict.fromkeys(each.image for each in matched):
        further = _further_pages(image)
        if further == 1:
            readings.leave(f"page 2 of {image.name}")
        elif further > 1:
            readings.leave(f"page 2 to {further + 1} of {image.name}")


def without_a_row(images: Images, matched: Iterable[Path]) -> list[Path]:
    """Return the pictures of a folder that no row names, in the order of their names."""
    named = {*matched}
    return sorted(image for image in images.paths if image not in named)


def _opened(
    images: Images,
    path: Path,
    settings: Mapping[str, Any],
    together: Sequence[str],
    readings: Readings,
    wanted: str | None,
) -> SheetTable:
    """Return a table, or sheets of a workbook as one, in which the photos are then named in the first column."""

    def is_data(cells: Sequence[str]) -> bool:
        # A number in the first column may name a photo; elsewhere it may name a leaf.
        return any(_names_photo(images, cell) for cell in cells) or _is_there(images, cells[0])

    always = {"fill_merged": True, "allow_formulas": True, "mark_struck": True, "is_data": is_data}
    settings = {**settings, **always}
    settings["encoding"] = _choose_encoding(path, settings.get("encoding"), readings)
    if not together:
        return _with_whole_header(images, settings, path, readings)
    sheets: list[NamedSheet] = []
    for sheet in together:
        table = _with_whole_header(images, {**settings, "sheet": sheet}, path, readings)
        column = wanted if wanted in table.columns else _photos_column(images, table, readings)
        sheets.append(NamedSheet(table, column))
    return joined(sheets)


def _choose_encoding(path: Path, given: str | None, readings: Readings) -> str | None:
    """Return the encoding of a CSV file, which is asked for where its bytes do not tell it; None: it is found."""
    possible = {} if given else encodings_in_doubt(path)
    if not possible:
        if not given:
            _say_latin(path, readings)
        return given
    is_told = len(possible) == 1 and UNTOLD not in possible
    question = ReadingQuestion(
        f"The encoding of {path.name} is in doubt. Which of these words are right? (If none are, name another "
        "encoding, such as cp1251.)",
        ENCODING,
        tuple(Choice(encoding, ", ".join(words)) for encoding, words in possible.items()),
        is_open=not is_told,
    )
    encoding = readings.choose(question)
    readings.take(f"{path.name} in the encoding {encoding}")
    return encoding


def _say_latin(path: Path, readings: Readings) -> None:
    """Say that a CSV file is read in Latin-1, if code pages would read other letters."""
    first = {encoding: words[0] for encoding, words in encodings_beside_latin(path).items()}
    if not first:
        return
    latin = first.pop(UNTOLD)
    others = [f"{ENCODING}={encoding} reads {word}" for encoding, word in first.items()]
    readings.take(f"{path.name} in the encoding {UNTOLD}: {latin} ({'; '.join(others)})")


_ROWS_TO_FIRST_PHOTO = 1_000
"""Rows among which the first photo of a table is sought: below it nothing belongs to the header."""
_NUMBER = re.compile(r"[-+]?\d[\d.,]*")
_WORD = re.compile(r"[^\W\d_]")


def _with_whole_header(
    images: Images, settings: Mapping[str, Any], path: Path, readings: Readings
) -> SheetTable:
    """Return a table, and ask for the rows of its header where rows below it may belong to it.

    Merged cells of a workbook say what belongs to a header. A CSV file has no merged cells.
    """
    table = open_table(path, **settings)
    option = f"--set={HEADER}"
    if given := settings.get(HEADER):
        readings.chosen[option] = given
        return table
    below = _rows_like_a_header(images, table)
    if not below:
        return table
    whole = HeaderRows(table.header.first, below[-1][0])
    lower = HeaderRows(below[0][0], whole.last)
    is_title = sum(not UNNAMED.fullmatch(name) for name in table.columns) == 1
    has_numbers = any(_NUMBER.fullmatch(cell) for _, cells in below for cell in cells)
    proposed = whole
    if is_title:
        proposed = lower
    elif has_numbers:
        proposed = table.header
    tables = {
        str(rows): open_table(path, **{**settings, HEADER: str(rows)})
        for rows in dict.fromkeys((proposed, whole, lower, table.header))
    }
    if of_other_sheet := readings.chosen.get(option):
        if of_other_sheet not in tables:
            raise NoFileError(
                f"the sheets of {path.name} have their headers in different rows",
                hint=f"read one at a time: --set 'sheet={table.sheet}'",
            )
        return tables[of_other_sheet]
    question = ReadingQuestion(
        f"Which rows of {table.described_file} name its columns?",
        option,
        tuple(Choice(rows, f"columns {listed(of.columns)}") for rows, of in tables.items()),
    )
    return tables[readings.choose(question)]


def _rows_like_a_header(images: Images, table: SheetTable) -> list[Row]:
    """Return the rows directly below a header that may belong to it.

    They have no photo, and they have words but no numbers, or a text in a column without a name.
    """
    rows: list[Row] = []
    places: list[int] = []
    for number, cells in islice(rows_of(table), _ROWS_TO_FIRST_PHOTO):
        places = [place for place, cell in enumerate(cells) if _names_photo(images, cell)]
        if places:
            break
        rows.append((number, cells))
    if not places:
        return []
    unnamed = {place for place, name in enumerate(table.columns) if UNNAMED.fullmatch(name)}
    return [*takewhile(lambda row: _is_like_a_header(row[1], places, unnamed), rows)]


def _is_like_a_header(
    cells: Sequence[str], photo_places: Collection[int], unnamed: Collection[int]
) -> bool:
    if any(re.search(r"\d", cells[place]) or is_note(cells[place]) for place in photo_places):
        return False
    others = {place: cell for place, cell in enumerate(cells) if place not in photo_places and cell}
    if {*others.values()} <= {cells[place] for place in photo_places}:
        return False  # One text over all columns is the title of a section.
    if any(place in unnamed for place in others):
        return True
    has_numbers = any(_NUMBER.fullmatch(cell) for cell in others.values())
    return not has_numbers and any(_WORD.search(cell) or "%" in cell for cell in others.values())


def _names_photo(images: Images, cell: str) -> bool:
    """Return True for the name of a picture, there or not; numbers such as 17 may be anything."""
    text = cell.strip()
    if not text or text.isdigit():
        return False
    return IMAGE_NAME.search(text) is not None or named_picture(images, text) is not None


def _say_what_was_read(
    table: SheetTable,
    images_column: str,
    by_stem: Sequence[str],
    together: Sequence[str],
    readings: Readings,
) -> None:
    if together:
        listed = " and ".join(f'"{sheet}"' for sheet in together)
        readings.take(f"sheets {listed}, named in column {table.columns[-1]}")
    elif table.sheet is not None:
        readings.take(f'sheet "{table.sheet}"')
    if not table.is_of_annotations:
        alike = f" ({len(by_stem)} by the name alone: {by_stem[0]})" if by_stem else ""
        readings.take(f"photo from column {images_column}{alike}")
    if table.merged:
        number = f"{table.merged} merged range{'s' * (table.merged > 1)}"
        readings.take(f"{number} (all cells have the value of their range)")


_REDUCED_OR_MASK = 0b101
"""Bits of the kind of a page of TIFF that are set for a smaller copy of another page, and for a mask of it."""
_KIND_OF_PAGE = 254
"""Tag of TIFF."""


def _further_pages(image: Path) -> int:
    """Return the number of pictures in a TIFF file behind the first, which is the photo."""
    if image.suffix.lower() not in (".tif", ".tiff"):
        return 0
    further = 0
    with (
        suppress(OSError, ValueError, SyntaxError, Image.DecompressionBombError),
        Image.open(image) as pages,
    ):
        for number in range(1, getattr(pages, "n_frames", 1)):
            pages.seek(number)
            kind = int(getattr(pages, "tag_v2", {}).get(_KIND_OF_PAGE, 0))
            further += not kind & _REDUCED_OR_MASK
    return further


def _copies(images: Iterable[Path]) -> dict[Path, Path]:
    """Return the pictures with the same bytes as another one, each with the first of them."""
    by_size: dict[int, list[Path]] = {}
    for image in dict.fromkeys(images):
        by_size.setdefault(image.stat().st_size, []).append(image)
    copies: dict[Path, Path] = {}
    for alike in by_size.values():
        by_content: dict[str, list[Path]] = {}
        for image in alike if len(alike) > 1 else ():
            by_content.setdefault(sha256_of_file(image), []).append(image)
        for same in by_content.values():
            copies |= dict.fromkeys(same, same[0]) if len(same) > 1 else {}
    return copies


def _counts(
    path: Path,
    annotated: Sequence[Marked],
    images: Images,
    skipped: SkippedRows,
    readings: Readings,
    wanted: str | None,
    sizes_as: str | None,
    sources: dict[Path, str],
) -> SheetTable:
    """Return a table with a row for each annotated picture, a column for each class, and one for each value.

    Empty cells are unknown.
    """
    names = {name for one in annotated for name in one.names.values()}
    alike = Counter(re.split(r"[\\/]", name)[-1] for name in names)
    photos, chosen = find_photos(
        annotated, lambda name: _annotated_image(images, name, alike), readings, wanted
    )
    sizes = {photo: photo_sizes(photo) for photo in photos if photo}
    matched = [
        _Annotated(one, photo, sizes[photo] if photo else [])
        for one, photo in zip(annotated, photos, strict=True)
    ]
    for each in matched:
        if each.photo and each.marked.original:
            sources[each.photo] = each.marked.original
    changed = [
        (each.marked, each.photo, each.sizes)
        for each in matched
        if each.photo and each.fit == Fit.CHANGED
    ]
    if changed:
        sizes_as = choose_sizes(changed, readings, sizes_as)
    labels = sorted({label for each in matched for label in each.counts})
    fields = sorted({field for one in annotated for field in one.values})
    rows: list[Row] = []
    for number, each in enumerate(matched, start=2):
        if each.photo and (reason := _why_not_taken(each, sizes_as)):
            fault, hint = reason
            skipped.add("picture", fault, hint, number, each.photo.name)
            continue
        numbers = _numbers_of(each, labels, sizes_as, number, skipped)
        texts = ["" if count is None else str(count) for count in numbers]
        values = [each.marked.values.get(field, "") for field in fields]
        name = each.photo.relative_to(images.folder).as_posix() if each.photo else each.marked.name
        rows.append((number, (name, *texts, *values)))
    names_of_columns = [*labels, *fields]
    columns = unique_names([wanted or chosen or "photo", *names_of_columns])
    return SheetTable(
        path,
        columns,
        lambda: iter(rows),
        alike=columns_alike(columns[1:], names_of_columns),
        counted=columns[1 : len(labels) + 1],
        attribute=next((one.attribute for one in annotated if one.attribute), None),
    )


class _Annotated:
    """An annotated picture with its photo, None if it is not in the folder, and the sizes that the photo may have."""

    def __init__(self, marked: Marked, photo: Path | None, sizes: list[Size]) -> None:
        self.marked = marked
        self.photo = photo
        self.sizes = sizes
        self.fit = fit_of(marked, sizes) if photo else Fit.SAME
        self.counts, self.faults = count_marks(marked.marks)


def _why_not_taken(each: _Annotated, sizes_as: str | None) -> tuple[str, str] | None:
    """Return why annotations are not those of their photo, and what to do; None if they are."""
    if each.marked.fault:
        return each.marked.fault, "keep one of them, or give them different names"
    if each.fit == Fit.OTHER or (each.fit == Fit.CHANGED and sizes_as == LEFT_OUT):
        # They say nothing of this photo, not even that nothing is in it.
        return size_fault(each.marked), "check which photo was annotated"
    return None


def _numbers_of(
    each: _Annotated,
    labels: Sequence[str],
    sizes_as: str | None,
    row: int,
    skipped: SkippedRows,
) -> list[int | None]:
    """Return the number of objects of each class in a picture; None where it is not known."""
    marked = each.marked
    for label, fault in each.faults if each.photo else ():
        skipped.add(label, fault, "correct the annotation", row, marked.name)
    is_fitted = each.fit == Fit.CHANGED and sizes_as == FITTED
    frames = [marked.size] if is_fitted and marked.size else each.sizes
    outside = [mark.label or "object" for mark in marks_outside(marked.marks, frames)]
    if outside:
        fault = "box lies outside the picture, which may be another photo of that name"
        skipped.add(outside[0], fault, "check which photo was annotated", row, marked.name)
        return [None] * len(labels)
    # A number or choice may be said instead of marking the objects, so that they are not known to be absent.
    otherwise = None if marked.values and not marked.marks else 0
    return [each.counts.get(label, otherwise) for label in labels]


def _annotated_image(images: Images, name: str, alike: Mapping[str, int]) -> Path | None:
    """Return the picture that annotations name, which keep folders of other machines and prefixes of uploads."""
    parts = re.split(r"[\\/]", name)
    for start in range(len(parts) - (alike[parts[-1]] > 1 and len(parts) > 1)):
        tail = "/".join(parts[start:])
        of_label_studio = re.sub(r"(?:\d+-)?[0-9a-f]{8}-(?=[^/]+$)", "", tail)
        of_roboflow = name_before_export(tail)
        for written in (tail, of_label_studio, of_roboflow, *(tail + end for end in SUFFIXES)):
            if _is_there(images, written):
                return images.find(written)
    return None


def _is_there(images: Images, cell: str) -> bool:
    if not cell:
        return False
    with suppress(CellFault):
        return images.find(cell) is not None
    return False
