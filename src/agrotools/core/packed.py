"""Sequences of short byte strings and names in a few bytes an entry, where Python objects would take 60 to 170."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import accumulate, islice
from typing import overload

_SORTED_AT_ONCE = 1 << 15
"""Entries that :func:`sorted_entries` holds as objects, twice as many for a moment."""
_FEWEST_SLOTS = 8


class PackedBytes:
    """Byte strings in one block: their own bytes and 8 for each end, and 6 to 16 more once one was searched for."""

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._content = bytearray()
        self._ends = array("Q", [0])
        self._slots = array("i")
        """Hash table of the places of entries, with open addressing; -1: free. It is made when it is first needed."""
        self._n_in_slots = 0
        for entry in entries:
            self.append(entry)

    def append(self, entry: bytes) -> None:
        self._content += entry
        self._ends.append(len(self._content))

    def extend(self, entries: Sequence[bytes]) -> None:
        self._ends.extend(islice(accumulate(map(len, entries), initial=len(self._content)), 1, None))
        self._content += b"".join(entries)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> bytes:
        if place < 0:
            place += len(self)
        return bytes(self._content[self._ends[place] : self._ends[place + 1]])

    def __iter__(self) -> Iterator[bytes]:
        start = 0
        for end in islice(self._ends, 1, None):
            yield bytes(self._content[start:end])
            start = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedBytes) and self._ends == other._ends and self._content == other._content

    __hash__ = None  # type: ignore[assignment]  # entries are added

    def find(self, entry: bytes) -> int:
        """Return the place of the first equal entry; -1 if there is none."""
        self._fill_slots()
        return self._slots[self._slot(entry)]

    def add(self, entry: bytes) -> int:
        """Return the place of an entry, which is appended if it is new."""
        self._fill_slots()
        slot = self._slot(entry)
        if (place := self._slots[slot]) < 0:
            place = self._slots[slot] = len(self)
            self.append(entry)
            self._n_in_slots = place + 1
        return place

    def _fill_slots(self) -> None:
        """Enter the places of all entries; at most two thirds of the slots are taken."""
        n = len(self)
        if 3 * (n + 1) > 2 * len(self._slots):
            self._slots = array("i", [-1]) * max(_FEWEST_SLOTS, 1 << (2 * n).bit_length())
            self._n_in_slots = 0
        for place in range(self._n_in_slots, n):
            slot = self._slot(self[place])
            if self._slots[slot] < 0:
                self._slots[slot] = place
        self._n_in_slots = n

    def _slot(self, entry: bytes) -> int:
        """Return the slot of an equal entry, or the free one where it belongs."""
        slots, last = self._slots, len(self._slots) - 1
        slot = hash(entry) & last
        while (place := slots[slot]) >= 0 and self[place] != entry:
            slot = (slot + 1) & last
        return slot


class PackedNames(Sequence[str]):
    """Names as :class:`PackedBytes`, e.g. the ids of the samples of a benchmark."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = PackedBytes(map(str.encode, names))

    def append(self, name: str) -> None:
        self._names.append(name.encode())

    @property
    def encoded(self) -> PackedBytes:
        """The names in UTF-8."""
        return self._names

    def find(self, name: str) -> int:
        """Return the place of the first equal name; -1 if there is none."""
        return self._names.find(name.encode())

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        return self._names[index].decode()

    def __iter__(self) -> Iterator[str]:
        return map(bytes.decode, self._names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedNames):
            return self._names == other._names
        return isinstance(other, list | tuple) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]


def sorted_entries(entries: Iterable[bytes]) -> PackedBytes:
    """Return entries in ascending order. Those that come almost in order are never held twice."""
    source, runs = iter(entries), [PackedBytes()]
    pending: list[bytes] = []
    while pending or (pending := [*islice(source, _SORTED_AT_ONCE)]):
        block = [*islice(source, _SORTED_AT_ONCE)]
        pending = sorted(pending + block)
        # The higher half waits for entries that belong between.
        lower, pending = pending[: len(pending) - len(block)], pending[len(pending) - len(block) :]
        if len(runs[-1]) and lower[0] < runs[-1][-1]:
            runs.append(PackedBytes())
        runs[-1].extend(lower)
    return runs[0] if len(runs) == 1 else PackedBytes(merge(*runs))
