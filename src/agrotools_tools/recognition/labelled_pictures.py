"""Labelled pictures: from folders of classes or from a table, and the share of them held out of training."""

import csv
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agrotools.core import UsageError
from agrotools.core.files import read_text
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.texts import count_text, counted_names
from agrotools.formats.picture_folder import (
    PLACE_HEADERS,
    Images,
    image_column,
    require_header,
    rows_of,
)
from agrotools.text.tables import UNNAMED, CellFault, SheetTable, open_table, sheets_of

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".heic", ".heif", ".hif", ".avif")
MOST_PICTURES = 50_000
LEAST_PER_CLASS = 4
"""Smallest number of pictures per class that can be split into training and validation pictures."""
LEAST_GROUPS = 2
LABEL_COLUMNS = ("label", "class", "pest", "disease", "weed")
"""Headers of labels, which decide where several columns of a table may hold them."""
IMAGE_OPTION, LABEL_OPTION = "--image-column", "--label-column"
"""Options that name the columns of a table."""
_GROUP = "group "
_GROUP_COLUMN = "group"
_LEAST_ROWS_PER_LABEL = 2
"""Rows per value, on average, from which a column without a usual header may hold labels: notes and dates differ."""
_MOST_READ = 2_000
"""Rows from which it is found which columns hold labels."""
_MORE = (
    "add pictures (30 of a class are a fair beginning), "
    "or merge classes: their folders in one, or one label for all"
)
_FORMS = (
    "a CSV or xlsx file with a column of names of pictures, one of labels, and perhaps one headed group; or without "
    "--labels a folder per class"
)
_SHOWN = 5


@dataclass(frozen=True)
class LabelledImage:
    """Picture with its class and group.

    ``group``: unit that is never divided between training and validation (a plant, a day, a field); a picture without
    a given group forms its own. ``place``: row of the table or folder that the label is from, for messages.
    ``column``: header of the labels in the table, which may say what they are of.
    """

    path: Path
    label: str
    group: str
    place: str = ""
    column: str = LABEL_COLUMNS[0]


class LabelColumns(NamedTuple):
    """Columns of a table of labels that the user names."""

    image: str | None = None
    label: str | None = None


def read_labelled(
    images: Path,
    labels: Path | None = None,
    *,
    to_learn: bool = True,
    columns: LabelColumns = LabelColumns(),  # noqa: B008 - it is immutable
    readings: Readings | None = None,
) -> list[LabelledImage]:
    """List labelled pictures: of a table ``labels`` (CSV or xlsx), else of a folder for each class in ``images``, or in
    the layout of IP102.

    Args:
        to_learn: a class must have enough pictures to learn from.
        columns: columns of the table; default: the one that names pictures of the folder, and the one with labels.
        readings: is told what was read, and puts questions on it; by default nobody answers.

    Raises:
        UsageError: a folder, table, column, cell, picture or class that cannot be used.
        UndecidedError: several columns may name the pictures or hold the labels.
        BenchmarkError: the table cannot be decoded.
    """
    if not images.is_dir():
        raise UsageError(f"{images} is not a folder", hint="name the folder of your pictures")
    of_folders = _from_lists if (images / "classes.txt").is_file() else _from_folders
    readings = readings or Readings()
    labelled = _from_table(images, labels, columns, readings) if labels else of_folders(images)
    if not labelled:
        raise UsageError(f"there are no pictures in {labels or images}", hint=_FORMS)
    if len(labelled) > MOST_PICTURES:
        why = f"{len(labelled):,} pictures are more than the {MOST_PICTURES:,} that a pack learns from"
        raise UsageError(why, hint="take a part of them, the same number of each class")
    if to_learn:
        check_classes(labelled)
    return labelled


