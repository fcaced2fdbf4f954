"""Baseline ``planner``: follows the reference of the most similar question of another template.

It sees the gold of samples of other templates and clusters, and is therefore marked *privileged*; it sees no gold of
its own sample. It shows the score of a model that only copies how similar questions are solved.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple, cast

from pydantic import JsonValue

from agrotools.agents.baselines.guess import guessed_values, is_unanswerable
from agrotools.agents.baselines.similarity import SimilarQuestions, masked
from agrotools.calling import get_tool
from agrotools.core import (
    Action,
    Answer,
    Arguments,
    CallTools,
    ReferenceStep,
    Sample,
    SampleFile,
    SampleView,
    Step,
    ToolCall,
    ToolSpec,
    UnresolvedRef,
)
from agrotools.core.form_item import FormItem, form_item
from agrotools.core.record import Results
from agrotools.core.slot import asked_slots
from agrotools.formats.reference_results import live_arguments
from agrotools.text.agreement_values import as_number
from agrotools.text.answer_form import UNKNOWN, format_answer
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools.text.units import any_unit, canonical_unit, compatible, convert


@dataclass(frozen=True)
class PlannedSlot:
    """A slot of the donor sample without its gold, and the expression over the steps that yields its value."""

    slot: FormItem
    from_: str


@dataclass(frozen=True)
class AdaptedPlan:
    """Steps to take (tools, and arguments with references between them), and the derivation of the answer from them."""

    donor: str
    """Id of the sample that the plan comes from."""
    steps: tuple[ReferenceStep, ...]
    slots: tuple[PlannedSlot, ...]


Vocabulary = Mapping[str, Sequence[JsonValue]]
"""Values of arguments that are texts or tables, by name of the argument."""


def adapted_plan(
    donor: Sample, sample: Sample, vocabulary: Vocabulary | None = None
) -> AdaptedPlan:
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
        exchange = _Exchange(
            _Statements(donor, shown), _Statements(sample, counterparts), vocabulary or {}
        )
        arguments = {name: exchange.value(name, value) for name, value in step.arguments.items()}
        steps.append(
            ReferenceStep(tool=step.tool, arguments=_adapted(arguments, spec, donor.files, files))
        )
    exchange = _Exchange(_Statements(donor), _Statements(sample), {})
    slots = tuple(
        PlannedSlot(form_item(slot), str(_renamed(exchange.expression(slot.from_), files)))
        for slot in asked_slots(donor.answer)
        if slot.from_ is not None
    )
    return AdaptedPlan(donor.id, tuple(steps), slots)


_BOX = re.compile(r"\b(\d+), (\d+), (\d+), (\d+)\b")
_NUMBER = re.compile(r"(?<![\w.\[-])\d+(?:\.\d+)?(?![\w\]]|\.\w)")


class _Statements:
    """Numbers, boxes and words that a question and the notes on files state, in their order."""

    def __init__(self, sample: Sample, files: Sequence[SampleFile] = ()) -> None:
        self._query = sample.query
        self.boxes: list[JsonValue] = [
            [int(side) for side in found.groups()] for found in _BOX.finditer(sample.query)
        ]
        notes = " ".join(file.note or "" for file in files)
        self.of_notes, self.of_query = (
            [float(each) for each in _NUMBER.findall(text)]
            for text in (notes, _BOX.sub(" ", sample.query))
        )

    def words(self, values: Sequence[JsonValue]) -> list[JsonValue]:
        """Return those of ``values`` that the question states, in its order."""
        places = [
            (found.start(), value)
            for value in values
            if (found := re.search(_spelling(value), self._query, re.I))
        ]
        return [value for _, value in sorted(places, key=lambda place: place[0])]


def _spelling(value: JsonValue) -> str:
    """Return the pattern of a value in a text: its words, in singular or plural; the keys of a table with dashes."""
    words = (
        "-".join(value)
        if isinstance(value, dict)
        else str(value).rpartition(".")[2].replace("_", " ")
    )
    return rf"(?<![\w-]){re.escape(words.removesuffix('y'))}(?:y|ies|e?s)?(?![\w-])"


class _Exchange:
    """Exchange of what one question states for what another one states at the same place."""

    def __init__(self, theirs: _Statements, ours: _Statements, vocabulary: Vocabulary) -> None:
        self._theirs, self._ours, self._vocabulary = theirs, ours, vocabulary

    def value(self, name: str, value: JsonValue) -> JsonValue:
        """Return the value of an argument for the other question."""
        if (
            isinstance(value, bool)
            or value is None
            or (isinstance(value, dict) and "$ref" in value)
        ):
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
        return (
            {key: self.value(key, item) for key, item in value.items()}
            if isinstance(value, dict)
            else value
        )

    def expression(self, text: str) -> str:
        return _NUMBER.sub(lambda found: f"{self.value('', float(found[0])):.12g}", text)


def _at_same_place(
    value: JsonValue, theirs: Sequence[JsonValue], ours: Sequence[JsonValue]
) -> JsonValue:
    if value not in theirs or not ours:
        return value
    return ours[min(theirs.index(value), len(ours) - 1)]


def _in_order(sample: Sample) -> list[SampleFile]:
    places = {file.name: sample.query.find(file.name) for file in sample.files}
    return sorted(sample.files, key=lambda file: (places[file.name] < 0, places[file.name]))


def _counterparts(
    donor_files: Sequence[SampleFile], sample_files: Sequence[SampleFile]
) -> dict[str, SampleFile]:
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
    arguments: Arguments,
    spec: ToolSpec,
    donor_files: Sequence[SampleFile],
    files: Mapping[str, SampleFile],
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
        return re.sub(
            rf"(?<![\w.-])(?:{names})(?![\w-]|\.\w)", lambda name: files[name[0]].name, value
        )
    if isinstance(value, dict):
        return {key: _renamed(item, files) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, files) for item in value]
    return value


SAME = 1e-9
"""Similarities that differ by at most this much count as equal, independent of the order of summation."""


class _Asked(NamedTuple):
    """What an item of an answer form asks for."""

    type: str
    unit: str | None
    choices: tuple[str, ...]


class _Donor(NamedTuple):
    id: str
    position: int
    text: int
    """Number of its question among the distinct ones."""
    kinds: tuple[str, ...]
    template: str
    tools: frozenset[str]
    cluster: str
    form: frozenset["_Asked"]


class PlanTable:
    """Plans of a benchmark. The samples are read once, when the first plan is requested.

    The similarity of two samples is the cosine of their questions and answer forms (see :mod:`.similarity`) plus the
    overlap of their files by kind (Jaccard index of the two multisets of kinds). Of equally similar samples, as where
    questions repeat word for word, that with the most similar answer form counts, then the first by id. Donors are
    answerable, since the calls of other samples end where a tool fails.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples
        self._values: dict[str, dict[str, tuple[JsonValue, set[str]]]] = {}
        """Texts and tables among the donors' arguments, by name of the argument, with the clusters that have them."""

    def plan(self, sample: Sample) -> AdaptedPlan | None:
        """Return the adapted plan of the sample most similar to ``sample`` that uses only the tools of ``sample``.

        None if no sample of another template and cluster has a suitable reference trajectory. Of ``sample`` itself
        only the question, the files, the toolset and the contents of the answer form are used; template and cluster
        only exclude related samples.
        """
        donor = self._nearest(sample)
        return (
            None
            if donor is None
            else adapted_plan(self._samples[donor], sample, self._vocabulary(_cluster(sample)))
        )

    def _vocabulary(self, cluster: str) -> Vocabulary:
        return {
            name: [value for value, clusters in values.values() if clusters - {cluster}]
            for name, values in self._values.items()
        }

    @cached_property
    def _contents(self) -> tuple[SimilarQuestions, list[_Donor]]:
        texts: dict[str, int] = {}
        donors: list[_Donor] = []
        for position, sample in enumerate(self._samples):
            # Every question counts in the word weights, so that they do not depend on which samples have a reference.
            text = texts.setdefault(_question(sample), len(texts))
            if sample.reference is not None and sample.reference.steps and sample.answerable:
                self._add_values(sample)
                of_sample = (
                    _kinds(sample),
                    sample.template,
                    frozenset(sample.reference.tools),
                    _cluster(sample),
                    _form(sample),
                )
                donors.append(_Donor(sample.id, position, text, *of_sample))
        return SimilarQuestions(list(texts)), donors

    def _add_values(self, sample: Sample) -> None:
        assert sample.reference is not None
        names = [file.name for file in sample.files]
        for step in sample.reference.steps:
            for name, value in step.arguments.items():
                if (
                    "$ref" not in str(value)
                    and isinstance(value, str | dict)
                    and value not in names
                ):
                    known = self._values.setdefault(name, {}).setdefault(str(value), (value, set()))
                    known[1].add(_cluster(sample))

    def _nearest(self, sample: Sample) -> int | None:
        questions, donors = self._contents
        cluster, kinds, toolset = _cluster(sample), _kinds(sample), set(sample.toolset)
        others = [
            each for each in donors if each.template != sample.template and each.cluster != cluster
        ]
        allowed = [each for each in others if toolset.issuperset(each.tools)]
        if not allowed:
            return None
        cosines = questions.cosines(_question(sample))
        scores = [float(cosines[each.text]) + _jaccard(kinds, each.kinds) for each in allowed]
        least = max(scores) - SAME
        nearest = [each for each, score in zip(allowed, scores, strict=True) if score >= least]
        form = _form(sample)
        return min(nearest, key=lambda each: (-_jaccard(form, each.form), each.id)).position


