"""Plans of similar questions: the table of them, and their adaptation to another sample."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from pydantic import JsonValue

from agrotools.agents.baselines.prior import PriorTable
from agrotools.agents.baselines.similar_questions import SimilarQuestions, masked
from agrotools.agents.baselines.simple import BlankSlot, blank
from agrotools.core import Arguments, ReferenceStep, Sample, SampleFile, Slot, ToolSpec
from agrotools.tools import get_tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_METADATA = ("gsd_m", "depth_unit_mm", "fx_px", "fy_px", "cx_px", "cy_px")


@dataclass(frozen=True)
class PlannedSlot:
    """A slot of the followed sample without its gold, and the expression over the steps that answered it."""

    slot: BlankSlot
    from_: str


@dataclass(frozen=True)
class Plan:
    """Steps to take (tools, and arguments with references between them), and how the answer followed from them."""

    donor: str
    """Id of the sample whose plan it is."""
    steps: tuple[ReferenceStep, ...]
    slots: tuple[PlannedSlot, ...]


def adapted_plan(donor: Sample, sample: Sample) -> Plan:
    """The reference trajectory of ``donor`` on the files of ``sample``.

    A file stands for the file of the same kind and order (the last one where there are fewer). An optional file of a
    kind that ``sample`` does not have is left out. Boxes are scaled to the size of the other image, and arguments
    that repeat what the donor's file says of itself (ground sampling distance, intrinsics) are taken from the other
    file. All other arguments are carried over. Observations and truth stay behind.
    """
    assert donor.reference is not None
    files = _counterparts(donor.files, sample.files)
    steps: list[ReferenceStep] = []
    for step in donor.reference.steps:
        spec = get_tool(step.tool).spec
        steps.append(ReferenceStep(tool=step.tool, arguments=_adapted(step.arguments, spec, donor.files, files)))
    slots = tuple(
        PlannedSlot(blank(slot), str(_renamed(slot.from_, files))) for slot in donor.answer if slot.from_ is not None
    )
    return Plan(donor.id, tuple(steps), slots)


@dataclass(frozen=True)
class _Counterpart:
    """The file that stands for one of the donor's; of the same ``kind`` or only in the same place."""

    file: SampleFile
    same_kind: bool


def _counterparts(theirs: Sequence[SampleFile], ours: Sequence[SampleFile]) -> dict[str, _Counterpart]:
    counterparts: dict[str, _Counterpart] = {}
    for position, file in enumerate(theirs):
        of_kind = [each for each in ours if each.kind == file.kind]
        before = sum(each.kind == file.kind for each in theirs[:position])
        candidates, order = (of_kind, before) if of_kind else (ours, position)
        if candidates:
            counterparts[file.name] = _Counterpart(candidates[min(order, len(candidates) - 1)], bool(of_kind))
    return counterparts


def _adapted(
    arguments: Arguments, spec: ToolSpec, theirs: Sequence[SampleFile], files: Mapping[str, _Counterpart]
) -> Arguments:
    required = cast("list[str]", spec.parameters.get("required", []))
    # A file that an earlier call made is given by reference, and is none of the sample's.
    file_arguments = {name: value for name, value in arguments.items() if isinstance(value, str) and value in files}
    file_names = [name for name, kind in spec.agreement.items() if kind == "file" and name in file_arguments]
    of_name = {file.name: file for file in theirs}
    looked_at = cast(str, arguments[file_names[0]]) if file_names else None
    adapted: Arguments = {}
    for name, value in arguments.items():
        if name in file_names and name not in required and not files[cast(str, value)].same_kind:
            continue
        if looked_at is not None and spec.agreement.get(name) == "box":
            value = _scaled(value, of_name[looked_at], files[looked_at].file)
        elif looked_at is not None and value is not None and value == _says(of_name[looked_at], name):
            value = _says(files[looked_at].file, name)
            if value is None:
                continue
        adapted[name] = _renamed(value, files)
    return adapted


def _says(file: SampleFile, name: str) -> JsonValue:
    """Value of the file's metadata under the name of an argument."""
    if name not in _METADATA:
        return None
    return getattr(file.intrinsics, name, None) if name.endswith("_px") else getattr(file, name)


def _scaled(box: JsonValue, theirs: SampleFile, ours: SampleFile) -> JsonValue:
    sizes = (theirs.width_px, theirs.height_px, ours.width_px, ours.height_px)
    if not isinstance(box, list) or len(box) != 4 or None in sizes or sizes[:2] == sizes[2:]:
        return box
    if not all(isinstance(side, int | float) for side in box):
        return box
    width, height, new_width, new_height = cast("tuple[int, int, int, int]", sizes)
    factors = (new_width / width, new_height / height)
    return [round(cast(float, side) * factors[index % 2]) for index, side in enumerate(box)]


def _renamed(value: JsonValue, files: Mapping[str, _Counterpart]) -> JsonValue:
    """``value`` with the names of files exchanged, also inside of texts."""
    if isinstance(value, str) and files:
        names = "|".join(re.escape(name) for name in sorted(files, key=len, reverse=True))
        return re.sub(rf"(?<![\w.-])(?:{names})(?![\w-]|\.\w)", lambda name: files[name[0]].file.name, value)
    if isinstance(value, dict):
        return {key: _renamed(item, files) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, files) for item in value]
    return value


K = TypeVar("K")

SAME = 1e-9
"""Similarities closer than this are equal."""


class _Donor(NamedTuple):
    """A sample whose plan can be followed, by its position in the benchmark."""

    id: str
    cluster: str
    position: int


