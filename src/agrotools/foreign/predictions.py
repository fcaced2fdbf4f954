"""Prediction files: export of runs for the published scorers, and runs made of somebody's answers to a benchmark.

A file of answers has a row per sample, in any of the forms of :mod:`agrotools.foreign.prediction_forms`. A row has a
prediction, a value for each item of the answer form, or a transcript (:mod:`agrotools.foreign.transcripts`).
"""

from collections.abc import Mapping, Sequence, Set
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agrotools.core import MODES, Mode, PlotSlot, Record, Step, Trajectory, UsageError, imported
from agrotools.core.files import sha256_of_file, sha256_of_json, write_whole
from agrotools.core.form_item import asked_items
from agrotools.core.installed import plugin_of, plugins
from agrotools.core.readings import Readings
from agrotools.core.texts import count_text
from agrotools.foreign.asked_again import (
    NO_REPLIES,
    GivenReplies,
    check_replies,
    with_reply,
)
from agrotools.foreign.batch_output import NoReply
from agrotools.foreign.inspect_logs import import_log, own_log, read_content
from agrotools.foreign.prediction_answers import GivenAnswer
from agrotools.foreign.prediction_columns import Choosing, ColumnAnswers
from agrotools.foreign.prediction_forms import PredictionRows, read_prediction_rows
from agrotools.foreign.prediction_photos import chosen_samples, single_value
from agrotools.foreign.prediction_rows import RowCounts, match_rows
from agrotools.foreign.prediction_values import unread_values
from agrotools.foreign.transcripts import in_form, read_transcript
from agrotools.formats.manifest import Manifest
from agrotools.formats.table_use import stored_warnings
from agrotools.formats.tool_check import stored_checks
from agrotools.loading import Benchmark
from agrotools.loading.contract import BenchmarkPlugin
from agrotools.loading.photos import photos_of
from agrotools.loading.values import TABLES
from agrotools.runner.build import default_folder
from agrotools.runner.plan import WorkItem, WorkItems, work_items
from agrotools.runner.records import Key, iter_records
from agrotools.runner.store import RunStore, read_manifest
from agrotools.scoring.metrics import PREDICTIONS, SCORING_VERSION, is_invalid
from agrotools.scoring.plots import drawn_spec
from agrotools.scoring.prediction_format import PredictionFormat
from agrotools.text.labels import item_names

NOTHING_CHOSEN = ColumnAnswers()
"""No answer to any question on a file of predictions."""


class WrittenPredictions(NamedTuple):
    """A written file: its mode, and the numbers of predictions in it and of invalid records, which are left out.

    ``questions``: number of questions in the data set if predictions are matched by position, otherwise None.
    """

    path: Path
    mode: Mode
    predictions: int
    invalid: int
    questions: int | None = None


def write_predictions(run: Path, folder: Path) -> list[WrittenPredictions]:
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
    written: list[WrittenPredictions] = []
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
                WrittenPredictions(
                    path, mode, len(valid), len(records) - len(valid), file.questions
                )
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


def import_predictions(
    file: Path,
    benchmark: Benchmark,
    benchmark_path: str,
    options: Mapping[str, str] | None = None,
    *,
    model: str = "",
    out: Path | None = None,
    chosen: ColumnAnswers = NOTHING_CHOSEN,
    readings: Readings | None = None,
    replies: GivenReplies = NO_REPLIES,
) -> tuple[Path, RowCounts]:
    """Write a run folder with the answers or transcripts of ``file``, and return it with what was matched.

    The modes are those of the rows: no-tool of a prediction, end-to-end of ``messages``, step-by-step of ``steps``.
    Repeated rows of a sample are its epochs. The log of one of our Inspect tasks becomes the end-to-end run that it is.

    Args:
        benchmark_path: name or folder under which the benchmark was loaded.
        options: benchmark options with which it was loaded.
        model: name of the model in tables; the name of the file by default.
        out: run folder; ``runs/BENCHMARK-MODEL-HASH`` by default.
        chosen: answers to questions on the file.
        readings: what is read, and questions; by default nobody answers them.
        replies: replies to the closing messages of answers that were not read whole.

    Raises:
        NoFileError: there is no such file.
        BenchmarkError: the file cannot be read.
        UsageError: the file has no column of answers or two of one name, or none of its rows belongs to a sample.
        UndecidedError: the file can be read in several ways, and nobody says in which.
        RunStoreError: the folder holds another run, or cannot be written.
    """
    choosing = Choosing(readings or Readings(), chosen)
    content = read_content(file)
    if log := own_log(file, content):
        return _import_own_log(file, log, benchmark, model, out, choosing)
    table = _read_rows(file, content, benchmark, chosen.column)
    matched = match_rows(table, benchmark, file.name, choosing, of_table=file.suffix in TABLES)
    choosing.readings.settle()
    counts = matched.counts
    answered_modes = {mode for mode, _name, _epoch in matched.answers}
    modes: list[Mode] = [mode for mode in MODES if mode in answered_modes]
    is_quick = _is_quick_part(matched.answers.keys(), benchmark, modes)
    if is_quick:
        choosing.readings.take("the quick part, since no row is of another sample")
    only = benchmark.header.quick if is_quick else ()
    items = work_items(chosen_samples(benchmark, choosing), modes, counts.epochs, only=only)
    _count_unplanned(matched.answers.keys(), items, counts, file.name, benchmark.name)
    manifest = Manifest(
        agrotools=version("agrotools"),
        scoring=SCORING_VERSION,
        benchmark=benchmark.name,
        benchmark_path=benchmark_path,
        benchmark_version=benchmark.version,
        benchmark_options=dict(options or {}),
        benchmark_hash=benchmark.content_hash,
        synthetic=benchmark.synthetic,
        quick=is_quick,
        tool_checks=tuple(stored_checks(benchmark.header.metadata)),
        benchmark_warnings=tuple(stored_warnings(benchmark.header.metadata)),
        model=model or choosing.decided.get("--only=model") or file.stem,
        model_hash=_content_hash(file, choosing.decided, replies),
        protocol=PREDICTIONS,
        max_steps=matched.turns,
        seed=0,
        toolset_hash=sha256_of_json({}),
        prompt_hash="",
        modes=tuple(modes),
        epochs=counts.epochs,
        sample_ids=items.sample_ids(),
        planned=items.sizes(),
    )
    _read_replies(replies, benchmark, items, matched.answers, file.name, choosing)
    folder = out or default_folder(manifest)
    single = single_value(benchmark)
    with RunStore(folder, manifest) as store:
        for item in items:
            rows = matched.answers.get(item.key, [])
            given = replies.of(item.sample.id, item.epoch, item.mode)
            reply = given.text if given else None
            record = _record(benchmark, item, rows, file.name, counts.problems, single, reply)
            if record.key not in store.opened_with:
                store.append(record)
    return folder, counts


