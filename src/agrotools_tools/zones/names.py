"""Names of zones, from the fields of their file.

A field can name the zones if its name is usual for that, in any language, case or form (``PlotID``, ``Plot No``,
``parcela``), and each zone has a value of its own. Where plots are counted anew in each block, block and plot together
name them: ``A-1``. Without such a field, two fields of whole numbers may name the zones of a grid: its row and column.
Zones that no field names are called ``feature 1``, which nobody takes for the number of a plot or a row of a grid.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

from agrotools.core import ToolError
from agrotools.core.readings import Choice, ReadingQuestion, Readings

Fields = Mapping[str, Sequence[Any]]
"""Values of the zones, (n,), by the name of the field."""

PLACE = "row-number"
"""Answer to ``--id`` that names zones by their place in the file."""
NUMBERED = "zones_numbered"
# Usual names of fields, in English and in the languages in which tables of own photos are read. Plot, sub-plot, block,
# replicate, field, trial, location and their names and numbers are terms of BrAPI 2.1 (levels of observation units) and
# of MIAPPE 1.1; breedbase writes plot_name, plot_number, block_number and rep_number. Name and folder are elements of
# KML. Other words are translations of these. A field of any other name is given by --id.
_PLOTS = frozenset(
    "plot subplot microplot parcel parcela parcelas parcelle parcella microparcelle parzelle parzellen parzella "
    "particella perceel poletko placette teilstuck versuchsparzelle talhao experimentalunit 小区 地块 田块 区画 "
    "делянка участок".split()
)
_NAMES = frozenset(
    "zone zona zon name nom nombre nome naam label title bezeichnung code polygon feature roi no nr num number nummer "
    "numero tree unit 名称 编号 号 区域 圃場 название номер".split()
)
_IDS = frozenset("id identifier ident kennung".split())
_GROUPS = frozenset(
    "block blk bloc bloque bloco blocco blok rep reps replicate replication repetition repeticion repetizione "
    "wiederholung wdh site location trial experiment field feld schlag champ campo farm betrieb folder "
    "layer layeroffile 区组 重复 田 повторность блок".split()
)
"""Fields whose values several plots share. They name zones beside another field, or where there is no other."""
_KINDS = (_PLOTS, _NAMES, _IDS, _GROUPS)
"""Usual names of fields, the likeliest names of zones first."""
_ENDINGS = frozenset(
    [
        "",
        *"id ids n no nr nb num number nummer numero name nom label code key 号 编号 名称 名".split(),
    ]
)
"""What may stand behind a usual name: ``PlotID``, ``plot_number``."""
_STARTS = frozenset(
    "id n no nr num numero number nom nombre nome name cod code codigo label iddela iddeparcela idde numde numerode "
    "nombrede codigode codede nomde nomdela numerodela numberof numberofthe".split()
)
"""What may stand before it: ``COD_TALHAO``, as in forest inventories of Brazil."""
_MOST_TOGETHER = 3
"""Number of fields that name a zone together: site, block and plot."""
_NAMED = 3
"""Names that a question or a line shows of a field."""


class Naming(NamedTuple):
    """Names of zones, the fields they come from (none: the place in the file), with notes and flags of all zones."""

    names: list[str]
    fields: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def name_zones(
    fields: Fields, count: int, file: str, *, given: str | None, readings: Readings
) -> Naming:
    """Return the names of ``count`` zones of a file.

    Args:
        given: field to take, or several with commas between them; None: to be found.

    Raises:
        ToolError: ``invalid_argument``: a field is not there or has equal values, or plots have equal numbers that no
            other field tells apart.
    """
    found = partial(_found, readings=readings) if given is None else partial(_as_asked, given=given)
    naming = found(fields, count, file)
    if naming.fields:
        shown = _shown(naming.names)
        readings.take(f"zones named by {' and '.join(naming.fields)} ({shown})")
    else:
        other = "" if given == PLACE else f"; {_hint(fields, count)}"
        readings.take(f"zones named by their place in the file (feature 1, feature 2, ...){other}")
    return naming


def _as_asked(fields: Fields, count: int, file: str, given: str) -> Naming:
    exact = _field_like(given, fields)
    if exact is None and given == PLACE:
        return _by_place(count)
    chosen = [exact] if exact else [_field_like(part, fields) for part in given.split(",")]
    known = [field for field in chosen if field is not None]
    if len(known) < len(chosen):
        why = f"{file} has no field {given!r}; it has {', '.join(fields) or 'none'}"
        raise ToolError("invalid_argument", why, argument="id", hint=_hint(fields, count))
    names = _joined([fields[field] for field in known])
    if fault := _fault(names):
        why = f"{file}: {' and '.join(known)} cannot name the zones: {fault}"
        raise ToolError("invalid_argument", why, argument="id", hint=_hint(fields, count))
    return Naming([str(name) for name in names], tuple(known))


def _field_like(name: str, fields: Fields) -> str | None:
    """Return the field of this name: as it is written, else in another case."""
    if name in fields:
        return name
    same = [field for field in fields if field.casefold() == name.strip().casefold()]
    return same[0] if len(same) == 1 else None


def _hint(fields: Fields, count: int) -> str:
    """Return which fields can name the zones."""
    good = [field for field in fields if not _fault(texts_of(fields[field]))]
    able = f"--id FIELD, with a field of different values ({', '.join(good[:8])})" if good else ""
    together = "" if good or count < 2 else "--id FIELD,FIELD names them by two fields together"
    return "; ".join(filter(None, (able, together, f"--id {PLACE} names them by their place")))


def _found(fields: Fields, count: int, file: str, readings: Readings) -> Naming:
    """Return the names by the usual fields; where several would name the zones differently, that is a question."""
    ranked = _ranked_fields(fields)
    namings = _by_one_field(fields, ranked)
    if not namings or _rank(namings[0].fields[0]) > 0:
        # Beside another field with a name for each zone, only numbers of plots are worth a question.
        bases = [field for field in ranked if not is_group(field) and _repeats(fields, field)]
        likely = [field for field in bases if not namings or _rank(field) == 0]
        together = _by_several_fields(fields, likely)
        # Numbers of another field look like those of the plots, which nothing tells apart.
        doubtful = not together and any(_rank(field) == 0 for field in bases)
        namings = [*together, *namings, *([_by_place(count)] if namings and doubtful else [])]
    namings = _without_equals(namings or _by_row_and_column(fields))
    if not namings:
        return _partly_named(fields, count, file, ranked)
    by_answer = {",".join(naming.fields) or PLACE: naming for naming in namings}
    choices = [
        Choice(answer, f"zones {_shown(naming.names)}") for answer, naming in by_answer.items()
    ]
    question = ReadingQuestion(f"Which field of {file} names the zones?", "--id", tuple(choices))
    return by_answer[readings.choose(question)]


def _repeats(fields: Fields, field: str) -> bool:
    """Return True if some of the values of a field are equal."""
    names = [name for name in texts_of(fields[field]) if name is not None]
    return len(set(names)) < len(names)


def _ranked_fields(fields: Fields) -> list[str]:
    """Return the fields with a usual name, the likeliest first."""
    known = [field for field in fields if _rank(field) < len(_KINDS)]
    return sorted(known, key=_rank)


def _rank(field: str) -> int:
    """Return the place of a field's name among the usual ones, by kind; their number if it is none."""
    letters = unicodedata.normalize("NFKD", field).casefold()
    plain = "".join(letter for letter in letters if letter.isalnum())
    for rank, usual in enumerate(_KINDS):
        if any(_is_form_of(plain, word) for word in usual):
            return rank
    return len(_KINDS)


