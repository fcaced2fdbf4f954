"""Contracts of a benchmark plug-in: the objects that a package provides to add a benchmark.

A package declares one entry point for each benchmark, in the group ``agrotools.benchmarks``. The target is a
:class:`BenchmarkPlugin`; only its name and its loader are required. Data that the engine needs from all plug-ins at
once (names, slot types, metrics, tools, protocols) is stored in the object itself; :class:`Targets` names the parts
that only one task needs. The module of the plug-in must stay light: it should import only this module,
:mod:`agrotools.core` and its own slot types. ``tests/plugins`` contains an example.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agrotools.core import FrozenModel, Mode, Record, Sample, Score, Slot, Trajectory, imported
from agrotools.core.slot import ENGINE_TYPES, SLOT_TYPES

if TYPE_CHECKING:
    from agrotools.agents import ModelAgent
    from agrotools.benchmarks.checking import FileCheck
    from agrotools.benchmarks.loading import Loading
    from agrotools.formats.benchmark import Benchmark
    from agrotools.models import Model
    from agrotools.report.layout import Notes, Part
    from agrotools.report.settings import Setting
    from agrotools.runner.manifest import Manifest
    from agrotools.runner.policies import AgentOptions
    from agrotools.scoring.embedders import Embedder
    from agrotools.scoring.error_classes import Errors
    from agrotools.scoring.judging.judgements import JudgedRows
    from agrotools.scoring.judging.questions import JudgeQuestion, Rubrics
    from agrotools.scoring.predictions import ScoredFile
    from agrotools.scoring.slots import SlotScore
    from agrotools.scoring.summary import ModeSummary, PublishedFigures, Summary


@dataclass(frozen=True)
class MetricInfo:
    """Description of a metric id (of a plug-in: with a point, ``gta.ans_acc``) and the slots that it averages over."""

    label: str
    meaning: str
    lower_is_better: bool = False
    out_of: int = 100
    """Scale on which values are shown: 100 for percent, 10 for points out of 10, 1 for unscaled values."""
    slots: Callable[[Slot], bool] | None = None
    """Predicate for the slots that count; a sample without such a slot has no row. None if it is not a mean
    over slots."""
    scores_sample: bool = False
    """True if the metric scores the sample as a whole; a report calls a sample with the value 1 "right"."""
    compared_in: tuple[Mode, ...] = ()
    """Modes in which runs are compared pair by pair by this metric."""
    on_request: bool = False
    """True if tables have a column for the metric only if a run has values of it."""
    by_judge: bool = False
    """True if a judge gives the metric, so that a record has no row of it until a judge was asked."""


class TextComparisons(NamedTuple):
    """Text comparisons that a user requests with ``--with`` and ``--embedder``, for metrics that need them."""

    embedder: "Embedder | None" = None


NO_COMPARISONS = TextComparisons()


class ModeTally(Protocol):
    """Counter over the valid records of one mode, for the scores of a run."""

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a valid record and its score rows."""
        ...

    def results(self) -> Mapping[str, FrozenModel]:
        """Return entries for the mode's section of ``scores.json``, by unique key; empty if no record counted."""
        ...


class PublishedRun(NamedTuple):
    """Records of one mode of a run on the benchmark, for scoring as in its paper."""

    manifest: "Manifest"
    mode: Mode
    records: Sequence[Record]
    judges: "JudgedRows"
    embedder: "Embedder | None"


@dataclass(frozen=True)
class Scoring:
    """Scorers of a benchmark. All must be deterministic and must not use the network."""

    slot_scorers: Mapping[str, "Callable[[Slot, Sequence[Slot], str], SlotScore]"] = field(
        default_factory=dict
    )
    """By slot type: function that returns the score of a slot, 0 to 1, from the slot, all slots of the sample and the
    answer text. The engine computes the weighted means that :class:`MetricInfo` defines. A sample without an answer
    scores 0."""
    call_scorers: "Mapping[str, Callable[[Slot, Sample, Trajectory], SlotScore]]" = field(
        default_factory=dict
    )
    """By slot type: function that scores a slot that tool calls answer, from the slot, the sample and the
    trajectory."""
    score_record: "Callable[[Record, Trajectory, TextComparisons], list[Score]] | None" = None
    """Function that returns all rows of a record with a slot type of the plug-in, replacing the engine's."""
    check_comparisons: Callable[[TextComparisons], object] | None = None
    """Function that raises :class:`~agrotools.core.UsageError` if a requested comparison is unknown."""
    tally: Callable[[], ModeTally] | None = None
    published: "Callable[[PublishedRun], PublishedFigures | None] | None" = None
    """Function that returns the paper's metrics for a run on the benchmark, or None if the mode has none."""


