"""Automatic checks of a benchmark's quality: findings for a person to inspect.

``agrotools benchmarks check`` finds errors; these checks find valid samples of little value: near-duplicate pictures,
answers that something beside the pixels tells (:mod:`agrotools_build.cues`), numbers that can be guessed. Nothing is
dropped: each finding names a sample, a check, a severity and a message. How many answers can be guessed, every run says
beside its scores.

The rule "no other sequence of tool *names* gives the answer" (``order_not_unique``) is checked as follows:

* Calls of one group count as one call: they apply one tool to several things, in any order.
* A call *uses* another if an argument refers to its result (``$ref``); the answer uses the calls that the ``from`` of a
  slot refers to. Every call must be used by a later call or by the answer.
* A sequence is a subset of the reference calls in an order in which each comes after all that it uses. It *gives the
  answer* if every slot follows from the true results of its calls. A slot follows if all results that its ``from``
  refers to are included; or if one of the results already contains its value unchanged, as a label or with at least
  four significant digits (unless other labels of its set also occur); or, for open text, if each key fact is stated in
  one of the results. If no result of the whole chain states a fact, the last call is assumed to be needed.
* All sequences with at most as many calls as the reference are tried, of no other tools, whose true results are
  unknown. The order is unique if all that give the answer have the tool names of the reference, in its order.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.core import (
    BenchmarkError,
    ExactSlot,
    FrozenModel,
    OpenTextSlot,
    ReferenceTrajectory,
    Sample,
    Slot,
    ToleranceSlot,
    ToolError,
)
from agrotools.core.files import write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import QUALITY_FILE
from agrotools.loading import load_folder
from agrotools.loading.easy import easy_answers
from agrotools.loading.leaks import named_means, normalise_words, revealed_answer
from agrotools.scoring.open_text import states_fact
from agrotools.text.agreement_values import as_number
from agrotools.vision.reading import read_image
from agrotools_build.cues import CHANNELS, file_facts, find_cues
from agrotools_build.references import steps_in, steps_used

MOST_UNITS = 12
"""Maximum length of a chain that is searched (a group counts as one call)."""


def order_faults(sample: Sample) -> list[str]:
    """Return why the sample's order of tools is not unique, with the shortest other sequence that gives the answer."""
    reference = sample.reference
    if reference is None or not reference.steps:
        return []
    faults = [
        f"nothing uses the result of step {index + 1} ({reference.steps[index].tool})"
        for index in idle_steps(sample)
    ]
    declared = tuple(reference.steps[unit[0]].tool for unit in units_of(reference))
    if len(declared) > MOST_UNITS:
        return [*faults, f"{len(reference.steps)} steps are too many to try all orders"]
    others = [names for names in sequences_that_answer(sample) if names != declared]
    if others:
        other = min(others, key=lambda names: (len(names), names))
        other_order = " -> ".join(other) or "no call at all"
        faults.append(f"{other_order} gives the answer as well as {' -> '.join(declared)}")
    return faults


def idle_steps(sample: Sample) -> list[int]:
    """Return the steps whose result neither the answer nor a later step uses."""
    assert sample.reference is not None
    steps = sample.reference.steps
    needed = [
        steps_in(slot.from_) if slot.from_ and slot.type != "open_text" else {len(steps) - 1}
        for slot in sample.answer
    ]
    used = set[int]().union(*needed, *(steps_used(step.arguments) for step in steps))
    return [index for index in range(len(steps)) if index not in used]


