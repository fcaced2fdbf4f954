"""Recorded replies of real models, parsed again as in a run: rows of ``recorded.jsonl.gz``, one for each sample."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from agrotools.agents.llm import PROTOCOLS, LLMAgent
from agrotools.agents.modes import run_end_to_end
from agrotools.core import (
    Action,
    Answer,
    CallTools,
    Halt,
    Mode,
    Observation,
    Protocol,
    Record,
    Reply,
    Sample,
    SampleView,
    ToolCall,
    ToolOutcome,
)
from agrotools.models import Completion
from agrotools.models.base import FinishReason
from agrotools.models.endpoint import ScriptedModel

RECORDED = Path(__file__).with_name("recorded.jsonl.gz")
Row = dict[str, Any]


def read_rows(file: Path = RECORDED) -> list[Row]:
    """Return the rows of a file."""
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def write_rows(rows: Iterable[Row], file: Path = RECORDED) -> None:
    """Write rows; the same rows give the same file."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def turns_of(record: Record) -> list[Reply]:
    """Return the replies that became the actions of a record, in order: not the one to the closing message."""
    steps = record.trajectory.steps if record.trajectory else record.actions or ()
    replies = [step.reply for step in steps if step.reply]
    halted = record.trajectory.halted_by if record.trajectory else None
    return [*replies, halted] if halted else replies


async def parse_row(row: Row) -> Row:
    """Return calls, answer and termination of a row, by the agent and the loop of a run; no tool runs."""
    waiting = [
        Completion(text=text, finish_reason=cast(FinishReason, reason))
        for text, reason in row["replies"]
    ]
    agent = LLMAgent(
        ScriptedModel(lambda *_: waiting.pop(0)), row["mode"], row["protocol"], images=False
    )
    view = SampleView(
        id=row["sample"],
        query="",
        files=(),
        toolset=row["toolset"],
        answer_form="",
        bare=row["bare"],
    )
    if row["mode"] == "step-by-step":
        return {"actions": [_action(await agent.act(view, ())) for _ in row["replies"]]}
    ended = await run_end_to_end(agent, view, _no_tool, max_steps=row["turns"])
    calls = [_call(step.call) for step in ended.steps if step.call]
    return {"calls": calls, "answer": ended.answer_text, "termination": ended.termination}


async def _no_tool(_call: ToolCall) -> ToolOutcome:
    return ToolOutcome(observation=Observation(result={}))


def _call(call: ToolCall) -> list[Any]:
    return [call.tool, call.arguments]


def _action(action: Action) -> Row:
    if isinstance(action, CallTools):
        return {"calls": [_call(call) for call in action.calls]}
    if isinstance(action, Answer):
        return {"answer": action.text}
    return {"termination": action.termination if isinstance(action, Halt) else "unparseable"}


def row_of(
    record: Record, protocol: Protocol, *, model: str, benchmark: str, bare: bool
) -> Row | None:
    """Return the row of a record without its outcome; None if another protocol reads its replies, or there are none."""
    replies = turns_of(record)
    if protocol not in PROTOCOLS or record.invalid or not replies:
        return None
    return {
        "model": model,
        "benchmark": benchmark,
        **fields_of_sample(record.sample, record.mode),
        "protocol": protocol,
        "bare": bare,
        "replies": [[reply.text, reply.finish_reason] for reply in replies],
        "turns": len(replies)
        - (record.trajectory is not None and record.trajectory.termination == "max_steps"),
        "form_replies": [reply.text for reply in record.form_replies],
    }


def row_of_first_call(asked: Row, sample: Sample) -> Row:
    """Return the row of a line of ``studies/first_calls.py``, as of step-by-step: one reply, one action."""
    return {
        "model": asked["model"],
        "benchmark": asked["benchmark"],
        **fields_of_sample(sample, "step-by-step"),
        "protocol": asked["protocol"],
        "bare": False,
        "replies": [[asked["reply"], asked["finish_reason"]]],
        "turns": 1,
        "form_replies": [],
    }


def fields_of_sample(sample: Sample, mode: Mode) -> Row:
    """Return what a row keeps of its sample."""
    return {
        "sample": sample.id,
        "mode": mode,
        "toolset": list(sample.toolset) if mode != "no-tool" else [],
        "slots": [slot.model_dump(mode="json", by_alias=True) for slot in sample.answer],
    }


def differs(record: Record, outcome: Row) -> str:
    """Return in what an outcome differs from the record that it was parsed from; empty if in nothing."""
    if record.trajectory is None:
        made = [_action(action) for action in record.actions or ()]
        pairs = zip(made, outcome["actions"], strict=True)
        return next((f"{one} became {two}" for one, two in pairs if not _same(one, two)), "")
    made = [_call(step.call) for step in record.trajectory.calls if step.call]
    termination = record.trajectory.termination.replace(
        "no_form", "answered"
    )  # the form is not asked for again
    if made != outcome["calls"] or termination != outcome["termination"]:
        return f"{made}, {termination} became {outcome['calls']}, {outcome['termination']}"
    answers = {"answer": record.trajectory.answer_text}, {"answer": outcome["answer"]}
    return "" if _same(*answers) else f"{answers[0]} became {answers[1]}"


def _same(recorded: Row, parsed: Row) -> bool:
    """True if both are equal; a recorded answer may have the lines of the form behind it."""
    if recorded.get("answer") is not None and parsed.get("answer") is not None:
        return recorded["answer"].startswith(parsed["answer"])
    return recorded == parsed
