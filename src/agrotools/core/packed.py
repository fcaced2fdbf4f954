"""Sequences of numbers, short byte strings and names in a few bytes an entry, not the 60 to 170 of Python objects.

Long ones lie in temporary files that are mapped into memory, so that the system can take their memory back at any time.
"""

import operator
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import accumulate, islice, pairwise
from mmap import mmap
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IN_MEMORY = 1 << 20
"""Most bytes of a block that is not in a file."""
_FOLDER = None if "TMPDIR" in os.environ or not os.access("/var/tmp", os.W_OK) else "/var/tmp"
"""Folder of the files; ``/tmp`` may itself be in memory."""
_ZEROS = bytes(1 << 16)
_AT_ONCE = 1 << 12
_SORTED_AT_ONCE = 1 << 15
"""Entries that :func:`sorted_entries` holds as objects, twice as many for a moment."""
_FEWEST_SLOTS = 8


def zero_bytes(n: int) -> bytearray | mmap:
    """Return ``n`` bytes that can be written, in a file that has no name if they are many.

    Raises:
        OSError: the disk is full.
    """
    if n <= _IN_MEMORY:
        return bytearray(n)
    with TemporaryFile(dir=_FOLDER) as file:
        for start in range(0, n, len(_ZEROS)):  # a file with holes would end the process if the disk is full later
            file.write(_ZEROS[: n - start])
        file.flush()
        return mmap(file.fileno(), n)


def number_block(n: int, kind: str = "f8") -> "NDArray[Any]":
    """Return ``n`` zeros of a type of numpy as :func:`zero_bytes`."""
    import numpy as np

    return np.frombuffer(zero_bytes(n * np.dtype(kind).itemsize), dtype=kind)


