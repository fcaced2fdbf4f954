"""Where the files of published benchmarks lie, and where they are to be had."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agrotools.core import BenchmarkError, UsageError


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
