"""Where the files of a run lie: those of its benchmark, which may have moved, and those its tools made."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agrotools.benchmarks import BENCHMARKS
from agrotools.benchmarks.checking import file_roots
from agrotools.core import Artifact, BenchmarkError, SampleFile
from agrotools.core.files import artifact_path
from agrotools.core.hashing import sha256_of_file
from agrotools.formats.folder import HEADER_FILE, resolve_file
from agrotools.runner.manifest import Manifest

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}|")


@dataclass(frozen=True)
class Absent:
    """A file that cannot be shown, and why, in words for the page."""

    reason: str


def benchmark_roots(manifest: Manifest, run: Path, data_root: Path | None) -> list[Path]:
    """Folders in which the benchmark of a run may lie: where it was, seen from here and from the run's own place.

    Nothing is drawn or fetched for it.
    """
    name = manifest.benchmark_path
    # A run lies in WORKING_DIRECTORY/runs/NAME unless it was asked for elsewhere.
    seen_from = [Path(), *run.resolve().parents[:3]]
    was = [place / Path(manifest.data_root).expanduser() for place in seen_from] if manifest.data_root else []
    if name in BENCHMARKS:
        places = [data_root, *was, None]
        return next((roots for place in places if (roots := file_roots(name, place))), [])
    given = Path(name).expanduser()
    moved = [data_root / given, data_root] if data_root else []
    found = [*moved, *(place / given for place in [*was, *seen_from])]
    return [folder.resolve() for folder in dict.fromkeys(found) if (folder / HEADER_FILE).is_file()]


class Places:
    """Finds files by what the records say of them, and shows none but those: the hash must be the recorded one."""

    def __init__(self, runs: Sequence[Path]) -> None:
        self._runs = runs
        self._hashes: dict[Path, str] = {}

    def of_file(self, file: SampleFile, roots: Sequence[Path]) -> Path | Absent:
        """A file of a sample, in the first of ``roots`` that has it."""
        altered = False
        for root in roots:
            try:
                path = resolve_file(root, file.path)
                if file.sha256 is None or self._hash(path) == file.sha256:
                    return path
                altered = True
            except (BenchmarkError, OSError, ValueError):
                continue
        return Absent("altered since the run" if altered else "not found on this machine")

    def of_artifact(self, artifact: Artifact) -> Path | Absent:
        """A file that a tool made, in whichever run keeps it."""
        suffix = Path(artifact.name).suffix
        if artifact.sha256 is None or not _SHA256.fullmatch(artifact.sha256) or not _SUFFIX.fullmatch(suffix):
            return Absent("not kept")
        for path in self._kept(artifact.sha256, suffix):
            try:
                if not path.is_symlink() and self._hash(path) == artifact.sha256:
                    return path
            except OSError:
                continue
        return Absent("not among the run's artifacts")

    def _kept(self, sha256: str, suffix: str) -> Iterator[Path]:
        return (path for run in self._runs if (path := artifact_path(run, sha256, suffix)).is_file())

    def _hash(self, path: Path) -> str:
        if path not in self._hashes:
            self._hashes[path] = sha256_of_file(path)
        return self._hashes[path]
