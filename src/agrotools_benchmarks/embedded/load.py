"""Loader of the packed benchmarks of drawn scenes, whose files are drawn into the user's cache when they are needed.

The pack holds the samples with the recorded observations, and for each file the scene that it is part of and its look,
so no tool is run here, and the content hash is the same on every machine. Files are added to the folder of the
benchmark scene by scene, and a manifest holds their hashes: an interrupted drawing is continued, an altered file is
drawn again. A lock for each scene lets one process draw it while others wait.
"""

import shutil
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import orjson
from filelock import FileLock

from agrotools.core import BenchmarkError, Sample
from agrotools.core.files import cache_dir, remedy, sha256_of_file, write_whole
from agrotools.core.progress import Progress
from agrotools.formats.benchmark import (
    FILES_FOLDER,
    HEADER_FILE,
    MOST_MAKERS,
    SAMPLES_FILE,
    Benchmark,
    load_folder,
)
from agrotools.formats.writing import write_samples
from agrotools.loading.benchmarks import Loading
from agrotools.loading.pack import Pack, read_pack
from agrotools_build.scenes.processes import (
    DrawingProcesses,
    Look,
    Order,
    each_finished,
    read_record,
)

_MANIFEST = "manifest.json"
_ROUNDED = (
    "{}: files differ from the recorded ones by rounding, because this processor or other versions of numpy and OpenCV "
    "compute a little differently; the questions and answers are the same"
)
_Scene = tuple[str, int, int]
"""Kind, seed and difficulty."""


def load_drawn(name: str, loading: Loading) -> Benchmark:
    """Load a packed benchmark. Unless ``loading.files_later``, the first call draws its files.

    Raises:
        BenchmarkError: the cache folder cannot be written, or this machine draws other pictures than the recorded ones.
        InfrastructureError: a scene cannot be drawn.
    """
    pack = read_pack(name)
    folder, drawn = folder_of(pack), DrawnFiles(pack)
    if loading.files_later:
        return Benchmark.of(pack.header, pack.samples, folder.resolve(), make_files=drawn.prepare)
    ids = (
        set(pack.header.quick)
        if loading.quick and pack.header.quick
        else {sample.id for sample in pack.samples}
    )
    paths = [file.path for sample in pack.samples if sample.id in ids for file in sample.files]
    with _explained(name, folder.parent):
        drawn.draw_all(paths, loading.progress)
    return load_folder(folder, ids)


def folder_of(pack: Pack) -> Path:
    """Return the folder of a packed benchmark in the cache, which may not exist yet."""
    return cache_dir("benchmarks") / f"{pack.header.name}-{pack.header.version}-{pack.fingerprint}"


def find_drawn(name: str, _: Path | None) -> str:
    """Return the folder of a packed benchmark, for a list of benchmarks."""
    folder = folder_of(read_pack(name))
    return f"{folder}{'' if folder.is_dir() else ' (is drawn when it is first used)'}"


def drawn_roots(name: str, _: Path | None) -> list[Path]:
    """Return the folder that file paths are relative to, which holds the files that were drawn."""
    return [folder_of(read_pack(name))]


def is_intact(folder: Path, paths: Iterable[str] | None = None) -> bool:
    """Return True if the folder holds these files of the benchmark unaltered; None: all that were drawn so far."""
    manifest = _manifest(folder)
    paths = manifest if paths is None else [HEADER_FILE, SAMPLES_FILE, *paths]
    return bool(manifest) and all(_is_unaltered(folder, manifest, path) for path in paths)


def _manifest(folder: Path) -> dict[str, str]:
    """Return the hashes of the files that were drawn and checked, by path."""
    with suppress(OSError, orjson.JSONDecodeError):
        if isinstance(recorded := orjson.loads((folder / _MANIFEST).read_bytes()), dict):
            return recorded
    return {}


def _is_unaltered(folder: Path, manifest: dict[str, str], path: str) -> bool:
    with suppress(OSError):
        return path in manifest and manifest[path] == sha256_of_file(folder / path)
    return False


