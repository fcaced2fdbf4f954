"""Keeping a cache folder within bounds: what was used least recently goes first.

Nobody keeps accounts of the folder, so any number of processes may share it and be killed at any moment. A process
looks through the whole folder when nobody has done so for a day, and whenever it has itself written a fiftieth of the
limit since; then it removes the files with the oldest modification time until a tenth of the limit is free. A reader
"uses" a file by setting that time, at most once an hour. An entry whose artifact was removed reads as absent.
"""

import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from agrotools.core import UsageError

DEFAULT_LIMIT_MB = 5000.0
_MB = 10**6
_DAY_S, _HOUR_S = 86_400, 3600
_SHARE_BETWEEN_SWEEPS = 0.02
_SHARE_KEPT = 0.9
_MARK = ".swept"


def limit_from_environment() -> float:
    """``AGROTOOLS_CACHE_MB``, else the default.

    Raises:
        UsageError: not a number, or below zero.
    """
    text = os.environ.get("AGROTOOLS_CACHE_MB", "").strip()
    if not text:
        return DEFAULT_LIMIT_MB
    try:
        limit = float(text)
    except ValueError:
        limit = -1.0
    if not 0 <= limit < float("inf"):
        raise UsageError(
            f"AGROTOOLS_CACHE_MB is {text!r}, not a size", hint="give megabytes, e.g. AGROTOOLS_CACHE_MB=2000"
        )
    return limit


class Sweeper:
    """Bounds the files below ``folder`` to ``limit_mb`` megabytes (10^6 bytes), roughly. Safe in threads."""

    def __init__(self, folder: Path, limit_mb: float) -> None:
        self.folder = folder
        self.limit = limit_mb * _MB
        self._unswept = 0
        self._looked = False
        self._lock = threading.Lock()

    def used(self, *paths: Path) -> None:
        """Remember that these files were of use just now."""
        now = time.time()
        for path in paths:
            with suppress(OSError):
                if now - path.stat().st_mtime > _HOUR_S:
                    os.utime(path)

    def wrote(self, size: int) -> None:
        """Take note of ``size`` more bytes, and sweep if it is time."""
        with self._lock:
            self._unswept += size
            due = self._unswept > self.limit * _SHARE_BETWEEN_SWEEPS or (not self._looked and self._long_ago())
            self._looked = True
            if due:
                self._unswept = 0
        if due:
            self.sweep()

    def sweep(self) -> int:
        """Remove what is too much now; how many bytes. Nothing is done where another process is at it."""
        with suppress(OSError), (self.folder / _MARK).open("a") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.utime(self.folder / _MARK)
            return self._remove_oldest()
        return 0

    def _long_ago(self) -> bool:
        try:
            return time.time() - (self.folder / _MARK).stat().st_mtime > _DAY_S
        except OSError:
            return True

    def _remove_oldest(self) -> int:
        files: list[tuple[float, int, str]] = []
        removed = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118 - tens of thousands of files
                with suppress(OSError):
                    status = os.stat(path)  # noqa: PTH116
                    if name != _MARK:
                        files.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return 0
        for _, size, path in sorted(files):
            if total - removed <= self.limit * _SHARE_KEPT:
                break
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108
                removed += size
        return removed