def _read_replies(
    replies: GivenReplies,
    benchmark: Benchmark,
    items: WorkItems,
    answers: Mapping[Key, Sequence[tuple[str, GivenAnswer]]],
    file: str,
    choosing: Choosing,
) -> None:
    """Check the replies to closing messages, and say how many answers were asked again.

    Raises:
        UsageError: a reply is to no closing message of these answers.
    """
    if not replies.by_key:
        return
    replied = [item for item in items if replies.of(item.sample.id, item.epoch, item.mode)]
    records = [
        _counted_record(benchmark, item, answers[item.key], file)[0]
        for item in replied
        if item.key in answers
    ]
    check_replies(replies, records)
    number = count_text(len(replies.by_key), "answer")
    choosing.readings.take(f"{number} asked again, replies in {replies.file}")


def _is_quick_part(answered: Set[Key], benchmark: Benchmark, modes: Sequence[Mode]) -> bool:
    """Return True if a file answers samples of the quick part alone, and at least half of those that ``modes`` ask."""
    quick_ids = benchmark.header.quick
    ids = {sample_id for _, sample_id, _ in answered}
    if not ids.issubset(quick_ids):
        return False
    asked = {*work_items(benchmark.samples, modes, 1, only=quick_ids).sample_ids()}
    return 2 * len(ids & asked) >= len(asked) > 0


def _import_own_log(
    file: Path,
    log: Mapping[str, Any],
    benchmark: Benchmark,
    model: str,
    out: Path | None,
    choosing: Choosing,
) -> tuple[Path, RowCounts]:
    """Write a run folder with the records in a log of one of our tasks of Inspect; no column of it is read."""
    if choosing.chosen != NOTHING_CHOSEN:
        raise UsageError(
            f"{file.name} is a log of our own task, whose records are taken as they are",
            hint="omit --column, --only, --repeated and --decimal",
        )
    imported_log = import_log(file, log, benchmark, model=model, out=out)
    choosing.readings.take("records of agrotools in a log of Inspect, with their calls")
    problems: dict[str, list[str]] = {}
    if imported_log.invalid:
        problems["samples without a score (invalid, left out of the scores)"] = imported_log.invalid
    n_records = imported_log.recorded
    counts = RowCounts(len(log["samples"]), n_records, {"record": n_records}, problems)
    return imported_log.folder, counts


def _read_rows(file: Path, content: Any, benchmark: Benchmark, column: str) -> PredictionRows:
    """Return the rows of a file, which are found by the names of samples, photos and values of the benchmark.

    ``content``: what :func:`read_content` returned of the file.
    """
    names_of_samples = set[str]()
    names_of_values = set[str]()
    for sample in benchmark.samples:
        names_of_samples.add(sample.id)
        names_of_samples.update(photos_of(sample))
        names_of_values.update(item_names(asked_items(sample.answer)))
    return read_prediction_rows(file, content, names_of_samples, names_of_values, column)


