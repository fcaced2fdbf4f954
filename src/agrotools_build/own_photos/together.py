"""Several sheets of a workbook as one table: columns of one name are one, and a column says of which sheet a row is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agrotools.text.tables import Row, SheetTable

ALL_SHEETS = "all"
"""Value of ``sheet`` that takes all visible sheets with photos and answers, unless a sheet has this name."""
SHEET_COLUMNS = ("sheet", "sheet_of_workbook")
"""Headers of the column with the sheet; the second one is for tables that have the first."""


class RowOfSheet(int):
    """Number of a row, which is shown with its sheet: rows of two sheets have the same numbers, and are two rows."""

    sheet: str

    @classmethod
    def of(cls, number: int, sheet: str) -> "RowOfSheet":
        row = cls(number)
        row.sheet = sheet
        return row

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other) is True and self.sheet == getattr(other, "sheet", None)

    def __hash__(self) -> int:
        return hash((int(self), self.sheet))

    def __str__(self) -> str:
        return f"{int(self)} of {self.sheet}"


class NamedSheet(NamedTuple):
    """A sheet, and its column that names the photos."""

    table: SheetTable
    images_column: str


def joined(sheets: Sequence[NamedSheet]) -> SheetTable:
    """Return the rows of all sheets. The first column names the photos, as in the first sheet; the last the sheet.

    Headers that differ in case alone are one column. A cell is empty where a sheet lacks the column.
    """
    first = sheets[0]
    columns = {first.images_column.casefold(): first.images_column}
    """Header of a column of the result, by what the sheets have in common of it."""
    of_sheet: list[dict[str, int]] = []
    """Place of a column in the sheet, by its header in the result."""
    for table, images_column in sheets:
        places: dict[str, int] = {}
        for place, header in enumerate(table.columns):
            is_photo = header == images_column
            shown = first.images_column if is_photo else header
            key = shown if header in table.namesakes and not is_photo else shown.casefold()
            places[columns.setdefault(key, shown)] = place
        of_sheet.append(places)
    known = {header.casefold() for header in columns.values()}
    own = next(name for name in (*SHEET_COLUMNS, "") if name not in known)
    headers = [*columns.values()]

    def rows() -> Iterator[Row]:
        for (table, _), places in zip(sheets, of_sheet, strict=True):
            for number, cells in table.rows():
                row = RowOfSheet.of(number, table.sheet or "")
                yield row, (*_in_order(cells, places, headers), table.sheet or "")

    hidden = [f"{table.sheet}: {table.hidden}" for table, _ in sheets if table.hidden]
    return replace(
        first.table,
        columns=(*headers, own),
        rows=rows,
        sheet=ALL_SHEETS,
        alike=tuple(dict.fromkeys(group for table, _ in sheets for group in table.alike)),
        hidden="; ".join(hidden),
        merged=sum(table.merged for table, _ in sheets),
    )


def _in_order(
    cells: Sequence[str], places: Mapping[str, int], headers: Sequence[str]
) -> Iterator[str]:
    """Yield the cells below these headers; empty ones where the row has none."""
    for header in headers:
        place = places.get(header)
        yield cells[place] if place is not None and place < len(cells) else ""
