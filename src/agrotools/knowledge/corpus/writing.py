"""Writers of the files of an index: passages with their texts, documents, and sorted postings.

Postings are sorted on disk in limited memory. Text is gathered until a buffer is full, sorted, and appended to one of
many partitions by a mix of the term's bits, so that every partition holds about as many postings as the others and fits
in memory. Each is then sorted on its own; the partitions one after the other are the index: three files of
little-endian numbers, ``postings.terms`` (8 bytes each, ascending, mixed), ``postings.offsets`` (8 bytes, one more than
there are terms: the place of each term's first posting, and the end of the last) and ``postings.passages`` (4 bytes
each: 26 bits number of a passage, ascending within a term, and 6 bits how often the term stands in it, 63 at most).

bm25s, which computes the same scores, builds in memory alone: 4.1 GB for 200 MB of text.
"""

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.corpus.terms import TERM_BITS, Numbers

ROW_TYPE = np.dtype([("end", "<u8"), ("position", "<u8"), ("document", "<u4"), ("length", "<u4")])
"""Of a passage: end of its text, its beginning in its document, the document, and its number of terms."""
END_TYPE = np.dtype("<u8")
TEXTS, ROWS, DOCUMENTS, DOCUMENT_ENDS = "texts.utf8", "passages.rows", "documents.jsonl", "documents.ends"
_NOT_PRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_LONGEST_TITLE, _LONGEST_SOURCE = 200, 500