def _count_unplanned(
    answered: Set[Key], items: WorkItems, counts: RowCounts, file: str, benchmark: str
) -> None:
    """Name the rows of samples that are not asked in their mode, and the samples without a row.

    Raises:
        UsageError: no row belongs to a sample that is asked in its mode.
    """
    planned = dict.fromkeys(items.keys())
    modes = {key[0] for key in answered}
    if not planned.keys() & answered:
        asked = " or ".join(mode for mode in MODES if mode in modes)
        raise UsageError(
            f"no row of {file} belongs to a sample that {benchmark} asks in {asked}; of others: {len(answered)}",
            hint="answer the samples whose no_tool_eligible is true, or give the transcript of an agent (messages)",
        )

    def named(key: Key) -> str:
        of_mode = f" ({key[0]})" if len(modes) > 1 else ""
        of_epoch = f", epoch {key[2]}" if counts.epochs > 1 else ""
        return f"{key[1]}{of_mode}{of_epoch}"

    if left := [named(key) for key in answered if key not in planned]:
        of_agents = ""
        if modes == {"no-tool"}:
            of_agents = " (answers of a system with tools: end-to-end in a column mode)"
        counts.problems[f"rows of samples that the mode leaves out{of_agents}"] = left
    if missing := [named(key) for key in planned if key not in answered]:
        counts.problems["samples without a row (invalid, left out of the scores)"] = missing


def _content_hash(file: Path, decided: Mapping[str, str], replies: GivenReplies) -> str:
    """Return the hash of a file, of the answers to questions on it, and of replies: others make another run."""
    content = sha256_of_file(file)
    more: dict[str, object] = {"readings": decided} if decided else {}
    if replies.by_key:
        more["replies"] = {
            " ".join(map(str, key)): reply.text for key, reply in replies.by_key.items()
        }
    return sha256_of_json({"file": content, **more}) if more else content


def _record(
    benchmark: Benchmark,
    item: WorkItem,
    rows: Sequence[tuple[str, GivenAnswer]],
    file: str,
    problems: dict[str, list[str]],
    single: str,
    reply: str | None,
) -> Record:
    """Return the record of the last row that holds an answer, or of the last row; the others are ``problems``.

    ``single``: what the samples ask for that want one value. ``reply``: to the closing message.
    """
    if not rows:
        return _record_of(benchmark, item, None, file)
    counted, place = _counted_record(benchmark, item, rows, file)
    labels = [label for label, _answer in rows]
    before, after = labels[:place], labels[place + 1 :]
    if before:
        problems["repeated rows (with the same answer, or with none)"] += before
    if after:
        problems["rows without an answer after one of the same sample (the answer counts)"] += after
    label, answer = rows[place]
    record = with_reply(counted, reply)
    if problem := _problem_of(record, label, answer, single):
        kind, row = problem
        problems[kind].append(row)
    return record


def _counted_record(
    benchmark: Benchmark, item: WorkItem, rows: Sequence[tuple[str, GivenAnswer]], file: str
) -> tuple[Record, int]:
    """Return the record of the last row that holds an answer, or of the last row, and the place of this row."""
    records = [_record_of(benchmark, item, answer, file) for _label, answer in rows]
    valid = [at for at, record in enumerate(records) if not record.invalid]
    place = valid[-1] if valid else len(records) - 1
    return records[place], place


def _problem_of(
    record: Record, label: str, answer: GivenAnswer, single: str
) -> tuple[str, str] | None:
    """Return what is wrong with the answer of a row: the kind of problem, and the name of the row; None for nothing."""
    sample = record.sample
    if answer is None:
        return "rows without a prediction (invalid, not wrong)", label
    if isinstance(answer, NoReply):
        return "rows with an error in place of a prediction (invalid, not wrong)", label
    if isinstance(answer, Mapping):
        if record.invalid:
            return "invalid transcripts", f"{sample.id}: {record.invalid}"
        if _lacks_chart(record):
            kind = "transcripts without a result of plot with its spec (charts score 0)"
            return kind, sample.id
        return None
    given = record.trajectory.answer_text if record.trajectory else None
    unread = unread_values(sample, given or "", single)
    if unread is None:
        return None
    kind, values = unread
    return kind, f"{label}: {values}"


def _lacks_chart(record: Record) -> bool:
    """True if a transcript was to draw a chart, and has no result that says what it drew."""
    if record.trajectory is None:
        return False
    asks_for_chart = any(isinstance(slot, PlotSlot) for slot in record.sample.answer)
    return asks_for_chart and drawn_spec(record.trajectory, record.sample.declared) is None


def _record_of(benchmark: Benchmark, item: WorkItem, answer: GivenAnswer, file: str) -> Record:
    if isinstance(answer, Mapping):
        record = read_transcript(benchmark, item.sample, item.mode, answer)
        return record.model_copy(update={"epoch": item.epoch})
    if answer is None or isinstance(answer, NoReply):
        reason = f"no reply in {file}: {answer.error}" if answer else f"no prediction in {file}"
        return Record(sample=item.sample, mode=item.mode, epoch=item.epoch, invalid=reason)
    # Also without its form: nobody was asked for it. Only with_reply can end as no_form.
    step = Step(turn=0, kind="answer", text=in_form(item.sample, answer))
    return Record(
        sample=item.sample,
        mode=item.mode,
        epoch=item.epoch,
        trajectory=Trajectory(steps=(step,), termination="answered"),
    )
