"""The records of a run by their place in the order of keys: eight bytes for each, whatever their ids."""

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from agrotools.core import Record
from agrotools.runner.records import RecordIndex


class Shelf(RecordIndex):
    """Where each record of a run lies, by its place: 0 is the first in the order of mode, sample id and epoch.

    A page needs the records of a run several times but never one by its key, so the keys, of which a long run has
    many, are given up as soon as they are in order. It may be iterated any number of times.

    Raises:
        RunStoreError: as :class:`RecordIndex`, on making it and on iteration.
    """

    def __init__(self, run: Path) -> None:
        super().__init__(run)
        self._offsets = array("q", (at if at >= 0 else ~at for at in map(self._at.__getitem__, self.keys)))
        self._at.clear()

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Record]:
        return self._ascending(self._offsets)

    def at(self, places: Iterable[int]) -> Iterator[Record]:
        """The records at these places, which ascend; one at a time."""
        return self._ascending(array("q", map(self._offsets.__getitem__, places)))
