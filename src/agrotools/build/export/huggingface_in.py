"""The Hugging Face layout of a benchmark back into a benchmark folder of the same content."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from agrotools.build.export.exported import EXPORT_FILE, read_exported, stored_path
from agrotools.build.export.folder import write_benchmark
from agrotools.build.export.huggingface import DATA_FOLDER, JSONS, SPLIT, TEXTS, arrow_and_parquet
from agrotools.core import BenchmarkError, Sample
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.replacement import replace_folder

_AGAIN = "export the benchmark again with `agrotools export DIR --format hf`"


def build_huggingface(folder: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Write the benchmark that :func:`~.huggingface.export_huggingface` wrote to ``folder`` into ``out``, whole or not
    at all. It has the content hash that the exported one had.

    Raises:
        UsageError: pyarrow is not installed.
        BenchmarkError: ``folder`` is no such export, is incomplete or altered, or ``out`` holds something else.
    """
    header = _header(folder)
    shards = _shards(folder)
    samples: list[Sample] = []
    with replace_folder(out) as made:
        for number, shard in enumerate(shards, start=1):
            samples.extend(_sample(made, row, shard.name) for row in _rows(shard))
            progress("parquet files", number, len(shards))
        write_benchmark(made, header, samples)
    return header


def _header(folder: Path) -> BenchmarkHeader:
    if not (folder / EXPORT_FILE).is_file():
        raise BenchmarkError(f"{folder} is no benchmark in the Hugging Face layout: it has no {EXPORT_FILE}",
                             hint=_AGAIN)  # fmt: skip
    exported = read_exported(folder)
    if exported.format != "hf":
        raise BenchmarkError(f"{folder} is an export of format {exported.format}", hint=f"--source {exported.format}=")
    return exported.header


def _shards(folder: Path) -> list[Path]:
    shards = sorted((folder / DATA_FOLDER).glob(f"{SPLIT}-*.parquet"))
    expected = {int(shard.stem.rpartition("-of-")[2]) for shard in shards if shard.stem[-5:].isdecimal()}
    if not shards or expected != {len(shards)}:
        raise BenchmarkError(f"{folder / DATA_FOLDER} holds {len(shards)} parquet files, not all of them", hint=_AGAIN)
    return shards


def _rows(shard: Path) -> Iterator[dict[str, Any]]:
    arrow, parquet = arrow_and_parquet()
    try:
        with parquet.ParquetFile(shard) as file:
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group).to_pylist()
    except arrow.ArrowException as error:
        raise BenchmarkError(f"{shard} cannot be read: {error}", hint=_AGAIN) from error


def _sample(made: Path, row: dict[str, Any], shard: str) -> Sample:
    """The sample of ``row``, its files written."""
    try:
        plain = {name: row[name] for name in (*TEXTS, "no_tool_eligible", "toolset")}
        plain |= {name: orjson.loads(row[name]) for name in JSONS if row[name] is not None}
        sample = Sample.model_validate_json(orjson.dumps(plain))
        contents = {file["path"]: file["bytes"] for file in (*row["images"], *row["data"])}
    except (KeyError, TypeError, orjson.JSONDecodeError, ValidationError) as error:
        raise BenchmarkError(f"{shard}: the row {row.get('id')!r} cannot be read: {error}", hint=_AGAIN) from error
    for file in sample.files:
        content = contents.get(file.path)
        if content is None or (file.sha256 and hashlib.sha256(content).hexdigest() != file.sha256):
            what = "is missing" if content is None else "is not the one that was recorded"
            raise BenchmarkError(f"{shard}: sample {sample.id}: file {file.path} {what}", hint=_AGAIN)
        place = made / stored_path(file.path)
        if place.exists():
            if place.read_bytes() != content:
                message = f"{shard}: sample {sample.id}: another sample has another file at {file.path}"
                raise BenchmarkError(message, hint=_AGAIN)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    return sample
