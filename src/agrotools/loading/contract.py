"""Contract of a benchmark plug-in: the object that a package provides to add a benchmark.

A package declares one entry point for each benchmark, in the group ``agrotools.benchmarks``. The target is a
:class:`BenchmarkPlugin`; only its name and its loader are required. Data that the engine needs from all plug-ins at
once (names, slot types, metrics, tools, protocols) is stored in the object itself; :class:`Targets` names the parts
that only one task needs. Their contracts are in :mod:`agrotools.scoring.contracts`,
:mod:`agrotools.scoring.judging.contracts`, :mod:`agrotools.scoring.prediction_format` and
:mod:`agrotools.report.contracts`, that of protocols is in :mod:`agrotools.agents.protocols`.

The module of the plug-in must stay light: it should import only :mod:`agrotools.plugin`, :mod:`agrotools.core` and its
own slot types. ``tests/engine/plugins`` contains an example.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from agrotools.agents.protocols import RunProtocol
from agrotools.core import Sample, Slot
from agrotools.core.slot import ENGINE_TYPES, SLOT_TYPES
from agrotools.scoring.contracts import ErrorSource, MetricInfo

if TYPE_CHECKING:
    from agrotools.formats.benchmark import Benchmark
    from agrotools.loading.benchmarks import Loading
    from agrotools.loading.checking import FileCheck, MapProposal


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


class Download(NamedTuple):
    """Public place of a benchmark's files, for ``agrotools benchmarks get``.

    Attributes:
        address: an archive (``.zip``), a data set ``https://huggingface.co/datasets/OWNER/NAME``, or a folder or file
            of a repository, ``https://github.com/OWNER/REPO/tree/REF/PATH``.
        licence: terms of the files, as their authors state them.
        into: folder below the data root where the loader looks; an archive is unpacked there.
        size_mb: size of the files, if it is known before.
        quick_mb: size of the files of the quick part, if it can be downloaded alone.
        target: ``"package.module:NAME"`` of a function from :class:`agrotools.loading.obtaining.Request` to
            ``Obtained``, if the files are not all at one such place.
    """

    address: str
    licence: str
    into: str = ""
    target: str = ""
    size_mb: float | None = None
    quick_mb: float | None = None


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
    propose: "Callable[..., MapProposal] | None" = None
    """Function of data root and progress that writes a field map for files of unknown form, and returns what they
    hold."""
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
    scope: str = ""
    """What a score measures and what it does not, in two sentences, and a third one on the task types that are not
    asked, if any. They stand on the screen, on the page and in the list of benchmarks."""
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
        for metric, info in self.metrics.items():
            _check_metric(metric, info)
        for slot in self.slots:
            if not (isinstance(slot, type) and issubclass(slot, Slot)):
                raise TypeError(f"slots must be subclasses of Slot, not {slot!r}")
            if slot not in SLOT_TYPES and slot.model_fields["type"].default in ENGINE_TYPES:
                raise TypeError(
                    f"slots: {slot.model_fields['type'].default!r} is a slot type of agrotools already"
                )
        if not callable(self.load):
            raise TypeError(f"load must be a function, not {type(self.load).__name__}")


def _check_metric(metric: str, info: MetricInfo) -> None:
    """Raise a TypeError if a metric of a plug-in could never have a column."""
    if "." not in metric:
        raise TypeError(f"metrics[{metric!r}]: the id must have a point, e.g. 'ripeness.{metric}'")
    if not info.compared_in:
        return
    if info.slots is None:
        raise TypeError(f"metrics[{metric!r}]: compared_in needs slots, which the metric averages")
    if "step-by-step" in info.compared_in:
        raise TypeError(
            f"metrics[{metric!r}]: compared_in must not contain 'step-by-step', which has the metrics of agrotools "
            "alone"
        )
