"""Contracts of a benchmark plug-in: the objects that a package hands over to add a benchmark of its own.

A package declares one entry point for each benchmark, in the group ``agrotools.benchmarks``::

    [project.entry-points."agrotools.benchmarks"]
    ripeness = "ripeness.plugin:PLUGIN"

The target is a :class:`BenchmarkPlugin`. Every field but its name and its loader may be left out. What the engine needs
of all plug-ins at once (names, slot types, metrics, tools, protocols) is data in the object itself. The parts that one
task alone needs stand behind ``"package.module:NAME"`` and are imported when that task begins:

* ``scoring``: a :class:`Scoring`, when a record has a slot of the plug-in, or a run on the benchmark is scored;
* ``judging``: a :class:`Judging`, when judges are asked or their replies are read;
* ``reporting``: a :class:`Reporting`, when runs with metrics of the plug-in are shown;
* ``predictions``: the prediction files of other programs, when ``agrotools score --format`` reads one.

So the module of the plug-in must stay light: it imports this module, :mod:`agrotools.core` and its own slot types. The
others may import anything public of agrotools: :mod:`agrotools.plugin` hands out the types that they need. The
benchmarks of this package are plug-ins like any other. ``tests/plugins`` holds a complete example.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from agrotools.core import BENCHMARKS, FrozenModel, Mode, Record, Sample, Score, Slot, Trajectory, imported
from agrotools.core.registry import join_tables
from agrotools.core.slot import ENGINE_TYPES, SLOT_TYPES

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.console import RenderableType

    from agrotools.agents import ModelAgent
    from agrotools.benchmarks.builtin import BuiltIn
    from agrotools.benchmarks.checking import FileCheck
    from agrotools.benchmarks.loading import Loading
    from agrotools.core.base import Progress
    from agrotools.formats.benchmark import Benchmark
    from agrotools.models import Model
    from agrotools.report.layout import Notes
    from agrotools.report.settings import Setting
    from agrotools.runner.manifest import Manifest
    from agrotools.runner.policies import AgentOptions
    from agrotools.scoring.embedders import Embedder
    from agrotools.scoring.error_classes import Errors
    from agrotools.scoring.judging import JudgedRows, JudgeQuestion, Rubrics
    from agrotools.scoring.predictions import Compared
    from agrotools.scoring.slots import SlotScore
    from agrotools.scoring.summary import ModeSummary, PublishedFigures, Summary

V = TypeVar("V")

ENGINE = "agrotools."
"""Beginning of metric ids of the engine; those of a plug-in begin with its own name."""


@dataclass(frozen=True)
class MetricInfo:
    """Meaning of a metric id to a reader, and the slots of a sample that it is the mean of."""

    label: str
    meaning: str
    lower_is_better: bool = False
    out_of: int = 100
    """Number that 1 is shown as: values are percent, points of 10, or as they are (1)."""
    slots: Callable[[Slot], bool] | None = None
    """True if a slot counts; a sample without such a slot has no row of the metric. None: not a mean over slots."""
    stands_for_sample: bool = False
    """True if it is the score of a sample as a whole: "right" in a report is 1 here."""
    compared_in: tuple[Mode, ...] = ()
    """Modes in which runs are compared by it, pair by pair."""
    on_request: bool = False
    """True if tables have a column for it only where a run has it."""
    by_judge: bool = False
    """True if a judge gives it, so that a record has no row of it before one was asked."""


class TextComparisons(NamedTuple):
    """Comparisons of texts that a user asks for by ``--with`` and ``--embedder``, for the metrics that need them."""

    names: frozenset[str] = frozenset()
    embedder: "Embedder | None" = None


NO_COMPARISONS = TextComparisons()


class ModeTally(Protocol):
    """Counts over the valid records of one mode, for the scores of a run."""

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """A valid record and its score rows."""
        ...

    def results(self) -> Mapping[str, FrozenModel]:
        """Entries of the mode in ``scores.json``, by a key of their own; empty where no record counted."""
        ...


class PublishedRun(NamedTuple):
    """The records of one mode of a run on the benchmark, to be scored as its paper does."""

    manifest: "Manifest"
    mode: Mode
    records: Sequence[Record]
    judges: "JudgedRows"
    embedder: "Embedder | None"


@dataclass(frozen=True)
class Scoring:
    """Scorers of a benchmark. All are pure: no network, and the same rows for the same record."""

    slot_scorers: Mapping[str, "Callable[[Slot, Sequence[Slot], str], SlotScore]"] = field(default_factory=dict)
    """By slot type: the score of a slot, 0 to 1, from the slot, all slots of the sample and the answer in words. The
    engine takes the weighted means that :class:`MetricInfo` asks for. A sample without an answer scores 0."""
    call_scorers: "Mapping[str, Callable[[Slot, Sample, Trajectory], SlotScore]]" = field(default_factory=dict)
    """By slot type: the score of a slot whose answer is made by calls of tools, from the sample and what was done."""
    score_record: "Callable[[Record, Trajectory, TextComparisons], list[Score]] | None" = None
    """All rows of a record with a slot type of the plug-in, in place of the engine's."""
    comparisons: Mapping[str, str] = field(default_factory=dict)
    """Names for ``--with``, each with what it adds."""
    check_comparisons: Callable[[TextComparisons], None] | None = None
    """Raises :class:`~agrotools.core.UsageError` where what is asked for is not installed or not known here."""
    tally: Callable[[], ModeTally] | None = None
    published: "Callable[[PublishedRun], PublishedFigures | None] | None" = None
    """The metrics of the paper for a run on the benchmark; None where the mode has none."""


