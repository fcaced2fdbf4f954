"""Runs as logs of Inspect AI (https://inspect.aisi.org.uk), which ``inspect view`` and other readers open.

An ``.eval`` file is a zip of JSON (log schema 2): ``header.json``, ``summaries.json`` and a file per sample and epoch.
It is written without the package; tests read it with the package.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import orjson

from agrotools.core import Mode, Record
from agrotools.core.files import MANIFEST_FILE, sha256_of_json, temporary_sibling
from agrotools.report.layout import expected_text
from agrotools.report.transcript import ScoredRun, Turn
from agrotools.runner.records import RECORDS_FILE
from agrotools.scoring.slots import answer_of

_SCHEMA = 2
_ERROR_TYPES = {"timeout": "timeout", "file_not_found": "file_not_found", "limit": "limit"}
_STOP_REASONS = {"answered": "stop", "length": "max_tokens", "context": "model_length", "filtered": "content_filter"}


def write_inspect_logs(run: Path, folder: Path, *, images: bool = False) -> list[Path]:
    """Write one log per mode to ``folder`` and return their paths. Files of an earlier export are replaced.

    Raises:
        RunStoreError: the folder contains no run, or one that this version cannot read.
        OSError: a file cannot be written.
    """
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
    scores = [
        {
            "name": name,
            "scorer": name,
            "metrics": {
                "mean": {
                    "name": "mean",
                    "value": metric.overall.value,
                    "metadata": metric.overall.model_dump(mode="json", exclude={"value"}),
                }
            },
        }
        for name, metric in part.metrics.items()
    ]
    totals: dict[str, int] = {}
    for summary in summaries:
        for name, number in summary["model_usage"].get(manifest.model, {}).items():
            totals[name] = totals.get(name, 0) + number
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
