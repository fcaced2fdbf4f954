"""Dates of rasters, from the names of files and folders.

A date is written as in ISO 8601 where it has one meaning: ``2024-06-11``, ``2024-W24``, ``2024-06``, ``2024``. One with
two meanings (``03-04-2024``, ``240611``) stays as it is written, unless another raster of the set shows which part is
the day.
"""

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_YEAR, _MONTH, _DAY = r"((?:19|20)\d\d)", r"(0[1-9]|1[0-2])", r"(0[1-9]|[12]\d|3[01])"
_WHOLE = re.compile(rf"(?<!\d){_YEAR}([-_.]?){_MONTH}\2{_DAY}(?:[0-2]\d[0-5]\d(?:[0-5]\d)?)?(?!\d)")
"""Year, month, day, perhaps with hours, minutes and seconds behind them, as cameras write: 20240611103012."""
_WEEK = re.compile(rf"(?<![a-z\d]){_YEAR}[-_]?w(0[1-9]|[1-4]\d|5[0-3])(?!\d)", re.IGNORECASE)
_NAMES_OF_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_SPELLED = re.compile(
    rf"(?<!\d)(\d{{1,2}})[-_. ]?({'|'.join(_NAMES_OF_MONTHS)})[a-z]*[-_. ]?{_YEAR}(?!\d)",
    re.IGNORECASE,
)
_OF_MONTH = re.compile(rf"(?<!\d){_YEAR}-{_MONTH}(?![-_.]?\d)")
_YEAR_LAST = re.compile(r"(?<!\d)(\d{1,2})([-_.])(\d{1,2})\2((?:19|20)\d\d)(?!\d)")
_SIX_DIGITS = re.compile(r"(?<!\d)(\d\d)(\d\d)(\d\d)(?!\d)")
_YEAR_OF_FOLDER = re.compile(rf"{_YEAR}(?:[-_.]?{_MONTH})?")
"""Name of a folder of a year or a month."""
_TAG = re.compile(r"\s*(\d{4})[:-](\d\d)[:-](\d\d)")
"""Start of the tag DateTime of a TIFF file."""
_PRODUCT = re.compile(r"S[12][ABCD]_|L[COTE]0[4-9]_")
"""Start of names of Sentinel and Landsat, whose first date is that of the picture, the last that of a processing."""
_FOLDERS_WITH_DATES = 3
"""Number of folders above a raster whose names may hold its date: flights are stored as DATE/product/raster.tif."""
_SORTABLE = (re.compile(r"\d{4}(-\d\d){0,2}(/[\d-]+)?"), re.compile(r"\d{4}-W\d\d"))


class _Found(NamedTuple):
    """Date in a name. ``written``: as it stands there, if ``meanings`` (dates by the order of the parts) are several.

    ``kind``: the form in which it is written.
    """

    date: str = ""
    kind: str = ""
    written: str = ""
    meanings: Mapping[str, str] = {}


def dates_of(paths: Sequence[Path], tags: Sequence[str]) -> list[str]:
    """Return the date of each raster: in the name of the file, in that of a folder near it, in its tag DateTime
    (``tags``, empty if there is none), or the year or month of a folder; empty if there is none."""
    found = [_date_of(path, tag) for path, tag in zip(paths, tags, strict=True)]
    orders: dict[str, set[str]] = {}
    for one in found:
        if one.meanings:
            # All names of a set are written in one way, which must fit each of them.
            orders[one.kind] = orders.get(one.kind, {*one.meanings}) & {*one.meanings}
    dates: list[str] = []
    for one in found:
        fitting = {one.meanings[order] for order in orders.get(one.kind, ()) if one.meanings}
        dates.append(one.date or (fitting.pop() if len(fitting) == 1 else one.written))
    return dates


def has_date(path: Path) -> bool:
    """Return True if the name of a raster or of a folder near it holds a day, a week or a month."""
    return _in_names(path) is not None


def are_sortable(dates: Sequence[str]) -> bool:
    """Return True if all dates are there, have one meaning, and are in the order of their text."""
    return any(all(form.fullmatch(date) for date in dates) for form in _SORTABLE)


def _date_of(path: Path, tag: str) -> _Found:
    named = _in_names(path)
    if named is not None:
        return named
    year = ""
    for name in _folders_of(path):
        if whole := _YEAR_OF_FOLDER.fullmatch(name):
            year = "-".join(filter(None, whole.groups()))
            break
    of_tag = date_of_tag(tag)
    # A tag may hold the day of a processing: the year of a folder is believed more.
    return _Found(of_tag if of_tag.startswith(year) else year)


def date_of_tag(tag: str) -> str:
    """Return the date of a tag DateTime; empty if it holds none."""
    found = _TAG.match(tag)
    return _day(*map(int, found.groups())) if found else ""


def _folders_of(path: Path) -> list[str]:
    return [*reversed(path.parts[:-1])][:_FOLDERS_WITH_DATES]


def _in_names(path: Path) -> _Found | None:
    folders = _folders_of(path)
    for name in (path.stem, *folders):
        if days := [*dict.fromkeys(_days_in(name))]:
            is_one = len(days) == 1 or _PRODUCT.match(name)
            return _Found(days[0] if is_one else "/".join(sorted({days[0], days[-1]})))
    for name in (path.stem, *folders):
        for found in (_year_last(name), _six_digits(name)):
            if found is not None:
                return found
    if month := _OF_MONTH.search(path.stem):
        return _Found("-".join(month.groups()))
    return None


def _days_in(name: str) -> Iterator[str]:
    """Yield days and weeks that are written in a way that has one meaning."""
    for year, _, month, day in _WHOLE.findall(name):
        if date := _day(int(year), int(month), int(day)):
            yield date
    for day, month, year in _SPELLED.findall(name):
        number = _NAMES_OF_MONTHS.index(month.lower()) + 1
        if date := _day(int(year), number, int(day)):
            yield date
    for year, week in _WEEK.findall(name):
        yield f"{year}-W{week}"


def _year_last(name: str) -> _Found | None:
    """Return the date of a name such as 03-04-2024."""
    found = _YEAR_LAST.search(name)
    if found is None:
        return None
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    meanings = {"day first": _day(year, second, first), "month first": _day(year, first, second)}
    return _of_meanings(found, f"year last {found[2]}", meanings)


def _six_digits(name: str) -> _Found | None:
    """Return the date of a name such as 240611; None if that is no date in any order."""
    for found in _SIX_DIGITS.finditer(name):
        first, second, third = map(int, found.groups())
        meanings = {
            "year first": _day(2000 + first, second, third),
            "day first": _day(2000 + third, second, first),
            "month first": _day(2000 + third, first, second),
        }
        if date := _of_meanings(found, "six digits", meanings):
            return date
    return None


def _of_meanings(found: re.Match[str], kind: str, meanings: Mapping[str, str]) -> _Found | None:
    known = {order: date for order, date in meanings.items() if date}
    return _Found("", kind, found[0], known) if known else None


def _day(year: int, month: int, day: int) -> str:
    """Return a date; empty for a day that no calendar has."""
    if not (year >= 1900 and 1 <= month <= 12):
        return ""
    if not 1 <= day <= calendar.monthrange(year, month)[1]:
        return ""
    return f"{year}-{month:02}-{day:02}"