class JudgedMetric(NamedTuple):
    """A metric that a judge gives: the slots it is of, and what a sample's grades come to (each in [0, 1])."""

    belongs: Callable[[Slot], bool]
    together: Callable[[Sequence[float]], float] = fmean
    asked_as: str | None = None
    """The metric whose replies it reads in a way of its own; None where it has its own questions."""
    of_slots: Callable[[Sequence[Slot], Sequence[float]], Sequence[float]] | None = None
    """The score of each slot from the grades of a sample, where it is not the grade itself."""


@dataclass(frozen=True)
class Judging:
    """Questions to judges about the answers of a run, and the metrics that their grades give."""

    metrics: Mapping[str, JudgedMetric]
    questions: "Callable[[Record, Rubrics | None], list[JudgeQuestion]]"
    """The questions about a record; empty where it is not one of the benchmark or holds no answer to grade."""
    read_rubrics: "Callable[[Path, str], Rubrics] | None" = None
    """The rubrics of a user's file, under a name; None where answers are not graded by rubrics."""
    calibrated: str = ""
    """The metric, if any, whose judges can be tried on answers with known grades beside a reference text."""


class PaperTables(Protocol):
    """The tables of a benchmark's paper, filled with runs. One object collects all runs of a report."""

    def begin_run(self, manifest: "Manifest") -> None:
        """The records that follow are of this run, which may be on another benchmark."""
        ...

    def add(self, record: Record, scores: Sequence[Score]) -> None:
        """A record of the run and its score rows."""
        ...

    def __bool__(self) -> bool:
        """True if a record for the tables was added."""
        ...

    def terminal(self) -> "list[RenderableType]":
        """The tables for a terminal."""
        ...

    def page(self) -> "Markup":
        """The tables as a section of the HTML report."""
        ...


@dataclass(frozen=True)
class RecordErrors:
    """Errors in the records of a protocol and mode, counted in place of the engine's: replies that hold no calls."""

    add: "Callable[[Record, Errors], None]"
    """Adds the errors of a valid record."""
    not_looked_for: Mapping[str, str] = field(default_factory=dict)
    """By class of errors: why such records cannot tell it."""


class ErrorSource(NamedTuple):
    """Place in a paper that tells classes of errors apart. ``name``: that of the paper, for short."""

    name: str
    arxiv: str
    place: str
    words: Mapping[str, str]
    """By class (:data:`agrotools.scoring.error_classes.CLASSES`): the paper's word for it."""
    shares: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """A table of errors as percentages of each other: by the paper's word the classes that are counted for it."""

    def __str__(self) -> str:
        return f"{self.name} (arXiv {self.arxiv}), {self.place}"