@dataclass
class _Pair:
    """The first of like donors by id, and the first from another cluster than that one: one of them always serves."""

    first: _Donor
    other: _Donor | None = None

    def add(self, donor: _Donor) -> None:
        if donor.id < self.first.id:
            if donor.cluster != self.first.cluster:
                self.other = self.first
            self.first = donor
        elif donor.cluster != self.first.cluster and (self.other is None or donor.id < self.other.id):
            self.other = donor

    def outside(self, cluster: str) -> _Donor | None:
        return self.first if self.first.cluster != cluster else self.other


class _Kind(NamedTuple):
    """Features that make donors alike: words of the question, kinds of its files, its template, the tools it takes."""

    text: int
    kinds: tuple[str, ...]
    template: str
    tools: frozenset[str]


@dataclass
class _Contents:
    """Donors and answers collected in one pass over the samples."""

    prior: PriorTable = field(default_factory=lambda: PriorTable(()))
    texts: dict[str, int] = field(default_factory=dict)
    donors: dict[_Kind, _Pair] = field(default_factory=dict)


class PlanTable:
    """Plans and typical answers of a benchmark. The samples are gone through once, when the first plan is asked for.

    How similar two samples are is the cosine of their questions (:mod:`.similar_questions`) plus the share of files
    that they have in common by kind (Jaccard index of the two lists of kinds, so 1 for equal kinds and numbers). Of
    equally similar ones the first by id is taken. What is kept grows with the number of different questions, not of
    samples.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    def plan(self, sample: Sample) -> Plan | None:
        """The adapted plan of the sample most similar to ``sample``, with tools that ``sample`` has.

        None where no sample of another template and another cluster has a reference trajectory. Of ``sample`` itself
        only the question, the files, the toolset and what the answer form shows are used; template and cluster only
        to leave out what shares them.
        """
        donor = self._nearest(sample)
        return adapted_plan(self._samples[donor.position], sample) if donor else None

    def guess(self, sample: Sample, slot: Slot) -> JsonValue:
        """The typical answer in other clusters, as :meth:`PriorTable.guess`."""
        return self._contents.prior.guess(sample, slot)

    @cached_property
    def _contents(self) -> _Contents:
        contents = _Contents()
        for position, sample in enumerate(self._samples):
            contents.prior.add(sample)
            # Every question counts in the weights of words, so that they do not depend on who has a reference.
            text = contents.texts.setdefault(_question(sample), len(contents.texts))
            if sample.reference is None or not sample.reference.steps:
                continue
            kind = _Kind(text, _kinds(sample), sample.template, frozenset(sample.reference.tools))
            donor = _Donor(sample.id, _cluster(sample), position)
            pair = contents.donors.setdefault(kind, _Pair(donor))
            pair.add(donor)
        return contents

    @cached_property
    def _questions(self) -> SimilarQuestions:
        return SimilarQuestions(list(self._contents.texts))

    @cached_property
    def _columns(self) -> "_Columns":
        return _Columns(list(self._contents.donors.items()))

    def _nearest(self, sample: Sample) -> _Donor | None:
        if not self._contents.donors:
            return None
        return self._columns.nearest(sample, self._questions.cosines(_question(sample)))


class _Columns:
    """The kinds of donors, column by column, so that all are compared at once."""

    def __init__(self, donors: Sequence[tuple[_Kind, _Pair]]) -> None:
        import numpy as np

        self._pairs = [pair for _, pair in donors]
        self._kinds: dict[tuple[str, ...], int] = {}
        self._templates: dict[str, int] = {}
        self._tools: dict[frozenset[str], int] = {}
        self._clusters: dict[str, int] = {}
        self._text = np.array([kind.text for kind, _ in donors])
        self._kind = np.array([_number(self._kinds, kind.kinds) for kind, _ in donors])
        self._template = np.array([_number(self._templates, kind.template) for kind, _ in donors])
        self._tool = np.array([_number(self._tools, kind.tools) for kind, _ in donors])
        only = [pair.first.cluster if pair.other is None else None for pair in self._pairs]
        self._only_cluster = np.array([-1 if each is None else _number(self._clusters, each) for each in only])

    def nearest(self, sample: Sample, cosines: "NDArray[np.float64]") -> _Donor | None:
        import numpy as np

        own_kinds, cluster = _kinds(sample), _cluster(sample)
        shared = np.array([_jaccard(own_kinds, kinds) for kinds in self._kinds])
        usable = np.array([tools <= set(sample.toolset) for tools in self._tools])
        allowed = usable[self._tool] & (self._template != self._templates.get(sample.template, -2))
        allowed &= self._only_cluster != self._clusters.get(cluster, -2)
        if not allowed.any():
            return None
        scores = np.where(allowed, cosines[self._text] + shared[self._kind], -1.0)
        # The order in which a processor adds up decides no tie.
        rows = np.flatnonzero(scores >= scores.max() - SAME)
        best = (self._pairs[int(row)].outside(cluster) for row in rows)
        return min((donor for donor in best if donor is not None), key=lambda donor: donor.id)


def _number(numbers: dict[K, int], key: K) -> int:
    return numbers.setdefault(key, len(numbers))


def _question(sample: Sample) -> str:
    return masked(sample.query, [file.name for file in sample.files])


def _kinds(sample: Sample) -> tuple[str, ...]:
    return tuple(sorted(file.kind for file in sample.files))


def _cluster(sample: Sample) -> str:
    return sample.cluster or sample.id


def _jaccard(first: Sequence[str], second: Sequence[str]) -> float:
    one, two = Counter(first), Counter(second)
    either = (one | two).total()
    return (one & two).total() / either if either else 1.0