class DrawnFiles:
    """Files of a pack in the cache, drawn scene by scene; threads and processes may ask for the same ones at once."""

    def __init__(self, pack: Pack) -> None:
        self._pack, self._folder = pack, folder_of(pack)
        self._work = self._folder / ".scenes"
        self._scenes: dict[_Scene, list[str]] = defaultdict(list)
        for path in pack.files:
            self._scenes[self._scene_of(path)].append(path)
        self._hashes: dict[str, str] = {}
        """SHA-256, by path, of the files that were drawn or checked."""
        self._processes = DrawingProcesses()

    def _scene_of(self, path: str) -> _Scene:
        return cast("_Scene", tuple(cast("list[object]", self._pack.files[path]["scene"])))

    def prepare(self, sample: Sample) -> Sample:
        """Draw the scenes of a sample that are not there; return it with the hashes of its files.

        Raises:
            BenchmarkError, InfrastructureError: see :func:`load_drawn`.
        """
        for scene in dict.fromkeys(self._scene_of(file.path) for file in sample.files):
            self._provide(scene)
        return self._hashed(sample)

    def _hashed(self, sample: Sample) -> Sample:
        files = (
            file.model_copy(update={"sha256": self._hashes.get(file.path)}) for file in sample.files
        )
        return sample.model_copy(update={"files": tuple(files)})

    def draw_all(self, paths: Sequence[str], progress: Progress) -> None:
        """Draw the scenes of files that are not there, then write header and samples."""
        missing = [*dict.fromkeys(map(self._scene_of, self._check(paths)))]
        if missing:
            progress("scenes", 0, len(missing))
            finished = each_finished(self._provide, missing, MOST_MAKERS, self._processes.close)
            for done, _ in enumerate(finished, start=1):
                progress("scenes", done, len(missing))
        if missing or not is_intact(self._folder, ()):
            self._check(self._pack.files)
            with self._writing():
                write_samples(
                    self._folder, self._pack.header, map(self._hashed, self._pack.samples)
                )
                self._record(
                    {
                        path: sha256_of_file(self._folder / path)
                        for path in (HEADER_FILE, SAMPLES_FILE)
                    }
                )

    def _check(self, paths: Iterable[str]) -> list[str]:
        """Note the hashes of the files that are there unaltered, and return the others."""
        if unknown := [path for path in paths if path not in self._hashes]:
            manifest = _manifest(self._folder)
            self._hashes |= {
                path: manifest[path]
                for path in unknown
                if _is_unaltered(self._folder, manifest, path)
            }
        return [path for path in unknown if path not in self._hashes]

    def _provide(self, scene: _Scene) -> None:
        """Draw what is missing of a scene."""
        paths = self._scenes[scene]
        if not self._check(paths):  # so that a folder that cannot be written will do
            return
        with _explained(self._pack.header.name, self._folder.parent):
            for folder in (self._folder / FILES_FOLDER, self._work):
                folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._work / f"{_title(scene)}.lock"):
                if missing := self._check(paths):
                    self._draw(scene, missing)

    def _draw(self, scene: _Scene, paths: Iterable[str]) -> None:
        files = {str(self._pack.files[path]["file"]): path for path in paths}
        for left in self._work.glob(
            f"{_title(scene)}-*"
        ):  # by a process that was killed, whose worker may still draw
            shutil.rmtree(left, ignore_errors=True)
        with TemporaryDirectory(prefix=f"{_title(scene)}-", dir=self._work) as place:
            self._processes.draw(Order(*scene, tuple(sorted(files))), Path(place))  # pyright: ignore[reportArgumentType]
            looks, hashes = read_record(Path(place)), dict[str, str]()
            for file, path in files.items():
                look, recorded = Look(**looks[file]), Look(**self._pack.files[path]["look"])  # pyright: ignore
                if not look.resembles(recorded):
                    which = f"{file} of {scene[0]}, seed {scene[1]}, difficulty {scene[2]}"
                    raise BenchmarkError(
                        f"this machine draws another picture than the recorded one: {which}",
                        hint="try other versions of numpy, opencv-python-headless and pillow (those that were used are "
                        f"in the header of {self._pack.header.name}), and report it",
                    )
                if look.pixels != recorded.pixels:
                    warnings.warn(_ROUNDED.format(self._pack.header.name), stacklevel=2)
                hashes[path] = sha256_of_file(Path(place, file))
                Path(place, file).replace(self._folder / path)
        with self._writing():
            self._record(hashes)
        self._hashes |= hashes

    def _writing(self) -> FileLock:
        """Return the lock of the manifest, the header and the samples."""
        return FileLock(self._folder.parent / f".{self._folder.name}.lock")

    def _record(self, hashes: dict[str, str]) -> None:
        # Not synced: files are compared with their hashes, and drawn again if a power cut took either.
        write_whole(
            self._folder / _MANIFEST, orjson.dumps(_manifest(self._folder) | hashes), synced=False
        )


def _title(scene: _Scene) -> str:
    return "-".join(map(str, scene))


@contextmanager
def _explained(name: str, parent: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BenchmarkError(
            f"the files of {name} cannot be written to {parent}: {error.strerror or error}",
            hint=f"{remedy(error)}, or set AGROTOOLS_CACHE to another folder",
        ) from error