def _is_form_of(plain: str, word: str) -> bool:
    """Return True if a name without signs is a usual word, perhaps with ``id`` or ``number`` before or behind it."""
    if plain.startswith(word) and plain.removeprefix(word) in _ENDINGS:
        return True
    return plain.endswith(word) and plain.removesuffix(word) in _STARTS


def texts_of(values: Sequence[Any]) -> list[str | None]:
    """Return values as text; None where there is none, and for what names nothing: fractions, lists, true and false."""
    texts: list[str | None] = []
    for value in values:
        is_whole = isinstance(value, float) and value.is_integer()
        if is_whole:
            texts.append(f"{value:.15g}")
        elif isinstance(value, str | int) and not isinstance(value, bool):
            texts.append(str(value).strip() or None)
        else:
            texts.append(None)
    return texts


def _joined(columns: Sequence[Sequence[Any]]) -> list[str | None]:
    """Return the values of several fields with hyphens between them; None where one has none."""
    parts = zip(*(texts_of(column) for column in columns), strict=True)
    return [None if None in part else "-".join(map(str, part)) for part in parts]


def _fault(names: Sequence[str | None]) -> str:
    """Return why these cannot name zones; empty if they can."""
    lacking = sum(name is None for name in names)
    if lacking:
        return f"no name in {lacking} of {len(names)} zones"
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    return f"{name} stands {times} times" if times > 1 else ""