class JudgedMetric(NamedTuple):
    """Metric that a judge gives: the slots it applies to, and how the grades of a sample (each in [0, 1]) are
    combined."""

    applies_to: Callable[[Slot], bool]
    combine: Callable[[Sequence[float]], float] = fmean
    replies_of: str | None = None
    """Metric whose judge replies this one shares and interprets differently; None if it has its own questions."""
    of_slots: Callable[[Sequence[Slot], Sequence[float]], Sequence[float]] | None = None
    """Function that converts a sample's grades to one score per slot; None if the grades are the scores."""


@dataclass(frozen=True)
class Judging:
    """Questions to judges about the answers of a run, and the metrics computed from their grades."""

    metrics: Mapping[str, JudgedMetric]
    questions: "Callable[[Record, Rubrics | None], list[JudgeQuestion]]"
    """Function that returns the questions about a record; empty if the record is from another benchmark or has no
    answer."""
    read_rubrics: "Callable[[Path, str], Rubrics] | None" = None
    """Function that reads rubrics from a user's file, with a name; None if answers are not graded by rubrics."""
    calibrated: str = ""
    """Metric whose judges can be tested on answers with known grades and a reference text; empty if there is none."""


class PaperLabels(NamedTuple):
    """Functions that return the setting of a run, and the name of a sample's question with the columns that it counts
    in, as the tables of a benchmark's paper have them. Without them, settings are modes, and samples are questions."""

    setting_of: "Callable[[Manifest], str]"
    item_of: Callable[[Sample], tuple[str, Collection[str]]]


@dataclass(frozen=True)
class RecordErrors:
    """Error counter for records of one protocol and mode, which replaces the engine's. Their replies hold no calls."""

    add: "Callable[[Record, Errors], None]"
    undetectable: Mapping[str, str] = field(default_factory=dict)
    """Error classes that cannot be detected in such records, each with the reason."""


class ErrorSource(NamedTuple):
    """Place in a paper that defines classes of errors. ``name`` is a short name of the paper."""

    name: str
    arxiv: str
    place: str
    words: Mapping[str, str]
    """The paper's term for each class (:data:`agrotools.scoring.error_classes.CLASSES`)."""

    def __str__(self) -> str:
        return f"{self.name} (arXiv {self.arxiv}), {self.place}"


class ExpectedCount(NamedTuple):
    """Count printed in the paper. ``decides``: True if a different count means that this is another benchmark. Other
    counts depend on a rule of this package (e.g. which answer is an image) or on how the paper counted."""

    name: str
    published: int
    decides: bool
    measure: Callable[[Sequence[Sample]], int]


class PublishedFiles(NamedTuple):
    """Published figures of a paper: ``rows.csv``, ``set.csv`` and ``paper.toml`` in a folder of a package."""

    package: str
    family: str
    """Prefix of the metric ids in the files."""
    folder: str = "published"


class Paper(NamedTuple):
    """Facts of a benchmark's own paper: figures, counts, categories of tools, classes of errors."""

    figures: PublishedFiles | None = None
    """Figures shown next to runs."""
    counts: tuple[ExpectedCount, ...] = ()
    """Counts that ``agrotools benchmarks check`` compares."""
    tool_categories: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Tools of each category, for ``agrotools benchmarks describe``."""
    error_sources: tuple[ErrorSource, ...] = ()
    """Definitions of classes of errors."""


class PartColumn(NamedTuple):
    """Metric in the tables by task and answer type. ``title``: title of its separate table in a report on
    several runs."""

    mode: Mode
    metric: str
    heading: str
    title: str = ""


@dataclass(frozen=True)
class Reporting:
    """Sections of a report on runs that have metrics of the benchmark."""

    settings: "tuple[Setting, ...]" = ()
    """Tables of metrics with one row per run."""
    variants: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Variants shown below a metric in the same cell, by metric id: pairs of a word and the id of the variant."""
    parts: tuple[PartColumn, ...] = ()
    tables: "Callable[[Sequence[Summary], Notes], list[Part]] | None" = None
    """Function that returns additional tables for the terminal and the HTML page."""
    notes: "Callable[[ModeSummary], Iterable[str]] | None" = None
    """Function that returns lines of text below the tables on one mode of a run."""
    paper: PaperLabels | None = None
    """Settings and questions in the paper's tables (``agrotools score RUN --paper``)."""