class PublishedFiles(NamedTuple):
    """Figures that a paper prints: ``rows.csv``, ``set.csv`` and ``paper.toml`` in a folder of a package."""

    package: str
    family: str
    """Beginning of the ids of metrics in them."""
    folder: str = "published"


class PartColumn(NamedTuple):
    """A metric in the tables by task and answer type. ``title``: of its own table, where several runs stand there."""

    mode: Mode
    metric: str
    heading: str
    title: str = ""


@dataclass(frozen=True)
class Reporting:
    """Sections of a report on runs that have metrics of the benchmark."""

    settings: "tuple[Setting, ...]" = ()
    """Tables of metrics, a row for each run."""
    beside: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Variants that stand beneath a metric in its cell: a word and the id of each."""
    parts: tuple[PartColumn, ...] = ()
    tables: "Callable[[Sequence[Summary], Notes], list[RenderableType]] | None" = None
    """Tables of its own, in the terminal and on the page."""
    notes: "Callable[[ModeSummary], Iterable[str]] | None" = None
    """Lines beneath the tables on one mode of a run."""
    paper: Callable[[], PaperTables] | None = None
    """The tables of its paper (``agrotools score RUN --paper``)."""


class PredictionInput(NamedTuple):
    """A prediction file and what may be given with it."""

    file: Path
    data: Path | None = None
    """The data set, which holds the answers (``--data``)."""
    judgements: Path | None = None
    """Replies of a judge (``--judgements``)."""
    embedder: "Embedder | None" = None


class PredictionContent(NamedTuple):
    """Content of a prediction file, as JSON."""

    content: Any
    questions: int | None = None
    """Number of questions of the data set, where its scorer pairs predictions with them by position."""


@dataclass(frozen=True)
class PredictionFormat:
    """Prediction files of another program: read, scored as published and corrected, and written from runs."""

    title: str
    """Name of the benchmark in a heading."""
    family: str
    """Beginning of its metric ids."""
    compare: "Callable[[PredictionInput], Compared]"
    differences: Mapping[str, str] = field(default_factory=dict)
    """By metric, as published: what the corrected one does otherwise. Tables are in this order."""
    published_end: str = ""
    corrected_end: str = "_corrected"
    """Ends of ids, as published and corrected."""
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Options (``data``, ``judgements``, ``embedder``) that do not fit: message and hint."""
    write: "Callable[[Manifest, Mode, Sequence[Record]], PredictionContent | None] | None" = None
    """The file of a mode of a run, from its valid records; None where the mode has no such file."""


class PromptTemplates(NamedTuple):
    """Templates of a protocol: the files ``*.j2`` in a folder of a package, rendered as ``PREFIX/NAME``."""

    prefix: str
    package: str
    folder: str = "prompts"


@dataclass(frozen=True)
class RunProtocol:
    """A way of talking with a model: prompts, and how replies become calls and answers."""

    modes: tuple[Mode, ...]
    agent: "Callable[[Model, Mode, AgentOptions], ModelAgent]"
    """The agent of a mode, which talks with the model."""
    prompts: "Callable[[Benchmark], str]" = lambda _benchmark: ""
    """All words of its prompts that are in no template: runs compare only where they agree."""
    templates: PromptTemplates | None = None
    """Its templates, whose texts are part of the prompt hash."""
    max_turns: int | None = None
    """Model turns per sample where neither the user nor the benchmark gives a limit; None: the engine's default."""
    shows_images: bool = True
    """True if images are shown where the user does not say."""
    single_shot: bool = False
    """True if one reply holds steps, results of tools and answer: its prompts name the tools, and none is run."""
    stops_unparseable: bool = True
    """True if several replies in a row that cannot be read end a sample."""


@dataclass(frozen=True)
class ExpectedCount:
    """A count that the paper prints. ``decides``: whether the benchmark is another one where it differs.

    Others rest on a rule of ours (which answer is an image, what a use case is), or on how the paper counted.
    """

    name: str
    published: int
    decides: bool
    measure: Callable[[Sequence[Sample]], int]


