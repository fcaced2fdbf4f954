"""Building of a corpus index of any size in limited memory: read, split, partition, sort, write the manifest.

Postings are sorted on disk: text is buffered, sorted, and appended to one of many partitions by the range of its terms.
Terms are hashes, so all partitions contain about the same number of postings and each fits in memory. Each partition is
then sorted separately; their concatenation is the index. Data of an interrupted build are never reused; the next build
starts again and removes them.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from agrotools.core import CorpusError, UsageError
from agrotools.core.files import sync, write_whole
from agrotools.knowledge.corpus.documents import (
    MEGABYTE,
    READ,
    CorpusStamp,
    Document,
    Progress,
    ReadingCounts,
    content_hash,
    read_corpus,
    stamp,
)
from agrotools.knowledge.corpus.index import (
    COUNT_BITS,
    DATA,
    FORMAT,
    MANIFEST,
    MOST_COUNTED,
    MOST_PASSAGES,
    OFFSET_TYPE,
    OFFSETS,
    PASSAGES,
    POSTING_TYPE,
    POSTINGS,
    ROW_TYPE,
    ROWS,
    TERM_TYPE,
    TERMS,
    CorpusIndex,
    CorpusState,
    IndexManifest,
    IndexSettings,
    read_manifest,
)
from agrotools.knowledge.corpus.terms import TERM_BITS, Numbers, split, terms_of

_LOCK = ".lock"
_BUFFERED = 1 << 23
"""Number of term occurrences that are buffered before they are written."""
_PARTITIONS = 256
_PARTITION_BYTES = 8 * MEGABYTE
"""Bytes of the corpus for each further partition. Sorting a partition takes 60 bytes of memory per posting."""
_BATCH_CHARACTERS = 1 << 17
_BATCH_PASSAGES = 4096
_PASSAGE_BITS = 64 - TERM_BITS
_SPREAD_TYPE = np.dtype([("term", TERM_TYPE), ("posting", POSTING_TYPE)])
_NOT_PRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_LONGEST_TITLE, _LONGEST_SOURCE = 200, 500


def build_index(
    corpus: Path,
    out: Path,
    *,
    replace: bool = False,
    progress: Progress = lambda *_: None,
) -> CorpusIndex:
    """Build the index of a corpus in the folder ``out``, or open it if it is up to date.

    On disk, the build takes up to five times the size of the text, and leaves about two and a half times that size.

    Args:
        corpus: a file or a folder: .txt, .md, .jsonl, .xml and .xml.bz2 (dumps of Wikipedia).
        out: folder of the index, outside the corpus.
        replace: rebuild if ``out`` contains an index of something else.
        progress: called with the name of the stage, the amount done, and the total.

    Raises:
        UsageError: the corpus does not exist or contains no text, ``out`` contains something else, or an argument is
            out of range.
        CorpusError: the corpus does not have the format given by its name, or changed during the build; or the index
            cannot be written.
    """
    corpus, out = corpus.expanduser().absolute(), out.expanduser().absolute()
    before = stamp(corpus)
    if not before.files:
        raise UsageError(f"{corpus} holds no text files", hint=f"give {READ}")
    try:
        _check_places(corpus, out)
        with _locked(out):
            if not _is_built(out, before, replace=replace):
                _build(corpus, out, before, progress)
    except OSError as error:
        hint = "check that it is a folder you may write to, on a disk with five times the space of the text"
        raise CorpusError(f"the index cannot be written to {out}: {error.strerror or error}", hint=hint) from error
    return CorpusIndex.open(out)


def _check_places(corpus: Path, out: Path) -> None:
    real, target = Path(os.path.realpath(corpus)), Path(os.path.realpath(out))
    if real == target or target in real.parents:
        raise UsageError(f"the corpus {corpus} is inside the folder of the index, {out}", hint="choose another folder")
    if real in target.parents:
        raise UsageError(f"the index {out} would be inside the corpus {corpus}", hint="choose a folder beside it")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file", hint="name a folder for the index")
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    ours = {name for name in names if name.startswith(DATA)}
    if not ours or MANIFEST not in names:
        others = sorted(name for name in names - ours if name != _LOCK and not name.startswith(f".{MANIFEST}."))
        if others:
            raise UsageError(f"{out} holds other things, such as {others[0]}", hint="choose a new or empty folder")


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Allow one build at a time. The lock ends with the process, however it ends."""
    out.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(out / _LOCK, timeout=0):
            yield
    except Timeout as error:
        raise UsageError(f"another process is building {out}", hint="wait for it, or choose another folder") from error


