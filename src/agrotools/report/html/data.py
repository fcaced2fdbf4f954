"""Data of the page: of each record, with its row in the list, and of the overview with runs, tasks and differences."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue

from agrotools.calling.result import certificate
from agrotools.core import FAMILIES, Artifact, Record, ReferenceStep, Sample, SampleFile, Score
from agrotools.core.record import literal_value
from agrotools.core.texts import amount_text, benchmark_title, prompt_tokens_text
from agrotools.models.metered import read_spend
from agrotools.report.comparison import difference_rows, more_samples, verdict_text
from agrotools.report.explain import (
    SlotReading,
    file_text,
    lost_reason,
    slot_readings,
    summary_readings,
)
from agrotools.report.html.pictures import (
    Absent,
    EmbeddedPicture,
    PictureEncoder,
    Places,
    RunPictures,
    benchmark_roots,
)
from agrotools.report.html.runs import PageRun, incomparable, run_facts, value_of
from agrotools.report.layout import (
    LabelledText,
    expected_text,
    harmless,
    percent,
    run_names,
    shortened,
)
from agrotools.report.screen import headline, stranger_sentences
from agrotools.report.settings import Setting
from agrotools.report.tables import scoring_lines, warning_lines
from agrotools.report.trace import StepPart, predicted_steps, taken_steps
from agrotools.runner.ladder import role_of
from agrotools.runner.prompts import StoredPrompts, stored_image
from agrotools.runner.rescore import content_of
from agrotools.runner.store import read_manifest
from agrotools.scoring.attribution import MEANINGS, ordered_parts
from agrotools.scoring.lost_points import Shares, largest_part
from agrotools.scoring.matching import reference_places
from agrotools.scoring.metrics import FAS, METRICS
from agrotools.scoring.slots import NO_TWIN, refused_twin
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import RunComparison, RunDifference, Summary, tokens_of

Data = dict[str, Any]
"""Data of the page, as JSON."""
MOST_STEPS = 200
LARGEST_DETAIL = 1_000_000
"""Bytes of a record's data above which its long texts are cut."""
_LONGEST_TEXT = 8_000
_MOST_ROWS, _MOST_COLUMNS = 500, 40
_STEP_METRICS = ("st_acc", "tool_acc", "arg_acc", "ear")


def record_data(
    record: Record,
    scores: Sequence[Score],
    showing: RunPictures,
    prompts: StoredPrompts | None = None,
) -> Data:
    """Return the data of ``record`` for the page; without ``prompts``, the requests are left out."""
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
    readings = [*slot_readings(sample.answer, scores), *summary_readings(sample.answer, scores)]
    matched = {row.slot: row.reading.get("text") for row in scores if row.slot is not None}
    places = [at for at, step in enumerate(trajectory.steps) if step.call] if trajectory else []
    of_call = dict(zip(places, matches, strict=True))
    spending, n_steps = record.spending, len(trajectory.steps) if trajectory else 0
    return {
        "about": _about(sample, scores),
        "query": sample.query,
        "files": [_file(file, sample, showing) for file in sample.files],
        "steps": [_step(part, record, of_call, showing) for part in steps],
        "left": max(0, n_steps - MOST_STEPS),
        "plan": [_reference_step(step) for step in reference],
        "answer": trajectory.answer_text if trajectory else None,
        "ended": _ending(record),
        "slots": [_slot(reading, matched.get(reading.slot.name)) for reading in readings],
        "invalid": record.invalid or "",
        "calls": len(calls)
        + sum(bool(getattr(action, "calls", ())) for action in record.actions or ()),
        "seconds": round(record.seconds, 2),
        "tokens": [spending.input_tokens or 0, spending.output_tokens or 0],
        "sent_tokens": prompt_tokens_text(spending.input_tokens or 0, spending.cached_input_tokens),
        "usd": spending.cost_usd,
        "silent": record.agent_replies == (),
        "sent": [] if prompts is None else _sent(prompts, record, showing),
    }


def listed_data(record: Record, scores: Sequence[Score], shares: Shares | None = None) -> Data:
    """Return what lists show of a record: ``score`` (None: invalid), ``cause``, ``lost`` and ``error``.

    ``cause`` is the part that lost most, ``lost`` the points of 100 by part; all are empty if it lost nothing.
    ``shares``: the points that it lost (:func:`agrotools.scoring.lost_points.lost_shares`).
    """
    value = value_of(record, scores)
    shares = shares or {}
    part = largest_part(shares)
    error = "" if value == 1 else _reason_line(record, scores, part)
    score = None if value is None else round(value, 4)
    place = {
        "id": record.sample.id,
        "mode": record.mode,
        "epoch": record.epoch,
        "task": record.sample.task_type,
    }
    lost = {each: round(100 * float(shares[each]), 4) for each in ordered_parts(shares)}
    return {**place, "score": score, "cause": part, "lost": lost, "error": error}


