"""Questions without tools for lm-evaluation-harness, asked in one turn and scored by agrotools."""

import base64
import io
from collections.abc import Sequence
from functools import cache
from typing import Any

import datasets
from PIL import Image

from agrotools.agents.images import file_parts
from agrotools.core import Record, Sample, Step, Trajectory
from agrotools.foreign.transcripts import in_form
from agrotools.formats.benchmark import Benchmark
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.models import TextPart
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.metrics import FAS

INSTRUCTION = (
    "Answer the question. End your reply with this form, one line per item, each with its value:"
)


@cache
def load(name: str) -> tuple[Benchmark, dict[str, Sample]]:
    benchmark = load_as(name, Loading(files_later=True))
    return benchmark, {each.id: each for each in benchmark.samples if each.no_tool_eligible}


def questions(benchmark: str = "embedded", **_: Any) -> dict[str, datasets.Dataset]:
    """Return the questions of a benchmark that are asked without tools."""
    rows = [
        {"benchmark": benchmark, "id": name, "query": each.query}
        for name, each in load(benchmark)[1].items()
    ]
    return {"test": datasets.Dataset.from_list(rows)}


def view_of(doc: dict[str, str]) -> Any:
    benchmark, samples = load(doc["benchmark"])
    return benchmark.view(benchmark.prepare(samples[doc["id"]]), "no-tool")


def doc_to_text(doc: dict[str, str]) -> str:
    """Return a line for each file, the question and the form of its answer."""
    view = view_of(doc)
    lines = [part.text for part in file_parts(view.files) if isinstance(part, TextPart)]
    return "\n".join([*lines, view.query, "", INSTRUCTION, view.answer_form])


def doc_to_image(doc: dict[str, str]) -> list[Image.Image]:
    """Return the pictures, as agrotools shows them to a model."""
    parts = [part for part in file_parts(view_of(doc).files) if not isinstance(part, TextPart)]
    return [Image.open(io.BytesIO(base64.b64decode(part.url.partition(",")[2]))) for part in parts]


def process_results(doc: dict[str, str], results: Sequence[str]) -> dict[str, list[str]]:
    """Return what the score is computed from: an unanswerable question is scored beside its twin."""
    return {"fas": [doc["benchmark"], doc["id"], results[0]]}


def fas(items: Sequence[Sequence[str]]) -> float:
    """Return the Final Answer Score of all replies, 0 to 1; a reply without the form scores 0."""
    tally = RunAggregator(protocol="react")
    for name, sample_id, reply in items:
        sample = load(name)[1][sample_id]
        step = Step(turn=0, kind="answer", text=in_form(sample, reply))
        record = Record(
            sample=sample,
            mode="no-tool",
            trajectory=Trajectory(steps=(step,), termination="answered"),
        )
        tally.add(record, score_record(record))
    return tally.summary(allow_invalid=True).modes["no-tool"].metrics[FAS].overall.value
