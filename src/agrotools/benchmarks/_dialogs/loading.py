"""Loading of published benchmarks: layout of their files, samples and unusable entries, and checks of what was read."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue, ValidationError

from agrotools.benchmarks._dialogs.plugin_parts import PaperRun
from agrotools.benchmarks.checking import EntryFault, FileCheck, shortened
from agrotools.core import MODES, BenchmarkError, FrozenModel, Mode, Sample, UsageError
from agrotools.core.base import NoFileError, Progress
from agrotools.core.files import cache_dir
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, ContentDigest, SourceNote, with_clusters
from agrotools.plugin import ExpectedCount
from agrotools.text.loose_json import is_list, is_object

TOO_DEEP = "it is nested too deep"
FaultRule = Literal["stop", "leave-out"]
_SHOWN = 40
"""Faults that an error lists; ``agrotools benchmarks check`` lists all."""
_NAMED = 12
_DEEPEST = 100
"""Levels of lists and objects in an entry; the published ones have about ten, and no more than 250 can be written."""


class PublishedSettings(FrozenModel):
    """The options that all of these benchmarks have (``--option NAME=VALUE``)."""

    faults: FaultRule = "stop"
    """Entries that cannot be used: say so and stop, or go on without them (the header counts them)."""


class Findings:
    """Faults and notes collected while a file is read. ``part``: prefix of an entry's key where files are several."""

    def __init__(self) -> None:
        self.part = ""
        self.faults: list[EntryFault] = []
        self._remarks: list[str] = []
        self._notes: dict[str, dict[str, None]] = defaultdict(dict)

    def fault(self, entry: str, message: str) -> None:
        """The entry cannot be used."""
        self.faults.append(EntryFault(self.part + entry, message))

    def note(self, entry: str, message: str) -> None:
        """The entry is used, and something about it was not as published files have it."""
        self._notes[message][self.part + entry] = None

    def remark(self, message: str) -> None:
        """Something about all entries."""
        self._remarks.append(message)

    @property
    def broken(self) -> list[str]:
        """Keys of the entries that cannot be used, each once."""
        return list(dict.fromkeys(fault.entry for fault in self.faults))

    def notes(self) -> list[str]:
        """Remarks on all entries, then each kind of note once, with the entries it is about."""
        return [*self._remarks, *(f"{message}: {entry_list([*entries])}" for message, entries in self._notes.items())]


@dataclass
class EntryFindings:
    """Findings in the entry ``key``. Every fault is noted, and all are reported together."""

    key: str
    findings: Findings
    broken: bool = False

    def fault(self, message: str) -> None:
        """The entry cannot be used."""
        self.broken = True
        self.findings.fault(self.key, message)

    def note(self, message: str) -> None:
        """It is used, and something about it was not as published files have it."""
        self.findings.note(self.key, message)


def entry_list(entries: Sequence[str]) -> str:
    """``entry 3``, ``entries 3, 4, 5``, ``entries 3, 4, ... (120 in all)``."""
    quoted_entries = ", ".join(shortened(entry, 40) for entry in entries[:_NAMED])
    more = f", ... ({len(entries)} in all)" if len(entries) > _NAMED else ""
    return f"{'entry' if len(entries) == 1 else 'entries'} {quoted_entries}{more}"


def quoted(value: JsonValue) -> str:
    """A value of a file as a message quotes it."""
    return shortened(repr(value), 60)


def error_text(error: BenchmarkError) -> str:
    """Message of an error, with its hint."""
    return f"{error.message} ({error.hint})" if error.hint else error.message


def is_too_deep(entry: object) -> bool:
    """True if an entry has more levels than can be read and written again."""
    level: list[Any] = [entry]
    for _ in range(_DEEPEST):
        level = [
            inner
            for value in level
            for inner in (value.values() if is_object(value) else value if is_list(value) else ())
        ]
        if not level:
            return False
    return True


