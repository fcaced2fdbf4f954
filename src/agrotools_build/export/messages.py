"""Conversations of a run on training scenes as data for supervised training: for TRL, and for OpenAI's fine-tuning.

The two formats differ in the arguments of calls (an object, a text) and in pictures (files beside the row, data URLs
within it); TRL's has the reward, for which OpenAI's has no place.
"""

import base64
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from agrotools.core import BENCHMARKS, Record, UsageError
from agrotools.core.files import write_whole
from agrotools.core.texts import benchmark_title, command_line
from agrotools.runner.prompts import StoredPrompts, StoredRequest, stored_image
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring.slots import outcome_value, refused
from agrotools_build.env import fresh_seed, is_training_version

TRL_FILE, OPENAI_FILE = "trl.jsonl", "openai.jsonl"
_KEPT = ("role", "content", "tool_calls", "tool_call_id", "name")
"""Fields of messages in both formats; vendors add others, such as their own reasoning."""
_MODE = "end-to-end"
_DRAWN = "embedded"
"""Benchmark of drawn scenes that the hint names where the run is of other questions."""


class WrittenMessages(NamedTuple):
    """Files of conversations, their number, and how many records were left out, by reason."""

    paths: Sequence[Path]
    conversations: int
    left_out: Mapping[str, int]


def write_messages(run: Path, folder: Path, min_score: float | None = None) -> WrittenMessages:
    """Write the end-to-end conversations of a run to ``folder``: ``trl.jsonl`` and ``openai.jsonl``.

    ``min_score``: the least reward of a conversation, -1 to 1, as :class:`~agrotools_build.Env` gives it. With it, a
    right refusal is left out if the model refused the answerable twin, too: alone, it would teach to refuse.

    Raises:
        RunStoreError: the folder is not a run.
        UsageError: the run is not of training scenes, or no conversation is left.
    """
    _check_scenes(run)
    prompts = StoredPrompts(run)
    for_trl: list[bytes] = []
    for_openai: list[bytes] = []
    left_out = Counter[str]()
    refused_too = _twins_of_refused(run) if min_score is not None else frozenset()
    for record in iter_records(run):
        if record.mode != _MODE:
            continue
        if reason := _why_left_out(record, min_score, refused_too):
            left_out[reason] += 1
            continue
        requests = prompts.of(record.key)
        if not requests:
            left_out["no requests are stored"] += 1
            continue
        messages = _messages(record, requests[-1])
        for_trl.append(orjson.dumps(_trl_row(run, record, messages, requests[-1].tools)))
        for_openai.append(orjson.dumps(_openai_row(run, messages, requests[-1].tools)))
    if not for_trl:
        counts = ", ".join(f"{reason} ({n})" for reason, n in left_out.items())
        raise UsageError(
            f"{run} has no conversation to export: {counts or f'it has no {_MODE} mode'}",
            hint="a smaller --min-score, or a run of a model: baselines and agents store no requests",
        )
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / TRL_FILE: for_trl, folder / OPENAI_FILE: for_openai}
    for path, lines in files.items():
        write_whole(path, b"".join(line + b"\n" for line in lines))
    return WrittenMessages([*files], len(for_trl), left_out)


def _check_scenes(run: Path) -> None:
    """Raise a UsageError if a run is not of scenes of the split ``train``."""
    manifest = read_manifest(run)
    if is_training_version(manifest.benchmark_version):
        return
    title = benchmark_title(manifest.benchmark, manifest.benchmark_version)
    # Scenes can be drawn anew for benchmarks of drawn scenes alone; a folder and photographs have no other scenes.
    is_drawn = manifest.synthetic and manifest.benchmark in BENCHMARKS
    drawn = manifest.benchmark if is_drawn else _DRAWN
    seed = fresh_seed("train", 0, 0)
    command = command_line("eval", drawn, "--fresh-seed", seed, "--mode", _MODE)
    raise UsageError(
        f"{run} is of {title}, whose questions measure models: a model trained on them cannot be measured any more",
        hint=f"only training scenes are exported: {command} --protocol tool-calling --model M; agrotools docs training",
    )


