"""Rows of a file of predictions, in any of the forms that evaluation programs write.

Read are tables (CSV, TSV, Excel, parquet, also of VLMEvalKit), JSON Lines and JSON with a row for each sample, objects
of texts by id, logs of Inspect, results of promptfoo, samples of lm-eval, and predictions of OpenCompass.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from agrotools.core import UsageError
from agrotools.core.errors import NoFileError
from agrotools.foreign.inspect_logs import SUFFIX
from agrotools.foreign.prediction_names import IDS, column_kind, snake_case
from agrotools.foreign.reply_objects import fields_of
from agrotools.loading.values import SUFFIXES, TABLES, read_rows
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools.text.labels import name_key
from agrotools.text.tables import SheetTable, open_table, sheets_of

Row = Mapping[str, Any]
_FEWEST_COLUMNS = 2
"""Columns of a table of predictions: an id, and a prediction."""


class PredictionRows(NamedTuple):
    """Rows of a file, by name of the column in lower case.

    ``names``: each column in lower case with underscores. ``form``: program that wrote the file; empty if it is a plain
    table. ``column``: column of the predictions in this form. ``left``: what else the file holds, in words.
    ``hidden``: what is read although a workbook hides it. ``numbers``: number of each row in the file, of a table with
    its header, as a spreadsheet shows it. ``own``: column that is scored because the table that the benchmark is made
    of has one of this name.
    """

    rows: list[Row]
    names: dict[str, str]
    numbers: Sequence[int]
    form: str = ""
    column: str = ""
    left: tuple[str, ...] = ()
    hidden: str = ""
    own: str = ""


class _Form(NamedTuple):
    """Rows of a form. The fields are those of :class:`PredictionRows`."""

    rows: list[Row]
    form: str = ""
    column: str = ""
    left: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


def read_prediction_rows(
    file: Path, content: Any, ids: Collection[str], items: Collection[str], column: str = ""
) -> PredictionRows:
    """Return the rows of a file of predictions.

    Args:
        file: the file.
        content: what :func:`agrotools.foreign.inspect_logs.read_content` returned of it.
        ids: ids of the samples, and names of their photos.
        items: names of the values that samples ask for.
        column: column that the user names; a form may drop another one.

    Raises:
        NoFileError: there is no such file, or two columns have one name.
        BenchmarkError: the file cannot be read.
        UsageError: its rows have no names, or two columns have one meaning.
    """
    _check_suffix(file)
    hidden = ""
    if file.suffix in TABLES:
        form, hidden = _table_form(file, ids, items)
    elif file.suffix == ".parquet":
        form = _Form([*read_rows(file)])
    else:
        form = _read_json_form(file, content, ids, column)
    if not form.rows or not all(map(is_object, form.rows)):
        lacking = "rows with named fields" if form.rows else "rows"
        raise UsageError(
            f"{file.name} contains no {lacking}",
            hint='one row per sample, e.g. {"id": "...", "prediction": "..."}, or one object {"ID": "PREDICTION", ...}',
        )
    numbers = form.numbers or range(1, len(form.rows) + 1)
    _check_names(form.rows, numbers, items, file)
    spellings = dict.fromkeys(str(name) for row in form.rows for name in row)
    names = {name.strip().lower(): snake_case(name) for name in spellings}
    rows: list[Row] = [
        {str(name).strip().lower(): each for name, each in row.items()} for row in form.rows
    ]
    return PredictionRows(rows, names, numbers, form.form, form.column, form.left, hidden)


def _read_json_form(file: Path, content: Any, ids: Collection[str], column: str) -> _Form:
    parts = (content, *fields_of(content).values())
    if any(_is_by_id(fields_of(part), ids) for part in parts):
        _check_keys(file, ids)
    return _json_form(content, ids, column)


def _check_suffix(file: Path) -> None:
    if not file.is_file():
        raise NoFileError(
            f"there is no file {file}",
            hint="--predictions FILE: rows with a sample id and a prediction",
        )
    known = (*SUFFIXES, ".tsv", ".xlsx", SUFFIX)
    if file.suffix not in known:
        raise UsageError(
            f"{file.name} is not a table of predictions", hint=f"one of {', '.join(known)}"
        )


# --- tables -----------------------------------------------------------------------------------------------------------


def _table_form(file: Path, ids: Collection[str], items: Collection[str]) -> tuple[_Form, str]:
    """Return the rows of a table, or of the sheets of a workbook that hold predictions, and what is hidden in them."""
    is_hidden = {sheet.name: sheet.is_hidden for sheet in sheets_of(file)}
    if len(is_hidden) < 2:
        table = open_table(file, delimiter=TABLES[file.suffix], allow_formulas=True)
        numbers, rows = _table_rows(table, items)
        return _Form(rows, numbers=numbers), table.hidden
    visible = [name for name in is_hidden if not is_hidden[name]]
    tables = _open_sheets(file, visible or [*is_hidden])
    read = _sheets_with_samples(tables, ids)
    left = [
        f'sheet "{name}" (hidden)' if is_hidden[name] else f'sheet "{name}"'
        for name in is_hidden
        if name not in read
    ]
    hidden_parts = [tables[name].hidden for name in read if tables[name].hidden]
    all_numbers: list[int] = []
    all_rows: list[Row] = []
    for name in read:
        numbers, rows = _table_rows(tables[name], items)
        if len(read) > 1:
            rows = [{"sheet": name, **row} for row in rows]
        all_numbers += numbers
        all_rows += rows
    form = _Form(
        all_rows,
        form=f'sheet "{read[0]}"' if len(read) == 1 else "",
        left=tuple(left),
        numbers=tuple(all_numbers),
    )
    return form, "; ".join(hidden_parts)


def _open_sheets(file: Path, names: Sequence[str]) -> dict[str, SheetTable]:
    """Return the tables of the sheets that are not empty, by name."""
    tables: dict[str, SheetTable] = {}
    for name in names:
        with suppress(NoFileError):  # an empty sheet
            tables[name] = open_table(file, sheet=name, allow_formulas=True)
    return tables


def _sheets_with_samples(tables: Mapping[str, SheetTable], ids: Collection[str]) -> list[str]:
    """Return the names of the sheets with ids of samples; if there are none, that of the first sheet."""
    found: list[str] = []
    for name, table in tables.items():
        rows = [row for _number, row in table.named_rows()]
        if _tells(rows, ids):
            found.append(name)
    return found or [*tables][:1]


def _table_rows(table: SheetTable, items: Collection[str]) -> tuple[tuple[int, ...], list[Row]]:
    """Return the numbers of the rows of a table in the file, and the rows."""
    for columns in table.alike:
        if _meaning(columns[0], items):
            raise _two_of_one_name(table.path, table.placed(columns))
    numbered = [*table.named_rows()]
    return tuple(number for number, _ in numbered), [row for _, row in numbered]


# --- two columns of one name ------------------------------------------------------------------------------------------


def _check_names(
    rows: Sequence[Row], numbers: Sequence[int], items: Collection[str], file: Path
) -> None:
    """Raise UsageError if two keys of a row, or of an object in it, mean the same value of an answer."""
    seen = set[tuple[str, ...]]()
    for number, row in zip(numbers, rows, strict=True):
        answers = [
            cast("Row", each)
            for name, each in row.items()
            if is_object(each) and column_kind(snake_case(str(name))) in ("prediction", "answer")
        ]
        for fields in (row, *answers):
            names = tuple(map(str, fields))
            if names in seen:
                continue
            seen.add(names)
            groups = defaultdict[str, list[str]](list)
            for name in names:
                if meaning := _meaning(name, items):
                    groups[meaning].append(name)
            if several := next((group for group in groups.values() if len(group) > 1), None):
                raise _two_of_one_name(file, f"{', '.join(map(repr, several))} in row {number}")


def _meaning(name: str, items: Collection[str]) -> str:
    """Return the column that a name stands for, in one form for all its spellings; empty for one that is not read."""
    if (key := name_key(name)) in items:
        return key
    plain = snake_case(name)
    return plain if column_kind(plain) in ("prediction", "answer", "id", "transcript") else ""


def _check_keys(file: Path, ids: Collection[str]) -> None:
    """Raise UsageError if an object of texts by id has an id twice, of which a reader of JSON keeps the last."""

    def check(pairs: list[tuple[str, Any]]) -> None:
        times = Counter(key for key, _ in pairs if key in ids)
        if several := [key for key, number in times.items() if number > 1]:
            raise UsageError(
                f"{file.name} has several entries of sample {several[0]}",
                hint='write repeats as {"id": "...", "epoch": 1, "prediction": "..."}, a row for each',
            )

    # What this reader refuses, the other one has repaired.
    with suppress(ValueError, RecursionError):
        json.loads(file.read_bytes(), object_pairs_hook=check)


def _two_of_one_name(file: Path, names: str) -> UsageError:
    return UsageError(
        f"{file.name} has several columns of one name: {names}",
        hint="rename or remove all but one",
    )


# --- forms of JSON ----------------------------------------------------------------------------------------------------


def _json_form(whole: Any, ids: Collection[str], column: str) -> _Form:
    fields = fields_of(whole)
    if is_list(fields.get("samples")) and is_object(fields.get("eval")):
        return _inspect_form(fields["samples"])
    results = fields_of(fields.get("results")).get("results")
    if is_list(results):  # promptfoo
        whole = results
    rows = [*_rows_of(whole, ids)]
    if not rows or not all(map(is_object, rows)):
        return _Form(rows)
    for matches, form in (
        (_is_inspect_row, _inspect_form),
        (_is_promptfoo_row, _promptfoo_form),
        (_is_opencompass_row, _opencompass_form),
    ):
        if all(map(matches, rows)):
            return form(rows)
    if all(map(_is_lm_eval_row, rows)):
        return _lm_eval_form(rows, is_filtered=column == "filtered_resps")
    return _Form(rows)


def _rows_of(value: Any, ids: Collection[str]) -> Iterator[Any]:
    """Yield the rows in a value: those of a list, or of an object by id; of several lists in it, each with its key."""
    if is_list(value):
        lines = cast("list[Any]", value)
        is_by_id = all(_is_by_id(fields_of(each), ids) for each in lines)
        for each in lines:
            yield from _rows_by_id(each) if is_by_id else (each,)
        return
    fields = fields_of(value)
    if _is_by_id(fields, ids):
        yield from _rows_by_id(fields)
    elif _tells([fields], ids):
        yield fields
    elif rows := _rows_of_columns(fields):
        yield from rows
    elif parts := _parts(fields, ids):
        for key, rows in parts.items():
            yield from rows if len(parts) == 1 else ({"list": key, **row} for row in rows)
    elif all(map(is_object, fields.values())):
        yield from ({"id": key, **entry} for key, entry in fields.items())


def _parts(fields: Row, ids: Collection[str]) -> dict[str, list[Row]]:
    """Return the rows in the parts of an object, by key: those of parts with ids of samples, or else of all lists."""
    parts = {key: [*_rows_of(part, ids)] for key, part in fields.items() if _is_part(part, ids)}
    return {key: rows for key, rows in parts.items() if _tells(rows, ids)} or parts


def _rows_of_columns(fields: Row) -> list[Row]:
    """Return the rows of a table that is stored by column, as pandas and MLflow write it; empty for anything else."""
    names: Any = fields.get("columns")
    data: Any = fields.get("data")
    if is_list(names) and is_list(data) and all(is_list(each) for each in data):
        return [dict(zip(map(str, names), each, strict=False)) for each in data]
    if not any(snake_case(name) in IDS for name in fields):
        return []
    columns = [*map(_cells, fields.values())]
    lengths = {len(cells) for cells in columns}
    if len(columns) < _FEWEST_COLUMNS or len(lengths) != 1:
        return []
    return [dict(zip(fields, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _cells(column: Any) -> list[Any]:
    """Return the cells of a column: a list, or an object by row."""
    return [*column] if is_list(column) else [*fields_of(column).values()]


def _is_by_id(fields: Row, ids: Collection[str]) -> bool:
    """Return True if an object has its entries by id of the sample, rather than being a row with an id in it."""
    return any(key in ids for key in fields) and not any(snake_case(key) in IDS for key in fields)


def _is_part(value: Any, ids: Collection[str]) -> bool:
    if is_list(value):
        return bool(value) and all(map(is_object, value))
    return _is_by_id(fields_of(value), ids)


def _tells(rows: Sequence[Row], ids: Collection[str]) -> bool:
    """Return True if a row has the id of a sample."""
    values = (value for row in rows for value in row.values())
    return any(isinstance(value, str | int) and str(value) in ids for value in values)


def _rows_by_id(fields: Row) -> Iterator[Row]:
    for key, value in fields.items():
        yield (
            {**fields_of(value), "id": key}
            if is_object(value)
            else {"id": key, "prediction": value}
        )


# --- forms of programs ------------------------------------------------------------------------------------------------


def _is_inspect_row(row: Row) -> bool:
    output = fields_of(row.get("output"))
    return "epoch" in row and ("choices" in output or "completion" in output)


def _inspect_form(samples: Sequence[Any]) -> _Form:
    """Return the rows of a log of Inspect: the completion of each sample in each epoch."""
    return _Form(
        [_inspect_row(each) if is_object(each) else {} for each in samples],
        "log of Inspect",
        "output",
    )


def _inspect_row(sample: Row) -> Row:
    output = fields_of(sample.get("output"))
    completion = output.get("completion")
    error = sample.get("error") or output.get("error")
    return {
        "id": sample.get("id"),
        "epoch": sample.get("epoch", 1),
        "input": sample.get("input"),
        "metadata": sample.get("metadata"),
        "output": completion or (output if output.get("choices") else None),
        "error": error,
    }


def _is_promptfoo_row(row: Row) -> bool:
    is_test = is_object(row.get("vars")) or is_object(row.get("testCase"))
    return is_test and ("response" in row or "error" in row)


def _promptfoo_form(results: Sequence[Row]) -> _Form:
    """Return the rows of results of promptfoo: the output of each provider for the variables of each test."""
    return _Form([_promptfoo_row(each) for each in results], "results of promptfoo", "output")


def _promptfoo_row(result: Row) -> Row:
    test = fields_of(result.get("testCase"))
    variables = fields_of(result.get("vars") or test.get("vars"))
    response = result.get("response")
    output = fields_of(response).get("output") if is_object(response) else response
    prompt = result.get("prompt")
    told = {**fields_of(test.get("metadata")), **variables}
    kinds = {name: column_kind(snake_case(name)) for name in told}
    of_sample = {
        name: told[name] for name, kind in kinds.items() if kind not in ("prediction", "answer")
    }
    return {
        **of_sample,
        "description": test.get("description"),
        "provider": _label(result.get("provider")),
        "variant": _label(prompt),
        "prompt": fields_of(prompt).get("raw") or prompt,
        "output": output,
        # With an output, this is the reason why a check of promptfoo failed.
        "error": result.get("error") if output is None else None,
    }


def _label(value: Any) -> Any:
    fields = fields_of(value)
    return fields.get("label") or fields.get("id") or value


def _is_opencompass_row(row: Row) -> bool:
    return "origin_prompt" in row and "prediction" in row and str(row.get("id", "")).isdecimal()


def _opencompass_form(rows: Sequence[Row]) -> _Form:
    """Return the rows of predictions of OpenCompass, whose keys are positions in the data set."""
    kept = [
        {"index": row["id"], "origin_prompt": row["origin_prompt"], "prediction": row["prediction"]}
        for row in rows
    ]
    return _Form([*kept], "predictions of OpenCompass", "prediction")


def _is_lm_eval_row(row: Row) -> bool:
    return "doc_id" in row and ("resps" in row or "filtered_resps" in row)


def _lm_eval_form(rows: Sequence[Row], *, is_filtered: bool) -> _Form:
    """Return a row with the replies to each question of lm-eval's samples, which have a row for each filter.

    ``is_filtered``: read what the filters left of the replies, which is a row for each filter.
    """
    found: dict[Any, Row] = {}
    for number, row in enumerate(rows):
        of_doc = fields_of(row.get("doc"))
        key = number if is_filtered else str(row["doc_id"])
        found[key] = {
            **{name: of_doc[name] for name in of_doc if snake_case(name) in IDS},
            "index": row["doc_id"],
            "prompt": row.get("arguments"),
            "filter": row.get("filter") if is_filtered else None,
            "resps": _lm_eval_replies(row.get("resps") or row.get("filtered_resps")),
            "filtered_resps": _lm_eval_replies(row.get("filtered_resps")),
        }
    if is_filtered:
        return _Form([*found.values()], "samples of lm-eval", "filtered_resps")
    left = (
        ("column filtered_resps",)
        if any("filtered_resps" in row and row.get("resps") for row in rows)
        else ()
    )
    return _Form([*found.values()], "samples of lm-eval", "resps", left)


def _lm_eval_replies(replies: Any) -> list[str] | None:
    """Return the texts of a question's replies, several with ``repeats``; None for likelihoods of choices."""
    while is_list(replies) and len(replies) == 1:
        replies = replies[0]
    if is_text(replies):
        return [replies]
    texts = cast("list[Any]", replies) if is_list(replies) else []
    is_likelihood = len(texts) == 2 and str(texts[1]) in ("True", "False")
    return texts if texts and all(map(is_text, texts)) and not is_likelihood else None
