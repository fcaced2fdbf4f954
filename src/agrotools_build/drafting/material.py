"""Pictures to draft from, with what people noted of them, as the questions of a benchmark folder have it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import sha256
from typing import Any, cast

from pydantic import JsonValue

from agrotools.core import (
    Arguments,
    ExactSlot,
    ReferenceStep,
    Sample,
    SampleFile,
    Slot,
)
from agrotools.core.record import REF_PATTERN, literal_value
from agrotools_build.composing.tolerance import EXACT_TOOLS, agreement_of
from agrotools_build.labels import NotedLabel

_NOT_ASKED = ("open_text", "plot", "abstain")
"""Slots that no draft asks for: a model cannot write key facts, and a chart has no label."""
_FORMS = {"boolean": "yes_no", "file": "file"}
"""Form of an answer by the type of its slot; others are numbers, or names of choices."""


@dataclass(frozen=True)
class Noted:
    """Something that people noted of files, as a question can ask for it: where a tool gives it, and its choices.

    ``arguments``: of the call that gives it; ``files``: those it names, with their hashes. ``form``: of its answer,
    as the prompt names it.
    """

    quantity: str
    tool: str
    path: str
    form: str
    arguments: Arguments = field(hash=False)
    files: tuple[tuple[str, str], ...]
    unit: str | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Other names of some of the choices."""


@dataclass(frozen=True)
class PictureGroup:
    """Files that questions may show together, and what their samples say of them."""

    files: tuple[SampleFile, ...]
    family: str
    task_type: str
    source: str
    cluster: str | None
    groups: Mapping[str, str]
    noted: tuple[Noted, ...]

    @property
    def key(self) -> str:
        """Text that tells these files from others."""
        return " ".join(str(file.sha256) for file in self.files)


