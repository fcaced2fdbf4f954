"""Journal of a review or of grading: an append-only file of decisions or grades, synced to disk after every line.

Several servers and processes may have it open at once. An incomplete last line of a dead process is completed or
removed before the next line is written.
"""

import errno
import fcntl
import os
import threading
from codecs import BOM_UTF8
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from agrotools.build.review.agreement import Decision
from agrotools.core import BenchmarkError
from agrotools.core.files import sync
from agrotools.report.judges import Grade

REVIEW_FILE = "review.jsonl"
Entry = TypeVar("Entry", Decision, Grade)


class ReviewJournal(Generic[Entry]):
    """Entries of the type ``kind`` in a file, made by the first write; BenchmarkError if it cannot be read."""

    def __init__(self, path: Path, kind: type[Entry]) -> None:
        self.path, self._kind = path, kind
        self._guard = threading.Lock()
        self._version: tuple[int, ...] | None = None
        self._decisions: list[Entry] = []
        self.bad_lines: list[int] = []
        """numbers of lines that do not contain such an entry"""
        self.refresh()

    def open_for_writing(self) -> None:
        """Check that decisions can be stored, before the first one is made; BenchmarkError if not."""
        try:
            new = not self.path.exists()
            os.close(self._opened())
            if new:
                sync(self.path.parent)
        except OSError as error:
            raise BenchmarkError(
                f"decisions cannot be written to {self.path}: {error.strerror or error}",
                hint="give a file that can be written with --log, or review a copy of the folder",
            ) from error

    def refresh(self) -> None:
        """Read the file again if this process or another has changed it; BenchmarkError if it cannot be read."""
        with self._guard:
            self._refresh()

    def _refresh(self) -> None:
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                version = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
                if version == self._version:
                    return
                *lines, _incomplete = file.read().removeprefix(BOM_UTF8).split(b"\n")
        except FileNotFoundError:
            version, lines = None, []
        except OSError as error:
            raise BenchmarkError(
                f"{self.path} cannot be read: {error.strerror or error}", hint="make it a file you may read"
            ) from error
        self._version, self._decisions, self.bad_lines = version, [], []
        for number, line in enumerate(lines, start=1):
            try:
                if line.strip():
                    self._decisions.append(self._kind.model_validate_json(line))
            except ValidationError:
                self.bad_lines.append(number)

    def append(self, decision: Entry) -> bool:
        """Store ``decision`` (OSError if not); True once it is on disk, False if one with its id was already stored."""
        with self._guard:
            number = self._opened()
            try:
                with suppress(OSError):  # some network disks do not support locks; normally only one process writes
                    fcntl.flock(number, fcntl.LOCK_EX)
                self._complete_tail(number)
                self._refresh()
                if any(decision.id == stored.id for stored in self._decisions):
                    return False
                line = decision.model_dump_json(exclude_defaults=True).encode() + b"\n"
                if os.write(number, line) < len(line):  # the next line that is stored removes this part of one
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(number)
                self._refresh()
                return True
            finally:
                os.close(number)  # this also releases the lock

    def _opened(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def _complete_tail(self, number: int) -> None:
        """Complete a last line that lacks only its line break; remove any other incomplete line."""
        size = os.fstat(number).st_size
        start = max(0, size - (1 << 16))
        tail = os.pread(number, size - start, start)
        rest = tail[tail.rfind(b"\n") + 1 :]
        if not rest:
            return
        try:
            self._kind.model_validate_json(rest)
        except ValidationError:
            os.ftruncate(number, size - len(rest))
        else:
            os.write(number, b"\n")

    def decisions(self) -> list[Entry]:
        """Return the latest entry of each reviewer on each sample, in order, without withdrawn ones."""
        with self._guard:
            latest: dict[tuple[str, str], Entry] = {}
            for decision in self._decisions:
                key = decision.reviewer, decision.sample
                latest.pop(key, None)  # so that the order is that of the latest decisions
                latest[key] = decision
            return [decision for decision in latest.values() if decision.verdict != "withdraw"]

    @property
    def notes(self) -> list[str]:
        if not self.bad_lines:
            return []
        first, count = self.bad_lines[0], len(self.bad_lines)
        what = self._kind.__name__.lower()
        return [f"{self.path}: {count} line{'s' * (count > 1)} without a {what} ignored (first: line {first})"]
