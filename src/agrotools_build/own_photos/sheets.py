"""Which sheet of a workbook holds the photos and their answers: visible sheets first, never one in silence."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import BenchmarkError, UsageError
from agrotools.core.errors import NoFileError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.text.tables import WorkbookSheet, sheets_of
from agrotools_build.own_photos.columns import read_column
from agrotools_build.own_photos.table import match_rows
from agrotools_build.own_photos.together import ALL_SHEETS

_WHY_NAMED = 3
"""Sheets whose faults an error repeats: more would hide its first words."""


class _Tried(NamedTuple):
    """A sheet, its rows with a photo (0: none, or no column that may be an answer), and why it cannot be read.

    ``content``: its header and those rows.
    """

    sheet: WorkbookSheet
    n_rows: int
    fault: str = ""
    content: tuple[Any, ...] = ()


def choose_sheet(
    images: Path, answers: Path, given: Mapping[str, str], readings: Readings
) -> str | None:
    """Return the sheet with photos and answers; None for a table without sheets.

    It is asked which one, if several visible sheets have them; "all" is proposed. Sheets that are not read are said.
    ``given``: settings of the table, as for :func:`match_rows`.

    Raises:
        BenchmarkError: no visible sheet has photos and answers.
        UsageError: there is no given sheet.
    """
    sheets = sheets_of(answers)
    if not sheets and "sheet" in given:
        raise UsageError(f"{answers.name} has no sheets", hint="leave out --set sheet")
    if not sheets:
        return None
    if len(sheets) == 1 or "sheet" in given:
        chosen = given.get("sheet", sheets[0].name)
        if chosen in [each.name for each in sheets]:
            _say_what_is_left(sheets, [chosen], readings)
        return chosen
    tried = [_tried(images, answers, sheet, given) for sheet in sheets]
    with_rows = _different([each for each in tried if each.n_rows and not each.sheet.is_hidden])
    if not with_rows:
        raise _no_sheet(answers, sheets, tried)
    choices = [Choice(each.sheet.name, f"{each.n_rows} rows with a photo") for each in with_rows]
    if len(choices) > 1 and ALL_SHEETS not in [each.name for each in sheets]:
        total = sum(each.n_rows for each in with_rows)
        gives = f"{total} rows with a photo, their sheet in a column"
        choices.insert(0, Choice(ALL_SHEETS, gives))
    question = ReadingQuestion(f"Which sheet of {answers.name}?", "--set=sheet", tuple(choices))
    chosen = readings.choose(question)
    faults = {
        each.sheet.name: each.fault for each in tried if "formula" in each.fault and not each.n_rows
    }
    numbers = {each.sheet.name: f"{each.n_rows} rows with a photo" for each in with_rows}
    read = [*numbers] if chosen not in numbers else [chosen]
    _say_what_is_left(sheets, read, readings, faults | numbers)
    return chosen


def sheets_together(
    images: Path, answers: Path, given: Mapping[str, str], readings: Readings
) -> tuple[str, ...]:
    """Return the sheets that ``sheet = "all"`` of the ``given`` settings means; none if it means one sheet.

    Raises:
        BenchmarkError: no visible sheet has photos and answers.
    """
    sheets = sheets_of(answers)
    if given.get("sheet") != ALL_SHEETS or ALL_SHEETS in [each.name for each in sheets]:
        return ()
    tried = [_tried(images, answers, sheet, given) for sheet in sheets if not sheet.is_hidden]
    together = tuple(each.sheet.name for each in _different([one for one in tried if one.n_rows]))
    if not together:
        raise _no_sheet(answers, sheets, tried)
    _say_what_is_left(sheets, together, readings)
    return together


def _no_sheet(answers: Path, sheets: tuple[WorkbookSheet, ...], tried: list[_Tried]) -> NoFileError:
    return NoFileError(
        f"no visible sheet of {answers.name} has photos and answers: {_why(tried)}",
        hint=f"one column must name the photos; --set sheet=NAME reads one of: {_names(sheets)}",
    )


def _tried(images: Path, answers: Path, sheet: WorkbookSheet, given: Mapping[str, str]) -> _Tried:
    try:
        # Its questions come again, if the sheet is the chosen one.
        seen = match_rows(images, answers, None, Readings(), {**given, "sheet": sheet.name})
    except BenchmarkError as error:
        return _Tried(sheet, 0, error.message)
    others = [header for header in seen.table.columns if header != seen.images_column]
    readings = [read_column(header, seen) for header in others]
    has_answers = any(each.column.is_asked or each.doubt or each.is_unknown for each in readings)
    content = (seen.table.columns, *(each.cells for each in seen.matched))
    formulas = [line for line in seen.skipped.lines() if "has a formula" in line]
    fault = "; ".join(["it has no answers", *formulas])
    return _Tried(sheet, len(seen.matched) if has_answers else 0, fault, content)


def _different(tried: list[_Tried]) -> list[_Tried]:
    """Return the sheets without copies of an earlier one: they hold no other values."""
    contents = [each.content for each in tried]
    return [each for at, each in enumerate(tried) if each.content not in contents[:at]]


def _why(tried: list[_Tried]) -> str:
    visible = [each for each in tried if not each.sheet.is_hidden]
    return "; ".join(f"{each.sheet.name}: {each.fault}" for each in visible[:_WHY_NAMED])


def _names(sheets: tuple[WorkbookSheet, ...]) -> str:
    return ", ".join(
        f"{sheet.name} (hidden)" if sheet.is_hidden else sheet.name for sheet in sheets
    )


def _say_what_is_left(
    sheets: tuple[WorkbookSheet, ...],
    read: Collection[str],
    readings: Readings,
    more: Mapping[str, str] | None = None,
) -> None:
    """Name the sheets that are not ``read``, with ``more``: what they hold, or why they cannot be read."""
    for sheet in sheets:
        if sheet.name not in read:
            what = "hidden sheet" if sheet.is_hidden else "sheet"
            known = (more or {}).get(sheet.name)
            readings.leave(f'{what} "{sheet.name}"' + (f" ({known})" if known else ""))