@dataclass(frozen=True)
class BenchmarkPlugin:
    """A benchmark: what it is, where its files are, how they load, how answers are scored and shown.

    ``scoring``, ``judging``, ``reporting`` and the values of ``predictions`` and ``error_counts`` are
    ``"package.module:NAME"``, imported when they are first needed.
    """

    name: str
    """Id on the command line and in run folders, e.g. ``ripeness``."""
    load: "Callable[[Loading], Benchmark]"
    title: str = ""
    """Its name in headings and lists; the id where there is none."""
    about: str = ""
    """One line for ``agrotools benchmarks list``."""
    needs: str = "nothing"
    """The files that a user must bring, and where they are to be had."""
    aliases: tuple[str, ...] = ()
    """Other spellings that the command line accepts."""
    find: Callable[[Path | None], Path | str] | None = None
    """Place of its files below a folder, or a word on it; raises :class:`~agrotools.core.AgrotoolsError` where they are
    not there. None: it needs no files."""
    file_roots: Callable[[Path | None], Sequence[Path]] | None = None
    """Folders that the paths of its files are relative to, for the pictures of a report."""
    check: "Callable[[Path | None, Progress], FileCheck] | None" = None
    """Reads all files for ``agrotools benchmarks check``; without it the benchmark is loaded."""
    expected: tuple[ExpectedCount, ...] = ()
    takes_options: bool = False
    """True if its loader reads options of ``--option``; it refuses those that it does not know."""
    without_tools: bool = False
    """True if its questions have neither files nor reference calls."""
    slots: tuple[type[Slot], ...] = ()
    """Slot types of its own."""
    metrics: Mapping[str, MetricInfo] = field(default_factory=dict)
    """Metrics of its own; ids begin with its name and a dot."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Tools of its own: name to ``"package.module:NAME"``."""
    tool_categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By category: the tools of the paper in it, for ``agrotools benchmarks describe``."""
    protocols: Mapping[str, RunProtocol] = field(default_factory=dict)
    """Protocols of its own, by the name for ``--protocol``."""
    predictions: Mapping[str, str] = field(default_factory=dict)
    """By name for ``--format``: a :class:`PredictionFormat`."""
    published: PublishedFiles | None = None
    """Figures that its paper prints, to be shown beside runs."""
    error_sources: tuple[ErrorSource, ...] = ()
    """Classes of errors in its paper."""
    error_counts: Mapping[tuple[str, Mode], str] = field(default_factory=dict)
    """By protocol and mode: a :class:`RecordErrors`."""
    scoring_target: str = ""
    judging_target: str = ""
    reporting_target: str = ""

    def __post_init__(self) -> None:
        """Check the types of what the engine reads of all plug-ins at once.

        Raises:
            TypeError: a field is of another type; its plug-in is then reported as broken and the others work.
        """
        tables = {"metrics": MetricInfo, "tools": str, "tool_categories": tuple, "protocols": RunProtocol}
        for name, kind in {**tables, "predictions": str, "error_counts": str}.items():
            table = getattr(self, name)
            if not isinstance(table, Mapping):
                raise TypeError(f"{name} must be a mapping, not {type(table).__name__}")
            for key, value in table.items():
                if not isinstance(value, kind):
                    raise TypeError(f"{name}[{key!r}] must be a {kind.__name__}, not {type(value).__name__}")
        for slot in self.slots:
            if not (isinstance(slot, type) and issubclass(slot, Slot)):
                raise TypeError(f"slots must be subclasses of Slot, not {slot!r}")
            if slot not in SLOT_TYPES and slot.model_fields["type"].default in ENGINE_TYPES:
                raise TypeError(f"slots: {slot.model_fields['type'].default!r} is a slot type of agrotools already")
        if not callable(self.load):
            raise TypeError(f"load must be a function, not {type(self.load).__name__}")

    @cached_property
    def scoring(self) -> Scoring:
        """Its scorers; none of its own where it names none."""
        return imported(self.scoring_target) if self.scoring_target else Scoring()

    @cached_property
    def judging(self) -> Judging | None:
        """Its questions to judges."""
        return imported(self.judging_target) if self.judging_target else None

    @cached_property
    def reporting(self) -> Reporting:
        """Its sections of a report; none of its own where it names none."""
        return imported(self.reporting_target) if self.reporting_target else Reporting()


def deferred(target: str) -> Callable[..., Any]:
    """The function of a target ``"package.module:NAME"``, imported when it is first called."""

    def call(*arguments: Any, **keyword_arguments: Any) -> Any:
        return imported(target)(*arguments, **keyword_arguments)

    return call


def plugins() -> list[BenchmarkPlugin]:
    """All installed benchmark plug-ins that can be imported."""
    return BENCHMARKS.loaded()


def plugin_of(benchmark: str) -> BenchmarkPlugin | None:
    """The plug-in of the benchmark of that name; None where none is installed (a benchmark folder, say)."""
    return BENCHMARKS.get(benchmark) if benchmark in BENCHMARKS else None


def benchmark_id(name: str) -> str:
    """The id of the benchmark that ``name`` is an alias of; any other name, and every path, as it is."""
    if name in BENCHMARKS or "/" in name or os.sep in name:
        return name
    return _aliases(BENCHMARKS.names()).get(name, name)


@cache
def _aliases(_names: tuple[str, ...]) -> dict[str, str]:
    """The benchmarks by alias. One that is the id of another benchmark is that one's."""
    tables = [(BENCHMARKS.package_of(name), {name: name}) for name in BENCHMARKS]
    tables += [(BENCHMARKS.package_of(each.name), dict.fromkeys(each.aliases, each.name)) for each in plugins()]
    return join_tables("benchmark alias", tables)