def _question(sample: Sample) -> str:
    """Return the question and the meanings of the answers, without file names and numbers."""
    labels = [slot.label for slot in asked_slots(sample.answer)]
    return masked(" ".join([sample.query, *labels]), [file.name for file in sample.files])


def _form(sample: Sample) -> frozenset[_Asked]:
    """Return what the answer form of a sample asks for, without its names and words."""
    items = map(form_item, asked_slots(sample.answer))
    return frozenset(_Asked(item.type, item.unit, tuple(sorted(item.choices))) for item in items)


def _kinds(sample: Sample) -> tuple[str, ...]:
    return tuple(sorted(file.kind for file in sample.files))


def _cluster(sample: Sample) -> str:
    return sample.cluster or sample.id


@cache
def _jaccard(first: Iterable[Hashable], second: Iterable[Hashable]) -> float:
    one, two = Counter(first), Counter(second)
    either = (one | two).total()
    return (one & two).total() / either if either else 1.0


NO_ANSWER_ERRORS = frozenset(
    {
        "missing_metadata",
        "file_not_found",
        "unreadable_file",
        "band_not_found",
        "nothing_found",
        "low_confidence",
    }
)
"""Kinds of errors that show that something an answer needs is missing or cannot be seen."""
NO_ANSWER_FLAGS = frozenset({"registration_uncertain"})
"""Flags that show that two pictures cannot be compared."""


