"""Records of a run: an index of their offsets, and iteration one record at a time.

Only keys and offsets are kept in memory, in 28 bytes a record and those of its id, so that a run of any length can be
read. A key may occur on several lines (an invalid sample is run again): the last finished record is valid, or the last
invalid one if none is finished. Lines that are not records (after a disk fault) are always reported.
"""

import os
from bisect import bisect_left
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, groupby, pairwise
from pathlib import Path
from statistics import fmean
from typing import IO, Any, NamedTuple

import orjson
from pydantic import ValidationError

from agrotools.core import MODES, Mode, Record, RunStoreError, Score, first_error
from agrotools.core.base import count_text
from agrotools.core.files import MANIFEST_FILE, RECORDS_FILE
from agrotools.core.packed import PackedBytes, sorted_entries
from agrotools.runner.manifest import split_ids

Key = tuple[str, str, int]
"""Identity of a record in its run: mode, sample id, epoch."""

_MODES = {mode: mode for mode in MODES}
_OTHER_VERSION = {"extra_forbidden", "slot_type"}
"""Validation errors that point to another version, not to damage: unknown fields, slots of a missing plug-in."""
_NOT_IN_JSON = (b"NaN", b"Infinity")
"""Numbers that pydantic reads and JSON does not have."""
_BLOCK = 1 << 16


class BadLine(NamedTuple):
    """A line that is not a valid record: its position and the problem."""

    number: int
    offset: int
    length: int
    reason: str


_record_of = Record.__pydantic_validator__.validate_json
_RERUN = "the same agrotools eval command runs what is missing again"


_ORDER: tuple[Mode, ...] = tuple(sorted(MODES))
_RANKS: dict[object, bytes] = {mode: bytes([rank]) for rank, mode in enumerate(_ORDER)}
_EPOCH_BYTES, _PLACE_BYTES = 9, 9
_MIDDLE = 1 << 63
"""Added to epochs, which in a damaged file may be any number of 64 bits."""


def entry_key(key: Key) -> bytes:
    """Return a key as bytes that sort like the key."""
    mode, name, epoch = key
    return b"%b%b\0%b" % (_RANKS[mode], name.encode(), (epoch + _MIDDLE).to_bytes(_EPOCH_BYTES, "big"))


def entry_of(key: Key, offset: int, finished: bool) -> bytes:
    """Return the entry of a record, which also holds the offset of its line."""
    return b"%b%b%c" % (entry_key(key), offset.to_bytes(_PLACE_BYTES - 1, "big"), finished)


def _key_at(entry: bytes) -> Key:
    """Return the key of an entry."""
    name, epoch = entry[1 : -_EPOCH_BYTES - _PLACE_BYTES - 1], entry[-_EPOCH_BYTES - _PLACE_BYTES : -_PLACE_BYTES]
    return _ORDER[entry[0]], name.decode(), int.from_bytes(epoch, "big") - _MIDDLE


def key_bytes(entry: bytes) -> bytes:
    """Return the key of an entry as :func:`entry_key` writes it."""
    return entry[:-_PLACE_BYTES]


def _offset_at(entry: bytes) -> int:
    return int.from_bytes(entry[-_PLACE_BYTES:-1], "big")


