"""Prediction files: export of runs for the published scorers, and runs made of somebody's answers to a benchmark.

A file of answers has a row per sample: JSON Lines, JSON, CSV, parquet, or a table of VLMEvalKit (TSV or Excel). A row
has a prediction, a value for each item of the answer form, or a transcript (:mod:`agrotools.runner.transcripts`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson

from agrotools.agents.parsing import spoken_answer
from agrotools.benchmarks import Benchmark
from agrotools.benchmarks.values import SUFFIXES, TABLES, read_rows
from agrotools.core import (
    MODES,
    Mode,
    PlotSlot,
    Record,
    Sample,
    Step,
    Trajectory,
    UsageError,
    imported,
)
from agrotools.core.base import NoFileError
from agrotools.core.files import sha256_of_file, sha256_of_json, write_whole
from agrotools.core.form_item import asked_items
from agrotools.models.refusals import failed_request
from agrotools.plugin.contracts import BenchmarkPlugin, PredictionFormat
from agrotools.plugin.installed import plugin_of, plugins
from agrotools.runner.build import default_folder
from agrotools.runner.manifest import Manifest
from agrotools.runner.plan import WorkItem, work_items
from agrotools.runner.prediction_columns import (
    check_no_reference,
    read_columns,
    with_decimal_points,
)
from agrotools.runner.records import Key, iter_records
from agrotools.runner.store import RunStore, read_manifest
from agrotools.runner.transcripts import MODES_OF_KEYS, in_form, read_transcript
from agrotools.scoring.metrics import PREDICTIONS, SCORING_VERSION, is_invalid
from agrotools.scoring.plots import drawn_spec
from agrotools.text.loose_json import is_object
from agrotools.text.submission import item_names, name_key
from agrotools.text.tables import open_table

_ANSWERS = ("prediction", "response", "output", "answer")
"""Columns with the answer; the first that a file has is read. Last ``answer``: beside another, it is the gold."""
_QUESTIONS = ("question", "query")
_IDS = ("sample_id", "sample", "id", "question_id", *_QUESTIONS, "index")
"""Columns that identify the sample of a row, the surest first: an index may count rows of another file."""
_NO_VALUES = frozenset("nan null #n/a #ref! #value! #div/0! #name? #null! #num!".split())
"""Cells that programs write where there is no value, in lower case; ``N/A`` can be an answer."""
_NONE = "none"
"""Text that Python writes where there is no value. It is an answer where a choice has this name."""


class PredictionFile(NamedTuple):
    """A written file: its mode, and the numbers of predictions in it and of invalid records, which are left out.

    ``questions``: number of questions in the data set if predictions are matched by position, otherwise None.
    """

    path: Path
    mode: Mode
    predictions: int
    invalid: int
    questions: int | None = None


def write_predictions(run: Path, folder: Path) -> list[PredictionFile]:
    """Write one file for each mode that has a prediction format.

    Raises:
        UsageError: the benchmark has no such files, or the run has no valid record for them.
        RunStoreError: not a run folder, or its records cannot be read.
        OSError: a file cannot be written.
    """
    manifest = read_manifest(run)
    plugin = plugin_of(manifest.benchmark)
    form = _written_format(plugin) if plugin else None
    if form is None or form.write is None:
        names = ", ".join(plugin.name for plugin in plugins() if _written_format(plugin))
        raise UsageError(
            f"{run} is a run on {manifest.benchmark}, which has no prediction files",
            hint=f"only runs on {names} can be exported as predictions; records.jsonl of any run is JSON Lines",
        )
    folder.mkdir(parents=True, exist_ok=True)
    written: list[PredictionFile] = []
    for mode in manifest.modes:
        records = [
            record for record in iter_records(run) if record.mode == mode and record.epoch == 0
        ]
        valid = [record for record in records if not is_invalid(record)]
        file = form.write(manifest, mode, valid) if valid else None
        if file is not None:
            path = folder / f"{manifest.benchmark}_{mode}.json"
            write_whole(path, orjson.dumps(file.content, option=orjson.OPT_INDENT_2))
            written.append(
                PredictionFile(path, mode, len(valid), len(records) - len(valid), file.questions)
            )
    if not written:
        raise UsageError(
            f"{run} contains no finished sample for a prediction file",
            hint="run agrotools eval first",
        )
    return written


def _written_format(plugin: BenchmarkPlugin) -> PredictionFormat | None:
    formats: list[PredictionFormat] = [
        imported(target) for target in plugin.targets.predictions.values()
    ]
    return next((form for form in formats if form.write), None)


class _Failed(NamedTuple):
    """Answer of a row whose request failed: the beginning of the error that a program wrote."""

    error: str


_Answer = str | Mapping[str, Any] | _Failed | None
"""Answer of a row: a text, the row itself if it is a transcript, an error, or None."""


class RowCounts(NamedTuple):
    """Rows of a file of answers and samples of a benchmark, as far as they belong together.

    ``matched``: number of samples with a row, in each mode. ``by``: number of matched rows by what identified the
    sample, a column or ``position``. ``problems``: names of rows (``row 3 (id 7)``), samples or columns.
    """

    rows: int
    matched: int
    by: Mapping[str, int]
    problems: dict[str, list[str]]
    hidden: str = ""
    """Hidden parts of a workbook that are read all the same; empty for none."""


def import_predictions(
    file: Path,
    benchmark: Benchmark,
    benchmark_path: str,
    options: Mapping[str, str] | None = None,
    *,
    model: str = "",
    out: Path | None = None,
) -> tuple[Path, RowCounts]:
    """Write a run folder with the answers or transcripts of ``file``, and return it with what was matched.

    The modes are those of the rows: no-tool of a prediction, end-to-end of ``messages``, step-by-step of ``steps``.

    Args:
        benchmark_path: name or folder under which the benchmark was loaded.
        options: benchmark options with which it was loaded.
        model: name of the model in tables; the name of the file by default.
        out: run folder; ``runs/BENCHMARK-MODEL-HASH`` by default.

    Raises:
        NoFileError: there is no such file.
        BenchmarkError: the file cannot be read.
        UsageError: the file has no column of answers or two of one name, or none of its rows belongs to a sample.
        RunStoreError: the folder holds another run, or cannot be written.
    """
    rows, hidden = _read_table(file, benchmark)
    answers, counts = _match(rows, benchmark, file)
    counts = counts._replace(hidden=hidden)
    modes: list[Mode] = [mode for mode in MODES if any(key[0] == mode for key in answers)]
    plan = work_items(benchmark.samples, modes, 1)
    planned = dict.fromkeys(plan.keys())
    if not planned.keys() & answers.keys():
        raise UsageError(
            f"no row of {file.name} belongs to a sample that {benchmark.name} asks in {' or '.join(modes)}; "
            f"of others: {len(answers)}",
            hint="answer the samples whose no_tool_eligible is true, or give the transcript of an agent (messages)",
        )
    problems = counts.problems
    kinds = (
        "rows of samples that the mode leaves out",
        "samples without a row (invalid, left out of the scores)",
    )
    for kind, some, others in ((kinds[0], answers, planned), (kinds[1], planned, answers)):
        for key in [key for key in some if key not in others]:
            problems[kind].append(f"{key[1]} ({key[0]})" if len(modes) > 1 else key[1])
    turns = [
        len(row[key]) for row in rows for key in MODES_OF_KEYS if isinstance(row.get(key), list)
    ]
    manifest = Manifest(
        agrotools=version("agrotools"),
        scoring=SCORING_VERSION,
        benchmark=benchmark.name,
        benchmark_path=benchmark_path,
        benchmark_version=benchmark.version,
        benchmark_options=dict(options or {}),
        benchmark_hash=benchmark.content_hash,
        synthetic=benchmark.synthetic,
        model=model or file.stem,
        model_hash=sha256_of_file(file),
        protocol=PREDICTIONS,
        max_steps=max(turns, default=1),
        seed=0,
        toolset_hash=sha256_of_json({}),
        prompt_hash="",
        modes=tuple(modes),
        epochs=1,
        sample_ids=plan.sample_ids(),
        planned=plan.sizes(),
    )
    folder = out or default_folder(manifest)
    with RunStore(folder, manifest) as store:
        for item in plan:
            record = _record(benchmark, item, answers.get(item.key, []), file.name, problems)
            if record.key not in store.opened_with:
                store.append(record)
    return folder, counts


def _lacks_chart(record: Record) -> bool:
    asks = any(isinstance(slot, PlotSlot) for slot in record.sample.answer)
    return (
        asks
        and record.trajectory is not None
        and drawn_spec(record.trajectory, record.sample.declared) is None
    )


def _record(
    benchmark: Benchmark,
    item: WorkItem,
    rows: Sequence[tuple[str, _Answer]],
    file: str,
    problems: dict[str, list[str]],
) -> Record:
    """Return the record of the last row that holds an answer, or of the last row; the others are ``problems``."""
    records = [_record_of(benchmark, item, answer, file) for _, answer in rows or [("", None)]]
    place = max(
        (at for at, record in enumerate(records) if not record.invalid), default=len(records) - 1
    )
    labels, record = [label for label, _ in rows], records[place]
    if place > 0:
        problems["repeated rows (the last of a sample counts)"] += labels[:place]
    if labels[place + 1 :]:
        problems["rows without an answer after one of the same sample (the answer counts)"] += (
            labels[place + 1 :]
        )
    match rows[place][1] if rows else "":
        case None:
            problems["rows without a prediction (invalid, not wrong)"].append(labels[place])
        case _Failed():
            problems["rows with an error in place of a prediction (invalid, not wrong)"].append(
                labels[place]
            )
        case Mapping() if record.invalid:
            problems["invalid transcripts"].append(f"{item.sample.id}: {record.invalid}")
        case Mapping() if _lacks_chart(record):
            problems["transcripts without a result of plot with its spec (charts score 0)"].append(
                item.sample.id
            )
        case _:
            pass
    return record


def _record_of(benchmark: Benchmark, item: WorkItem, answer: _Answer, file: str) -> Record:
    if isinstance(answer, Mapping):
        return read_transcript(benchmark, item.sample, item.mode, answer)
    if answer is None or isinstance(answer, _Failed):
        reason = f"no reply in {file}: {answer.error}" if answer else f"no prediction in {file}"
        return Record(sample=item.sample, mode=item.mode, invalid=reason)
    step = Step(turn=0, kind="answer", text=in_form(item.sample, answer))
    return Record(
        sample=item.sample,
        mode=item.mode,
        trajectory=Trajectory(steps=(step,), termination="answered"),
    )


def _read_table(file: Path, benchmark: Benchmark) -> tuple[list[Mapping[str, Any]], str]:
    """Return the rows of a file, with names in lower case, and what is read although a workbook hides it."""
    if not file.is_file():
        raise NoFileError(
            f"there is no file {file}",
            hint="--predictions FILE: rows with a sample id and a prediction",
        )
    if file.suffix not in (known := (*SUFFIXES, ".tsv", ".xlsx")):
        raise UsageError(
            f"{file.name} is not a table of predictions", hint=f"one of {', '.join(known)}"
        )
    items = {name for each in benchmark.samples for name in item_names(asked_items(each.answer))}
    hidden = ""
    if file.suffix in TABLES:
        table = open_table(file, delimiter=TABLES[file.suffix], allow_formulas=True)
        rows: list[Any] = [row for _, row in table.named_rows()]
        hidden = table.hidden
        for columns in table.alike:
            if _meaning(columns[0], items):
                raise _two_of_one_name(file, table.placed(columns))
    else:
        rows = list(read_rows(file))
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(
            f"{file.name} contains no rows with named fields"
            if rows
            else f"{file.name} contains no rows",
            hint='one row per sample, e.g. {"id": "...", "prediction": "..."}',
        )
    _check_names(rows, items, file)
    named: list[Mapping[str, Any]] = [
        {str(name).strip().lower(): each for name, each in row.items()} for row in rows
    ]
    is_of_lm_eval = all("doc_id" in row and "filtered_resps" in row for row in named)
    return _lm_eval_rows(named) if is_of_lm_eval else named, hidden


def _check_names(rows: Sequence[Mapping[str, Any]], items: Set[str], file: Path) -> None:
    """Raise UsageError if two keys of a row, or of an object in it, mean the same value of an answer."""
    seen = set[tuple[str, ...]]()
    for number, row in enumerate(rows, start=1):
        answers = [
            cast("Mapping[str, Any]", each)
            for name, each in row.items()
            if is_object(each) and str(name).strip().lower() in _ANSWERS
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


def _meaning(name: str, items: Set[str]) -> str:
    """Return the column that a name stands for, in one form for all its spellings; empty for one that is not read."""
    plain = name.strip().lower()
    if plain in (*_IDS, *_ANSWERS, *MODES_OF_KEYS):
        return plain
    return key if (key := name_key(name)) in items else ""


def _two_of_one_name(file: Path, names: str) -> UsageError:
    return UsageError(
        f"{file.name} has several columns of one name: {names}",
        hint="rename or remove all but one",
    )


def _lm_eval_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a row with the reply to each question of lm-eval's samples, which have a row for each filter."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        reply: Any = row.get("resps") or row["filtered_resps"]
        while isinstance(reply, list) and len(each := cast("list[Any]", reply)) == 1:
            reply = each[0]
        doc: Mapping[str, Any] = row.get("doc") or {}
        found[row["doc_id"]] = {name: doc[name] for name in _IDS if name in doc} | {
            "index": row["doc_id"]
        }
        found[row["doc_id"]] |= {
            "prediction": reply if isinstance(reply, str) else None
        }  # None: likelihoods
    return [*found.values()]


def _match(
    rows: Sequence[Mapping[str, Any]], benchmark: Benchmark, file: Path
) -> tuple[dict[Key, list[tuple[str, _Answer]]], RowCounts]:
    """Return the names of rows and their answers by key of the record, and the counts."""
    samples = {sample.id: item_names(asked_items(sample.answer)) for sample in benchmark.samples}
    items = {name for of_sample in samples.values() for name in of_sample}
    column, of_items, unread = _answer_column(rows, items, file.name)
    with_none = {sample.id for sample in benchmark.samples if _may_be_none(sample)}
    answers = defaultdict[Key, list[tuple[str, _Answer]]](list)
    problems = defaultdict[str, list[str]](list)
    found = _samples_of(rows, benchmark, samples)
    by_id = {sample.id: sample for sample in benchmark.samples}
    of_rows = [by_id[match[0]] if match else None for match in found]
    columns = read_columns(rows, of_rows, [column] if column else of_items, column)
    check_no_reference(
        [each for each in columns if each.name not in _ANSWERS[:-1]], rows, unread, file.name
    )
    rows, settled = with_decimal_points(rows, columns, file.name)
    if settled:
        problems["commas that the right answers settle"] = settled
    for number, (row, match) in enumerate(zip(rows, found, strict=True), start=1):
        label = f"row {number}" + next(
            (f" ({name} {str(row[name])[:60]})" for name in _IDS if row.get(name)), ""
        )
        if match is None:
            problems["rows without a sample"].append(label)
            continue
        for mode, answer in _answers(
            row,
            column,
            samples[match[0]],
            of_table=file.suffix in TABLES,
            may_be_none=match[0] in with_none,
        ):
            answers[mode, match[0], 0].append((label, answer))
    if not answers:
        first = f"first: {problems['rows without a sample'][0]}"
        if any("index" in row for row in rows):
            last = f"from 1 and has {len(samples)}, the last sample"
            first += f"; an index is a position if it counts from 0 and has 0, or {last}"
        raise UsageError(
            f"no row of {file.name} belongs to a sample of {benchmark.name}; {first}",
            hint=f"ids of samples are such as {next(iter(samples))}; name the column {_IDS[0]} or {_IDS[2]}, or give "
            "the question",
        )
    if unread:
        problems[f"columns not read (the prediction is {column})" if column else _NO_ITEM] = unread
    by = Counter(match[1] for match in found if match)
    return answers, RowCounts(len(rows), len(answers), dict(by), problems)


_NO_ITEM = "columns that are no value of an answer"


def _answer_column(
    rows: Sequence[Mapping[str, Any]], items: set[str], file: str
) -> tuple[str, list[str], list[str]]:
    """Return the column of predictions, the columns of items, and those that are not read.

    The first is empty if columns of items or transcripts hold the predictions."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    of_items = [
        name for name in columns if name_key(name) in items and name not in (*_IDS, _ANSWERS[-1])
    ]
    column = next(
        (name for name in (_ANSWERS[:-1] if of_items else _ANSWERS) if name in columns), ""
    )
    if not column and not of_items and not MODES_OF_KEYS.keys() & {*columns}:
        raise UsageError(
            f"{file} has no column of predictions; it has {', '.join(columns)}",
            hint=f"name it {', '.join(_ANSWERS[:-1])} or {_ANSWERS[-1]}, or by a value asked for, such as "
            + ", ".join(sorted(items)[:3]),
        )
    if column and column != _ANSWERS[-1]:
        return column, of_items, []
    others = [name for name in columns if name not in (column, *of_items, *_IDS)]
    return column, of_items, others if of_items or column else []


