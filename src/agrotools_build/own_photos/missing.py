"""Rows whose picture is not in the folder: totals and notes, misspelt names with near ones, and pictures that lack."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agrotools.core import BenchmarkError
from agrotools.core.readings import Readings
from agrotools.formats.picture_folder import IMAGE_NAME, plain_name
from agrotools.text.cells import is_empty
from agrotools_build.own_photos.plan import SkippedRows, listed

_NOTE = re.compile(
    r"(?:total|sum|mean|average|avg|median|std|sd|se|min|max|count|n|notes?|obs|remarks?|legend|source|comments?"
    r"|summe|gesamt|mittel(?:wert)?|durchschnitt|anmerkung(?:en)?|bemerkung(?:en)?|hinweis"
    r"|soma|media|média|promedio|suma|observa[çc](?:ão|ões|ión|iones)|nota|totais|totales"
    r"|somme|moyenne|remarques?|totale|somma|总计|合计|平均|备注)(?:$|[\s.:,=(].*)",
    re.IGNORECASE | re.DOTALL,
)
"""Cell of a row of totals, or of a note below a table."""
_FEWEST_WORDS_OF_NOTE = 5
"""Words from which a text without the ending of a picture is a note: names of files have fewer."""
_COPY_MARK = re.compile(
    r"[\s_-]*(?:\(\d+\)|[\s_-](?:copy|copia|cópia|kopie|copie)(?:[\s_-]*\(?\d+\)?)?)$",
    re.IGNORECASE,
)
"""What systems add to the name of a second file: ``(1)``, ``- Copia``."""
_NEAR_NAMED = 2
"""Pictures that are offered for one name: with more, none of them is likely."""
_MOST_MISSING = 0.5
"""Largest share of rows without a photo, where as large a share of the photos has no row.

