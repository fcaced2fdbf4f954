"""Plans of the baseline ``planner``: reference calls of a sample, adapted to the question and files of another."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from agrotools.core import Arguments, ReferenceStep, Sample, SampleFile, ToolSpec
from agrotools.core.form_item import FormItem, form_item
from agrotools.core.slot import asked_slots
from agrotools.tools import get_tool


@dataclass(frozen=True)
class PlannedSlot:
    """A slot of the donor sample without its gold, and the expression over the steps that yields its value."""

    slot: FormItem
    from_: str


@dataclass(frozen=True)
class Plan:
    """Steps to take (tools, and arguments with references between them), and the derivation of the answer from them."""

    donor: str
    """Id of the sample that the plan comes from."""
    steps: tuple[ReferenceStep, ...]
    slots: tuple[PlannedSlot, ...]


Vocabulary = Mapping[str, Sequence[JsonValue]]
"""Values of arguments that are texts or tables, by name of the argument."""


def adapted_plan(donor: Sample, sample: Sample, vocabulary: Vocabulary | None = None) -> Plan:
    """Return the reference trajectory of ``donor``, adapted to the question and the files of ``sample``.

    Files are matched by kind and by the order in which the questions name them, else by position (extra donor files to
    the last candidate). An optional file argument is omitted if ``sample`` has no file of that kind. An argument that
    the donor's question or a note on its files states (a number, a box, a word of ``vocabulary``) takes the value that
    the other question states at the same place. All other arguments are copied. Observations and truth are dropped.
    """
    assert donor.reference is not None
    files = _counterparts(_in_order(donor), _in_order(sample))
    steps: list[ReferenceStep] = []
    for step in donor.reference.steps:
        spec = get_tool(step.tool, donor.declared).spec
        shown = [file for file in donor.files if file.name in step.arguments.values()]
        counterparts = [files[file.name] for file in shown if file.name in files]
        exchange = _Exchange(_Statements(donor, shown), _Statements(sample, counterparts), vocabulary or {})
        arguments = {name: exchange.value(name, value) for name, value in step.arguments.items()}
        steps.append(ReferenceStep(tool=step.tool, arguments=_adapted(arguments, spec, donor.files, files)))
    exchange = _Exchange(_Statements(donor), _Statements(sample), {})
    slots = tuple(
        PlannedSlot(form_item(slot), str(_renamed(exchange.expression(slot.from_), files)))
        for slot in asked_slots(donor.answer)
        if slot.from_ is not None
    )
    return Plan(donor.id, tuple(steps), slots)


_BOX = re.compile(r"\b(\d+), (\d+), (\d+), (\d+)\b")
_NUMBER = re.compile(r"(?<![\w.\[-])\d+(?:\.\d+)?(?![\w\]]|\.\w)")


class _Statements:
    """Numbers, boxes and words that a question and the notes on files state, in their order."""

    def __init__(self, sample: Sample, files: Sequence[SampleFile] = ()) -> None:
        self._query = sample.query
        self.boxes: list[JsonValue] = [[int(side) for side in found.groups()] for found in _BOX.finditer(sample.query)]
        notes = " ".join(file.note or "" for file in files)
        self.of_notes, self.of_query = (
            [float(each) for each in _NUMBER.findall(text)] for text in (notes, _BOX.sub(" ", sample.query))
        )

    def words(self, values: Sequence[JsonValue]) -> list[JsonValue]:
        """Return those of ``values`` that the question states, in its order."""
        places = [
            (found.start(), value) for value in values if (found := re.search(_spelling(value), self._query, re.I))
        ]
        return [value for _, value in sorted(places, key=lambda place: place[0])]


def _spelling(value: JsonValue) -> str:
    """Return the pattern of a value in a text: its words, in singular or plural; the keys of a table with dashes."""
    words = "-".join(value) if isinstance(value, dict) else str(value).rpartition(".")[2].replace("_", " ")
    return rf"(?<![\w-]){re.escape(words.removesuffix('y'))}(?:y|ies|e?s)?(?![\w-])"


class _Exchange:
    """Exchange of what one question states for what another one states at the same place."""

    def __init__(self, theirs: _Statements, ours: _Statements, vocabulary: Vocabulary) -> None:
        self._theirs, self._ours, self._vocabulary = theirs, ours, vocabulary

    def value(self, name: str, value: JsonValue) -> JsonValue:
        """Return the value of an argument for the other question."""
        if isinstance(value, bool) or value is None or (isinstance(value, dict) and "$ref" in value):
            return value
        if isinstance(value, int | float):
            theirs, ours = self._theirs, self._ours
            if value in theirs.of_notes:
                return _at_same_place(value, theirs.of_notes, ours.of_notes)
            return _at_same_place(value, theirs.of_query, ours.of_query)
        if isinstance(value, list):
            if value in self._theirs.boxes:
                return _at_same_place(value, self._theirs.boxes, self._ours.boxes)
            return [self.value(name, item) for item in value]
        if isinstance(value, str) and name == "expression":
            return self.expression(value)
        words = self._vocabulary.get(name, ())
        if value in (stated := self._theirs.words(words)):
            return _at_same_place(value, stated, self._ours.words(words))
        return {key: self.value(key, item) for key, item in value.items()} if isinstance(value, dict) else value

    def expression(self, text: str) -> str:
        """Return an expression with the other question's numbers, such as limits."""
        return _NUMBER.sub(lambda found: f"{self.value('', float(found[0])):.12g}", text)


