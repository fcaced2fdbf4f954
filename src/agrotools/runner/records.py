"""Records of a run: an index of their offsets, iteration one record at a time, and repair after a crash.

Only keys and offsets are kept, in a temporary table, so that a run of any length can be read. A key may occur on
several lines (an invalid sample is run again): the last finished record is valid, or the last invalid one if none is
finished. Lines that are not records (after a disk fault) are always reported.
"""

import os
import sqlite3
import weakref
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import IO, Any, NamedTuple

import orjson
from pydantic import ValidationError

from agrotools.core import MODES, Mode, Record, RunStoreError, Score, first_error
from agrotools.core.files import MANIFEST_FILE, RECORDS_FILE, sync, temporary_sibling
from agrotools.core.texts import count_text
from agrotools.formats.manifest import parse_manifest

Key = tuple[str, str, int]
"""Identity of a record in its run: mode, sample id, epoch."""

_MODES = {mode: mode for mode in MODES}
_OTHER_VERSION = {"extra_forbidden", "slot_type"}
"""Validation errors that point to another version, not to damage: unknown fields, slots of a missing plug-in."""
_NOT_IN_JSON = (b"NaN", b"Infinity")
"""Numbers that pydantic reads and JSON does not have."""
_BLOCK = 1 << 20
REJECTED_FILE = "records.rejected.jsonl"


class BadLine(NamedTuple):
    """A line that is not a valid record: its position and the problem."""

    number: int
    offset: int
    length: int
    reason: str


_record_of = Record.__pydantic_validator__.validate_json
_RERUN = "the same agrotools eval command runs what is missing again"


_TABLES = """
CREATE TABLE records (
    mode TEXT, sample TEXT, epoch INTEGER, offset INTEGER, n_finished INTEGER, PRIMARY KEY (mode, sample, epoch)
) WITHOUT ROWID;
CREATE TABLE planned (sample TEXT PRIMARY KEY) WITHOUT ROWID;
"""
"""Keys with the offset of the line that counts and the number of finished records; ids of the samples of the run."""
_ADD = """
INSERT INTO records VALUES (?, ?, ?, ?, ?) ON CONFLICT (mode, sample, epoch) DO UPDATE SET
    offset = CASE WHEN n_finished AND NOT excluded.n_finished THEN offset ELSE excluded.offset END,
    n_finished = n_finished + excluded.n_finished
"""
_FOREIGN = "epoch NOT BETWEEN 0 AND ? OR sample NOT IN planned"

Entry = tuple[str, str, int, int, bool]
"""Key of a record, the offset of its line, and True if it is finished."""