def plugins_of_slots(slots: Iterable[Slot]) -> list[BenchmarkPlugin]:
    """The plug-ins that the types of ``slots`` are from."""
    types = {type(slot) for slot in slots}.difference(SLOT_TYPES)
    return [plugin for plugin in plugins() if not types.isdisjoint(plugin.slots)] if types else []


def plugins_about(types: frozenset[str]) -> list[BenchmarkPlugin]:
    """The plug-ins that may have metrics of slots of these types, by name of the type.

    Of the benchmarks of this package those are imported that have; what is installed beside it is always imported.
    """
    known: Mapping[str, BuiltIn] = imported("agrotools.benchmarks.builtin:BUILT_IN")
    return BENCHMARKS.loaded(
        name for name in BENCHMARKS if name not in known or not types.isdisjoint(known[name].slot_types)
    )


def plugins_of_metrics(metrics: Iterable[str]) -> list[BenchmarkPlugin]:
    """The plug-ins that some of ``metrics`` are from."""
    theirs = {metric for metric in metrics if not metric.startswith(ENGINE)}
    return [plugin for plugin in plugins() if not plugin.metrics.keys().isdisjoint(theirs)] if theirs else []


class WithPlugins(Mapping[str, V]):
    """A table of the engine and behind it those of all plug-ins, joined when first read. ``noun``: for warnings."""

    def __init__(
        self, noun: str, entries: Mapping[str, V], table: Callable[[BenchmarkPlugin], Mapping[str, V]]
    ) -> None:
        self._noun = noun
        self._entries = entries
        self._table = table
        self._joined: Mapping[str, V] = {}
        self._names: tuple[str, ...] | None = None

    def joined(self) -> Mapping[str, V]:
        """All entries, the engine's first; see :func:`agrotools.core.registry.join_tables`."""
        if self._names != BENCHMARKS.names():
            tables = [(BENCHMARKS.package_of(plugin.name), self._table(plugin)) for plugin in plugins()]
            self._joined = join_tables(self._noun, [("agrotools", self._entries), *tables])
            self._names = BENCHMARKS.names()
        return self._joined

    def __getitem__(self, key: str) -> V:
        return self._entries[key] if key in self._entries or key.startswith(ENGINE) else self.joined()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.joined())

    def __len__(self) -> int:
        return len(self.joined())
