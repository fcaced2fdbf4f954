"""Predictions by photo: the samples of a benchmark from a user's photos that the rows of a file belong to."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from agrotools.core import Sample, UsageError
from agrotools.core.form_item import FormItem, asked_items
from agrotools.core.readings import Choice, ReadingQuestion
from agrotools.core.texts import count_text
from agrotools.foreign.prediction_columns import Choosing, ColumnAnswers
from agrotools.foreign.prediction_forms import PredictionRows, Row
from agrotools.foreign.prediction_names import IDS, PREDICTION, snake_case
from agrotools.foreign.prediction_samples import plain_text
from agrotools.foreign.transcripts import MODES_OF_KEYS
from agrotools.loading import Benchmark
from agrotools.loading.photos import asks_by_sample, photos_of
from agrotools.loading.values import number_in
from agrotools.text.answer_reader import is_complete
from agrotools.text.json_kinds import fields_of
from agrotools.text.labels import item_names, name_key
from agrotools.text.normalise import normalise

ASKS = "asks"
"""Name by which ``--only`` chooses the samples that ask for the same: ``--only asks=value``."""
_OPTION = f"--only={ASKS}"
_NAMED = 5
"""Samples that an error names."""
_PREDICTED = frozenset(("predicted", "prediction"))
"""Words that make the header of the user's table that of its predictions: ``predicted_severity``."""
_UNIT_BEHIND = re.compile(r"[(\[][^()\[\]]*[)\]]\s*$")


class _OwnColumn(NamedTuple):
    """Column of the user's table that a benchmark was built from: what its samples of one value ask for."""

    asks: str
    n_samples: int


def with_own_column(
    table: PredictionRows,
    benchmark: Benchmark,
    items: Collection[str],
    file: str,
    choosing: Choosing,
) -> PredictionRows:
    """Return the rows with the column that is scored, if its header is one of the table that the benchmark is made of.

    A benchmark from a table with a column ``Severity`` asks for a ``value``; a table of predictions may give it in a
    column ``severity`` or ``predicted_severity``, too. Of several such columns, the user chooses one. Other columns of
    predictions, and those of the values that samples ask for (``items``), precede.
    """
    found = _own_headers(table, benchmark, items, choosing.chosen)
    if not found:
        return table
    choices = tuple(
        Choice(each.asks, f"column {name}, {count_text(each.n_samples, 'sample')}")
        for name, each in found.items()
    )
    question = ReadingQuestion(
        f"{file} has several columns of the table that {benchmark.name} is made of. Which one is scored?",
        _OPTION,
        choices,
    )
    asks = choosing.choose(question, choosing.chosen.only.get(ASKS, ""))
    return table._replace(own=next(name for name, each in found.items() if each.asks == asks))


def _own_headers(
    table: PredictionRows, benchmark: Benchmark, items: Collection[str], chosen: ColumnAnswers
) -> dict[str, _OwnColumn]:
    """Return the headers of a file that are those of the user's table, each with what its samples ask for."""
    own = _own_columns(benchmark)
    found = {
        name: own[key]
        for name in table.names
        if (key := next((key for key in _header_keys(name) if key in own), None))
    }
    others = [name for name in table.names if name not in found]
    read_first = (PREDICTION, *MODES_OF_KEYS)
    if table.column or any(name in read_first or name_key(name) in items for name in others):
        return {}
    if column := chosen.column:
        found = {name: each for name, each in found.items() if name == column.strip().lower()}
    if given := chosen.only.get(ASKS, ""):
        found = {name: each for name, each in found.items() if each.asks == given}
    predicted = {name for name in found if _PREDICTED & {*snake_case(name).split("_")}}
    of_predicted = {found[name].asks for name in predicted}
    found = {  # beside predicted_severity, severity is the reference
        name: each
        for name, each in found.items()
        if name in predicted or each.asks not in of_predicted
    }
    is_clear = len({each.asks for each in found.values()}) == len(found)
    return found if is_clear else {}


def _header_keys(header: str) -> tuple[str, ...]:
    """Return what a header is looked up by: as it is, without a unit in brackets, and without ``predicted``."""
    bare = _UNIT_BEHIND.sub("", header)
    words = [word for word in snake_case(bare).split("_") if word not in _PREDICTED]
    return name_key(header), name_key(bare), name_key(" ".join(words))