COUNT_BITS = 6
MOST_COUNTED = (1 << COUNT_BITS) - 1
MOST_PASSAGES = 1 << (32 - COUNT_BITS)
TERM_TYPE, OFFSET_TYPE, POSTING_TYPE = np.dtype("<u8"), np.dtype("<u8"), np.dtype("<u4")
TERMS, OFFSETS, PASSAGES = "postings.terms", "postings.offsets", "postings.passages"
SORTING_BYTES = 60
"""Memory that sorting a partition takes, for each of its postings."""
_OWNER_BITS = 64 - TERM_BITS
_HALF, _TERM_MASK = np.uint64(TERM_BITS // 2), np.uint64((1 << TERM_BITS) - 1)
_ODD = np.uint64(0xD6E8FEB86659)


def one_line(text: str, longest: int) -> str:
    """``text`` without control characters and line breaks, cut to ``longest`` characters."""
    return _NOT_PRINTABLE.sub(" ", text).strip()[:longest]


class PassageWriter:
    """Writer of texts, rows of passages, and documents.

    Raises (all methods):
        OSError: it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        with ExitStack() as opened:
            self._texts, self._rows, self._documents, self._ends = (
                opened.enter_context((folder / name).open("wb")) for name in (TEXTS, ROWS, DOCUMENTS, DOCUMENT_ENDS)
            )
            self._files = opened.pop_all()
        self.documents = 0
        self.passages = 0
        self.occurrences = 0
        self.text_bytes = 0
        self.document_bytes = 0

    def add_document(self, source: str, title: str) -> None:
        row = {"source": one_line(source, _LONGEST_SOURCE), "title": one_line(title, _LONGEST_TITLE)}
        self.document_bytes += self._documents.write(
            json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        )
        self._ends.write(np.array(self.document_bytes, END_TYPE).tobytes())
        self.documents += 1

    def add_passages(self, passages: list[tuple[int, int, str]], lengths: np.ndarray) -> None:
        """Add passages as ``(document, position, text)``, and the number of terms of each."""
        texts = [text.encode("utf-8", "replace") for _, _, text in passages]
        rows = np.empty(len(passages), ROW_TYPE)
        rows["end"] = np.cumsum([len(text) for text in texts]) + self.text_bytes
        rows["document"], rows["position"] = zip(*((document, at) for document, at, _ in passages), strict=True)
        rows["length"] = lengths
        self.text_bytes += self._texts.write(b"".join(texts))
        self._rows.write(rows.tobytes())
        self.passages += len(passages)
        self.occurrences += int(lengths.sum())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None) -> None:
        self._files.close()


def mix_terms(terms: Numbers) -> Numbers:
    """Terms with their bits mixed, each to another number of 48 bits: any range of these has its share of the terms."""
    terms = ((terms ^ (terms >> _HALF)) * _ODD) & _TERM_MASK
    terms = ((terms ^ (terms >> _HALF)) * _ODD) & _TERM_MASK
    return terms ^ (terms >> _HALF)


class PostingsWriter:
    """Writer of the postings of a growing number of passages.

    Args:
        folder: of the index.
        buffered: occurrences of terms that are gathered before they are written.
        partitions: how many parts are sorted one after the other.

    Raises (all methods):
        OSError: something cannot be read or written.
    """

    def __init__(self, folder: Path, buffered: int, partitions: int) -> None:
        self._folder = folder
        self._buffer = np.empty(buffered, np.uint64)
        self._filled = 0
        self._first_passage = 0
        self._passages = 0
        width = -(-(1 << TERM_BITS) // partitions)
        self._bounds = np.arange(1, partitions, dtype=np.uint64) * np.uint64(width)
        self._postings = 0

    def add(self, terms: Numbers, owners: NDArray[np.int64], passages: int) -> None:
        """Add the terms of the next ``passages``, at most 65,536 of them; ``owners`` numbers them from 0."""
        if self._filled + len(terms) > len(self._buffer) or self._passages + passages > 1 << _OWNER_BITS:
            self._flush()
        if len(terms) > len(self._buffer):
            self._buffer = np.empty(len(terms), np.uint64)
        packed = mix_terms(terms) << np.uint64(_OWNER_BITS) | (owners + self._passages).astype(np.uint64)
        self._buffer[self._filled : self._filled + len(terms)] = packed
        self._filled += len(terms)
        self._passages += passages

    def _flush(self) -> None:
        gathered = self._buffer[: self._filled]
        gathered.sort()
        shifted = self._bounds << np.uint64(_OWNER_BITS)
        ends = np.append(np.searchsorted(gathered, shifted), self._filled)
        start = 0
        for number, end in enumerate(ends.tolist()):
            if start < end:
                self._append(number, gathered[start:end])
            start = end
        self._first_passage += self._passages
        self._filled = self._passages = 0

    def _append(self, partition: int, packed: Numbers) -> None:
        starts = np.flatnonzero(np.append(True, packed[1:] != packed[:-1]))
        counts = np.minimum(np.diff(starts, append=len(packed)), MOST_COUNTED).astype(np.uint32)
        distinct = packed[starts]
        passages = (distinct & np.uint64((1 << _OWNER_BITS) - 1)).astype(np.uint32) + np.uint32(self._first_passage)
        terms, lengths = _sum_by_term(distinct >> np.uint64(_OWNER_BITS), np.ones(len(distinct), np.int64))
        postings = passages << np.uint32(COUNT_BITS) | counts
        self._postings += len(postings)
        arrays = terms.astype(TERM_TYPE), lengths.astype(OFFSET_TYPE), postings.astype(POSTING_TYPE)
        for path, array in zip(self._partition_files(partition), arrays, strict=True):
            with path.open("ab") as file:
                file.write(array.tobytes())

    def finish(self, progress: Callable[[int, int], None] = lambda *_: None) -> tuple[int, int]:
        """Sort what was added into the files of the index; the partitions are removed on the way.

        Args:
            progress: called with the number of postings that are sorted, and of all.

        Returns:
            The numbers of terms and of postings.
        """
        if self._filled:
            self._flush()
        self._buffer = np.empty(0, np.uint64)
        term_count = posting_count = 0
        with (
            (self._folder / TERMS).open("wb") as term_file,
            (self._folder / OFFSETS).open("wb") as offset_file,
            (self._folder / PASSAGES).open("wb") as passage_file,
        ):
            for number in range(len(self._bounds) + 1):
                files = self._partition_files(number)
                if not files[0].exists():
                    continue
                terms, lengths, postings = _sorted_partition(*files)
                term_file.write(terms.astype(TERM_TYPE).tobytes())
                offset_file.write((np.cumsum(lengths) - lengths + posting_count).astype(OFFSET_TYPE).tobytes())
                passage_file.write(postings.tobytes())
                term_count += len(terms)
                posting_count += len(postings)
                for path in files:
                    path.unlink()
                progress(posting_count, self._postings)
            offset_file.write(np.array([posting_count], OFFSET_TYPE).tobytes())
        return term_count, posting_count

    def _partition_files(self, number: int) -> tuple[Path, Path, Path]:
        """Files of terms, of the number of postings of each, and of postings."""
        stem = f"partition-{number:05}"
        return self._folder / f"{stem}.terms", self._folder / f"{stem}.lengths", self._folder / f"{stem}.passages"


def _sorted_partition(
    terms_file: Path, lengths_file: Path, postings_file: Path
) -> tuple[Numbers, NDArray[np.int64], NDArray[np.uint32]]:
    """Each term once, its number of postings, and the postings in the order of terms, then of passages."""
    terms = np.fromfile(terms_file, TERM_TYPE)
    lengths = np.fromfile(lengths_file, OFFSET_TYPE).astype(np.int64)
    postings = np.fromfile(postings_file, POSTING_TYPE)
    order = np.argsort(terms, kind="stable")
    begins = (np.cumsum(lengths) - lengths)[order]
    lengths = lengths[order]
    places = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
    places += np.arange(len(postings))
    return *_sum_by_term(terms[order], lengths), postings[places]


def _sum_by_term(terms: Numbers, lengths: NDArray[np.int64]) -> tuple[Numbers, NDArray[np.int64]]:
    """Each term once, with the sum of its lengths; equal terms lie side by side."""
    starts = np.flatnonzero(np.append(True, terms[1:] != terms[:-1]))
    return terms[starts], np.add.reduceat(lengths, starts)
