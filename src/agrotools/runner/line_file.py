"""A file of records, one a line, that only grows and survives being stopped at any moment."""

import os
from pathlib import Path
from typing import Generic, TypeVar

import orjson
from pydantic import ValidationError

from agrotools.core import FrozenModel, RunStoreError
from agrotools.core.files import Journal

Line = TypeVar("Line", bound=FrozenModel)


class LineFile(Generic[Line]):
    """The file at ``path``, to be gone on with: ``held`` is what it holds, :meth:`add` appends.

    A torn last line (the machine went down while it was written) is cut off. ``hint`` is for a line that is none.

    Raises:
        RunStoreError: it cannot be read or written, or a line in it is no ``kind``.
    """

    def __init__(self, path: Path, kind: type[Line], hint: str) -> None:
        self.held, whole = _read(path, kind, hint)
        try:
            if path.exists() and path.stat().st_size > whole:
                os.truncate(path, whole)
            self._journal = Journal(path)
        except OSError as error:
            raise _unwritable(path, error) from error

    def add(self, line: Line) -> None:
        """Append one.

        Raises:
            RunStoreError: it cannot be written; nothing of it is left in the file.
        """
        self.held.append(line)
        try:
            self._journal.append(orjson.dumps(line.model_dump(mode="json")) + b"\n")
        except OSError as error:
            raise _unwritable(self._journal.path, error) from error

    def close(self) -> None:
        """Sync and let go of the file.

        Raises:
            RunStoreError: the disk refused what was written last.
        """
        try:
            self._journal.close()
        except OSError as error:
            raise _unwritable(self._journal.path, error) from error

    def __enter__(self) -> "LineFile[Line]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_lines(path: Path, kind: type[Line], hint: str) -> list[Line]:
    """What the file holds, none where there is no file; a torn last line is not there.

    Raises:
        RunStoreError: it cannot be read, or a line in it is no ``kind``.
    """
    return _read(path, kind, hint)[0]


def _read(path: Path, kind: type[Line], hint: str) -> tuple[list[Line], int]:
    """The records and where the last whole line ends."""
    found: list[Line] = []
    whole = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                if line.strip():
                    try:
                        found.append(kind.model_validate_json(line))
                    except ValidationError as error:
                        what = kind.__name__.removesuffix("Record").lower()
                        raise RunStoreError(f"{path}, line {number} is no {what}", hint=hint) from error
                whole += len(line)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RunStoreError(f"{path} cannot be read: {error.strerror}", hint="make it a file you may read") from error
    return found, whole


def _unwritable(path: Path, error: OSError) -> RunStoreError:
    return RunStoreError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="free some space and give the same command again: what has finished is kept",
    )