def _samples_of(
    rows: Sequence[Mapping[str, Any]], benchmark: Benchmark, samples: Mapping[str, object]
) -> list[tuple[str, str] | None]:
    """Return the sample of each row and what identifies it, a column or ``position``."""
    questions = {sample.id: " ".join(sample.query.split()) for sample in benchmark.samples}
    times = Counter(questions.values())
    by_question = {question: name for name, question in questions.items() if times[question] == 1}
    found = [_sample_of(row, samples, by_question) for row in rows]
    return found if any(found) else _by_position(rows, list(samples))


def _answers(
    row: Mapping[str, Any],
    column: str,
    items: Mapping[str, str],
    *,
    of_table: bool,
    may_be_none: bool,
) -> Iterator[tuple[Mode, _Answer]]:
    """Yield mode and answer of a row: the row itself for a transcript, else the text of its column, or of its items."""
    transcripts: list[Mode] = [
        mode for key, mode in MODES_OF_KEYS.items() if row.get(key) is not None
    ]
    for mode in transcripts:
        yield mode, row
    if column and not transcripts:
        value = row.get(column)
        yield "no-tool", _prediction(value, items, of_table=of_table, may_be_none=may_be_none)
    elif not transcripts:
        given = {
            name: _prediction(row[name], {}, of_table=of_table, may_be_none=may_be_none)
            for name in row
            if name_key(name) in items
        }
        values = {
            name: text for name, text in given.items() if text and not isinstance(text, _Failed)
        }
        failed = next((each for each in given.values() if isinstance(each, _Failed)), None)
        yield "no-tool", failed or _answer_text(values, items) or None


