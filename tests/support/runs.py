"""Manifests and records of made-up runs, for tests of the run folder."""

from collections.abc import Sequence
from typing import Any

from agrotools.core import Record, Score, Step, Trajectory
from agrotools.formats.manifest import Manifest
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.lost_points import LostPoints
from agrotools.scoring.metrics import SCORING_VERSION
from agrotools.scoring.summary import Summary
from support.plain_sample import plain_sample


def manifest(**changes: Any) -> Manifest:
    values = {
        "agrotools": "0.1.0", "scoring": SCORING_VERSION, "benchmark": "b", "benchmark_path": "b",
        "benchmark_version": "1", "benchmark_hash": "h", "model": "m", "protocol": "react", "max_steps": 20,
        "seed": 0, "toolset_hash": "t", "prompt_hash": "p", "modes": ("no-tool",), "epochs": 1, "sample_ids": (),
    }  # fmt: skip
    return Manifest.model_validate(values | changes)


def record(name: str, **changes: Any) -> Record:
    """A finished record of the sample ``name``."""
    values = {
        "sample": plain_sample(name),
        "mode": "no-tool",
        "trajectory": Trajectory(termination="answered"),
    }
    return Record.model_validate(values | changes)


def invalid(name: str, **changes: Any) -> Record:
    """A record of the sample ``name`` that got no reply."""
    return record(name, trajectory=None, invalid="connection refused", **changes)


def answered(name: str, text: str) -> Record:
    """A record with ``text`` as the answer."""
    steps = (Step(turn=0, kind="answer", text=text),)
    return record(name, trajectory=Trajectory(steps=steps, termination="answered"))


def summarise(
    records: Sequence[Record],
    scores: Sequence[Sequence[Score]] | None = None,
    *,
    allow_invalid: bool = False,
    lost: LostPoints | None = None,
    **description: Any,
) -> Summary:
    """Return the metrics of records, with their score rows or by scoring them; ``description``: further fields."""
    tally = RunAggregator(lost=lost)
    rows_of = map(score_record, records) if scores is None else scores
    for each, rows in zip(records, rows_of, strict=True):
        tally.add(each, rows)
    return tally.summary(allow_invalid=allow_invalid).model_copy(update=description)
