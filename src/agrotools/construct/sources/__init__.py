"""Sources: one adapter per data set, each turning a folder of the user's into a benchmark."""

from collections.abc import Callable
from pathlib import Path

from agrotools.construct.progress import Progress, no_progress
from agrotools.core import Registry, UsageError
from agrotools.core.benchmark_header import BenchmarkHeader

SOURCES: Registry[Callable[[Path, Path, Progress], BenchmarkHeader]] = Registry(
    "source", "agrotools.sources", {"field": "agrotools.construct.sources.field:build_field"}
)
"""Adapters by name. Each takes the data set's folder, the folder to write, and a progress callback."""


def build_source(source: str, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Build the benchmark that ``source`` (``NAME=DIR``) describes into ``out``, whole or not at all.

    Raises:
        UsageError: not of the form ``NAME=DIR``, or no such source (with the closest names).
        BenchmarkError: the data set is incomplete, or ``out`` holds something else than a benchmark.
    """
    name, separator, folder = source.partition("=")
    if not separator or not name or not folder:
        known = ", ".join(SOURCES.names())
        raise UsageError(f"--source is {source!r}", hint=f"write NAME=DIR, where NAME is one of: {known}")
    return SOURCES.get(name)(Path(folder).expanduser(), out.expanduser(), progress)


__all__ = ["SOURCES", "build_source"]
