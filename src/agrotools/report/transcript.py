"""Scored records of a run as conversations, and as tables of rows, for files that other programs read."""

import base64
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import orjson

from agrotools.agents.images import Preview, make_preview
from agrotools.core import Answer, CallTools, Mode, Observation, Record, Score, Step, Unparseable, UsageError
from agrotools.core.base import arrow_and_parquet
from agrotools.core.files import temporary_sibling
from agrotools.core.record import Action, ToolCall
from agrotools.report.html.pictures import Absent, Places, benchmark_roots
from agrotools.runner.prompts import StoredPrompts, stored_image
from agrotools.runner.records import Key, flat_row, iter_records
from agrotools.runner.rescore import score_runs
from agrotools.runner.store import read_manifest
from agrotools.scoring.slots import answer_of

Role = Literal["system", "user", "assistant", "tool"]
_MEDIA_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}


@dataclass(frozen=True)
class Turn:
    """Message of a conversation. ``pictures`` are data URLs; ``answers`` is the id of the call that a tool answers."""

    role: Role
    text: str = ""
    pictures: tuple[str, ...] = ()
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Calls of an assistant, with ids that are unique in the conversation."""
    answers: str = ""
    tool: str = ""
    error: str = ""
    """Message of the error of a tool, empty without one."""


class ScoredRun:
    """Records of a run with their scores and conversations. Scores that are missing are computed and stored.

    Args:
        run: run folder.
        images: include the pictures that the model was shown and that tools made.
    """

    def __init__(self, run: Path, *, images: bool = False) -> None:
        self.path = run
        self.manifest = read_manifest(run)
        self.scores: dict[Key, list[Score]] = {}
        """Score rows by the key of their record."""
        (rescored,) = score_runs([run], on_scored=lambda record, rows: self.scores.update({record.key: rows}))
        self.summary = rescored.summary
        self._images = images
        self._prompts = StoredPrompts(run)
        self._places = Places([run])

    def records(self, mode: Mode) -> Iterator[Record]:
        """Yield the records of one mode by sample and epoch."""
        return (record for record in iter_records(self.path) if record.mode == mode)

    def all_records(self) -> Iterator[Record]:
        """Yield the records of all scored modes, by mode, sample and epoch."""
        return (record for mode in self.summary.modes for record in self.records(mode))

    def means(self, record: Record) -> dict[str, float]:
        """Return the mean score of a record in each metric."""
        values: defaultdict[str, list[float]] = defaultdict(list)
        for score in self.scores.get(record.key, ()):
            values[score.metric].append(score.value)
        return {metric: fmean(each) for metric, each in values.items()}

    def question(self, record: Record) -> list[Turn]:
        """Return the messages of the first request; the question and the names of its files if none is stored."""
        requests = self._prompts.of(record.key)
        if requests:
            return [self._sent(message) for message in requests[0].messages]
        files = record.sample.files
        text = "\n".join([record.sample.query, *(f"file: {file.name}" for file in files)])
        return [Turn("user", text, tuple(self._file_pictures(record)) if self._images else ())]

    def reply(self, record: Record) -> list[Turn]:
        """Return the messages after the question: replies, and what tools returned.

        In step-by-step, each reply is followed by the reference call and its observation, which the model was shown.
        """
        if record.trajectory is not None:
            return list(self._steps(record.trajectory.steps))
        return list(self._actions(record))

    def _steps(self, steps: tuple[Step, ...]) -> Iterator[Turn]:
        for index, step in enumerate(steps):
            if step.kind == "call" and step.call and step.observation:
                if not index or steps[index - 1].turn != step.turn:
                    calls = [each.call for each in steps[index:] if each.turn == step.turn and each.call]
                    yield Turn(
                        "assistant",
                        step.thought,
                        calls=tuple(replace_id(call, index + place) for place, call in enumerate(calls)),
                    )
                yield self._observed(step.observation, step.call.tool, f"call_{index}")
            elif step.kind == "answer":
                yield _answer(step)
            else:
                yield Turn("assistant", step.text)
                yield Turn("user", step.reason)

    def _actions(self, record: Record) -> Iterator[Turn]:
        reference = record.sample.reference.steps if record.sample.reference else ()
        for index, action in enumerate(record.actions or ()):
            if isinstance(action, CallTools):
                calls = tuple(replace_id(call, f"{index}_{place}") for place, call in enumerate(action.calls))
                yield Turn("assistant", action.thought, calls=calls)
            elif isinstance(action, Answer):
                yield _answer(action)
            else:
                yield Turn("assistant", action.text if isinstance(action, Unparseable) else action.reason)
            if index < len(reference) and (observation := reference[index].observation):
                shown = self._observed(observation, "", "")
                call = f"{reference[index].tool}({orjson.dumps(reference[index].arguments).decode()})"
                yield replace(shown, role="user", text=f"reference call: {call}\n{shown.text}", error="")

    def _observed(self, observation: Observation, tool: str, call: str) -> Turn:
        error = observation.error
        content = {"error": error.model_dump(exclude_none=True)} if error else observation.result or {}
        names = [artifact.name for artifact in observation.artifacts]
        text = orjson.dumps({**content, "files": names} if names else content).decode()
        paths = [self._places.of_artifact(artifact) for artifact in observation.artifacts] if self._images else []
        pictures = tuple(url for path in paths if not isinstance(path, Absent) and (url := _data_url(path)))
        return Turn("tool", text, pictures, answers=call, tool=tool, error=error.message if error else "")

    def _sent(self, message: dict[str, Any]) -> Turn:
        """Return a stored message, which is in the wire format of chat completions."""
        content = message.get("content") or ""
        parts: list[dict[str, Any]] = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = [part["text"] for part in parts if part.get("type") == "text"]
        pictures: list[str] = []
        for part in parts:
            if part.get("type") == "image_url":
                image = stored_image(self.path, part["image_url"]["url"])
                if self._images and image is not None and (url := _data_url(self.path / image.file)):
                    pictures.append(url)
                elif not self._images:
                    texts.append("(image)")
        role: Role = message["role"] if message["role"] in ("system", "assistant") else "user"
        return Turn(role, "\n".join(texts), tuple(pictures))

    def _file_pictures(self, record: Record) -> Iterator[str]:
        roots = benchmark_roots(self.manifest, self.path, None)
        for file in record.sample.files:
            path = self._places.of_file(file, roots)
            preview = None if isinstance(path, Absent) else make_preview(path, file.name, file.kind, file.bands)
            if isinstance(preview, Preview):
                yield preview.image.url


def gold_text(record: Record) -> str:
    """Return the reference answer as lines ``name: value``; the value is JSON if the slot has none in plain words."""
    form = {"name", "label", "from_", "weight"}
    return "\n".join(
        f"{slot.name}: {slot.expected_text or slot.model_dump_json(exclude=form, exclude_defaults=True)}"
        for slot in record.sample.answer
    )


def replace_id(call: ToolCall, number: int | str) -> ToolCall:
    """Return a call with an id that is unique in its conversation; models repeat or omit theirs."""
    return call.model_copy(update={"id": f"call_{number}"})


def _answer(answer: Step | Answer) -> Turn:
    reply = [answer.reply, *answer.form_replies][-1]
    return Turn("assistant", (reply.text if reply else "") or answer.text, thought=answer.thought)


def _data_url(path: Path) -> str:
    """Return a picture as a data URL; empty if it is missing or of another type."""
    media_type = _MEDIA_TYPES.get(path.suffix.lower())
    if media_type is None or not path.is_file():
        return ""
    return f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode()}"


# --- tables of rows ---------------------------------------------------------------------------------------------------

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
    samples = {**key, **dict.fromkeys(texts, text), **dict.fromkeys(counts, number), "seconds": real, "cost_usd": real}
    steps = {**key, "step": number, "turn": number, **dict.fromkeys(_STEP_TEXTS, text), "seconds": real}
    steps |= {**dict.fromkeys(("cached", "recorded", "refused"), flag), **dict.fromkeys(counts[1:], number)}
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
    columns = {name: types.get(name, text) for name in (*_KEY, "slot", "step", "metric", "value", "n", "how")}
    return [folder / SCORES_FILE, _write_parquet(folder / SCORES_TABLE, columns, iter(rows))]


def _score_rows(run: ScoredRun) -> Iterator[dict[str, Any]]:
    for record in run.all_records():
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
    for record in run.all_records():
        yield {
            **flat_row(record, run.scores.get(record.key, ())),
            **_key(run, record),
            "cluster": record.sample.cluster,
            "query": record.sample.query,
            "gold": gold_text(record),
            "answer": answer_of(record),
        }


def _step_rows(run: ScoredRun) -> Iterator[dict[str, Any]]:
    for record in run.all_records():
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
