"""Reference chains filled in by a model: it gets the order of the tools and supplies thoughts and arguments.

The chain of the template remains the gold. A model's chain that runs and agrees with the gold confirms it; one that
does not agree is left for people to inspect. Both are stored in ``traces.jsonl`` of the benchmark folder, one JSON
object per line:

``id``
    sample id. If several lines have the same ``id`` and ``model``, the last one counts.
``model``
    model as spelled on the command line.
``asked``
    hash of the model's input: prompts, question, files, order of tools, gold arguments. A trace is out of date if its
    hash differs from that of its sample.
``steps``
    the model's steps, one per tool of the order, up to the end of the chain:

    - ``tool``: the declared tool;
    - ``reference_step``: index (from 0) of the step of the template's chain that it is compared with. Members of a
      group may come in any order, so this is the member whose arguments agree best;
    - ``thought``, ``arguments`` (as given by the model; null if unreadable), ``observation`` (of the real tool:
      ``result`` or ``error``, and ``artifacts``; null if nothing was run);
    - ``agrees``: true or false for each argument, compared with the reference as in ``agrotools.arg_acc``. Values that
      the reference takes from earlier steps (``$ref``) are taken from the results of the model's own calls;
    - ``agreed``: true if all arguments agree and pass the tool's schema;
    - ``reason``: description of differences or failures; empty if all agrees;
    - ``tries``: number of attempts (2 if the first output was unusable or the call failed).
``answer``
    the model's final answer, or null.
``answer_agrees``
    true if the answer follows from the model's own observations; null if that is unknown (a figure, free text, an
    incomplete chain).
``answer_slots``
    score of each slot except figures, by name.
``complete``
    true if every declared tool was called, every call ran without error, and an answer was given.
``left_open``
    values that the template's chain takes from earlier steps but the real tools did not return (null, or an error), so
    that no model could continue from there; written as in the reference, e.g. ``steps[0].observation.weed_pct``.
``reason``
    reason why the chain ended early; empty if it did not.
"""

import hashlib
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
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
    """One call of a model's chain and its reference; fields as in the module docstring."""

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
    """A model's chain for one sample; fields as in the module docstring."""

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
        """True if the chain is complete, all arguments agree, and the answer agrees or cannot be compared."""
        return self.complete and all(step.agreed for step in self.steps) and self.answer_agrees is not False


def input_hash(sample: Sample) -> str:
    """Return a hash of everything except the model that a trace of ``sample`` depends on, 16 hexadecimal digits.

    Thoughts of the reference are excluded because they may be filled in from traces.
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
    """Return the last trace of each sample by each model."""
    return {(trace.id, trace.model): trace for trace in traces}


def read_traces(folder: Path) -> dict[tuple[str, str], TraceRecord]:
    """Read the traces of a folder by sample id and model, without an incomplete last line; RunStoreError if invalid."""
    return by_sample_and_model(read_lines(folder / TRACES_FILE, TraceRecord, _HINT))


def trace_file(folder: Path) -> LineFile[TraceRecord]:
    """Open ``traces.jsonl`` of a folder for appending; RunStoreError if it is not accessible or has an invalid line."""
    return LineFile(folder / TRACES_FILE, TraceRecord, _HINT)


@contextmanager
def kept_traces(folder: Path) -> Generator[None]:
    """Preserve ``traces.jsonl`` of a benchmark that the block rebuilds, even if killed; OSError if that fails."""
    aside = folder.parent / f".{folder.name}-{TRACES_FILE}"
    if (folder / TRACES_FILE).is_file():
        copy_whole(folder / TRACES_FILE, aside)
    yield
    if aside.is_file() and folder.is_dir():
        aside.replace(folder / TRACES_FILE)


@dataclass
class TraceSummary:
    """Counts over the chains of one task type, or of all (``task_type`` is then empty).

    ``steps`` counts the steps of the templates' chains; a step that a chain did not reach does not agree.
    """

    task_type: str = ""
    chains: int = 0
    complete: int = 0
    confirmed: int = 0
    """Number of chains that are complete, and whose arguments and answer agree (if the answer can be compared)."""
    left_open: int = 0
    """Number of chains in which the real tools did not return a value that a later step needs."""
    steps: int = 0
    steps_agreed: int = 0
    answers: int = 0
    """Number of chains whose answer can be compared."""
    answers_agreed: int = 0

    def add(self, sample: Sample, record: TraceRecord) -> None:
        """Add one chain to the counts."""
        self.chains += 1
        self.complete += record.complete
        self.confirmed += record.confirms
        self.left_open += bool(record.left_open)
        self.steps += len(sample.reference.steps) if sample.reference else 0
        self.steps_agreed += sum(step.agreed for step in record.steps)
        self.answers += record.answer_agrees is not None
        self.answers_agreed += record.answer_agrees is True


def summary_of(traced: Iterable[tuple[Sample, TraceRecord]]) -> Sequence[TraceSummary]:
    """Return one summary for each task type, sorted by name, followed by that of all chains."""
    by_type: defaultdict[str, TraceSummary] = defaultdict(TraceSummary)
    whole = TraceSummary()
    for sample, record in traced:
        of_type = by_type[sample.task_type]
        of_type.task_type = sample.task_type
        of_type.add(sample, record)
        whole.add(sample, record)
    return [*(by_type[name] for name in sorted(by_type)), whole]
