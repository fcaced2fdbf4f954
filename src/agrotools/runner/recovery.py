"""Repair of the records of a run after a crash."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from agrotools.core.base import count_text
from agrotools.core.files import RECORDS_FILE, sync, temporary_sibling
from agrotools.runner.records import BadLine, RecordIndex, record_index

REJECTED_FILE = "records.rejected.jsonl"
_COPIED_AT_ONCE = 1 << 20


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
        _move_aside(path, end, bad, run / REJECTED_FILE)
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


def _move_aside(path: Path, end: int, bad: Sequence[BadLine], rejected: Path) -> None:
    path = path.resolve()
    with path.open("rb") as lines:
        # The copies are written first: a crash in between duplicates lines there, but loses none.
        with rejected.open("ab") as aside:
            for line in bad:
                _copy(lines, aside, line.offset, line.offset + line.length)
        _end_line(rejected)
        with temporary_sibling(path) as temporary, temporary.open("wb") as output:
            start = 0
            for line in bad:
                _copy(lines, output, start, line.offset)
                start = line.offset + line.length
            _copy(lines, output, start, end)


def _copy(source: IO[bytes], target: IO[bytes], start: int, end: int) -> None:
    source.seek(start)
    while start < end:
        block = source.read(min(_COPIED_AT_ONCE, end - start))
        if not block:
            raise OSError(errno.EIO, "the file became shorter while it was read", source.name)
        target.write(block)
        start += len(block)
