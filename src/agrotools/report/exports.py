"""Runs in formats of other programs: logs of Inspect AI, and Every Eval Ever.

``inspect view`` (https://inspect.aisi.org.uk) and other readers open an ``.eval`` file, a zip of JSON (log schema 2):
``header.json``, ``summaries.json`` and a file per sample and epoch. Every Eval Ever 0.3 (https://evalevalai.com) has an
aggregate file, and a line per sample. Both are written without their packages; tests read them with the packages.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

import orjson

from agrotools.core import Mode, Record, UsageError
from agrotools.core.files import MANIFEST_FILE, sha256_of_json, temporary_sibling, write_whole
from agrotools.report.layout import expected_text
from agrotools.report.transcript import ScoredRun, Turn, gold_text
from agrotools.runner.records import RECORDS_FILE
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.slots import answer_of
from agrotools.scoring.summary import Metric, ModeSummary

_SCHEMA = 2
_ERROR_TYPES = {"timeout": "timeout", "file_not_found": "file_not_found", "limit": "limit"}
_STOP_REASONS = {"answered": "stop", "length": "max_tokens", "context": "model_length", "filtered": "content_filter"}


def write_inspect_logs(run: Path, folder: Path, *, images: bool = False) -> list[Path]:
    """Write one log per mode to ``folder`` and return their paths. Files of an earlier export are replaced."""
    scored = ScoredRun(run, images=images)
    folder.mkdir(parents=True, exist_ok=True)
    return [_write_log(scored, mode, folder) for mode in scored.manifest.modes if mode in scored.summary.modes]


def _write_log(run: ScoredRun, mode: Mode, folder: Path) -> Path:
    manifest = run.manifest
    model = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in manifest.model)
    path = folder / f"{manifest.benchmark}_{model[-80:]}_{mode}.eval"
    summaries: list[dict[str, Any]] = []
    with temporary_sibling(path) as temporary, ZipFile(temporary, "w", ZIP_DEFLATED, strict_timestamps=False) as log:
        for record in run.records(mode):
            sample = _sample(run, record)
            log.writestr(f"samples/{record.sample.id}_epoch_{record.epoch + 1}.json", orjson.dumps(sample))
            summaries.append(_summary(sample))
        log.writestr("summaries.json", orjson.dumps(summaries))
        start, header = _header(run, mode, summaries)
        log.writestr("_journal/start.json", orjson.dumps(start))
        log.writestr("header.json", orjson.dumps(header))
    return path


def _sample(run: ScoredRun, record: Record) -> dict[str, Any]:
    attachments: dict[str, str] = {}
    question = [_message(turn, attachments) for turn in run.question(record)]
    reply = [_message(turn, attachments) for turn in run.reply(record)]
    when = _time(run.path / RECORDS_FILE)
    answer, trajectory = answer_of(record), record.trajectory
    ended = trajectory.termination if trajectory else "answered"
    scores = run.scores.get(record.key, [])
    explanations: dict[str, list[str]] = {}
    for score in scores:
        place = score.slot or (f"step {score.step}" if score.step is not None else "sample")
        line = f"{place}: {score.value:g} {orjson.dumps(score.reading).decode()}"
        explanations.setdefault(score.metric, []).append(line)
    spending = record.spending
    cached = spending.cached_input_tokens or 0
    tokens = {"input_tokens": (spending.input_tokens or 0) - cached, "output_tokens": spending.output_tokens or 0}
    tokens |= {} if spending.cached_input_tokens is None else {"input_tokens_cache_read": cached}
    has_usage = bool(record.replies if record.agent_replies is None else spending.input_tokens is not None)
    metadata = {
        "mode": record.mode,
        "family": record.sample.family,
        "task_type": record.sample.task_type,
        "cluster": record.sample.cluster,
        "toolset": record.sample.toolset,
        "termination": ended if trajectory else None,
        "reason": trajectory.reason if trajectory else "",
        **record.sample.groups,
    }
    output = {"role": "assistant", "content": answer or "", "source": "generate"}
    sample: dict[str, Any] = {
        "id": record.sample.id,
        "epoch": record.epoch + 1,
        "input": question,
        "target": "\n".join(f"{slot.name}: {expected_text(slot)}" for slot in record.sample.answer),
        "messages": [*question, *reply],
        "output": {
            "model": run.manifest.model,
            "choices": [{"message": output, "stop_reason": _STOP_REASONS.get(ended, "unknown")}],
            "completion": answer or "",
        },
        "scores": {
            metric: {"value": value, "answer": answer, "explanation": "\n".join(explanations[metric])}
            for metric, value in run.means(record).items()
        },
        "metadata": metadata,
        "store": {},
        "events": [*_events(run.manifest.model, question, reply, when)],
        "model_usage": {run.manifest.model: {**tokens, "total_tokens": sum(tokens.values())}} if has_usage else {},
        "total_time": record.seconds,
        "attachments": attachments,
    }
    if record.invalid is not None:
        sample["error"] = {"message": record.invalid, "traceback": "", "traceback_ansi": ""}
    return sample


def _events(
    model: str, question: list[dict[str, Any]], reply: list[dict[str, Any]], when: str
) -> Iterator[dict[str, Any]]:
    """Yield the events of the viewer's transcript: each reply of the model, with the messages that it follows, and each
    call. Without them, the viewer shows an empty transcript first."""
    new = question
    results = {each["tool_call_id"]: each for each in reply if each["role"] == "tool"}
    for message in reply:
        if message["role"] == "assistant":
            choice = {"message": message, "stop_reason": "tool_calls" if message.get("tool_calls") else "stop"}
            request = {"model": model, "input": new, "tools": [], "tool_choice": "auto", "config": {}}
            yield {"event": "model", "timestamp": when, **request, "output": {"model": model, "choices": [choice]}}
            new = []
            for call in message.get("tool_calls", ()):
                result = results.get(call["id"], {"content": ""})
                outcome = {"result": result["content"], "error": result.get("error")}
                yield {"event": "tool", "timestamp": when, **call, **outcome, "events": []}
        else:
            new = [*new, message]


def _message(turn: Turn, attachments: dict[str, str]) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if turn.thought:
        content.append({"type": "reasoning", "reasoning": turn.thought})
    content.append({"type": "text", "text": turn.text})
    for url in turn.pictures:
        digest = sha256(url.encode()).hexdigest()[:32]
        attachments[digest] = url
        content.append({"type": "image", "image": f"attachment://{digest}", "detail": "auto"})
    message: dict[str, Any] = {"role": turn.role, "content": content if len(content) > 1 else turn.text}
    if turn.role == "assistant":
        message["source"] = "generate"
    if turn.calls:
        message["tool_calls"] = [
            {"id": call.id, "function": call.tool, "arguments": call.arguments, "type": "function"}
            for call in turn.calls
        ]
    if turn.role == "tool":
        message |= {"tool_call_id": turn.answers, "function": turn.tool}
        if turn.error:
            kind = orjson.loads(turn.text)["error"]["kind"]
            message["error"] = {"type": _ERROR_TYPES.get(kind, "unknown"), "message": turn.error}
    return message


def _summary(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a sample as in the list of samples: input as text, no messages, explanations or attachments."""
    texts = [
        part if isinstance(part, str) else part.get("text", "(image)")
        for message in sample["input"]
        if message["role"] == "user"
        for part in (message["content"] if isinstance(message["content"], list) else [message["content"]])
    ]
    names = ("id", "epoch", "target", "metadata", "model_usage", "total_time")
    scores = {name: {**score, "explanation": None} for name, score in sample["scores"].items()}
    error = {"error": sample["error"]["message"]} if "error" in sample else {}
    counts = {"completed": True, "message_count": len(sample["messages"])}
    return {**{name: sample[name] for name in names}, "input": "\n".join(texts), "scores": scores, **counts, **error}


