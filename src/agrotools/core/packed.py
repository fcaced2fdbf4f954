"""Sequences of numbers, short byte strings and names in a few bytes an entry, not the 60 to 170 of Python objects.

Long ones lie in temporary files that are mapped into memory, so that the system can take their memory back at any time.
"""

import os
from array import array
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import merge
from itertools import accumulate, islice, pairwise
from mmap import mmap
from tempfile import TemporaryFile, gettempdir
from typing import Any, cast, overload

_IN_MEMORY = 1 << 20
"""Most bytes of a block that is not in a file."""
_FOLDER = None if "TMPDIR" in os.environ or not os.access("/var/tmp", os.W_OK) else "/var/tmp"
"""Folder of the files; ``/tmp`` may itself be in memory."""
_ZEROS = bytes(1 << 16)
_AT_ONCE = 1 << 12
_SORTED_AT_ONCE = 1 << 15
"""Entries that :func:`sorted_entries` holds as objects, twice as many for a moment."""
_FEW = 1 << 16
"""Fewest entries of which slots hold the places: a dictionary is five times as fast, but ten times as large."""


@contextmanager
def temporary_space() -> Generator[None]:
    """Within the block, temporary files are written.

    Raises:
        OSError: there is no space; it names their folder and TMPDIR.
    """
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error} for temporary files (in another folder with TMPDIR)"
        raise OSError(error.errno, reason, _FOLDER or gettempdir()) from error


def zero_bytes(n: int) -> bytearray | mmap:
    """Return ``n`` bytes that can be written, in a file without a name if they are many; OSError if it has no room."""
    if n <= _IN_MEMORY:
        return bytearray(n)
    with temporary_space(), TemporaryFile(dir=_FOLDER) as file:
        for start in range(0, n, len(_ZEROS)):  # a file with holes would end the process if the disk is full later
            file.write(_ZEROS[: n - start])
        file.flush()
        return mmap(file.fileno(), n)


def number_block(n: int, kind: str = "f8") -> Any:
    """Return ``n`` zeros, or empty entries, of a type of numpy, as :func:`zero_bytes`."""
    import numpy as np

    return np.frombuffer(zero_bytes(n * np.dtype(kind).itemsize), dtype=kind)


class Numbers(Sequence[int]):
    """Numbers of a type code of :mod:`array`."""

    def __init__(self, code: Any, numbers: Iterable[float] = ()) -> None:
        self._code = code
        self.block: Any = memoryview(bytearray()).cast(code)
        """Memory of the numbers, and of those to come."""
        self._n = 0
        self.extend(numbers)

    @property
    def view(self) -> Any:
        """The numbers as a block that numpy reads without a copy; numbers added later are not part of it."""
        return self.block[: self._n]

    def append(self, number: float) -> None:
        if self._n == len(self.block):
            self._grow(self._n + 1)
        self.block[self._n] = number
        self._n += 1

    def extend(self, numbers: Iterable[float]) -> None:
        source = iter(numbers)
        while added := array(self._code, islice(source, _AT_ONCE)):
            end = self._n + len(added)
            if end > len(self.block):
                self._grow(end)
            self.block[self._n : end] = memoryview(added)
            self._n = end

    def _grow(self, n: int) -> None:
        content = zero_bytes(max(n, 2 * len(self.block)) * self.block.itemsize)
        block = cast("Any", memoryview(content)).cast(self._code)
        block[: self._n] = self.view
        self.block = block

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        # Most are places from the start, for which no view has to be made.
        return self.block[index] if type(index) is int and 0 <= index < self._n else self.view[index]

    def __setitem__(self, index: int, number: float) -> None:
        block = self.block if 0 <= index < self._n else self.view
        block[index] = number

    def __iter__(self) -> Iterator[int]:
        return iter(self.view)

    def __reduce__(self) -> tuple[Any, ...]:
        return Numbers, (self._code, [*self])


class PackedBytes:
    """Byte strings in one block: their own bytes and 8 for each end, and 6 to 16 more if many are searched."""

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._content, self._end = zero_bytes(0), 0
        self._ends = Numbers("Q", [0])
        self._place_of: dict[bytes, int] = {}
        """Places of the entries, if they are few and one was searched for."""
        self._slots = memoryview(b"").cast("I")
        """Hash table of the places of many entries from 1, with open addressing; 0: free."""
        self._n_found = 0
        """Number of entries that can be found."""
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
        n, ends = len(self._ends) - 1, self._ends.block
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
        return isinstance(other, PackedBytes) and len(self) == len(other) and all(map(bytes.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]  # entries are added

    def sorted_places(self) -> tuple[Sequence[int], int]:
        """Return the places of the entries in ascending order, and that of the first repeated entry in it, or -1.

        No entry may end in a zero byte.
        """
        import numpy as np

        column = number_block(len(self), f"S{max(map(len, self), default=1)}")
        for start in range(0, len(self), _AT_ONCE):
            column[start : start + _AT_ONCE] = [*self.part(start, start + _AT_ONCE)]
        places = np.argsort(column, kind="stable")
        ordered = column[places]
        repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
        return places.data, int(places[repeated[0] + 1]) if len(repeated) else -1

    def find(self, entry: bytes) -> int:
        """Return the place of the first equal entry; -1 if there is none."""
        self._make_findable()
        return self._slots[self._slot(entry)] - 1 if self._slots else self._place_of.get(entry, -1)

    def add(self, entry: bytes) -> int:
        """Return the place of an entry, which is appended if it is new."""
        self._make_findable()
        n = self._n_found
        if n < _FEW:
            place = self._place_of.setdefault(entry, n)
        else:
            slot = self._slot(entry)
            if (place := self._slots[slot] - 1) < 0:
                place = n
                self._slots[slot] = n + 1
        if place == n:
            self.append(entry)
            self._n_found = n + 1
        return place

    def _make_findable(self) -> None:
        """Enter the places of all entries; at most two thirds of the slots are taken."""
        n = len(self._ends) - 1
        if n < _FEW:
            for place in range(self._n_found, n):
                self._place_of.setdefault(self[place], place)
        else:
            if 3 * (n + 1) > 2 * len(self._slots):
                self._slots = memoryview(zero_bytes(4 << (2 * n).bit_length())).cast("I")
                self._n_found, self._place_of = 0, {}
            for place in range(self._n_found, n):
                slot = self._slot(self[place])
                if not self._slots[slot]:
                    self._slots[slot] = place + 1
        self._n_found = n

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
