"""Rows of a file of predictions as answers to samples: which sample a row belongs to, and what repeated rows are."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agrotools.core import Mode, UsageError
from agrotools.core.form_item import asked_items
from agrotools.core.readings import Choice, ReadingQuestion
from agrotools.core.texts import count_text, first_names
from agrotools.foreign.prediction_answers import (
    GivenAnswer,
    PredictionColumn,
    RowAnswers,
    stated_mode,
)
from agrotools.foreign.prediction_columns import (
    Choosing,
    TakenColumns,
    read_columns,
    take_columns,
)
from agrotools.foreign.prediction_commas import with_decimal_points
from agrotools.foreign.prediction_forms import PredictionRows, Row
from agrotools.foreign.prediction_names import EPOCH, MODE, MODEL, STATED_MODES, snake_case
from agrotools.foreign.prediction_photos import (
    ASKS,
    choose_asked,
    chosen_samples,
    photos_by,
    samples_by_photo,
    with_own_column,
)
from agrotools.foreign.prediction_samples import (
    POSITION,
    MatchedRow,
    RowSamples,
    name_of_row,
    plain_text,
)
from agrotools.foreign.prediction_values import with_plain_values
from agrotools.foreign.transcripts import MODES_OF_KEYS
from agrotools.loading import Benchmark
from agrotools.loading.values import number_in
from agrotools.runner.records import Key
from agrotools.text.json_kinds import fields_of, is_list
from agrotools.text.labels import item_names

_NOT_ASKED = (
    "photos that no such question is about (other questions are; agrotools build with a larger --set samples=N asks "
    "more)"
)
_OTHER_GOLD = "rows whose gold calls are not those of the sample (left out)"
_MOST_LISTED = 12
"""Values of a column that a message names."""


class RowCounts(NamedTuple):
    """Rows of a file of answers and samples of a benchmark, as far as they belong together.

    ``matched``: number of samples with a row, in each mode. ``by``: number of matched rows by what identified the
    sample, a column or ``position``. ``problems``: names of rows (``row 3 (id 7)``), samples or columns. ``epochs``:
    number of repeats of the samples.
    """

    rows: int
    matched: int
    by: Mapping[str, int]
    problems: dict[str, list[str]]
    hidden: str = ""
    """Hidden parts of a workbook that are read all the same; empty for none."""
    epochs: int = 1


class MatchedRows(NamedTuple):
    """Answers of a file, with the names of their rows, by key of the record.

    ``turns``: most messages in a transcript; 1 without any.
    """

    answers: dict[Key, list[tuple[str, GivenAnswer]]]
    counts: RowCounts
    turns: int


class _Given(NamedTuple):
    """Answer of a row to a sample. ``epoch``: values that tell apart the repeats of the sample."""

    label: str
    answer: GivenAnswer
    epoch: tuple[Any, ...]


def match_rows(
    table: PredictionRows, benchmark: Benchmark, file: str, choosing: Choosing, *, of_table: bool
) -> MatchedRows:
    """Return the answers of the rows by sample, mode and epoch.

    Args:
        table: the rows.
        benchmark: the samples.
        file: name of the file.
        choosing: asks what the file does not tell.
        of_table: an empty cell is no prediction; else it is an empty one.

    Raises:
        UsageError: no row belongs to a sample, a row belongs to two, or there is no column of predictions.
    """
    whole = table
    table = _only(table, file, choosing.chosen.only)
    items = {name for each in benchmark.samples for name in item_names(asked_items(each.answer))}
    table = with_own_column(table, benchmark, items, file, choosing)
    matches, unmatched = _matches(table, benchmark, file, choosing)
    matches, unmatched[_OTHER_GOLD] = _of_own_gold(matches, table, file)
    taken = take_columns(table, matches, items, file, choosing)
    by = Counter(match.by for match in matches)
    _say_ids(table, by, choosing)
    _say_only(whole, choosing)
    problems = defaultdict[str, list[str]](list)
    problems.update({kind: rows for kind, rows in unmatched.items() if rows})
    chosen = _of_one_setting(matches, table.names, taken, choosing)
    given = _given_answers(table, chosen, taken, items, file, choosing, of_table=of_table)
    answers, epochs = _by_epoch(given, choosing, problems)
    matched = len({key[:2] for key in answers})
    counts = RowCounts(len(table.rows), matched, dict(by), problems, table.hidden, epochs)
    turns = [len(row[key]) for row in table.rows for key in MODES_OF_KEYS if is_list(row.get(key))]
    return MatchedRows(answers, counts, max(turns, default=1))


def _given_answers(
    table: PredictionRows,
    matches: Sequence[MatchedRow],
    taken: TakenColumns,
    items: Collection[str],
    file: str,
    choosing: Choosing,
    *,
    of_table: bool,
) -> dict[tuple[Mode, str], list[_Given]]:
    """Return the answers of rows by mode and sample, and say which columns and keys of objects are not read."""
    others = taken.others
    matches = _with_plain_numbers(matches, taken, file, choosing)
    if table.own and taken.whole == table.own:
        matches, taken = _as_values(matches, table.own)
    column = PredictionColumn(
        matches, taken, items, file, are_replies=bool(table.form), of_table=of_table
    )
    for name in others:
        if f"--only={name}" not in choosing.decided:
            choosing.readings.leave(f"column {name}")
    given = _answers(matches, column)
    if column.other_keys:
        choosing.readings.leave(f"in column {taken.whole}: {column.named_keys()}")
    return given


def _matches(
    table: PredictionRows, benchmark: Benchmark, file: str, choosing: Choosing
) -> tuple[list[MatchedRow], dict[str, list[str]]]:
    """Return the rows of samples that are scored, and the names of rows without a sample by the reason."""
    not_asked: dict[str, str] = {}  # names of rows with the photo, by their names without it

    def by_photo() -> list[tuple[str, str] | None]:
        found = samples_by_photo(table, benchmark, file, choosing)
        if found is None:
            return [None] * len(table.rows)
        for number, row, photo, sample in zip(
            table.numbers, table.rows, found.photos, found.samples, strict=True
        ):
            if photo and not sample:
                not_asked[name_of_row(number, row)] = name_of_row(number, row, found.column)
        return [(name, found.column) if name else None for name in found.samples]

    matches, others = RowSamples(table, benchmark).match(file, by_photo)
    unmatched = {
        _NOT_ASKED: [*not_asked.values()],
        "rows without a sample": [each for each in others if each not in not_asked],
    }
    if not _column_named(table, ASKS):
        choose_asked(benchmark, choosing)
    scored = {sample.id for sample in chosen_samples(benchmark, choosing)}
    return [match for match in matches if match.sample.id in scored], unmatched


def _of_own_gold(
    matches: Sequence[MatchedRow], table: PredictionRows, file: str
) -> tuple[list[MatchedRow], list[str]]:
    """Return the rows whose gold in the file calls the tools of the reference calls, and the names of the others.

    A file by positions may be of another benchmark, or of a part of this one.

    Raises:
        UsageError: most rows have other gold.
    """
    own: list[MatchedRow] = []
    others: list[MatchedRow] = []
    for match in matches:
        tools = _reference_tools(match)
        is_own = table.gold_tools.get(match.number, tools) == tools
        (own if is_own else others).append(match)
    if len(others) > len(own):
        first = others[0]
        theirs = ", ".join(table.gold_tools[first.number]) or "no tool"
        ours = ", ".join(_reference_tools(first)) or "no tool"
        raise UsageError(
            f"{file} has other gold than the benchmark in {len(others)} of {len(matches)} rows: {first.label} calls "
            f"{theirs}, sample {first.sample.id} {ours}",
            hint="give the benchmark that the predictions were made on; each part of a file counts its samples from 0",
        )
    return own, [match.label for match in others]


def _reference_tools(match: MatchedRow) -> tuple[str, ...]:
    reference = match.sample.reference
    return tuple(step.tool for step in reference.steps) if reference else ()


def _as_values(matches: Sequence[MatchedRow], column: str) -> tuple[list[MatchedRow], TakenColumns]:
    """Return the rows with a column as the only value that their samples ask for, instead of as whole predictions."""
    items = [asked_items(match.sample.answer)[0].name for match in matches]
    named = [
        match._replace(row={**match.row, item: match.row.get(column)})
        for match, item in zip(matches, items, strict=True)
    ]
    return named, TakenColumns(items=tuple(dict.fromkeys(items)))


def _say_ids(table: PredictionRows, by: Mapping[str, int], choosing: Choosing) -> None:
    ids = [column for column in by if photos_by(column) not in choosing.readings.taken]
    if ids:
        choosing.readings.take(f"ids by {', '.join(ids)}")
    if table.form:
        choosing.readings.take(table.form)
    if table.prompt in by and POSITION not in by:
        choosing.readings.leave("doc_id as position")


def _only(table: PredictionRows, file: str, only: Mapping[str, str]) -> PredictionRows:
    """Return the rows that have the given values."""
    kept = [*zip(table.numbers, table.rows, strict=True)]
    for given, value in only.items():
        name = _column_named(table, given)
        if not name and given == ASKS:
            continue
        if not name:
            raise UsageError(
                f"{file} has no column {given}", hint=f"its columns: {', '.join(table.names)}"
            )
        values = dict.fromkeys(plain_text(row.get(name)) for _, row in kept)
        if value not in values:
            raise UsageError(
                f"no row of {file} has {value} in column {given}",
                hint=f"its values: {', '.join([*values][:_MOST_LISTED])}",
            )
        kept = [(number, row) for number, row in kept if plain_text(row.get(name)) == value]
    return table._replace(rows=[row for _, row in kept], numbers=[number for number, _ in kept])


def _column_named(table: PredictionRows, given: str) -> str:
    return next((name for name, plain in table.names.items() if plain == snake_case(given)), "")


def _say_only(table: PredictionRows, choosing: Choosing) -> None:
    """Say which rows the user chose with the command, and which are left."""
    for given, value in choosing.chosen.only.items():
        name = _column_named(table, given)
        if not name:  # the samples, not the rows
            continue
        choosing.decided[f"--only={name}"] = value
        _say_rows(
            name, value, dict.fromkeys(plain_text(row.get(name)) for row in table.rows), choosing
        )


def _say_rows(name: str, value: str, values: Iterable[str], choosing: Choosing) -> None:
    """Say which rows are read by their value in a column, and which are not."""
    choosing.readings.take(f"rows with {name} {value}")
    others = [each for each in values if each != value]
    if others:
        choosing.readings.leave(f"rows with {name} {first_names(others, _MOST_LISTED)}")


# --- rows of several settings -----------------------------------------------------------------------------------------


def _of_one_setting(
    matches: Sequence[MatchedRow], names: Mapping[str, str], taken: TakenColumns, choosing: Choosing
) -> list[MatchedRow]:
    """Return the rows of one setting, such as a model, which the user chooses where a sample has rows of several."""
    kept = [*matches]
    others = [*taken.others]
    if modes := _stated_modes(matches):
        choosing.readings.take(f"answers of mode {' and '.join(modes)}, by column {MODE}")
    elif MODE in names:
        others.append(MODE)
    if choosing.chosen.repeated:
        return kept
    for name in others:
        if _tells_apart(kept, name, taken):
            kept = _of_one_value(kept, name, choosing)
    return kept


def _stated_modes(matches: Sequence[MatchedRow]) -> list[str]:
    """Return the values of the column ``mode`` if all are modes of answers; else empty."""
    values = dict.fromkeys(plain_text(match.row.get(MODE)) for match in matches)
    are_modes = all(snake_case(value) in STATED_MODES for value in values)
    return [*values] if are_modes else []


def _of_one_value(matches: list[MatchedRow], name: str, choosing: Choosing) -> list[MatchedRow]:
    """Return the rows with the value of a column that the user chooses."""
    rows = Counter(plain_text(each.row.get(name)) for each in matches)
    choices = tuple(Choice(value, f"{number} rows") for value, number in rows.items())
    question = ReadingQuestion(f"Rows of which {name} are scored?", f"--only={name}", choices)
    value = choosing.choose(question)
    _say_rows(name, value, rows, choosing)
    return [each for each in matches if plain_text(each.row.get(name)) == value]


def _conflicts(matches: Sequence[MatchedRow], taken: TakenColumns) -> list[list[MatchedRow]]:
    """Return the rows of each sample that has several with other answers in one epoch."""
    groups = defaultdict[tuple[str, ...], list[MatchedRow]](list)
    for match in matches:
        kinds = [key for key in MODES_OF_KEYS if match.row.get(key) is not None]
        kinds.append(stated_mode(match.row))
        groups[(match.sample.id, *kinds, plain_text(match.row.get(EPOCH)))].append(match)
    return [
        group
        for group in groups.values()
        if len({_content(match.row, taken) for match in group}) > 1
    ]


def _content(row: Row, taken: TakenColumns) -> str:
    """Return what a row answers, in one text, to compare rows."""
    columns = [taken.whole] if taken.whole else [*taken.items]
    if not taken.whole or row.get(taken.whole) is None:
        columns += MODES_OF_KEYS
    return repr([row.get(name) for name in columns])


_NEARLY_ALL = 0.9
"""Share of the samples that each value of a column covers if it names settings, because a system may fail on some. The
remarks of a person are on few."""


def _tells_apart(matches: Sequence[MatchedRow], name: str, taken: TakenColumns) -> bool:
    """Return True if a column names settings: each row of a sample has another value, and each value all samples."""
    groups = _conflicts(matches, taken)
    values = [[plain_text(each.row.get(name)) for each in group] for group in groups]
    most = max(map(len, values), default=0)
    samples = defaultdict[str, set[str]](set)
    for match in matches:
        samples[plain_text(match.row.get(name))].add(match.sample.id)
    least = _NEARLY_ALL * len({match.sample.id for match in matches})
    return (
        # Of one sample alone, any remark differs.
        len(groups) > (0 if name == MODEL else 1)
        and len(samples) == most
        and all(len(each) >= least for each in samples.values())
        and all(len({*each}) == len(each) for each in values)
    )


def _with_plain_numbers(
    matches: Sequence[MatchedRow], taken: TakenColumns, file: str, choosing: Choosing
) -> list[MatchedRow]:
    """Return the rows with plain values, and with decimal points in their numbers."""
    names = [taken.whole] if taken.whole else taken.items
    rows = [match.row for match in matches]
    written = read_columns(matches, names, taken.whole)
    plain = with_plain_values(rows, written, choosing.readings)
    matches = [match._replace(row=row) for match, row in zip(matches, plain, strict=True)]
    columns = read_columns(matches, names, taken.whole)
    changed = with_decimal_points(plain, columns, file, choosing)
    return [match._replace(row=row) for match, row in zip(matches, changed, strict=True)]


def _answers(
    matches: Sequence[MatchedRow], column: PredictionColumn
) -> dict[tuple[Mode, str], list[_Given]]:
    """Return the answers of all rows by mode and sample; without a column ``epoch``, all rows are of one epoch."""
    given = defaultdict[tuple[Mode, str], list[_Given]](list)
    for match in matches:
        epoch = _rank(match.row.get(EPOCH))
        for mode, answers in RowAnswers(match, column).by_mode():
            for number, answer in enumerate(answers):
                # A program may store several replies in one row: each is an epoch of its own.
                place = (epoch, (0, float(number), ""))
                given[mode, match.sample.id].append(_Given(match.label, answer, place))
    return given


def _rank(value: Any) -> tuple[int, float, str]:
    """Return what orders the values of a column: numbers by size, then texts."""
    text = plain_text(value)
    number = number_in(text)
    return (1, 0.0, text) if number is None else (0, number, "")


# --- repeats ----------------------------------------------------------------------------------------------------------


_Groups = dict[tuple[Any, ...], list[_Given]]
"""Rows of a sample by epoch."""


def _by_epoch(
    given: Mapping[tuple[Mode, str], Sequence[_Given]],
    choosing: Choosing,
    problems: dict[str, list[str]],
) -> tuple[dict[Key, list[tuple[str, GivenAnswer]]], int]:
    """Return the answers by mode, sample and epoch, and the number of epochs.

    Rows of a sample are repeats if a column such as ``epoch`` tells them apart, or if the user says so.
    """
    # A row without an answer may be the first try of another one, so it makes no epoch.
    is_told = any(len({row.epoch for row in _answered(rows)}) > 1 for rows in given.values())
    grouped = {key: _grouped(rows, is_told=is_told) for key, rows in given.items()}
    repeated = [
        group for groups in grouped.values() for group in groups.values() if _is_repeated(group)
    ]
    if repeated:
        grouped = _as_chosen(grouped, repeated, choosing, problems)
    epochs = sorted({epoch for groups in grouped.values() for epoch in groups})
    number_of = {epoch: number for number, epoch in enumerate(epochs)}
    answers: dict[Key, list[tuple[str, GivenAnswer]]] = {}
    for (mode, sample_id), groups in grouped.items():
        for epoch, group in groups.items():
            key = (mode, sample_id, number_of[epoch])
            answers[key] = [(each.label, each.answer) for each in group]
    if len(epochs) > 1:
        choosing.readings.take(f"{len(epochs)} epochs")
    return answers, len(epochs)


def _grouped(rows: Sequence[_Given], *, is_told: bool) -> _Groups:
    """Return the rows of a sample by epoch. ``is_told``: their columns tell the epochs of a sample apart."""
    groups = defaultdict[tuple[Any, ...], list[_Given]](list)
    for row in rows:
        groups[row.epoch if is_told else ()].append(row)
    return dict(groups)


def _is_repeated(group: Sequence[_Given]) -> bool:
    """Return True if rows of a sample in one epoch have different answers; a row without an answer is no other."""
    return len({repr(each.answer) for each in _answered(group)}) > 1


def _answered(group: Sequence[_Given]) -> list[_Given]:
    return [each for each in group if _is_answer(each.answer)]


def _is_answer(answer: GivenAnswer) -> bool:
    return isinstance(answer, str) or any(fields_of(answer).get(key) for key in MODES_OF_KEYS)


def _as_chosen(
    grouped: Mapping[tuple[Mode, str], _Groups],
    repeated: Sequence[Sequence[_Given]],
    choosing: Choosing,
    problems: dict[str, list[str]],
) -> dict[tuple[Mode, str], _Groups]:
    """Return the rows with those of a sample in one epoch as the user chooses: repeats, or one of them counts.

    ``repeated``: the rows of each sample that has different answers in one epoch.
    """
    sizes = {len(group) for groups in grouped.values() for group in groups.values()}
    chosen = _choose_repeats(repeated, choosing, are_alike=len(sizes) == 1)
    if chosen == "epochs":
        return {key: _numbered(groups) for key, groups in grouped.items()}
    choosing.readings.take(f"the {chosen} row of a sample")
    left_out: list[str] = []
    kept: dict[tuple[Mode, str], _Groups] = {}
    for key, groups in grouped.items():
        kept[key] = {}
        for epoch, group in groups.items():
            candidates = _answered(group) or group
            counted = candidates[-1] if chosen == "last" else candidates[0]
            kept[key][epoch] = [counted]
            left_out += [each.label for each in group if each is not counted]
    if left_out:
        problems[f"repeated rows (the {chosen} of a sample counts)"] += left_out
    return kept


def _choose_repeats(
    repeated: Sequence[Sequence[_Given]], choosing: Choosing, *, are_alike: bool
) -> str:
    """Return what the user says that several rows of a sample are.

    ``are_alike``: all samples have the same number of rows, so that repeats are proposed first.
    """
    epochs = Choice("epochs", "each row is a repeat of the sample")
    last = Choice("last", "the last row of a sample counts")
    first = Choice("first", "the first row of a sample counts")
    choices = (epochs, last, first) if are_alike else (last, first, epochs)
    number = count_text(len(repeated), "sample")
    words = (
        f"What are the several rows of one sample ({number}, first: {repeated[0][0].label})? "
        "--only COLUMN=VALUE keeps the rows of one kind."
    )
    question = ReadingQuestion(words, "--repeated", choices)
    return choosing.choose(question, choosing.chosen.repeated)


def _numbered(groups: _Groups) -> _Groups:
    """Return each row of a sample as an epoch of its own."""
    return {
        (*epoch, (0, float(at), "")): [row]
        for epoch, group in groups.items()
        for at, row in enumerate(group)
    }
