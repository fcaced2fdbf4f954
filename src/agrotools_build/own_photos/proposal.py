"""Proposal of a plan for a table, and the questions that only the owner of the photos can answer."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agrotools.core import BenchmarkError
from agrotools.core.texts import count_text
from agrotools.formats.tool_labels import nearest_label
from agrotools.knowledge.countables import countables
from agrotools.knowledge.words import folded
from agrotools.text import cells
from agrotools.text.decimal_marks import detect_decimal
from agrotools.text.normalise import CJK
from agrotools_build.own_photos.columns import (
    CLASS,
    EMPTY,
    ColumnReading,
    both_ways,
    can_be_returned,
    choices_of,
    crop_in,
    is_in_doubt,
    kind_of,
    nearly_all_zero,
    read_column,
    target_in,
    texts_of,
)
from agrotools_build.own_photos.nearest import HEALTHY, nearest_names
from agrotools_build.own_photos.observers import (
    APART,
    ONLY,
    agreement,
    alike_columns,
    are_observers,
    are_same_in_other_words,
    asked_alike,
    partners_of,
)
from agrotools_build.own_photos.plan import NOTHING, RATING, UNDECIDED, Column, Plan, measures
from agrotools_build.own_photos.questions import ColumnNames, crops_of_the_net, quantity_text
from agrotools_build.own_photos.repeats import REPEATED, differing_photos
from agrotools_build.own_photos.table import DetectedTable

NUMBERS_OF_OWNER = ("distance_mm", "fx_px", "px_per_cm", "marker_cm")
"""Keys of a plan for numbers that neither the table nor the photos tell."""
_NEEDED = {"diameter": ("distance_mm", "fx_px"), "plant_height": ("px_per_cm",)}
"""Those that the tool of a measure needs."""


def lacking_numbers(column: Column) -> str:
    """Return the ``--set`` of the numbers that the tool of a column needs, if the plan has none of them; else empty."""
    if any(getattr(column, key) for key in NUMBERS_OF_OWNER):
        return ""
    needed = _NEEDED.get(column.ask, ())
    return " ".join(f"--set '{column.column}.{key}=NUMBER'" for key in needed)


class OpenQuestion(NamedTuple):
    """A key that must be filled in before a column can be used; ``question`` is the text shown to the user."""

    column: str
    key: str
    question: str
    choices: tuple[str, ...] = ()
    or_key: str | None = None
    """Alternative key that would also do."""
    part: str | None = None
    """Name in the table that the question is about, if the key maps names."""
    suggested: str = ""
    """Proposed answer, or the :func:`placeholder` of one that only the owner knows; empty: the first choice."""
    depends_on: str = ""
    """Key of another question whose answer decides whether there is something to ask; empty for none."""

    @property
    def is_owners(self) -> bool:
        """True if no answer is proposed, because only the owner knows it."""
        return self.suggested == placeholder(self.key)


def open_questions(plan: Plan, seen: DetectedTable) -> list[OpenQuestion]:
    """Return all open questions of a plan, in the order of its columns."""
    return [need for column in plan.columns for need in open_questions_of_column(column, seen)]


def may_have_rows_behind(column: Column) -> bool:
    """Return True if a column counts fruit, and its plan does not say whether that of rows behind counts."""
    thing = countables().get(column.target or "")
    is_fruit = column.ask == "count" and thing is not None and thing.is_fruit
    return is_fruit and column.rows_behind is None


def which_rows(column: Column) -> OpenQuestion | None:
    """Return the question whether fruit of the rows behind counts; None where there is none, or the plan says it."""
    if not may_have_rows_behind(column):
        return None
    things = column.objects or column.target
    question = f"Does {column.column!r} count the {things} of the rows behind? Its tool does not count them."
    choices = (*_ROWS_BEHIND, NOTHING)
    return OpenQuestion(column.column, ROWS_BEHIND, question, choices, suggested=choices[0])


def is_without_proposal(need: OpenQuestion, plan: Plan) -> bool:
    """Return True if the proposed answer to what a column holds would leave nothing to ask about in the whole table."""
    others = [each for each in plan.columns if each.column != need.column]
    leaves_out = need.key == "ask" and need.choices[0] in (NOTHING, RATING)
    return leaves_out and not any(each.is_asked for each in others)


def open_questions_of_column(column: Column, seen: DetectedTable) -> list[OpenQuestion]:
    """Return the open questions about one column."""
    if column.ask in column.UNASKED:
        return []
    name = column.column
    if column.ask == UNDECIDED:
        return [_what_it_holds(column, seen)]
    measure = measures()[column.ask]
    lacking: list[OpenQuestion] = []

    def ask(
        key: str,
        question: str,
        *choices: str,
        or_key: str | None = None,
        suggested: str = "",
    ) -> None:
        # Nobody knows it, but an answer that leaves the column out would be worse.
        answer = suggested or placeholder(key)
        lacking.append(OpenQuestion(name, key, question, choices, or_key, suggested=answer))

    if measure.kind == "number" and measure.unit and not column.unit:
        ask(
            "unit", f"Which unit do numbers without a unit have in {name!r}?", *_UNITS[measure.unit]
        )
    if measure.kind == "number" and not column.decimal:
        *_, cell = detect_decimal(text for _, _, text in seen.cells_of(name, column.second))
        ask("decimal", f"Is {cell or '1,234'} in {name!r} {both_ways(cell or '1,234')}?", ".", ",")
    if column.repeated is None and (differing := differing_photos(seen, column)):
        ask(
            REPEATED,
            _what_rows_are(column, differing, seen),
            *(way for way in _REPEATED if way != "sum" or measure.unit != "%"),
            suggested=_REPEATED[0],
        )
    if column.ask == "count" and not column.target:
        known, is_clear = target_in(name, seen)
        ask(
            "target",
            f"What is counted in {name!r}, as a singular noun ({', '.join(countables())}...)?",
            *filter(None, [known]),
            suggested=known if known and is_clear else "",
        )
    if column.ask == "diameter" and not column.distance_mm:
        ask("distance_mm", f"How far were the fruits of {name!r} from the camera, in millimetres?")
    if column.ask == "diameter" and not column.fx_px:
        pixels = "focal length / sensor width x image width"
        ask("fx_px", f"What is the focal length of the camera in pixels ({pixels})?")
    if column.ask == "plant_height" and not (column.px_per_cm or column.marker_cm):
        ask(
            "px_per_cm",
            f"How many pixels are one centimetre at the plants of {name!r}?",
            or_key="marker_cm",
        )
    if measure.kind == "name" and column.ask != CLASS:  # names of a class stand for themselves
        lacking += _questions_on_names(column, seen)
    if measure.kind == "yes" and not column.yes_means:
        ask("yes_means", f"What does a yes in {name!r} mean, as a sentence about the photo?")
    return lacking


def _what_rows_are(
    column: Column, differing: Mapping[Path, Sequence[str]], seen: DetectedTable
) -> str:
    """Return the question for what several rows of one photo are, with a photo on which they differ."""
    photo, texts = next(iter(differing.items()))
    photos = count_text(len(differing), "photo")
    has = "has" if len(differing) == 1 else "have"
    shown = " and ".join(texts[:_ROWS_SHOWN])
    return (
        f"{photos} {has} several rows with different numbers in {column.column!r} "
        f"({seen.images.shown_name(photo)}: {shown}). What is the number of a photo with several rows?"
    )


def _questions_on_names(column: Column, seen: DetectedTable) -> list[OpenQuestion]:
    """Return the questions for the crop of names, and for what names mean that the knowledge base does not have."""
    names = names_of(seen, column)
    if names.labels.unclear and not column.crop:
        return _questions_on_crop(column, names.labels.unclear, seen)
    return _questions_on_unknown_names(column, names, seen)


def _questions_on_crop(
    column: Column, unclear: Mapping[str, Sequence[str]], seen: DetectedTable
) -> list[OpenQuestion]:
    """Return the question for the crop of names; where only the owner knows it, also that for its unknown names."""
    name = column.column
    likely = _likely_crop(unclear, seen)
    question = _which_crop(column, unclear)
    suggested = likely or placeholder("crop")
    of_crop = OpenQuestion(name, "crop", question, tuple(_crops_of(unclear)), suggested=suggested)
    are_on_other_crops = len({*unclear.values()}) > 1
    may_be_unknown = are_on_other_crops or bool(unknown_names(seen, column))
    if likely or column.unknown_names or not may_be_unknown:
        return [of_crop]
    question = (
        f"What becomes of names in {name!r} that the knowledge base does not have for that crop?"
    )
    of_names = OpenQuestion(
        name,
        UNKNOWN_NAMES,
        question,
        _UNKNOWN_NAMES,
        suggested=_UNKNOWN_NAMES[0],
        depends_on="crop",
    )
    return [of_crop, of_names]


def _questions_on_unknown_names(
    column: Column, names: ColumnNames, seen: DetectedTable
) -> list[OpenQuestion]:
    """Return a question for each name that no tool result can match; one for the column if all its names are so."""
    name = column.column
    unknown = unknown_names(seen, column)
    crop = column.crop or names.labels.crop
    # Two spellings are one question: the answer on one holds for the other.
    spelt = {folded(text) or text: text for text in reversed(unknown)}
    near_of: dict[str, list[str]] = {}
    for text in reversed(spelt.values()):
        written = column.names.get(text, text)
        of_pack = nearest_label(written, sorted(seen.pack_labels))
        near = [of_pack] if of_pack else []
        near_of[text] = [*near, *nearest_names(written, column.ask, crop)]
    if unknown and not _known_problems(names, seen) and not any(near_of.values()):
        question = _which_names(column, unknown, crop)
        choices = (CLASS, NOTHING)
        return [OpenQuestion(name, "ask", question, choices, or_key=NAMES, suggested=CLASS)]
    if column.unknown_names:
        return []
    lacking: list[OpenQuestion] = []
    for text, near in near_of.items():
        n_cells = sum(n for each, n in unknown.items() if folded(each) == folded(text))
        question = _what_is_meant(column, text, n_cells, names)
        # A name in doubt ("rust?") is none.
        as_it_is = [] if is_in_doubt(text) else [text]
        # Words for a plant without a problem ("OK") are too many to be known.
        healthy = [] if column.ask == "weed" else [HEALTHY]
        choices = tuple(dict.fromkeys((*near, *as_it_is, *healthy, NOTHING)))
        lacking.append(
            OpenQuestion(name, NAMES, question, choices, part=text, suggested=choices[0])
        )
    return lacking


def placeholder(key: str) -> str:
    """Return the value that stands for an answer in a printed command, and is refused as one: ``CROP``."""
    return key.upper()


def _likely_crop(unclear: Mapping[str, Sequence[str]], seen: DetectedTable) -> str:
    """Return the crop that the names of files say, or on which most names are known; empty if several tie."""
    for path in (seen.table.path, *seen.images.folder.parents[:2]):
        if crop := crop_in(path.stem):
            return crop
    of_photos = Counter(filter(None, (crop_in(each.image.stem) for each in seen.matched)))
    if len(of_photos) == 1:
        return next(iter(of_photos))
    counted = Counter(crop for crops in unclear.values() for crop in crops).most_common(2)
    is_alone = len(counted) == 1 or (len(counted) > 1 and counted[0][1] > counted[1][1])
    return counted[0][0] if is_alone else ""


def _what_it_holds(column: Column, seen: DetectedTable) -> OpenQuestion:
    """Return the question for what a column holds, with the reason why it is asked."""
    name = column.column
    reading = read_column(name, seen, column.second)
    kind = kind_of(texts_of(name, seen, column.second), name)
    why = f" ({reading.doubt})" if reading.doubt else ""
    alike = next((group for group in seen.table.alike if name in group), ())
    if alike:
        why += f" ({_NAMESAKES}, {seen.table.placed(alike)}: use one, or rename them)"
    question = f"What does column {name!r} hold{why}? Some answers lead to a further question, such as what is counted."
    choices = choices_of(kind, reading.proposed)
    return OpenQuestion(name, "ask", question, choices, suggested=reading.proposed)


def _crops_of(unclear: Mapping[str, Sequence[str]]) -> list[str]:
    """Return crops on which names are known: those of the most names first, then those that the shipped nets know."""
    counted = Counter(crop for crops in unclear.values() for crop in crops)
    of_nets = {*crops_of_the_net()}

    def rank(crop: str) -> tuple[int, bool, str]:
        return -counted[crop], crop not in of_nets, crop

    return sorted(counted, key=rank)[:_CROPS_NAMED]


def _which_crop(column: Column, unclear: Mapping[str, Sequence[str]]) -> str:
    """Return the question for the crop of names that the knowledge base has for several."""
    known = "; ".join(
        f"{name!r} is known on {', '.join(crops[:_CROPS_NAMED])}{', ...' * (len(crops) > _CROPS_NAMED)}"
        for name, crops in unclear.items()
    )
    several = f'for photos of several crops, set ask = "class" and quantity = "{column.ask}"'
    return (
        f"{known}. Names with their crop need none ('bean rust'); {several}. "
        f"Which crop do the photos of {column.column!r} show?"
    )


def _known_problems(names: ColumnNames, seen: DetectedTable) -> list[str]:
    """Return the names of a column that a tool may return, without those of healthy plants."""
    problems = [name for name in names.labels.entries if not names.is_healthy(name)]
    return [name for name in problems if can_be_returned(name, names, seen)]


def _which_names(column: Column, unknown: Mapping[str, int], crop: str | None) -> str:
    some = list(unknown)[:_MOST_LISTED]
    listed = "; ".join(f"{name!r}{_near(name, column, crop)}" for name in some)
    more = f"; {len(unknown) - len(some)} more" if len(unknown) > len(some) else ""
    return (
        f"The knowledge base has none of the names of {column.column!r}, so that no tool result can match one: "
        f"{listed}{more}. Write names that agrotools tools kb search finds, or choose {CLASS!r} and train a pack on "
        f"your photos. What does {column.column!r} hold?"
    )


def _what_is_meant(column: Column, name: str, n_cells: int, names: ColumnNames) -> str:
    counted = f"{n_cells} cell{'s' if n_cells > 1 else ''}"
    written = column.names.get(name, name)
    given = f"{name!r} ({counted})" if written == name else f"{written!r}, given for {name!r},"
    crop = column.crop or names.labels.crop
    of_crop = f" for {crop}" if crop else ""
    others = names.labels.unclear.get(written, ())[:_CROPS_NAMED]
    only_others = f" (it has the name for {', '.join(others)})" if others else ""
    return (
        f"{given} is not in the knowledge base{of_crop}{only_others}. Which known name does it mean? It knows English "
        "and scientific names, and some names in Chinese, Portuguese, Spanish, French, German and Italian; agrotools "
        "tools kb search 'NAME IN ENGLISH' shows what it has. No tool can return a name that stays as it is."
    )


def _near(name: str, column: Column, crop: str | None) -> str:
    near = nearest_names(name, column.ask, crop)
    return f" (nearest: {', '.join(near)})" if near else " (no known name is near)"


def unknown_reason(name: str, column: Column) -> str:
    """Return why the cells with a name are not used, as the continuation of "the cell ..."."""
    if column.names.get(name) == NOTHING:
        return "is left out by names in the plan"
    return f"is not in the knowledge base{_near(column.names.get(name, name), column, column.crop)}"


def names_of(seen: DetectedTable, column: Column) -> ColumnNames:
    """Return what the names in the cells of a column mean, resolved together; unusable cells are left out."""
    meant = {column.meaning_of(name) for name in names_in_cells(seen, column)}
    return ColumnNames.of(column, filter(None, meant))


def unknown_names(seen: DetectedTable, column: Column) -> dict[str, int]:
    """Return the names in the cells of a column that no tool result can match, with the number of their cells.

    Names that the plan leaves out or keeps as they are, are not counted.
    """
    without_result = names_without_result(seen, column)
    return {name: n for name, n in without_result.items() if not column.keeps(name)}


def names_without_result(seen: DetectedTable, column: Column) -> dict[str, int]:
    """Return the names that no tool result can match, kept ones too, with the number of their cells."""
    names = names_of(seen, column)
    unknown = Counter[str]()
    for name, n_cells in Counter(names_in_cells(seen, column)).items():
        meant = column.meaning_of(name)
        if meant is not None and not can_be_returned(meant, names, seen):
            unknown[name] = n_cells
    return dict(unknown.most_common())


def names_in_cells(seen: DetectedTable, column: Column) -> Iterator[str]:
    """Yield the name in each cell of a column and of its second observer; cells without a usable one are left out."""
    for _, _, text in seen.cells_of(column.column, column.second):
        with suppress(cells.CellFault):
            if not cells.is_empty(text):
                yield cells.name(text)


_UNITS = {"%": ("%", "fraction"), "mm": ("mm", "cm"), "cm": ("cm", "mm", "m"), "m": ("m", "cm")}
"""Units that numbers of a measure are written in, by its own unit."""
_CROPS_NAMED = 4
_MOST_LISTED = 12
ROWS_BEHIND = "rows_behind"
"""Key of a plan for fruit in the rows behind."""
_ROWS_BEHIND = ("not-counted", "counted")
"""Its values, the proposed one first: people who count the fruit of a tree count that tree."""
UNKNOWN_NAMES = "unknown_names"
"""Key of a plan for names that depend on a crop which only the owner knows."""
_UNKNOWN_NAMES = ("kept", "left-out")
"""Its values, the proposed one first."""
_REPEATED = ("refuse", "sum", "mean")
"""Values of :data:`REPEATED`, the proposed one first: photos that are left out have no wrong number."""
_ROWS_SHOWN = 3
"""Rows of a photo that a question shows."""
NAMES = "names"
"""Key of a plan for what unknown names in the table mean."""
_NAMESAKES = "the table has several columns of this name"


_UNKNOWN_IN_NOTE = re.compile(r"(?<= )([^(),;:]+) \((\d+), unknown to the knowledge base")
"""A name in the note on a column, and the number of its cells."""


def note_with_names(note: str, column: Column) -> str:
    """Return the note on a column with what the plan says of names that the knowledge base does not have."""

    def with_meaning(found: re.Match[str]) -> str:
        name, n_cells = found[1], found[2]
        meant = column.meaning_of(name)
        if meant == name:
            return found[0]
        said = "left out" if meant is None else meant
        return f"{name} ({n_cells}, {said}"

    return _UNKNOWN_IN_NOTE.sub(with_meaning, note)


class Proposal(NamedTuple):
    """A plan, and notes on how each column was interpreted and why.

    ``loose``: columns whose header may also stand above something else, each with what it is read as.
    """

    plan: Plan
    notes: dict[str, str]
    loose: dict[str, str]


def propose_plan(seen: DetectedTable, name: str) -> Proposal:
    """Propose a plan, with gaps (:func:`open_questions`); BenchmarkError if no column contains an answer."""
    table, notes, loose = seen.table, dict[str, str](), dict[str, str]()
    columns = _proposed_columns(seen, notes, loose)
    if all(column.ask == "slice" or notes[column.column] == EMPTY for column in columns):
        empty = [header for header, note in notes.items() if note == EMPTY]
        what = (
            ", ".join(f"column {header!r} is {EMPTY}" for header in empty)
            or "its columns name photos and groups"
        )
        why = (
            f"{table.path.name} contains no answers: {'; '.join([what, *seen.skipped.lines()[:2]])}"
        )
        raise BenchmarkError(why, hint="write the answers into the table, one row for each photo")
    is_chinese = 2 * sum(bool(re.search(f"[{CJK}]", header)) for header in table.columns) > len(
        table.columns
    )
    unused = {} if is_chinese else {"objects_zh": None, "yes_means_zh": None}
    plan = Plan(
        name=name_of_benchmark(name),
        images_column=seen.images_column,
        languages=("zh",) if is_chinese else ("en",),
        encoding=table.encoding,
        delimiter=table.delimiter,
        sheet=table.sheet,
        attribute=table.attribute,
        columns=tuple(column.model_copy(update=unused) for column in columns),
    )
    return Proposal(plan, notes, loose)


def name_of_benchmark(folder: str) -> str:
    """Return the name of the benchmark in a folder of this name."""
    return re.sub(r"[^a-z0-9_.-]+", "-", folder.casefold()).strip("-._")[:60] or "my-farm"


def _proposed_columns(
    seen: DetectedTable, notes: dict[str, str], loose: dict[str, str]
) -> list[Column]:
    """Return the columns of a plan, and write how each was interpreted into ``notes`` and ``loose``."""
    seconds = _second_observers(seen)
    readings: list[ColumnReading] = []
    for header in seen.table.columns:
        if header == seen.images_column or header in filter(None, seconds.values()):
            continue
        if header in seen.beside:
            notes[header] = f"stands behind {seen.beside[header]!r}, which names other photos"
            readings.append(ColumnReading(Column(column=header, ask=NOTHING), notes[header]))
            continue
        second = seconds.get(header)
        reading = read_column(header, seen, second)
        column, note = reading.column, reading.note
        note += f"; {second} is of a second observer" if second else ""
        if column.is_asked and header in seen.table.namesakes:
            column = column.model_copy(update={"ask": UNDECIDED})
            note += f"; {_NAMESAKES}"
        column = column.model_copy(update={"second": second})
        readings.append(reading._replace(column=column))
        notes[header] = note
        if reading.is_loose and column.is_asked:
            loose[header] = quantity_text(column)
    if not any(each.column.is_asked or each.doubt for each in readings):
        # Nothing else may be an answer: what no header explains is asked about.
        return [_undecided(each) for each in readings]
    rare = {
        each.column.column: why for each in readings if (why := nearly_all_zero(each.column, seen))
    }
    if all(each.column.column in rare for each in readings if each.column.is_asked):
        return [each.column for each in readings]
    left = {**rare, **_in_other_words([each.column for each in readings], seen)}
    for name, why in left.items():
        notes[name] += f"; {why}"
    return [
        each.column.model_copy(update={"ask": NOTHING})
        if each.column.column in left
        else each.column
        for each in readings
    ]


def _in_other_words(columns: Sequence[Column], seen: DetectedTable) -> dict[str, str]:
    """Return the columns that name the things of another column in other words, each with the reason to leave it.

    Exports of iNaturalist have species_guess, scientific_name and common_name. Of such columns, that is asked of whose
    names most can be a result of a tool.
    """
    groups: list[list[Column]] = []
    for column in columns:
        if (
            column.second is not None
            or not column.is_asked
            or measures()[column.ask].kind != "name"
        ):
            continue
        group = next((each for each in groups if _is_of_group(column, each[0], seen)), None)
        if group is None:
            groups.append([column])
        else:
            group.append(column)
    left: dict[str, str] = {}
    for group in groups:
        unknown = [sum(names_without_result(seen, each).values()) for each in group]
        asked = group[unknown.index(min(unknown))].column
        why = f"the things of {asked!r} in other words"
        left |= {each.column: why for each in group if each.column != asked}
    return left


def _is_of_group(column: Column, first: Column, seen: DetectedTable) -> bool:
    return column.ask == first.ask and are_same_in_other_words(first, column, seen)


def _second_observers(seen: DetectedTable) -> dict[str, str]:
    """Return the columns with that of a second observer of the same thing, "" if it is open whether there is one."""
    seconds: dict[str, str] = {}
    for group in alike_columns(seen.table):
        others = [header for header in group.headers if header != seen.images_column]
        if len(others) < len(group.headers):
            continue
        first = read_column(others[0], seen, others[1]).column
        is_clear = first.is_asked and are_observers(group, seen, first)
        seconds[others[0]] = others[1] if is_clear else UNDECIDED
    return seconds


def which_observers(plan: Plan, column: Column, seen: DetectedTable) -> OpenQuestion | None:
    """Return the question whether a column and others are of observers of one thing; None if none is.

    Such columns have the words of its header, or would be asked in the same words although their values differ.
    """
    why = ""
    partners: list[Column] = []
    if column.second == UNDECIDED:
        partners = partners_of(column, plan.columns, seen.table)
    elif column.second is None:
        partners = asked_alike(column, plan.columns, seen)
        why = f" Each would be asked as {quantity_text(column)!r}." if partners else ""
    others = [each.column for each in partners]
    if not others:
        return None
    headers = [column.column, *others]
    listed = " and ".join(map(repr, headers))
    agree = agreement(column, partners[0], seen)
    found: dict[bool | None, str] = {
        True: " They agree on most photos.",
        False: " They differ on many photos.",
    }
    suggested = APART if agree is False else others[0]
    return OpenQuestion(
        column.column,
        "second",
        f"Do {listed} hold one thing, seen by two observers, or two things?{why}{found.get(agree, '')}",
        (NOTHING, *others, APART, *(f"{ONLY}{header}" for header in headers)),
        suggested=suggested,
    )


def _undecided(reading: ColumnReading) -> Column:
    changes = {"ask": UNDECIDED} if reading.is_unknown else {}
    return reading.column.model_copy(update=changes)
