"""Progress of a run: one live line on a terminal, a plain line now and then elsewhere."""

import time
from collections.abc import Callable
from typing import TextIO

from agrotools.core import Record

_LIVE_EVERY_S = 0.1
_PLAIN_EVERY_S = 10.0


class Progress:
    """Counts finished samples and says how far the run is."""

    def __init__(self, stream: TextIO, title: str, total: int, already: int) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._title = title
        self._total = total
        self._already = already
        self._done = 0
        self._invalid = 0
        self._started = time.monotonic()
        self._shown = 0.0
        if already:
            stream.write(f"{title}: {already} of {already + total} already done, going on\n")
        if not self._live and total:
            stream.write(f"{title}: {total} samples to run\n")
            stream.flush()

    def finished(self, record: Record) -> None:
        """Count one record."""
        self._done += 1
        self._invalid += record.invalid is not None
        now = time.monotonic()
        if now - self._shown >= (_LIVE_EVERY_S if self._live else _PLAIN_EVERY_S) or self._done == self._total:
            self._shown = now
            self._show()

    def _show(self) -> None:
        elapsed = time.monotonic() - self._started
        left = elapsed / self._done * (self._total - self._done)
        invalid = f", {self._invalid} invalid" if self._invalid else ""
        text = f"{self._title}: {self._done}/{self._total} done{invalid}, {elapsed:.0f} s, {left:.0f} s left"
        self._stream.write(f"\r\033[K{text}" if self._live else f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        """End the live line."""
        if self._live and self._shown:
            self._stream.write("\n")
            self._stream.flush()


def stage_progress(stream: TextIO) -> Callable[[str, int, int], None]:
    """A callback ``(what, done, total)`` for work in stages: a live line on a terminal, a line a quarter elsewhere."""
    live = stream.isatty()
    quarters: dict[str, int] = {}
    shown = 0.0

    def report(what: str, done: int, total: int) -> None:
        nonlocal shown
        quarter = done * 4 // total if total else 4
        now = time.monotonic()
        if live and (done == total or now - shown >= _LIVE_EVERY_S):
            shown = now
            stream.write(f"\r\033[K{what}: {done}/{total}" + ("\n" if done == total else ""))
        elif not live and quarters.get(what) != quarter:
            quarters[what] = quarter
            stream.write(f"{what}: {done}/{total}\n")
        stream.flush()

    return report