def sequences_that_answer(sample: Sample) -> set[tuple[str, ...]]:
    """Return the tool names (one per group) of every sequence of reference calls that gives the answer."""
    assert sample.reference is not None
    reference = sample.reference
    units = units_of(reference)
    unit_of = {step: number for number, unit in enumerate(units) for step in unit}
    before = [
        {unit_of[used] for step in unit for used in steps_used(reference.steps[step].arguments)}
        for unit in units
    ]
    sequences: set[tuple[str, ...]] = set()
    open_ends: list[tuple[frozenset[int], tuple[str, ...]]] = [(frozenset(), ())]
    seen = {*open_ends}
    while open_ends:
        executed, names = open_ends.pop()
        executed_steps = frozenset(step for unit in executed for step in units[unit])
        if all(_follows(slot, sample, executed_steps) for slot in sample.answer):
            sequences.add(names)
            continue  # Further calls add nothing to the answer.
        for number, unit in enumerate(units):
            longer = executed | {number}, (*names, reference.steps[unit[0]].tool)
            if number not in executed and before[number] <= executed and longer not in seen:
                seen.add(longer)
                open_ends.append(longer)
    return sequences


def units_of(reference: ReferenceTrajectory) -> list[list[int]]:
    """Return the steps in order, with those of a group, which may swap, in one list."""
    units: dict[tuple[str, int], list[int]] = {}
    for index, step in enumerate(reference.steps):
        units.setdefault(
            ("step", index) if step.group is None else ("group", step.group), []
        ).append(index)
    return list(units.values())


def _follows(slot: Slot, sample: Sample, made: frozenset[int]) -> bool:
    """True if the value of ``slot`` follows from the true results of the steps ``made``."""
    assert sample.reference is not None
    steps = sample.reference.steps
    results = [steps[index].truth for index in sorted(made)]
    if isinstance(slot, OpenTextSlot):
        stated = _facts_stated(slot, [step.truth for step in steps])
        return _facts_stated(slot, results) >= stated if stated else len(steps) - 1 in made
    if slot.from_ is None:
        return len(steps) - 1 in made
    return steps_in(slot.from_) <= made or stands_there(slot, list(leaves([*results])))


def _facts_stated(slot: OpenTextSlot, results: Sequence[dict[str, JsonValue] | None]) -> set[int]:
    texts = [text for text in leaves([*results]) if isinstance(text, str)]
    return {
        number
        for number, fact in enumerate(slot.facts)
        if any(states_fact(fact, text) for text in texts)
    }


def stands_there(slot: Slot, values: Sequence[JsonValue]) -> bool:
    """Return True if the value of ``slot`` is one of ``values`` and no wrong label is."""
    if isinstance(slot, ExactSlot):
        texts = {value.casefold() for value in values if isinstance(value, str)}
        wrong = (
            name for other in slot.distractors for name in (other, *slot.aliases.get(other, ()))
        )
        # If results contain several labels of the set, they do not determine the answer.
        value = slot.value.casefold() if isinstance(slot.value, str) else None
        return value in texts and not any(name.casefold() in texts for name in wrong)
    if not isinstance(slot, ToleranceSlot):
        return False
    numbers = [value for value in map(as_number, values) if value is not None]
    near = (value for value in numbers if abs(value - slot.value) <= 1e-6 * abs(slot.value))
    # Short numbers (counts, round shares) may be equal by chance.
    return any(len(f"{abs(value):.12g}".replace(".", "").lstrip("0")) >= 4 for value in near)


