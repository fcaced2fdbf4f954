"""Headers of tables of KoboToolbox, which write the group of a question before it: ``Tree/Number of apples``."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from agrotools.core.readings import Readings
from agrotools.text.tables import SheetTable

_OF_KOBO = {"_uuid", "_index"}
"""Columns that KoboToolbox adds to each table with headers of its own."""
_MARK = "/"


def without_groups(
    table: SheetTable, kept: Collection[str | None], readings: Readings
) -> SheetTable:
    """Return a table of KoboToolbox whose headers are those of the questions alone; any other table as it is.

    A header stays if another column has its question too, or if it is an option of a question (``Pests/aphids`` beside
    ``Pests``): its column says whether the option was chosen. ``kept``: headers that the user names in full.
    """
    if not {*table.columns} >= _OF_KOBO:
        return table
    questions = {header: header.rpartition(_MARK)[2].strip() for header in table.columns}
    counted = Counter(question.casefold() for question in questions.values())
    shortened: dict[str, str] = {}
    for header, question in questions.items():
        group = header.rpartition(_MARK)[0]
        is_clear = counted[question.casefold()] == 1 and group not in table.columns
        if group and question and is_clear and header not in kept:
            shortened[header] = question
    if not shortened:
        return table
    first = next(iter(shortened))
    readings.take(
        f"the questions of KoboToolbox without their groups ({first} as {shortened[first]})"
    )
    columns = tuple(shortened.get(header, header) for header in table.columns)
    return replace(table, columns=columns)
