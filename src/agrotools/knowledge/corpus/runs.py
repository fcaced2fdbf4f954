"""Sorted runs: which passages hold which terms, in an order that can be merged from disk in little memory.

A run is three files of little-endian numbers: ``terms`` (8 bytes each, ascending), ``offsets`` (8 bytes, one more than
there are terms: where in the postings each term begins, and where they end) and ``postings`` (4 bytes each: 26 bits
number of a passage, ascending within a term, and 6 bits how often the term stands in it, 63 at most). The postings of
the finished index are one such run.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.corpus.tokens import TERM_BITS, Numbers

COUNT_BITS = 6
MOST_COUNTED = (1 << COUNT_BITS) - 1
MOST_PASSAGES = 1 << (32 - COUNT_BITS)
TERM_TYPE, OFFSET_TYPE, POSTING_TYPE = np.dtype("<u8"), np.dtype("<u8"), np.dtype("<u4")
_OWN_BITS = 64 - TERM_BITS
_SLICE = 1 << 18
_FEWEST_ENTRIES = 256
_FAN_IN = 64
"""Runs that are merged at once. More are merged in rounds: each keeps three files open and its share of memory."""

Postings = NDArray[np.uint32]
Entries = tuple[Numbers, NDArray[np.int64], Postings]
"""(n,) terms, (n,) how many postings each has, and all their postings one after the other."""


def run_files(run: Path) -> tuple[Path, Path, Path]:
    """The files of terms, offsets and postings."""
    return run.with_suffix(".terms"), run.with_suffix(".offsets"), run.with_suffix(".postings")


class RunWriter:
    """Writes a run. Entries have to come in order; those of one term may come in several parts.

    Raises (all methods):
        OSError: it cannot be written.
    """

    def __init__(self, run: Path) -> None:
        with ExitStack() as opened:
            self._terms, self._offsets, self._postings = (
                opened.enter_context(path.open("wb")) for path in run_files(run)
            )
            self._files = opened.pop_all()
        self._last: int | None = None
        self.terms = 0
        self.postings = 0

    def add(self, entries: Entries) -> None:
        terms, counts, postings = entries
        if not len(terms):
            return
        begins = np.cumsum(counts) - counts + self.postings
        known = int(terms[0] == self._last) if self._last is not None else 0
        self._terms.write(terms[known:].astype(TERM_TYPE).tobytes())
        self._offsets.write(begins[known:].astype(OFFSET_TYPE).tobytes())
        self._postings.write(postings.astype(POSTING_TYPE).tobytes())
        self.terms += len(terms) - known
        self.postings += len(postings)
        self._last = int(terms[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None) -> None:
        with self._files:
            if kind is None:
                self._offsets.write(np.array([self.postings], OFFSET_TYPE).tobytes())


class Spill:
    """Gathers terms in a buffer of given size and writes it as a run whenever it is full."""

    def __init__(self, folder: Path, capacity: int) -> None:
        self._folder = folder
        self._buffer = np.empty(capacity, np.uint64)
        self._filled = 0
        self._first = 0
        self._passages = 0
        self.runs: list[Path] = []

    def add(self, terms: Numbers, owners: NDArray[np.int64], passages: int) -> None:
        """The terms of the next ``passages``, at most 65,536 of them; ``owners`` number them from 0."""
        if self._filled + len(terms) > len(self._buffer) or self._passages + passages > 1 << _OWN_BITS:
            self.flush()
        if len(terms) > len(self._buffer):
            self._buffer = np.empty(len(terms), np.uint64)
        packed = terms << np.uint64(_OWN_BITS) | (owners + self._passages).astype(np.uint64)
        self._buffer[self._filled : self._filled + len(terms)] = packed
        self._filled += len(terms)
        self._passages += passages

    def flush(self) -> None:
        """Write what is gathered as a run."""
        gathered = self._buffer[: self._filled]
        gathered.sort()
        run = self._folder / f"run-{len(self.runs):06}"
        with RunWriter(run) as writer:
            start = 0
            while start < len(gathered):
                end = start + _SLICE
                if end < len(gathered):  # one term in one passage is not cut apart
                    end = int(np.searchsorted(gathered, gathered[end - 1], "right"))
                writer.add(_counted(gathered[start:end], self._first))
                start = end
        self.runs.append(run)
        self._first += self._passages
        self._filled = self._passages = 0

    def finish(self) -> list[Path]:
        """Write the rest, let go of the buffer, and give the runs in order."""
        if self._filled:
            self.flush()
        self._buffer = np.empty(0, np.uint64)
        return self.runs


def _counted(packed: Numbers, first: int) -> Entries:
    starts = np.flatnonzero(np.append(True, packed[1:] != packed[:-1]))
    counts = np.minimum(np.diff(starts, append=len(packed)), MOST_COUNTED).astype(np.uint32)
    distinct = packed[starts]
    passages = (distinct & np.uint64((1 << _OWN_BITS) - 1)).astype(np.uint32) + np.uint32(first)
    terms, lengths = _grouped(distinct >> np.uint64(_OWN_BITS), np.ones(len(distinct), np.int64))
    return terms, lengths, passages << np.uint32(COUNT_BITS) | counts


def _grouped(terms: Numbers, lengths: NDArray[np.int64]) -> tuple[Numbers, NDArray[np.int64]]:
    """Each term once, with the sum of its lengths; equal terms lie side by side."""
    starts = np.flatnonzero(np.append(True, terms[1:] != terms[:-1]))
    return terms[starts], np.add.reduceat(lengths, starts)


class _RunReader:
    """Reads a run from its beginning, a limited number of postings at a time."""

    def __init__(self, run: Path, most: int, opened: ExitStack) -> None:
        self._terms, self._ends, self._postings = (opened.enter_context(path.open("rb")) for path in run_files(run))
        self._ends.seek(OFFSET_TYPE.itemsize)
        self._most = most
        self._next_terms = np.zeros(0, np.uint64)
        self._next_ends = np.zeros(0, np.int64)
        self._at = 0
        self.terms: Numbers = self._next_terms
        self._lengths: NDArray[np.int64] = self._next_ends
        self._loaded: Postings = np.zeros(0, np.uint32)

    def filled(self) -> bool:
        """See to it that at least one entry is loaded; False at the end of the run."""
        if len(self.terms):
            return True
        if not len(self._next_terms):
            entries = max(_FEWEST_ENTRIES, self._most // 4)
            self._next_terms = np.fromfile(self._terms, TERM_TYPE, entries)
            self._next_ends = np.fromfile(self._ends, OFFSET_TYPE, len(self._next_terms)).astype(np.int64)
            if not len(self._next_terms):
                return False
        whole = int(np.searchsorted(self._next_ends, self._at + self._most, "right"))
        if whole:
            ends = self._next_ends[:whole]
            self.terms = self._next_terms[:whole]
            self._next_terms, self._next_ends = self._next_terms[whole:], self._next_ends[whole:]
        else:  # a term with more postings than are loaded at once: in parts
            ends = np.array([self._at + self._most])
            self.terms = self._next_terms[:1]
        self._lengths = np.diff(ends, prepend=self._at)
        self._loaded = np.fromfile(self._postings, POSTING_TYPE, int(ends[-1]) - self._at)
        self._at = int(ends[-1])
        return True

    def below(self, bound: int) -> Entries:
        """Take the loaded entries of lower terms."""
        return self._take(int(np.searchsorted(self.terms, np.uint64(bound))))

    def equal(self, bound: int) -> Entries | None:
        """Take the entry of this very term if it is the first."""
        return self._take(1) if self.filled() and int(self.terms[0]) == bound else None

    def _take(self, entries: int) -> Entries:
        postings = int(self._lengths[:entries].sum())
        taken = self.terms[:entries], self._lengths[:entries], self._loaded[:postings]
        self.terms, self._lengths = self.terms[entries:], self._lengths[entries:]
        self._loaded = self._loaded[postings:]
        return taken


def merge(
    runs: Sequence[Path], target: Path, memory: int, progress: Callable[[int, int], None] = lambda *_: None
) -> tuple[int, int]:
    """Merge runs, whose passages follow one another, into one, and remove them.

    Args:
        runs: at least one.
        target: the run to write.
        memory: bytes to use, about.
        progress: called with how many postings are merged, and how many there are.

    Returns:
        How many terms and postings there are.

    Raises:
        OSError: something cannot be read or written.
    """
    rounds = 0
    while len(runs) > _FAN_IN:
        rounds += 1
        groups = [runs[start : start + _FAN_IN] for start in range(0, len(runs), _FAN_IN)]
        merged = [target.with_name(f"round-{rounds}-{number:06}") for number in range(len(groups))]
        for number, group in enumerate(groups):
            _merge_once(group, merged[number], memory, lambda *_: None)
        runs = merged
    return _merge_once(runs, target, memory, progress)


def _merge_once(
    runs: Sequence[Path], target: Path, memory: int, progress: Callable[[int, int], None]
) -> tuple[int, int]:
    total = sum(run_files(run)[2].stat().st_size for run in runs) // POSTING_TYPE.itemsize
    # Of each posting there are, while a chunk is merged, itself, its place and its copy; of each entry some more.
    most = max(1024, memory // (56 * len(runs)))
    with ExitStack() as opened, RunWriter(target) as writer:
        readers = [_RunReader(run, most, opened) for run in runs]
        while live := [reader for reader in readers if reader.filled()]:
            # Up to here every run is loaded. The term at the bound may go on behind what is loaded of a run.
            bound = min(int(reader.terms[-1]) for reader in live)
            writer.add(_interleaved([reader.below(bound) for reader in live]))
            for reader in live:
                while (entry := reader.equal(bound)) is not None:
                    writer.add(entry)
            progress(writer.postings, total)
    for run in runs:
        _remove(run_files(run))
    return writer.terms, writer.postings


def _interleaved(parts: Sequence[Entries]) -> Entries:
    """Entries of several runs as those of one: by term, within a term in the order of the runs."""
    terms = np.concatenate([part[0] for part in parts])
    lengths = np.concatenate([part[1] for part in parts])
    postings = np.concatenate([part[2] for part in parts])
    if not len(terms):
        return terms, lengths, postings
    order = np.argsort(terms, kind="stable")
    begins = (np.cumsum(lengths) - lengths)[order]
    lengths = lengths[order]
    shifts = begins - (np.cumsum(lengths) - lengths)
    gathered = postings[np.repeat(shifts, lengths) + np.arange(len(postings))]
    return *_grouped(terms[order], lengths), gathered


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()
