"""Pictures of a folder, found by the names that a table writes, and the column of a table that names them."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from agrotools.core import BenchmarkError
from agrotools.core.errors import NoFileError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.text.decimal_marks import NumberText
from agrotools.text.tables import CellFault, Row, SheetTable

_OF_INATURALIST = re.compile(
    r"/photos/(\d+)/(?:square|thumb|small|medium|large|original)\.\w+(?:\?\d+)?$"
)
"""End of the address of a photo in an export of iNaturalist: its number, the name of a size, and in some a time.

An export with ``photos/39710/medium.jpg?1444335406`` in its column image_url is quoted in
github.com/AtlasOfLivingAustralia/data-management/issues/531.
"""
PHONE_SUFFIXES = (".heic", ".heif", ".hif", ".avif")
SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp", *PHONE_SUFFIXES)
IMAGE_NAME = re.compile(
    rf"(?:{'|'.join(re.escape(suffix) for suffix in SUFFIXES)})$", re.IGNORECASE
)
"""The ending of the name of a picture."""
_MOST = 1_000_000
_ELSEWHERE = re.compile(r"/|~|\w+:", re.ASCII)  # a path of this machine or another, or an address
_ENOUGH_TO_KNOW = 50
_RIVAL = 0.5
"""Share of the pictures of the best column from which another column may be meant."""
IMAGE_HEADER = re.compile(
    r"photo|image|picture|file|img|bild|foto|照片|图片|图像|影像|文件", re.IGNORECASE
)
"""A header that suggests names of pictures."""
PLACE_HEADERS = frozenset(
    """
    field plot block farm site orchard parcel paddock vineyard greenhouse campo parcela lote bloque
    finca granja huerto huerta sitio talhão talhao gleba bloco fazenda pomar sítio champ parcelle bloc
    ferme verger feld schlag parzelle acker hof betrieb standort obstanlage appezzamento azienda
    frutteto 地块 田块 小区 农场 果园 样地
    """.split()
)
"""Headers of a column that names the place of each photo, in lower case. Photos of one place are a group."""
IMAGES_OPTION = "--set=images_column"
"""Option of ``build`` that names the column of the pictures."""


def plain_name(name: str) -> str:
    """Return a name in lower case, with one form of accents and one kind of space."""
    return " ".join(normalize("NFC", name).casefold().split())


class Images:
    """All pictures in a folder and its subfolders (not links), found by path, name, or name without suffix.

    Case, Unicode form of accents (macOS has another than spreadsheets) and kind of spaces of a name do not matter.
    """

    def __init__(self, folder: Path, option: str = "--images") -> None:
        """Find the pictures of a folder, which ``option`` of the command line names."""
        if not folder.is_dir():
            raise NoFileError(
                f"{folder} is not a folder", hint=f"{option} names the folder of the pictures"
            )
        self.folder = folder.resolve()
        self.paths: list[Path] = []
        self._at: dict[tuple[str, str], list[Path]] = {}
        """by ("path", "name" or "stem", its plain form)"""
        for path in _pictures(self.folder):
            self.paths.append(path)
            forms = {
                "path": path.relative_to(self.folder).as_posix(),
                "name": path.name,
                "stem": path.stem,
            }
            for kind, form in forms.items():
                self._at.setdefault((kind, plain_name(form)), []).append(path)
            if len(self.paths) > _MOST:
                raise BenchmarkError(
                    f"{folder} contains over {_MOST} pictures", hint="choose a subfolder"
                )
        if not self.paths:
            raise NoFileError(
                f"{folder} contains no pictures",
                hint=f"supported file types: {', '.join(SUFFIXES)}",
            )

    def __len__(self) -> int:
        return len(self.paths)

    def shown_name(self, image: Path) -> str:
        """Return the name of a picture, with its folder if others have the name."""
        if len(self._at.get(("name", plain_name(image.name)), [])) < 2:
            return image.name
        return image.relative_to(self.folder).as_posix()

    def some_names(self) -> list[str]:
        return sorted(path.name for path in self.paths[:1000])[:3]

    def find_by_stem(self, cell: str) -> Path | None:
        """Return the only picture that has the name in a cell but for its suffix: IMG_1.jpg of IMG_1.HEIC.

        A folder in the cell must be that of the picture.
        """
        written = plain_name(cell.replace("\\", "/").removeprefix("./"))
        path = PurePosixPath(written)
        if not IMAGE_NAME.search(path.name):
            return None
        alike = self._at.get(("stem", path.stem), [])
        if len(alike) != 1 or alike[0].is_symlink():
            return None
        place = PurePosixPath(plain_name(alike[0].relative_to(self.folder).as_posix()))
        is_same_name = place.suffix == path.suffix  # it is then in another folder
        has_other_folder = len(path.parts) > 1 and path.parent != place.parent
        return None if is_same_name or has_other_folder else alike[0]

    def find_by_end(self, cell: str) -> Path | None:
        """Return the picture whose path ends most like the path in a cell: IMG_1.jpg of photos/2025/IMG_1.jpg.

        Of an address of iNaturalist, the number of the photo is its name: 35.jpg of photos/35/medium.jpg.
        None if two pictures end equally like it.
        """
        written = PurePosixPath(plain_name(cell.replace("\\", "/").removeprefix("./")))
        if len(written.parts) == 1 or ".." in written.parts:
            return None
        if number := _OF_INATURALIST.search(written.as_posix()):
            numbered = self._at.get(("stem", number[1]), [])
            return numbered[0] if len(numbered) == 1 and not numbered[0].is_symlink() else None
        ends: dict[int, list[Path]] = {}
        for picture in self._at.get(("name", written.name), []):
            place = PurePosixPath(plain_name(picture.relative_to(self.folder).as_posix()))
            pairs = zip(reversed(written.parts), reversed(place.parts), strict=False)
            n_alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            ends.setdefault(n_alike, []).append(picture)
        best = ends[max(ends)] if ends else []
        return best[0] if len(best) == 1 and not best[0].is_symlink() else None

    def find(self, cell: str) -> Path | None:
        """Return the picture that a cell names, or None; CellFault if it is outside the folder or not unique.

        Of a path on another computer the name counts, and the folders if several pictures have that name.
        """
        given = cell.replace("\\", "/").removeprefix("./")
        written = plain_name(given)
        path = PurePosixPath(written)
        if ".." in path.parts:
            hint = "write the name of the picture, or its path in that folder"
            raise CellFault("is outside the picture folder", hint)
        below = f"/{written}".rpartition(f"/{plain_name(self.folder.name)}/")[2]
        several = self._at.get(("path", written)) or self._at.get(("path", below))
        if not several and (len(path.parts) == 1 or _ELSEWHERE.match(written)):
            several = self._at.get(("name", path.name)) or self._at.get(("stem", path.name))
        if not several:
            return None
        if len(several) > 1:
            at = {one.relative_to(self.folder).as_posix(): one for one in several}
            ends = [
                place
                for place in at
                if "/" in place and f"/{written}".endswith(f"/{plain_name(place)}")
            ]
            several = [at[place] for place in ([given] if given in at else ends)]
            if len(several) != 1:
                raise CellFault(
                    "is the name of several pictures", "write its path in the picture folder"
                )
        if several[0].is_symlink() and not several[0].resolve().is_relative_to(self.folder):
            raise CellFault(
                "is a link to a file outside the picture folder", "copy the picture into the folder"
            )
        return several[0]


def _pictures(folder: Path) -> Iterable[Path]:
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(place, name)


def require_header(table: SheetTable) -> None:
    """Raise NoFileError if the first row names a picture, so that it is no header."""
    for column in table.columns:
        if IMAGE_NAME.search(column):
            raise NoFileError(
                f"the first row of {table.path.name} contains {column!r}, the name of a picture",
                hint="put a row above it that names the columns, e.g. photo,apples",
            )


def rows_of(table: SheetTable) -> Iterator[Row]:
    """Yield the rows with the white space of each cell collapsed, and missing cells as empty ones."""
    for number, cells in table.rows():
        # The text of a number has no white space to collapse, and has to stay known as one.
        plain = [cell if isinstance(cell, NumberText) else " ".join(cell.split()) for cell in cells]
        yield number, (*plain, *[""] * (len(table.columns) - len(plain)))


def image_column(
    images: Images, table: SheetTable, readings: Readings, option: str = IMAGES_OPTION
) -> str:
    """Return the column that names the most pictures of the folder, or else one whose header suggests pictures.

    Where two columns name other pictures in one row, as of two dates, it is asked which one is meant; ``option`` of the
    command line answers it.
    """
    found: dict[int, dict[int, Path]] = {}
    """Pictures that a column names, by place of the column and row."""
    first, alike, numbered = dict[int, str](), "", ""
    for row, cells in rows_of(table):
        for place, cell in enumerate(cells):
            if not cell:
                continue
            first.setdefault(place, cell)
            image = named_picture(images, cell)
            # A count of 3 is not picture 3.jpg, unless the header suggests that the column names pictures.
            if image and (not cell.isdigit() or IMAGE_HEADER.search(table.columns[place])):
                found.setdefault(place, {})[row] = image
            elif image:
                alike = f"; numbers name pictures only below a header such as photo: {cell}"
                numbered = numbered or table.columns[place]
        # Many pictures may be missing, but once enough are found the remaining rows are not needed.
        if row > 1000 and sum(map(len, found.values())) >= _ENOUGH_TO_KNOW:
            break
    if found:
        return _chosen_column(table, found, readings, option)
    if likely := next(filter(IMAGE_HEADER.search, table.columns), None):
        return likely
    examples = ", ".join(
        f"{table.columns[place]} ({first[place][:30]!r})" for place in sorted(first)
    )
    read = f"it was read with {table.described}: {examples[:300]}{alike}"
    hint = f"the folder contains {', '.join(images.some_names())}...; one column must contain such names"
    if numbered:
        hint += f"; if the numbers of {numbered!r} name the photos: '{option}={numbered}'"
    raise NoFileError(f"no column of {table.path.name} names a picture; {read}", hint=hint)


def _chosen_column(
    table: SheetTable, found: Mapping[int, Mapping[int, Path]], readings: Readings, option: str
) -> str:
    """Return the column with the most pictures; ask where another with about as many names other ones."""
    ordered = sorted(found, key=lambda place: (-len(found[place]), place))
    best = found[ordered[0]]
    choices = [ordered[0]]
    for place in ordered[1:]:
        is_other = any(best.get(row, image) != image for row, image in found[place].items())
        if is_other and _RIVAL * len(best) <= len(found[place]):
            choices.append(place)
    question = ReadingQuestion(
        f"Which column of {table.path.name} names the photos?",
        option,
        tuple(
            Choice(table.columns[place], f"{len(found[place])} rows with a photo")
            for place in choices
        ),
    )
    return readings.choose(question)


def named_picture(images: Images, cell: str) -> Path | None:
    """Return the picture that a cell names, None also where that is not clear."""
    with suppress(CellFault):
        return images.find(cell) or images.find_by_stem(cell) or images.find_by_end(cell)
    return None
