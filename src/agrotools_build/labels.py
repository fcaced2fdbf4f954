"""Labels of a folder: what people noted of its photographs, in a table or in the samples, asked about or not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agrotools.core import Arguments, FrozenModel, ReferenceStep, Sample
from agrotools.core.files import read_lines, write_whole
from agrotools.core.record import REF_PATTERN, literal_value
from agrotools.formats.benchmark import Benchmark
from agrotools_build.answer_origin import is_composed
from agrotools_build.composing.tolerance import EXACT_TOOLS
from agrotools_build.templates.thing import Subject, Thing

LABELS_FILE = "labels.jsonl"
_HINT = "build the folder again"


class NotedLabel(FrozenModel):
    """The result of a call as people noted it. ``files``: hash of each file that the call names."""

    tool: str
    arguments: Arguments
    files: Mapping[str, str]
    truth: dict[str, JsonValue]


def labels_of_subjects(subjects: Iterable[Subject]) -> list[NotedLabel]:
    """Return what is known of each thing of the subjects."""
    things: list[Thing] = [
        subject.shown(index, 1) for subject in subjects for index in range(subject.things)
    ]
    return [
        NotedLabel(
            tool=thing.tool,
            arguments=thing.arguments,
            files={file.name: str(file.sha256) for file in thing.files},
            truth=dict(thing.truth),
        )
        for thing in things
    ]


def labels_of_folder(benchmark: Benchmark) -> list[NotedLabel]:
    """Return all labels of a benchmark folder: those that its samples hold first, and then those beside them.

    Raises:
        RunStoreError: the file of labels cannot be read.
    """
    return [*labels_of_samples(benchmark.samples), *read_labels(benchmark.root)]


def labels_of_samples(samples: Iterable[Sample]) -> list[NotedLabel]:
    """Return what the samples know of the results of their calls by labels."""
    return [label for sample in samples if sample.answerable for label in _labels_of(sample)]


def _labels_of(sample: Sample) -> Iterator[NotedLabel]:
    """Yield the label of each call that looks at something, with a value that only the answer has."""
    steps = sample.reference.steps if sample.reference else ()
    truths = [labels_in(sample, step) for step in steps]
    _add_answers(sample, truths)
    for step, truth in zip(steps, truths, strict=True):
        if not truth or step.tool in EXACT_TOOLS:
            continue
        arguments = cast(Arguments, literal_value(dict(step.arguments)))
        given = [value for value in arguments.values() if isinstance(value, str)]
        files = {file.name: str(file.sha256) for file in sample.files if file.name in given}
        yield NotedLabel(tool=step.tool, arguments=arguments, files=files, truth=truth)


def _add_answers(sample: Sample, truths: Sequence[dict[str, JsonValue]]) -> None:
    """Add the value of each part of an answer that is a field of a result to what is known of this result.

    In a sample that was drafted, written or corrected, it may be what a tool returned.
    """
    if is_composed(sample):
        return
    for slot in sample.answer:
        place = REF_PATTERN.fullmatch((slot.from_ or "").strip())
        field = place["path"].lstrip(".") if place else ""
        value = getattr(slot, "value", None)
        if place and field.isidentifier() and value is not None:
            truths[int(place["step"])].setdefault(field, value)


def labels_in(sample: Sample, step: ReferenceStep) -> dict[str, JsonValue]:
    """Return the fields of a true result that are labels.

    A sample that was drafted or written has the whole result of the tool as its truth: what differs is a label.
    """
    truth = step.truth or {}
    if not is_composed(sample):
        return dict(truth)
    seen: Mapping[str, JsonValue] = (step.observation and step.observation.result) or {}
    return {name: value for name, value in truth.items() if seen.get(name) != value}


def write_labels(folder: Path, labels: Iterable[NotedLabel]) -> None:
    """Write the labels into a benchmark folder, equal ones once."""
    lines = dict.fromkeys(f"{label.model_dump_json()}\n" for label in labels)
    text = "".join(lines)
    write_whole(folder / LABELS_FILE, text.encode(), synced=False)


def read_labels(folder: Path) -> list[NotedLabel]:
    """Return the labels in a benchmark folder; none of one that was built otherwise.

    Raises:
        RunStoreError: the file cannot be read.
    """
    return read_lines(folder / LABELS_FILE, NotedLabel, _HINT)