class RecordIndex:
    """Index of ``records.jsonl`` by key. Iteration yields the records by mode, sample id and epoch.

    The order differs from the order of writing, which depends on chance, because resampled intervals depend on it. It
    can be iterated any number of times, but no lines may be added meanwhile.

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
        self.end = 0
        """Offset after the last complete line; anything after it is an interrupted write."""
        self._db = sqlite3.connect("", check_same_thread=False)
        weakref.finalize(self, self._db.close)
        self._db.executescript(_TABLES)
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
        replaces = any(
            finished and self.has_finished((mode, name, epoch))
            for mode, name, epoch, _, finished in new
        )
        self._add(new)
        self.leave_out(run)
        return [_key(row) for row in self._rows("offset >= ?", before)], replaces

    def _add(self, entries: Iterable[Entry]) -> None:
        self._db.executemany(_ADD, entries)

    def _rows(self, where: str = "TRUE", *values: object) -> Iterator[Entry]:
        # No "yield from", which would close the cursor at the end of the process, behind its connection.
        query = f"SELECT * FROM records WHERE {where} ORDER BY mode, sample, epoch"
        for row in self._db.execute(query, values):  # noqa: UP028
            yield row

    def _new_entries(self, whole: bool) -> Iterator[Entry]:
        with _open_records(self.path) as file:
            if file is not None:
                file.seek(self.end)
            for number, line in enumerate(file or (), start=self._n_lines + 1):
                try:
                    (mode, name, epoch), finished = (
                        self._checked(line, number) if whole else _key_of(line)
                    )
                    if abs(epoch) >> 63:
                        raise TypeError("no epoch")
                    yield mode, name, epoch, self.end, finished
                except (ValueError, LookupError, TypeError) as error:
                    if isinstance(error, orjson.JSONDecodeError) and not line.endswith(b"\n"):
                        break  # an interrupted write, whose JSON is not whole
                    self.bad.append(BadLine(number, self.end, len(line), _reason(line, error)))
                self.end += len(line)
                self._n_lines = number

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
        return self._count("TRUE")

    def _count(self, where: str) -> int:
        return self._db.execute(f"SELECT COUNT(*) FROM records WHERE {where}").fetchone()[0]

    def __contains__(self, key: Key) -> bool:
        return self._entry(key) is not None

    def _entry(self, key: Key) -> Entry | None:
        return next(self._rows("mode = ? AND sample = ? AND epoch = ?", *key), None)

    def has_finished(self, key: Key) -> bool:
        """Return True if there is a record of this key that is not invalid."""
        entry = self._entry(key)
        return entry is not None and bool(entry[-1])

    def each_key(self) -> Iterator[Key]:
        """Yield all keys, in the order of iteration."""
        return map(_key, self._rows())

    @property
    def failed(self) -> frozenset[Key]:
        """Keys whose record is invalid."""
        return frozenset(map(_key, self._rows("NOT n_finished")))

    def finished_ids(self, mode: Mode) -> Iterator[str]:
        """Yield the id of each sample that has a record in ``mode`` that is not invalid, in ascending order."""
        return (
            name
            for name, _ in groupby(row[1] for row in self._rows("mode = ? AND n_finished", mode))
        )

    @property
    def n_finished(self) -> int:
        """Number of keys whose record is not invalid."""
        return self._count("n_finished")

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
            notes.append(
                f"{self.path}: left out {records} of other samples or epochs (first: {name}, epoch {epoch})"
            )
        repeated = {name for _, name, *_ in self._rows("n_finished > 1")}
        if repeated:
            samples = count_text(len(repeated), "sample")
            notes.append(
                f"{self.path}: several finished records of {samples}, of which the last counts"
            )
        return notes

    def undamaged(self) -> "RecordIndex":
        """Return the index itself; RunStoreError if a line was not a record."""
        if self.bad:
            raise RunStoreError(
                self._damage, hint=f"{_RERUN}; or remove these lines to continue without them"
            )
        return self

    @property
    def without_samples(self) -> RunStoreError:
        """Error for readers who need at least one record."""
        damage = f": {self._damage}" if self.bad else ""
        return RunStoreError(
            f"the run {self.path.parent} contains no finished sample{damage}", hint=_RERUN
        )

    def leave_out(self, run: Path) -> None:
        """Leave out the records of samples and epochs that are not in the manifest of ``run``, if it lists samples."""
        with suppress(OSError, ValueError):
            manifest = parse_manifest(run / MANIFEST_FILE)
            if not manifest.sample_ids:
                return
            self._db.executemany(
                "INSERT OR IGNORE INTO planned VALUES (?)", zip(manifest.sample_ids, strict=True)
            )
            foreign = [*map(_key, self._rows(_FOREIGN, manifest.epochs - 1))]
            self._db.execute(f"DELETE FROM records WHERE {_FOREIGN}", (manifest.epochs - 1,))
            self._db.execute("DELETE FROM planned")
            self.foreign = sorted({*self.foreign, *foreign})

    def __iter__(self) -> Iterator[Record]:
        return self._records(self._rows())

    def get(self, key: Key) -> Record | None:
        """Return the record of ``key``, or None."""
        entry = self._entry(key)
        return next(self._records([entry]), None) if entry else None

    def of_sample(self, sample_id: str) -> list[Record]:
        """Return all records of a sample, over all modes and epochs."""
        return [*self._records(self._rows(f"mode IN {MODES} AND sample = ?", sample_id))]

    def _records(self, entries: Iterable[Entry]) -> Iterator[Record]:
        with _open_records(self.path) as file:
            for entry in entries:
                if file is None:
                    raise _changed(self.path)
                *key, offset, _ = entry
                file.seek(offset)
                try:
                    record = parsed(file.readline())
                except ValueError as error:
                    raise _unreadable(self.path, file, offset, error) from error
                if record.key != tuple(key):
                    raise _changed(self.path)
                yield record


def _key(entry: Entry) -> Key:
    return entry[:3]


def _changed(path: Path) -> RunStoreError:
    return RunStoreError(f"{path} was changed while it was read", hint="run the command again")


def _unreadable(path: Path, file: IO[bytes], offset: int, error: ValueError) -> RunStoreError:
    file.seek(0)
    number = 1 + sum(
        file.read(min(_BLOCK, offset - start)).count(b"\n") for start in range(0, offset, _BLOCK)
    )
    return _not_a_record(path, number, error)


def _not_a_record(path: Path, number: int, error: ValueError) -> RunStoreError:
    problem = (
        first_error(error) if isinstance(error, ValidationError) else str(error).splitlines()[0]
    )
    return RunStoreError(
        f"{path}, line {number} is not a record: {problem}",
        hint="score a run of another version of agrotools with that version; if the line is damaged, the same agrotools"
        " eval command sets it aside and runs its sample again",
    )


def record_index(run: Path) -> RecordIndex:
    """Return the index of the records of ``run``, in one pass; RunStoreError if the file cannot be read."""
    index = RecordIndex(run)
    index.leave_out(run)
    return index


def recover(run: Path) -> tuple[RecordIndex, list[str]]:
    """Truncate incomplete data at the end of the records, and move unreadable lines to a separate file.

    The file is truncated at a line that was interrupted by a crash, or at zero bytes that a power cut left in place of
    the last lines. Other invalid lines are moved to ``records.rejected.jsonl``, so that only their samples run again.
    Must be called only by the process that holds the lock on the run.

    Returns:
        The index of the remaining records, and a note for each repair.

    Raises:
        RunStoreError: the records cannot be read, or are of another version.
        OSError: they cannot be written.
    """
    path = run / RECORDS_FILE
    index = RecordIndex(run, whole=True)
    notes: list[str] = []
    end = index.end
    bad = list(index.bad)
    while bad and bad[-1].reason == "zero bytes" and bad[-1].offset + bad[-1].length == end:
        end = bad.pop().offset
    if path.exists() and (size := path.stat().st_size) > end:
        os.truncate(path, end)
        notes.append(
            f"cut {size - end} bytes off the end of {RECORDS_FILE}: a record that was not written to the end;"
            " its sample runs again"
        )
    if bad:
        _move_aside(path, bad, run / REJECTED_FILE)
        notes.append(
            f"moved {count_text(len(bad), 'line')} of {RECORDS_FILE} that cannot be read to {REJECTED_FILE}"
            f" (line {bad[0].number}:"
            f" {bad[0].reason}); {'its sample runs' if len(bad) == 1 else 'their samples run'} again"
        )
    if path.exists():
        _end_line(path)
    return (record_index(run) if notes else index), notes


def _end_line(path: Path) -> None:
    """Add the line break if only this is missing from a complete last line, and sync the file."""
    with path.open("r+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
    sync(path)


def _move_aside(path: Path, bad: Sequence[BadLine], rejected: Path) -> None:
    path, numbers = path.resolve(), {line.number for line in bad}
    with path.open("rb") as lines:
        # The copies are written first: a crash in between duplicates lines there, but loses none.
        with rejected.open("ab") as aside:
            aside.writelines(
                line for number, line in enumerate(lines, start=1) if number in numbers
            )
        _end_line(rejected)
        lines.seek(0)
        with temporary_sibling(path) as temporary, temporary.open("wb") as output:
            output.writelines(
                line for number, line in enumerate(lines, start=1) if number not in numbers
            )


def iter_records(run: Path) -> Iterator[Record]:
    """Iterate over the records of a run, one per key, by mode, sample and epoch, with one record in memory at a time.

    Raises:
        RunStoreError: the file cannot be read, or contains a line that is not a record.
    """
    return iter(record_index(run).undamaged())


def parsed(line: bytes) -> Record:
    """Return the record on a line; ValueError if it is none."""
    try:
        return _record_of(line)
    except ValidationError as error:
        try:  # pydantic's JSON parser rejects nesting that its own serialiser produces
            return Record.model_validate(orjson.loads(line))
        except ValueError:
            raise error from None


_SPENT = ("input_tokens", "output_tokens", "cached_input_tokens", "cost_usd")


def last_record_at(run: Path) -> datetime:
    """Return the time of the last record of a run: that of its file."""
    return datetime.fromtimestamp((run / RECORDS_FILE).stat().st_mtime, UTC)


def gold_text(record: Record) -> str:
    """Return the reference answer as lines ``name: value``; the value is JSON if the slot has none in plain words."""
    form = {"name", "label", "from_", "weight"}
    return "\n".join(
        f"{slot.name}: {slot.expected_text or slot.model_dump_json(exclude=form, exclude_defaults=True)}"
        for slot in record.sample.answer
    )


def flat_row(record: Record, scores: Iterable[Score]) -> dict[str, Any]:
    """Return a record as one row of plain values, with the mean of its scores of each metric."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for score in scores:
        values[score.metric].append(score.value)
    sample, trajectory, spending = record.sample, record.trajectory, record.spending
    return {
        "sample": sample.id,
        "mode": record.mode,
        "epoch": record.epoch,
        # Cluster and weight are what an interval of the mean needs.
        "cluster": sample.cluster,
        "weight": sample.weight,
        "family": sample.family,
        "task_type": sample.task_type,
        "query": sample.query,
        "gold": gold_text(record),
        "answer": trajectory.answer_text if trajectory else None,
        "termination": trajectory.termination if trajectory else None,
        "invalid": record.invalid,
        "tool_calls": len(trajectory.calls) if trajectory else None,
        "seconds": record.seconds,
        **{name: getattr(spending, name) for name in _SPENT},
        **{metric: fmean(each) for metric, each in values.items()},
    }


@contextmanager
def _open_records(path: Path) -> Generator[IO[bytes] | None]:
    try:
        if path.exists() and not path.is_file():
            raise RunStoreError(
                f"{path} cannot be read: it is not a regular file", hint="remove or replace it"
            )
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
    return RunStoreError(
        f"{path} cannot be read: {error.strerror or error}", hint="make it a file you may read"
    )


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