class RecordIndex:
    """Index of ``records.jsonl`` by key. Iteration yields the records by mode, sample id and epoch.

    The order differs from the order of writing, which depends on chance, because resampled intervals depend on it. It
    can be iterated any number of times; lines that are added meanwhile are not included.

    Args:
        run: the run folder.
        whole: validate entire lines, not only their keys.

    Raises:
        RunStoreError: the file cannot be read, or a line is of another version (without ``whole``: on iteration).
    """

    def __init__(self, run: Path, *, whole: bool = False) -> None:
        self.path = run / RECORDS_FILE
        self.bad: list[BadLine] = []
        self.foreign: list[Key] = []
        """Keys of records of samples or epochs that are not of the run; they are left out."""
        self.repeated: set[Key] = set()
        """Keys with several finished records, of which the last counts."""
        self.end = 0
        """Offset after the last complete line; anything after it is an interrupted write."""
        self._entries = PackedBytes()
        """The key of each record (:func:`entry_key`), the offset of its line, and 1 if it is finished, in order."""
        self._next = 0
        """Place after that of the last key that was asked for: most come in order."""
        self._n_lines = 0
        self._add(self._new_entries(whole))

    def read_on(self, run: Path) -> tuple[list[Key], bool]:
        """Add the lines that were written since.

        Returns:
            The keys whose record is new or has become finished, and True if one of them was finished before.

        Raises:
            RunStoreError: the file cannot be read, or has become shorter.
        """
        before = self.end
        if self.path.stat().st_size < before:
            raise _changed(self.path)
        new = [*self._new_entries(whole=False)]
        replaces = any(entry[-1] and self.has_finished(_key_at(entry)) for entry in new)
        self._add(new)
        self.leave_out(run)
        return [_key_at(entry) for entry in self._entries if _offset_at(entry) >= before], replaces

    def add_written(self, entries: PackedBytes, end: int) -> None:
        """Add the entries of lines that this process has written, which end at offset ``end``."""
        self._add(entries)
        self.end, self._n_lines = end, self._n_lines + len(entries)

    def _add(self, entries: Iterable[bytes]) -> None:
        self._entries = self._that_count(sorted_entries(chain(self._entries, entries)))

    def _new_entries(self, whole: bool) -> Iterator[bytes]:
        with _opened(self.path) as file:
            if file is not None:
                file.seek(self.end)
            for number, line in enumerate(file or (), start=self._n_lines + 1):
                if number == 1 and line.startswith(BOM_UTF8):  # of an editor
                    line = line.removeprefix(BOM_UTF8)
                    self.end += len(BOM_UTF8)
                try:
                    key, finished = self._checked(line, number) if whole else _key_of(line)
                    yield entry_of(key, self.end, finished)
                except (ValueError, LookupError, TypeError) as error:
                    if isinstance(error, orjson.JSONDecodeError) and not line.endswith(b"\n"):
                        break  # an interrupted write, whose JSON is not whole
                    self.bad.append(BadLine(number, self.end, len(line), _reason(line, error)))
                self.end += len(line)
                self._n_lines = number

    def _that_count(self, entries: PackedBytes) -> PackedBytes:
        """Return one entry of each key: of its last finished record, or of its last one."""
        if all(key_bytes(one) != key_bytes(other) for one, other in pairwise(entries)):
            return entries
        kept = PackedBytes()
        for _, of_key in groupby(entries, key=key_bytes):
            every = [*of_key]
            finished = [entry for entry in every if entry[-1]]
            if len(finished) > 1:
                self.repeated.add(_key_at(finished[-1]))
            kept.append((finished or every)[-1])
        return kept

    def _checked(self, line: bytes, number: int) -> tuple[Key, bool]:
        """Return what :func:`_key_of` returns, for a line that is a record as a whole.

        Raises:
            ValueError: it is damaged.
            RunStoreError: it is a record of another version.
        """
        if any(each in line for each in _NOT_IN_JSON):
            _key_of(line)
        try:
            record = parsed(line)
        except ValidationError as error:
            _key_of(line)
            if {each["type"] for each in error.errors(include_url=False)} <= _OTHER_VERSION:
                raise _not_a_record(self.path, number, error) from error
            raise
        return record.key, record.invalid is None

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return self._entry(key) is not None

    def _entry(self, key: Key) -> bytes | None:
        wanted, at, n = entry_key(key), self._next, len(self._entries)
        entry = self._entries[at] if at < n else b""
        if key_bytes(entry) != wanted:
            at = bisect_left(self._entries, wanted)
            entry = self._entries[at] if at < n else b""
        self._next = at + 1
        return entry if key_bytes(entry) == wanted else None

    def has_finished(self, key: Key) -> bool:
        """Return True if there is a record of this key that is not invalid."""
        entry = self._entry(key)
        return entry is not None and entry[-1] == 1

    @property
    def keys(self) -> list[Key]:
        """All keys, in the order of iteration."""
        return [*self.each_key()]

    def each_key(self) -> Iterator[Key]:
        """Yield all keys, in the order of iteration."""
        return map(_key_at, self._entries)

    def states(self) -> Iterator[tuple[Key, bool]]:
        """Yield all keys, in the order of iteration, and whether their record is not invalid."""
        return ((_key_at(entry), entry[-1] == 1) for entry in self._entries)

    @property
    def finished(self) -> set[Key]:
        """Keys whose record is not invalid."""
        return {_key_at(entry) for entry in self._entries if entry[-1]}

    @property
    def failed(self) -> frozenset[Key]:
        """Keys whose record is invalid."""
        return frozenset(_key_at(entry) for entry in self._entries if not entry[-1])

    def finished_ids(self, mode: Mode) -> Iterator[str]:
        """Yield the id of each sample that has a record in ``mode`` that is not invalid, in ascending order."""
        names = (_key_at(entry)[1] for entry in self._entries if entry[-1] and entry[:1] == _RANKS[mode])
        return (name for name, _ in groupby(names))

    @property
    def n_finished(self) -> int:
        """Number of keys whose record is not invalid."""
        return sum(entry[-1] for entry in self._entries)

    @property
    def _damage(self) -> str:
        first = self.bad[0]
        return f"{self.path}: {count_text(len(self.bad), 'line')} cannot be read (line {first.number}: {first.reason})"

    @property
    def notes(self) -> list[str]:
        """Notes for readers of the scores about lines that were left out or stand for the same sample."""
        notes: list[str] = []
        if self.bad:
            notes.append(f"{self._damage}, left out; {_RERUN}")
        if self.foreign:
            records = count_text(len(self.foreign), "record")
            _, name, epoch = self.foreign[0]
            notes.append(f"{self.path}: left out {records} of other samples or epochs (first: {name}, epoch {epoch})")
        if self.repeated:
            samples = count_text(len({key[1] for key in self.repeated}), "sample")
            notes.append(f"{self.path}: several finished records of {samples}, of which the last counts")
        return notes

    def undamaged(self) -> "RecordIndex":
        """Return the index itself; RunStoreError if a line was not a record."""
        if self.bad:
            raise RunStoreError(self._damage, hint=f"{_RERUN}; or remove these lines to continue without them")
        return self

    @property
    def without_samples(self) -> RunStoreError:
        """Error for readers who need at least one record."""
        damage = f": {self._damage}" if self.bad else ""
        return RunStoreError(f"the run {self.path.parent} holds no finished sample{damage}", hint=_RERUN)

    def leave_out(self, run: Path) -> None:
        """Leave out the records of samples and epochs that are not in the manifest of ``run``, if it lists samples."""
        with suppress(OSError, ValueError, LookupError, TypeError):
            content, names = split_ids(run / MANIFEST_FILE)
            manifest = orjson.loads(content)
            planned = sorted_entries(map(str.encode, names or manifest["sample_ids"]))
            if not len(planned):
                self.repeated = set()  # a recorded session is written after every call
                return
            foreign = {*self._foreign(planned, range(manifest["epochs"]))}
            if foreign:
                self._entries = PackedBytes(entry for entry in self._entries if entry not in foreign)
            self.foreign = sorted({*self.foreign, *map(_key_at, foreign)})

    def _foreign(self, planned: PackedBytes, epochs: range) -> Iterator[bytes]:
        """Yield the entries of samples that are not ``planned`` (in ascending order), or of other epochs."""
        place, last = 0, b""
        for entry in self._entries:
            _, name, epoch = _key_at(entry)
            encoded = name.encode()
            if encoded < last:
                place = 0  # another mode
            last = encoded
            while place < len(planned) and planned[place] < encoded:
                place += 1
            if epoch not in epochs or place == len(planned) or planned[place] != encoded:
                yield entry

    def __iter__(self) -> Iterator[Record]:
        return self._records(self._entries)

    def get(self, key: Key) -> Record | None:
        """Return the record of ``key``, or None."""
        entry = self._entry(key)
        return next(self._records([entry]), None) if entry else None

    def of_sample(self, sample_id: str) -> list[Record]:
        """Return all records of a sample, over all modes and epochs."""
        found: list[bytes] = []
        for mode in _ORDER:
            first = entry_key((mode, sample_id, -_MIDDLE))
            at = bisect_left(self._entries, first)
            while at < len(self._entries) and self._entries[at].startswith(first[:-_EPOCH_BYTES]):
                found.append(self._entries[at])
                at += 1
        return [*self._records(found)]

    def at(self, places: Iterable[int]) -> Iterator[Record]:
        """Yield the records at these places in the order of iteration, one at a time."""
        return self._records(self._entries[place] for place in places)

    def _records(self, entries: Iterable[bytes]) -> Iterator[Record]:
        with _opened(self.path) as file:
            for entry in entries:
                if file is None:
                    raise _changed(self.path)
                offset = _offset_at(entry)
                file.seek(offset)
                try:
                    record = parsed(file.readline())
                except ValueError as error:
                    raise _unreadable(self.path, file, offset, error) from error
                if entry_key(record.key) != key_bytes(entry):
                    raise _changed(self.path)
                yield record