def _is_built(out: Path, corpus: CorpusStamp, *, replace: bool) -> bool:
    if not (out / MANIFEST).exists():
        return False
    try:
        manifest = read_manifest(out)
    except CorpusError:
        if replace:
            return False
        raise
    if manifest.corpus.stamp == corpus.sha256:
        try:
            CorpusIndex.open(out)
        except CorpusError:  # the data are damaged and must be rebuilt
            return False
        return True
    if replace:
        return False
    why = f"{out} holds an index of another corpus, or of this one before it changed"
    raise UsageError(why, hint="give --replace to build it again, or choose another folder")


def _named_data(out: Path) -> str | None:
    try:
        return read_manifest(out).data
    except (UsageError, CorpusError):
        return None


def _clear(out: Path, *, keep: str | None) -> None:
    """Remove the remains of interrupted builds."""
    for path in out.glob(f"{DATA}*"):
        if path.name != keep:
            shutil.rmtree(path)
    for path in out.glob(f".{MANIFEST}.*"):
        path.unlink()


def _build(corpus: Path, out: Path, state: CorpusStamp, progress: Progress) -> None:
    _clear(out, keep=_named_data(out))
    sha256 = content_hash(corpus, state.size, progress)
    folder = out / f"{DATA}{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        counts = ReadingCounts()
        with IndexWriter(folder, _BUFFERED, _PARTITIONS + state.size // _PARTITION_BYTES) as writer:
            for batch in _batches(read_corpus(corpus, counts), writer):
                writer.add(batch)
                position = min(counts.bytes_read, state.size)
                progress("reading the corpus (MB)", position // MEGABYTE, state.size // MEGABYTE)
        if not writer.occurrences:
            raise UsageError(f"{corpus} holds no text", hint="give files that hold letters or digits")
        if stamp(corpus) != state:
            raise CorpusError(f"{corpus} changed while it was read", hint="build the index again when it is at rest")
        terms, postings = writer.finish(lambda at, total: progress("sorting (postings)", at, total))
        for path in (*folder.iterdir(), folder):
            sync(path)
        manifest = IndexManifest(
            format=FORMAT,
            corpus=CorpusState(
                path=str(corpus), files=state.files, bytes=state.size, sha256=sha256, stamp=state.sha256
            ),
            settings=IndexSettings(),
            documents=writer.documents,
            passages=writer.passages,
            terms=terms,
            postings=postings,
            occurrences=writer.occurrences,
            text_bytes=writer.text_bytes,
            passed_over=counts.skipped(),
            data=folder.name,
        )
        write_whole(out / MANIFEST, (manifest.model_dump_json(indent=2) + "\n").encode())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _clear(out, keep=folder.name)


_Row = dict[str, Any]
"""Passage as stored: text, source, title, position."""


def _batches(documents: Iterator[Document], writer: "IndexWriter") -> Iterator[list[_Row]]:
    batch: list[_Row] = []
    characters = 0
    for document in documents:
        named = {
            "source": _one_line(document.source, _LONGEST_SOURCE),
            "title": _one_line(document.title, _LONGEST_TITLE),
        }
        position = None
        for position, text in split(document.pieces):
            batch.append({"text": text, **named, "position": position})
            characters += len(text) + len(named["title"])
            if characters >= _BATCH_CHARACTERS or len(batch) >= _BATCH_PASSAGES:
                yield batch
                batch, characters = [], 0
        writer.documents += position is not None
    if batch:
        yield batch


def _one_line(text: str, longest: int) -> str:
    """Return ``text`` without control characters and line breaks, cut to ``longest`` characters."""
    return _NOT_PRINTABLE.sub(" ", text).strip()[:longest]


class IndexWriter:
    """Writer of the passages of an index and their postings.

    Args:
        folder: data folder.
        buffered: number of term occurrences that are buffered before they are written.
        partitions: number of partitions, which are sorted one after another.

    Raises (all methods):
        OSError: a file cannot be read or written.
    """

    def __init__(self, folder: Path, buffered: int, partitions: int) -> None:
        self._folder = folder
        self._lines, self._rows = (folder / PASSAGES).open("wb"), (folder / ROWS).open("wb")
        self._buffer = np.empty(buffered, np.uint64)
        self._filled = self._gathered = self._first = 0
        width = -(-(1 << TERM_BITS) // partitions)
        self._bounds = np.arange(1, partitions, dtype=np.uint64) * np.uint64(width)
        self._postings = 0
        self.documents = self.passages = self.occurrences = self.text_bytes = 0

    def __enter__(self) -> "IndexWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._rows.close()

    def add(self, passages: Sequence[_Row]) -> None:
        """Write the next passages, at most 65,536, and buffer their terms.

        Raises:
            CorpusError: there are more passages than an index can number.
        """
        if self.passages + len(passages) > MOST_PASSAGES:
            raise CorpusError(f"the corpus has more than {MOST_PASSAGES:,} passages", hint="index parts of it")
        # The title is indexed too, because later passages of an article may refer to its subject only as "it".
        terms, owners = terms_of(
            [f"{row['title']}\n{row['text']}" if row["title"] else row["text"] for row in passages]
        )
        lines = [json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for row in passages]
        rows = np.empty(len(passages), ROW_TYPE)
        rows["end"] = np.cumsum([len(line) for line in lines]) + self.text_bytes
        rows["length"] = np.bincount(owners, minlength=len(passages))
        self.text_bytes += self._lines.write(b"".join(lines))
        self._rows.write(rows.tobytes())
        self.passages += len(passages)
        self.occurrences += len(terms)
        if self._filled + len(terms) > len(self._buffer) or self._gathered + len(passages) > 1 << _PASSAGE_BITS:
            self._flush()
        if len(terms) > len(self._buffer):
            self._buffer = np.empty(len(terms), np.uint64)
        packed = terms << np.uint64(_PASSAGE_BITS) | (owners + self._gathered).astype(np.uint64)
        self._buffer[self._filled : self._filled + len(terms)] = packed
        self._filled += len(terms)
        self._gathered += len(passages)

    def _flush(self) -> None:
        gathered = self._buffer[: self._filled]
        gathered.sort()
        ends = np.searchsorted(gathered, self._bounds << np.uint64(_PASSAGE_BITS)).tolist()
        for number, (start, end) in enumerate(pairwise((0, *ends, self._filled))):
            if start < end:
                self._spread(number, gathered[start:end])
        self._first += self._gathered
        self._filled = self._gathered = 0

    def _spread(self, partition: int, packed: Numbers) -> None:
        starts = np.flatnonzero(np.append(True, packed[1:] != packed[:-1]))
        counts = np.minimum(np.diff(starts, append=len(packed)), MOST_COUNTED)
        passages = (packed[starts] & np.uint64((1 << _PASSAGE_BITS) - 1)).astype(np.int64) + self._first
        rows = np.empty(len(starts), _SPREAD_TYPE)
        rows["term"] = packed[starts] >> np.uint64(_PASSAGE_BITS)
        rows["posting"] = passages << COUNT_BITS | counts
        self._postings += len(rows)
        with self._partition_file(partition).open("ab") as file:
            file.write(rows.tobytes())

    def finish(self, progress: Callable[[int, int], None]) -> tuple[int, int]:
        """Sort the partitions into the files of the index, and remove them.

        Args:
            progress: called with the numbers of sorted postings and of all postings.

        Returns:
            The numbers of terms and of postings.
        """
        self._flush()
        self._buffer = np.empty(0, np.uint64)
        term_count = posting_count = 0
        with (
            (self._folder / TERMS).open("wb") as term_file,
            (self._folder / OFFSETS).open("wb") as offset_file,
            (self._folder / POSTINGS).open("wb") as posting_file,
        ):
            for path in map(self._partition_file, range(len(self._bounds) + 1)):
                if not path.exists():
                    continue
                rows = np.fromfile(path, _SPREAD_TYPE)
                order = np.argsort(rows["term"], kind="stable")
                terms = rows["term"][order]
                starts = np.flatnonzero(np.append(True, terms[1:] != terms[:-1]))
                term_file.write(terms[starts].tobytes())
                offset_file.write((starts + posting_count).astype(OFFSET_TYPE).tobytes())
                posting_file.write(rows["posting"][order].tobytes())
                term_count += len(starts)
                posting_count += len(rows)
                path.unlink()
                progress(posting_count, self._postings)
            offset_file.write(np.array([posting_count], OFFSET_TYPE).tobytes())
        return term_count, posting_count

    def _partition_file(self, number: int) -> Path:
        return self._folder / f"partition-{number:05}"