Beyond it, names are written in another way than those of the files: what could be built would rest on the exceptions.
A table of more photos than the folder has is another case: nearly all of its photos have a row.
"""
_MISSING_NAMED = 5
"""Rows that the error names: enough to see how the names differ."""
_MOST_SEARCHED, _MOST_COMPARED = 100, 1_000
"""Rows for which a misspelt name is looked for, and files that each is compared with: together about a second."""
_NEAR = 0.6
"""Least similarity of names, as :func:`difflib.get_close_matches` takes it by default."""


class MissingRow(NamedTuple):
    """A row whose cell names a picture that is not in the folder.

    ``stem``: that name without its ending; ``near``: pictures that it may mean; empty if none is near.
    """

    row: int
    cell: str
    stem: str
    near: str = ""


def skip_missing(
    column: str, missing: Sequence[tuple[int, str]], free: Sequence[Path], skipped: SkippedRows
) -> list[MissingRow]:
    """Say which rows have no picture: totals and notes, near names of pictures without a row, and the others.

    Returns:
        The rows that name a picture.
    """
    named: list[MissingRow] = []
    for row, cell in missing:
        has_ending = IMAGE_NAME.search(cell) is not None
        if is_empty(cell):
            hint = "add the picture or correct the name"
            skipped.add(column, "does not name a picture", hint, row, cell[:60])
        elif is_note(cell):
            what = "is a row of totals or notes"
            skipped.add(column, what, "it is no photo", row, cell[:60])
        else:
            name = PurePosixPath(cell.replace("\\", "/")).name
            named.append(MissingRow(row, cell, name.rpartition(".")[0] if has_ending else name))
    named = _with_near_names(named, free)
    for each in named:
        text = each.cell[:60]
        if each.near:
            reason = "names a picture that is not in the folder, which has one of a near name"
            hint = "correct the name of the file or in the table"
            skipped.add(column, reason, hint, each.row, f"{text}: is it {each.near}?")
        else:
            what = "names a picture that is not in the folder"
            skipped.add(column, what, "add the picture or correct the name", each.row, text)
    return named


_FEWEST_OF_ITS_OWN = 0.8
"""Photos by rows with their numbers from which the numbers are those of photos: a photo may be entered twice."""


def photos_by_number(missing: Sequence[tuple[int, str]], free: Sequence[Path]) -> dict[int, Path]:
    """Return the photos whose names end in the numbers of rows, by row: DSC01200.JPG for 1200.

    Empty if a number belongs to several photos, or if many rows have the same number, as those of a rating do.
    """
    of_number: dict[str, list[Path]] = {}
    for photo in free:
        if numbers := _all_numbers(photo.stem):
            of_number.setdefault(numbers[-1], []).append(photo)
    found: dict[int, Path] = {}
    for row, cell in missing:
        photos = of_number.get(cell.lstrip("0"), []) if cell.isdecimal() else []
        if len(photos) > 1:
            return {}
        if photos:
            found[row] = photos[0]
    n_photos = len({*found.values()})
    return found if n_photos >= _FEWEST_OF_ITS_OWN * len(found) else {}


def is_note(cell: str) -> bool:
    """Return True for the first cell of a row of totals, or of a note, which names no photo."""
    if IMAGE_NAME.search(cell):
        return False
    return _NOTE.fullmatch(cell) is not None or len(cell.split()) >= _FEWEST_WORDS_OF_NOTE


def _with_near_names(missing: Sequence[MissingRow], free: Sequence[Path]) -> list[MissingRow]:
    """Return the rows with the pictures without a row that they may mean: alike but for zeros, or a slip away.

    A name with other numbers is another picture: IMG_2013 is no slip of IMG_2014.
    """
    alike: dict[str, list[Path]] = {}
    of_numbers: dict[tuple[str, ...], list[Path]] = {}
    for image in free:
        alike.setdefault(_alike_key(image.stem), []).append(image)
        # "img (7)" may be photo 7, or a copy of img.
        for numbers in {_numbers_in(image.stem), _all_numbers(image.stem)}:
            of_numbers.setdefault(numbers, []).append(image)
    found: list[MissingRow] = []
    for place, each in enumerate(missing):
        images = alike.get(_alike_key(each.stem), [])
        # "tree (4)" may be the fourth tree, not a copy.
        same = [image for image in images if _all_numbers(image.stem) == _all_numbers(each.stem)]
        images = (same or images)[:_NEAR_NAMED]
        if not images and place < _MOST_SEARCHED:
            for numbers in (_all_numbers(each.stem), _numbers_in(each.stem)):
                images = images or _closest(each.stem, of_numbers.get(numbers, []))
        found.append(each._replace(near=" or ".join(image.name for image in images)))
    return found


def _closest(stem: str, images: Sequence[Path]) -> list[Path]:
    """Return the picture whose name is spelt most like a name, as a list; empty if none is near."""
    by_name = {plain_name(image.stem): image for image in images[:_MOST_COMPARED]}
    return [
        by_name[name] for name in get_close_matches(plain_name(stem), by_name, n=1, cutoff=_NEAR)
    ]


def _numbers_in(stem: str) -> tuple[str, ...]:
    """Return the numbers in a name, without that of a copy."""
    return _all_numbers(_COPY_MARK.sub("", stem))


def _all_numbers(stem: str) -> tuple[str, ...]:
    return tuple(number.lstrip("0") for number in re.findall(r"\d+", stem))


def _alike_key(stem: str) -> str:
    """Return what names of one picture have in common: ``Folha_006`` and ``folha-6``, ``a`` and ``a (1)``."""
    plain = _COPY_MARK.sub("", plain_name(stem))
    return " ".join(part.lstrip("0") or part for part in re.findall(r"\d+|[^\W\d_]+", plain))


def refuse_if_most_are_missing(
    answers: Path,
    folder: Path,
    column: str,
    missing: Sequence[MissingRow],
    n_matched: int,
    free: Sequence[Path],
    n_pictures: int,
) -> None:
    """Raise an error if most rows name no picture of the folder, and most of its pictures have no row.

    Raises:
        BenchmarkError: the names differ.
    """
    n_rows = n_matched + len(missing)
    if len(missing) <= _MOST_MISSING * n_rows or len(free) <= _MOST_MISSING * n_pictures:
        return
    shown: list[str] = []
    for each in missing[:_MISSING_NAMED]:
        same_numbers = [one for one in free if _numbers_in(one.stem) == _numbers_in(each.stem)]
        near = _closest(each.stem, same_numbers) or _closest(each.stem, free)
        known = f"nearest: {near[0].name}" if near else "no name is near"
        shown.append(f"{each.cell[:60]!r} in row {each.row} ({known})")
    more = len(missing) - len(shown)
    raise BenchmarkError(
        f"{len(missing)} of {n_rows} rows of {answers.name} name no picture in {folder}, and {len(free)} of "
        f"its {n_pictures} pictures have no row: {'; '.join(shown)}{f'; and {more} more' if more else ''}",
        hint=f"write the names of the files into column {column!r}, or name another column by --set images_column=; "
        "rows of photos that you do not have can be deleted",
    )


def say_which_are_missing(missing: Sequence[MissingRow], readings: Readings) -> None:
    """Name the rows whose picture is not in the folder, with the pictures that they may mean."""
    if not missing:
        return
    names: list[str] = []
    for each in missing:
        question = f": is it {each.near}?" if each.near else ""
        names.append(f"{each.cell[:60]}{question}")
    what = "row" if len(missing) == 1 else "rows"
    readings.leave(f"{len(missing)} {what} without a photo ({listed(names)})")
