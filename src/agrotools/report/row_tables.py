"""Runs as two parquet tables: a row per sample, and a row per step."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from agrotools.core import CallTools, Record, Step
from agrotools.core.base import arrow_and_parquet
from agrotools.core.files import temporary_sibling
from agrotools.core.record import Action
from agrotools.report.transcript import ScoredRun, gold_text
from agrotools.runner.records import flat_row
from agrotools.scoring.slots import answer_of

SAMPLES_TABLE, STEPS_TABLE = "samples.parquet", "steps.parquet"
_BATCH = 2000


def write_tables(run: Path, folder: Path) -> list[Path]:
    """Write ``samples.parquet`` and ``steps.parquet`` to ``folder`` and return their paths.

    Rows of samples have a column per metric (the mean of the sample's scores, null without any); arguments and results
    of steps are JSON texts.

    Raises:
        UsageError: pyarrow is not installed.
        RunStoreError: the folder contains no run, or one that this version cannot read.
        OSError: a file cannot be written.
    """
    arrow, parquet = arrow_and_parquet()
    scored = ScoredRun(run)
    text, number, real, flag = arrow.string(), arrow.int64(), arrow.float64(), arrow.bool_()
    key = {"model": text, "benchmark": text, "sample": text, "mode": text, "epoch": number}
    texts = ("family", "task_type", "cluster", "query", "gold", "answer", "termination", "invalid")
    counts = ("tool_calls", "input_tokens", "output_tokens", "cached_input_tokens")
    metrics = dict.fromkeys(row.metric for rows in scored.scores.values() for row in rows)
    samples = {**key, **dict.fromkeys(texts, text), **dict.fromkeys(counts, number), "seconds": real, "cost_usd": real}
    steps = {**key, "step": number, "turn": number, **dict.fromkeys(_STEP_TEXTS, text), "seconds": real}
    steps |= {**dict.fromkeys(("cached", "recorded", "refused"), flag), **dict.fromkeys(counts[1:], number)}
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        SAMPLES_TABLE: (samples | dict.fromkeys(metrics, real), _sample_rows(scored)),
        STEPS_TABLE: (steps, _step_rows(scored)),
    }
    for name, (columns, rows) in tables.items():
        schema = arrow.schema(list(columns.items()))
        with temporary_sibling(folder / name) as temporary, parquet.ParquetWriter(temporary, schema) as file:
            while batch := list(islice(rows, _BATCH)):
                file.write_table(arrow.Table.from_pylist(batch, schema=schema))
    return [folder / name for name in tables]


_STEP_TEXTS = ("kind", "tool", "arguments", "result", "error_kind", "error", "text", "thought")


def _sample_rows(run: ScoredRun) -> Iterator[dict[str, Any]]:
    for mode in run.summary.modes:
        for record in run.records(mode):
            sample = record.sample
            yield {
                **flat_row(record, run.scores.get(record.key, ())),
                **_key(run, record),
                "cluster": sample.cluster,
                "query": sample.query,
                "gold": gold_text(record),
                "answer": answer_of(record),
            }


def _step_rows(run: ScoredRun) -> Iterator[dict[str, Any]]:
    for mode in run.summary.modes:
        for record in run.records(mode):
            steps = record.trajectory.steps if record.trajectory else record.actions or ()
            for index, step in enumerate(steps):
                row = _step_row(step) if isinstance(step, Step) else _action_row(step, index)
                tokens = step.reply.usage.model_dump(exclude={"cost_usd"}) if step.reply else {}
                yield {**_key(run, record), "step": index, **row, **tokens}


def _key(run: ScoredRun, record: Record) -> dict[str, Any]:
    names = {"model": run.manifest.model, "benchmark": run.manifest.benchmark}
    return {**names, "sample": record.sample.id, "mode": record.mode, "epoch": record.epoch}


def _step_row(step: Step) -> dict[str, Any]:
    observation, call = step.observation, step.call
    error = observation.error if observation else None
    fields = step.model_dump(include={"turn", "kind", "text", "thought", "seconds", "cached", "recorded", "refused"})
    return {
        **fields,
        "tool": call.tool if call else None,
        "arguments": orjson.dumps(call.arguments).decode() if call else None,
        "result": orjson.dumps(observation.result).decode() if observation and observation.result else None,
        "error_kind": error.kind if error else None,
        "error": error.message if error else None,
    }


def _action_row(action: Action, index: int) -> dict[str, Any]:
    """Return the action of a step of step-by-step; only the first of its calls is scored."""
    row = {"turn": index, "kind": action.kind}
    if isinstance(action, CallTools):
        call = action.calls[0]
        return row | {"tool": call.tool, "arguments": orjson.dumps(call.arguments).decode(), "thought": action.thought}
    return row | {"text": getattr(action, "text", ""), "error": getattr(action, "reason", None)}