def _may_be_none(sample: Sample) -> bool:
    """Return True if ``None`` can be an answer: a choice has this name, several or no choices may be right, or words.

    The form offers another word for a refusal."""
    for item in asked_items(sample.answer):
        names = [*item.choices, *(name for each in item.aliases.values() for name in each)]
        is_open = item.free_text or (not item.is_number and item.type != "boolean" and not names)
        if is_open or item.takes_several or any(name.casefold() == _NONE for name in names):
            return True
    return False


def _sample_of(
    row: Mapping[str, Any], known: Mapping[str, object], by_question: Mapping[str, str]
) -> tuple[str, str] | None:
    for column in _IDS:
        text = _plain(row.get(column))
        text = (
            text if text in known else text.removesuffix(".0")
        )  # of pandas, in a column with gaps
        if (
            name := by_question.get(" ".join(text.split()))
            if column in _QUESTIONS
            else text
            if text in known
            else None
        ):
            return name, column
    return None


def _by_position(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[tuple[str, str] | None]:
    """Match whole numbers in ``index`` with positions, from 0 or from 1; nothing if both are possible."""
    texts = [_plain(row.get("index")).removesuffix(".0") for row in rows]
    numbers = [int(text) if text.isdecimal() else -1 for text in texts]
    first = 0 if 0 in numbers else 1
    if max(numbers) - first >= len(names) or (first and len(names) not in numbers):
        return [None] * len(rows)
    return [(names[number - first], "position") if number >= first else None for number in numbers]


def _plain(value: Any) -> str:
    """Return an id as text; Excel stores whole numbers as floats."""
    return (
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    )


def _prediction(
    value: Any, items: Mapping[str, str], *, of_table: bool, may_be_none: bool
) -> str | _Failed | None:
    """Return a prediction as text, or None if there is none: an empty text is an answer only where null exists.

    ``may_be_none``: True if ``None`` can be an answer to the question; else it is what programs write for no reply.
    """
    text = _answer_text(value, items)
    if name_key(text.partition(":")[0]) not in items and (error := failed_request(str(value))):
        return _Failed(error)
    if isinstance(value, str) and text.strip():
        text = spoken_answer(text)
    plain = text.strip().casefold()
    no_value = value is None or value != value or plain in _NO_VALUES
    if plain == _NONE and not may_be_none:
        no_value = True
    return None if no_value or (of_table and not plain) else text


def _answer_text(value: Any, items: Mapping[str, str]) -> str:
    """Return a prediction as text; an object becomes lines ``name: value``, as in the answer form."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        values = {
            items.get(name_key(name), name): " ".join(_value_text(each).split())
            for name, each in fields.items()
        }
        return "\n".join(f"{name}: {text}" for name, text in values.items())
    return _value_text(value)


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(map(_value_text, cast("Mapping[str, Any]", value).values()))
    if isinstance(value, list):
        return ", ".join(map(_value_text, cast("list[Any]", value)))
    return "" if value is None or value != value else _plain(value)
