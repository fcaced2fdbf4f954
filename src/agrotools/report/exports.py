"""Scored records of a run as tables of rows, for files that other programs read.

A run folder comes in; files of rows go out, one for each kind of row. The run stays as it is.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from agrotools.core import CallTools, Record, Score, Step, UsageError
from agrotools.core.files import temporary_sibling
from agrotools.core.lazy import arrow_and_parquet
from agrotools.core.record import Action
from agrotools.runner.records import Key, flat_row, iter_records
from agrotools.runner.rescore import score_runs
from agrotools.runner.store import read_manifest
from agrotools.scoring.slots import answer_of


class ScoredRun:
    """Records of a run with their scores. Scores that are missing are computed and stored."""

    def __init__(self, run: Path) -> None:
        self.path = run
        self.manifest = read_manifest(run)
        self.scores: dict[Key, list[Score]] = {}
        """Score rows by the key of their record."""
        (rescored,) = score_runs(
            [run], on_scored=lambda _, record, rows: self.scores.update({record.key: rows})
        )
        self.modes = tuple(rescored.summary.modes)

    def records(self) -> Iterator[Record]:
        """Yield the records of all scored modes, by mode, sample and epoch."""
        for mode in self.modes:
            for record in iter_records(self.path):
                if record.mode == mode:
                    yield record


SAMPLES_TABLE, STEPS_TABLE, SCORES_TABLE = "samples.parquet", "steps.parquet", "scores.parquet"
SCORES_FILE = "scores.jsonl"
_KEY = ("model", "benchmark", "sample", "mode", "epoch")
_BATCH = 2000


def write_tables(run: Path, folder: Path) -> list[Path]:
    """Write ``samples.parquet`` and ``steps.parquet`` to ``folder`` and return their paths.

    Rows of samples have a column per metric (the mean of the sample's scores, null without any); arguments and results
    of steps are JSON texts.
    """
    arrow, _ = arrow_and_parquet()
    scored = ScoredRun(run)
    text, number, real, flag = arrow.string(), arrow.int64(), arrow.float64(), arrow.bool_()
    key = {**dict.fromkeys(_KEY, text), "epoch": number}
    texts = ("family", "task_type", "cluster", "query", "gold", "answer", "termination", "invalid")
    counts = ("tool_calls", "input_tokens", "output_tokens", "cached_input_tokens")
    metrics = dict.fromkeys(row.metric for rows in scored.scores.values() for row in rows)
    samples = {
        **key,
        **dict.fromkeys(texts, text),
        **dict.fromkeys(counts, number),
        "weight": real,
        "seconds": real,
        "cost_usd": real,
    }
    steps = {
        **key,
        "step": number,
        "turn": number,
        **dict.fromkeys(_STEP_TEXTS, text),
        "seconds": real,
    }
    steps |= {
        **dict.fromkeys(("cached", "recorded", "refused"), flag),
        **dict.fromkeys(counts[1:], number),
    }
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        SAMPLES_TABLE: (samples | dict.fromkeys(metrics, real), _sample_rows(scored)),
        STEPS_TABLE: (steps, _step_rows(scored)),
    }
    return [_write_parquet(folder / name, *table) for name, table in tables.items()]


def write_scores(run: Path, folder: Path) -> list[Path]:
    """Write the score rows of a run to ``folder``, and return the paths: JSON Lines, and parquet if pyarrow is there.

    A row is one score of one record: ``model, benchmark, sample, mode, epoch, slot, step, metric, value, n, how``.
    ``value`` is in [0, 1], in [-1, 1] for FAS of unanswerable questions; ``n`` is the number of slots that it is the
    mean of, 1 for the score of a slot or a step; ``how`` is its derivation as JSON text: scorer version, judge, rule,
    and what was read.
    """
    rows = [*_score_rows(ScoredRun(run))]
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_sibling(folder / SCORES_FILE) as temporary:
        temporary.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    try:
        arrow, _ = arrow_and_parquet()
    except UsageError:
        return [folder / SCORES_FILE]
    text, number = arrow.string(), arrow.int64()
    types = {"epoch": number, "step": number, "n": number, "value": arrow.float64()}
    columns = {
        name: types.get(name, text)
        for name in (*_KEY, "slot", "step", "metric", "value", "n", "how")
    }
    return [folder / SCORES_FILE, _write_parquet(folder / SCORES_TABLE, columns, iter(rows))]


def _score_rows(run: ScoredRun) -> Iterator[dict[str, Any]]:
    for record in run.records():
        for score in run.scores.get(record.key, ()):
            slots = score.reading.get("slots")
            how = {"version": score.version, "judge": score.judge, **score.reading}
            yield {
                **_key(run, record),
                **score.model_dump(include={"slot", "step", "metric", "value"}),
                "n": len(slots) if isinstance(slots, dict) else 1,
                "how": orjson.dumps(how).decode(),
            }


def _write_parquet(path: Path, columns: dict[str, Any], rows: Iterator[dict[str, Any]]) -> Path:
    arrow, parquet = arrow_and_parquet()
    schema = arrow.schema(list(columns.items()))
    with temporary_sibling(path) as temporary, parquet.ParquetWriter(temporary, schema) as file:
        while batch := list(islice(rows, _BATCH)):
            file.write_table(arrow.Table.from_pylist(batch, schema=schema))
    return path


_STEP_TEXTS = ("kind", "tool", "arguments", "result", "error_kind", "error", "text", "thought")


def _sample_rows(run: ScoredRun) -> Iterator[dict[str, Any]]:
    for record in run.records():
        yield {
            **flat_row(record, run.scores.get(record.key, ())),
            **_key(run, record),
            "answer": answer_of(record),
        }


def _step_rows(run: ScoredRun) -> Iterator[dict[str, Any]]:
    for record in run.records():
        steps = record.trajectory.steps if record.trajectory else record.actions or ()
        for index, step in enumerate(steps):
            row = _step_row(step) if isinstance(step, Step) else _action_row(step, index)
            tokens = step.reply.usage.model_dump(exclude={"cost_usd"}) if step.reply else {}
            yield {**_key(run, record), "step": index, **row, **tokens}


def _key(run: ScoredRun, record: Record) -> dict[str, Any]:
    names = {"model": run.manifest.shown_model, "benchmark": run.manifest.benchmark}
    return {**names, "sample": record.sample.id, "mode": record.mode, "epoch": record.epoch}


def _step_row(step: Step) -> dict[str, Any]:
    observation, call = step.observation, step.call
    error = observation.error if observation else None
    fields = step.model_dump(
        include={"turn", "kind", "text", "thought", "seconds", "cached", "recorded", "refused"}
    )
    return {
        **fields,
        "tool": call.tool if call else None,
        "arguments": orjson.dumps(call.arguments).decode() if call else None,
        "result": orjson.dumps(observation.result).decode()
        if observation and observation.result
        else None,
        "error_kind": error.kind if error else None,
        "error": error.message if error else None,
    }


def _action_row(action: Action, index: int) -> dict[str, Any]:
    """Return the action of a step of step-by-step; only the first of its calls is scored."""
    row = {"turn": index, "kind": action.kind}
    if isinstance(action, CallTools):
        call = action.calls[0]
        return row | {
            "tool": call.tool,
            "arguments": orjson.dumps(call.arguments).decode(),
            "thought": action.thought,
        }
    return row | {"text": getattr(action, "text", ""), "error": getattr(action, "reason", None)}
