"""Labels of a folder: what its samples know of the result of a call on their files, beside what a tool returns."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from agrotools.core import ReferenceStep, Sample, SampleFile
from agrotools.core.record import REF_PATTERN
from agrotools.text.expression_functions import ExpressionError
from agrotools_build.answer_origin import is_composed
from agrotools_build.composing import CannotCompose
from agrotools_build.composing.tolerance import EXACT_TOOLS, Root, recalculated, roots_of, value_at
from agrotools_build.drafting.material import Labels
from agrotools_build.references import steps_used, without_artifacts

_FIELD = re.compile(r"[A-Za-z_]\w*")


class Label(NamedTuple):
    """Value that a field of a result has by a label, and the sample that has it."""

    value: JsonValue
    sample: str


KnownLabels = Sequence[Mapping[str, Label]]
"""Labels of the fields of each step's result; empty if none are known of any."""


class FolderLabels:
    """Labels by file; those of a call have its tool, its files and boxes, and no other choice or text."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._by_file: defaultdict[str, list[tuple[str, Labels]]] = defaultdict(list)
        for sample in samples:
            labels = Labels([_with_labels_alone(sample)])
            for file in sample.files:
                self._by_file[str(file.sha256)].append((sample.id, labels))

    def of(self, step: ReferenceStep, files: Sequence[SampleFile]) -> dict[str, Label]:
        """Return the labels of the fields of a call's result; of several samples, that of the first."""
        found: dict[str, Label] = {}
        if step.tool in EXACT_TOOLS:
            return found
        for file in files:
            for sample_id, labels in self._by_file.get(str(file.sha256), ()):
                for name, value in (labels.truth_of(step, files) or {}).items():
                    found.setdefault(name, Label(value, sample_id))
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
    try:
        results = recalculated(labelled, {})
    except (ValueError, ExpressionError) as error:
        why = f"the steps cannot be calculated from what labels say: {error}"
        raise CannotCompose("no_value", why, hint="take the result of the tool") from error
    for number, step in enumerate(steps):
        result = results[number]
        follows = step.tool in EXACT_TOOLS and steps_used(step.arguments) & touched
        if follows and step.observation is not None and result is not None:
            truth = without_artifacts(result, step.observation)
            labelled[number] = step.model_copy(update={"truth": truth})
            touched.add(number)
    return labelled


def label_texts(roots: Sequence[Root], labels: KnownLabels) -> str:
    """Return what labels say of measured values, and in which sample."""
    texts: list[str] = []
    for root in roots:
        label = _label_of(root, labels)
        if label is not None:
            value = value_at(root.path, {_field_of(root): label.value})
            texts.append(f"the label in {label.sample} says {value} for {root.path}")
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


def labels_in(sample: Sample, step: ReferenceStep) -> dict[str, JsonValue]:
    """Return the fields of a true result that are labels.

    A sample that was drafted or written has the whole result of the tool as its truth: what differs is a label.
    """
    truth = step.truth or {}
    if not is_composed(sample):
        return dict(truth)
    seen: Mapping[str, JsonValue] = (step.observation and step.observation.result) or {}
    return {name: value for name, value in truth.items() if seen.get(name) != value}


def _with_labels_alone(sample: Sample) -> Sample:
    """Return a sample whose true results hold labels alone, with those that only its answer has."""
    if sample.reference is None:
        return sample
    steps = sample.reference.steps
    known = [labels_in(sample, step) for step in steps]
    for slot in () if is_composed(sample) else sample.answer:
        place = REF_PATTERN.fullmatch((slot.from_ or "").strip())
        field = place["path"].lstrip(".") if place else ""
        value = getattr(slot, "value", None)
        if place and field.isidentifier() and value is not None:
            known[int(place["step"])].setdefault(field, value)
    labelled = tuple(
        step.model_copy(update={"truth": truth or None})
        for step, truth in zip(steps, known, strict=True)
    )
    reference = sample.reference.model_copy(update={"steps": labelled})
    return sample.model_copy(update={"reference": reference})