def whole_data(run: Path, record: Record, scores: Sequence[Score], shares: Shares) -> Data:
    """Return all that the page shows of a record of ``run``, but pictures: its entry in the list and its details."""
    places = Places([run]), PictureEncoder(1), set[str]()
    showing = RunPictures(run, benchmark_roots(read_manifest(run), run, None), *places)
    data = record_data(record, scores, showing, StoredPrompts(run))
    return {**listed_data(record, scores, shares), **data}


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
    reply = (
        f"; last reply: {shortened(harmless(halted.text), 600)}" if halted and halted.text else ""
    )
    return f"{record.trajectory.termination}{reason}{reply}"


def _step(
    part: StepPart, record: Record, of_call: Mapping[int, int | None], showing: RunPictures
) -> Data:
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
    observation = match = reply = None
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
        data["files"] = [
            _artifact(artifact, showing, made_here=made_here) for artifact in observation.artifacts
        ]
    return data


def _reference_step(step: ReferenceStep) -> Data:
    arguments = {name: literal_value(value) for name, value in step.arguments.items()}
    result = step.observation.result if step.observation else None
    return {"tool": step.tool, "arguments": arguments, "result": result, "truth": step.truth}


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
        return data | (
            _table(path)
            if isinstance(path, Path)
            else {"absent": path.reason if made_here else _AT_BUILD}
        )
    picture = showing.artifact(artifact, made_here=made_here)
    return data | (
        {"absent": _AT_BUILD}
        if isinstance(picture, Absent) and not made_here
        else _picture(picture)
    )


_AT_BUILD = "made when the benchmark was built"


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
        messages: list[Data] = []
        for message in request.messages[request.shared :]:
            content = message.get("content") or ""
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            texts = [_part_text(part, showing) for part in parts]
            if calls := message.get("tool_calls"):
                texts.append(orjson.dumps(calls, option=orjson.OPT_INDENT_2).decode())
            messages.append(
                {
                    "role": str(message.get("role", "")),
                    "texts": [showing.text(text) for text in texts],
                }
            )
        tools = (
            orjson.dumps(request.tools, option=orjson.OPT_INDENT_2).decode()
            if request.tools
            else ""
        )
        requests.append(
            {"shared": request.shared, "messages": messages, "tools": showing.text(tools)}
        )
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


# --- overview --------------------------------------------------------------------------------------------------------

Measure = tuple[Setting, str]
"""Setting and metric that runs are judged by."""
TERMS = {
    "floor": "score of guessing from the question alone (baseline:guess)",
    "ceiling": "score of the reference calls with the real tools (baseline:oracle), where the answer follows from them",
    "planner": "score of the steps copied from the most similar other question (baseline:planner)",
    "±": "half the width of the 95 % interval over clusters of samples that share files",
    "privileged": "sees reference solutions; a yardstick, not a result",
    "twin": "answerable and unanswerable sample with one question: a refusal gains on one and loses on the other",
}


def head_data(
    runs: Sequence[PageRun],
    references: Mapping[str, Summary],
    differences: Sequence[RunDifference],
    comparisons: Mapping[tuple[int, int], RunComparison],
) -> Data:
    """Return everything that the overview shows; ``references`` are summaries of baselines on the same samples."""
    summaries = [run.summary for run in runs]
    measure = headline(summaries)
    shown = {
        metric
        for summary in summaries
        for part in summary.modes.values()
        for metric in part.metrics
    }
    roles = _roles(summaries, measure)
    beside = [
        (summary.model, role, summary)
        for summary, role in zip(
            references.values(), _roles([*references.values()], measure), strict=True
        )
        if (summary.model, role)
        not in {(each.model, of_run) for each, of_run in zip(summaries, roles, strict=True)}
    ]
    names = run_names(summaries)
    return {
        "title": benchmark_title(summaries[0].benchmark, summaries[0].benchmark_version),
        "synthetic": summaries[0].synthetic,
        "measure": _measure_data(measure) if measure else None,
        "runs": [_run_data(*each, measure) for each in zip(runs, names, roles, strict=True)],
        "references": [
            {"name": name, "role": role, "score": estimate_data(estimate), "tasks": tasks}
            for name, role, summary in beside
            if measure and (estimate := _headline_of(summary, measure))
            for tasks in [_tasks_of(summary, measure)]
        ],
        "checks": checks_data(summaries),
        "strangers": _strangers_data(summaries, names),
        "pairs": list(_pairs(runs, names, differences, comparisons)),
        "differences": incomparable([run.manifest for run in runs]),
        "notes": [
            *warning_lines(summaries),
            *scoring_lines(summaries),
            *(note for run in runs for note in run.records.notes),
        ],
        "parts": MEANINGS,
        "terms": TERMS
        | {METRICS[metric].label: METRICS[metric].meaning for metric in sorted(shown)},
    }


