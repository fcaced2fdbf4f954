"""Sources of benchmarks: one adapter per data set, which turns a folder of the user into a benchmark."""

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from agrotools.build.allocation import QUERIES
from agrotools.build.sources.agml import PREFIX, build_agml
from agrotools.build.sources.public import DATASETS, build_all, build_public
from agrotools.core import AgrotoolsError, BenchmarkError, Registry, UsageError
from agrotools.core.base import NoFileError, Progress, no_progress
from agrotools.formats.benchmark import BenchmarkHeader

SOURCES: Registry[Callable[[Path, Path, Progress], BenchmarkHeader]] = Registry(
    "source",
    "agrotools.sources",
    {
        "field": "agrotools.build.sources.field:build_field",
        "hf": "agrotools.build.export.huggingface:build_huggingface",
        "gta": "agrotools.build.export.gta_in:build_gta",
    },
)
"""Builders by name. Each takes the data set's folder, the folder to write, and a progress callback.

``hf`` and ``gta`` read benchmarks in the layouts that :mod:`agrotools.build.export` writes; ``gta`` also reads those of
other authors.
"""

for _name in DATASETS:
    SOURCES.add(_name, build_public(_name))


def build_source(source: str, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Build the benchmark from ``source`` (``NAME=DIR`` or ``agml:NAME=DIR``) into ``out``, completely or not at all.

    Raises:
        UsageError: ``source`` is not of the form ``NAME=DIR``, or there is no such source (with the closest names).
        BenchmarkError: the data set is incomplete, or ``out`` holds something other than a benchmark.
    """
    name, folder = _source_folder(source)
    build = build_agml(name) if name.startswith(PREFIX) else SOURCES.get(name)
    try:
        return build(folder, out.expanduser(), progress)
    except (AgrotoolsError, OSError):
        raise
    except Exception as error:  # a source of another package may raise anything
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise BenchmarkError(
            f"source {name!r} failed: {type(error).__name__}: {error} "
            f"({Path(place.filename).name}, line {place.lineno})"
        ) from error


def build_sources(
    sources: Sequence[str], out: Path, progress: Progress = no_progress, queries: int | None = None
) -> BenchmarkHeader:
    """Build one benchmark from several public data sets, each given as ``NAME=DIR``.

    The data sets contribute in proportion to their shares of the published benchmark, or of ``queries`` samples in
    total.

    Raises:
        UsageError: as :func:`build_source`; also if a source is not a public data set or is named twice.
        BenchmarkError: as :func:`build_source`.
    """
    if len(sources) == 1 and queries is None:
        return build_source(sources[0], out, progress)
    names = [source.partition("=")[0] for source in sources]
    others = [name for name in names if name.startswith(PREFIX) or name in SOURCES]
    alone = [name for name in others if name not in DATASETS]
    if alone or len(set(names)) < len(names):
        what = f"{alone[0]!r} cannot be joined with others" if alone else "a source is named twice"
        raise UsageError(what, hint=f"several --source may be given of: {', '.join(sorted(DATASETS))}")
    return build_all(dict(_source_folder(source) for source in sources), out.expanduser(), progress, queries or QUERIES)


def _source_folder(source: str) -> tuple[str, Path]:
    name, separator, folder = source.partition("=")
    if not separator or not name or not folder:
        known = ", ".join(SOURCES.names())
        raise UsageError(f"--source is {source!r}", hint=f"write NAME=DIR, where NAME is one of: {known}, or agml:NAME")
    if not name.startswith(PREFIX):
        SOURCES.get(name)  # an unknown name is reported before a missing folder
    path = Path(folder).expanduser()
    if not path.exists():
        raise NoFileError(f"there is no folder {path}", hint="give the folder of the data set: --source NAME=DIR")
    return name, path


__all__ = ["SOURCES", "build_source", "build_sources"]