def _twins_of_refused(run: Path) -> frozenset[tuple[str, int]]:
    """Return id and epoch of the unanswerable samples whose answerable twin the model refused."""
    return frozenset(
        (record.sample.twin, record.epoch)
        for record in iter_records(run)
        if record.mode == _MODE
        and record.sample.twin
        and record.sample.answerable
        and refused(record)
    )


def _why_left_out(
    record: Record, min_score: float | None, refused_too: Collection[tuple[str, int]]
) -> str:
    """Return why the conversation of a record is no training data; empty if it is.

    ``refused_too``: id and epoch of the samples whose answerable twin the model refused.
    """
    if record.invalid or record.trajectory is None:
        return "no reply of the model"
    if record.trajectory.answer_text is None:
        return "no answer"
    if min_score is not None and _reward(record) < min_score:
        return f"a reward below {min_score:g}"
    if (record.sample.id, record.epoch) in refused_too:
        return "a refusal like that of the answerable twin"
    return ""


def _reward(record: Record) -> float:
    assert record.trajectory is not None
    return outcome_value(record.sample, record.trajectory)


def _messages(record: Record, last: StoredRequest) -> list[dict[str, Any]]:
    """Return the last request of a conversation, which holds all before it, and the reply to it."""
    sent = [{name: each[name] for name in _KEPT if name in each} for each in last.messages]
    reply = record.replies[-1]
    content = reply.received.get("content")
    return [
        *sent,
        {"role": "assistant", "content": content if isinstance(content, str) else reply.text},
    ]


def _trl_row(
    run: Path, record: Record, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return a row of TRL's type "language modeling", conversational: arguments are objects.

    With pictures every content is a list of parts, as a column of a table takes no other, and ``images`` has the files.
    """
    row: dict[str, Any] = {
        "id": record.sample.id,
        "reward": _reward(record),
        "messages": [_with_objects(message) for message in messages],
    }
    if tools:
        row["tools"] = tools
    urls = [part["image_url"]["url"] for message in messages for part in _image_parts(message)]
    if urls:
        row["images"] = [str(_picture(run, url)) for url in urls]
        row["messages"] = [_with_parts(message) for message in row["messages"]]
    return row


def _with_objects(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose calls have objects as arguments; arguments that are no JSON stay text."""
    if not message.get("tool_calls"):
        return message
    calls: list[dict[str, Any]] = []
    for call in message["tool_calls"]:
        arguments = call["function"]["arguments"]
        with suppress(orjson.JSONDecodeError):
            arguments = orjson.loads(arguments)
        calls.append({**call, "function": {**call["function"], "arguments": arguments}})
    return {**message, "tool_calls": calls}


def _with_parts(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content") or ""
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content}]}
    parts = [{"type": "image"} if part["type"] == "image_url" else part for part in content]
    return {**message, "content": parts}


def _openai_row(
    run: Path, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return an example of OpenAI's fine-tuning of chat models, with its pictures as data URLs."""
    examples: list[dict[str, Any]] = []
    for message in messages:
        if _image_parts(message):
            parts = [_with_data(run, part) for part in message["content"]]
            message = {**message, "content": parts}
        examples.append(message)
    return {"messages": examples, **({"tools": tools} if tools else {})}


def _image_parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return (
        [part for part in content if part["type"] == "image_url"]
        if isinstance(content, list)
        else []
    )


def _with_data(run: Path, part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "image_url":
        return part
    url = part["image_url"]["url"]
    encoded = base64.b64encode(_picture(run, url).read_bytes()).decode()
    media_type = url.removeprefix("data:").partition(";")[0]
    return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{encoded}"}}


def _picture(run: Path, url: str) -> Path:
    """Return the file of a picture of a stored message; UsageError if the run no longer has it."""
    image = stored_image(run, url)
    if image is None or image.bytes is None:
        raise UsageError(
            f"{run} lacks a picture that was sent: {url[:80]}",
            hint="restore the folder artifacts from a copy of the run",
        )
    return (run / image.file).absolute()