def _shows_no_answer(step: Step, query: str) -> bool:
    """Return True if a call shows it; a mark that is not found only if the question names its colour."""
    observation, call = step.observation, step.call
    if observation is None or call is None:
        return False
    if observation.error is not None:
        mark = (
            call.arguments.get("mark_color", "") if call.tool == "extract_marked_region" else None
        )
        is_asked = mark is None or (mark and str(mark) in query)
        return observation.error.kind in NO_ANSWER_ERRORS and bool(is_asked)
    flags = (observation.result or {}).get("flags")
    return isinstance(flags, list) and not NO_ANSWER_FLAGS.isdisjoint(map(str, flags))


class PlannerPolicy:
    """Policy that follows the plan of the most similar sample of another template and cluster (:class:`PlanTable`).

    End-to-end, it makes the donor's reference calls on its own files, with references resolved from the results of its
    own calls. Step-by-step, it predicts the k-th call of the plan at step k, resolved from the shown history. When the
    plan ends, or needs a value that an observation lacks, it answers. Each slot takes the first available value: from
    the plan's slot of the same name, type and unit; from the last results; from a plan slot of the same type and unit;
    from ``guess``. Without tools (no-tool) or without a plan it answers like ``guess``.

    If the prompt offers a refusal, it refuses where ``guess`` does, and after a call that shows that the files do not
    allow an answer: an error of ``NO_ANSWER_ERRORS`` or a flag of ``NO_ANSWER_FLAGS``.
    """

    def __init__(self, sample: Sample, table: PlanTable) -> None:
        self._sample = sample
        self._slots = [form_item(slot) for slot in asked_slots(sample.answer)]
        self._table = table

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        observations = [step.observation for step in history if step.kind == "call"]
        if view.may_abstain and (
            is_unanswerable(view.query, view.files, self._sample.answer)
            or any(_shows_no_answer(step, view.query) for step in history)
        ):
            return Answer(text=UNKNOWN)
        if not view.toolset or self._plan is None:
            return Answer(text=self._answer(None, ()))
        results = [observation.result if observation else None for observation in observations]
        steps = self._plan.steps
        if len(results) < len(steps):
            step = steps[len(results)]
            arguments = live_arguments(step, results)
            if arguments is not None:
                thought = (
                    f"Step {len(results) + 1} of {len(steps)} of the plan of {self._plan.donor}."
                )
                return CallTools(
                    calls=(ToolCall(tool=step.tool, arguments=arguments),), thought=thought
                )
        return Answer(
            text=self._answer(self._plan, results),
            thought=f"As the plan of {self._plan.donor} ends.",
        )

    @cached_property
    def _plan(self) -> AdaptedPlan | None:
        return self._table.plan(self._sample)

    def _answer(self, plan: AdaptedPlan | None, results: Results) -> str:
        values = guessed_values(self._sample, self._sample.answer)
        for slot in self._slots:
            value = planned_value(slot, plan, results) if plan else None
            if value is not None:
                values[slot.name] = value
        return format_answer(self._sample.answer, values)


