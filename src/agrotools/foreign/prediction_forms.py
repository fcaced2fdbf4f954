"""Rows of a file of predictions: in the form of agrotools, or in one of the forms that evaluation programs document.

Read are tables (CSV, TSV, Excel, parquet, also of VLMEvalKit), JSON Lines and JSON with a row for each sample, logs of
Inspect, samples of lm-eval and lmms-eval, predictions of agents in OpenCompass, and output files of batches.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from agrotools.core import UsageError
from agrotools.core.errors import NoFileError
from agrotools.foreign.batch_output import batch_replies, is_batch_line
from agrotools.foreign.inspect_logs import SUFFIX
from agrotools.foreign.opencompass import read_agent_predictions
from agrotools.foreign.prediction_names import EPOCH, FORM_HINT, IDS, PREDICTION, snake_case
from agrotools.foreign.transcripts import MODES_OF_KEYS
from agrotools.loading.values import SUFFIXES, TABLES, read_rows
from agrotools.text.json_kinds import fields_of, is_list, is_object, is_text
from agrotools.text.labels import name_key
from agrotools.text.tables import SheetTable, open_table, sheets_of

Row = Mapping[str, Any]
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_NO_TOOLS: Mapping[int, tuple[str, ...]] = MappingProxyType({})


class PredictionRows(NamedTuple):
    """Rows of a file, by name of the column: in lower case, once :func:`read_prediction_rows` has written it so.

    ``names``: each column in lower case with underscores. ``form``: program that wrote the file; empty if it is a plain
    table. ``column``: column of the predictions in this form. ``left``: what else the file holds, in words.
    ``hidden``: what is read although a workbook hides it. ``numbers``: number of each row in the file, of a table with
    its header, as a spreadsheet shows it. ``own``: column that is scored because the table that the benchmark is made
    of has one of this name. ``gold_tools``: tools of the reference calls in the file itself, by number of the row.
    ``prompt``: column of this form with the text that was asked, which may hold more than the question.
    """

    rows: list[Row]
    names: Mapping[str, str] = _NO_NAMES
    numbers: Sequence[int] = ()
    form: str = ""
    column: str = ""
    left: tuple[str, ...] = ()
    hidden: str = ""
    own: str = ""
    gold_tools: Mapping[int, tuple[str, ...]] = _NO_TOOLS
    prompt: str = ""


def read_prediction_rows(
    file: Path, content: Any, ids: Collection[str], items: Collection[str], column: str
) -> PredictionRows:
    """Return the rows of a file of predictions.

    Args:
        file: the file.
        content: what :func:`agrotools.foreign.inspect_logs.read_content` returned of it.
        ids: ids of the samples, and names of their photos.
        items: names of the values that samples ask for.
        column: column that the user names, empty for none; a form may drop another one.

    Raises:
        NoFileError: there is no such file, or two columns have one name.
        BenchmarkError: the file cannot be read.
        UsageError: its rows have no names, or two columns have one meaning.
    """
    _check_suffix(file)
    if file.suffix in TABLES:
        form = _table_form(file, ids, items)
    elif file.suffix == ".parquet":
        form = PredictionRows([*read_rows(file)])
    else:
        form = _json_form(content, column)
    if not form.rows or not all(map(is_object, form.rows)):
        raise UsageError(
            f"{file.name} has no form of predictions that agrotools reads", hint=FORM_HINT
        )
    numbers = form.numbers or range(1, len(form.rows) + 1)
    _check_names(form.rows, numbers, items, file)
    spellings = dict.fromkeys(str(name) for row in form.rows for name in row)
    names = {name.strip().lower(): snake_case(name) for name in spellings}
    rows: list[Row] = [
        {str(name).strip().lower(): each for name, each in row.items()} for row in form.rows
    ]
    return form._replace(rows=rows, names=names, numbers=numbers)


def _check_suffix(file: Path) -> None:
    if not file.is_file():
        raise NoFileError(
            f"there is no file {file}",
            hint="--predictions FILE: rows with a sample id and a prediction",
        )
    known = (*SUFFIXES, ".tsv", ".xlsx", SUFFIX)
    if file.suffix not in known:
        raise UsageError(
            f"{file.name} is not a file of predictions: it ends in none of {', '.join(known)}",
            hint=FORM_HINT,
        )


# --- tables -----------------------------------------------------------------------------------------------------------


def _table_form(file: Path, ids: Collection[str], items: Collection[str]) -> PredictionRows:
    """Return the rows of a table, or of the sheets of a workbook that hold predictions."""
    is_hidden = {sheet.name: sheet.is_hidden for sheet in sheets_of(file)}
    if len(is_hidden) < 2:
        table = open_table(file, delimiter=TABLES[file.suffix], allow_formulas=True)
        numbers, rows = _table_rows(table, items)
        return PredictionRows(rows, numbers=numbers, hidden=table.hidden)
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
    return PredictionRows(
        all_rows,
        numbers=all_numbers,
        form=f'sheet "{read[0]}"' if len(read) == 1 else "",
        left=tuple(left),
        hidden="; ".join(hidden_parts),
    )


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
            if is_object(each) and snake_case(str(name)) == PREDICTION
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
    return plain if plain in (*IDS, PREDICTION, EPOCH, *MODES_OF_KEYS) else ""


def _two_of_one_name(file: Path, names: str) -> UsageError:
    return UsageError(
        f"{file.name} has several columns of one name: {names}",
        hint="rename or remove all but one",
    )


def _tells(rows: Sequence[Row], ids: Collection[str]) -> bool:
    """Return True if a row has the id of a sample."""
    values = (value for row in rows for value in row.values())
    return any(isinstance(value, str | int) and str(value) in ids for value in values)


# --- JSON, and forms of programs --------------------------------------------------------------------------------------


def _json_form(whole: Any, column: str) -> PredictionRows:
    """Return the rows of a file of JSON; none if it has no form that is read."""
    fields = fields_of(whole)
    if is_list(fields.get("samples")) and is_object(fields.get("eval")):
        return _inspect_form(fields["samples"])
    if agent := read_agent_predictions(fields):
        form = "predictions of an agent in OpenCompass"
        return PredictionRows(agent.rows, form=form, left=agent.left, gold_tools=agent.gold_tools)
    rows: list[Any] = [*whole] if is_list(whole) else []
    if {"custom_id", "doc_id", *IDS} & fields.keys():  # JSON Lines with one line
        rows = [fields]
    if not rows or not all(map(is_object, rows)):
        return PredictionRows([])
    if all(map(is_batch_line, rows)):
        return _batch_form(rows)
    if all(map(_is_lm_eval_row, rows)):
        return _lm_eval_form(rows, is_filtered=column == "filtered_resps")
    return PredictionRows(rows)


def _inspect_form(samples: Sequence[Any]) -> PredictionRows:
    """Return the rows of a log of Inspect: the completion of each sample in each epoch."""
    rows: list[Row] = [_inspect_row(fields_of(each)) for each in samples]
    return PredictionRows(rows, form="log of Inspect", column="output")


def _inspect_row(sample: Row) -> Row:
    output = fields_of(sample.get("output"))
    return {
        "id": sample.get("id"),
        "epoch": sample.get("epoch", 1),
        "output": output.get("completion") or ("" if output.get("choices") else None),
        "error": sample.get("error") or output.get("error"),
    }


def _batch_form(lines: Sequence[Row]) -> PredictionRows:
    """Return the rows of the output file of a batch, whose requests have the ids of samples."""
    rows: list[Row] = [{"id": line["custom_id"], "response": batch_replies(line)} for line in lines]
    return PredictionRows(rows, form="output of a batch", column="response")


def _is_lm_eval_row(row: Row) -> bool:
    return "doc_id" in row and ("resps" in row or "filtered_resps" in row)


def _lm_eval_form(rows: Sequence[Row], *, is_filtered: bool) -> PredictionRows:
    """Return a row with the replies to each question of the samples of lm-eval, which have a row for each filter.

    lmms-eval writes the same fields, and no ``resps`` where they equal ``filtered_resps``.

    ``is_filtered``: read what the filters left of the replies, which is a row for each filter.
    """
    found: dict[Any, Row] = {}
    for number, row in enumerate(rows):
        of_doc = fields_of(row.get("doc"))
        key = number if is_filtered else str(row["doc_id"])
        found[key] = {
            **{name: of_doc[name] for name in of_doc if snake_case(name) in IDS},
            "index": row["doc_id"],
            "input": _lm_eval_prompt(row),
            "filter": row.get("filter") if is_filtered else None,
            "resps": _lm_eval_replies(row.get("resps") or row.get("filtered_resps")),
            "filtered_resps": _lm_eval_replies(row.get("filtered_resps")),
        }
    form = PredictionRows([*found.values()], form="samples of lm-eval", prompt="input")
    if is_filtered:
        return form._replace(column="filtered_resps")
    has_both = any("filtered_resps" in row and row.get("resps") for row in rows)
    return form._replace(column="resps", left=("column filtered_resps",) if has_both else ())


def _lm_eval_prompt(row: Row) -> str | None:
    """Return the text that was asked: ``input`` of lmms-eval, or the first of the ``arguments`` of lm-eval."""
    if is_text(row.get("input")):
        return row["input"]
    request = fields_of(fields_of(row.get("arguments")).get("gen_args_0"))
    text = request.get("arg_0")
    return text if is_text(text) else None


def _lm_eval_replies(replies: Any) -> list[str] | None:
    """Return the texts of a question's replies, several with ``repeats``; None for likelihoods of choices."""
    while is_list(replies) and len(replies) == 1:
        replies = replies[0]
    if is_text(replies):
        return [replies]
    texts = cast("list[Any]", replies) if is_list(replies) else []
    is_likelihood = len(texts) == 2 and str(texts[1]) in ("True", "False")
    return texts if texts and all(map(is_text, texts)) and not is_likelihood else None
