"""Append-only file of JSON lines, synced to disk after every line; several processes may have it open at once."""

import errno
import os
import threading
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from pydantic import Field

from agrotools.core import BenchmarkError, FrozenModel
from agrotools.core.files import read_lines, sync
from agrotools.core.systems import locked

_HINT = "remove that line"


class JournalLine(FrozenModel):
    """Line of a journal. ``id`` is created by the page, so that a line that is sent again is stored once."""

    id: Annotated[str, Field(pattern=r"^[0-9a-f-]{8,64}$")]


Line = TypeVar("Line", bound=JournalLine)


class LineJournal(Generic[Line]):
    """Lines of one kind in a file, made by the first write; RunStoreError if it cannot be read."""

    def __init__(self, path: Path, kind: type[Line]) -> None:
        self.path, self._kind = path, kind
        self._guard = threading.Lock()
        self._lines: list[Line] = []
        self.refresh()

    def open_for_writing(self) -> None:
        """Check that lines can be stored, before the first one is made; BenchmarkError if not."""
        try:
            self.path.open("ab").close()
            sync(self.path.parent)
        except OSError as error:
            why = f"decisions cannot be written to {self.path}: {error.strerror or error}"
            hint = "give a file that can be written with --log, or review a copy of the folder"
            raise BenchmarkError(why, hint=hint) from error

    def refresh(self) -> None:
        """Read the file again, as another process may have changed it; RunStoreError if it cannot be read."""
        with self._guard:
            self._lines = read_lines(self.path, self._kind, _HINT)

    def append(self, line: Line) -> bool:
        """Store a line (OSError if not); True once it is on disk, False if one with its id was already stored."""
        with (
            self._guard,
            self.path.open("a+b", buffering=0) as file,
            locked(file, self.path),
        ):
            file.seek(0)
            file.truncate(
                file.read().rfind(b"\n") + 1
            )  # what a write that was cut off left; the page sends it again
            self._lines = read_lines(self.path, self._kind, _HINT)
            if any(line.id == stored.id for stored in self._lines):
                return False
            content = line.model_dump_json(exclude_defaults=True, by_alias=True).encode() + b"\n"
            if os.write(file.fileno(), content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
            self._lines.append(line)
            return True

    def lines(self) -> list[Line]:
        """Return all lines in order."""
        with self._guard:
            return [*self._lines]
