"""Index of the records of a run that goes on."""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from agrotools.core import Record, RunStoreError
from agrotools.core.packed import PackedBytes
from agrotools.runner.records import Key, RecordIndex, entry_key, key_bytes

_PAUSE_S, _FEW = 0.2, 1_000
"""Pause before the file is read on, if fewer records were ready."""


class GrowingIndex(RecordIndex):
    """Index that is iterated while records are added, in the same order as later: iteration waits for the next one.

    Args:
        run: the run folder.
        planned: keys of all records that the run will have.
        ended: event that no more records will be added.

    Raises:
        RunStoreError: the file cannot be read, or a record that was already yielded has changed.
    """

    def __init__(self, run: Path, planned: Iterable[Key], ended: threading.Event) -> None:
        super().__init__(run)
        self._run, self._ended = run, ended
        self._planned = sorted(map(entry_key, planned))
        self._is_whole = False

    def __iter__(self) -> Iterator[Record]:
        yielded: list[bytes] = []
        while not self._is_whole:
            ready = self._ready(len(yielded))
            yield from self._records(ready)
            yielded += ready
            self._wait_for_more(_PAUSE_S if len(ready) < _FEW else 0)
        if [*islice(self._entries, len(yielded))] != yielded:
            raise RunStoreError(f"{self.path}: a record has changed since it was scored")
        yield from self._records(islice(self.undamaged()._entries, len(yielded), None))

    def get(self, key: Key) -> Record | None:
        """Return the record of ``key``, for which it waits if it is planned; None if there is none at the end."""
        name = entry_key(key)
        at = bisect_left(self._planned, name)
        while self._planned[at : at + 1] == [name] and not self.has_finished(key) and not self._is_whole:
            self._wait_for_more(_PAUSE_S)
        return super().get(key)

    def _ready(self, start: int) -> list[bytes]:
        """Return the entries from ``start`` on, up to the first planned one that is missing or invalid."""
        ready: list[bytes] = []
        for place in range(start, min(len(self._entries), len(self._planned))):
            entry = self._entries[place]
            if key_bytes(entry) != self._planned[place] or not entry[-1]:
                break
            ready.append(entry)
        return ready

    def _add(self, entries: Iterable[bytes]) -> None:
        """Add entries, of which most come after those that are there: only what follows the first one is sorted."""
        if new := sorted(entries):
            at = bisect_left(self._entries, key_bytes(new[0]))
            later = self._that_count(PackedBytes(sorted([*self._entries.part(at, len(self)), *new])))
            self._entries.cut(at)
            self._entries.extend([*later])

    def _wait_for_more(self, seconds: float) -> None:
        self._is_whole = self._ended.wait(seconds)
        self._add(self._new_entries(whole=False))
        if self._is_whole:
            self.leave_out(self._run)
