"""Checks of the files of benchmarks, and comparison of their counts with the published ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from agrotools.core import BENCHMARKS, AgrotoolsError, BenchmarkError, Sample, UsageError
from agrotools.core.installed import benchmark_id, plugin_of
from agrotools.core.progress import Progress, no_progress
from agrotools.core.readings import Readings
from agrotools.core.texts import counted_names
from agrotools.exit_codes import DONE, FAULTS, NOT_DONE, code_of
from agrotools.loading.benchmarks import default_data_root, load_benchmark
from agrotools.loading.contract import BenchmarkPlugin, ExpectedCount

Options = Mapping[str, str | int | bool]
_COUNTS_LISTED = 12
"""Counts that a message lists: one line of a terminal or two."""


class EntryFault(NamedTuple):
    """Reason why an entry cannot be used. ``entry`` is the key of the entry in the file."""

    entry: str
    message: str

    def __str__(self) -> str:
        return f"entry {shorten(self.entry, 40)}: {self.message}"


class FileCheck(NamedTuple):
    """Content of a benchmark's files.

    ``hint`` says how to correct the faults. ``expected`` holds the published counts of the part that was found, if that
    is not the whole benchmark.
    """

    files: tuple[str, ...]
    entries: int
    samples: Sequence[Sample]
    faults: Sequence[EntryFault] = ()
    notes: Sequence[str] = ()
    hint: str = ""
    expected: tuple[ExpectedCount, ...] | None = None


class MapProposal(NamedTuple):
    """Result of writing a field map: lines on what was found, and whether the map reads every entry as it is."""

    lines: Sequence[str]
    reads_all: bool


class Count(NamedTuple):
    """Measured count and the published one. ``decides``: True if a difference means that this is another benchmark."""

    what: str
    published: int
    here: int
    decides: bool

    @property
    def agrees(self) -> bool:
        return self.published == self.here


class Checkup(NamedTuple):
    """Result of a check. ``missing``: message about files that are missing or that nothing can be read from; nothing
    else is checked in that case, and ``missing_code`` is the exit code that the same error has in other commands.

    ``hint`` says how to get the missing files or correct the faults.
    """

    name: str
    files: tuple[str, ...]
    entries: int
    usable: int
    faults: Sequence[EntryFault]
    notes: Sequence[str]
    counts: Sequence[Count]
    missing: str = ""
    hint: str = ""
    missing_code: int = DONE

    @property
    def exit_code(self) -> int:
        return self.missing_code or (DONE if self.sound else FAULTS)

    @property
    def sound(self) -> bool:
        return (
            not self.missing
            and not self.faults
            and all(count.agrees for count in self.counts if count.decides)
        )


def count_list(counts: Mapping[str, int]) -> str:
    """Return the largest counts for a message: ``season (4), sensor (2) and 3 more``."""
    largest_first = [f"{name} ({count})" for name, count in Counter(counts).most_common()]
    return counted_names(largest_first, _COUNTS_LISTED)


def shorten(text: str, limit: int = 80) -> str:
    """Return ``text`` on one line, cut to at most ``limit`` characters."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def file_roots(name: str, data_root: Path | None) -> list[Path]:
    """Return the folders that the file paths of a benchmark are relative to; empty if its files are not found."""
    if (plugin := plugin_of(name)) is None or plugin.files.roots is None:
        return []
    try:
        return list(plugin.files.roots(default_data_root(plugin, data_root)))
    except AgrotoolsError:
        return []


def check_benchmark(
    name: str,
    data_root: Path | None,
    progress: Progress = no_progress,
    options: Options = MappingProxyType({}),
    readings: Readings | None = None,
) -> Checkup:
    """Find the files of the benchmark ``name`` below ``data_root``, read all of them, and compare the counts.

    ``options``: as of ``eval``, for files that may be read in two ways; ``readings``: how they were read.

    Raises:
        UsageError: there is no such benchmark, it needs a folder and none was given, or it takes no options.
        UndecidedError: the files may be read in two ways.
    """
    name = benchmark_id(name)
    plugin: BenchmarkPlugin = BENCHMARKS.get(name)
    data_root = default_data_root(plugin, data_root)
    try:
        check = plugin.files.check or partial(_loaded_check, name)
        found = check(data_root, progress, **_of_user(plugin, options, readings))
    except BenchmarkError as error:
        code = code_of(error) or NOT_DONE
        return Checkup(name, (), 0, 0, (), (), (), error.message, error.hint or "", code)
    expected = plugin.paper.counts if found.expected is None else found.expected
    counts = [
        Count(each.name, each.published, each.measure(found.samples), each.decides)
        for each in expected
    ]
    usable = len(found.samples)
    return Checkup(
        name, found.files, found.entries, usable, found.faults, found.notes, counts, hint=found.hint
    )


def _of_user(
    plugin: BenchmarkPlugin, options: Options, readings: Readings | None
) -> dict[str, Any]:
    """Return the arguments of a check that say how the user's files are read; UsageError if it takes none."""
    if plugin.files.takes_readings:
        return {"options": options, "readings": readings or Readings()}
    if options:
        raise UsageError(
            f"the files of {plugin.name} have one reading", hint="--option is for: agrotools"
        )
    return {}


def propose_map_of(
    name: str,
    data_root: Path | None,
    progress: Progress = no_progress,
    options: Options = MappingProxyType({}),
    readings: Readings | None = None,
) -> MapProposal:
    """Write a field map for the files of the benchmark ``name``, and return what they hold."""
    plugin: BenchmarkPlugin = BENCHMARKS.get(benchmark_id(name))
    if plugin.files.propose is None:
        raise UsageError(
            f"{name} has files of a known form", hint="--propose-map is for: agrotools"
        )
    of_user = _of_user(plugin, options, readings)
    return plugin.files.propose(default_data_root(plugin, data_root), progress, **of_user)


def _loaded_check(name: str, data_root: Path | None, progress: Progress) -> FileCheck:
    benchmark = load_benchmark(name, data_root, progress)
    header_notes = benchmark.header.metadata.get("notes")
    notes = [str(note) for note in header_notes] if isinstance(header_notes, list) else []
    return FileCheck((str(benchmark.root),), len(benchmark.samples), benchmark.samples, notes=notes)
