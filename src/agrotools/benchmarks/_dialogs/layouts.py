"""Layouts of the files of published benchmarks: their folders, their sources, and checks of what was read."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agrotools.benchmarks._dialogs.findings import told
from agrotools.benchmarks._dialogs.samples import ReadSet
from agrotools.benchmarks.checking import FileCheck
from agrotools.core import BenchmarkError, UsageError
from agrotools.core.files import cache_dir
from agrotools.plugin import ExpectedCount


class Layout(NamedTuple):
    """How the files of a benchmark are published."""

    name: str
    files: tuple[str, ...]
    """Names of the file of entries, the likeliest first."""
    folders: tuple[str, ...]
    """Folders below the data root that may hold it, the likeliest first; the data root itself comes last."""
    tree: str
    """What lies where, for a person."""
    get_it: str
    """Where it is to be had."""


def find_file(layout: Layout, data_root: Path | None) -> Path:
    """The file of entries of a benchmark below ``data_root``.

    Raises:
        UsageError: no folder was given.
        BenchmarkError: the folder is not there, or holds no such file; the message says what is expected where.
    """
    if data_root is None:
        raise UsageError(
            f"where are the files of {layout.name}?",
            hint=f"--data-root DIR, or `agrotools benchmarks check {layout.name} DIR`; {how_to_get(layout)}",
        )
    root = data_root.expanduser()
    if root.is_file():
        raise BenchmarkError(f"{root} is a file, not a folder", hint=f"give the folder DIR; {how_to_get(layout)}")
    if not root.is_dir():
        raise BenchmarkError(f"there is no folder {root}", hint=how_to_get(layout))
    for folder in (*layout.folders, "."):
        for name in layout.files:
            if (root / folder / name).is_file():
                # Not the file itself: where it is a link, the images still lie beside the link.
                return (root / folder).resolve() / name
    raise BenchmarkError(f"{root} holds no {_either(layout.files)} of {layout.name}", hint=how_to_get(layout))


def how_to_get(layout: Layout) -> str:
    """Where the files are to be had, and what has to lie where."""
    return f"to be had from {layout.get_it}; expected: {layout.tree}"


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)


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