class PredictionInput(NamedTuple):
    """Prediction file and the optional inputs given with it."""

    file: Path
    data: Path | None = None
    """Data set that holds the answers (``--data``)."""
    judgements: Path | None = None
    """File with replies of a judge (``--judgements``)."""
    embedder: "Embedder | None" = None


class PredictionContent(NamedTuple):
    """Content of a prediction file, as JSON data."""

    content: Any
    questions: int | None = None
    """Number of questions in the data set; set if the published scorer pairs predictions with questions by position."""


@dataclass(frozen=True)
class PredictionFormat:
    """Format of another program's prediction files, which are read, scored (published and corrected) and written."""

    title: str
    """Name of the benchmark in a heading."""
    family: str
    """Prefix of its metric ids."""
    compare: "Callable[[PredictionInput], ScoredFile]"
    differences: Mapping[str, str] = field(default_factory=dict)
    """Metrics as published, in the order of tables, each with a description of how the corrected metric differs."""
    published_suffix: str = ""
    corrected_suffix: str = "_corrected"
    """Suffixes of published and corrected metric ids."""
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Options that do not apply (``data``, ``judgements``, ``embedder``), each with a message and a hint."""
    write: "Callable[[Manifest, Mode, Sequence[Record]], PredictionContent | None] | None" = None
    """Function that returns the prediction file of one mode of a run from its valid records; None if the mode
    has none."""


class PromptTemplates(NamedTuple):
    """Templates of a protocol: the files ``*.j2`` in a folder of a package, rendered as ``PREFIX/NAME``."""

    prefix: str
    package: str
    folder: str = "prompts"


@dataclass(frozen=True)
class RunProtocol:
    """Protocol for prompting a model: the prompts, and how replies become calls and answers."""

    modes: tuple[Mode, ...]
    agent: "Callable[[Model, Mode, AgentOptions], ModelAgent]"
    """Factory of the agent for a mode."""
    prompts: "Callable[[Benchmark], str]" = lambda _benchmark: ""
    """Function that returns all prompt text that is in no template; runs are comparable only if it is equal."""
    templates: PromptTemplates | None = None
    """Prompt templates, whose texts are part of the prompt hash."""
    max_turns: int | None = None
    """Default limit of model turns per sample if neither the user nor the benchmark sets one; None for the engine's
    default."""
    shows_images: bool = True
    """Default of the image setting: True if images are shown to the model."""
    single_shot: bool = False
    """True if one reply contains all steps, tool results and the answer: prompts name the tools, but no tool is run."""
    stops_unparseable: bool = True
    """True if several unparseable replies in a row end a sample."""
    error_counts: Mapping[Mode, str] = field(default_factory=dict)
    """Targets of a :class:`RecordErrors`, by mode."""


class Download(NamedTuple):
    """Public place of a benchmark's files, for ``agrotools benchmarks get``.

    Attributes:
        address: an archive (``.zip``), a data set ``https://huggingface.co/datasets/OWNER/NAME``, or a folder or file
            of a repository, ``https://github.com/OWNER/REPO/tree/REF/PATH``.
        licence: terms of the files, as their authors state them.
        into: folder below the data root where the loader looks; an archive is unpacked there.
        size_mb: size of the files, if it is known before.
        target: ``"package.module:NAME"`` of a function from :class:`agrotools.benchmarks.obtaining.Request` to
            ``Obtained``, if the files are not all at one such place.
    """

    address: str
    licence: str
    into: str = ""
    target: str = ""
    size_mb: float | None = None


class BenchmarkFiles(NamedTuple):
    """Files of a benchmark. The functions take the data root, None if the user gave none."""

    needs: str = "nothing"
    """Files that a user must provide, and where to get them."""
    download: Download | None = None
    """Public place of the files, for ``agrotools benchmarks get``."""
    find: Callable[[Path | None], Path | str] | None = None
    """Function that returns the place of the files below a folder, or a remark on it, and raises
    :class:`~agrotools.core.AgrotoolsError` if they are missing. None if the benchmark needs no files."""
    roots: Callable[[Path | None], Sequence[Path]] | None = None
    """Function that returns the folders that file paths are relative to, for the images of a report."""
    check: "Callable[..., FileCheck] | None" = None
    """Function of data root and progress that reads all files for ``agrotools benchmarks check``; None to load the
    benchmark instead."""
    propose: "Callable[..., list[str]] | None" = None
    """Function of data root and progress that writes a field map for files of unknown form, and returns lines on what
    they hold."""
    takes_readings: bool = False
    """True if ``check`` and ``propose`` take the user's ``options`` and ``readings``, by these names."""


