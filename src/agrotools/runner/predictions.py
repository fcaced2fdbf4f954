"""Runs on GTA, ThinkGeo and Agent-X as the prediction files that their own scorers read."""

from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agrotools.benchmarks._dialogs.record_dialogues import dialogue_of, origin_prompts, prediction_entry
from agrotools.core import Mode, UsageError
from agrotools.core.files import write_whole
from agrotools.runner.published_way import PUBLISHED_SAMPLES
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring.published_form import agent_x_prediction, in_file_order
from agrotools.scoring.sample_units import is_invalid

AGENT_X = "agent-x"


class Written(NamedTuple):
    """A prediction file: of which mode, and how many predictions it holds. ``invalid`` records have none.

    ``whole``: how many questions the data set has, where predictions are paired with them by place.
    """

    path: Path
    mode: Mode
    predictions: int
    invalid: int
    whole: int | None = None


def write_predictions(run: Path, folder: Path) -> list[Written]:
    """One file for each mode of the run, in the order of the published data set.

    GTA's and ThinkGeo's scorers pair predictions with questions by position: of a run on part of the questions, or
    with invalid records, their scorer needs that part of the data set.

    Raises:
        UsageError: a run on another benchmark, or one that holds nothing for such a file.
        RunStoreError: not a run folder, or its records cannot be read.
        OSError: a file cannot be written.
    """
    manifest = read_manifest(run)
    if manifest.benchmark not in PUBLISHED_SAMPLES:
        raise UsageError(
            f"{run} is a run on {manifest.benchmark}, which has no prediction files",
            hint=f"those of {', '.join(PUBLISHED_SAMPLES)} have; records.jsonl is JSON lines",
        )
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Written] = []
    for mode in manifest.modes:
        records = [record for record in iter_records(run) if record.mode == mode and record.epoch == 0]
        valid = in_file_order([record for record in records if not is_invalid(record)])
        if (
            not valid
            or (mode == "no-tool" and manifest.benchmark != AGENT_X)
            or (mode == "step-by-step" and manifest.benchmark == AGENT_X)
        ):
            continue
        content: Any
        if manifest.benchmark == AGENT_X:
            made = [agent_x_prediction(record) for record in valid]
            content = [{str(r.sample.metadata.get("entry", "")): each} for r, each in zip(valid, made, strict=True)]
        else:
            content = {
                str(at): prediction_entry(dialogue_of(record, manifest.protocol), origin_prompts(record))
                for at, record in enumerate(valid)
            }
        path = folder / f"{manifest.benchmark}_{mode}.json"
        write_whole(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))
        by_split = {} if manifest.benchmark == AGENT_X else PUBLISHED_SAMPLES[manifest.benchmark]
        whole = by_split.get(str(manifest.benchmark_options.get("split", "")))
        written.append(Written(path, mode, len(valid), len(records) - len(valid), whole))
    if not written:
        raise UsageError(f"{run} holds no finished sample for a prediction file", hint="run agrotools eval first")
    return written