def planned_value(slot: FormItem, plan: AdaptedPlan, results: Results) -> JsonValue:
    """Return the value for ``slot`` that ``results`` imply under ``plan``; None if they contain no suitable value."""
    alike = [
        each for each in plan.slots if (each.slot.type, each.slot.unit) == (slot.type, slot.unit)
    ]
    namesakes = [each for each in alike if each.slot.name == slot.name]
    for each in namesakes:
        if (value := _fitting(slot, _evaluated(each.from_, results))) is not None:
            return value
    for result in reversed(results):
        if result is not None and (value := _derived(slot, result)) is not None:
            return value
    for each in alike:
        if (value := _fitting(slot, _evaluated(each.from_, results))) is not None:
            return value
    return None


def _evaluated(expression: str, results: Results) -> JsonValue:
    try:
        return evaluate_from(expression, results)
    except (UnresolvedRef, ExpressionError):
        return None


def _fitting(slot: FormItem, value: JsonValue) -> JsonValue:
    if slot.type == "boolean":
        return value if isinstance(value, bool) else None
    if slot.type == "tolerance":
        return as_number(value)
    if slot.type in ("open_text", "keywords", "reference_texts"):
        parts = value if isinstance(value, list) else [value]
        return " ".join(part for part in parts if isinstance(part, str)) or None
    if slot.choices:
        return value if value in slot.choices else None
    return (
        value
        if slot.type == "exact" and (isinstance(value, str) or as_number(value) is not None)
        else None
    )


def _derived(slot: FormItem, result: dict[str, JsonValue]) -> JsonValue:
    """Return the number of the first field that has a word of the slot's name, in the slot's unit; None without one."""
    if slot.type != "tolerance":
        return None
    unit = any_unit(slot.unit).symbol if slot.unit else None
    wanted = set(_words(slot.name))
    for name, value in result.items():
        if (given := as_number(value)) is None:
            continue
        words, of_field = _words_and_unit(name, result)
        is_calculated = name == "value"  # for this purpose
        if is_calculated or not words.isdisjoint(wanted):
            number = _in_unit(given, of_field, unit, lenient=is_calculated)
            if number is not None:
                return number
    return None


def _words_and_unit(name: str, result: dict[str, JsonValue]) -> tuple[set[str], str | None]:
    """Return the words of a field's name and its unit (suffix as in ``diameter_mm``, else the field ``unit``)."""
    *words, last = name.split("_")
    unit = canonical_unit(last)
    if words and unit is not None:
        return set(_words("_".join(words))), unit
    stated_unit = result.get("unit")
    return set(_words(name)), canonical_unit(stated_unit) if isinstance(stated_unit, str) else None


def _in_unit(
    value: float, unit: str | None, target_unit: str | None, *, lenient: bool
) -> float | None:
    """Return ``value`` in ``target_unit``, or None; if ``lenient``, a number without a unit counts as already in it."""
    if unit == target_unit or (unit is None and lenient):
        return value
    if unit is None or target_unit is None or not compatible(unit, target_unit):
        return None
    return convert(value, unit, target_unit)


def _words(name: str) -> list[str]:
    """Return the words of a name, without plural endings and short words: ``weeds_in_field`` -> weed, field."""
    return [word.removesuffix("s") for word in re.split(r"[_\W]+", name) if len(word) > 2]
