"""Data of one record for its place on the page: question, steps, answer and scores, and its row in the list."""

import csv
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue

from agrotools.core import FAMILIES, Artifact, Observation, Record, Sample, SampleFile, Score
from agrotools.core.base import prompt_tokens_text
from agrotools.core.record import Reply, literal_value
from agrotools.report.explain import SlotReading, file_text, lost_reason, slot_readings, summary_readings
from agrotools.report.html.pictures import Absent, EmbeddedPicture, Pictures, Places, RunPictures, benchmark_roots
from agrotools.report.html.runs import facets_of, value_of
from agrotools.report.layout import LabelledText, expected_text, harmless, percent, shortened
from agrotools.report.trace import StepPart, predicted_steps, taken_steps
from agrotools.runner.prompts import StoredPrompts, stored_image
from agrotools.runner.store import read_manifest
from agrotools.scoring import METRICS
from agrotools.scoring.attribution import first_part
from agrotools.scoring.matching import reference_places
from agrotools.scoring.metrics import FAS
from agrotools.scoring.slots import NO_TWIN, refused_twin

Data = dict[str, Any]
"""Data of the page, as JSON."""
MOST_STEPS = 200
LARGEST_DETAIL = 1_000_000
"""Bytes of a record's data above which its long texts are cut."""
_LONGEST_TEXT = 8_000
_MOST_ROWS, _MOST_COLUMNS = 500, 40
_STEP_METRICS = ("st_acc", "tool_acc", "arg_acc", "ear")


def record_data(
    record: Record, scores: Sequence[Score], showing: RunPictures, prompts: StoredPrompts | None = None
) -> tuple[Data, list[str]]:
    """Return the data of ``record`` for the page, and its facets.

    Args:
        record: the record.
        scores: its score rows.
        showing: source of its pictures.
        prompts: stored requests of its run; None to leave them out.
    """
    sample = record.sample
    trajectory = record.trajectory if record.invalid is None else None
    calls = [step.call for step in trajectory.steps if step.call] if trajectory else []
    compared = sample if record.mode == "end-to-end" else None
    matches = reference_places(record) if compared and trajectory else [None] * len(calls)
    reference = sample.reference.steps if sample.reference else ()
    steps: list[StepPart] = []
    if record.invalid is None and record.actions is not None:
        steps = [*predicted_steps(record.actions, reference, scores)]
    elif trajectory is not None:
        steps = [*taken_steps(trajectory.steps[:MOST_STEPS], matches, compared, record.faults)]
    differs = any(part.state == "wrong" and part.arguments for part in steps)
    readings = [*slot_readings(sample.answer, scores), *summary_readings(sample.answer, scores)]
    matched = {row.slot: row.reading.get("text") for row in scores if row.slot is not None}
    places = [at for at, step in enumerate(trajectory.steps) if step.call] if trajectory else []
    of_call = dict(zip(places, matches, strict=True))
    spending = record.spending
    data: Data = {
        "about": _about(sample, scores),
        "query": sample.query,
        "files": [_file(file, sample, showing) for file in sample.files],
        "steps": [_step(part, record, of_call, showing) for part in steps],
        "left": max(0, len(trajectory.steps) - MOST_STEPS) if trajectory else 0,
        "plan": [_reference_step(step) for step in reference],
        "answer": trajectory.answer_text if trajectory else None,
        "ended": _ending(record),
        "slots": [_slot(reading, matched.get(reading.slot.name)) for reading in readings],
        "invalid": record.invalid or "",
        "calls": len(calls) + sum(bool(getattr(action, "calls", ())) for action in record.actions or ()),
        "seconds": round(record.seconds, 2),
        "tokens": [spending.input_tokens or 0, spending.output_tokens or 0],
        "sent_tokens": prompt_tokens_text(spending.input_tokens or 0, spending.cached_input_tokens),
        "usd": spending.cost_usd,
        "silent": record.agent_replies == (),
        "sent": [] if prompts is None else _sent(prompts, record, showing),
    }
    return data, facets_of(record, scores, matches, differs)


def listed_data(record: Record, scores: Sequence[Score], split: Mapping[str, float] | None = None) -> Data:
    """Return what lists show of a record: ``score`` (None: invalid), ``cause`` and ``error``, empty if it lost nothing.

    ``split``: its lost points by part, as ``agrotools attribute`` stored them.
    """
    value = value_of(record, scores)
    part = ""
    if record.actions is None and value not in (None, 1):
        part = max(split, key=split.__getitem__) if split else first_part(record, scores)
    error = "" if value == 1 else _reason_line(record, scores, part)
    score = None if value is None else round(value, 4)
    place = {"id": record.sample.id, "mode": record.mode, "epoch": record.epoch, "task": record.sample.task_type}
    return {**place, "score": score, "cause": part, "error": error}


