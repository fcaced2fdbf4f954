"""Loading of a benchmark by its name or from its folder."""

import sys
from collections.abc import Callable, Iterable, Mapping
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from agrotools.core import BENCHMARKS, BenchmarkError, FrozenModel, UsageError
from agrotools.core.errors import NoFileError
from agrotools.core.files import cache_dir
from agrotools.core.installed import benchmark_id
from agrotools.core.progress import Progress, no_progress, patient_progress
from agrotools.core.readings import Readings
from agrotools.core.registry import report_plugin_faults
from agrotools.core.texts import suggestion
from agrotools.formats.benchmark import HEADER_FILE, Benchmark, load_folder
from agrotools.loading.contract import BenchmarkPlugin

Settings = TypeVar("Settings", bound=FrozenModel)
Found = TypeVar("Found")
RECORDS = ".agrotools"
"""Folder below a data root that holds the records of downloads."""
INCOMPLETE = "incomplete"
"""Start of a loader's note on files or models that are missing; the screen of a run repeats it."""


class Loading(NamedTuple):
    """Arguments of a loader: folder of the benchmark files, options of the user, and progress callback.

    ``quick``: only the files of the quick part will be used, so a loader may prepare those alone. The samples and the
    content hash are those of the whole benchmark.

    ``files_later``: files are needed only after :meth:`Benchmark.prepare`, so a loader may leave them to it.
    ``questions_only``: no file is needed.

    ``readings``: asks the user where the files may be read in two ways, and takes how they were read; without it, such
    files end in an error.
    """

    data_root: Path | None = None
    options: Mapping[str, str | int | bool] = MappingProxyType({})
    progress: Progress = no_progress
    quick: bool = False
    files_later: bool = False
    questions_only: bool = False
    readings: Readings | None = None


def data_folder() -> Path:
    """Return the folder where ``agrotools benchmarks get`` puts files; loaders look there if no data root is given."""
    return cache_dir("data")


def default_data_root(plugin: BenchmarkPlugin, data_root: Path | None) -> Path | None:
    """Return the data root of a benchmark: the given one, or the folder of downloads if its files are there."""
    found = data_folder() / RECORDS / f"{plugin.name}.json"
    if data_root is not None or plugin.files.find is None or not found.is_file():
        return data_root
    return data_folder()


def find_below(
    name: str,
    data_root: Path | None,
    folders: Iterable[str],
    find: Callable[[Path], Found | None],
    missing: str,
    hint: str,
    *,
    itself: bool = True,
) -> tuple[Path, Found]:
    """Return the first folder below the data root (default: the downloads) in which ``find`` finds something, and that.

    Args:
        folders: places below the data root, the most likely first, in any case of their letters.
        itself: True to look last in the data root itself.

    Raises:
        NoFileError: nothing is found of the benchmark ``name``; ``missing`` says what, ``hint`` where to get it.
    """
    root = (data_root or data_folder()).expanduser()
    patterns = (
        "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else escape(c) for c in each)
        for each in folders
    )
    places = [path for pattern in patterns for path in sorted(root.glob(pattern))]
    for place in [*places, root] if itself else places:
        # What is found has paths below the place that is returned, also if the data root is a symbolic link.
        place = place.resolve()
        if place.is_dir() and (found := find(place)):
            return place, found
    why = f"{root} contains no {missing} of {name}" if root.is_dir() else f"{root} is no folder"
    hint = f"{hint}; --data-root DIR names the folder of the files"
    raise NoFileError(why if data_root else f"{name} is not downloaded yet", hint=hint)


def settings_of(
    model: type[Settings], benchmark: str, options: Mapping[str, str | int | bool]
) -> Settings:
    """Validate ``options`` as the settings of ``benchmark``.

    Raises:
        UsageError: an option is unknown (the message suggests the closest name) or has an invalid value.
    """
    known = model.model_fields
    for name in options:
        if name not in known:
            raise UsageError(
                f"benchmark {benchmark} has no option {name!r}", hint=suggestion(name, known)
            )
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"--option {name}={options.get(name, '')}: {first['msg'].lower()}"
        ) from error


