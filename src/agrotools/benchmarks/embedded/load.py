"""Loader of the packed benchmarks of drawn scenes, whose files are drawn into the user's cache when they are needed.

The pack holds the samples with the recorded observations, and for each file the scene that it is part of and its look,
so no tool is run here, and the content hash is the same on every machine. Files are added to the folder of the
benchmark scene by scene, and a manifest holds their hashes: an interrupted drawing is continued, an altered file is
drawn again. A lock lets one process draw while others wait for it.
"""

import os
import shutil
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import cast

import orjson
from filelock import FileLock

from agrotools.benchmarks.loading import Loading
from agrotools.benchmarks.pack import Pack, read_pack
from agrotools.core import BenchmarkError
from agrotools.core.base import Progress
from agrotools.core.files import cache_dir, sha256_of_file, write_whole
from agrotools.formats.benchmark import FILES_FOLDER, HEADER_FILE, SAMPLES_FILE, Benchmark, load_folder
from agrotools.formats.writing import write_samples

_MANIFEST = "manifest.json"
_MOST_WORKERS = 8


def load_drawn(name: str, loading: Loading) -> Benchmark:
    """Load a packed benchmark. The first call draws the files; later ones take a fraction of a second.

    Raises:
        BenchmarkError: the cache folder cannot be written, or this machine draws other pictures than the recorded ones.
        InfrastructureError: a scene cannot be drawn.
    """
    pack = read_pack(name)
    folder = folder_of(pack)
    ids = set(pack.header.quick) if loading.quick and pack.header.quick else {sample.id for sample in pack.samples}
    needed = {file.path for sample in pack.samples if sample.id in ids for file in sample.files}
    if not is_intact(folder, needed):
        with _explained(name, folder.parent):
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder.parent / f".{folder.name}.lock"):
                if not is_intact(folder, needed):
                    _complete(folder, pack, needed, loading.progress)
    return load_folder(folder, ids)


def folder_of(pack: Pack) -> Path:
    """Return the folder of a packed benchmark in the cache, which may not exist yet."""
    return cache_dir("benchmarks") / f"{pack.header.name}-{pack.header.version}-{pack.fingerprint}"


def find_drawn(name: str, _: Path | None) -> str:
    """Return the folder of a packed benchmark, for a list of benchmarks."""
    folder = folder_of(read_pack(name))
    return f"{folder}{'' if folder.is_dir() else ' (is drawn when it is first used)'}"


def drawn_roots(name: str, _: Path | None) -> list[Path]:
    """Return the folder that file paths are relative to, if it was drawn."""
    folder = folder_of(read_pack(name))
    return [folder] if folder.is_dir() else []


def is_intact(folder: Path, paths: Iterable[str] | None = None) -> bool:
    """Return True if the folder holds these files of the benchmark unaltered; None: all that were drawn so far."""
    manifest = _manifest(folder)
    paths = manifest if paths is None else [HEADER_FILE, SAMPLES_FILE, *paths]
    return bool(manifest) and all(_is_unaltered(folder, manifest, path) for path in paths)


def _manifest(folder: Path) -> dict[str, str]:
    """Return the hashes of the files that were drawn and checked, by path."""
    try:
        recorded = orjson.loads((folder / _MANIFEST).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return recorded if isinstance(recorded, dict) else {}


def _is_unaltered(folder: Path, manifest: dict[str, str], path: str) -> bool:
    try:
        return path in manifest and manifest[path] == sha256_of_file(folder / path)
    except OSError:
        return False


def _complete(folder: Path, pack: Pack, needed: Iterable[str], progress: Progress) -> None:
    """Draw the needed files that are missing or altered, then write header and samples."""
    manifest = _manifest(folder)
    manifest = {path: digest for path, digest in manifest.items() if _is_unaltered(folder, manifest, path)}
    rounded: list[str] = []
    missing = sorted(set(needed) - set(manifest))
    (folder / FILES_FOLDER).mkdir(exist_ok=True)
    for path, is_rounded in _drawn(folder, pack, missing, progress):
        manifest[path] = sha256_of_file(folder / path)
        rounded += [path] if is_rounded else []
        write_whole(folder / _MANIFEST, orjson.dumps(manifest), synced=False)
    if rounded:
        warnings.warn(
            f"{pack.header.name}: {len(rounded)} of {len(missing)} files differ from the recorded ones by rounding, "
            "because this processor or other versions of numpy and OpenCV compute a little differently; the questions "
            "and answers are the same",
            stacklevel=2,
        )
    samples = [
        sample.model_copy(
            update={
                "files": tuple(file.model_copy(update={"sha256": manifest.get(file.path)}) for file in sample.files)
            }
        )
        for sample in pack.samples
    ]
    write_samples(folder, pack.header, samples)
    manifest |= {path: sha256_of_file(folder / path) for path in (HEADER_FILE, SAMPLES_FILE)}
    write_whole(folder / _MANIFEST, orjson.dumps(manifest))


def _drawn(folder: Path, pack: Pack, paths: Iterable[str], progress: Progress) -> Iterator[tuple[str, bool]]:
    """Draw files and yield the path of each when it is in its place, and True if its pixels are rounded otherwise."""
    from agrotools.build.sources.drawn.drawing import Order, draw_each, read_record
    from agrotools.build.sources.drawn.saving import Look

    scenes: dict[tuple[str, int, int], dict[str, str]] = defaultdict(dict)
    for path in paths:
        recipe = pack.files[path]
        scenes[cast("tuple[str, int, int]", tuple(recipe["scene"]))][str(recipe["file"])] = path  # pyright: ignore
    work, numbers = folder / ".scenes", count()
    places: dict[Order, Path] = {}
    for (kind, seed, difficulty), files in scenes.items():
        order = Order(kind, seed, difficulty, tuple(sorted(files)))  # pyright: ignore[reportArgumentType]
        places[order] = work / str(next(numbers))
    progress("scenes", 0, len(places))
    for done, order in enumerate(draw_each(places, min(os.cpu_count() or 1, _MOST_WORKERS)), start=1):
        looks = read_record(places[order])
        for file, path in scenes[order.name, order.seed, order.difficulty].items():
            look, recorded = Look(**looks[file]), Look(**pack.files[path]["look"])  # pyright: ignore
            if not look.resembles(recorded):
                raise BenchmarkError(
                    f"this machine draws another picture than the recorded one: {file} of {order.name}, seed "
                    f"{order.seed}, difficulty {order.difficulty}",
                    hint="try other versions of numpy, opencv-python-headless and pillow (those that were used are in "
                    f"the header of {pack.header.name}), and report it",
                )
            (places[order] / file).replace(folder / path)
            yield path, look.pixels != recorded.pixels
        progress("scenes", done, len(places))
    shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _explained(name: str, parent: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BenchmarkError(
            f"the files of {name} cannot be written to {parent}: {error.strerror or error}",
            hint="set AGROTOOLS_CACHE to a folder that can be written",
        ) from error