class Numbers(Sequence[int]):
    """Numbers of a type code of :mod:`array`, which takes more space as they are added."""

    def __init__(self, code: str, numbers: Iterable[float] = ()) -> None:
        self._code = code
        self._items: memoryview[Any] = memoryview(bytearray()).cast(code)
        self._n = 0
        self.extend(numbers)

    @property
    def view(self) -> "memoryview[Any]":
        """The numbers as a block that numpy reads without a copy; numbers added later are not part of it."""
        return self._items[: self._n]

    def append(self, number: float) -> None:
        try:
            self._items[self._n] = number
        except IndexError:
            self._grow(self._n + 1)
            self._items[self._n] = number
        self._n += 1

    def extend(self, numbers: Iterable[float]) -> None:
        source = iter(numbers)
        while added := array(self._code, islice(source, _AT_ONCE)):
            end = self._n + len(added)
            if end > len(self._items):
                self._grow(end)
            self._items[self._n : end] = memoryview(added)
            self._n = end

    def _grow(self, n: int) -> None:
        n = max(n, 2 * len(self._items))
        items = memoryview(zero_bytes(n * array(self._code).itemsize)).cast(self._code)
        items[: self._n] = self.view
        self._items = items

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> "memoryview[Any]": ...
    def __getitem__(self, index: int | slice) -> "int | memoryview[Any]":
        return self.view[index] if isinstance(index, slice) or not 0 <= index < self._n else self._items[index]

    def __setitem__(self, index: int, number: float) -> None:
        self.view[index] = number

    def __iter__(self) -> Iterator[int]:
        return iter(self.view)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.array(self.view, dtype=dtype) if copy else np.asarray(self.view, dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return Numbers, (self._code, array(self._code, self.view))


class PackedBytes:
    """Byte strings in one block: their own bytes and 8 for each end, and 6 to 16 more once one was searched for."""

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._content, self._end = zero_bytes(0), 0
        self._ends = Numbers("Q", [0])
        self._slots = memoryview(b"").cast("I")
        """Hash table of the places of entries from 1, with open addressing; 0: free. It is made when it is needed."""
        self._n_in_slots = 0
        source = iter(entries)
        while block := [*islice(source, _AT_ONCE)]:
            self.extend(block)

    def append(self, entry: bytes) -> None:
        self._add(entry)
        self._ends.append(self._end)

    def extend(self, entries: Sequence[bytes]) -> None:
        self._ends.extend(islice(accumulate(map(len, entries), initial=self._end), 1, None))
        self._add(b"".join(entries))

    def _add(self, content: bytes) -> None:
        start, end = self._end, self._end + len(content)
        if end > len(self._content):
            larger = zero_bytes(max(end, 2 * len(self._content)))
            larger[:start] = memoryview(self._content)[:start]
            self._content = larger
        self._content[start:end] = content
        self._end = end

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> bytes:
        n, ends = len(self._ends) - 1, self._ends._items
        if not -n <= place < n:
            raise IndexError(place)
        if place < 0:
            place += n
        return bytes(self._content[ends[place] : ends[place + 1]])

    def __iter__(self) -> Iterator[bytes]:
        return self.part(0, len(self))

    def part(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the entries from place ``start`` to before ``stop``."""
        begin = self._ends[start]
        for end in self._ends[start + 1 : stop + 1]:
            yield bytes(self._content[begin:end])
            begin = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedBytes) and len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # entries are added

    def sorted_places(self) -> tuple["memoryview[int]", int]:
        """Return the places of the entries in ascending order, and that of the first repeated entry in it, or -1.

        No entry may end in a zero byte.
        """
        import numpy as np

        content, ends = np.frombuffer(self._content, np.uint8), np.asarray(self._ends).view(np.int64)
        width = int(np.diff(ends).max(initial=1))
        table = np.frombuffer(zero_bytes(width * len(self)), np.uint8).reshape(-1, width)
        for start in range(0, len(self), _AT_ONCE):
            of_block = ends[start : start + _AT_ONCE + 1]
            is_filled = np.arange(width) < np.diff(of_block)[:, None]
            table[start : start + _AT_ONCE][is_filled] = content[of_block[0] : of_block[-1]]
        column = table.view(f"S{width}")[:, 0]
        places = np.argsort(column, kind="stable")
        ordered = column[places]
        repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
        return places.data, int(places[repeated[0] + 1]) if len(repeated) else -1

    def find(self, entry: bytes) -> int:
        """Return the place of the first equal entry; -1 if there is none."""
        self._fill_slots()
        return self._slots[self._slot(entry)] - 1

    def add(self, entry: bytes) -> int:
        """Return the place of an entry, which is appended if it is new."""
        self._fill_slots()
        place = self._slots[self._slot(entry)] - 1
        if place < 0:
            place = len(self)
            self.append(entry)
        return place

    def _fill_slots(self) -> None:
        """Enter the places of all entries; at most two thirds of the slots are taken."""
        n = len(self)
        if 3 * (n + 1) > 2 * len(self._slots):
            n_slots = max(_FEWEST_SLOTS, 1 << (2 * n).bit_length())
            self._slots = memoryview(zero_bytes(4 * n_slots)).cast("I")
            self._n_in_slots = 0
        for place in range(self._n_in_slots, n):
            slot = self._slot(self[place])
            if not self._slots[slot]:
                self._slots[slot] = place + 1
        self._n_in_slots = n

    def _slot(self, entry: bytes) -> int:
        """Return the slot of an equal entry, or the free one where it belongs."""
        slots, last = self._slots, len(self._slots) - 1
        slot = hash(entry) & last
        while (place := slots[slot]) and self[place - 1] != entry:
            slot = (slot + 1) & last
        return slot

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedBytes, ([*self],)


class PackedNames(Sequence[str]):
    """Names as :class:`PackedBytes`, e.g. the ids of the samples of a benchmark."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = PackedBytes(map(str.encode, names))

    def append(self, name: str) -> None:
        self._names.append(name.encode())

    def extend(self, names: Iterable[str]) -> None:
        self._names.extend([*map(str.encode, names)])

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
            places = range(len(self))[index]
            if places.step == 1:
                return [*map(bytes.decode, self._names.part(places.start, places.stop))]
            return [self[place] for place in places]
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
    source, runs, starts = iter(entries), PackedBytes(), [0]
    pending: list[bytes] = []
    while pending or (pending := [*islice(source, _SORTED_AT_ONCE)]):
        block = [*islice(source, _SORTED_AT_ONCE)]
        pending = sorted(pending + block)
        # The higher half waits for entries that belong between.
        lower, pending = pending[: len(pending) - len(block)], pending[len(pending) - len(block) :]
        if len(runs) and lower[0] < runs[-1]:
            starts.append(len(runs))
        runs.extend(lower)
    parts = (runs.part(*places) for places in pairwise((*starts, len(runs))))
    return runs if len(starts) == 1 else PackedBytes(merge(*parts))