def _changed(path: Path) -> RunStoreError:
    return RunStoreError(f"{path} was changed while it was read", hint="give the command again")


def _unreadable(path: Path, file: IO[bytes], offset: int, error: ValueError) -> RunStoreError:
    file.seek(0)
    number = 1 + sum(file.read(min(_BLOCK, offset - start)).count(b"\n") for start in range(0, offset, _BLOCK))
    return _not_a_record(path, number, error)


def _not_a_record(path: Path, number: int, error: ValueError) -> RunStoreError:
    problem = first_error(error) if isinstance(error, ValidationError) else str(error).splitlines()[0]
    return RunStoreError(
        f"{path}, line {number} is not a record: {problem}",
        hint="score a run of another version of agrotools with that version; if the line is damaged, the same agrotools"
        " eval command sets it aside and runs its sample again",
    )


def record_index(run: Path) -> RecordIndex:
    """Return the index of the records of ``run``, in one fast pass over the file.

    Raises:
        RunStoreError: the file cannot be read.
    """
    index = RecordIndex(run)
    index.leave_out(run)
    return index


def iter_records(run: Path) -> Iterator[Record]:
    """Iterate over the records of a run, one per key, by mode, sample and epoch, with one record in memory at a time.

    Raises:
        RunStoreError: the file cannot be read, or contains a line that is not a record.
    """
    return iter(record_index(run).undamaged())