def read_others(folder: Path) -> list[LabelledImage]:
    """List pictures of other things, which a pack is to refuse: a folder per kind, or all of one kind, which then has
    the name of ``folder``. UsageError: it is no folder, holds no pictures, or more than a pack learns from."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="name a folder of pictures with --other")
    others: list[LabelledImage] = []
    for path in filter(_is_picture, sorted(folder.rglob("*"))):
        parts = path.relative_to(folder).parts
        kind = parts[0] if len(parts) > 1 else folder.resolve().name
        others.append(LabelledImage(path, kind, "/".join(parts)))
    if not others:
        hint = "put pictures of what resembles yours into it: neighbours of the crop"
        raise UsageError(f"there are no pictures in {folder}", hint=hint)
    if len(others) > MOST_PICTURES:
        why = (
            f"{len(others):,} pictures are more than the {MOST_PICTURES:,} that a pack learns from"
        )
        raise UsageError(why, hint="give fewer of them: 20 that look alike are enough")
    return others


def hold_out(
    labelled: Sequence[LabelledImage], share: float
) -> tuple[list[LabelledImage], list[LabelledImage]]:
    """Divide pictures into those to learn from and those held out, whole groups at a time: of each class the nearest
    number to ``share`` of its groups, at least one; the draw is fixed. UsageError: a class keeps too few to learn
    from."""
    held: set[str] = set()
    placed: set[str] = set()
    draw = np.random.default_rng(0)
    for label in sorted({one.label for one in labelled}):
        groups = sorted({one.group for one in labelled if one.label == label})
        wanted = max(1, round(share * len(groups))) - sum(group in held for group in groups)
        free = [group for group in groups if group not in placed]
        held.update(free[place] for place in draw.permutation(len(free))[: max(0, wanted)])
        placed.update(groups)
    learnt = [one for one in labelled if one.group not in held]
    check_classes(learnt, labelled)
    return learnt, [one for one in labelled if one.group in held]


def check_writable(path: Path, labels: Path | None) -> None:
    """Refuse, before the training, a ``path`` that :func:`write_labels` cannot write, or the table of all labels."""
    if labels and path.resolve() == labels.resolve():
        raise UsageError(f"{path} is the table of all labels", hint="name another file with --held")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}", hint="name another file with --held")
    if path.exists() and path.suffix.lower() != ".csv":
        raise UsageError(
            f"{path} exists already and is no CSV file, so it is not overwritten",
            hint="name a new file with --held, e.g. held.csv",
        )


def write_labels(path: Path, images: Path, labelled: Sequence[LabelledImage], column: str) -> None:
    """Write a table of labels that :func:`read_labelled` reads, and ``agrotools build --answers``."""
    groups = [
        one.group.removeprefix(_GROUP) if one.group.startswith(_GROUP) else "" for one in labelled
    ]
    width = 3 if any(groups) else 2
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("image", column, "group")[:width])
        for one, group in zip(labelled, groups, strict=True):
            rows.writerow((one.path.relative_to(images).as_posix(), one.label, group)[:width])


def check_classes(labelled: Sequence[LabelledImage], of: Sequence[LabelledImage] = ()) -> None:
    """Refuse pictures, left ``of`` others if given, of one class only, or with too few pictures or groups of a
    class."""
    counts = Counter(one.label for one in labelled)
    counts.update(dict.fromkeys({one.label for one in of}, 0))
    if len(counts) < 2:
        why = (
            f"all pictures are of one class ({next(iter(counts))}): there is nothing to tell apart"
        )
        raise UsageError(why, hint="add pictures of what it must be told from")
    if few := [
        f"{label} ({number})"
        for label, number in sorted(counts.items())
        if number < LEAST_PER_CLASS
    ]:
        left = f" left to learn from, with {len(of) - len(labelled)} held out" if of else ""
        why = f"fewer than {LEAST_PER_CLASS} pictures of {_list_names(few)}{left}"
        raise UsageError(why, hint=_MORE)
    spellings: dict[str, set[str]] = {}
    for label in counts:
        spellings.setdefault(" ".join(label.casefold().split()), set()).add(label)
    if twice := [sorted(same) for same in spellings.values() if len(same) > 1]:
        why = f"labels that differ in spelling only: {' and '.join(map(repr, twice[0]))}"
        raise UsageError(why, hint="write one class in one way")
    groups = {label: {one.group for one in labelled if one.label == label} for label in counts}
    if alone := [
        label for label, class_groups in sorted(groups.items()) if len(class_groups) < LEAST_GROUPS
    ]:
        raise UsageError(
            f"all pictures of {_list_names(alone)} are of one group: none can be held back to check on",
            hint="a class needs two groups (plants, days, fields) or more; without the column group each picture "
            "is its own, but copies of one file are one",
        )


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.is_file() and not path.name.startswith(".")


def _from_folders(images: Path) -> list[LabelledImage]:
    if loose := sorted(path.name for path in images.iterdir() if _is_picture(path)):
        why = f"{count_text(len(loose), 'picture')} in no folder of a class in {images}: {_list_names(loose)}"
        hint = (
            "move each picture into the folder of its class, or name them in a table: --labels FILE"
        )
        raise UsageError(why, hint=hint)
    labelled: list[LabelledImage] = []
    folders = sorted(
        path for path in images.iterdir() if path.is_dir() and not path.name.startswith(".")
    )
    if closed := [path.name for path in folders if not os.access(path, os.R_OK | os.X_OK)]:
        raise UsageError(
            f"the folder of a class cannot be read: {_list_names(closed)}",
            hint="allow reading it, or take the folder away",
        )
    for folder in folders:
        for path in filter(_is_picture, sorted(folder.rglob("*"))):
            name = path.relative_to(images).as_posix()
            labelled.append(
                LabelledImage(path, folder.name, f"picture {name}", f"folder {folder.name}")
            )
            if len(labelled) > MOST_PICTURES:
                return labelled
    return labelled


def _from_lists(root: Path) -> list[LabelledImage]:
    """List the training pictures of IP102: lines ``NAME NUMBER``; the lines of its classes begin with NUMBER + 1."""
    try:
        path = next(each for pattern in ("train.txt", "*/train.txt") for each in root.glob(pattern))
        classes = [
            " ".join(line.split()[1:]) for line in read_text(root / "classes.txt").splitlines()
        ]
        rows = [line.rsplit(maxsplit=1) for line in read_text(path).splitlines() if line.strip()]
        labelled = [(path.parent / "images" / name, classes[int(number)]) for name, number in rows]
    except (StopIteration, ValueError, IndexError) as error:
        raise UsageError(
            f"{root} has classes.txt, but no train.txt as IP102 has it", hint=_FORMS
        ) from error
    return [
        LabelledImage(picture, label, f"picture {picture.name}", path.name)
        for picture, label in labelled
    ]


def _from_table(
    images: Path, path: Path, columns: LabelColumns, readings: Readings
) -> list[LabelledImage]:
    pictures = Images(images)
    table = open_table(path, fill_merged=True)
    _say_sheet(table, readings)
    of_image, of_label = _columns(table, pictures, columns, readings)
    places = [table.place_of(of_image), table.place_of(of_label)]
    of_group = _group_column(table, (of_image, of_label), readings)
    labelled: list[LabelledImage] = []
    absent: list[str] = []
    seen: dict[Path, int] = {}
    for number, cells in rows_of(table):
        image, label = (cells[place] for place in places)
        group = cells[table.place_of(of_group)] if of_group else ""
        place = f"row {number} of {path.name}"
        if not image or not label:
            raise UsageError(f"{place} lacks an image or a label", hint=_FORMS)
        picture = _picture(pictures, image, place)
        if picture is None:
            absent.append(image)
            continue
        if picture in seen:
            why = f"{image} stands in {path.name} twice (rows {seen[picture]} and {number})"
            raise UsageError(why, hint="a picture has one label")
        seen[picture] = number
        shown = images / picture.relative_to(pictures.folder)
        unit = f"{_GROUP}{group}" if group else f"picture {shown.relative_to(images).as_posix()}"
        labelled.append(LabelledImage(shown, label, unit, place, of_label))
        if len(labelled) > MOST_PICTURES:
            break
    if absent:
        why = f"{path} names {count_text(len(absent), 'picture')} missing from {images}: {_list_names(absent)}"
        raise UsageError(why, hint="paths are relative to the folder of the pictures")
    return labelled


def _group_column(table: SheetTable, used: Sequence[str], readings: Readings) -> str | None:
    """Return the column of groups: ``group``, else the only one with a usual header of places; None if there is none.

    Photographs of one field are alike, so that a check on the field that was learnt from says too much. A column
    without a value gives no groups. The columns that are neither ``used`` nor of groups are named as not read.
    """
    given = _column_like(_GROUP_COLUMN, table)
    of_groups = [name for name in (given,) if name is not None and name not in used]
    of_places = [name for name in _place_columns(table) if name not in used]
    blank = {name for name in (*of_groups, *of_places) if _is_blank(name, table)}
    able = [name for name in of_groups if name not in blank]
    able = able or [name for name in of_places if name not in blank]
    if len(able) == 1:
        readings.take(f"groups from column {able[0]}")
    elif able:
        readings.leave(
            f"columns {_list_names(able)}: each may be of groups (give one of them the header {_GROUP_COLUMN})"
        )
    for name in table.columns:
        if name not in (*used, *able):
            header = f"{name} (no header)" if UNNAMED.fullmatch(name) else f"column {name}"
            readings.leave(f"{header} (no values)" if name in blank else header)
    return able[0] if len(able) == 1 else None


def _is_blank(column: str, table: SheetTable) -> bool:
    place = table.place_of(column)
    return not any(cells[place] for _, cells in rows_of(table))


def _place_columns(table: SheetTable) -> list[str]:
    return [name for name in table.columns if name.strip().casefold() in PLACE_HEADERS]


def _say_sheet(table: SheetTable, readings: Readings) -> None:
    """Say which sheet of a workbook is read, and which ones are not."""
    if table.sheet is None:
        return
    readings.take(f'sheet "{table.sheet}"')
    for sheet in sheets_of(table.path):
        if sheet.name != table.sheet:
            readings.leave(f'sheet "{sheet.name}"')


def _picture(pictures: Images, cell: str, place: str) -> Path | None:
    try:
        return pictures.find(cell) or pictures.find_by_stem(cell) or pictures.find_by_end(cell)
    except CellFault as fault:
        raise UsageError(f"{place}: {cell} {fault.reason}", hint=fault.hint) from fault


def _columns(
    table: SheetTable, pictures: Images, given: LabelColumns, readings: Readings
) -> tuple[str, str]:
    """Return the columns of the pictures and of their labels.

    Raises:
        UsageError: a column that the user names is not there, or no column can hold labels.
        UndecidedError: several may, and nobody is asked.
    """
    table.check_names(_GROUP_COLUMN)
    require_header(table)
    of_image = _named(given.image, table, IMAGE_OPTION) or image_column(
        pictures, table, readings, IMAGE_OPTION
    )
    of_label = _named(given.label, table, LABEL_OPTION)
    if of_label is None:
        question = _question_on_labels(table, of_image)
        of_label = readings.choose(question)
    readings.settle()
    if of_label == of_image:
        why = f"{of_image} of {table.path.name} cannot name the pictures and be their labels, too"
        raise UsageError(why, hint=f"name another column with {LABEL_OPTION}")
    readings.take(f"pictures from column {of_image}, labels from column {of_label}")
    return of_image, of_label


def _named(column: str | None, table: SheetTable, option: str) -> str | None:
    """Return the column that an option names; UsageError if the table has none of that name."""
    if column is None:
        return None
    found = _column_like(column, table)
    if found is None:
        known = _list_names(table.columns)
        why = f"{option} {column}: {table.path.name} has no such column; it has {known}"
        raise UsageError(why, hint="write its name as the table does")
    return found


def _column_like(name: str, table: SheetTable) -> str | None:
    """Return the column of this name: as it is written, else in another case."""
    if name in table.columns:
        return name
    same = [column for column in table.columns if column.casefold() == name.strip().casefold()]
    return same[0] if len(same) == 1 else None


def _question_on_labels(table: SheetTable, of_image: str) -> ReadingQuestion:
    """Return the question which column holds the labels, with the only choice if the table leaves no doubt.

    The only column with a usual header holds them. Else labels are names, most of which stand in several rows. In a
    table of few rows, or of numbers, no column is like that: then every other column may be meant.
    """
    others = [
        name for name in table.columns if name not in (of_image, _column_like(_GROUP_COLUMN, table))
    ]
    if not others:
        why = f"{table.path.name} has no column of labels beside {of_image} (read with {table.described})"
        raise UsageError(why, hint=_FORMS)
    places = _place_columns(table)
    others = [name for name in others if name not in places] or others
    values = _values_of(table, others)
    usual = [name for name in others if name.casefold() in LABEL_COLUMNS]
    able = [name for name in others if _may_be_labels(values[name])]
    if len(usual) == 1:
        able = usual
    able = list(dict.fromkeys((*usual, *able))) or others
    choices = [Choice(name, _examples(values[name])) for name in able]
    text = f"Which column of {table.path.name} holds the labels?"
    return ReadingQuestion(text, LABEL_OPTION, tuple(choices))


def _values_of(table: SheetTable, columns: Sequence[str]) -> dict[str, Counter[str]]:
    """Return how often each value stands in the first rows of columns."""
    values: dict[str, Counter[str]] = {name: Counter() for name in columns}
    for _, cells in islice(rows_of(table), _MOST_READ):
        for name in columns:
            if cell := cells[table.place_of(name)]:
                values[name][cell] += 1
    return values


def _may_be_labels(values: Counter[str]) -> bool:
    """Return True for two names or more, with several rows each on average."""
    have_letters = all(any(letter.isalpha() for letter in value) for value in values)
    return have_letters and 2 <= len(values) <= values.total() / _LEAST_ROWS_PER_LABEL


def _examples(values: Counter[str]) -> str:
    return _list_names([value for value, _ in values.most_common(_SHOWN)][:3])


def _list_names(names: Sequence[str]) -> str:
    return counted_names(names, _SHOWN)