class Targets(NamedTuple):
    """Parts that only one task needs, as ``"package.module:NAME"``; they are imported when that task begins."""

    scoring: str = ""
    """A :class:`Scoring`, when a record has a slot of the plug-in or a run on the benchmark is scored."""
    judging: str = ""
    """A :class:`Judging`, when judges are asked or their replies are read."""
    reporting: str = ""
    """A :class:`Reporting`, when runs with metrics of the plug-in are reported."""
    predictions: Mapping[str, str] = MappingProxyType({})
    """A :class:`PredictionFormat` for each name for ``agrotools score --format``."""


@dataclass(frozen=True)
class BenchmarkPlugin:
    """Description of a benchmark: its name, files and loader, and the parts that score and report it."""

    name: str
    """Id on the command line and in run folders, e.g. ``ripeness``."""
    load: "Callable[[Loading], Benchmark]"
    about: str = ""
    """One-line description for ``agrotools benchmarks list``."""
    takes_options: bool = False
    """True if the loader accepts ``--option``; it must reject unknown options."""
    without_tools: bool = False
    """True if the questions have neither files nor reference calls."""
    files: BenchmarkFiles = field(default_factory=BenchmarkFiles)
    slots: tuple[type[Slot], ...] = ()
    """Slot types that the plug-in defines."""
    metrics: Mapping[str, MetricInfo] = field(default_factory=dict)
    """Metrics that the plug-in defines, by id, e.g. ``ripeness.accuracy``."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Tools that the plug-in provides: name to ``"package.module:NAME"``."""
    protocols: Mapping[str, RunProtocol] = field(default_factory=dict)
    """Protocols that the plug-in provides, by their name for ``--protocol``."""
    paper: Paper = field(default_factory=Paper)
    targets: Targets = field(default_factory=Targets)

    def __post_init__(self) -> None:
        """Check the types of the fields that the engine reads from all plug-ins at once.

        Raises:
            TypeError: a field has the wrong type. The plug-in is then reported as broken, and the others still work.
        """
        for name, kind in {"metrics": MetricInfo, "tools": str, "protocols": RunProtocol}.items():
            table = getattr(self, name)
            if not isinstance(table, Mapping):
                raise TypeError(f"{name} must be a mapping, not {type(table).__name__}")
            for key, value in table.items():
                if not isinstance(value, kind):
                    raise TypeError(
                        f"{name}[{key!r}] must be a {kind.__name__}, not {type(value).__name__}"
                    )
        for slot in self.slots:
            if not (isinstance(slot, type) and issubclass(slot, Slot)):
                raise TypeError(f"slots must be subclasses of Slot, not {slot!r}")
            if slot not in SLOT_TYPES and slot.model_fields["type"].default in ENGINE_TYPES:
                raise TypeError(
                    f"slots: {slot.model_fields['type'].default!r} is a slot type of agrotools already"
                )
        if not callable(self.load):
            raise TypeError(f"load must be a function, not {type(self.load).__name__}")

    @cached_property
    def scoring(self) -> Scoring:
        """Scorers of the plug-in; empty if it defines none."""
        return imported(self.targets.scoring) if self.targets.scoring else Scoring()

    @cached_property
    def judging(self) -> Judging | None:
        """Questions to judges; None if the plug-in defines none."""
        return imported(self.targets.judging) if self.targets.judging else None

    @cached_property
    def reporting(self) -> Reporting:
        """Report sections of the plug-in; empty if it defines none."""
        return imported(self.targets.reporting) if self.targets.reporting else Reporting()


def deferred(target: str, *first: Any) -> Callable[..., Any]:
    """Return a function that imports the target ``"package.module:NAME"`` when called, and calls it with ``first`` and
    its own arguments."""
    return lambda *arguments, **named: imported(target)(*first, *arguments, **named)