def parsed(line: bytes) -> Record:
    """Parse the record on a line.

    Raises:
        ValueError: the line is not a record.
    """
    try:
        return _record_of(line)
    except ValidationError as error:
        try:  # pydantic's JSON parser rejects nesting that its own serialiser produces
            return Record.model_validate(orjson.loads(line))
        except ValueError:
            raise error from None


def end_of_last_line(file: IO[bytes]) -> int:
    """Return the offset after the last line break of a file; 0 if there is none."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def flat_row(record: Record, scores: Iterable[Score]) -> dict[str, Any]:
    """Return a record as one row of plain values, with the mean of its scores of each metric."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for score in scores:
        values[score.metric].append(score.value)
    trajectory, spending = record.trajectory, record.spending
    return {
        "sample": record.sample.id,
        "mode": record.mode,
        "epoch": record.epoch,
        "family": record.sample.family,
        "task_type": record.sample.task_type,
        "answer": trajectory.answer if trajectory else None,
        "termination": trajectory.termination if trajectory else None,
        "invalid": record.invalid,
        "tool_calls": len(trajectory.calls) if trajectory else None,
        "seconds": record.seconds,
        "input_tokens": spending.input_tokens,
        "output_tokens": spending.output_tokens,
        "cached_input_tokens": spending.cached_input_tokens,
        "cost_usd": spending.cost_usd,
        **{metric: fmean(each) for metric, each in values.items()},
    }


@contextmanager
def _opened(path: Path) -> Generator[IO[bytes] | None]:
    try:
        if path.exists() and not path.is_file():
            raise RunStoreError(f"{path} cannot be read: it is not a regular file", hint="remove or replace it")
        file = path.open("rb")
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _cannot_read(path, error) from error
    with file:
        try:
            yield file
        except OSError as error:
            raise _cannot_read(path, error) from error


def _cannot_read(path: Path, error: OSError) -> RunStoreError:
    return RunStoreError(f"{path} cannot be read: {error.strerror or error}", hint="make it a file you may read")


def _key_of(line: bytes) -> tuple[Key, bool]:
    """Return the key of the record on a line and whether it is finished, without validating the rest."""
    data: Any = orjson.loads(line)
    mode, name, epoch = _MODES[data["mode"]], data["sample"]["id"], data.get("epoch", 0)
    if type(name) is not str or "\0" in name or type(epoch) is not int:
        raise TypeError("no id")
    return (mode, name, epoch), data.get("invalid") is None


def _reason(line: bytes, error: Exception) -> str:
    if isinstance(error, orjson.JSONDecodeError):
        return "zero bytes" if not line.strip(b"\0\n") else "not JSON"
    try:
        parsed(line)
    except ValidationError as problem:
        return f"not a record: {first_error(problem)}"
    return "not a record"