def whole_data(run: Path, record: Record, scores: Sequence[Score], split: Mapping[str, float] | None) -> Data:
    """Return all that the page shows of a record of ``run``, but pictures: its entry in the list and its details."""
    places = Places([run]), Pictures(1), set[str]()
    showing = RunPictures(run, benchmark_roots(read_manifest(run), run, None), *places)
    data, facets = record_data(record, scores, showing, StoredPrompts(run))
    return {**listed_data(record, scores, split), "facets": facets, **data}


def _reason_line(record: Record, scores: Sequence[Score], part: str) -> str:
    """Return the reason for the score of a record that lost points, on one short line."""
    if record.invalid is not None:
        return f"invalid: {shortened(harmless(record.invalid), 80)}"
    if record.trajectory is not None and record.trajectory.answer is None:
        return f"no answer ({record.trajectory.termination})"
    return shortened(harmless(_twin_text(scores) or lost_reason(record, scores, part)), 110)


def _twin_text(scores: Sequence[Score]) -> str:
    """Return why the twin of an unanswerable sample takes a point from it, or an empty text."""
    twin = refused_twin(scores)
    return f"the answerable twin {twin} was refused: one point less" if twin else ""


def _about(sample: Sample, scores: Sequence[Score]) -> list[list[str]]:
    fields = {
        "task": f"{sample.task_type.replace('_', ' ')} ({FAMILIES.get(sample.family, sample.family)})",
        "answer": sample.answer_type.replace("_", " "),
        "source": sample.source,
        "template": sample.template,
        "cluster": sample.cluster or sample.id,
        "expected": "; ".join(f"{slot.label}: {expected_text(slot)}" for slot in sample.answer),
    }
    if of_twin := _twin_text(scores):
        fields["twin"] = of_twin
    elif not sample.answerable and not any(row.metric == FAS for row in scores):
        fields["twin"] = NO_TWIN
    return [[name, harmless(value)] for name, value in fields.items()]


def _ending(record: Record) -> str:
    if record.trajectory is None or record.trajectory.answer is not None:
        return ""
    reason = f": {record.trajectory.reason}" if record.trajectory.reason else ""
    halted = record.trajectory.halted_by
    reply = f"; last reply: {shortened(harmless(halted.text), 600)}" if halted and halted.text else ""
    return f"{record.trajectory.termination}{reason}{reply}"


def _step(part: StepPart, record: Record, of_call: Mapping[int, int | None], showing: RunPictures) -> Data:
    at = part.number - 1
    reference = record.sample.reference.steps if record.sample.reference else ()
    made_here = record.actions is None
    data: Data = {
        "n": part.number,
        "of": part.of,
        "title": part.title,
        "tool": part.tool,
        "about": part.about,
        "verdict": part.verdict,
        "state": part.state,
        "thought": part.thought,
        "args": [[each.name, each.predicted, each.reference, each.mark, each.detail] for each in part.arguments],
        "against": part.reference,
        "plain": [[name, value] for name, value in part.plain_arguments],
        "text": part.text,
        "lines": _labelled([*part.lines, *part.result_lines]),
        "word": part.result_label,
        "error": part.error,
        "scores": [
            [METRICS[name].label, percent(part.rows[name].value)] for name in _STEP_METRICS if name in part.rows
        ],
    }
    observation: Observation | None = None
    match: int | None = None
    reply: Reply | None = None
    if record.actions is not None:
        match = at if at < len(reference) else None
        observation = reference[at].observation if match is not None else None
        reply = record.actions[at].reply
        calls = getattr(record.actions[at], "calls", ())
        data["call"] = calls[0].arguments if calls else None
    elif record.trajectory is not None and part.number:
        step = record.trajectory.steps[at]
        observation, match, reply = step.observation, of_call.get(at), step.reply
        data["call"] = step.call.arguments if step.call else None
        data["seconds"] = round(step.seconds, 3)
    if reply is not None:
        data["reply"] = {
            "text": reply.text,
            "seconds": round(reply.seconds, 2),
            "tokens": [reply.usage.input_tokens, reply.usage.output_tokens],
        }
    if match is not None:
        data["match"] = match
    if observation is not None:
        data["result"] = observation.result
        data["files"] = [_artifact(artifact, showing, made_here=made_here) for artifact in observation.artifacts]
    return data


