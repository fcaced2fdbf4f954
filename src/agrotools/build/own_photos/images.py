"""The pictures of a folder, and which of them a cell of a table means."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from agrotools.build.own_photos.cells import CellFault
from agrotools.core import BenchmarkError

SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp")
_MOST = 1_000_000


class Images:
    """All pictures in a folder and the folders below it, found by path, name, or name without its ending.

    Capitals do not count. Links to folders are not followed.

    Raises:
        BenchmarkError: no such folder, one without pictures, or one with over a million.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise BenchmarkError(f"{folder} is not a folder", hint="--images names the folder of the pictures")
        self.folder = folder.resolve()
        self._by_path: dict[str, Path] = {}
        self._by_name: dict[str, list[Path]] = {}
        self._by_stem: dict[str, list[Path]] = {}
        for path in _pictures(self.folder):
            relative = path.relative_to(self.folder).as_posix()
            self._by_path[relative.casefold()] = path
            self._by_name.setdefault(path.name.casefold(), []).append(path)
            self._by_stem.setdefault(path.stem.casefold(), []).append(path)
            if len(self._by_path) > _MOST:
                raise BenchmarkError(f"{folder} holds over {_MOST} pictures", hint="name a folder below it")
        if not self._by_path:
            kinds = ", ".join(suffix[1:] for suffix in SUFFIXES)
            raise BenchmarkError(f"{folder} holds no pictures", hint=f"pictures are files of the kinds {kinds}")

    def __len__(self) -> int:
        return len(self._by_path)

    def some_names(self, most: int = 3) -> list[str]:
        """The first names, for messages."""
        return sorted(path.name for path in list(self._by_path.values())[:1000])[:most]

    def find(self, cell: str) -> Path | None:
        """The picture that a cell names; None where there is none of that name.

        Raises:
            CellFault: the cell leads out of the folder, or several pictures have that name.
        """
        if not cell:
            return None
        written = cell.replace("\\", "/").casefold()
        if found := self._by_path.get(written.removeprefix("./")):
            return self._inside(found)
        path = PurePosixPath(written)
        if path.is_absolute() or written[1:2] == ":" or ".." in path.parts or written.startswith("~"):
            raise CellFault(
                "leads out of the folder of pictures", "write the name of the picture, or its path in there"
            )
        if len(path.parts) > 1:
            return None
        several = self._by_name.get(written) or self._by_stem.get(written) or []
        if len(several) > 1:
            raise CellFault("is the name of several pictures", "write the path in the folder of pictures")
        return self._inside(several[0]) if several else None

    def _inside(self, path: Path) -> Path:
        if path.is_symlink() and not path.resolve().is_relative_to(self.folder):
            raise CellFault("is a link that leads out of the folder of pictures", "copy the picture into the folder")
        return path


def _pictures(folder: Path) -> Iterable[Path]:
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(place, name)
