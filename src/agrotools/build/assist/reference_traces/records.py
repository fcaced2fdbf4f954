"""Traces as data, and the file of them: it only grows, and survives being stopped at any moment."""

import hashlib
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson
from pydantic import JsonValue

from agrotools.agents.prompts import building_prompt_hash
from agrotools.core import Arguments, FrozenModel, Observation, Sample
from agrotools.core.files import LineFile, copy_whole, read_lines
from agrotools.core.refs import literal_value

TRACES_FILE = "traces.jsonl"
_HINT = "remove that line; its sample is then asked about again"


class TraceStep(FrozenModel):
    """One call of a model's chain beside the reference; see the module's documentation."""

    tool: str
    reference_step: int
    thought: str = ""
    arguments: Arguments | None = None
    observation: Observation | None = None
    agrees: dict[str, bool] = {}
    agreed: bool = False
    reason: str = ""
    tries: int = 1


class TraceRecord(FrozenModel):
    """A model's chain for one sample; see the module's documentation."""

    id: str
    model: str
    asked: str
    steps: tuple[TraceStep, ...] = ()
    answer: str | None = None
    answer_agrees: bool | None = None
    answer_slots: dict[str, float] = {}
    complete: bool = False
    left_open: tuple[str, ...] = ()
    reason: str = ""

    @property
    def confirms(self) -> bool:
        """Whether the chain is complete, all its arguments agree, and so does the answer as far as that can be told."""
        return self.complete and all(step.agreed for step in self.steps) and self.answer_agrees is not False


Traces = Mapping[tuple[str, str], TraceRecord]
"""By sample id and model."""


def asked_hash(sample: Sample) -> str:
    """A hash of all that a trace of ``sample`` depends on but the model, 16 hexadecimal digits.

    Thoughts of the reference are no part of it: they may be filled in from traces.
    """
    steps = sample.reference.steps if sample.reference else ()
    content: JsonValue = [
        building_prompt_hash(),
        sample.query,
        [[file.name, file.sha256] for file in sample.files],
        [[step.tool, literal_value(dict(step.arguments)), step.group] for step in steps],
        [slot.model_dump(mode="json", by_alias=True) for slot in sample.answer],
    ]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def by_sample_and_model(traces: Iterable[TraceRecord]) -> dict[tuple[str, str], TraceRecord]:
    """The last trace of each sample by each model."""
    return {(trace.id, trace.model): trace for trace in traces}


def read_traces(folder: Path) -> dict[tuple[str, str], TraceRecord]:
    """The traces in a benchmark folder by sample id and model; none where none were made. A torn last line is no trace.

    Raises:
        RunStoreError: the file cannot be read, or a line in it is no trace.
    """
    return by_sample_and_model(read_lines(folder / TRACES_FILE, TraceRecord, _HINT))


def trace_file(folder: Path) -> LineFile[TraceRecord]:
    """``traces.jsonl`` of a folder, to be gone on with.

    Raises:
        RunStoreError: the file cannot be read or written, or a line in it is no trace.
    """
    return LineFile(folder / TRACES_FILE, TraceRecord, _HINT)


@contextmanager
def kept_traces(folder: Path) -> Generator[None]:
    """Keep ``traces.jsonl`` of a benchmark that the block builds anew, also if the block is killed and done again.

    Raises:
        OSError: it cannot be copied.
    """
    aside = folder.parent / f".{folder.name}-{TRACES_FILE}"
    if (folder / TRACES_FILE).is_file():
        copy_whole(folder / TRACES_FILE, aside)
    yield
    if aside.is_file() and folder.is_dir():
        aside.replace(folder / TRACES_FILE)