def _own_columns(benchmark: Benchmark) -> dict[str, _OwnColumn]:
    """Return the columns of the user's table by the key of their header, if one photo has one question of each."""
    asks = asks_by_sample(benchmark.samples)
    found = defaultdict[str, list[_OwnColumn]](list)
    for sample in benchmark.samples:
        column = str(sample.metadata.get("column") or "")
        asked = asked_items(sample.answer)
        if column and len(asked) == 1 and len(photos_of(sample)) == 1 == len(sample.files):
            for key in {name_key(column), name_key(_UNIT_BEHIND.sub("", column))}:
                found[key].append(_OwnColumn(asks[sample.id], 0))
    return {
        key: columns[0]._replace(n_samples=len(columns))
        for key, columns in found.items()
        if len({*columns}) == 1
    }


class PhotoRows(NamedTuple):
    """The column that names photos, and for each row the photo of the benchmark, and the id of the sample, or None."""

    column: str
    photos: list[str | None]
    samples: list[str | None]


def samples_by_photo(
    table: PredictionRows, benchmark: Benchmark, file: str, choosing: Choosing
) -> PhotoRows | None:
    """Return the samples of the rows by the photo that they name; None if no row names one.

    Several samples may be about one photo. Those that ask for something else than the file gives are left out; if it
    may give the values of several kinds, the user chooses one.

    Raises:
        UsageError: several samples of a photo ask for the same.
    """
    of_photo: dict[str, list[Sample]] = defaultdict(list)
    for sample in benchmark.samples:
        if len(photos := photos_of(sample)) == 1 == len(sample.files):
            of_photo[photos[0]].append(sample)
    if not of_photo:
        return None
    named = _named_photos(table, _PhotoNames(of_photo))
    if named is None:
        return None
    column, photos = named
    choosing.readings.take(photos_by(column))
    asks = asks_by_sample(benchmark.samples)
    kind = _chosen_kind(table, of_photo, asks, column, benchmark.name, file, choosing)
    by_photo = {
        photo: sample.id
        for photo, samples in of_photo.items()
        for sample in samples
        if asks[sample.id] == kind
    }
    samples = [by_photo.get(photo) if photo else None for photo in photos]
    return PhotoRows(column, photos, samples)


def photos_by(column: str) -> str:
    """Return what was read of a column with names of photos, in words."""
    return f"photos by {column}"


class _PhotoNames:
    """Photos by their names with folders, without them, and without their ending, as far as these are unique."""

    def __init__(self, photos: Mapping[str, Any]) -> None:
        found: dict[str, set[str]] = defaultdict(set)
        for photo in photos:
            for name in _names_of(photo):
                found[name].add(photo)
        self._photos = {name: next(iter(each)) for name, each in found.items() if len(each) == 1}

    def photo(self, value: Any) -> str | None:
        """Return the photo that a cell names."""
        if not isinstance(value, str) or not value.strip():
            return None
        # The whole name first: two folders may hold photos of one name.
        names = _names_of(value)
        return next((self._photos[name] for name in names if name in self._photos), None)


def _names_of(photo: str) -> tuple[str, str, str]:
    path = PurePosixPath(normalise(photo).strip().replace("\\", "/"))
    return str(path), path.name, path.stem


def _named_photos(table: PredictionRows, names: _PhotoNames) -> tuple[str, list[str | None]] | None:
    """Return the column with the most names of photos, the one for ids first, and the photo of each row."""
    ids = [name for name, plain in table.names.items() if plain in IDS]
    columns = [*ids, *(name for name in table.names if name not in ids)]
    found = {name: [names.photo(row.get(name)) for row in table.rows] for name in columns}
    column = max(columns, key=lambda name: sum(photo is not None for photo in found[name]))
    return (column, found[column]) if any(found[column]) else None