def leaves(value: JsonValue) -> Iterator[JsonValue]:
    """Yield all values in lists and objects that are neither."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(FrozenModel):
    """Finding about sample ``id``; ``severity``: ``error`` (fix before use), ``warning`` (inspect) or ``info``."""

    id: str
    check: str
    severity: Severity
    message: str


def write_findings(folder: Path, findings: Iterable[Finding]) -> Path:
    """Write ``quality.jsonl`` into a folder atomically; BenchmarkError if it is not writable."""
    path = folder / QUALITY_FILE
    text = "".join(f"{finding.model_dump_json()}\n" for finding in findings)
    try:
        write_whole(path, text.encode())
    except OSError as error:
        hint = "copy the benchmark to a folder that can be written"
        raise BenchmarkError(f"{path} cannot be written: {error.strerror}", hint=hint) from error
    return path


_HASHED_SIDE, _COMPARED_SIDE = 32, 12
MOST_BITS = 22
"""Largest number of differing bits (of 63) for similar pictures; unrelated pictures differ in about 31."""
LEAST_CORRELATION = 0.92
_ROWS = 2048


@dataclass(frozen=True, eq=False)
class PictureFeatures:
    """Features of a picture for comparison.

    ``hashes``: uint64 (2,), of the picture and of its mirror image. ``thumbnails``: float32 (2, 432), of both, with
    mean 0 and length 1. They are undefined for a picture of a single colour.
    """

    hashes: NDArray[np.uint64]
    thumbnails: NDArray[np.float32]


def picture_features(pixels: NDArray[np.uint8]) -> PictureFeatures | None:
    """Return the features of a picture, uint8 (rows, columns, 3); None if it has a single colour."""
    small = cv2.resize(pixels, (_HASHED_SIDE, _HASHED_SIDE), interpolation=cv2.INTER_AREA).astype(
        np.float32
    )
    if small.std() < 1.0:
        return None
    smaller = cv2.resize(small, (_COMPARED_SIDE, _COMPARED_SIDE), interpolation=cv2.INTER_AREA)
    thumbnails = np.stack([smaller, smaller[:, ::-1]]).reshape(2, -1) - smaller.mean()
    thumbnails /= np.maximum(np.linalg.norm(thumbnails, axis=1, keepdims=True), 1e-6)
    hashes = np.array([_hash(view.mean(axis=2)) for view in (small, small[:, ::-1])], np.uint64)
    return PictureFeatures(hashes, thumbnails.astype(np.float32))


def _hash(grey: NDArray[np.float32]) -> int:
    from scipy.fft import dctn  # the review page imports this module and hashes nothing

    low = np.asarray(dctn(grey, norm="ortho"))[:8, :8].ravel()[1:]
    return int("".join("1" if value > np.median(low) else "0" for value in low), 2)


def near_pairs(features: Sequence[PictureFeatures]) -> Iterator[tuple[int, int, float]]:
    """Yield index pairs (first < second) of nearly identical pictures, with the correlation of their thumbnails."""
    if len(features) < 2:
        return
    hashes = np.stack([each.hashes for each in features])
    for start in range(0, len(features), _ROWS):
        # Compare the first picture with both views of the second, plain and mirrored.
        differ = np.bitwise_count(hashes[start : start + _ROWS, None, :1] ^ hashes[None, :, :]).min(
            axis=2
        )
        for row, second in zip(*np.nonzero(differ <= MOST_BITS), strict=True):
            first = start + int(row)
            if first < second:
                alike = float((features[second].thumbnails @ features[first].thumbnails[0]).max())
                if alike >= LEAST_CORRELATION:
                    yield first, int(second), alike


CONSTANT = "constant_answer"
"""Check of what one answer to all questions of a template gets right."""
CHECKS = {
    "near_duplicate": "pictures of two unrelated samples are nearly the same",
    "not_implicit": "the question names a tool, an argument or a step",
    "answer_in_query": "the question says its answer",
    "answer_in_note": "the note of a file says the answer",
    "answer_in_metadata": "the metadata of a picture say the answer",
    "answer_in_label": "the answer form says the answer",
    "order_not_unique": "another sequence of tools gives the answer too",
    CONSTANT: "the same answer to all questions of a kind is right too often",
    **{f"answer_from_{name}": f"{what} tell answers" for name, what in CHANNELS.items()},
}
"""Descriptions of the checks."""
OF_GROUPS = {CONSTANT, *(f"answer_from_{name}" for name in CHANNELS)}
"""Checks whose findings are about a group of questions; each stands at the first of them."""


def check_quality(folder: Path, progress: Progress = no_progress) -> list[Finding]:
    """Run every check on the benchmark in ``folder`` and write the findings to its ``quality.jsonl``.

    BenchmarkError if it is none, or not writable.
    """
    benchmark = load_folder(folder)
    samples, root = list(benchmark.samples), benchmark.root
    findings = [*check_near_duplicates(samples, root, progress), *check_implicit(samples)]
    findings += [*check_revealed(samples, root), *check_cues(samples, root)]
    for each, fault in ((sample, fault) for sample in samples for fault in order_faults(sample)):
        findings.append(
            Finding(id=each.id, check="order_not_unique", severity="warning", message=fault)
        )
    for easy in easy_answers(samples):
        message = easy.sentence()
        findings.append(
            Finding(id=easy.example, check=CONSTANT, severity="warning", message=message)
        )
    order = {sample.id: position for position, sample in enumerate(samples)}
    findings.sort(key=lambda finding: order[finding.id])
    write_findings(root, findings)
    return findings


def check_near_duplicates(
    samples: Sequence[Sample], root: Path, progress: Progress = no_progress
) -> Iterator[Finding]:
    """Check ``near_duplicate``: nearly the same picture in samples of two clusters, which count as independent."""
    by_path: dict[str, list[Sample]] = {}
    for sample in samples:
        for file in sample.files:
            if file.kind in ("image", "raster"):
                by_path.setdefault(file.path, []).append(sample)
    paths: list[str] = []
    features: list[PictureFeatures] = []
    for number, path in enumerate(by_path, start=1):
        with suppress(ToolError):  # it is unreadable
            if picture := picture_features(
                np.asarray(read_image(root / path, may_be_blank=True).pixels)
            ):
                paths.append(path)
                features.append(picture)
        progress("pictures compared", number, len(by_path))
    for first, second, alike in near_pairs(features):
        pair = paths[first], paths[second]
        one, two = (by_path[path][0] for path in pair)
        if one.cluster == two.cluster and one.cluster is not None:
            continue
        of_one, of_two = (
            next(file.name for file in by_path[path][0].files if file.path == path) for path in pair
        )
        for sample, name, other, its in ((one, of_one, two, of_two), (two, of_two, one, of_one)):
            message = f"{name} looks like {its} of {other.id} (correlation {alike:.3f})"
            yield Finding(id=sample.id, check="near_duplicate", severity="warning", message=message)


def check_implicit(samples: Iterable[Sample]) -> Iterator[Finding]:
    """Check ``not_implicit``: the question names a tool, an argument or a step."""
    for sample in samples:
        for kind, named in islice(named_means(sample.query, sample.toolset), 1):
            what = f"a step or a method: {named!r}" if kind == "steps" else f"the {kind} {named}"
            message = f"the question names {what}"
            yield Finding(id=sample.id, check="not_implicit", severity="error", message=message)


def check_revealed(samples: Iterable[Sample], root: Path) -> Iterator[Finding]:
    """Check ``answer_in_...``: a text beside the pictures holds the answer itself."""
    for sample in samples:
        texts = [("answer_in_query", "the question", sample.query)]
        for file in sample.files:
            metadata = file_facts(root / file.path).words
            texts.append(("answer_in_note", f"the note on {file.name}", file.note or ""))
            texts.append(("answer_in_metadata", f"the metadata of {file.name}", metadata))
        for slot in sample.answer:
            label = f"{slot.label} {normalise_words(slot.name)}"
            for check, where, text in (*texts, ("answer_in_label", "the answer form", label)):
                revealed = revealed_answer(slot, text)
                if revealed:
                    message = f"{where} holds {revealed!r}, (part of) the answer {slot.name!r}"
                    yield Finding(id=sample.id, check=check, severity="error", message=message)


def check_cues(samples: Sequence[Sample], root: Path) -> Iterator[Finding]:
    """Check ``answer_from_...``: something beside the pixels tells the answer on other clusters."""
    for cue in find_cues(samples, root):
        yield Finding(
            id=cue.example,
            check=f"answer_from_{cue.channel}",
            severity="warning",
            message=cue.sentence(),
        )
