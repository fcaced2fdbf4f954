"""Export of runs as prediction files for the published scorers of their benchmarks."""

from pathlib import Path
from typing import NamedTuple

import orjson

from agrotools.core import Mode, UsageError, imported
from agrotools.core.files import write_whole
from agrotools.plugin import BenchmarkPlugin, PredictionFormat, plugin_of, plugins
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring.metrics import is_invalid


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
        records = [record for record in iter_records(run) if record.mode == mode and record.epoch == 0]
        valid = [record for record in records if not is_invalid(record)]
        file = form.write(manifest, mode, valid) if valid else None
        if file is not None:
            path = folder / f"{manifest.benchmark}_{mode}.json"
            write_whole(path, orjson.dumps(file.content, option=orjson.OPT_INDENT_2))
            written.append(PredictionFile(path, mode, len(valid), len(records) - len(valid), file.questions))
    if not written:
        raise UsageError(f"{run} holds no finished sample for a prediction file", hint="run agrotools eval first")
    return written


def _written_format(plugin: BenchmarkPlugin) -> PredictionFormat | None:
    """Return the first prediction format of the benchmark that can be written, or None."""
    formats: list[PredictionFormat] = [imported(target) for target in plugin.predictions.values()]
    return next((form for form in formats if form.write), None)
