"""Samples read from the files of a published benchmark, and the benchmark that is made of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from agrotools.benchmarks._dialogs.findings import (
    EntryFault,
    EntryFindings,
    Findings,
    PublishedSettings,
    stop_at_faults,
)
from agrotools.core import MODES, BenchmarkError, Mode, Protocol, Sample
from agrotools.core.progress import Progress
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, ContentDigest, SourceNote, with_clusters


class PublishedWay(NamedTuple):
    """The protocol of a paper, and the number of model turns after which a sample ended; None where there is one."""

    protocol: Protocol
    max_steps: int | None = None


PUBLISHED_WAYS = {
    "gta": PublishedWay("lagent", 10),
    "gta-2": PublishedWay("lagent", 10),
    "thinkgeo": PublishedWay("lagent", 15),
    "agent-x": PublishedWay("agent-x"),
}
"""Protocol and turn limit of each paper, by benchmark: the defaults of a run."""


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
    return _with_own_ids(samples, findings)


def _with_own_ids(samples: Sequence[Sample], findings: Findings) -> list[Sample]:
    """The samples, later ones of the same id (keys ``1`` and ``01``) under one of their own, with a note."""
    taken: set[str] = set()
    found: list[Sample] = []
    for sample in samples:
        name, number = sample.id, 2
        while name in taken:
            name, number = f"{sample.id}_{number}", number + 1
        taken.add(name)
        if name != sample.id:
            findings.note(str(sample.metadata.get("entry", "")), "its key is like that of another entry")
            sample = sample.model_copy(update={"id": name})
        found.append(sample)
    return found


def benchmark_of(
    name: str,
    version: str,
    description: str,
    source: SourceNote,
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
    way = PUBLISHED_WAYS.get(name)
    header = BenchmarkHeader(
        name=name,
        version=version,
        licence=source.licence,
        description=description,
        toolset=(*(tool for tool in toolset if tool in used), *sorted(used.difference(toolset))),
        sources=(source,),
        protocol=way.protocol if way else None,
        max_steps=way.max_steps if way else None,
        modes=modes,
        metadata=metadata,
    )
    samples = with_clusters(read.samples)
    digest = ContentDigest(header)
    for sample in samples:
        digest.add(sample)
    content_hash = digest.hexdigest(lambda: sorted(samples, key=lambda sample: sample.id))
    return Benchmark(header, read.root, samples, content_hash, read.elsewhere)
