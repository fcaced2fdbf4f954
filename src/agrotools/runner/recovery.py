"""Bringing ``records.jsonl`` back in order after a crash, so that a run goes on with every record that is whole."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from agrotools.core.files import sync, written_beside
from agrotools.runner.records import RECORDS_FILE, BadLine, RecordIndex, record_index

REJECTED_FILE = "records.rejected.jsonl"

_BLOCK = 1 << 20


def recover(run: Path) -> tuple[RecordIndex, list[str]]:
    """Cut off what a killed process or a power cut left at the end, and move aside lines that cannot be read.

    The end of the file is cut off where a line was torn while it was written, or where the disk holds zero bytes
    instead of the last lines. A line in between that is no record goes to ``records.rejected.jsonl``, so that its
    sample runs again and nothing else does. To be called by the one process that holds the run.

    Returns:
        The index of the records that are left, and a note for each thing that was done.

    Raises:
        RunStoreError: the records cannot be read.
        OSError: they cannot be written.
    """
    path = run / RECORDS_FILE
    index = record_index(run)
    notes: list[str] = []
    end = index.end
    bad = list(index.bad)
    while bad and bad[-1].reason == "zero bytes" and bad[-1].offset + bad[-1].length == end:
        end = bad.pop().offset
    if path.exists() and (size := path.stat().st_size) > end:
        _cut_off(path, end)
        notes.append(
            f"cut {size - end} bytes off the end of {RECORDS_FILE}: a record that was not written to the end;"
            " its sample runs again"
        )
    if bad:
        _move_aside(path, end, bad, run / REJECTED_FILE)
        lines = "1 line" if len(bad) == 1 else f"{len(bad)} lines"
        notes.append(
            f"moved {lines} of {RECORDS_FILE} that cannot be read to {REJECTED_FILE} (line {bad[0].number}:"
            f" {bad[0].reason}); their samples run again"
        )
    return (record_index(run) if notes else index), notes


def _cut_off(path: Path, end: int) -> None:
    os.truncate(path, end)
    sync(path)


def _move_aside(path: Path, end: int, bad: Sequence[BadLine], rejected: Path) -> None:
    path = path.resolve()
    with path.open("rb") as lines:
        # First the copies, then the file without them: a crash in between repeats lines there, and loses none.
        with rejected.open("ab") as aside:
            for line in bad:
                _copy(lines, aside, line.offset, line.offset + line.length)
        sync(rejected)
        with written_beside(path) as temporary, temporary.open("wb") as kept:
            start = 0
            for line in bad:
                _copy(lines, kept, start, line.offset)
                start = line.offset + line.length
            _copy(lines, kept, start, end)


def _copy(source: IO[bytes], target: IO[bytes], start: int, end: int) -> None:
    source.seek(start)
    while start < end:
        block = source.read(min(_BLOCK, end - start))
        if not block:
            raise OSError(errno.EIO, "the file became shorter while it was read", source.name)
        target.write(block)
        start += len(block)
