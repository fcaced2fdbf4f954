"""Scores of a run from what its folder holds: no model, no tool, no image is needed."""

from pathlib import Path
from typing import NamedTuple

import orjson

from agrotools.core import RunStoreError, Score
from agrotools.runner.store import read_manifest, read_records, write_whole
from agrotools.scoring import Summary, score_record, summarise


class Rescored(NamedTuple):
    """The summary of a run and its score rows, in the order of the records."""

    summary: Summary
    scores: list[Score]


def rescore(run: Path, *, allow_invalid: bool = False) -> Rescored:
    """Score every record of ``run`` and write summary and score rows to ``scores.json``.

    Raises:
        RunStoreError: not a run folder, one without records, or one that cannot be written.
    """
    manifest = read_manifest(run)
    records = read_records(run)
    if not records:
        raise RunStoreError(f"the run {run} holds no finished sample", hint="run agrotools eval again to go on")
    rows = [score_record(record) for record in records]
    summary = summarise(
        records,
        rows,
        benchmark=manifest.benchmark,
        benchmark_version=manifest.benchmark_version,
        synthetic=manifest.synthetic,
        model=manifest.model,
        protocol=manifest.protocol,
        privileged=manifest.privileged,
        allow_invalid=allow_invalid,
    )
    content = {
        "summary": summary.model_dump(mode="json"),
        "scores": [
            {"mode": record.mode, **score.model_dump(mode="json")}
            for record, scores in zip(records, rows, strict=True)
            for score in scores
        ],
    }
    try:
        write_whole(run / "scores.json", orjson.dumps(content, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise RunStoreError(
            f"cannot write the scores into {run}: {error.strerror or error}",
            hint="free some space, or score a copy of the folder in a place where you may write",
        ) from error
    return Rescored(summary, [score for scores in rows for score in scores])
