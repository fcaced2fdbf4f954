"""The samples that records are of, as numbers: all that averaging needs, a few bytes for each sample."""

from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agrotools.core import Sample, Slot, counts_in_headline
from agrotools.scoring.metrics import SLOTS_OF_METRIC


class Kind(NamedTuple):
    """What samples are grouped by, and which units of each metric they have."""

    family: str
    task_type: str
    answer_type: str
    no_tool_eligible: bool
    schematic: bool
    """Whether no headline metric counts it."""
    calls: int
    """Steps of the reference trajectory."""
    outcome_metrics: frozenset[str]
    """The outcome metrics that one of its slots belongs to."""
    has_text: bool
    """Whether it has a slot that is answered in words."""
    groups: tuple[tuple[str, str], ...] = ()
    """What else results are broken down by: name and value of each of the sample's ``groups``."""


def any_kind(_: Kind) -> bool:
    """Every kind is wanted."""
    return True


class SampleTable:
    """Numbers for samples and clusters, and the kind of each sample.

    Ids and names of clusters share one numbering, since a cluster is named after a sample in it. What the first record
    of a sample says of it holds.
    """

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.clusters = array("I")
        """By number of a sample: the number of its cluster."""
        self.kind_of = array("i")
        """By number of a sample: the place of its kind in ``kinds``; -1 where the number is that of a cluster alone."""
        self._numbers: dict[str, int] = {}
        self._kind_numbers: dict[Kind, int] = {}

    def number(self, sample: Sample) -> int:
        """The number of ``sample``."""
        number = self._number(sample.id)
        if self.kind_of[number] < 0:
            kind = _kind(sample)
            self.kind_of[number] = self._kind_numbers.setdefault(kind, len(self.kinds))
            if self.kind_of[number] == len(self.kinds):
                self.kinds.append(kind)
            self.clusters[number] = self._number(sample.cluster or sample.id)
        return number

    def kind(self, number: int) -> Kind:
        """The kind of the sample of that number."""
        return self.kinds[self.kind_of[number]]

    def count(self, wanted: Callable[[Kind], bool]) -> int:
        """How many samples are of a wanted kind."""
        of_kind = [wanted(kind) for kind in self.kinds]
        return sum(kind >= 0 and of_kind[kind] for kind in self.kind_of)

    def numbers_in(self, other: "SampleTable") -> list[int]:
        """By number of a sample here: the number that it has in another table; -1 where it is not there."""
        return [other._numbers.get(name, -1) for name in self._numbers]

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self.clusters))
        if number == len(self.clusters):
            self.clusters.append(number)
            self.kind_of.append(-1)
        return number


def _kind(sample: Sample) -> Kind:
    return Kind(
        family=sample.family,
        task_type=sample.task_type,
        answer_type=sample.answer_type,
        no_tool_eligible=sample.no_tool_eligible,
        schematic=sample.schematic,
        calls=len(sample.reference.steps) if sample.reference else 0,
        outcome_metrics=_outcome_metrics(sample.answer),
        has_text=any(not slot.made for slot in sample.answer),
        groups=_groups(sample),
    )


_METRICS_OF_TYPES: dict[tuple[tuple[str, bool], ...], frozenset[str]] = {}


def _outcome_metrics(slots: Sequence[Slot]) -> frozenset[str]:
    """The metrics that one of ``slots`` belongs to, which follows from their types and whether they count."""
    types = tuple((slot.type, counts_in_headline(slot)) for slot in slots)
    if types not in _METRICS_OF_TYPES:
        _METRICS_OF_TYPES[types] = frozenset(
            metric for metric, belongs in SLOTS_OF_METRIC.items() if any(map(belongs, slots))
        )
    return _METRICS_OF_TYPES[types]


def _groups(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Its own groups, how difficult it is where its scene was drawn so, and how much the reference does.

    Published benchmarks tell the number of steps, too: where it is that of the calls, it stands once.
    """
    difficulty = sample.metadata.get("difficulty")
    told = {"difficulty": str(difficulty)} if isinstance(difficulty, int) else {}
    if sample.reference is not None:
        tools = sample.reference.tools
        told |= {"calls of the reference": str(len(tools)), "tools of the reference": str(len(set(tools)))}
    calls = told.get("calls of the reference")
    own = {name: value for name, value in sample.groups.items() if name != "steps" or value != calls}
    return tuple(sorted({**told, **own}.items()))
