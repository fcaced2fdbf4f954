"""Data of the page about a record: its row in the list, and its details with steps, files and requests.

A record and its score rows come in; JSON data go out. Long texts are cut, and no picture is held: only its name.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue

from agrotools.core import (
    FAMILIES,
    Action,
    Arguments,
    Artifact,
    CallTools,
    Observation,
    Record,
    ReferenceStep,
    Reply,
    Sample,
    SampleFile,
    Score,
    Step,
    Trajectory,
)
from agrotools.core.record import literal_value
from agrotools.core.texts import prompt_tokens_text
from agrotools.report.explain import (
    NOT_COUNTED,
    SlotReading,
    file_text,
    first_error,
    slot_readings,
    summary_readings,
    twin_text,
)
from agrotools.report.html.pictures import (
    Absent,
    EmbeddedPicture,
    PictureEncoder,
    Places,
    RunPictures,
    benchmark_roots,
)
from agrotools.report.html.runs import value_of
from agrotools.report.layout import (
    DASH,
    LabelledText,
    expected_text,
    harmless,
    percent,
    shortened,
)
from agrotools.report.trace import StepPart, predicted_steps, taken_steps
from agrotools.runner.prompts import StoredPrompts, stored_image
from agrotools.runner.store import read_manifest
from agrotools.scoring.attribution import ordered_parts
from agrotools.scoring.lost_points import Shares, largest_part
from agrotools.scoring.matching import reference_places
from agrotools.scoring.metrics import FAS, METRICS
from agrotools.scoring.slots import NO_TWIN, answer_of

Data = dict[str, Any]
"""Data of the page, as JSON."""
MOST_STEPS = 200
"""Most steps of a record that the page shows."""
LARGEST_DETAIL = 1_000_000
"""Bytes of a record's data above which its long texts are cut."""
_LONGEST_TEXT = 8_000
"""Letters of a text in the details of a record that is cut."""
_MOST_ROWS, _MOST_COLUMNS = 500, 40
"""Size of a shown table; lists of a record that is cut have as many items."""
_CELL_LETTERS = 90
"""Most letters of an answer in the table of samples, which shows two lines of it."""
_STEP_METRICS = ("st_acc", "tool_acc", "arg_acc", "ear")


def record_data(
    record: Record,
    scores: Sequence[Score],
    showing: RunPictures,
    prompts: StoredPrompts | None = None,
) -> Data:
    """Return the data of ``record`` for the page; without ``prompts``, the requests are left out."""
    sample = record.sample
    reference = sample.reference.steps if sample.reference else ()
    trajectory = record.trajectory if record.invalid is None else None
    matches = _matches_by_step(record, trajectory) if trajectory else {}
    n_steps = len(trajectory.steps) if trajectory else 0
    n_predicted_calls = sum(isinstance(action, CallTools) for action in record.actions or ())

    steps: list[StepPart] = []
    if record.invalid is None and record.actions is not None:
        steps = [*predicted_steps(record.actions, reference, scores)]
    elif trajectory is not None:
        compared = sample if record.mode == "end-to-end" else None
        first = trajectory.steps[:MOST_STEPS]
        steps = [*taken_steps(first, [*matches.values()], compared, record.faults)]

    readings = [*slot_readings(sample.answer, scores), *summary_readings(sample.answer, scores)]
    matched = {row.slot: row.reading.get("text") for row in scores if row.slot is not None}
    spending = record.spending
    tokens_in, tokens_out = spending.input_tokens or 0, spending.output_tokens or 0
    return {
        "about": _about(sample, scores),
        "query": sample.query,
        "files": [_file(file, sample, showing) for file in sample.files],
        "steps": [_step(part, record, matches, showing) for part in steps],
        "left": max(0, n_steps - MOST_STEPS),
        "plan": [_reference_step(step) for step in reference],
        "answer": trajectory.answer_text if trajectory else None,
        "ended": _ending(record),
        "twin": twin_text(scores),
        "slots": [_slot(reading, matched.get(reading.slot.name)) for reading in readings],
        "invalid": record.invalid or "",
        "calls": len(matches) + n_predicted_calls,
        "seconds": round(record.seconds, 2),
        "tokens": [tokens_in, tokens_out],
        "sent_tokens": prompt_tokens_text(tokens_in, spending.cached_input_tokens),
        "usd": spending.cost_usd,
        "silent": record.agent_replies == (),
        "sent": [] if prompts is None else _sent(prompts, record, showing),
    }


def _matches_by_step(record: Record, trajectory: Trajectory) -> dict[int, int | None]:
    """Return the reference step of each call by the place of the call's step; None where it matches none.

    Calls are compared with the reference in end-to-end alone."""
    places = [at for at, step in enumerate(trajectory.steps) if step.call]
    if record.mode != "end-to-end":
        return dict.fromkeys(places)
    return dict(zip(places, reference_places(record), strict=True))