def checks_data(summaries: Sequence[Summary], *, with_photos: bool = True) -> list[Data]:
    """Return how often the tools agree with the table of own photos: a sentence, and counts by label.

    ``with_photos``: the sentence names photos.
    """
    checks = dict.fromkeys(check for summary in summaries for check in summary.tool_checks)
    return [
        {
            "text": harmless(check.sentence(with_photos=with_photos)),
            "labels": [
                [harmless(each.label), each.right, each.otherwise, each.not_named]
                for each in check.labels
            ],
        }
        for check in checks
    ]


def _strangers_data(summaries: Sequence[Summary], names: Sequence[str]) -> list[str]:
    """Return how often each run named something on pictures of something else."""
    return [
        harmless(f"{name}, {mode}: {sentence[0].lower()}{sentence[1:]}")
        for name, summary in zip(names, summaries, strict=True)
        for mode, part in summary.modes.items()
        for sentence in stranger_sentences(part)
    ]


def estimate_data(estimate: Estimate) -> list[float | int | None]:
    """Return value, interval and number of units of an estimate."""
    interval = estimate.interval
    limits = (interval.lower, interval.upper) if interval else (None, None)
    return [estimate.value, *limits, estimate.n]


def _measure_data(measure: Measure) -> Data:
    info = METRICS[measure[1]]
    return {
        "mode": measure[0].mode,
        "label": info.label,
        "meaning": info.meaning,
        "out_of": info.out_of,
    }


def _headline_of(summary: Summary, measure: Measure) -> Estimate | None:
    part = summary.modes.get(measure[0].mode)
    metric = (measure[0].of(summary) or {}).get(measure[1])
    return metric.overall if metric and part and part.headline else None


def _tasks_of(summary: Summary, measure: Measure) -> Data:
    metric = (measure[0].of(summary) or {}).get(measure[1])
    return (
        {task: estimate_data(each) for task, each in metric.by_task_type.items()} if metric else {}
    )


def _roles(summaries: Sequence[Summary], measure: Measure | None) -> list[str]:
    return [role_of(each, measure[0].mode if measure else "end-to-end") for each in summaries]


def _run_data(run: PageRun, name: str, role: str, measure: Measure | None) -> Data:
    summary, parts = run.summary, run.summary.modes.values()
    estimate = _headline_of(summary, measure) if measure else None
    metric = (measure[0].of(summary) or {}).get(measure[1]) if measure else None
    spend = read_spend(run.folder / "spend.jsonl")
    tokens_in, cached, tokens_out = tokens_of(parts)
    toolset = run.manifest.toolset.items()
    return {
        **run_facts(run.name, run.folder, run.manifest, summary),
        "label": harmless(name),
        "role": "baseline" if run.manifest.faults and role != "model" else role,
        "score": estimate_data(estimate) if estimate else None,
        "withheld": summary.modes[measure[0].mode].withheld
        if measure and metric and estimate is None
        else "",
        "possible": [metric.bounds.lower, metric.bounds.upper]
        if metric and metric.bounds
        else None,
        "tasks": _tasks_of(summary, measure) if measure and estimate else {},
        "usd": spend.usd if spend.replies else None,
        "tokens": tokens_in + tokens_out,
        "token_parts": f"{prompt_tokens_text(tokens_in, cached)}, {amount_text(tokens_out)} out",
        "seconds": sum(
            part.counts.spent["seconds"].total for part in parts if "seconds" in part.counts.spent
        ),
        "records": sum(part.n_records for part in parts),
        "invalid": sum(part.invalid.n for part in parts),
        "missing": sum(summary.missing.values()),
        "lost": {
            mode: part.lost.model_dump(mode="json", exclude={"tasks"})
            for mode, part in summary.modes.items()
            if part.lost is not None
        },
        "certificates": {
            tool: certificate(tool, of.partition(":")[0])["text"] for tool, of in toolset
        },
    }


def _pairs(
    runs: Sequence[PageRun],
    names: Sequence[str],
    differences: Sequence[RunDifference],
    comparisons: Mapping[tuple[int, int], RunComparison],
) -> Iterator[Data]:
    for each in differences:
        compared = comparisons.get((each.first, each.second))
        same = not each.difference.value and content_of(runs[each.first].folder) == content_of(
            runs[each.second].folder
        )
        rows = (
            difference_rows(compared, each.mode) if compared and each.mode in compared.modes else ()
        )
        yield {
            "first": each.first,
            "second": each.second,
            "mode": each.mode,
            "label": METRICS[each.metric].label,
            "difference": estimate_data(each.difference),
            "p": each.difference.p_adjusted,
            "differs": each.differs(),
            "detectable": each.difference.detectable,
            "verdict": verdict_text(
                each.difference,
                (names[each.first], names[each.second]),
                same=same,
                missing=each.missing,
            ),
            "more": None if each.missing else more_samples(each.difference),
            "rows": [
                [kind, name, estimate_data(row), row.differs() and each.missing is None]
                for kind, name, row in rows
                if kind != "metric"
            ],
        }
