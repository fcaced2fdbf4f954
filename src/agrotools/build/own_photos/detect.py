"""The pictures of a folder, and which of them a cell of a table means."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agrotools.build.own_photos.cells import CellFault, is_empty
from agrotools.build.own_photos.plan import Plan, SkippedRows
from agrotools.build.own_photos.table import Table, open_table
from agrotools.core import BenchmarkError
from agrotools.core.base import NoFileError

SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp")
_MOST = 1_000_000


class Images:
    """All pictures in a folder and the folders below it, found by path, name, or name without its ending.

    Capitals do not count. Links to folders are not followed.

    Raises:
        BenchmarkError: no such folder, one without pictures, or one with over a million.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise NoFileError(f"{folder} is not a folder", hint="--images names the folder of the pictures")
        self.folder = folder.resolve()
        self._by_path: dict[str, Path] = {}
        self._by_name: dict[str, list[Path]] = {}
        self._by_stem: dict[str, list[Path]] = {}
        for path in _pictures(self.folder):
            relative = path.relative_to(self.folder).as_posix()
            self._by_path[relative.casefold()] = path
            self._by_name.setdefault(path.name.casefold(), []).append(path)
            self._by_stem.setdefault(path.stem.casefold(), []).append(path)
            if len(self._by_path) > _MOST:
                raise BenchmarkError(f"{folder} holds over {_MOST} pictures", hint="name a folder below it")
        if not self._by_path:
            kinds = ", ".join(suffix[1:] for suffix in SUFFIXES)
            raise BenchmarkError(f"{folder} holds no pictures", hint=f"pictures are files of the kinds {kinds}")

    def __len__(self) -> int:
        return len(self._by_path)

    def some_names(self, most: int = 3) -> list[str]:
        """The first names, for messages."""
        return sorted(path.name for path in list(self._by_path.values())[:1000])[:most]

    def find(self, cell: str) -> Path | None:
        """The picture that a cell names; None if no picture has that name.

        Raises:
            CellFault: the cell leads out of the folder, or several pictures have that name.
        """
        if not cell:
            return None
        written = cell.replace("\\", "/").casefold()
        if exact := self._by_path.get(written.removeprefix("./")):
            return self._inside(exact)
        path = PurePosixPath(written)
        if path.is_absolute() or written[1:2] == ":" or ".." in path.parts or written.startswith("~"):
            raise CellFault(
                "leads out of the folder of pictures", "write the name of the picture, or its path in there"
            )
        if len(path.parts) > 1:
            return None
        several = self._by_name.get(written) or self._by_stem.get(written) or []
        if len(several) > 1:
            raise CellFault("is the name of several pictures", "write the path in the folder of pictures")
        return self._inside(several[0]) if several else None

    def _inside(self, path: Path) -> Path:
        if path.is_symlink() and not path.resolve().is_relative_to(self.folder):
            raise CellFault("is a link that leads out of the folder of pictures", "copy the picture into the folder")
        return path


def _pictures(folder: Path) -> Iterable[Path]:
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(place, name)


MOST_MATCHED = 200_000
"""Rows with a picture that are kept; whoever has more does not need them all."""
_ENOUGH_TO_KNOW = 50
_IMAGE_HEADER = re.compile(r"photo|image|picture|file|img|bild|foto|照片|图片|图像|影像|文件", re.IGNORECASE)


class Matched(NamedTuple):
    """A row with its picture."""

    row: int
    image: Path
    cells: tuple[str, ...]


@dataclass(frozen=True)
class DetectedTable:
    """Rows matched to pictures. ``rows``: number in the table. ``drops``: rows that were not kept."""

    images: Images
    table: Table
    images_column: str
    matched: tuple[Matched, ...]
    rows: int
    drops: SkippedRows

    def cells_of(self, column: str) -> list[tuple[int, Path, str]]:
        """Row, picture and text of each cell of a column.

        Raises:
            BenchmarkError: there is no such column.
        """
        if column not in self.table.columns:
            raise BenchmarkError(
                f"{self.table.path.name} has no column {column!r}",
                hint=f"its columns: {', '.join(self.table.columns[:20])}",
            )
        place = self.table.columns.index(column)
        return [(matched.row, matched.image, matched.cells[place]) for matched in self.matched]


def detect_columns(images: Path, answers: Path, plan: Plan | None = None) -> DetectedTable:
    """Read the table once and keep the rows whose picture is in the folder.

    Raises:
        BenchmarkError: the folder or the table cannot be used, or no row belongs to a picture.
    """
    pictures = Images(images)
    settings = {"encoding": plan.encoding, "delimiter": plan.delimiter, "sheet": plan.sheet} if plan else {}
    table = open_table(answers, **settings)
    column = plan.images_column if plan else _image_column(pictures, table)
    if column not in table.columns:
        raise BenchmarkError(
            f"{answers.name} has no column {column!r}", hint=f"its columns: {', '.join(table.columns[:20])}"
        )
    place = table.columns.index(column)
    drops, matched, count = SkippedRows(), list[Matched](), 0
    for row, cells in table.rows():
        count += 1
        try:
            image = pictures.find(cells[place])
        except CellFault as fault:
            drops.add(column, fault.reason, fault.hint, row, cells[place][:60])
            continue
        if image is None:
            what = "names no picture" if is_empty(cells[place]) else "names a picture that is not in the folder"
            drops.add(column, what, "add the picture or correct the name", row, cells[place][:60])
        elif len(matched) == MOST_MATCHED:
            drops.add(
                column, f"is beyond the first {MOST_MATCHED} rows with a picture", "further rows are ignored", row
            )
        else:
            matched.append(Matched(row, image, cells))
    if not matched:
        raise BenchmarkError(
            f"no row of {answers.name} belongs to a picture in {images}: {'; '.join(drops.lines()[:3]) or 'no rows'}",
            hint=f"the folder holds {', '.join(pictures.some_names())}...; write such names into column {column!r}",
        )
    return DetectedTable(pictures, table, column, tuple(matched), count, drops)


def _image_column(images: Images, table: Table) -> str:
    """Column that names most pictures of the folder; otherwise the one whose header suggests that it names pictures."""
    hits: Counter[int] = Counter()
    first: dict[int, str] = {}
    for row, cells in table.rows():
        for place, cell in enumerate(cells):
            if cell and place not in first:
                first[place] = cell
            # A count of 3 is no picture 3.jpg, unless the header says that pictures are named.
            names = not cell.isdigit() or _IMAGE_HEADER.search(table.columns[place])
            if cell and names and _is_there(images, cell):
                hits[place] += 1
        # Many pictures may be missing; but once some are found, a few rows tell.
        if row > 1000 and hits.total() >= _ENOUGH_TO_KNOW:
            break
    if hits:
        return table.columns[max(hits, key=lambda place: (hits[place], -place))]
    image_columns = [column for column in table.columns if _IMAGE_HEADER.search(column)]
    if image_columns:
        return image_columns[0]
    examples = ", ".join(
        f"{column} ({first[place][:30]!r})" for place, column in enumerate(table.columns) if place in first
    )
    raise BenchmarkError(
        f"no column of {table.path.name} names a picture; it was read with {table.described}: {examples[:300]}",
        hint=f"the folder holds {', '.join(images.some_names())}...; one column must hold such names",
    )


def _is_there(images: Images, cell: str) -> bool:
    try:
        return images.find(cell) is not None
    except CellFault:
        return False