def listed_data(record: Record, scores: Sequence[Score], shares: Shares | None = None) -> Data:
    """Return what lists show of a record: ``score`` (None: invalid), ``cause``, ``lost`` and ``error``.

    ``cause`` is the part that lost most, ``lost`` the points of 100 by part; all are empty if it lost nothing.
    ``shares``: the points that it lost (:func:`agrotools.scoring.lost_points.lost_shares`).
    """
    value = value_of(record, scores)
    shares = shares or {}
    part = largest_part(shares)
    error = "" if value == 1 else first_error(record, scores, part)
    score = None if value is None else round(value, 4)
    place = {
        "id": record.sample.id,
        "mode": record.mode,
        "epoch": record.epoch,
        "task": record.sample.task_type,
    }
    lost = {each: round(100 * float(shares[each]), 4) for each in ordered_parts(shares)}
    return {**place, "score": score, "cause": part, "lost": lost, "error": error}


def table_texts(record: Record, scores: Sequence[Score]) -> tuple[str, str]:
    """Return the expected and the given answer of a record, each on one short line for the table of samples.

    The given answer is what its slots were read from, in the order of the expected values, or else the whole text.
    """
    slots = record.sample.answer
    expected = "; ".join(expected_text(slot) for slot in slots)
    written = {
        row.slot: row.reading["text"] for row in scores if row.slot and "text" in row.reading
    }
    given = answer_of(record) or ""
    if written:
        given = "; ".join(str(written.get(slot.name) or DASH) for slot in slots)
    return _cell_text(expected), _cell_text(given)


def _cell_text(text: str) -> str:
    """Return ``text`` on one line, cut to what a cell shows."""
    lines = [" ".join(line.split()) for line in harmless(text).splitlines()]
    line = " · ".join(filter(None, lines))
    return line if len(line) <= _CELL_LETTERS else f"{line[: _CELL_LETTERS - 1].rstrip()}…"


def whole_data(run: Path, record: Record, scores: Sequence[Score], shares: Shares) -> Data:
    """Return all that the page shows of a record of ``run``, but pictures: its entry in the list and its details."""
    showing = RunPictures(
        run,
        roots=benchmark_roots(read_manifest(run), run, None),
        places=Places([run]),
        pictures=PictureEncoder(shares=1),
        missing=set(),
    )
    data = record_data(record, scores, showing, StoredPrompts(run))
    return {**listed_data(record, scores, shares), **data}


def _about(sample: Sample, scores: Sequence[Score]) -> list[list[str]]:
    fields = {
        "task": f"{sample.task_type.replace('_', ' ')} ({FAMILIES.get(sample.family, sample.family)})",
        "answer": sample.answer_type.replace("_", " "),
        "source": sample.source,
        "template": sample.template,
        "cluster": sample.cluster or sample.id,
        "expected": "; ".join(f"{slot.label}: {expected_text(slot)}" for slot in sample.answer),
    }
    if of_twin := twin_text(scores):
        fields["twin"] = of_twin
    elif not sample.answerable and not any(row.metric == FAS for row in scores):
        fields["twin"] = NO_TWIN
    return [[name, harmless(value)] for name, value in fields.items()]


def _ending(record: Record) -> str:
    """Return why a record has no answer, with the last reply; empty if it has one."""
    trajectory = record.trajectory
    if trajectory is None or trajectory.answer is not None:
        return ""
    ending: str = trajectory.termination
    if trajectory.reason:
        ending += f": {trajectory.reason}"
    if trajectory.halted_by and trajectory.halted_by.text:
        ending += f"; last reply: {shortened(harmless(trajectory.halted_by.text), 600)}"
    return ending


@dataclass(frozen=True)
class _Performed:
    """Step as the record holds it: its call, and what came of it."""

    arguments: Arguments | None
    reply: Reply | None
    match: int | None
    """Number of the reference step that it is compared with, from 0."""
    observation: Observation | None
    seconds: float | None = None
    """Duration of the call; None in step-by-step, where no tool is run."""


def _step(
    part: StepPart, record: Record, matches: Mapping[int, int | None], showing: RunPictures
) -> Data:
    """Return the data of a step; ``matches``: reference steps by the place of a step with a call."""
    data = _shown_step(part)
    at = part.number - 1
    if record.actions is not None:
        reference = record.sample.reference.steps if record.sample.reference else ()
        performed = _predicted(record.actions[at], at, reference)
    elif record.trajectory is not None and part.number:
        performed = _taken(record.trajectory.steps[at], matches.get(at))
    else:
        return data  # a step of the reference that no call matches

    data["call"] = performed.arguments
    if performed.seconds is not None:
        data["seconds"] = round(performed.seconds, 3)
    if (reply := performed.reply) is not None:
        data["reply"] = {
            "text": reply.text,
            "seconds": round(reply.seconds, 2),
            "tokens": [reply.usage.input_tokens, reply.usage.output_tokens],
        }
    if performed.match is not None:
        data["match"] = performed.match
    if (observation := performed.observation) is not None:
        made_here = record.actions is None
        data["result"] = observation.result
        data["files"] = [
            _artifact(artifact, showing, made_here=made_here) for artifact in observation.artifacts
        ]
    return data


