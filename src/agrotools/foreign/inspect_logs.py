"""Logs of Inspect: read as JSON or as ``.eval``, and runs made of the logs of our own tasks.

Our tasks (:mod:`agrotools.inspect_tasks`) store the manifest of the run in the metadata of the task, and the record of
each sample in the metadata of its score. Such a log becomes the run that ``agrotools eval`` would have written.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from agrotools.core import Record, UsageError, imported
from agrotools.core.files import sha256_of_file
from agrotools.core.libraries import is_installed
from agrotools.formats.manifest import Manifest
from agrotools.loading import Benchmark
from agrotools.loading.values import read_json
from agrotools.runner.build import default_folder
from agrotools.runner.plan import work_items
from agrotools.runner.records import Key
from agrotools.runner.store import RunStore
from agrotools.text.json_kinds import fields_of, is_list

RECORD = "agrotools_record"
"""Key of the record in the metadata of a score."""
MANIFEST = "agrotools_manifest"
"""Key of the manifest in the metadata of a task."""
SUFFIX = ".eval"
_JSON = (".json", ".jsonl")
_OUR_TASKS = "agrotools/"


class ImportedLog(NamedTuple):
    """Run folder that was made of a log, and its numbers of samples with and without a record."""

    folder: Path
    recorded: int
    invalid: list[str]


def _read_log(file: Path) -> dict[str, Any]:
    """Return a log of Inspect (``.eval``) as ``inspect log convert --to json`` writes it: ``eval``, ``samples``...

    Raises:
        UsageError: the file is no such log, or inspect_ai is not installed.
    """
    if not is_installed("inspect_ai"):
        raise UsageError(
            f"{file.name}: only Inspect reads its logs, and inspect_ai is not installed here",
            hint="where it is: inspect log convert --to json --output-dir DIR FILE",
        )
    read_eval_log: Callable[[str], Any] = imported("inspect_ai.log:read_eval_log")
    try:
        return read_eval_log(str(file)).model_dump(mode="json")
    except Exception as error:  # Inspect raises what its zip, JSON or model raises
        raise UsageError(
            f"{file.name} cannot be read as a log of Inspect: {error}",
            hint="give the file that inspect eval wrote",
        ) from error


def read_content(file: Path) -> Any:
    """Return the content of a log of Inspect or of a file of JSON; None for a table, or if there is no such file.

    Raises:
        BenchmarkError: it is no JSON.
        UsageError: it is no log, or inspect_ai is not installed.
    """
    if not file.is_file() or file.suffix not in (SUFFIX, *_JSON):
        return None
    return _read_log(file) if file.suffix == SUFFIX else read_json(file)


def own_log(file: Path, content: Any) -> dict[str, Any] | None:
    """Return a log of one of our tasks of Inspect; None for any other file.

    Args:
        file: the file.
        content: what :func:`read_content` returned of it.

    Raises:
        UsageError: the log is of one of our tasks, but lacks the records from which a run is made.
    """
    whole = fields_of(content)
    task = fields_of(whole.get("eval"))
    if not str(task.get("task")).startswith(_OUR_TASKS) or not is_list(whole.get("samples")):
        return None
    if MANIFEST not in fields_of(task.get("metadata")):
        raise _no_run(file, "was written by another version of agrotools")
    if not any(_stored_record(fields_of(sample)) for sample in whole["samples"]):
        raise _no_run(file, "holds no score of agrotools, with which it stores its records")
    return dict(whole)


def _no_run(file: Path, why: str) -> UsageError:
    return UsageError(
        f"{file.name} is a log of our own task, but {why}, so no run can be made of it",
        hint="run the same model with agrotools eval --mode end-to-end --protocol tool-calling",
    )


def import_log(
    file: Path,
    log: Mapping[str, Any],
    benchmark: Benchmark,
    *,
    model: str,
    out: Path | None,
) -> ImportedLog:
    """Write the run folder of a log that :func:`own_log` returned: the records as they are, with their trajectories.

    Args:
        benchmark: the benchmark of the task.
        model: name of the model in tables; empty for that of the log.
        out: run folder; None for ``runs/BENCHMARK-MODEL-HASH``.

    Raises:
        UsageError: the log is of another benchmark, or of another version of it.
        RunStoreError: the folder holds another run, or cannot be written.
    """
    samples = [fields_of(each) for each in log["samples"]]
    stored = _stored_manifest(file, log, benchmark)
    records = {record.key: record for record in _records(file, samples)}
    epochs = max(record.epoch for record in records.values()) + 1
    items = work_items(benchmark.samples, stored.modes, epochs, only=_asked_samples(log, samples))
    task = fields_of(log["eval"])
    update: dict[str, Any] = {
        "model": model or _model_name(task),
        "model_hash": sha256_of_file(file),
        "epochs": epochs,
        "sample_ids": items.sample_ids(),
        "planned": items.sizes(),
    }
    if task.get("solver"):  # not our loop: its prompts are its own
        update["prompt_hash"] = ""
    manifest = stored.model_copy(update=update)
    folder = out or default_folder(manifest)
    reasons = _errors(samples)
    invalid: list[str] = []
    with RunStore(folder, manifest) as store:
        for item in items:
            record = records.get(item.key)
            if record is None:
                reason = reasons.get(item.key, f"{file.name} has no score of it")
                invalid.append(item.sample.id)
                record = Record(
                    sample=item.sample, mode=item.mode, epoch=item.epoch, invalid=reason
                )
            if record.key not in store.opened_with:
                store.append(record)
    return ImportedLog(folder, len(records), invalid)


def _stored_manifest(file: Path, log: Mapping[str, Any], benchmark: Benchmark) -> Manifest:
    """Return the manifest in a log; UsageError if it is of another benchmark."""
    try:
        manifest = Manifest.model_validate(fields_of(log["eval"])["metadata"][MANIFEST])
    except ValidationError as error:
        raise _no_run(file, "was written by another version of agrotools") from error
    if manifest.benchmark != benchmark.name:
        raise UsageError(
            f"{file.name} is a log of {manifest.benchmark}, not of {benchmark.name}",
            hint=f"--benchmark {manifest.benchmark}",
        )
    if manifest.benchmark_hash != benchmark.content_hash:
        raise UsageError(
            f"{file.name} is a log of {manifest.benchmark} {manifest.benchmark_version} with other content than "
            f"{benchmark.name} {benchmark.version}, which is here",
            hint=f"score it with agrotools {manifest.agrotools}, which ran it",
        )
    return manifest


def _model_name(task: Mapping[str, Any]) -> str:
    """Return the model of a task, with its solver if that is not ours."""
    model, solver = str(task.get("model")), task.get("solver")
    return f"{model} with {solver}" if solver else model


def _asked_samples(log: Mapping[str, Any], samples: list[Mapping[str, Any]]) -> list[str]:
    """Return the ids of the samples that were asked: an interrupted log lacks some of them."""
    planned: Any = fields_of(fields_of(log["eval"]).get("dataset")).get("sample_ids")
    ids = [*(planned or ()), *(sample.get("id") for sample in samples)]
    return [*dict.fromkeys(map(str, ids))]


def _records(file: Path, samples: list[Mapping[str, Any]]) -> Iterator[Record]:
    for sample in samples:
        stored = _stored_record(sample)
        if stored is None:
            continue
        try:
            yield Record.model_validate(stored)
        except ValidationError as error:
            raise _no_run(file, "was written by another version of agrotools") from error


def _stored_record(sample: Mapping[str, Any]) -> Any:
    """Return the record in the scores of a sample; None if no score has one."""
    scores = fields_of(sample.get("scores"))
    found = (fields_of(fields_of(score).get("metadata")).get(RECORD) for score in scores.values())
    return next((each for each in found if each is not None), None)


def _errors(samples: list[Mapping[str, Any]]) -> dict[Key, str]:
    """Return why samples failed, by key of the record; Inspect counts epochs from 1."""
    found: dict[Key, str] = {}
    for sample in samples:
        message = fields_of(sample.get("error")).get("message")
        if message:
            key: Key = ("end-to-end", str(sample.get("id")), int(sample.get("epoch", 1)) - 1)
            found[key] = str(message)
    return found
