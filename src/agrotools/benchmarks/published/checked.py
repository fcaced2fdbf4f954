"""Checks of published files, and the folders that they are in."""

from collections.abc import Sequence
from pathlib import Path

from agrotools.benchmarks.checking import FileCheck
from agrotools.benchmarks.published.findings import told
from agrotools.benchmarks.published.loaded import ReadSet
from agrotools.benchmarks.published.places import Layout, find_file, how_to_get
from agrotools.core import BenchmarkError
from agrotools.core.files import cache_dir
from agrotools.plugin import ExpectedCount


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
        hint=f"whole files are {how_to_get(layout)}" if read.faults else "",
        expected=expected,
    )


def roots_of(layout: Layout, data_root: Path | None) -> list[Path]:
    """Folders that paths of files are relative to; frames of videos are in the cache."""
    return [find_file(layout, data_root).parent, cache_dir().resolve()]


def _toolmeta_faults(root: Path) -> list[str]:
    """Faults of the ``toolmeta.json`` that the protocol lagent reads."""
    from agrotools.benchmarks._dialogs.declared import TOOLMETA_FILE, read_toolmeta

    try:
        if (root / TOOLMETA_FILE).is_file():
            read_toolmeta(root / TOOLMETA_FILE)
    except BenchmarkError as error:
        return [told(error)]
    return []
