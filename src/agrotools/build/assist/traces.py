"""Reference chains filled in by a model: it is given the order of the tools and supplies thoughts and arguments.

The chain of the template stays the gold. A model's chain that is executed and agrees with it confirms it; one that
does not is for people to inspect. Both are kept in ``traces.jsonl`` of the benchmark folder, one JSON object on a line:

``id``
    of the sample. Of several lines with the same ``id`` and ``model`` the last counts.
``model``
    as it was spelled on the command line.
``asked``
    hash of the model's input: prompts, question, files, order of tools, gold arguments. A trace whose hash is
    not that of its sample is out of date.
``steps``
    what the model did, one for each tool of the order, as far as it came:

    - ``tool``: the declared tool;
    - ``reference_step``: the step of the template's chain that it is compared with (from 0). Members of a group may
      come in any order, so it is the one of them that the arguments agree with best;
    - ``thought``, ``arguments`` (as the model gave them; null where none could be read), ``observation`` (of the real
      tool: ``result`` or ``error``, and ``artifacts``; null where nothing was run);
    - ``agrees``: for each argument whether it agrees with the reference, as ``agrotools.arg_acc`` compares them.
      Values that the reference takes from earlier steps (``$ref``) are those that the model's own calls returned;
    - ``agreed``: all of them agree and pass the tool's schema;
    - ``reason``: what differs or failed, in words; empty where all agrees;
    - ``tries``: how often the step was asked for (2 where the first output could not be used or the call failed).
``answer``
    the model's final answer; null where it gave none.
``answer_agrees``
    whether it is the answer that the model's own observations imply; null if that is unknown (a figure, free
    text, a chain that broke off).
``answer_slots``
    the score of each slot but figures, by name.
``complete``
    every declared tool was called, every call ran without error, and an answer was given.
``left_open``
    values that the template's chain takes from earlier steps and the real tools did not return (null, or an error):
    no model could go on from there. References as they stand in the reference, e.g. ``steps[0].observation.weed_pct``.
``reason``
    why the chain broke off; empty where it did not.
"""

import hashlib
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import JsonValue

from agrotools.agents.llm import building_prompt_hash
from agrotools.core import Arguments, FrozenModel, Observation, Sample
from agrotools.core.files import LineFile, copy_whole, read_lines
from agrotools.core.record import literal_value

TRACES_FILE = "traces.jsonl"
_HINT = "remove that line; its sample is then asked about again"


class TraceStep(FrozenModel):
    """One call of a model's chain and its reference; see the module's documentation."""

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
        """True if the chain is complete, all its arguments agree, and so does the answer if that can be decided."""
        return self.complete and all(step.agreed for step in self.steps) and self.answer_agrees is not False


Traces = Mapping[tuple[str, str], TraceRecord]
"""By sample id and model."""


def input_hash(sample: Sample) -> str:
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
    """Traces in a benchmark folder by sample id and model. An incomplete last line is ignored.

    Raises:
        RunStoreError: the file cannot be read, or a line in it is not a trace.
    """
    return by_sample_and_model(read_lines(folder / TRACES_FILE, TraceRecord, _HINT))


def trace_file(folder: Path) -> LineFile[TraceRecord]:
    """``traces.jsonl`` of a folder, to be continued.

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


@dataclass
class TraceSummary:
    """Counts over the chains of one task type, or of all (``task_type`` is then empty).

    ``steps`` are those of the templates' chains: a step that a chain did not reach does not agree.
    """

    task_type: str = ""
    chains: int = 0
    complete: int = 0
    confirmed: int = 0
    """Complete, all arguments agree, and the answer too as far as that can be told."""
    left_open: int = 0
    """Chains in which the real tools did not return what a later step takes from them."""
    steps: int = 0
    steps_agreed: int = 0
    answers: int = 0
    """Chains whose answer can be compared."""
    answers_agreed: int = 0

    def add(self, sample: Sample, record: TraceRecord) -> None:
        """Count one chain."""
        self.chains += 1
        self.complete += record.complete
        self.confirmed += record.confirms
        self.left_open += bool(record.left_open)
        self.steps += len(sample.reference.steps) if sample.reference else 0
        self.steps_agreed += sum(step.agreed for step in record.steps)
        self.answers += record.answer_agrees is not None
        self.answers_agreed += record.answer_agrees is True


def summary_of(traced: Iterable[tuple[Sample, TraceRecord]]) -> Sequence[TraceSummary]:
    """One summary for each task type, by name, and that of all at the end."""
    by_type: defaultdict[str, TraceSummary] = defaultdict(TraceSummary)
    whole = TraceSummary()
    for sample, record in traced:
        of_type = by_type[sample.task_type]
        of_type.task_type = sample.task_type
        of_type.add(sample, record)
        whole.add(sample, record)
    return [*(by_type[name] for name in sorted(by_type)), whole]