def _chosen_kind(
    table: PredictionRows,
    of_photo: Mapping[str, Sequence[Sample]],
    asks: Mapping[str, str],
    column: str,
    benchmark: str,
    file: str,
    choosing: Choosing,
) -> str:
    """Return what the samples ask for that the rows answer."""
    kinds: dict[str, list[Sample]] = defaultdict(list)
    crowded: dict[str, list[str]] = {}
    for samples in of_photo.values():
        by_kind: dict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            by_kind[asks[sample.id]].append(sample)
        for kind, alike in by_kind.items():
            kinds[kind] += alike
            if len(alike) > 1:
                crowded.setdefault(kind, [sample.id for sample in alike])
    # What the user named, or what a column of the user's own table stands for.
    given = choosing.chosen.only.get(ASKS) or choosing.readings.chosen.get(_OPTION, "")
    possible = [given] if given in kinds else _answerable(table, kinds)
    single = [kind for kind in possible if kind not in crowded]
    if not single:
        ids = next(crowded[kind] for kind in possible if kind in crowded)
        raise UsageError(
            f"{file} names photos in column {column}, but several samples of {benchmark} ask the same about one photo: "
            f"{', '.join(ids[:_NAMED])}",
            hint=f"give ids of samples; agrotools benchmarks describe {benchmark} --json lists id, photo and question",
        )
    offered = [kind for kind in kinds if kind not in crowded] if given else single
    choices = tuple(Choice(kind, count_text(len(kinds[kind]), "sample")) for kind in offered)
    question = ReadingQuestion(
        f"{file} names photos. Which questions about them does it answer, by what they ask for?",
        _OPTION,
        choices,
    )
    kind = choosing.choose(question, given)
    _say_kind(kind, {name: len(samples) for name, samples in kinds.items()}, choosing)
    return kind


def _say_kind(kind: str, numbers: Mapping[str, int], choosing: Choosing) -> None:
    choosing.readings.take(f"{count_text(numbers[kind], 'sample')} that ask for {kind}")
    for other, number in numbers.items():
        if other != kind:
            choosing.readings.leave(f"{count_text(number, 'sample')} that ask for {other}")


def chosen_samples(benchmark: Benchmark, choosing: Choosing) -> Sequence[Sample]:
    """Return the samples that are scored: all, or those that ask for what the user or the file chose."""
    kind = choosing.readings.chosen.get(_OPTION)
    if kind is None:
        return benchmark.samples
    asks = asks_by_sample(benchmark.samples)
    return [sample for sample in benchmark.samples if asks[sample.id] == kind]


def single_value(benchmark: Benchmark) -> str:
    """Return what the samples that ask for one value ask for, if they all ask for the same; else an empty text."""
    kinds = {*asks_by_sample(benchmark.samples).values()}
    single = [kind for kind in kinds if ", " not in kind]
    return single[0] if len(single) == 1 and len(kinds) > 1 else ""


def choose_asked(benchmark: Benchmark, choosing: Choosing) -> None:
    """Choose the samples that ask for what the user named with ``--only asks=...``, and say so.

    Raises:
        UsageError: no sample asks for it.
    """
    given = choosing.chosen.only.get(ASKS)
    if given is None or _OPTION in choosing.readings.chosen:
        return
    numbers = Counter(asks_by_sample(benchmark.samples).values())
    choices = tuple(Choice(kind, count_text(number, "sample")) for kind, number in numbers.items())
    kind = choosing.choose(ReadingQuestion("Which samples are scored?", _OPTION, choices), given)
    _say_kind(kind, numbers, choosing)


def _answerable(table: PredictionRows, kinds: Mapping[str, Sequence[Sample]]) -> list[str]:
    """Return the kinds of samples whose values a file can give, the ones with the most values first; all if none."""
    items = {kind: asked_items(samples[0].answer) for kind, samples in kinds.items()}
    known = {name: item for each in items.values() for name, item in item_names(each).items()}
    columns = {
        known[key]
        for name in table.names
        if (key := name_key(name)) in known and name not in (*IDS, PREDICTION)
    }
    found: list[str] = []
    for kind, asked in items.items():
        names = {item.name for item in asked}
        has_form = len(names) == 1 or any(_gives_all(row, asked) for row in table.rows)
        if names <= columns if columns else has_form:
            found.append(kind)
    fitting = [kind for kind in found if columns or _fits(table, items[kind])]
    return sorted(fitting or found or items, key=lambda kind: -len(items[kind]))


def _fits(table: PredictionRows, asked: Sequence[FormItem]) -> bool:
    """Return False if a question for a number has only words in the columns of predictions, or one for a label only
    numbers."""
    texts = [plain_text(row.get(PREDICTION)) for row in table.rows]
    are_numbers = {number_in(text) is not None for text in texts if text and text != "None"}
    return len(asked) != 1 or are_numbers != {not asked[0].is_number}


def _gives_all(row: Row, asked: Any) -> bool:
    """Return True if a cell of a row holds the whole form of a question."""
    names = item_names(asked)
    for value in row.values():
        if isinstance(value, str) and is_complete(value, asked):
            return True
        if {names.get(name_key(str(name))) for name in fields_of(value)} >= {*names.values()}:
            return True
    return False
