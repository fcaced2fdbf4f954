"""Score rows of a run as its ``scores.json`` holds them, read again in the order of its records."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import orjson

from agrotools.core import Record, Score
from agrotools.core.frozen_model import from_valid
from agrotools.runner.rescore import SCORES_FILE

RowKey = tuple[str, str, int]
"""Mode, sample and epoch of a score row."""
_FIRST_LINE = b'"scores": ['
"""Line behind which each score row stands on a line of its own."""


class StoredScores:
    """Reader of the score rows of a run that has just been scored.

    Rows stand in the order of the records, so one pass over both finds the rows of every record, and none is kept.

    Raises:
        OSError: there is no ``scores.json``, or it cannot be read.
    """

    def __init__(self, run: Path) -> None:
        self._file = (run / SCORES_FILE).open("rb")
        self._rows = self._read()
        self._next = next(self._rows, None)

    def __enter__(self) -> "StoredScores":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def of(self, record: Record) -> list[Score]:
        """Return the rows of a record, which must come behind those of the last one asked for; none if it has none."""
        rows: list[Score] = []
        while self._next is not None and self._next[0] == record.key:
            rows.append(self._next[1])
            self._next = next(self._rows, None)
        return rows

    def _read(self) -> Iterator[tuple[RowKey, Score]]:
        for line in self._file:
            if line.strip() == _FIRST_LINE:
                break
        for line in self._file:
            text = line.strip().rstrip(b",")
            if not text.startswith(b"{"):
                return  # the end of the list
            fields = orjson.loads(text)
            mode = fields.pop("mode")
            yield (mode, fields["sample_id"], fields["epoch"]), from_valid(Score, fields)