def _reference_step(step: Any) -> Data:
    observation = step.observation.result if step.observation else None
    arguments = {name: literal_value(value) for name, value in step.arguments.items()}
    return {"tool": step.tool, "arguments": arguments, "result": observation, "truth": step.truth}


def _slot(reading: SlotReading, matched: JsonValue) -> Data:
    return {
        "name": reading.slot.name,
        "label": reading.slot.label,
        "type": str(reading.slot.type).replace("_", " "),
        "value": reading.value,
        "lines": _labelled(reading.lines),
        "matched": matched if isinstance(matched, str) else "",
    }


def _labelled(lines: Sequence[LabelledText]) -> list[list[str]]:
    return [[line.label, line.text, line.style] for line in lines]


# --- files ------------------------------------------------------------------------------------------------------------


def _file(file: SampleFile, sample: Sample, showing: RunPictures) -> Data:
    data: Data = {"name": file.name, "kind": file.kind, "text": file_text(file, sample).rstrip(".")}
    if file.width_px and file.height_px:
        data["size"] = [file.width_px, file.height_px]
    path = showing.path_of_file(file)
    if file.kind == "table" and isinstance(path, Path):
        return data | _table(path)
    return data | _picture(showing.file(file))


def _artifact(artifact: Artifact, showing: RunPictures, *, made_here: bool) -> Data:
    data: Data = {"name": artifact.name, "kind": artifact.kind, "text": artifact.kind}
    path = showing.path_of_artifact(artifact)
    if artifact.kind == "table":
        return data | (_table(path) if isinstance(path, Path) else {"absent": path.reason if made_here else _AT_BUILD})
    picture = showing.artifact(artifact, made_here=made_here)
    return data | ({"absent": _AT_BUILD} if isinstance(picture, Absent) and not made_here else _picture(picture))


_AT_BUILD = "made when the benchmark was built"


def _picture(picture: EmbeddedPicture | Absent) -> Data:
    if isinstance(picture, Absent):
        return {"absent": picture.reason}
    how = [picture.description] if picture.description else []
    how += [f"{value} is {colour}" for value, colour in picture.colours.items()]
    return {"picture": picture.id, "shown": [picture.width_px, picture.height_px], "how": "; ".join(how)}


def _table(path: Path) -> Data:
    """Return the first rows of a CSV file, and their number in the file."""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            lines = csv.reader(file)
            rows = [[shortened(cell) for cell in row[:_MOST_COLUMNS]] for row in islice(lines, _MOST_ROWS + 1)]
            return {"rows": rows, "n_rows": len(rows) - 1 + sum(1 for _ in lines)}
    except (OSError, csv.Error) as error:
        return {"absent": f"the table cannot be read: {error}"}


# --- requests ---------------------------------------------------------------------------------------------------------


def _sent(prompts: StoredPrompts, record: Record, showing: RunPictures) -> list[Data]:
    """Return the requests for a record: of each, the messages that the one before it did not have."""
    requests: list[Data] = []
    for request in prompts.of(record.key) or ():
        messages: list[Data] = []
        for message in request.messages[request.shared :]:
            content = message.get("content") or ""
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            texts = [_part_text(part, showing) for part in parts]
            if calls := message.get("tool_calls"):
                texts.append(orjson.dumps(calls, option=orjson.OPT_INDENT_2).decode())
            messages.append({"role": str(message.get("role", "")), "texts": [showing.text(text) for text in texts]})
        tools = orjson.dumps(request.tools, option=orjson.OPT_INDENT_2).decode() if request.tools else ""
        requests.append({"shared": request.shared, "messages": messages, "tools": showing.text(tools)})
    return requests


def _part_text(part: Mapping[str, Any], showing: RunPictures) -> str:
    if part.get("type") == "text":
        return str(part["text"])
    image = stored_image(showing.run, str(part.get("image_url", {}).get("url", "")))
    return f"[image, {image.media_type}, {image.file}]" if image else f"[{part.get('type')}]"


def packed_data(data: Data) -> bytes:
    """Return the data of a record as JSON; if it is very long, with its long texts cut."""
    line = orjson.dumps(data)
    return line if len(line) <= LARGEST_DETAIL else orjson.dumps(_cut(data))


def _cut(value: Any) -> Any:
    """Return JSON data with long texts cut, which note how much is missing, and long lists shortened."""
    if isinstance(value, str):
        return shortened(value, _LONGEST_TEXT)
    if isinstance(value, list):
        return [_cut(item) for item in value[:_MOST_ROWS]]
    return {name: _cut(item) for name, item in value.items()} if isinstance(value, dict) else value