def reject_options(benchmark: str, loading: Loading) -> None:
    """Raise a UsageError if options were given."""
    if loading.options:
        name = next(iter(loading.options))
        raise UsageError(
            f"benchmark {benchmark} has no option {name!r}", hint="this benchmark has no options"
        )


def load_benchmark(
    name_or_path: str | Path,
    data_root: str | Path | None = None,
    progress: Progress | None = None,
    options: Mapping[str, str | int | bool] = MappingProxyType({}),
    *,
    quick: bool = False,
) -> Benchmark:
    """Load a benchmark by its name or from its folder.

    A plain name is looked up among the built-in benchmarks and those of installed plug-ins, then as a folder below
    ``data_root`` or the working directory. ``embedded`` is drawn on first use, which takes minutes, while
    ``progress(what, done, total)`` is called; by default, standard error says how far it is. ``options`` apply to
    benchmarks that are known by name; a folder has none. ``quick``: only the files of the quick part are needed
    (``header.quick``); the benchmark returned has all samples.

    Examples:
        >>> benchmark = at.load_benchmark("my-farm")
        >>> print([sample.query for sample in benchmark.samples])

    Raises:
        UsageError: there is no such benchmark (the message suggests the closest names) or no such option.
        NoFileError: there is no such folder; both a UsageError and a BenchmarkError.
        BenchmarkError: the folder exists but cannot be read as a benchmark.
    """
    if not isinstance(name_or_path, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"a benchmark is given by its name or folder, not by {name_or_path!r}",
            hint='e.g. "embedded"',
        )
    root = Path(data_root) if data_root is not None else None
    shown = progress or patient_progress(sys.stderr)
    return load_as(name_or_path, Loading(root, options, shown, quick))


def load_as(name_or_path: str | Path, loading: Loading) -> Benchmark:
    """Load a benchmark as :func:`load_benchmark` does; with ``loading.files_later``, :meth:`Benchmark.prepare` makes
    the files of each sample."""
    text, data_root = str(name_or_path), loading.data_root
    plain = isinstance(name_or_path, str) and Path(text).name == text and text not in (".", "..")
    if plain and (benchmark := benchmark_id(text)) in BENCHMARKS:
        return _loaded_by_plugin(benchmark, loading)
    reject_options(text, loading)
    path = Path(text).expanduser()
    beside = data_root / path if data_root is not None else path
    for folder in (beside, path):
        if (folder / HEADER_FILE).is_file() or (folder.is_dir() and not plain):
            return load_folder(folder)
    if not beside.is_dir() and not path.is_dir():
        if plain:
            try:
                BENCHMARKS.get(text)
            except UsageError as error:
                where = f" in {data_root} or the working folder" if data_root is not None else ""
                raise UsageError(
                    f"{error.message}, and there is no such folder{where}", hint=error.hint
                ) from None
        raise NoFileError(
            f"there is no folder {path}", hint=f"give a folder, or one of {', '.join(BENCHMARKS)}"
        )
    return load_folder(path if path.is_dir() else beside)


def _loaded_by_plugin(name: str, loading: Loading) -> Benchmark:
    plugin: BenchmarkPlugin = BENCHMARKS.get(name)
    loading = loading._replace(data_root=default_data_root(plugin, loading.data_root))
    if not plugin.takes_options:
        reject_options(name, loading)
    with report_plugin_faults(f"benchmark {name!r}: its plug-in failed to load it"):
        benchmark = plugin.load(loading)
    if not isinstance(benchmark, Benchmark):
        raise BenchmarkError(
            f"benchmark {name!r}: its plug-in loaded a {type(benchmark).__name__}, not a Benchmark"
        )
    return benchmark