def stop_at_faults(name: str, faults: Sequence[EntryFault], entries: int, folder: object) -> None:
    """Refuse a file with faults, all of them in one message.

    Raises:
        BenchmarkError: there is one.
    """
    if not faults:
        return
    lines = [f"  {fault}" for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        lines.append(f"  ... and {len(faults) - _SHOWN} more: agrotools benchmarks check {name} {folder}")
    broken = len({fault.entry for fault in faults})
    raise BenchmarkError(
        "\n".join([f"{name}: {broken} of {entries} entries cannot be used", *lines]),
        hint="correct them, or skip them: --option faults=leave-out",
    )


def first_reason(error: ValidationError | RecursionError) -> str:
    """First error that pydantic found, in words."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"


ReadOne = Callable[[int, Any, EntryFindings], Sample | None]


@dataclass(frozen=True)
class ReadSet:
    """The samples of all entries that can be used, and what is wrong with the others.

    ``elsewhere``: see :class:`~agrotools.formats.benchmark.Benchmark`.
    """

    root: Path
    files: tuple[Path, ...]
    """The files of entries that were read."""
    entries: int
    samples: Sequence[Sample]
    findings: Findings
    elsewhere: Mapping[str, Path] = field(default_factory=dict[str, Path])

    @property
    def faults(self) -> list[EntryFault]:
        return self.findings.faults


def samples_of(
    entries: Mapping[str, Any], read: ReadOne, findings: Findings, progress: Progress, what: str = "entries"
) -> list[Sample]:
    """The samples of all entries that can be used, in file order, each under an id of its own.

    ``read`` makes the sample of an entry, given its position and itself; None where it cannot be used, for which it
    tells every reason. ``progress`` is told ``what`` is read.
    """
    samples: list[Sample] = []
    for position, (key, entry) in enumerate(entries.items()):
        if sample := read(position, entry, EntryFindings(key, findings)):
            samples.append(sample)
        progress(what, position + 1, len(entries))
    return _with_unique_ids(samples, findings)


def _with_unique_ids(samples: Sequence[Sample], findings: Findings) -> list[Sample]:
    """The samples, later ones of the same id (keys ``1`` and ``01``) under one of their own, with a note."""
    used_ids: set[str] = set()
    renamed_samples: list[Sample] = []
    for sample in samples:
        name, number = sample.id, 2
        while name in used_ids:
            name, number = f"{sample.id}_{number}", number + 1
        used_ids.add(name)
        if name != sample.id:
            findings.note(str(sample.metadata.get("entry", "")), "its key is like that of another entry")
            sample = sample.model_copy(update={"id": name})
        renamed_samples.append(sample)
    return renamed_samples


def benchmark_of(
    name: str,
    description: str,
    source: SourceNote,
    paper: PaperRun,
    toolset: Sequence[str],
    read: ReadSet,
    settings: PublishedSettings,
    modes: tuple[Mode, ...] = MODES,
) -> Benchmark:
    """The benchmark of what was read.

    Its content hash covers questions, gold, tools and files, as that of a benchmark folder does.

    Raises:
        BenchmarkError: entries cannot be used and are not to be left out, or none can.
    """
    if settings.faults == "stop":
        stop_at_faults(name, read.faults, read.entries, read.root)
    if not read.samples:
        stop_at_faults(name, read.faults, read.entries, read.root)
        raise BenchmarkError(f"{name}: {read.root} holds no entry that is asked for")
    used = {tool for sample in read.samples for tool in sample.toolset}
    notes = read.findings.notes()
    if broken := read.findings.broken:
        notes.append(f"{len(broken)} of {read.entries} entries left out, they cannot be used: {', '.join(broken[:50])}")
    metadata: dict[str, JsonValue] = {
        "files": [path.relative_to(read.root).as_posix() for path in read.files],
        "settings": json.loads(settings.model_dump_json(exclude_defaults=True)),
        "notes": [*notes],
    }
    header = BenchmarkHeader(
        name=name,
        version="1",
        licence=source.licence,
        description=description,
        toolset=(*(tool for tool in toolset if tool in used), *sorted(used.difference(toolset))),
        sources=(source,),
        protocol=paper.protocol,
        max_steps=paper.max_steps,
        modes=modes,
        metadata=metadata,
    )
    samples = with_clusters(read.samples)
    digest = ContentDigest(header)
    for sample in samples:
        digest.add(sample)
    content_hash = digest.hexdigest(lambda: sorted(samples, key=lambda sample: sample.id))
    return Benchmark(header, read.root, samples, content_hash, read.elsewhere)


class Layout(NamedTuple):
    """Published files of a benchmark and their layout."""

    name: str
    files: tuple[str, ...]
    """Names of the file of entries, the likeliest first."""
    folders: tuple[str, ...]
    """Folders below the data root that may hold it, the likeliest first; the data root itself comes last."""
    tree: str
    """Description of the expected files, for the user."""
    get_it: str
    """Download source."""

    def find(self, data_root: Path | None) -> Path:
        """The file of entries below ``data_root``.

        Raises:
            UsageError: no folder was given.
            BenchmarkError: the folder is not there, or holds no such file; the message says what is expected where.
        """
        if data_root is None:
            raise UsageError(
                f"where are the files of {self.name}?",
                hint=f"--data-root DIR, or `agrotools benchmarks check {self.name} DIR`; {self.source}",
            )
        root = data_root.expanduser()
        if root.is_file():
            raise BenchmarkError(f"{root} is a file, not a folder", hint=f"give the folder DIR; {self.source}")
        if not root.is_dir():
            raise BenchmarkError(f"there is no folder {root}", hint=self.source)
        for folder in (*self.folders, "."):
            for name in self.files:
                if (root / folder / name).is_file():
                    # Not the file itself: where it is a link, the images still lie beside the link.
                    return (root / folder).resolve() / name
        raise NoFileError(f"{root} holds no {' or '.join(self.files)} of {self.name}", hint=self.source)

    def roots(self, data_root: Path | None) -> list[Path]:
        """Folders that paths of files are relative to; frames of videos are in the cache."""
        return [self.find(data_root).parent, cache_dir().resolve()]

    @property
    def source(self) -> str:
        """Source of the files, and the tree that is expected."""
        return f"to be had from {self.get_it}; expected: {self.tree}"


def file_check(
    read: ReadSet, layout: Layout, notes: Sequence[str] = (), expected: tuple[ExpectedCount, ...] | None = None
) -> FileCheck:
    """Check of what was read; ``notes`` come before what is wrong with ``toolmeta.json`` beside the data."""
    return FileCheck(
        files=tuple(str(path) for path in read.files),
        entries=read.entries,
        samples=read.samples,
        faults=read.faults,
        notes=[*read.findings.notes(), *notes, *_toolmeta_faults(read.root)],
        hint=f"whole files are {layout.source}" if read.faults else "",
        expected=expected,
    )


def _toolmeta_faults(root: Path) -> list[str]:
    """Faults of the ``toolmeta.json`` that the protocol lagent reads."""
    from agrotools.benchmarks._dialogs.lagent_format import TOOLMETA_FILE, read_toolmeta

    try:
        if (root / TOOLMETA_FILE).is_file():
            read_toolmeta(root / TOOLMETA_FILE)
    except BenchmarkError as error:
        return [error_text(error)]
    return []
