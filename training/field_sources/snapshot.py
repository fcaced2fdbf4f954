"""Snapshots of public repositories, and the prepared data sets that are made from them."""

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agrotools_benchmarks.field.pack import JPEG_QUALITY, Box, as_jpeg


class Snapshot:
    """The files of a repository at one commit, read from a git directory without a work tree."""

    def __init__(self, git_dir: Path, repo: str, commit: str) -> None:
        self.repo, self.commit, self._git_dir = repo, commit, git_dir
        listing = self._git("ls-tree", "-r", "-z", commit)
        self._blobs: dict[str, str] = {}
        for line in filter(None, listing.split(b"\0")):
            described, _, path = line.partition(b"\t")
            self._blobs[path.decode()] = described.split()[2].decode()

    def _git(self, *arguments: str) -> bytes:
        command = ["git", "--git-dir", str(self._git_dir), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{self.repo}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def paths(self, folder: str = "", ending: str = "") -> list[str]:
        """Return the sorted paths of the files below ``folder`` whose names have this ending."""
        found = (path for path in self._blobs if path.startswith(folder))
        return sorted(path for path in found if path.lower().endswith(ending))

    def has(self, path: str) -> bool:
        return path in self._blobs

    def read(self, path: str) -> bytes:
        return self._git("cat-file", "blob", self._blobs[path])

    def text(self, path: str) -> str:
        return self.read(path).decode("utf-8-sig")

    def picture(self, path: str) -> Image.Image:
        picture = Image.open(BytesIO(self.read(path)))
        picture.load()
        return picture


def find_snapshot(folder: Path, repo: str) -> Path | None:
    """Return the git directory of a repository below ``folder``; None if it is not there."""
    owner, _, name = repo.partition("/")
    places = (folder / f"{owner}+{name}" / "repo", folder / owner / name)
    return next((place for place in places if (place / "HEAD").is_file()), None)


@dataclass(frozen=True)
class Reader:
    """How a data set is read: the repository, the commit, and the function that adds its items."""

    repo: str
    commit: str
    read: Callable[["Prepared"], None]


class Prepared:
    """A data set that is being prepared in ``folder``; its items become ``truth.json``."""

    def __init__(self, folder: Path, snapshot: Snapshot) -> None:
        self.folder, self.snapshot = folder, snapshot
        self.items: list[dict[str, Any]] = []
        self._bytes = 0

    @property
    def size_mb(self) -> float:
        """Size of the stored pictures in MB, without masks and other files with answers."""
        return self._bytes / 1e6

    def add(
        self,
        name: str,
        cluster: str,
        files: Mapping[str, str],
        crop: Box | None = None,
        numbers: Mapping[str, Any] | None = None,
        **truth: Any,
    ) -> None:
        """Add an item, and store its files as the repository has them.

        Args:
            name: id of the item, unique in the data set.
            cluster: place, day, plant or session; items that share it are not independent.
            files: paths in the repository by key: ``image``, ``before`` and ``after``, or ``chm``.
            crop: box that alone is stored of each picture, as a JPEG; its corner is the origin of what people marked.
            numbers: place of the values in a file of R (fields of ``Numbers`` of the pack).
            truth: what people marked: ``label``, ``points``, ``boxes``, ``mask`` (from :meth:`store_mask`), ...
        """
        stored = {key: self._store(path, crop) for key, path in files.items()}
        source: dict[str, Any] = {
            "repo": self.snapshot.repo,
            "commit": self.snapshot.commit,
            "paths": list(files.values()),
        }
        if crop is not None:
            source["crop"] = list(crop)
        if numbers is not None:
            source["numbers"] = dict(numbers)
        self.items.append({"id": name, "cluster": cluster, **stored, **truth, "source": source})

    def _store(self, path: str, crop: Box | None) -> str:
        content = self.snapshot.read(path)
        name = f"images/{stem_of(path)}{Path(path).suffix.lower()}"
        if crop is not None:
            _, content, _ = as_jpeg(content, JPEG_QUALITY, crop, ())
            name = f"images/{stem_of(path)}_{'_'.join(map(str, crop[:2]))}.jpg"
        target = self.folder / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            self._bytes += len(content)
        return name

    def store_mask(self, name: str, classes: NDArray[np.uint8]) -> str:
        """Store classes (rows, columns) as a PNG, and return its name in the folder."""
        path = self.folder / f"masks/{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(classes).save(path)
        return f"masks/{name}.png"

    def store_boxes(self, name: str, boxes: Iterable[Sequence[int]]) -> str:
        """Store boxes (left, top, right, bottom in pixels) as a table, and return its name in the folder."""
        path = self.folder / f"boxes/{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [",".join(map(str, box)) for box in boxes]
        path.write_text("\n".join(["xmin,ymin,xmax,ymax", *rows]) + "\n", "utf-8")
        return f"boxes/{name}.csv"

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.items, ensure_ascii=False, indent=1)
        (self.folder / "truth.json").write_text(text + "\n", "utf-8")


def stem_of(path: str) -> str:
    """Return a short name for a path that no other path has, without spaces."""
    stem = "".join(letter if letter.isalnum() else "_" for letter in Path(path).stem)
    return f"{stem[:40]}_{hashlib.sha256(path.encode()).hexdigest()[:6]}"


def drawn_by_lot(paths: Iterable[str], number: int) -> list[str]:
    """Return up to ``number`` of the paths, chosen by their hashes, so that the choice depends on nothing in them."""
    return sorted(sorted(paths, key=lot_of)[:number])


def lot_of(name: str) -> str:
    """Return what a name is sorted by, so that the order depends on nothing in it."""
    return hashlib.sha256(name.encode()).hexdigest()
