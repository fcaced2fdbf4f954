"""Runs in the schema of Every Eval Ever 0.3 (https://evalevalai.com): an aggregate file, and a line per sample."""

import re
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from agrotools.core import Record, UsageError
from agrotools.core.files import sha256_of_json, write_whole
from agrotools.report.transcript import ScoredRun, Turn, gold_text
from agrotools.runner.records import RECORDS_FILE
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.slots import answer_of
from agrotools.scoring.summary import Metric, ModeSummary

SCHEMA = "0.3.0"
_MAIN_METRICS = ("fas", "st_acc")
_INTERVAL = "CR2 cluster-robust standard error, t interval over clusters of samples that share a file or a question"


def write_every_eval_ever(
    run: Path,
    folder: Path,
    *,
    model_id: str = "",
    organization: str = "unknown",
    relationship: str = "other",
    deployment_type: str = "unknown",
    model_availability: str = "unknown",
) -> list[Path]:
    """Write ``data/BENCHMARK/DEVELOPER/MODEL/UUID.json`` and ``UUID_samples.jsonl`` below ``folder``; return both.

    A sample has a line for the main metric of each mode; invalid samples have none. The options are facts that the
    schema asks for and no run knows; ``model_id``: ``DEVELOPER/MODEL``, by default that of the run, by provider.

    Raises:
        UsageError: the id of the model is not ``DEVELOPER/MODEL``.
        RunStoreError: the folder contains no run, or one that this version cannot read.
        OSError: a file cannot be written.
    """
    scored = ScoredRun(run)
    manifest = scored.manifest
    model_id = model_id or _model_id(manifest.model)
    if not re.fullmatch(r"[\w][\w.+-]*(/[\w][\w.+-]*)+", model_id):
        raise UsageError(
            f"{model_id!r} does not name a developer and a model", hint="--model-id DEVELOPER/MODEL, as on Hugging Face"
        )
    developer, _, model = model_id.partition("/")
    digest = sha256_of_json([manifest.model_dump(mode="json"), run.resolve().name])
    stem = f"data/{manifest.benchmark}/{developer}/{model.replace('/', '_')}/{UUID(digest[:32], version=4)}"
    source = {"source_organization_name": organization, "evaluator_relationship": relationship}
    access = {"deployment_type": deployment_type, "model_availability": model_availability}
    aggregate = _aggregate(scored, model_id, source, access)
    common = {"schema_version": SCHEMA, "evaluation_id": aggregate["evaluation_id"], "model_id": model_id}
    lines = b"".join(orjson.dumps({**common, **row}) + b"\n" for row in _rows(scored))
    paths = [folder / f"{stem}.json", folder / f"{stem}_samples.jsonl"]
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    if lines:
        aggregate["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{stem}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": sha256(lines).hexdigest(),
            "total_rows": lines.count(b"\n"),
        }
        write_whole(paths[1], lines)
    write_whole(paths[0], orjson.dumps(aggregate, option=orjson.OPT_INDENT_2) + b"\n")
    return paths if lines else paths[:1]


def _model_id(name: str) -> str:
    """Return ``openai/gpt-4.1`` of ``openai:gpt-4.1``; baselines are models of this package."""
    provider, mark, model = name.partition(":")
    if mark and provider == "baseline":
        return f"agrotools/{model.replace(':', '-')}"
    return f"{provider}/{model}" if mark and "/" not in model else model or name


def _aggregate(run: ScoredRun, model_id: str, source: dict[str, str], access: dict[str, str]) -> dict[str, Any]:
    manifest, now = run.manifest, str(time.time())
    ran = str((run.path / RECORDS_FILE).stat().st_mtime)
    settings = {name: manifest.settings[name] for name in ("temperature", "top_p") if name in manifest.settings}
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{manifest.benchmark}/{model_id}/{now}",
        "evaluation_timestamp": ran,
        "retrieved_timestamp": now,
        "source_metadata": {"source_name": "agrotools", "source_type": "evaluation_run", **source},
        "eval_library": {
            "name": "agrotools",
            "version": manifest.agrotools,
            "additional_details": {"scoring_version": run.summary.scoring},
        },
        "model_info": {
            "name": manifest.model,
            "id": model_id,
            "developer": model_id.partition("/")[0],
            "additional_details": access,
        },
        "evaluation_results": [
            _result(run, part, mode, name, metric, settings, ran)
            for mode, part in run.summary.modes.items()
            for name, metric in part.metrics.items()
        ],
    }