def _shown_step(part: StepPart) -> Data:
    """Return the data of a step that a terminal shows, too."""
    return {
        "n": part.number,
        "of": part.of,
        "title": part.title,
        "tool": part.tool,
        "about": part.about,
        "verdict": part.verdict,
        "state": part.state,
        "thought": part.thought,
        "args": [
            [each.name, each.predicted, each.reference, each.mark, each.detail]
            for each in part.arguments
        ],
        "against": part.reference,
        "plain": [[name, value] for name, value in part.plain_arguments],
        "text": part.text,
        "lines": _labelled([*part.lines, *part.result_lines]),
        "word": part.result_label,
        "error": part.error,
        "scores": [
            [METRICS[name].label, percent(part.rows[name].value)]
            for name in _STEP_METRICS
            if name in part.rows
        ],
    }


def _predicted(action: Action, at: int, reference: Sequence[ReferenceStep]) -> _Performed:
    """Return the predicted action number ``at`` with the stored result of its reference step."""
    expected = reference[at] if at < len(reference) else None
    return _Performed(
        arguments=action.calls[0].arguments if isinstance(action, CallTools) else None,
        reply=action.reply,
        match=at if expected is not None else None,
        observation=expected.observation if expected is not None else None,
    )


def _taken(step: Step, match: int | None) -> _Performed:
    """Return a step of a trajectory with the result of its call."""
    return _Performed(
        arguments=step.call.arguments if step.call else None,
        reply=step.reply,
        match=match,
        observation=step.observation,
        seconds=step.seconds,
    )


def _reference_step(step: ReferenceStep) -> Data:
    arguments = {name: literal_value(value) for name, value in step.arguments.items()}
    result = step.observation.result if step.observation else None
    return {"tool": step.tool, "arguments": arguments, "result": result, "truth": step.truth}


def _slot(reading: SlotReading, matched: JsonValue) -> Data:
    kind = str(reading.slot.type).replace("_", " ")
    return {
        "name": reading.slot.name,
        "label": reading.slot.label,
        "type": kind if reading.is_counted else f"{kind}, {NOT_COUNTED}",
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
    """Return the data of a file that a tool made; ``made_here``: in this run, not when the benchmark was built."""
    data: Data = {"name": artifact.name, "kind": artifact.kind, "text": artifact.kind}
    path = showing.path_of_artifact(artifact)
    if artifact.kind == "table":
        if isinstance(path, Path):
            return data | _table(path)
        return data | {"absent": path.reason if made_here else _AT_BUILD}
    picture = showing.artifact(artifact, made_here=made_here)
    if isinstance(picture, Absent) and not made_here:
        return data | {"absent": _AT_BUILD}
    return data | _picture(picture)


_AT_BUILD = "made when the benchmark was built"
"""Why a file that a call of the reference made is not shown."""


def _picture(picture: EmbeddedPicture | Absent) -> Data:
    if isinstance(picture, Absent):
        return {"absent": picture.reason}
    how = [picture.description] if picture.description else []
    how += [f"{value} is {colour}" for value, colour in picture.colours.items()]
    return {
        "picture": picture.id,
        "shown": [picture.width_px, picture.height_px],
        "how": "; ".join(how),
    }


def _table(path: Path) -> Data:
    """Return the first rows of a CSV file, and their number in the file."""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            lines = csv.reader(file)
            rows = [
                [shortened(cell) for cell in row[:_MOST_COLUMNS]]
                for row in islice(lines, _MOST_ROWS + 1)
            ]
            return {"rows": rows, "n_rows": len(rows) - 1 + sum(1 for _ in lines)}
    except (OSError, csv.Error) as error:
        return {"absent": f"the table cannot be read: {error}"}


# --- requests ---------------------------------------------------------------------------------------------------------


def _sent(prompts: StoredPrompts, record: Record, showing: RunPictures) -> list[Data]:
    """Return the requests for a record: of each, the messages that the one before it did not have."""
    requests: list[Data] = []
    for request in prompts.of(record.key) or ():
        tools = _indented(request.tools) if request.tools else ""
        requests.append(
            {
                "shared": request.shared,
                "messages": [
                    _message(each, showing) for each in request.messages[request.shared :]
                ],
                "tools": showing.text(tools),
            }
        )
    return requests


def _message(message: Mapping[str, Any], showing: RunPictures) -> Data:
    """Return role and texts of a message: those of its parts, and its calls as JSON."""
    content = message.get("content") or ""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [_part_text(part, showing) for part in parts]
    if calls := message.get("tool_calls"):
        texts.append(_indented(calls))
    return {
        "role": str(message.get("role", "")),
        "texts": [showing.text(text) for text in texts],
    }


def _indented(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


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
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    return value