def _by_one_field(fields: Fields, ranked: Sequence[str]) -> list[Naming]:
    """Return the names by each field that can name all zones; by one of groups only if there is no other."""
    able = [field for field in ranked if not _fault(texts_of(fields[field]))]
    chosen = [field for field in able if not is_group(field)] or able
    # Programs number features by themselves: beside a field of the user such an id names nothing.
    chosen = [field for field in chosen if not _is_running_id(field, fields)] or chosen
    return [Naming([str(name) for name in texts_of(fields[field])], (field,)) for field in chosen]


def _is_running_id(field: str, fields: Fields) -> bool:
    """Return True for an id that counts the features of the file from 0 or 1 on."""
    names = texts_of(fields[field])
    is_id = _rank(field) == _KINDS.index(_IDS)
    return is_id and any(
        names == [str(start + place) for place in range(len(names))] for start in (0, 1)
    )


def is_group(field: str) -> bool:
    """Return True if the name of a field is usual for what several plots share: block, site."""
    return _rank(field) == _KINDS.index(_GROUPS)


def _by_several_fields(fields: Fields, bases: Sequence[str]) -> list[Naming]:
    """Return the names by groups and the first of the fields ``bases`` with which they tell all zones apart, with as
    few groups as that needs."""
    groups = [field for field in fields if is_group(field)]
    for base in bases:
        for number in range(1, _MOST_TOGETHER):
            together = [(*some, base) for some in combinations(groups, number)]
            columns = [(some, _joined([fields[field] for field in some])) for some in together]
            good = [(some, names) for some, names in columns if not _fault(names)]
            if good:
                return [Naming([str(name) for name in names], some) for some, names in good]
    return []


def _by_row_and_column(fields: Fields) -> list[Naming]:
    """Return the names by each two fields of whole numbers that tell all zones apart together, but not alone."""
    numbers: dict[str, list[str | None]] = {}
    for field, values in fields.items():
        texts = texts_of(values)
        if _repeats(fields, field) and all(text is not None and text.isdigit() for text in texts):
            numbers[field] = texts
    namings: list[Naming] = []
    for pair in combinations(numbers, 2):
        names = _joined([numbers[field] for field in pair])
        if not _fault(names):
            namings.append(Naming([str(name) for name in names], pair))
    return namings


def _without_equals(namings: Sequence[Naming]) -> list[Naming]:
    """Return the namings without those that give the same names as one before: ``01`` is ``1``."""
    different: dict[tuple[str, ...], Naming] = {}
    for naming in namings:
        key = tuple(re.sub(r"(?<!\d)0+(?=\d)", "", name) for name in naming.names)
        different.setdefault(key, naming)
    return [*different.values()]


def _partly_named(fields: Fields, count: int, file: str, ranked: Sequence[str]) -> Naming:
    """Return the names where no field names all zones.

    Raises:
        ToolError: plots have equal numbers.
    """
    for field in (field for field in ranked if _rank(field) == 0):
        names = texts_of(fields[field])
        known = [name for name in names if name is not None]
        if not known:
            continue
        if fault := _fault(known):
            why = f"{file}: the field {field} does not tell the zones apart: {fault}"
            raise ToolError("invalid_argument", why, argument="zones", hint=_hint(fields, count))
        filled = [name or f"feature {place}" for place, name in enumerate(names, start=1)]
        note = f"{file}: zones without a value of {field} are called by their place in the file"
        return Naming(filled, (field,), (note,), ())
    faults = [f"{field} ({_fault(texts_of(fields[field]))})" for field in ranked]
    because = f": {', '.join(faults)}" if faults else ""
    note = f"{file}: no field names the zones{because}; they are called feature 1, feature 2, ..."
    return _by_place(count)._replace(notes=(note,))


def _by_place(count: int) -> Naming:
    names = [f"feature {place}" for place in range(1, count + 1)]
    return Naming(names, flags=(NUMBERED,))


def _shown(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
