"""Unfinished corrections and questions of each reviewer, stored on the server as they are typed."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError

from agrotools.core import FrozenModel
from agrotools.core.files import write_whole
from agrotools_build.review.agreement import Reviewer

_FOLDER = "drafts"
NEW = "new-"
"""Start of the key of a question that is written from nothing; other keys are ids of samples."""


class Unfinished(FrozenModel):
    """Unfinished work of a reviewer on a sample, or on a new question.

    ``edited``: count of the page, which rises with every change, so that an older state never replaces a newer one.
    ``of``: content of the sample that the work began with. ``state``: what the page shows; None once it is given up.
    """

    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,119}$")]
    reviewer: Reviewer
    edited: Annotated[int, Field(ge=0)]
    of: Annotated[str, Field(pattern=r"^([0-9a-f]{16})?$")] = ""
    state: dict[str, JsonValue] | None = None


class UnfinishedWork:
    """Folder of unfinished work, a file for each reviewer and key; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER
        self._guard = threading.Lock()

    def get(self, reviewer: str, key: str) -> Unfinished | None:
        """Return the stored work; None if there is none, or if it was given up."""
        found = _read(self._path(reviewer, key))
        return found if found and found.state is not None else None

    def keep(self, work: Unfinished) -> bool:
        """Store work (OSError if not); False if a later state is stored already."""
        path = self._path(work.reviewer, work.key)
        with self._guard:
            stored = _read(path)
            if stored is not None and stored.edited > work.edited:
                return False
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, work.model_dump_json().encode())
        return True

    def drop(self, reviewer: str, key: str) -> None:
        """Remove work that became a version."""
        with self._guard, suppress(FileNotFoundError):
            self._path(reviewer, key).unlink()

    def of(self, reviewer: str) -> Iterator[Unfinished]:
        """Yield the unfinished work of a reviewer."""
        for path in sorted(self._folder.glob("*.json")):
            found = _read(path)
            if found and found.reviewer == reviewer and found.state is not None:
                yield found

    def _path(self, reviewer: str, key: str) -> Path:
        name = hashlib.sha256(json.dumps([reviewer, key]).encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"


def _read(path: Path) -> Unfinished | None:
    with suppress(FileNotFoundError, ValidationError):
        return Unfinished.model_validate_json(path.read_bytes())
    return None