def _result(
    run: ScoredRun, part: ModeSummary, mode: str, name: str, metric: Metric, settings: dict[str, Any], ran: str
) -> dict[str, Any]:
    manifest, estimate = run.manifest, metric.overall
    uncertainty: dict[str, Any] = {"num_samples": estimate.n}
    if estimate.interval is not None:
        bounds = {"lower": estimate.interval.lower, "upper": estimate.interval.upper}
        uncertainty["confidence_interval"] = {**bounds, "confidence_level": 0.95, "method": _INTERVAL}
    info = METRICS.get(name)
    details = {"n_clusters": estimate.n_clusters, "epochs": part.epochs, "invalid_records": part.invalid.n}
    protocol = {"protocol": manifest.protocol, "mode": mode, "tools": manifest.tools, "max_steps": manifest.max_steps}
    tools = [{"name": tool} for tool in manifest.toolset] if mode != "no-tool" else []
    return {
        "evaluation_result_id": f"{mode}/{name}",
        "evaluation_name": f"{manifest.benchmark}/{mode}",
        "source_data": {
            "dataset_name": manifest.benchmark,
            "source_type": "other",
            "additional_details": {"version": manifest.benchmark_version, "content_hash": manifest.benchmark_hash},
        },
        "evaluation_timestamp": ran,
        "metric_config": {
            "metric_id": name,
            "metric_name": info.label if info else name,
            "metric_unit": "proportion",
            "lower_is_better": bool(info and info.lower_is_better),
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
        },
        "score_details": {
            "score": estimate.value,
            "details": {key: str(value) for key, value in details.items()},
            "uncertainty": uncertainty,
        },
        "generation_config": {
            "generation_args": {**settings, **({"agentic_eval_config": {"available_tools": tools}} if tools else {})},
            "additional_details": {key: str(value) for key, value in protocol.items()},
        },
    }


def _rows(run: ScoredRun) -> Iterator[dict[str, Any]]:
    for mode, part in run.summary.modes.items():
        main = next((name for name in (*_MAIN_METRICS, *part.metrics) if name in part.metrics), None)
        for record in run.records(mode) if main else ():
            score = run.means(record).get(main or "")
            if record.invalid is None and score is not None:
                yield _row(run, record, f"{mode}/{main}", score)


def _row(run: ScoredRun, record: Record, result: str, score: float) -> dict[str, Any]:
    question, reply = run.question(record), run.reply(record)
    answer, gold = answer_of(record), gold_text(record)
    turns = [_message(index, turn) for index, turn in enumerate([*question, *reply])]
    agentic = record.mode != "no-tool"
    tokens = (record.spending.input_tokens or 0, record.spending.output_tokens or 0)
    asked = "\n".join(turn.text for turn in question)
    row: dict[str, Any] = {
        "evaluation_name": f"{run.manifest.benchmark}/{record.mode}",
        "evaluation_result_id": result,
        "sample_id": record.sample.id,
        "sample_hash": sha256((record.sample.query + gold).encode()).hexdigest(),
        "interaction_type": "agentic" if agentic else "single_turn",
        "input": {"raw": record.sample.query, "formatted": asked, "reference": [gold]},
        "output": None if agentic else {"raw": [answer or ""]},
        "messages": turns if agentic else None,
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score >= 1},
        "performance": {"latency_ms": 1000 * record.seconds},
        "metadata": {
            "mode": record.mode,
            "epoch": str(record.epoch),
            "family": record.sample.family,
            "task_type": record.sample.task_type,
            "cluster": str(record.sample.cluster),
            "termination": str(record.trajectory.termination if record.trajectory else None),
        },
    }
    if agentic:
        calls = sum(len(turn.calls) for turn in reply)
        row["evaluation"] |= {"num_turns": len(turns), "tool_calls_count": calls}
    if answer is not None:
        row["answer_attribution"] = [
            {
                "turn_idx": len(turns) - 1 if agentic else 0,
                "source": "messages[turn_idx].content" if agentic else "output.raw",
                "extracted_value": answer,
                "extraction_method": "answer_form",
                "is_terminal": True,
            }
        ]
    if any(tokens):
        names = ("input_tokens", "output_tokens", "total_tokens")
        row["token_usage"] = dict(zip(names, (*tokens, sum(tokens)), strict=True))
    return row


def _message(index: int, turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"turn_idx": index, "role": turn.role, "content": turn.text}
    if turn.thought:
        message["reasoning_trace"] = turn.thought
    if turn.calls:
        message["tool_calls"] = [
            {"id": call.id, "name": call.tool, "arguments": {key: _plain(item) for key, item in call.arguments.items()}}
            for call in turn.calls
        ]
    if turn.answers:
        message["tool_call_id"] = [turn.answers]
    return message


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