def pictures_of(samples: Sequence[Sample]) -> list[PictureGroup]:
    """Return the sets of files that answerable samples show, those of each task type in turn.

    The order follows from the content of the files alone.
    """
    by_files: defaultdict[tuple[str, ...], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.answerable and sample.files:
            by_files[tuple(str(file.sha256) for file in sample.files)].append(sample)
    noted = _noted_by_file(samples)
    by_task: defaultdict[str, list[PictureGroup]] = defaultdict(list)
    for digests, shown in by_files.items():
        first = shown[0]
        known = dict.fromkeys(each for digest in digests for each in noted[digest])
        by_task[first.task_type].append(
            PictureGroup(
                files=first.files,
                family=first.family,
                task_type=first.task_type,
                source=first.source,
                cluster=first.cluster,
                groups={
                    name: text for name, text in first.groups.items() if name != "unanswerable"
                },
                noted=tuple(_of_equal_place(known)),
            )
        )
    for members in by_task.values():
        members.sort(key=lambda each: sha256(each.key.encode()).digest())
    turns = max(map(len, by_task.values()), default=0)
    return [
        members[turn]
        for turn in range(turns)
        for members in by_task.values()
        if turn < len(members)
    ]


def _of_equal_place(noted: Iterable[Noted]) -> Iterable[Noted]:
    """Return what was noted once for each place in a result, with the most choices."""
    best: dict[tuple[str, str], Noted] = {}
    for each in noted:
        place = each.tool, each.path
        if place not in best or len(each.choices) > len(best[place].choices):
            best[place] = each
    return best.values()


def _noted_by_file(samples: Iterable[Sample]) -> defaultdict[str, list[Noted]]:
    """Return what people noted of each file, by its hash: slots whose value stands in the true result of one step."""
    noted: defaultdict[str, list[Noted]] = defaultdict(list)
    for sample in samples:
        steps = sample.reference.steps if sample.reference else ()
        for slot in sample.answer:
            if slot.from_ is None or slot.type in _NOT_ASKED:
                continue
            is_name = isinstance(slot, ExactSlot) and isinstance(slot.value, str)
            if not is_name and not REF_PATTERN.fullmatch(slot.from_):
                continue  # A limit or a comparison is a question, and no quantity that was noted.
            for match in REF_PATTERN.finditer(slot.from_):
                step = steps[int(match["step"])]
                if step.tool in EXACT_TOOLS or step.truth is None:
                    continue
                files = _files_of(step, sample.files)
                each = _noted(slot, step, match["path"].lstrip("."), files)
                for file in files:
                    noted[str(file.sha256)].append(each)
    return noted


def _noted(slot: Slot, step: ReferenceStep, path: str, files: Sequence[SampleFile]) -> Noted:
    choices: tuple[str, ...] = ()
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()
    form = _FORMS.get(slot.type, "number")
    if isinstance(slot, ExactSlot) and isinstance(slot.value, str):
        form = "name"
        # Sorted, so that the order tells nothing of the right one.
        choices, aliases = tuple(sorted(slot.choices)), tuple(sorted(slot.aliases.items()))
    unit = getattr(slot, "unit", None)
    return Noted(
        quantity=slot.label,
        tool=step.tool,
        path=path,
        form=form,
        arguments=dict(step.arguments),
        files=tuple(_digests(files).items()),
        unit=unit,
        choices=choices,
        aliases=aliases,
    )


def _files_of(step: ReferenceStep, files: Sequence[SampleFile]) -> list[SampleFile]:
    values = [value for value in step.arguments.values() if isinstance(value, str)]
    return [file for file in files if file.name in values]


class Labels:
    """What labels say of the results of calls, by tool and files."""

    def __init__(self, noted: Iterable[NotedLabel]) -> None:
        self._known: defaultdict[tuple[str, tuple[tuple[str, str], ...]], list[_Known]]
        self._known = defaultdict(list)
        for label in noted:
            place, others = _placed(label.tool, label.arguments, label.files)
            self._known[label.tool, place].append(_Known(others, label.truth))

    def truth_of(
        self, step: ReferenceStep, files: Sequence[SampleFile]
    ) -> dict[str, JsonValue] | None:
        """Return what people noted of the thing that a step measures; None if nobody did.

        Other arguments that both calls give must be equal: the target of a count, the crop of a leaf. Two columns may
        have noted two values of one result; of one value, the first counts.
        """
        place, others = _placed(step.tool, step.arguments, _digests(files))
        found: list[JsonValue] = [
            dict(known.truth)
            for known in self._known.get((step.tool, place), ())
            if _are_chosen_alike(others, known.others)
        ]
        return cast("dict[str, JsonValue]", reduce(_joined, found)) if found else None


def _joined(first: JsonValue, second: JsonValue) -> JsonValue:
    """Return a result with what another one has beside it; of values at one place, the first stays."""
    if isinstance(first, dict) and isinstance(second, dict):
        both = {key: _joined(first[key], second[key]) for key in first.keys() & second.keys()}
        return {**second, **first, **both}
    if isinstance(first, list) and isinstance(second, list):
        both = [_joined(one, other) for one, other in zip(first, second, strict=False)]
        return [*both, *first[len(both) :], *second[len(both) :]]
    return first


@dataclass(frozen=True)
class _Known:
    others: Mapping[str, str]
    truth: Mapping[str, JsonValue]


def _digests(files: Iterable[SampleFile]) -> dict[str, str]:
    return {file.name: str(file.sha256) for file in files}


def looks_at_same(tool: str, one: Arguments, other: Arguments, files: Sequence[SampleFile]) -> bool:
    """Return True if two calls of a tool look at the same thing, so that a label of one is a label of the other.

    They name the same files, and both or neither have a box, which may have been drawn more closely. Other choices
    that both give are equal.
    """
    digests = _digests(files)
    (place, choices), (other_place, other_choices) = (
        _placed(tool, arguments, digests) for arguments in (one, other)
    )
    boxes = {name for name, kind in agreement_of(tool).items() if kind == "box"}
    names, other_names = dict(place), dict(other_place)
    is_same_place = names.keys() == other_names.keys() and all(
        value == other_names[name] for name, value in place if name not in boxes
    )
    return is_same_place and _are_chosen_alike(choices, other_choices)


def _are_chosen_alike(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return True if the arguments that both calls give are equal: the target of a count, the crop of a leaf."""
    return all(other.get(name, value) == value for name, value in one.items())


def _placed(
    tool: str, arguments: Mapping[str, Any], digests: Mapping[str, str]
) -> tuple[tuple[tuple[str, str], ...], dict[str, str]]:
    """Return what a call looks at (files by their hash, and boxes), and its other arguments as text."""
    place: dict[str, str] = {}
    others: dict[str, str] = {}
    kinds = agreement_of(tool)
    for name, value in cast(Arguments, literal_value(dict(arguments))).items():
        if value is None:
            continue
        text = str(value).casefold()
        if isinstance(value, str) and value in digests:
            place[name] = digests[value]
        elif kinds.get(name) == "box":
            place[name] = text
        elif kinds.get(name) in ("choice", "text"):
            others[name] = text
    return tuple(sorted(place.items())), others
