"""Sources of benchmarks: one adapter per data set, which turns a folder of the user into a benchmark."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agrotools.core import UsageError
from agrotools.core.errors import NoFileError
from agrotools.core.progress import Progress, no_progress
from agrotools.core.registry import SOURCES, report_plugin_faults
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools_build.choosing import QUERIES
from agrotools_build.sources.public import DATASETS, build_all, build_one

_PUBLIC = ", ".join(sorted(DATASETS))
for _name in DATASETS:
    SOURCES.add(_name, partial(build_one, _name))


def build_sources(
    sources: Sequence[str],
    out: Path,
    progress: Progress = no_progress,
    queries: int | None = None,
    allow_missing: bool = False,
) -> BenchmarkHeader:
    """Build one benchmark from sources (``NAME=DIR``) into ``out``, completely or not at all.

    Several public data sets contribute by their shares of the published benchmark, or of ``queries`` samples.
    UsageError: an unknown source, or ones that cannot be joined. BenchmarkError: a data set is incomplete.
    """
    folders = [_parse_source(source) for source in sources]
    is_joined = len(folders) != 1 or queries is not None
    alone = [name for name, _ in folders if name not in DATASETS]
    if is_joined and (alone or len({name for name, _ in folders}) < len(folders)):
        what = f"{alone[0]!r} cannot be joined with others" if alone else "a source is named twice"
        raise UsageError(what, hint=f"several --source may be given of: {_PUBLIC}")
    for _, folder in folders:
        if not folder.exists():
            hint = "give the folder of the data set: --source NAME=DIR"
            raise NoFileError(f"there is no folder {folder}", hint=hint)
    if is_joined:
        return build_all(
            dict(folders), out.expanduser(), progress, queries or QUERIES, allow_missing
        )
    ((name, folder),) = folders
    if name in DATASETS:
        return build_one(name, folder, out.expanduser(), progress, allow_missing)
    if allow_missing:
        raise UsageError(
            f"--allow-missing does not apply to {name!r}", hint=f"it applies to: {_PUBLIC}"
        )
    build = SOURCES.get(name)
    with report_plugin_faults(f"source {name!r} failed"):
        return build(folder, out.expanduser(), progress)


def _parse_source(source: str) -> tuple[str, Path]:
    name, separator, folder = source.partition("=")
    if not separator or not name or not folder:
        known = ", ".join(SOURCES.names())
        raise UsageError(
            f"--source is {source!r}", hint=f"write NAME=DIR, where NAME is one of: {known}"
        )
    SOURCES.get(name)  # an unknown name is reported before a missing folder
    return name, Path(folder).expanduser()


__all__ = ["SOURCES", "build_sources"]
