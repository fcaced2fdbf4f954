"""Benchmarks: where their files lie, how they become samples, what is wrong with them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from agrotools.benchmarks.loading import Loader, Loading, no_options
from agrotools.core import Registry
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import Benchmark, with_clusters
from agrotools.formats.folder import HEADER_FILE, load_folder

BENCHMARKS: Registry[Loader] = Registry(
    "benchmark",
    "agrotools.benchmarks",
    {
        "embedded": "agrotools.benchmarks.embedded:load_embedded",
        "agrieval": "agrotools.benchmarks.agrieval:load_agrieval",
        "cmmlu-agronomy": "agrotools.benchmarks.agrieval:load_cmmlu_agronomy",
        "gta": "agrotools.benchmarks.gta:load_gta",
        "gta-2": "agrotools.benchmarks.gta2:load_gta2",
        "thinkgeo": "agrotools.benchmarks.thinkgeo:load_thinkgeo",
        "agent-x": "agrotools.benchmarks.agent_x:load_agent_x",
    },
)
"""Benchmarks that are known by name. Each target takes a :class:`Loading` and returns the loaded benchmark."""

WITHOUT_TOOLS = frozenset({"agrieval", "cmmlu-agronomy"})
"""Those whose questions have neither files nor reference calls."""


def load_benchmark(
    name_or_path: str | Path,
    data_root: Path | None = None,
    progress: Progress = no_progress,
    options: Mapping[str, str | int | bool] = MappingProxyType({}),
) -> Benchmark:
    """The benchmark of that name, or in that folder.

    A plain name is looked up among the built-in benchmarks and those of installed plug-ins, then as a folder of
    ``data_root`` or of the working directory. ``embedded`` is drawn on first use, and ``progress(what, done, total)``
    is called meanwhile. ``options`` are those of a benchmark that is known by name; a folder has none.

    Raises:
        UsageError: no such benchmark (with the closest names), or no such option.
        BenchmarkError: the folder is there but cannot be read as a benchmark.
    """
    text = str(name_or_path)
    plain = isinstance(name_or_path, str) and Path(text).name == text and text not in (".", "..")
    if plain and text in BENCHMARKS:
        return BENCHMARKS.get(text)(Loading(data_root, options, progress))
    no_options(text, Loading(options=options))
    path = Path(text).expanduser()
    beside = data_root / path if data_root is not None else path
    for folder in (beside, path):
        if (folder / HEADER_FILE).is_file() or (folder.is_dir() and not plain):
            return load_folder(folder)
    if plain and not beside.is_dir() and not path.is_dir():
        BENCHMARKS.get(text)
    return load_folder(path if path.is_dir() else beside)


__all__ = ["BENCHMARKS", "WITHOUT_TOOLS", "Benchmark", "Loading", "load_benchmark", "load_folder", "with_clusters"]
