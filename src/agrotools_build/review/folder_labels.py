"""Labels of a folder: what its samples and its file of labels know of a call's result, beside what a tool returns."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import ReferenceStep, Sample, SampleFile
from agrotools_build.composing.tolerance import (
    EXACT_TOOLS,
    Root,
    roots_of,
    value_at,
    with_calculations,
)
from agrotools_build.drafting.material import Labels
from agrotools_build.labels import LABELS_FILE, NotedLabel, labels_in, labels_of_samples
from agrotools_build.references import without_artifacts

_FIELD = re.compile(r"[A-Za-z_]\w*")


class Label(NamedTuple):
    """Value that a field of a result has by a label. ``stands_in``: the sample, or the file of labels."""

    value: JsonValue
    stands_in: str


KnownLabels = Sequence[Mapping[str, Label]]
"""Labels of the fields of each step's result; empty if none are known of any."""


class FolderLabels:
    """Labels by file; those of a call have its tool, its files and boxes, and no other choice or text.

    ``noted``: those that stand beside the samples.
    """

    def __init__(self, samples: Iterable[Sample], noted: Iterable[NotedLabel] = ()) -> None:
        self._by_file: defaultdict[str, list[tuple[str, Labels]]] = defaultdict(list)
        for sample in samples:
            labels = Labels(labels_of_samples([sample]))
            for file in sample.files:
                self._by_file[str(file.sha256)].append((sample.id, labels))
        self._noted = Labels(noted)

    def of(self, step: ReferenceStep, files: Sequence[SampleFile]) -> dict[str, Label]:
        """Return the labels of the fields of a call's result; of several, that of the first sample."""
        found: dict[str, Label] = {}
        if step.tool in EXACT_TOOLS:
            return found
        for file in files:
            for sample_id, labels in self._by_file.get(str(file.sha256), ()):
                for name, value in (labels.truth_of(step, files) or {}).items():
                    found.setdefault(name, Label(value, sample_id))
        for name, value in (self._noted.truth_of(step, files) or {}).items():
            found.setdefault(name, Label(value, LABELS_FILE))
        return found


def known_labels(
    steps: Sequence[ReferenceStep],
    files: Sequence[SampleFile],
    folder: FolderLabels,
    base: Sample | None,
) -> KnownLabels:
    """Return the labels of each step: those of the sample that is corrected, and then those of others."""
    known: list[dict[str, Label]] = []
    for step in steps:
        own = labels_in(base, step) if base and step.truth else {}
        of_sample = {name: Label(value, base.id) for name, value in own.items()} if base else {}
        known.append({**folder.of(step, files), **of_sample})
    return known


def roots_with_label(
    expression: str, steps: Sequence[ReferenceStep], labels: KnownLabels
) -> list[Root]:
    """Return the measured values that an expression rests on and that the folder has a label of."""
    return [root for root in roots_of(expression, steps) if _label_of(root, labels) is not None]


def roots_without_label(
    expression: str, steps: Sequence[ReferenceStep], labels: KnownLabels
) -> list[Root]:
    """Return the measured values that an expression rests on and that the steps do not have from a label."""
    found: list[Root] = []
    for root in roots_of(expression, steps):
        label = _label_of(root, labels)
        truth = steps[root.step].truth or {}
        field = _field_of(root)
        if label is None or truth.get(field) != label.value:
            found.append(root)
    return found


def labelled_steps(
    steps: Sequence[ReferenceStep], labels: KnownLabels, chosen: Collection[int]
) -> list[ReferenceStep]:
    """Return the steps, of which the chosen ones have their labels as truth, and calculations follow.

    CannotCompose: a calculation has no value by the labels.
    """
    labelled = [*steps]
    touched: set[int] = set()
    for number in chosen:
        step, values = steps[number], {name: each.value for name, each in labels[number].items()}
        truth = step.truth or {}
        if step.observation is None or all(
            truth.get(name) == value for name, value in values.items()
        ):
            continue
        seen = without_artifacts(step.observation.result or {}, step.observation)
        labelled[number] = step.model_copy(update={"truth": {**seen, **truth, **values}})
        touched.add(number)
    return with_calculations(labelled, touched)


def label_texts(roots: Sequence[Root], labels: KnownLabels) -> str:
    """Return what labels say of measured values, and in which sample."""
    texts: list[str] = []
    for root in roots:
        label = _label_of(root, labels)
        if label is not None:
            value = value_at(root.path, {_field_of(root): label.value})
            texts.append(f"the label in {label.stands_in} says {value} for {root.path}")
    return "; ".join(dict.fromkeys(texts))


def _field_of(root: Root) -> str:
    found = _FIELD.match(root.path)
    return found[0] if found else ""


def _label_of(root: Root, labels: KnownLabels) -> Label | None:
    known = labels[root.step] if root.step < len(labels) else {}
    label = known.get(_field_of(root))
    if label is None or value_at(root.path, {_field_of(root): label.value}) is None:
        return None
    return label