def _at_same_place(value: JsonValue, theirs: Sequence[JsonValue], ours: Sequence[JsonValue]) -> JsonValue:
    if value not in theirs or not ours:
        return value
    return ours[min(theirs.index(value), len(ours) - 1)]


def _in_order(sample: Sample) -> list[SampleFile]:
    """Return the files in the order in which the question names them, the others behind."""
    places = {file.name: sample.query.find(file.name) for file in sample.files}
    return sorted(sample.files, key=lambda file: (places[file.name] < 0, places[file.name]))


def _counterparts(donor_files: Sequence[SampleFile], sample_files: Sequence[SampleFile]) -> dict[str, SampleFile]:
    """Return the file of the sample for each of the donor's: one of its kind, or only of its position."""
    counterparts: dict[str, SampleFile] = {}
    for position, file in enumerate(donor_files):
        of_kind = [each for each in sample_files if each.kind == file.kind]
        before = sum(each.kind == file.kind for each in donor_files[:position])
        candidates, order = (of_kind, before) if of_kind else (sample_files, position)
        if candidates:
            counterparts[file.name] = candidates[min(order, len(candidates) - 1)]
    return counterparts


def _adapted(
    arguments: Arguments, spec: ToolSpec, donor_files: Sequence[SampleFile], files: Mapping[str, SampleFile]
) -> Arguments:
    required = cast("list[str]", spec.parameters.get("required", []))
    kinds = {file.name: file.kind for file in donor_files}
    adapted: Arguments = {}
    for name, value in arguments.items():
        # A file that an earlier call created is passed by reference and is not one of the sample's files.
        is_file = spec.agreement.get(name) == "file" and isinstance(value, str) and value in files
        if is_file and name not in required and files[str(value)].kind != kinds[str(value)]:
            continue
        adapted[name] = _renamed(value, files)
    return adapted


def _renamed(value: JsonValue, files: Mapping[str, SampleFile]) -> JsonValue:
    """Return ``value`` with file names replaced, including names within texts."""
    if isinstance(value, str) and files:
        names = "|".join(re.escape(name) for name in sorted(files, key=len, reverse=True))
        return re.sub(rf"(?<![\w.-])(?:{names})(?![\w-]|\.\w)", lambda name: files[name[0]].name, value)
    if isinstance(value, dict):
        return {key: _renamed(item, files) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, files) for item in value]
    return value
