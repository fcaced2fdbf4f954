"""Headers of tables of phone apps, which write more than the question: ``Tree/Number of apples``, ``8_Severity_``."""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from agrotools.core.readings import Readings
from agrotools.text.tables import SheetTable


class _App(NamedTuple):
    """An app that writes groups or numbers before a question. ``before``: what stands there; ``what``: its name."""

    name: str
    columns: tuple[frozenset[str], ...]
    """Columns that the app adds to each table with headers of its own: all of one set are there."""
    before: re.Pattern[str]
    what: str


_APPS = (
    _App("KoboToolbox", (frozenset({"_uuid", "_index"}),), re.compile(r"(.*)/"), "groups"),
    # A form and a repeat of it: "SubmissionDate,meta-instanceID,name,home-type,home-address-street,KEY" and
    # "name,age,PARENT_KEY,KEY" in github.com/getodk/central-backend, test/unit/data/briefcase.js.
    _App(
        "ODK Central",
        (frozenset({"KEY", "SubmissionDate"}), frozenset({"KEY", "PARENT_KEY"})),
        re.compile(r"(.*)-"),
        "groups",
    ),
    # ec5_uuid: docs.epicollect.net/web-application/metadata. Its default mapping, EC5_AUTO, names a question by its
    # number and its first characters.
    _App("Epicollect5", (frozenset({"ec5_uuid"}),), re.compile(r"(\d+)_"), "numbers"),
)


def without_groups(
    table: SheetTable, kept: Collection[str | None], readings: Readings
) -> SheetTable:
    """Return a table of a phone app whose headers are those of the questions alone; any other table as it is.

    A header stays if another column has its question too, or if it is an option of a question (``Pests/aphids`` beside
    ``Pests``): its column says whether the option was chosen. ``kept``: headers that the user names in full.
    """
    own = {*table.columns}
    app = next((app for app in _APPS if any(own >= columns for columns in app.columns)), None)
    if app is None:
        return table
    found = {header: app.before.match(header) for header in table.columns}
    questions = {
        header: header[before.end() if before else 0 :].strip(" _") or header
        for header, before in found.items()
    }
    counted = Counter(question.casefold() for question in questions.values())
    shortened: dict[str, str] = {}
    for header, question in questions.items():
        before = found[header]
        is_clear = counted[question.casefold()] == 1 and header not in kept
        if before is not None and is_clear and before[1] not in own:
            shortened[header] = question
    if not shortened:
        return table
    first = next(iter(shortened))
    readings.take(
        f"the questions of {app.name} without their {app.what} ({first} as {shortened[first]})"
    )
    columns = tuple(shortened.get(header, header) for header in table.columns)
    return replace(table, columns=columns)