def _header(run: ScoredRun, mode: Mode, summaries: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    manifest, part = run.manifest, run.summary.modes[mode]
    started, ended = (_time(run.path / name) for name in (MANIFEST_FILE, RECORDS_FILE))
    identity = sha256_of_json([manifest.model_dump(mode="json"), mode])
    samples = list(dict.fromkeys(summary["id"] for summary in summaries))
    settings = {name: value for name, value in manifest.settings.items() if name in ("temperature", "top_p", "seed")}
    spec = {
        "eval_id": identity[:22],
        "run_id": identity[22:44],
        "created": started,
        "task": f"{manifest.benchmark}/{mode}",
        "task_id": identity[:22],
        "task_version": manifest.benchmark_version,
        "dataset": {"name": manifest.benchmark, "samples": len(samples), "sample_ids": samples, "shuffled": False},
        "model": manifest.model,
        "model_base_url": manifest.base_url,
        "model_generate_config": settings,
        "config": {"epochs": part.epochs},
        "packages": {"agrotools": manifest.agrotools},
        "metadata": manifest.model_dump(mode="json", exclude={"sample_ids": True, "shard": {"sample_ids"}}),
    }
    plan = {"name": manifest.protocol, "steps": [], "config": {}}
    scores: list[dict[str, Any]] = []
    for name, metric in part.metrics.items():
        size = metric.overall.model_dump(mode="json", exclude={"value"})
        mean = {"name": "mean", "value": metric.overall.value, "metadata": size}
        scores.append({"name": name, "scorer": name, "metrics": {"mean": mean}})
    totals = Counter[str]()
    for summary in summaries:
        totals.update(summary["model_usage"].get(manifest.model, {}))
    header = {
        "version": _SCHEMA,
        "status": "success",
        "eval": spec,
        "plan": plan,
        "results": {
            "total_samples": len(summaries),
            "completed_samples": sum("error" not in summary for summary in summaries),
            "scores": scores,
            "metadata": {"headline": part.headline, "invalid": part.invalid.n, "scoring": run.summary.scoring},
        },
        "stats": {
            "started_at": started,
            "completed_at": ended,
            "model_usage": {manifest.model: totals} if totals else {},
        },
    }
    return {"version": _SCHEMA, "eval": spec, "plan": plan}, header


def _time(path: Path) -> str:
    """Return when a file was last changed, which is all that a run folder knows about the time of its run."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")


# --- Every Eval Ever -------------------------------------------------------------------------------------------------

EEE_SCHEMA = "0.3.0"
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
    common = {"schema_version": EEE_SCHEMA, "evaluation_id": aggregate["evaluation_id"], "model_id": model_id}
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
        "schema_version": EEE_SCHEMA,
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
    info = METRICS[name]
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
            "metric_name": info.label,
            "metric_unit": "proportion",
            "lower_is_better": info.lower_is_better,
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
    turns = [_eee_message(index, turn) for index, turn in enumerate([*question, *reply])]
    agentic, asked = record.mode != "no-tool", "\n".join(turn.text for turn in question)
    tokens = (record.spending.input_tokens or 0, record.spending.output_tokens or 0)
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
        source = "messages[turn_idx].content" if agentic else "output.raw"
        place = {"turn_idx": len(turns) - 1 if agentic else 0, "source": source, "extracted_value": answer}
        row["answer_attribution"] = [{**place, "extraction_method": "answer_form", "is_terminal": True}]
    if any(tokens):
        names = ("input_tokens", "output_tokens", "total_tokens")
        row["token_usage"] = dict(zip(names, (*tokens, sum(tokens)), strict=True))
    return row


def _eee_message(index: int, turn: Turn) -> dict[str, Any]:
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
